//! `rotate`, `random` and `pile`: many moves, whatever their effect on balance.
//!
//! They test a runtime's migration, as Charm++'s RotateLB and RandCentLB do. They are
//! [chaos](Strategy::is_chaos): they do not guarantee that the busiest PE gets no busier. Objects
//! that cannot move stay here, too. Input: the number of PEs; cost: `n`.

use crate::{
    config::{Config, Domain, Parameter},
    model::LoadModel,
    random::generator,
    strategy::Strategy,
};
use rand::Rng;

/// Moves every object to the next PE.
#[derive(Clone, Copy, Debug)]
pub struct Rotate;

impl Strategy for Rotate {
    fn name(&self) -> &'static str {
        "rotate"
    }

    fn help(&self) -> &'static str {
        "every object to the next PE, whatever the loads: the most moves there can be"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[Parameter {
            name: "by",
            help: "how many PEs further an object goes",
            domain: Domain::Count { default: 1, range: 1..=u64::MAX },
        }]
    }

    fn is_chaos(&self) -> bool {
        true
    }

    fn propose(&self, model: &LoadModel, config: &Config, _seed: u64) -> Vec<usize> {
        let pes = model.pes().len();
        let by = config.count("by") % pes;
        model.objects().iter().map(|object| (object.pe + by) % pes).collect()
    }
}

/// Moves every object to a PE drawn at random.
#[derive(Clone, Copy, Debug)]
pub struct Random;

impl Strategy for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn help(&self) -> &'static str {
        "every object to a PE drawn by lot, whatever the loads"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    fn is_chaos(&self) -> bool {
        true
    }

    fn propose(&self, model: &LoadModel, _config: &Config, seed: u64) -> Vec<usize> {
        let mut lots = generator(seed, 0);
        let pes = model.pes().len() as u64;
        model.objects().iter().map(|_| lots.random_range(0..pes) as usize).collect()
    }
}

/// Moves every object to the first PE.
#[derive(Clone, Copy, Debug)]
pub struct Pile;

impl Strategy for Pile {
    fn name(&self) -> &'static str {
        "pile"
    }

    fn help(&self) -> &'static str {
        "every object to the first PE, whatever the loads: as bad as it can be"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    fn is_chaos(&self) -> bool {
        true
    }

    fn propose(&self, model: &LoadModel, _config: &Config, _seed: u64) -> Vec<usize> {
        vec![0; model.objects().len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Object, Pe},
        registry::create,
    };

    #[test]
    fn rotate_moves_all_that_can_move() {
        let objects = vec![Object::new(1.0, 0), Object::new(1.0, 2), Object::new(1.0, 1).pinned()];
        let model = LoadModel::new(vec![Pe::default(); 3], objects, vec![]).expect("sound");
        let rotated = |by| create("rotate", &[("by", by)]).expect("allowed").assign(&model, 0);
        assert_eq!(rotated("1").pes(), [1, 0, 1]);
        assert_eq!(rotated("5").pes(), [2, 1, 1]);
    }

    #[test]
    fn random_follows_its_seed_and_reaches_every_pe() {
        let objects = vec![Object::new(1.0, 0); 200];
        let model = LoadModel::new(vec![Pe::default(); 8], objects, vec![]).expect("sound");
        let random = create::<&str, &str>("random", &[]).expect("exists");
        assert_eq!(random.assign(&model, 7), random.assign(&model, 7));
        assert_ne!(random.assign(&model, 7), random.assign(&model, 8));
        assert!((0..8).all(|pe| random.assign(&model, 7).pes().contains(&pe)));
    }
}
