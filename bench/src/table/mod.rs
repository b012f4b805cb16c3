//! `scripts/bench table`: figures of vrt, compared with those of other MPIs and with their targets.
//!
//! The programs of all systems run alternately, so that a machine that becomes slower or faster
//! does so for all. A row's ratio is the median of the ratios of the pairs of runs, which such a
//! drift affects least; its figures are the medians of all runs.
//!
//! | file | subject |
//! |---|---|
//! | `row`, `rows` | what is measured, and the targets |
//! | `peers` | the MPIs that run the C programs |
//! | `run` | runs the programs of a row |
//! | `report`, `markdown` | the table |

mod markdown;
mod peers;
mod report;
mod row;
mod rows;
mod run;

use std::path::PathBuf;

use peers::Peers;
use report::Report;
use row::Row;
use run::Runner;

use crate::process::own_directory;
use crate::{Error, needs};

/// Compare the figures of vrt with their targets, and with those of Open MPI and Adaptive MPI.
///
/// Builds our C programs against Open MPI and their Rust twins on vrt, runs them alternately and prints a table.
///
/// If the variable CHARM names a directory of Charm++ with Adaptive MPI built in it, for threads
/// (multicore-linux-x86_64), processes (netlrts-linux-x86_64) or both, or names such a build, the
/// same C programs also run on that: `CHARM=~/charm scripts/bench`. Rows in which another MPI is
/// faster are marked, and listed at the end. An MPI that fails in a row, or takes more than a
/// minute, has no figure there.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Pairs of runs for each row
    #[arg(long, value_name = "COUNT", default_value_t = 7, value_parser = vrt_cli::positive::<u32>)]
    pairs: u32,

    /// Three pairs of shorter runs: rough results, in a few minutes
    #[arg(long, conflicts_with = "pairs")]
    quick: bool,

    /// Only rows whose name contains NAME
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// Where to write the figures as JSON
    #[arg(long, value_name = "FILE", default_value = "bench-results.json")]
    json: PathBuf,

    /// Where to write the table as Markdown, in parts
    #[arg(long, value_name = "DIRECTORY")]
    markdown: Option<PathBuf>,

    /// Run only vrt's programs
    #[arg(long)]
    no_open_mpi: bool,

    /// Print the names of the rows and stop
    #[arg(long)]
    list: bool,

    /// Where the C programs for Open MPI are [default: bench-c beside the Rust programs]
    #[arg(long, value_name = "DIRECTORY")]
    c_programs: Option<PathBuf>,

    /// The launcher of the build of Adaptive MPI for processes; scripts/bench passes it, from CHARM
    #[arg(long, value_name = "CHARMRUN", hide = true)]
    charmrun: Option<PathBuf>,

    /// Whether there is a build of Adaptive MPI for threads; scripts/bench passes it, from CHARM
    #[arg(long, hide = true)]
    ampi_threads: bool,

    /// Where the C programs for vrtrun are [default: bench-images beside the Rust programs]
    #[arg(long, value_name = "DIRECTORY")]
    images: Option<PathBuf>,
}

/// Measures the requested rows, and prints the table.
///
/// # Errors
///
/// If a program fails, or a file cannot be written.
pub fn run(args: &Args) -> Result<(), Error> {
    if args.list {
        println!("{}", rows::names().join("\n"));
        return Ok(());
    }
    let rows = chosen_rows(args)?;
    let programs = own_directory();
    let runner = Runner {
        vrt_bench_on_mpi: programs.join("../openmpi/release/vrt-bench"),
        images: args.images.clone().unwrap_or_else(|| programs.join("bench-images")),
        peers: args.peers(),
        pairs: if args.quick { 3 } else { args.pairs },
        is_quick: args.quick,
    };
    let mut report = Report::new(&runner);
    report.print_head();
    for row in rows.iter().filter(|row| !(args.no_open_mpi && row.vrt.through_mpi)) {
        report.add(runner.run(row)?);
    }
    report.print_foot();
    report.write(&args.json)?;
    if let Some(folder) = &args.markdown {
        report.write_markdown(folder)?;
    }
    println!("figures in {}", args.json.display());
    Ok(())
}

impl Args {
    /// What has to be built.
    pub fn needs(&self) -> Vec<&'static str> {
        match (self.list, self.no_open_mpi) {
            (true, _) => Vec::new(),
            (false, true) => vec![needs::IMAGES, needs::ADAPTIVE_MPI],
            (false, false) => {
                vec![needs::IMAGES, needs::ADAPTIVE_MPI, needs::OPEN_MPI, needs::ON_MPI]
            }
        }
    }

    /// Where the other MPIs have their programs: beside ours, unless told otherwise.
    fn peers(&self) -> Peers {
        let programs = own_directory();
        let open_mpi = || self.c_programs.clone().unwrap_or_else(|| programs.join("bench-c"));
        let processes =
            |charmrun: &PathBuf| (programs.join("bench-ampi-processes"), charmrun.clone());
        Peers {
            open_mpi: (!self.no_open_mpi).then(open_mpi),
            ampi_threads: self.ampi_threads.then(|| programs.join("bench-ampi-threads")),
            ampi_processes: self.charmrun.as_ref().map(processes),
        }
    }
}

fn chosen_rows(args: &Args) -> Result<Vec<Row>, Error> {
    let all = rows::all();
    let Some(only) = &args.only else {
        return Ok(all);
    };
    let chosen: Vec<Row> =
        (all.into_iter()).filter(|row| row.name.contains(only.as_str())).collect();
    if chosen.is_empty() {
        return Err(Error::NoSuchRow { only: only.clone(), rows: rows::names().join(", ") });
    }
    Ok(chosen)
}
