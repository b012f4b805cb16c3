//! Numbers about a job: per rank, PE, pair of ranks, and call that ranks wait in.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::read::{By, Name, Then, Timed, Trace, What};

/// All numbers about a trace. Times are in seconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Statistics {
    /// From the first event to the last.
    pub seconds: f64,
    /// Messages sent, including those of collective operations.
    pub sent: u64,
    /// Messages matched with receives.
    pub matched: u64,
    /// Of those, messages whose receives were cancelled, so that they were matched again later or never.
    pub put_back: u64,
    /// Bytes of messages sent.
    pub bytes: u64,
    /// Messages between ranks that were on different PEs.
    pub between_pes: u64,
    /// Participations of ranks in collective operations.
    pub collectives: u64,
    /// Moves of ranks between PEs, and bytes copied for them.
    pub moves: u64,
    /// See above.
    pub moved_bytes: u64,
    /// Balancing steps.
    pub steps: u64,
    /// By rank.
    pub ranks: BTreeMap<u32, OfRank>,
    /// By PE.
    pub pes: BTreeMap<u32, OfPe>,
    /// By sender and receiver.
    #[serde(skip)]
    pub pairs: BTreeMap<(u32, u32), OfPair>,
    /// By call that ranks wait in.
    #[serde(skip)]
    pub waits: BTreeMap<Name, OfCall>,
    /// Why ranks could not move.
    #[serde(skip)]
    pub stayed: BTreeMap<u32, Name>,
}

/// What a rank has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OfRank {
    /// Time that it has run.
    pub run: f64,
    /// Time that it has waited.
    pub waited: f64,
    /// Time that it was ready while another one ran.
    pub ready: f64,
    /// How often it has stopped running, not counting polls by its PE.
    pub switches: u64,
    /// Messages sent.
    pub sent: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Messages matched with its receives.
    pub matched: u64,
    /// Messages whose receives it has cancelled.
    pub put_back: u64,
    /// How often it has moved.
    pub moves: u64,
    /// The PE that it was on last.
    pub pe: u32,
    /// Its PE's measurements, once it has ended.
    pub measured: Option<Measured>,
}

/// A PE's measurements of a rank that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Time that it has run.
    pub run: f64,
    /// How often it has stopped running.
    pub switches: u64,
    /// Messages sent.
    pub sent: u64,
    /// Bytes of those.
    pub bytes: u64,
}

/// What a PE has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OfPe {
    /// Time in ranks, including the switches to them.
    pub busy: f64,
    /// Time in which no rank could run.
    pub idle: f64,
    /// The rest of the job's time: start, end, dropped events.
    pub overhead: f64,
    /// How often ranks have stopped running on it.
    pub switches: u64,
    /// Messages sent from it.
    pub sent: u64,
}

/// What a rank has sent to another one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OfPair {
    /// Messages.
    pub messages: u64,
    /// Bytes.
    pub bytes: u64,
    /// Messages while both were on different PEs.
    pub between_pes: u64,
}

/// How long ranks have waited in a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OfCall {
    /// Number of waits.
    pub times: u64,
    /// Their total, in seconds.
    pub seconds: f64,
    /// The longest wait: its seconds, the rank, and when it began.
    pub longest: (f64, u32, i64),
}

impl Statistics {
    /// The statistics of a trace.
    pub fn of(trace: &Trace) -> Statistics {
        let mut all = Statistics { seconds: trace.end() as f64 / 1e9, ..Statistics::default() };
        for records in &trace.records {
            all.pes.insert(records.pe, OfPe::default());
        }
        // What ranks do between two runs needs all PEs in the order of time.
        let mut runs: FxHashMap<u32, Vec<Run>> = FxHashMap::default();
        let mut causes = Causes::default();
        let mut sent_from: FxHashMap<(u32, u32, u32), u32> = FxHashMap::default();
        for (pe, event) in trace.events() {
            all.add(pe, event);
            causes.add(pe, event);
            match event.what {
                What::Ran { rank, then, .. } => {
                    let run = Run { began: event.began(), stopped: event.at, then, pe };
                    runs.entry(rank).or_default().push(run);
                }
                What::Sent(it) => {
                    sent_from.insert((it.from, it.to, it.sequence), pe);
                }
                _ => {}
            }
        }
        for (pe, event) in trace.events() {
            if let What::Matched(it) = event.what
                && sent_from.get(&(it.from, it.to, it.sequence)).is_some_and(|from| *from != pe)
            {
                all.between_pes += 1;
                all.pairs.entry((it.from, it.to)).or_default().between_pes += 1;
            }
        }
        causes.sort();
        for (rank, mut runs) in runs {
            runs.sort_by_key(|run| run.began);
            for pair in runs.windows(2) {
                let (before, after) = (pair[0], pair[1]);
                let ready_since = causes.of_end(rank, before.stopped, after);
                all.add_gap(rank, before, after, ready_since);
            }
        }
        for of_pe in all.pes.values_mut() {
            of_pe.overhead = (all.seconds - of_pe.busy - of_pe.idle).max(0.0);
        }
        all
    }

