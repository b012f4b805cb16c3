//! Runs the program as users do, on two PEs, and reads what it prints.

use std::process::{Command, Output};

/// Runs `uts` with these arguments, separated by spaces.
fn uts(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_uts"))
        .args(arguments.split_whitespace())
        .output()
        .expect("the program can be started")
}

/// What a successful run prints.
fn success(arguments: &str) -> String {
    let output = uts(arguments);
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "uts {arguments}: {}\n{stdout}{stderr}", output.status);
    assert_eq!(stderr, "", "uts {arguments}");
    stdout.into_owned()
}

/// Trees whose sizes are known from other programs, and these sizes as printed.
const SMALL: &[(&str, &str)] = &[
    ("-t 1 -a 3 -d 4 -b 4 -r 19", "nodes 944, depth 4, leaves 744 (78.81%)"),
    ("-t 1 -a 3 -d 6 -b 4 -r 19", "nodes 16000, depth 6, leaves 12839 (80.24%)"),
    ("-t 1 -a 0 -d 10 -b 4 -r 34", "nodes 5577, depth 10, leaves 3111 (55.78%)"),
    ("-t 1 -a 2 -d 4 -b 3 -r 502", "nodes 121, depth 11, leaves 67 (55.37%)"),
    ("-t 0 -b 100 -q 0.124875 -m 8 -r 42", "nodes 6797, depth 67, leaves 5959 (87.67%)"),
    ("", "nodes 1732, depth 6, leaves 1050 (60.62%)"),
    ("-g 4", "nodes 1732, depth 6, leaves 1050 (60.62%)"),
    ("-t 1 -a 1 -d 10 -b 4 -r 1", "nodes 8383, depth 31, leaves 4279 (51.04%)"),
    ("-t 3 -b 4 -d 6", "nodes 5461, depth 6, leaves 4096 (75.00%)"),
    ("-t 3 -d 0", "nodes 1, depth 0, leaves 1 (100.00%)"),
];

fn small_trees_with(arguments: &str) {
    for (tree, expected) in SMALL {
        let text = success(&format!("{arguments} {tree}"));
        assert!(text.lines().any(|line| line == *expected), "{arguments} {tree}:\n{text}");
        let last = text.lines().last();
        assert_eq!(last, Some("ok (no size was published for this tree)"), "{tree}");
    }
}

#[test]
fn small_trees_sequentially() {
    small_trees_with("--sequential");
    small_trees_with("--sequential --kernel plain");
}

#[test]
fn small_trees_on_1_rank() {
    small_trees_with("--pes 2 --ranks 1");
}

#[test]
fn small_trees_on_2_ranks() {
    small_trees_with("--pes 2 --ranks 2 --chunk 1 --poll-interval 16");
}

#[test]
fn small_trees_on_7_ranks() {
    small_trees_with("--pes 2 --ranks 7 --chunk 4 --poll-interval 50");
}

#[test]
fn small_trees_on_64_ranks() {
    small_trees_with("--pes 2 --ranks 64 --chunk 2 --poll-interval 16");
}

#[test]
fn t3_is_as_published() {
    for arguments in
        ["--sequential", "--pes 2 --ranks 2", "--pes 2 --ranks 7", "--pes 2 --ranks 64"]
    {
        let text = success(&format!("--tree T3 {arguments}"));
        let expected = "nodes 4112897, depth 1572, leaves 3599034 (87.51%)";
        assert!(text.lines().any(|line| line == expected), "{arguments}:\n{text}");
        assert_eq!(text.lines().last(), Some("ok"), "{arguments}");
    }
}

#[test]
fn verbose_lists_every_rank_and_nodes_add_up() {
    let text = success("-t 1 -a 3 -d 6 -r 19 --pes 2 --ranks 7 --chunk 4 -i 64 --verbose");
    let rows = text.lines().skip_while(|line| !line.trim_start().starts_with("rank ")).skip(1);
    let nodes: Vec<u64> = rows
        .map_while(|line| {
            let mut words = line.split_whitespace();
            words.next()?.parse::<u32>().ok()?;
            words.next()?.parse().ok()
        })
        .collect();
    assert_eq!(nodes.len(), 7, "{text}");
    assert_eq!(nodes.iter().sum::<u64>(), 16_000, "{text}");
}

#[test]
fn nonsense_is_a_usage_error_that_says_what_is_allowed() {
    let cases = [
        ("--tree T6", "no tree `T6`; trees: T1, T5"),
        ("--tree T1 -d 3", "cannot be used with"),
        ("-t 0 -q 1.5", "probability 1.5: allowed is 0 to 1"),
        ("-t five", "3 (balanced) is allowed"),
        ("-r 2147483648", "seed 2147483648: allowed is 0 to 2147483647"),
        ("--kernel quantum", "no kernel `quantum` on this processor; kernels: auto,"),
        ("--chunk 0", "0 is not in 1.."),
        ("-g 0", "granularity 0: allowed is 1 or more"),
        ("--ranks 0", "--ranks"),
    ];
    for (arguments, part) in cases {
        let output = uts(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "uts {arguments}: {stderr}");
        assert!(stderr.contains(part), "uts {arguments}: {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
}
