//! Locks and conditions that the ranks of a PE share through its statics.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

use crate::rounds::{Rounds, neighbours, pass, sum};

static NOTES: RwLock<BTreeMap<u64, Vec<u64>>> = RwLock::new(BTreeMap::new());
static TOTAL: Mutex<(u64, u64)> = Mutex::new((0, 0));

/// Ranks write into and read from a table of their PE.
pub(crate) fn static_map(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    rounds.state::<()>();
    while let Some(round) = rounds.next_with(&mut ()) {
        note(me, round);
        world.barrier();
        compare();
        pass(world, &round);
    }
    world.barrier();
    // Nobody uses it now.
    assert!(NOTES.try_write().is_ok() && TOTAL.try_lock().is_ok(), "a lock was left behind");
    world.barrier();
}

#[inline(never)]
fn note(me: u64, round: u64) {
    NOTES.write().expect("no panic").insert(me, vec![me, round, me * round]);
    let mut total = TOTAL.lock().expect("no panic");
    total.0 += me;
    total.1 += 1;
}

#[inline(never)]
fn compare() {
    let notes = NOTES.read().expect("no panic");
    assert!(notes.iter().all(|(of, note)| note[0] == *of && note[2] == of * note[1]));
    let total = TOTAL.lock().expect("no panic");
    assert!(total.0 <= 7 * total.1);
}

static TURN: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static STAND: RwLock<u64> = RwLock::new(0);

/// A rank in its turn holds a lock of its PE while it talks to another one.
pub(crate) fn guards(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let (me, size) = (world.rank(), world.size());
    let (next, previous) = neighbours(world);
    while let Some(round) = rounds.next() {
        for turn in 0..size {
            if me == turn {
                let mut guard = TURN.lock().expect("no panic");
                guard.push(round);
                let stand = STAND.read().expect("no panic");
                let before = *stand;
                world.process_at_rank(next).send(&round);
                world.process_at_rank(next).receive::<u64>();
                assert_eq!(guard.pop(), Some(round));
                assert_eq!(*stand, before);
                drop(stand);
                let mut stand = STAND.write().expect("no panic");
                world.process_at_rank(next).send(&round);
                *stand += 1;
                world.process_at_rank(next).receive::<u64>();
            } else if previous == turn {
                for _ in 0..2 {
                    let (got, _) = world.process_at_rank(previous).receive::<u64>();
                    assert_eq!(got, round);
                    world.process_at_rank(previous).send(&got);
                }
            }
            world.barrier();
            // The lock of whatever PE this is: nobody has it now.
            assert!(TURN.try_lock().is_ok(), "a lock was left behind");
            assert!(STAND.try_write().is_ok(), "a lock was left behind");
            world.barrier();
        }
    }
}

static JOBS: (Mutex<VecDeque<Box<u64>>>, Condvar) = (Mutex::new(VecDeque::new()), Condvar::new());

/// Ranks give each other numbers by a list and a condition; who waits in vain looks after the others.
pub(crate) fn conditions(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let (mut given, mut taken) = (0, 0);
    while let Some(round) = rounds.next() {
        if (me + round).is_multiple_of(2) {
            give(me + round);
            given += me + round;
        } else {
            taken += take();
        }
        pass(world, &me);
    }
    // What is left on a PE waits for ranks that come there, which do not come while they wait for a
    // condition.
    while sum(world, given) != sum(world, taken) {
        taken += take_now();
    }
}

#[inline(never)]
fn give(number: u64) {
    let (jobs, condition) = &JOBS;
    jobs.lock().expect("no panic").push_back(Box::new(number));
    condition.notify_one();
}

#[inline(never)]
fn take() -> u64 {
    let (jobs, condition) = &JOBS;
    let guard: MutexGuard<'_, _> = jobs.lock().expect("no panic");
    let wait = Duration::from_millis(1);
    let (mut jobs, _) =
        condition.wait_timeout_while(guard, wait, |jobs| jobs.is_empty()).expect("no panic");
    jobs.pop_front().map_or(0, |number| *number)
}

