//! `gossip`: PEs hear rumours of who has little to do, and send objects there.
//!
//! The distributed TemperedLB (J. Lifflander, N. L. Slattengren, P. P. Pebay, P. Miller, F.
//! Rizzi and M. T. Bettencourt, "Optimizing Distributed Load Balancing for Workloads with
//! Time-Varying Imbalance", CLUSTER 2021), which improves on H. Menon and L. V. Kale, "A
//! distributed dynamic load balancer for iterative applications", SC 2013. One iteration:
//!
//! - *Inform.* PEs below the mean tell a few PEs, drawn by lot, of themselves. Who learns something
//!   new tells a few others all that it knows, for some rounds.
//! - *Transfer.* Each PE above the mean goes through its objects: first the smallest that alone
//!   would bring it to the mean, then smaller ones, then larger ones. It draws a PE among those it
//!   knows, the less loaded the likelier, and sends the object if that PE, as far as known, is
//!   then still below what the sender has now. As many PEs send at once, the receiver may know
//!   better by then: it takes the object only if that is true, else it answers with what it has
//!   (the negative acknowledgement of the second paper). So no iteration makes things worse,
//!   however many PEs there are.
//!
//! Trials begin anew from today with other lots. In the end the best state of all is taken.
//!
//! In a distributed run the cost is spread over PEs and nobody knows all loads but their mean.
//! Here it is computed in one place, by the same rules, so that it can be compared and replayed.
//! A PE keeps at most `knowledge` names, which bounds memory at large scale.
//!
//! Inputs: loads, speeds, background load, seed. Cost of an iteration: `p fanout knowledge` for
//! each round, `n log n`, and `knowledge` for each object that a busy PE looks at.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::{
    assignment::{Assignment, pe_loads},
    bounds::{Bounds, lower_bound},
    config::{Config, Domain, Parameter},
    model::LoadModel,
    random::generator,
    refine::{ByLoad, Residents, TOLERANCE},
    strategy::Strategy,
};

/// PEs hear rumours of who has little to do, and send objects there.
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
            count("knowledge", "how many PEs a PE remembers to have heard of", 64, 1 << 20),
        ];
        PARAMETERS
    }

    fn propose(&self, model: &LoadModel, config: &Config, seed: u64) -> Vec<usize> {
        let gossip = Settings {
            rounds: config.count("rounds"),
            fanout: config.count("fanout"),
            knowledge: config.count("knowledge"),
            mean: Bounds::new(model).level,
        };
        let aim = lower_bound(model) * (1.0 + config.number("tolerance"));
        let today = Assignment::today(model).pes().to_vec();
        let mut best = (Assignment::today(model).max_load(model), today.clone());
        let by_load = ByLoad::new(model);
        for trial in 0..config.count("trials") {
            let mut lots = generator(seed, trial as u64);
            let mut pes = today.clone();
            for _ in 0..config.count("iterations") {
                if best.0 <= aim {
                    return best.1;
                }
                let loads = pe_loads(model, &pes);
                let known = gossip.inform(&loads, &mut lots);
                let residents = by_load.on_pes(model, &pes);
                gossip.transfer(model, &residents, &loads, &known, &mut pes, &mut lots);
                let busiest = pe_loads(model, &pes).into_iter().fold(0.0, f64::max);
                if busiest < best.0 {
                    best = (busiest, pes.clone());
                }
            }
        }
        best.1
    }
}

struct Settings {
    rounds: usize,
    fanout: usize,
    knowledge: usize,
    /// What a PE has when all have the same.
    mean: f64,
}

impl Settings {
    /// For each PE, the PEs below the mean that it has heard of, in order.
    fn inform(&self, loads: &[f64], lots: &mut ChaCha8Rng) -> Vec<Vec<u32>> {
        let count = loads.len();
        let mut known: Vec<Vec<u32>> = vec![vec![]; count];
        let mut has_news: Vec<u32> =
            (0..count as u32).filter(|&pe| loads[pe as usize] < self.mean).collect();
        for &pe in &has_news {
            known[pe as usize].push(pe);
        }
        for _ in 0..self.rounds {
            let mut learnt = vec![false; count];
            for &from in &has_news {
                let from = from as usize;
                for _ in 0..self.fanout.min(count) {
                    let to = lots.random_range(0..count as u64) as usize;
                    if to == from || known[to].len() >= self.knowledge {
                        continue;
                    }
                    let rumour = std::mem::take(&mut known[from]);
                    // From anywhere on, so that not all that have little room hear the same.
                    let begin = lots.random_range(0..rumour.len() as u64) as usize;
                    for pe in rumour[begin..].iter().chain(&rumour[..begin]) {
                        if known[to].len() >= self.knowledge {
                            break;
                        }
                        if let Err(place) = known[to].binary_search(pe) {
                            known[to].insert(place, *pe);
                            learnt[to] = true;
                        }
                    }
                    known[from] = rumour;
                }
            }
            has_news = (0..count as u32).filter(|&pe| learnt[pe as usize]).collect();
        }
        known
    }

    /// Every PE above the mean sends objects to PEs that it knows, by the loads that these had
    /// when the rumours began; those take what they then can.
    fn transfer(
        &self,
        model: &LoadModel,
        residents: &Residents,
        loads: &[f64],
        known: &[Vec<u32>],
        pes: &mut [usize],
        lots: &mut ChaCha8Rng,
    ) {
        let mut now = loads.to_vec();
        for (pe, known) in known.iter().enumerate() {
            if loads[pe] <= self.mean {
                continue;
            }
            let mut here = loads[pe];
            let mut there: Vec<f64> = known.iter().map(|&it| loads[it as usize]).collect();
            let objects = residents.of(pe);
            let excess = (here - self.mean) * model.pes()[pe].speed;
            let enough = objects.partition_point(|&it| model.objects()[it as usize].load < excess);
            let first = (enough + 1).min(objects.len());
            for &object in objects[..first].iter().rev().chain(&objects[first..]) {
                if here <= self.mean {
                    break;
                }
                let Some(choice) = self.draw(&there, lots) else { break };
                let target = known[choice] as usize;
                let then = there[choice] + model.seconds_on(object as usize, target);
                let load = model.objects()[object as usize].load;
                if load == 0.0 || then >= here {
                    continue;
                }
                there[choice] = now[target] + model.seconds_on(object as usize, target);
                if there[choice] < here {
                    here -= model.seconds_on(object as usize, pe);
                    now[target] = there[choice];
                    pes[object as usize] = target;
                } else {
                    there[choice] = now[target];
                }
            }
        }
    }

    /// One of the known PEs by lot, the less loaded the likelier; none if none is below the mean
    /// or the busiest of them.
    fn draw(&self, loads: &[f64], lots: &mut ChaCha8Rng) -> Option<usize> {
        let top = loads.iter().copied().fold(self.mean, f64::max);
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
    fn rumours_reach_everybody_and_are_true() {
        let loads: Vec<f64> = (0..200).map(|pe| f64::from(pe % 4 == 0)).collect();
        let settings = Settings { rounds: 6, fanout: 4, knowledge: 20, mean: 0.25 };
        let known = settings.inform(&loads, &mut generator(0, 0));
        let full = known.iter().filter(|names| names.len() == 20).count();
        assert!(full > 150, "{full}");
        for names in known {
            assert!((1..=20).contains(&names.len()), "{}", names.len());
            assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(names.iter().all(|&pe| loads[pe as usize] < 0.25));
        }
    }
}
