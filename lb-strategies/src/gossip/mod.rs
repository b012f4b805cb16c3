//! `gossip`: PEs learn by rumours which PEs are lightly loaded, and send objects there.
//!
//! The distributed TemperedLB (J. Lifflander, N. L. Slattengren, P. P. Pebay, P. Miller, F. Rizzi
//! and M. T. Bettencourt, "Optimizing Distributed Load Balancing for Workloads with Time-Varying
//! Imbalance", CLUSTER 2021), which improves on H. Menon and L. V. Kale, "A distributed dynamic
//! load balancer for iterative applications", SC 2013. One iteration:
//!
//! - *Inform.* PEs below the mean tell a few PEs, drawn at random, about themselves. A PE that has
//!   learnt something new in a round tells a few others all it knows in the next, for several
//!   rounds.
//! - *Transfer.* Each PE above the mean goes through its objects: first the smallest one that alone
//!   would bring it to the mean, then smaller ones, then larger ones. It draws a PE among those it
//!   knows, with a probability that grows as load falls, and sends the object if that PE, as far as
//!   known, would then still be below the sender's current load. As many PEs send at once, the
//!   receiver may have a higher load by then: it takes the object only if the condition really
//!   holds, otherwise it answers with its load (the negative acknowledgement of the second paper).
//!   So no iteration makes things worse, however many PEs there are.
//!
//! Further trials start again from today's placement with other random numbers, until one reaches
//! the tolerance. The best state of all trials is the result.
//!
//! In a distributed run the cost is spread over PEs, and no PE knows all loads, only their mean.
//! Here the algorithm runs in one place, by the same rules, so that it can be compared and
//! replayed. A PE remembers at most `knowledge` names, which bounds memory at large scale; a PE
//! below the mean, which needs them only to pass them on, a quarter of that.
//!
//! Inputs: loads, speeds, background load, seed. Cost: `n log n`, plus for each iteration `n`, `p
//! fanout` for each round, and `p knowledge` names, each of which is looked up among those that a
//! PE knows. Objects on busy PEs cost a few random draws each.

mod rumours;

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::{
    assignment::Assignment,
    bounds::Bounds,
    config::{Config, Domain, Parameter},
    model::LoadModel,
    order::{Order, by_bytes},
    parallel,
    random::generator,
    refine::TOLERANCE,
    strategy::Strategy,
};
use rumours::Rumours;

/// PEs learn by rumours which PEs are lightly loaded, and send objects there.
#[derive(Clone, Copy, Debug)]
pub struct Gossip;

impl Strategy for Gossip {
    fn name(&self) -> &'static str {
        "gossip"
    }

    fn help(&self) -> &'static str {
        "PEs hear rumours of who has little to do and send objects there (TemperedLB)"
    }

    fn parameters(&self) -> &'static [Parameter] {
        const fn count(
            name: &'static str,
            help: &'static str,
            default: u64,
            max: u64,
        ) -> Parameter {
            Parameter { name, help, domain: Domain::Count { default, range: 1..=max } }
        }
        const PARAMETERS: &[Parameter] = &[
            TOLERANCE,
            count("trials", "how often to begin anew from today", 2, 1000),
            count("iterations", "how often to inform and transfer in a trial", 8, 1000),
            count("rounds", "how far a rumour is told on", 6, 64),
            count("fanout", "how many PEs a rumour is told to at once", 6, 64),
            count(
                "knowledge",
                "how many PEs a PE above the mean remembers to have heard of, others a quarter",
                64,
                1 << 20,
            ),
        ];
        PARAMETERS
    }

    fn propose(&self, model: &LoadModel, config: &Config, seed: u64) -> Vec<usize> {
        let today = Assignment::today(model);
        let bounds = Bounds::new(model);
        let aim = bounds.lowest(model) * (1.0 + config.number("tolerance"));
        let busiest = today.max_load(model);
        let mut pes = today.into_pes();
        if busiest <= aim {
            return pes;
        }
        let order = Order::rising(model, by_bytes(model));
        let objects = order.objects().iter().map(|&it| {
            let object = &model.objects()[it as usize];
            (object.load, object.pe as u32)
        });
        let (loads, homes) = objects.unzip();
        let job = Job {
            rounds: config.count("rounds"),
            fanout: config.count("fanout"),
            knowledge: config.count("knowledge"),
            iterations: config.count("iterations"),
            seed,
            aim,
            mean: bounds.level,
            speeds: model.pes().iter().map(|it| it.speed).collect(),
            fixed: bounds.fixed,
            loads,
            homes,
        };
        if let Some(placed) = job.best_of(config.count("trials"), busiest) {
            for (&object, pe) in order.objects().iter().zip(placed) {
                pes[object as usize] = pe as usize;
            }
        }
        pes
    }
}

/// The common data of all trials. Objects are the movable ones, numbered by rising load.
struct Job {
    rounds: usize,
    fanout: usize,
    knowledge: usize,
    iterations: usize,
    seed: u64,
    /// A trial ends when the load of the busiest PE is at most this.
    aim: f64,
    /// The load of a PE when all have the same.
    mean: f64,
    speeds: Vec<f64>,
    /// For each PE, its load without movable objects.
    fixed: Vec<f64>,
    loads: Vec<f64>,
    homes: Vec<u32>,
}

