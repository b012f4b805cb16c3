//! Every interleaving of the shared-memory protocols, explored by loom.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p vrt-shm --release --test loom`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![cfg(loom)]

use std::num::NonZeroU32;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use vrt_shm::{
    Begun, Claims, Consumer, Doorbell, Ending, KeptOff, Learned, Lease, Location, Place, Producer,
    RemoteFreeList, Ring, Sleep,
};

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
            assert!(shared.1.announce(Sleep::Futex));
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

#[test]
fn shared_work_is_done_once_and_over_when_all_is_done() {
    loom::model(|| {
        const PIECES: u32 = 4;
        let shared = Arc::new(Claims::new());
        let done: Arc<Vec<UnsafeCell<u32>>> =
            Arc::new((0..PIECES).map(|_| UnsafeCell::new(0)).collect());
        let (round, mine) = shared.begin(PIECES);
        let (theirs, their_done) = (shared.clone(), done.clone());
        let helper = thread::spawn(move || {
            while let Some(part) = theirs.claim_back(round) {
                for piece in part.clone() {
                    // SAFETY: claimed by this thread alone, which loom checks.
                    their_done[piece as usize].with_mut(|it| unsafe { *it += 1 });
                }
                theirs.finish(part.len() as u32);
            }
        });
        let mut own = 0;
        let mut part = Some(mine);
        while let Some(pieces) = part {
            own += pieces.len() as u32;
            for piece in pieces {
                // SAFETY: as above.
                done[piece as usize].with_mut(|it| unsafe { *it += 1 });
            }
            part = shared.claim_front();
        }
        while !shared.are_finished(own, PIECES) {
            thread::yield_now();
        }
        for piece in done.iter() {
            // SAFETY: nobody writes any more.
            assert_eq!(piece.with(|it| unsafe { *it }), 1);
        }
        // What comes late finds another round.
        let (next, _) = shared.begin(1);
        assert_ne!(next, round);
        helper.join().unwrap();
        assert_eq!(shared.claim_front(), None);
        assert!(shared.are_finished(1, 1));
    });
}

/// The memory of a rank leaves a node, what is left of it is given back, and it comes again, while another PE reads and
/// writes it whenever it may: what is read is whole, as who moves it or gives it back has it alone.
#[test]
fn memory_is_used_only_where_it_is() {
    loom::model(|| {
        let node = Arc::new((Lease::new(), UnsafeCell::new((1u32, 1u32))));
        let change = |cell: &UnsafeCell<(u32, u32)>, to: (u32, u32)| {
            cell.with_mut(|memory| {
                // SAFETY: loom finds whoever else accesses it meanwhile.
                unsafe { *memory = to };
            });
        };
        let user = thread::spawn({
            let node = node.clone();
            move || {
                for _ in 0..2 {
                    if let Some(_leased) = node.0.take() {
                        // SAFETY: it is here, and stays while it is leased.
                        let (a, b) = node.1.with(|memory| unsafe { *memory });
                        assert!(a == b && a > 0, "memory that is not here: {a} {b}");
                        change(&node.1, (a, b));
                    }
                }
            }
        });
        let giver = thread::spawn({
            let node = node.clone();
            move || {
                if let KeptOff::While(_kept) = node.0.keep_off() {
                    change(&node.1, (0, 0));
                }
            }
        });
        if node.0.begin_leaving() == Begun::Moving {
            // It is read by the one that has it alone.
            // SAFETY: as above.
            assert_eq!(node.1.with(|memory| unsafe { *memory }), (1, 1));
            node.0.has_left();
            while node.0.begin_coming() == Begun::InUse {
                thread::yield_now();
            }
            change(&node.1, (2, 2));
            node.0.has_come();
        }
        user.join().unwrap();
        giver.join().unwrap();
        assert!(node.0.take().is_some(), "the memory is here in the end");
    });
}

/// A rank moves twice; the news of both moves come in any order, and it is said that the rank is held.
#[test]
fn old_news_never_replaces_newer() {
    loom::model(|| {
        let location = Arc::new(Location::new());
        let news = |version: u32| {
            let location = location.clone();
            thread::spawn(move || {
                let learned = location.learn(Place::on(version), version);
                let (place, known) = location.get_with_version();
                assert!(known >= version && place.pe() == Some(known));
                learned
            })
        };
        let (first, second) = (news(1), news(2));
        location.hold_unless(|pe| pe == 2);
        let first = first.join().unwrap();
        assert_eq!(second.join().unwrap(), Learned::New);
        let (place, version) = location.get_with_version();
        assert_eq!((place.pe(), version), (Some(2), 2));
        // Whoever comes first, the news of the first move are new only if they were before those of the second.
        assert!(first == Learned::New || first == Learned::Old);
        location.release();
        assert!(location.get().plain().is_some());
        location.set(Place::ENDED, 3);
        assert_eq!((location.get().pe(), location.get().is_held()), (None, false));
    });
}

/// Who sees where a rank is sees what its PE has written before.
#[test]
fn a_location_publishes_what_was_written_before() {
    loom::model(|| {
        let shared = Arc::new((Location::new(), UnsafeCell::new(0u32)));
        let mover = thread::spawn({
            let shared = shared.clone();
            move || {
                // SAFETY: the other one looks only after the location has changed.
                shared.1.with_mut(|state| unsafe { *state = 7 });
                shared.0.set(Place::on(1).held(true), 1);
            }
        });
        if shared.0.get().pe() == Some(1) {
            // SAFETY: as above.
            assert_eq!(shared.1.with(|state| unsafe { *state }), 7);
            assert!(shared.0.get().is_held());
        }
        mover.join().unwrap();
    });
}

#[test]
fn a_receiver_that_begins_to_ask_for_marks_overlooks_no_message() {
    loom::model(|| {
        let shared = Arc::new((Ring::<2, 64>::new(), Doorbell::new()));
        let theirs = shared.clone();
        let producer = thread::spawn(move || {
            // SAFETY: the only producer.
            let mut tx = unsafe { Producer::new(&theirs.0) };
            for n in 0..2 {
                assert!(tx.send(|cell| cell.0[0] = n, &[]));
                let _: Option<Sleep> = theirs.1.ring_for(65);
            }
        });
        // SAFETY: the only consumer.
        let mut rx = unsafe { Consumer::new(&shared.0) };
        let bell = &shared.1;
        assert!(bell.ask_for_marks());
        // All rings once, then those with marks.
        let mut taken = 0;
        while rx.receive(|_, _| ()).is_some() {
            taken += 1;
        }
        let mut slept = false;
        for _ in 0..2 {
            if bell.take_marks() != 0 {
                while rx.receive(|_, _| ()).is_some() {
                    taken += 1;
                }
            }
            assert!(bell.announce(Sleep::Futex));
            slept = taken < 2 && !bell.has_marks();
            if slept {
                break;
            }
            bell.awake();
        }
        producer.join().unwrap();
        let marks = bell.take_marks();
        assert!(marks & !(1 << Doorbell::mark_of(65)) == 0);
        let left = rx.is_ready();
        assert!(!left || marks != 0, "a message without a mark");
        assert!(!slept || bell.has_rung(), "asleep with a message waiting");
        while rx.receive(|_, _| ()).is_some() {
            taken += 1;
        }
        assert_eq!(taken, 2);
    });
}
