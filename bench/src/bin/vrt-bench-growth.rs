//! The program behind `scripts/bench growth`, which builds what this one runs.

use std::process::ExitCode;

use vrt_bench::command_line::run_tool;
use vrt_bench::growth;

fn main() -> ExitCode {
    run_tool("scripts/bench growth", growth::run)
}
