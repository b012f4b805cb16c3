//! Communicators and the processes (virtual ranks) in them.
//!
//! The names and traits of the `mpi` crate's `topology` module. A communicator is a few numbers: a
//! context that keeps its messages apart from others', this rank's number and the size; it lies
//! wherever the program puts it and moves with the rank.

use std::panic::Location;

use crate::{Count, pe};

/// Number of a rank in a communicator.
pub type Rank = i32;

/// What a communicator is. Point-to-point messages use `context`, collective operations the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommunicatorHandle {
    pub(crate) context: u32,
    pub(crate) rank: Rank,
    pub(crate) size: Rank,
    /// Rank of the job that is rank 0 here; the others follow.
    first: u32,
}

impl CommunicatorHandle {
    /// The rank of the job that is `rank` here.
    ///
    /// # Panics
    /// When there is no such rank.
    #[inline]
    #[track_caller]
    pub(crate) fn job_rank(&self, rank: Rank) -> u32 {
        if rank < 0 || rank >= self.size {
            panic!("rank {rank} is out of range: 0 to {} are allowed", self.size - 1);
        }
        self.first + rank as u32
    }
}

pub(crate) mod sealed {
    /// Things that stand for a communicator.
    pub trait AsHandle {
        /// The communicator.
        fn as_handle(&self) -> &super::CommunicatorHandle;
    }
}
use sealed::AsHandle;

/// Something that has a communicator.
pub trait AsCommunicator {
    /// Its type.
    type Out: Communicator + ?Sized;

    /// The communicator.
    fn as_communicator(&self) -> &Self::Out;
}

/// An intra-communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCommunicator(pub(crate) CommunicatorHandle);

impl SimpleCommunicator {
    /// The communicator of all ranks of the job.
    ///
    /// # Panics
    /// Outside of a rank.
    #[track_caller]
    pub fn world() -> SimpleCommunicator {
        let (rank, size) = pe::with(|pe| (pe.engine.current, pe.engine.shared.ranks()));
        SimpleCommunicator(CommunicatorHandle {
            context: 0,
            rank: rank as Rank,
            size: size as Rank,
            first: 0,
        })
    }

    /// The communicator of this rank alone.
    ///
    /// # Panics
    /// Outside of a rank.
    #[track_caller]
    pub fn self_comm() -> SimpleCommunicator {
        let rank = pe::with(|pe| pe.engine.current);
        SimpleCommunicator(CommunicatorHandle { context: 2, rank: 0, size: 1, first: rank })
    }
}

impl AsHandle for SimpleCommunicator {
    #[inline]
    fn as_handle(&self) -> &CommunicatorHandle {
        &self.0
    }
}

impl Communicator for SimpleCommunicator {}

impl AsCommunicator for SimpleCommunicator {
    type Out = SimpleCommunicator;

    fn as_communicator(&self) -> &SimpleCommunicator {
        self
    }
}

/// What every communicator can do (MPI-4.1 chapter 7).
pub trait Communicator: AsHandle {
    /// Number of ranks that can be addressed.
    fn target_size(&self) -> Rank {
        self.size()
    }

    /// Number of ranks.
    fn size(&self) -> Rank {
        self.as_handle().size
    }

    /// This rank's number.
    fn rank(&self) -> Rank {
        self.as_handle().rank
    }

