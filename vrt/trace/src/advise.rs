//! Advice: the performance problems that can be seen in a trace, each with its number and a remedy.

use std::fmt;

use rustc_hash::FxHashMap;
use vrt_core::count;

use crate::iterations::Iterations;
use crate::read::{Message, Then, Trace, What};
use crate::statistics::Statistics;

/// A PE's load above the mean from which on it is reported.
const UNEVEN: f64 = 0.1;
/// A rank with more than this part of a PE's average work cannot be balanced well.
const GIANT: f64 = 0.5;
/// Runs shorter than this, in nanoseconds, are short: several hundred nanoseconds of each, several percent, are spent
/// on the switch and the messages.
const FINE: f64 = 10e3;
/// Messages shorter than this, in bytes, could be combined: this much data takes no longer than one of them.
const SMALL: f64 = 1024.0;
/// The part of messages between PEs from which on it is reported.
const APART: f64 = 0.3;
/// The part of PE time spent waiting for late senders from which on it is reported.
const LATE: f64 = 0.1;
/// The part of a PE's time spent waiting for a core from which on it is reported.
const PREEMPTED: f64 = 0.1;

/// A performance problem, with the numbers that show it.
#[derive(Clone, Debug, PartialEq)]
pub enum Advice {
    /// One rank has so much of the work that PEs wait for it whatever is moved.
    Giant {
        /// The rank.
        rank: u32,
        /// Its time as a part of each PE's average work.
        part: f64,
        /// Ranks per PE.
        ratio: f64,
    },
    /// Ranks run for such short times that switches and messages are much of the work.
    Fine {
        /// Runs per millisecond, if all were as long as the median.
        switches: f64,
        /// Messages sent per millisecond of work.
        messages: f64,
        /// Mean message length in bytes.
        bytes: f64,
        /// Ranks per PE.
        ratio: f64,
    },
    /// Ranks that communicate much are on different PEs, and could be on the same one.
    Apart {
        /// Messages between PEs as a part of all messages.
        part: f64,
        /// The same if ranks that communicate were placed together.
        possible: f64,
        /// The pair of ranks with the most messages between PEs, and their number.
        pair: (u32, u32, u64),
    },
    /// PEs have unequal loads, and another placement of the ranks would help.
    Uneven {
        /// The busiest PE, and how far it is above the mean.
        pe: u32,
        /// See above.
        imbalance: f64,
        /// The imbalance that could be reached.
        possible: f64,
        /// Balancing steps taken.
        steps: u64,
    },
    /// Ranks could not move.
    Pinned {
        /// How many.
        ranks: usize,
        /// The one among them with the most work.
        rank: u32,
        /// Why, if known.
        why: String,
    },
    /// Something else runs on a PE's core.
    Preempted {
        /// The PE most affected.
        pe: u32,
        /// The part of the time that it waited for its core.
        part: f64,
    },
    /// Ranks wait for messages that are sent late, while their PEs are idle.
    Late {
        /// Time in which PEs were idle while receives waited for messages not yet sent, as a part of all their time.
        part: f64,
        /// The sender that receives waited for longest.
        rank: u32,
        /// How long receives waited for it, in seconds.
        seconds: f64,
        /// The call in which its receivers wait.
        call: String,
    },
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Advice::Giant { rank, part, ratio } => write!(
                f,
                "giant rank: rank {rank} alone is {:.0}% of what a PE has to do on average, so others wait \
                 for it wherever it is; there are {ratio:.1} ranks a PE: split the work into more (--ranks)",
                100.0 * part
            ),
            Advice::Fine { switches, messages, bytes, ratio } => write!(
                f,
                "too fine: {switches:.0} switches and {messages:.0} messages in each millisecond of work, of \
                 {bytes:.0} bytes; there are {ratio:.1} ranks a PE: take fewer (--ranks), or send more at a time"
            ),
            Advice::Apart { part, possible, pair: (from, to, messages) } => write!(
                f,
                "bad placement: {:.0}% of the messages go between PEs, {:.0}% would if ranks that talk sat \
                 together, as ranks {from} and {to} do not ({messages} messages between PEs): use a strategy \
                 that heeds communication (--lb; `--lb list` says which do)",
                100.0 * part,
                100.0 * possible
            ),
            Advice::Uneven { pe, imbalance, possible, steps: 0 } => write!(
                f,
                "uneven: PE {pe} has {:.0}% more to do than the mean, and {:.0}% would be possible: let ranks \
                 be moved (--lb auto)",
                100.0 * imbalance,
                100.0 * possible
            ),
            Advice::Uneven { pe, imbalance, possible, steps } => write!(
                f,
                "uneven: PE {pe} has {:.0}% more to do than the mean, and {:.0}% would be possible, in spite \
                 of {}: take them more often (--lb-period), or by another strategy (--lb)",
                100.0 * imbalance,
                100.0 * possible,
                count(*steps, "balancing step")
            ),
            Advice::Pinned { ranks, rank, why } => {
                let why = if why.is_empty() { "it was said during the job why" } else { why };
                write!(
                    f,
                    "pinned: {} could not move, rank {rank} with most work among them ({why}): let \
                     go of that before `migrate`, or move by state (--move state)",
                    count(*ranks as u64, "rank")
                )
            }
            Advice::Preempted { pe, part } => write!(
                f,
                "preempted: PE {pe} has waited for its core for {:.0}% of the time, while something else ran \
                 there: take fewer PEs (--pes), free the core, or let ranks leave it (--lb auto)",
                100.0 * part
            ),
            Advice::Late { part, rank, seconds, call } => write!(
                f,
                "late sender: for {:.0}% of the PEs' time there was nothing to do while receives waited; \
                 longest for rank {rank}, {seconds:.3} s in {call}: have it send earlier, give its work to \
                 more ranks, or have more ranks a PE to run meanwhile (--ranks)",
                100.0 * part
            ),
        }
    }
}

