//! A job in which rank 5 (or everybody) does one thing wrong, chosen by name.

use std::hint::black_box;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use vrt::topology::{Color, SimpleCommunicator};
use vrt::traits::*;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// What to do wrong
    what: What,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// Nothing: all is well
    Nothing,
    Panic,
    /// Panic in a destructor that a panic has called
    PanicTwice,
    /// Panic beside a task whose destructor waits for a lock that another rank of the PE holds
    PanicBesideTask,
    /// Exit while there is such a task on the other PE
    ExitBesideTask,
    Exit3,
    Exit0,
    /// Every rank leaves while a buffered message of its own is on its way
    LeaveEarly,
    /// The first half of the ranks end while a long message lies in a frame of theirs
    ExitInSend,
    /// Return while one lies in memory that they have leaked
    ReturnInSend,
    Recursion,
    BigFrame,
    /// Read on where the stack of another rank ends
    OtherStack,
    HeapFull,
    /// Rank 5 gets more messages than its PE has memory for: from a rank of its PE, or of the other one
    PoolFullHere,
    PoolFullThere,
    /// It sends more messages than its PE has memory for, without waiting
    PoolFullByCopies,
    Fork,
    PreExec,
    Command,
    Deadlock,
    BlockInAsync,
    BlockInDrop,
    Truncate,
    BadRank,
    BadTag,
    NullPointer,
    /// Print the PEs' process numbers and run until killed
    RunForever,
    /// The same, waiting for a timer that never comes
    WaitForever,
    Leak,
    /// Keep a pointer into the PE's heap across a barrier
    Hoard,
    CatchPanic,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let what = arguments.what;
    if let What::BlockInAsync = what {
        return vrt::launch_async(arguments.vrt, || async {
            let world = vrt::initialize().expect("in a rank").world();
            world.barrier();
        });
    }
    vrt::launch(arguments.vrt, move || misbehave(what))
}

static LOCK: Mutex<()> = Mutex::new(());

/// Takes [`LOCK`] when it is dropped.
struct Waits;

impl Drop for Waits {
    fn drop(&mut self) {
        drop(LOCK.lock());
    }
}

/// Waits with the lock, and tells a rank that it has it.
fn hold_lock(world: &SimpleCommunicator, tell: i32) {
    let _lock = LOCK.lock().expect("no panic");
    world.process_at_rank(tell).send(&0u8);
    world.barrier();
}

/// A task whose destructor waits for the lock that a rank has.
fn begin_task_that_waits(world: &SimpleCommunicator, holder: i32) {
    world.process_at_rank(holder).receive::<u8>();
    let waits = Waits;
    drop(tokio::spawn(async move {
        std::future::pending::<()>().await;
        drop(waits);
    }));
}

fn misbehave(what: What) {
    let world = vrt::initialize().expect("in a rank").world();
    let me = world.rank();
    let five = world.process_at_rank(5 % world.size());
    world.barrier();
    match what {
        What::RunForever | What::WaitForever => forever(&world, matches!(what, What::WaitForever)),
        What::Exit0 => {
            // Half of the ranks end this way, the others go on.
            let Some(half) = world.split_by_color(Color::with_value(me % 2)) else { return };
            if me % 2 == 0 {
                std::process::exit(0);
            }
            vrt::sleep(Duration::from_millis(100));
            half.barrier();
            if half.rank() == 0 {
                println!("{} ranks went on", half.size());
            }
            return;
        }
        What::PanicBesideTask if me == 4 => hold_lock(&world, 5),
        What::ExitBesideTask if me == 0 => hold_lock(&world, 1),
        What::ExitBesideTask if me == 1 => {
            begin_task_that_waits(&world, 0);
            five.send(&0u8);
        }
        What::LeaveEarly | What::ExitInSend | What::ReturnInSend => {
            return leave_early(&world, what);
        }
        What::PoolFullHere if me == 4 => send_for_ever(&world, 5, false),
        What::PoolFullThere if me == 0 => send_for_ever(&world, 5, false),
        What::PoolFullByCopies if me == 5 => send_for_ever(&world, 0, true),
        What::OtherStack if me == 4 => {
            let local = 0u8;
            five.send(&(&raw const local as usize));
        }
        What::Deadlock => {
            let (value, _) =
                world.process_at_rank((me + 1) % world.size()).receive_with_tag::<u8>(7);
            black_box(value);
        }
        What::Leak if me == 5 => std::mem::forget(black_box(vec![1u8; 1000])),
        What::CatchPanic => {
            let caught = std::panic::catch_unwind(|| panic!("caught on rank {me}"));
            assert!(caught.is_err());
        }
        What::Hoard if me == 5 => {
            // From the heap that the runtime itself uses; a few of them, as the first may fill gaps
            // that were left in it when the PE began.
            // SAFETY: ordinary allocations.
            let theirs = std::array::from_fn(|_| unsafe { __libc_malloc(5000) });
            let kept: [_; 16] = black_box(theirs);
            world.barrier();
            black_box(kept);
            return;
        }
        _ if five.is_self() => alone(what, &world),
        _ => {}
    }
    world.barrier();
    if me == 0 {
        println!("all is well");
    }
}

