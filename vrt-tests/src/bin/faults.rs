//! Jobs that are slow for a known reason each, for `vrt-trace advise`.

use std::fs::File;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use vrt::traits::*;

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// What is wrong
    #[arg(value_enum)]
    fault: Fault,
    /// Steps of the job
    #[arg(long, default_value_t = 8)]
    steps: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Fault {
    /// Rank 0 has far more work than all others together
    Giant,
    /// Ranks do nothing but hand a number on
    Fine,
    /// Each rank talks to one that began on another PE
    Placement,
    /// Ranks with more work than others hold files, so that they cannot move
    Pinned,
    /// Rank 0 sends late what all others wait for
    Late,
    /// Nothing: regions, spans, messages, a collective operation
    Regions,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.fault == Fault::Regions {
        let subscriber = vrt::trace::OnRuntimeHeap(tracing_subscriber::registry());
        let subscriber = vrt::trace::SpansAsRegions::new(subscriber);
        if tracing::subscriber::set_global_default(subscriber).is_err() {
            return ExitCode::FAILURE;
        }
    }
    vrt::launch(arguments.vrt.clone(), move || run(&arguments))
}

/// So many times some tens of microseconds.
fn work(pieces: u32) {
    let mut x = black_box(1u64);
    for _ in 0..pieces * 5_000 {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

fn run(arguments: &Arguments) {
    let Some(universe) = vrt::initialize() else { unreachable!("main is a rank's program") };
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let mut held = None;
    for step in 0..arguments.steps {
        match arguments.fault {
            Fault::Giant => {
                work(if rank == 0 { 400 } else { 10 });
                world.barrier();
            }
            Fault::Fine => {
                for _ in 0..100 {
                    let to = world.process_at_rank((rank + 1) % size);
                    let from = world.process_at_rank((rank + size - 1) % size);
                    to.send(&step);
                    let _: (u32, _) = from.receive();
                }
            }
            Fault::Placement => {
                let partner = world.process_at_rank((rank + size / 2) % size);
                for _ in 0..20 {
                    work(2);
                    partner.send(&step);
                    let _: (u32, _) = partner.receive();
                }
            }
            Fault::Pinned => {
                if rank < size / 2 {
                    held = held.or_else(|| File::open("/proc/self/status").ok());
                }
                work(if rank < size / 2 { 40 } else { 4 });
                world.migrate(&mut ());
            }
            Fault::Late if rank == 0 => {
                vrt::sleep(Duration::from_millis(20));
                (1..size).for_each(|to| world.process_at_rank(to).send(&step));
            }
            Fault::Late => {
                let _: (u32, _) = world.process_at_rank(0).receive();
                work(4);
            }
            Fault::Regions => {
                let region = vrt::region("assemble");
                let span = tracing::info_span!("solve").entered();
                work(1);
                drop(span);
                drop(region);
                let mut sum = 0;
                world.all_reduce_into(&rank, &mut sum, vrt::collective::SystemOperation::sum());
            }
        }
    }
    drop(held);
}
