//! The twins whose names begin with `try_`: what they return, and that the rank goes on afterwards.

use std::panic::{AssertUnwindSafe, catch_unwind};

use vrt::collective::{SystemOperation, UserOperation};
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;
use vrt::{Error, ErrorClass, ErrorKind};

#[derive(Clone, Copy, Debug, Default, PartialEq, Equivalence)]
struct Two(u16, u16);

/// Longer than what is copied on the way: the sender waits for its receive.
const LONG: usize = 1 << 18;

/// What is known of every error of a rank's call in this file.
#[track_caller]
fn expect(error: &Error, world: &SimpleCommunicator, call: &str, class: ErrorClass, what: &str) {
    let text = error.to_string();
    assert_eq!((error.class(), error.call(), error.rank()), (class, call, Some(world.rank())));
    assert!(error.location().file().ends_with("try_twins.rs"), "{text}");
    assert!(text.contains(call) && text.contains(&error.location().to_string()), "{text}");
    assert!(text.contains(what), "{what:?} is missing in: {text}");
}

/// Checks that both ranks can send and receive, and that the next operation is the next for both.
#[track_caller]
fn expect_usable(world: &SimpleCommunicator) {
    let other = world.process_at_rank(world.size() - 1 - world.rank());
    other.send_with_tag(&world.rank(), 99);
    assert_eq!(other.receive_with_tag::<i32>(99).0, other.rank());
    let mut sum = 0;
    world.all_reduce_into(&1, &mut sum, SystemOperation::sum());
    assert_eq!(sum, world.size());
}

#[test]
fn there_is_no_such_rank() {
    vrt::run_local(2, |world| {
        for rank in [2, -1] {
            let error = world.try_process_at_rank(rank).unwrap_err();
            let what = format!("rank {rank} is out of range: 0 to 1 are allowed");
            expect(&error, world, "process_at_rank", ErrorClass::Rank, &what);
            assert_eq!(
                error.into_kind(),
                ErrorKind::RankOutOfRange { what: "rank", rank, size: 2 }
            );
        }
        assert_eq!(world.try_process_at_rank(1).unwrap().rank(), 1);
        expect_usable(world);
    });
}

#[test]
fn there_is_no_such_tag() {
    vrt::run_local(1, |world| {
        let me = world.this_process();
        let what = "tag -3 is out of range: 0 to 2147483647 are allowed";
        let send = me.try_send_with_tag(&7, -3).unwrap_err();
        expect(&send, world, "send", ErrorClass::Tag, what);
        me.try_send_with_tag(&8, 3).unwrap();
        me.try_send(&[9, 10]).unwrap();

        let receive = me.try_receive_with_tag::<i32>(-3).unwrap_err();
        expect(&receive, world, "receive", ErrorClass::Tag, what);
        let receive = me.try_receive_into_with_tag(&mut 0, -3).unwrap_err();
        expect(&receive, world, "receive_into", ErrorClass::Tag, what);
        let receive = me.try_receive_vec_with_tag::<i32>(-3).unwrap_err();
        expect(&receive, world, "receive_vec", ErrorClass::Tag, what);

        // Nothing was sent or received by those.
        assert_eq!(me.try_receive_with_tag::<i32>(3).unwrap().0, 8);
        let (values, status) = me.try_receive_vec::<i32>().unwrap();
        assert_eq!((values, status.tag()), (vec![9, 10], 0));
        assert!(me.immediate_probe().is_none());
    });
}

#[test]
fn a_message_is_too_long() {
    vrt::run_local(2, |world| {
        let other = world.process_at_rank(1 - world.rank());
        other.buffered_send_with_tag(&[1.0, 2.0, 3.0], 4);
        other.buffered_send_with_tag(&4.0, 4);
        let mut buffer = [0.0; 2];
        let error = other.try_receive_into(&mut buffer).unwrap_err();
        let what = "with tag 4 has 24 bytes, the buffer only 16";
        expect(&error, world, "receive_into", ErrorClass::Truncate, what);
        let kind =
            ErrorKind::Truncated { source_rank: other.rank(), tag: 4, bytes: 24, capacity: 16 };
        assert_eq!(error.kind(), &kind);
        assert_eq!(other.try_receive_with_tag::<f64>(4).unwrap().0, 4.0);

        other.buffered_send(&[1.0, 2.0]);
        let error = other.try_receive::<f64>().unwrap_err();
        expect(&error, world, "receive", ErrorClass::Truncate, "has 16 bytes, the buffer only 8");
        expect_usable(world);
    });
}

