//! A job of the demo is run, and its trace read.

use std::process::{Command, Stdio};

use vrt_trace::convert::html;
use vrt_trace::read::Trace;
use vrt_trace::statistics::Statistics;

use crate::stage::Outcome;
use crate::{Arguments, DemoError, RATIO};

/// A job of the demo.
#[derive(Debug)]
pub(crate) struct Job {
    /// A few words for table and report.
    pub(crate) title: &'static str,
    /// A word for the name of its page.
    pub(crate) name: &'static str,
    /// What is to be seen in it.
    pub(crate) about: String,
    /// What is to be run.
    pub(crate) arguments: Vec<String>,
    /// Options of vrt.
    pub(crate) options: &'static [&'static str],
}

/// A job that has been run.
pub(crate) struct Finished {
    pub(crate) job: Job,
    pub(crate) outcome: Outcome,
    pub(crate) statistics: Statistics,
    /// What it did, as a page.
    pub(crate) page: Vec<u8>,
}

impl Finished {
    /// Part of all PEs' time in which ranks ran.
    pub(crate) fn busy(&self) -> f64 {
        let pes = &self.statistics.pes;
        let busy: f64 = pes.values().map(|pe| pe.busy).sum();
        busy / (self.statistics.seconds * pes.len() as f64).max(1e-9)
    }

    /// Another run of the same problem has found the same.
    pub(crate) fn agrees_with(&self, other: &Finished) -> Result<(), DemoError> {
        let (here, there) = (&self.outcome.result, &other.outcome.result);
        if here == there {
            return Ok(());
        }
        Err(DemoError::Differ(other.job.title.to_owned(), here.clone(), there.clone()))
    }
}

/// What a job may record: a page shows no more than some hundred thousand events.
const TRACE_LIMIT: &str = "400M";

/// Runs a job with so many ranks on each PE.
pub(crate) fn run(job: Job, ratio: u32, arguments: &Arguments) -> Result<Finished, DemoError> {
    let folder = tempfile::tempdir().map_err(DemoError::system("make a folder for traces"))?;
    let file = folder.path().join("trace");
    let mut command = command(&job.arguments, ratio, arguments)?;
    command.args(job.options).arg("--trace").arg(&file).args(["--trace-limit", TRACE_LIMIT]);
    let outcome = outcome(command, job.title)?;
    let trace = Trace::read(&file)?;
    let statistics = Statistics::of(&trace);
    let mut page = Vec::new();
    html::write(&trace, &statistics, &mut page).map_err(DemoError::system("write a page"))?;
    Ok(Finished { job, outcome, statistics, page })
}

/// How many seconds a job takes, without anything besides.
pub(crate) fn pilot(words: &[String], arguments: &Arguments) -> Result<f64, DemoError> {
    Ok(outcome(command(words, RATIO, arguments)?, "pilot")?.seconds)
}

/// This program as a job.
fn command(words: &[String], ratio: u32, arguments: &Arguments) -> Result<Command, DemoError> {
    let program = std::env::current_exe().map_err(DemoError::system("find this program"))?;
    let pes = arguments.vrt.pes();
    let mut command = Command::new(program);
    command.envs(arguments.vrt.to_env()).args(words);
    command.args(["--pes", &pes.to_string(), "--ranks", &(ratio * pes).to_string()]);
    Ok(command)
}

fn outcome(mut command: Command, title: &str) -> Result<Outcome, DemoError> {
    let output =
        command.stderr(Stdio::piped()).output().map_err(DemoError::system("start a job"))?;
    if !output.status.success() {
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        return Err(DemoError::Job(title.to_owned(), output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text).map_err(|_| DemoError::Outcome(title.to_owned(), text))
}
