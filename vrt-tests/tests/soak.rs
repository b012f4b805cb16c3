//! The soak, short. `VRT_SOAK_SECONDS=60 cargo test -p vrt-tests --test soak` makes it longer.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

fn seconds() -> String {
    std::env::var("VRT_SOAK_SECONDS").unwrap_or_else(|_| "2".to_owned())
}

/// Runs a soak on 64 ranks and 4 PEs with suspended stacks scanned.
#[track_caller]
fn soak(more: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soak"));
    command.args(["--pes", "4", "--ranks", "64", "--seconds", &seconds()]);
    // Unoptimised frames are full of dead words that look like pointers; `scripts/test` runs the
    // optimised soak with its stacks scanned.
    if !cfg!(debug_assertions) {
        command.arg("--check-stacks");
    }
    let output = command.args(more).env("RUST_BACKTRACE", "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let said: Vec<&str> =
        text.lines().filter(|l| l.starts_with("soak:") || l.starts_with("vrt:")).collect();
    assert!(output.status.success(), "{more:?}: {said:#?}");
    assert!(!text.contains("points into its PE's heap"), "{said:#?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn random_traffic_arrives_whole_and_in_order() {
    let out = soak(&[]);
    assert!(out.contains(" ok"), "{out}");
}

#[test]
fn small_messages_flood_the_rings() {
    soak(&["--longest", "64", "--eager", "16K"]);
}

#[test]
fn everything_is_a_rendezvous() {
    soak(&["--longest", "100000", "--eager", "0"]);
}

#[test]
fn ranks_that_print_panic_log_and_start_threads() {
    let out = soak(&["--hostile", "--longest", "100000"]);
    assert!(out.contains("rank 63 round 1"), "{}", &out[..out.len().min(500)]);
}
