//! Ranks that are moved all the time compute what they compute when they stay.

use vrt_tests::job::{self, Job, nodes};
use vrt_tests::running::{cpu_ticks, is_alive, until};

/// Runs a program of this crate; checks that it has compared its results.
#[track_caller]
fn run(program: &str, arguments: &str) -> Job {
    Job::run(program, arguments).is_right()
}

const STRESS: &str = env!("CARGO_BIN_EXE_migrate_stress");
const HANDLES: &str = env!("CARGO_BIN_EXE_handles");
const SOAK: &str = env!("CARGO_BIN_EXE_soak");
const WINDOWS: &str = env!("CARGO_BIN_EXE_windows");
const COMMS: &str = env!("CARGO_BIN_EXE_migrate_comms");

#[test]
fn ranks_move_with_all_they_own_at_migrate() {
    for nodes in nodes() {
        let job = run(STRESS, &format!("--pes 2 --ranks 2 --rounds 150 --lb rotate {nodes}"));
        assert_eq!(job.number_before("moves"), 300, "{job}");
        let random = "--pes 4 --ranks 13 --rounds 100 --bytes 300000 --lb random";
        let job = run(STRESS, &format!("{random} {nodes}"));
        assert!(job.number_before("moves") > 400, "{job}");
    }
}

/// Runs a job whose ranks are moved at any time: so long that they are moved often, as a busy machine
/// takes its time for a step.
#[track_caller]
fn moves_often(options: &str) {
    let often = |rounds| {
        let job = run(STRESS, &format!("--rounds {rounds} {options}"));
        job.number_before("moves") > 100
    };
    assert!([3000, 30_000, 300_000].into_iter().any(often), "ranks are hardly moved: {options}");
}

#[test]
fn ranks_are_moved_wherever_they_wait() {
    for nodes in nodes() {
        moves_often(&format!("--pes 4 --ranks 16 --lb random --lb-period 500us {nodes}"));
    }
}

#[test]
fn ranks_begin_again_from_their_state() {
    for nodes in nodes() {
        let state = "--pes 2 --ranks 5 --bytes 1000 --plain --lb rotate --move state";
        let job = run(STRESS, &format!("{state} --rounds 100 {nodes}"));
        assert_eq!(job.number_before("moves"), 500, "{job}");
        let job = run(STRESS, &format!("{state} --rounds 2000 --lb-period 1ms {nodes}"));
        assert!(job.number_before("moves") > 0, "{job}");
        // Long ones go in many pieces, and none of them is a whole number of lines.
        let long = "--pes 2 --ranks 3 --bytes 1000003 --plain --lb rotate --move state";
        let job = run(STRESS, &format!("{long} --rounds 4 {nodes}"));
        assert_eq!(job.number_before("moves"), 12, "{job}");
    }
}

#[test]
fn who_begins_again_keeps_its_communicators() {
    for nodes in nodes() {
        for ranks in [2, 5, 8] {
            let job = run(HANDLES, &format!("--pes 2 --ranks {ranks} --move state {nodes}"));
            assert!(job.number_before("moves") > 5, "{job}");
        }
    }
    run(HANDLES, "--pes 3 --ranks 7 --node-size 1");
    run(HANDLES, "--pes 2 --ranks 4 --move state --window");
}

#[test]
fn async_ranks_move_too() {
    for nodes in nodes() {
        let at_migrate = "--pes 2 --ranks 6 --rounds 500 --bytes 50000 --asynchronous --lb rotate";
        let job = run(STRESS, &format!("{at_migrate} {nodes}"));
        assert_eq!(job.number_before("moves"), 3000, "{job}");
        let anywhere = "--pes 4 --ranks 16 --asynchronous --lb random";
        moves_often(&format!("{anywhere} --lb-period 500us {nodes}"));
    }
}

#[test]
fn a_pe_that_dies_in_the_middle_of_a_step_ends_the_job() {
    for nodes in nodes() {
        let forever = "--pes 4 --ranks 16 --rounds 1000000000 --lb rotate";
        let job = job::unlimited(STRESS)
            .args(format!("{forever} {nodes}").split_whitespace())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let children = format!("/proc/{0}/task/{0}/children", job.id());
        let pes = || -> Vec<i32> {
            let text = std::fs::read_to_string(&children).unwrap();
            text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
        };
        // The supervisor's helpers are gone, and all PEs are busy with steps.
        until("4 PEs that move ranks", || {
            pes().len() == 4 && pes().iter().all(|pe| cpu_ticks(*pe) > 5)
        });
        let pes = pes();
        // SAFETY: a plain system call on a process of ours.
        unsafe { libc::kill(pes[2], libc::SIGKILL) };
        let output = job.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(137), "{err}");
        assert!(err.contains("PE 2") && err.contains("SIGKILL"), "{err}");
        assert!(!pes.iter().any(|pe| is_alive(*pe)), "a PE lives on");
    }
}

