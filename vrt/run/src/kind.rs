//! Determines the kind of the program that is to be run.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use object::read::elf::FileHeader;
use object::{Endianness, Object, ObjectSymbol, elf};

/// A kind of program, which decides how it becomes ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It contains vrt, and becomes a job by itself.
    RustFace,
    /// It is loaded once for each rank.
    Abi,
    /// A script that starts a program.
    Script,
    /// A program that could be loaded but does not use MPI; it is expected to start one that does,
    /// like a script.
    Starter,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::RustFace => "a program of vrt's Rust face",
            Kind::Abi => "a program of the MPI ABI, loaded for each rank",
            Kind::Script => "a script",
            Kind::Starter => "a program that does not use MPI",
        })
    }
}

/// Why a file cannot be run as a program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KindError {
    /// It cannot be read.
    #[error("cannot run {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// It is not a program that the system can run.
    #[error("cannot run {}: it is no program and no script", .0.display())]
    NoProgram(PathBuf),
    /// It is not executable.
    #[error("cannot run {}: it is not executable (chmod +x)", .0.display())]
    NotExecutable(PathBuf),
}

/// The section by which a program is recognised as one that becomes a job by itself.
const MARK: &[u8] = b".note.vrt";

impl Kind {
    /// The kind of a program's file.
    ///
    /// # Errors
    /// It cannot be read, or is not a program.
    pub(crate) fn of(path: &Path) -> Result<Kind, KindError> {
        let failed = |source| KindError::Read { path: path.to_path_buf(), source };
        let mut bytes = Vec::new();
        File::open(path).map_err(failed)?.read_to_end(&mut bytes).map_err(failed)?;
        let is_program = bytes.starts_with(b"#!") || bytes.starts_with(&elf::ELFMAG);
        if is_program && !is_executable(path) {
            return Err(KindError::NotExecutable(path.to_path_buf()));
        }
        if bytes.starts_with(b"#!") {
            return Ok(Kind::Script);
        }
        if !bytes.starts_with(&elf::ELFMAG) {
            return Err(KindError::NoProgram(path.to_path_buf()));
        }
        // What else is wrong with it the loader says.
        Ok(if has_mark(&bytes) { Kind::RustFace } else { Kind::Abi })
    }
}

fn has_mark(bytes: &[u8]) -> bool {
    let sections = || {
        let header = elf::FileHeader64::<Endianness>::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, bytes).ok()?;
        let is_mark = |section: &elf::SectionHeader64<Endianness>| {
            sections.section_name(endian, section).is_ok_and(|name| name == MARK)
        };
        Some(sections.iter().any(is_mark))
    };
    sections().unwrap_or(false)
}

/// Whether a file is executable by anybody.
fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Whether a program contains functions of MPI, or refers to some. A file that cannot be read may.
pub(crate) fn mentions_mpi(path: &Path) -> bool {
    let Ok(bytes) = std::fs::read(path) else { return true };
    let Ok(file) = object::File::parse(&*bytes) else { return true };
    let is_mpis = |name: &str| name.starts_with("MPI_") || name.starts_with("PMPI_");
    let mut symbols = file.symbols().chain(file.dynamic_symbols());
    symbols.any(|symbol| symbol.name().is_ok_and(is_mpis))
}

/// The program's file: the given path, or found in the search path.
pub(crate) fn find(program: &Path) -> PathBuf {
    if program.components().count() > 1 {
        return program.to_path_buf();
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories)
        .map(|directory| directory.join(program))
        .find(|candidate| is_executable(candidate))
        .unwrap_or_else(|| program.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_program_is_said_to_be_none() {
        let text = Kind::of(Path::new("Cargo.toml")).map_err(|error| error.to_string());
        assert_eq!(text, Err("cannot run Cargo.toml: it is no program and no script".to_owned()));
        let missing = Kind::of(Path::new("no/such/file")).map_err(|error| error.to_string());
        assert!(missing.is_err_and(|text| text.starts_with("cannot run no/such/file: ")));
    }
}
