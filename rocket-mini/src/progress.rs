//! A line on the terminal that is overwritten as a run goes on.

use std::io::{IsTerminal, Write};

/// The line; nothing where standard error is no terminal.
pub struct Progress {
    shown_at: Option<f64>,
    is_on: bool,
}

/// Seconds from one update of the line to the next.
const INTERVAL: f64 = 0.1;

impl Progress {
    /// A line that is shown if it is `wanted` and there is a terminal.
    pub fn new(wanted: bool) -> Self {
        Self { shown_at: None, is_on: wanted && std::io::stderr().is_terminal() }
    }

    /// Shows a text, unless the last one was shown just now.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
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
    pub fn clear(&self) {
        if self.shown_at.is_some() {
            write_to_terminal("\r\x1b[K");
        }
    }
}

/// Writes without a newline; a terminal that has gone away is no reason to stop.
fn write_to_terminal(text: &str) {
    let mut terminal = std::io::stderr();
    let _ = terminal.write_all(text.as_bytes());
    let _ = terminal.flush();
}
