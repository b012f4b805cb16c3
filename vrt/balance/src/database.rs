//! The load database: turns the reports of PEs into the model that strategies decide on, and their
//! decisions into orders.
//!
//! Loads are seconds on a whole core of the fastest PE: the time that a rank ran, times the share
//! of its core and the relative speed of its PE. A PE's speed in the model is the same product, so
//! work leaves a PE that shares its core with another program, and returns afterwards.
//!
//! *Trigger.* A step moves ranks only if the gain until loads change (the strategy's `horizon`, in
//! steps) exceeds the cost of the moves, as measured so far.

use std::time::Duration;

use lb_strategies::predict::History;
use lb_strategies::{Assignment, Edge, LoadModel, MoveCost, Object, Pe};
use rustc_hash::FxHashMap;

use crate::dump::{Dump, DumpError};
use crate::learn::LearnError;
use crate::measure::Moving;
use crate::reports::{Loads, Order, Verdict};
use crate::trials::Trials;
use crate::{Balancing, learn};
use vrt_core::net::shared::Shared;

/// PEs whose speeds differ by less than this count as equal.
const ALIKE: f64 = 0.1;
/// An imbalance above this is reported.
const NOTABLE: f64 = 0.05;

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Database {
    balancing: Balancing,
    shared: Shared,
    history: History,
    dump: Option<Dump>,
    /// What each rank had sent to each other rank at the last step.
    sent: FxHashMap<(u32, u32), (u64, u64)>,
    moving: Moving,
    trials: Option<Trials>,
}

impl Database {
    pub(crate) fn new(balancing: &Balancing, shared: Shared) -> Database {
        Database {
            balancing: balancing.clone(),
            shared,
            history: History::new(balancing.forecast),
            dump: balancing.dump.as_deref().map(Dump::new),
            sent: FxHashMap::default(),
            moving: Moving::default(),
            trials: Trials::of(balancing, shared.ranks(), shared.pes()),
        }
    }

