//! Sparse exchange: everybody sends to a few ranks, and nobody knows who will send to it.
//!
//! Particles fly around a ring. Each rank owns a part of it; a particle that has left its part is sent
//! to the rank it belongs to now, which may be any. An all-to-all would do that, too, and cost more the
//! more ranks there are.
//!
//! ```sh
//! VRT_PES=2 VRT_RANKS=8 cargo run -p virtual-ranks --example sparse_exchange
//! ```

use std::collections::BTreeMap;

use vrt::collective::SystemOperation;
use vrt::traits::*;

#[derive(Clone, Copy, Debug, PartialEq, Equivalence)]
struct Particle {
    number: u32,
    /// From 0 to 1.
    position: f64,
    velocity: f64,
}

const EACH: u32 = 200;
const STEPS: u32 = 50;

#[vrt::main]
fn main() {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let owner_of = |position: f64| ((position * f64::from(size)) as i32).min(size - 1);

    let mut mine: Vec<Particle> = (0..EACH)
        .map(|i| Particle {
            number: rank as u32 * EACH + i,
            position: (f64::from(rank) + f64::from(i) / f64::from(EACH)) / f64::from(size),
            // A few are fast: they fly over several ranks in a step.
            velocity: if i % 10 == 0 { 0.37 } else { 0.01 },
        })
        .collect();
    let mut sent = 0u64;
    for _ in 0..STEPS {
        let mut leaving: BTreeMap<i32, Vec<Particle>> = BTreeMap::new();
        mine.retain_mut(|particle| {
            particle.position = (particle.position + particle.velocity).fract();
            let owner = owner_of(particle.position);
            if owner != rank {
                leaving.entry(owner).or_default().push(*particle);
            }
            owner == rank
        });
        let messages: Vec<(i32, Vec<Particle>)> = leaving.into_iter().collect();
        sent += messages.len() as u64;
        // All ranks call it, those with nothing to send, too. What comes is ordered by source.
        for (_source, particles) in world.sparse_exchange(&messages) {
            mine.extend(particles);
        }
    }
    assert!(mine.iter().all(|particle| owner_of(particle.position) == rank));

    // None was lost, none is there twice.
    let numbers: [u64; 2] =
        [mine.len() as u64, mine.iter().map(|particle| u64::from(particle.number)).sum()];
    let mut all = [0; 2];
    world.all_reduce_into(&numbers, &mut all, SystemOperation::sum());
    let count = u64::from(EACH) * size as u64;
    assert_eq!(all, [count, count * (count - 1) / 2]);
    let mut messages = 0;
    world.all_reduce_into(&sent, &mut messages, SystemOperation::sum());
    if rank == 0 {
        println!("{count} particles, {STEPS} steps, {messages} messages");
    }
}
