//! Starting and asking about the environment (MPI-4.1 chapters 9 and 11).
//!
//! The names of the `mpi` crate's `environment` module. A rank of a job needs no initialisation:
//! [`initialize`] hands out the [`Universe`] as often as a rank asks. Outside of any job it makes the
//! calling thread the only rank of a world, so that a library's unit tests need no job.

use crate::topology::SimpleCommunicator;
use vrt_core::pe;

/// The environment of a rank.
#[derive(Debug)]
pub struct Universe {
    buffer_size: usize,
}

impl Universe {
    /// The communicator of all ranks.
    #[track_caller]
    pub fn world(&self) -> SimpleCommunicator {
        SimpleCommunicator::world()
    }

    /// The number of ranks that there could be; not known in advance.
    pub fn size(&self) -> Option<usize> {
        None
    }

    /// The number of this program among several that were started together; there is one.
    pub fn appnum(&self) -> Option<isize> {
        None
    }

    /// Cuts the connection to the processes that started this job: there are none.
    pub fn disconnect_parent(&mut self) {}

    /// Bytes set aside for buffered sends. They need none: memory is found when they are made.
    pub fn buffer_size(&self) -> usize {
        self.buffer_size
    }

    /// Notes a size for the buffer of buffered sends.
    pub fn set_buffer_size(&mut self, size: usize) {
        self.buffer_size = size;
    }

    /// Gives the buffer back.
    pub fn detach_buffer(&mut self) {
        self.buffer_size = 0;
    }
}

/// What threads may do (section 11.6). A rank's operations belong to its own thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Threading {
    /// There is one thread.
    Single,
    /// Only the rank's own thread calls.
    Funneled,
    /// One thread at a time calls.
    Serialized,
    /// Any thread calls.
    Multiple,
}

/// The environment: of the rank that calls, or of a *world of one*.
///
/// A thread of a process that is no job becomes the only rank of a world of its own, as a program
/// of the `mpi` crate does that no `mpirun` has started, and remains it until it ends. Each thread
/// has another such world, so unit tests need not wait for each other. It allocates in the slot of
/// that rank from then on, and does not fork.
///
/// `None` on threads of a job that run no ranks.
///
/// A program that was started as a job of several ranks (by `vrtrun`, with `VRT_RANKS`, by `mpirun`)
/// and has no `#[vrt::main]` would do the work of all of them alone: it says so, and ends with
/// status 2.
///
/// # Panics
/// When there is no memory for a world of one.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// let universe = vrt::initialize().expect("this thread is not one of a job");
/// let world = universe.world();
/// assert_eq!((world.rank(), world.size()), (0, 1));
/// let mut sum = 0;
/// world.all_reduce_into(&7, &mut sum, vrt::collective::SystemOperation::sum());
/// assert_eq!(sum, 7);
/// ```
pub fn initialize() -> Option<Universe> {
    if !pe::in_rank() && !vrt_launch::begin_world_of_one() {
        return None;
    }
    Some(Universe { buffer_size: 0 })
}

/// The environment and what threads may do in it: other threads of a rank may run, its own calls.
pub fn initialize_with_threading(threading: Threading) -> Option<(Universe, Threading)> {
    initialize().map(|universe| (universe, threading.min(threading_support())))
}

/// What threads may do.
pub fn threading_support() -> Threading {
    Threading::Funneled
}

/// The version of the MPI standard whose sections the documentation names.
pub fn version() -> (i32, i32) {
    (4, 1)
}

/// The name and version of this library.
pub fn library_version() -> Result<String, std::string::FromUtf8Error> {
    Ok(concat!("vrt ", env!("CARGO_PKG_VERSION")).to_owned())
}

/// The number of PEs in the job.
///
/// # Panics
/// Outside of ranks.
pub fn pes() -> usize {
    pe::with(|pe| pe.engine.shared.pes())
}

/// The host and the PE that the rank is on now.
pub fn processor_name() -> Result<String, std::string::FromUtf8Error> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    Ok(match pe::whereabouts() {
        Some((_, pe)) => format!("{host}:pe{pe}"),
        None => host.to_owned(),
    })
}

/// Seconds since some time in the past.
pub fn time() -> f64 {
    pe::monotonic() as f64 * 1e-9
}

/// Seconds between two ticks of [`time`].
pub fn time_resolution() -> f64 {
    1e-9
}
