//! How jobs end: status, message, time, and nothing left behind.

use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use vrt_tests::job;
use vrt_tests::running::{Running, cpu_ticks, until};

const MISBEHAVE: &str = env!("CARGO_BIN_EXE_misbehave");

/// So long may an end take on a busy machine; it takes some hundredths of a second.
const SOON: Duration = Duration::from_secs(30);

/// A job of `misbehave`.
fn job(arguments: &[&str]) -> Command {
    with_arguments(job::unlimited(MISBEHAVE), arguments)
}

fn with_arguments(mut command: Command, arguments: &[&str]) -> Command {
    command.args(["--pes", "2", "--ranks", "8"]).args(arguments).env("RUST_BACKTRACE", "0");
    command
}

/// Runs it to its end; if it hangs, to that of our patience, which is status 124 or 137.
fn run(arguments: &[&str]) -> (Output, String) {
    let output =
        with_arguments(job::program(MISBEHAVE), arguments).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, text)
}

/// Runs it and checks status and words in the message.
#[track_caller]
fn ends(what: &str, status: i32, words: &[&str]) -> String {
    ends_with(&[what], status, words)
}

#[track_caller]
fn ends_with(arguments: &[&str], status: i32, words: &[&str]) -> String {
    let (output, text) = run(arguments);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{arguments:?}: {word:?} is missing in:\n{text}");
    }
    text
}

#[test]
fn a_job_in_which_all_is_well() {
    let (output, text) = run(&["nothing"]);
    assert!(output.status.success(), "{text}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "all is well\n");
    assert_eq!(text, "");
}

#[test]
fn a_panic_names_rank_and_pe() {
    let text = ends("panic", 101, &["panic in rank 5 on PE 1", "this is what went wrong"]);
    assert!(text.contains("rank 5 panicked; ending the job"), "{text}");
}

/// Nothing is torn down that might wait.
#[test]
fn a_job_ends_whatever_tasks_are_there() {
    ends("panic-beside-task", 101, &["rank 5 panicked; ending the job"]);
    ends("exit-beside-task", 3, &[]);
}

#[test]
fn a_caught_panic_is_none() {
    let (output, text) = run(&["catch-panic"]);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("caught on rank 3"), "{text}");
}

#[test]
fn exit_with_a_status_ends_the_job_with_it() {
    ends("exit3", 3, &[]);
}

#[test]
fn exit_0_ends_the_rank_only() {
    let (output, text) = run(&["exit0"]);
    assert_eq!(output.status.code(), Some(0), "{text}");
    // Said by the others, after those have ended.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "4 ranks went on\n", "{text}");
}

#[test]
fn a_rank_that_leaves_early_leaves_its_messages() {
    for what in ["leave-early", "exit-in-send", "return-in-send"] {
        for nodes in ["2", "1"] {
            let (output, text) = run(&[what, "--node-size", nodes]);
            assert_eq!(output.status.code(), Some(0), "{what}: {text}");
            let out = String::from_utf8_lossy(&output.stdout);
            assert_eq!(out.matches("has its message\n").count(), 4, "{what}: {out}{text}");
        }
    }
}

/// Its backtrace could not be printed.
#[test]
fn a_second_panic_is_told_as_the_first() {
    let said = ["the first one", "the second panic", "rank 5 on PE 1 aborted", "misbehave.rs:"];
    let text = ends("panic-twice", 134, &said);
    assert!(!text.contains("panic hook") && !text.contains("cannot be printed"), "{text}");
}

#[test]
fn a_stack_overflow_names_rank_and_option() {
    ends("recursion", 70, &["rank 5 on PE 1 overflowed its stack of 8192 KiB", "--stack"]);
    ends_with(&["--stack", "64K", "recursion"], 70, &["overflowed its stack of 64 KiB"]);
}

#[test]
fn one_big_frame_does_not_jump_over_the_guard() {
    ends("big-frame", 70, &["rank 5 on PE 1 overflowed its stack"]);
}

/// What lies below the stack of another rank is no end of the own one.
#[test]
fn the_end_of_another_stack_is_none_of_ones_own() {
    let text = ends("other-stack", 70, &["rank 5 on PE 1: invalid access to address"]);
    assert!(!text.contains("overflowed"), "{text}");
}

#[test]
fn a_full_heap_names_rank_and_option() {
    ends_with(
        &["--slot", "64M", "heap-full"],
        134,
        &["rank 5: its heap is full", "64 MiB", "--slot"],
    );
}

#[test]
fn fork_is_refused_with_the_way_out() {
    ends("fork", 70, &["rank 5 called fork()", "std::process::Command"]);
    ends("pre-exec", 70, &["rank 5 called fork()"]);
}

#[test]
fn programs_can_be_started() {
    let text = ends("command", 0, &[]);
    assert_eq!(text, "");
}

#[test]
fn a_deadlock_ends_with_a_table() {
    let text = ends("deadlock", 70, &["deadlock"]);
    for rank in 0..8 {
        let next = (rank + 1) % 8;
        let row = format!("rank {rank} (PE {}) waits in receive with rank {next}, tag 7", rank / 4);
        assert!(text.contains(&row), "{row:?} is missing in:\n{text}");
    }
    assert!(text.contains("misbehave.rs:"), "{text}");
}

#[test]
fn wrong_calls_are_explained() {
    ends("block-in-async", 101, &["is async", "`barrier`", "`barrier_async(..).await`"]);
    ends("block-in-drop", 101, &["the first message", "rank 5 made a blocking call while"]);
    ends("truncate", 101, &["16 bytes", "the buffer only 4", "misbehave.rs"]);
    ends("bad-rank", 101, &["rank 8 is out of range: 0 to 7 are allowed"]);
    ends("bad-tag", 101, &["tag -3 is out of range"]);
}

