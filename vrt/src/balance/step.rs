//! A balancing step, as PE 0 sees it.

use lb_strategies::{LoadModel, Object, Pe};
use serde::{Deserialize, Serialize};

use crate::config::Balancing;

/// The state of the steps.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) balancing: Balancing,
    pub(crate) stage: Stage,
    /// Number of the step under way, or of the last one.
    pub(crate) number: u32,
    pes: usize,
    totals: Totals,
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
        Step { balancing, stage: Stage::Resting, number: 0, pes, totals: Totals::default() }
    }

    pub(crate) fn begin(&mut self) {
        self.number = self.number.wrapping_add(1);
        self.stage = Stage::Asking(vec![None; self.pes]);
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
    pub(crate) fn moved(&mut self, step: u32, moved: u32, stayed: u32) {
        let Stage::Moving(left) = &mut self.stage else { return };
        if step != self.number {
            return;
        }
        self.totals.moved += u64::from(moved);
        self.totals.stayed += u64::from(stayed);
        *left -= 1;
        if *left == 0 {
            self.totals.steps += 1;
            self.stage = Stage::Resting;
            tracing::debug!(step, moved = self.totals.moved, "balancing step done");
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    fn decide(&self, reports: &[Loads]) -> Vec<Vec<Order>> {
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
        for change in assignment.moves(&model) {
            let order = Order { rank: ranks[change.object], to: change.to as u32 };
            orders[change.from].push(order);
        }
        orders
    }
}
