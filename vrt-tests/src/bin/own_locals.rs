//! Ranks with thread-locals of their own (`--private-thread-locals`), still and moved: do they behave as those
//! of a process?

use std::cell::{Cell, RefCell};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::Thread;

use clap::{Parser, ValueEnum};
use rand::Rng;
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    what: What,
    /// Times each rank does it
    #[arg(long, default_value_t = 200)]
    rounds: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Counters, texts and random numbers
    Values,
    /// Messages out of a thread-local and into one
    Messages,
    /// Destructors
    Drops,
    /// A panic that is caught, and one that is not
    Panics,
    /// Runtimes of tokio's, channels, and a parked thread
    Libraries,
    /// What threads that a rank starts have
    Threads,
    /// A channel between ranks of a PE, and one that waits until another wakes it
    Neighbours,
}

thread_local! {
    static COUNTER: Cell<u64> = const { Cell::new(1000) };
    static TEXTS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static NUMBERS: RefCell<[u64; 64]> = const { RefCell::new([0; 64]) };
    static LAZY: Box<Cell<u64>> = Box::new(Cell::new(7));
    static PRINTS: Prints = const { Prints(Cell::new(-1)) };
    static USES_ANOTHER: UsesAnother = const { UsesAnother };
}

/// Prints a line when it is dropped.
struct Prints(Cell<i32>);

impl Drop for Prints {
    fn drop(&mut self) {
        println!("rank {} drops", self.0.get());
    }
}

/// Uses another thread-local when it is dropped.
struct UsesAnother;

impl Drop for UsesAnother {
    fn drop(&mut self) {
        COUNTER.set(COUNTER.get() + 1);
        println!("it was {}", COUNTER.get());
    }
}

fn main() -> ExitCode {
    let Arguments { vrt, what, rounds } = Arguments::parse();
    vrt::launch(vrt, move || {
        let Some(universe) = vrt::initialize() else { unreachable!("main is a rank's program") };
        let world = universe.world();
        match what {
            What::Values => values(&world, rounds),
            What::Messages => messages(&world, rounds),
            What::Drops => drops(&world),
            What::Panics => panics(&world),
            What::Libraries => libraries(&world, rounds),
            What::Threads => threads(&world),
            What::Neighbours => neighbours(&world, rounds),
        }
        world.barrier();
        if world.rank() == 0 {
            println!("ok");
        }
    })
}

fn values(world: &SimpleCommunicator, rounds: u64) {
    let rank = world.rank() as u64;
    let mut random = Vec::new();
    for round in 0..rounds {
        COUNTER.set(COUNTER.get() + rank);
        LAZY.with(|it| it.set(it.get() + 1));
        TEXTS.with_borrow_mut(|texts| texts.push(format!("{rank} {round}")));
        random.push(rand::rng().random::<u64>());
        vrt::yield_now();
        if round % 16 == 0 {
            world.barrier();
        }
    }
    assert_eq!(COUNTER.get(), 1000 + rank * rounds);
    assert_eq!(LAZY.with(|it| it.get()), 7 + rounds);
    TEXTS.with_borrow(|texts| {
        assert_eq!(texts.len() as u64, rounds);
        let right = |(round, text): (usize, &String)| *text == format!("{rank} {round}");
        assert!(texts.iter().enumerate().all(right));
    });
    random.sort_unstable();
    random.dedup();
    assert_eq!(random.len() as u64, rounds, "the generator has repeated itself");
}

