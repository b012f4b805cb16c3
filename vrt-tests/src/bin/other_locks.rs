//! Locks of other crates in statics: each rank of a PE holds one while it sleeps or lets others run, and all others
//! of its PE want it.

use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::Duration;

use clap::Parser;
use dashmap::DashMap;
use parking_lot::{Condvar, Mutex, Once, RwLock};
use vrt::traits::*;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// Only locks whose names contain this
    #[arg(default_value = "")]
    only: String,
    /// Has a pool of threads beside the ranks
    #[arg(long)]
    pool: bool,
}

static MUTEX: Mutex<Held> = Mutex::new(Held::NEW);
static LOCK: RwLock<Held> = RwLock::new(Held::NEW);
static TURN: (Mutex<u64>, Condvar) = (Mutex::new(0), Condvar::new());
static ONCE: Once = Once::new();
static MAP: LazyLock<DashMap<u64, Held>> = LazyLock::new(DashMap::new);
static ASYNC: tokio::sync::Mutex<Held> = tokio::sync::Mutex::const_new(Held::NEW);

/// What is changed twice by whoever has the lock.
#[derive(Default)]
struct Held {
    begun: u64,
    ended: u64,
}

impl Held {
    const NEW: Held = Held { begun: 0, ended: 0 };

    fn change(&mut self, round: u64) {
        assert_eq!(self.begun, self.ended, "two ranks have the lock");
        self.begun += 1;
        pause(round);
        self.ended += 1;
    }

    fn look(&self, round: u64) {
        let before = self.begun;
        pause(round);
        assert!(self.begun == before && self.ended == before, "it was changed meanwhile");
    }
}

/// The neighbours run.
fn pause(round: u64) {
    match round % 2 {
        0 => std::thread::sleep(Duration::from_micros(500)),
        _ => vrt::yield_now(),
    }
}

const ROUNDS: u64 = 10;

/// Each is called by all ranks of a PE, with their number on it and how many they are.
type Case = (&'static str, fn(u64, u64));

const CASES: &[Case] = &[
    ("mutex", |_, _| {
        for round in 0..ROUNDS {
            MUTEX.lock().change(round);
        }
    }),
    ("rwlock", |me, _| {
        for round in 0..ROUNDS {
            match (me + round) % 3 {
                0 => LOCK.write().change(round),
                _ => LOCK.read().look(round),
            }
        }
    }),
    ("condition", |me, ranks| {
        for round in 0..ROUNDS {
            let mut turn = TURN.0.lock();
            TURN.1.wait_while(&mut turn, |turn| *turn != round * ranks + me);
            pause(round);
            *turn += 1;
            TURN.1.notify_all();
        }
    }),
    ("once", |_, _| {
        ONCE.call_once(|| (0..ROUNDS).for_each(pause));
        assert!(ONCE.state().done());
    }),
    ("map", |_, _| {
        for round in 0..ROUNDS {
            MAP.entry(round % 3).or_default().change(round);
            if let Some(held) = MAP.get(&(round % 3)) {
                held.look(round);
            }
        }
    }),
    ("tokio", |_, _| {
        for round in 0..ROUNDS {
            vrt::block_on(ASYNC.lock()).change(round);
        }
    }),
];

fn run(only: &str, pool: bool) {
    let world = vrt::initialize().expect("in a rank").world();
    // They begin on the PEs in order, and stay there.
    let ranks = world.size() as u64 / vrt::environment::pes() as u64;
    let me = world.rank() as u64 % ranks;
    if pool {
        // They wait for work, and so might wake somebody.
        let sum: u64 = rayon::join(|| 20, || 22).0 + 22;
        assert_eq!(sum, 42);
    }
    let mut count = 0;
    for (name, case) in CASES.iter().filter(|(name, _)| name.contains(only)) {
        case(me, ranks);
        world.barrier();
        if world.rank() == 0 {
            println!("{name}");
        }
        count += 1;
    }
    if world.rank() == 0 {
        println!("{count} locks, ok");
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (only, pool) = (arguments.only, arguments.pool);
    vrt::launch(arguments.vrt, move || run(&only, pool))
}