    /// The process at a rank.
    ///
    /// # Panics
    /// When there is no such rank.
    #[track_caller]
    fn process_at_rank(&self, rank: Rank) -> Process<'_> {
        self.as_handle().job_rank(rank);
        Process { comm: self.as_handle(), rank }
    }

    /// Any process, as a source.
    fn any_process(&self) -> AnyProcess<'_> {
        AnyProcess(self.as_handle())
    }

    /// This process.
    fn this_process(&self) -> Process<'_> {
        Process { comm: self.as_handle(), rank: self.rank() }
    }

    /// Offers the calling rank to be moved to another PE; all ranks of the job call this at the
    /// same points of their programs. A balancing step happens when all have arrived (with
    /// `--lb-period`: at any time, and this returns at once unless the rank is to go).
    ///
    /// With `--move memory`, the default, the rank moves as it is. With `--move state` it is
    /// encoded and dropped whole, without running destructors, and its program begins again on the
    /// other PE, where [`restore`](Self::restore) returns the state. Without `--lb` this does
    /// nothing.
    ///
    /// # Panics
    /// When the state cannot be encoded; in an async rank.
    #[track_caller]
    fn migrate<T: serde::Serialize + serde::de::DeserializeOwned>(&self, state: &mut T) {
        crate::migrate::offer::migrate(state, Location::caller());
    }

    /// Moves the calling rank to a PE, by memory or by state as [`migrate`](Self::migrate) does,
    /// with or without `--lb`. A rank that moves by state begins again there, as does one that is
    /// there already not.
    ///
    /// # Errors
    /// There is no such PE, or the rank holds something that cannot move.
    ///
    /// # Panics
    /// When the state cannot be encoded; in an async rank.
    #[track_caller]
    fn migrate_to<T: serde::Serialize + serde::de::DeserializeOwned>(
        &self,
        pe: u32,
        state: &mut T,
    ) -> Result<(), crate::migrate::offer::CannotMove> {
        crate::migrate::offer::migrate_to(pe, state, Location::caller())
    }

    /// The async twin of [`migrate`](Self::migrate).
    ///
    /// # Panics
    /// When the state cannot be encoded.
    #[track_caller]
    fn migrate_async<T: serde::Serialize + serde::de::DeserializeOwned>(
        &self,
        state: &mut T,
    ) -> impl Future<Output = ()> {
        crate::migrate::offer::migrate_async(state, Location::caller())
    }

    /// Says where in space the calling rank's work is, for balancing strategies that keep
    /// neighbours together (`orb`, `hilbert`).
    ///
    /// # Panics
    /// When a coordinate is not a finite number.
    fn set_coordinates(&self, coordinates: [f64; 3]) {
        assert!(
            coordinates.iter().all(|x| x.is_finite()),
            "coordinates {coordinates:?}: finite numbers are allowed"
        );
        pe::with(|pe| pe.engine.running().coordinates = Some(coordinates));
    }

    /// The state that was given to [`migrate`](Self::migrate), if this rank has been moved by its
    /// state and its program begins again; `None` at its first beginning.
    ///
    /// # Panics
    /// When it is another type.
    #[track_caller]
    fn restore<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        crate::migrate::offer::restore(Location::caller())
    }

    /// Ends the whole job with a status.
    #[track_caller]
    fn abort(&self, errorcode: i32) -> ! {
        let location = Location::caller();
        let rank = self.as_handle().rank;
        let status = if (1..=255).contains(&errorcode) { errorcode } else { 1 };
        crate::launch::crash::say(format_args!(
            "rank {rank} called abort({errorcode}) at {location}; ending the job"
        ));
        std::process::exit(status)
    }
}

/// A rank of a communicator.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    comm: &'a CommunicatorHandle,
    rank: Rank,
}

impl Process<'_> {
    /// Its rank.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Whether it is the calling rank.
    pub fn is_self(&self) -> bool {
        self.rank == self.comm.rank
    }
}

impl AsHandle for Process<'_> {
    fn as_handle(&self) -> &CommunicatorHandle {
        self.comm
    }
}

impl Communicator for Process<'_> {}

impl<'a> AsCommunicator for Process<'a> {
    type Out = Process<'a>;

    fn as_communicator(&self) -> &Process<'a> {
        self
    }
}

/// Any rank of a communicator, as the source of a receive.
#[derive(Clone, Copy, Debug)]
pub struct AnyProcess<'a>(&'a CommunicatorHandle);

impl AsHandle for AnyProcess<'_> {
    fn as_handle(&self) -> &CommunicatorHandle {
        self.0
    }
}

impl Communicator for AnyProcess<'_> {}

impl<'a> AsCommunicator for AnyProcess<'a> {
    type Out = AnyProcess<'a>;

    fn as_communicator(&self) -> &AnyProcess<'a> {
        self
    }
}

/// Largest number of elements that [`Count`] can say.
pub const MAX_COUNT: usize = Count::MAX as usize;

/// The traits of this module.
pub mod traits {
    pub use super::{AsCommunicator, Communicator};
}
