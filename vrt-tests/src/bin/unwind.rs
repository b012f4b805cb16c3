//! A job in which a rank catches a panic that left a request behind, which cannot be withdrawn.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// What is left behind
    what: What,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// A send whose receiver has not come
    Send,
    /// A receive that was forgotten
    Forgotten,
}

fn main() -> ExitCode {
    let Arguments { vrt, what } = Arguments::parse();
    vrt::launch(vrt, move || run(what))
}

fn run(what: What) {
    let world = vrt::initialize().expect("in a rank").world();
    if world.rank() == 0 {
        let caught = catch_unwind(AssertUnwindSafe(|| leave_behind(&world, what)));
        println!("caught: {}", caught.is_err());
        world.process_at_rank(1).send(&1u8);
    } else {
        world.process_at_rank(0).receive::<u8>();
    }
}

fn leave_behind(world: &SimpleCommunicator, what: What) {
    let other = world.process_at_rank(1);
    let mut buffer = vec![0u64; 64];
    vrt::request::scope(|scope| match what {
        What::Send => {
            let _request = other.immediate_synchronous_send_with_tag(scope, &buffer[..], 5);
            panic!("with an open send");
        }
        What::Forgotten => {
            let request = other.immediate_receive_into_with_tag(scope, &mut buffer[..], 5);
            std::mem::forget(request);
            panic!("with a forgotten receive");
        }
    });
}
