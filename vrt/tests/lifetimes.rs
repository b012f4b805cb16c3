//! Memory that the runtime was told to use is not used after it has been given up.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use vrt::topology::{Process, SimpleCommunicator};
use vrt::traits::*;

#[derive(Clone, Copy, Debug, Equivalence)]
struct Long([u64; 64]);

/// Rank 0 begins something that uses memory, and unwinds out of it; then rank 1 sends a message
/// with tag 3. Memory of rank 0 that is as long is not written to, and the message is received.
#[track_caller]
fn unwound(begin: impl Fn(&Process<'_>, &mut [u64]) + Sync) {
    vrt::run_local(2, |world: &SimpleCommunicator| {
        let other = world.process_at_rank(1 - world.rank());
        if world.rank() == 1 {
            other.receive::<u8>();
            other.send_with_tag(&[0xdead_beef_u64; 64], 3);
            return;
        }
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let mut buffer = vec![0u64; 64].into_boxed_slice();
            begin(&other, &mut buffer[..]);
        }));
        assert!(caught.is_err(), "it did not unwind");
        let others: Vec<Vec<u64>> = (0..20).map(|_| vec![7u64; 64]).collect();
        other.send(&1u8);
        let (message, _) = other.receive_vec_with_tag::<u64>(3);
        assert!(others.iter().flatten().all(|value| *value == 7), "memory was overwritten");
        assert_eq!(message, [0xdead_beef; 64], "the message went elsewhere");
    });
}

#[test]
fn a_panic_takes_back_the_receives_of_its_scope() {
    unwound(|other, buffer| {
        vrt::request::scope(|scope| {
            let request = other.immediate_receive_into_with_tag(scope, buffer, 3);
            if !buffer_is_free() {
                panic!("caught by the caller");
            }
            request.wait();
        });
    });
}

#[test]
fn a_panic_takes_back_the_receives_of_a_collection() {
    unwound(|other, buffer| {
        let (one, two) = buffer.split_at_mut(32);
        vrt::request::multiple_scope(2, |scope, requests| {
            requests.add(other.immediate_receive_into_with_tag(scope, one, 3));
            requests.add(other.immediate_receive_into_with_tag(scope, two, 3));
            panic!("caught by the caller");
        });
    });
}

#[test]
fn a_panic_takes_back_what_guards_hold_and_what_is_awaited() {
    unwound(|other, buffer| {
        vrt::request::scope(|scope| {
            let request = other.immediate_receive_into_with_tag(scope, buffer, 3);
            let _guard = vrt::request::WaitGuard::from(request);
            panic!("caught by the caller");
        });
    });
    unwound(|other, buffer| {
        vrt::request::scope(|scope| {
            let request = other.immediate_receive_into_with_tag(scope, buffer, 3);
            let _future = request.into_future();
            panic!("caught by the caller");
        });
    });
}

#[test]
fn a_dropped_receive_of_a_value_is_taken_back() {
    unwound(|other, _| drop(other.immediate_receive_with_tag::<Long>(3)));
}

/// Never: what the runtime receives into is borrowed.
fn buffer_is_free() -> bool {
    std::hint::black_box(false)
}