/// Everything to report about a job, the most costly first.
pub fn advise(trace: &Trace, statistics: &Statistics) -> Vec<Advice> {
    let all = Work::of(trace, statistics);
    let giant = all.giant();
    // Other places do not help against one rank that is too large.
    let uneven = if giant.is_none() { all.uneven() } else { None };
    let found = [all.pinned(), all.preempted(), giant, uneven, all.late(), all.apart(), all.fine()];
    found.into_iter().flatten().collect()
}

struct Work<'a> {
    trace: &'a Trace,
    all: &'a Statistics,
    /// The part of it that counts as load.
    iterations: Iterations,
    pes: f64,
    busy: f64,
    ratio: f64,
}

impl<'a> Work<'a> {
    fn of(trace: &'a Trace, all: &'a Statistics) -> Work<'a> {
        let pes = f64::from(trace.pes.max(1));
        let iterations = Iterations::of(trace);
        let busy = iterations.busy.values().sum();
        Work { trace, all, iterations, pes, busy, ratio: f64::from(trace.ranks) / pes }
    }

    /// Idle time of PEs as a part of all their time.
    fn idle(&self) -> f64 {
        self.iterations.idle / (self.iterations.seconds * self.pes).max(f64::MIN_POSITIVE)
    }

    fn preempted(&self) -> Option<Advice> {
        let records = self.trace.records.iter();
        let worst = records.max_by(|a, b| a.preempted.total_cmp(&b.preempted))?;
        let part = worst.preempted / self.all.seconds.max(f64::MIN_POSITIVE);
        (part > PREEMPTED).then_some(Advice::Preempted { pe: worst.pe, part })
    }

    fn giant(&self) -> Option<Advice> {
        let (rank, largest) =
            self.iterations.run.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|it| (it.0, *it.1))?;
        let part = largest * self.pes / self.busy.max(f64::MIN_POSITIVE);
        // With few ranks a PE each of them is a large part; a giant stands out among them.
        let mean = self.busy / self.iterations.run.len().max(1) as f64;
        let is_giant =
            part > GIANT && largest > 3.0 * mean && self.pes > 1.0 && self.idle() > UNEVEN;
        is_giant.then_some(Advice::Giant { rank: *rank, part, ratio: self.ratio })
    }

    fn fine(&self) -> Option<Advice> {
        let runs = self.trace.events().filter_map(|(_, event)| match event.what {
            What::Ran { nanoseconds, .. } => Some(nanoseconds),
            _ => None,
        });
        // The median: a PE that loses its core in some runs does not make the others longer.
        let mut runs: Vec<f64> = runs.collect();
        let middle = runs.len() / 2;
        if runs.len() < 1000 {
            return None;
        }
        let run = *runs.select_nth_unstable_by(middle, f64::total_cmp).1;
        let bytes = self.all.bytes as f64 / self.all.sent.max(1) as f64;
        let switches = 1e6 / run.max(1.0);
        // A rank whose messages are there already goes on without a switch, so that runs are longer.
        let between = 1e9 * self.busy / self.all.sent.max(1) as f64;
        let messages = 1e6 / between.max(1.0);
        let is_fine = run < FINE || bytes < SMALL && between < FINE;
        is_fine.then_some(Advice::Fine { switches, messages, bytes, ratio: self.ratio })
    }

    fn uneven(&self) -> Option<Advice> {
        let (pe, _) = self.iterations.busy.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
        let imbalance = self.iterations.imbalance();
        let mut loads = vec![0.0f64; self.trace.pes.max(1) as usize];
        let mut ranks: Vec<f64> = self.iterations.run.values().copied().collect();
        ranks.sort_by(|a, b| b.total_cmp(a));
        // The longest first, each where there is least: at most a third above the best (Graham 1969).
        for run in ranks {
            if let Some(least) = loads.iter_mut().min_by(|a, b| f64::total_cmp(a, b)) {
                *least += run;
            }
        }
        let possible = crate::statistics::imbalance(loads.into_iter());
        let gains = imbalance > UNEVEN && possible < imbalance / 2.0;
        gains.then_some(Advice::Uneven { pe: *pe, imbalance, possible, steps: self.all.steps })
    }

    fn pinned(&self) -> Option<Advice> {
        let run = |rank: &u32| self.all.ranks.get(rank).map_or(0.0, |it| it.run);
        let (rank, why) = self.all.stayed.iter().max_by(|a, b| run(a.0).total_cmp(&run(b.0)))?;
        let reason = match self.trace.name(*why) {
            "" => {
                self.all.stayed.values().map(|why| self.trace.name(*why)).find(|it| !it.is_empty())
            }
            why => Some(why),
        };
        let why = reason.unwrap_or_default().to_owned();
        Some(Advice::Pinned { ranks: self.all.stayed.len(), rank: *rank, why })
    }

    /// Whether another placement of the ranks would reduce the messages between PEs: assigns each rank to the PE on
    /// which most of its messages would stay, as long as there is room (a greedy cut of the graph).
    fn apart(&self) -> Option<Advice> {
        let user = self.messages();
        let total: u64 = user.values().map(|it| it.0).sum();
        let between: u64 = user.values().map(|it| it.1).sum();
        let part = between as f64 / total.max(1) as f64;
        if total < 100 || part < APART || self.pes < 2.0 {
            return None;
        }
        let possible = self.cut(&user) as f64 / total as f64;
        let ((from, to), (_, messages)) = user.iter().max_by_key(|(pair, it)| (it.1, **pair))?;
        let gains = possible < part / 2.0;
        gains.then_some(Advice::Apart { part, possible, pair: (*from, *to, *messages) })
    }

    /// The program's messages by sender and receiver: all of them, and those between PEs.
    fn messages(&self) -> FxHashMap<(u32, u32), (u64, u64)> {
        let mut sent: FxHashMap<(u32, u32, u32), u32> = FxHashMap::default();
        let of = |it: &Message| (it.from, it.to, it.sequence);
        for (pe, event) in self.trace.events() {
            if let What::Sent(it) = &event.what
                && !it.is_internal
            {
                sent.insert(of(it), pe);
            }
        }
        let mut pairs: FxHashMap<(u32, u32), (u64, u64)> = FxHashMap::default();
        for (pe, event) in self.trace.events() {
            if let What::Matched(it) = &event.what
                && let Some(from) = sent.get(&of(it))
            {
                let pair = pairs.entry((it.from, it.to)).or_default();
                pair.0 += 1;
                pair.1 += u64::from(*from != pe);
            }
        }
        pairs
    }

    /// Messages between PEs if groups of ranks that communicate are placed together, the pairs with most messages
    /// first, with no PE above its share of ranks.
    fn cut(&self, pairs: &FxHashMap<(u32, u32), (u64, u64)>) -> u64 {
        let mut edges: Vec<(u64, u32, u32)> =
            pairs.iter().map(|(pair, it)| (it.0, pair.0, pair.1)).collect();
        edges.sort_unstable_by(|a, b| b.cmp(a));
        let room = self.trace.ranks.div_ceil(self.trace.pes.max(1));
        let mut group: Vec<u32> = (0..self.trace.ranks).collect();
        let mut members: Vec<Vec<u32>> = (0..self.trace.ranks).map(|rank| vec![rank]).collect();
        for (_, a, b) in &edges {
            let (a, b) = (group[*a as usize] as usize, group[*b as usize] as usize);
            if a != b && members[a].len() + members[b].len() <= room as usize {
                for rank in std::mem::take(&mut members[b]) {
                    group[rank as usize] = a as u32;
                    members[a].push(rank);
                }
            }
        }
        // Groups in bins, the largest first.
        members.sort_by_key(|it| std::cmp::Reverse(it.len()));
        let mut filled = vec![0; self.trace.pes.max(1) as usize];
        let mut pe_of = vec![0; self.trace.ranks as usize];
        for group in members.iter().filter(|it| !it.is_empty()) {
            if let Some((pe, least)) = filled.iter_mut().enumerate().min_by_key(|(_, it)| **it) {
                *least += group.len();
                group.iter().for_each(|rank| pe_of[*rank as usize] = pe);
            }
        }
        edges
            .iter()
            .filter(|(_, a, b)| pe_of[*a as usize] != pe_of[*b as usize])
            .map(|it| it.0)
            .sum()
    }

    /// Waits that end with a message that was sent after they began, while the PE was idle: Scalasca's "late sender".
    fn late(&self) -> Option<Advice> {
        let mut sent: FxHashMap<(u32, u32, u32), i64> = FxHashMap::default();
        let mut matched: FxHashMap<u32, Vec<(i64, Message)>> = FxHashMap::default();
        for (_, event) in self.trace.events() {
            match event.what {
                What::Sent(it) => {
                    sent.insert((it.from, it.to, it.sequence), event.at);
                }
                What::Matched(it) if !it.is_internal => {
                    matched.entry(it.to).or_default().push((event.at, it));
                }
                _ => {}
            }
        }
        matched.values_mut().for_each(|it| it.sort_by_key(|it| it.0));
        let mut waited: FxHashMap<u32, (f64, u32)> = FxHashMap::default();
        for (rank, runs) in crate::convert::perfetto::runs_by_rank(self.trace) {
            let Some(matched) = matched.get(&rank) else { continue };
            for pair in runs.windows(2) {
                let ((_, _, stopped, then), (_, next, ..)) = (pair[0], pair[1]);
                let Then::Waits(call, _) = then else { continue };
                let first = matched.partition_point(|it| it.0 < stopped);
                let Some((at, message)) = matched.get(first).filter(|it| it.0 <= next) else {
                    continue;
                };
                let key = (message.from, message.to, message.sequence);
                if let Some(sent) = sent.get(&key).filter(|sent| **sent > stopped) {
                    let entry = waited.entry(message.from).or_insert((0.0, call));
                    entry.0 += ((*sent).min(*at) - stopped) as f64 / 1e9;
                }
            }
        }
        let total: f64 = waited.values().map(|it| it.0).sum();
        let (rank, (seconds, call)) = waited.iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
        let idle: f64 = self.all.pes.values().map(|pe| pe.idle).sum();
        let part = idle.min(total) / (self.all.seconds * self.pes).max(f64::MIN_POSITIVE);
        // Many ranks that wait for each other a little are no late senders: one of them stands out.
        let stands_out = *seconds > total / 2.0;
        (part > LATE && stands_out).then(|| Advice::Late {
            part,
            rank: *rank,
            seconds: *seconds,
            call: self.trace.name(*call).to_owned(),
        })
    }
}
