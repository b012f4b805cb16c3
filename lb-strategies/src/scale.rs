//! The same work on more or fewer PEs, or in more pieces: for studies of how far a placement
//! scales, and how finely work should be cut.

use crate::model::{Edge, LoadModel, Object, Pe};

/// `model` on `factor` times as many PEs, at least one.
///
/// The objects of each PE are distributed in order of their numbers, in equal parts, to the PEs
/// that replace it. New PEs are as fast, as busy and on the same node as the PE that they replace.
/// Cost: `n + e + p`.
///
/// # Panics
///
/// If `factor` is not a finite number above 0.
#[must_use]
pub fn scale_pes(model: &LoadModel, factor: f64) -> LoadModel {
    assert!(factor.is_finite() && factor > 0.0, "a factor is a finite number above 0");
    let old = model.pes().len();
    let count = ((old as f64 * factor).round() as usize).max(1);
    let factor = count as f64 / old as f64;
    let before = |pe: usize| ((pe as f64 / factor) as usize).min(old - 1);
    let pes: Vec<Pe> = (0..count).map(|pe| model.pes()[before(pe)]).collect();

    let mut residents = vec![0_usize; old];
    model.objects().iter().for_each(|it| residents[it.pe] += 1);
    let mut seen = vec![0_usize; old];
    let objects = model.objects().iter().map(|it| {
        let part = (seen[it.pe] as f64 + 0.5) / residents[it.pe] as f64;
        seen[it.pe] += 1;
        let pe = ((it.pe as f64 + part) * factor) as usize;
        Object { pe: pe.min(count - 1), ..*it }
    });
    like(model, pes, objects.collect(), model.edges().to_vec())
}

/// `model` with each object cut into `pieces` equal ones, on the same PE.
///
/// Load, live bytes and communication are divided; each piece communicates with the corresponding
/// pieces of its object's partners. Cost: `pieces (n + e)`.
///
/// # Panics
///
/// If `pieces` is 0.
#[must_use]
pub fn scale_objects(model: &LoadModel, pieces: usize) -> LoadModel {
    assert!(pieces > 0, "an object is cut in at least one piece");
    let piece = |it: &Object| Object {
        load: it.load / pieces as f64,
        bytes: it.bytes.div_ceil(pieces as u64),
        ..*it
    };
    let objects = model.objects().iter().flat_map(|it| std::iter::repeat_n(piece(it), pieces));
    let edges = model.edges().iter().flat_map(|it| {
        (0..pieces).map(|number| Edge {
            from: it.from * pieces + number,
            to: it.to * pieces + number,
            messages: it.messages,
            bytes: it.bytes.div_ceil(pieces as u64),
        })
    });
    like(model, model.pes().to_vec(), objects.collect(), edges.collect())
}

fn like(model: &LoadModel, pes: Vec<Pe>, objects: Vec<Object>, edges: Vec<Edge>) -> LoadModel {
    LoadModel::new(pes, objects, edges)
        .and_then(|scaled| scaled.with_move_cost(model.move_cost()))
        .expect("what is made of a sound model is sound")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Assignment, cases};

    fn case(name: &str, objects: usize, pes: usize) -> LoadModel {
        let size = cases::Size { objects, pes, seed: 5 };
        cases::find(name).expect("a case").model(size).expect("sound")
    }

    #[test]
    fn work_stays_and_blocks_stay_even() {
        let model = case("uniform", 120, 6);
        for (factor, pes) in [(0.5, 3), (2.0, 12), (1.0, 6), (1e-9, 1), (1.5, 9)] {
            let scaled = scale_pes(&model, factor);
            assert_eq!(scaled.pes().len(), pes);
            let mut residents = vec![0; pes];
            scaled.objects().iter().for_each(|it| residents[it.pe] += 1);
            let (least, most) = (120 / pes - 4, 120 / pes + 4);
            assert!(residents.iter().all(|it| (least..=most).contains(it)), "{residents:?}");
        }
        assert_eq!(scale_pes(&model, 1.0), model);
    }

    #[test]
    fn pieces_add_up() {
        let model = case("grid", 30, 4);
        let scaled = scale_objects(&model, 3);
        assert_eq!(scaled.objects().len(), 90);
        assert_eq!(scaled.edges().len(), 3 * model.edges().len());
        let max_load = |model| Assignment::today(model).max_load(model);
        assert!((max_load(&scaled) - max_load(&model)).abs() < 1e-9);
        assert_eq!(scale_objects(&model, 1), model);
    }
}
