//! `--lb auto` in a running job: turns the reports of PEs into samples of [`Auto`], and its decisions into orders.

use std::time::Duration;

use lb_strategies::auto::{Account, Auto, MessageCost, PeState, Placed, Sample};
use lb_strategies::{Assignment, LoadModel};
use rustc_hash::FxHashMap;
use vrt_slot::report::count;

use crate::Balancing;
use crate::learn::{self, Learned};
use crate::reports::{Loads, Order, Verdict};

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Trials {
    auto: Auto,
    /// The findings of a previous run of the job.
    former: Option<Learned>,
    /// How often each rank had communicated at the last step.
    events: FxHashMap<u32, u64>,
    messages: Messages,
    /// The PE on which each rank was last seen.
    placement: Vec<u32>,
}

/// The PE of a rank that was never seen.
const UNKNOWN: u32 = u32::MAX;

impl Trials {
    /// The trials of a job with this many ranks and PEs, if it has any.
    pub(crate) fn of(balancing: &Balancing, ranks: usize, pes: usize) -> Option<Trials> {
        let interval = balancing.period.map(|period| period.as_secs_f64());
        let mut auto = Auto::new(balancing.auto.as_deref()?, interval);
        let learned = match &balancing.learn {
            Some(file) => learn::recall(file, &learn::name_of_job()).ok().flatten(),
            None => None,
        };
        let former = learned.filter(|it| (it.ranks, it.pes) == (ranks, pes));
        if let Some(former) = &former {
            let placement = former.placement.as_ref().map(|placement| {
                let placed = placement.iter().enumerate();
                placed.map(|(id, pe)| Placed { id: id as u32, pe: *pe as usize }).collect()
            });
            auto.begin_with(former.interval, placement);
        }
        let (events, messages) = (FxHashMap::default(), Messages::default());
        Some(Trials { auto, former, events, messages, placement: vec![UNKNOWN; ranks] })
    }

    /// The findings for the next run of the job. A run that finds nothing better keeps those of the previous run,
    /// unless they were worse than nothing.
    pub(crate) fn learned(&self, ranks: usize, pes: usize) -> Learned {
        let account = self.auto.account();
        let interval = self.auto.interval();
        let is_known = self.placement.iter().all(|pe| *pe != UNKNOWN);
        if account.kept > 0 && is_known {
            return Learned {
                ranks,
                pes,
                interval,
                placement: Some(self.placement.clone()),
                strategy: account.last_kept.clone(),
                gain: account.gained / account.seconds,
            };
        }
        match &self.former {
            Some(former) if former.placement.is_some() && !self.auto.has_refuted() => {
                Learned { interval, ..former.clone() }
            }
            _ => Learned { ranks, pes, interval, placement: None, strategy: None, gain: 0.0 },
        }
    }

    pub(crate) fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.auto.interval())
    }

    /// The orders for each PE, and what is to be reported.
    pub(crate) fn decide(
        &mut self,
        model: &LoadModel,
        ranks: &[u32],
        reports: &[Loads],
    ) -> (Vec<Vec<Order>>, Verdict) {
        let mut orders = vec![Vec::new(); reports.len()];
        self.messages.note(model, reports);
        let events = self.events_since(reports);
        let ran: f64 = reports.iter().flat_map(|it| &it.ranks).map(|it| it.seconds).sum();
        let switches: u64 = reports.iter().map(|it| it.pe.switches).sum();
        let pes: Vec<PeState> = reports
            .iter()
            .map(|it| PeState { share: it.pe.share.clamp(0.01, 1.0), slice: it.pe.slice })
            .collect();
        let seconds = reports.iter().map(|it| it.pe.seconds).fold(0.0, f64::max);
        let sample = Sample {
            seconds,
            model,
            ids: ranks,
            pes: &pes,
            events,
            grain: ran / switches.max(1) as f64,
            message_cost: self.messages.cost(),
        };
        let step = match self.auto.step(&sample) {
            Ok(step) => step,
            Err(error) => {
                tracing::warn!(%error, "the measured loads make no model");
                return (orders, Verdict::default());
            }
        };
        let today = Assignment::today(model);
        for (rank, pe) in ranks.iter().zip(today.pes()) {
            self.placement[*rank as usize] = *pe as u32;
        }
        let mut after: Vec<usize> = today.pes().to_vec();
        let objects: FxHashMap<u32, usize> =
            ranks.iter().enumerate().map(|(object, rank)| (*rank, object)).collect();
        for Placed { id, pe } in step.orders {
            let Some(&object) = objects.get(&id) else { continue };
            orders[model.objects()[object].pe].push(Order { rank: id, to: pe as u32 });
            after[object] = pe;
        }
        let before = today.imbalance(model);
        let after = Assignment::new(model, after).map_or(before, |it| it.imbalance(model));
        let remark = step.news.map(|news| news.to_string());
        (orders, Verdict { before, after, remark, advice: None })
    }

    /// How often all ranks together have communicated since the last step.
    fn events_since(&mut self, reports: &[Loads]) -> u64 {
        let ranks = reports.iter().flat_map(|report| &report.ranks);
        ranks
            .map(|load| {
                let before = self.events.insert(load.rank, load.events).unwrap_or(load.events);
                load.events.saturating_sub(before)
            })
            .sum()
    }

    /// The result of all trials, in words.
    pub(crate) fn account(&self) -> String {
        told(self.auto.account())
    }
}

