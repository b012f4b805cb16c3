//! Programs with a global allocator of their own.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

/// Their ranks moved without what they had allocated.
#[test]
fn ranks_stay_where_another_allocator_has_their_memory() {
    let job = "--kill-after=5 60 env VRT_PES=2 VRT_RANKS=4 VRT_LB=rotate VRT_LB_PERIOD=5ms";
    let output = Command::new("timeout")
        .args(job.split_whitespace())
        .arg(env!("CARGO_BIN_EXE_allocator"))
        .output()
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(out.contains("global allocator") && out.contains("ok"), "{out}");
    assert!(err.contains("global allocator") && err.contains("0 ranks moved"), "{err}");
}