/// What is sent lies in a thread-local until it is received, which others have under the same name.
fn messages(world: &SimpleCommunicator, rounds: u64) {
    let (rank, ranks) = (world.rank(), world.size());
    let right = world.process_at_rank((rank + 1) % ranks);
    let left = world.process_at_rank((rank + ranks - 1) % ranks);
    for round in 0..rounds {
        NUMBERS.with_borrow_mut(|numbers| numbers.fill(round * 1000 + rank as u64));
        let mut incoming = [0; 64];
        NUMBERS.with_borrow(|numbers| {
            vrt::request::scope(|scope| {
                let sent = right.immediate_synchronous_send(scope, &numbers[..]);
                vrt::yield_now();
                left.receive_into(&mut incoming[..]);
                sent.wait();
            });
        });
        assert_eq!(incoming, [round * 1000 + left.rank() as u64; 64]);
        NUMBERS.with_borrow_mut(|numbers| {
            vrt::request::scope(|scope| {
                let received = left.immediate_receive_into(scope, &mut numbers[..]);
                right.send(&incoming[..]);
                received.wait();
            });
            let second = (rank + ranks - 2) % ranks;
            assert_eq!(numbers[..], [round * 1000 + second as u64; 64]);
        });
    }
}

fn drops(world: &SimpleCommunicator) {
    PRINTS.with(|it| it.0.set(world.rank()));
    USES_ANOTHER.with(|_| ());
    COUNTER.set(world.rank() as u64);
    world.barrier();
}

fn panics(world: &SimpleCommunicator) {
    for _ in 0..3 {
        let caught = std::panic::catch_unwind(|| {
            if COUNTER.get() == 1000 {
                std::panic::resume_unwind(Box::new(5));
            }
        });
        let payload = caught.expect_err("it panics");
        assert_eq!(payload.downcast_ref(), Some(&5));
        assert!(!std::thread::panicking());
        vrt::yield_now();
    }
    if world.rank() == 1 {
        panic!("rank 1 gives up at {}", COUNTER.get());
    }
    world.barrier();
}

fn libraries(world: &SimpleCommunicator, rounds: u64) {
    let (sender, receiver) = mpsc::channel();
    let rank = world.rank();
    let thread = std::thread::spawn(move || {
        for round in 0..rounds {
            sender.send(round).expect("it is received");
        }
        rank
    });
    for round in 0..rounds {
        assert_eq!(receiver.recv(), Ok(round));
        vrt::yield_now();
    }
    assert_eq!(thread.join().expect("it does not panic"), rank);
    let lock = tokio::sync::Mutex::new(0);
    for _ in 0..rounds {
        *lock.blocking_lock() += 1;
        vrt::yield_now();
    }
    assert_eq!(lock.into_inner(), rounds);
}

fn threads(world: &SimpleCommunicator) {
    COUNTER.set(world.rank() as u64);
    let of_thread = std::thread::spawn(|| COUNTER.replace(5)).join();
    assert_eq!(of_thread.expect("it does not panic"), 1000);
    vrt::yield_now();
    assert_eq!(COUNTER.get(), world.rank() as u64);
}

/// Ranks are threads to the standard library.
fn neighbours(world: &SimpleCommunicator, rounds: u64) {
    static NUMBERS: Mutex<Option<Receiver<u64>>> = Mutex::new(None);
    static WAITS: Mutex<Option<Thread>> = Mutex::new(None);
    static GOES_ON: AtomicBool = AtomicBool::new(false);
    if world.rank() == 0 {
        let (sender, receiver) = mpsc::channel();
        *NUMBERS.lock().expect("nobody panics") = Some(receiver);
        world.barrier();
        for round in 0..rounds {
            sender.send(round).expect("it is received");
            vrt::yield_now();
        }
        world.barrier();
        GOES_ON.store(true, Ordering::Release);
        WAITS.lock().expect("nobody panics").take().expect("it was put there").unpark();
    } else if world.rank() == 1 {
        world.barrier();
        let receiver = NUMBERS.lock().expect("nobody panics").take().expect("it was put there");
        for round in 0..rounds {
            assert_eq!(receiver.recv(), Ok(round));
        }
        *WAITS.lock().expect("nobody panics") = Some(std::thread::current());
        world.barrier();
        while !GOES_ON.load(Ordering::Acquire) {
            std::thread::park();
        }
    } else {
        world.barrier();
        world.barrier();
    }
}
