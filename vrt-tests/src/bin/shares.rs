//! A rank that holds memory which is not its own, or whose memory others hold, wants to go to
//! another PE. It goes and everything it holds is still right, or it stays and says why.
//!
//! Rank 0 prints `moved` or `stays: ` with the reason; whoever holds something checks it.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, mpsc};

use clap::{Parser, ValueEnum};
use rayon::prelude::*;
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// A vector that a thread has returned
    ThreadVector,
    /// Strings that a pool of another rank has made
    Rayon,
    /// What a task of tokio has returned
    TokioTask,
    /// A text of a static that a thread has filled
    StaticByThread,
    /// A reference into a table that another rank has filled
    StaticTable,
    /// An `Arc` out of a registry that another rank has filled
    Registry,
    /// An `Rc` that a thread-local variable has, too
    ThreadLocalRc,
    /// A borrow of a thread-local variable, over the move
    ThreadLocalBorrow,
    /// A random number generator that all ranks of a PE share
    RandomNumbers,
    /// A box that rank 1 has got of it through a static
    GivenBox,
    /// A box that a thread of rank 1 has got of it through a static
    GivenToThread,
    /// A long vector, of which a thread of rank 1 knows nothing
    BesideThread,
    /// A box that it has got of rank 1 through a static
    TakenBox,
    /// Memory that it has leaked
    Leaked,
    /// A clone of an `Arc` that `main` has made
    ArcOfMain,
    /// Nothing, while rank 1 has such a clone
    BesideArcOfMain,
    /// A regex in a static that it was the first to use
    StaticRegex,
    /// The same; it goes to another PE of the node, and from there to another node
    StaticOfFirstPe,
}

static TEXT: OnceLock<String> = OnceLock::new();
static TABLE: OnceLock<Vec<u64>> = OnceLock::new();
static REGISTRY: Mutex<Vec<Arc<Vec<u64>>>> = Mutex::new(Vec::new());
static GIVEN: Mutex<Option<Box<[u64; 64]>>> = Mutex::new(None);
static REGEX: OnceLock<regex::Regex> = OnceLock::new();

thread_local! {
    static COUNTED: RefCell<Option<Rc<Vec<u64>>>> = const { RefCell::new(None) };
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let what = arguments.what;
    let made = Arc::new(vec![5_u64; 100]);
    let of_main = Arc::clone(&made);
    let status = vrt::launch(arguments.vrt, move || share(what, &of_main));
    assert_eq!(made[99], 5);
    status
}

