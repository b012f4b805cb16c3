//! Which jobs run on this machine, and what one says of itself.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use super::{SOCKET, Snapshot};
use vrt_balance::json::{self, ParseError};

/// How long a job may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a job is not seen.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// There is none, or it is over.
    #[error("no job has process {0}")]
    NoJob(u32, #[source] std::io::Error),
    /// It belongs to somebody else, to whom alone it tells what it does.
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
    /// It was built from another version.
    #[error("what the job says is not understood: {0}")]
    Version(#[from] ParseError),
}

/// A job that runs.
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

/// The user to whom a process belongs who may not be looked at by this one, if that is so.
fn other_user(process: u32) -> Option<u32> {
    let (own, other) = (user_of("self")?, user_of(process)?);
    (own != 0 && own != other).then_some(other)
}

/// The jobs of this machine that this user can look at.
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

/// A job that is looked at.
#[derive(Debug)]
pub struct Connection {
    process: u32,
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Begins to look at the job of a supervisor.
    ///
    /// # Errors
    /// There is no such job.
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

    /// What the job does now.
    ///
    /// # Errors
    /// It is over, or does not answer.
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
