//! Recursive halving: PEs in two halves, objects in two parts, and again within each.
//!
//! The PEs are in order of node, then number, and are cut between nodes as long as there are
//! several, so that objects of one part end up on one node, then on neighbouring PEs. A part gets
//! work in proportion to the room of its PEs. Where both halves have the same room, the parts
//! are laid the way round that keeps more work at home.

use std::ops::Range;

use crate::{bounds::Bounds, model::LoadModel};

/// A way to part objects.
pub(crate) trait Divide {
    /// Reorders `objects` so that about `work` of their load is in front, and says where that
    /// part ends.
    fn divide(&mut self, objects: &mut [u32], work: f64) -> usize;
}

/// Places `objects` by recursive halving; leaves all others as they are in `pes`.
pub(crate) fn halve(
    model: &LoadModel,
    bounds: &Bounds,
    objects: &mut [u32],
    divide: &mut dyn Divide,
    pes: &mut [usize],
) {
    halve_ranges(model, bounds, [(0..model.pes().len(), objects)], divide, pes);
}

/// The same for several lists of objects, each with the range of PEs, in [order](pe_order), that
/// are its own.
pub(crate) fn halve_ranges<'o>(
    model: &LoadModel,
    bounds: &Bounds,
    ranges: impl IntoIterator<Item = (Range<usize>, &'o mut [u32])>,
    divide: &mut dyn Divide,
    pes: &mut [usize],
) {
    let order = pe_order(model);
    let mut position = vec![0; order.len()];
    for (index, &pe) in order.iter().enumerate() {
        position[pe] = index;
    }
    let rooms = prefix_sums(order.iter().map(|&pe| bounds.room(model, pe)));
    let mut halving = Halving { model, order, position, rooms, divide, pes };
    for (range, objects) in ranges {
        halving.run(objects, range.start, range.end);
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
    /// For each PE, where it is in `order`.
    position: Vec<usize>,
    /// Room of the first 0, 1, 2, ... PEs of `order`.
    rooms: Vec<f64>,
    divide: &'a mut dyn Divide,
    pes: &'a mut [usize],
}

impl Halving<'_> {
    /// Places `objects` on the PEs from `first` to before `end` in `order`. As deep as PEs can be
    /// halved, so never deeper than their number has bits, or there are nodes.
    fn run(&mut self, objects: &mut [u32], first: usize, end: usize) {
        if objects.is_empty() {
            return;
        }
        if end - first == 1 {
            for &mut object in objects {
                self.pes[object as usize] = self.order[first];
            }
            return;
        }
        let middle = self.middle(first, end);
        let (left, right) = (self.room(first, middle), self.room(middle, end));
        let share = if left + right > 0.0 { left / (left + right) } else { 0.5 };
        let work: f64 = objects.iter().map(|&it| self.model.objects()[it as usize].load).sum();
        let mut cut = self.divide.divide(objects, work * share);
        if (share - 0.5).abs() < 1e-6
            && self.is_better_the_other_way(objects, cut, first, middle, end)
        {
            objects.rotate_left(cut);
            cut = objects.len() - cut;
        }
        let (front, back) = objects.split_at_mut(cut);
        self.run(front, first, middle);
        self.run(back, middle, end);
    }

    fn room(&self, first: usize, end: usize) -> f64 {
        self.rooms[end] - self.rooms[first]
    }

    /// Where to cut the PEs: at the change of node nearest to the middle, if there is any.
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
