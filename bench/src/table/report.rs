//! The table on the terminal, and the file of figures.

use std::path::Path;

use serde_json::{Value, json};

use experiments::cell;
use vrt_cli::{Machine, machine, quantity};

use super::markdown;
use super::peers::{Peer, PeerRuns};
use super::row::{Reference, Row, Target, Unit};
use super::run::{Figures, Runner};
use crate::Error;
use crate::process::write_file;

/// The rows measured so far.
pub(super) struct Report<'a> {
    runner: &'a Runner,
    rows: Vec<Figures>,
}

impl<'a> Report<'a> {
    pub(super) fn new(runner: &'a Runner) -> Self {
        Self { runner, rows: Vec::new() }
    }

    fn peers(&self) -> Vec<Peer> {
        self.runner.peers.present().collect()
    }

    pub(super) fn print_head(&self) {
        let Machine { processor, cores, .. } = Machine::at_start();
        let l2 = machine::second_level_cache()
            .map_or("unknown".to_owned(), |it| format!("{} KiB", it >> 10));
        println!("processor: {processor}, {cores} cores, L2 {l2}");
        print!(
            "{:<50} {:>14} {:>12} {:>12} {:>7} {:>3}",
            "what", "target", "vrt", "reference", "ratio", "met"
        );
        for peer in self.peers() {
            print!(" {:>14}", peer.name());
        }
        println!();
    }

    /// Adds a row and prints it at once.
    pub(super) fn add(&mut self, figures: Figures) {
        println!("{}", line(&figures, &self.peers()));
        for PeerRuns { peer, failure, .. } in &figures.peers {
            if let Some(failure) = failure {
                println!("    {}: {failure}", peer.name());
            }
        }
        self.rows.push(figures);
    }

    pub(super) fn print_foot(&self) {
        let met = self.rows.iter().filter(|row| row.is_met() == Some(true));
        println!(
            "{} of {} targets met; medians of {} runs each; the reference is Open MPI, \
             for \"16 ranks per PE\" vrt with one rank per PE, for \"C face\" the same program in Rust",
            met.count(),
            self.rows.len(),
            self.runner.pairs
        );
        if !self.peers().is_empty() {
            println!("{}", lost(&self.rows));
        }
    }

    /// Writes all figures to a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub(super) fn write(&self, path: &Path) -> Result<(), Error> {
        write_file(path, &format!("{:#}\n", self.json()))
    }

    /// Writes the table in parts, as Markdown.
    ///
    /// # Errors
    ///
    /// If a file cannot be written.
    pub(super) fn write_markdown(&self, folder: &Path) -> Result<(), Error> {
        markdown::write(folder, &self.rows, &self.peers())
    }

    fn json(&self) -> Value {
        json!({
            "machine": Machine::at_start(),
            "l2_bytes": machine::second_level_cache(),
            "pairs": self.runner.pairs,
            "quick": self.runner.is_quick,
            "rows": self.rows.iter().map(row_json).collect::<Vec<_>>(),
        })
    }
}

fn row_json(figures: &Figures) -> Value {
    let row = &figures.row;
    json!({
        "name": row.name,
        "title": row.title,
        "target": target(row),
        if row.unit == Unit::Memory { "bytes" } else { "seconds" }: figures.vrt_seconds(),
        "reference": match row.reference {
            Reference::None => Value::Null,
            Reference::OpenMpi => "Open MPI".into(),
            Reference::Vrt(_) => "vrt".into(),
        },
        "reference_seconds": figures.reference_seconds(),
        "ratio": figures.ratio(),
        "met": figures.is_met(),
        "runs": figures.vrt,
        "reference_runs": figures.reference(),
        "peers": figures.peers.iter().map(|runs| peer_json(runs, &figures.vrt)).collect::<Vec<_>>(),
        "loses_to": figures.loses_to().iter().map(|(peer, _)| peer.name()).collect::<Vec<_>>(),
    })
}

fn peer_json(runs: &PeerRuns, ours: &[f64]) -> Value {
    json!({
        "name": runs.peer.name(),
        "seconds": runs.seconds(),
        "ratio": runs.ratio(ours),
        "runs": runs.runs,
        "failure": runs.failure,
    })
}

/// The rows in which a peer is faster, for the end of the table.
fn lost(rows: &[Figures]) -> String {
    let lost: Vec<String> = (rows.iter())
        .map(|figures| (figures, figures.loses_to()))
        .filter(|(_, peers)| !peers.is_empty())
        .map(|(figures, peers)| {
            let peers = peers.iter().map(|(peer, ratio)| format!("{} ({ratio:.3}x)", peer.name()));
            format!("\n    {}: {}", figures.row.name, peers.collect::<Vec<_>>().join(", "))
        })
        .collect();
    if lost.is_empty() {
        return "no row is slower than another MPI that was measured".to_owned();
    }
    format!("slower than another MPI, in rows: {}{}", lost.len(), lost.concat())
}