    fn add(&mut self, pe: u32, event: &Timed) {
        let of_pe = self.pes.entry(pe).or_default();
        match event.what {
            What::Ran { rank, nanoseconds, then } => {
                let of_rank = self.ranks.entry(rank).or_default();
                of_rank.run += nanoseconds / 1e9;
                of_pe.busy += nanoseconds / 1e9;
                of_rank.pe = pe;
                if then != Then::Looks {
                    of_rank.switches += 1;
                    of_pe.switches += 1;
                }
            }
            What::Idle { nanoseconds } => of_pe.idle += nanoseconds / 1e9,
            What::Sent(it) => {
                self.sent += 1;
                self.bytes += it.bytes;
                of_pe.sent += 1;
                let of_rank = self.ranks.entry(it.from).or_default();
                of_rank.sent += 1;
                of_rank.bytes += it.bytes;
                let pair = self.pairs.entry((it.from, it.to)).or_default();
                pair.messages += 1;
                pair.bytes += it.bytes;
            }
            What::Matched(it) => {
                self.matched += 1;
                self.ranks.entry(it.to).or_default().matched += 1;
            }
            What::PutBack { rank } => {
                self.put_back += 1;
                self.ranks.entry(rank).or_default().put_back += 1;
            }
            What::CollectiveBegins { .. } => self.collectives += 1,
            What::Leaves { rank, bytes, by, .. } => {
                self.moves += 1;
                self.moved_bytes += if by == By::HandOver { 0 } else { bytes };
                self.ranks.entry(rank).or_default().moves += 1;
            }
            What::Stays { rank, why } => {
                self.stayed.insert(rank, why);
            }
            What::Step { .. } => self.steps += 1,
            What::Placed { rank, pinned: true, .. } => {
                self.stayed.entry(rank).or_default();
            }
            What::Over { rank, run, switches } => {
                let measured = &mut self.ranks.entry(rank).or_default().measured;
                let measured = measured.get_or_insert_default();
                (measured.run, measured.switches) = (run / 1e9, switches);
            }
            What::OverSent { rank, messages, bytes } => {
                let measured = &mut self.ranks.entry(rank).or_default().measured;
                let measured = measured.get_or_insert_default();
                (measured.sent, measured.bytes) = (messages, bytes);
            }
            _ => {}
        }
    }

    /// Attributes the time from when a rank stops to when it runs again; what it waited for may have arrived earlier.
    fn add_gap(&mut self, rank: u32, before: Run, after: Run, ready_since: Option<i64>) {
        let of_rank = self.ranks.entry(rank).or_default();
        let (stopped, next) = (before.stopped, after.began);
        let seconds = |from: i64, to: i64| (to - from).max(0) as f64 / 1e9;
        match before.then {
            Then::Ready => of_rank.ready += seconds(stopped, next),
            Then::Looks => of_rank.waited += seconds(stopped, next),
            Then::Waits(call, _) => {
                let ready_since = ready_since.unwrap_or(next);
                of_rank.waited += seconds(stopped, ready_since);
                of_rank.ready += seconds(ready_since, next);
                let seconds = seconds(stopped, next);
                let of_call = self.waits.entry(call).or_default();
                of_call.times += 1;
                of_call.seconds += seconds;
                if seconds > of_call.longest.0 {
                    of_call.longest = (seconds, rank, stopped);
                }
            }
            Then::Over => {}
        }
    }

    /// The load of the busiest PE over the mean, minus 1.
    pub fn imbalance(&self) -> f64 {
        imbalance(self.pes.values().map(|pe| pe.busy))
    }
}

/// One run of a rank.
#[derive(Clone, Copy)]
struct Run {
    began: i64,
    stopped: i64,
    then: Then,
    pe: u32,
}

