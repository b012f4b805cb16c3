//! A balancing step, as PE 0 sees it.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::balance::Moved;
use crate::balance::database::{Database, Verdict};
use crate::balance::dump::DumpError;
use crate::balance::measure::PeLoad;
use crate::config::Balancing;
use crate::net::shared::Shared;

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
    database: Database,
    verdict: Verdict,
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
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
}

/// What a PE and its ranks have cost since the last step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Loads {
    pub(crate) pe: PeLoad,
    pub(crate) ranks: Vec<RankLoad>,
    /// If the strategy wants to know: from which rank to which, messages and bytes since the job
    /// began.
    pub(crate) sent: Vec<(u32, u32, u64, u64)>,
}

/// What a rank has cost since the last step.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RankLoad {
    pub(crate) rank: u32,
    /// Time run.
    pub(crate) seconds: f64,
    /// Live bytes of its heap and stack.
    pub(crate) bytes: u64,
    pub(crate) pinned: bool,
    pub(crate) coordinates: Option<[f64; 3]>,
}

/// A rank is to go to another PE.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) rank: u32,
    pub(crate) to: u32,
}

impl Step {
    pub(crate) fn new(balancing: Balancing, shared: Shared) -> Step {
        let pes = shared.pes();
        Step {
            database: Database::new(&balancing, shared),
            balancing,
            stage: Stage::Resting,
            number: 0,
            begins_at: crate::pe::cycle_counter(),
            pes,
            waiting: vec![None; pes],
            verdict: Verdict::default(),
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
        Some(self.decide(&reports))
    }

    fn decide(&mut self, reports: &[Loads]) -> Vec<Vec<Order>> {
        let _span = tracing::debug_span!("decide", step = self.number).entered();
        self.stage = Stage::Moving(self.pes);
        let began = Instant::now();
        let (orders, verdict) = self.database.decide(self.number, reports);
        self.verdict = verdict;
        self.outcome.nanoseconds = began.elapsed().as_nanos() as u64;
        orders
    }

    /// A PE has moved what it could.
    pub(crate) fn moved(&mut self, step: u32, moved: Moved) {
        let Stage::Moving(left) = &mut self.stage else { return };
        if step != self.number {
            return;
        }
        self.outcome.add(&moved);
        *left -= 1;
        if *left == 0 {
            self.stage = Stage::Resting;
            self.finish();
        }
    }

    fn finish(&mut self) {
        let outcome = std::mem::take(&mut self.outcome);
        self.totals.steps += 1;
        self.totals.moved += u64::from(outcome.moved);
        self.totals.stayed += u64::from(outcome.stayed);
        self.totals.bytes += outcome.bytes;
        self.totals.seconds += outcome.nanoseconds as f64 * 1e-9;
        let Verdict { before, after, .. } = self.verdict;
        tracing::debug!(step = self.number, before, after, moved = outcome.moved, "step done");
        let news = outcome.moved + outcome.stayed > 0 || self.verdict.remark.is_some();
        if news && self.told.is_none_or(|told| told.elapsed() >= READABLE) {
            self.told = Some(Instant::now());
            self.tell(&outcome);
        }
    }

    /// One line about the step, and one of advice if there is any.
    fn tell(&self, outcome: &Moved) {
        let Verdict { before, after, ref remark, ref advice, .. } = self.verdict;
        let stayed = match (outcome.stayed, outcome.pinned) {
            (0, _) => String::new(),
            (stayed, 0) => format!(", {stayed} could not"),
            (stayed, pinned) => format!(", {stayed} could not ({pinned} pinned)"),
        };
        let bytes = match outcome.bytes {
            0 => String::new(),
            bytes => format!(" ({})", human_bytes(bytes)),
        };
        let remark = remark.as_ref().map(|text| format!("; {text}")).unwrap_or_default();
        crate::launch::crash::say(format_args!(
            "balancing step {} ({}): imbalance {before:.3} -> {after:.3}, {} moved{bytes}{stayed}, \
             {:.1} us{remark}",
            self.number,
            self.balancing.strategy.name(),
            if outcome.moved == 1 {
                "1 rank".to_owned()
            } else {
                format!("{} ranks", outcome.moved)
            },
            outcome.nanoseconds as f64 / 1e3
        ));
        if let Some(advice) = advice {
            crate::launch::crash::say(format_args!("  advice: {advice}"));
        }
    }

    /// Writes what was recorded of the loads, if that was asked for.
    pub(crate) fn write_dump(&self) -> Option<Result<(), DumpError>> {
        self.database.write_dump()
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }
}

/// A number of bytes for people.
pub(crate) fn human_bytes(bytes: u64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} B"),
        10_000..=9_999_999 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
