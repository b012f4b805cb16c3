//! `refine`: balances with as few moves as possible.
//!
//! Only PEs above a target give objects away, and only until they are at the target; objects go to
//! PEs that stay below it. Each PE first gives an object that brings it to the target in one move,
//! or else the largest that fits anywhere; among the objects that PEs would give next, the heaviest
//! goes first, while there is room for it. The first target is the lower bound ([`lower_bound`])
//! plus a tolerance; if that cannot be reached, halving finds one that can. The idea is that of
//! Charm++'s RefineLB (L. V. Kale and S. Krishnan, "CHARM++", OOPSLA 1993; the simulator of G.
//! Zheng, "BigSim", 2005, describes the strategies).
//!
//! Strategies that place by geometry or by communication end with the same step, for the imbalance
//! that their cuts leave.
//!
//! Inputs: loads, speeds, background load, live bytes (among objects of equal load, small ones
//! move), cost of moves (among the next few objects that bring a PE to the target, the cheapest to
//! move). Cost: `n log n` for sorting, and for each of at most twelve targets `n`, plus `log n` per
//! move.

use crate::{
    assignment::{Assignment, pe_loads},
    bounds::lower_bound,
    config::{Config, Domain, Parameter},
    least::Least,
    model::{LoadModel, MoveCost},
    order::{Order, by_bytes},
    strategy::{ROUNDING, Strategy},
};

/// Moves as few objects as possible from PEs above a target to PEs below it.
#[derive(Clone, Copy, Debug)]
pub struct Refine;

/// The number of targets that are tried after the first.
const HALVINGS: usize = 11;

impl Strategy for Refine {
    fn name(&self) -> &'static str {
        "refine"
    }

    fn help(&self) -> &'static str {
        "overloaded PEs give away as little as possible; for load that changes slowly"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[TOLERANCE]
    }

    fn propose(&self, model: &LoadModel, config: &Config, _seed: u64) -> Vec<usize> {
        let mut pes = Assignment::today(model).pes().to_vec();
        refine(model, &mut pes, config.number("tolerance"));
        pes
    }
}

/// The parameter of all strategies that end with [`refine`].
pub(crate) const TOLERANCE: Parameter = Parameter {
    name: "tolerance",
    help: "the busiest PE may be this part above what cannot be beaten",
    domain: Domain::Number { default: 0.05, range: 0.0..=10.0 },
};

/// Moves as few objects as possible until the busiest PE is at most `tolerance` above the lower
/// bound, or as close to it as this method can get. Objects that cannot move must be at home.
pub(crate) fn refine(model: &LoadModel, pes: &mut Vec<usize>, tolerance: f64) {
    let loads = pe_loads(model, pes);
    let mut best = loads.iter().copied().fold(0.0, f64::max);
    let aim = lower_bound(model) * (1.0 + tolerance);
    if best <= aim {
        return;
    }
    let residents = ByLoad::new(model).on_pes(model, pes);
    let start = pes.clone();
    let (mut low, mut high, mut target) = (aim, best, aim);
    for _ in 0..=HALVINGS {
        let mut attempt = start.clone();
        let reached = shed(model, &residents, &mut attempt, loads.clone(), target);
        if reached < best {
            best = reached;
            *pes = attempt;
        }
        if best <= aim * (1.0 + ROUNDING) || high - low <= aim * 1e-3 {
            break;
        }
        if reached <= target * (1.0 + ROUNDING) {
            high = target;
        } else {
            low = target;
            high = high.min(best);
        }
        target = f64::midpoint(low, high);
    }
}

