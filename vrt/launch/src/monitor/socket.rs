//! The sockets on which jobs can be asked what they do.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixListener;

/// The prefix of the names of jobs' sockets; the supervisor's process number follows.
pub(super) const SOCKET: &str = "vrt-job-";

/// The socket of this process's job. It has no file, and vanishes with the processes that have it open.
pub(super) fn socket() -> std::io::Result<UnixListener> {
    socket_of(std::process::id())
}

/// The socket of the job that another process supervises.
pub(super) fn socket_of(process: u32) -> std::io::Result<UnixListener> {
    let name = format!("{SOCKET}{process}");
    UnixListener::bind_addr(&std::os::unix::net::SocketAddr::from_abstract_name(name)?)
}