/// The sender waits for the receive, and is let go by one that the message does not fit.
#[test]
fn a_message_of_a_sender_that_waits_is_too_long() {
    vrt::run_local(2, |world| {
        let other = world.process_at_rank(1 - world.rank());
        for round in 0..3 {
            if world.rank() == 0 {
                other.synchronous_send_with_tag(&vec![7u64; LONG], 1);
                other.send_with_tag(&round, 2);
                continue;
            }
            let error = match round {
                0 => other.try_receive_into(&mut [0u64; 8]).unwrap_err(),
                1 => other.try_receive::<u64>().unwrap_err(),
                _ => other.try_receive_vec::<f64>().unwrap_err(),
            };
            let class = if round == 2 { ErrorClass::Type } else { ErrorClass::Truncate };
            assert_eq!(error.class(), class, "{error}");
            assert_eq!(other.receive::<i32>().0, round);
        }
        expect_usable(world);
    });
}

#[test]
fn a_message_is_not_one_value() {
    vrt::run_local(1, |world| {
        let me = world.this_process();
        me.buffered_send_with_tag(&1u16, 5);
        me.buffered_send_with_tag(&Two(3, 4), 5);
        let error = me.try_receive_with_tag::<Two>(5).unwrap_err();
        expect(&error, world, "receive", ErrorClass::Count, "has 2 bytes, one value has 4");
        assert_eq!(me.try_receive::<Two>().unwrap().0, Two(3, 4));
    });
}

#[test]
fn a_message_is_not_made_of_whole_values() {
    vrt::run_local(1, |world| {
        let me = world.this_process();
        me.buffered_send(&[1u16, 2, 3]);
        me.buffered_send(&[4u16, 5, 6, 7]);
        let error = me.try_receive_vec::<Two>().unwrap_err();
        let what = "has 6 bytes, no multiple of a value's 4";
        expect(&error, world, "receive_vec", ErrorClass::Count, what);
        assert_eq!(me.try_receive_vec::<Two>().unwrap().0, [Two(4, 5), Two(6, 7)]);
        assert!(me.immediate_probe().is_none());
    });
}

#[test]
fn a_message_is_of_another_type() {
    vrt::run_local(1, |world| {
        let me = world.this_process();
        let what = "was sent as f64, but is received as u64";
        let mut buffer = [5u64; 1];
        (0..3).for_each(|i| me.buffered_send(&f64::from(i)));
        let error = me.try_receive_into(&mut buffer).unwrap_err();
        expect(&error, world, "receive_into", ErrorClass::Type, what);
        let error = me.try_receive::<u64>().unwrap_err();
        expect(&error, world, "receive", ErrorClass::Type, what);
        let error = me.try_receive_vec::<u64>().unwrap_err();
        expect(&error, world, "receive_vec", ErrorClass::Type, what);
        assert_eq!(buffer, [5], "nothing was written");
        me.buffered_send(&6u64);
        assert_eq!(me.try_receive::<u64>().unwrap().0, 6);
    });
}

#[test]
fn the_message_of_a_request_does_not_fit() {
    vrt::run_local(2, |world| {
        let other = world.process_at_rank(1 - world.rank());
        let (mut short, mut next) = ([0u8; 2], 0u8);
        vrt::request::scope(|scope| {
            let first = other.immediate_receive_into(scope, &mut short);
            let second = other.immediate_receive_into(scope, &mut next);
            other.send(&[1u8, 2, 3]);
            other.send(&4u8);
            let error = first.try_wait().unwrap_err();
            let call = "immediate_receive_into";
            expect(&error, world, call, ErrorClass::Truncate, "3 bytes, the buffer only 2");
            assert_eq!(second.try_wait().unwrap().bytes(), 1);
        });
        assert_eq!((short, next), ([1, 2], 4));

        let mut receive = other.persistent_receive_into(&mut short);
        receive.start();
        other.send(&[1u8, 2, 3]);
        let error = receive.try_wait().unwrap_err();
        expect(&error, world, "persistent_receive_into", ErrorClass::Truncate, "3 bytes");
        receive.start();
        other.send(&[8u8, 9]);
        assert_eq!(receive.try_wait().unwrap().unwrap().bytes(), 2);
        assert_eq!(**receive.receive_data(), [8, 9]);
        assert_eq!(receive.try_wait(), Ok(None));
        drop(receive);
        expect_usable(world);
    });
}

#[test]
fn a_request_of_a_collective_operation_that_ranks_disagree_about() {
    vrt::run_local(2, |world| {
        let mine = vec![1u64; 1 + world.rank() as usize];
        let mut sums = mine.clone();
        vrt::request::scope(|scope| {
            let sum = SystemOperation::sum();
            let request = world.immediate_all_reduce_into(scope, &mine, &mut sums, sum);
            let error = request.try_wait().unwrap_err();
            expect(&error, world, "immediate_all_reduce_into", ErrorClass::Other, "another rank");
        });
        expect_usable(world);
    });
}

