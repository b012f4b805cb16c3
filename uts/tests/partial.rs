//! Runs that end before their tree does: at a limit, or by Ctrl-C.

use std::{
    os::unix::process::CommandExt,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

const UTS: &str = env!("CARGO_BIN_EXE_uts");

/// The program with these arguments, separated by spaces, for a test that ends it.
fn uts(arguments: &str) -> Command {
    let mut command = Command::new(UTS);
    command.args(arguments.split_whitespace()).stdin(Stdio::null());
    command
}

fn run(arguments: &str) -> (Output, String, String) {
    let mut limited = Command::new("timeout");
    limited.args(["--kill-after=5", "300", UTS]).args(arguments.split_whitespace());
    let output = limited.stdin(Stdio::null()).output().expect("the program can be started");
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
    (output, stdout, stderr)
}

/// The number of nodes in a report.
fn nodes(text: &str) -> u64 {
    let nodes = text.lines().find_map(|line| line.strip_prefix("nodes ")?.split(',').next());
    nodes.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("no nodes in:\n{text}"))
}

/// Checks that a text states that its result is partial, in its last line.
fn assert_partial(text: &str, last: &str) {
    assert!(text.lines().last().is_some_and(|line| line.starts_with(last)), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("ok") || line.contains("WRONG")), "{text}");
}

/// A tree that ends with a probability below 10^-17.
const ENDLESS: &str = "-t 0 -b 100 -q 0.6 -m 2 -r 1";

/// Searches it up to a limit: partial results, and not many more nodes than that.
fn stops_at_the_limit(how: &str, limit: u64, most: u64) {
    let line = format!("{ENDLESS} --limit {limit} {how}");
    let (output, stdout, stderr) = run(&line);
    assert_eq!(output.status.code(), Some(3), "uts {line}\n{stdout}{stderr}");
    assert_partial(&stdout, "PARTIAL: stopped at the limit, after ");
    assert!(stdout.contains(&format!(", limit {limit} nodes")) || how.contains("--sequential"));
    let nodes = nodes(&stdout);
    assert!((limit..=most).contains(&nodes), "uts {line}: {nodes} nodes");
}

#[test]
fn a_sequential_search_stops_at_its_limit() {
    stops_at_the_limit("--sequential", 100_000, 110_000);
    stops_at_the_limit("--sequential -i 1000000000", 100_000, 110_000);
    stops_at_the_limit("--sequential --kernel plain -g 3", 1000, 1100);
}

const ALGORITHMS: [&str; 6] =
    ["steal", "steal-2007", "share", "hierarchical", "shared-2006", "static"];

#[test]
fn every_algorithm_stops_at_its_limit() {
    for algorithm in ALGORITHMS {
        for ranks in [1, 2, 7, 64] {
            if algorithm == "share" && ranks == 1 {
                continue;
            }
            let how = format!("--algorithm {algorithm} --pes 2 --ranks {ranks}");
            stops_at_the_limit(&how, 300_000, 350_000);
        }
    }
}

#[test]
fn every_termination_ends_a_search_that_is_limited() {
    for algorithm in ["steal", "steal-2007"] {
        for termination in ["dijkstra-scholten", "token", "counting", "quiescence"] {
            let how = format!("--algorithm {algorithm} --termination {termination}");
            stops_at_the_limit(&format!("{how} --pes 2 --ranks 7 -c 4"), 100_000, 120_000);
        }
    }
}

#[test]
fn ranks_on_two_nodes_that_move_stop_at_their_limit() {
    for algorithm in ALGORITHMS {
        let how = format!(
            "--algorithm {algorithm} --pes 2 --ranks 7 --node-size 1 --lb random --lb-period 1ms"
        );
        stops_at_the_limit(&how, 300_000, 350_000);
    }
}

#[test]
fn a_limit_beyond_the_tree_changes_nothing() {
    for how in ["--sequential", "--pes 2 --ranks 7", "--pes 2 --ranks 7 --algorithm hierarchical"] {
        let (output, stdout, _) = run(&format!("--tree T3 --limit 4112898 {how}"));
        assert!(output.status.success(), "{how}:\n{stdout}");
        assert!(stdout.contains("nodes 4112897, depth 1572, leaves 3599034"), "{how}:\n{stdout}");
        assert_eq!(stdout.lines().last(), Some("ok"), "{how}");
    }
}

#[test]
fn a_table_of_a_limited_search_is_marked_by_status_and_standard_error() {
    let line = format!("{ENDLESS} --limit 100000 --pes 2 --ranks 4 --csv");
    let (output, stdout, stderr) = run(&line);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert_partial(&stderr, "uts: PARTIAL: stopped at the limit, after ");
    let mut rows = csv::Reader::from_reader(stdout.as_bytes());
    let head = rows.headers().expect("a head").clone();
    let column = |name: &str| head.iter().position(|it| it == name).expect("a column");
    let (nodes, left) = (column("nodes"), column("left"));
    let rows: Vec<csv::StringRecord> = rows.records().collect::<Result<_, _>>().expect("rows");
    let sum = |at: usize| rows.iter().map(|row| row[at].parse::<u64>().expect("a number")).sum();
    let (nodes, left): (u64, u64) = (sum(nodes), sum(left));
    assert!(rows.len() == 4 && (100_000..120_000).contains(&nodes) && left > 0, "{stdout}");

    let (output, stdout, _) = run(&format!("{ENDLESS} --limit 100000 --sequential --uts-text 1"));
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout.contains("Tree size = "), "{stdout}");
    assert_partial(&stdout, "PARTIAL: stopped at the limit, after ");
}

