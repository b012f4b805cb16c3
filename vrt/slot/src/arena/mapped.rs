//! The arena of this process: where it is, and how it is reserved.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use bytesize::ByteSize;

use crate::arena::{Layout, LayoutError, SlotHeader, SlotId, SlotSizes, backing};
use crate::pages::{HUGE_PAGES, check_memory_headroom};
use crate::sys;

/// First address and size, for the check in `free`; an arena of size 0 contains nothing. The size is read first and
/// written last, so that other threads never see a size with another arena's base.
static BASE: AtomicUsize = AtomicUsize::new(0);

static SIZE: AtomicUsize = AtomicUsize::new(0);

/// The description of the arena; those of earlier arenas of the process are not freed.
static ARENA: AtomicPtr<Arena> = AtomicPtr::new(std::ptr::null_mut());

/// The mapped arena of this process.
#[derive(Debug)]
pub struct Arena {
    /// The positions of everything in it.
    pub layout: Layout,
    /// The sizes from which its layout was made.
    sizes: SlotSizes,
}

/// The position of an arena, for PEs that are not forked from the same process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its first address.
    pub base: usize,
    /// Bytes of a slot's far heap.
    pub far: usize,
}

/// Why there is no arena.
#[derive(Debug, thiserror::Error)]
pub enum ArenaError {
    /// The requested layout cannot exist.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The kernel could not map it anywhere.
    #[error(
        "cannot reserve {} of address space for {slots} slots ({} each){}: {source}; use fewer \
         ranks, a smaller --slot or --stack, or raise `ulimit -v`",
        ByteSize(*.bytes as u64), ByteSize((*.bytes / slots.max(&1)) as u64), limit_in_words()
    )]
    Map {
        /// Requested bytes.
        bytes: usize,
        /// Number of slots.
        slots: usize,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// Ranks of this process use the existing arena, which does not fit the request.
    #[error(
        "{asked} slots do not fit: the arena of this process has {slots}, and {in_use} of them are \
         in use, by ranks that run or by memory that ranks have left; set VRT_STACK and VRT_SLOT \
         once, run fewer ranks at the same time, or launch jobs before local runs"
    )]
    InUse {
        /// Requested slots.
        asked: usize,
        /// Existing slots.
        slots: usize,
        /// Number of slots in use.
        in_use: usize,
    },
}

/// The limit on this process's address space, if it has one.
fn limit_in_words() -> String {
    match sys::limit(libc::RLIMIT_AS).map(|limit| limit.rlim_cur) {
        None | Some(libc::RLIM_INFINITY) => String::new(),
        Some(bytes) => format!(" under a limit of {} (`ulimit -v`)", ByteSize(bytes)),
    }
}

