//! Threads that a rank starts and joins.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

use crate::rounds::{Rounds, pass};

/// A thread is joined after a barrier; what it returned is kept.
pub(crate) fn joined_later(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let squares = |from: u64| (from..from + 100).map(|i| i * i).collect::<Vec<u64>>();
    let mut kept: Vec<(u64, Vec<u64>, String)> = rounds.state();
    while let Some(round) = rounds.next_with(&mut kept) {
        let from = me * 1000 + round;
        let thread = thread::Builder::new().name(format!("worker of {me}"));
        let thread = thread.spawn(move || (squares(from), format!("from {from}"))).expect("starts");
        world.barrier();
        let (numbers, text) = thread.join().expect("it ends well");
        kept.push((from, numbers, text));
        if kept.len() > 4 {
            kept.remove(0);
        }
        world.barrier();
        for (from, numbers, text) in &kept {
            assert_eq!(numbers, &squares(*from));
            assert_eq!(text, &format!("from {from}"));
        }
        let (from, numbers, _) = &kept[kept.len() - 1];
        let (of_other, others) = pass(world, &(*from, numbers.clone()));
        assert_eq!(others, squares(of_other));
    }
}

/// Threads of a scope work on parts of a vector, and the rank meets the others meanwhile.
pub(crate) fn scoped(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let mut field: Vec<u64> = (0..600).map(|i| i + me).collect();
    while let Some(round) = rounds.next() {
        let largest = Mutex::new(0);
        thread::scope(|scope| {
            for part in field.chunks_mut(200) {
                let largest = &largest;
                scope.spawn(move || {
                    part.iter_mut().for_each(|x| *x += 1);
                    let mut largest = largest.lock().expect("no panic");
                    *largest = part.iter().copied().chain([*largest]).max().expect("not empty");
                });
            }
            world.barrier();
        });
        assert_eq!(largest.into_inner().expect("no panic"), 599 + me + round);
        crossbeam::scope(|scope| {
            let halves = field.split_at_mut(300);
            for half in [halves.0, halves.1] {
                scope.spawn(move |_| half.reverse());
            }
        })
        .expect("no panic");
        world.barrier();
        field[..300].reverse();
        field[300..].reverse();
        assert!((0..).zip(&field).all(|(i, x)| *x == i + me + round));
    }
}

/// A barrier of the standard library, between a rank and two threads of it.
pub(crate) fn barrier_of_threads(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let sum = Arc::new(Mutex::new(0u64));
    while let Some(round) = rounds.next() {
        let barrier = Arc::new(Barrier::new(3));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (sum, barrier) = (Arc::clone(&sum), Arc::clone(&barrier));
                thread::spawn(move || {
                    *sum.lock().expect("no panic") += round;
                    barrier.wait();
                    barrier.wait();
                    *sum.lock().expect("no panic") += round;
                })
            })
            .collect();
        world.barrier();
        barrier.wait();
        assert_eq!(*sum.lock().expect("no panic"), round * (round - 1) * 2 + 2 * round);
        barrier.wait();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends well"));
        world.barrier();
        // 4 times the numbers up to the round.
        assert_eq!(*sum.lock().expect("no panic"), 2 * round * (round + 1));
        pass(world, &round);
    }
}
