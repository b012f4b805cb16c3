//! A job in which something keeps the thread of PE 0 until standard input ends, or for ever.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// Who does what
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Nobody: each PE says how many threads it has
    Nothing,
    /// Rank 0 reads standard input
    Read,
    /// Rank 0 computes
    Compute,
    /// Rank 0 computes for a second after all others have ended
    Alone,
    /// A tokio task reads standard input
    Task,
    /// A tokio task panics, and nobody asks for its outcome
    TaskPanic,
    /// The same, and the rank asks
    TaskPanicAsked,
    /// Two ranks of a PE want one lock of C's
    Mutex,
    /// The same beside a thread that may unlock it, and does when standard input ends
    MutexAndThread,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let what = arguments.what;
    match what {
        What::Task | What::TaskPanic | What::TaskPanicAsked => {
            vrt::launch_async(arguments.vrt, move || tasks(what))
        }
        _ => vrt::launch(arguments.vrt, move || ranks(what)),
    }
}

/// Blocks the thread until standard input ends.
fn read_to_end() {
    let mut byte = 0u8;
    // SAFETY: a writable byte.
    while unsafe { libc::read(0, (&raw mut byte).cast(), 1) } > 0 {}
}

async fn tasks(what: What) {
    let world = vrt::initialize().expect("in a rank").world();
    world.barrier_async().await;
    if world.rank() == 0 {
        let task = tokio::spawn(async move {
            match what {
                What::Task => read_to_end(),
                _ => panic!("this is what went wrong"),
            }
        });
        match what {
            What::TaskPanic => drop(task),
            What::TaskPanicAsked => {
                let outcome = task.await;
                assert!(outcome.is_err_and(|error| error.is_panic()));
            }
            _ => task.await.expect("it does not panic"),
        }
    }
    // Until the task has run, whose turn comes when no rank is ready.
    vrt::sleep_async(Duration::from_millis(50)).await;
    world.barrier_async().await;
    if world.rank() == 0 {
        println!("all is well");
    }
}

/// The names of the process's threads, that of the first one first.
fn threads() -> Vec<String> {
    let threads = std::fs::read_dir("/proc/self/task").expect("Linux").flatten();
    let names =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.map(|name| name.trim_end().to_owned()).collect()
}

fn ranks(what: What) {
    let world = vrt::initialize().expect("in a rank").world();
    world.barrier();
    match what {
        What::Nothing => {
            let mut names = threads();
            // A thread begins with the name of who has made it.
            while names.iter().filter(|name| *name == &names[0]).count() > 1 {
                std::thread::yield_now();
                names = threads();
            }
            names[1..].sort();
            println!("PE {} has the threads {:?}", vrt::statistics().pe, &names[1..]);
        }
        What::Alone if world.rank() > 0 => return world.process_at_rank(0).send(&0u8),
        What::Alone => {
            for rank in 1..world.size() {
                world.process_at_rank(rank).receive::<u8>();
            }
            let began = std::time::Instant::now();
            while began.elapsed() < Duration::from_secs(1) {}
            return;
        }
        What::Mutex | What::MutexAndThread => lock(&world, what == What::MutexAndThread),
        _ if world.rank() == 0 => match what {
            What::Read => read_to_end(),
            _ => compute(),
        },
        // They wait for the time to pass, and for the PE.
        _ => vrt::sleep(Duration::from_millis(20)),
    }
    world.barrier();
    if world.rank() == 0 {
        println!("all is well");
    }
}

/// Computes until standard input ends.
fn compute() {
    static OVER: AtomicBool = AtomicBool::new(false);
    let thread = std::thread::spawn(|| {
        read_to_end();
        OVER.store(true, Ordering::Relaxed);
    });
    while !OVER.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
    thread.join().expect("it does not panic");
}

/// A lock of C's.
struct Lock(std::cell::UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: its functions are made for several threads.
unsafe impl Sync for Lock {}

static LOCK: Lock = Lock(std::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

/// Rank 0 holds the lock while it waits for rank 1, which wants it.
fn lock(world: &SimpleCommunicator, beside_a_thread: bool) {
    let (me, lock) = (world.rank(), LOCK.0.get());
    if me == 0 {
        // SAFETY: a valid lock; a thread of the same process may unlock it, as Linux has it.
        unsafe { libc::pthread_mutex_lock(lock) };
        if beside_a_thread {
            std::thread::spawn(|| {
                read_to_end();
                // SAFETY: as above.
                unsafe { libc::pthread_mutex_unlock(LOCK.0.get()) };
            });
        }
        world.process_at_rank(1).send(&0u8);
        world.process_at_rank(1).receive::<u8>();
    } else if me == 1 {
        world.process_at_rank(0).receive::<u8>();
        // SAFETY: as above.
        unsafe { libc::pthread_mutex_lock(lock) };
        world.process_at_rank(0).send(&0u8);
    } else {
        vrt::sleep(Duration::from_millis(20));
    }
}
