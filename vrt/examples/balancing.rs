//! Uneven work, and a balancer that moves ranks from busy PEs to idle ones.
//!
//! The program only says when its ranks may be moved; a strategy decides who goes where, from what the
//! runtime has measured. `VRT_LB_PERIOD=50ms` moves ranks wherever they wait, without that call.
//!
//! ```sh
//! VRT_PES=2 VRT_RANKS=8 cargo run -p virtual-ranks --example balancing
//! VRT_PES=2 VRT_RANKS=8 VRT_LB=greedy-refine cargo run -p virtual-ranks --example balancing
//! VRT_PES=2 VRT_RANKS=8 VRT_LB=greedy-refine VRT_MOVE=state cargo run -p virtual-ranks --example balancing
//! ```

use serde::{Deserialize, Serialize};
use vrt::collective::SystemOperation;
use vrt::traits::*;

const ITERATIONS: u32 = 20;

/// What a rank needs to go on from: only asked for when ranks move by their state.
#[derive(Serialize, Deserialize)]
struct Progress {
    iteration: u32,
    result: u64,
    pe: u32,
    moves: u32,
}

#[vrt::main]
fn main() {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());

    let mut progress: Progress = world.restore().unwrap_or_else(|| {
        let pe = vrt::statistics().pe;
        Progress { iteration: 0, result: 0, pe, moves: 0 }
    });
    loop {
        let here = vrt::statistics().pe;
        progress.moves += u32::from(here != progress.pe);
        progress.pe = here;
        if progress.iteration == ITERATIONS {
            break;
        }
        progress.iteration += 1;
        // The first quarter of the ranks, neighbours on one PE, has most of the work.
        let rounds = if rank < size / 4 { 400_000 } else { 50_000 };
        progress.result = work(progress.result, rounds);
        if progress.iteration.is_multiple_of(5) {
            world.migrate(&mut progress);
        }
    }

    // The same result wherever the rank has computed it.
    let rounds = if rank < size / 4 { 400_000 } else { 50_000 };
    let still = (0..ITERATIONS).fold(0, |result, _| work(result, rounds));
    assert_eq!(progress.result, still);
    let mut moves = 0u32;
    world.all_reduce_into(&progress.moves, &mut moves, SystemOperation::sum());
    let mut pes = vec![0u32; size as usize];
    world.all_gather_into(&vrt::statistics().pe, &mut pes[..]);
    if rank == 0 {
        println!("{size} ranks have the right results after {moves} moves; their PEs: {pes:?}");
    }
}

fn work(seed: u64, rounds: u64) -> u64 {
    (0..rounds).fold(seed, |x, i| x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i))
}
