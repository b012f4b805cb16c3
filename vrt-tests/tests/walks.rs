//! The walks of docs/ARCHITECTURE.md follow the code: every file that a walk names is there, every function is in the file
//! that is named with it, and every other name in code font occurs in a file of the walk.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::Path;

use regex::Regex;

/// What a walk names that is not there.
fn wrong(walk: &str) -> Vec<String> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let title = walk.lines().next().unwrap_or_default();
    let (mut wrong, mut texts) = (Vec::new(), BTreeMap::new());
    let file = Regex::new(r"`([\w/.-]+\.rs)`").unwrap();
    for [path] in file.captures_iter(walk).map(|found| found.extract().1) {
        match std::fs::read_to_string(top.join(path)) {
            Ok(text) => _ = texts.insert(path, text),
            Err(_) => wrong.push(format!("{title}: there is no {path}")),
        }
    }
    // In the columns of a row, or as "`function` (`file`)" or "`function` in `file`".
    let with_file = Regex::new(r"`([\w:]+)`( \| | \(| in )(?:`([\w/.-]+\.rs)`|the same)").unwrap();
    let mut row = "";
    for found in with_file.captures_iter(walk) {
        let path = found.get(3).map_or(row, |path| path.as_str());
        row = if &found[2] == " | " { path } else { row };
        let name = found[1].rsplit(':').next().unwrap();
        let defined = Regex::new(&format!(r"\bfn {name}\b")).unwrap();
        if texts.get(path).is_some_and(|text| !defined.is_match(text)) {
            wrong.push(format!("{title}: {path} has no function {name}"));
        }
    }
    for [name] in Regex::new(r"`([^`\n]+)`").unwrap().captures_iter(walk).map(|it| it.extract().1) {
        let last = name.rsplit("::").next().unwrap();
        let word = Regex::new(&format!(r"\b{}", regex::escape(last))).unwrap();
        if !name.ends_with(".rs") && !texts.values().any(|text| word.is_match(text)) {
            wrong.push(format!("{title}: no file of the walk has {name}"));
        }
    }
    wrong
}

#[test]
fn walks_name_what_is_there() {
    let document = include_str!("../../docs/ARCHITECTURE.md");
    let walks = document.split("<!-- walks -->").nth(1).unwrap();
    let walks: Vec<&str> = walks.split("\n### ").skip(1).collect();
    assert!(walks.len() >= 5 && walks.iter().all(|walk| walk.lines().count() > 8), "{walks:?}");
    let wrong: Vec<String> = walks.into_iter().flat_map(wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_name_is_found() {
    let walk = "A walk\n\
        | 1 | `Mine::wrong` | `vrt-tests/tests/walks.rs` | splits by `captures_iter` |\n\
        | 2 | `right` | the same | |\n\
        Then `walks_name` (`vrt-tests/tests/walks.rs`) calls `Core::zzz` in `vrt-tests/tests/gone.rs`.";
    // (Not as one word, which would be found in this very file.)
    let zzz = ["z"; 4].concat();
    assert_eq!(
        wrong(&walk.replace("zzz", &zzz)),
        [
            "A walk: there is no vrt-tests/tests/gone.rs".to_owned(),
            "A walk: vrt-tests/tests/walks.rs has no function right".to_owned(),
            "A walk: vrt-tests/tests/walks.rs has no function walks_name".to_owned(),
            format!("A walk: no file of the walk has Core::{zzz}"),
        ]
    );
}
