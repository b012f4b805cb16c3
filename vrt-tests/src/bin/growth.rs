//! What PEs keep for their ranks does not grow: communicators and windows are made and dropped by
//! ranks that move, and what is left is counted.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use vrt::collective::SystemOperation;
use vrt::topology::{Color, SimpleCommunicator};
use vrt::traits::*;

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// What to make
    what: What,
    /// How often
    #[arg(long, default_value_t = 100)]
    rounds: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum What {
    /// Communicators and windows, dropped in every round
    Dropped,
    /// Communicators that are there when the rank moves by its state
    Abandoned,
    /// Communicators that are forgotten when the rank ends
    Forgotten,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = arguments.vrt.clone();
    vrt::launch(config, move || {
        let Some(universe) = vrt::initialize() else { unreachable!("main is a rank's program") };
        let world = universe.world();
        match arguments.what {
            What::Dropped => dropped(&world, arguments.rounds),
            What::Abandoned => abandoned(&world, arguments.rounds),
            What::Forgotten => forgotten(&world, arguments.rounds),
        }
    })
}

/// Communicators of the same ranks, of a range of them, and of others; all are used.
fn make(world: &SimpleCommunicator, round: u32) -> [SimpleCommunicator; 3] {
    let (me, n) = (world.rank(), world.size());
    let same = world.duplicate();
    let split = |color, key| {
        let part = world.split_by_color_with_key(Color::with_value(color), key);
        let Some(part) = part else { unreachable!("each rank has a color") };
        part
    };
    let range = split(i32::from(me < n / 2), me);
    let others = split((me + round as i32) % 2, -me);
    for comm in [&same, &range, &others] {
        let mut sum = 0;
        comm.all_reduce_into(&1, &mut sum, SystemOperation::sum());
        assert_eq!(sum, comm.size());
        // A contribution that nobody waits for may be under way when the communicator is dropped.
        let root = comm.process_at_rank(0);
        if root.is_self() {
            root.reduce_into_root(&1, &mut sum, SystemOperation::sum());
            assert_eq!(sum, comm.size());
        } else {
            root.reduce_into(&1, SystemOperation::sum());
        }
    }
    [same, range, others]
}

/// Waits until no PE knows of any group; farewells may be under way.
fn expect_none(world: &SimpleCommunicator, when: &str) {
    world.barrier();
    let began = Instant::now();
    loop {
        let statistics = vrt::statistics();
        assert_eq!((statistics.communicators, statistics.windows), (0, 0), "{when}");
        let groups = statistics.groups_of_pe;
        if groups == 0 {
            break;
        }
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "PE {} still knows {groups} groups {when}",
            statistics.pe
        );
        vrt::yield_now();
    }
    world.barrier();
}

fn dropped(world: &SimpleCommunicator, rounds: u32) {
    for round in 0..rounds {
        let made = make(world, round);
        let window = world.allocate_window(vec![0u64; 4]);
        window.fence();
        window.put((world.rank() + 1) % world.size(), 0, &[u64::from(round)]);
        window.fence();
        let statistics = vrt::statistics();
        assert_eq!((statistics.communicators, statistics.windows), (4, 1));
        assert!(statistics.groups_of_pe >= 1, "groups are counted");
        drop(window);
        drop(made);
        if round == rounds / 2 {
            expect_none(world, "half way");
        }
    }
    expect_none(world, "in the end");
    if world.rank() == 0 {
        println!("{rounds} rounds, ok");
    }
}

/// In each life, communicators are made that go with the rank's heap.
fn abandoned(world: &SimpleCommunicator, rounds: u32) {
    let mut round = world.restore::<u32>().unwrap_or(0);
    expect_none(world, "after a move");
    if round < rounds {
        let made = make(world, round);
        assert_eq!(vrt::statistics().communicators, 3);
        world.barrier();
        round += 1;
        let to = 1 - vrt::statistics().pe;
        if let Err(error) = world.migrate_to(to, &mut round) {
            panic!("{error}");
        }
        drop(made);
        panic!("the rank goes on as it was");
    }
    if world.rank() == 0 {
        println!("{rounds} lives, ok");
    }
}

/// All ranks but the first end with what they have made.
fn forgotten(world: &SimpleCommunicator, rounds: u32) {
    for round in 0..rounds {
        std::mem::forget(make(world, round));
    }
    world.barrier();
    if world.rank() > 0 {
        return;
    }
    assert_eq!(vrt::statistics().communicators, 3 * rounds);
    println!("{rounds} rounds, ok");
}
