//! Ranks that do several things at once: each answers questions while it asks its own.
//!
//! Above an `async fn main()` the attribute makes async ranks, which await the twins of the blocking
//! calls. A future only goes on while it is polled, so what has to happen at the same time is joined.
//!
//! ```sh
//! VRT_PES=2 VRT_RANKS=8 cargo run -p virtual-ranks --example async_ranks
//! ```

use std::time::Duration;

use vrt::Tag;
use vrt::collective::SystemOperation;
use vrt::traits::*;

const QUESTION: Tag = 1;
const ANSWER: Tag = 2;

#[vrt::main]
async fn main() {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());

    // Everybody asks everybody for a square. Had all to ask first, nobody would answer.
    let answering = async {
        for _ in 0..size {
            let (number, status) =
                world.any_process().receive_with_tag_async::<i64>(QUESTION).await;
            let asker = world.process_at_rank(status.source_rank());
            asker.send_with_tag_async(&(number * number), ANSWER).await;
        }
    };
    let asking = async {
        let mut sum = 0;
        for other in 0..size {
            let other = world.process_at_rank(other);
            other.send_with_tag_async(&i64::from(rank), QUESTION).await;
            sum += other.receive_with_tag_async::<i64>(ANSWER).await.0;
        }
        sum
    };
    let ((), sum) = tokio::join!(answering, asking);
    assert_eq!(sum, i64::from(size * rank * rank));

    // A receive that is given up loses no message: what comes later is received by another one.
    let right = world.process_at_rank((rank + 1) % size);
    let left = world.process_at_rank((rank + size - 1) % size);
    let early = vrt::timeout(Duration::from_millis(1), left.receive_async::<i32>()).await;
    assert!(early.is_err(), "nobody has sent anything");
    world.barrier_async().await;
    let send = right.send_async(&rank);
    let (from_left, ()) = tokio::join!(left.receive_async::<i32>(), send);
    assert_eq!(from_left.0, left.rank());

    // The first of several that are ready wins, and the others are dropped: here a message that never
    // comes, and a timer of vrt's.
    tokio::select! {
        _ = left.receive_async::<i32>() => unreachable!("nobody has sent anything"),
        () = vrt::sleep_async(Duration::from_millis(1)) => {}
    }

    let mut of_all = 0i64;
    world.all_reduce_into_async(&sum, &mut of_all, SystemOperation::sum()).await;
    if rank == 0 {
        println!("{} questions were answered, the sum is {of_all}", size * size);
    }
}
