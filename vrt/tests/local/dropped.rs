//! Futures can be dropped while they wait: what others count on goes on, what nobody needs is taken
//! back, and no message is lost.

use std::future::Future;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use vrt::Elapsed;
use vrt::collective::SystemOperation;
use vrt::traits::*;

/// Longer than what is sent eagerly, and than what is combined by PEs.
const LONG: usize = 64 << 10;
const SHORT: Duration = Duration::from_micros(200);

/// Polls a future once and drops it; it was not done.
#[track_caller]
fn begin_and_drop(future: impl Future) {
    let mut future = Box::pin(future);
    let mut context = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending(), "it was done at once");
}

#[test]
fn sends_go_on_with_the_data_that_they_had() {
    for len in [1, LONG] {
        vrt::run_local(2, |world| {
            let other = world.process_at_rank(1 - world.rank());
            if world.rank() == 1 {
                other.receive_with_tag::<u8>(9);
                for round in 0..3 {
                    let (came, _) = other.receive_vec_with_tag::<u64>(3);
                    assert_eq!(came, vec![round; len], "of {len}");
                }
                assert!(other.immediate_probe_with_tag(3).is_none(), "a message came twice");
                return;
            }
            for round in 0..3u64 {
                let mut data = vec![round; len];
                vrt::block_on(async {
                    let send = other.synchronous_send_with_tag_async(&data[..], 3);
                    assert_eq!(vrt::timeout(SHORT, send).await, Err(Elapsed(SHORT)));
                });
                data.fill(77);
            }
            other.send_with_tag(&1u8, 9);
        });
    }
}

#[test]
fn sends_of_owned_values_go_on() {
    vrt::run_local(2, |world| {
        let other = world.process_at_rank(1 - world.rank());
        if world.rank() == 1 {
            other.receive_with_tag::<u8>(9);
            let (came, _) = other.receive_vec_with_tag::<u64>(3);
            assert_eq!(came, vec![4; LONG]);
            let (text, _) = other.receive_value_with_tag::<String>(4).unwrap();
            assert_eq!(text, "abc".repeat(LONG));
            let (came, _) = other.receive_vec_with_tag::<u64>(5);
            assert_eq!(came, vec![6; LONG]);
            return;
        }
        begin_and_drop(other.send_vec_with_tag_async(vec![4u64; LONG], 3));
        begin_and_drop(other.send_value_with_tag_async(&"abc".repeat(LONG), 4));
        other.send_with_tag(&1u8, 9);
        let back = vrt::block_on(other.send_vec_with_tag_async(vec![6u64; LONG], 5));
        assert_eq!(back, vec![6; LONG]);
    });
}

#[test]
fn barriers_go_on() {
    vrt::run_local(3, |world| {
        let done = vrt::block_on(vrt::timeout(SHORT, async {
            if world.rank() > 0 {
                vrt::sleep_async(Duration::from_secs(60)).await;
            }
            world.barrier_async().await;
        }));
        assert!(done.is_err());
        if world.rank() > 0 {
            world.barrier();
        }
        // Were the barrier of rank 0 lost, one of these would wait for ever.
        world.barrier();
    });
}

#[test]
fn collectives_go_on() {
    for len in [8, LONG] {
        vrt::run_local(3, |world| {
            let mut sum = vec![0u64; len];
            {
                let mine = vec![1u64; len];
                let operation = SystemOperation::sum();
                if world.rank() == 0 {
                    begin_and_drop(world.all_reduce_into_async(&mine[..], &mut sum[..], operation));
                    assert_eq!(sum, vec![0; len], "a dropped operation wrote its result");
                } else {
                    world.all_reduce_into(&mine[..], &mut sum[..], operation);
                    assert_eq!(sum, vec![3; len]);
                }
            }
            // The next operation is the next for all.
            let mine = vec![world.rank() as u64; len];
            let mut all = vec![0u64; 3 * len];
            vrt::block_on(world.all_gather_into_async(&mine[..], &mut all[..]));
            assert!(all.chunks(len).zip(0..).all(|(part, rank)| part.iter().all(|v| *v == rank)));
        });
    }
}

#[test]
fn what_goes_on_ends_before_its_rank() {
    vrt::run_local(4, |world| {
        // Large, so that ranks pass on what others contribute.
        let (mine, mut sum) = (vec![1u64; LONG], vec![0u64; LONG]);
        if world.rank() == 2 {
            return begin_and_drop(world.all_reduce_into_async(
                &mine[..],
                &mut sum[..],
                SystemOperation::sum(),
            ));
        }
        vrt::sleep(Duration::from_millis(1));
        world.all_reduce_into(&mine[..], &mut sum[..], SystemOperation::sum());
        assert_eq!(sum, vec![4; LONG]);
    });
}

