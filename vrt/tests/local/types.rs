//! A message, a contribution and a window have one type at both ends.

use std::panic::{AssertUnwindSafe, catch_unwind};

use vrt::collective::NeighborCollectives;
use vrt::collective::{SystemOperation, UserOperation, reduce_local_into};
use vrt::datatype::{DynBuffer, DynBufferMut, Partition, PartitionMut, UserDatatype, View};
use vrt::point_to_point as p2p;
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

#[derive(Clone, Copy, Debug, Default, Equivalence, PartialEq)]
struct Pair {
    number: u32,
    value: f64,
}

/// The same fields elsewhere in memory.
#[derive(Clone, Copy, Debug, Default, Equivalence, PartialEq)]
#[repr(C)]
struct Nested {
    inner: (u32, f64),
    again: Pair,
}

#[derive(Clone, Copy, Debug, Default, Equivalence, PartialEq)]
struct Swapped {
    value: f64,
    number: u32,
}

/// Runs ranks of which one panics; checks what it says.
#[track_caller]
fn fails(ranks: u32, words: &[&str], program: impl Fn(&SimpleCommunicator) + Sync) {
    let outcome = catch_unwind(AssertUnwindSafe(|| vrt::run_local(ranks, program)));
    let payload = outcome.expect_err("the mismatch was not noticed");
    let text = payload.downcast_ref::<String>().cloned().unwrap_or_default();
    for word in words {
        assert!(text.contains(word), "{word:?} is missing in: {text}");
    }
}

const U8_AS_BOOL: [&str; 4] = ["rank 0 in", "types.rs", "was sent as u8", "is received as bool"];

/// A way to receive bools from a rank.
type Receive = fn(&SimpleCommunicator, i32);

const RECEIVES: [(&str, Receive); 11] = [
    ("receive", |world, from| {
        world.process_at_rank(from).receive::<bool>();
    }),
    ("receive_into", |world, from| {
        world.process_at_rank(from).receive_into(&mut vec![false; LONG]);
    }),
    ("receive_vec", |world, from| drop(world.process_at_rank(from).receive_vec::<bool>())),
    ("matched_receive", |world, from| {
        world.process_at_rank(from).matched_probe().0.matched_receive::<bool>();
    }),
    ("matched_receive_vec", |world, from| {
        world.process_at_rank(from).matched_probe().matched_receive_vec::<bool>();
    }),
    ("matched_receive_into", |world, from| {
        let (message, _) = world.process_at_rank(from).matched_probe();
        message.matched_receive_into(&mut vec![false; LONG]);
    }),
    ("immediate_receive_into", |world, from| {
        // Leaked, because the receive ends in a panic.
        let flags = vec![false; LONG].leak();
        let scope = vrt::request::StaticScope;
        world.process_at_rank(from).immediate_receive_into(scope, flags).wait();
    }),
    ("immediate_receive", |world, from| {
        world.process_at_rank(from).immediate_receive::<bool>().get();
    }),
    ("persistent_receive_into", |world, from| {
        let mut flags = vec![false; LONG];
        let mut receive = world.process_at_rank(from).persistent_receive_into(&mut flags[..]);
        receive.start();
        receive.wait();
    }),
    ("send_receive_into", |world, from| {
        let to = world.this_process();
        p2p::send_receive_into_with_tags(
            &7u64,
            &to,
            9,
            &mut vec![false; LONG],
            &world.process_at_rank(from),
            0,
        );
    }),
    ("receive_into_async", |world, from| {
        let mut flags = vec![false; LONG];
        vrt::block_on(world.process_at_rank(from).receive_into_async(&mut flags[..]));
    }),
];

const LONG: usize = 300_000;

#[test]
fn a_message_is_received_as_what_was_sent() {
    for (call, receive) in RECEIVES {
        let words: Vec<&str> = U8_AS_BOOL.iter().copied().chain([call]).collect();
        for len in [1, 100, LONG] {
            // The message is there before its receive.
            fails(1, &words, |world| {
                world.this_process().buffered_send(&vec![3u8; len][..]);
                receive(world, 0);
            });
            // The receive is there before the message, where it does not look for it first.
            fails(2, &words, |world| {
                if world.rank() == 0 {
                    receive(world, 1);
                } else {
                    world.process_at_rank(0).send(&vec![3u8; len][..]);
                }
            });
        }
    }
}

