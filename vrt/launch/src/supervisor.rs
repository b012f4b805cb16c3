//! The parent of a node's PEs: it starts them and answers for them, and runs no rank.
//!
//! It keeps the pristine image of the program, as it never runs user code after the forks. It waits in `sigwaitinfo`
//! for its children and for the user's signals. When the supervisor dies, the PEs die with it (PR_SET_PDEATHSIG); the
//! arena has no name and is freed with the last of them.
//!
//! A user can inspect the job meanwhile: on SIGUSR1 the supervisor prints what each rank waits for (`waits`); SIGIO
//! means that a client wants to see more, which another process serves (`monitor`).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{Config, available_cores};
use crate::error::LaunchError;
use crate::memory_kills::MemoryKills;
use crate::monitor::Monitor;
use crate::parts::Parts;
use crate::pe_process::{self, PeInit};
use crate::trace::Trace;
use crate::{crash, local, local_slots, waits};
use vrt_core::net::shared::{Ended, Shared, first_ranks};
use vrt_core::pe::Looker;
use vrt_slot::external::carried::Prepared;
use vrt_slot::rank::Program;
use vrt_slot::report::{STATUS_RUNTIME, count, say, write_out};
use vrt_slot::{Arena, answers, children, exit_guard, search};

/// Runs a job; returns its exit status.
pub(super) fn run(config: &Config, program: Program) -> Result<u8, LaunchError> {
    config.check()?;
    config.tell_what_does_nothing();
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(LaunchError::Threads(threads));
    }
    let (pes, ranks) = (config.pes(), config.ranks());
    let cores = available_cores();
    if pes as usize > cores {
        say(format_args!("note: {} share {}", count(pes, "PE"), count(cores as u64, "core")));
    }
    install_thread_locals(config)?;
    // SAFETY: this process has one thread, as was checked above.
    unsafe { exit_guard::find() };
    answers::prepare();
    vrt_slot::want_huge_pages(config.wants_huge_pages());
    let arena = local_slots::arena_for_job((ranks + pes) as usize, &config.slot_sizes())?;
    let _release = Release;
    map_images(arena, config)?;
    let shared = Shared::map(pes as usize, ranks as usize, config.node_size() as usize)
        .map_err(|source| LaunchError::System { what: "map control memory", source })?;
    allow_descriptors(u64::from(pes));
    let events = (0..pes).map(|_| local::eventfd()).collect::<Result<Vec<_>, _>>()?;
    let (report, report_write) = pipe()?;
    let signals = Signals::block();
    let memory_kills = MemoryKills::watch();
    let numbers: Arc<[RawFd]> = events.iter().map(AsRawFd::as_raw_fd).collect();
    let looker = Looker::new(shared, numbers.to_vec());
    let monitor = Monitor::begin(config, looker)?;
    let mut job = Job::new(config, shared, report, memory_kills, monitor);
    if let Err(error) = job.fork_all(program, arena, &numbers, &report_write, &signals) {
        job.abandon();
        return Err(error);
    }
    drop(report_write);
    let status = job.wait_for_end(&signals);
    drop(job);
    // SAFETY: the PEs have ended, and this process has nothing in it.
    unsafe { shared.unmap() };
    Ok(status)
}

/// Gives ranks their own thread-locals if that was requested, before an arena is reserved. (Ranks that run images of a
/// program have them anyway.)
pub(crate) fn install_thread_locals(config: &Config) -> Result<(), LaunchError> {
    match config.has_private_thread_locals() && vrt_slot::image::plan().is_none() {
        true => Ok(vrt_slot::own_thread_locals::install()?),
        false => Ok(()),
    }
}

/// Maps the program whose images the ranks run, if they do.
pub(crate) fn map_images(arena: &Arena, config: &Config) -> Result<(), LaunchError> {
    let (ranks, pes) = (config.ranks() as usize, config.pes() as usize);
    // SAFETY: the arena is new, and no rank has begun.
    unsafe { vrt_slot::image::map(arena, ranks, pes) }
        .map_err(|source| LaunchError::System { what: "map the program for each rank", source })
}

/// Releases the arena of a job when its PEs have ended.
struct Release;

impl Drop for Release {
    fn drop(&mut self) {
        // SAFETY: the supervisor has nothing in the arena, and is the only thread.
        unsafe { Arena::release() };
    }
}