/// The first half of the ranks send long messages to the others and end; those ask for them only later.
fn leave_early(world: &SimpleCommunicator, what: What) {
    let (me, half) = (world.rank(), world.size() / 2);
    if me < half {
        let bytes = [me as u8; 1 << 20];
        let to = world.process_at_rank(me + half);
        if let What::ReturnInSend = what {
            let leaked: &'static [u8] = bytes.to_vec().leak();
            std::mem::forget(to.immediate_send(vrt::request::StaticScope, leaked));
            return;
        }
        vrt::request::scope(|scope| match what {
            What::ExitInSend => {
                let _send = to.immediate_send(scope, &bytes[..]);
                std::process::exit(0)
            }
            _ => to.immediate_buffered_send(scope, &bytes[..]).wait_without_status(),
        });
        return;
    }
    let later = std::time::Instant::now() + Duration::from_millis(50);
    while std::time::Instant::now() < later {
        vrt::yield_now();
    }
    let (got, _) = world.process_at_rank(me - half).receive_vec::<u8>();
    assert!(got.len() == 1 << 20 && got.iter().all(|byte| i32::from(*byte) == me - half));
    println!("rank {me} has its message");
}

/// What only rank 5 does.
fn alone(what: What, world: &SimpleCommunicator) {
    match what {
        What::Panic => panic!("this is what went wrong"),
        What::PanicBesideTask => {
            begin_task_that_waits(world, 4);
            panic!("there is a task");
        }
        What::ExitBesideTask => {
            world.process_at_rank(1).receive::<u8>();
            std::process::exit(3);
        }
        What::PanicTwice => {
            struct Panics;
            impl Drop for Panics {
                fn drop(&mut self) {
                    panic!("the second panic");
                }
            }
            let _panics = Panics;
            panic!("the first one");
        }
        What::Exit3 => std::process::exit(3),
        What::Recursion => {
            black_box(recurse(1));
        }
        What::BigFrame => {
            // Close to the end of the stack, one frame of 200 KB.
            black_box(descend_then_big_frame(1));
        }
        What::OtherStack => {
            let (mut address, _) = world.process_at_rank(4).receive::<usize>();
            loop {
                address -= 4096;
                // SAFETY: none, below the end of the stack.
                black_box(unsafe { (address as *const u8).read_volatile() });
            }
        }
        What::HeapFull => {
            let mut all: Vec<Vec<u8>> = Vec::new();
            loop {
                all.push(vec![1; 1 << 20]);
            }
        }
        What::Fork => {
            // SAFETY: refused by the runtime before anything happens.
            unsafe { fork() };
        }
        What::PreExec => {
            use std::os::unix::process::CommandExt;
            let mut command = std::process::Command::new("true");
            // SAFETY: the closure does nothing.
            unsafe { command.pre_exec(|| Ok(())) };
            let _ = command.status();
        }
        What::Command => {
            let status = std::process::Command::new("true").status().expect("`true` runs");
            assert!(status.success());
        }
        What::BlockInDrop => {
            struct Blocks<'a>(&'a SimpleCommunicator);
            impl Drop for Blocks<'_> {
                fn drop(&mut self) {
                    self.0.barrier();
                }
            }
            let _blocks = Blocks(world);
            panic!("the first message");
        }
        What::Truncate => {
            let mut small = [0u8; 4];
            world.this_process().send(&[1u8; 16][..]);
            world.this_process().receive_into(&mut small);
        }
        What::BadRank => world.process_at_rank(world.size()).send(&1u8),
        What::BadTag => world.this_process().send_with_tag(&1u8, -3),
        What::NullPointer => {
            // SAFETY: none; the job has to survive this, as a job.
            unsafe { black_box(std::ptr::null::<u8>()).read_volatile() };
        }
        _ => {}
    }
}

unsafe extern "C" {
    fn fork() -> i32;
    fn __libc_malloc(size: usize) -> *mut std::ffi::c_void;
}

#[inline(never)]
#[expect(unconditional_recursion, reason = "the stack has to overflow")]
fn recurse(n: u64) -> u64 {
    let frame = black_box([n; 64]);
    recurse(n + 1) + frame[(n % 64) as usize]
}

#[inline(never)]
fn descend_then_big_frame(n: u64) -> u64 {
    let frame = black_box([n; 64]);
    let deeper = if n < 13_000 { descend_then_big_frame(n + 1) } else { big_frame(n) };
    deeper + frame[(n % 64) as usize]
}

#[inline(never)]
#[expect(unconditional_recursion, reason = "the stack has to overflow")]
fn big_frame(n: u64) -> u64 {
    let mut frame = [0u64; 25_000];
    frame[black_box(0)] = n;
    black_box(&mut frame)[black_box(1)] + big_frame(n + 1)
}

/// Sends messages that nobody receives.
fn send_for_ever(world: &SimpleCommunicator, to: i32, as_copies: bool) {
    let to = world.process_at_rank(to);
    // Longer than what fits into a packet, and, of those that are to be copied, than is sent at once.
    let message = vec![7u8; if as_copies { 1 << 20 } else { 8_000 }];
    loop {
        match as_copies {
            true => to.buffered_send(&message),
            false => to.send(&message),
        }
    }
}

fn forever(world: &SimpleCommunicator, wait: bool) {
    println!("rank {} in process {}", world.rank(), std::process::id());
    let _ = std::io::stdout().flush();
    loop {
        if wait {
            vrt::sleep(Duration::from_secs(3600));
        }
        world.barrier();
    }
}
