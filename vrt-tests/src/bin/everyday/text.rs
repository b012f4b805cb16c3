//! Texts: regular expressions, counted words, JSON.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Value, json};
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

use crate::rounds::{Rounds, pass};

static DATE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?<y>\d{4})-(?<m>\d{2})-(?<d>\d{2})").expect("it is one"));

/// Expressions of the PE and of the rank, and what they have found, over messages.
pub(crate) fn regex(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let own = Regex::new(&format!(r"\brank {me}\b")).expect("it is one");
    rounds.state::<()>();
    while let Some(round) = rounds.next_with(&mut ()) {
        let (year, day) = (1900 + round % 200, 1 + round % 28);
        let text = format!("rank {me}, rank {}: {year:04}-02-{day:02} or 2001-12-31", me + 10);
        let found: Vec<&str> = own.find_iter(&text).map(|found| found.as_str()).collect();
        world.barrier();
        assert_eq!(found, [format!("rank {me}")]);
        assert_eq!(
            turn_dates(&text).split(": ").nth(1),
            Some(&*format!("{day:02}.02.{year:04} or 31.12.2001"))
        );
        let captures: Captures<'_> = DATE.captures(&text).expect("there is a date");
        let got = pass(world, &text);
        assert_eq!(captures["y"], format!("{year:04}"));
        assert!(DATE.is_match(&got) && !own.is_match(&got));
    }
}

#[inline(never)]
fn turn_dates(text: &str) -> String {
    DATE.replace_all(text, "$d.$m.$y").into_owned()
}

/// Counts words in tables with random keys; in the end all agree with an ordered one.
pub(crate) fn words(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let mut both: (HashMap<String, u64>, BTreeMap<String, u64>) = rounds.state();
    while let Some(round) = rounds.next_with(&mut both) {
        let (counts, ordered) = &mut both;
        let mut line = String::new();
        for i in 0..30 {
            write!(
                line,
                "{}{} ",
                ["pear", "plum", "fig"][(i + round as usize) % 3],
                (me + round) % 7
            )
            .expect("into a string");
        }
        let line = pass(world, &line);
        for word in line.split_whitespace() {
            *counts.entry(word.to_owned()).or_default() += 1;
            *ordered.entry(word.to_owned()).or_default() += 1;
        }
        world.barrier();
        let lookup: HashMap<&str, u64> = counts.iter().map(|(w, n)| (w.as_str(), *n)).collect();
        let text = lookup.len().to_string();
        pass(world, &text);
        assert_eq!(lookup.len(), counts.len());
        assert!(ordered.iter().all(|(word, n)| lookup.get(word.as_str()) == Some(n)));
    }
    let (counts, ordered) = both;
    let again: BTreeMap<String, u64> = counts.into_iter().collect();
    assert_eq!(again, ordered);
}

/// Values of JSON, made, changed, read and printed, over messages.
pub(crate) fn json(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank();
    let mut document = json!({ "rank": me, "notes": [], "nested": { "deep": { "value": 1.5 } } });
    while let Some(round) = rounds.next() {
        if let Some(notes) = document["notes"].as_array_mut() {
            notes.push(json!({ "round": round, "text": format!("round {round} of {me}") }));
            if notes.len() > 20 {
                notes.remove(0);
            }
        }
        let printed = serde_json::to_string_pretty(&document).expect("it can be printed");
        let got = pass(world, &printed);
        let read: Value = serde_json::from_str(&got).expect("it is JSON");
        world.barrier();
        assert_eq!(serde_json::from_str::<Value>(&printed).expect("it is JSON"), document);
        assert_eq!(read["rank"], (me + world.size() - 1) % world.size());
        let notes = read["notes"].as_array().expect("a list");
        assert_eq!(notes[notes.len() - 1]["round"], round);
        assert_eq!(document["nested"]["deep"]["value"], 1.5);
    }
}
