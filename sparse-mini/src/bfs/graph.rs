//! Graphs in parts: each rank has a range of the vertices and the arcs that leave them.

use libm::log;
use mpi::Rank;
use mpi::exchange::SparseExchange;
use mpi::traits::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// A graph to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Graph {
    /// The paper's (section 5.1.1): in each part an Erdős–Rényi graph, `remote` arcs to vertices of
    /// other parts, which are known only at their sources, and a Hamiltonian cycle.
    Balanced {
        /// Vertices of each part.
        vertices: u32,
        /// Probability of each edge inside a part.
        probability: f64,
        /// Arcs from each part to others.
        remote: u32,
    },
    /// Graph500's: a Kronecker graph of 2^scale vertices and `factor` times as many edges.
    Kronecker {
        /// Binary logarithm of the number of vertices.
        scale: u32,
        /// Edges per vertex.
        factor: u32,
    },
}

/// A rank's part of a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Vertices of the whole graph.
    pub vertices: u64,
    parts: u64,
    /// The first vertex of this part.
    pub first: u64,
    /// Arcs of the part's vertices, contiguously.
    begins: Vec<usize>,
    targets: Vec<u64>,
}

/// The first vertex of a part; parts are as equal as possible.
fn first_of(part: u64, parts: u64, vertices: u64) -> u64 {
    (u128::from(part) * u128::from(vertices) / u128::from(parts)) as u64
}

impl Part {
    fn new(vertices: u64, me: usize, parts: usize, mut arcs: Vec<(u64, u64)>) -> Part {
        let first = first_of(me as u64, parts as u64, vertices);
        let end = first_of(me as u64 + 1, parts as u64, vertices);
        arcs.sort_unstable();
        arcs.dedup();
        let mut begins = vec![0; (end - first) as usize + 1];
        for (from, _) in &arcs {
            begins[(from - first) as usize + 1] += 1;
        }
        for i in 1..begins.len() {
            begins[i] += begins[i - 1];
        }
        let targets = arcs.into_iter().map(|(_, to)| to).collect();
        Part { vertices, parts: parts as u64, first, begins, targets }
    }

    /// Number of vertices here.
    pub fn len(&self) -> usize {
        self.begins.len() - 1
    }

    /// Whether the part is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of arcs that leave vertices here.
    pub fn arcs(&self) -> usize {
        self.targets.len()
    }

    /// The targets of a vertex's arcs; the vertex is given by its number in this part.
    pub fn neighbors(&self, local: usize) -> &[u64] {
        &self.targets[self.begins[local]..self.begins[local + 1]]
    }

    /// The number of a vertex in this part, if it belongs to it.
    pub fn local(&self, vertex: u64) -> Option<usize> {
        let local = vertex.checked_sub(self.first)? as usize;
        (local < self.len()).then_some(local)
    }

    /// The part that has a vertex.
    pub fn owner(&self, vertex: u64) -> Rank {
        owner(vertex, self.parts, self.vertices)
    }
}

fn owner(vertex: u64, parts: u64, vertices: u64) -> Rank {
    // The last part whose first vertex is not behind it.
    let guess = (u128::from(vertex) * u128::from(parts) / u128::from(vertices)) as u64;
    let next = first_of(guess + 1, parts, vertices) <= vertex;
    (guess + u64::from(next)) as Rank
}

impl Graph {
    /// Number of vertices with this many parts.
    pub fn vertices(&self, parts: usize) -> u64 {
        match self {
            Graph::Balanced { vertices, .. } => u64::from(*vertices) * parts as u64,
            Graph::Kronecker { scale, .. } => 1 << scale,
        }
    }

    /// This rank's part of the graph with a seed. Collective.
    pub fn build(&self, comm: &impl Communicator, seed: u64) -> Part {
        let (me, parts) = (comm.rank() as usize, comm.size() as usize);
        let vertices = self.vertices(parts);
        match *self {
            Graph::Balanced { .. } => {
                Part::new(vertices, me, parts, self.balanced_arcs(me, parts, seed))
            }
            Graph::Kronecker { scale, factor } => {
                let edges = u64::from(factor) << scale;
                let share = first_of(me as u64, parts as u64, edges)
                    ..first_of(me as u64 + 1, parts as u64, edges);
                let mut arcs = Vec::new();
                for edge in share {
                    let (a, b) = kronecker_edge(scale, seed, edge);
                    if a != b {
                        arcs.extend([(a, b), (b, a)]);
                    }
                }
                let owned = arcs.iter().map(|arc| (owner(arc.0, parts as u64, vertices), *arc));
                let mut owned: Vec<(Rank, (u64, u64))> = owned.collect();
                owned.sort_unstable();
                let messages: Vec<(Rank, Vec<u64>)> = owned
                    .chunk_by(|a, b| a.0 == b.0)
                    .map(|same| (same[0].0, same.iter().flat_map(|(_, (a, b))| [*a, *b]).collect()))
                    .collect();
                let came = comm.sparse_exchange(&messages);
                let arcs = came.iter().flat_map(|(_, arcs)| arcs.chunks_exact(2));
                Part::new(vertices, me, parts, arcs.map(|arc| (arc[0], arc[1])).collect())
            }
        }
    }

