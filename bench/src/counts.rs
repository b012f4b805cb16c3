//! Instructions per operation, counted by callgrind, compared with the committed figures.
//!
//! An instruction count does not depend on the machine's load, so a change of a few percent is a change of the code.
//! Each operation runs with two numbers of iterations; the difference excludes everything that happens once.
//!
//! In addition, callgrind's model of a processor reports on memory and branches: accesses to data, misses of a
//! first-level cache of 32 KiB, and branch mispredictions (the model does not count returns as branches). With the
//! model a run takes longer, and work that depends on time is done more often, such as polling the rings: so
//! instructions are counted in a separate run. That is slow, too: anything that takes longer than a switch is followed
//! by a poll that would not happen otherwise. Whether a switch itself is depends on the machine (259 to 310
//! instructions with the same build): so its count may be larger by a poll. A message contains two switches, and has a
//! count that does not depend on that.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::process::{own_directory, run_to_end, write_file};
use crate::programs::Operation;

/// Count instructions and compare them with the committed figures; the exit status is 1 if one is worse.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Write them to the file of committed figures instead
    #[arg(long)]
    update: bool,

    /// The file of committed figures
    #[arg(long, value_name = "FILE", default_value = "bench/counts.json", overrides_with = "file")]
    file: PathBuf,
}

/// The file of committed figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Committed {
    /// The part by which a count may exceed the committed one.
    tolerance: f64,
    /// Instructions per operation, by its name.
    instructions: BTreeMap<String, f64>,
}

const DEFAULT_TOLERANCE: f64 = 0.02;
/// Instructions of a poll of the rings.
const LOOK: f64 = 45.0;
const FEW_ITERATIONS: u32 = 1_000;
const MANY_ITERATIONS: u32 = 11_000;

/// Counts, and compares with the committed figures or replaces them.
///
/// # Errors
///
/// If valgrind or the program fails, or the file cannot be read or written.
pub fn run(args: &Args) -> Result<(), Error> {
    let (program, file) = (&own_directory().join("vrt-bench"), &args.file);
    let committed = read(file)?;
    let mut instructions = BTreeMap::new();
    let mut is_worse = false;
    println!(
        "{:<10} {:>14} {:>10}  {:<13} {:>10} {:>10} {:>12}",
        "operation", "instructions", "committed", "", "accesses", "L1 misses", "not foreseen"
    );
    for operation in Operation::ALL {
        let counted = counts_of(program, operation)?;
        let verdict = committed.judge(operation, counted.instructions);
        println!("{}", line(operation, counted, verdict));
        is_worse |= verdict.is_failure();
        instructions.insert(operation.name().to_owned(), round(counted.instructions));
    }
    if args.update {
        write(file, &Committed { instructions, ..committed })?;
        println!("written to {}", file.display());
        return Ok(());
    }
    if is_worse { Err(Error::Worse) } else { Ok(()) }
}

/// The counts of a run or of one operation.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counts {
    instructions: f64,
    /// Loads and stores.
    accesses: f64,
    /// Misses of the first-level caches, for instructions and data.
    misses: f64,
    /// Mispredicted branches.
    not_foreseen: f64,
}

/// A count compared with the committed one.
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
        let looks = if operation == Operation::Switch { LOOK } else { 0.0 };
        if counted > committed * (1.0 + self.tolerance) + looks {
            Verdict::Worse { committed }
        } else if counted < committed * (1.0 - self.tolerance) {
            Verdict::Better { committed }
        } else {
            Verdict::Same { committed }
        }
    }
}

fn line(operation: Operation, counted: Counts, verdict: Verdict) -> String {
    let (committed, remark) = match verdict {
        Verdict::Same { committed } => (Some(committed), "ok"),
        Verdict::Better { committed } => (Some(committed), "better"),
        Verdict::Worse { committed } => (Some(committed), "WORSE"),
        Verdict::NotCommitted => (None, "not committed"),
    };
    let committed = committed.map_or("-".to_owned(), |count| format!("{count:.1}"));
    let Counts { instructions, accesses, misses, not_foreseen } = counted;
    format!(
        "{:<10} {instructions:>14.1} {committed:>10}  {remark:<13} {accesses:>10.1} {misses:>10.2} \
         {not_foreseen:>12.2}",
        operation.name()
    )
}

