//! The program behind `scripts/bench metg`, which builds what this one runs.

use std::process::ExitCode;

use vrt_bench::command_line::run_tool;
use vrt_bench::granularity;

fn main() -> ExitCode {
    run_tool("scripts/bench metg", granularity::run)
}