/// What a call refuses before it takes part in it, it can do again.
#[test]
fn arguments_of_a_collective_operation_are_wrong() {
    vrt::run_local(3, |world| {
        let sum = SystemOperation::sum();
        let one = world.rank() == 1;
        if one {
            let error = world.try_all_gather_into(&1i32, &mut [0i32; 2]).unwrap_err();
            let what = "the receive buffer has 8 bytes instead of 12";
            expect(&error, world, "all_gather_into", ErrorClass::Count, what);
            let error = world.try_all_gather_into(&1i32, &mut [0f32; 3]).unwrap_err();
            expect(&error, world, "all_gather_into", ErrorClass::Type, "i32");
        }
        let mut all = [0i32; 3];
        world.try_all_gather_into(&world.rank(), &mut all).unwrap();
        assert_eq!(all, [0, 1, 2]);

        if one {
            let error = world.try_all_to_all_into(&[0i32; 4], &mut [0i32; 4]).unwrap_err();
            let what = "the send buffer has 16 bytes instead of 15";
            expect(&error, world, "all_to_all_into", ErrorClass::Count, what);
        }
        world.try_all_to_all_into(&[world.rank(); 3], &mut all).unwrap();
        assert_eq!(all, [0, 1, 2]);

        if one {
            let error = world.try_all_reduce_into(&[1, 2], &mut 0, sum).unwrap_err();
            expect(&error, world, "all_reduce_into", ErrorClass::Count, "4 bytes instead of 8");
            let and = SystemOperation::bitwise_and();
            let error = world.try_all_reduce_into(&1.0, &mut 0.0, and).unwrap_err();
            expect(&error, world, "all_reduce_into", ErrorClass::Op, "BitwiseAnd is not defined");
        }
        let mut total = 0;
        world.try_all_reduce_into(&world.rank(), &mut total, sum).unwrap();
        assert_eq!(total, 3);

        let root = world.process_at_rank(1);
        if one {
            let error = root.try_gather_into(&1).unwrap_err();
            expect(&error, world, "gather_into", ErrorClass::Root, "for all ranks but the root");
            assert_eq!(error.kind(), &ErrorKind::Root { rank: 1, root: 1, for_root: false });
            let error = root.try_gather_into_root(&1, &mut [0; 2]).unwrap_err();
            expect(&error, world, "gather_into_root", ErrorClass::Count, "instead of 12");
            root.try_gather_into_root(&10, &mut all).unwrap();
            assert_eq!(all, [0, 10, 2]);
        } else {
            let error = root.try_gather_into_root(&1, &mut [0; 3]).unwrap_err();
            expect(&error, world, "gather_into_root", ErrorClass::Root, "for the root only");
            root.try_gather_into(&world.rank()).unwrap();
        }
        expect_usable(world);
    });
}

#[test]
fn ranks_disagree_about_a_collective_operation() {
    vrt::run_local(3, |world| {
        let odd = world.rank() == 1;
        let what = "another rank calls another operation, or with another";
        let op = if odd { SystemOperation::max() } else { SystemOperation::sum() };
        let error = world.try_all_reduce_into(&1u32, &mut 0u32, op).unwrap_err();
        expect(&error, world, "all_reduce_into", ErrorClass::Other, what);
        expect_usable(world);

        let len = if odd { 2 } else { 1 };
        let error = world.try_all_gather_into(&vec![1; len], &mut vec![0; 3 * len]).unwrap_err();
        expect(&error, world, "all_gather_into", ErrorClass::Other, what);
        expect_usable(world);

        let (mine, mut theirs) = (vec![1; 3 * len], vec![0; 3 * len]);
        let error = world.try_all_to_all_into(&mine, &mut theirs).unwrap_err();
        expect(&error, world, "all_to_all_into", ErrorClass::Other, what);
        expect_usable(world);

        // The root of a broadcast waits for nobody, and those of a gather do not wait for the root.
        let root = world.process_at_rank(0);
        let outcome = root.try_broadcast_into(&mut vec![0; len]);
        assert!(outcome.is_err() || !odd);
        if let Err(error) = outcome {
            expect(&error, world, "broadcast_into", ErrorClass::Other, what);
        }
        expect_usable(world);
        let outcome = match root.is_self() {
            true => root.try_gather_into_root(&vec![1; len], &mut vec![0; 3]),
            false => root.try_gather_into(&vec![1; len]),
        };
        assert!(outcome.is_err() || !root.is_self());
        expect_usable(world);
    });
}

