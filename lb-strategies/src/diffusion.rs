//! `diffusion`: load flows between neighbouring PEs.
//!
//! PEs are laid out as a torus. Load is first treated as a liquid: round by round, each PE passes
//! to each neighbour a part of the difference of their levels (G. Cybenko, "Dynamic load
//! balancing for distributed memory multiprocessors", J. Parallel and Distributed Computing 7,
//! 1989). What flowed between two neighbours in all rounds is what objects are then to carry:
//! each PE sends those of its objects that fit the amounts, largest first, to neighbours that
//! then still have less than it has. As a PE can only send what it has, this is repeated in sweeps,
//! until the busiest PE is within the tolerance or no object moves; the best sweep is kept.
//!
//! In a distributed run a PE needs to know its neighbours only. Here it is computed in one place,
//! by the same rules. With many PEs the liquid is slow to level out: what counts is how far a
//! heap of load has to go.
//!
//! Inputs: loads, speeds, background load. Cost for each sweep: `p` for each round, and
//! `n log n`.

use crate::{
    assignment::{Assignment, pe_loads},
    bounds::lower_bound,
    config::{Config, Domain, Parameter},
    model::LoadModel,
    refine::{ByLoad, Residents, TOLERANCE},
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
            let flows = flows(model, &strides, loads, config.count("rounds"));
            let residents = by_load.on_pes(model, &pes);
            if !carry(model, &residents, &strides, flows, &mut pes) {
                break;
            }
        }
        best.1
    }
}

/// A PE's neighbours are those this far above and below it, in a ring of all PEs: a torus that
/// needs no box of PEs.
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

/// For each PE and stride, the work that flows to the PE that far above it.
fn flows(model: &LoadModel, strides: &[usize], mut levels: Vec<f64>, rounds: usize) -> Vec<f64> {
    let pes = model.pes();
    let share = 1.0 / (2 * strides.len() + 1) as f64;
    let mut flows = vec![0.0; pes.len() * strides.len()];
    let mut change = vec![0.0; pes.len()];
    for _ in 0..rounds {
        change.fill(0.0);
        for pe in 0..pes.len() {
            for (index, stride) in strides.iter().enumerate() {
                let above = (pe + stride) % pes.len();
                let slower = pes[pe].speed.min(pes[above].speed);
                let work = share * slower * (levels[pe] - levels[above]);
                flows[pe * strides.len() + index] += work;
                change[pe] -= work;
                change[above] += work;
            }
        }
        for ((level, change), pe) in levels.iter_mut().zip(&change).zip(pes) {
            *level += change / pe.speed;
        }
    }
    flows
}

/// Objects carry the flows. Returns whether any did.
fn carry(
    model: &LoadModel,
    residents: &Residents,
    strides: &[usize],
    flows: Vec<f64>,
    pes: &mut [usize],
) -> bool {
    let mut now = pe_loads(model, pes);
    let count = model.pes().len();
    let mut moved = false;
    let mut targets: Vec<(f64, usize)> = vec![];
    let mut objects: Vec<u32> = vec![];
    for pe in 0..count {
        targets.clear();
        for (index, stride) in strides.iter().enumerate() {
            let (above, below) = ((pe + stride) % count, (pe + count - stride) % count);
            targets.push((flows[pe * strides.len() + index], above));
            targets.push((-flows[below * strides.len() + index], below));
        }
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
                let object = objects[kept] as usize;
                let load = model.objects()[object].load;
                // Up to half too much: otherwise objects larger than any flow never move.
                let there = now[target] + model.seconds_on(object, target);
                if load > 0.0 && load / 2.0 <= left && there < now[pe] {
                    left -= load;
                    now[pe] -= model.seconds_on(object, pe);
                    now[target] = there;
                    pes[object] = target;
                    moved = true;
                }
            }
            objects.retain(|&it| pes[it as usize] == pe);
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Object, Pe},
        registry::create,
    };

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
