//! Runs the program as users do, on two PEs, and checks its output.

use std::process::{Command, Output};

/// Runs `uts` with these arguments, separated by spaces.
fn uts(arguments: &str) -> Output {
    Command::new("timeout")
        .args(["--kill-after=5", "300", env!("CARGO_BIN_EXE_uts")])
        .args(arguments.split_whitespace())
        .output()
        .expect("the program can be started")
}

/// The output of a successful run.
fn success(arguments: &str) -> String {
    let output = uts(arguments);
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "uts {arguments}: {}\n{stdout}{stderr}", output.status);
    // What balancing did is said at the end.
    let said = stderr.lines().filter(|it| !it.starts_with("vrt: load balancing: "));
    assert_eq!(said.collect::<Vec<_>>(), Vec::<&str>::new(), "uts {arguments}");
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
    small_trees_with("--pes 1 --ranks 1");
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

/// Every algorithm with every termination that it can have.
const PAIRS: &[(&str, &[&str])] = &[
    ("steal", &["dijkstra-scholten", "token", "counting", "quiescence"]),
    ("steal-2007", &["dijkstra-scholten", "token", "counting", "quiescence"]),
    ("share", &["counting"]),
    ("hierarchical", &["counting"]),
    ("shared-2006", &["counting"]),
    ("static", &["quiescence"]),
];

/// Searches two trees with every algorithm and termination on these ranks.
fn every_algorithm_with(arguments: &str) {
    let sole = arguments.contains("--ranks 1 ");
    for (algorithm, terminations) in PAIRS {
        for termination in *terminations {
            if sole && *algorithm == "share" {
                continue;
            }
            let how = format!("--algorithm {algorithm} --termination {termination} {arguments}");
            for (tree, expected) in [SMALL[1], SMALL[4]] {
                let text = success(&format!("{how} {tree}"));
                assert!(text.lines().any(|line| line == expected), "{how} {tree}:\n{text}");
                let last = text.lines().last();
                assert_eq!(last, Some("ok (no size was published for this tree)"), "{how}");
            }
        }
    }
}

#[test]
fn every_algorithm_on_1_rank() {
    every_algorithm_with("--pes 1 --ranks 1 -c 4 -i 32");
}

#[test]
fn every_algorithm_on_2_ranks() {
    every_algorithm_with("--pes 2 --ranks 2 -c 4 -i 32");
}

#[test]
fn every_algorithm_on_7_ranks_that_ask_at_once() {
    every_algorithm_with("--pes 2 --ranks 7 -c 4 -i 32 --ask at-once");
}

#[test]
fn every_algorithm_on_7_ranks_that_move() {
    every_algorithm_with("--pes 2 --ranks 7 -c 4 -i 32 --lb random --lb-period 1ms");
}

#[test]
fn every_algorithm_on_2_nodes() {
    every_algorithm_with("--pes 2 --ranks 2 -c 4 -i 32 --node-size 1");
}

#[test]
fn every_algorithm_on_2_nodes_between_which_ranks_move() {
    every_algorithm_with("--pes 2 --ranks 7 -c 4 -i 32 --node-size 1 --lb random --lb-period 1ms");
}

#[test]
fn a_few_algorithms_on_64_ranks() {
    for algorithm in ["steal-2007", "share", "hierarchical", "shared-2006"] {
        let (tree, expected) = SMALL[1];
        let how = format!("--algorithm {algorithm} --pes 2 --ranks 64 -c 4 -i 64 {tree}");
        let text = success(&how);
        assert!(text.lines().any(|line| line == expected), "{how}:\n{text}");
    }
}

#[test]
fn parameters_of_stealing_change_no_count() {
    for victims in ["lifelines", "round-robin", "random", "last"] {
        for amount in ["half", "chunk"] {
            let (tree, expected) = SMALL[4];
            let how = format!("--pes 2 --ranks 7 -c 4 -i adaptive --victims {victims}");
            let text = success(&format!("{how} --amount {amount} {tree}"));
            assert!(text.lines().any(|line| line == expected), "{victims} {amount}:\n{text}");
        }
    }
}

#[test]
fn the_benchmarks_own_text_is_there_at_every_verbosity() {
    let job = "-t 1 -a 3 -d 6 -r 19 --pes 2 --ranks 2";
    let line = success(&format!("{job} --uts-text 0"));
    let words: Vec<&str> = line.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!((words.len(), words[0], words[2]), (13, "2", "16000"), "{line}");
    let text = success(&format!("{job} --uts-text 3"));
    assert!(text.contains("Tree size = 16000, tree depth = 6, num leaves = 12839 (80.24%)\n"));
    assert_eq!(text.matches("** Thread ").count(), 2, "{text}");
    assert!(text.lines().last().is_some_and(|line| line.starts_with("ok")));
}

#[test]
#[ignore = "takes long: scripts/test --all"]
fn an_experiment_writes_its_table_figure_and_report() {
    let out = std::env::temp_dir().join(format!("uts-experiment-{}", std::process::id()));
    let text = success(&format!("experiment prefetch --repeat 1 --out {}", out.display()));
    let read = |name: &str| std::fs::read_to_string(out.join(name)).expect("it was written");
    assert!(text.contains("## Prefetching") && read("report.md").contains("![Prefetching]"));
    let table = read("prefetch.csv");
    assert_eq!(table.lines().count(), 13, "{table}");
    assert!(table.lines().skip(1).all(|row| row.split(',').count() == 13), "{table}");
    assert!(read("prefetch.svg").starts_with("<svg"));
    std::fs::remove_dir_all(out).expect("it is there");
}

#[test]
fn a_simulation_finds_the_whole_tree() {
    let text = success("simulate --tree T3 --processes 1,64 --node 10 --algorithm steal");
    let rows: Vec<Vec<&str>> = text.lines().map(|it| it.split_whitespace().collect()).collect();
    let seconds = |processes: &str| {
        let row = rows.iter().find(|row| row.first() == Some(&processes));
        row.and_then(|row| row[1].parse::<f64>().ok()).expect("a row with a time")
    };
    assert!(seconds("1") > 0.041 && seconds("64") < seconds("1") / 8.0, "{text}");
    assert_eq!(text.lines().last(), Some("ok"));
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
        ("--chunk 0", "a whole number from 1 up is allowed"),
        (
            "-t 0 -q 0.5 -m 2",
            "the tree may have no end; allowed are smaller ones, or --limit NODES",
        ),
        ("--limit 0", "a whole number from 1 up is allowed"),
        ("--limit many", "'many' for '--limit <NODES>'"),
        ("--algorithm share --ranks 1", "allowed are 2 or more, one of which is the manager"),
        ("--algorithm static --termination token", "with static there is quiescence"),
        ("--algorithm shared-2006 --ranks 2 -c 9999", "chunk 9999 with algorithm shared-2006"),
        ("--algorithm magic", "steal, share, steal-2007"),
        ("experiment luck --out /nowhere", "no experiment `luck`; experiments: all, sequential"),
        ("experiment all", "--out"),
        ("simulate --tree T9", "no tree `T9`; trees: T1"),
        ("simulate --processes 0", "0 is not in 1..=16777216"),
        ("simulate --latency soon", "a number of nanoseconds, 0 or more, is allowed"),
        ("simulate --algorithm share --processes 1", "1 processes: algorithm share on 1 rank"),
        ("--algorithm share --victims last --ranks 4", "allowed with steal only"),
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
