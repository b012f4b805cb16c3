//! What is measured, and by which program.

use std::process::Command;
use std::time::Duration;

use vrt_cli::job::Balanced;

use crate::Error;
use crate::process::{run_with_output, vrt_bench};
use crate::programs::Aspect;

/// The approximate number of operations of single ranks in a repetition.
const OPERATIONS: u32 = 300_000;
/// The same for balancing steps, which take longer.
const OFFERS: u32 = 60_000;
/// Ranks that do nothing have loads that are noise: only large imbalances cause moves.
const BALANCING: [&str; 4] = ["--lb", "greedy-refine", "--lb-arg", "tolerance=0.5"];
/// The time limit of a run of many ranks, also on slow machines.
const TIME_LIMIT: Duration = Duration::from_secs(600);

impl Aspect {
    /// Its name for `vrt-bench run many`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Switch => "switch",
            Self::Barrier => "barrier",
            Self::Allreduce => "allreduce",
            Self::Ring => "ring",
            Self::Balance => "balance",
        }
    }

    /// Its name in reports.
    pub(super) fn title(self) -> &'static str {
        if self == Self::Balance { "balancing step" } else { self.name() }
    }

    /// The number of PEs for it, if others have this many.
    pub(super) fn pes(self, pes: u32) -> u32 {
        if self == Self::Switch { 1 } else { pes }
    }

    fn operations(self, ranks: u32) -> u32 {
        match self {
            Self::Balance => (OFFERS / ranks).clamp(3, 500),
            _ => (OPERATIONS / ranks).clamp(3, 2000),
        }
    }

    fn repetitions(self) -> u32 {
        if self == Self::Balance { 3 } else { 5 }
    }
}

/// The measurements of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// Seconds per rank.
    pub seconds: f64,
    /// Bytes per rank, including page tables.
    pub bytes: f64,
    /// The part of the ranks that a balancing step moves, on average.
    pub moved: f64,
}

/// The measurements of very many ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Whole {
    pub ranks: u32,
    /// Seconds until all ranks had passed a barrier.
    pub seconds_to_barrier: f64,
    /// Seconds of the whole job, including its end.
    pub seconds: f64,
    /// Memory of all PEs at the barrier, when it is largest, including page tables.
    pub bytes: f64,
}

/// Measures an aspect on some PEs.
///
/// # Errors
///
/// If the program fails.
pub(super) fn measure(aspect: Aspect, pes: u32, ranks_per_pe: u32) -> Result<Sample, Error> {
    let ranks = pes * ranks_per_pe;
    let mut command = command(aspect, pes, ranks);
    if aspect == Aspect::Balance {
        command.args(BALANCING);
    }
    let (measured, job) = run_with_output(&mut command, TIME_LIMIT)?;
    let of_each = match aspect {
        // A switch is one of a single rank already.
        Aspect::Switch => 1.0,
        _ => f64::from(ranks),
    };
    let moved_in_a_step =
        Balanced::find(&job.err).map_or(0.0, |it| it.moved as f64 / it.steps.max(1) as f64);
    Ok(Sample {
        seconds: measured.seconds / of_each,
        bytes: measured.bytes_per_rank.unwrap_or_default(),
        moved: moved_in_a_step / f64::from(ranks),
    })
}

/// Starts very many ranks, which synchronise and end.
///
/// # Errors
///
/// As for [`measure`].
pub(super) fn start_many(ranks: u32, pes: u32) -> Result<Whole, Error> {
    let (measured, job) = run_with_output(&mut command(Aspect::Start, pes, ranks), TIME_LIMIT)?;
    Ok(Whole {
        ranks,
        seconds_to_barrier: measured.seconds,
        seconds: job.seconds,
        bytes: f64::from(ranks) * measured.bytes_per_rank.unwrap_or_default(),
    })
}

fn command(aspect: Aspect, pes: u32, ranks: u32) -> Command {
    let numbers = [pes, ranks, aspect.operations(ranks), aspect.repetitions()];
    let [pes, ranks, operations, repetitions] = numbers.map(|it| it.to_string());
    let mut command =
        vrt_bench(["many", "--what", aspect.name(), "--pes", &pes, "--ranks", &ranks]);
    command.args(["--operations", &operations, "--repetitions", &repetitions]);
    command
}

/// Bytes of available memory, as estimated by the kernel; `None` if it does not report them.
pub(super) fn available_memory() -> Option<u64> {
    let about = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = about.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn few_ranks_do_much_and_many_at_least_something() {
        for aspect in Aspect::value_variants() {
            assert!(aspect.operations(32) >= 500);
            assert_eq!(aspect.operations(1_000_000), 3);
        }
        assert_eq!((Aspect::Switch.pes(2), Aspect::Barrier.pes(2)), (1, 2));
    }

    #[test]
    fn the_command_is_one_that_can_be_typed() {
        let line = vrt_cli::job::line(&command(Aspect::Barrier, 2, 200_000));
        let expected = "vrt-bench run many --what barrier --pes 2 --ranks 200000 --operations 3 --repetitions 5";
        assert!(line.ends_with(expected), "{line}");
    }

    #[test]
    fn a_machine_has_memory() {
        assert!(available_memory().is_none_or(|bytes| bytes > 1 << 20));
    }
}
