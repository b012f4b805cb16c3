//! Inspects a running job: `--monitor ADDRESS`, `vrtrun top`.
//!
//! A process beside the supervisor and the PEs, the *monitor*, asks PEs what they do ([`Looker`]) when a client asks
//! it, and computes rates from two answers. Without clients there is no monitor, except with `--monitor`; then it
//! sleeps.
//!
//! ```text
//! vrtrun top --- socket @vrt-job-PID ---.        (who connects wakes the supervisor by SIGIO,
//!                                        monitor   which then forks the monitor)
//! browser ------ 127.0.0.1:PORT/TOKEN/ -'   |
//!                                            `--- control memory --- PEs
//! ```
//!
//! Other users get nothing: the socket asks the system who has connected, and the web page's address contains a token
//! that only the job's messages show. The page is served only on this machine's own addresses.
//!
//! | file | subject |
//! |---|---|
//! | `snapshot` | what is observed, and how it is computed |
//! | `serve` | the monitor's process: its sockets and its answers |
//! | `http` | how answers are encoded |
//! | `client` | the other end of the socket; the list of jobs |
//! | `started` | the monitor of PEs that a launcher has started |
//! | `page.html` | the web page |

mod client;
mod http;
mod serve;
mod snapshot;
#[cfg(feature = "mpi")]
mod started;

pub use client::{Connection, LookError, RunningJob, running_jobs};
#[cfg(feature = "mpi")]
pub(crate) use started::{SeenNode, WaitingMonitor};

pub use snapshot::{MoveSeen, PeSeen, RankSeen, Snapshot};

use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixListener;

use crate::LaunchError;
use crate::config::Config;
use vrt_core::pe::Looker;
use vrt_slot::children;
use vrt_slot::report::say;

/// The prefix of the names of jobs' sockets; the supervisor's process number follows.
const SOCKET: &str = "vrt-job-";

/// The web page of a job, before it is served.
struct Web {
    listener: TcpListener,
    token: String,
}

impl Web {
    /// Prints its address.
    fn announce(listener: TcpListener) -> std::io::Result<Web> {
        let token = serve::token()?;
        say(format_args!("the monitor is at http://{}/{token}/", listener.local_addr()?));
        Ok(Web { listener, token })
    }
}

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

/// The socket of this process's job. It has no file, and vanishes with the processes that have it open.
fn socket() -> std::io::Result<UnixListener> {
    socket_of(std::process::id())
}

/// The socket of the job that another process supervises.
fn socket_of(process: u32) -> std::io::Result<UnixListener> {
    let name = format!("{SOCKET}{process}");
    UnixListener::bind_addr(&std::os::unix::net::SocketAddr::from_abstract_name(name)?)
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
