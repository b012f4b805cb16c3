//! A job whose PEs are MPI processes that a launcher (`mpirun`, `srun`) has started.
//!
//! ```text
//! executes itself again without address randomisation, then MPI_Init
//! PEs are numbered machine by machine
//! program, configuration, addresses, CPUs are compared (`agree`)
//! PE 0 finds a place for the arena; the first PE of each node reserves it there, with control
//!   memory; the others of the node open both through /proc
//! all take the canary of PE 0
//! ranks run
//! all have ended: MPI_Finalize, status 0      otherwise: MPI_Abort(status): the launcher ends the rest
//! ```
//!
//! The launcher supervises: it reports a process that dies, ends the others, and returns a status
//! (Open MPI's and MPICH's `mpirun`: that of a process that failed). What `vrt` adds: a PE dies with
//! the process that the launcher started it from; a PE that ends the job (a panic, `exit(n)`, a
//! deadlock) says so as in any job, and has the launcher return its status. After a stack overflow
//! nothing but `_exit` is safe: then the launcher may report the status of a PE that it has killed.
//!
//! MPI is initialised as for a process with one thread, though ranks may start threads of their own:
//! only the PE's thread calls MPI, and with more, Open MPI takes locks for each message (0.14 us).
//!
//! This module and `net::mpi` are the only ones that call MPI, through symbols bound to the MPI
//! library when the program was linked. Nothing here exports a symbol of MPI's.

use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rsmpi::collective::{CommunicatorCollectives, Root};
use rsmpi::datatype::PartitionMut;
use rsmpi::raw::AsRaw;
use rsmpi::topology::{Color, Communicator, SimpleCommunicator};
use rsmpi::{Threading, ffi};

use crate::config::{Config, ConfigError};
use crate::launch::agree::{self, Likeness};
use crate::launch::mpi_net::Endpoint;
use crate::launch::parts::Parts;
use crate::launch::pe_process::{self, leave};
use crate::launch::supervisor::print_deadlock_table;
use crate::launch::watchdog::Watchdog;
use crate::launch::{LaunchError, crash};
use vrt_core::blocking;
use vrt_core::net::local::Events;
use vrt_core::net::remote::Remote;
use vrt_core::net::shared::{Ended, Shared};
use vrt_core::pe::{self, Options, Outcome, Pe, Setup};
use vrt_slot::foreign;
use vrt_slot::rank::Program;
use vrt_slot::report::{self, STATUS_RUNTIME};
use vrt_slot::{self, Arena, Place, SlotId, answers, exit_guard};

/// Runs this process as a PE of a job. Returns only what keeps the job from beginning.
pub(super) fn run(config: &Config, program: Program) -> Result<u8, LaunchError> {
    agree::fix_addresses();
    // MPI libraries leave signals alone that somebody handles already.
    crash::install();
    exit_guard::find();
    answers::prepare();
    let likeness = Likeness::of_this_process(config);
    let threads = foreign::threads();
    let Some((universe, _)) = rsmpi::initialize_with_threading(Threading::Single) else {
        return Err(LaunchError::Disagreement("MPI was initialised before the job began".into()));
    };
    STARTED.store(true, Ordering::Relaxed);
    if let (Some(before), Some(now)) = (threads, foreign::threads()) {
        // The library's own.
        foreign::expect_threads(now.saturating_sub(before));
    }
    // MPI_Finalize is for a job that has ended well: it waits for the others.
    let universe = ManuallyDrop::new(universe);
    let crowd = Crowd::gather(&universe.world())?;
    let config = &config.for_started_pes(crowd.pes)?;
    config.check()?;
    let (config, memory_moves) = &crowd.compare(config, likeness);
    let node = crowd.node_of_this(config)?;
    let pe = crowd.build(config, &node, program, *memory_moves)?;
    let outcome = live(pe, config, &crowd);
    if let Outcome::Finished = outcome {
        drop(crowd);
        drop(ManuallyDrop::into_inner(universe));
        leave(0)
    }
    leave(STATUS_RUNTIME)
}

/// Whether this process is a PE that a launcher has started.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Tells the launcher that the job has failed: it ends the other PEs and returns this status. To be
/// called by the thread of the PE.
pub(super) fn abort_unless_well(status: i32) {
    if status != 0 && STARTED.load(Ordering::Relaxed) {
        // MPICH's launcher forgets what it has not read yet of the PEs' output.
        std::thread::sleep(Duration::from_millis(100));
        // SAFETY: MPI is initialised, and not finalised where something goes wrong.
        unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, status & 0xff) };
    }
}

