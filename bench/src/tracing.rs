//! The cost of being traceable, and of being traced.
//!
//! The same programs run alternately: built with `--cfg vrt_unobserved`, so that no place checks for an observer; built
//! as usual; and built as usual with `--trace`.

use std::path::{Path, PathBuf};
use std::process::Command;

use experiments::statistics::{median, ratios};
use vrt_cli::quantity;

use crate::Error;
use crate::process::{not_understood, own_directory, run_program, run_to_end};

/// The greatest allowed costs, as ratios of times: of being traceable, and of being traced.
const MOST: [f64; 2] = [1.01, 1.05];

/// Compare programs that cannot be traced with those that can, and with those that are being traced.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Runs of each program, alternately
    #[arg(long, value_name = "COUNT", default_value_t = 7, value_parser = vrt_cli::positive::<u32>)]
    pairs: u32,

    /// Three shorter runs: rough results
    #[arg(long, conflicts_with = "pairs")]
    quick: bool,
}

/// What is run.
struct Case {
    title: &'static str,
    program: Program,
    full: &'static str,
    quick: &'static str,
}

/// A program, and how it reports its time.
#[derive(Clone, Copy)]
enum Program {
    /// `vrt-bench`, by a line of JSON.
    Bench,
    /// `uts`, by a line that begins with `time`.
    Uts,
}

const CASES: [Case; 5] = [
    Case {
        title: "switch between two ranks",
        program: Program::Bench,
        full: "run switch --pes 1 --ranks 2 --operations 100000 --repetitions 11",
        quick: "run switch --pes 1 --ranks 2 --operations 20000 --repetitions 5",
    },
    Case {
        title: "8 B message inside a PE",
        program: Program::Bench,
        full: "run pingpong --pes 1 --ranks 2 --bytes 8 --operations 50000 --repetitions 11",
        quick: "run pingpong --pes 1 --ranks 2 --bytes 8 --operations 10000 --repetitions 5",
    },
    Case {
        title: "8 B message between PEs",
        program: Program::Bench,
        full: "run pingpong --pes 2 --ranks 2 --bytes 8 --operations 20000 --repetitions 11",
        quick: "run pingpong --pes 2 --ranks 2 --bytes 8 --operations 5000 --repetitions 5",
    },
    Case {
        title: "Jacobi 96^3, 32 ranks on 2 PEs",
        program: Program::Bench,
        full: "run jacobi --pes 2 --ranks 32 --size 96 --iterations 1000",
        quick: "run jacobi --pes 2 --ranks 32 --size 96 --iterations 200",
    },
    Case {
        title: "UTS T1L, 32 ranks on 2 PEs",
        program: Program::Uts,
        full: "--pes 2 --ranks 32 --tree T1L",
        quick: "--pes 2 --ranks 32 --tree T1",
    },
];

/// Seconds of each run of a case: without, off, on.
type Seconds = [Vec<f64>; 3];

/// Runs all cases this many times and prints the table.
///
/// # Errors
///
/// A program fails, or reports nothing.
pub fn run(args: &Args) -> Result<(), Error> {
    let (programs, is_quick) = (own_directory(), args.quick);
    let runs = if is_quick { 3 } else { args.pairs };
    let unobserved = programs.join("../unobserved/release");
    let trace = std::env::temp_dir().join(format!("vrt-bench-{}.trace", std::process::id()));
    println!("medians of {runs} runs each, in turn; the ratios are medians of those of the runs");
    println!(
        "{:<32} {:>11} {:>11} {:>11} {:>12} {:>9}",
        "", "without", "off", "on", "off/without", "on/off"
    );
    for case in &CASES {
        let mut seconds = Seconds::default();
        for _ in 0..runs {
            for (way, into) in seconds.iter_mut().enumerate() {
                let folder = if way == 0 { &unobserved } else { &programs };
                let trace = (way == 2).then_some(trace.as_path());
                let time = once(case, folder, trace, is_quick);
                let _ = std::fs::remove_file(trace.unwrap_or(Path::new("")));
                into.push(time?);
            }
        }
        print_row(case.title, &seconds);
    }
    println!("at most          {:>62.2} {:>9.2}", MOST[0], MOST[1]);
    Ok(())
}

fn print_row(title: &str, seconds: &Seconds) {
    let [without, off, on] = seconds;
    let ratio = |a: &[f64], b: &[f64]| median(&ratios(a, b));
    let show = |seconds: &[f64]| quantity::seconds(median(seconds));
    println!(
        "{title:<32} {:>11} {:>11} {:>11} {:>12.3} {:>9.3}",
        show(without),
        show(off),
        show(on),
        ratio(off, without),
        ratio(on, off)
    );
}

/// Runs a program once; returns its seconds.
fn once(case: &Case, folder: &Path, trace: Option<&Path>, is_quick: bool) -> Result<f64, Error> {
    let name = match case.program {
        Program::Bench => "vrt-bench",
        Program::Uts => "uts",
    };
    let program: PathBuf = folder.join(name);
    let mut command = Command::new(program);
    command.args(if is_quick { case.quick } else { case.full }.split(' '));
    if let Some(trace) = trace {
        command.arg("--trace").arg(trace).args(["--trace-limit", "4g"]);
    }
    match case.program {
        Program::Bench => Ok(run_program(command)?.seconds),
        Program::Uts => {
            let job = run_to_end(&mut command)?;
            let time = job.out.lines().find_map(|line| {
                let mut words = line.split_whitespace();
                words.find(|word| *word == "time")?;
                words.next()?.parse().ok()
            });
            time.ok_or_else(|| not_understood(job))
        }
    }
}