/// Ranks 0 and 1 begin on PE 0.
fn share(what: What, of_main: &Arc<Vec<u64>>) {
    let Some(universe) = vrt::initialize() else { unreachable!("main is a rank's program") };
    let world = universe.world();
    let other = world.process_at_rank(1 - world.rank().min(1));
    match (what, world.rank()) {
        (What::ThreadVector, 0) => {
            let numbers = std::thread::spawn(|| (0..1000).collect::<Vec<u64>>()).join();
            let numbers = numbers.expect("the thread ends well");
            go(&world);
            assert_eq!(numbers.iter().sum::<u64>(), 499_500);
        }
        (What::Rayon, 1) => {
            // The pool is this rank's.
            let sum: u64 = (0..1000u64).into_par_iter().sum();
            other.send(&sum);
            other.receive::<u8>();
        }
        (What::Rayon, 0) => {
            other.receive::<u64>();
            let name = |i: u64| format!("string number {i} of a parallel map");
            let strings: Vec<String> = (0..1000).into_par_iter().map(name).collect();
            go(&world);
            assert!((0..).zip(&strings).all(|(i, string)| *string == name(i)));
            other.send(&0u8);
        }
        (What::TokioTask, 0) => {
            let task = tokio::spawn(async { vec![7u64; 1000] });
            let numbers = vrt::block_on(task).expect("the task ends well");
            go(&world);
            assert_eq!(numbers, [7; 1000]);
        }
        (What::StaticByThread, 0) => {
            let fill = || TEXT.set("filled by a thread".repeat(10)).expect("only once");
            std::thread::spawn(fill).join().expect("the thread ends well");
            let text: &'static str = TEXT.get().expect("just filled");
            go(&world);
            assert_eq!(black_box(text), "filled by a thread".repeat(10));
        }
        (What::StaticTable, 1) => {
            TABLE.set((0..1000).collect()).expect("only once");
            other.send(&0u8);
            other.receive::<u8>();
        }
        (What::StaticTable, 0) => {
            other.receive::<u8>();
            let entry: &'static u64 = &TABLE.get().expect("filled")[700];
            go(&world);
            assert_eq!(*black_box(entry), 700);
            other.send(&0u8);
        }
        (What::Registry, 1) => {
            REGISTRY.lock().expect("no panic").push(Arc::new((0..1000).collect()));
            other.send(&0u8);
            other.receive::<u8>();
        }
        (What::Registry, 0) => {
            other.receive::<u8>();
            // Somewhere in the heap.
            let held = elsewhere(|| {
                let entry = Arc::clone(&REGISTRY.lock().expect("no panic")[0]);
                Box::new((1, entry))
            });
            go(&world);
            assert_eq!(black_box(&held).1[700], 700);
            other.send(&0u8);
        }
        (What::ThreadLocalRc, rank @ (0 | 1)) => {
            let counted = elsewhere(|| {
                COUNTED.with(|counted| {
                    let mut counted = counted.borrow_mut();
                    Rc::clone(counted.get_or_insert_with(|| Rc::new(vec![3; 100])))
                })
            });
            if rank == 0 {
                go(&world);
                other.send(&0u8);
            } else {
                other.receive::<u8>();
            }
            for _ in 0..1_000_000 {
                drop(black_box(Rc::clone(black_box(&counted))));
            }
            let last = if rank == 0 {
                other.receive::<u64>().0
            } else {
                other.send(&1u64);
                1
            };
            assert_eq!(last, 1);
            assert!(Rc::strong_count(&counted) <= 3 && counted[99] == 3);
        }
        (What::ThreadLocalBorrow, 0) => NUMBER.with(|number| {
            number.set(5);
            go(&world);
            assert_eq!(black_box(number).get(), 5);
        }),
        (What::RandomNumbers, rank @ (0 | 1)) => {
            use rand::Rng;
            let (mut numbers, first) = elsewhere(|| {
                let mut numbers = rand::rng();
                let first: u64 = numbers.random();
                (numbers, first)
            });
            if rank == 0 {
                go(&world);
            }
            assert_ne!(first, black_box(&mut numbers).random::<u64>());
        }
        (What::GivenBox, 0) => {
            elsewhere(|| *GIVEN.lock().expect("no panic") = Some(Box::new([11; 64])));
            other.send(&0u8);
            other.receive::<u8>();
            go(&world);
            other.send(&0u8);
        }
        (What::GivenBox, 1) => {
            other.receive::<u8>();
            let mut taken = GIVEN.lock().expect("no panic").take().expect("given");
            taken[5] = 12;
            other.send(&0u8);
            other.receive::<u8>();
            assert!(taken[5] == 12 && taken[63] == 11);
        }
        (What::GivenToThread, 0) => {
            elsewhere(|| *GIVEN.lock().expect("no panic") = Some(Box::new([11; 64])));
            other.send(&0u8);
            other.receive::<u8>();
            go(&world);
            other.send(&0u8);
        }
        (What::GivenToThread, 1) => {
            other.receive::<u8>();
            let (has_taken, is_taken) = mpsc::channel();
            let (end, is_over) = mpsc::channel::<()>();
            let thread = std::thread::spawn(move || {
                let mut taken = GIVEN.lock().expect("no panic").take().expect("given");
                taken[5] = 12;
                has_taken.send(()).expect("somebody waits");
                is_over.recv().expect_err("nothing is sent");
                assert!(taken[5] == 12 && taken[63] == 11);
            });
            is_taken.recv().expect("it takes it");
            other.send(&0u8);
            other.receive::<u8>();
            drop(end);
            thread.join().expect("it has what it has taken");
        }
        (What::BesideThread, 0) => {
            let long = black_box(vec![7u8; 4 << 20]);
            other.receive::<u8>();
            go(&world);
            assert!(long.iter().all(|byte| *byte == 7));
            other.send(&0u8);
        }
        (What::BesideThread, 1) => {
            let (end, is_over) = mpsc::channel::<()>();
            let thread = std::thread::spawn(move || is_over.recv());
            other.send(&0u8);
            other.receive::<u8>();
            drop(end);
            assert!(thread.join().expect("it waits").is_err());
        }
        (What::TakenBox, 1) => {
            *GIVEN.lock().expect("no panic") = Some(Box::new([11; 64]));
            other.send(&0u8);
            other.receive::<u8>();
        }
        (What::TakenBox, 0) => {
            other.receive::<u8>();
            let taken = elsewhere(|| GIVEN.lock().expect("no panic").take().expect("given"));
            go(&world);
            assert_eq!(*black_box(taken), [11; 64]);
            other.send(&0u8);
        }
        (What::Leaked, 0) => {
            for n in 0..10 {
                std::mem::forget(black_box(vec![n; 1000]));
            }
            go(&world);
        }
        (What::ArcOfMain, 0) => {
            let held = elsewhere(|| Box::new(Arc::clone(of_main)));
            assert!(vrt::pinned().is_some_and(|why| why.contains("a clone of an Arc")));
            go(&world);
            assert_eq!(black_box(held)[99], 5);
        }
        (What::BesideArcOfMain, 1) => {
            let held = Arc::clone(of_main);
            other.send(&0u8);
            other.receive::<u8>();
            assert_eq!(black_box(held)[99], 5);
        }
        (What::BesideArcOfMain, 0) => {
            other.receive::<u8>();
            assert_eq!(vrt::pinned(), None);
            go(&world);
            other.send(&0u8);
        }
        (What::StaticRegex, 0 | 1) => {
            let is_number = |text| {
                let regex = || regex::Regex::new("^[0-9]+$").expect("a regular expression");
                REGEX.get_or_init(regex).is_match(text)
            };
            if world.rank() == 0 {
                assert!(elsewhere(|| is_number("123")));
                go(&world);
                other.send(&0u8);
            } else {
                other.receive::<u8>();
            }
            assert!(is_number("123") && !is_number("x"));
        }
        (What::StaticOfFirstPe, 0) => {
            elsewhere(|| TEXT.get_or_init(|| "filled by rank 0".repeat(10)).len());
            go(&world);
            go_to(&world, 2);
        }
        _ => {}
    }
    world.barrier();
    if world.rank() == 0 {
        println!("ok");
    }
}

/// Calls a function whose traces are not left in the frame of the caller, where they would be
/// taken for references.
#[inline(never)]
fn elsewhere<R>(f: impl FnOnce() -> R) -> R {
    black_box(f)()
}

/// Goes to PE 1, or says why not.
fn go(world: &SimpleCommunicator) {
    go_to(world, 1);
}

fn go_to(world: &SimpleCommunicator, pe: u32) {
    // What earlier calls have left, where the frames of the next ones will lie.
    elsewhere(|| {
        black_box(&mut [0u8; 16 << 10]);
    });
    go_from_here(world, pe);
}

#[inline(never)]
fn go_from_here(world: &SimpleCommunicator, pe: u32) {
    match world.migrate_to(pe, &mut ()) {
        Ok(()) => println!("moved"),
        Err(why) => println!("stays: {why}"),
    }
}