/// Runs the ranks of this PE; returns when the whole job has ended well, or in a deadlock.
fn live(mut pe: Box<Pe>, config: &Config, crowd: &Crowd) -> Outcome {
    let _entered = pe.enter();
    vrt_slot::outside::begin(crowd.id);
    let _watchdog = Watchdog::start(config.watchdog(), &pe.engine.shared, &pe);
    match pe::run() {
        Ok(Outcome::Finished) => {
            pe_process::tell_what_was_done(config);
            pe::with_in_loop(Pe::send_what_is_left);
            // Nobody stops listening before everybody has stopped talking.
            crowd.comm.barrier();
            drop(pe::with_in_loop(|pe| pe.engine.net.take_remote()));
            Outcome::Finished
        }
        Ok(Outcome::Ended(Ended::Deadlock)) => {
            pe::with_in_loop(Pe::send_what_is_left);
            let table = crowd.gather_text(&pe_process::waits());
            if crowd.id == 0 {
                print_deadlock_table(&table);
            }
            crowd.comm.barrier();
            Outcome::Ended(Ended::Deadlock)
        }
        Ok(Outcome::Panicked(rank, _)) => pe_process::end_after_panic(rank),
        Ok(Outcome::Ended(_)) => leave(crash::job().map_or(STATUS_RUNTIME, |job| job.status())),
        Err(error) => {
            report::say(format_args!("PE {}: {error}", crowd.id));
            report::end_job(STATUS_RUNTIME)
        }
    }
}

/// The processes that the launcher has started, machine by machine: each is a PE.
struct Crowd {
    comm: SimpleCommunicator,
    id: u32,
    pes: u32,
    /// The machine of each PE.
    machines: Vec<u64>,
}

