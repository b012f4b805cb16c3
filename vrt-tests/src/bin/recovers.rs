//! A job whose ranks make mistakes that concern other PEs, hear of them as errors, and go on.

use std::process::ExitCode;

use clap::Parser;
use vrt::ErrorClass;
use vrt::collective::SystemOperation;
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    #[arg(long, default_value_t = 20)]
    rounds: i32,
}

/// Values of a message whose sender waits for its receive.
const LONG: usize = 64 << 10;

fn main() -> ExitCode {
    let Arguments { vrt, rounds } = Arguments::parse();
    vrt::launch(vrt, move || {
        let world = vrt::initialize().expect("in a rank").world();
        for round in 0..rounds {
            messages(&world, round);
            disagreements(&world, round);
            world.migrate(&mut 0u8);
        }
        if world.rank() == 0 {
            println!("right");
        }
    })
}

/// Each rank sends messages that its right neighbour has no room for, or takes for others.
fn messages(world: &SimpleCommunicator, round: i32) {
    let (me, n) = (world.rank(), world.size());
    let right = world.process_at_rank((me + 1) % n);
    let left = world.process_at_rank((me + n - 1) % n);
    for len in [2, LONG] {
        let values = vec![f64::from(me); len];
        let mut room = vec![0.0; len - 1];
        vrt::request::scope(|scope| {
            let sends = [0, 1, 2].map(|_| right.immediate_send(scope, &values[..]));
            let error = left.try_receive_into(&mut room[..]).expect_err("it is too long");
            assert_eq!(error.class(), ErrorClass::Truncate, "{error}");
            let error = left.try_receive::<i64>().expect_err("it is another type");
            assert_eq!(error.class(), ErrorClass::Type, "{error}");
            let error = left.try_receive_vec::<i64>().expect_err("it is another type");
            assert_eq!(error.class(), ErrorClass::Type, "{error}");
            for send in sends {
                send.wait();
            }
        });
        assert!(room.iter().all(|value| *value == f64::from(left.rank())));
        right.send(&round);
        assert_eq!(left.receive::<i32>().0, round);
    }
}

/// One rank means another operation than all others.
fn disagreements(world: &SimpleCommunicator, round: i32) {
    let (me, n) = (world.rank(), world.size());
    let len = if me == round % n { 2 } else { 1 };
    let op = if len == 2 { SystemOperation::max() } else { SystemOperation::sum() };
    let outcomes = [
        world.try_all_reduce_into(&1u32, &mut 0u32, op),
        world.try_all_gather_into(&vec![1; len], &mut vec![0; len * n as usize]),
        world.try_all_to_all_into(&vec![1; len * n as usize], &mut vec![0; len * n as usize]),
    ];
    for outcome in outcomes {
        let error = outcome.expect_err("ranks disagree");
        assert_eq!(error.class(), ErrorClass::Other, "{error}");
    }
    let mut sum = 0;
    world.all_reduce_into(&me, &mut sum, SystemOperation::sum());
    assert_eq!(sum, n * (n - 1) / 2);
    // Neither the root of a broadcast nor who contributes to a gather waits for others.
    let root = world.process_at_rank(0);
    let outcome = root.try_broadcast_into(&mut vec![me; len]);
    assert!(outcome.is_err() || me == 0 || round % n != 0 && len == 1, "{outcome:?}");
    let outcome = match root.is_self() {
        true => root.try_gather_into_root(&vec![1; len], &mut vec![0; len * n as usize]),
        false => root.try_gather_into(&vec![1; len]),
    };
    assert!(outcome.is_err() || !root.is_self());
    let mut numbers = vec![-1; n as usize];
    world.all_gather_into(&me, &mut numbers[..]);
    assert!(numbers.into_iter().eq(0..n));
}
