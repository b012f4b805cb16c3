//! Tests that see: every program of ours that a test starts is ended when it hangs, or ended by the test.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

/// Rust sources of tests below a folder.
fn tests_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            tests_below(&path, found);
        } else if name.ends_with(".rs") && path.components().any(|it| it.as_os_str() == "tests") {
            found.push(path);
        }
    }
}

/// `Command::new("timeout")`, or any program that is not ours, is named there; programs of ours are in constants
/// or come from cargo, and are started by `job::program`, `job::unlimited` or behind `timeout`.
#[test]
fn programs_of_ours_are_started_with_a_limit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    tests_below(root, &mut files);
    assert!(files.len() > 50, "{files:?}");
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            let own = [
                "Command::new(env!",
                "Command::new(STRESS",
                "Command::new(MISBEHAVE",
                "Command::new(VRTRUN",
            ];
            if own.iter().any(|own| line.contains(own)) && !file.ends_with("limits.rs") {
                wrong.push(format!("{}:{number}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "a job without a limit:\n{}", wrong.join("\n"));
}
