//! What a crash leaves to debug with: a backtrace of the rank, and on demand a core with the rank's
//! memory.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use vrt_tests::job::{self, takes_all_cases};

/// A job of `crashes` in a directory of its own.
struct Job {
    command: Command,
    directory: PathBuf,
}

impl Job {
    fn new(name: &str, arguments: &[&str]) -> Job {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let mut command = job::program(env!("CARGO_BIN_EXE_crashes"));
        command.args(["--pes", "2", "--ranks", "8"]).args(arguments).current_dir(&directory);
        command.env_remove("RUST_BACKTRACE").stdin(Stdio::null());
        Job { command, directory }
    }

    /// Runs it; checks its status, and returns what it has said.
    #[track_caller]
    fn ends(&mut self, status: i32) -> String {
        let output = self.command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{text}");
        text
    }
}

#[track_caller]
fn expect_in_order(text: &str, words: &[&str]) {
    let mut rest = text;
    for word in words {
        match rest.find(word) {
            Some(at) => rest = &rest[at + word.len()..],
            None => panic!("{word:?} is missing, or not where it should be, in:\n{text}"),
        }
    }
}

#[test]
fn a_crash_prints_the_backtrace_of_its_rank() {
    for (what, status, message) in [
        ("segv", 139, "invalid memory access at address 0x0 (signal 11)"),
        ("call-null", 139, "invalid memory access at address 0x0 (signal 11)"),
        ("no-address", 139, "to an address that cannot be (signal 11)"),
        ("bus", 135, "(signal 7)"),
        ("ill", 132, "illegal instruction"),
        ("fpe", 136, "arithmetic error"),
        ("abort", 134, "aborted (signal 6)"),
        ("double-free", 134, "aborted (signal 6)"),
        ("overflow", 70, "overflowed its stack of 8192 KiB"),
        ("overflow-of-signals", 70, "overflowed its stack of 8192 KiB"),
    ] {
        let text = Job::new(what, &[what]).ends(status);
        let frames = [
            "rank 5 on PE 1",
            message,
            "backtrace of rank 5 on PE 1",
            "crashes::inner_function",
            "crashes.rs:",
            "crashes::outer_function",
            "crashes.rs:",
        ];
        expect_in_order(&text, &frames);
        for frame in RUNTIME_FRAMES {
            assert!(!text.contains(frame), "frames of the runtime in:\n{text}");
        }
    }
}

/// Functions of the runtime from which a rank's program is called.
const RUNTIME_FRAMES: [&str; 2] = ["run_program", "vrt_slot::stack::switch::first_frame"];

#[test]
fn a_deep_recursion_is_told_in_short() {
    let text = Job::new("deep", &["overflow"]).ends(70);
    expect_in_order(&text, &["crashes::recurse", "times more", "frames are left out"]);
    assert!(text.lines().count() < 60, "{} lines", text.lines().count());
}

#[test]
fn a_backtrace_can_be_had_whole_or_not_at_all() {
    let mut job = Job::new("whole", &["segv"]);
    job.command.env("RUST_BACKTRACE", "full");
    // The others may have been inlined.
    expect_in_order(&job.ends(139), &["crashes::inner_function", RUNTIME_FRAMES[1]]);
    job.command.env("RUST_BACKTRACE", "0");
    let text = job.ends(139);
    assert!(text.contains("rank 5 on PE 1: invalid") && !text.contains("inner_function"), "{text}");
}

#[test]
fn a_broken_stack_ends_the_job_like_a_whole_one() {
    let text = Job::new("broken", &["broken-stack"]).ends(139);
    expect_in_order(&text, &["rank 5 on PE 1: invalid memory access", "backtrace of rank 5"]);
    assert!(!text.contains("outer_function"), "the stack was not broken:\n{text}");
}

#[test]
fn the_backtrace_of_a_panic_is_its_ranks() {
    let mut job = Job::new("panic", &["panic"]);
    job.command.env("RUST_BACKTRACE", "1");
    let words = ["panic in rank 5 on PE 1", "what went wrong", "inner_function", "outer_function"];
    expect_in_order(&job.ends(101), &words);
    job.command.env("RUST_BACKTRACE", "0");
    let text = job.ends(101);
    assert!(!text.contains("inner_function"), "{text}");
}

