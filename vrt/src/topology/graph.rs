//! Ranks as a graph (MPI-4.1 sections 8.5.3 to 8.5.5).

use crate::Count;
use crate::operation::Site;
use crate::operation::{At, OrRefuse, block_on_or_refuse};
use crate::topology::{Rank, SimpleCommunicator};
use vrt_core::comm::CommunicatorHandle;
use vrt_core::comm::create;
use vrt_core::comm::graph::{Adjacency, Graph};
use vrt_core::comm::neighbors::{NamedEdge, adjacency};
use vrt_core::comm::shape::Shape;

/// A communicator whose ranks are a graph that each of them knows.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     // A row: rank 1 is between the two others.
///     let row = world.create_graph_communicator(&[1, 3, 4], &[1, 0, 2, 1], false).unwrap();
///     let mut theirs = vec![-1; row.neighbors().len()];
///     row.neighbor_all_gather_into(&world.rank(), &mut theirs);
///     assert_eq!(theirs, row.neighbors());
/// });
/// ```
#[derive(Clone, Debug)]
pub struct GraphCommunicator(pub(crate) SimpleCommunicator);

impl GraphCommunicator {
    /// The calling rank's neighbours.
    ///
    /// Example: [`GraphCommunicator`].
    pub fn neighbors(&self) -> Vec<Rank> {
        match &self.0.0.shape {
            Shape::Graph(graph) => graph.neighbors(self.0.0.rank).unwrap_or_default().to_vec(),
            _ => unreachable!("only graphs are made graph communicators"),
        }
    }
}

/// A communicator whose ranks are a graph of which each knows its own edges.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(4, |world| {
///     // A tree: each rank knows its parent and its children.
///     let (me, n) = (world.rank(), world.size());
///     let parent: Vec<_> = (me > 0).then(|| (me - 1) / 2).into_iter().collect();
///     let children: Vec<_> = [2 * me + 1, 2 * me + 2].into_iter().filter(|it| *it < n).collect();
///     let down = world.create_distributed_graph_adjacent(&parent, &children, false);
///     let mut from_parent = vec![0; parent.len()];
///     down.neighbor_all_gather_into(&me, &mut from_parent[..]);
///     assert_eq!(from_parent, parent);
/// });
/// ```
#[derive(Clone, Debug)]
pub struct DistributedGraphCommunicator(pub(crate) SimpleCommunicator);

impl DistributedGraphCommunicator {
    fn edges(&self) -> &Adjacency {
        match &self.0.0.shape {
            Shape::DistributedGraph(around) => around,
            _ => unreachable!("only graphs are made graph communicators"),
        }
    }

    /// From whom the calling rank receives.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (left, right) = ((world.rank() + 2) % 3, (world.rank() + 1) % 3);
    ///     let ring = world.create_distributed_graph_adjacent(&[left], &[right], false);
    ///     assert_eq!((ring.sources(), ring.destinations()), (vec![left], vec![right]));
    /// });
    /// ```
    pub fn sources(&self) -> Vec<Rank> {
        self.edges().sources.clone()
    }

    /// To whom the calling rank sends.
    ///
    /// Example: [`sources`](Self::sources).
    pub fn destinations(&self) -> Vec<Rank> {
        self.edges().destinations.clone()
    }
}

pub(crate) fn create(
    comm: &CommunicatorHandle,
    index: &[Count],
    edges: &[Rank],
    site: Site,
) -> Option<GraphCommunicator> {
    let graph = match Graph::new(index.to_vec(), edges.to_vec(), comm.size) {
        Ok(graph) => graph,
        Err(error) => panic!("rank {} in {site}: {error}", comm.rank),
    };
    let make = create::in_shape(comm, index.len(), Shape::Graph(graph), site);
    Some(GraphCommunicator(SimpleCommunicator(block_on_or_refuse(make, site)?)))
}

pub(crate) fn create_adjacent(
    comm: &CommunicatorHandle,
    sources: &[Rank],
    destinations: &[Rank],
    site: Site,
) -> DistributedGraphCommunicator {
    create::check_neighbors(comm, sources).at(site).or_refuse();
    create::check_neighbors(comm, destinations).at(site).or_refuse();
    let (sources, destinations) = (sources.to_vec(), destinations.to_vec());
    of_adjacency(comm, Adjacency { sources, destinations, weights: None }, site)
}

fn of_adjacency(
    comm: &CommunicatorHandle,
    around: Adjacency,
    site: Site,
) -> DistributedGraphCommunicator {
    let (size, shape) = (comm.members.len(), Shape::DistributedGraph(around));
    match block_on_or_refuse(create::in_shape(comm, size, shape, site), site) {
        Some(handle) => DistributedGraphCommunicator(SimpleCommunicator(handle)),
        None => unreachable!("every rank has a place"),
    }
}

pub(crate) fn create_from_edges(
    comm: &CommunicatorHandle,
    named: &[(Rank, Rank)],
    site: Site,
) -> DistributedGraphCommunicator {
    let ends: Vec<Rank> = named.iter().flat_map(|(from, to)| [*from, *to]).collect();
    create::check_neighbors(comm, &ends).at(site).or_refuse();
    let edge = |(from, to): &(Rank, Rank)| NamedEdge { from: *from, to: *to, weight: 1 };
    let named: Vec<NamedEdge> = named.iter().map(edge).collect();
    let around = block_on_or_refuse(adjacency(comm, &named, false, site), site);
    of_adjacency(comm, around, site)
}
