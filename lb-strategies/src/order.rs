//! Objects by load, sorted as integers: for finite loads of at least 0, the bits of the load have the same order.

use std::ops::Range;

use crate::{model::LoadModel, parallel};

/// The objects that can move, sorted by load.
pub(crate) struct Order {
    objects: Vec<u32>,
    /// The ranges of `objects` in which several have the same load.
    equal: Vec<Range<usize>>,
}

impl Order {
    /// Heaviest last; among equal ones the least `tie` first.
    pub(crate) fn rising(model: &LoadModel, tie: impl Fn(u32) -> u128) -> Self {
        Self::by(model, f64::to_bits, tie)
    }

    /// Heaviest first; among equal ones the least `tie` first.
    pub(crate) fn falling(model: &LoadModel, tie: impl Fn(u32) -> u128) -> Self {
        Self::by(model, |load| !load.to_bits(), tie)
    }

    fn by(model: &LoadModel, bits: impl Fn(f64) -> u64, tie: impl Fn(u32) -> u128) -> Self {
        let movable = model.objects().iter().zip(0..).filter(|(object, _)| object.migratable);
        let keys = sorted(movable.map(|(object, number)| (bits(object.load + 0.0), number)));
        let mut objects: Vec<u32> = keys.iter().map(|&it| it as u32).collect();
        let mut equal = vec![];
        let mut first = 0;
        for run in keys.chunk_by(|a, b| a >> 32 == b >> 32) {
            if run.len() > 1 {
                let range = first..first + run.len();
                objects[range.clone()].sort_unstable_by_key(|&it| tie(it));
                equal.push(range);
            }
            first += run.len();
        }
        Self { objects, equal }
    }

    /// All objects that can move, in order.
    pub(crate) fn objects(&self) -> &[u32] {
        &self.objects
    }

    /// The ranges of [`objects`](Self::objects) in which several have the same load.
    pub(crate) fn equal(&self) -> &[Range<usize>] {
        &self.equal
    }
}

/// `objects`, heaviest first; among equal ones the smallest number first.
pub(crate) fn heaviest_first(model: &LoadModel, objects: impl Iterator<Item = u32>) -> Vec<u32> {
    let load = |it: u32| model.objects()[it as usize].load + 0.0;
    let keys = sorted(objects.map(|it| (!load(it).to_bits(), it)));
    keys.into_iter().map(|it| it as u32).collect()
}

/// Loads as bits, and numbers of objects, as one integer each, sorted. A load of -0 must be made +0 by adding 0 before.
fn sorted(keys: impl Iterator<Item = (u64, u32)>) -> Vec<u128> {
    let mut keys: Vec<u128> =
        keys.map(|(bits, number)| u128::from(bits) << 32 | u128::from(number)).collect();
    parallel::sort(parallel::threads(keys.len()), &mut keys);
    keys
}

/// Orders equal objects by PE, and those of a PE by live bytes, most first.
pub(crate) fn by_home(model: &LoadModel) -> impl Fn(u32) -> u128 {
    |it| {
        let object = &model.objects()[it as usize];
        (object.pe as u128) << 96 | by_bytes(model)(it)
    }
}

/// Orders equal objects by live bytes, most first.
pub(crate) fn by_bytes(model: &LoadModel) -> impl Fn(u32) -> u128 {
    |it| u128::from(!model.objects()[it as usize].bytes) << 32 | u128::from(it)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Object, Pe};

    #[test]
    fn equal_loads_are_found_and_sorted_by_the_tie() {
        let objects = [(2.0, 1, 5), (0.0, 0, 1), (2.0, 0, 1), (-0.0, 0, 9), (2.0, 1, 7)]
            .map(|(load, pe, bytes)| Object::new(load, pe).with_bytes(bytes));
        let objects = [&objects[..], &[Object::new(2.0, 0).pinned()]].concat();
        let model = LoadModel::new(vec![Pe::default(); 2], objects, vec![]).expect("sound");
        let rising = Order::rising(&model, by_bytes(&model));
        assert_eq!(rising.objects(), [3, 1, 4, 0, 2]);
        assert_eq!(rising.equal(), [0..2, 2..5]);
        let falling = Order::falling(&model, by_home(&model));
        assert_eq!(falling.objects(), [2, 4, 0, 3, 1]);
        assert_eq!(falling.equal(), [0..3, 3..5]);
    }
}
