//! Runs the programs of a row alternately.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use experiments::statistics::{Spread, median, ratio};

use super::peers::{Peer, PeerRuns, Peers};
use super::row::{Program, Reference, Row, Unit};
use crate::Error;
use crate::measure::Measured;
use crate::process::{mpirun, own_directory, run_program, run_program_within, vrt_bench};

/// Where the programs are, and how often they run.
pub(super) struct Runner {
    /// `vrt-bench`, built with the MPI transport.
    pub vrt_bench_on_mpi: PathBuf,
    /// The MPIs that run the C programs.
    pub peers: Peers,
    /// The C programs, built by `vrtcc`.
    pub images: PathBuf,
    pub pairs: u32,
    pub is_quick: bool,
}

/// The measurements of a row.
#[derive(Debug)]
pub(super) struct Figures {
    pub row: Row,
    /// Seconds per operation, or bytes per rank, in each run of vrt's program.
    pub vrt: Vec<f64>,
    /// The same for the reference, if that is another program of vrt.
    pub vrt_reference: Vec<f64>,
    /// The same for the row's C twin on each available MPI.
    pub peers: Vec<PeerRuns>,
}

impl Figures {
    /// The median of vrt's seconds, or bytes.
    pub(super) fn vrt_seconds(&self) -> f64 {
        median(&self.vrt)
    }

    /// The runs of the reference.
    pub(super) fn reference(&self) -> &[f64] {
        match self.row.reference {
            Reference::OpenMpi => {
                let open_mpi = self.peers.iter().find(|it| it.peer == Peer::OpenMpi);
                open_mpi.map_or(&[], |it| &it.runs)
            }
            Reference::Vrt(_) | Reference::None => &self.vrt_reference,
        }
    }

    /// The median of the reference's seconds.
    pub(super) fn reference_seconds(&self) -> Option<f64> {
        Spread::of(self.reference().iter().copied()).map(|it| it.median)
    }

    /// The median of the pairs' ratios of seconds, ours by the reference's.
    pub(super) fn ratio(&self) -> Option<f64> {
        ratio(&self.vrt, self.reference())
    }

    /// The MPIs that are faster, with the ratio of seconds, ours by theirs.
    pub(super) fn loses_to(&self) -> Vec<(Peer, f64)> {
        (self.peers.iter())
            .filter_map(|it| Some((it.peer, it.ratio(&self.vrt)?)))
            .filter(|(_, ratio)| *ratio > 1.0)
            .collect()
    }

    /// Whether the target is met, if known.
    pub(super) fn is_met(&self) -> Option<bool> {
        self.row.target.is_met(self.vrt_seconds(), self.ratio())
    }
}

/// The value that a row shows of a program's measurements; not a number if it was not measured.
fn value(unit: Unit, measured: &Measured) -> f64 {
    match unit {
        Unit::Time | Unit::Bandwidth(_) => measured.seconds,
        Unit::Memory => measured.bytes_per_rank.unwrap_or(f64::NAN),
    }
}

/// The time after which a peer is killed.
const PEER_LIMIT: Duration = Duration::from_secs(60);

impl Runner {
    /// Runs the programs of a row. A peer that fails has no figure.
    ///
    /// # Errors
    ///
    /// If a program of vrt fails, or two solvers have different results.
    pub(super) fn run(&self, row: &Row) -> Result<Figures, Error> {
        let command =
            |peer| row.twin.as_ref().and_then(|it| self.peers.command(peer, it, self.is_quick));
        let mut figures = Figures {
            row: row.clone(),
            vrt: Vec::new(),
            vrt_reference: Vec::new(),
            peers: (self.peers.present())
                .filter(|peer| command(*peer).is_some())
                .map(PeerRuns::new)
                .collect(),
        };
        for _ in 0..self.pairs {
            let ours = run_program(self.vrt_command(&row.vrt))?;
            figures.vrt.push(value(row.unit, &ours));
            let agrees = |theirs: &Measured| {
                if solved_alike(&ours, theirs) {
                    return Ok(());
                }
                let row = row.name.clone();
                Err(Error::Disagree { row, ours: result(&ours), theirs: result(theirs) })
            };
            if let Reference::Vrt(program) = &row.reference {
                let theirs = run_program(self.vrt_command(program))?;
                figures.vrt_reference.push(value(row.unit, &theirs));
                agrees(&theirs)?;
            }
            for runs in figures.peers.iter_mut().filter(|runs| runs.failure.is_none()) {
                let Some(command) = command(runs.peer) else { continue };
                let outcome = run_program_within(command, PEER_LIMIT);
                if let Ok(theirs) = &outcome {
                    agrees(theirs)?;
                }
                let figure = outcome.map(|theirs| value(row.unit, &theirs));
                runs.add(figure.map_err(|error| error.reason()));
            }
        }
        Ok(figures)
    }

    fn vrt_command(&self, program: &Program) -> Command {
        let words = program.words(self.is_quick);
        if program.through_mpi {
            let mut command = mpirun_for(2, program);
            command.arg(&self.vrt_bench_on_mpi).arg("run").args(words);
            return command;
        }
        let Some(options) = program.vrtrun else { return vrt_bench(words) };
        let mut command = Command::new(own_directory().join("vrtrun"));
        command.args(options.split(' ')).arg(self.images.join(words[0])).args(&words[1..]);
        command
    }
}

/// Open MPI's launcher, for this many processes of a row's program.
pub(super) fn mpirun_for(processes: u32, program: &Program) -> Command {
    let mut command = mpirun(processes);
    if program.over_tcp {
        command.args(["--mca", "btl", "tcp,self"]);
    }
    command
}

/// The residual and the checksum that a solver printed.
fn result(measured: &Measured) -> String {
    format!("{:?} {:?}", measured.residual, measured.checksum)
}

/// Whether two programs computed the same bits; true for programs that are not solvers.
fn solved_alike(ours: &Measured, theirs: &Measured) -> bool {
    (ours.residual, &ours.checksum) == (theirs.residual, &theirs.checksum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::rows::all;

    #[test]
    fn a_ratio_is_the_median_of_the_pairs() {
        let figures = Figures {
            row: all().into_iter().find(|row| row.name == "pack").unwrap(),
            vrt: vec![1.0, 10.0, 3.0],
            vrt_reference: vec![2.0, 10.0, 1.0],
            peers: Vec::new(),
        };
        assert_eq!(figures.ratio(), Some(1.0));
        assert_eq!(figures.vrt_seconds(), 3.0);
        assert_eq!(figures.reference_seconds(), Some(2.0));
    }

    #[test]
    fn rows_are_lost_to_those_that_are_faster_in_most_pairs() {
        let of = |peer, runs| PeerRuns { peer, runs, failure: None };
        let figures = Figures {
            row: all().into_iter().find(|row| row.name == "bandwidth").unwrap(),
            vrt: vec![1.0, 1.0, 1.0],
            vrt_reference: Vec::new(),
            peers: vec![
                of(Peer::OpenMpi, vec![2.0, 2.0, 0.1]),
                of(Peer::AmpiThreads, vec![0.5, 0.5, 9.0]),
                PeerRuns { failure: Some("why".to_owned()), ..of(Peer::AmpiProcesses, Vec::new()) },
            ],
        };
        assert_eq!(figures.loses_to(), [(Peer::AmpiThreads, 2.0)]);
        assert_eq!(figures.reference_seconds(), Some(2.0));
        assert_eq!(figures.is_met(), Some(true));
    }
}
