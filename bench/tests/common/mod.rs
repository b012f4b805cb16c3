//! What all tests here start their programs with.

use std::process::Command;

/// A command that starts a program of ours, and ends it when it hangs.
pub fn limited(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "300", program]);
    command
}
