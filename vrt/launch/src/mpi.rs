//! A job whose PEs are MPI processes that a launcher (`mpirun`, `srun`) has started.
//!
//! ```text
//! executes itself again without address randomisation, forks what may become a monitor, then MPI_Init
//! PEs are numbered machine by machine
//! program, configuration, addresses, CPUs are compared (`agree`)
//! PE 0 finds a place for the arena; the first PE of each node reserves it there, with control
//!   memory; the others of the node open both through /proc
//! all take the canary of PE 0
//! ranks run
//! all have ended: MPI_Finalize, status of the job      otherwise: MPI_Abort(status): the launcher ends the rest
//! ```
//!
//! The launcher supervises: it reports a process that dies, ends the others, and returns a status (Open MPI's and
//! MPICH's `mpirun`: that of a process that failed). `vrt` adds two things. A PE dies with the launcher process that
//! started it. A PE that ends the job (a panic, `exit(n)`, a deadlock) reports so as in any job, and makes the launcher
//! return its status. After a stack overflow only `_exit` is safe: then the launcher may report the status of a PE that
//! it has killed.
//!
//! MPI itself is called by the crate `vrt-net-mpi`.

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use vrt_core::blocking;
use vrt_core::net::local::Events;
use vrt_core::net::shared::{Ended, Shared};
use vrt_core::pe::{self, Options, Outcome, Pe, Setup};
use vrt_net_mpi::Processes;
use vrt_slot::foreign;
use vrt_slot::rank::Program;
use vrt_slot::report::{self, STATUS_RUNTIME};
use vrt_slot::{self, Arena, Place, SlotId, answers, exit_guard};

use crate::agree::{self, Fingerprint};
use crate::config::{Config, ConfigError};
use crate::crash;
use crate::end::{self, flush, leave, leave_well};
use crate::error::{LaunchError, STATUS_USAGE, report_usage_error};
use crate::monitor::{SeenNode, WaitingMonitor};
use crate::parts::Parts;
use crate::pe_process;
use crate::shares::Shares;
use crate::supervisor::print_deadlock_table;
use crate::trace::Trace;
use crate::watchdog::Watchdog;

/// Runs this process as a PE of a job. Returns only if the job cannot begin.
pub(super) fn run(config: &Config, program: Program) -> Result<u8, LaunchError> {
    agree::fix_addresses();
    // MPI libraries leave signals alone that somebody handles already.
    crash::install();
    // SAFETY: as in `supervisor`, except for threads that others have started by then, which leave that word alone.
    unsafe { exit_guard::find() };
    answers::prepare();
    let fingerprint = Fingerprint::of_this_process(config);
    let waiting = WaitingMonitor::fork(config);
    let threads = foreign::threads();
    let processes = Processes::begin(agree::machine())
        .map_err(|why| LaunchError::Disagreement(why.to_owned()))?;
    if let (Some(before), Some(now)) = (threads, foreign::threads()) {
        // The library's own.
        foreign::expect_threads(now.saturating_sub(before));
    }
    let world = MpiWorld { id: processes.id(), pes: processes.count(), processes };
    let config = &config.for_started_pes(world.pes)?;
    config.check()?;
    if world.id == 0 {
        config.tell_what_does_nothing();
    }
    let (config, memory_moves) = &world.compare(config, fingerprint);
    let node = world.node_of_this(config)?;
    let pe = world.build(config, &node, program, *memory_moves, waiting)?;
    let outcome = live(pe, config, &world);
    if let Outcome::Finished = outcome {
        let status = crash::job().map_or(0, |job| job.final_status());
        // A launcher may end the others when the first process has returned a status.
        flush();
        world.processes.finish();
        leave_well(status)
    }
    leave(STATUS_RUNTIME)
}