    /// Seconds to the next step, unless the user has set them.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.trials.as_ref().map(Trials::interval)
    }

    /// The result of the trials.
    pub(crate) fn account(&self) -> Option<String> {
        self.trials.as_ref().map(Trials::account)
    }

    /// The orders for each PE.
    pub(crate) fn decide(&mut self, step: u32, reports: &[Loads]) -> (Vec<Vec<Order>>, Verdict) {
        let mut orders = vec![Vec::new(); self.shared.pes()];
        for report in reports {
            self.moving.add(&report.pe.moving);
        }
        // Predictions are its own.
        let forecasts = self.trials.is_none();
        let (model, ranks) = match self.model(reports, forecasts) {
            Ok(it) => it,
            Err(error) => {
                tracing::warn!(%error, "the measured loads make no model");
                return (orders, Verdict::default());
            }
        };
        if let Some(dump) = &mut self.dump {
            let pes = reports.iter().map(|report| report.pe);
            dump.add(&model, &ranks, |rank| self.shared.home_of(rank).unwrap_or(0), pes);
        }
        if let Some(trials) = &mut self.trials {
            let (orders, mut verdict) = trials.decide(&model, &ranks, reports);
            if verdict.after > NOTABLE {
                verdict.advice = advice(&model, &Assignment::today(&model), &ranks);
            }
            return (orders, verdict);
        }
        let Balancing { strategy, config, .. } = &self.balancing;
        let today = Assignment::today(&model);
        let assignment = strategy.assign(&model, config, u64::from(step));
        for change in assignment.moves(&model) {
            let order = Order { rank: ranks[change.object], to: change.to as u32 };
            orders[change.from].push(order);
        }
        let mut verdict = Verdict {
            before: today.imbalance(&model),
            after: assignment.imbalance(&model),
            ..Verdict::default()
        };
        if orders.iter().all(Vec::is_empty) && verdict.before > NOTABLE {
            verdict.remark = self.why_not(&model, step);
        }
        if verdict.after > NOTABLE && !strategy.is_chaos() {
            verdict.advice = advice(&model, &assignment, &ranks);
        }
        (orders, verdict)
    }

    fn model(
        &mut self,
        reports: &[Loads],
        forecasts: bool,
    ) -> Result<(LoadModel, Vec<u32>), lb_strategies::LoadModelError> {
        let fastest = reports.iter().map(|report| report.pe.speed).fold(0.0, f64::max);
        let mut pes = Vec::new();
        let mut ranks = Vec::new();
        let mut objects = Vec::new();
        for (number, report) in reports.iter().enumerate() {
            let relative = report.pe.speed / fastest.max(f64::MIN_POSITIVE);
            let relative = if relative > 1.0 - ALIKE { 1.0 } else { relative };
            let share = if report.pe.share > 1.0 - ALIKE { 1.0 } else { report.pe.share };
            // A PE that has not reported (it has no ranks) is like the others.
            let speed = if report.pe.seconds > 0.0 { relative * share } else { 1.0 };
            let node = self.shared.node_of(number as u32);
            pes.push(Pe { speed, background: 0.0, node });
            for load in &report.ranks {
                let seconds = (load.seconds * speed).max(0.0);
                let seconds = if forecasts { self.predict(load.rank, seconds) } else { seconds };
                let mut object = Object::new(seconds, number).with_bytes(load.bytes);
                object.migratable = !load.pinned;
                object.coordinates = load.coordinates;
                objects.push(object);
                ranks.push(load.rank);
            }
        }
        let edges = self.edges(reports, &ranks);
        let Moving { ranks: moved, seconds, bytes, copying } = self.moving;
        let cost = MoveCost {
            fixed: seconds / moved.max(1) as f64,
            per_byte: copying / bytes.max(1) as f64,
        };
        let model = LoadModel::new(pes, objects, edges)?.with_move_cost(cost)?;
        Ok((model, ranks))
    }

    /// The expected load of a rank until the next step, after this load.
    fn predict(&mut self, rank: u32, seconds: f64) -> f64 {
        let rank = u64::from(rank);
        let noted = self.history.push(rank, seconds.max(0.0));
        noted.ok().and_then(|()| self.history.predict(rank)).unwrap_or(0.0)
    }

    /// Writes the recorded loads, if that was requested.
    pub(crate) fn write_dump(&self) -> Option<Result<(), DumpError>> {
        self.dump.as_ref().map(Dump::write)
    }

    /// Keeps the findings for the next run, if that was requested.
    pub(crate) fn keep_learned(&self) -> Option<Result<(), LearnError>> {
        let file = self.balancing.learn.as_deref()?;
        let learned = self.trials.as_ref()?.learned(self.shared.ranks(), self.shared.pes());
        Some(learn::keep(file, learn::name_of_job(), learned))
    }

    /// What ranks have sent to each other since the last step.
    fn edges(&mut self, reports: &[Loads], ranks: &[u32]) -> Vec<Edge> {
        if reports.iter().all(|report| report.sent.is_empty()) {
            return Vec::new();
        }
        let objects: FxHashMap<u32, usize> =
            ranks.iter().enumerate().map(|(object, rank)| (*rank, object)).collect();
        let mut edges = Vec::new();
        for &(from, to, messages, bytes) in reports.iter().flat_map(|report| &report.sent) {
            let before = self.sent.insert((from, to), (messages, bytes)).unwrap_or_default();
            let (Some(&from), Some(&to)) = (objects.get(&from), objects.get(&to)) else { continue };
            let (messages, bytes) =
                (messages.saturating_sub(before.0), bytes.saturating_sub(before.1));
            if messages > 0 {
                edges.push(Edge { from, to, messages, bytes });
            }
        }
        edges
    }

    /// Why nothing moves although the PEs are not balanced.
    fn why_not(&self, model: &LoadModel, step: u32) -> Option<String> {
        let Balancing { strategy, config, .. } = &self.balancing;
        // What it would do if moves cost nothing.
        let free = model.clone().with_move_cost(MoveCost::default()).ok()?;
        let mut proposal = strategy.propose(&free, config, u64::from(step));
        for (pe, object) in proposal.iter_mut().zip(model.objects()) {
            if !object.migratable {
                *pe = object.pe;
            }
        }
        let proposal = Assignment::new(model, proposal).ok()?;
        let gain = Assignment::today(model).max_load(model) - proposal.max_load(model);
        let moves = proposal.moves(model).count();
        let cost = proposal.move_seconds(model);
        (gain > 0.0 && moves > 0).then(|| {
            format!(
                "{moves} moves would gain {:.1} us a step and cost {:.1} us: not worth it",
                gain * 1e6,
                cost * 1e6
            )
        })
    }
}

