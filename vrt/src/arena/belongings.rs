//! What ranks hold outside their slots, which cannot move with them: open descriptors, threads
//! that they started, memory that they mapped.
//!
//! The libc calls that make and end these are defined here in front of libc's. Made by a rank, a
//! thing is counted in the rank's slot; while a count is not zero the rank is pinned to its PE. What
//! the runtime itself opens, outside of any rank, is nobody's.
//!
//! A descriptor's entry names the slot of the rank that opened it, whoever closes it. What is left
//! open by a rank that has ended is the process's: its entry has no effect any more.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::arena::hooks::{heap_in_use, runtime_heap};
use crate::arena::interpose::Real;
use crate::arena::{Arena, SlotHeader, SlotId};

/// What a rank holds outside its slot. Lies in the slot's header; zero is nothing.
#[derive(Debug, Default)]
pub(crate) struct Belongings {
    descriptors: AtomicU32,
    threads: AtomicU32,
    mappings: AtomicU32,
}

impl Belongings {
    /// Why the rank cannot move, if so.
    pub(crate) fn pin(&self) -> Option<&'static str> {
        let some = |count: &AtomicU32| count.load(Ordering::Acquire) > 0;
        if some(&self.descriptors) {
            Some("it has a file, socket or other descriptor open")
        } else if some(&self.threads) {
            Some("a thread that it started is running")
        } else if some(&self.mappings) {
            Some("it has mapped memory of its own (mmap)")
        } else {
            None
        }
    }
}

/// Descriptors above this are not looked after.
const DESCRIPTORS: usize = 1 << 16;
/// The slot, plus 1, of the rank that opened each descriptor; 0: nobody's. Made with the first, and
/// not a part of the program's data, which is searched when ranks leave a node.
static OPENED_BY: OnceLock<Box<[AtomicU32]>> = OnceLock::new();

/// Mappings of ranks: address and slot.
static MAPPINGS: Mutex<Vec<(usize, u32)>> = Mutex::new(Vec::new());

fn belongings_of(slot: u32) -> Option<&'static Belongings> {
    let header = Arena::current()?.header(SlotId(slot));
    // SAFETY: headers of the arena stay mapped, and are valid even when zeroed.
    Some(unsafe { &(*header).belongings })
}

fn less(count: &AtomicU32) {
    let one_less = |n: u32| n.checked_sub(1);
    let _ = count.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less);
}

/// The slot of the rank that runs here.
fn running() -> Option<&'static SlotHeader> {
    let slot = heap_in_use();
    // SAFETY: the heap in use is the running rank's slot, whose header stays mapped.
    (!slot.is_null()).then(|| unsafe { &*slot })
}

fn openers() -> &'static [AtomicU32] {
    runtime_heap(|| OPENED_BY.get_or_init(|| (0..DESCRIPTORS).map(|_| AtomicU32::new(0)).collect()))
}

/// A call has returned a descriptor.
fn opened(descriptor: c_int) -> c_int {
    if descriptor >= 0
        && let Some(slot) = running()
        && let Some(entry) = openers().get(descriptor as usize)
    {
        entry.store(slot.id().0 + 1, Ordering::Relaxed);
        slot.belongings.descriptors.fetch_add(1, Ordering::AcqRel);
    }
    descriptor
}

/// A descriptor is about to be closed.
fn closing(descriptor: c_int) {
    let Some(opened_by) = OPENED_BY.get() else { return };
    let Some(entry) = usize::try_from(descriptor).ok().and_then(|fd| opened_by.get(fd)) else {
        return;
    };
    if entry.load(Ordering::Relaxed) == 0 {
        return;
    }
    if let Some(slot) = entry.swap(0, Ordering::Relaxed).checked_sub(1)
        && let Some(belongings) = belongings_of(slot)
    {
        less(&belongings.descriptors);
    }
}

/// Calls libc's own function of a name and type.
macro_rules! real {
    ($name:literal, fn($($ty:ty),*) -> $ret:ty, $($arg:expr),*) => {{
        static REAL: Real = Real::new($name);
        type Function = unsafe extern "C" fn($($ty),*) -> $ret;
        // SAFETY: libc's function of this name has this type; the caller keeps its contract.
        unsafe { std::mem::transmute::<*mut c_void, Function>(REAL.get())($($arg),*) }
    }};
}

/// Defines calls that return a descriptor.
macro_rules! that_open {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) = $symbol:literal;)*) => {$(
        #[doc = concat!("C `", stringify!($name), "`; a rank that calls it holds what it opens.")]
        ///
        /// # Safety
        /// As in C.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
            opened(real!($symbol, fn($($ty),*) -> c_int, $($arg),*))
        }
    )*};
}

