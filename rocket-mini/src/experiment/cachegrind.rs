//! Runs jobs on a simulated processor, valgrind's cachegrind, which counts instructions and cache misses: real
//! processors, and above all virtual ones, often do not let users read their counters.

use std::process::{Command, Stdio};

use super::ExperimentError;
use super::catalog::Job;
use super::run::Outcome;

/// The simulator.
pub(super) const PROGRAM: &str = "valgrind";

/// The counts: with [`run`], per step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    /// Instructions.
    pub instructions: f64,
    /// Data accesses that missed the first-level cache.
    pub first: f64,
    /// Data accesses that missed the second-level cache as well.
    pub second: f64,
}

/// Runs a job with more steps, and `shorter`, with fewer: the cost of a step is computed from the difference.
pub(super) fn run(job: &Job, shorter: &str) -> Result<Outcome, ExperimentError> {
    let (more, counts) = count(&job.arguments)?;
    let (fewer, before) = count(shorter)?;
    let steps = more - fewer;
    let each = |more: f64, fewer: f64| (more - fewer) / steps;
    let counts = Counts {
        instructions: each(counts.instructions, before.instructions),
        first: each(counts.first, before.first),
        second: each(counts.second, before.second),
    };
    Ok(Outcome { steps, counts: Some(counts), ..Outcome::default() })
}

/// The steps of a run, and the counts of all its processes.
fn count(line: &str) -> Result<(f64, Counts), ExperimentError> {
    let fail = |why: String| ExperimentError::Job { line: line.to_owned(), why };
    let program = std::env::current_exe().map_err(|it| fail(it.to_string()))?;
    let mut command = Command::new(PROGRAM);
    command.args(["--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"]);
    // Ways and lines as most processors have them.
    command.arg(format!("--LL={},16,64", second_level()));
    command.arg(program).args(line.split_whitespace()).args(["--no-verify", "--no-progress"]);
    let output = command.stdin(Stdio::null()).output().map_err(|it| fail(it.to_string()))?;
    let [report, counts] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    if !output.status.success() {
        return Err(fail(format!("{}: {}", output.status, counts.trim())));
    }
    let steps = Outcome::of(&report, "", "").map(|outcome| outcome.steps);
    let understood = steps.zip(Counts::of(&counts));
    understood.ok_or_else(|| fail(format!("its report is not understood:\n{report}{counts}")))
}

impl Counts {
    /// The sums of the simulator's reports over all processes.
    fn of(text: &str) -> Option<Self> {
        let sum = |name: &str| -> Option<f64> {
            let numbers = text.lines().filter_map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let at = words.windows(2).position(|pair| pair.join(" ") == name)?;
                words.get(at + 2)?.replace(',', "").parse::<f64>().ok()
            });
            numbers.reduce(|a, b| a + b)
        };
        Some(Self {
            instructions: sum("I refs:")?,
            first: sum("D1 misses:")?,
            second: sum("LLd misses:")?,
        })
    }
}

/// The size of this machine's second-level cache in bytes, rounded down to a power of two.
fn second_level() -> u64 {
    // What many processors have, where the system does not tell.
    const USUAL: u64 = 1 << 20;
    let size = vrt_cli::machine::second_level_cache();
    size.and_then(u64::checked_ilog2).map_or(USUAL, |log| 1 << log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_simulator_says_of_all_processes_is_added_up() {
        let text = "==7== I   refs:      2,935,145\n==7== I1  misses:        7,598\n\
                    ==7== D1  misses:        1,000  ( 800 rd   +  200 wr)\n\
                    ==7== LLd misses:          100  (  60 rd   +   40 wr)\n\
                    ==9== I   refs:            855\n==9== D1  misses:            1\n\
                    ==9== LLd misses:            2\n";
        let counts = Counts { instructions: 2_936_000.0, first: 1001.0, second: 102.0 };
        assert_eq!(Counts::of(text), Some(counts));
        assert_eq!(Counts::of("==7== I   refs: 7\n"), None);
    }

    #[test]
    fn the_second_cache_is_a_power_of_two() {
        assert!(second_level().is_power_of_two() && second_level() >= 1 << 15);
    }
}
