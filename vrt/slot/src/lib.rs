//! A rank's memory, and the mechanism that suspends and resumes it; independent of all layers above.
//!
//! The arena is one address range, mapped at the same address in every PE of a node, in which every rank has a *slot*
//! with its stack and its heap.
//!
//! Invariants:
//! - The arena is reserved before PEs are forked; its base and layout never change in them. An address in it means the
//!   same in every PE. A process that is not a PE may release it when it is empty, and reserve another one: for its
//!   next job, or for more ranks of its own (`run_local`).
//! - A slot is touched only by the PE that owns it ([`SlotHeader::owner`]), with three exceptions:
//!   another PE frees a block through the slot's remote-free list; the receiver of a large message
//!   reads the sender's buffer while the sender waits; the crash handler reads anything.
//! - The kernel provides pages lazily. A slot's pages are returned when its rank has ended.
//!
//! | file | subject |
//! |---|---|
//! | `backing` | the file behind the arena, with 2 MiB pages where possible |
//! | `layout` | the positions of slots, stacks and heaps, and the reasons |
//! | `slot` | the header of a slot: heap, owner, suspended rank |
//! | `live` | the parts of a slot that must move to another node |
//! | `heap` | dlmalloc over a slot's two ranges |
//! | `outside` | the heap for allocations outside of ranks: threads, tokio |
//! | `hooks` | `malloc` and its family: selection of the heap |
//! | `calls` | the table of the libc calls that are interposed in front of libc's |
//! | `interpose` | the mechanism for that, and `exit` |
//! | `signals`, `timers` | signals and timers of ranks that run images |
//! | `forked` | whether this process is a copy of one with ranks |
//! | `held` | what a rank holds outside its slot, as numbers in its header |
//! | `external` | external resources: what a rank holds outside its slot, and so cannot move with it |
//! | `answers` | results of libc in memory of the process: ranks get copies |
//! | `search` | references of ranks and statics that prevent a move |
//! | `exit_guard` | lets each rank of a PE call `std::process::exit` |
//! | `rank` | a rank: its life, and the services of the layer above for it |
//! | `coroutine` | the suspended program in a slot |
//! | `image` | the program that a rank runs, if each has its own copy |
//! | `thread` | a rank that is a thread of the process |
//! | `locals` | the runtime's data of a rank, in the rank's heap |
//! | `waker` | wakers of ranks |
//! | `check` | the checking mode for stacks |
//! | `report` | printing a line, and ending the job, from anywhere |

#![allow(rustdoc::private_intra_doc_links, reason = "its readers work on it, and see all of it")]

#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!(
    "vrt needs Linux with glibc, on x86_64 or aarch64: it defines functions in front of glibc's, shares \
     memory between processes as Linux does, and knows the registers of these processors"
);

mod accounts;
pub mod allocator;
pub mod answers;
mod backing;
mod calls;
pub mod check;
pub mod children;
mod coroutine;
pub mod exit_guard;
pub mod external;
mod floating_point;
mod folders;
pub mod foreign;
pub mod fork;
mod forked;
pub mod gone_locals;
pub mod heap;
mod held;
pub mod hooks;
pub mod image;
pub mod image_thread;
pub mod interpose;
mod layout;
mod libc_threads;
pub mod live;
pub mod locals;
pub mod outside;
mod own_libc;
pub mod own_thread_locals;
pub mod rank;
pub mod report;
mod resident;
pub mod search;
pub mod signals;
mod slot;
mod switch;
pub mod thread;
mod timers;
mod waker;

pub use calls::{for_images, in_front};
pub use held::Held;
pub use layout::{Layout, LayoutError, SlotSizes};
pub use libc_threads::of_libc_threads;
pub use own_libc::for_own_libc;
pub use slot::{SlotHeader, SlotId, TOUCHED_BY_SWITCH};

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

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
        readable(*.bytes), readable(*.bytes / slots.max(&1)), limit_in_words()
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

/// A number of bytes as text, rounded down.
fn readable(bytes: usize) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes >= 4 * unit).unwrap_or((1, "B"));
    format!("{} {name}", bytes / unit)
}

/// The limit on this process's address space, if it has one.
fn limit_in_words() -> String {
    // SAFETY: zeros are a valid limit, which the call fills in.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_AS, &raw mut limit);
        limit.rlim_cur
    };
    match limit {
        libc::RLIM_INFINITY => String::new(),
        bytes => format!(" under a limit of {} (`ulimit -v`)", readable(bytes as usize)),
    }
}