/// How long PEs may take to leave a job that has ended.
const GRACE: Duration = Duration::from_millis(500);

/// How long a PE that has crashed may take to write its core after the job has ended.
const CORE_LIMIT: Duration = Duration::from_secs(120);

/// A running job.
struct Job<'a> {
    config: &'a Config,
    shared: Shared,
    /// PEs still alive: process and number.
    pids: Vec<(libc::pid_t, u32)>,
    report: OwnedFd,
    memory_kills: Option<MemoryKills>,
    monitor: Monitor,
    /// The job's exit status, as soon as it is known that the job ends.
    status: Option<i32>,
    /// A table of what ranks wait for has been requested.
    asked: bool,
}

impl<'a> Job<'a> {
    /// A job whose PEs have not been forked yet.
    fn new(
        config: &'a Config,
        shared: Shared,
        report: OwnedFd,
        memory_kills: Option<MemoryKills>,
        monitor: Monitor,
    ) -> Job<'a> {
        let (pids, status, asked) = (Vec::new(), None, false);
        Job { config, shared, pids, report, memory_kills, monitor, status, asked }
    }

    /// A signal has arrived.
    fn hear(&mut self, signal: i32) {
        match signal {
            libc::SIGCHLD => self.reap(),
            libc::SIGUSR1 => self.asked = true,
            libc::SIGIO => self.monitor.somebody_looks(),
            signal => {
                self.status.get_or_insert(128 + signal);
                self.kill(None);
                let name = signal_name(signal);
                say(format_args!("interrupted by {name}; ending the job"));
            }
        }
    }

    fn wait_for_end(&mut self, signals: &Signals) -> u8 {
        self.monitor.listen();
        let mut deadline: Option<Instant> = None;
        loop {
            self.reap();
            if self.pids.is_empty() {
                break;
            }
            if std::mem::take(&mut self.asked) {
                waits::print(self.monitor.looker());
            }
            if self.status.is_some() && deadline.is_none() {
                // PEs that know that the job has ended leave by themselves, and tell what they have to tell;
                // the others are busy in user code.
                let told = self.shared.job().ended() != Ended::Not;
                if told {
                    self.monitor.looker().wake_all();
                }
                deadline = Some(Instant::now() + if told { GRACE } else { Duration::ZERO });
            }
            if let Some(deadline) = deadline {
                let now = Instant::now();
                if now >= deadline + CORE_LIMIT {
                    self.kill(None);
                } else if now >= deadline {
                    self.kill(self.shared.job().crashed());
                }
            }
            let wait = deadline.map(|_| Duration::from_millis(5));
            if let Some(signal) = signals.wait(wait) {
                self.hear(signal);
            }
        }
        let status = self.status.unwrap_or_else(|| self.shared.job().final_status());
        if self.shared.job().ended() == Ended::Deadlock {
            self.print_deadlock();
        }
        (status & 0xff) as u8
    }

    /// Forks the PEs; fewer if the job ends meanwhile.
    fn fork_all(
        &mut self,
        program: Program,
        arena: &'static Arena,
        events: &Arc<[RawFd]>,
        report: &OwnedFd,
        signals: &Signals,
    ) -> Result<(), LaunchError> {
        let (config, shared) = (self.config, self.shared);
        // What is buffered now would be printed by every copy.
        let _ = std::io::Write::flush(&mut std::io::stdout());
        // SAFETY: plain system call.
        let supervisor = unsafe { libc::getpid() };
        let (parts, options) = (Parts::of(config, Trace::create(config, None)?)?, config.options());
        let cores = if config.pins() { cores_to_pin(config.pes() as usize) } else { None };
        if parts.balancing.is_some() {
            search::prepare();
        }
        let mut carried = None;
        for id in 0..config.pes() {
            let node = shared.node_of(id);
            if config.balances() && (id == 0 || node != shared.node_of(id - 1)) {
                let of_node = (id..config.pes()).take_while(|pe| shared.node_of(*pe) == node);
                carried = Some(Prepared::new(id..id + of_node.count() as u32));
            }
            if id > 0 && node != shared.node_of(id - 1) {
                // SAFETY: the supervisor has nothing in the arena.
                unsafe { arena.renew() }.map_err(|source| LaunchError::System {
                    what: "map the arena of another node",
                    source,
                })?;
                map_images(arena, config)?;
            }
            // SAFETY: this process has one thread, so the child may go on in Rust code.
            match unsafe { libc::fork() } {
                -1 => return Err(LaunchError::system("fork a PE")),
                0 => pe_process::live(PeInit {
                    id,
                    config,
                    options,
                    arena,
                    shared: shared.in_node(node),
                    events,
                    report: report.as_raw_fd(),
                    core: cores.as_ref().map(|cores| cores[id as usize]),
                    program,
                    supervisor,
                    parts: &parts,
                    carried: carried.take(),
                }),
                pid => self.pids.push((pid, id)),
            }
            // Many PEs take a while.
            while let Some(signal) = signals.wait(Some(Duration::ZERO)) {
                self.hear(signal);
            }
            if self.status.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Collects the PEs that have ended and decides what that means for the job. Other children belong to the caller.
    fn reap(&mut self) {
        for (pid, pe) in std::mem::take(&mut self.pids) {
            let mut raw = 0;
            // SAFETY: a plain system call; `raw` is writable.
            if unsafe { libc::waitpid(pid, &mut raw, libc::WNOHANG) } == 0 {
                self.pids.push((pid, pe));
                continue;
            }
            if libc::WIFSIGNALED(raw) && libc::WCOREDUMP(raw) {
                let place = crash::core::place_of(pid, libc::WTERMSIG(raw));
                say(format_args!("the core of PE {pe} (process {pid}): {place}"));
            }
            if self.status.is_some() {
                continue;
            }
            let job = self.shared.job();
            self.status = match job.ended() {
                Ended::Status | Ended::Deadlock => Some(job.status()),
                Ended::Not => self.unannounced_end(pid, pe, raw),
            };
        }
    }

    /// A PE has ended without announcing it.
    fn unannounced_end(&self, pid: libc::pid_t, pe: u32, raw: i32) -> Option<i32> {
        let ranks = first_ranks(pe, self.config.pes(), self.config.ranks());
        let ranks = match ranks.len() {
            0 => "it ran no ranks".to_owned(),
            1 => format!("it ran rank {}", ranks.start),
            _ => format!("it ran ranks {}..{}", ranks.start, ranks.end - 1),
        };
        if libc::WIFSIGNALED(raw) {
            let signal = libc::WTERMSIG(raw);
            let name = signal_name(signal);
            let memory = self.memory_kills.as_ref().is_some_and(MemoryKills::have_risen);
            let why = match signal {
                libc::SIGKILL if memory => {
                    ": the system's memory, or this job's limit, is exhausted"
                }
                _ => "",
            };
            say(format_args!(
                "PE {pe} (process {pid}) was killed by {name}{why}; {ranks}; ending the job"
            ));
            return Some(128 + signal);
        }
        let code = libc::WEXITSTATUS(raw);
        let left = self.shared.job().ranks_left.load(std::sync::atomic::Ordering::Acquire);
        if code == 0 && left == 0 {
            return None;
        }
        say(format_args!(
            "PE {pe} (process {pid}) exited with status {code} before {} had ended; \
             {ranks}; ending the job",
            count(left, "rank")
        ));
        Some(if code == 0 { STATUS_RUNTIME } else { code })
    }

    /// Kills the remaining PEs, except one process.
    fn kill(&self, but: Option<u32>) {
        for (pid, _) in self.pids.iter().filter(|(pid, _)| Some(*pid as u32) != but) {
            // SAFETY: our children, not reaped yet.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
        }
    }

    /// Kills all PEs, and waits until they have ended.
    fn abandon(&mut self) {
        self.kill(None);
        for (pid, _) in std::mem::take(&mut self.pids) {
            children::wait_for(pid, 0);
        }
    }

    fn print_deadlock(&self) {
        let mut text = Vec::new();
        let mut buffer = [0u8; 4096];
        loop {
            // SAFETY: the buffer is writable; all writers have ended, so this ends too.
            let n = unsafe {
                libc::read(self.report.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len())
            };
            if n <= 0 {
                break;
            }
            text.extend_from_slice(&buffer[..n as usize]);
        }
        print_deadlock_table(&String::from_utf8_lossy(&text));
    }
}

/// Prints what each rank waits for, one rank per line, in rank order.
pub(super) fn print_deadlock_table(text: &str) {
    let mut rows: Vec<&str> = text.lines().collect();
    rows.sort_by_key(|row| row.split_whitespace().find_map(|word| word.parse::<u32>().ok()));
    let mut table =
        "vrt: deadlock: every rank waits and nothing is on its way; ending the job\n".to_owned();
    rows.iter().for_each(|row| table += &format!("  {row}\n"));
    write_out(table.as_bytes());
}

/// A core for each PE, if there are enough.
fn cores_to_pin(pes: usize) -> Option<Vec<usize>> {
    // SAFETY: the set is written by the call and only read after it succeeded.
    let cores: Vec<usize> = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return None;
        }
        (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &set)).collect()
    };
    (cores.len() >= pes).then_some(cores)
}

