//! Rank 0 holds a lock in a static of its PE while rank 1, on the same PE, waits for it. Meanwhile rank 0 cannot
//! leave the PE, and says that a lock is why; when it has let go rank 1 gets the lock and rank 0 can leave.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Condvar, LazyLock, Mutex, Once, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use clap::Parser;
use vrt::traits::*;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// Only locks whose names contain this
    #[arg(default_value = "")]
    only: String,
}

/// A lock: its name; takes it and calls [`while_held`]; takes it as well, calls [`got_it`] and lets go.
type Case = (&'static str, fn(), fn());

static MUTEX: Mutex<u64> = Mutex::new(0);
static SMALL: Mutex<u8> = Mutex::new(0);
static POISONED: Mutex<u64> = Mutex::new(0);
static READ: RwLock<u64> = RwLock::new(0);
static READ_BY_MANY: RwLock<u64> = RwLock::new(0);
static WRITTEN: RwLock<u64> = RwLock::new(0);
static WRITTEN_TWICE: RwLock<u64> = RwLock::new(0);
static ONCE: Once = Once::new();
static POISONED_ONCE: Once = Once::new();
static CELL: OnceLock<Vec<u64>> = OnceLock::new();
static SMALL_CELL: OnceLock<u8> = OnceLock::new();
static LAZY: LazyLock<Vec<u64>> = LazyLock::new(|| {
    while_held();
    vec![7; 1000]
});
static GATE: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// The locks of the standard library.
const STANDARD: &[Case] = &[
    ("mutex", || holds(MUTEX.lock()), || wants(MUTEX.lock())),
    ("small mutex", || holds(SMALL.lock()), || wants(SMALL.lock())),
    (
        "poisoned mutex",
        || {
            let poison = || {
                let _guard = POISONED.lock();
                std::panic::resume_unwind(Box::new(()));
            };
            assert!(catch_unwind(poison).is_err() && POISONED.is_poisoned());
            holds(POISONED.lock().unwrap_or_else(PoisonError::into_inner));
        },
        || wants(POISONED.lock().unwrap_or_else(PoisonError::into_inner)),
    ),
    ("rwlock, a reader and a writer", || holds(READ.read()), || wants(READ.write())),
    (
        "rwlock, five readers and a writer",
        || holds([0; 5].map(|_| READ_BY_MANY.read())),
        || wants(READ_BY_MANY.write()),
    ),
    ("rwlock, a writer and a reader", || holds(WRITTEN.write()), || wants(WRITTEN.read())),
    ("rwlock, two writers", || holds(WRITTEN_TWICE.write()), || wants(WRITTEN_TWICE.write())),
    (
        "once",
        || ONCE.call_once(while_held),
        || {
            ONCE.call_once(|| unreachable!("rank 0 does"));
            got_it();
        },
    ),
    (
        "poisoned once",
        || {
            let poison = || POISONED_ONCE.call_once(|| std::panic::resume_unwind(Box::new(())));
            assert!(catch_unwind(poison).is_err());
            POISONED_ONCE.call_once_force(|_| while_held());
        },
        || {
            POISONED_ONCE.call_once_force(|_| unreachable!("rank 0 does"));
            got_it();
        },
    ),
    ("once lock", || _ = CELL.get_or_init(filled), || wants(CELL.get_or_init(filled)[999])),
    (
        "small once lock",
        || _ = SMALL_CELL.get_or_init(|| filled()[0] as u8),
        || wants(SMALL_CELL.get_or_init(|| filled()[0] as u8)),
    ),
    ("lazy lock", || _ = LAZY.len(), || wants(LAZY.len())),
    (
        "condition",
        || {
            let mut open = GATE.0.lock().unwrap_or_else(PoisonError::into_inner);
            while_held();
            *open = true;
            GATE.1.notify_all();
        },
        || {
            let open = GATE.0.lock().unwrap_or_else(PoisonError::into_inner);
            wants(GATE.1.wait_while(open, |open| !*open));
        },
    ),
    // A thread that has such a lock may take it again, and so may all ranks of its PE.
    ("standard output", || holds(std::io::stdout().lock()), || _ = std::io::stderr().flush()),
    ("standard error", || holds(std::io::stderr().lock()), || _ = std::io::stderr().flush()),
    ("standard input", || holds(std::io::stdin().lock()), || wants(std::io::stdin().lock())),
];

static OTHER_MUTEX: parking_lot::Mutex<u64> = parking_lot::Mutex::new(0);
static OTHER_SMALL: parking_lot::Mutex<u8> = parking_lot::Mutex::new(0);
static OTHER_READ: parking_lot::RwLock<u64> = parking_lot::RwLock::new(0);
static OTHER_WRITTEN: parking_lot::RwLock<u64> = parking_lot::RwLock::new(0);
static OTHER_ONCE: parking_lot::Once = parking_lot::Once::new();

/// Those of `parking_lot`.
const OTHERS: &[Case] = &[
    ("other mutex", || holds(OTHER_MUTEX.lock()), || wants(OTHER_MUTEX.lock())),
    ("other small mutex", || holds(OTHER_SMALL.lock()), || wants(OTHER_SMALL.lock())),
    ("other rwlock, a reader", || holds(OTHER_READ.read()), || wants(OTHER_READ.write())),
    ("other rwlock, a writer", || holds(OTHER_WRITTEN.write()), || wants(OTHER_WRITTEN.read())),
    (
        "other once",
        || OTHER_ONCE.call_once(while_held),
        || {
            OTHER_ONCE.call_once(|| unreachable!("rank 0 does"));
            got_it();
        },
    ),
];

/// Keeps a guard meanwhile.
fn holds<T>(guard: T) {
    while_held();
    drop(guard);
}

/// What waits for it has it now.
fn wants<T>(guard: T) {
    got_it();
    drop(guard);
}

fn filled() -> Vec<u64> {
    while_held();
    vec![7; 1000]
}

/// Of the lock that is tried now: nobody has it; rank 0 does; rank 1 wants it; rank 0 has let go.
static STATE: AtomicU32 = AtomicU32::new(FREE);
const FREE: u32 = 0;
const HELD: u32 = 1;
const WANTED: u32 = 2;
const OVER: u32 = 3;

fn wait_for(state: u32) {
    while STATE.load(SeqCst) < state {
        vrt::sleep(Duration::from_millis(1));
    }
}

/// Rank 0 has the lock.
fn while_held() {
    let world = vrt::initialize().expect("in a rank").world();
    let (rank, pe) = (world.rank(), vrt::statistics().pe);
    assert_eq!((rank, pe), (0, 0), "it holds what is held");
    STATE.store(HELD, SeqCst);
    wait_for(WANTED);
    // Until it waits.
    vrt::sleep(Duration::from_millis(5));
    let refused = world.migrate_to(1, &mut ()).map_err(|why| why.to_string());
    assert!(refused.as_ref().is_err_and(|why| why.contains("lock")), "{refused:?}");
    assert_eq!(vrt::statistics().pe, 0);
    STATE.store(OVER, SeqCst);
}

/// Rank 1 has it.
fn got_it() {
    assert_eq!(STATE.load(SeqCst), OVER, "rank 0 has the lock, too");
}

/// In a frame of its own: what it leaves there does not look like references of the rank.
#[inline(never)]
fn call(f: fn()) {
    std::hint::black_box([0u8; 4096]);
    f();
}

fn run(only: &str) {
    let world = vrt::initialize().expect("in a rank").world();
    let cases = STANDARD.iter().chain(OTHERS).filter(|(name, ..)| name.contains(only));
    let mut count = 0;
    for (name, hold, want) in cases {
        match world.rank() {
            0 => {
                let held = catch_unwind(AssertUnwindSafe(|| call(*hold)));
                assert!(held.is_ok() && STATE.load(SeqCst) == OVER, "{name}");
            }
            1 => {
                wait_for(HELD);
                STATE.store(WANTED, SeqCst);
                call(*want);
                wait_for(OVER);
                STATE.store(FREE, SeqCst);
            }
            _ => {}
        }
        world.barrier();
        if world.rank() == 0 {
            for pe in [1, 0] {
                world.migrate_to(pe, &mut ()).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
            println!("{name}");
        }
        world.barrier();
        count += 1;
    }
    if world.rank() == 0 {
        println!("{count} locks, ok");
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let only = arguments.only;
    vrt::launch(arguments.vrt, move || run(&only))
}