/// Moves objects from PEs above `target` to PEs below it. Returns the load of the busiest PE
/// afterwards.
fn shed(
    model: &LoadModel,
    residents: &Residents,
    pes: &mut [usize],
    mut loads: Vec<f64>,
    target: f64,
) -> f64 {
    // Room is work, so that a slow PE with little to do and a fast one compare.
    let room = |pe: usize, load: f64| (target - load) * model.pes()[pe].speed;
    // The most room and the heaviest object come first: of the negative numbers they are the least.
    let as_taker =
        |pe: usize, load: f64| if load < target { -room(pe, load) } else { f64::INFINITY };
    let pes_and_loads = || loads.iter().copied().enumerate();
    let mut takers = Least::new(pes_and_loads().map(|(pe, load)| as_taker(pe, load)));
    let excess = |giver: usize, load: f64| ((load - target) * model.pes()[giver].speed).max(0.0);
    // The most room never grows, so what is too large once is too large for good: only the
    // `open` first objects of a PE are still candidates.
    let mut open: Vec<u32> = (0..loads.len()).map(|pe| residents.of(pe).len() as u32).collect();
    // By what they give next: while there is much room left, heavy objects find a place.
    let as_giver = |next: Option<(usize, f64)>| next.map_or(f64::INFINITY, |(_, load)| -load);
    let mut givers = Least::new(pes_and_loads().map(|(pe, load)| {
        let gives = load > target;
        let next = gives.then(|| next_to_give(model, residents.of(pe), excess(pe, load)));
        as_giver(next.flatten())
    }));

    loop {
        let ((giver, expected), (taker, space)) = (givers.first(), takers.first());
        if expected == f64::INFINITY || space == f64::INFINITY {
            break;
        }
        let objects = &residents.of(giver)[..open[giver] as usize];
        let fit = objects.partition_point(|it| it.load <= -space);
        open[giver] = fit as u32;
        let next = next_to_give(model, &objects[..fit], excess(giver, loads[giver]));
        let Some((choice, load)) = next.filter(|next| next.1 >= -expected) else {
            givers.set(giver, as_giver(next));
            continue;
        };
        pes[objects[choice].object as usize] = taker;
        loads[giver] -= load / model.pes()[giver].speed;
        loads[taker] += load / model.pes()[taker].speed;
        takers.set(taker, -room(taker, loads[taker]));
        open[giver] = choice as u32;
        let gives = loads[giver] > target * (1.0 + ROUNDING);
        let excess = excess(giver, loads[giver]);
        let next = gives.then(|| next_to_give(model, &objects[..choice], excess));
        givers.set(giver, as_giver(next.flatten()));
    }
    loads.into_iter().fold(0.0, f64::max)
}

/// Which of `objects`, by rising load, a PE gives to get rid of `excess`, and its load: one that is
/// enough, or else the largest. `None` if there is none.
fn next_to_give(model: &LoadModel, objects: &[Resident], excess: f64) -> Option<(usize, f64)> {
    let enough = objects.partition_point(|it| it.load < excess);
    let choice = if enough < objects.len() {
        one_that_is_enough(model, objects, enough)
    } else {
        objects.len().checked_sub(1)?
    };
    let load = objects[choice].load;
    (load > 0.0).then_some((choice, load))
}

/// How many loads above the smallest sufficient one are searched for a cheaper move.
const CHOICES: usize = 16;

/// Of `objects`, by rising load, the one that moves in place of `objects[enough]`: the one of equal
/// load with the fewest bytes, or a slightly heavier one if moving that is cheaper.
fn one_that_is_enough(model: &LoadModel, objects: &[Resident], enough: usize) -> usize {
    // Of equal loads the last has the fewest bytes.
    let last_equal = |index: usize| {
        let load = objects[index].load;
        index + objects[index..].partition_point(|it| it.load <= load) - 1
    };
    let mut best = last_equal(enough);
    if model.move_cost() == MoveCost::default() {
        return best;
    }
    let seconds = |index: usize| {
        let object = objects[index].object as usize;
        model.move_cost().seconds(model.objects()[object].bytes)
    };
    let mut choice = best;
    for _ in 0..CHOICES {
        if choice + 1 >= objects.len() {
            break;
        }
        choice = last_equal(choice + 1);
        if seconds(choice) < seconds(best) {
            best = choice;
        }
    }
    best
}

/// The movable objects on each PE, by rising load; equal ones by falling bytes.
pub(crate) struct Residents {
    objects: Vec<Resident>,
    starts: Vec<usize>,
}

/// An object on a PE, stored with its load for locality.
#[derive(Clone, Copy, Default)]
pub(crate) struct Resident {
    pub(crate) object: u32,
    pub(crate) load: f64,
}

/// The movable objects, by rising load; equal ones by falling bytes.
pub(crate) struct ByLoad(Vec<Resident>);

impl ByLoad {
    /// Sorts the objects of `model`: `n log n`.
    pub(crate) fn new(model: &LoadModel) -> Self {
        let resident =
            |&object: &u32| Resident { object, load: model.objects()[object as usize].load };
        Self(Order::rising(model, by_bytes(model)).objects().iter().map(resident).collect())
    }

