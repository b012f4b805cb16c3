//! Instructions of an operation, counted by callgrind, against the committed
//! figures.
//!
//! An instruction count does not depend on the machine's load, so a change of
//! a few percent is a change of the code. Each operation runs with two numbers
//! of iterations; the difference leaves out everything that happens once.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, ExitCode};

use serde::{Deserialize, Serialize};

use super::Error;
use super::process::{output, show};
use crate::programs::Operation;

/// The file of committed figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Committed {
    /// By which share a count may exceed the committed one.
    tolerance: f64,
    /// Instructions of an operation, by its name.
    instructions: BTreeMap<String, f64>,
}

const DEFAULT_TOLERANCE: f64 = 0.02;
const FEW_ITERATIONS: u32 = 1_000;
const MANY_ITERATIONS: u32 = 11_000;

/// Counts, and compares with the committed figures or replaces them.
///
/// # Errors
///
/// When valgrind or the program fails, or the file cannot be read or written.
pub(super) fn run(program: &Path, file: &Path, update: bool) -> Result<ExitCode, Error> {
    let committed = read(file)?;
    let mut instructions = BTreeMap::new();
    let mut is_worse = false;
    println!("{:<10} {:>14} {:>10}", "operation", "instructions", "committed");
    for operation in Operation::ALL {
        let counted = instructions_of(program, operation)?;
        let verdict = committed.judge(operation, counted);
        println!("{}", line(operation, counted, verdict));
        is_worse |= verdict.is_failure();
        instructions.insert(operation.name().to_owned(), round(counted));
    }
    if update {
        write(file, &Committed { instructions, ..committed })?;
        println!("written to {}", file.display());
        return Ok(ExitCode::SUCCESS);
    }
    if is_worse {
        println!("where this is meant: scripts/bench --update-counts");
    }
    Ok(ExitCode::from(u8::from(is_worse)))
}

/// A count beside the committed one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Same { committed: f64 },
    Better { committed: f64 },
    Worse { committed: f64 },
    NotCommitted,
}

impl Verdict {
    fn is_failure(self) -> bool {
        matches!(self, Self::Worse { .. } | Self::NotCommitted)
    }
}

impl Committed {
    fn judge(&self, operation: Operation, counted: f64) -> Verdict {
        let Some(&committed) = self.instructions.get(operation.name()) else {
            return Verdict::NotCommitted;
        };
        if counted > committed * (1.0 + self.tolerance) {
            Verdict::Worse { committed }
        } else if counted < committed * (1.0 - self.tolerance) {
            Verdict::Better { committed }
        } else {
            Verdict::Same { committed }
        }
    }
}

fn line(operation: Operation, counted: f64, verdict: Verdict) -> String {
    let (committed, remark) = match verdict {
        Verdict::Same { committed } => (Some(committed), "ok"),
        Verdict::Better { committed } => (Some(committed), "better"),
        Verdict::Worse { committed } => (Some(committed), "WORSE"),
        Verdict::NotCommitted => (None, "not committed"),
    };
    let committed = committed.map_or("-".to_owned(), |count| format!("{count:.1}"));
    format!("{:<10} {counted:>14.1} {committed:>10}  {remark}", operation.name())
}

fn instructions_of(program: &Path, operation: Operation) -> Result<f64, Error> {
    let few = count(program, operation, FEW_ITERATIONS)?;
    let many = count(program, operation, MANY_ITERATIONS)?;
    let operations = f64::from(MANY_ITERATIONS - FEW_ITERATIONS);
    Ok((many as f64 - few as f64) / (operations * f64::from(operation.in_an_iteration())))
}

/// The instructions of a whole run of the program.
fn count(program: &Path, operation: Operation, iterations: u32) -> Result<u64, Error> {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/stdout"])
        .arg(program)
        .args(["counts", "--what", operation.name()])
        .args(["--iterations", &iterations.to_string()]);
    let printed = output(&mut command)?;
    total(&printed).ok_or_else(|| Error::Printed {
        command: show(&command),
        printed: printed.lines().take(10).collect::<Vec<_>>().join("\n"),
    })
}

/// The total in callgrind's output, which has it in a line `summary: N` or
/// `totals: N`.
fn total(printed: &str) -> Option<u64> {
    (printed.lines())
        .find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")))?
        .trim()
        .parse()
        .ok()
}

/// The committed figures; none when there is no such file.
fn read(file: &Path) -> Result<Committed, Error> {
    let error = |cause| Error::File { path: file.to_owned(), cause };
    match std::fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text).map_err(|cause| error(cause.into())),
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            Ok(Committed { tolerance: DEFAULT_TOLERANCE, instructions: BTreeMap::new() })
        }
        Err(cause) => Err(error(cause)),
    }
}

fn write(file: &Path, committed: &Committed) -> Result<(), Error> {
    let error = |cause| Error::File { path: file.to_owned(), cause };
    let text = serde_json::to_string_pretty(committed).map_err(|cause| error(cause.into()))?;
    std::fs::write(file, text + "\n").map_err(error)
}

/// To a tenth of an instruction.
fn round(count: f64) -> f64 {
    (count * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed() -> Committed {
        Committed { tolerance: 0.02, instructions: BTreeMap::from([("switch".to_owned(), 100.0)]) }
    }

    #[test]
    fn only_a_larger_or_a_missing_count_fails() {
        let judge = |counted| committed().judge(Operation::Switch, counted);
        assert_eq!(judge(102.0), Verdict::Same { committed: 100.0 });
        assert_eq!(judge(102.1), Verdict::Worse { committed: 100.0 });
        assert_eq!(judge(97.0), Verdict::Better { committed: 100.0 });
        assert!(judge(102.1).is_failure());
        assert!(!judge(97.0).is_failure());
        assert!(committed().judge(Operation::Probe, 1.0).is_failure());
    }

    #[test]
    fn the_total_is_found_in_callgrinds_output() {
        let printed = "# callgrind format\nversion: 1\nevents: Ir\nsummary: 1234567\n\nfn=main\n";
        assert_eq!(total(printed), Some(1_234_567));
        assert_eq!(total("calls=12\ntotals: 89\n"), Some(89));
        assert_eq!(total("nothing"), None);
    }

    #[test]
    fn a_missing_file_commits_to_nothing() {
        let none = read(Path::new("/nowhere/counts.json")).unwrap();
        assert_eq!(none.judge(Operation::Switch, 1.0), Verdict::NotCommitted);
        assert!(read(Path::new("/")).is_err());
    }

    #[test]
    fn the_file_survives_writing_and_reading() {
        let text = serde_json::to_string_pretty(&committed()).unwrap();
        assert_eq!(serde_json::from_str::<Committed>(&text).unwrap(), committed());
    }
}