fn counts_of(program: &Path, operation: Operation) -> Result<Counts, Error> {
    let run = |iterations| -> Result<Counts, Error> {
        let modelled = count(program, operation, iterations, MODEL)?;
        Ok(Counts {
            instructions: count(program, operation, iterations, &[])?.instructions,
            ..modelled
        })
    };
    let (few, many) = (run(FEW_ITERATIONS)?, run(MANY_ITERATIONS)?);
    let iterations = f64::from(MANY_ITERATIONS - FEW_ITERATIONS);
    let operations = iterations * f64::from(operation.in_an_iteration());
    let each = |of: fn(&Counts) -> f64| (of(&many) - of(&few)) / operations;
    Ok(Counts {
        instructions: each(|counts| counts.instructions),
        accesses: each(|counts| counts.accesses),
        misses: each(|counts| counts.misses),
        not_foreseen: each(|counts| counts.not_foreseen),
    })
}

/// Makes callgrind model caches and branches; not those of this processor, so that figures can be compared.
const MODEL: &[&str] = &[
    "--cache-sim=yes",
    "--I1=32768,8,64",
    "--D1=32768,8,64",
    "--LL=8388608,16,64",
    "--branch-sim=yes",
];

/// The counts of a whole run of the program.
fn count(
    program: &Path,
    operation: Operation,
    iterations: u32,
    model: &[&str],
) -> Result<Counts, Error> {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/stdout"])
        .args(model)
        .arg(program)
        .args(["run", "counts", "--what", operation.name()])
        .args(["--iterations", &iterations.to_string()]);
    let job = run_to_end(&mut command)?;
    totals(&job.out).ok_or_else(|| Error::Printed {
        command: job.line,
        printed: job.out.lines().take(10).collect::<Vec<_>>().join("\n"),
    })
}

/// The totals in callgrind's output: it names the events in a line `events: ...`, and lists their numbers in a line
/// `summary: ...` or `totals: ...`.
fn totals(printed: &str) -> Option<Counts> {
    let after = |name: &str| printed.lines().find_map(|line| line.strip_prefix(name));
    let events = after("events: ")?.split_whitespace();
    let numbers = after("totals: ").or_else(|| after("summary: "))?.split_whitespace();
    let numbers = numbers.map(str::parse).collect::<Result<Vec<f64>, _>>().ok()?;
    let all: BTreeMap<&str, f64> = events.zip(numbers).collect();
    let sum = |names: &[&str]| names.iter().filter_map(|name| all.get(name)).sum();
    Some(Counts {
        instructions: *all.get("Ir")?,
        accesses: sum(&["Dr", "Dw"]),
        misses: sum(&["I1mr", "D1mr", "D1mw"]),
        not_foreseen: sum(&["Bcm", "Bim"]),
    })
}

/// The committed figures; empty if the file does not exist.
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
    write_file(file, &(text + "\n"))
}

/// Rounds to a tenth of an instruction.
fn round(count: f64) -> f64 {
    (count * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed() -> Committed {
        let of = |operation: Operation| (operation.name().to_owned(), 100.0);
        let instructions = [Operation::Switch, Operation::Message].map(of).into();
        Committed { tolerance: 0.02, instructions }
    }

    #[test]
    fn only_a_larger_or_a_missing_count_fails() {
        let judge = |counted| committed().judge(Operation::Message, counted);
        assert_eq!(judge(102.0), Verdict::Same { committed: 100.0 });
        assert_eq!(judge(102.1), Verdict::Worse { committed: 100.0 });
        assert_eq!(judge(97.0), Verdict::Better { committed: 100.0 });
        assert!(judge(102.1).is_failure());
        assert!(!judge(97.0).is_failure());
        assert!(committed().judge(Operation::Probe, 1.0).is_failure());
    }

    #[test]
    fn a_switch_may_have_a_look_at_the_rings() {
        let judge = |counted| committed().judge(Operation::Switch, counted);
        assert_eq!(judge(102.0 + LOOK), Verdict::Same { committed: 100.0 });
        assert_eq!(judge(102.1 + LOOK), Verdict::Worse { committed: 100.0 });
    }

    #[test]
    fn the_totals_are_found_in_callgrinds_output() {
        let printed =
            "version: 1\nevents: Ir Dr Dw D1mr Bcm Bim\nsummary: 12 3 4 5 6 7\n\nfn=main\n";
        let counts = Counts { instructions: 12.0, accesses: 7.0, misses: 5.0, not_foreseen: 13.0 };
        assert_eq!(totals(printed), Some(counts));
        assert_eq!(totals("events: Ir\ncalls=12\ntotals: 89\n").unwrap().instructions, 89.0);
        assert_eq!(totals("totals: 89\n"), None);
        assert_eq!(totals("events: Ir\ntotals: x\n"), None);
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