    /// The same for each PE, by the PEs in `pes`: `n + p`.
    pub(crate) fn on_pes(&self, model: &LoadModel, pes: &[usize]) -> Residents {
        let places: Vec<u32> = self.0.iter().map(|it| pes[it.object as usize] as u32).collect();
        let mut starts = vec![0; model.pes().len() + 1];
        for &pe in &places {
            starts[pe as usize + 1] += 1;
        }
        for pe in 1..starts.len() {
            starts[pe] += starts[pe - 1];
        }
        let mut next = starts.clone();
        let mut by_pe = vec![Resident::default(); places.len()];
        for (&it, &pe) in self.0.iter().zip(&places) {
            let slot = &mut next[pe as usize];
            by_pe[*slot] = it;
            *slot += 1;
        }
        Residents { objects: by_pe, starts }
    }
}

impl Residents {
    pub(crate) fn of(&self, pe: usize) -> &[Resident] {
        &self.objects[self.starts[pe]..self.starts[pe + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Object, Pe},
        registry::create,
    };

    fn refined(model: &LoadModel, tolerance: &str) -> Assignment {
        create("refine", &[("tolerance", tolerance)]).expect("allowed").assign(model, 0)
    }

    #[test]
    fn one_move_is_made_where_one_is_enough() {
        let on_first = [5.0, 4.0, 3.0, 2.0, 1.0].map(|load| Object::new(load, 0));
        let on_second = [3.0, 2.0].map(|load| Object::new(load, 1));
        let objects = [on_first.as_slice(), &on_second].concat();
        let model = LoadModel::new(vec![Pe::default(); 2], objects, vec![]).expect("sound");
        let placed = refined(&model, "0");
        assert_eq!(placed.pes(), [1, 0, 0, 0, 0, 1, 1]);
        assert_eq!(placed.max_load(&model), 10.0);
    }

    #[test]
    fn small_objects_travel() {
        let objects = vec![Object::new(1.0, 0).with_bytes(9), Object::new(1.0, 0).with_bytes(1)];
        let model = LoadModel::new(vec![Pe::default(); 2], objects, vec![]).expect("sound");
        assert_eq!(refined(&model, "0").pes(), [0, 1]);
    }

    #[test]
    fn what_is_cheap_to_move_travels_if_it_is_enough() {
        let loads_and_bytes = [(2.0, 1_000_000), (2.1, 10), (1.9, 1_000_000)];
        let objects = loads_and_bytes.map(|(load, bytes)| Object::new(load, 0).with_bytes(bytes));
        let cost = MoveCost { fixed: 0.0, per_byte: 1e-7 };
        let model = LoadModel::new(vec![Pe::default(); 2], objects.to_vec(), vec![])
            .and_then(|model| model.with_move_cost(cost))
            .expect("sound");
        let moves: Vec<usize> = refined(&model, "0.5").moves(&model).map(|it| it.object).collect();
        assert_eq!(moves, [1]);
    }

    #[test]
    fn a_fast_pe_takes_more() {
        let pes = vec![Pe::default(), Pe { speed: 4.0, ..Pe::default() }];
        let model = LoadModel::new(pes, vec![Object::new(1.0, 0); 10], vec![]).expect("sound");
        let placed = refined(&model, "0");
        assert_eq!(placed.pe_loads(&model), [2.0, 2.0]);
    }

    #[test]
    fn heavy_objects_leave_slow_pes_while_there_is_room() {
        let size = crate::cases::Size { objects: 20_000, pes: 2000, seed: 0 };
        let case = crate::cases::find("unequal-pes").expect("a case");
        let model = case.model(size).expect("sound");
        let bound = lower_bound(&model);
        assert!(refined(&model, "0.05").max_load(&model) <= bound * 1.0501);
    }

    #[test]
    fn one_pe_may_hold_everything() {
        let loads = (0..10_000_u32).map(|it| f64::from(it * 7919 % 1009));
        let objects = loads.map(|load| Object::new(load, 3)).collect();
        let model = LoadModel::new(vec![Pe::default(); 100], objects, vec![]).expect("sound");
        assert!(refined(&model, "0.02").imbalance(&model) <= 0.0201);
    }
}
