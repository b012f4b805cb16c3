//! A balancing step, from PE 0's point of view.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytesize::ByteSize;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::database::Database;
use crate::dump::DumpError;
use crate::learn::LearnError;
use crate::looks::Looks;
use crate::outcome::{Moved, Stayed};
use crate::reports::{Loads, Order, RankLoad, Verdict};
use crate::stopwatch::Stopwatch;
use crate::{Balancing, LbReport};
use vrt_core::net::shared::Shared;
use vrt_core::pe::{self, Core, Event, Placed};
use vrt_slot::report::{self, count};

/// The most pinned ranks for which a PE reports the reason in a step.
pub(crate) const PINNED_TOLD: usize = 4;

/// The state of the steps.
#[derive(Debug)]
pub(crate) struct Step {
    pub balancing: Balancing,
    pub(crate) stage: Stage,
    /// Number of the step under way, or of the last one.
    pub number: u32,
    /// Cycle counter at which the next one begins, if steps are taken by time.
    pub(crate) begins_at: u64,
    pes: usize,
    /// The reports of PEs whose ranks all wait in `migrate`.
    waiting: Vec<Option<Loads>>,
    database: Database,
    verdict: Verdict,
    /// Where ranks were and are to go, for an observer.
    placed: Vec<Placed>,
    /// Why some could not move, for the same observer.
    kept: Vec<(u32, String)>,
    /// The outcome of the step under way.
    outcome: Moved,
    /// The cost of measuring and deciding, and the time that PEs report for copying ranks.
    looking: Duration,
    looks: Looks,
    copying: Vec<Duration>,
    /// Ranks that PEs have sent in this step, minus those that have arrived; a rank may arrive
    /// before its PE has reported its departure.
    under_way: i64,
    /// The cost of the last completed step, until it is asked for.
    cost: Option<Duration>,
    totals: Totals,
}

/// The progress of a step.
#[derive(Debug)]
pub(crate) enum Stage {
    Resting,
    /// The answers of PEs so far.
    Asking(Vec<Option<Loads>>),
    /// The number of PEs that have not reported completion. When all have, ranks may still be in
    /// flight; the step ends when they have arrived.
    Moving(usize),
}

/// Totals of all steps.
#[derive(Clone, Debug, Default)]
struct Totals {
    steps: u32,
    not_worth_it: u32,
    moved: u64,
    stayed: Stayed,
    bytes: u64,
    seconds: f64,
    /// Sums over the steps: imbalance as found, and as decided.
    before: f64,
    after: f64,
    /// The ranks that were ever held when a step began, and the reasons for the first of them.
    held: FxHashSet<u32>,
    reasons: BTreeMap<u32, String>,
    /// The last advice, and the number of steps that had one.
    advice: Option<String>,
    advised: u32,
}

impl Totals {
    /// Advice that holds for the whole job, not for a few steps of it, as when ranks begin and end.
    fn lasting_advice(&self) -> Option<&str> {
        self.advice.as_deref().filter(|_| 2 * self.advised >= self.steps)
    }
}

impl Step {
    pub(crate) fn new(balancing: Balancing, shared: Shared) -> Step {
        let pes = shared.pes();
        Step {
            database: Database::new(&balancing, shared),
            balancing,
            stage: Stage::Resting,
            number: 0,
            begins_at: pe::cycle_counter(),
            pes,
            waiting: vec![None; pes],
            verdict: Verdict::default(),
            placed: Vec::new(),
            kept: Vec::new(),
            outcome: Moved::default(),
            looking: Duration::ZERO,
            looks: Looks::new(),
            copying: vec![Duration::ZERO; pes],
            under_way: 0,
            cost: None,
            totals: Totals::default(),
        }
    }

    /// Begins a step by asking all PEs.
    pub(crate) fn ask(&mut self) {
        self.number = self.number.wrapping_add(1);
        self.stage = Stage::Asking(vec![None; self.pes]);
    }

    /// All ranks of a PE wait in `migrate`; returns the orders once all of the `left` ranks that
    /// have not ended do.
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