    /// The arcs from the vertices of a part of the paper's graph; none for another graph.
    fn balanced_arcs(&self, part: usize, parts: usize, seed: u64) -> Vec<(u64, u64)> {
        let Graph::Balanced { vertices: own, probability, remote } = *self else {
            return Vec::new();
        };
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(part as u64);
        let (own, all) = (u64::from(own), u64::from(own) * parts as u64);
        let first = own * part as u64;
        let mut arcs: Vec<(u64, u64)> =
            (first..first + own).map(|vertex| (vertex, (vertex + 1) % all)).collect();
        // From one chosen pair to the next the distance is geometric: pairs are not all looked at.
        let (mut high, mut low) = (1u64, -1i64);
        while probability > 0.0 && high < own {
            let skip = if probability >= 1.0 {
                0.0
            } else {
                (log(1.0 - random.random::<f64>()) / log(1.0 - probability)).floor()
            };
            low = low.saturating_add(1).saturating_add(skip.min(1e15) as i64);
            while high < own && low >= high as i64 {
                low -= high as i64;
                high += 1;
            }
            if high < own {
                let (a, b) = (first + high, first + low as u64);
                arcs.extend([(a, b), (b, a)]);
            }
        }
        for _ in 0..if parts > 1 { remote } else { 0 } {
            let from = first + random.random_range(0..own);
            let to = random.random_range(0..all - own);
            arcs.push((from, if to < first { to } else { to + own }));
        }
        arcs
    }
}

/// An edge of the Kronecker graph of the Graph500 benchmark (A, B, C = 0.57, 0.19, 0.19), with
/// vertices renumbered so that their degrees do not follow their numbers.
fn kronecker_edge(scale: u32, seed: u64, edge: u64) -> (u64, u64) {
    let (mut a, mut b) = (0u64, 0u64);
    let mut state = mix(seed ^ mix(edge.wrapping_add(0x632b_e59b_d9b4_e019)));
    for _ in 0..scale {
        state = mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
        let dice = (state >> 11) as f64 / (1u64 << 53) as f64;
        let (high, low) = match dice {
            d if d < 0.57 => (0, 0),
            d if d < 0.76 => (0, 1),
            d if d < 0.95 => (1, 0),
            _ => (1, 1),
        };
        (a, b) = (a << 1 | high, b << 1 | low);
    }
    (renumber(a, scale, seed), renumber(b, scale, seed))
}

/// The finaliser of SplitMix64.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A permutation of the numbers of `bits` bits: each step is invertible.
fn renumber(mut x: u64, bits: u32, seed: u64) -> u64 {
    let mask = (1u64 << bits) - 1;
    for round in 0..3u64 {
        x = x.wrapping_mul(mix(seed.wrapping_add(round)) | 1) & mask;
        x ^= x >> (bits / 2 + 1);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertices_are_renumbered_one_to_one() {
        for bits in [1, 2, 5, 10] {
            let mut all: Vec<u64> = (0..1 << bits).map(|x| renumber(x, bits, 7)).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..1 << bits));
        }
    }

    #[test]
    fn owners_have_their_vertices() {
        for (parts, vertices) in [(1u64, 5u64), (7, 64), (64, 100), (3, 2)] {
            for part in 0..parts {
                for vertex in first_of(part, parts, vertices)..first_of(part + 1, parts, vertices) {
                    assert_eq!(owner(vertex, parts, vertices) as u64, part);
                }
            }
        }
    }

    #[test]
    fn edges_inside_a_part_are_as_many_as_their_probability_says() {
        let graph = Graph::Balanced { vertices: 1000, probability: 0.03, remote: 6 };
        let arcs = graph.balanced_arcs(1, 3, 1);
        let inside = arcs.iter().filter(|(_, to)| (1000..2000).contains(to)).count() - 999;
        let expected = 0.03 * 1000.0 * 999.0;
        assert!((inside as f64 / expected - 1.0).abs() < 0.03, "{inside} {expected}");
        assert_eq!(arcs.iter().filter(|(_, to)| !(1000..2000).contains(to)).count(), 6 + 1);
    }
}
