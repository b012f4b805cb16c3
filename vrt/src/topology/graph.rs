//! Ranks as a graph (MPI-4.1 sections 8.5.3 to 8.5.5).

use crate::Count;
use crate::operation::Site;
use crate::operation::{At, OrRefuse, block_on_or_refuse};
use crate::topology::{Rank, SimpleCommunicator};
use vrt_core::comm::create;
use vrt_core::comm::{
    CommunicatorHandle,
    shape::{Edge, Neighbors, Shape},
};

fn edges(ranks: &[Rank]) -> Vec<Edge> {
    ranks.iter().map(|rank| Edge { rank: Some(*rank), label: 0 }).collect()
}

fn ranks(edges: &[Edge]) -> Vec<Rank> {
    edges.iter().filter_map(|edge| edge.rank).collect()
}

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
            Shape::Graph(neighbors) => ranks(&neighbors.destinations),
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
    fn edges(&self) -> &Neighbors {
        match &self.0.0.shape {
            Shape::DistributedGraph(neighbors) => neighbors,
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
        ranks(&self.edges().sources)
    }

    /// To whom the calling rank sends.
    ///
    /// Example: [`sources`](Self::sources).
    pub fn destinations(&self) -> Vec<Rank> {
        ranks(&self.edges().destinations)
    }
}

pub(crate) fn create(
    comm: &CommunicatorHandle,
    index: &[Count],
    all_edges: &[Rank],
    site: Site,
) -> Option<GraphCommunicator> {
    let nodes = index.len();
    let increasing = index.first().is_none_or(|first| *first >= 0)
        && index.windows(2).all(|pair| pair[0] <= pair[1]);
    let last = index.last().copied().unwrap_or_default();
    let inside = all_edges.iter().all(|rank| *rank >= 0 && (*rank as usize) < nodes);
    if !increasing || last as usize != all_edges.len() || !inside || nodes > comm.size as usize {
        panic!(
            "rank {} in {}: index {index:?} and edges {all_edges:?} are no graph of at most \
             {} ranks",
            comm.rank, site, comm.size
        );
    }
    let me = comm.rank as usize;
    let mine = index.get(me).map(|end| {
        let begin = if me == 0 { 0 } else { index[me - 1] };
        edges(&all_edges[begin as usize..*end as usize])
    });
    let color = mine.as_ref().map(|_| 0);
    let mine = mine.unwrap_or_default();
    let shape = Shape::Graph(Neighbors { sources: mine.clone(), destinations: mine });
    let make = create::split(comm, color, comm.rank, shape, site);
    let handle = block_on_or_refuse(make, site)?;
    Some(GraphCommunicator(SimpleCommunicator(handle)))
}

pub(crate) fn create_adjacent(
    comm: &CommunicatorHandle,
    sources: &[Rank],
    destinations: &[Rank],
    site: Site,
) -> DistributedGraphCommunicator {
    create::check_neighbors(comm, sources).at(site).or_refuse();
    create::check_neighbors(comm, destinations).at(site).or_refuse();
    let neighbors = Neighbors { sources: edges(sources), destinations: edges(destinations) };
    let make = create::same_ranks(comm, Shape::DistributedGraph(neighbors), site);
    let handle = block_on_or_refuse(make, site);
    DistributedGraphCommunicator(SimpleCommunicator(handle))
}

pub(crate) fn create_from_edges(
    comm: &CommunicatorHandle,
    named: &[(Rank, Rank)],
    site: Site,
) -> DistributedGraphCommunicator {
    let ends: Vec<Rank> = named.iter().flat_map(|(from, to)| [*from, *to]).collect();
    create::check_neighbors(comm, &ends).at(site).or_refuse();
    let collect = async {
        // Every rank gets all edges: how many each names, then the edges, padded to the most.
        let counts = create::all_gather(comm, [named.len() as i32], site).await?;
        let most = counts.iter().map(|[n]| *n).max().unwrap_or_default();
        let mut all = Vec::new();
        for i in 0..most as usize {
            let (from, to) = named.get(i).copied().unwrap_or((-1, -1));
            all.push(create::all_gather(comm, [from, to], site).await?);
        }
        // In the order of the ranks that name them.
        let edges = (0..comm.size as usize)
            .flat_map(|rank| all.iter().map(move |row| row[rank]))
            .filter(|[from, _]| *from >= 0);
        Ok(edges.collect::<Vec<[i32; 2]>>())
    };
    let all = block_on_or_refuse(collect, site);
    let me = comm.rank;
    let sources: Vec<Rank> =
        all.iter().filter(|[_, to]| *to == me).map(|[from, _]| *from).collect();
    let destinations: Vec<Rank> =
        all.iter().filter(|[from, _]| *from == me).map(|[_, to]| *to).collect();
    create_adjacent(comm, &sources, &destinations, site)
}
