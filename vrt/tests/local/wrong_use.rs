//! Wrong use is said with the rank, the call and the value.

use std::any::Any;
use std::borrow::Borrow;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

use vrt::collective::{SystemOperation, UserOperation};
use vrt::datatype::{Partition, PartitionMut};
use vrt::point_to_point::MatchedReceiveVec;
use vrt::topology::{Color, SimpleCommunicator};
use vrt::traits::*;
use vrt::window::LockKind;

#[derive(Clone, Copy, Debug, Default, Equivalence)]
struct Pair(u8, f64);

#[derive(Clone, Copy, Debug, Default, Equivalence)]
struct Two(u16, u16);

/// Runs ranks of which one panics; checks what it says.
#[track_caller]
fn fails(ranks: u32, words: &[&str], program: impl Fn(&SimpleCommunicator) + Sync) {
    let outcome = catch_unwind(AssertUnwindSafe(|| vrt::run_local(ranks, program)));
    let payload = outcome.expect_err("the wrong use was not noticed");
    let text = payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap();
    for word in words {
        assert!(text.contains(word), "{word:?} is missing in: {text}");
    }
}

#[test]
fn ranks_and_tags_out_of_range() {
    fails(2, &["rank 0", "wrong_use.rs", "rank 2 is out of range: 0 to 1"], |world| {
        world.process_at_rank(2);
    });
    fails(2, &["rank -1 is out of range"], |world| {
        world.process_at_rank(-1);
    });
    fails(1, &["rank 0", "wrong_use.rs", "tag -3 is out of range"], |world| {
        world.this_process().send_with_tag(&1, -3);
    });
    fails(1, &["tag -7 is out of range"], |world| {
        world.this_process().receive_with_tag::<i32>(-7);
    });
    let group = ["include: rank 5 is not in the group of 2 ranks"];
    fails(2, &group, |world| drop(world.group().include(&[5])));
    fails(2, &["rank 1 is given twice"], |world| drop(world.group().include(&[1, 1])));
}

#[test]
fn messages_that_do_not_fit() {
    let words = ["rank 0 in receive_into", "from rank 0 with tag 4 has 12 bytes", "only 8"];
    fails(1, &words, |world| {
        world.this_process().send_with_tag(&[1i32, 2, 3], 4);
        world.this_process().receive_into(&mut [0i32; 2]);
    });
    let words = ["rank 0 in receive", "has 16 bytes, the buffer only 8"];
    fails(1, &words, |world| {
        world.this_process().buffered_send(&[1.0, 2.0]);
        world.this_process().receive::<f64>();
    });
    fails(1, &["rank 0 in receive", "has 2 bytes, one value has 4"], |world| {
        world.this_process().buffered_send(&1u16);
        world.this_process().receive::<Two>();
    });
    fails(1, &["receive_vec", "6 bytes, no multiple of a value's 4"], |world| {
        world.this_process().buffered_send(&[1u16, 2, 3]);
        world.this_process().receive_vec::<Two>();
    });
}

#[test]
fn collective_operations_with_lengths_that_differ() {
    fails(3, &["all_gather_into", "the receive buffer has 8 bytes instead of 12"], |world| {
        world.all_gather_into(&1i32, &mut [0i32; 2]);
    });
    // Small ones, which PEs combine, and large ones.
    for large in [1, 5000] {
        fails(3, &["all_reduce_into", "wrong_use.rs", "bytes"], |world| {
            let len = large * if world.rank() == 1 { 2 } else { 1 };
            let mut sum = vec![0u64; len];
            world.all_reduce_into(&vec![1u64; len], &mut sum, SystemOperation::sum());
        });
        fails(2, &["broadcast_into", "wrong_use.rs", "bytes"], |world| {
            let mut data = vec![0u64; large + world.rank() as usize];
            world.process_at_rank(0).broadcast_into(&mut data);
        });
    }
    fails(2, &["gather_varcount_into_root", "rank 1 contributed 8 bytes", "expected 4"], |world| {
        let root = world.process_at_rank(0);
        if root.is_self() {
            let mut all = [0i32; 2];
            let mut parts = PartitionMut::new(&mut all, &[1, 1][..], &[0, 1][..]);
            root.gather_varcount_into_root(&1i32, &mut parts);
        } else {
            root.gather_varcount_into(&[1i32, 2]);
        }
    });
    fails(2, &["the send buffer has 3 parts, the communicator 2 ranks"], |world| {
        let (all, mut back) = ([0i32; 3], [0i32; 2]);
        let parts = Partition::new(&all, &[1, 1, 1][..], &[0, 1, 2][..]);
        let mut back = PartitionMut::new(&mut back, &[1, 1][..], &[0, 1][..]);
        world.all_to_all_varcount_into(&parts, &mut back);
    });
}