#[test]
fn every_way_to_send_says_the_type() {
    type Send = fn(&SimpleCommunicator);
    let sends: [Send; 6] = [
        |world| world.process_at_rank(0).send(&1.0f64),
        |world| world.process_at_rank(0).synchronous_send(&1.0f64),
        |world| world.process_at_rank(0).buffered_send(&1.0f64),
        // SAFETY: nothing bad happens here if there is no receive yet.
        |world| unsafe { world.process_at_rank(0).ready_send(&1.0f64) },
        |world| {
            let mut value = 1.0f64;
            let mut send = world.process_at_rank(0).persistent_send(&mut value);
            send.start();
            send.wait();
        },
        |world| vrt::block_on(world.process_at_rank(0).send_async(&1.0f64)),
    ];
    for send in sends {
        let words = ["rank 0 in receive", "rank 1 with tag 0, 8 bytes", "sent as f64", "as u64"];
        fails(2, &words, |world| {
            if world.rank() == 1 {
                send(world);
            } else {
                world.process_at_rank(1).receive::<u64>();
            }
        });
    }
}

#[test]
fn a_caught_mismatch_leaves_the_buffer_alone() {
    vrt::run_local(1, |world| {
        let me = world.this_process();
        let mut flags = [true; 4];
        me.buffered_send(&[9u8; 4][..]);
        let caught = catch_unwind(AssertUnwindSafe(|| me.receive_into(&mut flags[..])));
        assert!(caught.is_err(), "u8 was received as bool");
        assert_eq!(flags, [true; 4]);
    });
}

#[test]
fn equal_elements_are_received_however_they_lie() {
    vrt::run_local(1, |world| {
        let me = world.this_process();
        let pairs = [Pair { number: 1, value: 0.5 }, Pair { number: 2, value: 1.5 }];
        me.buffered_send(&pairs[..]);
        assert_eq!(me.receive::<Nested>().0, Nested { inner: (1, 0.5), again: pairs[1] });
        me.buffered_send(&Nested { inner: (1, 0.5), again: pairs[1] });
        assert_eq!(me.receive_vec::<Pair>().0, pairs);
        // An array as its elements, every second element as all of them, nothing as anything.
        me.buffered_send(&[1u16, 2, 3, 4]);
        assert_eq!(me.receive_vec::<u16>().0, [1, 2, 3, 4]);
        let numbers = [1i64, 2, 3, 4];
        let every_second = UserDatatype::vector(2, 1, 2, &i64::equivalent_datatype());
        // SAFETY: the element lies in the numbers.
        me.buffered_send(&unsafe { View::with_count_and_datatype(&numbers[..], 1, &every_second) });
        assert_eq!(me.receive_vec::<i64>().0, [1, 3]);
        me.buffered_send(&[0f32; 0]);
        assert!(me.receive_vec::<bool>().0.is_empty());
        me.buffered_send(&7usize);
        assert_eq!(me.receive::<u64>().0, 7);
    });
}

#[test]
fn structures_of_other_fields_are_refused() {
    let words = ["sent as {u32, f64}", "received as {f64, u32}"];
    fails(1, &words, |world| {
        world.this_process().buffered_send(&Pair::default());
        world.this_process().receive::<Swapped>();
    });
    fails(1, &["sent as {u32, f64}", "received as u8"], |world| {
        world.this_process().buffered_send(&Pair::default());
        world.this_process().receive_vec::<u8>();
    });
}

