//! What a job has done, in numbers: of each rank, each PE, each pair of ranks, each call that ranks wait in.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::read::{By, Name, Then, Timed, Trace, What};

/// All numbers of a trace. Times are seconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Statistics {
    /// From the first event to the last.
    pub seconds: f64,
    /// Messages sent, also those inside of collective operations.
    pub sent: u64,
    /// Messages that have got their receives.
    pub matched: u64,
    /// Of those, messages whose receives were given up, so that they were matched once more or never.
    pub put_back: u64,
    /// Bytes of messages sent.
    pub bytes: u64,
    /// Messages between ranks that were on different PEs.
    pub between_pes: u64,
    /// Parts of ranks in collective operations.
    pub collectives: u64,
    /// Moves of ranks from PE to PE, and bytes copied for them.
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
    /// By call: what ranks wait in.
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
    /// How often it has stopped running, but for looks of its PE.
    pub switches: u64,
    /// Messages sent.
    pub sent: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Messages that have got its receives.
    pub matched: u64,
    /// Messages whose receives it has given up.
    pub put_back: u64,
    /// How often it has moved.
    pub moves: u64,
    /// The PE on which it was last.
    pub pe: u32,
    /// What its PE has measured, once it is over.
    pub measured: Option<Measured>,
}

/// What a PE has measured of a rank that is over.
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
    /// Time in ranks, with the switches to them.
    pub busy: f64,
    /// Time in which no rank could run.
    pub idle: f64,
    /// The rest of the job's time: beginning, ending, what was left out.
    pub overhead: f64,
    /// How often ranks have stopped running there.
    pub switches: u64,
    /// Messages sent from there.
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

/// What ranks have waited in a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OfCall {
    /// Waits.
    pub times: u64,
    /// Seconds of all of them.
    pub seconds: f64,
    /// The longest one, the rank, and when it began.
    pub longest: (f64, u32, i64),
}

impl Statistics {
    /// Those of a trace.
    pub fn of(trace: &Trace) -> Statistics {
        let mut all = Statistics { seconds: trace.end() as f64 / 1e9, ..Statistics::default() };
        for records in &trace.records {
            all.pes.insert(records.pe, OfPe::default());
        }
        // What ranks do between two runs needs all PEs in the order of time.
        let mut runs: FxHashMap<u32, Vec<(i64, i64, Then)>> = FxHashMap::default();
        let mut sent_from: FxHashMap<(u32, u32, u32), u32> = FxHashMap::default();
        for (pe, event) in trace.events() {
            all.add(pe, event);
            match event.what {
                What::Ran { rank, then, .. } => {
                    runs.entry(rank).or_default().push((event.began(), event.at, then));
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
        for (rank, mut runs) in runs {
            runs.sort_by_key(|(began, ..)| *began);
            for pair in runs.windows(2) {
                let ((_, stopped, then), (next, ..)) = (pair[0], pair[1]);
                all.add_gap(rank, stopped, (next - stopped).max(0) as f64 / 1e9, then);
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

    /// What a rank does from when it stops to when it runs again.
    fn add_gap(&mut self, rank: u32, stopped: i64, seconds: f64, then: Then) {
        let of_rank = self.ranks.entry(rank).or_default();
        match then {
            Then::Ready => of_rank.ready += seconds,
            Then::Looks => of_rank.waited += seconds,
            Then::Waits(call, _) => {
                of_rank.waited += seconds;
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

    /// The load of the busiest PE over the mean, less 1.
    pub fn imbalance(&self) -> f64 {
        imbalance(self.pes.values().map(|pe| pe.busy))
    }
}

/// The largest over the mean, less 1.
pub(crate) fn imbalance(loads: impl Iterator<Item = f64> + Clone) -> f64 {
    let (count, sum) =
        loads.clone().fold((0u32, 0.0), |(count, sum), load| (count + 1, sum + load));
    let mean = sum / f64::from(count.max(1));
    if mean > 0.0 { loads.fold(0.0, f64::max) / mean - 1.0 } else { 0.0 }
}
