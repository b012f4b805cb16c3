//! Figures in documents: blocks that are generated from results, and measured numbers that are not
//! but should be.
//!
//! A document has its measured numbers between two comments, and nowhere else:
//!
//! ```text
//! <!-- figures: MEASUREMENT/FILE -->
//! what is generated under this name
//! <!-- end -->
//! ```
//!
//! The results of a measurement are a directory, which contains a [`Record`] of how they were
//! obtained.
//!
//! | file | in a document |
//! |---|---|
//! | `FILE.md` | unchanged; figures (SVG) in the directory are shown |
//! | `FILE.csv` | a table |
//! | `FILE.txt` | a block of text; with ` last N` after the name, its last N lines |
//! | `FILE.svg` | a figure, under the name `FILE.svg DESCRIPTION` |
//!
//! Each block ends with where and when it was measured.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use vrt_cli::Machine;

use crate::Table;

/// Why a document cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// No result has this name.
    #[error("line {line}: there are no figures called `{name}`")]
    Unknown {
        /// Its line, from 1.
        line: usize,
        /// The name it has.
        name: String,
    },
    /// The comment that ends a block is missing.
    #[error("line {line}: the figures `{name}` do not end with {END}")]
    Endless {
        /// Its line, from 1.
        line: usize,
        /// The name it has.
        name: String,
    },
}

/// How the results of a measurement were obtained: `record.json` in their directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Where and when.
    pub machine: Machine,
    /// Cores that other programs used on average in the meantime.
    pub others: Option<f64>,
    /// The version of the source that was measured, from `git describe`.
    pub commit: String,
    /// What was run.
    pub command: String,
    /// The duration in seconds.
    pub seconds: f64,
}

impl Record {
    /// The name of its file.
    pub const FILE: &str = "record.json";
}

/// Displayed as one line of a document.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, commit {}", self.machine.brief(), self.commit)?;
        match self.others {
            Some(cores) => write!(f, ", other programs used {cores:.2} cores"),
            None => Ok(()),
        }
    }
}

/// The generated text for a name: the results in a directory, and where they were measured; or that nothing was.
#[must_use]
pub fn of_results(results: &Path, name: &str) -> Option<String> {
    let (file, last) = match name.split_once(" last ") {
        Some((file, lines)) => (file, lines.parse().ok()?),
        None => (name, usize::MAX),
    };
    let (measurement, _) = file.split_once('/')?;
    if !results.join(measurement).exists() {
        return Some(format!("*Not measured for this version: `scripts/figures {measurement}`*\n"));
    }
    let read = |ending| fs::read_to_string(results.join(format!("{file}.{ending}"))).ok();
    let text = if let Some((figure, description)) = name.split_once(".svg ") {
        let figure = format!("{figure}.svg");
        results.join(&figure).exists().then(|| format!("![{description}](results/{figure})"))?
    } else if let Some(markdown) = read("md") {
        // Its figures lie beside it.
        let place = format!("](results/{measurement}/$1)");
        OWN_FIGURE.replace_all(markdown.trim_end(), place).into_owned()
    } else if let Some(table) = read("csv") {
        markdown_table(&table)?
    } else {
        let printed = read("txt")?;
        let lines: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
        format!("```text\n{}\n```", lines[lines.len().saturating_sub(last)..].join("\n"))
    };
    let record = fs::read_to_string(results.join(measurement).join(Record::FILE)).ok()?;
    let record: Record = serde_json::from_str(&record).ok()?;
    Some(format!("{text}\n\n<sub>{record}</sub>\n"))
}

static OWN_FIGURE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\]\(([\w.-]+\.svg)\)").unwrap_or_else(|error| unreachable!("{error}"))
});

/// A comma-separated file as a table.
fn markdown_table(text: &str) -> Option<String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let mut table = Table::new(reader.headers().ok().filter(|head| !head.is_empty())?);
    for row in reader.records() {
        table.row(&row.ok()?);
    }
    Some(table.to_string().trim_end().to_owned())
}

const BEGIN: &str = "<!-- figures: ";
const END: &str = "<!-- end -->";
/// The table of options, which a test of `vrt-launch` writes.
const GENERATED: &str = "<!-- options: ";
const END_OF_GENERATED: &str = "<!-- end of options -->";

/// The document with all of its blocks regenerated; `figures` returns the text for a name.
///
/// # Errors
///
/// [`DocumentError`] if a name is unknown, or a block does not end.
pub fn fill_in(
    document: &str,
    mut figures: impl FnMut(&str) -> Option<String>,
) -> Result<String, DocumentError> {
    let mut filled = String::new();
    let mut lines = document.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        filled.push_str(line);
        filled.push('\n');
        let Some(name) = line.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->"))
        else {
            continue;
        };
        let (line, name) = (at + 1, name.to_owned());
        if !lines.any(|(_, line)| line.trim() == END) {
            return Err(DocumentError::Endless { line, name });
        }
        let text = figures(&name).ok_or(DocumentError::Unknown { line, name })?;
        filled.push_str(text.trim_end());
        filled.push('\n');
        filled.push_str(END);
        filled.push('\n');
    }
    Ok(filled)
}