/// What makes a waiting rank ready, as far as a trace shows: a message that is matched, and the end of a collective
/// operation, which makes all ranks of the PE ready that wait in it. Times are sorted.
#[derive(Default)]
struct Causes {
    matched: FxHashMap<u32, Vec<i64>>,
    /// Ends of collective operations, by rank with their contexts, and by PE and context.
    ends: FxHashMap<u32, Vec<(i64, u32)>>,
    ends_on: FxHashMap<(u32, u32), Vec<i64>>,
}

impl Causes {
    fn add(&mut self, pe: u32, event: &Timed) {
        match event.what {
            What::Matched(it) => self.matched.entry(it.to).or_default().push(event.at),
            What::CollectiveEnds { rank, context, .. } => {
                self.ends.entry(rank).or_default().push((event.at, context));
                self.ends_on.entry((pe, context)).or_default().push(event.at);
            }
            _ => {}
        }
    }

    fn sort(&mut self) {
        self.matched.values_mut().for_each(|it| it.sort_unstable());
        self.ends.values_mut().for_each(|it| it.sort_unstable());
        self.ends_on.values_mut().for_each(|it| it.sort_unstable());
    }

    /// When a rank that had stopped to wait was ready, before it ran again.
    fn of_end(&self, rank: u32, stopped: i64, after: Run) -> Option<i64> {
        if let Some(matched) = self.matched.get(&rank) {
            // Of several that it waited for the last one counts.
            let behind = matched.partition_point(|at| *at <= after.began);
            if let Some(at) = matched[..behind].last().filter(|at| **at >= stopped) {
                return Some(*at);
            }
        }
        let ends = self.ends.get(&rank)?;
        let (at, context) = ends.get(ends.partition_point(|(at, _)| *at < after.began))?;
        let on_pe = self.ends_on.get(&(after.pe, *context)).filter(|_| *at <= after.stopped)?;
        let first = on_pe.get(on_pe.partition_point(|at| *at < stopped))?;
        (*first <= after.began).then_some(*first)
    }
}

/// The largest over the mean, minus 1.
pub(crate) fn imbalance(loads: impl Iterator<Item = f64> + Clone) -> f64 {
    let (count, sum) =
        loads.clone().fold((0u32, 0.0), |(count, sum), load| (count + 1, sum + load));
    let mean = sum / f64::from(count.max(1));
    if mean > 0.0 { loads.fold(0.0, f64::max) / mean - 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Message, PeTrace};

    const MS: i64 = 1_000_000;

    fn ran(rank: u32, from: i64, to: i64) -> Timed {
        let nanoseconds = ((to - from) * MS) as f64;
        Timed { at: to * MS, what: What::Ran { rank, nanoseconds, then: Then::Waits(0, None) } }
    }

    /// Time in which its message had arrived but another rank ran does not count as waiting.
    #[test]
    fn a_rank_is_ready_from_when_its_message_is_there() {
        let message = Message { from: 1, to: 0, sequence: 0, tag: 0, bytes: 8, is_internal: false };
        let matched = Timed { at: 3 * MS, what: What::Matched(message) };
        let events = vec![ran(0, 0, 1), matched, ran(1, 1, 9), ran(0, 9, 10)];
        let records = vec![PeTrace { events, ..PeTrace::default() }];
        let all = Statistics::of(&Trace { records, ..Trace::default() });
        let OfRank { waited, ready, .. } = all.ranks[&0];
        assert!((waited - 2e-3).abs() < 1e-9 && (ready - 6e-3).abs() < 1e-9, "{waited} {ready}");
    }

    #[test]
    fn ranks_are_ready_from_when_a_collective_operation_is_over_for_the_first() {
        let end = |rank: u32, at: i64| Timed {
            at: at * MS,
            what: What::CollectiveEnds { rank, call: 0, context: 5 },
        };
        // Rank 2 comes last, has its end at once, and goes on.
        let mut events = vec![ran(0, 0, 1), ran(1, 1, 2), end(2, 4), ran(2, 2, 10)];
        events.extend([end(0, 10), ran(0, 10, 12), end(1, 12), ran(1, 12, 13)]);
        let records = vec![PeTrace { events, ..PeTrace::default() }];
        let all = Statistics::of(&Trace { records, ..Trace::default() });
        for (rank, waited, ready) in [(0, 3e-3, 6e-3), (1, 2e-3, 8e-3)] {
            let it = all.ranks[&rank];
            assert!((it.waited - waited).abs() < 1e-9 && (it.ready - ready).abs() < 1e-9, "{it:?}");
        }
    }
}
