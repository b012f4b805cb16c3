//! When each PE would finish what it has so far, and which would finish a piece of work first.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

use crate::{bounds::Bounds, model::LoadModel};

/// PEs of one speed share a heap; with more speeds than this, PEs of similar speed do.
const HEAPS: usize = 64;

/// The load of each PE while objects are being placed.
pub(crate) struct PeFinish {
    speeds: Vec<f64>,
    seconds: Vec<f64>,
    /// A PE has an entry in its heap for each load that it has had; all but the last are stale.
    heaps: Vec<BinaryHeap<Reverse<Entry>>>,
    /// For each PE, its heap.
    heap_of: Vec<usize>,
}

impl PeFinish {
    /// Every PE with its background load and the objects that cannot move.
    pub(crate) fn new(model: &LoadModel) -> Self {
        let speeds = model.pes().iter().map(|pe| pe.speed);
        Self::of(speeds.zip(Bounds::new(model).fixed))
    }

    /// PEs of these speeds that have so many seconds of work already.
    pub(crate) fn of(pes: impl Iterator<Item = (f64, f64)>) -> Self {
        let (speeds, seconds): (Vec<f64>, Vec<f64>) = pes.unzip();
        let (heap_of, heaps) = group_by_speed(&speeds);
        let heaps = (0..heaps).map(|_| BinaryHeap::new()).collect();
        let mut this = Self { speeds, seconds, heaps, heap_of };
        for pe in 0..this.seconds.len() {
            this.enter(pe);
        }
        this
    }

    /// The PE that would finish `work` first, and when. Of several, the one with the smallest
    /// number.
    pub(crate) fn earliest(&mut self, work: f64) -> (usize, f64) {
        let mut best = (usize::MAX, f64::INFINITY);
        for heap in &mut self.heaps {
            while let Some(Reverse(top)) = heap.peek() {
                if self.seconds[top.pe] == top.seconds {
                    let when = top.seconds + work / self.speeds[top.pe];
                    if when < best.1 || (when == best.1 && top.pe < best.0) {
                        best = (top.pe, when);
                    }
                    break;
                }
                heap.pop();
            }
        }
        best
    }

    /// When `pe` would finish, were `work` added.
    pub(crate) fn with(&self, pe: usize, work: f64) -> f64 {
        self.seconds[pe] + work / self.speeds[pe]
    }

    pub(crate) fn add(&mut self, pe: usize, work: f64) {
        self.seconds[pe] = self.with(pe, work);
        self.enter(pe);
    }

    fn enter(&mut self, pe: usize) {
        self.heaps[self.heap_of[pe]].push(Reverse(Entry { seconds: self.seconds[pe], pe }));
    }
}

/// For each PE a group of its speed, or of similar ones, and how many groups there are.
fn group_by_speed(of_pes: &[f64]) -> (Vec<usize>, usize) {
    let mut speeds = of_pes.to_vec();
    speeds.sort_by(f64::total_cmp);
    speeds.dedup();
    let group = |speed: f64| {
        if speeds.len() <= HEAPS {
            return speeds.partition_point(|&it| it < speed);
        }
        let (low, high) = (speeds[0].ln(), speeds[speeds.len() - 1].ln());
        (((speed.ln() - low) / (high - low) * HEAPS as f64) as usize).min(HEAPS - 1)
    };
    let groups = of_pes.iter().map(|&speed| group(speed)).collect();
    (groups, speeds.len().min(HEAPS))
}

/// A heap entry, ordered by load, then by PE.
struct Entry {
    seconds: f64,
    pe: usize,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.seconds.total_cmp(&other.seconds).then(self.pe.cmp(&other.pe))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Pe;

    #[test]
    fn many_speeds_share_heaps_and_fast_pes_still_come_first() {
        let speed = |it: u32| 1.0 + f64::from(it) / 100.0;
        let pes = (0..500).map(|it| Pe { speed: speed(it), ..Pe::default() }).collect();
        let model = LoadModel::new(pes, vec![], vec![]).expect("sound");
        let mut finish = PeFinish::new(&model);
        assert_eq!(finish.heaps.len(), HEAPS);
        let (pe, when) = finish.earliest(1.0);
        assert!(pe > 450, "{pe}");
        finish.add(pe, 1.0);
        assert_eq!(finish.with(pe, 0.0), when);
        assert_ne!(finish.earliest(1.0).0, pe);
    }
}
