//! Faults that have been reported in other MPI libraries: each report in `docs/public-issues.md` is a case of one
//! program.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::places::{ON_ONE_PE, STILL};
use crate::program::Program;

const PUBLIC_ISSUES: Program = Program::new("public_issues.c");

in_places! { PUBLIC_ISSUES, 6 }

/// Some cases depend on the number of ranks: on whether there are two sides, and whether they are
/// equal.
#[test]
fn other_numbers_of_ranks() {
    for ranks in [1, 2, 3] {
        let _ = ON_ONE_PE.run(&PUBLIC_ISSUES, ranks);
    }
    let _ = STILL.run(&PUBLIC_ISSUES, 7);
}

/// The page lists exactly the cases of the program.
#[test]
fn page_tells_all_cases() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = fs::read_to_string(here.join("tests/programs/c/public_issues.c")).unwrap();
    let cases =
        source.lines().filter_map(|line| line.trim().strip_prefix("CASE(")?.strip_suffix("),"));
    let page = fs::read_to_string(here.join("../../docs/public-issues.md")).unwrap();
    let told = page
        .lines()
        .filter_map(|line| line.strip_prefix('|')?.strip_suffix('|')?.rsplit('|').next());
    let told = told.filter_map(|cell| cell.trim().strip_prefix('`')?.strip_suffix('`'));
    assert_eq!(told.collect::<BTreeSet<_>>(), cases.collect::<BTreeSet<_>>());
}
