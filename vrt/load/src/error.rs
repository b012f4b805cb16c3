//! Why a program cannot be loaded. Each message names what was found, what is possible, and what to
//! do.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A program or one of its libraries cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The loader does not support this processor.
    #[error("programs can be loaded on x86_64 alone; this is {architecture}")]
    UnsupportedArchitecture {
        /// The architecture that the process was compiled for.
        architecture: &'static str,
    },
    /// It cannot be determined where the process's own program has its thread-locals.
    #[error(
        "the program has no symbols, so nobody can tell whose its thread-locals are: link it without -s, and \
         leave `strip` out of its profile or set it to \"debuginfo\""
    )]
    NoSymbols,
    /// A system call failed.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation that failed.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The file is something else: a script, an archive, text.
    #[error("{} is not an ELF file: it has to be a program or a shared object", path.display())]
    NotElf {
        /// The file.
        path: PathBuf,
    },
    /// The file is ELF, but neither a program nor a shared object.
    #[error(
        "{} is an ELF file of type {kind}: it has to be a program or a shared object; link it",
        path.display()
    )]
    NotLinked {
        /// The file.
        path: PathBuf,
        /// Its `e_type`.
        kind: u16,
    },
    /// The file is for 32-bit processes.
    #[error("{} is a 32-bit program: compile it with -m64", path.display())]
    ThirtyTwoBit {
        /// The file.
        path: PathBuf,
    },
    /// The file is for another processor.
    #[error(
        "{} is for another processor (ELF machine {machine}; this one is 62, x86-64): \
         compile it on this machine",
        path.display()
    )]
    OtherMachine {
        /// The file.
        path: PathBuf,
        /// Its `e_machine`.
        machine: u16,
    },
    /// The program is linked to fixed addresses, so a process can contain only one copy of it.
    #[error(
        "{} is not position independent (ET_EXEC), so it cannot be loaded more than once: \
         compile and link it with -fPIE -pie",
        path.display()
    )]
    FixedAddress {
        /// The file.
        path: PathBuf,
    },
    /// The program has no dynamic section: nothing in it can be bound to the runtime.
    #[error(
        "{} is linked statically, so nothing in it can be bound to the runtime: \
         link it without -static",
        path.display()
    )]
    Static {
        /// The file.
        path: PathBuf,
    },
    /// The same, though it is position independent.
    #[error(
        "{} is linked statically (static-pie), so nothing in it can be bound to the runtime: \
         link it with -pie, without -static-pie",
        path.display()
    )]
    StaticPie {
        /// The file.
        path: PathBuf,
    },
    /// A shared object without a function to run.
    #[error(
        "{} is a shared object without a function main: define main, \
         or link it as a program (-pie, without -shared)",
        path.display()
    )]
    NoMain {
        /// The file.
        path: PathBuf,
    },
    /// The file is inconsistent.
    #[error("{} is damaged: {what}; link it again", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The file has relocations in its code, or code among its data.
    #[error(
        "{} has code that is written when it is loaded ({what}): \
         compile all of it with -fPIC or -fPIE, and link it without -N or -z notext",
        path.display()
    )]
    WritableCode {
        /// The file.
        path: PathBuf,
        /// The evidence.
        what: &'static str,
    },
    /// A library was not found.
    #[error(
        "{library}, needed by {}, was not found in {}: \
         set LD_LIBRARY_PATH, or link with -Wl,-rpath,FOLDER",
        needed_by.display(), folders(searched)
    )]
    LibraryNotFound {
        /// The library's name in the module that needs it.
        library: String,
        /// The module that needs it.
        needed_by: PathBuf,
        /// The directories that were searched.
        searched: Vec<PathBuf>,
    },
    /// A library that the process is to share cannot be loaded.
    #[error(
        "{library}, needed by {}, cannot be loaded for the process: {message}",
        needed_by.display()
    )]
    SharedLibrary {
        /// The library's name in the module that needs it.
        library: String,
        /// The module that needs it.
        needed_by: PathBuf,
        /// The message of the process's loader.
        message: String,
    },
    /// The caller rejects this library.
    #[error("{library}, needed by {}, must not be loaded: {reason}", needed_by.display())]
    Refused {
        /// The library's name in the module that needs it.
        library: String,
        /// The module that needs it.
        needed_by: PathBuf,
        /// The caller's reason.
        reason: String,
    },
    /// Some symbols are undefined.
    #[error("not defined anywhere: {}; link the libraries that define them", list(symbols))]
    MissingSymbols {
        /// The symbols.
        symbols: Vec<MissingSymbol>,
    },
    /// A thread-local is accessed through a descriptor.
    #[error(
        "{} reaches the thread-local {symbol} through a descriptor, as it was compiled with \
         -mtls-dialect=gnu2; compile it with -mtls-dialect=gnu",
        path.display()
    )]
    ThreadLocalDescriptor {
        /// The file.
        path: PathBuf,
        /// The thread-local.
        symbol: String,
    },
    /// The loader does not support a relocation.
    #[error(
        "{} has a relocation of type {kind} for {symbol}, which no position independent program \
         needs: compile all of it with -fPIC or -fPIE",
        path.display()
    )]
    UnknownRelocation {
        /// The file.
        path: PathBuf,
        /// Its type.
        kind: u32,
        /// Its symbol, or "no symbol".
        symbol: String,
    },
    /// The reserve below the thread pointer is too small.
    #[error(
        "the thread-locals of {} and its libraries need {needed} bytes, and {reserve} are kept \
         free for them; the largest part, {largest} bytes, is that of {}: \
         make large thread-local arrays global or allocate them",
        program.display(), largest_of.display()
    )]
    ThreadLocalsTooLarge {
        /// The program.
        program: PathBuf,
        /// Bytes that all private modules need.
        needed: usize,
        /// Bytes available.
        reserve: usize,
        /// Bytes of the module with the largest thread-locals.
        largest: usize,
        /// That module.
        largest_of: PathBuf,
    },
    /// A thread-local of the process has no fixed distance from the thread pointer.
    #[error(
        "{} needs the process's thread-local {symbol}, which is not at a fixed distance from the \
         thread pointer: load the library that defines it for each image",
        path.display()
    )]
    ThreadLocalOfProcess {
        /// The module that needs it.
        path: PathBuf,
        /// The thread-local.
        symbol: String,
    },
}

/// An undefined symbol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingSymbol {
    /// Its name.
    pub name: String,
    /// The required version, if any.
    pub version: Option<String>,
    /// The module that needs it.
    pub needed_by: PathBuf,
}

impl fmt::Display for MissingSymbol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MissingSymbol { name, version, needed_by } = self;
        match version {
            Some(version) => write!(formatter, "{name}@{version}")?,
            None => write!(formatter, "{name}")?,
        }
        write!(formatter, " (needed by {})", needed_by.display())
    }
}

fn list(symbols: &[MissingSymbol]) -> String {
    symbols.iter().map(MissingSymbol::to_string).collect::<Vec<_>>().join(", ")
}

fn folders(searched: &[PathBuf]) -> String {
    let names: Vec<_> = searched.iter().map(|folder| folder.display().to_string()).collect();
    if names.is_empty() { "any folder".into() } else { names.join(", ") }
}
