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
    /// Bytes of a message
    #[arg(long, default_value_t = 8)]
    bytes: usize,
    /// Send data that does not lie in the rank's memory
    #[arg(long)]
    from_static: bool,
    /// Bytes that messages may take which were not received
    #[arg(long, default_value_t = u64::MAX)]
    limit: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum What {
    /// Communicators and windows, dropped in every round
    Dropped,
    /// Communicators that are there when the rank moves by its state
    Abandoned,
    /// Communicators that are forgotten when the rank ends
    Forgotten,
    /// Rank 0 sends to the last rank, which receives only when no more comes
    Flood,
    /// The same, and the last rank looks what memory its process has before, then, and after
    GiveBack,
    /// The last rank waits for the last of all those messages, which never comes
    Unsafe,
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
            What::Flood | What::GiveBack | What::Unsafe => flood(&world, &arguments),
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

/// What messages consist of that do not lie in the rank's memory.
static BYTES: [u8; 1 << 16] = [7; 1 << 16];

fn flood(world: &SimpleCommunicator, arguments: &Arguments) {
    let Arguments { rounds, bytes, from_static, limit, what, .. } = *arguments;
    let last = world.size() - 1;
    let own = vec![7u8; bytes];
    world.barrier();
    if world.rank() == 0 {
        let to = world.process_at_rank(last);
        for round in 0..rounds {
            // The tag tells the order.
            let data = if from_static { &BYTES[..bytes] } else { &own[..] };
            to.send_with_tag(data, round as i32 & 0xffff);
        }
        to.send_with_tag(&0u8, 0x10000);
        return;
    }
    if world.rank() < last {
        return;
    }
    let from = world.process_at_rank(0);
    if what == What::Unsafe {
        from.receive_with_tag::<u8>(0x10000);
    }
    let before = resident();
    let most = wait_until_no_more_comes(u64::from(rounds), bytes, limit);
    let at_most = resident();
    // What is on its way between two processes comes on top.
    let slack = 1 << 20;
    assert!(most <= limit.saturating_add(slack), "{most} bytes were kept, {limit} are allowed");
    let mut room = vec![0u8; bytes];
    for round in 0..rounds {
        room.fill(0);
        let status = from.receive_into_with_tag(&mut room[..], round as i32 & 0xffff);
        assert_eq!(status.bytes(), bytes as u64);
        assert!(room.iter().all(|byte| *byte == 7));
    }
    from.receive_with_tag::<u8>(0x10000);
    let statistics = vrt::statistics();
    assert_eq!((statistics.unexpected_messages, statistics.unexpected_bytes), (0, 0));
    if what == What::GiveBack {
        let after = resident();
        println!("{before} KiB before, {at_most} KiB with {most} bytes kept, {after} KiB after");
        assert!(at_most > before + (most / 2048) as usize, "the messages were seen");
        assert!(after < before + (at_most - before) / 4, "memory was not given back");
    }
    println!("{rounds} messages, {most} bytes kept at most, ok");
}

/// Waits until all messages have come, or until the limit is reached and no more come for a while.
/// Returns the bytes that are kept.
fn wait_until_no_more_comes(messages: u64, bytes: usize, limit: u64) -> u64 {
    let mut began = Instant::now();
    let mut seen = 0;
    loop {
        let statistics = vrt::statistics();
        let kept = statistics.unexpected_bytes as u64;
        if statistics.unexpected_messages as u64 > messages {
            return kept;
        }
        if statistics.unexpected_messages > seen {
            seen = statistics.unexpected_messages;
            began = Instant::now();
        }
        let quiet = began.elapsed();
        if kept >= limit && quiet > Duration::from_millis(300) {
            return kept;
        }
        assert!(
            quiet < Duration::from_secs(30),
            "{seen} messages of {bytes} bytes came, {kept} bytes, and no more"
        );
        vrt::yield_now();
    }
}

/// Memory that the process has, in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or_default()
}
