//! `vrtrun --pes 2 --ranks 7 ported` hands bodies round the ranks until each has its own again.

use mpi::traits::*;
use ported::{pass_on, Body};

#[mpi::main]
fn main() {
    let universe = mpi::initialize().unwrap();
    let world = universe.world();
    let mine = Body { at: [f64::from(world.rank()); 3], mass: 1.0, from: world.rank() };
    let mut body = mine.clone();
    for _ in 0..world.size() {
        body = pass_on(&world, &body);
    }
    assert_eq!(body, mine);
    if world.rank() == 0 {
        println!("{} ranks: ok", world.size());
    }
}
