//! How all tests here start their programs.

use std::process::Command;

/// A command that starts one of our programs, and kills it if it hangs.
pub(crate) fn limited(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "300", program]);
    command
}
