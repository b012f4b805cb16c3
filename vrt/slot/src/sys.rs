//! Calls of the system as safe functions: those that take numbers only, or places that they are given whole.

use std::ffi::{c_int, c_long, c_uint};
use std::io;
use std::ops::Range;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

// SAFETY: libc's functions of these names have these types. They take numbers, and change no memory of the caller's.
unsafe extern "C" {
    /// The kernel's number of the calling thread.
    pub safe fn gettid() -> libc::pid_t;
    /// libc's identity of the calling thread.
    pub safe fn pthread_self() -> libc::pthread_t;
    /// Lets other threads run.
    pub safe fn sched_yield() -> c_int;
    /// The process group of the calling process, and of another one.
    pub safe fn getpgrp() -> libc::pid_t;
    /// The process group of a process.
    pub safe fn getpgid(process: libc::pid_t) -> libc::pid_t;
    /// Sends a signal.
    pub safe fn kill(process: libc::pid_t, signal: c_int) -> c_int;
    /// Ends the process at once.
    pub safe fn _exit(status: c_int) -> !;
    pub(crate) safe fn getuid() -> libc::uid_t;
    pub(crate) safe fn geteuid() -> libc::uid_t;
    pub(crate) safe fn getegid() -> libc::gid_t;
    pub(crate) safe fn umask(mask: libc::mode_t) -> libc::mode_t;
    pub(crate) safe fn fchdir(folder: c_int) -> c_int;
    pub(crate) safe fn sysconf(name: c_int) -> c_long;
    pub(crate) safe fn tzset();
}

/// The C structures for which zeros are a value.
///
/// # Safety
/// They are.
pub unsafe trait Plain: Copy {
    /// That value.
    fn zeroed() -> Self {
        // SAFETY: the promise of this trait.
        unsafe { std::mem::zeroed() }
    }
}

macro_rules! plain {
    ($($type:ident),*) => {$(
        // SAFETY: numbers, arrays of them, and pointers or functions that may be null.
        unsafe impl Plain for libc::$type {}
    )*};
}

plain!(itimerspec, msghdr, rlimit, sigaction, sigevent, siginfo_t, sigset_t, stat, statfs, sysinfo);
plain!(pthread_attr_t, timespec, ucontext_t);

/// What the system knows of an open descriptor's file.
pub fn status_of(descriptor: c_int) -> Option<libc::stat> {
    let mut status = libc::stat::zeroed();
    // SAFETY: `status` is writable.
    (unsafe { libc::fstat(descriptor, &raw mut status) } == 0).then_some(status)
}

/// What the system knows of an open descriptor's file system.
pub(crate) fn file_system_of(descriptor: c_int) -> Option<libc::statfs> {
    let mut status = libc::statfs::zeroed();
    // SAFETY: `status` is writable.
    (unsafe { libc::fstatfs(descriptor, &raw mut status) } == 0).then_some(status)
}

/// The flags of a descriptor, or -1 if it is not open.
pub(crate) fn flags_of(descriptor: c_int) -> c_int {
    // SAFETY: with this command `fcntl` takes two numbers.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) }
}

/// A limit of this process.
pub(crate) fn limit(resource: c_uint) -> Option<libc::rlimit> {
    let mut limit = libc::rlimit::zeroed();
    // SAFETY: `limit` is writable.
    (unsafe { libc::getrlimit(resource, &raw mut limit) } == 0).then_some(limit)
}

