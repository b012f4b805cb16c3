//! `hilbert`: a space-filling curve, cut into pieces.
//!
//! The objects, by their given coordinates, are ordered along a Hilbert curve through the box
//! around them; the curve is cut into one piece for each PE, with work for its room (J. R.
//! Pilkington and S. B. Baden, "Dynamic partitioning of non-uniform structured workloads with
//! spacefilling curves", IEEE Trans. Parallel and Distributed Systems 7, 1996). Consecutive pieces
//! are neighbours in space and on neighbouring PEs. The index of a point is computed as by J.
//! Skilling, "Programming the Hilbert curve", AIP Conf. Proc. 707, 2004, with as many dimensions as
//! the box has. Of the two directions of the curve, the one that keeps more objects at home is
//! taken. The imbalance that the cuts leave is [refined](crate::refine).
//!
//! Inputs: coordinates, loads, speeds, background load, nodes. Objects without coordinates stay,
//! except in that last step. Cost: `n log n`.

use crate::{
    bounds::Bounds,
    config::{Config, Parameter},
    halving::{pe_order, prefix_sums},
    model::LoadModel,
    refine::{TOLERANCE, refine},
    strategy::Strategy,
};

/// Cuts a Hilbert curve through the objects into a piece for each PE.
#[derive(Clone, Copy, Debug)]
pub struct Hilbert;

impl Strategy for Hilbert {
    fn name(&self) -> &'static str {
        "hilbert"
    }

    fn help(&self) -> &'static str {
        "pieces of a Hilbert curve through the coordinates that ranks give; fast"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[TOLERANCE]
    }

    fn heeds_communication(&self) -> bool {
        true
    }

    fn propose(&self, model: &LoadModel, config: &Config, _seed: u64) -> Vec<usize> {
        let objects = model.objects();
        let is_placed = |it: usize| objects[it].migratable && objects[it].coordinates.is_some();
        let bounds = Bounds::around(model, is_placed);
        let mut curve = along_the_curve(model, is_placed);
        let today: Vec<usize> = objects.iter().map(|it| it.pe).collect();

        let forth = pieces(model, &bounds, &curve, &today);
        curve.reverse();
        let back = pieces(model, &bounds, &curve, &today);
        let at_home =
            |pes: &[usize]| pes.iter().zip(&today).filter(|(pe, home)| pe == home).count();
        let mut pes = if at_home(&forth) >= at_home(&back) { forth } else { back };
        refine(model, &mut pes, config.number("tolerance"));
        pes
    }
}

/// The objects to be placed, in the order of the curve.
fn along_the_curve(model: &LoadModel, is_placed: impl Fn(usize) -> bool) -> Vec<u32> {
    let objects = model.objects();
    let mut low = [f64::INFINITY; 3];
    let mut high = [f64::NEG_INFINITY; 3];
    for point in objects.iter().filter_map(|it| it.coordinates) {
        for axis in 0..3 {
            low[axis] = low[axis].min(point[axis]);
            high[axis] = high[axis].max(point[axis]);
        }
    }
    let axes: Vec<usize> = (0..3).filter(|&axis| high[axis] > low[axis]).collect();
    let bits = if axes.len() == 3 { 21 } else { 31 };
    // One scale for all axes: the curve goes through a cube, so that its steps are equal.
    let side = axes.iter().map(|&axis| high[axis] - low[axis]).fold(0.0, f64::max);
    let mut keyed: Vec<(u64, u32)> = (0..objects.len())
        .filter(|&it| is_placed(it))
        .map(|it| {
            let point = objects[it].coordinates.unwrap_or_default();
            let cells = (1_u64 << bits) as f64;
            let cell = |axis: usize| ((point[axis] - low[axis]) / side * cells) as u64;
            let mut x = [0; 3];
            for (slot, &axis) in x.iter_mut().zip(&axes) {
                *slot = cell(axis).min((1 << bits) - 1);
            }
            (hilbert_index(&mut x[..axes.len()], bits), it as u32)
        })
        .collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|it| it.1).collect()
}

