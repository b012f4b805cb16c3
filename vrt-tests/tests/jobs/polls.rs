//! Ranks that look for messages between two pieces of work.

use vrt_tests::job;

#[test]
fn a_look_finds_what_has_come() {
    let output = job::program(env!("CARGO_BIN_EXE_polls"))
        .envs([("VRT_PES", "2"), ("VRT_RANKS", "2")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}", output.status);
}