/// A row, with a column for each of some peers.
fn line(figures: &Figures, peers: &[Peer]) -> String {
    let row = &figures.row;
    let shown = |seconds: Option<f64>| cell(seconds, |s| figure(row.unit, s));
    let ratio = cell(figures.ratio(), |ratio| shown_ratio(row.unit, ratio));
    let met = match figures.is_met() {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "-",
    };
    let mut text = format!(
        "{:<50} {:>14} {:>12} {:>12} {ratio:>7} {met:>3}",
        row.title,
        target(row),
        shown(Some(figures.vrt_seconds())),
        shown(figures.reference_seconds()),
    );
    for peer in peers {
        let runs = figures.peers.iter().find(|it| it.peer == *peer);
        text += &format!(" {:>14}", shown(runs.and_then(PeerRuns::seconds)));
    }
    let faster: Vec<_> = figures.loses_to().iter().map(|(peer, _)| peer.name()).collect();
    if !faster.is_empty() {
        text += &format!("  LOSES to {}", faster.join(", "));
    }
    text
}

/// A ratio of seconds, or of the unit's derived values.
pub(super) fn shown_ratio(unit: Unit, ratio: f64) -> String {
    let ratio = match unit {
        Unit::Time | Unit::Memory => ratio,
        Unit::Bandwidth(_) => 1.0 / ratio,
    };
    format!("{ratio:.3}")
}

fn target(row: &Row) -> String {
    match row.target {
        Target::Seconds(most) => format!("<= {}", quantity::seconds(most)),
        Target::Bytes(most) => format!("<= {}", kibibytes(most)),
        Target::TimesReference(most) => format!("<= {most}x"),
        Target::TimesReferenceBandwidth(least) => format!(">= {least}x"),
    }
}

pub(super) fn figure(unit: Unit, seconds: f64) -> String {
    match unit {
        Unit::Time => quantity::seconds(seconds),
        Unit::Bandwidth(bytes) => format!("{:.2} GB/s", bytes / seconds * 1e-9),
        Unit::Memory => kibibytes(seconds),
    }
}

fn kibibytes(bytes: f64) -> String {
    format!("{:.1} KiB", bytes / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::peers::Peers;
    use crate::table::rows::all;

    fn figures(name: &str, vrt: f64, open_mpi: Vec<f64>) -> Figures {
        Figures {
            row: all().into_iter().find(|row| row.name == name).unwrap(),
            vrt: vec![vrt],
            vrt_reference: Vec::new(),
            peers: vec![PeerRuns { peer: Peer::OpenMpi, runs: open_mpi, failure: None }],
        }
    }

    #[test]
    fn lines_say_whether_the_target_is_met() {
        let text = line(&figures("switch", 50e-9, vec![]), &[]);
        assert!(text.contains("<= 25 ns"), "{text}");
        assert!(text.ends_with("50 ns            -       -  NO"), "{text}");
        let text = line(&figures("bandwidth", 1e-4, vec![2e-4]), &[]);
        assert!(text.contains("10.49 GB/s"), "{text}");
        assert!(text.ends_with("2.000 yes"), "{text}");
        let text = line(&figures("jacobi-96", 1.0, vec![]), &[]);
        assert!(text.ends_with("-   -"), "{text}");
    }

    #[test]
    fn lines_have_the_peers_and_say_which_are_faster() {
        let mut row = figures("message-1024", 2e-6, vec![4e-6]);
        assert!(
            line(&row, &Peer::ALL).ends_with("yes           4 us              -              -")
        );
        row.peers.push(PeerRuns { runs: vec![1e-6], ..PeerRuns::new(Peer::AmpiThreads) });
        row.peers.push(PeerRuns { runs: vec![1.6e-6], ..PeerRuns::new(Peer::AmpiProcesses) });
        let text = line(&row, &Peer::ALL);
        assert!(
            text.ends_with(
                "4 us           1 us         1.6 us  LOSES to AMPI threads, AMPI processes"
            ),
            "{text}"
        );
        assert_eq!(
            lost(&[figures("ring", 1.0, vec![2.0]), row]),
            "slower than another MPI, in rows: 1\n    \
             message-1024: AMPI threads (2.000x), AMPI processes (1.250x)"
        );
        assert!(lost(&[figures("ring", 1.0, vec![2.0])]).starts_with("no row"));
    }

    #[test]
    fn the_file_has_every_run() {
        let runner = Runner {
            vrt_bench_on_mpi: "vrt-bench".into(),
            peers: Peers::default(),
            images: "c".into(),
            pairs: 1,
            is_quick: true,
        };
        let mut report = Report::new(&runner);
        let mut row = figures("jacobi-96", 1.0, vec![2.0]);
        row.peers.push(PeerRuns { runs: vec![0.5], ..PeerRuns::new(Peer::AmpiThreads) });
        let failure = Some("it cannot".to_owned());
        row.peers.push(PeerRuns { failure, ..PeerRuns::new(Peer::AmpiProcesses) });
        report.rows.push(row);
        let json = report.json();
        let row = &json["rows"][0];
        assert_eq!(row["name"], "jacobi-96");
        assert_eq!(row["ratio"], 0.5);
        assert_eq!(row["met"], true);
        assert_eq!(row["reference_runs"][0], 2.0);
        assert_eq!(row["peers"][1]["name"], "AMPI threads");
        assert_eq!(row["peers"][1]["ratio"], 2.0);
        assert_eq!(row["peers"][2]["failure"], "it cannot");
        assert_eq!(row["loses_to"], json!(["AMPI threads"]));
        assert!(json["machine"]["cores"].as_u64().unwrap() > 0);
    }
}