/// A number with the unit of a measurement: a time, a rate, a share, a factor. Lengths of messages do not count.
static MEASURED: LazyLock<Regex> = LazyLock::new(|| {
    let unit = "ns|us|µs|ms|s|min|GB/s|MB/s|GFLOP/s|nodes/s|%|times";
    // The expression is a constant.
    Regex::new(&format!(r"(?:^|[^\w.`#-])(\d[\d,]*(?:\.\d+)?(?:\s|&nbsp;)?(?:{unit}))(?:$|[^\w/])"))
        .unwrap_or_else(|error| unreachable!("{error}"))
});

static CODE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("`[^`]*`").unwrap_or_else(|error| unreachable!("{error}")));

/// Numbers that look measured but are outside of generated blocks and of code: the line of each, and its text. A
/// setting, such as a limit of ten seconds, is written as code.
#[must_use]
pub fn hand_written_numbers(document: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut is_generated, mut is_code) = (false, false);
    for (at, line) in document.lines().enumerate() {
        let start = line.trim_start();
        if start.starts_with(BEGIN) || start.starts_with(GENERATED) {
            is_generated = true;
        } else if start == END || start == END_OF_GENERATED {
            is_generated = false;
        } else if start.starts_with("```") {
            is_code = !is_code;
        } else if !is_generated && !is_code {
            let prose = CODE.replace_all(line, "``");
            let numbers = MEASURED.captures_iter(&prose).filter_map(|found| found.get(1));
            found.extend(numbers.map(|number| (at + 1, number.as_str().to_owned())));
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# A page\n\n<!-- figures: one -->\nold\n<!-- end -->\nafter it\n";

    #[test]
    fn blocks_are_made_anew_and_nothing_else() {
        let new = fill_in(DOCUMENT, |name| (name == "one").then(|| "a\nb\n".to_owned()));
        let expected = "# A page\n\n<!-- figures: one -->\na\nb\n<!-- end -->\nafter it\n";
        assert_eq!(new.as_deref(), Ok(expected));
        let again = fill_in(expected, |_| Some("a\nb".to_owned()));
        assert_eq!(again.as_deref(), Ok(expected));
    }

    #[test]
    fn an_unknown_name_and_a_missing_end_are_told() {
        let unknown = DocumentError::Unknown { line: 3, name: "one".to_owned() };
        assert_eq!(fill_in(DOCUMENT, |_| None), Err(unknown));
        let endless = DocumentError::Endless { line: 1, name: "x".to_owned() };
        assert_eq!(fill_in("<!-- figures: x -->\na\n", |_| None), Err(endless));
    }

    #[test]
    fn results_of_each_kind_stand_in_a_document_with_their_machine() {
        let folder = tempfile::tempdir().unwrap();
        let measurement = folder.path().join("switch");
        fs::create_dir(&measurement).unwrap();
        let write = |name: &str, text: &str| fs::write(measurement.join(name), text).unwrap();
        write("as-it-is.md", "![A](a.svg)\n[b](c/b.svg)\n");
        write("table.csv", "ranks,time\n16,\"1,2\"\n");
        write("printed.txt", "one\ntwo  \nthree\n\n");
        write("a.svg", "<svg/>");
        assert_eq!(of_results(folder.path(), "switch/table"), None, "without a record");
        let mut machine = Machine::now();
        machine.processor = "Fast (family 1)".to_owned();
        machine.cores = 2;
        machine.date = "2026-11-28T10:30:00Z".to_owned();
        let record = Record {
            machine,
            others: Some(0.125),
            commit: "v1-3-gabc".to_owned(),
            command: "bench".to_owned(),
            seconds: 1.5,
        };
        write(Record::FILE, &serde_json::to_string(&record).unwrap());
        let below = "\n\n<sub>Fast (family 1), 2 cores, 2026-11-28, commit v1-3-gabc, other programs used 0.12 cores</sub>\n";
        for (name, text) in [
            ("switch/as-it-is", "![A](results/switch/a.svg)\n[b](c/b.svg)"),
            ("switch/table", "| ranks | time |\n|---|---|\n| 16 | 1,2 |"),
            ("switch/printed", "```text\none\ntwo\nthree\n```"),
            ("switch/a.svg What it is", "![What it is](results/switch/a.svg)"),
            ("switch/printed last 2", "```text\ntwo\nthree\n```"),
        ] {
            assert_eq!(of_results(folder.path(), name), Some(format!("{text}{below}")), "{name}");
        }
        for name in ["switch", "switch/other", "switch/b.svg What", "switch/printed last many"] {
            assert_eq!(of_results(folder.path(), name), None, "{name}");
        }
        let missing = "*Not measured for this version: `scripts/figures other`*\n";
        assert_eq!(of_results(folder.path(), "other/table").as_deref(), Some(missing));
    }

    #[test]
    fn measured_numbers_are_found_outside_of_blocks_and_code() {
        let text = "It takes 21.6 ns, 3% more.\nThe limit is `10s`; 64 KiB are sent; 2 PEs.\n\
                    ```\n5 ms\n```\n<!-- figures: x -->\n7 us\n<!-- end -->\nUp to 1,000 times as fast (5 GB/s)\n";
        let found = hand_written_numbers(text);
        let found: Vec<(usize, &str)> = found.iter().map(|(at, it)| (*at, it.as_str())).collect();
        assert_eq!(found, [(1, "21.6 ns"), (1, "3%"), (9, "1,000 times"), (9, "5 GB/s")]);
    }
}
