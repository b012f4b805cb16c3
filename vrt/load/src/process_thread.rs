//! The layout of a thread block of the process: how much lies below the thread pointer, and how
//! long glibc's control block is, with those of its fields that belong to a thread.
//!
//! glibc documents none of this, so it is queried and measured in the process itself.

use std::ffi::c_void;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::memory::WORD;
use crate::objects::for_each_object;
use crate::process::{self, PRIVATE_VERSION};
use crate::thread_pointer;

/// Thread-locals further below the thread pointer are not part of the block, but were allocated separately.
const FURTHEST: usize = 1 << 20;

/// The size of `struct pthread` if it is not known: that of glibc 2.36.
const USUAL_CONTROL: usize = 2304;

/// The part of the control block in which the thread's number is searched: before it are the fields that the ABI
/// defines.
const IDENTITY: Range<usize> = 0x40..1024;

/// Fields of the control block defined by the ABI: its own address, twice, and the table of dynamic thread-locals.
const SELF: [usize; 2] = [0, 16];
const DYNAMIC: usize = 8;

/// Thread-specific data: bytes per key, keys per block, and bytes per block.
const SPECIFIC: usize = size_of::<Specific>();
const SPECIFIC_KEYS: usize = 32;
const SPECIFIC_BLOCK: usize = SPECIFIC * SPECIFIC_KEYS;

/// A value of thread-specific data, as libc stores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Specific {
    /// The sequence number of the key when the value was set: the value is valid only as long as the key still has it.
    pub sequence: usize,
    /// The value.
    pub value: usize,
}

/// A thread block of the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessThread {
    /// Bytes below the thread pointer that are in use.
    pub locals: usize,
    /// Bytes available below the thread pointer; libraries that are loaded later get some of them.
    pub room: usize,
    /// Bytes of the control block.
    pub control: usize,
    /// Thread pointers are multiples of this.
    pub alignment: usize,
    /// The position of the thread's number in the control block.
    identity: Option<usize>,
    /// The position of the thread's area of restartable sequences, from the thread pointer.
    restartable: Option<isize>,
    /// The position in the control block of values of thread-specific data (`pthread_setspecific`), and of the
    /// references to more of them.
    specific: Range<usize>,
    /// The position in the control block of the thread's result, which the joining thread receives.
    result: Option<usize>,
}

impl ProcessThread {
    /// Measures the calling thread's block.
    pub(crate) fn measure() -> ProcessThread {
        let pointer = thread_pointer::get();
        let control = unsigned(b"_thread_db_sizeof_pthread", PRIVATE_VERSION);
        let control = control.map_or(USUAL_CONTROL, |size| size as usize);
        let restartable = restartable(control);
        let mut locals = 0;
        for_each_object(|object| {
            let start = object.thread_locals().map_or(0, |(block, _)| block.start);
            if (pointer.saturating_sub(FURTHEST)..pointer).contains(&start) {
                locals = locals.max(pointer - start);
            }
        });
        // Newer versions of glibc have that area below the thread-locals.
        if let Some(offset) = restartable.filter(|offset| *offset < 0) {
            locals = locals.max(offset.unsigned_abs());
        }
        let (room, alignment) = static_room(control).unwrap_or((locals + 4096, 64));
        ProcessThread {
            locals,
            room: room.max(locals),
            control,
            alignment: alignment.max(64),
            identity: identity(pointer, control),
            restartable,
            specific: specific(pointer, control),
            result: result(control),
        }
    }

    /// The offset of one of the process's thread-locals from the thread pointer, if it lies in the block.
    pub(crate) fn offset_of(&self, address: usize) -> Option<isize> {
        let offset = address.wrapping_sub(thread_pointer::get()) as isize;
        (-(self.locals as isize)..self.control as isize).contains(&offset).then_some(offset)
    }