#[inline(never)]
fn take_now() -> u64 {
    JOBS.0.lock().expect("no panic").pop_front().map_or(0, |number| *number)
}

static COUNTER: Mutex<Option<Arc<Mutex<u64>>>> = Mutex::new(None);

/// The ranks that begin on a PE share a counter, wherever they are later.
pub(crate) fn shared_counter(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let counter = {
        let mut first = COUNTER.lock().expect("no panic");
        Arc::clone(first.get_or_insert_default())
    };
    let mut added = 0;
    while let Some(round) = rounds.next() {
        for _ in 0..50 {
            *counter.lock().expect("no panic") += round;
        }
        added += 50 * round;
        world.barrier();
        assert!(*counter.lock().expect("no panic") >= added);
        pass(world, &round);
    }
    world.barrier();
    // Each of those who share it sees the sum of all of them.
    let shares = Arc::strong_count(&counter) as u64 - 1;
    let count = *counter.lock().expect("no panic");
    world.barrier();
    assert_eq!(count, shares * added);
}

/// A thread holds a lock for a while, and the rank that started it waits for a message of its partner,
/// which waits for the lock, wherever it is.
pub(crate) fn held_by_thread(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let (me, size) = (world.rank(), world.size());
    let counter = {
        let mut first = COUNTER.lock().expect("no panic");
        Arc::clone(first.get_or_insert_default())
    };
    while let Some(round) = rounds.next() {
        let starter = (round % size as u64) as i32;
        // They have begun on the same PE.
        let partner = starter ^ 1;
        if partner < size && me == starter {
            let (held, is_held) = mpsc::channel();
            let counter = Arc::clone(&counter);
            let thread = thread::spawn(move || {
                let mut count = counter.lock().expect("no panic");
                held.send(()).expect("the rank waits for it");
                thread::sleep(Duration::from_millis(5));
                *count += 1;
                *count
            });
            is_held.recv().expect("the thread says so");
            world.process_at_rank(partner).send(&round);
            let (got, _) = world.process_at_rank(partner).receive::<u64>();
            assert_eq!(got, thread.join().expect("it ends well") + 1);
        } else if me == partner {
            world.process_at_rank(starter).receive::<u64>();
            let count = {
                let mut count = counter.lock().expect("no panic");
                *count += 1;
                *count
            };
            world.process_at_rank(starter).send(&count);
        }
        world.barrier();
    }
}

static WORK: Mutex<u64> = Mutex::new(0);

/// A thread computes while it holds a lock that its rank wants. Other ranks of the PE, which find the
/// rank's thread-local as it has left it, do not run in the middle of that.
pub(crate) fn held_by_working_thread(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    thread_local! {
        static LATCH: Cell<Option<u64>> = const { Cell::new(None) };
    }
    let me = world.rank() as u64;
    while let Some(round) = rounds.next() {
        let (held, is_held) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut work = WORK.lock().expect("no panic");
            held.send(()).expect("the rank waits for it");
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(4) {
                *work = work.wrapping_add(1);
            }
        });
        is_held.recv().expect("the thread says so");
        assert_eq!(LATCH.replace(Some(me)), None, "another rank is in the middle of it");
        *WORK.lock().expect("no panic") ^= round;
        assert_eq!(LATCH.take(), Some(me), "another rank was here meanwhile");
        thread.join().expect("it ends well");
        pass(world, &round);
    }
}

/// A rank holds the lock of the standard output over messages, as programs do that print a lot.
pub(crate) fn output_lock(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let (me, size) = (world.rank() as u64, world.size() as u64);
    while let Some(round) = rounds.next() {
        if round % size == me {
            let mut out = std::io::stdout().lock();
            writeln!(out, "round {round}").expect("it can be written");
            pass(world, &round);
            writeln!(out, "round {round} still").expect("it can be written");
        } else {
            pass(world, &round);
        }
        world.barrier();
        // A thread can print: nobody has the lock.
        if me == 0 {
            thread::spawn(|| println!("a thread")).join().expect("it ends well");
        }
        world.barrier();
    }
}