impl Job {
    /// The best state of all trials, or of the first that reaches the aim. `None` if none is better than today's, in
    /// which the busiest PE has `busiest`.
    ///
    /// Trials are independent, so threads run some in parallel; trials after the first one that reaches the aim do not
    /// count, whether they have begun or not.
    fn best_of(&self, trials: usize, busiest: f64) -> Option<Vec<u32>> {
        let threads = parallel::threads(self.loads.len() + self.speeds.len());
        let first_at_aim = AtomicUsize::new(usize::MAX);
        let best = Mutex::new((busiest, None));
        let before = |a: (f64, Option<usize>), b: (f64, Option<usize>)| {
            let rank = |it: (f64, Option<usize>)| (it.0 > self.aim, it.0.max(self.aim), it.1);
            rank(a) < rank(b)
        };
        parallel::each(threads.min(trials), 0..trials, |trial| {
            let (reached, pes) = self.trial(trial, threads.div_ceil(trials), &first_at_aim);
            let mut best = best.lock().unwrap_or_else(PoisonError::into_inner);
            let (least, by) = &*best;
            let by = by.as_ref().map(|(trial, _)| *trial);
            if before((reached, Some(trial)), (*least, by)) {
                *best = (reached, Some((trial, pes)));
            }
        });
        let (_, best) = best.into_inner().unwrap_or_else(PoisonError::into_inner);
        best.map(|(_, pes)| pes)
    }

    /// The number of names that a PE with `load` remembers: a PE that gives nothing needs them only to pass them on.
    fn memory(&self, load: f64) -> usize {
        if load < self.mean { self.knowledge.div_ceil(4) } else { self.knowledge }
    }

    /// The best state of a trial, with the load of its busiest PE.
    fn trial(&self, trial: usize, threads: usize, first_at_aim: &AtomicUsize) -> (f64, Vec<u32>) {
        let mut lots = generator(self.seed, stream(trial, 0));
        let mut rumours = Rumours::new(self, trial);
        let mut residents = AboveMean::default();
        let mut pes = self.homes.clone();
        let mut loads = self.loads_of_pes(&pes);
        let mut best = (f64::INFINITY, vec![]);
        for _ in 0..self.iterations {
            if first_at_aim.load(Ordering::Relaxed) < trial {
                break;
            }
            rumours.spread(self, &loads, threads);
            residents.find(self, &pes, &loads);
            self.transfer(&residents, &loads, &rumours, &mut pes, &mut lots);
            loads = self.loads_of_pes(&pes);
            let busiest = loads.iter().copied().fold(0.0, f64::max);
            if busiest < best.0 {
                best.0 = busiest;
                best.1.clone_from(&pes);
            }
            if busiest <= self.aim {
                first_at_aim.fetch_min(trial, Ordering::Relaxed);
                break;
            }
        }
        best
    }

    fn loads_of_pes(&self, pes: &[u32]) -> Vec<f64> {
        let mut loads = self.fixed.clone();
        for (load, &pe) in self.loads.iter().zip(pes) {
            loads[pe as usize] += load / self.speeds[pe as usize];
        }
        loads
    }

    /// Every PE above the mean sends objects to PEs that it knows, by their loads when the rumours began; the receivers
    /// take what they can by then.
    fn transfer(
        &self,
        residents: &AboveMean,
        loads: &[f64],
        rumours: &Rumours,
        pes: &mut [u32],
        lots: &mut ChaCha8Rng,
    ) {
        let mut now = loads.to_vec();
        let fastest = self.speeds.iter().copied().fold(0.0, f64::max);
        let mut choices = Choices::default();
        for pe in (0..loads.len()).filter(|&pe| loads[pe] > self.mean) {
            let known = rumours.of(pe);
            choices.begin(known.iter().map(|&it| loads[it as usize]), self.mean);
            let mut here = loads[pe];
            let objects = residents.of(pe);
            let excess = (here - self.mean) * self.speeds[pe];
            let enough = objects.iter().take_while(|it| it.0 < excess).count();
            let first = (enough + 1).min(objects.len());
            for &(load, object) in objects[..first].iter().rev().chain(&objects[first..]) {
                if here <= self.mean {
                    break;
                }
                // No lot is drawn for what nobody takes.
                if load == 0.0 || choices.least + load / fastest >= here {
                    continue;
                }
                let Some(choice) = choices.draw(lots) else { break };
                let target = known[choice] as usize;
                let more = load / self.speeds[target];
                if choices.loads[choice] + more >= here {
                    continue;
                }
                if now[target] + more < here {
                    now[target] += more;
                    here -= load / self.speeds[pe];
                    pes[object as usize] = target as u32;
                }
                choices.correct(choice, now[target]);
            }
        }
    }
}

/// The PEs that a PE knows, with their assumed loads.
#[derive(Default)]
struct Choices {
    loads: Vec<f64>,
    /// The highest load among them, or the mean if that is more.
    top: f64,
    /// A lower bound for their loads.
    least: f64,
}

