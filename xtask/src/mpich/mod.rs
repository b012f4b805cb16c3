//! `cargo xtask mpich-tests`: MPICH's own tests.
//!
//! | module | what |
//! |---|---|
//! | `lines` | the lists of tests: what is run, how it has to end |
//! | `programs` | builds them, without MPICH's configure |
//! | `judge` | how a job has ended |
//! | `report` | the table, and the lists of failures |

mod judge;
mod lines;
mod programs;
mod report;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::builder::PossibleValuesParser;
use rayon::prelude::*;
use regex::Regex;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::job::{Ended, command, regex, run, succeed};
use crate::setup::{directory, root, target};
use crate::steps::{Error, Steps, at};
use judge::{Verdict, judge, last_words};
use lines::Line;
use programs::Builder;
use report::{Fate, Reasons, Report};

/// Build MPICH's own tests and run them on vrt, still and moved about, with more ranks than PEs.
///
/// Writes a table of what passed, and lists what did not. The status is 0 if everything passed except for tests that fail
/// for a known reason, 1 if others did not, 2 for wrong options.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// MPICH's source tree, or its test/mpi; `git clone --depth 1 https://github.com/pmodels/mpich` gets it
    #[arg(long, value_name = "DIRECTORY", env = "MPICH_SOURCE", value_parser = directory)]
    source: PathBuf,
    /// Where vrtcc and vrtrun are [default: they are built, in release]
    #[arg(long, value_name = "DIRECTORY", value_parser = directory)]
    bin: Option<PathBuf>,
    /// Do not move ranks [default: both, --still and --moving]
    #[arg(long)]
    still: bool,
    /// Move ranks, at random, each millisecond: a line passes if some were moved, and is listed by itself if it ends too soon
    /// each time
    #[arg(long)]
    moving: bool,
    /// Processing elements of each job
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = vrt_cli::positive::<u32>)]
    pes: u32,
    /// Run this many jobs at a time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = vrt_cli::positive::<u32>)]
    parallel: u32,
    /// A job that takes longer has failed, unless its line has another limit
    #[arg(long, value_name = "SECONDS", default_value_t = 180, value_parser = vrt_cli::positive::<u64>)]
    limit: u64,
    /// Leave out lines that need more [default: three quarters of what is available]
    #[arg(long, value_name = "GB")]
    memory: Option<f64>,
    /// Run only lines of which `directory/program ranks arguments` matches
    #[arg(long, value_name = "REGEX")]
    only: Option<Regex>,
    /// Run also the lines that MPICH makes from maint/dtp-test-config.txt
    #[arg(long)]
    datatypes: bool,
    /// Why some fail [default: docs/mpich/reasons.txt]
    #[arg(long, value_name = "FILE", value_parser = absolute)]
    reasons: Option<PathBuf>,
    /// Write the table to this file [default: to the output]
    #[arg(long, value_name = "FILE", value_parser = absolute)]
    table: Option<PathBuf>,
    /// Where programs and logs are put [default: a directory in the target directory]; programs that are there are not built
    /// again
    #[arg(long, value_name = "DIRECTORY", value_parser = absolute)]
    work: Option<PathBuf>,
    /// Keep the programs, and what jobs have written
    #[arg(long)]
    keep: bool,
    /// List what would be run, and run nothing
    #[arg(long)]
    list: bool,
    /// Directories of test/mpi
    #[arg(required = true, value_name = "DIRECTORY", value_parser = PossibleValuesParser::new(DIRECTORIES))]
    directories: Vec<String>,
    /// Options of vrtrun
    #[arg(last = true, value_name = "OPTIONS")]
    options: Vec<String>,
}

const DIRECTORIES: [&str; 15] = [
    "attr", "coll", "comm", "datatype", "errhan", "group", "info", "init", "pt2pt", "topo", "rma",
    "io", "part", "session", "mpi_t",
];

/// A job that passes without having moved a rank, as it ends so soon, starts this many times.
const ATTEMPTS: u32 = 20;

/// Whether ranks are moved.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Still,
    Moving,
}

impl Mode {
    fn name(self) -> &'static str {
        if self == Mode::Still { "still" } else { "moving" }
    }
}

/// A job of a line.
struct Ran {
    mode: Mode,
    verdict: Verdict,
    /// How many ranks moved.
    moved: u64,
    /// What it printed that says most about a failure.
    words: String,
}

