//! Programs in a world that does not always behave as strategies predict.

use super::*;
use crate::{model::Pe, random::generator, registry::strategies};
use proptest::prelude::*;
use rand::Rng;

/// How much slower a program runs with a placement.
type Slowdown = Box<dyn Fn(&[usize]) -> f64>;

/// A program whose objects do a part of each round's work and wait for each other.
struct World {
    /// Seconds of work of each object in a round, at a time.
    load: Box<dyn Fn(f64, usize) -> f64>,
    /// The length of a round relative to the work of the busiest PE, for a placement.
    slowdown: Slowdown,
    /// Relative noise of measurements.
    noise: f64,
    pes: usize,
    placement: Vec<usize>,
    time: f64,
    rounds: f64,
    news: Vec<News>,
}

impl World {
    fn new(objects: usize, load: impl Fn(f64, usize) -> f64 + 'static) -> World {
        World {
            load: Box::new(load),
            slowdown: Box::new(|_| 1.0),
            noise: 0.0,
            pes: 2,
            placement: (0..objects).map(|object| 2 * object / objects).collect(),
            time: 0.0,
            rounds: 0.0,
            news: Vec::new(),
        }
    }

    /// The current length of a round in seconds.
    fn round(&self) -> f64 {
        let mut pes = vec![0.0; self.pes];
        for (object, pe) in self.placement.iter().enumerate() {
            pes[*pe] += (self.load)(self.time, object);
        }
        pes.into_iter().fold(0.0, f64::max) * (self.slowdown)(&self.placement)
    }

    fn run(&mut self, auto: &mut Auto, seconds: f64, seed: u64) {
        let mut lots = generator(seed, 0);
        let end = self.time + seconds;
        while self.time < end {
            let seconds = auto.interval();
            let mut noisy = |value: f64| value * (1.0 + self.noise * lots.random_range(-1.0..1.0));
            let rounds = noisy(seconds / self.round());
            let objects: Vec<Object> = (0..self.placement.len())
                .map(|object| {
                    let load = noisy((self.load)(self.time, object) * rounds);
                    Object::new(load, self.placement[object])
                })
                .collect();
            let ids: Vec<u32> = (0..objects.len() as u32).collect();
            let model = LoadModel::new(vec![Pe::default(); self.pes], objects, vec![]).unwrap();
            let step = auto
                .step(&Sample {
                    seconds,
                    model: &model,
                    ids: &ids,
                    pes: &vec![PeState::default(); self.pes],
                    events: (rounds * 4.0 * ids.len() as f64) as u64,
                    grain: 1e-4,
                    message_cost: MessageCost::default(),
                })
                .unwrap();
            for Placed { id, pe } in step.orders {
                self.placement[id as usize] = pe;
            }
            self.news.extend(step.news);
            self.time += seconds;
            self.rounds += rounds;
        }
    }
}

fn auto(names: &[&str]) -> Auto {
    let strategies: Vec<_> = names.iter().map(|name| find(name).unwrap()).collect();
    Auto::new(&strategies, None)
}

/// A quarter of the objects has eight times the work.
fn costly_quarter(_: f64, object: usize) -> f64 {
    if object < 8 { 8e-5 } else { 1e-5 }
}

#[test]
fn uneven_load_is_spread_and_stays_so() {
    let mut world = World { noise: 0.02, ..World::new(32, costly_quarter) };
    let before = world.round();
    let mut auto = auto(&USUAL);
    world.run(&mut auto, 1.0, 1);
    assert!(world.round() < 0.64 * before, "{:?}", world.news);
    assert!(
        matches!(&world.news[..], [News::Tries { .. }, News::Keeps { .. }]),
        "{:?}",
        world.news
    );
    let Account { kept, gained, .. } = *auto.account();
    assert!(kept == 1 && gained > 0.5, "{:?}", auto.account());
}

#[test]
fn who_begins_slowly_is_balanced_soon_after() {
    // For a second each round takes as long as thousand do later.
    let slowly = |time| if time < 1.0 { 1000.0 } else { 1.0 };
    let load = move |time, object| {
        slowly(time) * if time < 1.0 { 1e-5 } else { costly_quarter(time, object) }
    };
    let mut world = World { noise: 0.02, ..World::new(32, load) };
    let mut auto = auto(&USUAL);
    world.run(&mut auto, 1.0, 1);
    assert!(auto.interval() > 0.1, "{}", auto.interval());
    world.run(&mut auto, 1.5, 1);
    assert!(matches!(world.news[..], [News::Tries { .. }, ..]), "{:?}", world.news);
}

#[test]
fn where_nothing_can_be_gained_hardly_anything_is_tried() {
    for seed in 0..20 {
        let mut world = World { noise: 0.05, ..World::new(32, |_, _| 1e-5) };
        let mut auto = auto(&USUAL);
        world.run(&mut auto, 5.0, seed);
        assert!(auto.account().tried <= 3, "{:?}", world.news);
    }
}

#[test]
fn what_is_busy_in_turn_is_even() {
    for seed in 0..20 {
        let load = |time: f64, object: usize| {
            let is_busy = (time * 100.0) as usize % 2 == object / 16;
            if is_busy { 2e-5 } else { 1e-5 }
        };
        let mut world = World { noise: 0.05, ..World::new(32, load) };
        let mut auto = auto(&USUAL);
        world.run(&mut auto, 5.0, seed);
        assert!(auto.account().tried <= 1, "{:?}", world.news);
    }
}

