//! Directories, compilers and commands for the other tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use vrt_tests::executable::write_script;

pub(crate) const VRTCC: &str = env!("CARGO_BIN_EXE_vrtcc");
pub(crate) const VRTCXX: &str = env!("CARGO_BIN_EXE_vrtcxx");

/// The directory of a test, with a cache for wrappers in it.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Creates an executable `sh` script.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_script(&path, &format!("#!/bin/sh\n{text}"));
        path
    }

    /// A command in this directory, in an environment without settings for wrappers.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(self.path()).env("XDG_CACHE_HOME", self.join("cache"));
        for variable in ["VRT_CC", "VRT_CXX", "VRT_STARTED_AGAIN"] {
            command.env_remove(variable);
        }
        command
    }

    /// Compiles the C program `text` with `vrtcc`.
    pub(crate) fn program(&self, name: &str, text: &str) -> PathBuf {
        let source = self.write(&format!("{name}.c"), text);
        succeed(self.command(VRTCC).arg("-Wall").arg(source).arg("-o").arg(name));
        self.join(name)
    }
}

/// Runs a command to completion.
pub(crate) fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs a command that must succeed; returns its standard output without the final newline.
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = output(command);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{stderr}", output.status);
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// Runs a command that must end with this status; returns its standard error.
pub(crate) fn fail(command: &mut Command, status: i32) -> String {
    let output = output(command);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{command:?}: {stderr}");
    stderr
}

/// Whether a program is installed.
pub(crate) fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}