// The variable arguments of `open` and its kind travel like the fixed ones that are written here.
that_open! {
    fn open(path: *const c_char, flags: c_int, mode: libc::mode_t) = c"open";
    fn open64(path: *const c_char, flags: c_int, mode: libc::mode_t) = c"open64";
    fn openat(at: c_int, path: *const c_char, flags: c_int, mode: libc::mode_t) = c"openat";
    fn openat64(at: c_int, path: *const c_char, flags: c_int, mode: libc::mode_t) = c"openat64";
    fn creat(path: *const c_char, mode: libc::mode_t) = c"creat";
    fn socket(domain: c_int, kind: c_int, protocol: c_int) = c"socket";
    fn accept(fd: c_int, name: *mut libc::sockaddr, len: *mut libc::socklen_t) = c"accept";
    fn accept4(fd: c_int, name: *mut libc::sockaddr, len: *mut libc::socklen_t, flags: c_int)
        = c"accept4";
    fn dup(fd: c_int) = c"dup";
    fn eventfd(value: libc::c_uint, flags: c_int) = c"eventfd";
    fn epoll_create1(flags: c_int) = c"epoll_create1";
    fn timerfd_create(clock: c_int, flags: c_int) = c"timerfd_create";
    fn memfd_create(name: *const c_char, flags: libc::c_uint) = c"memfd_create";
    fn inotify_init1(flags: c_int) = c"inotify_init1";
}

/// Defines calls that fill two descriptors in.
macro_rules! that_open_two {
    ($(fn $name:ident($($arg:ident: $ty:ty),*; $two:ident) = $symbol:literal;)*) => {$(
        #[doc = concat!("C `", stringify!($name), "`; a rank that calls it holds what it opens.")]
        ///
        /// # Safety
        /// As in C.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
            let status = real!($symbol, fn($($ty),*) -> c_int, $($arg),*);
            if status == 0 {
                // SAFETY: the call succeeded, so both have been written.
                let both = unsafe { *$two.cast::<[c_int; 2]>() };
                both.into_iter().for_each(|fd| _ = opened(fd));
            }
            status
        }
    )*};
}

that_open_two! {
    fn pipe(ends: *mut c_int; ends) = c"pipe";
    fn pipe2(ends: *mut c_int, flags: c_int; ends) = c"pipe2";
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, ends: *mut c_int; ends)
        = c"socketpair";
}

/// C `fcntl`; a rank that duplicates a descriptor holds the new one.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    let result = real!(c"fcntl", fn(c_int, c_int, usize) -> c_int, fd, command, argument);
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => opened(result),
        _ => result,
    }
}

/// C `close`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    closing(fd);
    real!(c"close", fn(c_int) -> c_int, fd)
}

/// C `mmap`; a rank that calls it holds the mapping.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    type Off = libc::off_t;
    let mapped = real!(
        c"mmap",
        fn(*mut c_void, usize, c_int, c_int, c_int, Off) -> *mut c_void,
        at,
        len,
        protection,
        flags,
        fd,
        offset
    );
    if mapped != libc::MAP_FAILED
        && let Some(slot) = running()
    {
        slot.belongings.mappings.fetch_add(1, Ordering::AcqRel);
        runtime_heap(|| lock_mappings().push((mapped as usize, slot.id().0)));
    }
    mapped
}

/// C `munmap`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(at: *mut c_void, len: usize) -> c_int {
    let held = runtime_heap(|| {
        let mut mappings = lock_mappings();
        let found = mappings.iter().position(|(address, _)| *address == at as usize)?;
        Some(mappings.swap_remove(found).1)
    });
    if let Some(belongings) = held.and_then(belongings_of) {
        less(&belongings.mappings);
    }
    real!(c"munmap", fn(*mut c_void, usize) -> c_int, at, len)
}

fn lock_mappings() -> std::sync::MutexGuard<'static, Vec<(usize, u32)>> {
    MAPPINGS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

type Start = extern "C" fn(*mut c_void) -> *mut c_void;

/// What a thread that a rank starts begins with.
struct Begun {
    start: Start,
    argument: *mut c_void,
    slot: u32,
}

/// POSIX `pthread_create`; a rank that starts a thread holds it until it ends. Its stack and
/// thread-local storage, which libc keeps for the next thread, are the process's.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    type Create = (*mut libc::pthread_t, *const libc::pthread_attr_t);
    let create = |start: Start, argument: *mut c_void| {
        let (thread, attributes): Create = (thread, attributes);
        real!(
            c"pthread_create",
            fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Start, *mut c_void) -> c_int,
            thread,
            attributes,
            start,
            argument
        )
    };
    let Some(slot) = running() else { return runtime_heap(|| create(start, argument)) };
    slot.belongings.threads.fetch_add(1, Ordering::AcqRel);
    runtime_heap(|| {
        let begun = Box::into_raw(Box::new(Begun { start, argument, slot: slot.id().0 }));
        let status = create(run_thread, begun.cast());
        if status != 0 {
            less(&slot.belongings.threads);
            // SAFETY: no thread has begun, so it is still ours.
            drop(unsafe { Box::from_raw(begun) });
        }
        status
    })
}

extern "C" fn run_thread(begun: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create` above gave this thread its own box.
    let Begun { start, argument, slot } = *unsafe { Box::from_raw(begun.cast::<Begun>()) };
    let result = start(argument);
    if let Some(belongings) = belongings_of(slot) {
        less(&belongings.threads);
    }
    result
}