/// A process according to the kernel: its parent, whether it runs, the ticks that it has used.
fn process(pid: u32) -> Option<(u32, bool, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may have any letters in it, in brackets.
    let words: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    let [state, parent] = [words.first()?, words.get(1)?];
    Some((parent.parse().ok()?, *state != "Z", words.get(11)?.parse().ok()?))
}

/// A process and all its descendants.
fn family(of: u32) -> Vec<u32> {
    let mut all = vec![of];
    let pids = || {
        let folder = std::fs::read_dir("/proc").expect("it is there");
        folder.filter_map(|it| it.ok()?.file_name().to_str()?.parse::<u32>().ok())
    };
    let mut at = 0;
    while let Some(&parent) = all.get(at) {
        all.extend(pids().filter(|&it| process(it).is_some_and(|(its, ..)| its == parent)));
        at += 1;
    }
    all
}

/// The time after which a test gives up waiting.
const PATIENCE: Duration = Duration::from_secs(60);

/// A search, which does not outlive the test.
struct Running {
    first: Child,
    /// All its processes.
    family: Vec<u32>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, unless the test fails.
        let _ = self.first.kill();
        let _ = self.first.wait();
    }
}

/// Starts a search in its own process group; returns it when it is working.
fn start(arguments: &str) -> Running {
    const TICKS: u64 = 20;
    let mut command = uts(&format!("{arguments} --no-progress"));
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let first = command.spawn().expect("the program can be started");
    let mut running = Running { first, family: Vec::new() };
    let began = Instant::now();
    loop {
        running.family = family(running.first.id());
        let works = |pid: &u32| process(*pid).is_some_and(|(.., ticks)| ticks >= TICKS);
        let workers = if arguments.contains("--sequential") { 0 } else { 1 };
        if running.family[workers..].iter().any(works) {
            return running;
        }
        assert!(began.elapsed() < PATIENCE, "uts {arguments} does not work");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Interrupts a search, and checks its output and what it leaves behind. If `whole`, all its processes get the signal,
/// as from a key; otherwise only the first.
fn is_interrupted(arguments: &str, whole: bool) -> (String, String) {
    let mut search = start(arguments);
    let id = search.first.id();
    let to = if whole { format!("-{id}") } else { id.to_string() };
    let killed = Command::new("kill").args(["-INT", "--", &to]).status();
    assert!(killed.is_ok_and(|it| it.success()));
    let began = Instant::now();
    let status = loop {
        if let Some(status) = search.first.try_wait().expect("it is a child") {
            break status;
        }
        assert!(began.elapsed() < PATIENCE, "uts {arguments} goes on");
        std::thread::sleep(Duration::from_millis(5));
    };
    // Short texts, which the pipes have held.
    let stdout = std::io::read_to_string(search.first.stdout.take().expect("a pipe"));
    let stderr = std::io::read_to_string(search.first.stderr.take().expect("a pipe"));
    let [stdout, stderr] = [stdout, stderr].map(|it| it.expect("text"));
    assert_eq!(status.code(), Some(130), "uts {arguments}:\n{stdout}{stderr}");
    let left: Vec<&u32> =
        search.family.iter().filter(|&&it| process(it).is_some_and(|(_, runs, _)| runs)).collect();
    assert!(left.is_empty(), "uts {arguments}: left over: {left:?}");
    (stdout, stderr)
}

const INTERRUPTED: &str = "PARTIAL: interrupted before the tree was searched";

#[test]
fn an_interrupted_sequential_search_says_what_it_found() {
    for how in ["", " -i 1000000000000", " -g 1000"] {
        let (stdout, _) = is_interrupted(&format!("--tree T1WL --sequential{how}"), true);
        assert_partial(&stdout, INTERRUPTED);
        assert!(nodes(&stdout) > 1000, "{stdout}");
    }
    let (stdout, stderr) = is_interrupted("--tree T1WL --sequential --csv", true);
    assert_eq!(stdout.lines().count(), 2, "{stdout}");
    assert_partial(&stderr, &format!("uts: {INTERRUPTED}"));
}

#[test]
fn an_interrupted_job_says_what_it_found_whoever_of_it_is_told() {
    for algorithm in ALGORITHMS {
        for whole in [false, true] {
            let line = format!("--tree T1WL --pes 2 --ranks 4 --algorithm {algorithm}");
            let (stdout, _) = is_interrupted(&line, whole);
            assert_partial(&stdout, INTERRUPTED);
            assert!(nodes(&stdout) > 1000, "{line}:\n{stdout}");
        }
    }
    let (stdout, stderr) = is_interrupted("--tree T1WL --pes 2 --ranks 4 --csv", true);
    assert_eq!(stdout.lines().count(), 5, "{stdout}");
    assert_partial(&stderr, &format!("uts: {INTERRUPTED}"));
}
