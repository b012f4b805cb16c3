//! Every interleaving of the shared-memory protocols, explored by loom.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p vrt-shm --release --test loom`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![cfg(loom)]

use std::num::NonZeroU32;

use loom::sync::Arc;
use loom::thread;
use vrt_shm::{Consumer, Doorbell, Ending, Producer, RemoteFreeList, Ring, Sleep};

#[test]
fn ring_hands_over_cells_and_payloads() {
    loom::model(|| {
        let ring = Arc::new(Ring::<2, 256>::new());
        let theirs = ring.clone();
        let producer = thread::spawn(move || {
            // SAFETY: the only producer.
            let mut tx = unsafe { Producer::new(&*theirs) };
            let mut n = 0u8;
            while n < 3 {
                // The third message needs the room of the first: both ends of the ring are met.
                if tx.send(|cell| cell.0[0] = n, &[n; 65]) {
                    n += 1;
                } else {
                    thread::yield_now();
                }
            }
        });
        // SAFETY: the only consumer.
        let mut rx = unsafe { Consumer::new(&*ring) };
        let mut next = 0u8;
        while next < 3 {
            let got = rx.receive(|cell, payload| {
                let p = payload.take(65);
                // SAFETY: 65 bytes were sent.
                let bytes = unsafe { std::slice::from_raw_parts(p, 65) };
                (cell.0[0], bytes[0], bytes[64])
            });
            match got {
                Some(got) => {
                    assert_eq!(got, (next, next, next));
                    next += 1;
                }
                None => thread::yield_now(),
            }
            rx.release();
        }
        producer.join().unwrap();
    });
}

#[test]
fn a_sleeper_never_misses_the_message_it_sleeps_for() {
    loom::model(|| {
        let shared = Arc::new((Ring::<2, 64>::new(), Doorbell::new()));
        let theirs = shared.clone();
        let producer = thread::spawn(move || {
            // SAFETY: the only producer.
            let mut tx = unsafe { Producer::new(&theirs.0) };
            assert!(tx.send(|cell| cell.0[0] = 1, &[]));
            theirs.1.ring()
        });
        // SAFETY: the only consumer.
        let mut rx = unsafe { Consumer::new(&shared.0) };
        let mut slept = false;
        if rx.receive(|_, _| ()).is_none() {
            shared.1.announce(Sleep::Futex);
            slept = !rx.is_ready();
            if !slept {
                shared.1.awake();
            }
        }
        let rung = producer.join().unwrap();
        if slept {
            assert_eq!(rung, Some(Sleep::Futex), "asleep with a message waiting");
        }
    });
}

#[test]
fn remote_frees_are_neither_lost_nor_doubled() {
    loom::model(|| {
        let list = Arc::new(RemoteFreeList::new());
        let blocks: Vec<usize> =
            (0..3).map(|_| Box::into_raw(Box::new([0u64; 2])) as usize).collect();
        let mine = blocks.clone();
        let threads: Vec<_> = [vec![mine[0], mine[1]], vec![mine[2]]]
            .into_iter()
            .map(|give| {
                let list = list.clone();
                thread::spawn(move || {
                    for block in give {
                        // SAFETY: a live block, given away once.
                        unsafe { list.push(block as *mut u8) };
                    }
                })
            })
            .collect();
        let mut got = Vec::new();
        list.drain(|block| got.push(block as usize));
        for t in threads {
            t.join().unwrap();
        }
        list.drain(|block| got.push(block as usize));
        got.sort_unstable();
        let mut want = blocks.clone();
        want.sort_unstable();
        assert_eq!(got, want);
        for block in blocks {
            // SAFETY: allocated above as this type.
            drop(unsafe { Box::from_raw(block as *mut [u64; 2]) });
        }
    });
}

#[test]
fn whoever_sees_a_job_ended_sees_the_status_of_the_first_to_end_it() {
    loom::model(|| {
        let ending = Arc::new(Ending::new());
        let ends: Vec<_> = [(1, 70), (2, 101)]
            .into_iter()
            .map(|(how, status)| {
                let ending = ending.clone();
                thread::spawn(move || ending.end(NonZeroU32::new(how).unwrap(), status))
            })
            .collect();
        let seen = ending.get().map(|(how, status)| (how.get(), status));
        assert!(matches!(seen, None | Some((1, 70) | (2, 101))), "{seen:?}");
        let first: Vec<bool> = ends.into_iter().map(|end| end.join().unwrap()).collect();
        let last = ending.get().map(|(how, status)| (how.get(), status));
        assert_eq!(last, Some(if first[0] { (1, 70) } else { (2, 101) }));
        assert!(first[0] != first[1], "one of both decides");
        assert!(seen.is_none() || seen == last, "what was seen stays");
    });
}