/// The position of a cell along the Hilbert curve through a cube with `2^bits` cells per side.
///
/// Skilling's two steps: undo the reflections and exchanges of axes from the largest cube to the
/// smallest, then decode the Gray code; the index interleaves the bits of the axes.
fn hilbert_index(x: &mut [u64], bits: u32) -> u64 {
    let Some(last) = x.len().checked_sub(1) else { return 0 };
    for bit in (1..bits).rev() {
        let below = (1_u64 << bit) - 1;
        for axis in 0..x.len() {
            if x[axis] >> bit & 1 == 1 {
                x[0] ^= below;
            } else {
                let differ = (x[0] ^ x[axis]) & below;
                x[0] ^= differ;
                x[axis] ^= differ;
            }
        }
    }
    for axis in 1..x.len() {
        x[axis] ^= x[axis - 1];
    }
    let flips = (1..bits)
        .filter(|bit| x[last] >> bit & 1 == 1)
        .fold(0, |flips, bit| flips ^ ((1_u64 << bit) - 1));
    let mut index = 0;
    for bit in (0..bits).rev() {
        for axis in x.iter() {
            index = index << 1 | (axis ^ flips) >> bit & 1;
        }
    }
    index
}

/// Cuts `curve` into pieces that fit the rooms of the PEs; all other objects stay.
fn pieces(model: &LoadModel, bounds: &Bounds, curve: &[u32], today: &[usize]) -> Vec<usize> {
    let order = pe_order(model);
    let rooms = prefix_sums(order.iter().map(|&pe| bounds.room(model, pe)));
    let load = |it: u32| model.objects()[it as usize].load;
    let work: f64 = curve.iter().map(|&it| load(it)).sum();
    let mut pes = today.to_vec();
    if work == 0.0 {
        return pes;
    }
    let scale = rooms[order.len()] / work;
    let (mut done, mut index) = (0.0, 0);
    for &it in curve {
        let centre = (done + load(it) / 2.0) * scale;
        while index + 1 < order.len() && centre > rooms[index + 1] {
            index += 1;
        }
        pes[it as usize] = order[index];
        done += load(it);
    }
    pes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Object, Pe},
        registry::create,
    };

    /// All cells of a cube, in the order of the curve.
    fn walk(dimensions: u32, bits: u32) -> Vec<Vec<i64>> {
        let side = 1_u64 << bits;
        let cells = (0..side.pow(dimensions)).map(|cell| {
            let x: Vec<u64> = (0..dimensions).map(|axis| cell / side.pow(axis) % side).collect();
            (hilbert_index(&mut x.clone(), bits), x.iter().map(|&it| it as i64).collect())
        });
        let mut walk: Vec<(u64, Vec<i64>)> = cells.collect();
        walk.sort();
        assert!(walk.iter().enumerate().all(|(place, it)| it.0 == place as u64));
        walk.into_iter().map(|it| it.1).collect()
    }

    #[test]
    fn the_curve_visits_every_cell_in_steps_of_one() {
        for (dimensions, bits) in [(1, 5), (2, 1), (2, 2), (2, 5), (3, 1), (3, 4)] {
            for step in walk(dimensions, bits).windows(2) {
                let length: i64 = step[0].iter().zip(&step[1]).map(|(a, b)| (a - b).abs()).sum();
                assert_eq!(length, 1, "{dimensions} dimensions, {step:?}");
            }
        }
    }

    #[test]
    fn pieces_are_equal_and_connected() {
        let at = |it: u32| [f64::from(it % 8), 3.0, f64::from(it / 8)];
        let objects = (0..64).map(|it| Object::new(1.0, 0).at(at(it))).collect();
        let model = LoadModel::new(vec![Pe::default(); 4], objects, vec![]).expect("sound");
        let placed = create::<&str, &str>("hilbert", &[]).expect("exists").assign(&model, 0);
        assert_eq!(placed.pe_loads(&model), [16.0; 4]);
        for (it, &pe) in (0..64_u32).zip(placed.pes()) {
            let corner = placed.pes()[((it / 8 / 4) * 4 * 8 + it % 8 / 4 * 4) as usize];
            assert_eq!(pe, corner);
        }
    }
}