impl Arena {
    /// The arena of this process, if it has one.
    #[inline(always)]
    pub fn current() -> Option<&'static Arena> {
        // SAFETY: null, or an arena that is never freed.
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
        // SAFETY: the mapping made by `reserve`, which nobody uses.
        unsafe { libc::munmap(arena.layout.base as *mut libc::c_void, arena.layout.size()) };
    }

    /// Reserves an arena that other processes will [`attach`](Self::attach): anywhere, or at a given place. Also
    /// returns the file behind it.
    pub fn reserve_to_share(
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
    pub fn attach(
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

    /// Replaces the arena's memory by fresh, empty memory: from now on the contents here and in other processes'
    /// mappings differ.
    ///
    /// # Safety
    /// Nothing in the arena is used by this process.
    pub unsafe fn renew(&self) -> std::io::Result<()> {
        map(self.layout.base, self.layout.size(), libc::MAP_FIXED).map(|_| ())
    }

    /// Returns the pages of a slot to the system; its contents become zero.
    ///
    /// # Safety
    /// The slot is not used any more: its rank has ended and no live block is left in its heap.
    pub unsafe fn discard(&self, slot: SlotId) {
        let (near, far) = self.layout.used_ranges(slot);
        for (start, len) in [near, far] {
            // SAFETY: a page-aligned range of our own shared mapping, no longer in use.
            unsafe { libc::madvise(start as *mut libc::c_void, len, libc::MADV_REMOVE) };
        }
        // SAFETY: as the caller promises.
        unsafe { image::discard(self, slot) };
    }
}

/// Whether the arena should have 2 MiB pages; once it is mapped, whether it does.
static HUGE_PAGES: AtomicBool = AtomicBool::new(false);

/// Bytes of a large page.
pub const HUGE_PAGE: usize = 2 << 20;

/// Sets whether the arena should have 2 MiB pages, if the system provides them. To be called before it is reserved; or
/// before it is attached, when it is known whether it has them.
pub fn want_huge_pages(wanted: bool) {
    HUGE_PAGES.store(wanted, Ordering::Relaxed);
}

/// Whether the system provides 2 MiB pages for shared memory. Only checks, and reserves nothing.
pub fn can_have_huge_pages() -> bool {
    backing::open(true).is_ok_and(|(_, huge)| huge)
}

/// Whether large ranges of the arena get 2 MiB pages.
pub fn has_huge_pages() -> bool {
    HUGE_PAGES.load(Ordering::Relaxed)
}

/// Whether there is enough memory for each slot to have an additional large page.
static AMPLE: AtomicBool = AtomicBool::new(false);

/// Whether the slots may waste part of a large page each: all of them together waste little of the machine's memory.
pub(crate) fn memory_is_ample() -> bool {
    AMPLE.load(Ordering::Relaxed)
}

/// Checks whether memory is ample for this many slots.
fn check_memory_headroom(slots: usize) {
    AMPLE.store(slots * HUGE_PAGE <= machine_memory() / 16, Ordering::Relaxed);
}

/// Bytes of memory that the machine has.
pub fn machine_memory() -> usize {
    // SAFETY: plain calls.
    let (pages, page) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    pages.max(0) as usize * page.max(0) as usize
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
    // SAFETY: plain system calls, on a descriptor that is open; the structures are written before they are read. The
    // limit and what SIGXFSZ does are as before afterwards.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        let has_limit = libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) == 0;
        let lifted = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        if has_limit {
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const lifted);
        }
        let on_excess = libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let done = match libc::ftruncate(file.as_raw_fd(), size as libc::off_t) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        };
        if on_excess != libc::SIG_ERR {
            libc::signal(libc::SIGXFSZ, on_excess);
        }
        if has_limit {
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
        }
        match done {
            Err(error) if error.raw_os_error() == Some(libc::EFBIG) => Err(std::io::Error::new(
                std::io::ErrorKind::FileTooLarge,
                "the limit for the sizes of files keeps ranks from having memory; `ulimit -f unlimited` lifts it",
            )),
            done => done,
        }
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
    // SAFETY: plain system calls; the file has no name. MAP_FIXED is given only for the arena's
    // own range, which nobody uses then.
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

/// Prefetches a cache line. Any address is allowed.
#[inline(always)]
pub fn fetch(at: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and cannot fault.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at as *const i8);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
