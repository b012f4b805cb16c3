//! Jobs and local runs one after the other, beside and inside each other in one process, by name.
//!
//! Each prints what came of it, a line each.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode};
use std::sync::{LazyLock, Mutex, PoisonError};

use clap::{Parser, ValueEnum};
use vrt::traits::*;

#[derive(Parser)]
struct Arguments {
    /// What to do
    what: What,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    Twice,
    Bigger,
    /// The second job has a larger stack
    OtherSizes,
    LocalLaunch,
    LocalLaunchBig,
    /// A static keeps memory of a local rank when a job is launched
    LocalKeptLaunch,
    LaunchLocal,
    LocalBigger,
    LocalBiggerBeside,
    LaunchInRank,
    LocalInRank,
    LocalInThreadOfRank,
    LocalNested,
    LocalThreads,
    LocalPanics,
    /// What ranks have given away stays when their runs panic
    LocalPanicsKept,
    /// A child that was started before is waited for afterwards
    ChildOfCaller,
}

fn main() -> ExitCode {
    use What::*;
    let what = Arguments::parse().what;
    match what {
        Twice => both(job(2, 4), job(2, 4)),
        Bigger => both(job(2, 4), job(2, 400)),
        OtherSizes => both(
            vrt::launch(config(2, 4).with_stack(64 << 10), program),
            vrt::launch(config(2, 4).with_stack(4 << 20), || {
                program();
                recurse(256 << 10);
            }),
        ),
        LocalLaunch => both(local(4), job(2, 4)),
        LocalLaunchBig => both(local(4), job(2, 5000)),
        LocalKeptLaunch => {
            vrt::run_local(4, |world| {
                if world.rank() == 2 {
                    keep(vec![7; 1000]);
                }
            });
            let launched = job(2, 4);
            assert!(kept().iter().all(|list| list.iter().all(|n| *n == 7)), "what was kept");
            launched
        }
        LaunchLocal => both(job(2, 4), both(local(4), local(100))),
        LocalBigger => both(local(4), both(local(5000), local(4))),
        LocalBiggerBeside => {
            vrt::run_local(2, |world| {
                if world.rank() == 0 {
                    std::thread::scope(|threads| {
                        let run = || catch_unwind(|| local(5000)).map_err(|_| ());
                        println!("beside: {:?}", threads.spawn(run).join());
                    });
                }
                world.barrier();
            });
            local(4)
        }
        LaunchInRank => job_with_rank_0(|| println!("inner {:?}", job(1, 1))),
        LocalInRank => job_with_rank_0(|| {
            println!("inner {:?}", catch_unwind(|| local(2)).map_err(|_| ()));
        }),
        LocalInThreadOfRank => job_with_rank_0(|| {
            let run = || catch_unwind(|| local(2)).map_err(|_| ());
            println!("inner {:?}", std::thread::spawn(run).join());
        }),
        LocalNested => {
            vrt::run_local(2, |world| {
                println!("inner {:?}", catch_unwind(|| local(2)).map_err(|_| ()));
                world.barrier();
            });
            local(2)
        }
        LocalThreads => {
            let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(exchange_often)).collect();
            let panics = threads.into_iter().map(|thread| thread.join()).filter(Result::is_err);
            println!("{} threads panicked", panics.count());
            local(4)
        }
        LocalPanics => panicking_runs(),
        LocalPanicsKept => panicking_runs_that_give(),
        ChildOfCaller => child_of_caller(),
    }
}

fn config(pes: u32, ranks: u32) -> vrt::Config {
    vrt::Config::default().with_pes(pes).with_ranks(ranks)
}

/// A job's program, in which each rank has a heap.
fn program() {
    let world = vrt::initialize().expect("in a rank").world();
    // Much of few ranks, and not gigabytes of thousands.
    let values = vec![world.rank() as u64; 400_000 / world.size().max(4) as usize];
    world.barrier();
    let mut sum = 0u64;
    world.all_reduce_into(&values[5], &mut sum, vrt::collective::SystemOperation::sum());
    if world.rank() == 0 {
        println!("{} ranks sum {sum}", world.size());
    }
}

fn job(pes: u32, ranks: u32) -> ExitCode {
    let code = vrt::launch(config(pes, ranks), program);
    println!("job of {ranks}: {}", well(code));
    code
}

