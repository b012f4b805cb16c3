//! Channels and queues.

use std::sync::{Arc, LazyLock, Mutex, mpsc};
use std::thread;

use crossbeam::channel;
use crossbeam::queue::{ArrayQueue, SegQueue};
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

use crate::rounds::{Rounds, pass, sum};

/// A channel of crossbeam to threads and back; its ends are kept over messages, with what is in it.
pub(crate) fn of_threads(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let (sender, receiver) = channel::unbounded::<String>();
    while let Some(round) = rounds.next() {
        let (give, take) = channel::bounded::<u64>(4);
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let (take, sender) = (take.clone(), sender.clone());
                thread::spawn(move || {
                    take.iter().for_each(|n| sender.send(format!("{n} done")).expect("open"));
                })
            })
            .collect();
        (0..20).for_each(|i| give.send(me * 1_000_000 + round * 100 + i).expect("open"));
        drop(give);
        let mut got: Vec<String> = (0..10).map(|_| receiver.recv().expect("open")).collect();
        workers.into_iter().for_each(|worker| worker.join().expect("it ends well"));
        world.barrier();
        got.extend(receiver.try_iter());
        got.sort();
        let mut expected: Vec<String> =
            (0..20).map(|i| format!("{} done", me * 1_000_000 + round * 100 + i)).collect();
        expected.sort();
        assert_eq!(got, expected);
        pass(world, &round);
    }
}

/// The same with the standard library's, and what a rank has sent to itself.
pub(crate) fn standard(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let (sender, receiver) = mpsc::channel::<Vec<u64>>();
    rounds.state::<()>();
    while let Some(round) = rounds.next_with(&mut ()) {
        sender.send(vec![me, round]).expect("open");
        let thread = {
            let sender = sender.clone();
            thread::spawn(move || sender.send(vec![me, round, 7]).expect("open"))
        };
        world.barrier();
        thread.join().expect("it ends well");
        let (give, take) = mpsc::sync_channel::<u64>(1);
        let adder = thread::spawn(move || take.iter().sum::<u64>());
        (0..10).for_each(|n| give.send(n * round).expect("open"));
        drop(give);
        assert_eq!(adder.join().expect("it ends well"), 45 * round);
        world.barrier();
        assert_eq!(receiver.recv().expect("open"), [me, round]);
        assert_eq!(receiver.recv().expect("open"), [me, round, 7]);
        pass(world, &me);
    }
}

/// Queues of crossbeam that a rank keeps, full, over messages.
pub(crate) fn queues(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let (long, short) = (Arc::new(SegQueue::new()), ArrayQueue::new(8));
    let mut out = 0;
    while let Some(round) = rounds.next() {
        // Longer by some in each round.
        (0..40).for_each(|i| long.push(Box::new((round - 1) * 40 + i)));
        (0..8).for_each(|i| short.push(format!("{me} {round} {i}")).expect("there is room"));
        world.barrier();
        for _ in 0..35 {
            assert_eq!(*long.pop().expect("it is full"), out);
            out += 1;
        }
        let got: Vec<String> = std::iter::from_fn(|| short.pop()).collect();
        assert!((0..).zip(&got).all(|(i, text)| *text == format!("{me} {round} {i}")));
        assert_eq!((got.len(), long.len() as u64), (8, round * 5));
        pass(world, &round);
    }
}

/// What ranks leave for others of their PE.
static LEFT: LazyLock<SegQueue<(u64, String)>> = LazyLock::new(SegQueue::new);
static LEFT_TOO: Mutex<Vec<(u64, Box<[u64]>)>> = Mutex::new(Vec::new());

/// Ranks leave things in statics of their PE; whoever comes by takes some. In the end all that was
/// left has been taken.
pub(crate) fn between_ranks(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let (mut left, mut taken) = (0, 0);
    while let Some(round) = rounds.next() {
        let number = me * 1_000_000 + round;
        leave(number);
        left += 2 * number;
        world.barrier();
        taken += take(3);
        world.barrier();
    }
    while sum(world, left) != sum(world, taken) {
        taken += take(usize::MAX);
    }
}

/// In a frame of its own, where addresses that it leaves behind do not look like references.
#[inline(never)]
fn leave(number: u64) {
    LEFT.push((number, format!("number {number}")));
    let numbers = vec![number; 1 + number as usize % 5].into_boxed_slice();
    LEFT_TOO.lock().expect("no panic").push((number, numbers));
}

#[inline(never)]
fn take(most: usize) -> u64 {
    let mut taken = 0;
    for (number, text) in std::iter::from_fn(|| LEFT.pop()).take(most) {
        assert_eq!(text, format!("number {number}"));
        taken += number;
    }
    let mut left = LEFT_TOO.lock().expect("no panic");
    let rest = left.len() - left.len().min(most);
    for (number, numbers) in left.drain(rest..) {
        assert_eq!(*numbers, *vec![number; 1 + number as usize % 5]);
        taken += number;
    }
    taken
}
