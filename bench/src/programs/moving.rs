//! A rank that moves between two PEs, with everything it owns.

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::Instant;

use super::{Effort, Outcome, expect_ranks, expect_value, outcome};

/// The rank's data, which is also the state by which it moves.
#[derive(Serialize, Deserialize)]
struct Traveller {
    data: Vec<u64>,
    moves: u32,
    began: f64,
    seconds: Vec<f64>,
}

fn data(bytes: usize) -> Vec<u64> {
    (0..bytes as u64 / 8).collect()
}

/// Seconds of a move of a rank that owns `bytes` bytes, from the call on one PE to its return on
/// the other; by hand-over, shipping or state, depending on the job's configuration.
///
/// # Errors
///
/// If there are not two ranks, the rank cannot be moved, or its data has changed.
pub fn moving(world: &SimpleCommunicator, bytes: usize, effort: Effort) -> Outcome {
    expect_ranks(world, "move", 2)?;
    if world.rank() == 1 {
        world.barrier();
        return Ok(None);
    }
    let mut this = world.restore::<Traveller>().unwrap_or_else(|| Traveller {
        data: data(bytes),
        moves: 0,
        began: mpi::time(),
        seconds: Vec::new(),
    });
    let moves = 2 * effort.operations.div_ceil(2);
    loop {
        if this.moves == moves {
            this.seconds.push((mpi::time() - this.began) / f64::from(moves));
            if this.seconds.len() > effort.repetitions as usize {
                break;
            }
            this.moves = 0;
            this.began = mpi::time();
        }
        this.moves += 1;
        world.migrate_to(this.moves % 2, &mut this)?;
    }
    expect_value(this.data == data(bytes), "move", 0)?;
    this.seconds.remove(0);
    world.barrier();
    outcome(world, "move", &this.seconds)
}

/// Seconds of touching `bytes` bytes for the first time after a move.
///
/// # Errors
///
/// As for [`moving`].
pub fn first_touch(world: &SimpleCommunicator, bytes: usize, effort: Effort) -> Outcome {
    expect_ranks(world, "touch", 2)?;
    if world.rank() == 1 {
        world.barrier();
        return Ok(None);
    }
    let mut seconds = Vec::new();
    // Memory that was there before would be known on the other PE.
    let mut all = Vec::new();
    for _ in 0..=effort.repetitions {
        let mut data = data(bytes);
        world.migrate_to(1, &mut ())?;
        let start = Instant::now();
        for word in data.iter_mut().step_by(512) {
            *word += 1;
        }
        black_box(&mut data);
        seconds.push(start.elapsed().as_secs_f64());
        all.push(data);
        world.migrate_to(0, &mut ())?;
    }
    seconds.remove(0);
    world.barrier();
    outcome(world, "touch", &seconds)
}