impl Choices {
    fn begin(&mut self, loads: impl Iterator<Item = f64>, mean: f64) {
        self.loads.clear();
        self.loads.extend(loads);
        let (less, more) = (|a, b| if b < a { b } else { a }, |a, b| if b > a { b } else { a });
        self.top = self.loads.iter().copied().fold(mean, more);
        self.least = self.loads.iter().copied().fold(f64::INFINITY, less);
    }

    /// Corrects the load of a PE to `load`, which is not less than assumed: no PE below the mean gives objects away.
    fn correct(&mut self, choice: usize, load: f64) {
        self.loads[choice] = load;
        self.top = self.top.max(load);
    }

    /// Draws one at random, with a probability that grows as load falls; `None` if none is below the top.
    fn draw(&self, lots: &mut ChaCha8Rng) -> Option<usize> {
        let Self { ref loads, top, least } = *self;
        // One drawn as if all were alike is taken as often as it would be. Mostly that is soon.
        for _ in 0..TRIES.min(loads.len()) {
            let choice = lots.random_range(0..loads.len() as u32) as usize;
            if lots.random::<f64>() * (top - least) < top - loads[choice] {
                return Some(choice);
            }
        }
        let total: f64 = loads.iter().map(|load| top - load).sum();
        if total <= 0.0 {
            return None;
        }
        let mut left = lots.random::<f64>() * total;
        let mut last = None;
        for (choice, load) in loads.iter().enumerate() {
            if top > *load {
                last = Some(choice);
                left -= top - load;
                if left < 0.0 {
                    break;
                }
            }
        }
        last
    }
}

/// How often a PE is drawn with equal probabilities before the weights are summed.
const TRIES: usize = 8;

/// The random stream of a part of a trial.
fn stream(trial: usize, part: usize) -> u64 {
    (trial as u64) << 32 | part as u64
}

/// The objects on each PE above the mean, by rising load.
#[derive(Default)]
struct AboveMean {
    objects: Vec<(f64, u32)>,
    /// For each PE, the end of its objects, where those of the next PE begin.
    ends: Vec<u32>,
}

impl AboveMean {
    fn find(&mut self, job: &Job, pes: &[u32], loads: &[f64]) {
        let gives = |pe: u32| loads[pe as usize] > job.mean;
        self.ends.clear();
        self.ends.resize(loads.len(), 0);
        for &pe in pes.iter().filter(|&&pe| gives(pe)) {
            self.ends[pe as usize] += 1;
        }
        let mut begin = 0;
        for end in &mut self.ends {
            (*end, begin) = (begin, begin + *end);
        }
        self.objects.resize(begin as usize, (0.0, 0));
        for ((&pe, &load), object) in pes.iter().zip(&job.loads).zip(0..) {
            if gives(pe) {
                let end = &mut self.ends[pe as usize];
                self.objects[*end as usize] = (load, object);
                *end += 1;
            }
        }
    }

    fn of(&self, pe: usize) -> &[(f64, u32)] {
        let begin = if pe == 0 { 0 } else { self.ends[pe - 1] };
        &self.objects[begin as usize..self.ends[pe] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Object, Pe},
        registry::create,
    };

    fn heap() -> LoadModel {
        let objects = (0..1000_u32).map(|it| Object::new(f64::from(it % 7), 3 + it as usize % 2));
        LoadModel::new(vec![Pe::default(); 32], objects.collect(), vec![]).expect("sound")
    }

    #[test]
    fn a_heap_spreads_over_all_pes() {
        let model = heap();
        let placed = create::<&str, &str>("gossip", &[]).expect("exists").assign(&model, 1);
        assert!(placed.imbalance(&model) < 0.2, "{}", placed.imbalance(&model));
    }

    #[test]
    fn lots_decide() {
        let model = heap();
        let gossip = create::<&str, &str>("gossip", &[]).expect("exists");
        assert_ne!(gossip.assign(&model, 1), gossip.assign(&model, 2));
        assert_eq!(gossip.assign(&model, 1), gossip.assign(&model, 1));
    }

    #[test]
    fn the_less_loaded_are_drawn_the_more_often() {
        let mut lots = generator(0, 0);
        let mut choices = Choices::default();
        for loads in [vec![4.0, 10.0, 8.0], [vec![10.0; 60], vec![9.9, 4.0, 8.0]].concat()] {
            choices.begin(loads.iter().copied(), 10.0);
            let mut drawn = vec![0.0; loads.len()];
            for _ in 0..40_000 {
                drawn[choices.draw(&mut lots).expect("some are below")] += 1.0 / 40_000.0;
            }
            let total: f64 = loads.iter().map(|it| 10.0 - it).sum();
            for (load, drawn) in loads.iter().zip(drawn) {
                assert!((drawn - (10.0 - load) / total).abs() < 0.02, "{load}: {drawn}");
            }
        }
        for loads in [&[10.0; 3][..], &[]] {
            choices.begin(loads.iter().copied(), 10.0);
            assert_eq!(choices.draw(&mut lots), None);
        }
    }
}
