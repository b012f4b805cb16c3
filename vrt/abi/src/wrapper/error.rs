//! Why a wrapper could not do what it was asked for.

use std::io;
use std::path::PathBuf;

use super::language::Language;

/// Why a wrapper could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The compiler could not be started.
    #[error(
        "cannot run the {language} compiler `{program}`: {error}; ${} can name another one",
        language.variable()
    )]
    Compiler {
        /// Of which language.
        language: Language,
        /// What was tried.
        program: String,
        /// What the system says.
        error: io::Error,
    },
    /// The environment names the wrapper as the compiler that it should run.
    #[error(
        "`{program}` is this wrapper itself; ${} has to name the {language} compiler that it runs",
        language.variable()
    )]
    Itself {
        /// Of which language.
        language: Language,
        /// What it is called.
        program: String,
    },
    /// A file or directory of a prefix could not be made.
    #[error("cannot write `{}`: {error}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A header that is not ours is where ours would be.
    #[error("`{}` is of another MPI; it is left alone, so choose another directory", .0.display())]
    Foreign(PathBuf),
    /// The directory for temporary files has one of somebody else's.
    #[error("`{}` is not this user's alone", .0.display())]
    NotOurs(PathBuf),
    /// There is no place for header and stub library.
    #[error("found no directory for mpi.h and the stub library:{}", lines(.0))]
    NoPlace(Vec<Error>),
    /// The stub library could not be compiled.
    #[error("`{command}` cannot compile the stub library:\n{output}")]
    Stub {
        /// What was run.
        command: String,
        /// What it wrote.
        output: String,
    },
    /// An option of the wrapper that it does not have.
    #[error("`{option}` is no option of this wrapper; `--vrt-help` lists them")]
    Option {
        /// The option.
        option: String,
    },
    /// `--vrt-install` has no directory behind it.
    #[error("`--vrt-install` needs a directory behind it")]
    NoDirectory,
    /// The answer could not be written.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
}

/// Each error in a line of its own.
fn lines(errors: &[Error]) -> String {
    errors.iter().map(|error| format!("\n  {error}")).collect()
}
