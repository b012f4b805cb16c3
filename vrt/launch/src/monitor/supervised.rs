//! The monitor of a job that has a supervisor, as the supervisor sees it.

use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;

use super::serve;
use super::socket::socket;
use super::web::Web;
use crate::config::Config;
use crate::error::LaunchError;
use vrt_core::pe::Looker;
use vrt_slot::children;
use vrt_slot::report::say;

/// The supervisor's side: the monitor, or the socket on which it waits for a client.
pub(crate) struct Monitor {
    looker: Looker,
    socket: Option<UnixListener>,
    /// The monitor's process.
    process: Option<libc::pid_t>,
}

impl Monitor {
    /// Starts the monitor of a job whose PEs do not exist yet, if `--monitor` requests one.
    pub(crate) fn begin(config: &Config, looker: Looker) -> Result<Monitor, LaunchError> {
        let mut monitor = Monitor { looker, socket: None, process: None };
        let Some(address) = config.monitor()? else { return Ok(monitor) };
        let listener = TcpListener::bind(address)
            .map_err(|source| LaunchError::Monitor { address, source })?;
        let web = Web::announce(listener)
            .map_err(|source| LaunchError::System { what: "draw a token", source })?;
        monitor.socket = socket().ok();
        monitor.fork(Some(web));
        Ok(monitor)
    }

    /// Waits for clients: on a connection the supervisor gets SIGIO, which it has blocked. If the socket cannot be
    /// opened, the job cannot be inspected.
    pub(crate) fn listen(&mut self) {
        if self.process.is_some() {
            return;
        }
        let Ok(socket) = socket() else { return };
        if set_async(&socket, true) {
            self.socket = Some(socket);
        }
    }

    /// A client may have connected.
    pub(crate) fn somebody_looks(&mut self) {
        if self.process.is_none() && self.socket.is_some() {
            self.fork(None);
        }
    }

    /// What PEs and ranks do.
    pub(crate) fn looker(&self) -> &Looker {
        &self.looker
    }

    /// Forks the monitor, which takes over the socket.
    fn fork(&mut self, web: Option<Web>) {
        let socket = self.socket.take();
        if let Some(socket) = &socket {
            set_async(socket, false);
        }
        let supervisor = std::process::id();
        // SAFETY: the supervisor has one thread, so the child may go on in Rust code.
        match unsafe { libc::fork() } {
            -1 => {
                say(format_args!("cannot start the monitor: {}", std::io::Error::last_os_error()))
            }
            0 => {
                end_with(supervisor);
                serve::live(supervisor, &self.looker, socket, web, None)
            }
            process => self.process = Some(process),
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if let Some(process) = self.process {
            children::end(process);
        }
    }
}

/// Makes this process, a child of the supervisor, end with it.
fn end_with(supervisor: u32) {
    // SAFETY: plain system calls.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != supervisor as libc::pid_t {
            libc::_exit(0);
        }
    }
}

/// Sets whether this process gets SIGIO on a connection.
fn set_async(socket: &UnixListener, yes: bool) -> bool {
    let flags = if yes { libc::O_ASYNC } else { 0 };
    // SAFETY: plain system calls on a descriptor that is open.
    unsafe {
        libc::fcntl(socket.as_raw_fd(), libc::F_SETOWN, libc::getpid()) == 0
            && libc::fcntl(socket.as_raw_fd(), libc::F_SETFL, flags) == 0
    }
}
