//! Ranks that look for messages between two pieces of work.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

#[test]
fn a_look_finds_what_has_come() {
    let output = Command::new(env!("CARGO_BIN_EXE_polls"))
        .envs([("VRT_PES", "2"), ("VRT_RANKS", "2")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}", output.status);
}