#[test]
fn values_are_no_bytes_and_bytes_no_values() {
    fails(1, &["sent as a serde value", "received as u8"], |world| {
        world.this_process().send_value("text").unwrap();
        world.this_process().receive_vec::<u8>();
    });
    vrt::run_local(1, |world| {
        let me = world.this_process();
        me.buffered_send(&[1u8, 0, 0, 0][..]);
        let error = me.receive_value::<u32>().unwrap_err().to_string();
        assert!(error.contains("u32") && error.contains("4 bytes, was sent as u8"), "{error}");
        // The message is gone.
        assert!(me.immediate_probe().is_none());
        me.send_value(&5u32).unwrap();
        assert_eq!(me.receive_value::<u32>().unwrap().0, 5);
    });
}

/// A collective operation in which the odd ranks take numbers for bools.
type Collective = fn(&SimpleCommunicator, bool, usize);

macro_rules! either {
    ($odd:ident, |$value:ident| $call:expr) => {
        if $odd {
            let $value = true;
            $call
        } else {
            let $value = 1u8;
            $call
        }
    };
}

#[test]
fn contributions_have_one_type() {
    let collectives: [(&str, Collective); 9] = [
        ("broadcast_into", |world, odd, n| {
            either!(odd, |x| world.process_at_rank(0).broadcast_into(&mut vec![x; n][..]));
        }),
        ("gather_into", |world, odd, n| {
            let root = world.process_at_rank(0);
            if world.rank() == 0 {
                root.gather_into_root(&vec![1u8; n][..], &mut vec![0u8; n * 2][..]);
            } else {
                either!(odd, |x| root.gather_into(&vec![x; n][..]));
            }
            world.barrier();
        }),
        ("scatter_into", |world, odd, n| {
            let root = world.process_at_rank(0);
            if world.rank() == 0 {
                root.scatter_into_root(&vec![1u8; n * 2][..], &mut vec![0u8; n][..]);
            } else {
                either!(odd, |x| root.scatter_into(&mut vec![x; n][..]));
            }
        }),
        ("all_gather_into", |world, odd, n| {
            either!(odd, |x| world.all_gather_into(&vec![x; n][..], &mut vec![x; n * 2][..]));
        }),
        ("all_to_all_into", |world, odd, n| {
            either!(odd, |x| world.all_to_all_into(&vec![x; n * 2][..], &mut vec![x; n * 2][..]));
        }),
        ("all_gather_varcount_into", |world, odd, n| {
            let (counts, at) = (vec![n as i32; 2], vec![0, n as i32]);
            either!(odd, |x| {
                let mut all = vec![x; n * 2];
                let mut all = PartitionMut::new(&mut all[..], counts, at);
                world.all_gather_varcount_into(&vec![x; n][..], &mut all);
            });
        }),
        ("all_to_all_varcount_into", |world, odd, n| {
            let (counts, at) = (vec![n as i32; 2], vec![0, n as i32]);
            either!(odd, |x| {
                let (from, mut to) = (vec![x; n * 2], vec![x; n * 2]);
                let from = Partition::new(&from[..], counts.clone(), at.clone());
                let mut to = PartitionMut::new(&mut to[..], counts, at);
                world.all_to_all_varcount_into(&from, &mut to);
            });
        }),
        ("all_reduce_into", |world, odd, n| {
            let op = SystemOperation::max();
            if odd {
                world.all_reduce_into(&vec![1i8; n][..], &mut vec![1i8; n][..], op);
            } else {
                world.all_reduce_into(&vec![1u8; n][..], &mut vec![1u8; n][..], op);
            }
        }),
        ("scan_into", |world, odd, n| {
            let op = UserOperation::commutative(|_, _| {});
            either!(odd, |x| world.scan_into(&vec![x; n][..], &mut vec![x; n][..], &op));
        }),
    ];
    for (call, collective) in collectives {
        for n in [2, 100_000] {
            fails(2, &["types.rs", call, "u8"], |world| {
                collective(world, world.rank() == 1, n);
                world.barrier();
            });
        }
    }
}

