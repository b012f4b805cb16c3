//! The monitor of PEs that a launcher has started, which have no supervisor.
//!
//! ```text
//! each process, before it is an MPI process     forks one that waits, while there is one thread
//! the first PE of its node                      tells it where control memory is, and to live
//! the others                                    tell theirs nothing, so that it ends
//! ```
//!
//! So `vrtrun top` sees the PEs of one node, under the process of the first of them; the page of `--monitor` shows PE
//! 0's node. The forked process takes no part in MPI, and is no child of any process: a rank that waits for any child
//! of its process must not get this one. It ends when the socket to it is closed, which happens at the latest when the
//! process at the other end does; a byte from there requests the table of what each rank waits for.
//!
//! That byte is sent on SIGUSR1. Launchers pass the signal on to all their processes, so processes without a monitor
//! handle it, too, and do nothing.

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, Ordering};

use vrt_core::net::shared::Shared;
use vrt_core::pe::Looker;

use super::serve;
use super::socket::socket_of;
use super::web::Web;
use crate::config::Config;
use crate::error::LaunchError;
use vrt_slot::children;

/// The socket to this process's monitor; -1: none.
static MONITOR: AtomicI32 = AtomicI32::new(-1);

/// A process that may become the monitor.
pub(crate) struct WaitingMonitor {
    to: UnixStream,
}

/// What the monitor must know about a node.
pub(crate) struct SeenNode<'a> {
    /// PEs, ranks, PEs of a node.
    pub sizes: (usize, usize, usize),
    /// Its number.
    pub number: usize,
    /// Its control memory.
    pub control: &'a OwnedFd,
    /// The descriptors, in this process, that wake each PE; any number for PEs of other nodes.
    pub events: &'a [i32],
    /// Whether PE 0 is on it.
    pub is_first: bool,
}

impl WaitingMonitor {
    /// Forks it. `None`: impossible, because a second thread already exists, or the system has no more processes.
    pub(crate) fn fork(config: &Config) -> Option<WaitingMonitor> {
        take_signal();
        let threads = std::fs::read_dir("/proc/self/task").ok()?.count();
        let (to, from) = UnixStream::pair().ok()?;
        if threads != 1 {
            return None;
        }
        let parent = std::process::id();
        // SAFETY: this process has one thread, so a child may go on in Rust code. The first one ends at once.
        unsafe {
            match libc::fork() {
                -1 => return None,
                0 => {
                    drop(to);
                    match libc::fork() {
                        0 => wait(parent, from, config),
                        _ => libc::_exit(0),
                    }
                }
                first => children::wait_for(first, 0),
            };
        }
        Some(WaitingMonitor { to })
    }

    /// Makes it the monitor of a node, which is running when this returns.
    ///
    /// # Errors
    /// The monitor cannot listen at the address of `--monitor`.
    pub(crate) fn become_monitor(
        self,
        node: &SeenNode<'_>,
        config: &Config,
    ) -> Result<(), LaunchError> {
        let (pes, ranks, node_size) = node.sizes;
        let mut words = vec![pes as i64, ranks as i64, node_size as i64, node.number as i64];
        words.push(i64::from(node.is_first));
        words.push(i64::from(node.control.as_raw_fd()));
        words.extend(node.events.iter().map(|event| i64::from(*event)));
        let mut line: String = words.iter().map(|word| format!("{word} ")).collect();
        line.push('\n');
        let mut said = String::new();
        // Who does not answer has ended: then nobody can look.
        let answered = (&self.to).write_all(line.as_bytes()).is_ok()
            && BufReader::new(&self.to).read_line(&mut said).is_ok();
        // It lives as long as this side is open.
        MONITOR.store(self.to.into_raw_fd(), Ordering::Relaxed);
        let refused = said.trim_end().strip_prefix("refused ").filter(|_| answered);
        match (refused, config.monitor()?) {
            (Some(number), Some(address)) => {
                let source = std::io::Error::from_raw_os_error(number.parse().unwrap_or_default());
                Err(LaunchError::Monitor { address, source })
            }
            _ => Ok(()),
        }
    }
}

/// The forked process: waits for instructions.
fn wait(parent: u32, from: UnixStream, config: &Config) -> ! {
    let mut line = String::new();
    let told = BufReader::new(&from).read_line(&mut line).is_ok();
    let words: Vec<i64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    if told
        && let [pes, ranks, node_size, number, is_first, control, events @ ..] = &words[..]
        && let Some(looker) = looker(
            parent,
            (*pes as usize, *ranks as usize, *node_size as usize),
            *number,
            *control,
            events,
        )
    {
        let address = config.monitor().ok().flatten().filter(|_| *is_first != 0);
        match address.map(listen).transpose() {
            Ok(web) => {
                let socket = socket_of(parent).ok();
                let _ = (&from).write_all(b"lives\n");
                serve::live(parent, &looker, socket, web, Some(from))
            }
            Err(error) => {
                let number = error.raw_os_error().unwrap_or_default();
                let _ = writeln!(&from, "refused {number}");
            }
        }
    }
    // SAFETY: it ends without destructors, which are the parent's.
    unsafe { libc::_exit(0) }
}

/// Makes SIGUSR1 ask the monitor. The signal is not ignored even without a monitor, since programs that ranks start
/// would inherit that.
fn take_signal() {
    // SAFETY: the handler makes one call that handlers may make, on the crash handler's stack where there is one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
}

extern "C" fn on_signal(_: c_int) {
    // SAFETY: errno of this thread, kept; one byte that is there. A full socket has been asked already.
    unsafe {
        let errno = *libc::__errno_location();
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        libc::send(MONITOR.load(Ordering::Relaxed), [1_u8].as_ptr().cast(), 1, flags);
        *libc::__errno_location() = errno;
    }
}

fn listen(address: SocketAddr) -> std::io::Result<Web> {
    Web::announce(TcpListener::bind(address)?)
}

/// Opens what the parent has open.
fn looker(
    parent: u32,
    sizes: (usize, usize, usize),
    number: i64,
    control: i64,
    events: &[i64],
) -> Option<Looker> {
    let open = |descriptor: i64, options: &OpenOptions| -> Option<File> {
        options.open(format!("/proc/{parent}/fd/{descriptor}")).ok()
    };
    let control = open(control, OpenOptions::new().read(true).write(true))?;
    let shared = Shared::map_node(control.as_fd(), sizes, number as usize, false).ok()?;
    let wake = |event: &i64| match event {
        0.. => open(*event, OpenOptions::new().write(true)).map_or(-1, IntoRawFd::into_raw_fd),
        _ => -1,
    };
    Some(Looker::new(shared, events.iter().map(wake).collect()))
}