impl Arena {
    /// The arena of this process, if it has one.
    #[inline(always)]
    pub fn current() -> Option<&'static Arena> {
        // SAFETY: null, or what `install` has leaked.
        unsafe { ARENA.load(Ordering::Acquire).as_ref() }
    }

    /// Reserves the arena for `slots` slots.
    ///
    /// # Safety
    /// The process has no arena.
    pub unsafe fn reserve(slots: usize, sizes: &SlotSizes) -> Result<&'static Arena, ArenaError> {
        let (layout, _) = map_somewhere(slots, sizes)?;
        Ok(Arena::install(layout, sizes))
    }

    fn install(layout: Layout, sizes: &SlotSizes) -> &'static Arena {
        check_memory_headroom(layout.slots);
        BASE.store(layout.base, Ordering::Relaxed);
        SIZE.store(layout.size(), Ordering::Release);
        let arena: &'static Arena = Box::leak(Box::new(Arena { layout, sizes: *sizes }));
        ARENA.store(std::ptr::from_ref(arena).cast_mut(), Ordering::Release);
        arena
    }

    /// Whether it has this many slots with such sizes.
    pub fn serves(&self, slots: usize, sizes: &SlotSizes) -> bool {
        slots <= self.layout.slots && *sizes == self.sizes
    }

    /// Releases the arena of this process, if it has one.
    ///
    /// # Safety
    /// Nothing in it is used, and no other thread uses it meanwhile.
    pub unsafe fn release() {
        let Some(arena) = Arena::current() else { return };
        ARENA.store(std::ptr::null_mut(), Ordering::Release);
        SIZE.store(0, Ordering::Release);
        // SAFETY: the mapping that `map_file` has made; nothing in it is used, says the caller.
        unsafe { libc::munmap(arena.layout.base as *mut libc::c_void, arena.layout.size()) };
    }

    /// Reserves an arena that other processes will [`attach`](Self::attach): anywhere, or at a given place. Also
    /// returns the file behind it.
    ///
    /// # Safety
    /// The process has no arena.
    pub unsafe fn reserve_to_share(
        slots: usize,
        sizes: &SlotSizes,
        place: Option<Place>,
    ) -> Result<(&'static Arena, OwnedFd), ArenaError> {
        let (layout, file) = match place {
            None => map_somewhere(slots, sizes)?,
            Some(Place { base, far }) => {
                let layout = Layout::new(base, slots, sizes, far)?;
                let size = layout.size();
                let (_, file) = map(base, size, libc::MAP_FIXED_NOREPLACE)
                    .map_err(|source| ArenaError::Map { bytes: size, slots, source })?;
                (layout, file)
            }
        };
        Ok((Arena::install(layout, sizes), file))
    }

    /// Maps the arena of another process, whose file has been opened.
    ///
    /// # Safety
    /// The process has no arena.
    pub unsafe fn attach(
        slots: usize,
        sizes: &SlotSizes,
        Place { base, far }: Place,
        file: &OwnedFd,
    ) -> Result<&'static Arena, ArenaError> {
        let layout = Layout::new(base, slots, sizes, far)?;
        let size = layout.size();
        map_file(base, size, libc::MAP_FIXED_NOREPLACE, file)
            .map_err(|source| ArenaError::Map { bytes: size, slots, source })?;
        Ok(Arena::install(layout, sizes))
    }

    /// Its position.
    pub fn place(&self) -> Place {
        Place { base: self.layout.base, far: self.layout.far_stride }
    }

    /// Whether an address lies in the arena of this process.
    #[inline(always)]
    pub fn contains(address: usize) -> bool {
        let size = SIZE.load(Ordering::Acquire);
        address.wrapping_sub(BASE.load(Ordering::Relaxed)) < size
    }

    /// The slot that contains an address of the arena.
    #[inline]
    pub fn slot_at(&self, address: usize) -> SlotId {
        self.layout.slot_at(address)
    }

    /// The header of a slot. It is valid (zeroed) even before [`SlotHeader::prepare`].
    #[inline(always)]
    pub fn header(&self, slot: SlotId) -> *mut SlotHeader {
        self.layout.top(slot) as *mut SlotHeader
    }

    /// The header of the slot with a number, if there is such a slot.
    pub(crate) fn slot(&self, number: u32) -> Option<&'static SlotHeader> {
        // SAFETY: S1; what changes in it are cells, which only the owner uses (S2), and atomics.
        ((number as usize) < self.layout.slots).then(|| unsafe { &*self.header(SlotId(number)) })
    }

    /// Replaces the arena's memory by fresh, empty memory: from now on the contents here and in other processes'
    /// mappings differ.
    ///
    /// # Safety
    /// Nothing in the arena is used by this process.
    pub unsafe fn renew(&self) -> std::io::Result<()> {
        map(self.layout.base, self.layout.size(), libc::MAP_FIXED).map(|_| ())
    }
}

/// Whether the system provides 2 MiB pages for shared memory. Only checks, and reserves nothing.
pub fn can_have_huge_pages() -> bool {
    backing::open(true).is_ok_and(|(_, huge)| huge)
}

