//! Every exchange protocol on every pattern of messages, on ranks that stay and on ranks that move.
//! The program `exchange` has the table.
//! `VRT_SOAK_ROUNDS=16777216 VRT_TEST_LIMIT=9999 cargo test --release -p vrt-tests --test jobs exchange`
//! makes the soak long.

use vrt_tests::job::{Job, nodes, takes_all_cases};

fn job(arguments: &str) -> Job {
    Job::run(env!("CARGO_BIN_EXE_exchange"), arguments)
}

/// Runs the program; checks that it has compared what ranks got.
#[track_caller]
fn run(arguments: &str) -> Job {
    job(arguments).is_right()
}

#[test]
fn on_ranks_that_stay() {
    for ranks in [1, 3] {
        run(&format!("--pes {} --ranks {ranks} --largest 100000", ranks.min(2)));
    }
    let large = if takes_all_cases() { "" } else { "--largest 1000000" };
    run(&format!("--pes 2 --ranks 7 --rounds 1 {large}"));
    for nodes in nodes() {
        run(&format!("--pes 4 --ranks 9 --rounds 1 --largest 100000 {nodes}"));
    }
    run("--pes 2 --ranks 40 --rounds 1 --largest 10000");
}

#[test]
fn on_ranks_that_move() {
    for nodes in nodes() {
        let chaos = "--pes 4 --ranks 16 --lb random --lb-period 1ms";
        let rounds = if takes_all_cases() { 2 } else { 1 };
        run(&format!("{chaos} --rounds {rounds} --largest 100000 {nodes}"))
            .is_right_after_moves(50);
    }
    let large = if takes_all_cases() { "" } else { "--largest 1000000" };
    run(&format!("--pes 2 --ranks 4 --rounds 1 --lb random --lb-period 1ms --node-size 1 {large}"))
        .is_right_after_moves(0);
}

#[test]
fn on_async_ranks() {
    for nodes in nodes() {
        let few = "--asynchronous --pes 4 --ranks 7 --rounds 1 --largest 100000";
        run(&format!("{few} {nodes}"));
        run(&format!("{few} --lb random --lb-period 1ms {nodes}")).is_right_after_moves(10);
    }
}

#[test]
fn consecutive_rounds_never_mix() {
    let rounds = std::env::var("VRT_SOAK_ROUNDS").unwrap_or_else(|_| "2000".to_owned());
    run(&format!("--pes 2 --ranks 4 --soak {rounds}"));
    run(&format!("--pes 2 --ranks 4 --soak {rounds} --lb random --lb-period 1ms"))
        .is_right_after_moves(10);
}

#[test]
fn wrong_options_name_the_value_and_what_is_allowed() {
    for (arguments, words) in [
        ("--exchange nbc", ["`nbc`", "nbx-node"]),
        ("--loggp /nonexistent/file", ["/nonexistent/file", "No such file"]),
    ] {
        let job = job(arguments);
        assert_eq!(job.status, Some(2), "{job}");
        assert!(words.iter().all(|word| job.err.contains(word)), "{job}");
    }
    let list = job("--exchange list").succeeds();
    assert!(list.out.contains("remote summation"), "{list}");
}
