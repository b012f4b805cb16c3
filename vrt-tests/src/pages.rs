//! What tests need to know about large pages.

use std::process::{Command, Stdio};

/// Whether this system gives pages of 2 MiB to who mounts a file system for them.
pub fn may_be_large() -> bool {
    let mount = "mount -t tmpfs -o huge=advise none /tmp";
    let mounted = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", mount])
        .stderr(Stdio::null())
        .status();
    let setting = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let setting = std::fs::read_to_string(setting).unwrap_or_default();
    mounted.is_ok_and(|status| status.success()) && !setting.contains("[deny]")
}

/// Runs the program `pages`; returns how many KiB it found in large pages.
///
/// # Panics
/// If it fails.
#[track_caller]
pub fn kib_that_it_says(mut command: Command) -> u64 {
    let output = command.output().expect("the program is there");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    let said = text.lines().find_map(|line| line.split_once(" KiB of this PE's memory"));
    said.and_then(|(kib, _)| kib.trim().parse().ok()).expect(&text)
}
