//! Determines which part of a trace is the program's iterations: the subject of advice.
//!
//! Three things are not part of them: a region called `verification`; what one rank does alone at the end, after the
//! last collective operations, as when it checks the result; and time that PEs have waited for their cores, which is
//! attributed to the ranks that ran then, but is nobody's load.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::read::{Trace, What};

/// A region of a program that is not part of its iterations.
const VERIFICATION: &str = "verification";
/// The part of an interval's work from which on one rank counts as doing it alone.
const ALONE: f64 = 0.9;
/// The part of all work below which an interval does not count.
const NOTHING: f64 = 0.01;
/// The number of last collective operations between which a rank may be alone: its check is followed by one that
/// informs the others, and by the program's end.
const LAST: usize = 3;

/// Times in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Iterations {
    /// How long each rank has run.
    pub(crate) run: BTreeMap<u32, f64>,
    /// How long ranks have run on each PE.
    pub(crate) busy: BTreeMap<u32, f64>,
    /// How long no rank could run, summed over all PEs.
    pub(crate) idle: f64,
    /// Total duration.
    pub(crate) seconds: f64,
}

impl Iterations {
    /// The iterations of a trace.
    pub(crate) fn of(trace: &Trace) -> Iterations {
        let left_out = joined(left_out(trace));
        let all_left_out: i64 = left_out.iter().map(|(from, to)| to - from).sum();
        let mut all = Iterations {
            seconds: (trace.end() - all_left_out).max(0) as f64 / 1e9,
            ..Iterations::default()
        };
        for records in &trace.records {
            let mut ranks: FxHashMap<u32, f64> = FxHashMap::default();
            let (mut busy, mut busy_at_all) = (0.0, 0.0);
            for event in &records.events {
                let (What::Ran { nanoseconds, .. } | What::Idle { nanoseconds }) = event.what
                else {
                    continue;
                };
                let outside = overlap(&left_out, event.began(), event.at) as f64;
                let seconds = (nanoseconds - outside).max(0.0) / 1e9;
                match event.what {
                    What::Ran { rank, .. } => {
                        *ranks.entry(rank).or_default() += seconds;
                        busy += seconds;
                        busy_at_all += nanoseconds / 1e9;
                    }
                    _ => all.idle += seconds,
                }
            }
            // It is not known which ranks it has hit.
            let kept =
                1.0 - (records.preempted / f64::max(busy_at_all, f64::MIN_POSITIVE)).min(1.0);
            for (rank, seconds) in ranks {
                *all.run.entry(rank).or_default() += kept * seconds;
            }
            all.busy.insert(records.pe, kept * busy);
        }
        all
    }

    /// The load of the busiest PE over the mean, minus 1.
    pub(crate) fn imbalance(&self) -> f64 {
        crate::statistics::imbalance(self.busy.values().copied())
    }
}

/// The intervals that are not part of the iterations.
fn left_out(trace: &Trace) -> Vec<(i64, i64)> {
    let mut found = Vec::new();
    let mut regions: FxHashMap<u32, Vec<(bool, i64)>> = FxHashMap::default();
    let mut ends: FxHashMap<u32, Vec<i64>> = FxHashMap::default();
    for (_, event) in trace.events() {
        match event.what {
            What::RegionBegins { rank, name } => {
                let is_it = trace.name(name).eq_ignore_ascii_case(VERIFICATION);
                regions.entry(rank).or_default().push((is_it, event.at));
            }
            What::RegionEnds { rank } => {
                if let Some((true, began)) = regions.entry(rank).or_default().pop() {
                    found.push((began, event.at));
                }
            }
            What::CollectiveEnds { rank, .. } => ends.entry(rank).or_default().push(event.at),
            _ => {}
        }
    }
    // One in which the program has ended.
    let open = regions.into_values().flatten().filter(|(is_it, _)| *is_it);
    found.extend(open.map(|(_, began)| (began, trace.end())));
    ends.values_mut().for_each(|it| it.sort_unstable_by(|a, b| b.cmp(a)));
    let most = ends.values().map(Vec::len).max().unwrap_or_default();
    let work: f64 = runs(trace, i64::MIN, i64::MAX).values().sum();
    let mut until = trace.end();
    for number in 0..LAST.min(most) {
        // Where there are few, what is between them may be all that the program does.
        if number > 0 && most < 2 * LAST + number {
            break;
        }
        let Some(from) = ends.values().filter_map(|it| it.get(number)).max().copied() else {
            break;
        };
        let there = runs(trace, from, until);
        let (sum, most) =
            there.values().fold((0.0, 0.0), |(sum, most), it| (sum + it, f64::max(most, *it)));
        if sum > NOTHING * work {
            if most < ALONE * sum {
                break;
            }
            found.push((from, until));
        }
        until = from;
    }
    found
}

/// Nanoseconds that each rank has run in an interval.
fn runs(trace: &Trace, from: i64, to: i64) -> FxHashMap<u32, f64> {
    let mut all: FxHashMap<u32, f64> = FxHashMap::default();
    for (_, event) in trace.events() {
        if let What::Ran { rank, .. } = event.what {
            let inside = event.at.min(to) - event.began().max(from);
            *all.entry(rank).or_default() += inside.max(0) as f64;
        }
    }
    all
}

