//! Recursive halving: splits the PEs in two halves and the objects in two parts, and repeats this
//! within each.
//!
//! The PEs are ordered by node, then number, and are cut between nodes as long as there are
//! several, so that objects of one part end up on one node, then on neighbouring PEs. A part gets
//! work in proportion to the room of its PEs. If both halves have the same room, the parts are
//! assigned in the order that keeps more work at home.

use std::{mem::take, ops::Range};

use crate::{bounds::Bounds, model::LoadModel, parallel};

/// A way to divide objects.
pub(crate) trait Divide {
    /// Reorders `objects` so that about `work` of their load is in front, and returns where that part ends. The result
    /// must not depend on previous calls.
    fn divide(&mut self, objects: &mut [u32], work: f64) -> usize;
}

/// Places `objects` by recursive halving; leaves all others where `pes` has them.
///
/// Each thread uses its own divider, made by `divider`.
pub(crate) fn halve<D: Divide>(
    model: &LoadModel,
    bounds: &Bounds,
    objects: &mut [u32],
    divider: impl Fn() -> D + Sync,
    pes: &mut [usize],
) {
    halve_ranges(model, bounds, [(0..model.pes().len(), objects)], divider, pes);
}

/// The same for several lists of objects, each with its own range of PEs, in [order](pe_order).
pub(crate) fn halve_ranges<'o, D: Divide>(
    model: &LoadModel,
    bounds: &Bounds,
    ranges: impl IntoIterator<Item = (Range<usize>, &'o mut [u32])>,
    divider: impl Fn() -> D + Sync,
    pes: &mut [usize],
) {
    let order = pe_order(model);
    let mut position = vec![0; order.len()];
    for (index, &pe) in order.iter().enumerate() {
        position[pe] = index;
    }
    let rooms = prefix_sums(order.iter().map(|&pe| bounds.room(model, pe)));
    let halving = Halving { model, order, position, rooms };
    let part =
        |(range, objects): (Range<usize>, _)| Part { objects, first: range.start, end: range.end };
    let mut parts: Vec<Part<'o>> = ranges.into_iter().map(part).collect();
    let threads = parallel::threads(parts.iter().map(|it| it.objects.len()).sum());
    // Level by level until there are enough parts for all threads to have much to do to the end.
    while threads > 1 && parts.len() < threads * PARTS && parts.iter().any(|it| it.pes() > 1) {
        let halves = parallel::each(threads, parts, |part| match part.pes() {
            1 => vec![part],
            _ => halving.split(part, &mut divider()).into(),
        });
        parts = halves.into_iter().flatten().collect();
    }
    let size = parts.len().div_ceil(threads * PARTS).max(1);
    let groups: Vec<Vec<Part<'o>>> =
        parts.chunks_mut(size).map(|group| group.iter_mut().map(take).collect()).collect();
    let placed = parallel::each(threads, groups, |group| {
        let mut divide = divider();
        let mut placed = vec![];
        for part in group {
            halving.run(part, &mut divide, &mut placed);
        }
        placed
    });
    for (objects, pe) in placed.into_iter().flatten() {
        for &object in objects.iter() {
            pes[object as usize] = pe;
        }
    }
}

/// The number of parts per thread from which on threads halve on their own.
const PARTS: usize = 8;

/// Objects, and the PEs that they are for: from `first` to before `end` in order.
#[derive(Default)]
struct Part<'o> {
    objects: &'o mut [u32],
    first: usize,
    end: usize,
}

impl Part<'_> {
    fn pes(&self) -> usize {
        if self.objects.is_empty() { 1 } else { self.end - self.first }
    }
}

/// PEs by node, then number.
pub(crate) fn pe_order(model: &LoadModel) -> Vec<usize> {
    let mut order: Vec<usize> = (0..model.pes().len()).collect();
    order.sort_by_key(|&pe| (model.pes()[pe].node, pe));
    order
}

/// The sums of the first 0, 1, 2, ... of `values`.
pub(crate) fn prefix_sums(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sums = vec![0.0];
    sums.extend(values.scan(0.0, |sum, value| {
        *sum += value;
        Some(*sum)
    }));
    sums
}

struct Halving<'a> {
    model: &'a LoadModel,
    order: Vec<usize>,
    /// For each PE, its position in `order`.
    position: Vec<usize>,
    /// Room of the first 0, 1, 2, ... PEs of `order`.
    rooms: Vec<f64>,
}

impl Halving<'_> {
    /// Places the objects of `part`. The depth is at most the number of halvings of the PEs: the bits of their number
    /// plus the number of nodes.
    fn run<'o>(
        &self,
        part: Part<'o>,
        divide: &mut impl Divide,
        placed: &mut Vec<(&'o [u32], usize)>,
    ) {
        if part.pes() > 1 {
            for half in self.split(part, divide) {
                self.run(half, divide, placed);
            }
        } else if !part.objects.is_empty() {
            placed.push((part.objects, self.order[part.first]));
        }
    }

    /// Halves the PEs and divides the objects between the halves.
    fn split<'o>(&self, part: Part<'o>, divide: &mut impl Divide) -> [Part<'o>; 2] {
        let Part { objects, first, end } = part;
        let middle = self.middle(first, end);
        let (left, right) = (self.room(first, middle), self.room(middle, end));
        let share = if left + right > 0.0 { left / (left + right) } else { 0.5 };
        let work: f64 = objects.iter().map(|&it| self.model.objects()[it as usize].load).sum();
        let mut cut = divide.divide(objects, work * share);
        if (share - 0.5).abs() < 1e-6
            && self.is_better_the_other_way(objects, cut, first, middle, end)
        {
            objects.rotate_left(cut);
            cut = objects.len() - cut;
        }
        let (front, back) = objects.split_at_mut(cut);
        [Part { objects: front, first, end: middle }, Part { objects: back, first: middle, end }]
    }

    fn room(&self, first: usize, end: usize) -> f64 {
        self.rooms[end] - self.rooms[first]
    }

    /// Where to cut the PEs: at the change of node nearest to the middle, if there is one.
    fn middle(&self, first: usize, end: usize) -> usize {
        let node = |index: usize| self.model.pes()[self.order[index]].node;
        let middle = first + (end - first) / 2;
        if node(first) == node(end - 1) {
            return middle;
        }
        let above = (middle..end).find(|&it| node(it) != node(it - 1));
        let below = (first + 1..middle).rev().find(|&it| node(it) != node(it - 1));
        match (below, above) {
            (Some(below), Some(above)) if middle - below < above - middle => below,
            (_, Some(above)) => above,
            (Some(below), None) => below,
            (None, None) => middle,
        }
    }

    fn is_better_the_other_way(
        &self,
        objects: &[u32],
        cut: usize,
        first: usize,
        middle: usize,
        end: usize,
    ) -> bool {
        let (mut this_way, mut other_way) = (0.0, 0.0);
        for (index, &it) in objects.iter().enumerate() {
            let object = &self.model.objects()[it as usize];
            let home = self.position[object.pe];
            if !(first..end).contains(&home) {
                continue;
            }
            if (index < cut) == (home < middle) {
                this_way += object.load;
            } else {
                other_way += object.load;
            }
        }
        other_way > this_way
    }
}