#[test]
fn collective_operations_that_differ() {
    fails(2, &["rank", "another rank calls another operation"], |world| {
        if world.rank() == 0 {
            world.all_reduce_into(&1u32, &mut 0u32, SystemOperation::sum());
        } else {
            world.all_reduce_into(&1u32, &mut 0u32, SystemOperation::max());
        }
    });
    fails(3, &["another rank calls another operation"], |world| {
        let root = if world.rank() == 1 { 1 } else { 0 };
        world.process_at_rank(root).broadcast_into(&mut 5u8);
    });
    fails(2, &["gather_into", "for all ranks but the root", "rank 0 called it"], |world| {
        world.process_at_rank(0).gather_into(&1);
    });
}

#[test]
fn reductions_that_are_not_defined() {
    fails(1, &["all_reduce_into", "BitwiseAnd is not defined for F64"], |world| {
        world.all_reduce_into(&1.0, &mut 0.0, SystemOperation::bitwise_and());
    });
    fails(1, &["Sum is defined for built-in types only", "user operation"], |world| {
        let (one, mut sum) = (Pair(1, 1.0), Pair::default());
        world.all_reduce_into(&one, &mut sum, SystemOperation::sum());
    });
    fails(1, &["Sum is not defined for Bool"], |world| {
        world.all_reduce_into(&true, &mut false, SystemOperation::sum());
    });
}

#[test]
fn results_that_do_not_fit() {
    fails(2, &["the result 400 does not fit an element of the receive buffer"], |world| {
        world.all_reduce_into(&200u64, &mut 0u8, SystemOperation::sum());
    });
    fails(2, &["scan_into", "the receive buffer has 8 bytes instead of 16"], |world| {
        world.scan_into(&[1.0, 2.0], &mut [0.0], SystemOperation::sum());
    });
}

#[test]
fn a_user_operation_that_panics_is_named() {
    let words =
        ["all_reduce_into", "wrong_use.rs", "user operation panicked on 1 element", "too much"];
    fails(2, &words, |world| {
        let op = UserOperation::commutative(|_, _| panic!("too much"));
        world.all_reduce_into(&1, &mut 0, &op);
    });
}

#[test]
fn requests_that_are_not_completed() {
    fails(1, &["the request of immediate_receive_into", "dropped without being completed"], |w| {
        let mut value = 0;
        vrt::request::scope(|scope| {
            drop(w.this_process().immediate_receive_into(scope, &mut value));
        });
    });
    fails(1, &["start at", "a persistent request that runs: persistent_receive_into"], |world| {
        let mut value = 0;
        let mut request = world.this_process().persistent_receive_into(&mut value);
        request.start();
        request.start();
    });
}

#[test]
fn windows_used_wrongly() {
    fails(2, &["rank", "in put", "2 values from 3 on, not inside the window of rank 1"], |w| {
        let window = w.allocate_window(vec![0u32; 4]);
        window.fence();
        window.put(1, 3, &[1, 2]);
    });
    fails(1, &["in get", "the memory of rank 0 is accessed outside of an epoch for it"], |world| {
        let window = world.allocate_window(vec![0u32; 4]);
        window.get(0, 0, &mut [0; 1]);
    });
    fails(1, &["in get", "rank 4 is out of range"], |world| {
        let window = world.allocate_window(vec![0u32; 4]);
        window.fence();
        window.get(4, 0, &mut [0; 1]);
    });
    fails(1, &["in flush", "this epoch does not allow it: Fenced"], |world| {
        let window = world.allocate_window(vec![0u32; 4]);
        window.fence();
        window.flush(0);
    });
    fails(
        2,
        &["in flush", "the memory of rank 0 is accessed outside of an epoch for it"],
        |world| {
            let window = world.allocate_window(vec![0u32; 4]);
            window.lock(LockKind::Shared, 1);
            window.flush(0);
        },
    );
    fails(1, &["in flush_all", "this epoch does not allow it: None"], |world| {
        world.allocate_window(vec![0u32; 4]).flush_all();
    });
    fails(1, &["in unlock", "rank 0 is not locked"], |world| {
        world.allocate_window(vec![0u32; 4]).unlock(0);
    });
    fails(1, &["in accumulate", "Sum is not defined for", "Pair"], |world| {
        let window = world.allocate_window(vec![Pair::default()]);
        window.fence();
        window.accumulate(0, 0, &[Pair(1, 1.0)], SystemOperation::sum());
    });
}

