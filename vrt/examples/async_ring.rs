//! Async ranks: a token around the ring, with a `vrt` timer and a tokio timer on the way.

use std::time::Duration;

use vrt::traits::*;

#[vrt::main]
async fn main() {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let next = world.process_at_rank((rank + 1) % size);
    let previous = world.process_at_rank((rank + size - 1) % size);

    if rank == 0 {
        vrt::sleep_async(Duration::from_millis(2)).await;
        next.send_async(&1u64).await;
    }
    let (token, _) = previous.receive_async::<u64>().await;
    if rank != 0 {
        next.send_async(&(token + 1)).await;
    } else {
        assert_eq!(token, size as u64);
        println!("the token has seen {token} ranks");
    }

    // While a rank awaits something of tokio's, it is pinned to its PE.
    let (timer, pinned) = tokio::join!(tokio::time::sleep(Duration::from_millis(5)), async {
        vrt::yield_now_async().await;
        vrt::pinned()
    });
    let () = timer;
    assert!(pinned.is_some_and(|reason| reason.contains("tokio")));
    world.barrier_async().await;
}
