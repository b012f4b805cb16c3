//! The systems that run a graph: `vrt` or Open MPI, with one column per core or with many.

use std::path::Path;
use std::process::Command;

use super::Args;
use super::curve::Run;
use crate::Error;
use crate::measure::Measured;
use crate::process::{lines, mpirun, not_understood, run_to_end, vrt_bench};
use crate::programs::metg::Graph;

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

/// The results of a run of a program.
pub(super) struct Measurement {
    /// For each number of iterations, in order.
    pub runs: Vec<Run>,
    /// Number of ranks moved meanwhile.
    pub moved: u64,
}

impl System {
    /// Runs a graph with each number of iterations.
    ///
    /// # Errors
    ///
    /// If the program fails, or its checksums are not those of the graph.
    pub(super) fn run(
        self,
        args: &Args,
        c_program: &Path,
        graph: Graph,
        iterations: &[u32],
    ) -> Result<Measurement, Error> {
        let mut command = self.command(args, c_program, graph, iterations);
        let job = run_to_end(&mut command)?;
        let lines: Vec<Measured> = lines(&job);
        if lines.len() != iterations.len() {
            return Err(not_understood(job));
        }
        let mut runs = Vec::with_capacity(lines.len());
        for (&iterations, line) in iterations.iter().zip(lines) {
            let expected = format!("{:016x}", graph.checksum(iterations));
            let found = line.checksum.unwrap_or_default();
            if found != expected {
                return Err(Error::Checksum { command: job.line, found, expected });
            }
            runs.push(Run { iterations, seconds: line.seconds });
        }
        Ok(Measurement { runs, moved: job.moved() })
    }

    fn command(self, args: &Args, c_program: &Path, graph: Graph, iterations: &[u32]) -> Command {
        let iterations: Vec<String> = iterations.iter().map(u32::to_string).collect();
        let iterations = iterations.join(",");
        let repetitions = REPETITIONS[usize::from(self.columns(args.ranks_per_pe) > 1)];
        let pattern = graph.pattern.name();
        let [width, steps] = [graph.width, graph.steps].map(|it| it.to_string());
        let [bytes, repetitions, pes] =
            [args.bytes, repetitions, args.pes()].map(|it| it.to_string());
        if matches!(self, Self::OpenMpi | Self::OpenMpiBlocks) {
            let mut command = mpirun(args.pes());
            command.arg(c_program);
            command.args([pattern, &width, &steps, &iterations, &bytes, &repetitions]);
            return command;
        }
        let mut command = vrt_bench(["metg", "--pattern", pattern, "--width", &width]);
        command.args(["--steps", &steps, "--iterations", &iterations, "--bytes", &bytes]);
        // A rank for each column.
        command.args(["--repetitions", &repetitions, "--pes", &pes, "--ranks", &width]);
        match self {
            Self::GivingWay => command.arg("--give-way"),
            Self::Moving => {
                command.args(["--lb", &args.lb, "--lb-period", &format!("{}ms", args.period)])
            }
            _ => &mut command,
        };
        command
    }
}
