//! Every strategy on every kind of model: checks their guarantees, and greedy against brute force.

use lb_strategies::{
    Assignment, Config, Edge, LoadModel, MoveCost, Object, Pe, find, lower_bound, strategies,
};
use proptest::prelude::*;

/// Seconds: often equal, sometimes 0.
fn load() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..10.0, (0_u8..20).prop_map(f64::from)]
}

/// Any model with up to `pes` PEs and `objects` objects, including communication, coordinates,
/// nodes and a cost of moves.
fn any_model(pes: usize, objects: usize) -> impl Strategy<Value = LoadModel> {
    let speed = prop_oneof![Just(1.0), Just(2.0), 0.1..4.0];
    let pe = (speed, prop_oneof![Just(0.0), 0.0..20.0], 0_usize..3)
        .prop_map(|(speed, background, node)| Pe { speed, background, node });
    let cost = (prop_oneof![Just(0.0), 0.0..1.0], prop_oneof![Just(0.0), 0.0..1e-9])
        .prop_map(|(fixed, per_byte)| MoveCost { fixed, per_byte });
    (prop::collection::vec(pe, 1..=pes), cost).prop_flat_map(move |(pes, cost)| {
        let point = prop::option::of([-9.0..9.0, 0.0..1.0, 3.0..3.1]);
        let object = (load(), 0..pes.len(), prop::bool::weighted(0.8), any::<u32>(), point)
            .prop_map(|(load, pe, migratable, bytes, coordinates)| {
                let bytes = bytes.into();
                Object { load, pe, migratable, bytes, coordinates }
            });
        let end = any::<prop::sample::Index>();
        let edges = prop::collection::vec((end.clone(), end, 0_u64..9, any::<u16>()), 0..80);
        (prop::collection::vec(object, 0..=objects), edges).prop_map(move |(objects, edges)| {
            let edge = |(from, to, messages, bytes): (
                prop::sample::Index,
                prop::sample::Index,
                _,
                u16,
            )| {
                let (from, to) = (from.index(objects.len()), to.index(objects.len()));
                Edge { from, to, messages, bytes: bytes.into() }
            };
            let edges = if objects.is_empty() { vec![] } else { edges };
            let edges = edges.into_iter().map(edge).collect();
            LoadModel::new(pes.clone(), objects, edges)
                .and_then(|model| model.with_move_cost(cost))
                .expect("sound by construction")
        })
    })
}

/// Equal PEs without background load; all objects can move.
fn uniform_model(pes: usize, objects: usize) -> impl Strategy<Value = LoadModel> {
    (1..=pes).prop_flat_map(move |pes| {
        let object = (load(), 0..pes).prop_map(|(load, pe)| Object::new(load, pe));
        prop::collection::vec(object, 0..=objects).prop_map(move |objects| {
            LoadModel::new(vec![Pe::default(); pes], objects, vec![])
                .expect("sound by construction")
        })
    })
}

/// The smallest possible load of the busiest PE, by trying every assignment.
fn best_possible(model: &LoadModel) -> f64 {
    fn try_all(model: &LoadModel, object: usize, loads: &mut [f64], best: &mut f64) {
        let busiest = loads.iter().copied().fold(0.0, f64::max);
        if busiest >= *best {
            return;
        }
        let Some(this) = model.objects().get(object) else {
            *best = busiest;
            return;
        };
        let choices = if this.migratable { 0..loads.len() } else { this.pe..this.pe + 1 };
        for pe in choices {
            let before = loads[pe];
            loads[pe] += model.seconds_on(object, pe);
            try_all(model, object + 1, loads, best);
            loads[pe] = before;
        }
    }
    let mut loads: Vec<f64> = model.pes().iter().map(|pe| pe.background).collect();
    let mut best = f64::INFINITY;
    try_all(model, 0, &mut loads, &mut best);
    best
}

/// `a <= b`, except for rounding.
fn at_most(a: f64, b: f64) -> bool {
    a <= b * (1.0 + 1e-9) + 1e-12
}

