//! `greedy-refine`: as balanced as greedy, with far fewer moves.
//!
//! Greedy is run first, to find the attainable balance. Then the objects are placed again, heaviest first, but each
//! stays while its PE is below that balance, widened by a tolerance; only objects that do not fit go to the PE that
//! finishes them first. A few widths are tried; among those within the tolerance the one with the cheapest moves wins:
//! the fewest seconds by the measured cost of moves, then the fewest moves, then the fewest bytes. The idea is that of
//! Charm++'s GreedyRefineLB (B. Acun and others, "Parallel programming with migratable objects: Charm++ in practice",
//! SC 2014).
//!
//! Inputs: loads, speeds, background load, live bytes, cost of moves. Cost: greedy's, with four times as many
//! placements; with many objects, threads try the widths in parallel.

use std::cmp::Ordering;

use crate::{
    assignment::Assignment,
    config::{Config, Domain, Parameter},
    greedy::{heaviest_first, place},
    model::LoadModel,
    order::{Order, by_home},
    parallel,
    strategy::{Price, Strategy},
    ties::settle,
};

/// Greedy that leaves objects on their PE while it is below greedy's balance.
#[derive(Clone, Copy, Debug)]
pub struct GreedyRefine;

/// The widths that are tried, as parts of the tolerance.
const WIDTHS: [f64; 3] = [1.0, 0.5, 0.0];

impl Strategy for GreedyRefine {
    fn name(&self) -> &'static str {
        "greedy-refine"
    }

    fn help(&self) -> &'static str {
        "like greedy, but an object stays while its PE keeps below greedy's balance; few moves: \
         a good first choice"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[Parameter {
            name: "tolerance",
            help: "the busiest PE may get this part more than by greedy",
            domain: Domain::Number { default: 0.01, range: 0.0..=10.0 },
        }]
    }

    fn propose(&self, model: &LoadModel, config: &Config, _seed: u64) -> Vec<usize> {
        let order = Order::falling(model, by_home(model));
        let items = heaviest_first(model, &order);
        let evaluated = |pes| evaluate(model, &order, pes);
        let greedy = evaluated(place(model, &items, |_, home, best| home <= best));
        let tolerance = config.number("tolerance");
        let limit = greedy.max_load * (1.0 + tolerance);
        let price = Price::new(model, config);
        let within = parallel::each(parallel::threads(items.len()), WIDTHS, |width| {
            let target = greedy.max_load * (1.0 + width * tolerance);
            let stays = |object, home, best| home <= target || home <= best + price.of(object);
            evaluated(place(model, &items, stays))
        });
        let within = within.into_iter();
        let cheapest = within.filter(|it| it.max_load <= limit).min_by(Evaluated::by_price);
        let cheaper = cheapest.filter(|it| it.by_price(&greedy).is_lt());
        cheaper.unwrap_or(greedy).pes
    }
}

struct Evaluated {
    pes: Vec<usize>,
    max_load: f64,
    /// Seconds of all moves together.
    seconds: f64,
    moves: usize,
    bytes: u64,
}

impl Evaluated {
    fn by_price(&self, other: &Self) -> Ordering {
        let price = |it: &Self| (it.moves, it.bytes);
        self.seconds.total_cmp(&other.seconds).then(price(self).cmp(&price(other)))
    }
}

fn evaluate(model: &LoadModel, order: &Order, mut pes: Vec<usize>) -> Evaluated {
    settle(model, order, &mut pes);
    let assignment = Assignment::new(model, pes).expect("placed on PEs of the model");
    let max_load = assignment.max_load(model);
    let mut found = Evaluated { pes: vec![], max_load, seconds: 0.0, moves: 0, bytes: 0 };
    for it in assignment.moves(model) {
        found.seconds += model.move_cost().seconds(it.bytes);
        found.moves += 1;
        found.bytes = found.bytes.saturating_add(it.bytes);
    }
    found.pes = assignment.into_pes();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Object, Pe},
        registry::create,
    };

    #[test]
    fn moves_only_what_stands_out() {
        // Three PEs with 10 objects each, and 5 more on PE 0.
        let mut objects: Vec<Object> = (0..30).map(|it| Object::new(1.0, it % 3)).collect();
        objects.extend([Object::new(1.0, 0); 6]);
        let model = LoadModel::new(vec![Pe::default(); 3], objects, vec![]).expect("sound");
        let strategy = create("greedy-refine", &[("tolerance", "0")]).expect("allowed");
        let placed = strategy.assign(&model, 0);
        assert_eq!(placed.max_load(&model), 12.0);
        assert_eq!(placed.moves(&model).count(), 4);
    }

    #[test]
    fn tolerance_saves_moves() {
        let loads = (0..400_u32).map(|it| f64::from(it * 7919 % 101) + f64::from(it) / 1e4);
        let objects = loads.enumerate().map(|(it, load)| Object::new(load, it % 5 / 2)).collect();
        let model = LoadModel::new(vec![Pe::default(); 5], objects, vec![]).expect("sound");
        let run = |name: &str, arguments: &[(&str, &str)]| {
            create(name, arguments).expect("allowed").assign(&model, 0)
        };
        let greedy = run("greedy", &[]);
        let refined = run("greedy-refine", &[("tolerance", "0.1")]);
        assert!(refined.max_load(&model) <= greedy.max_load(&model) * 1.1);
        assert!(refined.moves(&model).count() < greedy.moves(&model).count());
    }
}
