//! The steps of a check, which are shown with how long they took, and why it did not pass.

use std::io;
use std::path::Path;
use std::time::Instant;

use vrt_cli::machine::processor_seconds;

/// Why a check did not pass.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The options are wrong.
    #[error("{0}")]
    Usage(String),
    /// Something is not as it should be.
    #[error("{0}")]
    Failed(String),
    /// A program that this one stands for has ended with this status, and has said why.
    #[error("status {0}")]
    Status(i32),
    /// A job cannot be run.
    #[error("cannot run a job under setpriv and timeout: {0}")]
    Run(#[from] io::Error),
}

/// What makes an error of what the system says about a file.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |cause| Error::Failed(format!("{}: {cause}", path.display()))
}

/// A check that runs.
pub(crate) struct Steps {
    check: String,
    began: Instant,
    step: Option<Step>,
    /// Whether the standard output is for results only.
    pub(crate) are_aside: bool,
}

struct Step {
    name: String,
    began: Instant,
    processor: f64,
}

impl Steps {
    /// A check that begins.
    pub(crate) fn of(check: String) -> Steps {
        Steps { check, began: Instant::now(), step: None, are_aside: false }
    }

    /// Prints a line.
    pub(crate) fn say(&self, line: &str) {
        if self.are_aside { eprintln!("{line}") } else { println!("{line}") }
    }

    /// Seconds since the check began.
    pub(crate) fn seconds(&self) -> u64 {
        self.began.elapsed().as_secs()
    }

    /// The last step has succeeded, the next one begins.
    pub(crate) fn begin(&mut self, name: &str) {
        self.end();
        self.say(&format!("\n== {name} (after {} s)", self.seconds()));
        let processor = processor_seconds().unwrap_or(0.0);
        self.step = Some(Step { name: name.to_owned(), began: Instant::now(), processor });
    }

    /// The last step has succeeded.
    pub(crate) fn end(&mut self) {
        if let Some(Step { began, processor, .. }) = self.step.take() {
            let processor = processor_seconds().unwrap_or(0.0) - processor;
            let seconds = began.elapsed().as_secs();
            self.say(&format!("   {seconds} s, {processor:.0} s of processor time"));
        }
    }

    /// The last step has succeeded; prints the result of the check.
    pub(crate) fn close(&mut self, result: &str) -> Result<(), Error> {
        self.end();
        self.say(&format!("\ncargo xtask {}: {result}", self.check));
        Ok(())
    }

    /// The same of a check of which some jobs failed.
    pub(crate) fn fail(&mut self, result: String) -> Result<(), Error> {
        self.end();
        Err(Error::Failed(result))
    }

    /// Reports why the check did not pass.
    pub(crate) fn report(&self, error: &Error) {
        let place = self.step.as_ref().map(|step| format!(" in \"{}\"", step.name));
        let (check, place, seconds) = (&self.check, place.unwrap_or_default(), self.seconds());
        eprintln!("\ncargo xtask {check}: FAILED{place} after {seconds} s: {error}");
    }
}
