//! `scripts/bench copies`: how do long messages compare with plain copies?
//!
//! `c/copy.c` copies messages between two processes by every method that the processor has, by either end or by both at
//! once, in small and large pages. Alternately with it run the ping-pong of `vrt`, which chooses its method itself, and
//! that of Open MPI.
//!
//! | file | subject |
//! |---|---|
//! | `system` | the programs that copy, and their measurements |
//! | `report` | the best for each length: tables, figures, and the numbers as JSON |

mod report;
mod system;

use std::path::PathBuf;

use bytesize::ByteSize;
use experiments::{Folder, Progress, rounds, run_in_turn};

use crate::Error;
use crate::process::own_directory;
use system::{Case, Programs, Results, System};

/// The options of `scripts/bench copies`.
#[derive(Clone, Debug, clap::Args)]
#[command(
    about = "Compare long messages with copies that no runtime makes",
    long_about = "Compare long messages with copies that no runtime makes.\n\n\
        Sends messages to and fro between two cores: by copies of every method that the processor has, by the receiver, the \
        sender or both at once, in pages of 4 KiB and 2 MiB (bench/c/copy.c); by vrt, with large pages and without; and by \
        Open MPI. Each once with buffers that nobody else uses, and once written before and read after each message. \
        Writes report.md, untouched.svg, touched.svg, copies.csv and copies.json."
)]
pub struct Args {
    /// Lengths of messages, multiples of 512 bytes, as in 4K,1M,64M [default: 4K to 64M by doubling]
    #[arg(long, value_name = "LENGTHS", value_delimiter = ',', value_parser = length)]
    bytes: Vec<u32>,

    /// Runs of each program; the median counts
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = vrt_cli::positive::<u32>)]
    rounds: u32,

    /// One round with fewer lengths: rough results in less than a minute
    #[arg(long, conflicts_with_all = ["rounds", "bytes"])]
    quick: bool,

    /// Where to write the figures and the report
    #[arg(long, value_name = "FOLDER", default_value = "copies-results")]
    out: PathBuf,

    /// Run only vrt and the plain copies
    #[arg(long)]
    pub no_open_mpi: bool,

    /// Where the C programs are [default: bench-c beside the Rust programs]
    #[arg(long, value_name = "DIRECTORY")]
    c_programs: Option<PathBuf>,
}

const LEAST: u32 = 4 << 10;
const MOST: u32 = 64 << 20;
/// The lengths if time is short.
const FEW: [u32; 5] = [16 << 10, 256 << 10, 1 << 20, 4 << 20, 32 << 20];
/// The number of bytes that the longest loop of `c/copy.c` copies at once, by both ends.
const UNIT: u32 = 512;

/// A length of messages.
fn length(text: &str) -> Result<u32, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M') => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    let bytes = digits.parse::<u32>().ok().and_then(|count| count.checked_mul(unit));
    bytes
        .filter(|bytes| *bytes > 0 && *bytes <= 1 << 30 && bytes.is_multiple_of(UNIT))
        .ok_or_else(|| "expected a multiple of 512 up to 1024M, as in 4K".to_owned())
}

impl Args {
    /// The lengths, sorted and without repetition.
    fn lengths(&self) -> Vec<u32> {
        let mut lengths = match (self.quick, self.bytes.as_slice()) {
            (true, _) => FEW.to_vec(),
            (false, []) => {
                std::iter::successors(Some(LEAST), |bytes| (*bytes < MOST).then_some(2 * bytes))
                    .collect()
            }
            (false, some) => some.to_vec(),
        };
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    fn rounds(&self) -> u32 {
        if self.quick { 1 } else { self.rounds }
    }
}

/// Runs everything alternately and writes the report.
///
/// # Errors
///
/// If a program fails, or a file cannot be written.
pub fn run(args: &Args) -> Result<(), Error> {
    let c_programs = args.c_programs.clone().unwrap_or_else(|| own_directory().join("bench-c"));
    let programs =
        Programs { copy: c_programs.join("copy"), pingpong: c_programs.join("pingpong") };
    // What cannot be written should not be measured first.
    let folder = Folder::create(&args.out)?;
    let systems = System::all(!args.no_open_mpi);
    let cases = [false, true].into_iter();
    let cases: Vec<Case> = cases
        .flat_map(|touched| args.lengths().into_iter().map(move |bytes| Case { bytes, touched }))
        .collect();
    let order = rounds(cases.len(), args.rounds() as usize);
    let title = |case: &Case| {
        let touched = if case.touched { ", touched" } else { "" };
        format!("{:.0}{touched}", ByteSize(case.bytes.into()))
    };
    let run = |case: &Case| programs.run(&systems, *case);
    let runs = run_in_turn(&cases, order, &mut Progress::new(true), title, run)?;
    let all: Vec<Results> =
        cases.into_iter().zip(runs).map(|(case, runs)| Results::of(case, runs)).collect();
    report::write(args, folder, &systems, &all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsed;

    #[test]
    fn lengths_are_parsed() {
        assert_eq!(length("4K"), Ok(4096));
        assert_eq!(length("64M"), Ok(64 << 20));
        assert_eq!(length("1536"), Ok(1536));
        for wrong in ["", "K", "0", "-1K", "100", "4G", "4096M", "2048M", "1.5M", "K4"] {
            assert!(length(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lengths_come_in_order_and_once() {
        let parse = |args: &[&str]| parsed::<Args>(&[&["copies"], args].concat());
        assert_eq!(parse(&["--bytes", "1M,4K,1024K"]).unwrap().lengths(), [4096, 1 << 20]);
        let all = parse(&[]).unwrap().lengths();
        assert_eq!((all[0], all[all.len() - 1], all.len()), (LEAST, MOST, 15));
        assert_eq!(parse(&["--quick"]).unwrap().lengths(), FEW);
        for wrong in [&["--bytes", "100"][..], &["--quick", "--rounds", "2"], &["--rounds", "0"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
