//! Threads that are no rank's become the only rank of a world of their own.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use vrt::collective::SystemOperation;
use vrt::traits::*;

#[test]
fn all_calls_work_alone() {
    let universe = vrt::initialize().unwrap();
    let world = universe.world();
    assert_eq!((world.rank(), world.size()), (0, 1));
    let me = world.this_process();
    // Longer than what is sent before there is a receive.
    let long = vec![3u8; 1 << 20];
    vrt::request::scope(|scope| {
        let send = me.immediate_send(scope, &long[..]);
        assert_eq!(me.receive_vec::<u8>().0, long);
        send.wait();
    });
    let mut sum = [0; 3];
    world.all_reduce_into(&[1, 2, 3], &mut sum, SystemOperation::sum());
    assert_eq!(sum, [1, 2, 3]);
    let pair = world.duplicate();
    pair.barrier();
    assert_eq!(
        vrt::block_on(async {
            vrt::sleep_async(Duration::from_millis(1)).await;
            5
        }),
        5
    );
    assert_eq!(vrt::initialize().unwrap().world().size(), 1);
}

#[test]
fn threads_have_a_world_each() {
    let threads: Vec<_> = (0..8)
        .map(|n| {
            std::thread::spawn(move || {
                let world = vrt::initialize().unwrap().world();
                for round in 0..100 {
                    world.this_process().buffered_send(&(n * round));
                    assert_eq!(world.this_process().receive::<i32>().0, n * round);
                }
                vec![n; 1000]
            })
        })
        .collect();
    for (n, thread) in (0..).zip(threads) {
        // Allocated in the slot of a rank that has ended.
        assert_eq!(thread.join().unwrap(), vec![n; 1000]);
    }
}

/// The rank's thread waits for others as any thread does.
#[test]
fn it_waits_for_other_threads() {
    let _universe = vrt::initialize().unwrap();
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        assert!(vrt::initialize().is_some());
        std::thread::sleep(Duration::from_millis(20));
        sender.send(vec![1, 2, 3]).unwrap();
    });
    assert_eq!(receiver.recv().unwrap(), [1, 2, 3]);
    thread.join().unwrap();
    let began = Instant::now();
    std::thread::sleep(Duration::from_millis(5));
    assert!(began.elapsed() >= Duration::from_millis(5));
}

#[test]
#[should_panic(expected = "waits in receive")]
fn a_message_that_never_comes_is_a_deadlock() {
    let world = vrt::initialize().unwrap().world();
    world.this_process().receive::<i32>();
}

#[test]
fn a_panic_is_the_threads() {
    let thread = std::thread::spawn(|| {
        let world = vrt::initialize().unwrap().world();
        let caught = std::panic::catch_unwind(|| panic!("first"));
        assert!(caught.is_err());
        world.barrier();
        panic!("second");
    });
    let payload = thread.join().unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"second"));
}

/// A world of one is not a place for another run.
#[test]
#[should_panic(expected = "cannot run 2 ranks here")]
fn local_ranks_do_not_run_in_it() {
    let _universe = vrt::initialize().unwrap();
    vrt::run_local(2, |_| {});
}

/// After a deadlock the thread is no rank any more, and may become one again.
#[test]
fn a_world_can_be_made_again() {
    let caught = std::panic::catch_unwind(|| {
        vrt::initialize().unwrap().world().this_process().receive::<i32>();
    });
    assert!(caught.is_err());
    assert_eq!(vrt::initialize().unwrap().world().size(), 1);
    vrt::initialize().unwrap().world().barrier();
}
