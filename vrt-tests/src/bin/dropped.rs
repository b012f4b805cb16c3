//! A job whose ranks drop and forget futures while messages are on their way between PEs.

use std::future::Future;
use std::process::ExitCode;
use std::task::{Context, Waker};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// What is dropped
    what: What,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// Receives of long messages, by timeouts
    Receives,
    /// Sends of long messages; then the sender moves
    Sends,
    /// An access to a window, which is forgotten
    Accesses,
    /// Parts in collective operations
    Collectives,
}

/// Values of a long message.
const LONG: usize = 64 << 10;

fn main() -> ExitCode {
    let Arguments { vrt, what } = Arguments::parse();
    vrt::launch(vrt, move || {
        let world = vrt::initialize().expect("in a rank").world();
        match what {
            What::Receives => receives(&world),
            What::Sends => sends(&world),
            What::Accesses => accesses(&world),
            What::Collectives => collectives(&world),
        }
        world.barrier();
        if world.rank() == 0 {
            println!("right");
        }
    })
}

/// Rank 0 receives what rank 1 sends, and gives up again and again.
fn receives(world: &SimpleCommunicator) {
    const ROUNDS: u64 = 200;
    let other = world.process_at_rank(1 - world.rank());
    if world.rank() == 1 {
        for round in 0..ROUNDS {
            let len = if round % 3 == 0 { 100 } else { LONG };
            other.send_with_tag(&vec![round; len][..], 3);
        }
        return;
    }
    let mut given_up = 0u64;
    vrt::block_on(async {
        for round in 0..ROUNDS {
            let mut buffer = vec![u64::MAX; LONG];
            loop {
                let time = Duration::from_micros((round + given_up) % 7 * 20);
                let receive = other.receive_into_with_tag_async(&mut buffer[..], 3);
                match vrt::timeout(time, receive).await {
                    Ok(status) => {
                        let len = status.bytes() as usize / 8;
                        assert_eq!(len, if round % 3 == 0 { 100 } else { LONG });
                        assert!(buffer[..len].iter().all(|value| *value == round), "round {round}");
                        break;
                    }
                    Err(_) => {
                        given_up += 1;
                        assert!(buffer.iter().all(|value| *value == u64::MAX), "it was written to");
                    }
                }
            }
        }
    });
    println!("given up {given_up} times");
}

/// Rank 0 gives up sends that rank 1 does not receive yet, uses their memory, and moves.
fn sends(world: &SimpleCommunicator) {
    let other = world.process_at_rank(1 - world.rank());
    if world.rank() == 1 {
        other.receive_with_tag::<u8>(9);
        for round in 0..10u64 {
            let (came, _) = other.receive_vec_with_tag::<u64>(3);
            assert_eq!(came, vec![round; LONG], "round {round}");
        }
        return;
    }
    for round in 0..10u64 {
        let mut data = vec![round; LONG];
        let synchronous = round % 2 == 0;
        begin(
            async {
                match synchronous {
                    true => other.synchronous_send_with_tag_async(&data[..], 3).await,
                    false => other.send_with_tag_async(&data[..], 3).await,
                }
            },
            false,
        );
        data.fill(77);
    }
    world.migrate_to(1, &mut ()).expect("nothing keeps it");
    assert_eq!(vrt::statistics().pe, 1);
    other.send_with_tag(&1u8, 9);
}

/// Rank 0 forgets that it reads the memory of rank 1.
fn accesses(world: &SimpleCommunicator) {
    let window = world.allocate_window(vec![world.rank() as u64; LONG]);
    window.fence();
    let mut kept = Vec::new();
    if world.rank() == 0 {
        for _ in 0..10 {
            let mut buffer = vec![0u64; LONG];
            begin(window.get_async(1, 0, &mut buffer), true);
            drop(buffer);
            kept.push(vec![7u64; LONG]);
            begin(window.get_async(1, 0, &mut vec![0; LONG]), false);
            kept.push(vec![7u64; LONG]);
        }
    }
    window.fence();
    world.barrier();
    assert!(kept.iter().flatten().all(|value| *value == 7), "memory was overwritten");
}

/// Every rank in turn gives up its part in operations of all lengths.
fn collectives(world: &SimpleCommunicator) {
    let (me, size) = (world.rank(), world.size());
    for (len, round) in [1, 300, LONG].into_iter().flat_map(|len| (0..size).map(move |r| (len, r)))
    {
        let (mine, mut sum) = (vec![1u64; len], vec![0u64; len]);
        let operation = vrt::collective::SystemOperation::sum();
        if round == me {
            begin(world.all_reduce_into_async(&mine[..], &mut sum[..], operation), false);
            begin(world.barrier_async(), false);
        } else {
            world.all_reduce_into(&mine[..], &mut sum[..], operation);
            world.barrier();
            assert_eq!(sum, vec![size as u64; len]);
        }
        let mut all = vec![0; size as usize * len];
        world.all_gather_into(&vec![me; len][..], &mut all[..]);
        assert!(all.chunks(len).zip(0..).all(|(part, rank)| part.iter().all(|it| *it == rank)));
    }
}

/// Polls a future once, then drops or forgets it.
fn begin(future: impl Future<Output = ()>, forget: bool) {
    let mut future = Box::pin(future);
    let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    if forget {
        std::mem::forget(future);
    }
}
