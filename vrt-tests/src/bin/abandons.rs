//! Local runs that end by a panic while a rank waits that has started threads.

use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use vrt::traits::*;

fn main() {
    let how = std::env::args().nth(1).unwrap_or_default();
    let mut data = vec![0u64; 64];
    let place = data.as_ptr();
    let caught = {
        let shared = Mutex::new(&mut data);
        let write_late = || {
            // Not before the panic has been told, which takes its time on a busy machine.
            thread::sleep(Duration::from_secs(10));
            shared.lock().unwrap_or_else(PoisonError::into_inner)[0] = 0xdead;
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            vrt::run_local(2, |world| {
                if world.rank() == 1 {
                    world.process_at_rank(0).receive::<u8>();
                    panic!("rank 1 is tired");
                }
                let waits = || {
                    world.process_at_rank(1).send(&1u8);
                    world.barrier();
                };
                match how.as_str() {
                    "scope" => thread::scope(|scope| {
                        scope.spawn(write_late);
                        waits();
                    }),
                    "crossbeam" => {
                        let scoped = crossbeam::scope(|scope| {
                            scope.spawn(|_| write_late());
                            waits();
                        });
                        assert!(scoped.is_ok());
                    }
                    "detached" => {
                        let begun = Arc::new(Barrier::new(2));
                        let at_begin = Arc::clone(&begun);
                        thread::spawn(move || {
                            at_begin.wait();
                            loop {
                                thread::park();
                            }
                        });
                        begun.wait();
                        waits();
                    }
                    how => eprintln!("{how} is unknown: scope, crossbeam, detached"),
                }
            });
        }))
    };
    drop(data);
    let again = vec![7u64; 64];
    println!("caught: {}, the same memory: {}", caught.is_err(), again.as_ptr() == place);
    thread::sleep(if how == "detached" { Duration::ZERO } else { Duration::from_secs(12) });
    assert!(again.iter().all(|word| *word == 7), "a thread has written to memory that it lost");
    println!("ok");
}
