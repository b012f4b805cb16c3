//! One-sided communication: ranks read and write memory of others, who need not do anything.
//!
//! Ranks share work that takes unknown times. A counter says what is next, results are put where they
//! belong, and a histogram is counted up by all.
//!
//! ```sh
//! VRT_PES=2 VRT_RANKS=8 cargo run -p virtual-ranks --example one_sided
//! ```

use vrt::collective::SystemOperation;
use vrt::traits::*;

const TASKS: u64 = 1000;
/// Steps of a task that are counted apart.
const CLASSES: usize = 8;

#[vrt::main]
fn main() {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let is_root = rank == 0;

    // All ranks make a window together. Each of them shows as much as it likes of its own: rank 0
    // the counter and the histogram, everybody a part of the results.
    let shared = world.allocate_window(vec![0u64; if is_root { 1 + CLASSES } else { 0 }]);
    let each = TASKS.div_ceil(size as u64);
    let results = world.allocate_window(vec![0u64; each as usize]);

    // Accesses happen inside an epoch. This one lets every rank access all others, each at its pace.
    shared.lock_all();
    results.lock_all();
    let mut done = 0u64;
    loop {
        // Atomic: nobody else gets this task.
        let task = shared.fetch_and_op(0, 0, 1, SystemOperation::sum());
        if task >= TASKS {
            break;
        }
        let steps = collatz(task + 1);
        results.put((task / each) as i32, (task % each) as usize, &[steps]);
        let class = (steps as usize / 25).min(CLASSES - 1);
        shared.accumulate(0, 1 + class, &[1], SystemOperation::sum());
        done += 1;
        // Others on this PE want tasks, too.
        vrt::yield_now();
    }
    results.unlock_all();
    shared.unlock_all();
    // The epochs of all ranks are over behind this: what was put is there.
    world.barrier();

    for at in 0..each {
        let task = rank as u64 * each + at;
        let expected = if task < TASKS { collatz(task + 1) } else { 0 };
        assert_eq!(results.load(at as usize), expected);
    }
    let mut total = 0;
    world.all_reduce_into(&done, &mut total, SystemOperation::sum());
    assert_eq!(total, TASKS);
    if is_root {
        let histogram: Vec<u64> = (1..=CLASSES).map(|class| shared.load(class)).collect();
        assert_eq!(histogram.iter().sum::<u64>(), TASKS);
        println!("{TASKS} tasks, their steps in classes of 25: {histogram:?}");
    }
}

/// Steps that the number takes to 1.
fn collatz(mut number: u64) -> u64 {
    let mut steps = 0;
    while number != 1 {
        number = if number.is_multiple_of(2) { number / 2 } else { 3 * number + 1 };
        steps += 1;
    }
    steps
}
