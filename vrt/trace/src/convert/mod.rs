//! Traces in the formats of other tools, and as a page.

pub mod csv;
pub mod html;
pub mod paraver;
pub mod perfetto;

use std::io;
use std::path::PathBuf;

/// Why a trace cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Makes a file's errors into ours.
pub(crate) fn failed(path: &std::path::Path) -> impl Fn(io::Error) -> ConvertError + '_ {
    |source| ConvertError::Write { path: path.to_owned(), source }
}
