//! Why a tool has no result.

use std::path::PathBuf;

use bytesize::ByteSize;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No row has this name.
    #[error("no row is named {only:?}; the rows are {rows}")]
    NoSuchRow {
        /// The requested name.
        only: String,
        /// The names that there are.
        rows: String,
    },
    /// No program can be started.
    #[error("cannot run programs under setpriv and timeout: {0}")]
    Start(std::io::Error),
    /// A program has failed.
    #[error("{command}\nended with status {status} and said:\n{said}")]
    Failed {
        /// The command line.
        command: String,
        /// Its exit status, as a shell has it.
        status: i32,
        /// Its standard error.
        said: String,
    },
    /// A program did not end in time.
    #[error("{command}\ndid not end within {seconds} s")]
    TimedOut {
        /// The command line.
        command: String,
        /// The time it had.
        seconds: u64,
    },
    /// A program printed something other than a line of figures.
    #[error("{command}\nprinted no line of figures but {printed:?}")]
    Printed {
        /// The command line.
        command: String,
        /// Its standard output.
        printed: String,
    },
    /// Two programs that solve the same problem have different results.
    #[error("{row}: the programs computed different bits: {ours} and {theirs}")]
    Disagree {
        /// The row.
        row: String,
        /// The residual and checksum of vrt's program.
        ours: String,
        /// Those of the other.
        theirs: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// A program did not execute the tasks of the graph.
    #[error("{command}: the checksum is {found}, and that of the graph {expected}")]
    Checksum {
        /// The command line.
        command: String,
        /// The checksum that the program printed.
        found: String,
        /// The checksum of the graph.
        expected: String,
    },
    /// The machine has too little memory for the ranks.
    #[error(
        "{ranks} ranks need up to {} of memory, and {} are available",
        ByteSize(*needed), ByteSize(*available)
    )]
    Memory {
        /// The ranks.
        ranks: u64,
        /// Bytes needed.
        needed: u64,
        /// Bytes available.
        available: u64,
    },
    /// No case of `balance` has this name.
    #[error("--only {0}: no case has that in its name; --list prints them")]
    NoCase(String),
    /// A job of `balance` did not run to completion.
    #[error("{0}: {1}")]
    Job(String, String),
    /// More instructions are executed than was committed.
    #[error("a count is worse; where this is meant: scripts/bench counts --update")]
    Worse,
    /// A figure cannot be drawn.
    #[error("cannot draw {}: {}", .0.display(), .1)]
    Draw(PathBuf, String),
    /// A result cannot be written.
    #[error(transparent)]
    Write(#[from] experiments::WriteError),
}

impl Error {
    /// 2 for a mistake on the command line, otherwise 1.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::NoSuchRow { .. } | Self::NoCase(_) => 2,
            _ => 1,
        }
    }

    /// Why a program has no figure, in one line.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Failed { status, said, .. } => match cause(said) {
                Some(cause) => cause.to_owned(),
                None => format!("ended with status {status}"),
            },
            Self::TimedOut { seconds, .. } => format!("did not end within {seconds} s"),
            Self::Printed { printed, .. } => match cause(printed) {
                Some(cause) => format!("printed no line of figures but {cause:?}"),
                None => "printed no line of figures".to_owned(),
            },
            other => other.to_string().replace('\n', " "),
        }
    }
}

/// The line of a program's output that states the error: that of Charm++, of our C programs, or the first.
fn cause(said: &str) -> Option<&str> {
    const REASON: &str = "Reason:";
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    (lines().find_map(|line| line.strip_prefix(REASON).map(str::trim)))
        .or_else(|| lines().find_map(|line| line.strip_prefix("bench: ")))
        .or_else(|| lines().find(|line| !line.starts_with("---")))
}
