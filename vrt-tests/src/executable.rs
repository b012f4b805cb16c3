//! Files that a test makes and then executes.
//!
//! Another process writes them. While this one has a file open for writing, a child that the thread of another test
//! forks has it open, too, until it executes its program; and nobody can execute such a file ("text file busy").

use std::fs;
use std::path::Path;
use std::process::Command;

/// Copies a program to where it is to be executed.
///
/// # Panics
///
/// If it cannot be copied.
pub fn install(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let (from, to) = (from.as_ref(), to.as_ref());
    let status = Command::new("install").args(["-m", "755", "--"]).args([from, to]).status();
    let is_there = status.as_ref().is_ok_and(|status| status.success());
    assert!(is_there, "install {} {}: {status:?}", from.display(), to.display());
}

/// Writes a script that can be executed.
///
/// # Panics
///
/// If it cannot be written.
pub fn write_script(to: impl AsRef<Path>, text: &str) {
    let mut name = to.as_ref().as_os_str().to_owned();
    name.push(".text");
    fs::write(&name, text).unwrap_or_else(|error| panic!("{}: {error}", name.display()));
    install(name, to);
}
