//! `scripts/bench growth`: how do the costs of a switch, a barrier, an allreduce, a balancing step and a rank's memory
//! change as the number of ranks grows?
//!
//! Each is measured by `vrt-bench many` from 16 to 100,000 ranks per PE, and given per rank: a runtime whose work per
//! rank does not depend on the number of ranks has flat lines; a bend shows a full cache, or a fault.
//!
//! | file | subject |
//! |---|---|
//! | `system` | what is measured, and by which program |
//! | `curve` | costs over numbers of ranks, and where they increase |
//! | `report` | the tables, the figures, and the numbers as JSON |

mod curve;
mod report;
mod system;

use std::path::PathBuf;

use clap::ValueEnum;
use experiments::{Folder, Progress, rounds, run_in_turn};

use crate::Error;
use crate::programs::Aspect;
use system::{Sample, available_memory, measure, start_many};

/// The options of `scripts/bench growth`.
#[derive(Clone, Debug, clap::Args)]
#[command(
    about = "Show what ranks cost as they grow many",
    long_about = "Show what ranks cost as they grow many.\n\n\
        Measures the start, a switch, a barrier, an allreduce, a balancing step and the memory of a rank, from 16 to 100,000 \
        ranks on a PE: on one PE for a switch, on two for the rest. Says where a cost bends. Writes report.md, time.svg, \
        balance.svg, start.svg, memory.svg and growth.json."
)]
pub struct Args {
    /// Numbers of ranks per PE, separated by commas [default: 16 to 65536 by fours, and 100000]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=MOST_RANKS))]
    ranks_per_pe: Vec<u32>,

    /// What to measure, separated by commas
    #[arg(
        long,
        value_name = "ASPECTS",
        value_delimiter = ',',
        default_value = "start,switch,barrier,allreduce,balance"
    )]
    what: Vec<Aspect>,

    /// Runs of each; the median counts
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = vrt_cli::positive::<u32>)]
    rounds: u32,

    /// One round up to 16,384 ranks per PE: rough results in less than a minute
    #[arg(long, conflicts_with_all = ["rounds", "ranks_per_pe", "million"])]
    quick: bool,

    /// Also start 1,000,000 ranks, once: they synchronise in a barrier and end
    #[arg(long)]
    million: bool,

    /// PEs, except for a switch
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pes: u32,

    /// Where to write the figures and the report
    #[arg(long, value_name = "FOLDER", default_value = "growth-results")]
    out: PathBuf,
}

/// The most ranks per PE that can be requested.
const MOST_RANKS: i64 = 1_000_000;
const COUNTS: [u32; 8] = [16, 64, 256, 1024, 4096, 16_384, 65_536, 100_000];
/// The same if time is short.
const FEW: usize = 6;
const MILLION: u32 = 1_000_000;
/// More than a rank needs.
const BYTES_PER_RANK: u64 = 20 << 10;

impl Args {
    /// Numbers of ranks per PE, sorted and without repetition.
    fn counts(&self) -> Vec<u32> {
        let mut counts = match (self.quick, self.ranks_per_pe.as_slice()) {
            (true, _) => COUNTS[..FEW].to_vec(),
            (false, []) => COUNTS.to_vec(),
            (false, some) => some.to_vec(),
        };
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    /// What to measure, in the order of reports and without repetition.
    fn aspects(&self) -> Vec<Aspect> {
        Aspect::value_variants().iter().copied().filter(|it| self.what.contains(it)).collect()
    }

    fn rounds(&self) -> u32 {
        if self.quick { 1 } else { self.rounds }
    }
}

/// All runs of an aspect with a number of ranks per PE.
struct Series {
    aspect: Aspect,
    ranks_per_pe: u32,
    /// One per round.
    samples: Vec<Sample>,
}

/// Refuses to run more ranks than memory allows.
fn expect_memory(ranks: u64) -> Result<(), Error> {
    let needed = ranks * BYTES_PER_RANK;
    match available_memory() {
        Some(available) if available < needed => Err(Error::Memory { ranks, needed, available }),
        _ => Ok(()),
    }
}

/// Runs everything alternately and writes the report.
///
/// # Errors
///
/// If a program fails, there is too little memory, or a file cannot be written.
pub fn run(args: &Args) -> Result<(), Error> {
    // What cannot be written should not be measured first.
    let folder = Folder::create(&args.out)?;
    let most = args.counts().last().copied().unwrap_or_default();
    let most = u64::from(most) * u64::from(args.pes);
    expect_memory(if args.million { most.max(MILLION.into()) } else { most })?;
    let jobs: Vec<(u32, Aspect)> = (args.counts().into_iter())
        .flat_map(|count| args.aspects().into_iter().map(move |aspect| (count, aspect)))
        .collect();
    let order = rounds(jobs.len(), args.rounds() as usize);
    let title =
        |(ranks, aspect): &(u32, Aspect)| format!("{}, {ranks} ranks per PE", aspect.title());
    let run = |&(ranks, aspect): &(u32, Aspect)| measure(aspect, aspect.pes(args.pes), ranks);
    let mut progress = Progress::new(true);
    let runs = run_in_turn(&jobs, order, &mut progress, title, run)?;
    let all: Vec<Series> = (jobs.into_iter().zip(runs))
        .map(|((ranks_per_pe, aspect), samples)| Series { aspect, ranks_per_pe, samples })
        .collect();
    let million = if args.million {
        progress.show(|| "the start of 1,000,000 ranks".to_owned());
        expect_memory(MILLION.into())?;
        Some(start_many(MILLION, args.pes)?)
    } else {
        None
    };
    progress.clear();
    report::write(args, folder, &all, million.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsed;

    #[test]
    fn counts_come_in_order_and_once() {
        let parse = |args: &[&str]| parsed::<Args>(&[&["growth"], args].concat());
        assert_eq!(parse(&[]).unwrap().counts(), COUNTS);
        assert_eq!(parse(&["--ranks-per-pe", "64,16,64"]).unwrap().counts(), [16, 64]);
        assert_eq!(parse(&["--quick"]).unwrap().counts().last(), Some(&16_384));
        let some = parse(&["--what", "balance,switch,balance"]).unwrap();
        assert_eq!(some.aspects(), [Aspect::Switch, Aspect::Balance]);
        for wrong in [
            &["--ranks-per-pe", "0"][..],
            &["--ranks-per-pe", "2000000"],
            &["--what", "luck"],
            &["--quick", "--rounds", "2"],
            &["--quick", "--million"],
            &["--rounds", "0"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn ranks_without_memory_are_refused() {
        assert!(expect_memory(1).is_ok());
        let error = expect_memory(1 << 40).unwrap_err().to_string();
        assert!(error.contains("1099511627776 ranks need up to"), "{error}");
    }
}
