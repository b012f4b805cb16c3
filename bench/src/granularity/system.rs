//! The systems that run a graph: `vrt` or Open MPI, with one column per core or with many.

use std::path::PathBuf;
use std::process::Command;

use super::curve::Run;
use super::{Args, Error};
use crate::measure::Measured;
use crate::programs::metg::Graph;
use crate::table::process::{run_to_end, show};
use crate::table::run::mpirun;

/// Repetitions of a run with one column per core, and with many.
const REPETITIONS: [u32; 2] = [5, 2];

/// The system that runs the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// `vrt`, one rank per PE.
    Vrt,
    /// `vrt`, many ranks per PE.
    Many,
    /// The same, with ranks that yield after each timestep.
    GivingWay,
    /// Like [`Many`](Self::Many), while a strategy moves ranks.
    Moving,
    /// Open MPI, with one process and one column per core.
    OpenMpi,
    /// Open MPI, with one process per core that has as many columns as a PE of `vrt` has ranks.
    OpenMpiBlocks,
}

impl System {
    /// All of them; without Open MPI if requested.
    pub(super) fn all(with_open_mpi: bool) -> Vec<Self> {
        let ours = [Self::Vrt, Self::Many, Self::GivingWay, Self::Moving];
        let theirs = [Self::OpenMpi, Self::OpenMpiBlocks];
        ours.into_iter().chain(theirs.into_iter().filter(|_| with_open_mpi)).collect()
    }

    /// Its name in reports.
    pub(super) fn title(self, ranks_per_pe: u32) -> String {
        match self {
            Self::Vrt => "vrt, 1 rank per PE".to_owned(),
            Self::Many => format!("vrt, {ranks_per_pe} ranks per PE"),
            Self::GivingWay => format!("vrt, {ranks_per_pe} ranks per PE that give way"),
            Self::Moving => format!("vrt, {ranks_per_pe} ranks per PE that move"),
            Self::OpenMpi => "Open MPI, 1 column per process".to_owned(),
            Self::OpenMpiBlocks => format!("Open MPI, {ranks_per_pe} columns per process"),
        }
    }

    /// Columns per core.
    pub(super) fn columns(self, ranks_per_pe: u32) -> u32 {
        match self {
            Self::Vrt | Self::OpenMpi => 1,
            Self::Many | Self::GivingWay | Self::Moving | Self::OpenMpiBlocks => ranks_per_pe,
        }
    }
}

/// Where the programs are.
pub(super) struct Programs {
    pub vrt_bench: PathBuf,
    pub c_program: PathBuf,
}

/// The results of a run of a program.
pub(super) struct Measurement {
    /// For each number of iterations, in order.
    pub runs: Vec<Run>,
    /// Number of ranks moved meanwhile.
    pub moved: u64,
}

impl Programs {
    /// Runs a graph with each number of iterations.
    ///
    /// # Errors
    ///
    /// If the program fails, or its checksums are not those of the graph.
    pub(super) fn run(
        &self,
        args: &Args,
        system: System,
        graph: Graph,
        iterations: &[u32],
    ) -> Result<Measurement, Error> {
        let mut command = self.command(args, system, graph, iterations);
        let told = run_to_end(&mut command)?;
        let lines: Vec<Measured> =
            told.printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if lines.len() != iterations.len() {
            let printed = told.printed;
            return Err(crate::table::Error::Printed { command: show(&command), printed }.into());
        }
        let mut runs = Vec::with_capacity(lines.len());
        for (&iterations, line) in iterations.iter().zip(lines) {
            let expected = format!("{:016x}", graph.checksum(iterations));
            let found = line.checksum.unwrap_or_default();
            if found != expected {
                return Err(Error::Checksum { command: show(&command), found, expected });
            }
            runs.push(Run { iterations, seconds: line.seconds });
        }
        Ok(Measurement { runs, moved: ranks_moved(&told.said) })
    }

    fn command(&self, args: &Args, system: System, graph: Graph, iterations: &[u32]) -> Command {
        let iterations: Vec<String> = iterations.iter().map(u32::to_string).collect();
        let iterations = iterations.join(",");
        let repetitions = REPETITIONS[usize::from(system.columns(args.ranks_per_pe) > 1)];
        let [width, steps, bytes, repetitions, pes] = [
            graph.width,
            graph.steps,
            args.bytes as usize,
            repetitions as usize,
            args.pes() as usize,
        ]
        .map(|it| it.to_string());
        if matches!(system, System::OpenMpi | System::OpenMpiBlocks) {
            let mut command = mpirun(args.pes());
            command.arg(&self.c_program);
            command.args([graph.pattern.name(), &width, &steps, &iterations, &bytes, &repetitions]);
            return command;
        }
        let mut command = Command::new(&self.vrt_bench);
        command.args(["metg", "--pattern", graph.pattern.name(), "--width", &width]);
        command.args(["--steps", &steps, "--iterations", &iterations, "--bytes", &bytes]);
        // A rank for each column.
        command.args(["--repetitions", &repetitions, "--pes", &pes, "--ranks", &width]);
        match system {
            System::GivingWay => command.arg("--give-way"),
            System::Moving => {
                command.args(["--lb", &args.lb, "--lb-period", &format!("{}ms", args.period)])
            }
            _ => &mut command,
        };
        command
    }
}

/// The number of ranks that moved, from the line about balancing at the end of a job.
fn ranks_moved(said: &str) -> u64 {
    let before = said.split(" ranks moved").next().filter(|before| before.len() < said.len());
    before.and_then(|it| it.rsplit(' ').next()).and_then(|it| it.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_balancing_tells_how_many_ranks_moved() {
        let said =
            "hello\nvrt: load balancing: rotate: 19 steps, 600 ranks moved in 0.002 s; imbalance\n";
        assert_eq!(ranks_moved(said), 600);
        assert_eq!(ranks_moved(""), 0);
        assert_eq!(ranks_moved("no number ranks moved"), 0);
    }
}
