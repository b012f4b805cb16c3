//! A balancing step, as PE 0 sees it.

use std::time::{Duration, Instant};

use lb_strategies::{Assignment, LoadModel, Object, Pe};
use serde::{Deserialize, Serialize};

use crate::balance::Moved;
use crate::config::Balancing;

/// Of steps that come faster than this, only some are told.
const READABLE: Duration = Duration::from_millis(100);

/// The state of the steps.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) balancing: Balancing,
    pub(crate) stage: Stage,
    /// Number of the step under way, or of the last one.
    pub(crate) number: u32,
    /// Cycle counter at which the next one begins, if they go by time.
    pub(crate) begins_at: u64,
    pes: usize,
    /// What the PEs have reported whose ranks all wait in `migrate`.
    waiting: Vec<Option<Loads>>,
    /// Load of the busiest PE over the mean, less 1, before the step and as predicted.
    imbalance: (f64, f64),
    /// Of the step under way.
    outcome: Moved,
    totals: Totals,
    /// When the last line about a step was printed.
    told: Option<Instant>,
}

/// How far a step is.
#[derive(Debug)]
pub(crate) enum Stage {
    Resting,
    /// What the PEs have answered so far.
    Asking(Vec<Option<Loads>>),
    /// How many PEs have not said yet that they are done.
    Moving(usize),
}

/// What the steps have done in all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) steps: u32,
    pub(crate) moved: u64,
    pub(crate) stayed: u64,
}

/// What the ranks of a PE have cost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Loads {
    pub(crate) ranks: Vec<RankLoad>,
}

/// What a rank has cost since the last step.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RankLoad {
    pub(crate) rank: u32,
    pub(crate) seconds: f64,
    /// Live bytes of its heap.
    pub(crate) bytes: u64,
    pub(crate) pinned: bool,
}

/// A rank is to go to another PE.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) rank: u32,
    pub(crate) to: u32,
}

impl Step {
    pub(crate) fn new(balancing: Balancing, pes: usize) -> Step {
        Step {
            balancing,
            stage: Stage::Resting,
            number: 0,
            begins_at: crate::pe::cycle_counter(),
            pes,
            waiting: vec![None; pes],
            imbalance: (0.0, 0.0),
            outcome: Moved::default(),
            totals: Totals::default(),
            told: None,
        }
    }

    /// Begins a step by asking all PEs.
    pub(crate) fn ask(&mut self) {
        self.number = self.number.wrapping_add(1);
        self.stage = Stage::Asking(vec![None; self.pes]);
    }

    /// All ranks of a PE wait in `migrate`; the orders when all of the `left` ranks that have not
    /// ended do.
    pub(crate) fn arrived(
        &mut self,
        from: u32,
        loads: Loads,
        left: u32,
    ) -> Option<Vec<Vec<Order>>> {
        self.waiting[from as usize] = Some(loads);
        let arrived: usize = self.waiting.iter().flatten().map(|loads| loads.ranks.len()).sum();
        if arrived != left as usize || left == 0 {
            return None;
        }
        let all = std::mem::replace(&mut self.waiting, vec![None; self.pes]);
        let reports: Vec<Loads> = all.into_iter().map(Option::unwrap_or_default).collect();
        self.number = self.number.wrapping_add(1);
        self.stage = Stage::Moving(self.pes);
        Some(self.decide(&reports))
    }

    /// A PE has answered; the orders for each PE when all have.
    pub(crate) fn report(&mut self, step: u32, from: u32, loads: Loads) -> Option<Vec<Vec<Order>>> {
        let Stage::Asking(reports) = &mut self.stage else { return None };
        if step != self.number {
            return None;
        }
        reports[from as usize] = Some(loads);
        if reports.iter().any(Option::is_none) {
            return None;
        }
        let reports: Vec<Loads> = std::mem::take(reports).into_iter().flatten().collect();
        self.stage = Stage::Moving(self.pes);
        Some(self.decide(&reports))
    }

    /// A PE has moved what it could.
    pub(crate) fn moved(&mut self, step: u32, moved: Moved) {
        let Stage::Moving(left) = &mut self.stage else { return };
        if step != self.number {
            return;
        }
        self.totals.moved += u64::from(moved.moved);
        self.totals.stayed += u64::from(moved.stayed);
        self.outcome.moved += moved.moved;
        self.outcome.stayed += moved.stayed;
        self.outcome.pinned += moved.pinned;
        self.outcome.nanoseconds = self.outcome.nanoseconds.max(moved.nanoseconds);
        *left -= 1;
        if *left == 0 {
            self.totals.steps += 1;
            self.stage = Stage::Resting;
            self.report_step();
        }
    }

    /// One line about the step, unless steps come too fast to be read.
    fn report_step(&mut self) {
        let outcome = std::mem::take(&mut self.outcome);
        let (before, after) = self.imbalance;
        let step = self.number;
        tracing::debug!(step, before, after, moved = outcome.moved, "balancing step done");
        let readable = self.told.is_none_or(|told| told.elapsed() >= READABLE);
        if !readable || outcome.moved + outcome.stayed == 0 {
            return;
        }
        self.told = Some(Instant::now());
        let stayed = match (outcome.stayed, outcome.pinned) {
            (0, _) => String::new(),
            (stayed, 0) => format!(", {stayed} could not"),
            (stayed, pinned) => format!(", {stayed} could not ({pinned} pinned)"),
        };
        crate::launch::crash::say(format_args!(
            "balancing step {step} ({}): imbalance {before:.3} -> {after:.3}, {} ranks moved{stayed}, \
             {:.1} us",
            self.balancing.strategy.name(),
            outcome.moved,
            outcome.nanoseconds as f64 / 1e3
        ));
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    fn decide(&mut self, reports: &[Loads]) -> Vec<Vec<Order>> {
        let mut orders = vec![Vec::new(); self.pes];
        let mut ranks = Vec::new();
        let mut objects = Vec::new();
        for (pe, loads) in reports.iter().enumerate() {
            for load in &loads.ranks {
                let object = Object::new(load.seconds, pe).with_bytes(load.bytes);
                objects.push(if load.pinned { object.pinned() } else { object });
                ranks.push(load.rank);
            }
        }
        let model = match LoadModel::new(vec![Pe::default(); self.pes], objects, vec![]) {
            Ok(model) => model,
            Err(error) => {
                tracing::warn!(%error, "the measured loads make no model");
                return orders;
            }
        };
        let Balancing { strategy, config, .. } = &self.balancing;
        let assignment = strategy.assign(&model, config, u64::from(self.number));
        self.imbalance =
            (Assignment::today(&model).imbalance(&model), assignment.imbalance(&model));
        for change in assignment.moves(&model) {
            let order = Order { rank: ranks[change.object], to: change.to as u32 };
            orders[change.from].push(order);
        }
        orders
    }
}
