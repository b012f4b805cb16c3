//! Lower bounds for all assignments: load that cannot move, and the level to which the rest would
//! fill.
//!
//! The fixed load of a PE is its background load plus its objects that cannot move. If the
//! remaining load were water poured over the PEs, it would rise to one level in all of them except
//! those already above it: in no assignment is the busiest PE below that level. Nor can it be below
//! the largest fixed load, or below the time of an object on the PE that would finish it first.
//! Cost: `n + p log p`.

use crate::model::LoadModel;

/// Fixed load, and the level for the rest.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// For each PE, seconds of background load and of objects that cannot move.
    pub(crate) fixed: Vec<f64>,
    /// The level, in seconds.
    pub(crate) level: f64,
}

impl Bounds {
    /// The bounds for all objects that can move.
    pub(crate) fn new(model: &LoadModel) -> Self {
        Self::around(model, |object| model.objects()[object].migratable)
    }

    /// The bounds for the `movable` objects, with all others fixed.
    pub(crate) fn around(model: &LoadModel, movable: impl Fn(usize) -> bool) -> Self {
        let mut fixed: Vec<f64> = model.pes().iter().map(|pe| pe.background).collect();
        let mut work = 0.0;
        for (number, object) in model.objects().iter().enumerate() {
            if movable(number) {
                work += object.load;
            } else {
                fixed[object.pe] += model.seconds_on(number, object.pe);
            }
        }
        let level = level(model, &fixed, work);
        Self { fixed, level }
    }

    /// The work that PE `pe` can take until it reaches the level.
    pub(crate) fn room(&self, model: &LoadModel, pe: usize) -> f64 {
        (self.level - self.fixed[pe]).max(0.0) * model.pes()[pe].speed
    }

    /// [`lower_bound`], where these are the bounds of all objects that can move.
    pub(crate) fn lowest(&self, model: &LoadModel) -> f64 {
        let stays = self.fixed.iter().copied().fold(0.0, f64::max);
        let movable = model.objects().iter().filter(|it| it.migratable);
        // A heavier object never has a smaller bound, so the heaviest one is enough.
        let Some(heaviest) = movable.map(|it| it.load).reduce(f64::max) else { return stays };
        let alone = self.fixed.iter().zip(model.pes());
        let alone = alone.map(|(fixed, pe)| fixed + heaviest / pe.speed);
        stays.max(self.level).max(alone.fold(f64::INFINITY, f64::min))
    }
}

/// The level to which `work` fills PEs whose load is `fixed` already.
fn level(model: &LoadModel, fixed: &[f64], work: f64) -> f64 {
    let mut order: Vec<usize> = (0..fixed.len()).collect();
    order.sort_by(|&a, &b| fixed[a].total_cmp(&fixed[b]));
    let (mut speed, mut filled) = (0.0, 0.0);
    let mut level = 0.0;
    for (position, &pe) in order.iter().enumerate() {
        speed += model.pes()[pe].speed;
        filled += fixed[pe] * model.pes()[pe].speed;
        level = (work + filled) / speed;
        if order.get(position + 1).is_none_or(|&next| level <= fixed[next]) {
            break;
        }
    }
    level
}

/// A load that the busiest PE of every assignment reaches: no strategy can predict less.
#[must_use]
pub fn lower_bound(model: &LoadModel) -> f64 {
    Bounds::new(model).lowest(model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Object, Pe};

    #[test]
    fn water_does_not_rise_over_what_stands_out() {
        let pes = vec![
            Pe { background: 10.0, ..Pe::default() },
            Pe::default(),
            Pe { speed: 2.0, background: 1.0, ..Pe::default() },
        ];
        let mut objects = vec![Object::new(1.0, 0); 4];
        objects.push(Object::new(1.0, 1).pinned());
        let model = LoadModel::new(pes, objects, vec![]).expect("sound");
        // 1 s stays on PE 1 and on PE 2, 4 s of work at speed 3: level 1 + 4 / 3.
        let bounds = Bounds::new(&model);
        assert!((bounds.level - (1.0 + 4.0 / 3.0)).abs() < 1e-12);
        assert_eq!(bounds.room(&model, 0), 0.0);
        assert!((bounds.room(&model, 2) - 8.0 / 3.0).abs() < 1e-12);
        assert_eq!(lower_bound(&model), 10.0);
    }

    #[test]
    fn one_heavy_object_is_a_bound() {
        let pes = vec![Pe { speed: 2.0, background: 3.0, ..Pe::default() }, Pe::default()];
        let model = LoadModel::new(pes, vec![Object::new(8.0, 1)], vec![]).expect("sound");
        assert_eq!(lower_bound(&model), 7.0);
    }

    #[test]
    fn nothing_to_do_takes_no_time() {
        let model = LoadModel::new(vec![Pe::default(); 3], vec![], vec![]).expect("sound");
        assert_eq!(lower_bound(&model), 0.0);
        assert_eq!(Bounds::new(&model).level, 0.0);
    }
}
