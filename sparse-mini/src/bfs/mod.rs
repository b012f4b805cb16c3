//! Breadth-first search, level by level, with a sparse exchange of remote vertices in each level
//! (the paper's section 5.1, algorithm 3).

mod graph;

pub use graph::{Graph, Part};

use mpi::Rank;
use mpi::collective::SystemOperation;
use mpi::exchange::SparseExchange;
use mpi::traits::*;

/// The distance of a vertex that the search did not reach.
pub const UNREACHED: u32 = u32::MAX;

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The distance of each vertex of this part from the root.
    pub distances: Vec<u32>,
    /// Number of levels, the same on all ranks.
    pub levels: u32,
    /// The greatest number of ranks that this one sent to in a level.
    pub neighbors: usize,
}

/// Groups pairs (owner, word) into messages, one for each owner, without repetitions.
fn by_owner(mut words: Vec<(Rank, u64)>) -> Vec<(Rank, Vec<u64>)> {
    words.sort_unstable();
    words.dedup();
    let same = words.chunk_by(|a, b| a.0 == b.0);
    same.map(|same| (same[0].0, same.iter().map(|(_, word)| *word).collect())).collect()
}

/// Whether any rank has work left.
fn any(comm: &impl Communicator, left: bool) -> bool {
    let mut all = false;
    comm.all_reduce_into(&left, &mut all, SystemOperation::logical_or());
    all
}

/// Searches a graph from a root. Collective.
pub fn search(comm: &impl Communicator, part: &Part, root: u64) -> Search {
    let mut distances = vec![UNREACHED; part.len()];
    let mut frontier = Vec::new();
    if let Some(local) = part.local(root) {
        distances[local] = 0;
        frontier.push(local);
    }
    let (mut level, mut neighbors) = (0, 0);
    while any(comm, !frontier.is_empty()) {
        level += 1;
        let (mut next, mut remote) = (Vec::new(), Vec::new());
        let mut reach = |local: usize, next: &mut Vec<usize>| {
            if distances[local] == UNREACHED {
                distances[local] = level;
                next.push(local);
            }
        };
        for vertex in frontier {
            for target in part.neighbors(vertex) {
                match part.local(*target) {
                    Some(local) => reach(local, &mut next),
                    None => remote.push((part.owner(*target), *target)),
                }
            }
        }
        let messages = by_owner(remote);
        neighbors = neighbors.max(messages.len());
        for (_, vertices) in comm.sparse_exchange(&messages) {
            vertices.iter().filter_map(|it| part.local(*it)).for_each(|it| reach(it, &mut next));
        }
        frontier = next;
    }
    Search { distances, levels: level, neighbors }
}

/// Number of vertices, over all ranks, whose distance is wrong. Collective.
///
/// A vertex's distance must be one more than the least distance of the vertices with an arc to it;
/// the root's is 0. Only the true distances satisfy this: along any path to a vertex they grow by
/// at most one per arc, and from any reached vertex a path leads back to the root on which they
/// fall.
pub fn wrong(comm: &impl Communicator, part: &Part, root: u64, distances: &[u32]) -> u64 {
    let mut least = vec![UNREACHED; part.len()];
    let mut remote: Vec<(Rank, u64, u32)> = Vec::new();
    for (vertex, distance) in distances.iter().enumerate().filter(|(_, d)| **d != UNREACHED) {
        for target in part.neighbors(vertex) {
            match part.local(*target) {
                Some(local) => least[local] = least[local].min(distance + 1),
                None => remote.push((part.owner(*target), *target, distance + 1)),
            }
        }
    }
    // The least distance for each target comes first.
    remote.sort_unstable();
    remote.dedup_by_key(|(_, target, _)| *target);
    let messages: Vec<(Rank, Vec<u64>)> = remote
        .chunk_by(|a, b| a.0 == b.0)
        .map(|same| (same[0].0, same.iter().flat_map(|(_, to, d)| [*to, u64::from(*d)]).collect()))
        .collect();
    for (_, words) in comm.sparse_exchange(&messages) {
        for word in words.chunks_exact(2) {
            if let Some(local) = part.local(word[0]) {
                least[local] = least[local].min(word[1] as u32);
            }
        }
    }
    if let Some(local) = part.local(root) {
        least[local] = 0;
    }
    let wrong = least.iter().zip(distances).filter(|(a, b)| a != b).count() as u64;
    let mut all = 0;
    comm.all_reduce_into(&wrong, &mut all, SystemOperation::sum());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::Mutex;

    /// Searches with one queue.
    fn sequential(parts: &[Part], root: u64) -> Vec<u32> {
        let arcs = parts.iter().flat_map(|part| (0..part.len()).map(|v| part.neighbors(v)));
        let arcs: Vec<&[u64]> = arcs.collect();
        let mut distances = vec![UNREACHED; arcs.len()];
        distances[root as usize] = 0;
        let mut queue = VecDeque::from([root]);
        while let Some(vertex) = queue.pop_front() {
            for target in arcs[vertex as usize] {
                if distances[*target as usize] == UNREACHED {
                    distances[*target as usize] = distances[vertex as usize] + 1;
                    queue.push_back(*target);
                }
            }
        }
        distances
    }

    #[test]
    fn distances_are_those_of_a_sequential_search() {
        for graph in [
            Graph::Balanced { vertices: 50, probability: 0.05, remote: 3 },
            Graph::Kronecker { scale: 8, factor: 4 },
        ] {
            for ranks in [1, 2, 7, 64] {
                let found = Mutex::new(vec![None; ranks]);
                mpi::run_local(ranks as u32, |world| {
                    let part = graph.build(world, 5);
                    let search = search(world, &part, 3);
                    assert_eq!(wrong(world, &part, 3, &search.distances), 0);
                    let mut spoilt = search.distances.clone();
                    if let Some(distance) = spoilt.last_mut().filter(|_| world.rank() == 0) {
                        *distance = distance.wrapping_sub(1);
                    }
                    assert!(wrong(world, &part, 3, &spoilt) > 0);
                    found.lock().unwrap()[world.rank() as usize] = Some((part, search.distances));
                });
                let found: Vec<(Part, Vec<u32>)> =
                    found.into_inner().unwrap().into_iter().map(Option::unwrap).collect();
                let (parts, distances): (Vec<Part>, Vec<Vec<u32>>) = found.into_iter().unzip();
                assert_eq!(distances.concat(), sequential(&parts, 3), "{graph:?}, {ranks} ranks");
            }
        }
    }

    #[test]
    fn a_kronecker_graph_does_not_depend_on_the_ranks() {
        let arcs = |ranks| {
            let all = Mutex::new(Vec::new());
            mpi::run_local(ranks, |world| {
                let part = Graph::Kronecker { scale: 7, factor: 8 }.build(world, 1);
                let arcs = (0..part.len())
                    .flat_map(|v| part.neighbors(v).iter().map(move |to| (v as u64, *to)));
                let arcs: Vec<(u64, u64)> = arcs.map(|(v, to)| (v + part.first, to)).collect();
                all.lock().unwrap().extend(arcs);
            });
            let mut all = all.into_inner().unwrap();
            all.sort_unstable();
            all
        };
        assert_eq!(arcs(1), arcs(5));
    }
}
