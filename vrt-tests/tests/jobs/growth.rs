//! What does not grow, however long a job runs.

use vrt_tests::job::{Job, nodes};

/// Runs a job that has to end well.
#[track_caller]
fn run(program: &str, arguments: &str) -> Job {
    Job::run(program, arguments).succeeds()
}

const GROWTH: &str = env!("CARGO_BIN_EXE_growth");

/// All PEs in one node, and a node for each.
const NODES: [&str; 2] = ["", "--node-size 1"];

/// Each communicator and window left an entry in its PE for ever, which made every later move
/// slower.
#[test]
fn dropped_communicators_and_windows_are_forgotten() {
    let job = run(GROWTH, "--pes 2 --ranks 6 --rounds 300 dropped").is_right();
    assert_eq!(job.number_before("rounds"), 300, "{job}");
    for nodes in NODES {
        let moving = "--pes 2 --ranks 6 --rounds 150 --lb random --lb-period 1ms";
        let job = run(GROWTH, &format!("{moving} {nodes} dropped"));
        assert_eq!(job.number_before("rounds"), 150, "{job}");
        job.is_right_after_moves(0);
    }
}

/// A rank that began again from its state stayed in all groups that it had been in.
#[test]
fn communicators_of_a_former_life_are_forgotten() {
    for nodes in NODES {
        let job = format!("--pes 2 --ranks 6 --rounds 20 --move state {nodes} abandoned");
        let job = run(GROWTH, &job).is_right();
        assert_eq!(job.number_before("lives"), 20, "{job}");
    }
}

/// A PE reports the groups that are left when it ends.
#[test]
fn communicators_of_ranks_that_have_ended_are_forgotten() {
    for nodes in NODES {
        let job = format!("--pes 2 --ranks 6 --rounds 20 --statistics {nodes} forgotten");
        let job = run(GROWTH, &job).is_right();
        assert_eq!(job.number_before("rounds"), 20, "{job}");
        let lines: Vec<&str> =
            job.err.lines().filter(|line| line.contains("groups of ranks")).collect();
        assert_eq!(lines.len(), 2, "{job}");
        assert!(lines.iter().all(|line| line.contains(" 0 groups of ranks")), "{job}");
    }
}

/// On the same PE, on another one, and on another node.
const WAYS: [&str; 3] = ["--pes 1", "--pes 2", "--pes 2 --node-size 1"];

/// Messages that nobody received took memory without limit.
#[test]
fn unexpected_messages_have_a_limit() {
    for way in WAYS {
        for kind in [
            "--bytes 8 --rounds 100000",
            "--bytes 1000 --rounds 20000",
            "--bytes 8000 --rounds 4000",
            "--bytes 1000 --rounds 20000 --from-static",
        ] {
            let limit = "--unexpected 1M --limit 1048576";
            let job = run(GROWTH, &format!("{way} --ranks 2 {limit} {kind} flood")).is_right();
            assert!(job.number_before("messages") > 0, "{job}");
        }
    }
}

/// A rank that moves takes along that it is held.
#[test]
fn unexpected_messages_have_a_limit_where_ranks_move() {
    let moving = "--pes 2 --ranks 4 --lb random --lb-period 1ms";
    for nodes in NODES {
        for kind in ["--bytes 8 --rounds 200000", "--bytes 1000 --rounds 40000"] {
            let limit = "--unexpected 1M --limit 1048576";
            let job = run(GROWTH, &format!("{moving} {nodes} {limit} {kind} flood"));
            assert!(job.number_before("messages") > 0, "{job}");
            job.is_right_after_moves(0);
        }
    }
}

/// Below the limit sends do not wait for receives.
#[test]
fn sends_are_buffered_up_to_the_limit() {
    for way in WAYS {
        let job = format!("{way} --ranks 2 --unexpected 64M --bytes 1000 --rounds 20000 flood");
        let job = run(GROWTH, &job).is_right();
        assert!(job.number_before("bytes") > 20_000_000, "{job}");
    }
}

/// What messages had taken was kept for ever.
#[test]
fn memory_of_messages_is_given_back() {
    for kind in ["--bytes 8 --rounds 600000", "--bytes 5000 --rounds 20000"] {
        let job = format!("--pes 2 --ranks 2 --unexpected 1G {kind} give-back");
        let job = run(GROWTH, &job).is_right();
        assert!(job.out.contains("KiB after"), "{job}");
    }
}

#[test]
fn a_deadlock_by_the_limit_names_it() {
    for way in WAYS {
        let job = format!("{way} --ranks 2 --unexpected 10K --rounds 1000 unsafe");
        let job = Job::run(GROWTH, &job);
        assert_eq!(job.status, Some(70), "{job}");
        let row = job.err.lines().find(|line| line.contains("rank 1 (PE ")).unwrap();
        assert!(row.contains("waits in receive") && row.contains("--unexpected"), "{job}");
    }
}

/// All that programs and the runtime itself send goes through when nothing is buffered.
#[test]
fn nothing_hangs_without_any_room_for_unexpected_messages() {
    for nodes in nodes() {
        let chaos = "--pes 4 --ranks 32 --seconds 1 --longest 20000 --lb random --lb-period 2ms";
        let soak = |room| run(env!("CARGO_BIN_EXE_soak"), &format!("{chaos} {room} {nodes}"));
        let _ = soak("--unexpected 0").is_right();
        let _ = soak("--unexpected 20K").is_right();
    }
    let comms = "--pes 2 --ranks 6 --rounds 20 --unexpected 0";
    let _ = run(env!("CARGO_BIN_EXE_migrate_comms"), comms).is_right();
}
