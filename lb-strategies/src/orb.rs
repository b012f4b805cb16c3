//! `orb`: orthogonal recursive bisection of space.
//!
//! The objects, by their given coordinates, are cut in two across the longest side of the box
//! around them, so that each part has work for its half of the PEs; then each part is cut again (M.
//! J. Berger and S. H. Bokhari, "A partitioning strategy for nonuniform problems on
//! multiprocessors", IEEE Trans. Computers C-36, 1987). Parts are boxes, so that most neighbours in
//! space share a PE. The imbalance that the cuts leave is [refined](crate::refine).
//!
//! Inputs: coordinates, loads, speeds, background load, nodes. Objects without coordinates stay,
//! except in that last step. Cost: `n log n log p`.

use crate::{
    bounds::Bounds,
    config::{Config, Parameter},
    halving::{Divide, halve},
    model::LoadModel,
    refine::{TOLERANCE, refine},
    strategy::Strategy,
};

/// Cuts space in two across its longest side, recursively.
#[derive(Clone, Copy, Debug)]
pub struct Orb;

impl Strategy for Orb {
    fn name(&self) -> &'static str {
        "orb"
    }

    fn help(&self) -> &'static str {
        "orthogonal recursive bisection of the coordinates that ranks give"
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
        let mut order: Vec<u32> =
            (0..objects.len() as u32).filter(|&it| is_placed(it as usize)).collect();
        let mut pes: Vec<usize> = objects.iter().map(|it| it.pe).collect();
        halve(model, &bounds, &mut order, || Boxes { model }, &mut pes);
        refine(model, &mut pes, config.number("tolerance"));
        pes
    }
}

struct Boxes<'a> {
    model: &'a LoadModel,
}

impl Boxes<'_> {
    fn point(&self, object: u32) -> [f64; 3] {
        self.model.objects()[object as usize].coordinates.unwrap_or_default()
    }
}

impl Divide for Boxes<'_> {
    fn divide(&mut self, objects: &mut [u32], work: f64) -> usize {
        let axis = longest_side(objects.iter().map(|&it| self.point(it)));
        objects.sort_unstable_by(|&a, &b| {
            self.point(a)[axis].total_cmp(&self.point(b)[axis]).then(a.cmp(&b))
        });
        cut(objects.iter().map(|&it| self.model.objects()[it as usize].load), work)
    }
}

/// How many of `loads`, from the front, come closest to `work`.
pub(crate) fn cut(loads: impl Iterator<Item = f64>, work: f64) -> usize {
    let mut sum = 0.0;
    loads
        .take_while(|load| {
            let fits = sum + load / 2.0 <= work;
            sum += load;
            fits
        })
        .count()
}

fn longest_side(points: impl Iterator<Item = [f64; 3]>) -> usize {
    let mut low = [f64::INFINITY; 3];
    let mut high = [f64::NEG_INFINITY; 3];
    for point in points {
        for axis in 0..3 {
            low[axis] = low[axis].min(point[axis]);
            high[axis] = high[axis].max(point[axis]);
        }
    }
    let side = |axis: usize| high[axis] - low[axis];
    // Of equal sides the first.
    (1..3).fold(0, |longest, axis| if side(axis) > side(longest) { axis } else { longest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Object, Pe},
        registry::create,
    };

    #[test]
    fn quarters_of_a_square() {
        let at = |it: u32| [f64::from(it % 8), f64::from(it / 8), 0.0];
        let objects = (0..64).map(|it| Object::new(1.0, 0).at(at(it))).collect();
        let model = LoadModel::new(vec![Pe::default(); 4], objects, vec![]).expect("sound");
        let placed = create::<&str, &str>("orb", &[]).expect("exists").assign(&model, 0);
        assert_eq!(placed.pe_loads(&model), [16.0; 4]);
        for (it, &pe) in (0..64_u32).zip(placed.pes()) {
            let corner = placed.pes()[((it / 8 / 4) * 4 * 8 + it % 8 / 4 * 4) as usize];
            assert_eq!(pe, corner);
        }
    }

    #[test]
    fn a_cut_is_as_close_as_it_can_be() {
        assert_eq!(cut([1.0, 1.0, 3.0].into_iter(), 2.0), 2);
        assert_eq!(cut([1.0, 1.0, 3.0].into_iter(), 3.0), 2);
        assert_eq!(cut([1.0, 1.0, 3.0].into_iter(), 4.0), 3);
        assert_eq!(cut([1.0].into_iter(), 0.0), 0);
        assert_eq!(cut([0.0].into_iter(), 0.0), 1);
    }
}
