//! The processes that a launcher has started.

use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rsmpi::collective::{CommunicatorCollectives, Root};
use rsmpi::datatype::PartitionMut;
use rsmpi::environment::Universe;
use rsmpi::raw::AsRaw;
use rsmpi::topology::{Color, Communicator, SimpleCommunicator};
use rsmpi::{Threading, ffi};
use vrt_core::net::remote::Remote;

use crate::endpoint::Endpoint;

/// Whether this process is one that a launcher has started.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Tells the launcher that the job has failed, if one has started this process: it ends the other
/// processes and returns this status. To be called by the thread of the PE.
pub fn abort_unless_well(status: i32) {
    if status != 0 && STARTED.load(Ordering::Relaxed) {
        // MPICH's launcher forgets what it has not read yet of the PEs' output.
        std::thread::sleep(Duration::from_millis(100));
        // SAFETY: MPI is initialised, and not finalised where something goes wrong.
        unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, status & 0xff) };
    }
}

/// The processes that the launcher has started, machine by machine: each is a PE.
pub struct Processes {
    comm: SimpleCommunicator,
    /// MPI_Finalize is for a job that has ended well: it waits for the others.
    universe: ManuallyDrop<Universe>,
    machines: Vec<u64>,
}

impl std::fmt::Debug for Processes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Processes").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl Processes {
    /// Initialises MPI in a process on the machine of this number.
    ///
    /// # Errors
    /// Why that cannot be.
    pub fn begin(machine: u64) -> Result<Processes, &'static str> {
        let Some((universe, _)) = rsmpi::initialize_with_threading(Threading::Single) else {
            return Err("MPI was initialised before the job began");
        };
        STARTED.store(true, Ordering::Relaxed);
        let universe = ManuallyDrop::new(universe);
        let world = universe.world();
        let mut machines = vec![0u64; world.size() as usize];
        world.all_gather_into(&machine, &mut machines[..]);
        let first = machines.iter().position(|other| *other == machine).unwrap_or_default();
        // Those of the machine that comes first, then the others, each in the launcher's order.
        let key = first as c_int * world.size() + world.rank();
        let Some(comm) = world.split_by_color_with_key(Color::with_value(0), key) else {
            return Err("MPI gave no communicator");
        };
        // SAFETY: a communicator of ours and a constant of the library.
        unsafe { ffi::MPI_Comm_set_errhandler(comm.as_raw(), ffi::RSMPI_ERRORS_RETURN) };
        comm.all_gather_into(&machine, &mut machines[..]);
        Ok(Processes { comm, universe, machines })
    }

    /// The number of this process.
    pub fn id(&self) -> u32 {
        self.comm.rank() as u32
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.comm.size() as u32
    }

    /// The machine of each.
    pub fn machines(&self) -> &[u64] {
        &self.machines
    }

    /// Waits until all have come here.
    pub fn barrier(&self) {
        self.comm.barrier();
    }

    /// Gives all what process 0 has.
    pub fn broadcast(&self, words: &mut [u64]) {
        self.comm.process_at_rank(0).broadcast_into(words);
    }

    /// What all have, one after the other.
    pub fn all_gather(&self, own: &[u64]) -> Vec<u64> {
        let mut all = vec![0; own.len() * self.count() as usize];
        self.comm.all_gather_into(own, &mut all[..]);
        all
    }

    /// The texts of all, on process 0.
    pub fn gather_text(&self, own: &str) -> String {
        let lengths = self.all_gather(&[own.len() as u64]);
        let lengths: Vec<c_int> = lengths.iter().map(|len| *len as c_int).collect();
        let root = self.comm.process_at_rank(0);
        if self.id() != 0 {
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

    /// This process' end of the transport.
    pub fn endpoint(&self) -> Box<dyn Remote> {
        Box::new(Endpoint::new(self.comm.as_raw(), self.id(), self.count() as usize))
    }

    /// Finalises MPI: the job has ended well, and all its processes call this.
    pub fn finish(self) {
        let Processes { comm, universe, .. } = self;
        drop(comm);
        drop(ManuallyDrop::into_inner(universe));
    }
}
