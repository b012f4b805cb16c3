//! A line on the terminal that says what a program does now, and is overwritten.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// The line; nothing is shown if standard error is not a terminal.
#[derive(Debug)]
pub struct Progress {
    is_on: bool,
    shown_at: Option<Instant>,
}

/// From one update of a line that changes with each step to the next.
const INTERVAL: Duration = Duration::from_millis(100);

impl Progress {
    /// A line that is shown if it is `wanted` and there is a terminal.
    #[must_use]
    pub fn new(wanted: bool) -> Self {
        Self { is_on: wanted && std::io::stderr().is_terminal(), shown_at: None }
    }

    /// Shows a text.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        if self.is_on {
            self.shown_at = Some(Instant::now());
            write_to_terminal(&format!("\r\x1b[K{}", text()));
        }
    }

    /// Shows a text, unless one was shown just before: for what happens very often.
    pub fn show_at_times(&mut self, text: impl FnOnce() -> String) {
        if self.is_on && self.shown_at.is_none_or(|at| at.elapsed() >= INTERVAL) {
            self.show(text);
        }
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if self.shown_at.take().is_some() {
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