#[test]
fn topologies_that_cannot_be() {
    fails(4, &["create_cartesian_communicator", "[3, 2] does not fit 4 ranks"], |world| {
        world.create_cartesian_communicator(&[3, 2], &[false, false], false);
    });
    fails(4, &["create_cartesian_communicator", "[65536, 65536] does not fit 4 ranks"], |world| {
        world.create_cartesian_communicator(&[65536, 65536], &[false, false], false);
    });
    fails(4, &["coordinates [2, 0] are not in a grid of [2, 2]"], |world| {
        let grid = world.create_cartesian_communicator(&[2, 2], &[false, true], false).unwrap();
        grid.coordinates_to_rank(&[2, 0]);
    });
    fails(2, &["neighbor_all_gather_into", "no grid and no graph"], |world| {
        world.neighbor_all_gather_into(&1, &mut [0; 2]);
    });
    fails(2, &["neighbour 9 is out of range"], |world| {
        world.create_distributed_graph_adjacent(&[9], &[], false);
    });
    fails(2, &["a color of -2"], |world| {
        world.split_by_color(Color::with_value(-2));
    });
    fails(3, &["split_by_subgroup_collective", "is not in the communicator"], |world| {
        let part = world.split_by_color(Color::with_value(world.rank())).unwrap();
        part.split_by_subgroup_collective(&world.group());
    });
}

/// Numbers that no rank and no dimension can have, as large as they can be.
#[test]
fn numbers_out_of_range() {
    let grid = |dims: &'static [i32]| {
        move |world: &SimpleCommunicator| {
            world.cartesian_map(dims, &vec![false; dims.len()]);
        }
    };
    fails(2, &["cartesian_map", "-1"], grid(&[-1, -2]));
    fails(2, &["cartesian_map", "65536"], grid(&[65536; 4]));
    fails(1, &["pack_size", "-1"], |world| {
        world.pack_size(-1, &f64::equivalent_datatype());
    });
    fails(2, &["the index of a graph does not increase", "[-1, 1]"], |world| {
        world.create_graph_communicator(&[-1, 1], &[1], false);
    });
    for range in [(0, i32::MAX, i32::MAX), (0, i32::MAX, 1), (1, i32::MIN, -1)] {
        fails(2, &["is not in the group of 2 ranks"], move |world| {
            drop(world.group().include_ranges(&[range]));
        });
    }
}

/// Counts that are other ones when they are asked for again.
struct Changing(Cell<bool>);

impl Borrow<[i32]> for Changing {
    fn borrow(&self) -> &[i32] {
        if self.0.replace(true) { &[64] } else { &[1] }
    }
}

#[test]
fn parts_are_those_that_were_checked() {
    vrt::run_local(1, |world| {
        let root = world.this_process();
        let mut came = [0u8; 64];
        let parts = Partition::new(&[7u8], Changing(Cell::new(false)), [0]);
        assert_eq!((parts.counts(), parts.counts()), (&[1][..], &[1][..]));
        root.scatter_varcount_into_root(&parts, &mut came[..1]);
        let mut room = [0u8];
        let mut parts = PartitionMut::new(&mut room, Changing(Cell::new(false)), [0]);
        root.gather_varcount_into_root(&[8u8], &mut parts);
        assert_eq!((came[0], room), (7, [8]));
    });
}

#[test]
fn a_deadlock_in_a_collective_operation_shows_who_waits() {
    fails(2, &["all ranks wait for each other", "rank 1", "waits in barrier"], |world| {
        if world.rank() == 1 {
            world.barrier();
        }
    });
}

#[test]
fn a_deadlock_is_seen_after_the_last_waker_was_dropped_without_a_word() {
    fails(2, &["all ranks wait for each other", "rank 1"], |world| {
        if world.rank() == 1 {
            vrt::block_on(std::future::poll_fn(|context| {
                let waker = context.waker().clone();
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(100));
                    drop(waker);
                });
                Poll::<()>::Pending
            }));
        }
    });
}