fn absolute(text: &str) -> Result<PathBuf, std::io::Error> {
    std::path::absolute(text)
}

/// Builds the programs, runs the jobs and writes the table.
pub(crate) fn check(args: &Args, steps: &mut Steps) -> Result<(), Error> {
    // The standard output is for the table.
    steps.are_aside = true;
    let tests = [args.source.clone(), args.source.join("test/mpi")];
    let has_tests =
        |it: &&PathBuf| it.join("runtests").is_file() && it.join("util/mtest.c").is_file();
    let tests = tests.iter().find(has_tests).ok_or_else(|| {
        Error::Usage(format!(
            "there are no tests of MPICH in {}: neither runtests nor test/mpi/runtests",
            args.source.display()
        ))
    })?;
    let memory = args.memory.unwrap_or_else(available);
    let (lines, repeats) =
        lines::lines(tests, &args.directories, args.datatypes, memory, args.only.as_ref())?;
    if lines.is_empty() {
        return Err(Error::Usage("no line matches --only".to_owned()));
    }
    if args.list {
        for line in &lines {
            let left_out = line.left_out.as_ref().map(|why| format!(": left out, {why}"));
            let own = if line.is_for_mpich { ", only with MPICH's own variables" } else { "" };
            println!("{}{}{own}", line.name(), left_out.unwrap_or_default());
        }
        println!("{repeats} lines repeat these, with variables that only MPICH has");
        return Ok(());
    }

    steps.begin("vrt");
    let bin = args.bin.clone().unwrap_or_else(|| target().join("release"));
    if args.bin.is_none() {
        succeed(&command("cargo build --release --quiet -p vrtrun --bins"))?;
    }
    if let Some(name) = ["vrtcc", "vrtrun"].iter().find(|name| !bin.join(name).is_file()) {
        return Err(Error::Failed(format!("there is no {name} in {}", bin.display())));
    }
    let work = args.work.clone().unwrap_or_else(|| target().join("mpich-tests"));
    let [logs, scratch] = ["logs", "scratch"].map(|it| work.join(it));
    for directory in [&logs, &scratch] {
        // There are none the first time.
        let _ = fs::remove_dir_all(directory);
        fs::create_dir_all(directory).map_err(at(directory))?;
    }
    let modes = match (args.still, args.moving) {
        (true, false) => vec![Mode::Still],
        (false, true) => vec![Mode::Moving],
        _ => vec![Mode::Still, Mode::Moving],
    };
    // A crash that is tested leaves no core file.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none).map_err(|error| Error::Failed(error.to_string()))?;
    let threads = rayon::ThreadPoolBuilder::new().num_threads(args.parallel as usize).build();
    let threads = threads.map_err(|error| Error::Failed(error.to_string()))?;

    steps.begin("programs");
    let builder = Builder::new(steps, [tests, &work, &bin], &args.directories)?;
    let wanted = lines.iter().filter(|line| line.left_out.is_none());
    let wanted: BTreeSet<&String> = wanted.map(|line| &line.program).collect();
    let built = wanted.into_par_iter().map(|program| Ok((program, builder.build(program)?)));
    let errors: HashMap<&String, Option<String>> =
        threads.install(|| built.collect::<Result<_, Error>>())?;
    steps.say(&format!("   {} programs", errors.len()));

    steps.begin(&format!("jobs, with logs in {}", logs.display()));
    let shown: &Steps = steps;
    let runs = |line: &Line| matches!(errors.get(&line.program), Some(None));
    let jobs = Jobs {
        args,
        builder: &builder,
        bin: &bin,
        work: &work,
        count: lines.iter().filter(|line| line.left_out.is_none() && runs(line)).count(),
        started: AtomicUsize::new(0),
        turns: RwLock::new(()),
        memory,
    };
    let fate = |line: &Line| match (&line.left_out, errors.get(&line.program)) {
        (Some(why), _) => Ok(Fate::LeftOut(why.clone())),
        (None, Some(Some(error))) => Ok(Fate::NotBuilt(error.clone())),
        _ => jobs.run_line(shown, line, &modes).map(Fate::Ran),
    };
    let fates = lines.par_iter().with_max_len(1).map(fate);
    let fates: Vec<Fate> = threads.install(|| fates.collect::<Result<_, Error>>())?;

    let default = || root().join("docs/mpich/reasons.txt");
    let reasons = Reasons::read(&args.reasons.clone().unwrap_or_else(default));
    let mut report = Report::default();
    lines.iter().zip(&fates).for_each(|(line, fate)| report.add(line, fate, &reasons));
    let text = report.text(args.pes, &modes, repeats);
    let place = match &args.table {
        Some(table) => {
            fs::write(table, text).map_err(at(table))?;
            format!("the table is in {}, ", table.display())
        }
        None => {
            print!("{text}");
            String::new()
        }
    };
    if !args.keep {
        // What cannot be removed does not matter.
        let _ = fs::remove_dir_all(work.join("programs"));
        let _ = fs::remove_dir_all(work.join("scratch"));
    }
    let result = format!("{place}logs are in {}", logs.display());
    match report.is_bad {
        false => steps.close(&result),
        true => steps.fail(format!("some fail without a known reason; {result}")),
    }
}

