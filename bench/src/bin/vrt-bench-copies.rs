//! The program behind `scripts/bench copies`, which builds what this one runs.

use std::process::ExitCode;

use vrt_bench::command_line::run_tool;
use vrt_bench::copies;

fn main() -> ExitCode {
    run_tool("scripts/bench copies", copies::run)
}
