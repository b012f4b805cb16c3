//! `pthread_exit` in a rank's own thread: the rank continues as long as its other threads run, and then exits with
//! status 0.
//!
//! Libc's function would leave by a jump to the beginning of the thread, which for libc is the PE's. So the stack is
//! unwound here as libc does it: destructors of objects run, and so do the functions of `pthread_cleanup_push`, which
//! in C are entered by a jump to a buffer in the frame that has pushed them. Such buffers are kept in a list of the
//! rank.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

use vrt_core::blocking;
use vrt_slot::interpose::Real;
use vrt_slot::{external, hooks, image, image_thread, locals};

use crate::life;

/// The key under which a rank keeps its pushed buffers.
const PUSHED: u32 = 6;

/// Buffers of `pthread_cleanup_push`, the last one at the end.
type Pushed = RefCell<Vec<usize>>;

fn pushed() -> Rc<Pushed> {
    locals::keep(PUSHED, Pushed::default)
}

/// Whether the caller is a rank's own thread.
fn is_rank() -> bool {
    hooks::current_rank().is_some()
}

/// An unwinder's representation of an exception.
#[repr(C, align(16))]
struct Exception {
    class: u64,
    cleanup: usize,
    private: [usize; 6],
}

const END_OF_STACK: c_int = 16;

/// The function that the unwinder calls at each frame.
type Stop = unsafe extern "C-unwind" fn(
    c_int,
    c_int,
    u64,
    *mut Exception,
    *mut c_void,
    *mut c_void,
) -> c_int;

unsafe extern "C-unwind" {
    fn _Unwind_ForcedUnwind(exception: *mut Exception, stop: Stop, argument: *mut c_void) -> c_int;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

/// Unwinds the stack with the unwinder that destroys the program's objects: its own if it has one.
///
/// # Safety
/// The exception lives as long as the rank.
unsafe fn unwind(exception: *mut Exception) {
    type Unwind = unsafe extern "C-unwind" fn(*mut Exception, Stop, *mut c_void) -> c_int;
    let own = image::plan().and_then(|plan| plan.symbol_in("libgcc_s.so", "_Unwind_ForcedUnwind"));
    // SAFETY: the function of that name, the image's or the process's; the exception lives as long as the rank.
    unsafe {
        let function = match (own, image::base_of_running()) {
            (Some(offset), Some(base)) => {
                std::mem::transmute::<*const (), Unwind>(base.wrapping_add(offset) as *const ())
            }
            _ => _Unwind_ForcedUnwind,
        };
        function(exception, stop, std::ptr::null_mut());
    }
}

/// The stack is unwound to a frame: enters the pushed buffers of the frames that are left.
unsafe extern "C-unwind" fn stop(
    _version: c_int,
    actions: c_int,
    _class: u64,
    _exception: *mut Exception,
    context: *mut c_void,
    _argument: *mut c_void,
) -> c_int {
    const NO_REASON: c_int = 0;
    // SAFETY: the unwinder gives its context.
    let frame = unsafe { _Unwind_GetCFA(context) };
    if actions & END_OF_STACK != 0 {
        go_on_or_end();
    }
    let last = pushed().borrow().last().copied();
    if last.is_some_and(|buffer| buffer < frame) {
        go_on_or_end();
    }
    NO_REASON
}

/// Enters the last pushed buffer, or ends the thread.
fn go_on_or_end() -> ! {
    static REAL: Real = Real::new(c"longjmp");
    type Jump = unsafe extern "C-unwind" fn(usize, c_int) -> !;
    let last = pushed().borrow_mut().pop();
    match last {
        // SAFETY: the buffer's frame is there still, as its function has not left.
        Some(buffer) => unsafe { std::mem::transmute::<*mut c_void, Jump>(REAL.get())(buffer, 1) },
        None => end(),
    }
}

/// The rank's own thread has ended: the rank ends with its last thread.
fn end() -> ! {
    // SAFETY: the rank's own thread has ended: none of its program's functions goes on.
    unsafe { image_thread::end_specific_of_rank() };
    while external::has_running_threads() {
        blocking::pause_briefly();
    }
    life::exit_with_success()
}

unsafe extern "C-unwind" fn pthread_exit(value: *mut c_void) -> ! {
    if !is_rank() {
        static REAL: Real = Real::new(c"pthread_exit");
        type Function = unsafe extern "C-unwind" fn(*mut c_void) -> !;
        // SAFETY: libc's function of this name has this type.
        unsafe { std::mem::transmute::<*mut c_void, Function>(REAL.get())(value) }
    }
    let exception = Exception { class: 0, cleanup: 0, private: [0; 6] };
    let exception = Box::into_raw(Box::new(exception));
    // SAFETY: the exception lives as long as the rank.
    unsafe { unwind(exception) };
    // The stack has an end that is not marked as such.
    go_on_or_end()
}

unsafe extern "C-unwind" fn thrd_exit(status: c_int) -> ! {
    // SAFETY: as the caller promises; the status is a thread's value.
    unsafe { pthread_exit(status as isize as *mut c_void) }
}

unsafe extern "C" fn register_cancel(buffer: usize) {
    if is_rank() {
        pushed().borrow_mut().push(buffer);
        return;
    }
    static REAL: Real = Real::new(c"__pthread_register_cancel");
    type Function = unsafe extern "C" fn(usize);
    // SAFETY: libc's function of this name has this type; the caller keeps its contract.
    unsafe { std::mem::transmute::<*mut c_void, Function>(REAL.get())(buffer) }
}

unsafe extern "C" fn unregister_cancel(buffer: usize) {
    if is_rank() {
        // Those of frames that a jump has left go with it.
        let pushed = pushed();
        let at = pushed.borrow().iter().rposition(|of| *of == buffer);
        if let Some(at) = at {
            pushed.borrow_mut().truncate(at);
        }
        return;
    }
    static REAL: Real = Real::new(c"__pthread_unregister_cancel");
    type Function = unsafe extern "C" fn(usize);
    // SAFETY: libc's function of this name has this type; the caller keeps its contract.
    unsafe { std::mem::transmute::<*mut c_void, Function>(REAL.get())(buffer) }
}

/// A pushed function has run: unwinding continues.
unsafe extern "C-unwind" fn unwind_next(buffer: usize) -> ! {
    if is_rank() {
        // SAFETY: a plain function.
        unsafe { pthread_exit(std::ptr::null_mut()) }
    }
    static REAL: Real = Real::new(c"__pthread_unwind_next");
    type Function = unsafe extern "C-unwind" fn(usize) -> !;
    // SAFETY: libc's function of this name has this type; the caller keeps its contract.
    unsafe { std::mem::transmute::<*mut c_void, Function>(REAL.get())(buffer) }
}

/// The replacements for libc's functions.
pub(crate) const PROVIDED: &[(&str, *const ())] = &[
    ("pthread_exit", pthread_exit as *const ()),
    ("thrd_exit", thrd_exit as *const ()),
    ("__pthread_register_cancel", register_cancel as *const ()),
    ("__pthread_unregister_cancel", unregister_cancel as *const ()),
    ("__pthread_unwind_next", unwind_next as *const ()),
];
