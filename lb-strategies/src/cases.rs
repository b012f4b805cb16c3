//! Generated load models: the kinds of imbalance that strategies are compared on.
//!
//! A case is a pure function of a [`Size`], so that a table of results can be reproduced. PEs are
//! grouped in nodes of [`NODE`]. Unless a case says otherwise, objects are distributed over PEs in
//! blocks of equal number, have about a mebibyte of live bytes each, and need one second on
//! average.

use crate::model::{Edge, LoadModel, LoadModelError, MoveCost, Object, Pe};
use crate::random::generator;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use thiserror::Error;

/// PEs per node.
pub const NODE: usize = 16;

/// The size of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of objects.
    pub objects: usize,
    /// Number of PEs.
    pub pes: usize,
    /// Seed for the case's random numbers.
    pub seed: u64,
}

/// A kind of load model.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name that users select it by.
    pub name: &'static str,
    /// One line for users.
    pub help: &'static str,
    make: fn(&mut Draft),
}

impl Case {
    /// The model of this size. Cost: `n + p`.
    ///
    /// # Errors
    ///
    /// If `size` has no PE.
    pub fn model(&self, size: Size) -> Result<LoadModel, LoadModelError> {
        if size.pes == 0 {
            return Err(LoadModelError::NoPes);
        }
        let mut draft = Draft::new(size);
        (self.make)(&mut draft);
        let Draft { pes, objects, edges, move_cost, .. } = draft;
        LoadModel::new(pes, objects, edges)?.with_move_cost(move_cost)
    }
}

/// All cases.
#[must_use]
pub fn cases() -> &'static [Case] {
    CASES
}

/// The case called `name`.
///
/// # Errors
///
/// If no case has that name.
pub fn find(name: &str) -> Result<Case, UnknownCase> {
    CASES.iter().find(|it| it.name == name).copied().ok_or_else(|| UnknownCase {
        name: name.to_owned(),
        known: CASES.iter().map(|it| it.name).collect::<Vec<_>>().join(", "),
    })
}

/// No case has that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no case `{name}`; cases: {known}")]
pub struct UnknownCase {
    name: String,
    known: String,
}

const CASES: &[Case] = &[
    Case {
        name: "uniform",
        help: "loads from 0.5 to 1.5 s",
        make: |it| it.loads(|lots| lots.random_range(0.5..1.5)),
    },
    Case { name: "exponential", help: "many light objects, few heavy ones", make: exponential },
    Case {
        name: "giant",
        help: "uniform, and one object as heavy as four PEs' work",
        make: |it| {
            it.loads(|lots| lots.random_range(0.5..1.5));
            let per_pe = it.objects.len() as f64 / it.pes.len() as f64;
            if let Some(object) = it.objects.first_mut() {
                object.load = 4.0 * per_pe;
            }
        },
    },
    Case {
        name: "heap",
        help: "uniform, and everything is on PE 0",
        make: |it| {
            it.loads(|lots| lots.random_range(0.5..1.5));
            it.objects.iter_mut().for_each(|object| object.pe = 0);
        },
    },
    Case {
        name: "clustered",
        help: "groups of eight objects talk among each other, and are spread over all PEs",
        make: clustered,
    },
    Case {
        name: "grid",
        help: "a square of objects that talk to their neighbours, with a hot spot; coordinates",
        make: grid,
    },
    Case {
        name: "unequal-pes",
        help: "exponential, on PEs of speed 0.5, 1 and 2",
        make: |it| {
            exponential(it);
            for pe in &mut it.pes {
                pe.speed = [0.5, 1.0, 2.0][it.lots.random_range(0..3_usize)];
            }
        },
    },
    Case {
        name: "background",
        help: "exponential, beside other work on every second PE",
        make: |it| {
            exponential(it);
            let per_pe = it.objects.len() as f64 / it.pes.len() as f64;
            for pe in it.pes.iter_mut().step_by(2) {
                pe.background = it.lots.random::<f64>() * per_pe;
            }
        },
    },
    Case {
        name: "some-pinned",
        help: "exponential, and a third of the objects cannot move",
        make: |it| {
            exponential(it);
            it.objects.iter_mut().step_by(3).for_each(|object| object.migratable = false);
        },
    },
    Case {
        name: "costly",
        help: "exponential, and a move takes as long as a tenth of an object's period",
        make: |it| {
            exponential(it);
            it.move_cost = MoveCost { fixed: 0.02, per_byte: 0.08 / f64::from(1 << 20) };
        },
    },
    Case {
        name: "all-pinned",
        help: "exponential, and nothing can move",
        make: |it| {
            exponential(it);
            it.objects.iter_mut().for_each(|object| object.migratable = false);
        },
    },
    Case { name: "zero-loads", help: "objects that take no time", make: |it| it.loads(|_| 0.0) },
    Case {
        name: "one-pe",
        help: "exponential, on a single PE, whatever the number asked for",
        make: |it| {
            exponential(it);
            it.pes.truncate(1);
            it.objects.iter_mut().for_each(|object| object.pe = 0);
        },
    },
    Case {
        name: "empty",
        help: "no objects, whatever the number asked for",
        make: |it| it.objects.clear(),
    },
];

