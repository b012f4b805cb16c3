//! Communicators and the processes (virtual ranks) in them (MPI-4.1 chapters 7 and 8).
//!
//! The names and traits of the `mpi` crate's `topology` module. A communicator is a few numbers
//! and a list of ranks in the heap of the rank that has it, and moves with the rank.
//!
//! | file | subject |
//! |---|---|
//! | `communicator` | what every communicator can do |
//! | `group` | groups and their set operations |
//! | `cartesian`, `graph` | neighbourhoods |
//! | `inter` | intercommunicators |
//! | `number` | communicators as numbers, and in the states of ranks |
//! | `migrate` | moving by state |

pub(crate) mod cartesian;
mod communicator;
pub(crate) mod graph;
mod group;
mod inter;
mod migrate;
mod number;

use crate::Count;
pub use crate::Rank;
pub use cartesian::{CartesianCommunicator, CartesianLayout, dimensions};
pub use communicator::{AnyCommunicator, Communicator};
pub use graph::{DistributedGraphCommunicator, GraphCommunicator};
pub use group::{Group, GroupRelation, SystemGroup, UserGroup};
pub use inter::{InterCommunicator, MergeOrder};
pub use migrate::CannotMove;
use vrt_core::comm::handle::{Info, Members};
use vrt_core::comm::shape::Shape;
use vrt_core::comm::{CommunicatorHandle, SELF, WORLD};
use vrt_core::pe;
use vrt_slot::locals;

/// A number by which ranks are ordered in a new communicator.
///
/// Example: [`split_by_color_with_key`](Communicator::split_by_color_with_key).
pub type Key = i32;

pub(crate) mod sealed {
    /// Things that stand for a communicator.
    pub trait AsHandle {
        /// The communicator.
        fn as_handle(&self) -> &vrt_core::comm::CommunicatorHandle;
    }

    /// Things that stand for ranks in an order.
    pub trait HasMembers {
        /// The ranks, of the job.
        fn members(&self) -> &vrt_core::comm::handle::Members;
    }
}
use sealed::AsHandle;

/// Something that has a communicator.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// fn number_of_ranks<C: AsCommunicator>(it: &C) -> i32 {
///     it.as_communicator().size()
/// }
///
/// vrt::run_local(3, |world| {
///     assert_eq!(number_of_ranks(world), 3);
///     assert_eq!(number_of_ranks(&world.process_at_rank(1)), 3);
/// });
/// ```
pub trait AsCommunicator {
    /// Its type.
    type Out: Communicator;

    /// The communicator.
    ///
    /// Example: [`AsCommunicator`].
    fn as_communicator(&self) -> &Self::Out;
}

/// An intra-communicator.
///
/// # Examples
///
/// ```
/// use vrt::topology::SimpleCommunicator;
/// use vrt::traits::*;
///
/// struct Solver {
///     ranks: SimpleCommunicator,
/// }
///
/// vrt::run_local(2, |world| {
///     let solver = Solver { ranks: world.duplicate() };
///     assert_eq!(solver.ranks.size(), 2);
///     assert_ne!(&solver.ranks, world);
/// });
/// ```
#[derive(Clone, Debug)]
pub struct SimpleCommunicator(pub(crate) CommunicatorHandle);

/// The communicator of all ranks, as [`main`](crate::main) gives it to a program.
///
/// # Examples
///
/// ```
/// use vrt::World;
/// use vrt::traits::*;
///
/// fn is_last(world: &World) -> bool {
///     world.rank() + 1 == world.size()
/// }
///
/// vrt::run_local(3, |world| assert_eq!(is_last(world), world.rank() == 2));
/// ```
pub type World = SimpleCommunicator;

impl SimpleCommunicator {
    /// The communicator of all ranks of the job.
    ///
    /// # Panics
    /// Outside of a rank.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::topology::SimpleCommunicator;
    ///
    /// vrt::run_local(2, |world| assert_eq!(&SimpleCommunicator::world(), world));
    /// ```
    #[track_caller]
    pub fn world() -> SimpleCommunicator {
        let info = locals::keep(WORLD, || {
            let (rank, size) =
                pe::with(|pe| (pe.engine.running_rank(), pe.engine.shared().ranks()));
            let members = Members::Range { first: 0, count: size as u32 };
            let info = Info::new(WORLD, rank as Rank, members);
            *info.name.borrow_mut() = "MPI_COMM_WORLD".to_owned();
            info
        });
        SimpleCommunicator(CommunicatorHandle::from_shared(info))
    }

