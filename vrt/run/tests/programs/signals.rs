//! Signals of a rank behave as those of a process: each rank must print what a separate process prints.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use vrt_tests::job::Job;

use crate::places::{MOVING, ON_ONE_PE, Place, STILL};
use crate::program::{self, Program};

const SIGNALS: Program = Program { options: &["-pthread"], ..Program::new("signals.c") };
const RANKS: usize = 4;

/// The same program without MPI, compiled by the plain compiler.
fn alone() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| program::compile_alone("signals.c", &["-DALONE", "-pthread"])).clone()
}

/// The output of a process.
fn native(cases: &str) -> String {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "60"]).arg(alone()).args(cases.split_whitespace());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// The lines of one rank; each line begins with the rank's number.
fn lines_of(rank: usize, said: &str) -> Vec<&str> {
    let prefix = format!("{rank}: ");
    said.lines().filter_map(|line| line.strip_prefix(&prefix)).collect()
}

#[track_caller]
fn all_are_as_a_process(cases: &str, places: &[Place]) {
    let native = native(cases);
    let expected = lines_of(0, &native);
    assert!(expected.len() > 2 * cases.split_whitespace().count(), "{native}");
    for place in places {
        place.runs(|| {
            let job = Job::of(SIGNALS.job(&place.with(RANKS), cases)).succeeds();
            for rank in 0..RANKS {
                let said = lines_of(rank, &job.out);
                let differs = said.iter().zip(&expected).position(|(one, other)| one != other);
                let differs = differs.unwrap_or(said.len().min(expected.len()));
                assert!(
                    said == expected,
                    "rank {rank}: {:?}, a process: {:?}: {job}",
                    said.get(differs),
                    expected.get(differs)
                );
            }
            job
        });
    }
}

/// Handlers that leave by a jump, out of timers, waits and faults; masks that jumps restore.
#[test]
fn jumps() {
    let cases = "jump_out_of_timer jump_out_of_periodic_timer jump_out_of_raise jump_without_mask \
                 jump_without_mask_stays_blocked jump_restores_whole_mask jump_out_of_waits jump_out_of_fault \
                 ticks_after_jump";
    all_are_as_a_process(cases, &[STILL, MOVING, ON_ONE_PE]);
}

/// Calls that a handler interrupts (`EINTR`), with and without `SA_RESTART`, and calls that continue.
#[test]
fn waits() {
    let cases = "interrupted_sleeps interrupted_waits_for_signals interrupted_calls \
                 interrupted_in_spite_of_restart restarted uninterrupted masks_of_calls";
    all_are_as_a_process(cases, &[STILL, ON_ONE_PE]);
}

/// `SIGCHLD`, `sigwait` for it, and which rank's child a process is.
#[test]
fn children() {
    let cases = "children_are_told child_ends_pause child_wakes_sigwait children_are_reaped_in_handler \
                 ignored_children_leave_nothing any_child_is_an_own_one child_handles_its_own \
                 child_signals_its_parent child_stops";
    all_are_as_a_process(cases, &[STILL, MOVING, ON_ONE_PE]);
}

/// `kill`, `sigqueue`, `tgkill` and similar calls to oneself, the order of queued signals, and what `sigwait` takes.
#[test]
fn to_oneself() {
    let cases = "sent_to_oneself queued taken_by_sigwait flags_of_handlers";
    all_are_as_a_process(cases, &[STILL, MOVING, ON_ONE_PE]);
}

/// Threads of a rank: their own masks; signals for one thread, for any, and for the rank's own thread.
#[test]
fn threads() {
    let cases = "thread_in_sigwait thread_is_signalled thread_signals_main masks_of_threads thread_sets_timer";
    all_are_as_a_process(cases, &[STILL, ON_ONE_PE]);
}

/// `timer_create` and `setitimer`.
#[test]
fn timers() {
    all_are_as_a_process(
        "posix_timers overruns timers_at_once interval_timers ended_timers",
        &[STILL, MOVING, ON_ONE_PE],
    );
}
