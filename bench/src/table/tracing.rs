//! The cost of being traceable, and of being traced.
//!
//! The same programs run alternately: built with `--cfg vrt_unobserved`, so that no place checks for an observer; built
//! as usual; and built as usual with `--trace`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Error;
use super::process::{output, run_program, show};
use crate::measure::median;

/// The greatest allowed costs, as ratios of times: of being traceable, and of being traced.
const MOST: [f64; 2] = [1.01, 1.05];

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
        full: "switch --pes 1 --ranks 2 --operations 100000 --repetitions 11",
        quick: "switch --pes 1 --ranks 2 --operations 20000 --repetitions 5",
    },
    Case {
        title: "8 B message inside a PE",
        program: Program::Bench,
        full: "pingpong --pes 1 --ranks 2 --bytes 8 --operations 50000 --repetitions 11",
        quick: "pingpong --pes 1 --ranks 2 --bytes 8 --operations 10000 --repetitions 5",
    },
    Case {
        title: "8 B message between PEs",
        program: Program::Bench,
        full: "pingpong --pes 2 --ranks 2 --bytes 8 --operations 20000 --repetitions 11",
        quick: "pingpong --pes 2 --ranks 2 --bytes 8 --operations 5000 --repetitions 5",
    },
    Case {
        title: "Jacobi 96^3, 32 ranks on 2 PEs",
        program: Program::Bench,
        full: "jacobi --pes 2 --ranks 32 --size 96 --iterations 1000",
        quick: "jacobi --pes 2 --ranks 32 --size 96 --iterations 200",
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
pub(super) fn run(programs: &Path, runs: u32, is_quick: bool) -> Result<(), Error> {
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
                let folder = if way == 0 { &unobserved } else { programs };
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
    let ratio = |a: &[f64], b: &[f64]| median(a.iter().zip(b).map(|(a, b)| a / b).collect());
    let show = |seconds: &[f64]| short(median(seconds.to_vec()));
    println!(
        "{title:<32} {:>11} {:>11} {:>11} {:>12.3} {:>9.3}",
        show(without),
        show(off),
        show(on),
        ratio(off, without),
        ratio(on, off)
    );
}

fn short(seconds: f64) -> String {
    match seconds {
        it if it < 1e-6 => format!("{:.1} ns", it * 1e9),
        it if it < 1e-3 => format!("{:.2} us", it * 1e6),
        it => format!("{:.2} ms", it * 1e3),
    }
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
            let shown = show(&command);
            let printed = output(&mut command)?;
            let time = printed.lines().find_map(|line| {
                let mut words = line.split_whitespace();
                words.find(|word| *word == "time")?;
                words.next()?.parse().ok()
            });
            time.ok_or(Error::Printed { command: shown, printed })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(short(12.34e-9), "12.3 ns");
        assert_eq!(short(1.5e-6), "1.50 us");
        assert_eq!(short(0.25), "250.00 ms");
    }
}
