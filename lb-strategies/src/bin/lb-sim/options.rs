//! The command line, checked before anything runs.

use std::path::PathBuf;

use clap::Parser;
use lb_strategies::{
    Balancer, CreateError, LoadModelError,
    cases::{self, Case, Size, UnknownCase},
    create,
    datafile::DataFileError,
    strategies,
};
use thiserror::Error;

/// Runs load-balancing strategies side by side, on recorded or generated loads, and shows what each would do.
#[derive(Debug, Parser)]
#[command(name = "lb-sim", version, max_term_width = 100)]
pub(crate) struct Options {
    /// Recorded loads: the data files of all PEs, or directories of them (NAME.PE.json or
    /// NAME.PE.json.br, the layout of DARMA vt's LB data files); in a replay also a trace that vrt has
    /// recorded with --trace
    files: Vec<PathBuf>,

    /// The recorded phase; by default the last that all files have
    #[arg(long, value_name = "N", requires = "files")]
    phase: Option<u64>,

    /// Generated loads instead of recorded ones; `list` shows the cases
    #[arg(long, value_name = "NAME", conflicts_with = "files")]
    case: Option<String>,

    /// Number of objects of a generated case
    #[arg(long, default_value_t = 1000, value_name = "N")]
    objects: usize,

    /// Number of PEs of a generated case
    #[arg(long, default_value_t = 32, value_name = "N")]
    pes: usize,

    /// Seed of generated cases and of randomised strategies
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,

    /// Strategies, separated by commas; `all` for all except those for tests, `list` to show them
    #[arg(long, default_value = "all", value_name = "NAMES", value_delimiter = ',')]
    lb: Vec<String>,

    /// An argument of a strategy; may be given several times
    #[arg(long, value_name = "STRATEGY:NAME=VALUE")]
    lb_arg: Vec<String>,

    /// Use this many times as many PEs, each PE's objects distributed in equal parts
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    scale_pes: Option<f64>,

    /// Cut each object into this many equal pieces
    #[arg(long, value_name = "PIECES")]
    scale_objects: Option<usize>,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,

    /// Draw the loads of PEs before and after
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Write the loads, generated or scaled, as data files into a directory
    #[arg(long, value_name = "DIRECTORY")]
    save: Option<PathBuf>,

    /// Replay all recorded phases: how long the job would have taken with each strategy, with `auto` of vrt, and
    /// without moves; `lb-sim replay FILES` is the same
    #[arg(long, requires = "files", conflicts_with_all = ["phase", "case", "svg", "save"])]
    replay: bool,

    /// In a replay, decide after this many phases; several numbers, separated by commas, are tried one by one
    #[arg(
        long,
        default_value = "1",
        value_name = "PHASES",
        value_delimiter = ',',
        requires = "replay"
    )]
    every: Vec<usize>,

    /// In a replay, cut a trace into phases of this many seconds
    #[arg(long, default_value_t = 0.05, value_name = "SECONDS", requires = "replay")]
    cut: f64,

    /// Draw the loads of PEs in each phase of a replay, as recorded and as computed, as an HTML page
    #[arg(long, value_name = "FILE", requires = "replay")]
    html: Option<PathBuf>,

    /// Print a table of all strategies on all cases, in Markdown
    #[arg(long, conflicts_with_all = ["files", "case", "json", "svg", "save", "lb_arg", "replay"])]
    table: bool,
}

/// Shorter phases contain less than one run of a rank between two waits.
const MIN_CUT: f64 = 1e-4;

/// A request.
pub(crate) enum Request {
    /// List the names of strategies and cases.
    List,
    /// Print the table of all strategies on all cases.
    Table,
    /// Replay all phases of a job with other balancers.
    Replay {
        files: Vec<PathBuf>,
        cut: f64,
        balancers: Vec<Balancer>,
        every: Vec<usize>,
        output: Output,
        html: Option<PathBuf>,
    },
    /// Compare strategies side by side.
    Compare {
        source: Source,
        balancers: Vec<Balancer>,
        seed: u64,
        output: Output,
        svg: Option<PathBuf>,
        save: Option<PathBuf>,
    },
}

/// How results are printed.
pub(crate) enum Output {
    Text,
    Json,
}

/// The source of the loads.
pub(crate) struct Source {
    pub loads: Loads,
    pub scale_pes: Option<f64>,
    pub scale_objects: Option<usize>,
}

pub(crate) enum Loads {
    Recorded { files: Vec<PathBuf>, phase: Option<u64> },
    Generated { case: Case, size: Size },
}

