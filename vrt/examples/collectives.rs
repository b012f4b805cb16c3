//! Operations that all ranks of a communicator take part in.
//!
//! The root has some measurements, all ranks evaluate a part of them, and everybody learns the result.
//!
//! ```sh
//! VRT_PES=2 VRT_RANKS=8 cargo run -p virtual-ranks --example collectives
//! ```

use vrt::collective::{SystemOperation, UserOperation};
use vrt::datatype::PartitionMut;
use vrt::traits::*;

/// Measurements for each rank.
const EACH: usize = 1000;

#[vrt::main]
fn main() {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size() as usize);
    let root = world.process_at_rank(0);
    let is_root = rank == 0;

    // One to all: a number, and then a part of the data for each.
    let mut scale = if is_root { 0.5 } else { 0.0 };
    root.broadcast_into(&mut scale);
    let mut mine = vec![0.0; EACH];
    if is_root {
        let mut all: Vec<f64> = (0..EACH * size).map(|i| (i % 7) as f64).collect();
        all[17] = 100.0;
        root.scatter_into_root(&all, &mut mine);
    } else {
        root.scatter_into(&mut mine);
    }

    // All to all: everybody has the sums afterwards, with the same bits.
    let part: [f64; 2] = [mine.iter().sum(), mine.iter().map(|x| x * x).sum()];
    let mut sums = [0.0; 2];
    world.all_reduce_into(&part, &mut sums, SystemOperation::sum());
    let count = (EACH * size) as f64;
    let mean = sums[0] / count;
    let deviation = (sums[1] / count - mean * mean).sqrt();

    // With an operation of the program's own: the value farthest from the mean.
    let mut farthest = mean;
    for x in &mine {
        if (x - mean).abs() > (farthest - mean).abs() {
            farthest = *x;
        }
    }
    let mut of_all = [0.0f64];
    let farther = UserOperation::commutative(|theirs, ours| {
        let (theirs, ours) = (theirs.downcast::<f64>(), ours.downcast::<f64>());
        let (Some(theirs), Some(ours)) = (theirs, ours) else { return };
        for (theirs, ours) in theirs.iter().zip(ours) {
            if (theirs - mean).abs() > (*ours - mean).abs() {
                *ours = *theirs;
            }
        }
    });
    world.all_reduce_into(&[farthest], &mut of_all, &farther);

    // All to one, parts of different lengths: what is kept of the data. A rank's place among the
    // results is the number of values that ranks before it keep: an exclusive scan.
    let kept: Vec<f64> = mine.iter().filter(|x| **x > mean).map(|x| x * scale).collect();
    let (len, mut start) = (kept.len() as i32, 0);
    world.exclusive_scan_into(&len, &mut start, SystemOperation::sum());
    if is_root {
        let (mut lens, mut starts) = (vec![0; size], vec![0; size]);
        root.gather_into_root(&len, &mut lens[..]);
        // The first rank has nobody before it, so the scan leaves its value alone.
        root.gather_into_root(&start, &mut starts[..]);
        let mut results = vec![0.0; lens.iter().sum::<i32>() as usize];
        let mut parts = PartitionMut::new(&mut results[..], lens, starts);
        root.gather_varcount_into_root(&kept[..], &mut parts);
        assert!(results.iter().all(|x| *x > mean * scale));
        assert_eq!(of_all, [100.0]);
        println!(
            "{count} values: mean {mean:.2}, deviation {deviation:.2}, {} above the mean, \
             {} is the farthest from it",
            results.len(),
            of_all[0]
        );
    } else {
        root.gather_into(&len);
        root.gather_into(&start);
        root.gather_varcount_into(&kept[..]);
    }
    // Nobody goes on before all are here.
    world.barrier();
}
