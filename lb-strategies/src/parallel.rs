//! Threads, if there is enough work for them to pay.
//!
//! Their number changes only the time: work that is cut into parts is cut the same way, or the parts are independent of
//! each other. The caller works, too, so that a system that cannot create threads only makes it slower.

use std::{
    num::NonZero,
    panic::resume_unwind,
    sync::{Mutex, PoisonError},
    thread::{Builder, available_parallelism, scope},
};

/// The least number of objects per thread: starting a thread takes as long as sorting a few
/// hundred.
const LEAST: usize = 1 << 14;

/// The number of threads for this many objects.
pub(crate) fn threads(objects: usize) -> usize {
    #[cfg(test)]
    if let Some(threads) = tests::THREADS.get() {
        return threads;
    }
    match objects / LEAST {
        0 | 1 => 1,
        most => most.min(available_parallelism().map_or(1, NonZero::get)),
    }
}

/// The results of `work` on each of `parts`, in order.
pub(crate) fn each<P: Send, R: Send>(
    threads: usize,
    parts: impl IntoIterator<Item = P, IntoIter: Send>,
    work: impl Fn(P) -> R + Sync,
) -> Vec<R> {
    let parts = parts.into_iter();
    let threads = parts.size_hint().1.map_or(threads, |most| most.min(threads));
    if threads < 2 {
        return parts.map(work).collect();
    }
    let queue = Mutex::new(parts.enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        let mut done = vec![];
        while let Some((number, part)) = next() {
            done.push((number, work(part)));
        }
        done
    };
    let mut done = scope(|scope| {
        let others: Vec<_> =
            (1..threads).filter_map(|_| Builder::new().spawn_scoped(scope, run).ok()).collect();
        let mut done = run();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|it| it.0);
    done.into_iter().map(|it| it.1).collect()
}

/// Sorts with `threads` threads.
pub(crate) fn sort<T: Ord + Send>(threads: usize, keys: &mut [T]) {
    let mut parts = vec![keys];
    // Each is divided at its median, so that they need not be merged afterwards.
    while parts.len() < threads {
        let halves = each(threads, parts, |part| match part.len() {
            0 => (part, [].as_mut_slice()),
            length => {
                part.select_nth_unstable(length / 2);
                part.split_at_mut(length / 2)
            }
        });
        parts = halves.into_iter().flat_map(|(front, back)| [front, back]).collect();
    }
    each(threads, parts, <[T]>::sort_unstable);
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{Config, cases, strategies};

    thread_local! {
        /// Overrides the result of `threads`.
        pub(super) static THREADS: Cell<Option<usize>> = const { Cell::new(None) };
    }

    #[test]
    fn assignments_do_not_depend_on_the_number_of_threads() {
        let size = cases::Size { objects: 3000, pes: 300, seed: 2 };
        for case in ["exponential", "clustered", "unequal-pes"] {
            let model = cases::find(case).expect("a case").model(size).expect("sound");
            for strategy in strategies() {
                let assign = |threads| {
                    THREADS.set(Some(threads));
                    strategy.assign(&model, &Config::new(*strategy), 5)
                };
                let alone = assign(1);
                assert_eq!(alone, assign(2), "{} on {case}", strategy.name());
                assert_eq!(alone, assign(5), "{} on {case}", strategy.name());
            }
        }
        THREADS.set(None);
    }

    #[test]
    fn parts_keep_their_order_whatever_the_number_of_threads() {
        for threads in 1..6 {
            let squares = each(threads, 0..100_u64, |it| it * it);
            assert!(squares.into_iter().eq((0..100).map(|it| it * it)));
        }
    }

    #[test]
    fn sorts_with_any_number_of_threads() {
        for length in [0, 1, 2, 7, 1000] {
            let keys: Vec<u64> = (0..length).map(|it| it * 7919 % 257).collect();
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            for threads in 1..10 {
                let mut keys = keys.clone();
                sort(threads, &mut keys);
                assert_eq!(keys, sorted);
            }
        }
    }

    #[test]
    #[should_panic(expected = "part 3")]
    fn a_panic_goes_on() {
        each(2, 0..8, |it| assert!(it != 3, "part {it}"));
    }
}
