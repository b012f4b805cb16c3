//! A trace as one page, which needs no network: timeline, utilisation, communication matrix, moves, waits.

use std::io::{self, Write};

use serde::Serialize;

use super::perfetto::{bin_width, runs_by_rank, utilisation};
use crate::read::{PeTrace, Then, Timed, Trace, What};
use crate::statistics::{Statistics, imbalance};

/// Where the page has its data.
const DATA: &str = "/*DATA*/null";
const PAGE: &str = include_str!("page.html");
/// Bars of a timeline that are drawn one by one; shorter ones are drawn together.
const BARS: usize = 100_000;
/// Parts of the job's time in the curves.
const BINS: usize = 400;
/// Moves and pairs of ranks that are shown.
const ROWS: usize = 1000;

/// A bar: from, to (nanoseconds), and what: a rank on the row of a PE, a PE or a state on the row of a rank.
type Bar = (i64, i64, i64);

/// Ranks or PEs in one bar.
const MIXED: i64 = -1;
const WAITS: i64 = -2;
const READY: i64 = -3;

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
    /// Bars shorter than so many nanoseconds are drawn together.
    shortest: [i64; 2],
    pes: Vec<(u32, Vec<Bar>)>,
    ranks: Vec<(u32, Vec<Bar>)>,
    bin: f64,
    utilisation: Vec<(u32, Vec<f64>)>,
    imbalances: Vec<f64>,
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

/// Writes the page.
///
/// # Errors
/// As the writer's.
pub fn write(trace: &Trace, statistics: &Statistics, mut out: impl Write) -> io::Result<()> {
    let data = Data::of(trace, statistics);
    let json = serde_json::to_string(&data).map_err(io::Error::other)?;
    // A text inside a script must not look like the script's end.
    let json = json.replace("</", "<\\/");
    out.write_all(PAGE.replacen(DATA, &json, 1).as_bytes())?;
    out.flush()
}

impl<'a> Data<'a> {
    fn of(trace: &'a Trace, statistics: &'a Statistics) -> Data<'a> {
        let end = trace.end();
        let of_pe = |it: &PeTrace| (it.pe, it.events.iter().filter_map(on_pe).collect());
        let (of_pes, pes) = few(trace.records.iter().map(of_pe).collect(), end);
        let runs = runs_by_rank(trace).into_iter();
        let (of_ranks, ranks) = few(runs.map(|(rank, runs)| (rank, of_rank(&runs))).collect(), end);
        let utilisation: Vec<(u32, Vec<f64>)> = utilisation(trace, BINS).into_iter().collect();
        let imbalances =
            (0..BINS).map(|bin| imbalance(utilisation.iter().map(|(_, busy)| busy[bin]))).collect();
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
                Wait {
                    call: trace.name(*call),
                    times: it.times,
                    seconds: it.seconds,
                    longest,
                    rank,
                    at,
                }
            })
            .collect();
        waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let steps = trace.events().filter_map(|(_, event)| match event.what {
            What::Step { number, strategy, .. } => Some((event.at, number, trace.name(strategy))),
            _ => None,
        });
        let (all_pairs, all_moves) = (pairs.len(), moves.len());
        pairs.truncate(ROWS * ROWS / 10);
        moves.truncate(ROWS);
        Data {
            command: &trace.command,
            number_of_pes: trace.pes,
            number_of_ranks: trace.ranks,
            end,
            dropped: trace.dropped(),
            complete: trace.is_complete(),
            statistics,
            imbalance: statistics.imbalance(),
            shortest: [of_pes, of_ranks],
            pes,
            ranks,
            bin: bin_width(trace, BINS),
            utilisation,
            imbalances,
            pairs,
            all_pairs,
            moves,
            all_moves,
            waits,
            steps: steps.collect(),
        }
    }
}

fn on_pe(event: &Timed) -> Option<Bar> {
    match event.what {
        What::Ran { rank, .. } => Some((event.began(), event.at, i64::from(rank))),
        _ => None,
    }
}

fn of_rank(runs: &[(u32, i64, i64, Then)]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for (i, (pe, from, to, then)) in runs.iter().enumerate() {
        bars.push((*from, *to, i64::from(*pe)));
        let next = runs.get(i + 1).map_or(*to, |next| next.1);
        let state = match then {
            Then::Waits(..) | Then::Looks => WAITS,
            Then::Ready => READY,
            Then::Over => continue,
        };
        if next > *to {
            bars.push((*to, next, state));
        }
    }
    bars
}

fn a_move((pe, event): (u32, &Timed)) -> Option<Move> {
    match event.what {
        What::Leaves { rank, to, bytes, by } => {
            Some(Move { at: event.at, rank, from: pe, to, by: by.name(), bytes })
        }
        _ => None,
    }
}

/// Rows of bars, as they are if there are not too many; else short ones are drawn together, and how short those are.
fn few(rows: Vec<(u32, Vec<Bar>)>, end: i64) -> (i64, Vec<(u32, Vec<Bar>)>) {
    let bars: usize = rows.iter().map(|(_, bars)| bars.len()).sum();
    if bars <= BARS {
        return (0, rows);
    }
    let shortest = (end * rows.len().max(1) as i64 / BARS as i64).max(1);
    let drawn = rows.into_iter().map(|(row, bars)| (row, together(bars.into_iter(), shortest)));
    (shortest, drawn.collect())
}

/// Bars, of which short ones that follow each other are one.
fn together(bars: impl Iterator<Item = Bar>, shortest: i64) -> Vec<Bar> {
    let mut all: Vec<Bar> = Vec::new();
    for (from, to, what) in bars {
        match all.last_mut() {
            Some((first, last, before)) if to - *first <= shortest && from - *last <= shortest => {
                *last = to.max(*last);
                if *before != what {
                    *before = MIXED;
                }
            }
            _ => all.push((from, to, what)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What there is room for is there when somebody looks closer.
    #[test]
    fn bars_are_drawn_together_only_where_there_are_too_many() {
        let row = |bars: i64| vec![(0, (0..bars).map(|at| (2 * at, 2 * at + 1, at)).collect())];
        assert_eq!(few(row(9), 18), (0, row(9)));
        let many = 3 * BARS as i64;
        let (shortest, drawn) = few(row(many), 2 * many);
        assert!(shortest > 0 && drawn[0].1.len() <= BARS, "{shortest}, {}", drawn[0].1.len());
    }

    #[test]
    fn short_bars_are_drawn_together() {
        let bars = [(0, 5, 1), (5, 9, 2), (9, 100, 2), (100, 103, 3), (103, 107, 3)];
        let drawn = together(bars.into_iter(), 10);
        assert_eq!(drawn, [(0, 9, MIXED), (9, 100, 2), (100, 107, 3)]);
        assert_eq!(together(bars.into_iter(), 0), bars);
    }
}