/// Asks about a child without waiting for it, in one of the ways of `waitid`; `si_pid()` is 0 if there is nothing.
pub(crate) fn look_at_child(child: libc::pid_t, how: c_int) -> io::Result<libc::siginfo_t> {
    let mut info = libc::siginfo_t::zeroed();
    let how = how | libc::WNOWAIT | libc::WNOHANG;
    // SAFETY: `info` is writable.
    match unsafe { libc::waitid(libc::P_PID, child as libc::id_t, &raw mut info, how) } {
        0 => Ok(info),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether the system could have swapped out memory of this process.
pub(crate) fn may_have_swapped() -> bool {
    let mut system = libc::sysinfo::zeroed();
    // SAFETY: `system` is writable.
    unsafe { libc::sysinfo(&raw mut system) != 0 || system.freeswap < system.totalswap }
}

/// For each page from `start` on, whether it is in memory (the lowest bit). False if a page does not exist.
pub(crate) fn resident_pages(start: usize, pages: &mut [u8]) -> bool {
    let len = pages.len() * PAGE;
    // SAFETY: `mincore` reads no page, whatever is there, and writes a byte for each to `pages`.
    unsafe { libc::mincore(start as *mut libc::c_void, len, pages.as_mut_ptr()) == 0 }
}

/// The stack of the calling thread, if libc knows it.
pub(crate) fn stack_of_thread() -> Option<Range<usize>> {
    let mut attributes = libc::pthread_attr_t::zeroed();
    let (mut start, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: `pthread_getattr_np` fills the attributes of this thread, which are read and given back only then.
    unsafe {
        if libc::pthread_getattr_np(pthread_self(), &raw mut attributes) != 0 {
            return None;
        }
        libc::pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
    }
    Some(start as usize..start as usize + size)
}

/// The end of the process's heap: the break.
pub(crate) fn heap_end() -> usize {
    // SAFETY: an increment of 0 changes nothing.
    unsafe { libc::sbrk(0) as usize }
}

/// The most descriptors that the kernel passes with a message.
pub(crate) const MOST_PASSED: usize = 253;

/// Room for a header and as many descriptors.
type Control = [usize; 16 + MOST_PASSED / 2];

/// A message of these bytes, with this control data.
fn message(data: &mut libc::iovec, control: &mut [usize]) -> libc::msghdr {
    let mut message = libc::msghdr::zeroed();
    (message.msg_iov, message.msg_iovlen) = (data, 1);
    if !control.is_empty() {
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(control) as _;
    }
    message
}

/// Sends words through a socket, with copies of descriptors. Allocates nothing.
pub(crate) fn pass(socket: RawFd, words: &[usize], descriptors: &[c_int]) -> io::Result<()> {
    let mut control: Control = [0; _];
    let (len, size) = (size_of_val(descriptors), size_of_val(words));
    assert!(descriptors.len() <= MOST_PASSED, "more descriptors than the kernel passes");
    let mut data = libc::iovec { iov_base: words.as_ptr().cast_mut().cast(), iov_len: size };
    // SAFETY: the parts of the message are here; a header with `len` bytes is inside `control`, which has room for
    // `MOST_PASSED` descriptors.
    let sent = unsafe {
        let room =
            if len == 0 { 0 } else { libc::CMSG_SPACE(len as u32) as usize / size_of::<usize>() };
        let message = message(&mut data, &mut control[..room]);
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if !header.is_null() {
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(len as u32) as _;
            let to = libc::CMSG_DATA(header).cast::<c_int>();
            std::ptr::copy_nonoverlapping(descriptors.as_ptr(), to, descriptors.len());
        }
        libc::sendmsg(socket, &raw const message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    match usize::try_from(sent) {
        Ok(sent) if sent == size => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes the next message out of a socket: the number of words, and the descriptors that have come with them.
pub(crate) fn take(socket: RawFd, words: &mut [usize]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut control: Control = [0; _];
    let mut data = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(words) };
    let mut descriptors = Vec::new();
    // SAFETY: the parts of the message are here; the kernel has written the header, and behind it as many descriptors
    // of this process as the header says, which nobody else knows.
    let received = unsafe {
        let mut message = message(&mut data, &mut control);
        let how = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        let received = libc::recvmsg(socket, &raw mut message, how);
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if received >= 0 && !header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS {
            let bytes = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
            let from = libc::CMSG_DATA(header).cast::<c_int>();
            let number = |i| OwnedFd::from_raw_fd(from.add(i).read());
            descriptors.extend((0..bytes / size_of::<c_int>()).map(number));
        }
        received
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    Ok((received / size_of::<usize>(), descriptors))
}
