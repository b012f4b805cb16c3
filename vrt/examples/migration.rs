//! A rank that visits every PE, with all it has.
//!
//! By default it moves as it is: memory, stack, open requests. With `VRT_MOVE=state` only the state
//! travels that it gives to the call, and its program begins again from that: this needs a little help
//! of the program, and works between machines that are not alike, too.
//!
//! ```sh
//! VRT_PES=2 VRT_RANKS=8 cargo run -p virtual-ranks --example migration
//! VRT_PES=2 VRT_RANKS=8 VRT_MOVE=state cargo run -p virtual-ranks --example migration
//! ```

use serde::{Deserialize, Serialize};
use vrt::collective::SystemOperation;
use vrt::traits::*;

#[derive(Serialize, Deserialize)]
struct Journey {
    pes: u32,
    visited: Vec<u32>,
    luggage: Vec<u64>,
}

#[vrt::main]
fn main() {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    let rank = world.rank();

    // At its first beginning there is no state to go on from. What other ranks take part in is done
    // then, and not again.
    let mut journey: Journey = world.restore().unwrap_or_else(|| {
        let (here, mut last) = (vrt::statistics().pe, 0u32);
        world.all_reduce_into(&here, &mut last, SystemOperation::max());
        let luggage = (0..1000).map(|i| i * rank as u64).collect();
        Journey { pes: last + 1, visited: Vec::new(), luggage }
    });

    while (journey.visited.len() as u32) < journey.pes {
        // Ranks begin their journeys at different PEs.
        let next = (rank as u32 + journey.visited.len() as u32) % journey.pes;
        journey.visited.push(next);
        let address = journey.luggage.as_ptr();
        world.migrate_to(next, &mut journey).expect("it holds nothing that stays behind");
        // Who moves by memory goes on here, and every pointer means what it did. Who moves by state
        // comes here only if it was there already; else it begins at `main`, on the other PE.
        assert_eq!(journey.luggage.as_ptr(), address);
        assert_eq!(vrt::statistics().pe, next);
    }
    assert!(journey.luggage.iter().enumerate().all(|(i, x)| *x == i as u64 * rank as u64));

    let visits = journey.visited.len() as u32;
    let mut all = 0u32;
    world.all_reduce_into(&visits, &mut all, SystemOperation::sum());
    if rank == 0 {
        println!("{} ranks have made {all} visits to {} PEs", world.size(), journey.pes);
    }
}
