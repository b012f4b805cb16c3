//! What any code in a process may need to do: print a line on stderr, and end the job.
//!
//! Printing relies on nothing: no allocation, no locks, no panic if the line cannot be written, and no endless wait for
//! a reader. How the job is ended depends on the process; the code that made it a PE, or one of its threads a rank,
//! sets it with [`set_end`].

use std::fmt::{self, Write};
use std::sync::OnceLock;

/// A rank panicked.
pub const STATUS_PANIC: i32 = 101;
/// The runtime had to end the job.
pub const STATUS_RUNTIME: i32 = 70;

/// Ends the job of this process with a status.
pub type End = fn(i32) -> !;

static END: OnceLock<End> = OnceLock::new();

/// Sets how this process ends its job; only the first call counts.
pub fn set_end(end: End) {
    let _: &End = END.get_or_init(|| end);
}

/// Ends the whole job with a status; a process outside of a job ends alone.
pub fn end_job(status: i32) -> ! {
    match END.get() {
        Some(end) => end(status),
        None => std::process::exit(status),
    }
}

/// How long a message waits for room in a pipe or terminal, in milliseconds. After that it is lost:
/// a job ends whether or not its output is read.
const PATIENCE: libc::c_int = 2_000;
/// What a writable pipe accepts without blocking the writer.
const PIECE: usize = 4096;

/// A line on the stack.
struct Line {
    bytes: [u8; 1024],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - 1 - self.len;
        let part = &text.as_bytes()[..text.len().min(room)];
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
        Ok(())
    }
}

/// Writes one line to stderr, in one piece, from anywhere: `vrt: ` and the text, truncated to a
/// KiB.
pub fn say(text: fmt::Arguments<'_>) {
    let mut line = Line { bytes: [0; 1024], len: 0 };
    let _ = line.write_str("vrt: ");
    let _ = line.write_fmt(text);
    line.bytes[line.len] = b'\n';
    write_out(&line.bytes[..=line.len]);
}

/// Writes text of any length to stderr.
pub fn write_out(mut text: &[u8]) {
    while !text.is_empty() {
        let piece = &text[..text.len().min(PIECE)];
        let mut ready = libc::pollfd { fd: 2, events: libc::POLLOUT, revents: 0 };
        // SAFETY: `ready` is one entry, as `poll` is told, and `piece` is readable; 2 need not be open.
        let written = unsafe {
            if libc::poll(&raw mut ready, 1, PATIENCE) == 0 {
                return;
            }
            libc::write(2, piece.as_ptr().cast(), piece.len())
        };
        if written > 0 {
            text = &text[written as usize..];
        } else if !may_try_again() {
            return;
        }
    }
}

/// Whether the last attempt failed only temporarily.
fn may_try_again() -> bool {
    matches!(
        std::io::Error::last_os_error().kind(),
        std::io::ErrorKind::Interrupted | std::io::ErrorKind::WouldBlock
    )
}

/// A number of things as text, such as "1 rank" or "3 ranks"; `thing` is the word for one.
pub fn count<N: fmt::Display + PartialEq + From<bool>>(number: N, thing: &str) -> String {
    let ending = match thing {
        _ if number == N::from(true) => "",
        _ if thing.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{number} {thing}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_singular() {
        let all = [count(0_u32, "rank"), count(1_u32, "rank"), count(7_u64, "switch")];
        assert_eq!(all, ["0 ranks", "1 rank", "7 switches"]);
    }
}