/// Runs the ranks of this PE; returns when the whole job has finished, or in a deadlock.
fn live(pe: Box<Pe>, config: &Config, world: &MpiWorld) -> Outcome {
    let _entered = pe.enter();
    // SAFETY: this process is that PE, which begins now.
    unsafe { vrt_slot::outside::begin(world.id) };
    let _watchdog = pe::while_stopped(|pe| {
        let shared = pe.engine.shared();
        Watchdog::start(config.watchdog(), &shared, pe)
    });
    let _shares = pe::while_stopped(|pe| Shares::start(config, pe));
    match pe::run() {
        Ok(Outcome::Finished) => {
            pe_process::tell_what_was_done(config);
            pe::while_stopped(Pe::send_what_is_left);
            // Nobody stops listening before everybody has stopped talking.
            world.processes.barrier();
            drop(pe::while_stopped(|pe| pe.engine.take_remote()));
            Outcome::Finished
        }
        Ok(Outcome::Ended(Ended::Deadlock)) => {
            pe::while_stopped(Pe::send_what_is_left);
            let table = world.processes.gather_text(&end::waits());
            if world.id == 0 {
                print_deadlock_table(&table);
            }
            world.processes.barrier();
            Outcome::Ended(Ended::Deadlock)
        }
        Ok(Outcome::Panicked(rank, _)) => end::end_after_panic(rank),
        Ok(Outcome::Ended(_)) => {
            pe_process::tell_of_ended_job(config);
            leave(crash::job().map_or(STATUS_RUNTIME, |job| job.status()))
        }
        Err(error) => {
            report::say(format_args!("PE {}: {error}", world.id));
            report::end_job(STATUS_RUNTIME)
        }
    }
}

/// The processes that the launcher has started: each is a PE.
struct MpiWorld {
    processes: Processes,
    id: u32,
    pes: u32,
}

