//! Rank 1 computes, and looks now and then whether a message has come; rank 0 tells it beside the messages, by a
//! word in a window, that one is there. Then the next look has to find it.

use std::process::ExitCode;

use vrt::collective::SystemOperation;
use vrt::traits::*;

const ROUNDS: u32 = 2000;

#[vrt::main]
fn main() -> ExitCode {
    let Some(universe) = vrt::initialize() else { unreachable!("main is a rank's program") };
    let world = universe.world();
    let window = world.allocate_window(vec![0_u32]);
    window.lock_all();
    let other = world.process_at_rank(1 - world.rank());
    let mut missed = 0;
    for round in 1..=ROUNDS {
        if world.rank() == 0 {
            other.send(&round);
            window.flush_all();
            window.accumulate(1, 0, &[round], SystemOperation::replace());
            other.receive::<u32>();
        } else {
            let mut told = [0];
            while told[0] != round {
                work();
                window.get(1, 0, &mut told);
            }
            missed += u32::from(other.immediate_probe().is_none());
            assert_eq!(other.receive::<u32>().0, round);
            other.send(&round);
        }
    }
    window.unlock_all();
    if missed > 0 {
        eprintln!("{missed} of {ROUNDS} messages that were there were not seen by the next look");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Some microseconds without a call.
fn work() {
    let mut x = std::hint::black_box(1_u64);
    for _ in 0..1000 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    std::hint::black_box(x);
}
