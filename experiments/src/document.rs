//! Figures in documents: blocks that are generated from results, and numbers that should be.
//!
//! A document has its measured numbers between two comments, and nowhere else:
//!
//! ```text
//! <!-- figures: NAME -->
//! what is generated under this name
//! <!-- end -->
//! ```

use std::sync::LazyLock;

use regex::Regex;

/// Why a document cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Nothing has this name.
    #[error("line {line}: there are no figures called `{name}`")]
    Unknown { line: usize, name: String },
    /// The comment that ends a block is missing.
    #[error("line {line}: the figures `{name}` do not end with {END}")]
    Endless { line: usize, name: String },
}

const BEGIN: &str = "<!-- figures: ";
const END: &str = "<!-- end -->";

/// The document with all of its blocks made anew; `figures` knows what stands under a name.
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

/// A number with the unit of a measurement: a time, a rate, a share, a factor. Lengths of messages are none.
static MEASURED: LazyLock<Regex> = LazyLock::new(|| {
    let unit = "ns|us|µs|ms|s|min|GB/s|MB/s|GFLOP/s|nodes/s|%|times";
    // The expression is a constant.
    Regex::new(&format!(r"(?:^|[^\w.`#-])(\d[\d,]*(?:\.\d+)?(?:\s|&nbsp;)?(?:{unit}))(?:$|[^\w/])"))
        .unwrap_or_else(|error| unreachable!("{error}"))
});

static CODE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("`[^`]*`").unwrap_or_else(|error| unreachable!("{error}")));

/// Numbers that look measured and stand outside of generated blocks and of code: the line of each, and its text.
/// A setting, such as a limit of ten seconds, is written as code.
#[must_use]
pub fn hand_written_numbers(document: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut is_generated, mut is_code) = (false, false);
    for (at, line) in document.lines().enumerate() {
        let start = line.trim_start();
        if start.starts_with(BEGIN) {
            is_generated = true;
        } else if start == END {
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
    fn measured_numbers_are_found_outside_of_blocks_and_code() {
        let text = "It takes 21.6 ns, 3% more.\nThe limit is `10s`; 64 KiB are sent; 2 PEs.\n\
                    ```\n5 ms\n```\n<!-- figures: x -->\n7 us\n<!-- end -->\nUp to 1,000 times as fast (5 GB/s)\n";
        let found = hand_written_numbers(text);
        let found: Vec<(usize, &str)> = found.iter().map(|(at, it)| (*at, it.as_str())).collect();
        assert_eq!(found, [(1, "21.6 ns"), (1, "3%"), (9, "1,000 times"), (9, "5 GB/s")]);
    }
}