    /// The communicator of this rank alone.
    ///
    /// # Panics
    /// Outside of a rank.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::topology::SimpleCommunicator;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |_| {
    ///     let alone = SimpleCommunicator::self_comm();
    ///     assert_eq!((alone.rank(), alone.size()), (0, 1));
    /// });
    /// ```
    #[track_caller]
    pub fn self_comm() -> SimpleCommunicator {
        let info = locals::keep(SELF, || {
            let rank = pe::with(|pe| pe.engine.running_rank());
            let info = Info::new(SELF, 0, Members::Range { first: rank, count: 1 });
            *info.name.borrow_mut() = "MPI_COMM_SELF".to_owned();
            info
        });
        SimpleCommunicator(CommunicatorHandle::from_shared(info))
    }

    /// How its ranks are related.
    ///
    /// Example: [`Topology`].
    pub fn topology(&self) -> Topology {
        match self.0.shape {
            Shape::Plain => Topology::Undefined,
            Shape::Cartesian(_) => Topology::Cartesian,
            Shape::Graph(_) => Topology::Graph,
            Shape::DistributedGraph(_) => Topology::DistributedGraph,
        }
    }

    /// The same communicator, as the type that knows its neighbourhoods.
    ///
    /// Example: [`IntoTopology`].
    pub fn into_topology(self) -> IntoTopology {
        match self.topology() {
            Topology::Undefined => IntoTopology::Undefined(self),
            Topology::Cartesian => IntoTopology::Cartesian(CartesianCommunicator(self)),
            Topology::Graph => IntoTopology::Graph(GraphCommunicator(self)),
            Topology::DistributedGraph => {
                IntoTopology::DistributedGraph(DistributedGraphCommunicator(self))
            }
        }
    }
}

impl PartialEq for SimpleCommunicator {
    /// Whether both are one communicator.
    fn eq(&self, other: &SimpleCommunicator) -> bool {
        self.0.is(&other.0)
    }
}

impl Eq for SimpleCommunicator {}

/// How the ranks of a communicator are related.
///
/// # Examples
///
/// ```
/// use vrt::topology::Topology;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     assert_eq!(world.topology(), Topology::Undefined);
///     let other = [1 - world.rank()];
///     let pair = world.create_distributed_graph_adjacent(&other, &other, false);
///     assert_eq!(pair.duplicate().topology(), Topology::DistributedGraph);
/// });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// By a graph that every rank knows.
    Graph,
    /// As a grid.
    Cartesian,
    /// By a graph of which each rank knows its own edges.
    DistributedGraph,
    /// Not at all.
    Undefined,
}

/// A communicator as the type that knows its neighbourhoods.
///
/// # Examples
///
/// ```
/// use vrt::topology::IntoTopology;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let other = [1 - world.rank()];
///     let pair = world.create_distributed_graph_adjacent(&other, &other, false);
///     let IntoTopology::DistributedGraph(copy) = pair.duplicate().into_topology() else {
///         panic!("a duplicate has the same edges")
///     };
///     assert_eq!(copy.sources(), other);
/// });
/// ```
#[derive(Debug)]
pub enum IntoTopology {
    /// A graph.
    Graph(GraphCommunicator),
    /// A grid.
    Cartesian(CartesianCommunicator),
    /// A distributed graph.
    DistributedGraph(DistributedGraphCommunicator),
    /// None.
    Undefined(SimpleCommunicator),
}

macro_rules! communicators {
    ($($name:ty, |$this:ident| $handle:expr;)*) => {$(
        impl AsHandle for $name {
            #[inline]
            fn as_handle(&self) -> &CommunicatorHandle {
                let $this = self;
                $handle
            }
        }

        impl Communicator for $name {}

        impl AsCommunicator for $name {
            type Out = $name;

            fn as_communicator(&self) -> &$name {
                self
            }
        }
    )*};
}
communicators! {
    SimpleCommunicator, |this| &this.0;
    CartesianCommunicator, |this| &this.0.0;
    GraphCommunicator, |this| &this.0.0;
    DistributedGraphCommunicator, |this| &this.0.0;
    InterCommunicator, |this| &this.0;
}

