//! The ranks whose faces touch ours: found through a directory, by sparse exchanges.
//!
//! 1. The rectangle that all faces cover is divided into buckets, each assigned to a rank, its
//!    keeper. Every rank sends its faces to the keepers of the buckets that they touch.
//! 2. A keeper finds out which faces of one mesh touch which of the other in its buckets, and tells
//!    the rank with the source which ranks have the targets, and where.
//! 3. The ranks with sources send their faces to these ranks.

use std::collections::{BTreeMap, BTreeSet};

use mpi::collective::SystemOperation;
use mpi::exchange::SparseExchange;
use mpi::request::multiple_scope;
use mpi::topology::{Rank, SimpleCommunicator};
use mpi::traits::*;

use super::Face;

/// Which values of the source mesh are sent where, and which are received.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Route {
    /// The ranks that need our values, and the positions of the faces among our sources.
    to: Vec<(Rank, Vec<usize>)>,
    /// The ranks whose values we need, and the positions of their faces among [`Self::faces`].
    from: Vec<(Rank, Vec<usize>)>,
    /// The source faces that touch our targets, by their numbers.
    pub faces: Vec<Face>,
}

/// A face as sent to the directory: bucket, 0 for a source or 1 for a target, corners.
type Entry = [f64; 6];

impl Route {
    /// Finds the route from `sources` to `targets`: the calling rank's parts of both meshes,
    /// possibly empty. All ranks must call this.
    pub fn discover(world: &SimpleCommunicator, sources: &[Face], targets: &[Face]) -> Self {
        let directory = Directory::of(world, sources.iter().chain(targets));
        let mut entries: BTreeMap<Rank, Vec<f64>> = BTreeMap::new();
        for (kind, faces) in [(0.0, sources), (1.0, targets)] {
            for face in faces {
                for bucket in directory.buckets(face) {
                    let [a, b, c, d] = [face.low[0], face.low[1], face.high[0], face.high[1]];
                    let entry: Entry = [bucket as f64, kind, a, b, c, d];
                    entries.entry(directory.keeper(bucket)).or_default().extend(entry);
                }
            }
        }
        let told: Vec<(Rank, Vec<f64>)> =
            world.sparse_exchange(&entries.into_iter().collect::<Vec<_>>());
        let answers: Vec<(Rank, Vec<f64>)> = world.sparse_exchange(&partners(&told));

        // Each answer names a rank with targets and where one of them is.
        let mut wanted: BTreeMap<Rank, BTreeSet<usize>> = BTreeMap::new();
        for (_, answer) in &answers {
            for [rank, low_x, low_y, high_x, high_y] in answer.as_chunks().0 {
                let target = Face { number: 0, low: [*low_x, *low_y], high: [*high_x, *high_y] };
                let places = (0..sources.len()).filter(|place| sources[*place].touches(&target));
                wanted.entry(*rank as Rank).or_default().extend(places);
            }
        }
        let to: Vec<(Rank, Vec<usize>)> =
            wanted.into_iter().map(|(rank, places)| (rank, places.into_iter().collect())).collect();
        let offers: Vec<(Rank, Vec<u64>)> = (to.iter())
            .map(|(rank, places)| {
                let words = places.iter().flat_map(|place| {
                    let Face { number, low, high } = sources[*place];
                    [
                        number,
                        low[0].to_bits(),
                        low[1].to_bits(),
                        high[0].to_bits(),
                        high[1].to_bits(),
                    ]
                });
                (*rank, words.collect())
            })
            .collect();
        let mut came: Vec<(Face, Rank, usize)> = Vec::new();
        for (rank, words) in world.sparse_exchange(&offers) {
            for (place, [number, words @ ..]) in words.as_chunks::<5>().0.iter().enumerate() {
                let [a, b, c, d] = words.map(f64::from_bits);
                came.push((Face { number: *number, low: [a, b], high: [c, d] }, rank, place));
            }
        }
        came.sort_by_key(|(face, ..)| face.number);
        let mut from: BTreeMap<Rank, Vec<(usize, usize)>> = BTreeMap::new();
        for (at, (_, rank, place)) in came.iter().enumerate() {
            from.entry(*rank).or_default().push((*place, at));
        }
        let in_order_sent = |mut places: Vec<(usize, usize)>| {
            places.sort_unstable();
            places.into_iter().map(|(_, at)| at).collect()
        };
        Self {
            to,
            from: from.into_iter().map(|(rank, places)| (rank, in_order_sent(places))).collect(),
            faces: came.into_iter().map(|(face, ..)| face).collect(),
        }
    }

    /// The number of ranks that send to this one, and of those it sends to, including itself.
    pub fn partners(&self) -> [usize; 2] {
        [self.from.len(), self.to.len()]
    }