    /// Copies a control block. Pointers to the block itself are adjusted, and thread-specific data is left out: a libc
    /// has its own keys for these.
    ///
    /// # Safety
    /// Both are thread pointers, followed by control blocks of this length.
    pub(crate) unsafe fn copy_control(&self, to: usize, from: usize) {
        let own = from..from + self.control;
        for offset in (0..self.control & !7).step_by(8) {
            // SAFETY: inside of the control blocks, which are aligned.
            unsafe {
                let mut word = ((from + offset) as *const usize).read();
                if own.contains(&word) {
                    word = word - from + to;
                }
                ((to + offset) as *mut usize).write(word);
            }
        }
        for offset in SELF {
            // SAFETY: as above.
            unsafe { ((to + offset) as *mut usize).write(to) };
        }
        // SAFETY: as above.
        unsafe {
            if !self.specific.is_empty() {
                let block = to + self.specific.start;
                (block as *mut u8).write_bytes(0, self.specific.len());
                ((block + SPECIFIC_BLOCK) as *mut usize).write(block);
            }
            self.forget_restartable(to);
        }
    }

    /// Copies the reference to the thread's dynamic thread-locals.
    ///
    /// # Safety
    /// As [`copy_control`](Self::copy_control).
    pub(crate) unsafe fn copy_dynamic(&self, to: usize, from: usize) {
        // SAFETY: a field inside of the control blocks.
        unsafe {
            let dynamic = ((from + DYNAMIC) as *const usize).read();
            ((to + DYNAMIC) as *mut usize).write(dynamic);
        }
    }

    /// Sets the number that identifies the thread of a control block to locks.
    ///
    /// # Safety
    /// It is the thread pointer of a block.
    pub(crate) unsafe fn set_number(&self, of: usize, number: i32) {
        if let Some(identity) = self.identity {
            // SAFETY: a field inside of the control block.
            unsafe { ((of + identity) as *mut i32).write(number) };
        }
    }

    /// Copies a thread's result (`pthread_exit`, `PTHREAD_CANCELED`).
    ///
    /// # Safety
    /// As [`copy_control`](Self::copy_control).
    pub(crate) unsafe fn copy_result(&self, to: usize, from: usize) {
        if let Some(result) = self.result {
            // SAFETY: a field inside of the control blocks.
            unsafe {
                let value = ((from + result) as *const usize).read();
                ((to + result) as *mut usize).write(value);
            }
        }
    }

    /// Takes the values of thread-specific data out of a control block, with the numbers of their keys.
    ///
    /// # Safety
    /// It is the thread pointer of a block whose thread does not run meanwhile or is the caller.
    pub(crate) unsafe fn take_specific(&self, of: usize) -> Vec<(usize, Specific)> {
        let mut taken = Vec::new();
        if self.specific.is_empty() {
            return taken;
        }
        let table = of + self.specific.start + SPECIFIC_BLOCK;
        for block in 0..SPECIFIC_KEYS {
            // SAFETY: a table of as many pointers, each null or to a block of as many pairs.
            unsafe {
                let pairs = ((table + block * WORD) as *const *mut Specific).read();
                for key in 0..if pairs.is_null() { 0 } else { SPECIFIC_KEYS } {
                    let value = pairs.add(key).replace(Specific::default());
                    if value.value != 0 {
                        taken.push((block * SPECIFIC_KEYS + key, value));
                    }
                }
            }
        }
        taken
    }

    /// The kernel writes the processor's number into the area of the thread's own block, never into that of a copy; the
    /// copy must state that it is not registered.
    ///
    /// # Safety
    /// `to` is the thread pointer of a copy.
    pub(crate) unsafe fn forget_restartable(&self, to: usize) {
        /// The first two words: the processor at the beginning, and the processor.
        const AREA: [i32; 2] = [0, -1];
        let Some(offset) = self.restartable else { return };
        // SAFETY: the area lies in the block, as was checked when it was found.
        unsafe { (to.wrapping_add_signed(offset) as *mut [i32; 2]).write(AREA) };
    }
}