/// In addition to those that the job has for each PE.
const OTHER_DESCRIPTORS: u64 = 256;

/// Raises the limit of open files to what this many PEs need, as far as the system allows.
fn allow_descriptors(pes: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: plain system calls with a limit of this function's own.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0
            && limit.rlim_cur < pes + OTHER_DESCRIPTORS
        {
            limit.rlim_cur = (pes + OTHER_DESCRIPTORS).min(limit.rlim_max);
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// A pipe whose two ends are non-blocking.
pub(super) fn pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    let mut fds = [0; 2];
    // SAFETY: the call fills both; they are ours.
    unsafe {
        if libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) != 0 {
            return Err(LaunchError::system("create a pipe"));
        }
        libc::fcntl(fds[1], libc::F_SETPIPE_SZ, 1 << 20);
        Ok((OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])))
    }
}

/// The signals that request a look at the job. They would end a process that does not expect them.
const LOOKS: [i32; 2] = [libc::SIGUSR1, libc::SIGIO];

/// The signals that the supervisor waits for; blocked while this lives. The caller's disposition of SIGCHLD (if it were
/// ignored, the kernel would not keep how PEs ended) is restored afterwards.
struct Signals {
    set: libc::sigset_t,
    before: libc::sigset_t,
    on_child: libc::sigaction,
}