#[test]
fn what_makes_it_worse_is_taken_back_within_two_steps() {
    let mut world = World { noise: 0.02, ..World::new(16, |_, _| 1e-5) };
    let before = world.placement.clone();
    let mut auto = auto(&["pile"]);
    let mut tried = 0.0;
    while world.news.len() < 2 && world.time < 5.0 {
        world.run(&mut auto, 0.001, 7);
        if world.news.is_empty() {
            tried = world.time;
        }
    }
    assert!(matches!(world.news[..], [_, News::TakesBack { .. }]), "{:?}", world.news);
    // The sample of the moves, and one more.
    assert!(world.time - tried <= 4.0 * auto.interval(), "{} {}", world.time, tried);
    world.run(&mut auto, 0.01, 8);
    assert_eq!(world.placement, before);
}

#[test]
fn what_cannot_be_told_from_noise_stays_only_if_it_seems_no_worse() {
    let home = World::new(32, costly_quarter).placement;
    let (mut stayed, mut went) = (0, 0);
    for seed in 0..30 {
        // What would be gained is lost elsewhere, and a little more.
        let home = home.clone();
        let begun = home.clone();
        let slowdown = move |placement: &[usize]| if placement == begun { 1.0 } else { 1.65 };
        let mut world =
            World { noise: 0.1, slowdown: Box::new(slowdown), ..World::new(32, costly_quarter) };
        let mut auto = auto(&["greedy"]);
        while world.news.len() < 2 && world.time < 20.0 {
            let seed = 1000 * seed + world.time.to_bits() % 997;
            world.run(&mut auto, 0.001, seed);
        }
        let is_home = world.placement == home;
        match world.news[..] {
            [_, News::NoGain { stays: true, change, .. }] => {
                assert!(change.gain >= 0.0 && !is_home, "{change:?}");
                stayed += 1;
            }
            [_, News::NoGain { stays: false, change, .. }] => {
                assert!(change.gain < 0.0 && is_home, "{change:?}");
                went += 1;
            }
            _ => {}
        }
    }
    assert!(went > 2 && stayed > 2, "{went} went back, {stayed} stayed");
}

#[test]
fn a_world_that_breaks_promises_is_left_alone_ever_longer() {
    // Whoever leaves his PE makes all slower than they were.
    let home: Vec<usize> = (0..32).map(|object| object / 16).collect();
    let slowdown = move |placement: &[usize]| if placement == home { 1.0 } else { 2.5 };
    let mut world =
        World { noise: 0.02, slowdown: Box::new(slowdown), ..World::new(32, costly_quarter) };
    let mut auto = auto(&USUAL);
    let best = 10.0 / world.round();
    world.run(&mut auto, 10.0, 3);
    assert!(auto.account().kept == 0 && auto.account().taken_back >= 2, "{:?}", world.news);
    assert!(world.rounds > 0.97 * best, "{} of {best}: {:?}", world.rounds, world.news);
}

#[test]
fn load_that_wanders_is_followed() {
    let load = |time: f64, object: usize| {
        let costly = (time as usize % 4) * 8..(time as usize % 4) * 8 + 8;
        if costly.contains(&object) { 8e-5 } else { 1e-5 }
    };
    let mut world = World { noise: 0.02, ..World::new(32, load) };
    let mut still = World { noise: 0.02, ..World::new(32, load) };
    world.run(&mut auto(&USUAL), 12.0, 5);
    still.run(&mut auto(&["null"]), 12.0, 5);
    assert!(world.rounds > 1.35 * still.rounds, "{} {}", world.rounds, still.rounds);
}

#[test]
fn what_was_learned_comes_first() {
    let mut world = World { noise: 0.02, ..World::new(32, costly_quarter) };
    let mut auto = auto(&USUAL);
    let placement = (0..32).map(|id| Placed { id, pe: id as usize % 2 }).collect();
    auto.begin_with(0.01, Some(placement));
    world.run(&mut auto, 0.02, 1);
    assert_eq!(world.placement, (0..32).map(|object| object % 2).collect::<Vec<_>>());
    world.run(&mut auto, 1.0, 1);
    assert!(!auto.has_refuted());
}

#[test]
fn what_was_learned_and_is_wrong_now_is_taken_back() {
    let mut world = World { noise: 0.02, ..World::new(32, |_, _| 1e-5) };
    let mut auto = auto(&USUAL);
    auto.begin_with(0.01, Some((0..32).map(|id| Placed { id, pe: 0 }).collect()));
    world.run(&mut auto, 1.0, 1);
    assert!(auto.has_refuted());
    assert_eq!(world.placement.iter().filter(|pe| **pe == 0).count(), 16);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is measured, orders are for objects that can move, to existing PEs.
    #[test]
    fn orders_can_be_followed(
        samples in prop::collection::vec(
            (0.0..0.1_f64, 0..1000_u64, prop::collection::vec((0.0..0.1_f64, 0..3_usize, any::<bool>()), 1..12)),
            1..60,
        ),
    ) {
        let all: Vec<_> = strategies().to_vec();
        let mut auto = Auto::new(&all, None);
        for (seconds, events, objects) in samples {
            let objects: Vec<Object> = objects
                .into_iter()
                .map(|(load, pe, migratable)| Object { migratable, ..Object::new(load, pe) })
                .collect();
            let ids: Vec<u32> = (0..objects.len() as u32).map(|id| id * 3).collect();
            let model = LoadModel::new(vec![Pe::default(); 3], objects.clone(), vec![]).expect("sound");
            let pes = vec![PeState::default(); 3];
            let step = auto.step(&Sample {
                seconds, model: &model, ids: &ids, pes: &pes, events, grain: 1e-3,
                message_cost: MessageCost::default(),
            });
            for Placed { id, pe } in step.expect("a model").orders {
                let object = &objects[id as usize / 3];
                prop_assert!(object.migratable && object.pe != pe && pe < 3);
            }
            prop_assert!(auto.interval() > 0.0 && auto.account().gained.is_finite());
        }
    }
}
