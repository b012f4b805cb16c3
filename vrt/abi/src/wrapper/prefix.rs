//! Where the header and the stub library are: found, or made.
//!
//! A prefix has `include/mpi.h`, `lib/libmpi_abi.so.1` with a link to it, the same in `lib/vrt-all` with all functions if that was asked for,
//! `lib/pkgconfig/vrt-mpi.pc`, and `lib/vrt-mpi.stamp`, which says of which version they are. Many
//! wrappers may find none at once. Each then makes all of it: every file is written under a name of
//! its own and renamed, the stamp last. So whoever sees a stamp sees whole files, and files that
//! are replaced are replaced by the same.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, process};

use super::compiler::Compiler;
use super::error::Error;
use super::language::Language;
use crate::{HEADER, LIBRARY, VERSION_HASH, pkg_config};

/// What the linker looks for when it is told `-lmpi_abi`.
const LINK: &str = "libmpi_abi.so";
const STAMP: &str = "vrt-mpi.stamp";

/// A directory with header and stub library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    path: PathBuf,
    /// Programs are linked with a library that has all functions, also those that are not there.
    all: bool,
}

impl Prefix {
    /// The prefix for the wrapper that is running. It is made if there is none: beside the
    /// directory `bin` that the wrapper is in, in the user's cache, or among temporary files.
    ///
    /// # Errors
    /// The stub library cannot be compiled, or nothing can be written anywhere.
    pub fn find(language: Language, all: bool) -> Result<Prefix, Error> {
        let mut failed = Vec::new();
        for place in [beside_program, in_cache, in_temporary] {
            let prefix = match place() {
                Ok(Some(path)) => Prefix { path, all },
                Ok(None) => continue,
                Err(error) => {
                    failed.push(error);
                    continue;
                }
            };
            if prefix.is_complete() {
                return Ok(prefix);
            }
            match prefix.fill(language) {
                Ok(()) => return Ok(prefix),
                // Another directory can help against these.
                Err(error @ (Error::File { .. } | Error::Foreign(_))) => failed.push(error),
                Err(error) => return Err(error),
            }
        }
        Err(Error::NoPlace(failed))
    }

    /// Makes all files in a directory, whether or not they are there.
    ///
    /// # Errors
    /// The stub library cannot be compiled, a file cannot be written, or the directory has the
    /// header of another MPI.
    pub fn make(directory: &Path, language: Language, all: bool) -> Result<Prefix, Error> {
        let prefix = Prefix { path: directory.to_owned(), all };
        prefix.fill(language)?;
        Ok(prefix)
    }

    /// The prefix itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where `mpi.h` is.
    pub fn include(&self) -> PathBuf {
        self.path.join("include")
    }

    /// Where the stub library is.
    pub fn lib(&self) -> PathBuf {
        self.path.join("lib")
    }

    /// Where the stub library is that programs are linked with.
    pub fn linked(&self) -> PathBuf {
        if self.all { self.with_all() } else { self.lib() }
    }

    /// Where the stub library is that has all functions.
    fn with_all(&self) -> PathBuf {
        self.lib().join("vrt-all")
    }

    /// Whether all files are there, and of this version.
    pub fn is_complete(&self) -> bool {
        let stamp = fs::read_to_string(self.lib().join(STAMP));
        stamp.is_ok_and(|stamp| stamp.trim_end() == VERSION_HASH)
            && [self.header(), self.lib().join(LIBRARY), self.lib().join(LINK)]
                .iter()
                .chain(&[self.linked().join(LINK)])
                .all(|file| file.is_file())
    }

    #[cfg(test)]
    pub(super) fn at(path: &str) -> Prefix {
        Prefix { path: path.into(), all: false }
    }

    fn header(&self) -> PathBuf {
        self.include().join("mpi.h")
    }

