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

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

use crate::{children, sys};

/// An anonymous file of zeros, with 2 MiB pages for ranges that request them if that is possible
/// and wanted.
pub(crate) fn open(huge: bool) -> io::Result<(OwnedFd, bool)> {
    if huge && let Some(file) = on_huge_tmpfs() {
        return Ok((file, true));
    }
    // SAFETY: the name ends with a NUL; what is not -1 is a new descriptor.
    unsafe {
        match libc::memfd_create(c"vrt-arena".as_ptr(), libc::MFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok((OwnedFd::from_raw_fd(fd), false)),
        }
    }
}

/// Asks a child for a file on its own tmpfs.
fn on_huge_tmpfs() -> Option<OwnedFd> {
    let (ours, theirs) = UnixDatagram::pair().ok()?;
    // In the new namespace the child is who it was; nobody may make files otherwise.
    let maps = [format!("0 {} 1", sys::geteuid()), format!("0 {} 1", sys::getegid())];
    // Not by `fork`: that calls what libraries have left to be called then, and the end of such a
    // child is told to those who wait for any child.
    let none: libc::c_long = 0;
    // SAFETY: without flags the child has a copy of this process's memory, as after a fork. It makes system calls only,
    // and ends: it does not matter what locks other threads held.
    let child =
        unsafe { libc::syscall(libc::SYS_clone, none, none, none, none, none) as libc::pid_t };
    if child == 0 {
        let done = mount_and_send(theirs.as_raw_fd(), &maps).is_some();
        sys::_exit(i32::from(!done));
    }
    drop(theirs);
    let ended = (child > 0).then(|| children::wait_for(child, libc::__WALL)).flatten();
    let (_, descriptors) =
        (ended == Some(0)).then(|| sys::take(ours.as_raw_fd(), &mut [0]).ok())??;
    descriptors.into_iter().next()
}

/// In the child, which ends afterwards: creates the file and sends it. It allocates nothing.
fn mount_and_send(to: i32, maps: &[String; 2]) -> Option<()> {
    // SAFETY: all pointers are to C strings, or null where `mount` allows it.
    let file = unsafe {
        if libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) != 0 {
            return None;
        }
        write("/proc/self/setgroups", "deny")?;
        write("/proc/self/uid_map", &maps[0])?;
        write("/proc/self/gid_map", &maps[1])?;
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
        libc::open(place, libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC, 0o600)
    };
    (file >= 0 && sys::pass(to, &[0], &[file]).is_ok()).then_some(())
}

/// Writes a line to a kernel file.
fn write(path: &str, text: &str) -> Option<()> {
    let written = File::options().write(true).open(path).ok()?.write(text.as_bytes());
    (written.ok()? == text.len()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
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