/// Whether cores become files in the working directory here, and there is a debugger to look at them;
/// otherwise that is said.
fn cores_can_be_debugged() -> bool {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    // SAFETY: zeros are a valid limit, which the call fills in.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_CORE, &raw mut limit);
        limit.rlim_max
    };
    let files = !pattern.starts_with(['|', '/']) && limit > 0;
    let gdb = Command::new("gdb").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !files || !gdb {
        println!("not tested: core files: pattern {pattern:?}, limit {limit}, gdb: {gdb}");
    }
    files && gdb
}

/// What gdb shows of the job's core.
fn debug(job: &Job, text: &str, commands: &[&str]) -> String {
    let said = text.lines().find_map(|line| line.split("the core of PE ").nth(1));
    let core =
        said.and_then(|said| said.split("): ").nth(1)).expect("it is said where the core is");
    assert!(PathBuf::from(core).starts_with(job.directory.canonicalize().unwrap()), "{core}");
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx"]);
    gdb.args(commands.iter().flat_map(|command| ["-ex", *command]));
    let output = gdb.arg(env!("CARGO_BIN_EXE_crashes")).arg(core).output().expect("gdb runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_core_has_the_stack_and_the_heap_of_the_rank() {
    if !cores_can_be_debugged() {
        return;
    }
    let more = takes_all_cases().then_some([("segv", 139), ("abort", 134)]);
    for (what, status) in [("overflow", 70)].into_iter().chain(more.into_iter().flatten()) {
        let mut job = Job::new(&format!("core-{what}"), &["--core", "rank", what]);
        let text = job.ends(status);
        let evidence = "(*(long **)&EVIDENCE)";
        let rank = format!("p {evidence}[0]");
        let last = format!("p/x ((long *){evidence}[1])[99999]");
        let shown = debug(&job, &text, &["bt -60", "set language c", &rank, &last]);
        let words = ["crashes::inner_function", "crashes::outer_function", " = 5\n", "0x5eed5eed"];
        expect_in_order(&shown, &words);
        assert!(!shown.contains("Cannot access memory"), "{shown}");
    }
}

/// A control group with little memory, which is removed in the end.
struct SmallGroup(PathBuf);

impl SmallGroup {
    /// One below this process's own, where that is allowed.
    fn new(bytes: u64) -> Option<SmallGroup> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.split_once(":memory:"))?.1.to_owned();
        let parent = PathBuf::from(format!("/sys/fs/cgroup/memory{own}"));
        let group = SmallGroup(parent.join(format!("vrt-tests-{}", std::process::id())));
        std::fs::create_dir(&group.0).ok()?;
        std::fs::write(group.0.join("memory.limit_in_bytes"), bytes.to_string()).ok()?;
        Some(group)
    }
}

impl Drop for SmallGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_pe_that_is_killed_for_memory_is_said_to_be() {
    let Some(group) = SmallGroup::new(100 << 20) else {
        println!("not tested: no control group for memory can be made");
        return;
    };
    let mut job = Job::new("memory", &["--no-huge-pages", "memory"]);
    let tasks = std::ffi::CString::new(format!("{}/tasks", group.0.display())).unwrap();
    // SAFETY: plain system calls with a valid path; `0` means the process that writes it.
    unsafe {
        use std::os::unix::process::CommandExt;
        job.command.pre_exec(move || {
            let file = libc::open(tasks.as_ptr(), libc::O_WRONLY);
            match libc::write(file, c"0".as_ptr().cast(), 1) {
                1 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let text = job.ends(137);
    expect_in_order(&text, &["PE 1", "SIGKILL", "memory", "is exhausted", "ranks 4..7"]);
}

#[test]
fn of_pes_that_crash_at_once_one_leaves_a_whole_core() {
    if !cores_can_be_debugged() {
        return;
    }
    for n in 0..if takes_all_cases() { 5 } else { 2 } {
        let arguments = ["--core", "rank", "abort", "--at", "1,2,5,6"];
        let mut job = Job::new(&format!("core-twice-{n}"), &arguments);
        job.command.env("RUST_BACKTRACE", "0");
        let text = job.ends(134);
        assert_eq!(text.matches("the core of PE").count(), 1, "{text}");
        let shown = debug(&job, &text, &["bt -60"]);
        expect_in_order(&shown, &["crashes::inner_function", "crashes::outer_function"]);
    }
}
