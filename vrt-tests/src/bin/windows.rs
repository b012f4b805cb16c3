//! One-sided access in every form, checked after every round: in one node or between nodes, still
//! or while ranks are moved.

use std::fmt::Debug;
use std::process::ExitCode;

use clap::Parser;
use vrt::collective::SystemOperation;
use vrt::datatype::Located;
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;
use vrt::window::{LockKind, Window};

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// Rounds
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Values in the long accesses
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1..))]
    long: u32,
    /// Ranks are async
    #[arg(long)]
    asynchronous: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = arguments.vrt.clone();
    if arguments.asynchronous {
        vrt::launch_async(config, move || run_async(arguments.clone()))
    } else {
        vrt::launch(config, move || run(&arguments))
    }
}

fn world() -> SimpleCommunicator {
    let Some(universe) = vrt::initialize() else { unreachable!("main is a rank's program") };
    universe.world()
}

/// What a rank writes in a round at a place.
fn mark(rank: i32, round: usize, place: usize) -> u64 {
    (u64::from(rank as u32) << 40) | ((round as u64) << 20) | place as u64
}

fn run(arguments: &Arguments) {
    let world = world();
    let (me, n, long) = (world.rank(), world.size(), arguments.long as usize);
    let mut moves = Moves::new();
    let mut memory = vec![0u64; n as usize + long];
    let window = world.create_window(&mut memory);
    let counters = world.allocate_window(vec![0i64; 4]);
    // The one type has its gap behind the location, the other one in front of it.
    let best = world.allocate_window(vec![Located::new(-1.0f64, -1); 3]);
    let short = world.allocate_window(vec![Located::new(-1i16, -1); 3]);
    window.fence();
    counters.fence();
    best.fence();
    short.fence();
    for round in 0..arguments.rounds {
        let (right, left) = ((me + 1) % n, (me + n - 1) % n);
        for rank in 0..n {
            window.put(rank, me as usize, &[mark(me, round, 0)]);
        }
        let values: Vec<u64> = (0..long).map(|place| mark(me, round, place)).collect();
        window.put(right, n as usize, &values);
        window.fence();
        assert!((0..n).all(|rank| window.load(rank as usize) == mark(rank, round, 0)));
        let mine: Vec<u64> = (0..long).map(|place| window.load(n as usize + place)).collect();
        assert!(mine.iter().enumerate().all(|(place, value)| *value == mark(left, round, place)));
        let mut theirs = vec![0; long];
        window.get(left, n as usize, &mut theirs);
        let before_left = (me + n - 2).rem_euclid(n);
        assert!(
            theirs.iter().enumerate().all(|(at, value)| *value == mark(before_left, round, at))
        );
        window.fence();
        count(&world, &counters, round);
        find(&best, round);
        find(&short, round);
        access_at_once(&world, round);
        moves.look();
    }
    drop((window, counters, best, short));
    moves.report(&world, arguments.rounds);
}

/// Who has made a window accesses it at once: other ranks may not have come back from making it.
fn access_at_once(world: &SimpleCommunicator, round: usize) {
    let (me, n) = (world.rank(), world.size());
    for place in 0..8 {
        let window = world.allocate_window(vec![mark(me, round, place)]);
        let mut theirs = [0];
        let right = (me + 1) % n;
        window.lock(LockKind::Shared, right);
        window.get(right, 0, &mut theirs);
        window.unlock(right);
        assert_eq!(theirs, [mark(right, round, place)]);
    }
}

/// All ranks fold, swap and lock the same places.
fn count(world: &SimpleCommunicator, counters: &Window<'_, i64>, round: usize) {
    let (me, n) = (world.rank(), world.size());
    let keeper = (round as i32 * 7) % n;
    if me == keeper {
        (0..4).for_each(|at| counters.store(at, 0));
    }
    counters.fence();
    // Tickets: each number once.
    let ticket = counters.fetch_and_op(keeper, 0, 1, SystemOperation::sum());
    counters.accumulate(keeper, 0, &[1000], SystemOperation::sum());
    let won = counters.compare_and_swap(keeper, 1, 0, i64::from(me) + 1) == 0;
    counters.last_fence();
    let (mut tickets, mut winners) = (0, 0);
    world.all_reduce_into(&(ticket % 1000), &mut tickets, SystemOperation::sum());
    world.all_reduce_into(&i32::from(won), &mut winners, SystemOperation::sum());
    let n64 = i64::from(n);
    assert_eq!((tickets, winners), (n64 * (n64 - 1) / 2, 1));
    // Read and write under a lock; locks are shared meanwhile for looking.
    counters.lock(LockKind::Exclusive, keeper);
    let mut value = [0];
    counters.get(keeper, 2, &mut value);
    counters.put(keeper, 2, &[value[0] + 1]);
    counters.unlock(keeper);
    counters.lock_all();
    counters.get((keeper + 1) % n, 2, &mut value);
    counters.flush_all();
    // A lock of its own: who does not get it tries again, while its neighbour may have it.
    while counters.compare_and_swap(keeper, 3, 0, 1) != 0 {}
    vrt::yield_now();
    assert_eq!(counters.compare_and_swap(keeper, 3, 1, 0), 1);
    counters.unlock_all();
    counters.fence();
    if me == keeper {
        assert_eq!([counters.load(0), counters.load(2)], [n64 * 1001, n64]);
        assert!((1..=n64).contains(&counters.load(1)));
    }
    counters.fence();
}

