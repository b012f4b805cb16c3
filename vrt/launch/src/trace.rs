//! Writes the events of a PE to a file: `--trace`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::config::Config;
use crate::threads::without_signals;
use vrt_core::net::shared::Shared;
use vrt_core::pe::Observer;
use vrt_slot::external::counted;
use vrt_slot::{foreign, report};
use vrt_trace::{Job, TraceFile, WriteError, Writer};

/// The file of a job's trace, for the part that this process writes.
pub(super) struct Trace {
    file: TraceFile,
    job: Job,
    /// The PEs are children of our supervisor.
    is_local: bool,
}

/// The writer of what this process's PE records, until it has finished.
static WRITER: Mutex<Option<Writer>> = Mutex::new(None);

impl Trace {
    /// Creates the file, if one was requested. PEs that a launcher has started have one file each, numbered by PE: they
    /// may be on machines that have no file system in common.
    pub(super) fn create(
        config: &Config,
        started: Option<u32>,
    ) -> Result<Option<Trace>, WriteError> {
        let Some(path) = config.trace() else { return Ok(None) };
        let (pes, limit) = (config.pes(), config.trace_limit());
        let (path, limit) = match started {
            None => (path.to_owned(), limit),
            Some(pe) => (numbered(path, pe), limit),
        };
        let command: Vec<_> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let job = Job { pes, ranks: config.ranks(), node: 0, command: command.join(" ") };
        let file = TraceFile::create(&path, limit)?;
        Ok(Some(Trace { file, job, is_local: started.is_none() }))
    }

    /// Begins to record the events of this process's PE. If that fails, it prints why, and the job continues.
    pub(super) fn observer(&self, pe: u32, shared: &Shared) -> Option<Box<dyn Observer>> {
        let job = Job { node: shared.node_of(pe) as u32, ..self.job.clone() };
        let say: fn(&str) = |text| report::say(format_args!("{text}"));
        let begin = || without_signals(|| Writer::start(&self.file, pe, &job, say));
        match if self.is_local { on_cores_of_parent(begin) } else { begin() } {
            Ok((recorder, writer)) => {
                foreign::expect_threads(1);
                counted::leave_out(writer.thread());
                *WRITER.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
                Some(Box::new(recorder))
            }
            Err(error) => {
                report::say(format_args!("PE {pe}: {error}"));
                None
            }
        }
    }
}

/// Writes what is left. May be called at any time, from any thread of the PE.
pub(super) fn finish() {
    let writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(dropped @ 1..) = writer.map(Writer::finish) {
        let events = report::count(dropped, "event");
        report::say(format_args!("--trace: {events} left out beyond --trace-limit"));
    }
}

/// Lets threads that `f` starts run on any core that the parent of this process may use, though this thread is bound to
/// one core: such a thread must not keep the PE from its core while others are idle.
fn on_cores_of_parent<R>(f: impl FnOnce() -> R) -> R {
    let len = size_of::<libc::cpu_set_t>();
    // SAFETY: zeros are valid sets, which the first calls fill in; the others read them.
    unsafe {
        let (mut own, mut parents): (libc::cpu_set_t, libc::cpu_set_t) = std::mem::zeroed();
        let known = libc::sched_getaffinity(0, len, &mut own) == 0
            && libc::sched_getaffinity(libc::getppid(), len, &mut parents) == 0;
        if !known || libc::sched_setaffinity(0, len, &parents) != 0 {
            return f();
        }
        let result = f();
        libc::sched_setaffinity(0, len, &own);
        result
    }
}

/// The file of a PE among those of a trace.
fn numbered(path: &Path, pe: u32) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(format!(".{pe}"));
    path.into()
}