#[test]
fn wakers_of_a_rank_that_has_ended_hide_no_deadlock() {
    fails(2, &["all ranks wait for each other", "rank 1", "waits in barrier"], |world| {
        if world.rank() == 1 {
            return world.barrier();
        }
        vrt::block_on(std::future::poll_fn(|context| {
            std::mem::forget(context.waker().clone());
            Poll::Ready(())
        }));
    });
}

#[test]
fn sparse_exchanges_that_cannot_be() {
    let words = ["rank 1 in sparse_exchange", "wrong_use.rs", "target 2 is out of range: 0 to 1"];
    fails(2, &words, |world| {
        world.sparse_exchange(&[(if world.rank() == 1 { 2 } else { 0 }, [1u8])]);
    });
    fails(2, &["target -1 is out of range"], |world| {
        world.sparse_exchange::<u8, [u8; 0]>(&[(-1, [])]);
    });
    for protocol in vrt::exchange::Protocol::all() {
        fails(2, &["the message from rank 0 has 5 bytes, no multiple"], |world| {
            if world.rank() == 0 {
                world.sparse_exchange_by(protocol, &[(1, [0u8; 5])]);
            } else {
                world.sparse_exchange_by::<u32, [u32; 0]>(protocol, &[]);
            }
        });
    }
}

/// What rank 0 has begun and left in a static of its thread, rank 1 goes on with, which has begun
/// something of the same number.
#[track_caller]
fn fails_for_another<T: 'static>(
    words: &[&str],
    begin: impl Fn(&SimpleCommunicator) -> T + Sync,
    go_on: impl Fn(T) + Sync,
) {
    thread_local! {
        static LEFT: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
    }
    fails(2, &[&["rank 1 goes on with what rank 0 has begun"], words].concat(), |world| {
        let other = world.process_at_rank(1 - world.rank());
        world.this_process().buffered_send_with_tag(&[7u64; 3], 8);
        if world.rank() == 0 {
            LEFT.set(Some(Box::new(begin(world))));
            other.send_with_tag(&1u64, 9);
            // Not over before the other one has gone on.
            other.receive_with_tag::<u8>(10);
        } else {
            let mut buffer = 0u64;
            vrt::request::scope(|scope| {
                let own = other.immediate_receive_into_with_tag(scope, &mut buffer, 9);
                let message = world.this_process().matched_probe_with_tag(8);
                let left = LEFT.take().unwrap().downcast::<T>().unwrap();
                go_on(*left);
                own.wait();
                drop(message.matched_receive_vec::<u64>());
            });
        }
    });
}

/// A rank took another one's request of the same number for its own: it read a value that had not
/// come, and freed what the other's message was then written to.
#[test]
fn a_request_of_another_rank() {
    let begin =
        |world: &SimpleCommunicator| world.process_at_rank(1).immediate_receive_with_tag::<u64>(9);
    fails_for_another(&["its immediate_receive at", "wrong_use.rs"], begin, |left| {
        left.get();
    });
    fails_for_another(&["its immediate_receive at"], begin, |left| drop(left.r#try()));
}

#[test]
fn a_message_that_another_rank_has_probed() {
    let begin = |world: &SimpleCommunicator| world.this_process().matched_probe_with_tag(8);
    fails_for_another(&["matched_receive_vec"], begin, |left| {
        drop(left.matched_receive_vec::<u64>());
    });
    fails_for_another(&["matched_receive_into"], begin, |(left, _)| {
        left.matched_receive_into(&mut [0u64; 3]);
    });
}

/// The length was taken from the status, which need not be that of the message: the vector had
/// values that had never been written.
#[test]
fn the_status_of_another_message() {
    vrt::run_local(1, |world| {
        let me = world.this_process();
        me.buffered_send_with_tag(&[1u8; 2], 1);
        me.buffered_send_with_tag(&[2u8; 1000], 2);
        let (short, of_short) = me.matched_probe_with_tag(1);
        let (long, of_long) = me.matched_probe_with_tag(2);
        assert_eq!((short, of_long).matched_receive_vec::<u8>().0, [1; 2]);
        assert_eq!((long, of_short).matched_receive_vec::<u8>().0, [2; 1000]);
    });
}
