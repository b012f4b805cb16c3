//! Runs a job of the demo, and reads its trace.

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
    /// What it shows.
    pub(crate) about: String,
    /// Its command-line arguments.
    pub(crate) arguments: Vec<String>,
    /// Options of vrt.
    pub(crate) options: &'static [&'static str],
}

/// A job that has finished.
pub(crate) struct Finished {
    pub(crate) job: Job,
    pub(crate) outcome: Outcome,
    pub(crate) statistics: Statistics,
    /// Its trace, as a page.
    pub(crate) page: Vec<u8>,
}

impl Finished {
    /// Part of all PEs' time in which ranks ran.
    pub(crate) fn busy(&self) -> f64 {
        let pes = &self.statistics.pes;
        let busy: f64 = pes.values().map(|pe| pe.busy).sum();
        busy / (self.statistics.seconds * pes.len() as f64).max(1e-9)
    }

    /// Checks that another run of the same problem has the same result.
    pub(crate) fn agrees_with(&self, other: &Finished) -> Result<(), DemoError> {
        let (here, there) = (&self.outcome.result, &other.outcome.result);
        if here == there {
            return Ok(());
        }
        Err(DemoError::Differ(other.job.title.to_owned(), here.clone(), there.clone()))
    }
}

/// The limit of a job's trace: a page shows at most a few hundred thousand events.
const TRACE_LIMIT: &str = "400M";

/// Runs a job with this many ranks per PE.
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

/// The seconds that a job takes, without anything else.
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
