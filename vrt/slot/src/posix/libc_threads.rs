//! Functions of a rank's own libc that start a thread inside that libc: such a thread has a thread pointer of the
//! process, with which that libc cannot run. They are refused, as on systems without them.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::posix::errno::{fail, of_process};
use crate::posix::interpose::c_name;
use crate::{heap_word, report};

/// Reports it, once per process for each function.
fn refuse(name: &CStr, is_said: &AtomicBool) {
    if is_said.swap(true, Ordering::Relaxed) {
        return;
    }
    let (rank, name) = (heap_word::current_rank().unwrap_or_default(), name.to_string_lossy());
    report::say(format_args!(
        "rank {rank}: {name} is not supported (ENOSYS): libc does it in a thread of its own, which would not \
         belong to any rank"
    ));
}

/// The refused functions, with their return values.
macro_rules! refused {
    ($($name:ident => $result:expr;)*) => {
        $(
            unsafe extern "C" fn $name() -> c_int {
                static IS_SAID: AtomicBool = AtomicBool::new(false);
                refuse(c_name(concat!(stringify!($name), "\0")), &IS_SAID);
                fail(libc::ENOSYS);
                $result
            }
        )*

        const REFUSED: &[(&str, *const ())] = &[$((stringify!($name), $name as *const ())),*];
    };
}

refused! {
    aio_read => -1;
    aio_read64 => -1;
    aio_write => -1;
    aio_write64 => -1;
    aio_fsync => -1;
    aio_fsync64 => -1;
    lio_listio => -1;
    lio_listio64 => -1;
    getaddrinfo_a => libc::EAI_SYSTEM;
}

/// Refuses a timer that requests a thread.
pub(crate) fn refuse_timer() -> c_int {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    refuse(c"timer_create with SIGEV_THREAD", &IS_SAID);
    fail(libc::ENOSYS)
}

/// POSIX `mq_notify`, except for notifications that request a thread.
unsafe extern "C" fn mq_notify(queue: c_int, event: *const libc::sigevent) -> c_int {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    // SAFETY: S4: null, or a description.
    let described = unsafe { event.as_ref() };
    if described.is_some_and(|event| event.sigev_notify == libc::SIGEV_THREAD) {
        refuse(c"mq_notify with SIGEV_THREAD", &IS_SAID);
        return fail(libc::ENOSYS);
    }
    // SAFETY: S4: the system call takes the same.
    match unsafe { libc::syscall(libc::SYS_mq_notify, queue, event) } {
        -1 => fail(of_process().get()),
        _ => 0,
    }
}

/// The replacements for these functions of a rank's own libc.
pub fn of_libc_threads() -> impl Iterator<Item = (&'static str, *const ())> {
    REFUSED.iter().copied().chain([("mq_notify", mq_notify as *const ())])
}
