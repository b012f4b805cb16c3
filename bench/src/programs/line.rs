//! A lower bound for a message between two PEs: a cache line that bounces between two cores.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::{Effort, Error};
use crate::measure::{Measured, repeat};

/// Two cache lines, since processors fetch them in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

impl Line {
    /// Waits, as tightly as possible, until the number arrives; gives up when `is_over` is set.
    fn wait_for(&self, number: u64, is_over: &AtomicBool) {
        while self.0.load(Ordering::Acquire) != number && !is_over.load(Ordering::Relaxed) {}
    }
}

/// Seconds for an 8-byte number from one core to another, in a separate cache line.
///
/// # Errors
///
/// If there are fewer than two cores, or threads cannot be bound to them.
pub fn line(effort: Effort) -> Result<Measured, Error> {
    let failed = |reason: String| Error::Threads(reason);
    let cores = sched_getaffinity(None).map_err(|error| failed(error.to_string()))?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| cores.is_set(*core));
    let (Some(first), Some(second)) = (cores.next(), cores.next()) else {
        return Err(failed("this takes two cores, and there is one".to_owned()));
    };
    let (ping, pong, is_over) = (Line::default(), Line::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        let answers = scope.spawn(|| {
            bind(second)?;
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                ping.wait_for(number, &is_over);
                pong.0.store(number, Ordering::Release);
            }
            Ok(())
        });
        let bound = bind(first);
        let mut number = 0;
        let seconds = bound.map(|()| {
            repeat(effort.repetitions, 2.0 * f64::from(effort.operations), || {
                for _ in 0..effort.operations {
                    number += 1;
                    ping.0.store(number, Ordering::Release);
                    while pong.0.load(Ordering::Acquire) != number && !answers.is_finished() {}
                }
            })
        });
        is_over.store(true, Ordering::Relaxed);
        let answered = answers.join().unwrap_or_else(|_| Err(failed("it panicked".to_owned())));
        answered.and(seconds).map(|seconds| Measured::from_repetitions("line", &seconds))
    })
}

/// Binds the calling thread to a core.
fn bind(core: usize) -> Result<(), Error> {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).map_err(|error| Error::Threads(error.to_string()))
}
