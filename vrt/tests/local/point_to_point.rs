//! Point-to-point messages between ranks of one PE.

use vrt::traits::*;

/// A blocking send whose receive is posted already is done before the sender could wait for it;
/// it once waited for ever. Long messages and synchronous sends both wait for their receiver.
#[test]
fn a_blocking_send_into_a_posted_receive_returns() {
    for len in [0usize, 1, 24, 25, 4_000, 100_000, 3 << 20] {
        vrt::run_local(2, |world| {
            let other = world.process_at_rank(1 - world.rank());
            let mut buffer = vec![0u8; len];
            for round in 0..4u8 {
                if world.rank() == 0 {
                    let message = vec![round; len];
                    match round % 2 {
                        0 => other.send(&message),
                        _ => other.synchronous_send(&message),
                    }
                    other.receive_into(&mut buffer);
                } else {
                    other.receive_into(&mut buffer);
                    other.send(&buffer);
                }
                assert!(buffer.iter().all(|byte| *byte == round));
            }
        });
    }
}

#[test]
fn a_rank_sends_to_itself() {
    vrt::run_local(1, |world| {
        let me = world.this_process();
        me.send_with_tag(&5u32, 1);
        me.send_with_tag(&6u32, 2);
        assert_eq!(me.receive_with_tag::<u32>(2).0, 6);
        assert_eq!(me.receive_with_tag::<u32>(1).0, 5);
    });
}

#[test]
fn ten_thousand_unexpected_messages_are_found_by_tag() {
    vrt::run_local(2, |world| {
        let other = world.process_at_rank(1 - world.rank());
        if world.rank() == 0 {
            for tag in 0..10_000 {
                other.send_with_tag(&(tag as u64), tag);
            }
        }
        world.barrier();
        if world.rank() == 1 {
            for tag in (0..10_000).rev() {
                assert_eq!(other.receive_with_tag::<u64>(tag).0, tag as u64);
            }
        }
    });
}

#[test]
fn serde_values_travel() {
    vrt::run_local(2, |world| {
        let value = (world.rank(), vec!["a".to_owned(), "b".repeat(20_000)]);
        let next = world.process_at_rank(1 - world.rank());
        if world.rank() == 0 {
            next.send_value(&value).expect("it can be encoded");
        } else {
            let ((rank, texts), _) =
                next.receive_value::<(i32, Vec<String>)>().expect("what was sent");
            assert_eq!((rank, texts), (0, value.1));
        }
    });
}
