//! What is measured, and by which program.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::measure::Measured;
use crate::table::Error;
use crate::table::process::{Told, run_to_end_within, show};

/// The approximate number of operations of single ranks in a repetition.
const OPERATIONS: u32 = 300_000;
/// The same for balancing steps, which take longer.
const OFFERS: u32 = 60_000;
/// Ranks that do nothing have loads that are noise: only large imbalances cause moves.
const BALANCING: [&str; 4] = ["--lb", "greedy-refine", "--lb-arg", "tolerance=0.5"];
/// The time limit of a run of many ranks, also on slow machines.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// What is measured as ranks grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Aspect {
    /// The start, up to the end of the first barrier, and the memory at that time.
    Start,
    /// A switch.
    Switch,
    /// A barrier.
    Barrier,
    /// An allreduce of a double.
    Allreduce,
    /// A balancing step.
    Balance,
}

impl Aspect {
    pub(super) const ALL: [Self; 5] =
        [Self::Start, Self::Switch, Self::Barrier, Self::Allreduce, Self::Balance];

    /// Its name for `vrt-bench many`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Switch => "switch",
            Self::Barrier => "barrier",
            Self::Allreduce => "allreduce",
            Self::Balance => "balance",
        }
    }

    /// Its name in reports.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Balance => "balancing step",
            other => other.name(),
        }
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

/// The program that measures.
pub(super) struct Program {
    pub vrt_bench: PathBuf,
}

impl Program {
    /// Measures an aspect on some PEs.
    ///
    /// # Errors
    ///
    /// If the program fails.
    pub(super) fn run(&self, aspect: Aspect, pes: u32, ranks_per_pe: u32) -> Result<Sample, Error> {
        let ranks = pes * ranks_per_pe;
        let mut command = self.command(aspect, pes, ranks);
        if aspect == Aspect::Balance {
            command.args(BALANCING);
        }
        let told = run_to_end_within(&mut command, TIME_LIMIT)?;
        let measured = measured(&command, &told)?;
        let of_each = match aspect {
            // A switch is one of a single rank already.
            Aspect::Switch => 1.0,
            _ => f64::from(ranks),
        };
        Ok(Sample {
            seconds: measured.seconds / of_each,
            bytes: measured.bytes_per_rank.unwrap_or_default(),
            moved: ranks_moved_in_a_step(&told.said) / f64::from(ranks),
        })
    }

    /// Starts very many ranks, which synchronise and end.
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run).
    pub(super) fn run_million(&self, ranks: u32, pes: u32) -> Result<Whole, Error> {
        let mut command = self.command(Aspect::Start, pes, ranks);
        let begin = Instant::now();
        let told = run_to_end_within(&mut command, TIME_LIMIT)?;
        let seconds = begin.elapsed().as_secs_f64();
        let measured = measured(&command, &told)?;
        Ok(Whole {
            ranks,
            seconds_to_barrier: measured.seconds,
            seconds,
            bytes: f64::from(ranks) * measured.bytes_per_rank.unwrap_or_default(),
        })
    }

    fn command(&self, aspect: Aspect, pes: u32, ranks: u32) -> Command {
        let numbers = [pes, ranks, aspect.operations(ranks), aspect.repetitions()];
        let [pes, ranks, operations, repetitions] = numbers.map(|it| it.to_string());
        let mut command = Command::new(&self.vrt_bench);
        command.args(["many", "--what", aspect.name(), "--pes", &pes, "--ranks", &ranks]);
        command.args(["--operations", &operations, "--repetitions", &repetitions]);
        command
    }
}

/// The line of figures that a program has printed.
fn measured(command: &Command, told: &Told) -> Result<Measured, Error> {
    let line = told.printed.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    line.ok_or_else(|| Error::Printed { command: show(command), printed: told.printed.clone() })
}

/// How many ranks a step moves on average, from the line about balancing at the end of a job: "greedy-refine: 9 steps,
/// 12 ranks moved in".
fn ranks_moved_in_a_step(said: &str) -> f64 {
    let before = |what: &str| -> Option<f64> {
        let (before, _) = said.split_once(what)?;
        before.rsplit(' ').next()?.parse().ok()
    };
    let moved = before(" ranks moved").or_else(|| before(" rank moved"));
    moved.zip(before(" steps")).map_or(0.0, |(moved, steps)| moved / steps)
}

/// Bytes of available memory, as estimated by the kernel; `None` if it does not report them.
pub(super) fn available_memory() -> Option<u64> {
    let about = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = about.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_balancing_tells_how_many_ranks_a_step_moves() {
        let said = "vrt: load balancing: greedy-refine: 20 steps, 3 of them not worth a move, 50 ranks moved in 0.1 s;";
        assert_eq!(ranks_moved_in_a_step(said), 2.5);
        assert_eq!(ranks_moved_in_a_step("vrt: load balancing: x: 4 steps, 1 rank moved in"), 0.25);
        assert_eq!(ranks_moved_in_a_step(""), 0.0);
    }

    #[test]
    fn few_ranks_do_much_and_many_at_least_something() {
        for aspect in Aspect::ALL {
            assert!(aspect.operations(32) >= 500);
            assert_eq!(aspect.operations(1_000_000), 3);
        }
        assert_eq!((Aspect::Switch.pes(2), Aspect::Barrier.pes(2)), (1, 2));
    }

    #[test]
    fn the_command_is_one_that_can_be_typed() {
        let program = Program { vrt_bench: "vrt-bench".into() };
        assert_eq!(
            show(&program.command(Aspect::Barrier, 2, 200_000)),
            "vrt-bench many --what barrier --pes 2 --ranks 200000 --operations 3 --repetitions 5"
        );
    }

    #[test]
    fn a_machine_has_memory() {
        assert!(available_memory().is_none_or(|bytes| bytes > 1 << 20));
    }
}