impl Options {
    /// Checks what clap cannot.
    pub(crate) fn request(self) -> Result<Request, Failure> {
        let is_list = |it: &String| it == "list";
        if self.lb.iter().any(is_list) || self.case.as_ref().is_some_and(is_list) {
            return Ok(Request::List);
        }
        if self.table {
            return Ok(Request::Table);
        }
        for (option, value) in [("--pes", self.pes), ("--scale-objects", self.pieces())] {
            if value == 0 {
                return Err(Failure::range(option, "0", "a whole number, 1 or more"));
            }
        }
        // Strategies number objects with 32 bits.
        if self.objects > u32::MAX as usize {
            let value = self.objects.to_string();
            return Err(Failure::range("--objects", &value, "a whole number up to 4294967295"));
        }
        if let Some(factor) = self.scale_pes
            && !(factor.is_finite() && factor > 0.0)
        {
            return Err(Failure::range("--scale-pes", &factor.to_string(), "a number above 0"));
        }
        let balancers = self.balancers()?;
        let output = if self.json { Output::Json } else { Output::Text };
        if self.replay {
            if self.every.contains(&0) {
                return Err(Failure::range("--every", "0", "whole numbers, 1 or more"));
            }
            if !(self.cut.is_finite() && self.cut >= MIN_CUT) {
                let allowed = "a number of seconds, 0.0001 or more";
                return Err(Failure::range("--cut", &self.cut.to_string(), allowed));
            }
            let Options { files, every, cut, html, .. } = self;
            return Ok(Request::Replay { files, cut, balancers, every, output, html });
        }
        let loads = match self.case {
            Some(name) => Loads::Generated {
                case: cases::find(&name)?,
                size: Size { objects: self.objects, pes: self.pes, seed: self.seed },
            },
            None if self.files.is_empty() => return Err(Failure::NoLoads),
            None => Loads::Recorded { files: self.files, phase: self.phase },
        };
        let (scale_pes, scale_objects) = (self.scale_pes, self.scale_objects);
        Ok(Request::Compare {
            source: Source { loads, scale_pes, scale_objects },
            balancers,
            seed: self.seed,
            output,
            svg: self.svg,
            save: self.save,
        })
    }

    fn pieces(&self) -> usize {
        self.scale_objects.unwrap_or(1)
    }

    fn balancers(&self) -> Result<Vec<Balancer>, Failure> {
        let mut names: Vec<&str> = vec![];
        for name in self.lb.iter().map(|it| it.trim()) {
            let all = strategies().iter().filter(|it| !it.is_chaos()).map(|it| it.name());
            match name {
                "all" => names.extend(all),
                _ => names.push(name),
            }
        }
        let mut arguments = vec![vec![]; names.len()];
        for text in &self.lb_arg {
            let malformed = || Failure::Argument { text: text.clone() };
            let (name, argument) = text.split_once(':').ok_or_else(malformed)?;
            let argument = argument.split_once('=').ok_or_else(malformed)?;
            let index = names.iter().position(|it| *it == name.trim()).ok_or_else(|| {
                let (name, chosen) = (name.trim().to_owned(), names.join(", "));
                Failure::NotChosen { name, chosen }
            })?;
            arguments[index].push(argument);
        }
        let balancers = names
            .iter()
            .zip(arguments)
            .map(|(name, arguments)| create(name, &arguments).map_err(Failure::from));
        balancers.collect()
    }
}

/// Why the program ends without a result.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error("{option} {value}: allowed is {allowed}")]
    Range { option: &'static str, value: String, allowed: &'static str },
    #[error("no loads: give data files, or a case (--case list shows them)")]
    NoLoads,
    #[error("--lb-arg {text}: allowed is STRATEGY:NAME=VALUE, as in greedy:home-bias=0.1")]
    Argument { text: String },
    #[error("--lb-arg for {name}, which does not run: --lb chose {chosen}")]
    NotChosen { name: String, chosen: String },
    #[error(transparent)]
    Strategy(#[from] CreateError),
    #[error("--case: {0}")]
    Case(#[from] UnknownCase),
    #[error("{directory}: has no files that end in .json or .json.br")]
    EmptyDirectory { directory: String },
    #[error("the files have no phase in common: give those of one run")]
    NoPhase,
    #[error("{file}: a trace is replayed alone, and shows no single phase: lb-sim replay {file}")]
    TraceAmongFiles { file: String },
    #[error("{file}: no rank has run in it")]
    EmptyTrace { file: String },
    #[error(transparent)]
    Trace(#[from] vrt_trace::read::ReadError),
    #[error(transparent)]
    File(#[from] DataFileError),
    #[error(transparent)]
    Model(#[from] LoadModelError),
    #[error("{file}: {error}")]
    Directory { file: String, error: std::io::Error },
    #[error("cannot print: {0}")]
    Print(std::io::Error),
}

impl Failure {
    fn range(option: &'static str, value: &str, allowed: &'static str) -> Self {
        Self::Range { option, value: value.to_owned(), allowed }
    }

    /// The program's exit status: 2 if the command line is invalid, 1 for any other error.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::Range { .. }
            | Self::NoLoads
            | Self::Argument { .. }
            | Self::NotChosen { .. }
            | Self::Strategy(_)
            | Self::Case(_) => 2,
            _ => 1,
        }
    }
}