/// The same intervals, sorted and without overlap.
fn joined(mut times: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    times.sort_unstable();
    let mut all: Vec<(i64, i64)> = Vec::new();
    for (from, to) in times {
        match all.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => all.push((from, to)),
        }
    }
    all
}

/// How much of an interval lies in these intervals, which do not overlap.
fn overlap(times: &[(i64, i64)], from: i64, to: i64) -> i64 {
    let first = times.partition_point(|it| it.1 <= from);
    let inside = times[first..].iter().take_while(|it| it.0 < to);
    inside.map(|it| (it.1.min(to) - it.0.max(from)).max(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::{Advice, advise};
    use crate::read::{PeTrace, Then, Timed};
    use crate::statistics::Statistics;

    const MS: i64 = 1_000_000;

    fn ran(rank: u32, from: i64, to: i64) -> Timed {
        let then = Then::Ready;
        Timed {
            at: to * MS,
            what: What::Ran { rank, nanoseconds: ((to - from) * MS) as f64, then },
        }
    }

    fn collective(rank: u32, at: i64) -> Timed {
        Timed { at: at * MS, what: What::CollectiveEnds { rank, call: 0, context: 0 } }
    }

    /// Two PEs with two ranks each, which do the same work in ten iterations of 10 ms.
    fn even() -> Trace {
        let records = (0..2).map(|pe| {
            let mut events = Vec::new();
            for iteration in 0..10 {
                for place in 0..2 {
                    let (rank, from) = (2 * pe + place, 10 * iteration + 5 * i64::from(place));
                    events.push(ran(rank, from, from + 5));
                    events.push(collective(rank, 10 * iteration + 10));
                }
            }
            PeTrace { pe, complete: true, events, ..PeTrace::default() }
        });
        let names = vec![String::new(), VERIFICATION.to_owned()];
        Trace { pes: 2, ranks: 4, names, records: records.collect(), ..Trace::default() }
    }

    fn faults(trace: &Trace) -> Vec<Advice> {
        let is_of_load = |it: &Advice| matches!(it, Advice::Giant { .. } | Advice::Uneven { .. });
        advise(trace, &Statistics::of(trace)).into_iter().filter(is_of_load).collect()
    }

    #[test]
    fn a_check_behind_the_last_operation_is_no_load() {
        let mut trace = even();
        let idle = What::Idle { nanoseconds: (1900 * MS) as f64 };
        trace.records[0].events.push(ran(0, 100, 2000));
        trace.records[1].events.push(Timed { at: 2000 * MS, what: idle });
        assert_eq!(faults(&trace), []);
        // One that tells the others what has come of it.
        let mut told = trace.clone();
        for rank in 0..4 {
            told.records[rank as usize / 2].events.push(collective(rank, 2000));
        }
        assert_eq!(faults(&told), []);
        let it = Iterations::of(&told);
        assert!((it.run[&0] - 0.05).abs() < 1e-9 && (it.busy[&0] - 0.1).abs() < 1e-9, "{it:?}");
        assert!((it.seconds - 0.1).abs() < 1e-9 && it.idle < 1e-9, "{it:?}");
        // In the midst of the iterations it is load.
        for event in &mut trace.records.iter_mut().flat_map(|it| &mut it.events).rev().take(1) {
            event.at = 2000 * MS;
        }
        for rank in 0..4 {
            for at in [2001, 2002, 2003, 2004] {
                trace.records[rank as usize / 2].events.push(ran(rank, at - 1, at));
                trace.records[rank as usize / 2].events.push(collective(rank, at));
            }
        }
        assert!(
            matches!(faults(&trace)[..], [Advice::Giant { rank: 0, .. }]),
            "{:?}",
            faults(&trace)
        );
    }

    #[test]
    fn a_region_that_verifies_is_no_load_wherever_it_is() {
        let mut trace = even();
        for event in trace.records.iter_mut().flat_map(|it| &mut it.events) {
            event.at += 1900 * MS;
        }
        let begins = Timed { at: 0, what: What::RegionBegins { rank: 3, name: 1 } };
        let ends = Timed { at: 1900 * MS, what: What::RegionEnds { rank: 3 } };
        let idle = Timed { at: 1900 * MS, what: What::Idle { nanoseconds: (1900 * MS) as f64 } };
        trace.records[0].events.insert(0, idle);
        trace.records[1].events.splice(0..0, [begins, ran(3, 0, 1900), ends]);
        assert_eq!(faults(&trace), []);
        trace.names[1] = "solve".to_owned();
        assert!(matches!(faults(&trace)[..], [Advice::Giant { rank: 3, .. }]));
    }

    #[test]
    fn time_without_a_core_is_nobodys_load() {
        let mut trace = even();
        // All that PE 1 does takes three times as long.
        for event in &mut trace.records[1].events {
            event.at *= 3;
            if let What::Ran { nanoseconds, .. } = &mut event.what {
                *nanoseconds *= 3.0;
            }
        }
        let idle = Timed { at: 300 * MS, what: What::Idle { nanoseconds: (200 * MS) as f64 } };
        trace.records[0].events.push(idle);
        assert!(!faults(&trace).is_empty());
        trace.records[1].preempted = 0.2;
        assert_eq!(faults(&trace), []);
        let all = advise(&trace, &Statistics::of(&trace));
        let is_it = |it: &Advice| matches!(it, Advice::Preempted { pe: 1, .. });
        assert!(all.iter().any(is_it), "{all:?}");
    }
}