/// A number that a library of the process defines.
fn unsigned(name: &[u8], version: &[u8]) -> Option<u32> {
    let address = process::symbol(name, Some(version))?;
    // SAFETY: glibc defines these as 32-bit numbers.
    Some(unsafe { (address as *const u32).read() })
}

/// The position of a thread's area of restartable sequences in glibc 2.35 and newer.
fn restartable(control: usize) -> Option<isize> {
    let address = process::symbol(b"__rseq_offset", Some(b"GLIBC_2.35"))?;
    // SAFETY: glibc defines it as a `ptrdiff_t`.
    let offset = unsafe { (address as *const isize).read() };
    let block = -(FURTHEST as isize)..control as isize - 8;
    (offset != 0 && block.contains(&offset)).then_some(offset)
}

/// The number of bytes available below the thread pointer, and its alignment.
fn static_room(control: usize) -> Option<(usize, usize)> {
    let address = process::symbol(b"_dl_get_tls_static_info", Some(PRIVATE_VERSION))?;
    // SAFETY: the loader's function of this type, which reports two numbers.
    let ask = unsafe {
        std::mem::transmute::<usize, unsafe extern "C" fn(*mut usize, *mut usize)>(address)
    };
    let (mut size, mut alignment) = (0, 0);
    // SAFETY: pointers to locals.
    unsafe { ask(&mut size, &mut alignment) };
    let room = size.saturating_sub(control);
    (alignment.is_power_of_two() && size < FURTHEST).then_some((room, alignment))
}

/// The position of the thread's number in a control block: its position in this thread, and if there are several, as
/// with small numbers, its position in another thread as well.
fn identity(pointer: usize, control: usize) -> Option<usize> {
    let candidates = identities(pointer, control);
    if candidates.len() <= 1 {
        return candidates.first().copied();
    }
    let other = std::thread::Builder::new()
        .spawn(move || identities(thread_pointer::get(), control))
        .ok()?
        .join()
        .ok()?;
    candidates.into_iter().find(|offset| other.contains(offset))
}

/// Positions in the calling thread's control block that hold its number.
fn identities(pointer: usize, control: usize) -> Vec<usize> {
    // SAFETY: a system call without arguments.
    let number = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    let offsets = (IDENTITY.start..IDENTITY.end.min(control)).step_by(4);
    offsets
        .filter(|offset| {
            // SAFETY: inside of the thread's control block.
            let word = unsafe { ((pointer + offset) as *const i32).read() };
            word == number
        })
        .collect()
}

/// The position of thread-specific data in the control block: a block of pairs of a sequence number and a value, and as
/// many pointers to such blocks, the first of which points to the first block. It is found by writing a value for a
/// key.
fn specific(pointer: usize, control: usize) -> Range<usize> {
    const TABLE: usize = SPECIFIC_KEYS * 8;
    const VALUE: usize = 0x7652_7374_6c6f_6164;
    let mut key = 0;
    // SAFETY: a key that is used here only.
    unsafe {
        if libc::pthread_key_create(&mut key, None) != 0 {
            return 0..0;
        }
        libc::pthread_setspecific(key, VALUE as *const c_void);
    }
    // SAFETY: words of the thread's control block.
    let word = |offset: usize| unsafe { ((pointer + offset) as *const usize).read() };
    let mut offsets = (0..control & !7).step_by(8);
    let at = offsets.find(|offset| word(*offset) == VALUE);
    // SAFETY: the key from above.
    unsafe { libc::pthread_key_delete(key) };
    let start = at.and_then(|at| at.checked_sub(key as usize * SPECIFIC + 8));
    match start {
        Some(start)
            if (key as usize) < SPECIFIC_KEYS && start + SPECIFIC_BLOCK + TABLE <= control =>
        {
            start..start + SPECIFIC_BLOCK + TABLE
        }
        _ => 0..0,
    }
}

