//! The table on the terminal, and the file of figures.

use std::path::Path;

use serde_json::{Value, json};

use super::Error;
use super::rows::{Reference, Row, Target, Unit};
use super::run::{Figures, Runner};

/// The rows measured so far.
pub(super) struct Report<'a> {
    runner: &'a Runner,
    rows: Vec<Figures>,
}

impl<'a> Report<'a> {
    pub fn new(runner: &'a Runner) -> Self {
        Self { runner, rows: Vec::new() }
    }

    pub fn print_head(&self) {
        println!(
            "{:<50} {:>14} {:>12} {:>12} {:>7}  met",
            "what", "target", "vrt", "reference", "ratio"
        );
    }

    /// Adds a row and prints it at once.
    pub fn add(&mut self, figures: Figures) {
        println!("{}", line(&figures));
        self.rows.push(figures);
    }

    pub fn print_foot(&self) {
        let met = self.rows.iter().filter(|row| row.is_met() == Some(true));
        println!(
            "{} of {} targets met; medians of {} runs each; the reference is Open MPI, \
             for \"16 ranks per PE\" vrt with one rank per PE, for \"C face\" the same program in Rust",
            met.count(),
            self.rows.len(),
            self.runner.pairs
        );
    }

    /// Writes all figures to a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let text = format!("{:#}\n", self.json());
        std::fs::write(path, text).map_err(|cause| Error::File { path: path.to_owned(), cause })
    }

    fn json(&self) -> Value {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        json!({
            "cores": cores,
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
            Reference::OpenMpi { .. } => "Open MPI".into(),
            Reference::Vrt(_) => "vrt".into(),
        },
        "reference_seconds": figures.reference_seconds(),
        "ratio": figures.ratio(),
        "met": figures.is_met(),
        "runs": figures.vrt,
        "reference_runs": figures.reference,
    })
}

fn line(figures: &Figures) -> String {
    let row = &figures.row;
    let shown = |seconds: Option<f64>| seconds.map_or("-".to_owned(), |s| figure(row.unit, s));
    let ratio = figures.ratio().map_or("-".to_owned(), |ratio| {
        let ratio = match row.unit {
            Unit::Time | Unit::Memory => ratio,
            Unit::Bandwidth(_) => 1.0 / ratio,
        };
        format!("{ratio:.3}")
    });
    let met = match figures.is_met() {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "-",
    };
    format!(
        "{:<50} {:>14} {:>12} {:>12} {ratio:>7}  {met}",
        row.title,
        target(row),
        shown(Some(figures.vrt_seconds())),
        shown(figures.reference_seconds()),
    )
}

fn target(row: &Row) -> String {
    match row.target {
        Target::Seconds(most) => format!("<= {}", time(most)),
        Target::Bytes(most) => format!("<= {}", memory(most)),
        Target::TimesReference(most) => format!("<= {most}x"),
        Target::TimesReferenceBandwidth(least) => format!(">= {least}x"),
    }
}

fn figure(unit: Unit, seconds: f64) -> String {
    match unit {
        Unit::Time => time(seconds),
        Unit::Bandwidth(bytes) => format!("{:.2} GB/s", bytes / seconds * 1e-9),
        Unit::Memory => memory(seconds),
    }
}

fn memory(bytes: f64) -> String {
    format!("{:.1} KiB", bytes / 1024.0)
}

fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 1e-6 => (s * 1e9, "ns"),
        s if s < 1e-3 => (s * 1e6, "us"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    // Three digits, and no zeros after the point that say nothing.
    let digits = match value {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::rows::all;

    fn figures(name: &str, vrt: f64, reference: Vec<f64>) -> Figures {
        Figures {
            row: all().into_iter().find(|row| row.name == name).unwrap(),
            vrt: vec![vrt],
            reference,
        }
    }

    #[test]
    fn times_have_three_digits_and_a_unit() {
        for (seconds, text) in [
            (40e-9, "40 ns"),
            (123.4e-9, "123 ns"),
            (3e-6, "3 us"),
            (76.5e-6, "76.5 us"),
            (0.527, "527 ms"),
            (1.756, "1.76 s"),
            (100e-9, "100 ns"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }

    #[test]
    fn lines_say_whether_the_target_is_met() {
        let text = line(&figures("switch", 50e-9, vec![]));
        assert!(text.contains("<= 40 ns"), "{text}");
        assert!(text.ends_with("50 ns            -       -  NO"), "{text}");
        let text = line(&figures("bandwidth", 1e-4, vec![2e-4]));
        assert!(text.contains("10.49 GB/s"), "{text}");
        assert!(text.ends_with("2.000  yes"), "{text}");
        let text = line(&figures("jacobi-96", 1.0, vec![]));
        assert!(text.ends_with("-  -"), "{text}");
    }

    #[test]
    fn the_file_has_every_run() {
        let runner = Runner {
            vrt_bench: "vrt-bench".into(),
            vrt_bench_on_mpi: "vrt-bench".into(),
            c_programs: "c".into(),
            images: "c".into(),
            vrtrun: "vrtrun".into(),
            pairs: 1,
            is_quick: true,
            with_open_mpi: true,
        };
        let mut report = Report::new(&runner);
        report.rows.push(figures("jacobi-96", 1.0, vec![2.0]));
        let json = report.json();
        assert_eq!(json["rows"][0]["name"], "jacobi-96");
        assert_eq!(json["rows"][0]["ratio"], 0.5);
        assert_eq!(json["rows"][0]["met"], true);
        assert_eq!(json["rows"][0]["reference_runs"][0], 2.0);
    }
}