/// Three quarters of the memory that is available, in GB.
fn available() -> f64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or(0.0) * 0.75 / 1e6
}

/// What the jobs of all lines have in common.
struct Jobs<'a> {
    args: &'a Args,
    builder: &'a Builder,
    bin: &'a Path,
    /// Here are logs, and for each job the directory in which it runs, as tests write files.
    work: &'a Path,
    /// The lines to run, and how many have started.
    count: usize,
    started: AtomicUsize,
    /// A job that needs much memory has this for itself, others share it.
    turns: RwLock<()>,
    memory: f64,
}

impl Jobs<'_> {
    /// Runs the jobs of a line.
    fn run_line(&self, steps: &Steps, line: &Line, modes: &[Mode]) -> Result<Vec<Ran>, Error> {
        let is_alone = line.memory * f64::from(self.args.parallel) > self.memory;
        let _alone = is_alone.then(|| self.turns.write());
        let _shared = (!is_alone).then(|| self.turns.read());
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        modes.iter().map(|mode| self.run(steps, line, *mode, number)).collect()
    }

    fn run(&self, steps: &Steps, line: &Line, mode: Mode, number: usize) -> Result<Ran, Error> {
        let moves = if mode == Mode::Moving { "--lb random --lb-period 1ms" } else { "" };
        let mut command = command("env");
        command.args(&line.environment).arg(self.bin.join("vrtrun"));
        command.args(["--pes", &self.args.pes.to_string(), "--ranks", &line.ranks]);
        command.args(moves.split_whitespace()).args(&self.args.options);
        command.arg(self.builder.file(&line.program)).args(line.arguments.split_whitespace());
        let scratch = self.work.join(format!("scratch/{number}.{}", mode.name()));
        fs::create_dir_all(&scratch).map_err(at(&scratch))?;
        command.current_dir(&scratch);
        let limit = line.limit.unwrap_or(self.args.limit);
        let mut attempts = 1;
        let (job, verdict) = loop {
            let job = run(limit, &command)?;
            match judge(line, &job) {
                Verdict::Passed if mode == Mode::Moving && job.moved() == 0 => {
                    if attempts == ATTEMPTS {
                        break (job, Verdict::TooShort(ATTEMPTS));
                    }
                    attempts += 1;
                }
                verdict => break (job, verdict),
            }
        };
        if !self.args.keep {
            fs::remove_dir_all(&scratch).map_err(at(&scratch))?;
        }
        let (name, mode_name, text) = (line.name(), mode.name(), job.text());
        let Ended { status, seconds, .. } = job;
        let words: String = name[line.program.len() + 1..].chars().take(120).collect();
        let words = regex(r"[^A-Za-z0-9_=.-]").replace_all(&words, "_").into_owned();
        let log = self.work.join(format!("logs/{}.{words}.{mode_name}.log", line.program));
        let outcome = format!("# {verdict}; status {status} after {seconds:.2} s\n");
        let directory = log.parent().unwrap_or(self.work);
        fs::create_dir_all(directory).map_err(at(directory))?;
        fs::write(&log, format!("$ {}\n{text}{outcome}", job.line)).map_err(at(&log))?;
        steps.say(&format!(
            "   {number} of {}: {name}, {mode_name}: {verdict}, {seconds:.2} s",
            self.count
        ));
        Ok(Ran { mode, verdict, moved: job.moved(), words: last_words(&text) })
    }
}
