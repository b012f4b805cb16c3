//! System calls by number, as C's `syscall` makes them (`blocking::calls`). Those for which libc has a function have
//! the same meaning here.

use std::ffi::{c_int, c_long, c_uint, c_void};

use super::handles::{acquires_at, releases};
use super::{descriptors, mappings, processes};
use crate::held::Kind;
use crate::posix::interpose::real;
use crate::posix::signals;

/// The flag of `clone` if the child shares the caller's memory.
const SHARES_MEMORY: usize = libc::CLONE_VM as usize;

/// Makes a system call, with its meaning for what ranks hold.
///
/// # Safety
/// As for C's `syscall`.
#[inline]
pub unsafe fn by_number(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> c_long {
    type Function =
        unsafe extern "C" fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long;
    if let Some(status) = signals::by_number(number, [a, b, c]) {
        return status;
    }
    // SAFETY: S4: libc's `syscall` takes up to six words behind the number.
    let call = || unsafe { real!(c"syscall", Function)(number, a, b, c, d, e, f) };
    let call_for_int = || call() as c_int;
    let call_for_address = || call() as *mut c_void;
    let (fd, second) = (a as c_int, b as c_int);
    // SAFETY: S4: pointers are what the call of this number takes, and it has filled what they point to.
    unsafe {
        match number {
            // The most frequent, and no resource.
            libc::SYS_futex => call(),
            libc::SYS_openat
            | libc::SYS_openat2
            | libc::SYS_socket
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_dup
            | libc::SYS_eventfd2
            | libc::SYS_epoll_create1
            | libc::SYS_timerfd_create
            | libc::SYS_memfd_create
            | libc::SYS_memfd_secret
            | libc::SYS_inotify_init1
            | libc::SYS_fanotify_init
            | libc::SYS_pidfd_open
            | libc::SYS_pidfd_getfd
            | libc::SYS_io_uring_setup
            | libc::SYS_userfaultfd
            | libc::SYS_perf_event_open
            | libc::SYS_bpf
            | libc::SYS_fsopen
            | libc::SYS_fsmount
            | libc::SYS_fspick
            | libc::SYS_open_tree
            | libc::SYS_landlock_create_ruleset
            | libc::SYS_mq_open
            | libc::SYS_open_by_handle_at => descriptors::opens(call_for_int).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open
            | libc::SYS_creat
            | libc::SYS_eventfd
            | libc::SYS_epoll_create
            | libc::SYS_inotify_init => descriptors::opens(call_for_int).into(),
            libc::SYS_signalfd4 => descriptors::opens_if(fd == -1, call_for_int).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_signalfd => descriptors::opens_if(fd == -1, call_for_int).into(),
            libc::SYS_pipe2 => descriptors::opens_at(two(a), call_for_int).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_pipe => descriptors::opens_at(two(a), call_for_int).into(),
            libc::SYS_socketpair => descriptors::opens_at(two(d), call_for_int).into(),
            libc::SYS_fcntl => descriptors::controls(fd, second, c, call_for_int).into(),
            libc::SYS_dup3 => descriptors::duplicates_onto(fd, second, call_for_int).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_dup2 => descriptors::duplicates_onto(fd, second, call_for_int).into(),
            libc::SYS_close => descriptors::closes(fd, call),
            libc::SYS_close_range => {
                descriptors::closes_range(a as c_uint, b as c_uint, c as c_uint, call_for_int)
                    .into()
            }
            libc::SYS_recvmsg => descriptors::receives(b as *const _, || call() as isize) as c_long,
            libc::SYS_recvmmsg => descriptors::receives_many(b as *const _, call_for_int).into(),
            libc::SYS_mmap => mappings::maps(b, call_for_address) as c_long,
            libc::SYS_munmap => mappings::unmaps(a as *mut c_void, b, call_for_int).into(),
            libc::SYS_mremap => {
                mappings::remaps(a as *mut c_void, (b, c), d as c_int, call_for_address) as c_long
            }
            libc::SYS_mprotect => {
                mappings::protects(a as *mut c_void, b, c as c_int, call_for_int).into()
            }
            libc::SYS_pkey_mprotect => {
                let at = a as *mut c_void;
                mappings::protects_with_key(at, b, c as c_int, d as c_int, call_for_int).into()
            }
            libc::SYS_shmat => mappings::attaches(call_for_address) as c_long,
            libc::SYS_shmdt => mappings::detaches(a as *const c_void, call_for_int).into(),
            libc::SYS_io_setup => acquires_at(Kind::Io, b as *mut *mut c_void, call_for_int).into(),
            libc::SYS_io_destroy => releases(Kind::Io, a as *mut c_void, call),
            // What shares the memory would return here on the caller's own stack, or run unseen.
            libc::SYS_clone3 => processes::is_refused("clone3()", call),
            libc::SYS_clone if a & SHARES_MEMORY != 0 => processes::is_refused("clone()", call),
            libc::SYS_clone => processes::copies("clone()", call_for_int).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_fork => processes::copies("fork()", call_for_int).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_vfork => processes::is_refused("vfork()", call),
            _ => call(),
        }
    }
}

/// The places of the two descriptors that a call stores.
pub fn two(ends: usize) -> [*mut c_int; 2] {
    let ends = ends as *mut c_int;
    [ends, ends.wrapping_add(1)]
}