/// The result of all trials, in words.
fn told(account: &Account) -> String {
    let Account { tried, kept, unclear, taken_back, gained, spread, .. } = *account;
    if tried == 0 {
        return "tried nothing: no placement promised a gain".to_owned();
    }
    let kept_last = match &account.last_kept {
        Some(name) => format!(" (at last {name})"),
        None => String::new(),
    };
    let error = account.median_error();
    let error = error.map_or_else(String::new, |error| {
        format!(
            "; the rate that came differs from the promised one by {:.1}% (median)",
            100.0 * error
        )
    });
    let were = if taken_back == 1 { "was" } else { "were" };
    let undecided = match tried.saturating_sub(kept + unclear + taken_back) {
        0 => String::new(),
        1 => ", 1 was not decided yet".to_owned(),
        some => format!(", {some} were not decided yet"),
    };
    // Trials that were taken back cost more than the others have brought.
    let what = if gained < 0.0 { "lost" } else { "gained" };
    format!(
        "tried {}: {kept} helped{kept_last}, of {unclear} no gain could be told from noise, \
         {taken_back} {were} taken back{undecided}; about {:.2} s {what} (+- {spread:.2}){error}",
        count(tried, "placement"),
        gained.abs()
    )
}

/// The cost of messages between nodes: the seconds that PEs were in the transport, by least squares over all steps so
/// far.
#[derive(Debug, Default)]
struct Messages {
    /// Sums of squares and products of messages, bytes and seconds.
    messages: f64,
    bytes: f64,
    both: f64,
    seconds_of_messages: f64,
    seconds_of_bytes: f64,
}

impl Messages {
    fn note(&mut self, model: &LoadModel, reports: &[Loads]) {
        let mut counts = vec![(0.0, 0.0); reports.len()];
        for edge in model.edges() {
            let pe = |object: usize| model.objects()[object].pe;
            let (from, to) = (pe(edge.from), pe(edge.to));
            if model.pes()[from].node != model.pes()[to].node {
                for pe in [from, to] {
                    counts[pe].0 += edge.messages as f64;
                    counts[pe].1 += edge.bytes as f64;
                }
            }
        }
        for ((messages, bytes), report) in counts.into_iter().zip(reports) {
            let seconds = report.pe.remote;
            self.messages += messages * messages;
            self.bytes += bytes * bytes;
            self.both += messages * bytes;
            self.seconds_of_messages += messages * seconds;
            self.seconds_of_bytes += bytes * seconds;
        }
    }

    /// Seconds per message and per byte. If all messages are equal, the whole cost is attributed to messages.
    fn cost(&self) -> MessageCost {
        let determinant = self.messages * self.bytes - self.both * self.both;
        if determinant > 1e-6 * self.messages * self.bytes {
            let fixed = (self.seconds_of_messages * self.bytes - self.seconds_of_bytes * self.both)
                / determinant;
            let per_byte = (self.seconds_of_bytes * self.messages
                - self.seconds_of_messages * self.both)
                / determinant;
            if fixed >= 0.0 && per_byte >= 0.0 {
                return MessageCost { fixed, per_byte };
            }
        }
        match self.messages > 0.0 {
            true => MessageCost { fixed: self.seconds_of_messages / self.messages, per_byte: 0.0 },
            false => MessageCost::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::PeLoad;
    use lb_strategies::{Edge, Object, Pe};

    /// All trials are reported, each once.
    #[test]
    fn what_was_lost_is_called_lost_and_what_is_not_decided_is_said() {
        let mut account = Account::default();
        (account.tried, account.kept, account.taken_back, account.gained) = (3, 1, 1, -3.84);
        let text = told(&account);
        assert!(text.starts_with("tried 3 placements: 1 helped, of 0 no gain"), "{text}");
        assert!(
            text.contains("1 was taken back, 1 was not decided yet; about 3.84 s lost"),
            "{text}"
        );
        (account.unclear, account.gained) = (1, 0.5);
        let text = told(&account);
        assert!(text.contains("1 was taken back; about 0.50 s gained (+- "), "{text}");
        assert!(told(&Account::default()).starts_with("tried nothing"));
    }

    #[test]
    fn a_run_that_finds_nothing_leaves_what_was_learned() {
        let found = Learned {
            ranks: 2,
            pes: 2,
            interval: 0.02,
            placement: Some(vec![1, 0]),
            strategy: Some("greedy".to_owned()),
            gain: 0.25,
        };
        let mut trials = Trials {
            auto: Auto::new(&[], None),
            former: Some(found.clone()),
            events: FxHashMap::default(),
            messages: Messages::default(),
            placement: vec![UNKNOWN; 2],
        };
        let interval = trials.auto.interval();
        assert_eq!(trials.learned(2, 2), Learned { interval, ..found });
        trials.former = None;
        assert_eq!(trials.learned(2, 2).placement, None);
    }

    #[test]
    fn what_messages_cost_is_found_out() {
        let mut found = Messages::default();
        for (messages, bytes) in [(1000, 5_000_000), (2000, 1_000_000), (500, 9_000_000)] {
            let pes = vec![Pe::default(), Pe { node: 1, ..Pe::default() }];
            let objects = vec![Object::new(0.1, 0), Object::new(0.1, 1)];
            let edges = vec![Edge { from: 0, to: 1, messages, bytes }];
            let model = LoadModel::new(pes, objects, edges).unwrap();
            let remote = 2e-6 * messages as f64 + 1e-9 * bytes as f64;
            let pe = PeLoad { seconds: 1.0, remote, ..PeLoad::default() };
            let report = || Loads { pe, ..Loads::default() };
            found.note(&model, &[report(), report()]);
        }
        let MessageCost { fixed, per_byte } = found.cost();
        assert!((fixed - 2e-6).abs() < 1e-9 && (per_byte - 1e-9).abs() < 1e-12, "{found:?}");
    }
}