/// An arena and the file behind it.
type Reserved = (&'static Arena, OwnedFd);

/// The node of this PE.
struct Node {
    size: u32,
    number: usize,
    first: u32,
}

impl MpiWorld {
    /// Checks whether these PEs can form a job, and whether ranks may move with their memory in it.
    fn compare(&self, config: &Config, here: Fingerprint) -> (Config, bool) {
        let words = self.processes.all_gather(&here.words());
        let all: Vec<Fingerprint> =
            words.chunks(agree::WORDS).map(Fingerprint::from_words).collect();
        if let Some(why) = agree::why_no_job(&all) {
            if self.id == 0 {
                report_usage_error(&LaunchError::Disagreement(why));
            }
            // Nobody leaves before it has been said.
            self.processes.barrier();
            leave(i32::from(STATUS_USAGE));
        }
        let Some(why) = agree::why_no_moves(&all) else { return (config.clone(), true) };
        let (config, note) = config.clone().without_moves_by_memory();
        if self.id == 0
            && let Some(note) = note
        {
            report::say(format_args!("note: {note}: {why}"));
        }
        (config, false)
    }

    /// Groups PEs into nodes: as requested, or all PEs of a machine if every machine has the same
    /// number.
    fn node_of_this(&self, config: &Config) -> Result<Node, LaunchError> {
        let counts =
            self.processes.machines().chunk_by(|a, b| a == b).map(|machine| machine.len() as u32);
        let size = match config.chosen_node_size() {
            Some(size) => size.min(self.pes),
            None => counts.fold(0, greatest_common_divisor),
        };
        for (number, node) in self.processes.machines().chunks(size as usize).enumerate() {
            if node.iter().any(|machine| *machine != node[0]) {
                return Err(ConfigError::Option(format!(
                    "--node-size {size}: PEs of node {number} are on different machines; a number \
                     is allowed that divides the PEs of each machine"
                ))
                .into());
            }
        }
        Ok(Node { size, number: (self.id / size) as usize, first: self.id / size * size })
    }

    /// Makes this process a PE: sets up the memory it shares with its node, and its connections to
    /// others.
    fn build(
        &self,
        config: &Config,
        node: &Node,
        program: Program,
        memory_moves: bool,
        waiting: Option<WaitingMonitor>,
    ) -> Result<Box<Pe>, LaunchError> {
        let slots = (config.ranks() + config.pes()) as usize;
        let first = self.id == node.first;
        super::supervisor::install_thread_locals(config)?;
        vrt_slot::want_huge_pages(config.wants_huge_pages());
        let (place, reserved) = self.reserve(config, slots, first)?;
        let (mut own_arena, arena_file) = reserved.unzip();
        let control_file = if first { Some(memory_file()?) } else { None };
        let sizes = (config.pes() as usize, config.ranks() as usize, node.size as usize);
        let map = |file: &OwnedFd| {
            Shared::map_node(file.as_fd(), sizes, node.number, first)
                .map_err(|source| LaunchError::System { what: "map control memory", source })
        };
        let mut shared = control_file.as_ref().map(map).transpose()?;
        let (event_read, event_write) = super::supervisor::pipe()?;
        // What others of the node open.
        let number = |file: Option<&OwnedFd>| file.map_or(-1, AsRawFd::as_raw_fd) as i64 as u64;
        let offered = self.processes.all_gather(&[
            u64::from(std::process::id()),
            number(arena_file.as_ref()),
            number(control_file.as_ref()),
            u64::from(vrt_slot::has_huge_pages()),
            event_write.as_raw_fd() as u64,
        ]);
        let offered_by = |pe: u32| &offered[5 * pe as usize..5 * pe as usize + 5];
        if !first {
            let theirs = offered_by(node.first);
            let file = open_of(theirs[0], theirs[1], libc::O_RDWR)?;
            vrt_slot::want_huge_pages(theirs[3] != 0);
            // SAFETY: this process has no arena yet.
            own_arena = Some(unsafe { Arena::attach(slots, &config.slot_sizes(), place, &file) }?);
            shared = Some(map(&open_of(theirs[0], theirs[2], libc::O_RDWR)?)?);
        }
        let (Some(arena), Some(shared)) = (own_arena, shared) else {
            unreachable!("the first of a node has made both, the others have opened them")
        };
        super::supervisor::map_images(arena, config)?;
        let mut wake = vec![-1; self.pes as usize];
        for pe in node.first..(node.first + node.size).min(self.pes) {
            let [process, .., event] = offered_by(pe) else { continue };
            let event = open_of(*process, *event, libc::O_WRONLY | libc::O_NONBLOCK)?;
            wake[pe as usize] = into_raw(event);
        }
        // Others may not have opened it yet, so it stays.
        match (&control_file, waiting) {
            (Some(control), Some(waiting)) => {
                let is_first = node.first == 0;
                let seen =
                    SeenNode { sizes, number: node.number, control, events: &wake, is_first };
                waiting.become_monitor(&seen, config)?;
            }
            (Some(_), None) if self.id == 0 && config.has_monitor() => report::say(format_args!(
                "--monitor: nobody can look at this job: its processes have several threads from the beginning"
            )),
            _ => {}
        }
        let events = Events { wake: wake.into(), own: into_raw(event_read) };
        // Whoever is opened from stays until all have opened.
        self.processes.barrier();
        self.take_canary();
        self.die_with_parent();
        let remote = shared.nodes() > 1;
        let remote = remote.then(|| self.processes.endpoint());
        let oversubscribed = self.machine_is_oversubscribed();
        let options = Options { oversubscribed, memory_moves, ..config.options() };
        pe_process::prepare_for_ranks(&shared, self.id, config);
        let parts = Parts::of(config, Trace::create(config, Some(self.id))?)?;
        let setup = Setup {
            id: self.id,
            uid: self.id + 1,
            shared,
            events,
            remote,
            options,
            extensions: parts.of_pe(self.id, &shared),
            observer: parts.observer(self.id, &shared),
            locks: &blocking::Futexes,
            pool: SlotId(config.ranks() + self.id),
            ranks: shared.begin_at(self.id).map(|rank| (rank, SlotId(rank))).collect(),
        };
        // SAFETY: each PE has its own range of ranks and its own pool slot.
        Ok(unsafe { Pe::new(setup, program, arena) })
    }

    /// Reserves the arena on the first PE of each node, at a place that PE 0 has found.
    fn reserve(
        &self,
        config: &Config,
        slots: usize,
        first: bool,
    ) -> Result<(Place, Option<Reserved>), LaunchError> {
        let sizes = config.slot_sizes();
        let mut reserved = None;
        if self.id == 0 {
            // SAFETY: this process has no arena yet.
            reserved = Some(unsafe { Arena::reserve_to_share(slots, &sizes, None) }?);
        }
        let place = self.place(reserved.as_ref().map(|(arena, _)| arena.place()));
        if first && self.id != 0 {
            // SAFETY: as above.
            reserved = Some(unsafe { Arena::reserve_to_share(slots, &sizes, Some(place)) }?);
        }
        Ok((place, reserved))
    }

    /// The place of the arena, which PE 0 knows.
    fn place(&self, known: Option<Place>) -> Place {
        let mut words = known.map_or([0, 0], |place| [place.base as u64, place.far as u64]);
        self.processes.broadcast(&mut words);
        Place { base: words[0] as usize, far: words[1] as usize }
    }

    fn take_canary(&self) {
        let mut word = [agree::canary()];
        self.processes.broadcast(&mut word);
        let [canary] = word;
        // SAFETY: what lies above is Rust's, but for the C library's call of `main`, and this
        // process ends without returning there.
        unsafe { agree::set_canary(canary) };
    }

    /// A PE ends with its launcher.
    fn die_with_parent(&self) {
        // SAFETY: a plain system call.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    }

    /// Whether this machine has fewer cores than PEs.
    fn machine_is_oversubscribed(&self) -> bool {
        const WORDS: usize = libc::CPU_SETSIZE as usize / 64;
        // SAFETY: zeros are a valid set, which the call fills in.
        let set = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
            set
        };
        let mut mine = [0u64; WORDS];
        // SAFETY: asks only.
        for core in (0..64 * WORDS).filter(|core| unsafe { libc::CPU_ISSET(*core, &set) }) {
            mine[core / 64] |= 1 << (core % 64);
        }
        let all = self.processes.all_gather(&mine);
        let here = self.processes.machines()[self.id as usize];
        let mut cores = [0u64; WORDS];
        let mut pes = 0;
        for (theirs, machine) in all.chunks(WORDS).zip(self.processes.machines()) {
            if *machine == here {
                pes += 1;
                cores.iter_mut().zip(theirs).for_each(|(core, their)| *core |= their);
            }
        }
        let cores: u32 = cores.iter().map(|word| word.count_ones()).sum();
        pes > cores
    }
}

/// Opens a file of another process of this user on this machine.
fn open_of(process: u64, file: u64, how: c_int) -> Result<OwnedFd, LaunchError> {
    let path = std::ffi::CString::new(format!("/proc/{process}/fd/{file}")).unwrap_or_default();
    // SAFETY: a valid path.
    let opened = unsafe { libc::open(path.as_ptr(), how | libc::O_CLOEXEC) };
    if opened < 0 {
        let error = std::io::Error::last_os_error();
        return Err(LaunchError::Disagreement(format!(
            "cannot share memory with another PE of this machine ({} of process {process}: \
             {error}); --node-size 1 does without",
            path.to_string_lossy()
        )));
    }
    // SAFETY: just opened.
    Ok(unsafe { OwnedFd::from_raw_fd(opened) })
}

fn memory_file() -> Result<OwnedFd, LaunchError> {
    // SAFETY: a plain system call; the descriptor is ours.
    let file = unsafe { libc::memfd_create(c"vrt-control".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(LaunchError::system("create a memory file"));
    }
    // SAFETY: just opened.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// A descriptor that stays open while the process lives.
fn into_raw(file: OwnedFd) -> i32 {
    std::os::fd::IntoRawFd::into_raw_fd(file)
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::greatest_common_divisor;

    #[test]
    fn machines_with_unequal_numbers_of_pes_get_nodes_of_a_common_size() {
        let size = |counts: &[u32]| counts.iter().copied().fold(0, greatest_common_divisor);
        assert_eq!((size(&[4]), size(&[4, 4]), size(&[4, 6]), size(&[3, 5])), (4, 4, 2, 1));
    }
}