/// That was a panic of the runtime's.
#[test]
fn no_memory_for_messages_ends_the_job() {
    let memory = ["--slot", "16M", "--unexpected", "64G"];
    for (what, pe) in [("pool-full-here", 1), ("pool-full-there", 1), ("pool-full-by-copies", 1)] {
        let said = format!("PE {pe}: no memory left for ");
        let text = ends_with(&[what, memory[0], memory[1], memory[2], memory[3]], 70, &[&said]);
        assert!(text.contains("raise --slot") && !text.contains("panic"), "{what}: {text}");
    }
}

#[test]
fn an_invalid_access_names_the_rank() {
    let text =
        ends("null-pointer", 139, &["rank 5 on PE 1: invalid memory access", "PE 1 (process"]);
    assert!(text.contains("SIGSEGV") && text.contains("ranks 4..7"), "{text}");
}

#[test]
fn wrong_options_are_named() {
    ends_with(&["--rankz", "4", "nothing"], 2, &["--rankz"]);
    ends_with(&["nothing", "--stack", "10"], 2, &["a stack of 10 bytes", "64 KiB"]);
    let mut zero = job::program(MISBEHAVE);
    let output = zero.args(["--ranks", "0", "nothing"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("'0'") && text.contains("from 1 up"), "{text}");
    let output = with_arguments(job::program(MISBEHAVE), &["nothing"])
        .env("VRT_EAGER", "lots")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("'lots'") && output.status.code() == Some(2), "{text}");
}

#[test]
fn more_pes_than_cores_work_with_a_note() {
    let mut command = job::program(MISBEHAVE);
    let pes = std::thread::available_parallelism().unwrap().get() * 3;
    let pes = pes.to_string();
    let output = command.args(["--pes", &pes, "--ranks", "40", "nothing"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains(&format!("{pes} PEs share")), "{text}");
}

/// What a job takes grows with the number of its PEs, not with that of pairs of them.
#[test]
fn hundreds_of_pes_are_soon_there() {
    let mut patient = Command::new("timeout");
    patient.args(["--kill-after=5", "120", MISBEHAVE, "nothing", "--pes", "400", "--ranks", "400"]);
    let output = patient.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "all is well\n");
}

/// A signal is heard while PEs are still started: the job does not begin any more.
#[test]
fn a_job_is_interrupted_while_it_starts() {
    for (signal, status) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
        let mut command = job::unlimited(MISBEHAVE);
        command.args(["nothing", "--pes", "1000", "--ranks", "1000"]).stdin(Stdio::null());
        let job = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pid = job.id();
        let children = || std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        // A job may have another child before it has PEs.
        until("the first PEs", || children().unwrap().split_whitespace().count() > 2);
        // SAFETY: our child.
        unsafe { libc::kill(pid as i32, signal) };
        let output = job.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(text.contains("interrupted by SIG"), "{text}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    }
}

#[test]
fn what_a_rank_leaves_is_counted() {
    ends_with(&["--check-leaks", "leak"], 0, &["rank 5 ended and left 1 block (1000 bytes)"]);
}

#[test]
fn a_pointer_into_the_pes_heap_is_seen() {
    ends_with(&["--check-stacks", "hoard"], 0, &["rank 5", "points into its PE's heap"]);
}

fn start(what: &str) -> Running {
    Running::start(job(&[what]))
}

/// Sends a signal to a process of a job; checks its status (if its supervisor lives to tell),
/// message and end.
#[track_caller]
fn end_by(mut running: Running, signal: i32, pid: i32, status: Option<i32>, words: &[&str]) {
    let start = Instant::now();
    // SAFETY: a plain system call on our own processes.
    unsafe { libc::kill(pid, signal) };
    let got = running.parent.wait().unwrap();
    let mut text = String::new();
    running.parent.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(got.code(), status, "{got}: {text}");
    running.expect_end(start, SOON);
    for word in words {
        assert!(text.contains(word), "{word:?} is missing in:\n{text}");
    }
}

#[test]
fn killing_a_pe_ends_the_job() {
    for what in ["run-forever", "wait-forever"] {
        let running = start(what);
        let pid = running.pes[1];
        let words = ["PE 1", "SIGKILL", "ranks 4..7", "ending the job"];
        end_by(running, libc::SIGKILL, pid, Some(137), &words);
    }
}

#[test]
fn killing_the_supervisor_ends_its_pes() {
    for what in ["run-forever", "wait-forever"] {
        let running = start(what);
        let pid = running.parent.id() as i32;
        end_by(running, libc::SIGKILL, pid, None, &[]);
    }
}

#[test]
fn interrupt_and_terminate_end_the_job() {
    for (signal, status) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
        for what in ["run-forever", "wait-forever"] {
            // A signal sent while the job starts could find a thread of the supervisor on which it
            // was not blocked.
            for _ in 0..2 {
                let running = start(what);
                let pid = running.parent.id() as i32;
                let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count();
                assert_eq!(threads, 1, "the supervisor has more threads than the one that waits");
                end_by(running, signal, pid, Some(status), &["interrupted by SIG"]);
            }
        }
    }
}

#[test]
fn a_waiting_job_uses_no_cpu() {
    let running = start("wait-forever");
    std::thread::sleep(Duration::from_millis(300));
    let ticks = || -> u64 { running.pes.iter().map(|pid| cpu_ticks(*pid)).sum() };
    let before = ticks();
    std::thread::sleep(Duration::from_millis(1500));
    let used = ticks() - before;
    assert!(used <= 1, "{used} clock ticks in 1.5 s");
    let pid = running.parent.id() as i32;
    end_by(running, libc::SIGTERM, pid, Some(143), &[]);
}
