//! Memory that some threads allocate and others free: compares the heap for the threads of a PE
//! with that of the C library.

use std::thread;

use crossbeam_channel::bounded;
use rayon::prelude::*;

use super::{Effort, Error, expect_value};
use crate::measure::{Measured, repeat};

/// What threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Work {
    /// A parallel iterator collects strings, which are dropped by the thread that requested them
    Collect,
    /// A thread sends strings through a channel to another, which drops them
    Channel,
    /// Tasks in a tokio pool create strings and pass them to their neighbours
    Tasks,
}

const THREADS: usize = 2;
/// Strings per batch that a channel or task passes on.
const BATCH: usize = 64;

/// Seconds for creating a string and dropping it elsewhere; `effort.operations` strings per
/// repetition.
///
/// # Errors
///
/// If a string is not the one that was created, or threads cannot be created.
pub fn threads(work: Work, effort: Effort) -> Result<Measured, Error> {
    let count = effort.operations as usize;
    let mut is_right = true;
    let seconds = match work {
        Work::Collect => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build();
            let pool = pool.map_err(|error| Error::Threads(error.to_string()))?;
            repeat(effort.repetitions, count as f64, || {
                let strings: Vec<String> =
                    pool.install(|| (0..count).into_par_iter().map(string).collect());
                is_right &= strings.len() == count && strings[count - 1] == string(count - 1);
            })
        }
        Work::Channel => {
            repeat(effort.repetitions, count as f64, || is_right &= through_channel(count))
        }
        Work::Tasks => {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(THREADS)
                .build()
                .map_err(|error| Error::Threads(error.to_string()))?;
            repeat(effort.repetitions, count as f64, || {
                is_right &= runtime.block_on(through_tasks(count));
            })
        }
    };
    expect_value(is_right, "threads", 0)?;
    Ok(Measured::from_repetitions("threads", &seconds))
}

fn string(n: usize) -> String {
    format!("the string of number {n}")
}

/// A number of strings, beginning with a given one.
fn batch(from: usize, count: usize) -> Vec<String> {
    (from..count.min(from + BATCH)).map(string).collect()
}

fn through_channel(count: usize) -> bool {
    let (sender, receiver) = bounded(16);
    let maker = thread::spawn(move || {
        (0..count).step_by(BATCH).all(|from| sender.send(batch(from, count)).is_ok())
    });
    let taker = thread::spawn(move || receiver.iter().map(|batch: Vec<String>| batch.len()).sum());
    maker.join().is_ok_and(|sent| sent) && taker.join().is_ok_and(|came: usize| came == count)
}

async fn through_tasks(count: usize) -> bool {
    let (sender, mut receiver) = tokio::sync::mpsc::channel(16);
    let maker = tokio::spawn(async move {
        for from in (0..count).step_by(BATCH) {
            if sender.send(batch(from, count)).await.is_err() {
                return;
            }
        }
    });
    let taker = tokio::spawn(async move {
        let mut came = 0;
        while let Some(batch) = receiver.recv().await {
            came += batch.len();
        }
        came
    });
    maker.await.is_ok() && taker.await.is_ok_and(|came| came == count)
}
