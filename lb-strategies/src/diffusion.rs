//! `diffusion`: load flows between neighbouring PEs.
//!
//! PEs are laid out as a torus. Load is first treated as a liquid: round by round, each PE passes
//! to each neighbour a part of the difference of their levels (G. Cybenko, "Dynamic load balancing
//! for distributed memory multiprocessors", J. Parallel and Distributed Computing 7, 1989). The
//! total flow between two neighbours is then carried by objects: each PE sends those of its objects
//! that fit the amounts, largest first, to neighbours that still have less than it has afterwards.
//! As a PE can only send what it has, this is repeated in sweeps, until the busiest PE is within
//! the tolerance or no object moves; the best sweep is kept.
//!
//! In a distributed run a PE needs to know only its neighbours. Here the algorithm runs in one
//! place, by the same rules. With many PEs the liquid is slow to level out: the distance that a
//! peak of load has to travel decides.
//!
//! Inputs: loads, speeds, background load. Cost of a sweep: `p` per round, plus `n log n`.

use crate::{
    assignment::{Assignment, pe_loads},
    bounds::lower_bound,
    config::{Config, Domain, Parameter},
    model::{LoadModel, Pe},
    refine::{ByLoad, Resident, Residents, TOLERANCE},
    strategy::Strategy,
};

/// Load flows between neighbouring PEs.
#[derive(Clone, Copy, Debug)]
pub struct Diffusion;

impl Strategy for Diffusion {
    fn name(&self) -> &'static str {
        "diffusion"
    }

    fn help(&self) -> &'static str {
        "load flows between neighbouring PEs of a torus; needs no global knowledge"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            TOLERANCE,
            Parameter {
                name: "dimensions",
                help: "dimensions of the torus of PEs",
                domain: Domain::Count { default: 3, range: 1..=16 },
            },
            Parameter {
                name: "rounds",
                help: "how often neighbours exchange load before objects move",
                domain: Domain::Count { default: 50, range: 1..=100_000 },
            },
            Parameter {
                name: "sweeps",
                help: "how often objects move",
                domain: Domain::Count { default: 10, range: 1..=10_000 },
            },
        ]
    }

    fn propose(&self, model: &LoadModel, config: &Config, _seed: u64) -> Vec<usize> {
        let strides = strides(model.pes().len(), config.count("dimensions"));
        let aim = lower_bound(model) * (1.0 + config.number("tolerance"));
        let mut pes = Assignment::today(model).pes().to_vec();
        let mut best = (f64::INFINITY, pes.clone());
        let by_load = ByLoad::new(model);
        for _ in 0..=config.count("sweeps") {
            let loads = pe_loads(model, &pes);
            let busiest = loads.iter().copied().fold(0.0, f64::max);
            if busiest < best.0 {
                best = (busiest, pes.clone());
            }
            if busiest <= aim {
                break;
            }
            let flows = Flows::new(model, &strides, loads.clone(), config.count("rounds"));
            let residents = by_load.on_pes(model, &pes);
            if !carry(&residents, &flows, loads, &mut pes) {
                break;
            }
        }
        best.1
    }
}

/// A PE's neighbours are this far above and below it in a ring of all PEs: a torus for any number of PEs.
fn strides(pes: usize, dimensions: usize) -> Vec<usize> {
    let side = (pes as f64).powf(1.0 / dimensions as f64).round().max(2.0) as usize;
    let mut strides = vec![];
    let mut stride = 1;
    // Beyond half of the ring, a neighbour above is one below by a smaller stride.
    while strides.len() < dimensions && 2 * stride <= pes {
        strides.push(stride);
        stride *= side;
    }
    strides
}

/// The total flow between neighbours over all rounds.
///
/// In each round, a part of the difference of two levels flows. So the total flow is that part of the difference of the
/// two PEs' summed levels.
struct Flows<'a> {
    pes: &'a [Pe],
    strides: &'a [usize],
    share: f64,
    /// For each PE, the sum of its levels at the beginning of each round.
    sums: Vec<f64>,
}

