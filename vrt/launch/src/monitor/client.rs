//! Lists the jobs that run on this machine, and asks one of them for a snapshot.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use super::snapshot::Snapshot;
use super::socket::SOCKET;
use vrt_balance::json::{self, ParseError};

/// How long a job may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a job cannot be inspected.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// It does not exist, or has ended.
    #[error("no job has process {0}")]
    NoJob(u32, #[source] std::io::Error),
    /// It belongs to another user; a job answers only its own user.
    #[error(
        "the job of process {0} is another user's (number {1}): it tells its own user and root alone"
    )]
    OtherUser(u32, u32),
    /// It has ended.
    #[error("the job is over")]
    Over,
    /// It does not answer.
    #[error("the job of process {0} does not answer: {1}")]
    Silent(u32, #[source] std::io::Error),
    /// It was built from another version of vrt.
    #[error("what the job says is not understood: {0}")]
    Version(#[from] ParseError),
}

/// A running job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningJob {
    /// Its supervisor's process.
    pub process: u32,
    /// The program with its arguments.
    pub command: String,
}

/// The user of a process, if there is one.
fn user_of(process: impl Display) -> Option<u32> {
    Some(std::fs::metadata(format!("/proc/{process}")).ok()?.uid())
}

/// The user to whom a process belongs, if this user may not inspect it.
fn other_user(process: u32) -> Option<u32> {
    let (own, other) = (user_of("self")?, user_of(process)?);
    (own != 0 && own != other).then_some(other)
}

/// The jobs of this machine that this user can inspect.
pub fn running_jobs() -> Vec<RunningJob> {
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let mut processes: Vec<u32> = sockets
        .lines()
        .filter_map(|line| line.rsplit_once('@')?.1.strip_prefix(SOCKET)?.parse().ok())
        .collect();
    processes.sort_unstable();
    processes.dedup();
    let command = |process: u32| {
        let bytes = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim_end_matches('\0').replace('\0', " ")
    };
    processes.retain(|process| other_user(*process).is_none());
    processes.into_iter().map(|process| RunningJob { process, command: command(process) }).collect()
}

/// A connection to a job.
#[derive(Debug)]
pub struct Connection {
    process: u32,
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Connects to the job of a supervisor.
    ///
    /// # Errors
    /// No such job exists.
    pub fn to(process: u32) -> Result<Connection, LookError> {
        let connected = SocketAddr::from_abstract_name(format!("{SOCKET}{process}"))
            .and_then(|address| UnixStream::connect_addr(&address));
        let stream = connected.map_err(|error| LookError::NoJob(process, error))?;
        if let Some(user) = other_user(process) {
            return Err(LookError::OtherUser(process, user));
        }
        let patient = stream.set_read_timeout(Some(PATIENCE));
        patient.map_err(|error| LookError::Silent(process, error))?;
        Ok(Connection { process, stream: BufReader::new(stream) })
    }

    /// A snapshot of the job now.
    ///
    /// # Errors
    /// The job has ended, or does not answer.
    pub fn look(&mut self) -> Result<Snapshot, LookError> {
        if self.stream.get_mut().write_all(b"look\n").is_err() {
            return Err(LookError::Over);
        }
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => Err(LookError::Over),
            Ok(_) => Ok(json::read(&line)?),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                Err(LookError::Over)
            }
            Err(error) => Err(LookError::Silent(self.process, error)),
        }
    }
}
