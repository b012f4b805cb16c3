//! Times of repetitions, and the line a benchmark prints.

use std::time::Instant;

use experiments::Spread;
use serde::{Deserialize, Serialize};

/// The measurements of a program; printed as one line of JSON by the programs here and by those in C.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The program.
    pub figure: String,
    /// Seconds per operation, the median of all repetitions.
    pub seconds: f64,
    /// Seconds per operation in the fastest repetition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Seconds per operation in the slowest repetition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
    /// Number of repetitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetitions: Option<u32>,
    /// Memory of the PEs per rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_rank: Option<f64>,
    /// Cells updated per second, for a solver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells_per_second: Option<f64>,
    /// The last residual, for a solver: the same bits for all that solve the same problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
    /// The checksum of the result, for a solver: likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

impl Measured {
    /// The median over repetitions of the seconds per operation.
    pub fn from_repetitions(figure: &str, seconds: &[f64]) -> Self {
        let spread = Spread::of(seconds.iter().copied());
        Self {
            figure: figure.to_owned(),
            seconds: spread.map_or(f64::NAN, |it| it.median),
            least: spread.map(|it| it.least),
            most: spread.map(|it| it.most),
            repetitions: Some(seconds.len() as u32),
            ..Self::default()
        }
    }

    /// Writes the line to standard output.
    pub fn print(&self) {
        match serde_json::to_string(self) {
            Ok(line) => println!("{line}"),
            Err(error) => eprintln!("vrt-bench: cannot write the result: {error}"),
        }
    }
}

/// Runs one repetition as a warm-up and then `repetitions` more; returns the seconds of each of these, divided by
/// `operations`.
pub fn repeat(repetitions: u32, operations: f64, mut body: impl FnMut()) -> Vec<f64> {
    body();
    (0..repetitions)
        .map(|_| {
            let start = Instant::now();
            body();
            start.elapsed().as_secs_f64() / operations
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warm_up_is_not_among_the_repetitions() {
        let mut runs = 0;
        let seconds = repeat(5, 10.0, || runs += 1);
        assert_eq!((runs, seconds.len()), (6, 5));
    }

    #[test]
    fn lines_of_the_c_programs_are_understood() {
        let line =
            r#"{"figure":"ring","seconds":4.5e-07,"least":4e-07,"most":5e-07,"repetitions":11}"#;
        let measured: Measured = serde_json::from_str(line).unwrap();
        assert_eq!(measured.seconds, 4.5e-7);
        assert_eq!(measured.repetitions, Some(11));
        let line = r#"{"figure":"jacobi","seconds":0.5,"cells_per_second":1.7e+09,"residual":0.00054173891338882285,"checksum":"5410f3d848ec4439"}"#;
        let measured: Measured = serde_json::from_str(line).unwrap();
        assert_eq!(measured.residual, Some(5.417389133888229e-4));
        assert_eq!(measured.checksum.as_deref(), Some("5410f3d848ec4439"));
    }
}