/// All ranks fold pairs into the same places.
fn find<T>(window: &Window<'_, Located<T>>, round: usize)
where
    T: From<i16> + Copy + PartialEq + Debug,
    Located<T>: Equivalence,
{
    let world = world();
    let (me, n) = (world.rank(), world.size());
    let keeper = (round as i32 * 7) % n;
    let pair = |value: i32, rank| Located::new(T::from(value as i16), rank);
    if me == keeper {
        (0..3).for_each(|at| window.store(at, pair(-1, -1)));
    }
    window.fence();
    let mine = [pair((me * 31) % n, me), pair(-me, me), pair(7, me)];
    window.accumulate(keeper, 0, &mine, SystemOperation::max_location());
    window.fence();
    let mut found = [pair(0, 0); 3];
    window.get(keeper, 0, &mut found);
    let largest = (0..n).map(|rank| (rank * 31) % n).max().unwrap_or_default();
    let first = (0..n).find(|rank| (rank * 31) % n == largest).unwrap_or_default();
    assert_eq!(found, [pair(largest, first), pair(0, 0), pair(7, 0)]);
    window.fence();
}

async fn run_async(arguments: Arguments) {
    let world = world();
    let (me, n) = (world.rank(), world.size());
    let mut moves = Moves::new();
    let window = world.allocate_window_async(vec![0u64; 2]).await;
    for round in 0..arguments.rounds {
        window.fence_async().await;
        let right = (me + 1) % n;
        window.put_async(right, 0, &[mark(me, round, 0)]).await;
        window.accumulate_async(0, 1, &[1], SystemOperation::sum()).await;
        window.fence_async().await;
        let mut back = [0];
        window.get_async(right, 0, &mut back).await;
        assert_eq!(back[0], mark(me, round, 0));
        window.get_async(0, 1, &mut back).await;
        assert_eq!(back[0], (round as u64 + 1) * n as u64);
        moves.look();
    }
    window.free_async().await;
    // Dropped windows are freed beside what else the rank does: rank 0 waits for the others between.
    for round in 0..arguments.rounds {
        let window = world.allocate_window_async(vec![me as u64; 2]).await;
        window.fence_async().await;
        let mut theirs = [0; 2];
        window.get_async((me + round as i32) % n, 0, &mut theirs).await;
        assert_eq!(theirs, [((me + round as i32) % n) as u64; 2]);
        match me == 0 {
            true => {
                drop(window);
                world.barrier_async().await;
            }
            false => {
                world.barrier_async().await;
                drop(window);
            }
        }
    }
    let mut all = 0;
    world.all_reduce_into_async(&moves.seen, &mut all, SystemOperation::sum()).await;
    moves.seen = all;
    moves.print(&world, arguments.rounds);
}

/// How often this rank was seen on another PE.
struct Moves {
    pe: u32,
    seen: u64,
}

impl Moves {
    fn new() -> Moves {
        Moves { pe: vrt::statistics().pe, seen: 0 }
    }

    fn look(&mut self) {
        let pe = vrt::statistics().pe;
        self.seen += u64::from(pe != self.pe);
        self.pe = pe;
    }

    fn report(mut self, world: &SimpleCommunicator, rounds: usize) {
        let mut all = 0;
        world.all_reduce_into(&self.seen, &mut all, SystemOperation::sum());
        self.seen = all;
        self.print(world, rounds);
    }

    fn print(&self, world: &SimpleCommunicator, rounds: usize) {
        if world.rank() == 0 {
            println!("windows: {rounds} rounds, {} moves, ok", self.seen);
        }
    }
}