    /// A PE has answered; returns the orders for each PE once all have.
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
        let began = Stopwatch::start();
        for (rank, why) in reports.iter().flat_map(|report| &report.held) {
            if self.totals.reasons.len() < PINNED_TOLD {
                self.totals.reasons.entry(*rank).or_insert_with(|| why.clone());
            }
        }
        let held = reports.iter().flat_map(|report| &report.ranks).filter(|load| load.held);
        self.totals.held.extend(held.map(|load| load.rank));
        let (orders, verdict) = self.database.decide(self.number, reports);
        self.verdict = verdict;
        if pe::is_observed() {
            self.placed = placed(reports, &orders);
            self.kept = reports.iter().flat_map(|report| report.held.clone()).collect();
        }
        self.outcome.nanoseconds = began.elapsed().as_nanos() as u64;
        let asking = reports.iter().map(|report| report.nanoseconds).max().unwrap_or_default();
        self.looking = began.elapsed() + Duration::from_nanos(asking);
        self.looks.add(self.looking, Instant::now());
        orders
    }

    /// Reports the decision to an observer, if there is one.
    pub(crate) fn show(&mut self, core: &mut Core) {
        let ranks = std::mem::take(&mut self.placed);
        if core.has_observer() && !ranks.is_empty() {
            let (number, strategy) = (self.number, self.balancing.name());
            core.observe(Event::Step { number, strategy, ranks: &ranks });
            for (rank, why) in self.kept.drain(..) {
                core.observe(Event::Stays { rank, why: &why });
            }
        }
    }

    /// A PE has moved what it could.
    pub(crate) fn moved(&mut self, step: u32, moved: &Moved) {
        let Stage::Moving(left) = &mut self.stage else { return };
        if step != self.number {
            return;
        }
        self.outcome.add(moved);
        self.under_way += i64::from(moved.under_way);
        *left -= 1;
        self.finish_if_over();
    }

    /// Ranks that were moved in this step have arrived at a PE, where copying took this long.
    pub(crate) fn came(&mut self, pe: u32, ranks: u32, copying: Duration) {
        self.copying[pe as usize] += copying;
        self.under_way -= i64::from(ranks);
        self.finish_if_over();
    }

    /// Time to the next step, unless the user has set it.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.database.interval()
    }

    /// How long to wait before the next measurement, so that measuring does not cost too much.
    pub(crate) fn rest_of_looks(&self) -> Duration {
        self.looks.rest()
    }

    /// The cost of the step that has just ended.
    pub(crate) fn take_cost(&mut self) -> Option<Duration> {
        self.cost.take()
    }

    fn finish_if_over(&mut self) {
        if matches!(self.stage, Stage::Moving(0)) && self.under_way == 0 {
            self.finish("");
        }
    }

    /// The job has ended. A step whose orders were given counts, with the outcome known so far.
    pub(crate) fn close(&mut self) {
        if matches!(self.stage, Stage::Moving(_)) {
            self.finish("; the job was over first");
        }
    }

    /// Completes the step; `how` describes it.
    fn finish(&mut self, how: &str) {
        self.stage = Stage::Resting;
        let outcome = std::mem::take(&mut self.outcome);
        // Not the time from the beginning to the end: that PEs answer and take ranks in when their
        // own ranks let them keeps nobody from running.
        let copying = self.copying.iter().max().copied().unwrap_or_default();
        self.copying.fill(Duration::ZERO);
        let cost = self.looking + Duration::from_nanos(outcome.nanoseconds) + copying;
        self.cost = Some(cost);
        self.totals.seconds += cost.as_secs_f64();
        self.count(&outcome);
        let Verdict { before, after, .. } = self.verdict;
        tracing::debug!(step = self.number, before, after, moved = outcome.moved, "step done");
        let has_news = self.balancing.auto.is_none() || self.verdict.remark.is_some();
        if self.balancing.report == LbReport::Steps && has_news {
            self.tell(&outcome, how);
        }
    }

    fn count(&mut self, outcome: &Moved) {
        let Verdict { before, after, ref remark, ref advice } = self.verdict;
        self.totals.steps += 1;
        self.totals.not_worth_it += u32::from(remark.is_some() && self.balancing.auto.is_none());
        self.totals.moved += u64::from(outcome.moved);
        self.totals.stayed.add(&outcome.stayed);
        self.totals.bytes += outcome.bytes;
        self.totals.before += before;
        self.totals.after += after;
        if advice.is_some() {
            self.totals.advice.clone_from(advice);
            self.totals.advised += 1;
        }
    }

    /// Prints one line about the step, and one of advice if there is any.
    fn tell(&self, outcome: &Moved, how: &str) {
        let Verdict { before, after, ref remark, ref advice } = self.verdict;
        let stayed = match outcome.stayed.all() {
            0 => String::new(),
            number => format!(", {number} could not ({})", outcome.stayed),
        };
        let bytes = match outcome.bytes {
            0 => String::new(),
            bytes => format!(" ({})", ByteSize(bytes)),
        };
        let remark = remark.as_ref().map(|text| format!("; {text}")).unwrap_or_default();
        report::say(format_args!(
            "balancing step {} ({}): imbalance {before:.3} -> {after:.3}, {} moved{bytes}{stayed}, \
             {:.1} us{how}{remark}",
            self.number,
            self.balancing.name(),
            count(outcome.moved, "rank"),
            outcome.nanoseconds as f64 / 1e3
        ));
        if let Some(advice) = advice {
            report::say(format_args!("  advice: {advice}"));
        }
    }

    /// Prints a few lines about all steps.
    pub(crate) fn tell_totals(&self) {
        let Totals { steps, not_worth_it, moved, ref stayed, bytes, seconds, .. } = self.totals;
        if steps == 0 {
            let why = match self.balancing.is_periodic() {
                true => "the job was over before the first one",
                false => {
                    "one is taken when all ranks have called `migrate`, and they never did; \
                     --lb-period 200ms takes steps by time"
                }
            };
            return report::say(format_args!(
                "load balancing: {}: no step was taken: {why}",
                self.balancing.name()
            ));
        }
        let mean = |sum: f64| sum / f64::from(steps.max(1));
        let bytes = match bytes {
            0 => String::new(),
            bytes => format!(" ({})", ByteSize(bytes)),
        };
        let not_worth_it = match not_worth_it {
            0 => String::new(),
            some => format!(", {some} of them not worth a move"),
        };
        let stayed = match stayed.all() {
            0 => String::new(),
            number => format!("; {} not followed: {stayed}", count(number, "order")),
        };
        report::say(format_args!(
            "load balancing: {}: {}{not_worth_it}, {} moved{bytes} in {seconds:.3} s; \
             imbalance on average {:.3} before a step and {:.3} after{stayed}",
            self.balancing.name(),
            count(steps, "step"),
            count(moved, "rank"),
            mean(self.totals.before),
            mean(self.totals.after),
        ));
        if let Some(account) = self.database.account() {
            report::say(format_args!("  {account}"));
        }
        for (rank, why) in &self.totals.reasons {
            report::say(format_args!("  pinned: rank {rank}: {why}"));
        }
        if let more @ 1.. = self.totals.held.len() - self.totals.reasons.len() {
            report::say(format_args!("  pinned: {} more", count(more as u64, "rank")));
        }
        if let Some(advice) = self.totals.lasting_advice() {
            report::say(format_args!("  advice: {advice}"));
        }
    }

    /// Keeps the findings for the next run, if that was requested.
    pub(crate) fn keep_learned(&self) -> Option<Result<(), LearnError>> {
        self.database.keep_learned()
    }

    /// Writes the recorded loads, if that was requested.
    pub(crate) fn write_dump(&self) -> Option<Result<(), DumpError>> {
        self.database.write_dump()
    }
}