#[test]
fn ranks_that_hold_something_stay_until_they_let_go() {
    for (what, reason) in [
        ("file", "descriptor open"),
        ("socket", "descriptor open"),
        ("thread", "thread that it started"),
        ("mapping", "mmap"),
        // Inside a node its memory stays where it is, whoever owns it.
        ("static --node-size 1", "static or thread-local"),
    ] {
        let hold = format!("--pes 2 --ranks 4 --rounds 200 --lb rotate --hold {what}");
        let job = run(STRESS, &hold);
        // All but rank 0 move in all rounds, rank 0 in the second half of them.
        let moves = job.number_before("moves");
        assert!((600 + 99..=600 + 100).contains(&moves), "{job}");
        let said = "rank 0 on PE 0 cannot be moved";
        assert!(job.err.contains(said) && job.err.contains(reason), "{job}");
        let job = Job::run(STRESS, &format!("{hold} --move-pinned error"));
        assert_eq!(job.status, Some(70), "{job}");
        let said = "--move-pinned error";
        assert!(job.err.contains(reason) && job.err.contains(said), "{job}");
    }
}

#[test]
fn what_statics_refer_to_stays() {
    let arguments = "--pes 4 --ranks 32 --rounds 40 --lb random";
    let moves =
        ["", "--node-size 2", "--node-size 1", "--move state", "--node-size 1 --move state"];
    for more in moves {
        let job = run(env!("CARGO_BIN_EXE_statics"), &format!("{arguments} {more}"));
        assert!(job.number_before("moves") > 400, "{job}");
        let stay = job.number_before("ranks");
        // Those that filled the statics of the PEs, where moving would take their memory away.
        assert!(if more.is_empty() { stay == 0 } else { (4..=32).contains(&stay) }, "{job}");
    }
}

#[test]
fn states_are_encoded_in_place() {
    let in_place = "--pes 2 --ranks 5 --rounds 50 --bytes 1000 --plain --lb null --move in-place";
    let job = run(STRESS, in_place);
    assert_eq!(job.number_before("moves"), 0, "{job}");
}

#[test]
fn random_traffic_arrives_while_ranks_move() {
    for (nodes, more) in nodes().zip(["", "--longest 100000 --eager 0", "--longest 64"]) {
        let chaos = "--pes 4 --ranks 64 --lb random --lb-period 1ms";
        // On a busy machine, seconds are short.
        let moved = [1, 8, 32].iter().any(|seconds| {
            let job = run(SOAK, &format!("{chaos} --seconds {seconds} {nodes} {more}"));
            job.moved() > 100
        });
        assert!(moved, "hardly a rank has moved: {nodes} {more}");
    }
}

#[test]
fn windows_reach_ranks_wherever_they_are() {
    for nodes in nodes() {
        for kind in ["", "--asynchronous"] {
            let still = "--pes 4 --ranks 9 --rounds 5";
            run(WINDOWS, &format!("{still} {nodes} {kind}"));
            // How many steps fit into a round depends on the machine.
            let moved = [30, 200, 1000].iter().any(|rounds| {
                let chaos = "--pes 4 --ranks 9 --lb random --lb-period 500us";
                let job = run(WINDOWS, &format!("{chaos} --rounds {rounds} {nodes} {kind}"));
                // Addresses that calls leave on stacks keep ranks for some steps, which is nothing to tell.
                assert!(!job.err.contains("cannot be moved"), "{job}");
                job.number_before("moves") > 20
            });
            assert!(moved, "hardly a rank has moved: {nodes} {kind}");
        }
    }
}

#[test]
fn wrong_balancing_options_are_named() {
    for (arguments, words) in [
        ("--lb gredy", ["gredy", "greedy-refine"]),
        ("--lb greedy --lb-arg tolerance=1", ["tolerance", "home-bias"]),
        ("--lb greedy --lb-arg home-bias=2", ["home-bias=2", "0 to 1"]),
        ("--lb greedy --lb-period 5", ["5", "ms"]),
        ("--lb greedy --move by-foot", ["by-foot", "memory"]),
    ] {
        let job = Job::run(STRESS, arguments);
        assert_eq!(job.status, Some(2), "{job}");
        assert!(words.iter().all(|word| job.err.contains(word)), "{job}");
        assert!(!job.err.contains("panicked"), "{job}");
    }
}

#[test]
fn communicators_windows_and_persistent_requests_move_along() {
    run(COMMS, "--pes 2 --ranks 6 --rounds 100");
    for (job, rounds) in [
        ("--pes 4 --ranks 9 --lb-period 300us", 60),
        ("--pes 4 --ranks 9 --node-size 2 --lb-period 1ms", 60),
        ("--pes 2 --ranks 33 --lb-period 300us", 40),
    ] {
        // On a busy machine, there are few steps in so many rounds.
        let moved = [1, 4, 16].iter().any(|times| {
            let job = run(COMMS, &format!("{job} --rounds {} --lb random", rounds * times));
            job.number_before("moves") > 20
        });
        assert!(moved, "hardly a rank has moved: {job}");
    }
}
