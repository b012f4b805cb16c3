//! Figures of vrt, compared with those of other MPIs and with their targets.
//!
//! The programs of all systems run alternately, so that a machine that becomes slower or faster
//! does so for all. A row's ratio is the median of the ratios of the pairs of runs, which such a
//! drift affects least; its figures are the medians of all runs.

mod counts;
mod markdown;
mod peers;
pub(crate) mod process;
pub(crate) mod processor;
mod report;
mod rows;
pub(crate) mod run;
mod tracing;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use peers::Peers;
use report::Report;
use rows::Row;
use run::Runner;

/// Compare the figures of vrt with their targets, and with those of Open MPI and Adaptive MPI.
///
/// Builds our C programs against Open MPI and their Rust twins on vrt, runs them alternately and
/// prints a table. With --counts it counts instructions instead, under valgrind. `scripts/bench
/// metg` is another program: it finds the smallest tasks that pay. `scripts/bench copies` compares
/// long messages with plain copies. `scripts/bench growth` shows the cost of ranks as their number
/// grows.
///
/// If the variable CHARM names a directory of Charm++ with Adaptive MPI built in it, for threads
/// (multicore-linux-x86_64), processes (netlrts-linux-x86_64) or both, or names such a build, the
/// same C programs also run on that: `CHARM=~/charm scripts/bench`. Rows in which another MPI is
/// faster are marked, and listed at the end. An MPI that fails in a row, or takes more than a
/// minute, has no figure there.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "scripts/bench", bin_name = "scripts/bench", version)]
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

    /// Compare programs that cannot be traced with those that can, and with those that are being
    /// traced
    #[arg(long)]
    tracing: bool,

    /// Count instructions and compare with the committed figures; the exit status is 1 if one is
    /// worse
    #[arg(long)]
    counts: bool,

    /// Count instructions and write them to the file of committed figures
    #[arg(long)]
    update_counts: bool,

    /// The file of committed instruction counts
    #[arg(
        long,
        value_name = "FILE",
        default_value = "bench/counts.json",
        overrides_with = "counts_file"
    )]
    counts_file: PathBuf,

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

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No row has this name.
    #[error("no row is named {only:?}; the rows are {}", rows::names().join(", "))]
    NoSuchRow {
        /// The requested name.
        only: String,
    },
    /// A program cannot be started.
    #[error("cannot run {program}: {cause}")]
    Start {
        /// The program.
        program: String,
        /// The system's error.
        cause: std::io::Error,
    },
    /// A program has failed.
    #[error("{command}\nended with {status} and said:\n{said}")]
    Failed {
        /// The command line.
        command: String,
        /// Its exit status.
        status: String,
        /// Its standard error.
        said: String,
    },
    /// A program did not end in time.
    #[error("{command}\ndid not end within {seconds} s")]
    TimedOut {
        /// The command line.
        command: String,
        /// The time it had.
        seconds: u64,
    },
    /// A program printed something other than a line of figures.
    #[error("{command}\nprinted no line of figures but {printed:?}")]
    Printed {
        /// The command line.
        command: String,
        /// Its standard output.
        printed: String,
    },
    /// Two programs that solve the same problem have different results.
    #[error("{row}: the programs computed different bits: {ours} and {theirs}")]
    Disagree {
        /// The row.
        row: &'static str,
        /// The residual and checksum of vrt's program.
        ours: String,
        /// Those of the other.
        theirs: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
}

impl Error {
    /// 2 for a mistake on the command line, otherwise 1.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::NoSuchRow { .. } => 2,
            _ => 1,
        }
    }
}

/// Does what the command line requests.
///
/// # Errors
///
/// If a program fails, or a file cannot be written.
pub fn run(args: &Args) -> Result<ExitCode, Error> {
    if args.list {
        println!("{}", rows::names().join("\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let programs = own_directory()?;
    if args.counts || args.update_counts {
        let program = programs.join("vrt-bench");
        return counts::run(&program, &args.counts_file, args.update_counts);
    }
    if args.tracing {
        let runs = if args.quick { 3 } else { args.pairs };
        tracing::run(&programs, runs, args.quick)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = chosen_rows(args)?;
    let runner = Runner {
        vrt_bench: programs.join("vrt-bench"),
        vrt_bench_on_mpi: programs.join("../openmpi/release/vrt-bench"),
        images: args.images.clone().unwrap_or_else(|| programs.join("bench-images")),
        vrtrun: programs.join("vrtrun"),
        peers: args.peers(&programs),
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
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// Where the other MPIs have their programs: beside ours, unless told otherwise.
    fn peers(&self, programs: &Path) -> Peers {
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
        return Err(Error::NoSuchRow { only: only.clone() });
    }
    Ok(chosen)
}

/// The directory of this program, where cargo puts the others, too.
pub(crate) fn own_directory() -> Result<PathBuf, Error> {
    let start_error = |cause| Error::Start { program: "vrt-bench".to_owned(), cause };
    let program = std::env::current_exe().map_err(start_error)?;
    Ok(program.parent().unwrap_or(Path::new(".")).to_owned())
}
