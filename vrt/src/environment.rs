//! Starting and asking about the environment (MPI-4.1 chapters 9 and 11).
//!
//! The names of the `mpi` crate's `environment` module. A rank of a job needs no initialisation:
//! [`initialize`] hands out the [`Universe`] as often as a rank asks. Outside of any job it makes the
//! calling thread the only rank of a world, so that a library's unit tests need no job.

use crate::topology::SimpleCommunicator;
use vrt_core::pe;

/// The environment of a rank.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let universe = vrt::initialize().expect("in a rank");
///     assert_eq!(universe.world().rank(), world.rank());
/// });
/// ```
#[derive(Debug)]
pub struct Universe {
    buffer_size: usize,
}

impl Universe {
    /// The communicator of all ranks.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |_| {
    ///     let world = vrt::initialize().expect("in a rank").world();
    ///     assert_eq!(world.size(), 2);
    /// });
    /// ```
    #[track_caller]
    pub fn world(&self) -> SimpleCommunicator {
        SimpleCommunicator::world()
    }

    /// The number of ranks that there could be; not known in advance.
    ///
    /// # Examples
    ///
    /// ```
    /// vrt::run_local(1, |_| assert_eq!(vrt::initialize().and_then(|universe| universe.size()), None));
    /// ```
    pub fn size(&self) -> Option<usize> {
        None
    }

    /// The number of this program among several that were started together; there is one.
    ///
    /// # Examples
    ///
    /// ```
    /// vrt::run_local(1, |_| assert_eq!(vrt::initialize().and_then(|universe| universe.appnum()), None));
    /// ```
    pub fn appnum(&self) -> Option<isize> {
        None
    }

    /// Cuts the connection to the processes that started this job: there are none.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(1, |_| {
    ///     let mut universe = vrt::initialize().expect("in a rank");
    ///     assert!(universe.world().parent().is_none());
    ///     universe.disconnect_parent();
    /// });
    /// ```
    pub fn disconnect_parent(&mut self) {}

    /// Bytes set aside for buffered sends. They need none: memory is found when they are made.
    ///
    /// # Examples
    ///
    /// ```
    /// vrt::run_local(1, |_| {
    ///     let universe = vrt::initialize().expect("in a rank");
    ///     assert_eq!(universe.buffer_size(), 0);
    /// });
    /// ```
    pub fn buffer_size(&self) -> usize {
        self.buffer_size
    }

    /// Notes a size for the buffer of buffered sends, in this value only: memory for buffered sends is allocated when they
    /// are made.
    ///
    /// # Examples
    ///
    /// ```
    /// vrt::run_local(1, |_| {
    ///     let mut universe = vrt::initialize().expect("in a rank");
    ///     universe.set_buffer_size(1 << 20);
    ///     assert_eq!(universe.buffer_size(), 1 << 20);
    /// });
    /// ```
    pub fn set_buffer_size(&mut self, size: usize) {
        self.buffer_size = size;
    }

    /// Gives the buffer back.
    ///
    /// # Examples
    ///
    /// ```
    /// vrt::run_local(1, |_| {
    ///     let mut universe = vrt::initialize().expect("in a rank");
    ///     universe.set_buffer_size(1 << 20);
    ///     universe.detach_buffer();
    ///     assert_eq!(universe.buffer_size(), 0);
    /// });
    /// ```
    pub fn detach_buffer(&mut self) {
        self.buffer_size = 0;
    }
}

/// What threads may do (section 11.6). A rank's operations belong to its own thread.
///
/// # Examples
///
/// ```
/// use vrt::Threading;
///
/// assert!(Threading::Single < Threading::Funneled && Threading::Serialized < Threading::Multiple);
/// assert!(vrt::environment::threading_support() >= Threading::Funneled);
/// ```
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
///
/// # Examples
///
/// ```
/// use vrt::Threading;
///
/// vrt::run_local(1, |_| {
///     let wanted = Threading::Multiple;
///     let (_, provided) = vrt::initialize_with_threading(wanted).expect("in a rank");
///     assert_eq!(provided, Threading::Funneled);
/// });
/// ```
pub fn initialize_with_threading(threading: Threading) -> Option<(Universe, Threading)> {
    initialize().map(|universe| (universe, threading.min(threading_support())))
}

/// What threads may do.
///
/// # Examples
///
/// ```
/// assert_eq!(vrt::environment::threading_support(), vrt::Threading::Funneled);
/// ```
pub fn threading_support() -> Threading {
    Threading::Funneled
}

/// The version of the MPI standard whose sections the documentation names.
///
/// # Examples
///
/// ```
/// assert_eq!(vrt::environment::version(), (4, 1));
/// ```
pub fn version() -> (i32, i32) {
    (4, 1)
}

/// The name and version of this library.
///
/// # Examples
///
/// ```
/// assert!(vrt::environment::library_version().unwrap().starts_with("vrt "));
/// ```
pub fn library_version() -> Result<String, std::string::FromUtf8Error> {
    Ok(concat!("vrt ", env!("CARGO_PKG_VERSION")).to_owned())
}

/// The number of PEs in the job.
///
/// # Panics
/// Outside of ranks.
///
/// # Examples
///
/// ```
/// vrt::run_local(4, |_| assert_eq!(vrt::environment::pes(), 1));
/// ```
pub fn pes() -> usize {
    pe::with(|pe| pe.engine.shared().pes())
}

/// The host and the PE that the rank is on now.
///
/// # Examples
///
/// ```
/// vrt::run_local(1, |_| assert!(vrt::environment::processor_name().unwrap().ends_with(":pe0")));
/// ```
pub fn processor_name() -> Result<String, std::string::FromUtf8Error> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    Ok(match pe::whereabouts() {
        Some((_, pe)) => format!("{host}:pe{pe}"),
        None => host.to_owned(),
    })
}

/// Seconds since some time in the past.
///
/// # Examples
///
/// ```
/// let begin = vrt::time();
/// std::thread::sleep(std::time::Duration::from_millis(5));
/// assert!(vrt::time() - begin >= 0.005);
/// ```
pub fn time() -> f64 {
    pe::monotonic() as f64 * 1e-9
}

/// Seconds between two ticks of [`time`].
///
/// # Examples
///
/// ```
/// assert_eq!(vrt::time_resolution(), 1e-9);
/// ```
pub fn time_resolution() -> f64 {
    1e-9
}
