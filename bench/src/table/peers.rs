//! The MPIs that run the C twin of a row, and their results.

use std::path::{Path, PathBuf};
use std::process::Command;

use experiments::statistics::{Spread, ratio};

use super::row::Twin;
use super::run::mpirun_for;

/// Another MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    OpenMpi,
    /// Adaptive MPI with PEs that are threads of one process.
    AmpiThreads,
    /// Adaptive MPI with one process per PE.
    AmpiProcesses,
}

impl Peer {
    /// All of them, in the order of columns.
    pub(super) const ALL: [Self; 3] = [Self::OpenMpi, Self::AmpiThreads, Self::AmpiProcesses];

    /// Its name in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI",
            Self::AmpiThreads => "AMPI threads",
            Self::AmpiProcesses => "AMPI processes",
        }
    }
}

/// Where the C programs are, as built for each MPI.
#[derive(Clone, Debug, Default)]
pub(super) struct Peers {
    /// Those for Open MPI, unless it is left out.
    pub open_mpi: Option<PathBuf>,
    /// Those for threads of Adaptive MPI.
    pub ampi_threads: Option<PathBuf>,
    /// Those for processes of Adaptive MPI, and its launcher.
    pub ampi_processes: Option<(PathBuf, PathBuf)>,
}

impl Peers {
    /// The MPIs that can be measured.
    pub(super) fn present(&self) -> impl Iterator<Item = Peer> {
        Peer::ALL.into_iter().filter(|peer| match peer {
            Peer::OpenMpi => self.open_mpi.is_some(),
            Peer::AmpiThreads => self.ampi_threads.is_some(),
            Peer::AmpiProcesses => self.ampi_processes.is_some(),
        })
    }

    /// The command that runs a twin on a peer; `None` if the peer does not exist, or the twin is
    /// not for it.
    pub(super) fn command(&self, peer: Peer, twin: &Twin, is_quick: bool) -> Option<Command> {
        if !twin.peers.contains(&peer) {
            return None;
        }
        let words = twin.program.words(is_quick);
        let (&program, arguments) = words.split_first()?;
        let [pes, ranks] = [format!("+p{}", twin.pes), format!("+vp{}", twin.processes)];
        let run = |launcher: Command, folder: &Path| {
            let mut command = launcher;
            command.arg(folder.join(program)).args(arguments);
            command
        };
        let mut command = match peer {
            Peer::OpenMpi => {
                return Some(run(
                    mpirun_for(twin.processes, &twin.program),
                    self.open_mpi.as_deref()?,
                ));
            }
            Peer::AmpiThreads => {
                let mut command = Command::new(self.ampi_threads.as_deref()?.join(program));
                command.args(arguments).arg(pes);
                command
            }
            Peer::AmpiProcesses => {
                let (folder, launcher) = self.ampi_processes.as_ref()?;
                let mut charmrun = Command::new(launcher);
                charmrun.arg("++local").arg(pes);
                run(charmrun, folder)
            }
        };
        command.arg(ranks).arg("+setcpuaffinity");
        if program == "move" {
            command.arg("+ampiEnableMigrateToPe");
        }
        Some(command)
    }
}

/// The measurements of a row's twin on a peer.
#[derive(Clone, Debug)]
pub(super) struct PeerRuns {
    pub peer: Peer,
    /// Seconds per operation, or bytes per rank, in each run; empty if one has failed.
    pub runs: Vec<f64>,
    /// The reason, if there are none.
    pub failure: Option<String>,
}

impl PeerRuns {
    pub(super) fn new(peer: Peer) -> Self {
        Self { peer, runs: Vec::new(), failure: None }
    }

    /// Adds the outcome of a run; after a failed one, the earlier ones do not count.
    pub(super) fn add(&mut self, outcome: Result<f64, String>) {
        match outcome {
            Ok(figure) => self.runs.push(figure),
            Err(reason) => {
                self.runs.clear();
                self.failure = Some(reason);
            }
        }
    }

    /// The median of its seconds, or bytes.
    pub(super) fn seconds(&self) -> Option<f64> {
        Spread::of(self.runs.iter().copied()).map(|it| it.median)
    }

    /// The median of the ratios of consecutive runs, ours by the peer's.
    pub(super) fn ratio(&self, ours: &[f64]) -> Option<f64> {
        ratio(ours, &self.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::rows::all;

    fn shown(peer: Peer, row: &str) -> Option<String> {
        let peers = Peers {
            open_mpi: None,
            ampi_threads: Some("threads".into()),
            ampi_processes: Some(("processes".into(), "charm/bin/charmrun".into())),
        };
        let row = all().into_iter().find(|it| it.name == row).unwrap();
        peers.command(peer, &row.twin?, true).map(|command| vrt_cli::job::line(&command))
    }

    #[test]
    fn adaptive_mpi_is_told_its_pes_and_ranks() {
        assert_eq!(
            shown(Peer::AmpiThreads, "message-in-pe").unwrap(),
            "threads/pingpong 8 20000 11 +p1 +vp2 +setcpuaffinity"
        );
        assert_eq!(
            shown(Peer::AmpiProcesses, "ranks-per-pe-96").unwrap(),
            "charm/bin/charmrun ++local +p2 processes/jacobi 96 200 10 +vp32 +setcpuaffinity"
        );
        assert_eq!(shown(Peer::OpenMpi, "ranks-per-pe-96"), None);
        assert_eq!(shown(Peer::AmpiThreads, "message-through-mpi"), None);
        assert_eq!(shown(Peer::OpenMpi, "switch"), None);
        assert_eq!(shown(Peer::AmpiThreads, "ship-1m"), None);
        assert_eq!(
            shown(Peer::AmpiThreads, "hand-over").unwrap(),
            "threads/move 1024 20 5 +p2 +vp2 +setcpuaffinity +ampiEnableMigrateToPe"
        );
    }

    #[test]
    fn a_peer_that_fails_once_has_no_figure() {
        let mut runs = PeerRuns::new(Peer::AmpiThreads);
        runs.add(Ok(2.0));
        assert_eq!((runs.seconds(), runs.ratio(&[1.0])), (Some(2.0), Some(0.5)));
        runs.add(Err("it is not implemented".to_owned()));
        assert_eq!((runs.seconds(), runs.ratio(&[1.0, 1.0])), (None, None));
    }
}
