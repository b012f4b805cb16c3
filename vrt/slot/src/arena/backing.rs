//! The file behind the arena.
//!
//! A memfd has pages of 4 KiB wherever the system's setting for shared memory is `never`, as it
//! usually is. A tmpfs mounted with `huge=advise` provides pages of 2 MiB for ranges that request
//! them, whatever that setting; mounting one needs no privilege in a separate user and mount
//! namespace. So a child process creates such namespaces, mounts the tmpfs, opens an anonymous file
//! and passes it to its parent; the mount vanishes with the child, the file stays. If that is
//! forbidden, as in some containers, the arena is a memfd.
//!
//! With 2 MiB pages a rank that was handed over maps 64 MiB with 32 faults instead of 16,384.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::children;

/// An anonymous file of zeros, with 2 MiB pages for ranges that request them if that is possible
/// and wanted.
pub(crate) fn open(huge: bool) -> io::Result<(OwnedFd, bool)> {
    if huge && let Some(file) = on_huge_tmpfs() {
        return Ok((file, true));
    }
    // SAFETY: a plain system call; the descriptor is ours.
    let fd = unsafe { libc::memfd_create(c"vrt-arena".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened.
    Ok((unsafe { OwnedFd::from_raw_fd(fd) }, false))
}

/// Asks a child for a file on its own tmpfs.
fn on_huge_tmpfs() -> Option<OwnedFd> {
    let mut ends = [0; 2];
    // SAFETY: the call fills both in.
    unsafe {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        if libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) != 0 {
            return None;
        }
    }
    // SAFETY: just opened, both ours.
    let [ours, theirs] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    // In the new namespace the child is who it was; nobody may make files otherwise.
    // SAFETY: plain system calls.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let maps = [format!("0 {user} 1"), format!("0 {group} 1")];
    // Not by `fork`: that calls what libraries have left to be called then, and the end of such a
    // child is told to those who wait for any child.
    let none: libc::c_long = 0;
    // SAFETY: a child with a copy of this process's memory, as after a fork without a signal at its
    // end. It makes system calls only, and ends: it does not matter what locks other threads held.
    unsafe {
        let child = libc::syscall(libc::SYS_clone, none, none, none, none, none) as libc::pid_t;
        if child == 0 {
            let done = mount_and_send(theirs.as_raw_fd(), &maps).is_some();
            libc::_exit(i32::from(!done));
        }
        drop(theirs);
        let ended = (child > 0).then(|| children::wait_for(child, libc::__WALL)).flatten();
        (ended == Some(0)).then(|| receive(ours.as_raw_fd())).flatten()
    }
}

/// In the child: creates the file and sends it.
///
/// # Safety
/// The process ends afterwards.
unsafe fn mount_and_send(to: i32, maps: &[String; 2]) -> Option<()> {
    // SAFETY: plain system calls with valid strings; what is mounted is seen by this process only.
    unsafe {
        if libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) != 0 {
            return None;
        }
        write(c"/proc/self/setgroups", "deny")?;
        write(c"/proc/self/uid_map", &maps[0])?;
        write(c"/proc/self/gid_map", &maps[1])?;
        let (none, tmpfs, place) = (c"none".as_ptr(), c"tmpfs".as_ptr(), c"/tmp".as_ptr());
        let private = libc::MS_REC | libc::MS_PRIVATE;
        let null = std::ptr::null();
        if libc::mount(none, c"/".as_ptr(), null, private, null.cast()) != 0 {
            return None;
        }
        let options = c"huge=advise,size=0".as_ptr().cast();
        if libc::mount(none, place, tmpfs, 0, options) != 0 {
            return None;
        }
        let file = libc::open(place, libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC, 0o600);
        (file >= 0 && send(to, file)).then_some(())
    }
}

/// Writes a line to a kernel file.
fn write(path: &CStr, text: &str) -> Option<()> {
    // SAFETY: plain system calls with a valid path and readable text.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        let written = libc::write(file, text.as_ptr().cast(), text.len());
        libc::close(file);
        (written == text.len() as isize).then_some(())
    }
}

/// Room for one descriptor attached to a message.
const CONTROL: usize = 64;

/// Sends a descriptor through a socket.
fn send(to: i32, file: i32) -> bool {
    with_message(|message, control| {
        // SAFETY: the message has room for one header with one descriptor.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(4) as usize;
            let header = libc::CMSG_FIRSTHDR(message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
            libc::CMSG_DATA(header).cast::<i32>().write_unaligned(file);
            debug_assert!(!control.is_null());
            libc::sendmsg(to, message, 0) == 1
        }
    })
}

/// Receives a descriptor from a socket.
fn receive(from: i32) -> Option<OwnedFd> {
    with_message(|message, _| {
        // SAFETY: the message has room; what came is looked at only if it is a descriptor.
        unsafe {
            if libc::recvmsg(from, message, libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT) != 1 {
                return None;
            }
            let header = libc::CMSG_FIRSTHDR(message);
            if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
                return None;
            }
            let file = libc::CMSG_DATA(header).cast::<i32>().read_unaligned();
            Some(OwnedFd::from_raw_fd(file))
        }
    })
}

/// Calls `f` with a message of one byte that has room for a descriptor.
fn with_message<R>(f: impl FnOnce(&mut libc::msghdr, *mut u8) -> R) -> R {
    #[repr(align(16))]
    struct Control([u8; CONTROL]);
    let mut control = Control([0; CONTROL]);
    let mut byte = 0u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: zeros are a valid empty message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL;
    let control = control.0.as_mut_ptr();
    f(&mut message, control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    #[test]
    fn the_file_can_be_written_whatever_it_is() {
        for huge in [false, true] {
            let (file, _) = open(huge).unwrap();
            let file = File::from(file);
            file.set_len(4 << 20).unwrap();
            file.write_all_at(b"here", 3 << 20).unwrap();
            let mut back = [0; 4];
            file.read_exact_at(&mut back, 3 << 20).unwrap();
            assert_eq!(&back, b"here");
        }
    }
}
