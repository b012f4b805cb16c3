//! The monitor of PEs that a launcher has started, which have no supervisor.
//!
//! ```text
//! each process, before it is an MPI process     forks one that waits, while there is one thread
//! the first PE of its node                      tells it where control memory is, and to live
//! the others                                    tell theirs nothing, so that it ends
//! ```
//!
//! So `vrtrun top` sees the PEs of one node, under the process of the first of these; the page of `--monitor` is
//! that of PE 0's node. The forked process has no part in MPI, and is nobody's child: a rank that waits for whatever
//! child of its process ends shall not wait for this one. It ends when the socket to it is closed, as it is by the end
//! of who holds the other side; a byte from there has it print who waits for what.
//!
//! That byte is sent for SIGUSR1. Launchers pass the signal on to all their processes, so those that have no monitor
//! take it, too, and do nothing.

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, Ordering};

use vrt_core::net::shared::Shared;
use vrt_core::pe::Looker;

use super::{Web, serve, socket_of};
use crate::LaunchError;
use crate::config::Config;
use vrt_slot::children;

/// The socket to this process's monitor; -1: it has none.
static MONITOR: AtomicI32 = AtomicI32::new(-1);

/// A process that may become the monitor.
pub(crate) struct WaitingMonitor {
    to: UnixStream,
}

/// What it has to know of a node.
pub(crate) struct SeenNode<'a> {
    /// PEs, ranks, PEs of a node.
    pub sizes: (usize, usize, usize),
    /// Its number.
    pub number: usize,
    /// Its control memory.
    pub control: &'a OwnedFd,
    /// By what each PE is woken, as descriptors of this process; any number for those of other nodes.
    pub events: &'a [i32],
    /// Whether it has PE 0.
    pub is_first: bool,
}

impl WaitingMonitor {
    /// Forks it. `None`: it cannot be, because there is a second thread already, or the system has no more.
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

    /// Has it live as the monitor of a node; it is there when this returns.
    ///
    /// # Errors
    /// The address of `--monitor` cannot be listened to.
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

/// The process that was forked: waits until it is told something.
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

/// Has SIGUSR1 ask the monitor. Not ignored, even where there is none: what ranks start would ignore it, too.
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
