//! Rank 0 takes each kind of thing that cannot move with it, one after the other. While it holds it,
//! it is pinned with the right reason and cannot go to another PE; when it, its neighbour or a thread
//! has let go, it goes.

mod things;

use std::process::ExitCode;

use clap::Parser;
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

use things::{LOCK, Release, THINGS, Thing};

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// Only things whose names contain this
    #[arg(default_value = "")]
    only: String,
    /// Rank 0 ends with everything open
    #[arg(long)]
    leave: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (only, leave) = (arguments.only, arguments.leave);
    vrt::launch(arguments.vrt, move || run(&only, leave))
}

fn run(only: &str, leave: bool) {
    let world = vrt::initialize().expect("in a rank").world();
    let things: Vec<Thing> =
        THINGS.iter().copied().filter(|(name, ..)| name.contains(only)).collect();
    match world.rank() {
        0 if leave => {
            // A lock can be taken once.
            let things = things.iter().filter(|(_, reason, _)| *reason != LOCK);
            things.for_each(|(_, _, take)| std::mem::forget(take()));
        }
        0 => {
            things.iter().for_each(|thing| try_with(&world, thing));
            world.process_at_rank(1).send(&0usize);
        }
        1 if !leave => release_for_others(&world),
        _ => {}
    }
    world.barrier();
    if world.rank() == 0 {
        println!("{} things", things.len());
    }
}

/// Ways to let go.
const BY: [&str; 3] = ["itself", "a thread", "its neighbour"];

/// What only the rank can end, or only the thread that it runs on.
const ONLY_ITSELF: [&str; 3] = ["thread", "list", "mutex that is its own"];
const ONLY_ITS_THREAD: [&str; 2] = ["pthread_rwlock_wrlock", "flockfile"];

fn try_with(world: &SimpleCommunicator, (name, reason, take): &Thing) {
    for by in BY {
        if by != "itself" && ONLY_ITSELF.contains(name)
            || by == "a thread" && ONLY_ITS_THREAD.contains(name)
        {
            continue;
        }
        let before = vrt::pinned();
        assert_eq!(before, None, "{name}: pinned before it was taken");
        let release = take();
        let pinned = vrt::pinned();
        assert!(pinned.is_some_and(|why| why.contains(reason)), "{name}: pinned: {pinned:?}");
        let there = 1 - vrt::statistics().pe;
        let refused = world.migrate_to(there, &mut ()).expect_err(name).to_string();
        assert!(refused.contains(reason), "{name}: {refused}");
        match by {
            "itself" => release(),
            "a thread" => std::thread::spawn(release).join().expect("it lets go"),
            _ => {
                // The neighbour is in this process.
                world.process_at_rank(1).send(&(Box::into_raw(Box::new(release)) as usize));
                world.process_at_rank(1).receive::<u8>();
            }
        }
        wait_for_threads();
        let after = vrt::pinned();
        assert_eq!(after, None, "{name}: still pinned when {by} had let go");
        for pe in [there, 1 - there] {
            world.migrate_to(pe, &mut ()).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(vrt::statistics().pe, pe);
        }
    }
    println!("{name}: ok");
}

/// A thread has ended when its entry has gone, which is after `join` has returned.
fn wait_for_threads() {
    for _ in 0..1000 {
        if !vrt::pinned().is_some_and(|why| why.contains("thread that it started")) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn release_for_others(world: &SimpleCommunicator) {
    loop {
        let (at, _) = world.process_at_rank(0).receive::<usize>();
        if at == 0 {
            return;
        }
        // SAFETY: rank 0, which waits in this process, has made it for us.
        let release = unsafe { Box::from_raw(at as *mut Release) };
        release();
        world.process_at_rank(0).send(&1u8);
    }
}
