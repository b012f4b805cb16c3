//! Async ranks that start tokio tasks and wait for them, while they are moved all the time.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use vrt::collective::SystemOperation;
use vrt::traits::*;

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// Rounds
    #[arg(long, default_value_t = 300)]
    rounds: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = arguments.vrt.clone();
    let rounds = arguments.rounds;
    vrt::launch_async(config, move || run(rounds))
}

async fn run(rounds: u64) {
    let world = vrt::initialize().expect("in a rank").world();
    let me = world.rank() as u64;
    let (mut pe, mut moves) = (vrt::statistics().pe, 0u64);
    for round in 0..rounds {
        let tasks: Vec<_> = (0..3)
            .map(|i| {
                tokio::spawn(async move {
                    if (round + i) % 4 == 0 {
                        tokio::time::sleep(Duration::from_micros(50)).await;
                    }
                    tokio::task::yield_now().await;
                    me * 1000 + round * 10 + i
                })
            })
            .collect();
        if round % 2 == 0 {
            world.barrier_async().await;
        }
        for (i, task) in tasks.into_iter().enumerate() {
            let got = task.await.expect("the task ends");
            assert_eq!(got, me * 1000 + round * 10 + i as u64);
        }
        world.barrier_async().await;
        let now = vrt::statistics().pe;
        moves += u64::from(now != pe);
        pe = now;
    }
    let mut all = 0u64;
    world.all_reduce_into_async(&moves, &mut all, SystemOperation::sum()).await;
    if me == 0 {
        println!("tasks: {rounds} rounds, {all} moves, ok");
    }
}