#[test]
fn sparse_exchanges_go_on() {
    vrt::run_local(3, |world| {
        let right = (world.rank() + 1) % 3;
        let messages = [(right, vec![world.rank(); LONG])];
        if world.rank() == 0 {
            begin_and_drop(world.sparse_exchange_async::<i32, _>(&messages));
        } else {
            let came = world.sparse_exchange::<i32, _>(&messages);
            let left = (world.rank() + 2) % 3;
            assert_eq!(came, [(left, vec![left; LONG])]);
        }
        let came = world.sparse_exchange::<i32, _>(&messages);
        assert_eq!(came[0].1[0], (world.rank() + 2) % 3);
    });
}

#[test]
fn windows_go_on() {
    vrt::run_local(2, |world| {
        let other = world.process_at_rank(1 - world.rank());
        vrt::block_on(async {
            let window = world.allocate_window_async(vec![0u64; 4]).await;
            if world.rank() == 0 {
                begin_and_drop(window.fence_async());
                other.send_with_tag_async(&1u8, 9).await;
            } else {
                other.receive_with_tag_async::<u8>(9).await;
                window.fence_async().await;
            }
            window.fence_async().await;
            window.put_async(1 - world.rank(), 1, &[5]).await;
            window.fence_async().await;
            assert_eq!(window.load(1), 5);
            if world.rank() == 0 {
                begin_and_drop(window.free_async());
                other.send_with_tag_async(&1u8, 9).await;
            } else {
                other.receive_with_tag_async::<u8>(9).await;
                window.free_async().await;
            }
        });
        world.barrier();
    });
}

#[test]
fn receives_lose_no_message_of_any_length() {
    for len in [1, 200, LONG] {
        vrt::run_local(2, |world| {
            let other = world.process_at_rank(1 - world.rank());
            if world.rank() == 1 {
                for round in 0..20u64 {
                    other.receive_with_tag::<u8>(9);
                    other.synchronous_send_with_tag(&vec![round; len][..], 3);
                }
                return;
            }
            vrt::block_on(async {
                for round in 0..20u64 {
                    let mut lost = vec![0u64; len];
                    {
                        // It is posted, the message comes for it, and it is dropped.
                        let mut receive =
                            Box::pin(other.receive_into_with_tag_async(&mut lost[..], 3));
                        let mut context = Context::from_waker(Waker::noop());
                        assert!(receive.as_mut().poll(&mut context).is_pending());
                        other.send_with_tag_async(&1u8, 9).await;
                        for _ in 0..10 {
                            vrt::yield_now_async().await;
                        }
                    }
                    assert_eq!(lost, vec![0; len], "a dropped receive wrote to its buffer");
                    let mut came = vec![0u64; len];
                    let status = other.receive_into_with_tag_async(&mut came[..], 3).await;
                    assert_eq!(status.bytes(), 8 * len as u64);
                    assert_eq!(came, vec![round; len]);
                }
            });
        });
    }
}

#[test]
fn receives_keep_the_order_in_which_they_were_begun() {
    vrt::run_local(2, |world| {
        let other = world.process_at_rank(1 - world.rank());
        if world.rank() == 1 {
            other.receive_with_tag::<u8>(9);
            for value in 1..=3u64 {
                other.send_with_tag(&vec![value; LONG][..], 3);
            }
            return;
        }
        vrt::block_on(async {
            let (mut a, mut b) = (vec![0u64; LONG], vec![0u64; LONG]);
            let mut third = vec![0u64; LONG];
            {
                let mut first = Box::pin(other.receive_into_with_tag_async(&mut a[..], 3));
                let mut second = Box::pin(other.receive_into_with_tag_async(&mut b[..], 3));
                let mut context = Context::from_waker(Waker::noop());
                assert!(first.as_mut().poll(&mut context).is_pending());
                assert!(second.as_mut().poll(&mut context).is_pending());
                other.send_with_tag_async(&1u8, 9).await;
                // Looked at in the other order.
                tokio::join!(biased; second, first);
                other.receive_into_with_tag_async(&mut third[..], 3).await;
            }
            assert_eq!((a[0], b[0], third[0]), (1, 2, 3));
        });
    });
}

#[test]
fn a_timeout_gives_what_comes_in_time() {
    vrt::run_local(2, |world| {
        let other = world.process_at_rank(1 - world.rank());
        let day = Duration::from_secs(24 * 60 * 60);
        vrt::block_on(async {
            let barrier = vrt::timeout(day, world.barrier_async()).await;
            let me = world.rank();
            let ((), came) = tokio::join!(
                other.send_with_tag_async(&me, 1),
                vrt::timeout(day, other.receive_with_tag_async::<i32>(1))
            );
            assert_eq!((barrier, came.unwrap().0), (Ok(()), 1 - me));
            let never = vrt::timeout(SHORT, other.probe_with_tag_async(2)).await;
            assert_eq!(never.unwrap_err().to_string(), "not done within 200µs");
            let ready = vrt::timeout(Duration::ZERO, std::future::ready(3)).await;
            assert_eq!(ready, Ok(3));
            let mut done = Box::pin(vrt::timeout(Duration::ZERO, std::future::pending::<()>()));
            let mut context = Context::from_waker(Waker::noop());
            let first = done.as_mut().poll(&mut context);
            assert!(matches!(first, Poll::Pending | Poll::Ready(Err(_))));
        });
    });
}
