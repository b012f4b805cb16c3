//! What a forgotten future or request has borrowed is neither written to nor read afterwards.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

use vrt::collective::SystemOperation;
use vrt::topology::{Process, SimpleCommunicator};
use vrt::traits::*;

/// Longer than what is sent eagerly.
const LONG: usize = 64 << 10;
/// Buffers that are made until one has the place of another.
const MOST: usize = 5000;

/// Polls a future once and forgets it.
fn begin_and_forget<'a>(future: impl Future + 'a) {
    let mut future: Pin<Box<dyn Future<Output = ()> + 'a>> = Box::pin(async {
        future.await;
    });
    let mut context = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending(), "it was done at once");
    std::mem::forget(future);
}

/// Rank 0 begins something with a buffer of so many values, forgets it, and gives the buffer back;
/// then rank 1 does its part. Memory of rank 0 that has the buffer's place is not written to.
#[track_caller]
fn untouched(
    len: usize,
    begin: impl Fn(&SimpleCommunicator, &mut Vec<u64>) + Sync,
    part: impl Fn(&SimpleCommunicator) + Sync,
) {
    vrt::run_local(2, |world| {
        let other = world.process_at_rank(1 - world.rank());
        if world.rank() == 1 {
            other.receive_with_tag::<u8>(9);
            part(world);
            return other.send_with_tag(&1u8, 9);
        }
        // Made before, so that the buffer's place is not for this.
        let mut others: Vec<Vec<u64>> = Vec::with_capacity(MOST);
        let mut buffer = vec![0u64; len];
        let place = buffer.as_ptr_range();
        begin(world, &mut buffer);
        drop(buffer);
        let again = |other: &Vec<u64>| {
            let other = other.as_ptr_range();
            other.start < place.end && place.start < other.end
        };
        // First come other free places, which former runs may have left. Half as long: if the buffer was the end of the
        // heap's first part, a few bytes of its place are the end's own once there is another part.
        while !others.last().is_some_and(again) {
            assert!(others.len() < MOST, "the place of {len} values is not used again");
            others.push(vec![7u64; len / 2]);
        }
        other.send_with_tag(&1u8, 9);
        other.receive_with_tag::<u8>(9);
        assert!(others.iter().flatten().all(|value| *value == 7), "memory was overwritten");
    });
}

/// Rank 0 begins to send a buffer, forgets that, and overwrites it; rank 1 gets what was sent.
#[track_caller]
fn sent_as_it_was(begin: impl Fn(&Process<'_>, &mut [u64]) + Sync) {
    vrt::run_local(2, |world| {
        let other = world.process_at_rank(1 - world.rank());
        if world.rank() == 1 {
            other.receive_with_tag::<u8>(9);
            let (came, _) = other.receive_vec_with_tag::<u64>(3);
            assert_eq!(came.len(), LONG);
            assert!(came.iter().all(|value| *value == 5), "{} was not sent", came[0]);
            return;
        }
        let mut buffer = vec![5u64; LONG];
        begin(&other, &mut buffer);
        buffer.fill(6);
        other.send_with_tag(&1u8, 9);
    });
}

#[test]
fn receives_into_buffers() {
    for len in [8, LONG] {
        untouched(
            len,
            |world, buffer| {
                let other = world.process_at_rank(1);
                begin_and_forget(other.receive_into_with_tag_async(&mut buffer[..], 3));
            },
            |world| world.process_at_rank(0).buffered_send_with_tag(&vec![1u64; len][..], 3),
        );
    }
}

#[test]
fn sends_of_buffers() {
    sent_as_it_was(|other, buffer| {
        begin_and_forget(other.synchronous_send_with_tag_async(buffer, 3))
    });
    sent_as_it_was(|other, buffer| {
        // Rank 1 takes in what has come in parts, so that it may be done at once.
        let mut future = Box::pin(other.send_with_tag_async(buffer, 3));
        let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        std::mem::forget(future);
    });
}

#[test]
fn persistent_receives_and_sends() {
    for len in [8, LONG] {
        untouched(
            len,
            |world, buffer| {
                let other = world.process_at_rank(1);
                let mut request = other.persistent_receive_into_with_tag(&mut buffer[..], 3);
                request.start();
                std::mem::forget(request);
            },
            |world| world.process_at_rank(0).buffered_send_with_tag(&vec![1u64; len][..], 3),
        );
    }
    sent_as_it_was(|other, buffer| {
        let mut request = other.persistent_send_with_tag(buffer, 3);
        request.start();
        std::mem::forget(request);
    });
}

#[test]
fn collectives() {
    for len in [8, LONG] {
        untouched(
            2 * len,
            |world, buffer| {
                begin_and_forget(
                    world.all_gather_into_async(&vec![1u64; len][..], &mut buffer[..]),
                );
            },
            |world| begin_and_finish_or_forget(world, len),
        );
        untouched(
            len,
            |world, buffer| {
                let root = world.process_at_rank(1);
                begin_and_forget(root.broadcast_into_async(&mut buffer[..]));
            },
            |world| world.this_process().broadcast_into(&mut vec![3u64; len][..]),
        );
    }
}

/// The other half of an `all_gather` that may never end.
fn begin_and_finish_or_forget(world: &SimpleCommunicator, len: usize) {
    let (mine, mut all) = (vec![2u64; len], vec![0u64; 2 * len]);
    let mut future = Box::pin(world.all_gather_into_async(&mine[..], &mut all[..]));
    let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    std::mem::forget(future);
}

#[test]
fn persistent_collectives() {
    for len in [8, LONG] {
        untouched(
            len,
            |world, buffer| {
                let mut mine = vec![1u64; len];
                let mut request = world.persistent_all_reduce_into(
                    &mut mine[..],
                    &mut buffer[..],
                    SystemOperation::sum(),
                );
                request.start();
                std::mem::forget(request);
            },
            |world| {
                let mut sum = vec![0u64; len];
                world.all_reduce_into(&vec![2u64; len][..], &mut sum[..], SystemOperation::sum());
                assert!(sum.iter().all(|value| *value == 3));
            },
        );
    }
}

#[test]
fn a_sender_does_not_wait_for_ever_for_a_forgotten_receive() {
    vrt::run_local(2, |world| {
        let other = world.process_at_rank(1 - world.rank());
        if world.rank() == 1 {
            return other.synchronous_send_with_tag(&[1u64; 8], 3);
        }
        let mut buffer = [0u64; 8];
        begin_and_forget(other.receive_into_with_tag_async(&mut buffer[..], 3));
        vrt::yield_now();
    });
}
