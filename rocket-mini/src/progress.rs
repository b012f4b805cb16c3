//! The progress of a run: a line on the terminal that is overwritten, and a table of the times of steps.

use std::fs::OpenOptions;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// The line, which is absent if standard error is not a terminal, and the table.
pub(crate) struct Progress {
    shown_at: Option<f64>,
    is_on: bool,
    history: Option<PathBuf>,
    /// When the last step in the table was made.
    recorded: Option<f64>,
}

/// Seconds from one update of the line to the next.
const INTERVAL: f64 = 0.1;

/// Seconds from one row of the table to the next.
const RECORD_INTERVAL: f64 = 0.02;

impl Progress {
    /// A line that is shown if it is `wanted` and there is a terminal, and a table in the file `history`.
    pub(crate) fn new(wanted: bool, history: Option<PathBuf>) -> Self {
        let is_on = wanted && std::io::stderr().is_terminal();
        Self { shown_at: None, is_on, history, recorded: None }
    }

    /// Reports that this many steps have been made, and shows a text.
    pub(crate) fn step(&mut self, steps: usize, text: impl FnOnce() -> String) {
        if self.history.is_some() {
            self.record(steps);
        }
        self.show(text);
    }

    /// Adds a row to the table if enough time has passed since the last.
    fn record(&mut self, steps: usize) {
        let now = mpi::time();
        let Some(path) = &self.history else { return };
        if self.recorded.is_some_and(|last| now - last < RECORD_INTERVAL) {
            return;
        }
        // A rank that has begun again elsewhere goes on with the table. The file is not kept open, as
        // a rank with an open file stays where it is.
        let is_new = steps <= 1 || (self.recorded.is_none() && !path.exists());
        let head = if is_new { "seconds,steps\n" } else { "" };
        let row = format!("{head}{now:.6},{steps}\n");
        let mut options = OpenOptions::new();
        let options = options.create(true).write(true).append(!is_new).truncate(is_new);
        if let Err(error) = options.open(path).and_then(|mut file| file.write_all(row.as_bytes())) {
            eprintln!("rocket-mini: cannot write {}: {error}", path.display());
            std::process::exit(1);
        }
        self.recorded = Some(now);
    }

    /// Shows a text, unless one was shown just before.
    pub(crate) fn show(&mut self, text: impl FnOnce() -> String) {
        if !self.is_on {
            return;
        }
        let now = mpi::time();
        if self.shown_at.is_some_and(|last| now - last < INTERVAL) {
            return;
        }
        self.shown_at = Some(now);
        write_to_terminal(&format!("\r\x1b[K{}", text()));
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        if self.shown_at.is_some() {
            write_to_terminal("\r\x1b[K");
        }
    }
}

/// Writes without a newline; a terminal that no longer exists is no reason to stop.
fn write_to_terminal(text: &str) {
    let mut terminal = std::io::stderr();
    let _ = terminal.write_all(text.as_bytes());
    let _ = terminal.flush();
}
