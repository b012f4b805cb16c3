//! Memory that the runtime was told to use is not used after it has been given up.

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

/// A future of a rank, kept where other ranks of the thread find it.
type Kept = Option<std::pin::Pin<Box<dyn Future<Output = ()>>>>;

thread_local! {
    static KEPT: std::cell::RefCell<Kept> = const { std::cell::RefCell::new(None) };
}

#[test]
fn a_future_dropped_by_another_rank_leaves_that_rank_alone() {
    vrt::run_local(2, |world| {
        let other = world.process_at_rank(1 - world.rank());
        if world.rank() == 0 {
            let mut sleep: std::pin::Pin<Box<dyn Future<Output = ()>>> =
                Box::pin(vrt::sleep_async(std::time::Duration::from_millis(50)));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(sleep.as_mut().poll(&mut context).is_pending());
            KEPT.set(Some(sleep));
            other.send(&1u8);
            other.receive::<u8>();
            other.send_with_tag(&[5u64; 8], 9);
            return;
        }
        let mut buffer = [0u64; 8];
        vrt::request::scope(|scope| {
            let request = other.immediate_receive_into_with_tag(scope, &mut buffer, 9);
            other.receive::<u8>();
            drop(KEPT.take());
            other.send(&1u8);
            let status = request.wait();
            assert_eq!((status.source_rank(), status.is_cancelled()), (0, false));
        });
        assert_eq!(buffer, [5; 8]);
    });
}

#[test]
fn a_receive_that_loses_against_a_timer_loses_no_message() {
    const ROUNDS: u64 = 1000;
    vrt::run_local(3, |world| {
        let (me, n) = (world.rank(), world.size());
        let (right, left) =
            (world.process_at_rank((me + 1) % n), world.process_at_rank((me + n - 1) % n));
        let mut timeouts = 0u64;
        vrt::block_on(async {
            for round in 0..ROUNDS {
                let receive = async {
                    loop {
                        // Now and then the message comes first, now and then the time.
                        let time = std::time::Duration::from_nanos(round % 7 * 500);
                        tokio::select! {
                            came = left.receive_with_tag_async::<u64>(1) => break came.0,
                            () = vrt::sleep_async(time) => timeouts += 1,
                        }
                    }
                };
                let send = async {
                    if round % 3 == 0 {
                        vrt::sleep_async(std::time::Duration::from_micros(2)).await;
                    }
                    right.send_with_tag_async(&round, 1).await;
                };
                let (came, ()) = tokio::join!(receive, send);
                assert_eq!(came, round, "a message was lost or overtaken");
            }
        });
        assert!(timeouts > 0, "no timer was ever first");
    });
}

#[test]
fn several_probes_wait_at_once() {
    vrt::run_local(2, |world| {
        let other = world.process_at_rank(1 - world.rank());
        for _ in 0..10 {
            if world.rank() == 1 {
                other.send_with_tag(&1u8, 1);
                vrt::sleep(std::time::Duration::from_micros(200));
                other.send_with_tag(&2u8, 2);
                other.receive::<u8>();
                continue;
            }
            let (two, one) = vrt::block_on(async {
                let (mut one, mut two) = (
                    Box::pin(other.receive_vec_with_tag_async::<u8>(1)),
                    Box::pin(other.receive_vec_with_tag_async::<u8>(2)),
                );
                let (mut first, mut second) = (None, None);
                std::future::poll_fn(|context| {
                    use std::task::Poll;
                    if second.is_none()
                        && let Poll::Ready(came) = two.as_mut().poll(context)
                    {
                        second = Some(came.0);
                    }
                    if first.is_none()
                        && let Poll::Ready(came) = one.as_mut().poll(context)
                    {
                        first = Some(came.0);
                    }
                    if first.is_some() && second.is_some() {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    }
                })
                .await;
                (second, first)
            });
            assert_eq!((one, two), (Some(vec![1]), Some(vec![2])));
            other.send(&0u8);
        }
    });
}
