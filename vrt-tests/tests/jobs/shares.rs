//! What ranks hold that is not theirs, and what is theirs and others hold: they go and all is right,
//! or they stay and say why.

use vrt_tests::job;

/// Runs `shares`; returns the lines that it printed, except the last one, and all it said.
#[track_caller]
fn run(options: &str, what: &str) -> (Vec<String>, String) {
    let output = job::program(env!("CARGO_BIN_EXE_shares"))
        .args(options.split_whitespace())
        .arg(what)
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let all = format!("{what} {options}: {out}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{all}");
    let mut lines: Vec<String> = out.lines().map(str::to_owned).collect();
    assert_eq!(lines.pop().as_deref(), Some("ok"), "{all}");
    (lines, all)
}

/// Runs `shares` as one node and as two; each time rank 0 moves, or stays for a reason with these
/// words.
#[track_caller]
fn ends(what: &str, in_node: Option<&str>, between_nodes: Option<&str>) {
    for (nodes, stays) in [("4", in_node), ("1", between_nodes)] {
        let (lines, all) = run(&format!("--pes 2 --ranks 4 --node-size {nodes}"), what);
        match stays {
            None => assert_eq!(lines[0], "moved", "{all}"),
            Some(why) => {
                assert!(lines[0].starts_with("stays: ") && lines[0].contains(why), "{all}");
            }
        }
    }
}

const BY_THREAD: Option<&str> = Some("a thread, a task or the system library of PE 0 allocated");

/// It read zeros and freed what was never allocated.
#[test]
fn what_a_thread_returns_moves_inside_a_node() {
    ends("thread-vector", None, BY_THREAD);
}

/// Every run with moved ranks printed garbage.
#[test]
fn what_a_pool_of_threads_makes_moves_inside_a_node() {
    ends("rayon", None, BY_THREAD);
}

#[test]
fn what_a_task_returns_moves_inside_a_node() {
    ends("tokio-task", None, BY_THREAD);
}

/// The text was zeros.
#[test]
fn a_static_that_a_thread_has_filled_is_readable_after_a_move() {
    ends("static-by-thread", None, BY_THREAD);
}

/// The memory was given back under the thread, and what it freed later was another block's middle.
#[test]
fn what_a_thread_has_taken_is_not_taken_away() {
    ends("given-to-thread", None, Some("perhaps a thread of its PE refers to its memory"));
}

/// What the allocator itself keeps in a heap of two parts was taken for a block that nobody reaches.
#[test]
fn who_has_much_memory_moves_beside_a_thread() {
    ends("beside-thread", None, None);
}

/// It read zeros in the other node.
#[test]
fn who_borrows_from_a_static_of_another_rank_stays_in_the_node() {
    ends("static-table", None, Some("refers to memory of rank 1"));
}

#[test]
fn who_shares_ownership_with_a_static_stays_in_the_node() {
    ends("registry", None, Some("refers to memory of rank 1"));
}

/// Two processes counted without atomics: 5 instead of 3.
#[test]
fn who_shares_a_count_with_a_thread_local_stays() {
    let shares = Some("that it shares with a thread-local variable");
    ends("thread-local-rc", shares, Some("a static or thread-local variable"));
}

#[test]
fn who_borrows_a_thread_local_stays() {
    let borrows = Some("refers to the thread-local variable shares::NUMBER of its PE");
    ends("thread-local-borrow", borrows, borrows);
}

/// Its numbers repeated themselves.
#[test]
fn who_draws_random_numbers_of_its_pe_stays() {
    ends("random-numbers", Some("that it shares with"), Some("a static or thread-local variable"));
}

#[test]
fn who_has_a_clone_of_what_main_has_made_stays() {
    let counts = Some("a clone of an Arc");
    ends("arc-of-main", counts, counts);
}

/// The search for what the neighbour has came upon what it searched for, on the stack of who asked.
#[test]
fn who_has_a_neighbour_with_such_a_clone_goes() {
    ends("beside-arc-of-main", None, None);
}

/// What rank 1 owned was overwritten when rank 0 came back.
#[test]
fn memory_that_another_rank_holds_does_not_leave_the_node() {
    ends("given-box", None, Some("rank 1 refers to its memory"));
}

#[test]
fn memory_of_another_rank_does_not_leave_the_node_either() {
    ends("taken-box", None, Some("refers to memory of rank 1"));
}

#[test]
fn memory_that_nobody_holds_is_no_obstacle() {
    ends("leaked", None, None);
}

#[test]
fn a_static_keeps_the_memory_of_its_first_user_in_the_node() {
    ends("static-regex", None, Some("a static or thread-local variable of the program refers to"));
}

/// The static of the first PE pointed to memory that had left the node.
#[test]
fn a_static_keeps_memory_in_the_node_also_when_the_rank_has_left_its_pe() {
    let (lines, all) = run("--pes 4 --ranks 4 --node-size 2", "static-of-first-pe");
    assert_eq!(lines[0], "moved", "{all}");
    let why = "a static or thread-local variable of the program refers to its memory";
    assert!(lines[1].starts_with("stays: ") && lines[1].contains(why), "{all}");
}
