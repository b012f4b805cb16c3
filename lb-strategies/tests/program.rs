//! The program `lb-sim` from the user's point of view: what it prints, what it writes, and its
//! messages when the command line or a file is wrong.

use std::{
    fs,
    process::{Command, Output},
};

use serde_json::Value;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/vt-layout.json");

fn lb_sim(arguments: &[&str]) -> Output {
    Command::new("timeout")
        .args(["--kill-after=5", "120", env!("CARGO_BIN_EXE_lb-sim")])
        .args(arguments)
        .output()
        .expect("lb-sim runs")
}

fn printed(arguments: &[&str]) -> String {
    let output = lb_sim(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(arguments)).expect("JSON")
}

#[test]
fn strategies_stand_side_by_side() {
    let text = printed(&["--case", "grid", "--lb", "null, greedy-refine ,orb", "--seed", "1"]);
    for row in ["before", "null", "greedy-refine", "orb"] {
        assert!(text.lines().any(|line| line.trim_start().starts_with(row)), "{text}");
    }
    assert!(text.starts_with("case grid, seed 1: 1000 objects on 32 PEs of 2 nodes, 1936 edges"));
    assert!(printed(&["--lb", "list"]).contains("\ngreedy "));
    assert!(printed(&["--case", "list"]).contains("\nunequal-pes "));
}

#[test]
fn recorded_phases_are_chosen_and_scaled() {
    let value = json(&[FILE, "--phase", "3", "--lb", "greedy", "--json"]);
    assert_eq!((&value["objects"], &value["pes"]), (&28.into(), &4.into()));
    assert_eq!(value["results"][0]["strategy"], "greedy");
    assert!(value["results"][0]["imbalance"].as_f64() < value["before"]["imbalance"].as_f64());
    // The last phase, which has half the loads.
    let last = json(&[FILE, "--lb", "greedy", "--json"]);
    let bound = |value: &Value| value["lower_bound"].as_f64().expect("a number");
    assert!((bound(&last) * 2.0 - bound(&value)).abs() < 0.01);
    let scaled =
        json(&[FILE, "--lb", "null", "--json", "--scale-pes", "2", "--scale-objects", "3"]);
    assert_eq!((&scaled["objects"], &scaled["pes"]), (&84.into(), &8.into()));
}

#[test]
fn arguments_reach_strategies() {
    let run = |argument: &str| {
        let case = ["--case", "uniform", "--lb", "greedy", "--json", "--lb-arg"];
        json(&[&case, [argument].as_slice()].concat())["results"][0]["moves"].clone()
    };
    assert_ne!(run("greedy:home-bias=0"), 0);
    assert_eq!(run("greedy:minimum-gain=0.9"), 0);
}

#[test]
fn what_is_saved_is_read_again_and_drawn() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let arguments = ["--case", "unequal-pes", "--pes", "5", "--objects", "40", "--lb", "refine"];
    let (files, svg) = (path("files"), path("loads.svg"));
    let first = json(&[&arguments[..], &["--json", "--save", &files, "--svg", &svg]].concat());
    let again = json(&[&files, "--lb", "refine", "--json"]);
    assert_eq!(first["results"][0]["max_load"], again["results"][0]["max_load"]);
    assert_eq!(first["before"], again["before"]);
    let svg = fs::read_to_string(svg).expect("written");
    assert!(svg.contains("<svg") && svg.contains("before: busiest PE") && svg.contains("refine"));
}

#[test]
fn bad_usage_is_named_with_what_is_allowed() {
    for (arguments, expected) in [
        (&[][..], "lb-sim: no loads: give data files, or a case (--case list shows them)"),
        (&["--case", "x"], "lb-sim: --case: no case `x`; cases: uniform, "),
        (&["--case", "grid", "--pes", "0"], "lb-sim: --pes 0: allowed is a whole number, 1 or"),
        (
            &["--case", "grid", "--scale-pes", "-1"],
            "lb-sim: --scale-pes -1: allowed is a number above 0",
        ),
        (
            &["--case", "grid", "--lb", "gready"],
            "lb-sim: no load-balancing strategy `gready`; strategies: null, ",
        ),
        (
            &["--case", "grid", "--lb", "greedy", "--lb-arg", "home-bias=1"],
            "lb-sim: --lb-arg home-bias=1: allowed is STRATEGY:NAME=VALUE, as in greedy:home-bias",
        ),
        (
            &["--case", "grid", "--lb", "greedy", "--lb-arg", "orb:tolerance=1"],
            "lb-sim: --lb-arg for orb, which does not run: --lb chose greedy",
        ),
        (
            &["--case", "grid", "--lb", "greedy", "--lb-arg", "greedy:home-bias=2"],
            "lb-sim: load-balancing strategy greedy: home-bias=2: allowed is a number from 0 to 1",
        ),
        (&["--case", "grid", "--objects", "many"], "error: invalid value 'many' for '--objects"),
    ] {
        let output = lb_sim(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.starts_with(expected), "{arguments:?}: {error}");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn bad_files_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("data.0.json");
    fs::write(&file, "{\"phases\": [{\"id\": 0}]}").expect("written");
    let name = file.display().to_string();
    let empty = tempfile::tempdir().expect("a directory");
    let empty = empty.path().display().to_string();
    for (arguments, expected) in [
        (vec!["no-such-file"], "lb-sim: no-such-file: cannot be read: ".to_owned()),
        (vec![name.as_str()], format!("lb-sim: {name}: at phases[0]: missing field `tasks` at")),
        (vec![FILE, "--phase", "11"], format!("lb-sim: {FILE}: has no phase 11; it has 3, 5")),
        (vec![empty.as_str()], format!("lb-sim: {empty}: has no files that end in .json")),
    ] {
        let output = lb_sim(&arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.starts_with(&expected), "{arguments:?}: {error}");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    }
}

#[test]
fn a_recorded_job_is_replayed_with_others() {
    let value = json(&[FILE, "--replay", "--lb", "greedy,null", "--every", "1,2", "--json"]);
    let rows = value["replays"].as_array().expect("rows");
    let seconds = |name: &str, every: u64| {
        let row = rows.iter().find(|it| it["balancer"] == name && it["every"] == every);
        row.expect("a row")["seconds"].as_f64().expect("a number")
    };
    assert_eq!(rows.len(), 7);
    assert_eq!(seconds("null", 1), seconds("nobody moves", 0));
    assert!(seconds("greedy", 1) < seconds("null", 1));
    let text = printed(&[FILE, "--replay", "--lb", "greedy"]);
    for row in ["as recorded", "nobody moves", "auto", "greedy"] {
        assert!(text.lines().any(|line| line.trim_start().starts_with(row)), "{text}");
    }
    let refused = |arguments: &[&str]| {
        let output = lb_sim(arguments);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).expect("text")
    };
    assert!(refused(&["--replay", "--case", "grid"]).contains("--replay"));
    let zero = refused(&[FILE, "--replay", "--every", "0"]);
    assert!(zero.contains("--every 0: allowed is whole numbers, 1 or more"), "{zero}");
}
