//! What the runtime has measured of a rank, and whether it could be moved now.
//!
//! `VRT_STATISTICS=1` prints what each PE has done when a job ends; this is for the program itself.
//!
//! ```sh
//! VRT_PES=2 VRT_RANKS=8 cargo run -p virtual-ranks --example statistics
//! ```

use std::fs::File;

use vrt::collective::SystemOperation;
use vrt::traits::*;

#[vrt::main]
fn main() {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let right = world.process_at_rank((rank + 1) % size);
    let left = world.process_at_rank((rank + size - 1) % size);

    // Something to measure: memory, a rank that has more to do than others, and messages.
    let before = vrt::statistics();
    let kept: Vec<u64> = (0..100_000).collect();
    let rounds = if rank == 0 { 10_000_000 } else { 1000 };
    std::hint::black_box((0..rounds).fold(0u64, |x, i| x.rotate_left(5) ^ i));
    for _ in 0..10 {
        right.send(&kept[..100]);
        let (came, _) = left.receive_vec::<u64>();
        assert_eq!(came, kept[..100]);
    }

    // The time that a rank has run is known up to where it last waited.
    let after = vrt::statistics();
    let sent = |statistics: &vrt::Statistics| -> (u64, u64) {
        statistics.sent.iter().fold((0, 0), |sum, (_, n, bytes)| (sum.0 + n, sum.1 + bytes))
    };
    let (messages, bytes) = (sent(&after).0 - sent(&before).0, sent(&after).1 - sent(&before).1);
    assert_eq!((messages, bytes), (10, 10 * 100 * 8));
    assert!(after.heap_bytes - before.heap_bytes >= 100_000 * 8);

    // An open file is the process's: the rank could not take it to another one. The balancer would
    // count the rank as load that stays.
    assert_eq!(vrt::pinned(), None);
    let file = File::open("/proc/self/stat").expect("there is such a file on Linux");
    let why = vrt::pinned();
    drop(file);
    assert!(why.is_some() && vrt::pinned().is_none());

    let mut seconds = vec![0.0; size as usize];
    world.all_gather_into(&after.run_seconds, &mut seconds[..]);
    let mut resumed = 0;
    world.all_reduce_into(&after.switches, &mut resumed, SystemOperation::sum());
    if rank == 0 {
        let all: f64 = seconds.iter().sum();
        println!("rank 0 has run {:.0}% of the time of all ranks", 100.0 * seconds[0] / all);
        println!("ranks were resumed {resumed} times; each has sent {messages} messages");
        println!("with an open file a rank stays: {}", why.unwrap_or_default());
    }
}
