//! The command line, checked before anything runs.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use regex::Regex;

/// Compares ratios of virtual ranks to PEs, and balancers, for a program
///
/// Runs the program at each ratio and with each balancer, in alternating order, checks that results agree, and writes
/// medians and spreads as CSV, JSON and a figure. In the program's arguments, {ranks} and {pes} stand for the numbers
/// of the run.
#[derive(Debug, Parser)]
#[command(name = "vrtrun sweep", bin_name = "vrtrun sweep", version, max_term_width = 100)]
pub(crate) struct Options {
    /// Ranks per PE, separated by commas
    #[arg(long, default_value = "1,2,4,8,16,32", value_name = "N,N..", value_delimiter = ',')]
    ratios: Vec<u32>,

    /// PEs of every run [default: one per available core]
    #[arg(long, value_name = "N")]
    pes: Option<u32>,

    /// Balancers (see `--lb list` of vrtrun), separated by commas; `none` for none
    #[arg(long, default_value = "none", value_name = "NAME,NAME..", value_delimiter = ',')]
    strategies: Vec<String>,

    /// Time between two balancing steps, such as 100ms; `auto` needs none
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    lb_period: String,

    /// Runs of each configuration
    #[arg(long, default_value_t = 5, value_name = "N")]
    repeat: usize,

    /// The number to compare: the first group of this expression, matched in the program's output, such as 'time +(\S+)
    /// s' [default: the time from the start to the end of the process]
    #[arg(long, value_name = "REGEX")]
    metric: Option<String>,

    /// The unit of the metric, for the table and the figure [default: the text that follows the number in the
    /// expression, as in 'time +(\S+) s'; without --metric seconds]
    #[arg(long, requires = "metric", value_name = "UNIT")]
    unit: Option<String>,

    /// More is better: the metric is a rate
    #[arg(long, requires = "metric")]
    rate: bool,

    /// An expression for output that must be the same in all runs; may be repeated
    #[arg(long, value_name = "REGEX")]
    same: Vec<String>,

    /// The work grows with the ranks: {ranks} is in the program's arguments, and times are given per rank's work
    #[arg(long)]
    weak: bool,

    /// A further option of vrtrun for every run, such as --vrt=--node-size=1; may be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    vrt: Vec<OsString>,

    /// Seconds that a run may take
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    timeout: u64,

    /// The directory for sweep.csv, sweep.json and sweep.svg
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    out: PathBuf,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// The plan: what is run.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The configurations, in the order in which they alternate.
    pub configurations: Vec<Configuration>,
    /// PEs of every run.
    pub pes: u32,
    /// Runs of each configuration.
    pub repeat: usize,
    /// The expression that finds the compared number in the output.
    pub metric: Option<Regex>,
    /// The unit of the metric, if given.
    pub unit: Option<String>,
    /// Whether more is better.
    pub rate: bool,
    /// Expressions for output that must be the same.
    pub same: Vec<Regex>,
    /// Whether the work grows with the ranks.
    pub weak: bool,
    /// Time between two balancing steps.
    pub lb_period: String,
    /// Further options of `vrtrun`.
    pub vrt: Vec<OsString>,
    /// The longest time that a run may take.
    pub timeout: Duration,
    /// The directory for results.
    pub out: PathBuf,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

/// A way to run the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Configuration {
    /// Ranks per PE.
    pub ratio: u32,
    /// All ranks.
    pub ranks: u32,
    /// The balancer; `none`: no balancing.
    pub strategy: String,
}

/// Stands for no balancing.
pub(crate) const NONE: &str = "none";

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Configuration { ratio, ranks, strategy } = self;
        let plural = |number: u32| if number == 1 { "" } else { "s" };
        write!(f, "{ratio} rank{} per PE ({ranks} rank{})", plural(*ratio), plural(*ranks))?;
        if strategy == NONE { Ok(()) } else { write!(f, ", {strategy}") }
    }
}

/// Why the options are invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OptionsError {
    #[error("{option} {value}: allowed is {allowed}")]
    Range { option: &'static str, value: String, allowed: &'static str },
    #[error("{option} {text}: {error}")]
    Expression { option: &'static str, text: String, error: regex::Error },
    #[error("--metric {0}: it has no group in parentheses, which would be the number")]
    NoGroup(String),
    #[error("--weak: {{ranks}} is in no argument of the program, so its work does not grow")]
    NothingGrows,
    #[error("--out {0}: {1}")]
    Out(PathBuf, #[source] std::io::Error),
}

impl Options {
    /// Checks what clap cannot.
    pub(crate) fn plan(self) -> Result<Plan, OptionsError> {
        let range = |option, value: String, allowed| OptionsError::Range { option, value, allowed };
        let pes = match self.pes {
            Some(pes) => pes,
            None => std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
        };
        if pes == 0 {
            return Err(range("--pes", "0".to_owned(), "a whole number, 1 or more"));
        }
        if self.repeat == 0 {
            return Err(range("--repeat", "0".to_owned(), "a whole number, 1 or more"));
        }
        let mut ratios = self.ratios;
        if let Some(ratio) = ratios.iter().find(|ratio| **ratio == 0 || **ratio > 1 << 20) {
            return Err(range("--ratios", ratio.to_string(), "whole numbers from 1 to 1048576"));
        }
        ratios.sort_unstable();
        ratios.dedup();
        let expression = |option, text: &String| {
            Regex::new(text).map_err(|error| OptionsError::Expression {
                option,
                text: text.clone(),
                error,
            })
        };
        let metric = self.metric.as_ref().map(|text| expression("--metric", text)).transpose()?;
        if let Some(metric) = &metric
            && metric.captures_len() < 2
        {
            return Err(OptionsError::NoGroup(metric.as_str().to_owned()));
        }
        let same: Result<Vec<Regex>, OptionsError> =
            self.same.iter().map(|text| expression("--same", text)).collect();
        let grows = self.command.iter().any(|word| word.to_string_lossy().contains("{ranks}"));
        if self.weak && !grows {
            return Err(OptionsError::NothingGrows);
        }
        std::fs::create_dir_all(&self.out)
            .map_err(|error| OptionsError::Out(self.out.clone(), error))?;
        let mut configurations = Vec::new();
        for ratio in ratios {
            for strategy in &self.strategies {
                let strategy = strategy.trim().to_owned();
                configurations.push(Configuration { ratio, ranks: ratio * pes, strategy });
            }
        }
        Ok(Plan {
            configurations,
            pes,
            repeat: self.repeat,
            metric,
            unit: self.unit,
            rate: self.rate,
            same: same?,
            weak: self.weak,
            lb_period: self.lb_period,
            vrt: self.vrt,
            timeout: Duration::from_secs(self.timeout.max(1)),
            out: self.out,
            command: self.command,
        })
    }
}
