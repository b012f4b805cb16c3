//! Jobs of the program, as its users start them.

use std::process::{Command, Output};

/// Runs a subcommand, which is killed if it hangs.
pub fn rocket_mini(options: &[&str]) -> Output {
    rocket_mini_with(options, &[])
}

/// The same with these variables in its environment.
fn rocket_mini_with(options: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new("timeout")
        .args(["--kill-after=5", "120", env!("CARGO_BIN_EXE_rocket-mini")])
        .args(options)
        .envs(environment.iter().copied())
        .output()
        .expect("the program starts")
}

/// The value in a line of a report.
pub fn line<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or_else(|| panic!("no line {name:?} in:\n{text}"))
        .trim()
}

/// The report of a run that must succeed, and verifies itself unless told not to.
pub fn report(options: &[&str]) -> String {
    report_with(options, &[])
}

/// The same with these variables in its environment.
pub fn report_with(options: &[&str], environment: &[(&str, &str)]) -> String {
    let output = rocket_mini_with(options, environment);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{options:?}:\n{text}{errors}");
    if !options.contains(&"--no-verify") {
        assert_eq!(line(&text, "verification"), "ok", "{options:?}");
    }
    text
}

/// Jobs that must give the same result: few ranks and many, at rest, moved at random, and as PEs that share no memory.
pub const JOBS: [&[&str]; 5] = [
    &["--pes", "1", "--ranks", "1"],
    &["--pes", "2", "--ranks", "2"],
    &["--pes", "2", "--ranks", "7", "--lb", "random", "--lb-period", "1ms"],
    &["--pes", "2", "--ranks", "7", "--lb", "random", "--lb-period", "1ms", "--node-size", "1"],
    &["--pes", "2", "--ranks", "7", "--lb", "random", "--move", "state"],
];

/// The reports of a subcommand in each of [`JOBS`].
pub fn in_all_jobs(options: &[&str]) -> Vec<String> {
    JOBS.iter().map(|job| report(&[options, job].concat())).collect()
}

/// Asserts that a run is refused with a status and a message.
pub fn refused(options: &[&str], status: i32, message: &str) {
    let output = rocket_mini(options);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{options:?}: {text}");
    assert_eq!(text.matches(message).count(), 1, "{options:?}: {text}");
    assert!(!text.contains("panicked"), "{text}");
}