/// The position of a thread's result in a control block: found in a thread that has ended with a known result and has
/// not been joined.
fn result(control: usize) -> Option<usize> {
    const VALUE: usize = 0x7652_7374_6c65_6e64;
    /// Long enough for a thread to begin and end on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(5);
    extern "C" fn ends(_: *mut c_void) -> *mut c_void {
        VALUE as *mut c_void
    }
    let mut thread: libc::pthread_t = 0;
    let (attributes, argument) = (std::ptr::null(), std::ptr::null_mut());
    // SAFETY: a place for the thread's identity, and a function of this type.
    if unsafe { libc::pthread_create(&mut thread, attributes, ends, argument) } != 0 {
        return None;
    }
    let begun = Instant::now();
    let mut found = None;
    while found.is_none() && begun.elapsed() < PATIENCE {
        std::thread::yield_now();
        found = (0..control & !7).step_by(8).find(|offset| {
            // SAFETY: a thread's identity is its control block, which stays until the thread is joined.
            let word = unsafe { ((thread as usize + offset) as *const usize).read_volatile() };
            word == VALUE
        });
    }
    // SAFETY: joined once.
    unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
    found
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_as_glibc_says() {
        let thread = ProcessThread::measure();
        assert!(thread.control >= 1024 && thread.control < 8192, "{thread:?}");
        assert!(thread.locals > 0 && thread.locals <= thread.room, "{thread:?}");
        assert!(thread.identity.is_some() && thread.result.is_some(), "{thread:?}");
        // `errno` is a thread-local of the process.
        // SAFETY: reports where it is.
        let errno = unsafe { libc::__errno_location() } as usize;
        let offset = thread.offset_of(errno).unwrap();
        assert!(offset < 0 && offset >= -(thread.locals as isize));
        let local = 0;
        assert_eq!(thread.offset_of(&local as *const i32 as usize), None);
    }

    #[test]
    fn all_threads_have_the_same_block() {
        let here = ProcessThread::measure();
        let there = std::thread::spawn(ProcessThread::measure).join().unwrap();
        assert_eq!(format!("{here:?}"), format!("{there:?}"));
    }

    #[test]
    fn a_copied_control_block_is_its_own() {
        let thread = ProcessThread::measure();
        let mut key = 0;
        // SAFETY: a key for this test, which any address can be the value of.
        unsafe {
            assert_eq!(libc::pthread_key_create(&mut key, None), 0);
            assert_eq!(libc::pthread_setspecific(key, (&raw const key).cast()), 0);
        }
        let mut memory = vec![0u64; (thread.locals + thread.control) / 8 + 2];
        let to = memory.as_mut_ptr() as usize + thread.locals.next_multiple_of(8);
        // SAFETY: memory that is as long as a block.
        unsafe { thread.copy_control(to, thread_pointer::get()) };
        // SAFETY: as above.
        let word = |offset: usize| unsafe { ((to + offset) as *const usize).read() };
        assert_eq!((word(0), word(16)), (to, to));
        let own = thread_pointer::get();
        let is_own = |word: usize| (own..own + thread.control).contains(&word);
        assert!((0..thread.control / 8).all(|index| !is_own(word(index * 8))));
        // Nor is thread-specific data there; the first block is known to be its own.
        let value = &raw const key as usize;
        let has_value = |word: &dyn Fn(usize) -> usize| {
            (0..thread.control / 8).any(|index| word(index * 8) == value)
        };
        // SAFETY: the thread's control block.
        assert!(has_value(&|offset| unsafe { ((own + offset) as *const usize).read() }));
        assert!(!has_value(&word));
        assert_eq!(word(thread.specific.start + SPECIFIC_BLOCK), to + thread.specific.start);
        // The canary is the process's.
        // SAFETY: the thread's control block.
        assert_eq!(word(0x28), unsafe { ((own + 0x28) as *const usize).read() });
    }
}
