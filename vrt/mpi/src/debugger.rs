//! Support for debuggers, which find an image's code only if they are told which file is at which address.

use std::fmt::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use vrt_load::Plan;
use vrt_slot::report;

/// The rank that waits for a debugger.
static AWAITED_BY: AtomicU32 = AtomicU32::new(u32::MAX);

/// Sets the rank that waits for a debugger before its program begins.
pub(crate) fn set(rank: u32) {
    AWAITED_BY.store(rank, Ordering::Relaxed);
}

/// If it is this rank: prints the command that attaches a debugger, and waits for it.
pub(crate) fn wait(rank: u32, plan: &Plan, base: usize) {
    /// Time between two checks.
    const PAUSE: Duration = Duration::from_millis(20);
    if rank != AWAITED_BY.load(Ordering::Relaxed) {
        return;
    }
    let mut command = format!("gdb -p {}", std::process::id());
    for module in plan.modules() {
        let offset = base.wrapping_add(module.bias);
        let _ = write!(command, " -ex 'add-symbol-file {} -o {offset:#x}'", module.path.display());
    }
    report::say(format_args!(
        "rank {rank} waits for a debugger: {command} -ex 'break main' -ex continue"
    ));
    while !is_traced() {
        std::thread::sleep(PAUSE);
    }
}

/// Whether a debugger is attached to this process.
fn is_traced() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|number| number.trim() != "0")
}