    /// Sends values of our sources to the ranks that need them, and returns those of
    /// [`Self::faces`]. All ranks on the route must call this.
    pub fn send<const N: usize>(
        &self,
        world: &SimpleCommunicator,
        values: &[[f64; N]],
    ) -> Vec<[f64; N]> {
        let outgoing: Vec<Vec<f64>> = (self.to.iter())
            .map(|(_, places)| places.iter().flat_map(|place| values[*place]).collect())
            .collect();
        let mut incoming: Vec<Vec<f64>> =
            self.from.iter().map(|(_, places)| vec![0.0; N * places.len()]).collect();
        let count = outgoing.len() + incoming.len();
        multiple_scope(count, |scope, requests| {
            for ((rank, _), buffer) in self.from.iter().zip(&mut incoming) {
                let from = world.process_at_rank(*rank);
                requests.add(from.immediate_receive_into_with_tag(scope, &mut buffer[..], TAG));
            }
            for ((rank, _), buffer) in self.to.iter().zip(&outgoing) {
                let to = world.process_at_rank(*rank);
                requests.add(to.immediate_send_with_tag(scope, &buffer[..], TAG));
            }
            requests.wait_all(&mut Vec::with_capacity(count));
        });
        let mut came = vec![[0.0; N]; self.faces.len()];
        for ((_, places), values) in self.from.iter().zip(&incoming) {
            for (place, value) in places.iter().zip(values.as_chunks().0) {
                came[*place] = *value;
            }
        }
        came
    }
}

/// The tag of messages with values.
const TAG: mpi::Tag = 7;

/// Maps positions to the ranks that keep them.
struct Directory {
    low: [f64; 2],
    high: [f64; 2],
    /// Buckets along each axis.
    count: usize,
    ranks: usize,
}

impl Directory {
    /// A directory of the rectangle around all faces of all ranks.
    fn of<'a>(world: &SimpleCommunicator, faces: impl Iterator<Item = &'a Face>) -> Self {
        let mut bounds = [f64::NEG_INFINITY; 4];
        for face in faces {
            for axis in 0..2 {
                bounds[axis] = bounds[axis].max(-face.low[axis]);
                bounds[2 + axis] = bounds[2 + axis].max(face.high[axis]);
            }
        }
        let mut all = [0.0; 4];
        world.all_reduce_into(&bounds[..], &mut all[..], SystemOperation::max());
        let ranks = world.size() as usize;
        let count = (ranks as f64).sqrt().ceil() as usize;
        Self { low: [-all[0], -all[1]], high: [all[2], all[3]], count, ranks }
    }

    /// The buckets that a face touches.
    fn buckets(&self, face: &Face) -> impl Iterator<Item = usize> + use<> {
        let range = |axis: usize| {
            let width = (self.high[axis] - self.low[axis]) / self.count as f64;
            let place = |at: f64| (((at - self.low[axis]) / width) as usize).min(self.count - 1);
            place(face.low[axis])..=place(face.high[axis])
        };
        let (x, y, count) = (range(0), range(1), self.count);
        y.flat_map(move |y| x.clone().map(move |x| y * count + x))
    }

    fn keeper(&self, bucket: usize) -> Rank {
        (bucket % self.ranks) as Rank
    }
}

/// The keeper's answers to the ranks that have sources: the ranks and positions of the targets that
/// these touch.
fn partners(told: &[(Rank, Vec<f64>)]) -> Vec<(Rank, Vec<f64>)> {
    let mut buckets: BTreeMap<usize, [Vec<(Rank, Face)>; 2]> = BTreeMap::new();
    for (rank, entries) in told {
        for [bucket, kind, a, b, c, d] in entries.as_chunks::<6>().0 {
            let face = Face { number: 0, low: [*a, *b], high: [*c, *d] };
            buckets.entry(*bucket as usize).or_default()[*kind as usize].push((*rank, face));
        }
    }
    let mut answers: BTreeMap<Rank, BTreeSet<[u64; 5]>> = BTreeMap::new();
    for [sources, targets] in buckets.values() {
        for (source_rank, source) in sources {
            for (target_rank, target) in targets.iter().filter(|(_, face)| source.touches(face)) {
                let [a, b, c, d] = [target.low[0], target.low[1], target.high[0], target.high[1]];
                let answer = [f64::from(*target_rank), a, b, c, d].map(f64::to_bits);
                answers.entry(*source_rank).or_default().insert(answer);
            }
        }
    }
    let values = |answers: BTreeSet<[u64; 5]>| answers.into_iter().flatten().map(f64::from_bits);
    answers.into_iter().map(|(rank, answers)| (rank, values(answers).collect())).collect()
}