/// A model under construction.
struct Draft {
    lots: ChaCha8Rng,
    pes: Vec<Pe>,
    objects: Vec<Object>,
    edges: Vec<Edge>,
    move_cost: MoveCost,
}

impl Draft {
    fn new(size: Size) -> Self {
        let mut lots = generator(size.seed, 0);
        let pes = (0..size.pes).map(|pe| Pe { node: pe / NODE, ..Pe::default() }).collect();
        let block = |it: usize| (it as u128 * size.pes as u128 / size.objects as u128) as usize;
        let object = |it| Object::new(1.0, block(it)).with_bytes(lots.random_range(1..1 << 21));
        let objects = (0..size.objects).map(object).collect();
        Self { lots, pes, objects, edges: vec![], move_cost: MoveCost::default() }
    }

    fn loads(&mut self, mut draw: impl FnMut(&mut ChaCha8Rng) -> f64) {
        for object in &mut self.objects {
            object.load = draw(&mut self.lots);
        }
    }
}

fn exponential(draft: &mut Draft) {
    draft.loads(|lots| -(1.0 - lots.random::<f64>()).ln());
}

fn clustered(draft: &mut Draft) {
    exponential(draft);
    let (objects, pes) = (draft.objects.len(), draft.pes.len() as u64);
    for object in &mut draft.objects {
        object.pe = draft.lots.random_range(0..pes) as usize;
    }
    for group in (0..objects).step_by(8) {
        let end = (group + 8).min(objects);
        for from in group..end {
            let to = if from + 1 < end { from + 1 } else { group };
            let bytes = draft.lots.random_range(10_000..100_000);
            if from != to {
                draft.edges.push(Edge { from, to, messages: 10, bytes });
            }
        }
        // A little talk with the next group.
        if end < objects {
            draft.edges.push(Edge { from: group, to: end, messages: 1, bytes: 100 });
        }
    }
}

fn grid(draft: &mut Draft) {
    let objects = draft.objects.len();
    let side = (objects as f64).sqrt().ceil() as usize;
    for (it, object) in draft.objects.iter_mut().enumerate() {
        let (x, y) = ((it % side) as f64, (it / side) as f64);
        object.coordinates = Some([x, y, 0.0]);
        // The hot spot is off the centre and a quarter of the side wide.
        let (dx, dy) = (x / side as f64 - 0.3, y / side as f64 - 0.6);
        object.load = 0.25 + 4.0 * (-(dx * dx + dy * dy) * 16.0).exp();
    }
    let edge = |from, to| Edge { from, to, messages: 2, bytes: 8192 };
    for it in 0..objects {
        if (it + 1) % side != 0 && it + 1 < objects {
            draft.edges.push(edge(it, it + 1));
        }
        if it + side < objects {
            draft.edges.push(edge(it, it + side));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_have_the_size_asked_for_and_follow_their_seed() {
        let size = Size { objects: 300, pes: 40, seed: 1 };
        for case in cases() {
            let model = case.model(size).expect("sound");
            assert_eq!(model, case.model(size).expect("sound"), "{}", case.name);
            if !["empty", "one-pe"].contains(&case.name) {
                assert_eq!((model.objects().len(), model.pes().len()), (300, 40), "{}", case.name);
            }
            let other = case.model(Size { seed: 2, ..size }).expect("sound");
            assert_eq!(case.name == "empty", model == other, "{}", case.name);
        }
    }

    #[test]
    fn any_size_will_do() {
        for case in cases() {
            for (objects, pes) in [(0, 1), (1, 1), (1, 9), (7, 3), (9, 100)] {
                assert!(case.model(Size { objects, pes, seed: 0 }).is_ok(), "{}", case.name);
            }
            let none = Size { objects: 1, pes: 0, seed: 0 };
            assert_eq!(case.model(none), Err(LoadModelError::NoPes));
        }
        let error = find("gaint").expect_err("none").to_string();
        assert!(error.starts_with("no case `gaint`; cases: uniform, exponential, giant, "));
    }
}
