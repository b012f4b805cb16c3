//! A trace as one page, which needs no network: timeline, utilisation, communication matrix, moves, waits.
//!
//! The page contains all runs of the trace, however many, so that one can inspect any single run. The row of a PE or of
//! a rank is a list of bars, each encoded as three numbers of seven bits per byte: the nanoseconds since the previous
//! bar, its own nanoseconds, and its meaning (see `Lane`). The list is stored as base64, and decoded when the row is
//! drawn.

use std::io::{self, Write};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;

use super::perfetto::runs_by_rank;
use crate::page;
use crate::read::{PeTrace, Then, Timed, Trace, What};
use crate::statistics::Statistics;

/// The place of the page's data and rows.
const DATA: &str = "/*DATA*/null";
const ROWS: &str = "<!--ROWS-->";
const PAGE: &str = include_str!("page.html");
/// The most moves that are listed, and pairs of ranks that are shown.
const MOVES: usize = 1000;
const PAIRS: usize = 100_000;

#[derive(Serialize)]
struct Data<'a> {
    command: &'a str,
    number_of_pes: u32,
    number_of_ranks: u32,
    end: i64,
    dropped: u64,
    complete: bool,
    statistics: &'a Statistics,
    imbalance: f64,
    /// The calls that ranks wait in.
    calls: Vec<&'a str>,
    pairs: Vec<(u32, u32, u64, u64, u64)>,
    all_pairs: usize,
    moves: Vec<Move>,
    all_moves: usize,
    waits: Vec<Wait<'a>>,
    steps: Vec<(i64, u32, &'a str)>,
}

#[derive(Serialize)]
struct Move {
    at: i64,
    rank: u32,
    from: u32,
    to: u32,
    by: &'static str,
    bytes: u64,
}

#[derive(Serialize)]
struct Wait<'a> {
    call: &'a str,
    times: u64,
    seconds: f64,
    longest: f64,
    rank: u32,
    at: i64,
}

/// The bars of a PE or a rank.
///
/// | | meaning of a number |
/// |---|---|
/// | PE | 0: idle; else the rank that runs, plus 1. The time between two bars is the runtime's own |
/// | rank | 0: ready; 1: its PE polls for what it waits for; else, minus 2, twice the PE that it runs on, or twice the call that it waits in plus 1 |
#[derive(Debug, Default)]
struct Lane {
    bytes: Vec<u8>,
    end: i64,
}

const READY: u64 = 0;
const POLLED: u64 = 1;

impl Lane {
    /// Adds a bar, which cannot begin before the last one ends: an overlapping part is cut off.
    fn add(&mut self, from: i64, to: i64, what: u64) {
        let from = from.max(self.end);
        if to <= from {
            return;
        }
        // Not negative, as was just seen.
        for number in [(from - self.end) as u64, (to - from) as u64, what] {
            put(&mut self.bytes, number);
        }
        self.end = to;
    }
}

/// Encodes seven bits per byte, the lowest first; all bytes except the last have the eighth bit
/// set.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Writes the page.
///
/// # Errors
/// Those of the writer.
pub fn write(trace: &Trace, statistics: &Statistics, mut out: impl Write) -> io::Result<()> {
    let data = Data::of(trace, statistics);
    let json = page::in_script(&serde_json::to_string(&data).map_err(io::Error::other)?);
    let page = page::of(PAGE).replacen(DATA, &json, 1);
    let (before, after) = page.split_once(ROWS).unwrap_or((&page, ""));
    out.write_all(before.as_bytes())?;
    let mut row = |kind: &str, number: u32, row: &Lane| {
        writeln!(
            out,
            "<script type=\"text/plain\" data-{kind}=\"{number}\">{}</script>",
            BASE64_STANDARD.encode(&row.bytes)
        )
    };
    for records in &trace.records {
        row("pe", records.pe, &of_pe(records))?;
    }
    for (rank, runs) in runs_by_rank(trace) {
        row("rank", rank, &of_rank(&runs))?;
    }
    out.write_all(after.as_bytes())?;
    out.flush()
}