/// Which of the new communicators a rank joins in a split.
///
/// # Examples
///
/// ```
/// use vrt::topology::Color;
/// use vrt::traits::*;
///
/// vrt::run_local(5, |world| {
///     let half = world.split_by_color(Color::with_value(world.rank() % 2)).unwrap();
///     assert_eq!((half.rank(), half.size()), (world.rank() / 2, 3 - world.rank() % 2));
/// });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(Option<u32>);

impl Color {
    /// None of them.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::topology::Color;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let is_even = world.rank() % 2 == 0;
    ///     let color = if is_even { Color::with_value(0) } else { Color::undefined() };
    ///     assert_eq!(world.split_by_color(color).is_some(), is_even);
    /// });
    /// ```
    pub fn undefined() -> Color {
        Color(None)
    }

    /// The one of all ranks with this value.
    ///
    /// # Panics
    /// When the value is negative.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::topology::Color;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(6, |world| {
    ///     let row = world.split_by_color(Color::with_value(world.rank() / 3));
    ///     assert_eq!(row.map(|row| (row.rank(), row.size())), Some((world.rank() % 3, 3)));
    /// });
    /// ```
    #[track_caller]
    pub fn with_value(value: i32) -> Color {
        match u32::try_from(value) {
            Ok(value) => Color(Some(value)),
            Err(_) => panic!("a color of {value}: colors are not negative"),
        }
    }
}

/// How two communicators are related.
///
/// # Examples
///
/// ```
/// use vrt::topology::{Color, CommunicatorRelation};
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     assert_eq!(world.compare(world), CommunicatorRelation::Identical);
///     assert_eq!(world.compare(&world.duplicate()), CommunicatorRelation::Congruent);
///     let reversed = world.split_by_color_with_key(Color::with_value(0), -world.rank()).unwrap();
///     assert_eq!(world.compare(&reversed), CommunicatorRelation::Similar);
/// });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommunicatorRelation {
    /// They are the same.
    Identical,
    /// The same ranks in the same order.
    Congruent,
    /// The same ranks in another order.
    Similar,
    /// Not the same ranks.
    Unequal,
}

/// A rank of a communicator.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let first = world.process_at_rank(0);
///     assert_eq!((first.rank(), first.is_self()), (0, world.rank() == 0));
///     first.send(&world.rank());
///     if first.is_self() {
///         assert_eq!(first.receive::<i32>().0, 0);
///         assert_eq!(world.process_at_rank(1).receive::<i32>().0, 1);
///     }
/// });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    comm: AnyProcess<'a>,
    rank: Rank,
}

impl Process<'_> {
    /// Its rank.
    ///
    /// Example: [`Process`].
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Whether it is the calling rank.
    ///
    /// Example: [`Process`].
    pub fn is_self(&self) -> bool {
        self.comm.0.remote.is_none() && self.rank == self.comm.0.rank
    }
}

impl AsHandle for Process<'_> {
    fn as_handle(&self) -> &CommunicatorHandle {
        self.comm.0
    }
}

impl Communicator for Process<'_> {}

impl<'a> AsCommunicator for Process<'a> {
    type Out = AnyProcess<'a>;

    fn as_communicator(&self) -> &AnyProcess<'a> {
        &self.comm
    }
}

/// Any rank of a communicator, as a source.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     if world.rank() > 0 {
///         return world.process_at_rank(0).send(&world.rank());
///     }
///     for _ in 1..world.size() {
///         let (value, status) = world.any_process().receive::<i32>();
///         assert_eq!(value, status.source_rank());
///     }
/// });
/// ```
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
///
/// # Examples
///
/// ```
/// assert_eq!(vrt::topology::MAX_COUNT, vrt::Count::MAX as usize);
/// ```
pub const MAX_COUNT: usize = Count::MAX as usize;

/// The traits of this module.
pub mod traits {
    pub use super::{AnyCommunicator, AsCommunicator, Communicator, Group};
}