/// An arena and the file behind it.
type Reserved = (&'static Arena, OwnedFd);

/// The node of this PE.
struct Node {
    size: u32,
    number: usize,
    first: u32,
}

impl Crowd {
    fn gather(world: &SimpleCommunicator) -> Result<Crowd, LaunchError> {
        let here = agree::machine();
        let mut machines = vec![0u64; world.size() as usize];
        world.all_gather_into(&here, &mut machines[..]);
        let first = machines.iter().position(|machine| *machine == here).unwrap_or_default();
        // Those of the machine that comes first, then the others, each in the launcher's order.
        let key = first as c_int * world.size() + world.rank();
        let Some(comm) = world.split_by_color_with_key(Color::with_value(0), key) else {
            return Err(LaunchError::Disagreement("MPI gave no communicator".into()));
        };
        // SAFETY: a communicator of ours and a constant of the library.
        unsafe { ffi::MPI_Comm_set_errhandler(comm.as_raw(), ffi::RSMPI_ERRORS_RETURN) };
        comm.all_gather_into(&here, &mut machines[..]);
        Ok(Crowd { id: comm.rank() as u32, pes: comm.size() as u32, machines, comm })
    }

    /// Sees whether these can be a job, and whether ranks may move with their memory in it.
    fn compare(&self, config: &Config, here: Likeness) -> (Config, bool) {
        let words = self.all_gather(&here.words());
        let all: Vec<Likeness> = words.chunks(agree::WORDS).map(Likeness::from_words).collect();
        if let Some(why) = agree::why_no_job(&all) {
            if self.id == 0 {
                super::report_usage_error(&LaunchError::Disagreement(why));
            }
            // Nobody leaves before it has been said.
            self.comm.barrier();
            leave(i32::from(super::STATUS_USAGE));
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

    /// Makes nodes of PEs: as asked, or of all PEs of a machine if there are as many on each.
    fn node_of_this(&self, config: &Config) -> Result<Node, LaunchError> {
        let counts = self.machines.chunk_by(|a, b| a == b).map(|machine| machine.len() as u32);
        let size = match config.chosen_node_size() {
            Some(size) => size.min(self.pes),
            None => counts.fold(0, greatest_common_divisor),
        };
        for (number, node) in self.machines.chunks(size as usize).enumerate() {
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

    /// Makes this process a PE: memory in common with its node, its way to others.
    fn build(
        &self,
        config: &Config,
        node: &Node,
        program: Program,
        memory_moves: bool,
    ) -> Result<Box<Pe>, LaunchError> {
        let slots = (config.ranks() + config.pes()) as usize;
        let first = self.id == node.first;
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
        let offered = self.all_gather(&[
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
            own_arena = Some(Arena::attach(slots, &config.slot_sizes(), place, &file)?);
            shared = Some(map(&open_of(theirs[0], theirs[2], libc::O_RDWR)?)?);
        }
        let (Some(arena), Some(shared)) = (own_arena, shared) else {
            unreachable!("the first of a node has made both, the others have opened them")
        };
        let mut wake = vec![-1; self.pes as usize];
        for pe in node.first..(node.first + node.size).min(self.pes) {
            let [process, .., event] = offered_by(pe) else { continue };
            let event = open_of(*process, *event, libc::O_WRONLY | libc::O_NONBLOCK)?;
            wake[pe as usize] = into_raw(event);
        }
        let events = Events { wake, own: into_raw(event_read) };
        // Whoever is opened from stays until all have opened.
        self.comm.barrier();
        self.take_canary();
        self.die_with_parent();
        let remote = shared.nodes() > 1;
        let remote = remote.then(|| Endpoint::new(self.comm.as_raw(), self.id, self.pes as usize));
        let oversubscribed = self.machine_is_oversubscribed();
        let options = Options { oversubscribed, memory_moves, ..config.options() };
        pe_process::prepare_for_ranks(&shared, self.id, config);
        let setup = Setup {
            id: self.id,
            uid: self.id + 1,
            shared,
            events,
            remote: remote.map(|endpoint| Box::new(endpoint) as Box<dyn Remote>),
            options,
            extensions: Parts::of(config)?.of_pe(self.id, &shared),
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
            reserved = Some(Arena::reserve_to_share(slots, &sizes, None)?);
        }
        let place = self.place(reserved.as_ref().map(|(arena, _)| arena.place()));
        if first && self.id != 0 {
            reserved = Some(Arena::reserve_to_share(slots, &sizes, Some(place))?);
        }
        Ok((place, reserved))
    }

    /// The place of the arena, which PE 0 knows.
    fn place(&self, known: Option<Place>) -> Place {
        let mut words = known.map_or([0, 0], |place| [place.base as u64, place.far as u64]);
        self.comm.process_at_rank(0).broadcast_into(&mut words[..]);
        Place { base: words[0] as usize, far: words[1] as usize }
    }

    fn take_canary(&self) {
        let mut canary = agree::canary();
        self.comm.process_at_rank(0).broadcast_into(&mut canary);
        // SAFETY: what lies above is Rust's, but for the C library's call of `main`, and this
        // process ends without returning there.
        unsafe { agree::set_canary(canary) };
    }

    /// A PE whose launcher is gone has no job.
    fn die_with_parent(&self) {
        // SAFETY: a plain system call.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    }

    /// Whether the PEs of this machine have fewer cores than they are.
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
        let all = self.all_gather(&mine);
        let here = self.machines[self.id as usize];
        let mut cores = [0u64; WORDS];
        let mut pes = 0;
        for (theirs, machine) in all.chunks(WORDS).zip(&self.machines) {
            if *machine == here {
                pes += 1;
                cores.iter_mut().zip(theirs).for_each(|(core, their)| *core |= their);
            }
        }
        let cores: u32 = cores.iter().map(|word| word.count_ones()).sum();
        pes > cores
    }

    /// What all PEs have, one after the other.
    fn all_gather(&self, own: &[u64]) -> Vec<u64> {
        let mut all = vec![0; own.len() * self.pes as usize];
        self.comm.all_gather_into(own, &mut all[..]);
        all
    }

    /// The texts of all PEs, on PE 0.
    fn gather_text(&self, own: &str) -> String {
        let lengths = self.all_gather(&[own.len() as u64]);
        let lengths: Vec<c_int> = lengths.iter().map(|len| *len as c_int).collect();
        let root = self.comm.process_at_rank(0);
        if self.id != 0 {
            root.gather_varcount_into(own.as_bytes());
            return String::new();
        }
        let starts: Vec<c_int> = lengths
            .iter()
            .scan(0, |at, len| {
                *at += len;
                Some(*at - len)
            })
            .collect();
        let mut all = vec![0u8; lengths.iter().sum::<c_int>() as usize];
        let mut parts = PartitionMut::new(&mut all[..], lengths, &starts[..]);
        root.gather_varcount_into_root(own.as_bytes(), &mut parts);
        String::from_utf8_lossy(&all).into_owned()
    }
}

impl Pe {
    /// Sends all that this PE still has to send to others.
    fn send_what_is_left(&mut self) {
        loop {
            self.progress();
            let busy = self.engine.net.remote().is_some_and(|remote| remote.is_busy());
            if !busy && !self.engine.net.has_backlog() {
                return;
            }
        }
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
