//! The command line of `vrt-bench copies`, and `vrt-bench run pingpong --touch` in a job of two PEs.

#![allow(clippy::unwrap_used)]

mod common;

use common::limited;
use vrt_bench::measure::Measured;

#[test]
fn wrong_options_are_named_in_a_line() {
    for wrong in [
        &["--bytes", "100"][..],
        &["--bytes", "4G"],
        &["--rounds", "0"],
        &["--quick", "--bytes", "4K"],
        &["--quick", "--rounds", "2"],
    ] {
        let mut command = limited(env!("CARGO_BIN_EXE_vrt-bench"));
        let output = command.arg("copies").args(wrong).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(wrong[0]) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn messages_arrive_in_buffers_that_are_touched() {
    for bytes in ["1000", "40000", "2000000"] {
        let mut command = limited(env!("CARGO_BIN_EXE_vrt-bench"));
        command.args(["run", "pingpong", "--touch", "--bytes", bytes, "--operations", "10"]);
        command.args(["--repetitions", "3", "--pes", "2", "--ranks", "2", "--no-bind"]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let line = String::from_utf8_lossy(&output.stdout);
        let measured: Measured = serde_json::from_str(line.trim()).unwrap();
        assert!(measured.seconds > 0.0);
    }
}