/// Addresses that are free in ordinary processes and under valgrind and AddressSanitizer; the last resort (0) lets the
/// kernel choose, which is equally good because PEs are forked.
const CANDIDATES: [usize; 4] = [0x2000_0000_0000, 0x3000_0000_0000, 0x10_0000_0000, 0];

/// Maps the arena at the first address that is free, with smaller slots if the address space is limited.
fn map_somewhere(slots: usize, sizes: &SlotSizes) -> Result<(Layout, OwnedFd), ArenaError> {
    let mut far = sizes.far_size(slots);
    let mut error = std::io::Error::from_raw_os_error(libc::ENOMEM);
    let mut size = 0;
    while far >= sizes.smallest_far() {
        for base in CANDIDATES {
            let mut layout = Layout::new(base, slots, sizes, far)?;
            size = layout.size();
            // No mapping is ever replaced.
            let place = if base == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
            match map(base, size, place) {
                Ok((address, file)) => {
                    layout.rebase(address);
                    return Ok((layout, file));
                }
                Err(e) => error = e,
            }
        }
        far /= 2;
    }
    Err(ArenaError::Map { bytes: size, slots, source: error })
}

fn map(base: usize, size: usize, place: libc::c_int) -> std::io::Result<(usize, OwnedFd)> {
    let (file, huge) = backing::open(HUGE_PAGES.load(Ordering::Relaxed))?;
    HUGE_PAGES.store(huge, Ordering::Relaxed);
    map_file(base, size, place, &file).map(|address| (address, file))
}

/// Extends a memory file to this length. The limit for files of a program (`ulimit -f`) is not meant for it, and is
/// lifted as far as this user may.
///
/// # Errors
/// The system refuses it.
pub fn make_long(file: &impl AsRawFd, size: usize) -> std::io::Result<()> {
    let limit = sys::limit(libc::RLIMIT_FSIZE);
    let lifted = limit.map(|limit| libc::rlimit { rlim_cur: limit.rlim_max, ..limit });
    // SAFETY: `SIG_IGN` runs no code, and what SIGXFSZ did before is put back; the limits are readable.
    let done = unsafe {
        if let Some(lifted) = &lifted {
            libc::setrlimit(libc::RLIMIT_FSIZE, lifted);
        }
        let on_excess = libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let done = match libc::ftruncate(file.as_raw_fd(), size as libc::off_t) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        };
        if on_excess != libc::SIG_ERR {
            libc::signal(libc::SIGXFSZ, on_excess);
        }
        if let Some(limit) = &limit {
            libc::setrlimit(libc::RLIMIT_FSIZE, limit);
        }
        done
    };
    match done {
        Err(error) if error.raw_os_error() == Some(libc::EFBIG) => Err(std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            "the limit for the sizes of files keeps ranks from having memory; `ulimit -f unlimited` lifts it",
        )),
        done => done,
    }
}

/// Maps an arena's file, and extends it to the arena's length.
fn map_file(
    base: usize,
    size: usize,
    place: libc::c_int,
    file: &OwnedFd,
) -> std::io::Result<usize> {
    let fd = file.as_raw_fd();
    // SAFETY: only `renew` gives `MAP_FIXED`, for the arena's own range, in which nothing is used; nothing else replaces
    // a mapping, and what is unmapped was just made.
    unsafe {
        make_long(file, size)?;
        let mapped = libc::mmap(
            base as *mut libc::c_void,
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE | place,
            fd,
            0,
        );
        let error = std::io::Error::last_os_error();
        if mapped == libc::MAP_FAILED {
            return Err(error);
        }
        if base != 0 && mapped as usize != base {
            // A kernel before 4.17 takes the address as a mere hint.
            libc::munmap(mapped, size);
            return Err(std::io::Error::from_raw_os_error(libc::EEXIST));
        }
        // A core dump would otherwise contain, and allocate, the whole arena.
        libc::madvise(mapped, size, libc::MADV_DONTDUMP);
        Ok(mapped as usize)
    }
}
