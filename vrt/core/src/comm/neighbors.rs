//! The neighbours of a rank: which they are, and the exchange among them (MPI-4.1 section 8.6).

use crate::comm::algorithms::{Collective, In, Out};
use crate::comm::graph::{Adjacency, Weights};
use crate::comm::handle::CommunicatorHandle;
use crate::comm::messages;
use crate::comm::shape::Shape;
use crate::error::{Error, Site};
use crate::operation::Pending;
use crate::pe::{self, Completion, Started};
use crate::{Count, Rank};

/// The ranks from which a rank receives and to which it sends.
#[derive(Clone, Debug, Default)]
pub struct Neighbors {
    /// The ranks from which it receives, in the order of its receive buffers.
    pub sources: Vec<Edge>,
    /// The ranks to which it sends, in the order of its send buffers.
    pub destinations: Vec<Edge>,
}

/// A neighbour, or a missing one. The label distinguishes several edges between two ranks; edges with equal labels are
/// matched in order.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The neighbour in the communicator; `None` beyond the border of an open dimension.
    pub rank: Option<Rank>,
    /// Identifies the edge: both ends of an edge have the same label.
    pub label: u32,
}

/// The neighbours of the calling rank.
///
/// # Errors
/// The communicator is no grid and no graph.
pub fn neighbors(comm: &CommunicatorHandle) -> Result<Neighbors, Error> {
    let edges = |ranks: &[Rank]| -> Vec<Edge> {
        ranks.iter().map(|rank| Edge { rank: Some(*rank), label: 0 }).collect()
    };
    match &comm.shape {
        Shape::Plain => Err(Error::NoNeighbors),
        Shape::Cartesian(grid) => {
            let mut around = Neighbors::default();
            // What is sent up in a dimension is received from below.
            for (below, [down, up]) in (0u32..).step_by(2).zip(grid.beside(comm.rank)) {
                let above = below.saturating_add(1);
                for (rank, sent, received) in [(down, below, above), (up, above, below)] {
                    around.destinations.push(Edge { rank, label: sent });
                    around.sources.push(Edge { rank, label: received });
                }
            }
            Ok(around)
        }
        Shape::Graph(graph) => {
            let mine = edges(graph.neighbors(comm.rank).unwrap_or_default());
            Ok(Neighbors { sources: mine.clone(), destinations: mine })
        }
        Shape::DistributedGraph(around) => Ok(Neighbors {
            sources: edges(&around.sources),
            destinations: edges(&around.destinations),
        }),
    }
}

/// Sends a part to each neighbour and receives one from each: messages go straight from rank to rank. Where a neighbour
/// is missing nothing is sent, and that part of the receive buffer stays as it is.
///
/// # Errors
/// A part that came differs from its buffer in length or type; said when everything has been sent and received.
///
/// # Safety
/// `ins`, a part for each destination, are readable, and `outs`, one for each source, writable until the future is
/// ready; none overlaps another.
pub async unsafe fn exchange(
    collective: &Collective,
    neighbors: &Neighbors,
    ins: &[In],
    outs: &[Out],
) -> Result<(), Error> {
    let wait = |started: Started| -> Result<Completion, Pending> {
        match started {
            Started::Done(outcome) => Ok(outcome),
            Started::Pending(request, _) => Err(Pending::new(request, collective.site, None)),
        }
    };
    let ranked = |edges: &[Edge]| -> Vec<Option<(usize, u32)>> {
        let rank = |edge: &Edge| edge.rank.and_then(|rank| usize::try_from(rank).ok());
        edges.iter().map(|edge| Some((rank(edge)?, edge.label))).collect()
    };
    collective.number();
    let mut receiving = Vec::with_capacity(outs.len());
    for (source, out) in ranked(&neighbors.sources).into_iter().zip(outs) {
        let Some((from, label)) = source else { continue };
        let pattern = collective.pattern(label, from);
        // SAFETY: B1.
        let started = pe::with(|pe| unsafe { pe.engine.receive(pattern, out.room()) });
        receiving.push((from, out.1, wait(started)));
    }
    let mut sending = Vec::with_capacity(ins.len());
    for (destination, data) in ranked(&neighbors.destinations).into_iter().zip(ins) {
        let Some((to, label)) = destination else { continue };
        let message = collective.outbound(label, to, *data);
        // SAFETY: B1.
        sending.push(wait(pe::with(|pe| unsafe { pe.engine.send(&message) })));
    }
    // All that was begun is waited for, also if something that came does not fit.
    let mut came = Ok(());
    for (from, len, receive) in receiving {
        let outcome = match receive {
            Ok(outcome) => outcome,
            Err(pending) => pending.await?,
        };
        came = came.and_then(|()| collective.check_came(&outcome, len, from));
    }
    for pending in sending.into_iter().filter_map(Result::err) {
        pending.await?;
    }
    came
}

/// An edge that a rank names, which need not be one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedEdge {
    /// Where it begins.
    pub from: Rank,
    /// Where it ends.
    pub to: Rank,
    /// Its weight.
    pub weight: Count,
}

/// The own edges of every rank, of those that all ranks name: in the order of the ranks that name them, and in theirs.
/// Collective.
///
/// # Errors
/// An edge has an end that is no rank; those of the reduction by which ranks learn how many messages come.
pub async fn adjacency(
    comm: &CommunicatorHandle,
    named: &[NamedEdge],
    is_weighted: bool,
    site: Site,
) -> Result<Adjacency, Error> {
    // What each end is told: the other end, the weight, and whether the edge leads to it.
    let mut told: Vec<(usize, [i32; 3])> = Vec::new();
    for NamedEdge { from, to, weight } in named {
        for (end, other, comes) in [(from, to, 0), (to, from, 1)] {
            comm.job_rank(*end)?;
            told.push((end.unsigned_abs() as usize, [*other, *weight, comes]));
        }
    }
    told.sort_by_key(|(end, _)| *end);
    let to_each = |of_one: &[(usize, [i32; 3])]| {
        (of_one[0].0, of_one.iter().flat_map(|(_, edge)| *edge).collect::<Vec<i32>>())
    };
    let outgoing = told.chunk_by(|one, other| one.0 == other.0).map(to_each).collect();
    let came = messages::exchange(comm, outgoing, site).await?;
    let (mut around, mut weights) = (Adjacency::default(), Weights::default());
    for [other, weight, comes] in came.iter().flat_map(|(_, edges)| edges.as_chunks().0) {
        let (ends, of_ends) = match comes {
            1 => (&mut around.sources, &mut weights.sources),
            _ => (&mut around.destinations, &mut weights.destinations),
        };
        ends.push(*other);
        of_ends.push(*weight);
    }
    around.weights = is_weighted.then_some(weights);
    Ok(around)
}