#[test]
fn neighbours_and_partners_of_an_exchange_have_one_type() {
    fails(2, &["neighbor_all_gather_into", "2 bytes of", "is expected"], |world| {
        let ring = world.create_cartesian_communicator(&[2], &[true], false).unwrap();
        let odd = world.rank() == 1;
        either!(odd, |x| {
            ring.neighbor_all_gather_into(&[x; 2], &mut [x; 4]);
        });
    });
    use vrt::exchange::Protocol::{Auto, Nbx, NbxByNode, Pcx, Pex, Rsx};
    for protocol in [Auto, Nbx, NbxByNode, Pcx, Pex, Rsx] {
        fails(2, &["sparse_exchange_by", "types.rs", "bool", "u8"], |world| {
            let to = 1 - world.rank();
            if world.rank() == 1 {
                world.sparse_exchange_by(protocol, &[(to, vec![true; 2])]);
            } else {
                world.sparse_exchange_by(protocol, &[(to, vec![1u8; 2])]);
            }
            world.barrier();
        });
    }
}

#[test]
fn both_buffers_of_a_call_have_one_type() {
    let words = ["rank 0 in all_gather_into", "type u8", "type bool"];
    fails(1, &words, |world| world.all_gather_into(&[1u8; 4], &mut [false; 4]));
    let words = ["rank 0 in all_reduce_into", "type u8", "type bool"];
    let max = SystemOperation::max;
    fails(1, &words, |world| world.all_reduce_into(&[5u8; 4], &mut [false; 4], max()));
    fails(1, &["reduce_local_into", "type u8", "type bool"], |_| {
        reduce_local_into(&[5u8], &mut [false], max());
    });
    fails(1, &["all_to_all_buffers_into", "type u8", "type bool"], |world| {
        let mut flags = [false];
        world.all_to_all_buffers_into(
            &[DynBuffer::new(&[5u8])],
            &mut [DynBufferMut::new(&mut flags)],
        );
    });
    // Integers of another kind are converted, as ever.
    vrt::run_local(2, |world| {
        let mut sum = 0i64;
        world.all_reduce_into(&3u32, &mut sum, SystemOperation::sum());
        assert_eq!(sum, 6);
    });
}

#[test]
fn windows_have_one_type() {
    let words = ["in allocate_window", "types.rs", "bytes each) here, but", "on rank"];
    fails(2, &words, |world| {
        if world.rank() == 0 {
            drop(world.allocate_window(vec![9u8; 8]));
        } else {
            drop(world.allocate_window(vec![5u64; 8]));
        }
    });
    fails(2, &["in create_window", "u8", "bool"], |world| {
        if world.rank() == 0 {
            drop(world.create_window(&mut [9u8; 8]));
        } else {
            drop(world.create_window(&mut [false; 8]));
        }
    });
}

#[test]
fn a_forgotten_window_keeps_what_others_access() {
    vrt::run_local(2, |world| {
        let mut borrowed = vec![0u64; 64].into_boxed_slice();
        let window = world.create_window(&mut borrowed[..]);
        window.fence();
        if world.rank() == 0 {
            std::mem::forget(window);
            drop(borrowed);
            let mine = vec![7u64; 64];
            world.process_at_rank(1).send(&1u8);
            world.process_at_rank(1).receive::<u8>();
            assert!(mine.iter().all(|value| *value == 7), "overwritten: {mine:?}");
        } else {
            world.process_at_rank(0).receive::<u8>();
            window.put(0, 0, &[0xdead_beef; 64]);
            world.process_at_rank(0).send(&1u8);
            std::mem::forget(window);
        }
    });
}

#[test]
fn a_window_may_begin_as_values_of_a_static() {
    static OUTSIDE: std::sync::Mutex<[u8; 2]> = std::sync::Mutex::new([0; 2]);
    vrt::run_local(1, |world| {
        let mut memory = OUTSIDE.lock().unwrap();
        let window = world.create_window(&mut memory[..]);
        window.store(1, 5);
    });
    assert_eq!(*OUTSIDE.lock().unwrap(), [0, 5]);
}

#[test]
fn a_window_gives_its_values_back() {
    vrt::run_local(2, |world| {
        let mut values = [1u32, 2];
        let other = 1 - world.rank();
        {
            let window = world.create_window(&mut values);
            window.fence();
            window.put(other, 1, &[10 + other as u32]);
            window.last_fence();
        }
        assert_eq!(values, [1, 10 + world.rank() as u32]);
    });
}
