//! A program for the `mpi` crate whose statics and thread-locals have to be each rank's own, as those of processes
//! are. It knows nothing of vrt: `cargo xtask rsmpi-examples --unchanged` builds it with the crate of the registry.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock};

use mpi::collective::SystemOperation;
use mpi::traits::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

static ROUNDS: AtomicU64 = AtomicU64::new(0);
static RANK: OnceLock<i32> = OnceLock::new();
static SEEN: LazyLock<Mutex<BTreeMap<String, u64>>> = LazyLock::new(Default::default);

thread_local! {
    static SUM: Cell<u64> = const { Cell::new(0) };
    static NUMBERS: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

fn number() -> u64 {
    NUMBERS.with_borrow_mut(|numbers| numbers.as_mut().unwrap().random())
}

fn main() {
    let universe = mpi::initialize().unwrap();
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    RANK.set(rank).expect("nobody else sets it");
    NUMBERS.set(Some(StdRng::seed_from_u64(rank as u64)));
    // What the rank before this one draws.
    let previous = (rank + size - 1) % size;
    let mut expected = StdRng::seed_from_u64(previous as u64);
    for round in 0..1000 {
        let mine = number();
        let mut theirs = 0u64;
        mpi::request::scope(|scope| {
            let next = world.process_at_rank((rank + 1) % size);
            let sending = next.immediate_send(scope, &mine);
            world.process_at_rank(previous).receive_into(&mut theirs);
            sending.wait();
        });
        assert_eq!(theirs, expected.random::<u64>());
        SUM.set(SUM.get().wrapping_add(theirs));
        *SEEN.lock().unwrap().entry(format!("from {previous}")).or_default() += 1;
        assert_eq!(ROUNDS.fetch_add(1, Ordering::Relaxed), round);
        // The generator of each thread is seeded by the system.
        assert!(rand::rng().random_range(0..10) < 10);
        let mut all = 0u64;
        world.all_reduce_into(&round, &mut all, SystemOperation::sum());
        assert_eq!(all, round * size as u64);
    }
    let mut expected = StdRng::seed_from_u64(previous as u64);
    let sum = (0..1000).fold(0u64, |sum, _| sum.wrapping_add(expected.random()));
    assert_eq!((SUM.get(), RANK.get()), (sum, Some(&rank)));
    let seen = SEEN.lock().unwrap();
    assert_eq!(seen.iter().collect::<Vec<_>>(), [(&format!("from {previous}"), &1000)]);
    // A thread has thread-locals of its own.
    assert_eq!(std::thread::spawn(|| SUM.replace(5)).join().unwrap(), 0);
    world.barrier();
    if rank == 0 {
        println!("statics of {size} ranks: ok");
    }
}
