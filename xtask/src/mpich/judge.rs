//! How a test has ended, as MPICH's runtests judges what it printed: its only line is "No Errors", once.

use std::fmt;

use super::lines::Line;
use crate::job::{Ended, regex};

/// How a test has ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    Passed,
    /// It passed, and ended before a rank could move, in this many jobs.
    TooShort(u32),
    /// It did not pass, for this reason.
    Wrong(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Passed => f.write_str("passed"),
            Verdict::TooShort(jobs) => write!(f, "passed, but no rank moved in {jobs} jobs"),
            Verdict::Wrong(reason) => f.write_str(reason),
        }
    }
}

/// Judges the job of a line. Notes of the balancer and the watchdog are not the program's.
pub(super) fn judge(line: &Line, job: &Ended) -> Verdict {
    let note = regex(r"^vrt: (load balancing: |note: |  pinned: |rank \d+ has kept the thread )");
    let warning = regex("^(MPICH: |WARNING: |(Abort.*)?application called MPI_Abort)");
    let [mut is_right, mut is_skipped, mut warns, mut is_stray] = [false; 4];
    for text in job.text().lines().filter(|text| !note.is_match(text)) {
        match text.trim() {
            "No Errors" | "No errors" if !is_right => is_right = true,
            "Test Skipped" => is_skipped = true,
            _ if warning.is_match(text) => warns = true,
            _ => is_stray = true,
        }
    }
    let (kind, status) = (line.kind.as_str(), job.status);
    let has_to_fail = ["TestStatus", "TestStatusNoErrors", "TestErrFatal"].contains(&kind);
    let is_known = has_to_fail || ["TestNormal", "TestAllowWarnings", "TestBench"].contains(&kind);
    // The limit of such a line is what is tested: it ends the job.
    let reason = if !(job.in_time || has_to_fail && line.limit.is_some()) {
        "did not end in time"
    } else if !is_known {
        return Verdict::Wrong(format!("unknown kind of result {kind}"));
    } else if has_to_fail && status == 0 {
        "status 0, though it has to fail"
    } else if !has_to_fail && status != 0 {
        return Verdict::Wrong(format!("status {status}"));
    } else if ["TestStatus", "TestErrFatal", "TestBench"].contains(&kind) {
        return Verdict::Passed;
    } else if !is_right && !is_skipped {
        "does not say No Errors"
    } else if is_stray {
        "writes more than No Errors"
    } else if warns && kind == "TestNormal" {
        "warns"
    } else if is_skipped {
        "skipped by itself"
    } else {
        return Verdict::Passed;
    };
    Verdict::Wrong(reason.to_owned())
}

/// What says most about a failure: where a panic was, else what vrt says, else the last line.
pub(super) fn last_words(text: &str) -> String {
    let ignored = regex(r"^(vrt: load balancing: |vrt: interrupted by |\s*$)");
    let lines: Vec<&str> = text.lines().filter(|line| !ignored.is_match(line)).collect();
    let is_of_vrt = |line: &&&str| line.starts_with("vrt: ") && !line.starts_with("vrt: panic in ");
    let words = match lines.iter().position(|line| line.contains("panicked at ")) {
        Some(at) => lines[at..lines.len().min(at + 2)].join(" "),
        None => (*lines.iter().find(is_of_vrt).or(lines.last()).unwrap_or(&"")).to_owned(),
    };
    words.replace('\t', " ").chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_says_no_errors_once_and_nothing_else() {
        let verdict = |kind: &str, status, in_time, text: &str| {
            let line = Line { kind: kind.to_owned(), limit: Some(9), ..Line::default() };
            let (out, err) = (text.to_owned(), String::new());
            let job = Ended { line: String::new(), status, in_time, out, err, seconds: 0.0 };
            judge(&line, &job).to_string()
        };
        for (kind, status, in_time, text, expected) in [
            ("TestNormal", 0, true, " No Errors\nvrt: note: x\n", "passed"),
            ("TestNormal", 0, true, "No errors\nNo errors\n", "writes more than No Errors"),
            ("TestNormal", 0, true, "", "does not say No Errors"),
            ("TestNormal", 0, true, "Test Skipped\n", "skipped by itself"),
            ("TestNormal", 0, true, "WARNING: x\nNo Errors\n", "warns"),
            ("TestAllowWarnings", 0, true, "WARNING: x\nNo Errors\n", "passed"),
            ("TestNormal", 3, true, "No Errors\n", "status 3"),
            ("TestNormal", 124, false, "No Errors\n", "did not end in time"),
            ("TestStatus", 124, false, "", "passed"),
            ("TestErrFatal", 0, true, "", "status 0, though it has to fail"),
            ("TestOther", 0, true, "", "unknown kind of result TestOther"),
        ] {
            assert_eq!(verdict(kind, status, in_time, text), expected, "{kind}: {text}");
        }
    }

    #[test]
    fn the_last_words_are_where_a_panic_was() {
        let panic = "x\nvrt: panic in rank 3\nthread 'a' panicked at b.rs:1\nwhy\nmore\n";
        assert_eq!(last_words(panic), "thread 'a' panicked at b.rs:1 why");
        assert_eq!(last_words("vrt: rank 1 died\nlast\n\n"), "vrt: rank 1 died");
        assert_eq!(last_words("first\nlast\nvrt: load balancing: x\n"), "last");
    }
}