/// Where each rank was when PEs reported, and where it goes.
fn placed(reports: &[Loads], orders: &[Vec<Order>]) -> Vec<Placed> {
    let orders = orders.iter().flatten().map(|Order { rank, to }| (*rank, *to));
    let orders: FxHashMap<u32, u32> = orders.collect();
    let reports = (0..).zip(reports);
    let ranks = reports.flat_map(|(at, report)| report.ranks.iter().map(move |load| (at, load)));
    ranks
        .map(|(at, load)| {
            let RankLoad { rank, seconds, bytes, pinned, .. } = *load;
            let to = orders.get(&rank).copied().unwrap_or(at);
            Placed { rank, at, to, seconds, bytes, pinned }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MovePinned;
    use crate::measure::PeLoad;
    use vrt_core::migrate::MoveBy;

    fn step(pes: usize) -> Step {
        let strategy = lb_strategies::find("rotate").unwrap();
        let balancing = Balancing {
            strategy,
            config: lb_strategies::Config::parse(strategy, "").unwrap(),
            auto: None,
            period: Some(Duration::from_micros(200)),
            move_by: MoveBy::Memory,
            move_pinned: MovePinned::Warn,
            forecast: Default::default(),
            dump: None,
            learn: None,
            report: LbReport::Off,
        };
        Step::new(balancing, Shared::map(pes, 2, pes).unwrap())
    }

    fn loads(rank: u32) -> Loads {
        let pe = PeLoad { seconds: 1.0, share: 1.0, speed: 1.0, ..PeLoad::default() };
        let load = RankLoad {
            rank,
            seconds: 0.1,
            bytes: 0,
            pinned: false,
            held: false,
            coordinates: None,
            events: 0,
        };
        Loads { pe, ranks: vec![load], nanoseconds: 1_000_000, ..Loads::default() }
    }

    #[test]
    fn a_step_is_over_when_what_it_moved_has_come() {
        let mut step = step(2);
        step.ask();
        assert!(step.report(1, 0, loads(0)).is_none());
        let orders = step.report(1, 1, loads(1)).unwrap();
        assert_eq!(orders.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
        let moved = Moved { moved: 1, under_way: 1, ..Moved::default() };
        // One comes before the PE has said that it went.
        step.came(0, 1, Duration::from_millis(2));
        step.moved(1, &moved);
        step.moved(1, &moved);
        assert!(matches!(step.stage, Stage::Moving(0)) && step.take_cost().is_none());
        step.came(1, 1, Duration::from_millis(5));
        assert!(matches!(step.stage, Stage::Resting));
        let cost = step.take_cost().unwrap();
        assert!(cost >= Duration::from_millis(6), "its transfers and its reports: {cost:?}");
        assert!(step.take_cost().is_none());
    }

    #[test]
    fn waiting_for_pes_costs_nothing() {
        let mut step = step(2);
        step.ask();
        step.report(1, 0, loads(0));
        step.report(1, 1, loads(1));
        step.moved(1, &Moved { nanoseconds: 7_000_000, ..Moved::default() });
        let own = step.looking + Duration::from_nanos(step.outcome.nanoseconds);
        std::thread::sleep(Duration::from_millis(1));
        step.moved(1, &Moved::default());
        assert!(own >= Duration::from_millis(8), "its looks and its transfers: {own:?}");
        assert_eq!(step.take_cost(), Some(own));
    }

    #[test]
    fn a_step_that_the_end_of_the_job_cuts_is_counted() {
        let mut step = step(2);
        step.ask();
        step.report(1, 0, loads(0));
        step.close();
        assert_eq!(step.totals.steps, 0, "nothing was decided");
        step.report(1, 1, loads(1));
        step.moved(1, &Moved { moved: 1, under_way: 1, ..Moved::default() });
        step.close();
        step.close();
        assert_eq!((step.totals.steps, step.totals.moved), (1, 1));
    }

    #[test]
    fn advice_for_few_steps_is_none_for_the_job() {
        let mut step = step(1);
        let advised = |step: &mut Step, advice: Option<&str>| {
            step.verdict = Verdict { advice: advice.map(str::to_owned), ..Verdict::default() };
            step.count(&Moved::default());
        };
        advised(&mut step, Some("more ranks"));
        advised(&mut step, None);
        assert_eq!(step.totals.lasting_advice(), Some("more ranks"));
        advised(&mut step, None);
        assert_eq!(step.totals.lasting_advice(), None);
    }
}
