//! Threads that ranks start. Their stacks and thread-local storage, which libc reuses for later threads, belong to the
//! process.
//!
//! A rank holds a thread in two ways, each with its own entry in the register, by the number that the thread gets here:
//! - while it runs, to the end of the destructors of its thread-local variables;
//! - until it is joined or detached: its identity, the length of the entry, means nothing in another process, or
//!   another thread there.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::heap_word::runtime_heap;
use crate::held::Kind;
pub use crate::owner::header_of_starter;
use crate::posix::image_thread::{self, CountedThread, InImage};
use crate::posix::interpose::real;
use crate::posix::signals::tables::ThreadSignals;
use crate::posix::signals::threads::{thread_begins, thread_ends, thread_is_known, thread_is_made};
use crate::{owner, register, sys};

thread_local! {
    /// The number of this thread, if a rank has started it; or 0.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// The start function of a thread, with the result type of C's or POSIX's threads.
pub(super) type Start<R> = unsafe extern "C-unwind" fn(*mut c_void) -> R;

/// The start data of a thread that a rank starts.
struct Begun<R> {
    start: Start<R>,
    argument: *mut c_void,
    number: usize,
    slot: u32,
    /// Its signals, if ranks have their own.
    signals: *mut ThreadSignals,
    counted: CountedThread,
}

/// The call starts a thread with its arguments, and then returns 0 and the thread's identity.
fn starts_thread<R>(
    start: Start<R>,
    argument: *mut c_void,
    is_detached: bool,
    call: impl FnOnce(Start<R>, *mut c_void) -> (c_int, libc::pthread_t),
) -> c_int {
    static NUMBERS: AtomicUsize = AtomicUsize::new(1);
    let Some(slot) = owner::owner() else {
        return runtime_heap(|| call(start, argument).0);
    };
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    register::add(Kind::Thread, number, 0, slot);
    if !is_detached {
        // Its identity is not known yet. The thread may end, or detach itself, before it is.
        register::add(Kind::Unjoined, number, 0, slot);
    }
    let of_thread = thread_is_made();
    let (status, thread) = runtime_heap(|| {
        let begun = Box::into_raw(Box::new(Begun {
            start,
            argument,
            number,
            slot,
            signals: of_thread,
            counted: CountedThread::new(),
        }));
        let (status, thread) = call(run_thread::<R>, begun.cast());
        if status != 0 {
            // SAFETY: no thread has begun that would have taken it.
            drop(unsafe { Box::from_raw(begun) });
        }
        (status, thread)
    });
    if status != 0 {
        register::take(Kind::Thread, number);
        register::take(Kind::Unjoined, number);
        // SAFETY: no thread has begun.
        unsafe { thread_ends(of_thread) };
    } else {
        thread_is_known(of_thread, thread as usize);
        register::set_len(Kind::Unjoined, number, thread as usize, slot);
    }
    status
}

/// # Safety
/// The first function of a thread that `starts_thread` has started, with its argument.
unsafe extern "C-unwind" fn run_thread<R>(begun: *mut c_void) -> R {
    // SAFETY: the box that `starts_thread` has made for this thread.
    let begun = *unsafe { Box::from_raw(begun.cast::<Begun<R>>()) };
    // It is counted until its destructors have run.
    let Begun { start, argument, number, slot, signals: of_thread, counted: _counted } = begun;
    NUMBER.set(number);
    owner::set_starter(slot);
    let _ends = Ends::of(number);
    // SAFETY: the rank of the slot has called `starts_thread`, which has made these signals for this thread.
    let _in_image = unsafe { InImage::enter(slot, of_thread) };
    thread_begins();
    // SAFETY: what the rank has given to `pthread_create`, or `thrd_create`, to be called so.
    unsafe { start(argument) }
}

/// Records the end of a thread, even if it ends by `pthread_exit` or is cancelled: both unwind, and run the destructors
/// of keys.
struct Ends(Option<usize>);

impl Ends {
    fn of(number: usize) -> Ends {
        extern "C" fn ended(number: *mut c_void) {
            image_thread::release();
            register::take(Kind::Thread, number as usize);
        }
        static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
        let key = KEY.get_or_init(|| {
            let mut key = 0;
            // SAFETY: `key` is writable; `ended` takes any word.
            let status = unsafe { libc::pthread_key_create(&mut key, Some(ended)) };
            (status == 0).then_some(key)
        });
        // Destructors of keys run after those of thread-local variables.
        let is_set = key.is_some_and(|key| {
            // SAFETY: a key that is never deleted; the value is what `ended` takes.
            unsafe { libc::pthread_setspecific(key, number as *const c_void) == 0 }
        });
        Ends((!is_set).then_some(number))
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            image_thread::release();
            register::take(Kind::Thread, number);
        }
    }
}

/// The calling thread belongs to the PE's tokio runtime, which joins it, not to the rank that happened to start it.
pub fn is_of_tokio() {
    owner::set_tokios();
    detaches_itself();
}

fn detaches_itself() {
    let number = NUMBER.get();
    if number != 0 {
        register::take_all(Kind::Unjoined, |of, _, _| of == number);
    }
}

/// The call joins or detaches a thread, and returns 0 if it has done so.
pub fn lets_go_of(thread: libc::pthread_t, call: impl FnOnce() -> c_int) -> c_int {
    if thread == sys::pthread_self() {
        detaches_itself();
    }
    // Before, because its identity may be the next thread's at once.
    let taken = register::take_all(Kind::Unjoined, |_, identity, _| identity == thread as usize);
    let status = call();
    if status != 0 {
        for entry in taken {
            register::add(Kind::Unjoined, entry.key, entry.len, entry.slot);
        }
    }
    status
}

/// POSIX `pthread_create`.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start<*mut c_void>,
    argument: *mut c_void,
) -> c_int {
    type Create = unsafe extern "C" fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        Start<*mut c_void>,
        *mut c_void,
    ) -> c_int;
    // SAFETY: attributes or null, by C's contract.
    let is_detached = unsafe { is_detached(attributes) };
    let create = real!(of_process c"pthread_create", Create);
    // SAFETY: S4; the identity is stored when the call has succeeded.
    starts_thread(start, argument, is_detached, |start, argument| unsafe {
        let status = create(thread, attributes, start, argument);
        (status, if status == 0 { *thread } else { 0 })
    })
}

/// Whether a thread with these attributes is detached.
///
/// # Safety
/// Attributes, or null.
unsafe fn is_detached(attributes: *const libc::pthread_attr_t) -> bool {
    unsafe extern "C" {
        fn pthread_attr_getdetachstate(of: *const libc::pthread_attr_t, state: *mut c_int)
        -> c_int;
    }
    let mut state = libc::PTHREAD_CREATE_JOINABLE;
    // SAFETY: attributes, says the caller, if not null; `state` is writable.
    !attributes.is_null()
        && unsafe { pthread_attr_getdetachstate(attributes, &mut state) } == 0
        && state == libc::PTHREAD_CREATE_DETACHED
}

/// C11 `thrd_create`.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn thrd_create(
    thread: *mut libc::pthread_t,
    start: Start<c_int>,
    argument: *mut c_void,
) -> c_int {
    type Create = unsafe extern "C" fn(*mut libc::pthread_t, Start<c_int>, *mut c_void) -> c_int;
    let create = real!(of_process c"thrd_create", Create);
    // SAFETY: S4; the identity is stored when the call has succeeded.
    starts_thread(start, argument, false, |start, argument| unsafe {
        let status = create(thread, start, argument);
        (status, if status == 0 { *thread } else { 0 })
    })
}