/// What the user could do about an imbalance that no move reduces.
fn advice(model: &LoadModel, assignment: &Assignment, ranks: &[u32]) -> Option<String> {
    let loads = assignment.pe_loads(model);
    let mean = loads.iter().sum::<f64>() / loads.len() as f64;
    let busiest = loads.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?.0;
    let on_busiest = |object: &usize| assignment.pes()[*object] == busiest;
    let there: Vec<usize> = (0..ranks.len()).filter(on_busiest).collect();
    let pinned: f64 = there
        .iter()
        .filter(|object| !model.objects()[**object].migratable)
        .map(|object| model.seconds_on(*object, busiest))
        .sum();
    if pinned > mean {
        return Some(format!(
            "{:.0}% of what PE {busiest} does is ranks that are pinned there",
            100.0 * pinned / loads[busiest]
        ));
    }
    let heaviest = there
        .into_iter()
        .max_by(|a, b| model.seconds_on(*a, busiest).total_cmp(&model.seconds_on(*b, busiest)))?;
    // By its load: that a PE is slow, because something else runs there, is no rank's.
    let load = |object: usize| model.objects()[object].load;
    let all: f64 = (0..ranks.len()).map(load).sum();
    let alone = load(heaviest) / (all / loads.len() as f64);
    // What one rank does while all others are done, or wait for it to check the result, is no iteration.
    let is_iteration = load(heaviest) < 0.95 * all;
    (alone > 0.25 && is_iteration).then(|| {
        format!(
            "rank {} alone is {:.0}% of what a PE should do: with more ranks, work would be \
             spread more evenly",
            ranks[heaviest],
            100.0 * alone
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::PeLoad;
    use crate::reports::RankLoad;
    use vrt_core::migrate::MoveBy;

    fn database(strategy: &str) -> Database {
        let strategy = lb_strategies::find(strategy).unwrap();
        let config = lb_strategies::Config::parse(strategy, "").unwrap();
        let balancing = Balancing {
            strategy,
            config,
            auto: None,
            period: None,
            move_by: MoveBy::Memory,
            move_pinned: crate::MovePinned::Warn,
            forecast: Default::default(),
            dump: None,
            learn: None,
            report: crate::LbReport::Off,
        };
        Database::new(&balancing, Shared::map(2, 16, 2).unwrap())
    }

    fn report(share: f64, ranks: &[(u32, f64)]) -> Loads {
        let rank = |&(rank, seconds): &(u32, f64)| RankLoad {
            rank,
            seconds,
            bytes: 0,
            pinned: false,
            held: false,
            coordinates: None,
            events: 0,
        };
        Loads {
            pe: PeLoad { seconds: 1.0, share, speed: 1e9, ..PeLoad::default() },
            ranks: ranks.iter().map(rank).collect(),
            ..Loads::default()
        }
    }

    #[test]
    fn ranks_leave_a_pe_that_shares_its_core() {
        let halves = [(0, 0.25), (1, 0.25), (2, 0.25), (3, 0.25)];
        let slow = [(4, 0.5), (5, 0.5), (6, 0.5), (7, 0.5)];
        let mut database = database("greedy-refine");
        let (orders, verdict) = database.decide(1, &[report(1.0, &halves), report(0.5, &slow)]);
        assert!(orders[0].is_empty() && orders[1].len() == 1, "{orders:?}");
        assert!(verdict.before > 0.3 && verdict.after < 0.1, "{verdict:?}");
    }

    #[test]
    fn moves_that_cost_more_than_they_gain_are_left_and_that_is_said() {
        let loads = [(0, 1e-6), (1, 1e-6)];
        let mut database = database("greedy");
        let mut costly = report(1.0, &loads);
        costly.pe.moving = Moving { ranks: 1, seconds: 10.0, bytes: 0, copying: 0.0 };
        let (orders, verdict) = database.decide(1, &[costly, report(1.0, &[])]);
        assert!(orders.iter().all(Vec::is_empty));
        let remark = verdict.remark.unwrap();
        assert!(remark.contains("gain 1.0 us") && remark.contains("not worth it"), "{remark}");
    }

    #[test]
    fn one_giant_rank_brings_advice() {
        let (_, verdict) =
            database("greedy").decide(1, &[report(1.0, &[(7, 3.0)]), report(1.0, &[(8, 1.0)])]);
        let advice = verdict.advice.unwrap();
        assert!(advice.contains("rank 7 alone is 150%"), "{advice}");
    }

    #[test]
    fn communication_is_counted_from_step_to_step() {
        let mut database = database("greedy-comm");
        let mut reports = [report(1.0, &[(3, 1.0)]), report(1.0, &[(9, 1.0)])];
        reports[0].sent = vec![(3, 9, 10, 1000)];
        let edges = |database: &mut Database, reports: &[Loads]| {
            database.model(reports, true).unwrap().0.edges().to_vec()
        };
        let one = [Edge { from: 0, to: 1, messages: 10, bytes: 1000 }];
        assert_eq!(edges(&mut database, &reports), one);
        reports[0].sent = vec![(3, 9, 12, 1100)];
        let next = [Edge { from: 0, to: 1, messages: 2, bytes: 100 }];
        assert_eq!(edges(&mut database, &reports), next);
    }
}
