//! Every collective operation, against a naive oracle, on jobs of several sizes, still and while
//! ranks are moved. The program `collectives` has the table.

use vrt_tests::job::{Job, takes_all_cases};

/// Runs the program; checks that it went through its table.
#[track_caller]
fn run(arguments: &str) -> Job {
    let job = Job::run(env!("CARGO_BIN_EXE_collectives"), arguments).is_right();
    assert!(job.number_before("cases") > 1000, "{job}");
    job
}

#[test]
fn on_few_ranks() {
    for ranks in [1, 3] {
        run(&format!("--pes {} --ranks {ranks} --eager 1K", ranks.min(2)));
    }
}

#[test]
fn on_more_ranks() {
    run("--pes 2 --ranks 5 --eager 1K --counts 600");
}

#[test]
fn on_many_ranks() {
    run("--pes 2 --ranks 64 --eager 64 --counts 9 --largest 10");
}

#[test]
fn on_ranks_that_have_moved() {
    let more = takes_all_cases().then_some((3, 8, 3));
    for (pes, ranks, nth) in [(2, 5, 2)].into_iter().chain(more) {
        run(&format!("--pes {pes} --ranks {ranks} --eager 1K --counts 9 --moved {nth}"));
    }
    run("--pes 2 --node-size 1 --ranks 6 --eager 1K --counts 1 --moved 2");
}

#[test]
fn while_ranks_move() {
    let more = takes_all_cases().then_some((8, "1"));
    for (ranks, counts) in [(2, "0,200")].into_iter().chain(more) {
        let moving = "--pes 2 --eager 1K --lb random --lb-period 500us";
        run(&format!("{moving} --ranks {ranks} --counts {counts}")).is_right_after_moves(20);
    }
    run("--pes 2 --ranks 64 --eager 64 --counts 1 --largest 10 --lb random --lb-period 1ms")
        .is_right_after_moves(100);
    // Operations that wait in long frames leave them whole when they move to another node.
    let between = "--eager 1K --lb random --lb-period 1ms --node-size 1";
    run(&format!("{between} --pes 2 --ranks 4 --counts 600")).is_right_after_moves(20);
    if takes_all_cases() {
        run(&format!("{between} --pes 4 --ranks 8 --counts 600")).is_right_after_moves(20);
        run("--pes 2 --ranks 5 --eager 1K --counts 600 --lb random --lb-period 500us")
            .is_right_after_moves(20);
    }
}
