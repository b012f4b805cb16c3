//! One run of the program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use regex::Regex;
use vrt_cli::job::{self, Ended};

use crate::options::{Configuration, NONE, Plan};

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Run {
    /// The value that is compared: seconds, or the number that `--metric` selects.
    pub value: f64,
    /// The output that must be the same in all runs.
    pub same: String,
    /// Parts of the PEs' time, on average, if the runtime reported them.
    pub shares: Option<Shares>,
    /// The text that follows the number where the output matches `--metric`.
    pub unit: String,
}

/// Where the time of PEs went, as parts of 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shares {
    /// In ranks.
    pub busy: f64,
    /// Asleep or polling.
    pub idle: f64,
    /// Total running time of all ranks, in seconds.
    pub work: f64,
}

impl Shares {
    /// The rest: the runtime's own time.
    pub(crate) fn overhead(self) -> f64 {
        (1.0 - self.busy - self.idle).max(0.0)
    }
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    #[error("cannot run it under setpriv and timeout: {0}")]
    Start(#[source] std::io::Error),
    #[error("it has ended with status {0}; it said last:\n{1}")]
    Failed(i32, String),
    #[error("it has not ended after {} s (--timeout)", .0.as_secs())]
    Timeout(Duration),
    #[error("--metric {0}: nothing in its output is like that")]
    NoMetric(String),
    #[error("--metric {0}: {1:?} is no number")]
    NoNumber(String, String),
    #[error("--same {0}: nothing in its output is like that")]
    NoSame(String),
}

/// The number of output lines of a failed job that are shown.
const SHOWN: usize = 12;

/// Runs the program once.
pub(crate) fn run(plan: &Plan, configuration: &Configuration) -> Result<Run, JobError> {
    let job = job::run(plan.timeout, &command(plan, configuration)).map_err(JobError::Start)?;
    let Ended { status, out, err, seconds, .. } = job;
    if !job.in_time {
        return Err(JobError::Timeout(plan.timeout));
    }
    if status != 0 {
        let all: Vec<&str> = out.lines().chain(err.lines()).collect();
        let last = all[all.len().saturating_sub(SHOWN)..].join("\n");
        return Err(JobError::Failed(status, last));
    }
    let (value, unit) = match &plan.metric {
        None => (seconds, "s".to_owned()),
        Some(metric) => number(metric, &out)?,
    };
    // A rate is of all the work already.
    let per_rank = plan.weak && !plan.rate;
    let value = if per_rank { value / f64::from(configuration.ranks) } else { value };
    let mut same = Vec::new();
    for expression in &plan.same {
        let before = same.len();
        same.extend(expression.captures_iter(&out).map(|found| {
            let group = found.get(1).or_else(|| found.get(0));
            group.map_or("", |group| group.as_str()).to_owned()
        }));
        if same.len() == before {
            return Err(JobError::NoSame(expression.as_str().to_owned()));
        }
    }
    Ok(Run { value, same: same.join(" "), shares: shares(&err), unit })
}

/// The last number in the output that matches the metric, and the text that follows it.
fn number(metric: &Regex, out: &str) -> Result<(f64, String), JobError> {
    let text = || metric.as_str().to_owned();
    let all = metric.captures_iter(out).last().ok_or_else(|| JobError::NoMetric(text()))?;
    let found = all.get(1).ok_or_else(|| JobError::NoMetric(text()))?;
    let value: Option<f64> = found.as_str().replace(',', "").parse().ok();
    let unit = out[found.end()..all.get_match().end()].trim().to_owned();
    value
        .filter(|value| value.is_finite())
        .map(|value| (value, unit))
        .ok_or_else(|| JobError::NoNumber(text(), found.as_str().to_owned()))
}

/// The runtime's report about its PEs (`--statistics`), averaged.
fn shares(err: &str) -> Option<Shares> {
    let line = Regex::new(
        r"(?m)^vrt: PE \d+: in ranks ([\d.]+)%, idle ([\d.]+)%, the runtime's own [\d.]+% of ([\d.]+) s",
    );
    let mut sum = Shares::default();
    let mut pes = 0.0;
    for found in line.ok()?.captures_iter(err) {
        let number = |group: usize| found[group].parse::<f64>().ok();
        let (busy, idle, seconds) = (number(1)? / 100.0, number(2)? / 100.0, number(3)?);
        sum.busy += busy;
        sum.idle += idle;
        sum.work += busy * seconds;
        pes += 1.0;
    }
    (pes > 0.0).then(|| Shares { busy: sum.busy / pes, idle: sum.idle / pes, ..sum })
}

fn command(plan: &Plan, configuration: &Configuration) -> Command {
    let Configuration { ranks, strategy, .. } = configuration;
    let mut command = Command::new(vrtrun());
    command.args(["--pes", &plan.pes.to_string(), "--ranks", &ranks.to_string(), "--statistics"]);
    if strategy != NONE {
        command.args(["--lb", strategy, "--lb-report", "off"]);
        if strategy != "auto" {
            command.args(["--lb-period", &plan.lb_period]);
        }
    }
    command.args(&plan.vrt).arg("--");
    for word in &plan.command {
        command.arg(match word.to_str() {
            Some(text) => OsString::from(
                text.replace("{ranks}", &ranks.to_string()).replace("{pes}", &plan.pes.to_string()),
            ),
            None => word.clone(),
        });
    }
    command
}

/// The path of `vrtrun`: beside this program, or in the search path.
fn vrtrun() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let beside = own.with_file_name("vrtrun");
    if beside.is_file() { beside } else { PathBuf::from("vrtrun") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_where_the_metric_says() {
        let metric = Regex::new(r"time +(\S+) s").unwrap();
        let found = number(&metric, "time  1.5 s\ntime 1,250.0 s\n").unwrap();
        assert_eq!(found, (1250.0, "s".to_owned()));
        assert!(matches!(number(&metric, "no"), Err(JobError::NoMetric(_))));
        assert!(matches!(number(&metric, "time long s"), Err(JobError::NoNumber(..))));
    }

    #[test]
    fn shares_are_those_of_all_pes() {
        let err = "vrt: PE 0: in ranks 90.0%, idle 5.0%, the runtime's own 5.0% of 2.000 s (9 looks), 7 switches\n\
                   other\n\
                   vrt: PE 1: in ranks 70.0%, idle 20.0%, the runtime's own 10.0% of 2.000 s (9 looks), 9 switches\n";
        let found = shares(err).unwrap();
        assert!((found.busy - 0.8).abs() < 1e-12 && (found.idle - 0.125).abs() < 1e-12);
        assert!((found.overhead() - 0.075).abs() < 1e-12 && (found.work - 3.2).abs() < 1e-12);
        assert_eq!(shares("nothing"), None);
    }
}
