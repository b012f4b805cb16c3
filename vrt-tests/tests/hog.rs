//! Another program runs beside a PE for a while: ranks leave that PE, and come back.
//!
//! Alone in its file: what else runs at the same time would be a hog, too.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TOIL: &str = env!("CARGO_BIN_EXE_toil");

/// The cores that PEs are bound to, in order.
fn cores() -> Vec<usize> {
    // SAFETY: the set is written by the call before it is read.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set), 0);
        (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &set)).collect()
    }
}

#[test]
fn ranks_leave_a_pe_beside_which_another_program_runs_and_come_back() {
    let cores = cores();
    if cores.len() < 2 {
        eprintln!("this machine has one core: PEs are not bound, so there is nothing to see");
        return;
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        let before = others_use();
        match observe(cores[1]) {
            Ok(()) => return,
            // Whatever else runs here is a hog, too, and tells nothing about ours.
            Err(_) if before.max(others_use()) > 0.1 => {
                eprintln!("other programs use this machine: nothing can be seen");
            }
            Err(text) => seen.push(text),
        }
    }
    assert!(seen.is_empty(), "{}", seen.join("\n"));
}

/// The part of the machine's time that is in use now, when this test does nothing.
fn others_use() -> f64 {
    let read = || {
        let text = std::fs::read_to_string("/proc/stat").unwrap();
        let line = text.lines().next().unwrap();
        let times: Vec<f64> =
            line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        (times.iter().sum::<f64>(), times[3])
    };
    let (all, idle) = read();
    std::thread::sleep(Duration::from_millis(500));
    let (all_after, idle_after) = read();
    1.0 - (idle_after - idle) / (all_after - all)
}

/// Runs a job, a hog beside its PE 1 from second 2 to 5, and looks where ranks are; what was seen
/// if they did not do what they should.
fn observe(core: usize) -> Result<(), String> {
    let began = Instant::now();
    let job = Command::new(TOIL)
        .args("--pes 2 --ranks 16 --seconds 9 --lb greedy-refine --lb-period 200ms".split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(2).saturating_sub(began.elapsed()));
    let core = core.to_string();
    let hog = Command::new(TOIL).args(["--hog", &core, "--seconds", "3"]).spawn().unwrap();
    let output = job.wait_with_output().unwrap();
    assert!(hog.wait_with_output().unwrap().status.success());
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let mean_on_pe_1 = |from: f64, to: f64| {
        let counts: Vec<f64> = text
            .lines()
            .filter_map(|line| {
                let (time, counts) = line.split_once(" s: ")?;
                let time: f64 = time.parse().ok()?;
                let on_pe_1 = counts.split(' ').nth(1)?.parse().ok()?;
                (from..to).contains(&time).then_some(on_pe_1)
            })
            .collect();
        counts.iter().sum::<f64>() / counts.len() as f64
    };
    let (before, during, after) =
        (mean_on_pe_1(0.5, 2.0), mean_on_pe_1(3.0, 5.0), mean_on_pe_1(7.0, 9.0));
    let seen = format!("ranks on PE 1: {before:.1} before, {during:.1} during, {after:.1} after");
    println!("{seen}");
    let left = during < 0.85 * before;
    let came_back = after > f64::midpoint(before, during);
    if left && came_back { Ok(()) } else { Err(format!("{seen}\n{text}")) }
}
