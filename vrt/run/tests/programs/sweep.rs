//! `vrtrun sweep`: ratios and balancers compared.

use std::fs;

use tempfile::TempDir;
use vrt_tests::job::{self, Job};

use crate::program::Program;

const STENCIL: Program = Program::new("stencil.c");

/// A sweep over the stencil; its files are written to the directory.
fn sweep(folder: &TempDir, options: &[&str], arguments: &[&str]) -> Job {
    let mut command = job::unlimited(env!("CARGO_BIN_EXE_vrtrun"));
    command.args(["sweep", "--pes", "2", "--repeat", "2", "--out"]).arg(folder.path());
    command.args(options).arg(STENCIL.file()).args(arguments);
    // It is beside vrtrun, and made with it.
    assert!(fs::exists(env!("CARGO_BIN_EXE_vrtrun-sweep")).unwrap());
    Job::of(command)
}

#[test]
fn every_configuration_is_run_and_told() {
    let folder = TempDir::new().unwrap();
    let same = ["--same", r"stencil: \d+ ranks, (\w+)"];
    let options = ["--ratios", "1,4", "--strategies", "none,random", "--lb-period", "1ms"];
    let job = sweep(&folder, &[&options[..], &same].concat(), &[]);
    assert_eq!(job.status, Some(0), "{job}");
    assert!(job.out.lines().any(|line| line.starts_with("best  ")), "{job}");

    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let rows: Vec<String> = read("sweep.csv").lines().map(str::to_owned).collect();
    assert_eq!(rows.len(), 1 + 2 * 2 * 2, "{rows:?}");
    for configuration in ["1,2,none,", "1,2,random,", "4,8,none,", "4,8,random,"] {
        let all: Vec<_> = rows.iter().filter(|row| row.starts_with(configuration)).collect();
        assert_eq!(all.len(), 2, "{configuration}: {rows:?}");
        for row in all {
            let numbers: Vec<f64> =
                row.split(',').skip(4).map(|number| number.parse().unwrap()).collect();
            let [value, busy, idle, overhead, work] = numbers[..] else { panic!("{row}") };
            assert!(value > 0.0 && work > 0.0, "{row}");
            assert!((busy + idle + overhead - 1.0).abs() < 0.02, "{row}");
        }
    }
    let json: serde_json::Value = serde_json::from_str(&read("sweep.json")).unwrap();
    assert_eq!(json["configurations"].as_array().unwrap().len(), 4);
    let figure = read("sweep.svg");
    assert!(figure.trim_end().ends_with("</svg>") && figure.contains("ranks per PE"), "{figure}");
}

#[test]
fn results_that_differ_are_an_error() {
    let folder = TempDir::new().unwrap();
    // More ranks have a larger box, and so another sum.
    let options = ["--ratios", "1,2", "--same", r"sum (\S+)"];
    let job = sweep(&folder, &options, &[]);
    assert_eq!(job.status, Some(1), "{job}");
    for part in ["the results differ", "1 rank per PE (2 ranks): ", "2 ranks per PE (4 ranks): "] {
        assert!(job.err.contains(part), "{part}: {job}");
    }
    let weak = sweep(&folder, &[&options[..], &["--weak"]].concat(), &["{ranks}"]);
    assert_eq!(weak.status, Some(0), "{weak}");
    assert!(weak.out.contains("s/rank"), "{weak}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = TempDir::new().unwrap();
    for (options, status, said) in [
        (&["--ratios", "0"][..], 2, "--ratios 0: allowed is whole numbers from 1"),
        (&["--metric", "sum"], 2, "it has no group in parentheses"),
        (&["--metric", "(sum"], 2, "--metric (sum: "),
        (&["--weak"], 2, "{ranks} is in no argument"),
        (&["--repeat", "0"], 2, "--repeat 0"),
        (&["--ratios", "1", "--metric", r"speed (\d+)"], 1, "nothing in its output is like that"),
        (&["--ratios", "1", "--strategies", "gready"], 1, "no load-balancing strategy `gready`"),
        (&["--ratios", "1", "--timeout", "1", "--vrt=--no-such-option"], 1, "--no-such-option"),
    ] {
        // The last of an option counts, but for `--repeat`, which is given once.
        let options: Vec<&str> = options.to_vec();
        let job = match options[0] {
            "--repeat" => {
                let mut command = job::unlimited(env!("CARGO_BIN_EXE_vrtrun"));
                command.arg("sweep").args(&options).arg(STENCIL.file());
                Job::of(command)
            }
            _ => sweep(&folder, &options, &[]),
        };
        assert_eq!(job.status, Some(status), "{options:?}: {job}");
        assert!(job.err.contains(said), "{options:?}: {job}");
    }
}
