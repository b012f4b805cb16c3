//! rayon, and the deques that it is made of.

use std::collections::BTreeSet;

use crossbeam::deque::{Injector, Steal, Worker};
use rayon::prelude::*;
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

use crate::rounds::{Rounds, pass};

/// Strings that the threads of the PE's pool have made, kept over messages.
pub(crate) fn collect(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let name = |of: u64, round: u64, i: u64| format!("string {i} of rank {of} in round {round}");
    let mut before: Option<(u64, Vec<String>)> = rounds.state();
    while let Some(round) = rounds.next_with(&mut before) {
        let names: Vec<String> = (0..200u64).into_par_iter().map(|i| name(me, round, i)).collect();
        let lengths: usize = names.par_iter().map(String::len).sum();
        world.barrier();
        if let Some((round, names)) = &before {
            assert!((0..).zip(names).all(|(i, text)| *text == name(me, *round, i)));
        }
        assert_eq!(names.iter().map(String::len).sum::<usize>(), lengths);
        let (of, others) = pass(world, &(me, names.clone()));
        assert!((0..).zip(&others).all(|(i, text)| *text == name(of, round, i)));
        before = Some((round, names));
    }
}

/// Sorts, in parallel, what ranks give each other.
pub(crate) fn sort(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let mut words: Vec<String> = (0..300u64).map(|i| format!("{:x}", i * 7919 % 1009)).collect();
    let mut expected = words.clone();
    expected.sort();
    let before: Vec<String> = rounds.state();
    if !before.is_empty() {
        words = before;
    }
    while let Some(round) = rounds.next_with(&mut words) {
        // Out of order again, in another way each time.
        let len = words.len();
        words.rotate_left((round as usize * 31 + me as usize) % len);
        let (even, odd): (Vec<_>, Vec<_>) =
            words.into_iter().enumerate().partition(|(i, _)| i % 2 == 0);
        words = even.into_iter().chain(odd).map(|(_, word)| word).collect();
        words = pass(world, &words);
        words.par_sort();
        world.barrier();
        assert_eq!(words, expected);
        let mut by_length = words.clone();
        by_length.par_sort_by_key(|word| (word.len(), word.clone()));
        world.barrier();
        assert!(by_length.is_sorted_by_key(|word| (word.len(), word)));
        let different: BTreeSet<&String> = words.par_iter().collect();
        assert_eq!(different.len(), expected.iter().collect::<BTreeSet<_>>().len());
    }
}

/// A pool of the rank's own, which it has over some rounds and then ends.
pub(crate) fn own_pool(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let mut pool = None;
    let mut results = Vec::new();
    while let Some(round) = rounds.next() {
        if round % 6 == me % 6 {
            pool = Some(rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads"));
        }
        if let Some(pool) = &pool {
            let (sum, text) = pool.install(|| {
                rayon::join(
                    || (0..1000u64).into_par_iter().sum::<u64>(),
                    || format!("{me}: {round}"),
                )
            });
            results.push((round, sum, text));
        }
        let got = pass(world, &(round + me));
        assert_eq!(got, round + (me + world.size() as u64 - 1) % world.size() as u64);
        if round % 6 == (me + 2) % 6 {
            pool = None;
        }
        for (round, sum, text) in &results {
            assert_eq!((*sum, text), (499_500, &format!("{me}: {round}")));
        }
        results.truncate(10);
    }
}

/// Deques that threads steal from, kept over messages.
pub(crate) fn deques(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let (worker, injector) = (Worker::new_lifo(), Injector::new());
    let (mut inside, mut total) = (0, 0);
    while let Some(round) = rounds.next() {
        for i in 0..150 {
            worker.push(Box::new(i + round));
            injector.push((i, format!("{i} of {me}")));
            inside += i + round;
        }
        world.barrier();
        let stealer = worker.stealer();
        let stolen: u64 = std::thread::scope(|scope| {
            let thief = || {
                let stolen = (0..50).filter_map(|_| match stealer.steal() {
                    Steal::Success(number) => Some(*number),
                    Steal::Empty | Steal::Retry => None,
                });
                stolen.sum::<u64>()
            };
            scope.spawn(thief).join().expect("it ends well")
        });
        total += stolen;
        world.barrier();
        total += std::iter::from_fn(|| worker.pop()).take(60).map(|number| *number).sum::<u64>();
        let mut injected = 0;
        while let Steal::Success((i, text)) = injector.steal() {
            assert_eq!(text, format!("{i} of {me}"));
            injected += i;
        }
        assert_eq!(injected, 149 * 75);
        pass(world, &round);
    }
    total += std::iter::from_fn(|| worker.pop()).map(|number| *number).sum::<u64>();
    assert_eq!(total, inside);
}
