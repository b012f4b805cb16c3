//! Ranks that compute all the time: who is where, as the load of the machine changes?
//!
//! Every rank works in pieces of about a millisecond. Rank 0 prints, at equal intervals, how many
//! ranks each PE has. With `--disturb CORE` the program starts no ranks, but keeps one core busy.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use vrt::traits::*;

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// Seconds to work
    #[arg(long, default_value_t = 8.0)]
    seconds: f64,
    /// Milliseconds between two reports
    #[arg(long, default_value_t = 250)]
    report: u64,
    /// Keep this core busy instead
    #[arg(long, value_name = "CORE")]
    disturb: Option<usize>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = arguments.vrt.clone();
    match arguments.disturb {
        Some(core) => disturb(core, arguments.seconds),
        None => vrt::launch(config, move || busy_ranks(&arguments)),
    }
}

/// About a millisecond of work.
fn work() {
    let mut x = black_box(1u64);
    for _ in 0..1_000_000 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    black_box(x);
}

fn busy_ranks(arguments: &Arguments) {
    let Some(universe) = vrt::initialize() else { unreachable!("main is a rank's program") };
    let world = universe.world();
    let began = vrt::time();
    let mut reports = 0;
    let mut pes = vec![0u32; world.size() as usize];
    loop {
        work();
        let (pe, now) = (vrt::statistics().pe, vrt::time() - began);
        world.all_gather_into(&pe, &mut pes[..]);
        if world.rank() == 0 && now * 1e3 > (arguments.report * (reports + 1)) as f64 {
            reports += 1;
            let on = |pe| pes.iter().filter(|at| **at == pe).count().to_string();
            let counts: Vec<String> = (0..arguments.vrt.pes()).map(on).collect();
            println!("{now:.2} s: {}", counts.join(" "));
        }
        let mut over = now > arguments.seconds;
        world.process_at_rank(0).broadcast_into(&mut over);
        if over {
            return;
        }
    }
}

fn disturb(core: usize, seconds: f64) -> ExitCode {
    // SAFETY: plain system calls with a set of our own.
    let bound = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if bound != 0 {
        eprintln!("cannot run on core {core}: {}", std::io::Error::last_os_error());
        return ExitCode::FAILURE;
    }
    let began = Instant::now();
    while began.elapsed().as_secs_f64() < seconds {
        work();
    }
    ExitCode::SUCCESS
}
