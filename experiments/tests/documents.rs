//! Checks that README.md and the book contain the numbers that were measured, and no others.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use experiments::document;

/// README.md and the pages of the book.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let pages = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|it| it == "md"));
    pages.chain([root.join("README.md"), root.join("CONTRIBUTING.md")]).collect()
}

#[test]
fn blocks_have_what_was_measured() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/results");
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        let filled = document::fill_in(&text, |name| document::of_results(&results, name));
        let filled = filled.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        assert_eq!(text, filled, "{}: `scripts/figures --fill-in` mends it", path.display());
    }
}

#[test]
fn no_number_is_written_by_hand() {
    for path in documents() {
        let found = document::hand_written_numbers(&fs::read_to_string(&path).unwrap());
        let what = "numbers outside of blocks (a setting is written as code)";
        assert!(found.is_empty(), "{}: {what}: {found:?}", path.display());
    }
}

#[test]
fn a_planted_number_is_found() {
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        let before = document::hand_written_numbers(&text);
        let planted = format!("{text}\nA message takes 123.5 ns here.\n");
        let found = document::hand_written_numbers(&planted);
        assert_eq!(found.len(), before.len() + 1, "{}", path.display());
        assert_eq!(found.last().unwrap().1, "123.5 ns");
    }
}

#[test]
fn every_block_is_of_a_measurement_that_the_script_knows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let script = Command::new(root.join("scripts/figures")).arg("--list").output().unwrap();
    let known = String::from_utf8(script.stdout).unwrap();
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for name in text.lines().filter_map(|line| line.strip_prefix("<!-- figures: ")) {
            let measurement = name.split('/').next().unwrap();
            assert!(known.lines().any(|it| it == measurement), "{}: {name}", path.display());
        }
    }
}