/// Larger data goes from rank to rank: between two ranks nobody waits for what others pass on.
#[test]
fn ranks_disagree_about_a_long_collective_operation() {
    vrt::run_local(2, |world| {
        let len = LONG + world.rank() as usize;
        let outcome = world.try_all_gather_into(&vec![1u8; len], &mut vec![0u8; 2 * len]);
        let error = outcome.unwrap_err();
        expect(&error, world, "all_gather_into", ErrorClass::Count, "contributed");
        expect_usable(world);

        let outcome = world.process_at_rank(0).try_broadcast_into(&mut vec![0u8; len]);
        assert_eq!(outcome.is_err(), world.rank() == 1);
        expect_usable(world);
    });
}

/// All parts are sent and received also if one of them is wrong.
#[test]
fn a_neighbour_sends_too_much() {
    vrt::run_local(4, |world| {
        let ring = world.create_cartesian_communicator(&[4], &[true], false).unwrap();
        let (me, len) = (ring.rank() as usize, LONG);
        let mine = vec![me as u64; if me == 1 { len + 1 } else { len }];
        let mut beside = vec![0u64; 2 * mine.len()];
        vrt::request::scope(|scope| {
            let request = ring.immediate_neighbor_all_gather_into(scope, &mine, &mut beside);
            let outcome = request.try_wait();
            assert_eq!(outcome.is_err(), me != 3, "{outcome:?}");
            if let Err(error) = outcome {
                let call = "immediate_neighbor_all_gather_into";
                expect(&error, world, call, ErrorClass::Count, "contributed");
            }
        });
        assert!(me != 3 || beside[..len] == vec![2; len] && beside[len..] == vec![0; len]);
        expect_usable(world);
    });
}

#[test]
fn the_result_of_a_reduction_does_not_fit() {
    vrt::run_local(2, |world| {
        let sum = SystemOperation::sum();
        let error = world.try_all_reduce_into(&200u64, &mut 0u8, sum).unwrap_err();
        let what = "the result 400 does not fit an element of the receive buffer";
        expect(&error, world, "all_reduce_into", ErrorClass::Other, what);
        let mut small = 0u8;
        world.try_all_reduce_into(&100u64, &mut small, sum).unwrap();
        assert_eq!(small, 200);
        expect_usable(world);
    });
}

#[test]
fn a_user_operation_panics() {
    vrt::run_local(2, |world| {
        let op = UserOperation::commutative(|_, _| panic!("too much"));
        let root = world.process_at_rank(0);
        let (one, mut sum) = (1, 0);
        if root.is_self() {
            vrt::request::scope(|scope| {
                let request = root.immediate_reduce_into_root(scope, &one, &mut sum, &op);
                let error = request.try_wait().unwrap_err();
                let what = "user operation panicked on 1 element: too much";
                expect(&error, world, "immediate_reduce_into_root", ErrorClass::Other, what);
            });
        } else {
            root.reduce_into(&one, &op);
        }
        expect_usable(world);
    });
}

/// The call without `try_` panics with the text of the error.
#[test]
fn the_texts_are_the_same() {
    type Case = (fn(&SimpleCommunicator), fn(&SimpleCommunicator) -> Error);
    let cases: [Case; 5] = [
        (|world| _ = world.process_at_rank(1), |world| world.try_process_at_rank(1).unwrap_err()),
        (
            |world| world.this_process().send_with_tag(&1, -1),
            |world| world.this_process().try_send_with_tag(&1, -1).unwrap_err(),
        ),
        (
            |world| _ = world.this_process().receive::<u8>(),
            |world| world.this_process().try_receive::<u8>().unwrap_err(),
        ),
        (
            |world| world.all_gather_into(&1u8, &mut [0u8; 2]),
            |world| world.try_all_gather_into(&1u8, &mut [0u8; 2]).unwrap_err(),
        ),
        (
            |world| world.this_process().gather_into(&1),
            |world| world.this_process().try_gather_into(&1).unwrap_err(),
        ),
    ];
    for (panics, fails) in cases {
        vrt::run_local(1, |world| {
            (0..2).for_each(|_| world.this_process().buffered_send(&[1u8, 2]));
            let payload = catch_unwind(AssertUnwindSafe(|| panics(world))).unwrap_err();
            let error = fails(world);
            let text = error.to_string().replace(&error.location().to_string(), "HERE");
            let panicked = payload.downcast::<String>().unwrap();
            let file = error.location().file();
            let (before, after) = panicked.split_once(file).unwrap();
            // Behind the line and the column.
            let after = after.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit());
            let (ours, theirs) = text.split_once("HERE").unwrap();
            assert_eq!((before, after), (ours, theirs.trim_start_matches(':')));
        });
    }
}
