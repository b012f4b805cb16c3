//! Threads of the operating system that yield to each other on one core.

use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::stack::{Used, at_depth};
use super::{Error, Run, Settings};

/// Stack that a thread needs in addition to the depth.
const MARGIN: usize = 256 << 10;

/// Measures this many threads. The calling thread starts them and binds them and itself to one core, the first that it
/// may use; it stays bound.
///
/// # Errors
///
/// [`Error::Threads`], and [`Error::Ranks`] for fewer than two.
pub fn switch_threads(threads: usize, settings: &Settings) -> Result<Run, Error> {
    if threads < 2 {
        return Err(Error::Ranks { ranks: threads, pes: 1 });
    }
    measure(threads, settings).map_err(|why| Error::Threads { threads, why })
}

/// Binds this thread, and those that it starts, to the first core that it may use.
///
/// # Errors
///
/// The error of the operating system.
pub fn keep_to_first_core() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let mut first = CpuSet::new();
    if let Some(core) = (0..CpuSet::MAX_CPU).find(|core| allowed.is_set(*core)) {
        first.set(core);
    }
    Ok(sched_setaffinity(None, &first)?)
}

/// The results of a thread.
struct Part {
    used: Used,
    ends: [Instant; 2],
}

fn measure(threads: usize, settings: &Settings) -> io::Result<Run> {
    keep_to_first_core()?;
    let batons: Vec<Baton> = (0..threads).map(|_| Baton::default()).collect();
    let parts: Vec<Part> = std::thread::scope(|scope| {
        let mut handles = Vec::with_capacity(threads);
        for number in 0..threads {
            let (own, next) = (&batons[number], &batons[(number + 1) % threads]);
            let builder = Builder::new().stack_size(settings.depth + MARGIN);
            let run = move || run(number, own, next, settings);
            match builder.spawn_scoped(scope, run) {
                Ok(handle) => handles.push(handle),
                Err(why) => {
                    // Those that wait already must end.
                    batons.iter().for_each(|baton| baton.give(Turn::None));
                    return Err(why);
                }
            }
        }
        batons[0].give(Turn::Yours);
        let join = |handle: std::thread::ScopedJoinHandle<'_, Part>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        Ok(handles.into_iter().map(join).collect())
    })?;
    let first = parts.iter().map(|part| part.ends[0]).min();
    let last = parts.iter().map(|part| part.ends[1]).max();
    let seconds = first.zip(last).map_or(0.0, |(first, last)| (last - first).as_secs_f64());
    Ok(Run {
        ranks: threads,
        seconds,
        switches: threads * settings.switches,
        depth: parts.iter().map(|part| part.used.depth).min().unwrap_or(0),
        spoiled: parts.iter().map(|part| part.used.spoiled).sum(),
        // A thread goes on when the one before it has handed over, and never before.
        alone: 0,
    })
}

/// The turns of a thread.
fn run(number: usize, own: &Baton, next: &Baton, settings: &Settings) -> Part {
    let mut ends = [Instant::now(); 2];
    let used = at_depth(settings.depth, number as u64, &mut || {
        for turn in 0..settings.switches {
            if own.take() == Turn::None {
                break;
            }
            if turn == 0 {
                ends[0] = Instant::now();
            }
            next.give(Turn::Yours);
        }
        ends[1] = Instant::now();
    });
    Part { used, ends }
}

/// What a thread waits for.
#[derive(Default)]
struct Baton {
    turn: Mutex<Option<Turn>>,
    is_given: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It is this thread's.
    Yours,
    /// There will be no more turns.
    None,
}

impl Baton {
    fn give(&self, turn: Turn) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = Some(turn);
        self.is_given.notify_one();
    }

    fn take(&self) -> Turn {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(given) = turn.take() {
                return given;
            }
            turn = self.is_given.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