impl<'a> Flows<'a> {
    fn new(
        model: &'a LoadModel,
        strides: &'a [usize],
        mut levels: Vec<f64>,
        rounds: usize,
    ) -> Self {
        let pes = model.pes();
        let share = 1.0 / (2 * strides.len() + 1) as f64;
        let speeds: Vec<f64> = pes.iter().map(|pe| pe.speed).collect();
        let mut sums = vec![0.0; pes.len()];
        let mut change = vec![0.0; pes.len()];
        for _ in 0..rounds {
            change.fill(0.0);
            for &stride in strides {
                // The neighbours above the last ones are the first ones.
                let wrap = pes.len() - stride;
                for (here, above) in [(0..wrap, stride..pes.len()), (wrap..pes.len(), 0..stride)] {
                    exchange(&mut change[here.clone()], &levels, &speeds, here.start, above.start);
                    exchange(&mut change[above.clone()], &levels, &speeds, above.start, here.start);
                }
            }
            for (((level, sum), change), speed) in
                levels.iter_mut().zip(&mut sums).zip(&change).zip(&speeds)
            {
                *sum += *level;
                *level += share * change / speed;
            }
        }
        Self { pes, strides, share, sums }
    }

    /// The work that flows from each PE to each of its neighbours, with the neighbour; negative for flow in the other
    /// direction.
    fn of(&self, pe: usize) -> impl Iterator<Item = (f64, usize)> {
        let count = self.pes.len();
        let neighbours =
            move |stride: &usize| [(pe + stride) % count, (pe + count - stride) % count];
        self.strides.iter().flat_map(neighbours).map(move |neighbour| {
            let slower = self.pes[pe].speed.min(self.pes[neighbour].speed);
            (self.share * slower * (self.sums[pe] - self.sums[neighbour]), neighbour)
        })
    }
}

/// Adds the flow from a neighbour to each PE to `change`. The PEs begin at `here`, the neighbours at `there`.
fn exchange(change: &mut [f64], levels: &[f64], speeds: &[f64], here: usize, there: usize) {
    let count = change.len();
    let (here, there) = (here..here + count, there..there + count);
    let levels = levels[here.clone()].iter().zip(&levels[there.clone()]);
    let speeds = speeds[here].iter().zip(&speeds[there]);
    for (change, ((level, other), (speed, others))) in change.iter_mut().zip(levels.zip(speeds)) {
        let slower = if speed < others { speed } else { others };
        *change += slower * (other - level);
    }
}

/// Moves objects so that they carry the flows between PEs of these loads. Returns whether any object moved.
fn carry(residents: &Residents, flows: &Flows<'_>, mut now: Vec<f64>, pes: &mut [usize]) -> bool {
    let speed = |pe: usize| flows.pes[pe].speed;
    let mut moved = false;
    let mut targets: Vec<(f64, usize)> = vec![];
    let mut objects: Vec<Resident> = vec![];
    for pe in 0..now.len() {
        targets.clear();
        targets.extend(flows.of(pe));
        targets.retain(|&(work, target)| work > 0.0 && target != pe);
        targets.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        objects.clear();
        objects.extend(residents.of(pe));
        for &(work, target) in &targets {
            let mut left = work;
            let mut kept = objects.len();
            // From the largest down; those that go are swept out below.
            while kept > 0 && left > 0.0 {
                kept -= 1;
                let Resident { object, load } = objects[kept];
                // Up to half too much: otherwise objects larger than any flow never move.
                let there = now[target] + load / speed(target);
                if load > 0.0 && load / 2.0 <= left && there < now[pe] {
                    left -= load;
                    now[pe] -= load / speed(pe);
                    now[target] = there;
                    pes[object as usize] = target;
                    moved = true;
                }
            }
            objects.retain(|it| pes[it.object as usize] == pe);
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::Object, registry::create};

    #[test]
    fn a_heap_spreads_over_all_pes() {
        let objects = vec![Object::new(1.0, 5); 2000];
        let model = LoadModel::new(vec![Pe::default(); 20], objects, vec![]).expect("sound");
        let placed = create::<&str, &str>("diffusion", &[]).expect("exists").assign(&model, 0);
        assert!(placed.imbalance(&model) <= 0.05, "{}", placed.imbalance(&model));
    }

    #[test]
    fn a_ring_of_any_size_has_distinct_neighbours() {
        for pes in 1..200 {
            for dimensions in 1..5 {
                let strides = strides(pes, dimensions);
                assert!(strides.windows(2).all(|pair| pair[0] < pair[1]));
                assert!(strides.iter().all(|stride| 2 * stride <= pes));
            }
        }
    }
}