fn well(code: ExitCode) -> &'static str {
    if code == ExitCode::SUCCESS { "well" } else { "not well" }
}

fn both(first: ExitCode, second: ExitCode) -> ExitCode {
    if first == ExitCode::SUCCESS { second } else { first }
}

fn local(ranks: u32) -> ExitCode {
    let sums = Mutex::new(0);
    vrt::run_local(ranks, |world| {
        world.barrier();
        *sums.lock().unwrap_or_else(PoisonError::into_inner) += world.rank();
    });
    println!("local run of {ranks} sums {}", sums.into_inner().unwrap_or_default());
    ExitCode::SUCCESS
}

fn job_with_rank_0(what: fn()) -> ExitCode {
    vrt::launch(config(2, 4), move || {
        let world = vrt::initialize().expect("in a rank").world();
        if world.rank() == 0 {
            what();
        }
        world.barrier();
        program();
    })
}

#[inline(never)]
fn recurse(bytes: usize) -> usize {
    let frame = std::hint::black_box([bytes; 128]);
    if bytes < 1024 { frame[0] } else { recurse(bytes - 1024) + std::hint::black_box(frame)[1] }
}

fn exchange_often() {
    for _ in 0..50 {
        vrt::run_local(8, |world| {
            let (me, size) = (world.rank(), world.size());
            world.process_at_rank((me + 1) % size).buffered_send(&vec![me as u8; 10_000][..]);
            let (got, _) = world.process_at_rank((me + size - 1) % size).receive_vec::<u8>();
            assert_eq!(got, vec![((me + size - 1) % size) as u8; 10_000]);
        });
    }
}

static KEPT: LazyLock<Mutex<Vec<Vec<u64>>>> = LazyLock::new(Mutex::default);

fn kept() -> std::sync::MutexGuard<'static, Vec<Vec<u64>>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep(list: Vec<u64>) {
    kept().push(list);
}

/// A local run whose rank 1 panics while others wait, each with a heap and a stack in use.
fn panicking_run(given: &Mutex<Vec<Vec<u64>>>, n: u64) -> bool {
    let run = || {
        vrt::run_local(3, |world| {
            let mine = vec![n; 3000];
            if n.is_multiple_of(10) && world.rank() == 2 {
                given.lock().unwrap_or_else(PoisonError::into_inner).push(mine.clone());
            }
            world.barrier();
            if world.rank() == 1 {
                panic!("run {n}");
            }
            world.barrier();
            drop(mine);
        });
    };
    catch_unwind(AssertUnwindSafe(run)).is_err()
}

fn panicking_runs() -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let given = Mutex::new(Vec::new());
    let mut at_first = 0;
    for n in 0..1300 {
        assert!(panicking_run(&given, 10 * n + 1));
        if n == 700 {
            at_first = resident_kib();
        }
    }
    println!("grown by {} KiB", resident_kib().saturating_sub(at_first));
    local(3)
}

fn panicking_runs_that_give() -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let given = Mutex::new(Vec::new());
    for n in 0..1300 {
        assert!(panicking_run(&given, n));
        if n == 100 {
            let _ = catch_unwind(|| {
                vrt::run_local(3, |world| {
                    if world.rank() == 2 {
                        keep(vec![100; 3000]);
                    }
                    world.barrier();
                    panic!("a static has memory of this run");
                });
            });
        }
    }
    let given = given.into_inner().unwrap_or_else(PoisonError::into_inner);
    let right = |(n, list): (usize, &Vec<u64>)| {
        list.len() == 3000 && list.iter().all(|x| *x == 10 * n as u64)
    };
    println!("{} lists, right: {}", given.len(), given.iter().enumerate().all(right));
    println!(
        "kept, right: {}",
        kept().iter().all(|list| list.len() == 3000 && list.iter().all(|x| *x == 100))
    );
    local(3)
}

/// What this process has in memory.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn child_of_caller() -> ExitCode {
    let mut child = Command::new("sh").args(["-c", "exit 5"]).spawn().expect("sh runs");
    let code = job(2, 4);
    println!("the child's status: {:?}", child.wait().map(|status| status.code()));
    code
}