proptest! {
    #[test]
    fn every_strategy_keeps_its_promises(model in any_model(12, 60), seed in any::<u64>()) {
        let today = Assignment::today(&model);
        for strategy in strategies() {
            let config = Config::new(*strategy);
            let assignment = strategy.assign(&model, &config, seed);
            // A second look gives the same answer.
            prop_assert_eq!(&assignment, &strategy.assign(&model, &config, seed));
            // Every object has a PE, pinned ones their own.
            let checked = Assignment::new(&model, assignment.pes().to_vec());
            prop_assert_eq!(checked.as_ref(), Ok(&assignment));
            if strategy.is_chaos() {
                continue;
            }
            // Never worse than today.
            prop_assert!(assignment.max_load(&model) <= today.max_load(&model));
            // Nothing moves for nothing.
            let saves_time = assignment.max_load(&model) < today.max_load(&model);
            let saves_bytes = assignment.remote_bytes(&model) < today.remote_bytes(&model);
            let may_move = saves_time || strategy.heeds_communication() && saves_bytes;
            let moves = assignment.moves(&model).count();
            prop_assert!(may_move || moves == 0, "{}: {} moves", strategy.name(), moves);
        }
    }

    #[test]
    fn no_strategy_beats_brute_force_nor_that_the_bound(
        model in any_model(4, 7),
        seed in any::<u64>(),
    ) {
        let best = best_possible(&model);
        prop_assert!(at_most(lower_bound(&model), best), "{} above {}", lower_bound(&model), best);
        for strategy in strategies() {
            let got = strategy.assign(&model, &Config::new(*strategy), seed).max_load(&model);
            prop_assert!(at_most(best, got), "{}: {} below {}", strategy.name(), got, best);
        }
    }

    /// If moves are free, greedy-refine stays within its tolerance of greedy.
    #[test]
    fn greedy_refine_is_almost_greedy(model in uniform_model(5, 30)) {
        let max_load = |name| {
            let strategy = find(name).expect("registered");
            strategy.assign(&model, &Config::new(strategy), 0).max_load(&model)
        };
        let (refined, greedy) = (max_load("greedy-refine"), max_load("greedy"));
        prop_assert!(at_most(refined, greedy * 1.05), "{} for {}", refined, greedy);
    }

    #[test]
    fn greedy_is_within_grahams_bound(model in uniform_model(4, 8)) {
        let greedy = find("greedy").expect("registered");
        let got = greedy.assign(&model, &Config::new(greedy), 0).max_load(&model);
        let (best, pes) = (best_possible(&model), model.pes().len() as f64);
        prop_assert!(at_most(got, (4.0 / 3.0 - 1.0 / (3.0 * pes)) * best), "{} for {}", got, best);
    }

    /// With speeds, background load and pinned objects there is no constant bound. What holds is
    /// the argument for list scheduling: the last object on the busiest PE would end no earlier on
    /// any other.
    #[test]
    fn greedy_leaves_no_single_move_that_helps(model in any_model(4, 7)) {
        // An object whose move costs something may stay though the move would help.
        let model = model.with_move_cost(MoveCost::default()).expect("free");
        let greedy = find("greedy").expect("registered");
        let got = greedy.assign(&model, &Config::new(greedy), 0);
        prop_assert!(at_most(best_possible(&model), got.max_load(&model)));
        if got == Assignment::today(&model) {
            return Ok(());
        }
        let loads = got.pe_loads(&model);
        let most = got.max_load(&model);
        for busiest in (0..loads.len()).filter(|&pe| loads[pe] == most) {
            let lightest = (0..got.pes().len())
                .filter(|&it| got.pes()[it] == busiest && model.objects()[it].migratable)
                .min_by(|&a, &b| model.objects()[a].load.total_cmp(&model.objects()[b].load));
            let Some(lightest) = lightest else { continue };
            for (pe, &load) in loads.iter().enumerate().filter(|&(pe, _)| pe != busiest) {
                prop_assert!(at_most(most, load + model.seconds_on(lightest, pe)));
            }
        }
    }
}

#[test]
fn many_objects_of_equal_load_are_balanced_exactly() {
    let objects: Vec<Object> = (0..10_000).map(|it| Object::new(1.0, it % 3)).collect();
    let model = LoadModel::new(vec![Pe::default(); 8], objects, vec![]).expect("sound");
    let greedy = find("greedy").expect("registered");
    let assignment = greedy.assign(&model, &Config::new(greedy), 0);
    assert_eq!(assignment.pe_loads(&model), [1250.0; 8]);
    // 1,250 of each of three PEs stay.
    assert_eq!(assignment.moves(&model).count(), 10_000 - 3 * 1250);
}
