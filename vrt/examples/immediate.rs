//! Messages that go on while a rank computes: requests, and the scopes that keep their buffers.
//!
//! A rod of cells is heated at one end. Each rank has a part of it and needs, for every step, the last
//! cell of each neighbour; while these are on their way it computes the cells that do not need them.
//!
//! ```sh
//! VRT_PES=2 VRT_RANKS=8 cargo run -p virtual-ranks --example immediate
//! ```

use vrt::collective::SystemOperation;
use vrt::request::{multiple_scope, scope};
use vrt::traits::*;

/// Cells of each rank, without the ghost cells at both ends, which are those of the neighbours.
const CELLS: usize = 8;
const STEPS: usize = 500;

#[vrt::main]
fn main() {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());

    let mut rod = [0.0; CELLS + 2];
    if rank == 0 {
        rod[0] = 1.0;
    }
    for _ in 0..STEPS {
        let (first, last) = (rod[1], rod[CELLS]);
        let (mut from_left, mut from_right) = (rod[0], rod[CELLS + 1]);
        let mut next = rod;
        // Buffers have to live longer than the requests that use them: they are made outside of the
        // scope, and a request that is not completed in it ends the job.
        scope(|scope| {
            let left = (rank > 0).then(|| world.process_at_rank(rank - 1));
            let right = (rank + 1 < size).then(|| world.process_at_rank(rank + 1));
            let requests = [
                left.as_ref().map(|left| left.immediate_receive_into(scope, &mut from_left)),
                right.as_ref().map(|right| right.immediate_receive_into(scope, &mut from_right)),
                left.as_ref().map(|left| left.immediate_send(scope, &first)),
                right.as_ref().map(|right| right.immediate_send(scope, &last)),
            ];
            for cell in 2..CELLS {
                next[cell] = relaxed(rod[cell - 1], rod[cell], rod[cell + 1]);
            }
            for request in requests.into_iter().flatten() {
                request.wait();
            }
        });
        (rod[0], rod[CELLS + 1]) = (from_left, from_right);
        for cell in [1, CELLS] {
            next[cell] = relaxed(rod[cell - 1], rod[cell], rod[cell + 1]);
        }
        (next[0], next[CELLS + 1]) = (rod[0], rod[CELLS + 1]);
        rod = next;
    }
    // Heat flows in one direction only.
    assert!(rod[1..=CELLS].windows(2).all(|pair| pair[0] >= pair[1]));

    // Requests in a collection are completed in the order in which they are done.
    let mut heats = vec![0.0; size as usize];
    let heat: f64 = rod[1..=CELLS].iter().sum();
    world.process_at_rank(0).buffered_send(&heat);
    if rank == 0 {
        multiple_scope(size as usize, |scope, requests| {
            for (from, heat) in heats.iter_mut().enumerate() {
                let from = world.process_at_rank(from as i32);
                requests.add(from.immediate_receive_into(scope, heat));
            }
            while let Some((place, status, _)) = requests.wait_any() {
                assert_eq!(place as i32, status.source_rank());
            }
        });
        println!("heat of each part: {heats:.2?}");
    }

    // Collective operations have immediate twins, too.
    let mut total = 0.0;
    scope(|scope| {
        let sum = SystemOperation::sum();
        world.immediate_all_reduce_into(scope, &heat, &mut total, sum).wait();
    });
    if rank == 0 {
        assert!((heats.iter().sum::<f64>() - total).abs() < 1e-9);
    }
}

fn relaxed(left: f64, here: f64, right: f64) -> f64 {
    here + 0.25 * (left - 2.0 * here + right)
}
