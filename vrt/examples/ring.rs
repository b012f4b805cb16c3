//! A token around the ring of ranks, then a sum over all of them.

use vrt::collective::SystemOperation;
use vrt::traits::*;

#[vrt::main]
fn main() {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    if rank == 0 {
        world.process_at_rank(next).send(&[1u64, 2, 3][..]);
    }
    let (token, status) = world.process_at_rank(previous).receive_vec::<u64>();
    assert_eq!((token.len(), status.source_rank()), (3, previous));
    if rank != 0 {
        world.process_at_rank(next).send(&token);
    }
    let mut sum = 0;
    world.all_reduce_into(&rank, &mut sum, SystemOperation::sum());
    assert_eq!(sum, size * (size - 1) / 2);
    world.barrier();
    if rank == 0 {
        println!("{size} ranks add up to {sum}");
    }
}