    fn fill(&self, language: Language) -> Result<(), Error> {
        let header = self.header();
        match fs::read(&header) {
            Ok(text) if !is_ours(&text) => return Err(Error::Foreign(header)),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::File { path: header, error }),
        }
        // That of another version would be taken for one of this.
        let stamp = fs::read_to_string(self.lib().join(STAMP));
        if stamp.is_ok_and(|stamp| stamp.trim_end() != VERSION_HASH) {
            let _ = fs::remove_dir_all(self.with_all());
        }
        let pkg_config_directory = self.lib().join("pkgconfig");
        for directory in [&self.include(), &pkg_config_directory, &self.linked()] {
            fs::create_dir_all(directory)
                .map_err(|error| Error::File { path: directory.clone(), error })?;
        }
        replace(&header, |file| write(file, HEADER))?;
        let pkg_config = pkg_config(&self.path);
        replace(&pkg_config_directory.join("vrt-mpi.pc"), |file| write(file, &pkg_config))?;
        let libraries = [(self.with_all(), true), (self.lib(), false)];
        for (directory, all) in libraries.into_iter().filter(|it| self.all || !it.1) {
            replace(&directory.join(LIBRARY), |file| compile_stub(file, language, all))?;
            replace(&directory.join(LINK), |file| {
                std::os::unix::fs::symlink(LIBRARY, file)
                    .map_err(|error| Error::File { path: file.to_owned(), error })
            })?;
        }
        replace(&self.lib().join(STAMP), |file| write(file, &format!("{VERSION_HASH}\n")))
    }
}

/// Whether a header is of some version of this crate: it says so in its first line.
fn is_ours(header: &[u8]) -> bool {
    let first = |text: &[u8]| text.split(|&byte| byte == b'\n').next().map(<[u8]>::to_vec);
    first(header) == first(HEADER.as_bytes())
}

/// Makes a file under another name, and gives it its name when it is whole.
fn replace(path: &Path, make: impl FnOnce(&Path) -> Result<(), Error>) -> Result<(), Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Processes on several machines, or in several containers, may have the same number.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let unfinished = path.with_file_name(format!(".{name}.{}.{now}", process::id()));
    let done = make(&unfinished).and_then(|()| {
        fs::rename(&unfinished, path).map_err(|error| Error::File { path: path.to_owned(), error })
    });
    if done.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    done
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|error| Error::File { path: path.to_owned(), error })
}

/// Compiles the stub library with the C compiler or, where there is none, with the wrapper's.
fn compile_stub(output: &Path, language: Language, all: bool) -> Result<(), Error> {
    match Compiler::of(Language::C)?.compile_stub(output, all) {
        Err(Error::Compiler { .. }) if language != Language::C => {
            Compiler::of(language)?.compile_stub(output, all)
        }
        result => result,
    }
}

/// The directory that has the wrapper in its `bin`.
fn beside_program() -> Result<Option<PathBuf>, Error> {
    // A program that is not known to be anywhere is not in such a directory.
    let Ok(program) = env::current_exe() else { return Ok(None) };
    let directory = program.parent().filter(|path| path.file_name() == Some(OsStr::new("bin")));
    Ok(directory.and_then(Path::parent).map(Path::to_owned))
}

/// In the user's cache, a directory for each version.
fn in_cache() -> Result<Option<PathBuf>, Error> {
    let absolute = |variable| env::var_os(variable).map(PathBuf::from).filter(|p| p.is_absolute());
    let in_home = || Some(absolute("HOME")?.join(".cache"));
    let cache = absolute("XDG_CACHE_HOME").or_else(in_home);
    Ok(cache.map(|cache| cache.join("vrt").join(VERSION_HASH)))
}

/// Among temporary files, in a directory of the user's that nobody else can write to.
fn in_temporary() -> Result<Option<PathBuf>, Error> {
    // Standard Rust does not say who the user is; the process' own directory does.
    let Ok(process) = fs::metadata("/proc/self") else { return Ok(None) };
    let directory = env::temp_dir().join(format!("vrt-{}", process.uid()));
    let ours = || -> io::Result<bool> {
        match fs::DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let known = fs::symlink_metadata(&directory)?;
        Ok(known.is_dir() && known.uid() == process.uid() && known.mode() & 0o022 == 0)
    };
    match ours() {
        Ok(true) => Ok(Some(directory.join(VERSION_HASH))),
        Ok(false) => Err(Error::NotOurs(directory)),
        Err(error) => Err(Error::File { path: directory, error }),
    }
}