fn of_pe(records: &PeTrace) -> Lane {
    let bar = |event: &Timed| match event.what {
        What::Ran { rank, .. } => Some((event.began(), event.at, u64::from(rank) + 1)),
        What::Idle { nanoseconds } => Some((event.at - nanoseconds as i64, event.at, 0)),
        _ => None,
    };
    let mut bars: Vec<(i64, i64, u64)> = records.events.iter().filter_map(bar).collect();
    bars.sort_by_key(|(from, ..)| *from);
    let mut row = Lane::default();
    bars.into_iter().for_each(|(from, to, what)| row.add(from, to, what));
    row
}

fn of_rank(runs: &[(u32, i64, i64, Then)]) -> Lane {
    let mut row = Lane::default();
    for (i, (pe, from, to, then)) in runs.iter().enumerate() {
        row.add(*from, *to, 2 + 2 * u64::from(*pe));
        let next = runs.get(i + 1).map_or(*to, |next| next.1);
        match then {
            Then::Waits(call, _) => row.add(*to, next, 2 + 2 * u64::from(*call) + 1),
            Then::Looks => row.add(*to, next, POLLED),
            Then::Ready => row.add(*to, next, READY),
            Then::Over => {}
        }
    }
    row
}

impl<'a> Data<'a> {
    fn of(trace: &'a Trace, statistics: &'a Statistics) -> Data<'a> {
        let mut pairs: Vec<_> = statistics
            .pairs
            .iter()
            .map(|((from, to), it)| (*from, *to, it.messages, it.bytes, it.between_pes))
            .collect();
        pairs.sort_by_key(|it| std::cmp::Reverse((it.3, it.2)));
        let mut moves: Vec<Move> = trace.events().filter_map(a_move).collect();
        moves.sort_by_key(|it| it.at);
        let mut waits: Vec<_> = statistics
            .waits
            .iter()
            .map(|(call, it)| {
                let (longest, rank, at) = it.longest;
                let call = trace.name(*call);
                Wait { call, times: it.times, seconds: it.seconds, longest, rank, at }
            })
            .collect();
        waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let steps = trace.events().filter_map(|(_, event)| match event.what {
            What::Step { number, strategy, .. } => Some((event.at, number, trace.name(strategy))),
            _ => None,
        });
        let (all_pairs, all_moves) = (pairs.len(), moves.len());
        pairs.truncate(PAIRS);
        moves.truncate(MOVES);
        Data {
            command: &trace.command,
            number_of_pes: trace.pes,
            number_of_ranks: trace.ranks,
            end: trace.end(),
            dropped: trace.dropped(),
            complete: trace.is_complete(),
            statistics,
            imbalance: statistics.imbalance(),
            calls: trace.names.iter().map(String::as_str).collect(),
            pairs,
            all_pairs,
            moves,
            all_moves,
            waits,
            steps: steps.collect(),
        }
    }
}

fn a_move((pe, event): (u32, &Timed)) -> Option<Move> {
    match event.what {
        What::Leaves { rank, to, bytes, by } => {
            Some(Move { at: event.at, rank, from: pe, to, by: by.name(), bytes })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_numbers_of_few_bytes_and_do_not_overlap() {
        let mut row = Lane::default();
        row.add(5, 10, 1);
        row.add(8, 12, 300);
        row.add(11, 12, 7);
        row.add(200, 201, 0);
        assert_eq!(row.bytes, [5, 5, 1, 0, 2, 0xac, 2, 0xbc, 1, 1, 0]);
    }

    #[test]
    fn a_rank_runs_waits_and_is_ready() {
        let runs =
            [(3, 0, 10, Then::Waits(4, None)), (3, 20, 30, Then::Ready), (1, 31, 40, Then::Over)];
        let row = of_rank(&runs);
        assert_eq!(row.bytes, [0, 10, 8, 0, 10, 11, 0, 10, 8, 0, 1, 0, 0, 9, 4]);
    }
}