impl Signals {
    fn block() -> Signals {
        // SAFETY: the sets are initialised by the calls before they are used.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in
                [libc::SIGCHLD, libc::SIGINT, libc::SIGTERM, libc::SIGHUP].iter().chain(&LOOKS)
            {
                libc::sigaddset(&mut set, *signal);
            }
            libc::sigprocmask(libc::SIG_BLOCK, &set, &mut before);
            let default: libc::sigaction = std::mem::zeroed();
            let mut on_child: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGCHLD, &default, &mut on_child);
            Signals { set, before, on_child }
        }
    }

    /// The next signal, or `None` after the timeout.
    fn wait(&self, timeout: Option<Duration>) -> Option<i32> {
        // SAFETY: a valid set; a null time means to wait without limit.
        let signal = unsafe {
            match timeout {
                None => libc::sigwaitinfo(&self.set, std::ptr::null_mut()),
                Some(time) => {
                    let time = libc::timespec {
                        tv_sec: time.as_secs() as libc::time_t,
                        tv_nsec: libc::c_long::from(time.subsec_nanos() as i32),
                    };
                    libc::sigtimedwait(&self.set, std::ptr::null_mut(), &time)
                }
            }
        };
        (signal > 0).then_some(signal)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: takes what has come too late; restores the action and the mask that were in force.
        unsafe {
            let mut looks: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut looks);
            for signal in LOOKS {
                libc::sigaddset(&mut looks, signal);
            }
            let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            while libc::sigtimedwait(&looks, std::ptr::null_mut(), &at_once) > 0 {}
            libc::sigaction(libc::SIGCHLD, &self.on_child, std::ptr::null_mut());
            if self.on_child.sa_sigaction > libc::SIG_IGN {
                // The caller's handler has not seen the ends of the caller's own children.
                libc::raise(libc::SIGCHLD);
            }
            libc::sigprocmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut());
        }
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGINT => "SIGINT (Ctrl-C)",
        libc::SIGTERM => "SIGTERM",
        libc::SIGHUP => "SIGHUP",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV (invalid memory access)",
        libc::SIGBUS => "SIGBUS",
        libc::SIGABRT => "SIGABRT (abort)",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        libc::SIGXFSZ => "SIGXFSZ (a file beyond the limit of `ulimit -f`)",
        libc::SIGXCPU => "SIGXCPU (more processor time than `ulimit -t` allows)",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}
