//! Load balancing while the job runs: who decides, and when ranks move.
//!
//! PE 0 decides. In a step it learns from all PEs what their ranks have cost since the last one,
//! gives that to a strategy of [`lb_strategies`], and tells each PE which of its ranks go where.
//! A rank that runs, is pinned, or has gone meanwhile stays.
//!
//! ```text
//!        period over: ask all            all have answered: decide        all have said so
//! Resting ---------------> Asking -----------------------> Moving ---------------> Resting
//!        all ranks of the job wait in `migrate`: their PEs have said so and answered ^
//! ```
//!
//! With a period nobody waits: ranks go wherever they are suspended when the order comes. Without
//! one, each PE reports when all its ranks wait in `migrate`; when these are all ranks that have not
//! ended, PE 0 decides, and each PE lets its ranks go on as soon as it has moved those that were to
//! go. A rank that moves by its state is only told to: it encodes its state and leaves by itself, in
//! that call of `migrate`, or with a period in its next one.
//!
//! Steps must not take more than they give. With a period, a step is over when every rank that it
//! moved has come to its PE, and the next one begins a period after that, or a multiple of what the
//! step has cost if that is longer, which is the work of packing and copying ranks; and no rank is moved a second time before it has run. Otherwise
//! ranks whose memory takes longer to copy than a period lasts would only travel.

mod database;
#[cfg(feature = "json")]
pub(crate) mod dump;
#[cfg(not(feature = "json"))]
#[path = "no_dump.rs"]
pub(crate) mod dump;
pub(crate) mod measure;
mod options;
mod step;

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use measure::Meter;
pub(crate) use options::Balancing;
pub use options::{LbReport, MovePinned};
use step::Order;
pub(crate) use step::human_bytes;
use step::{Loads, Stage, Step};

use crate::migrate::{MoveBy, Stays};
use crate::net::parcel::{self, Topic};
use crate::net::shared::Shared;
use crate::pe::{self, Engine, Status};

/// The part of a PE that balances.
#[derive(Debug)]
pub(crate) struct Balancer {
    /// Cycle counter at which the next step begins; far away when there is none.
    pub(crate) due: u64,
    /// Whether and how ranks move here.
    move_by: Option<MoveBy>,
    period: Option<Duration>,
    /// On PE 0, if balancing is on.
    step: Option<Step>,
    /// Ranks that want to move, each with the PE to which.
    going: Vec<(u32, u32)>,
    /// Whether ranks move by their state, those that go by `migrate_to` too.
    by_state: bool,
    /// Bytes of states that have gone since the last step, and the time that took.
    between: (u64, Duration),
    /// The ranks here that wait in `migrate`, each with the number of that call.
    offering: Vec<(u32, u32)>,
    /// Number of the next step without a period: that of the calls of `migrate` that lead to it.
    round: u32,
    /// Something happened after which all may have arrived there.
    changed: bool,
    /// What this PE measures of itself.
    meter: Option<Meter>,
    /// The strategy wants to know who sends how much to whom.
    wants_sent: bool,
    /// Ranks that have come here in a step with a period, of which PE 0 has not been told.
    came: u32,
    /// The time that copying memory of ranks has taken here since it was told.
    copying: Duration,
    /// What to do about ranks that cannot move, and whether that was said.
    move_pinned: MovePinned,
    warned: bool,
}

/// What PEs say to each other.
#[derive(Debug, Serialize, Deserialize)]
enum Message {
    Ask {
        step: u32,
    },
    Report {
        step: u32,
        loads: Loads,
    },
    /// All ranks of a PE wait in `migrate`.
    Arrived {
        loads: Loads,
    },
    Move {
        step: u32,
        orders: Vec<Order>,
    },
    Moved {
        step: u32,
        moved: Moved,
    },
    /// So many ranks that a step has moved have come to a PE.
    Came {
        ranks: u32,
        /// Nanoseconds that it has copied memory of ranks since it last said this.
        copying: u64,
    },
}

/// What became of a PE's orders.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Moved {
    pub(crate) moved: u32,
    pub(crate) stayed: u32,
    /// Of those, pinned ones.
    pub(crate) pinned: u32,
    /// Bytes that were encoded or will be copied for it.
    pub(crate) bytes: u64,
    pub(crate) nanoseconds: u64,
    /// Of those that moved, the ones that are under way to another PE now and will tell when they
    /// have come.
    pub(crate) under_way: u32,
}

impl Moved {
    /// Together with what became of another PE's, which worked at the same time.
    fn add(&mut self, other: &Moved) {
        self.moved += other.moved;
        self.stayed += other.stayed;
        self.pinned += other.pinned;
        self.bytes += other.bytes;
        self.nanoseconds = self.nanoseconds.max(other.nanoseconds);
        self.under_way += other.under_way;
    }
}

impl Balancer {
    /// For a PE of a job with this configuration.
    pub(crate) fn new(
        balancing: Option<&Balancing>,
        by_state: bool,
        id: u32,
        shared: &Shared,
    ) -> Balancer {
        let decides = balancing.filter(|_| id == 0);
        let step = decides.map(|b| Step::new(b.clone(), *shared));
        let period = balancing.and_then(|balancing| balancing.period);
        let now = pe::cycle_counter();
        let due = if step.is_some() && period.is_some() { now } else { now.wrapping_add(NEVER) };
        let move_by = balancing.map(|balancing| balancing.move_by);
        Balancer {
            due,
            move_by,
            period,
            step,
            going: Vec::new(),
            by_state,
            between: (0, Duration::ZERO),
            offering: Vec::new(),
            round: 1,
            changed: false,
            meter: balancing.map(|_| Meter::new()),
            wants_sent: balancing
                .is_some_and(|b| b.strategy.heeds_communication() || b.dump.is_some()),
            came: 0,
            copying: Duration::ZERO,
            move_pinned: balancing.map_or(MovePinned::Warn, |b| b.move_pinned),
            warned: false,
        }
    }

    /// A rank was packed to be moved.
    fn moved_one(&mut self, seconds: f64) {
        if let Some(meter) = &mut self.meter {
            meter.moving.ranks += 1;
            meter.moving.seconds += seconds;
        }
    }

    /// Bytes were copied or encoded for the sake of a move.
    pub(crate) fn copied(&mut self, bytes: u64, seconds: f64) {
        if let Some(meter) = &mut self.meter {
            meter.moving.bytes += bytes;
            meter.moving.copying += seconds;
            self.copying += Duration::try_from_secs_f64(seconds).unwrap_or_default();
        }
    }

    /// Something was done between two steps for a rank that moves by its state.
    pub(crate) fn went_by_itself(&mut self, bytes: u64, taken: Duration) {
        self.between.0 += bytes;
        self.between.1 += taken;
    }

    /// How ranks move, if they do.
    pub(crate) fn move_by(&self) -> Option<MoveBy> {
        self.move_by
    }

    /// Whether steps are taken by time.
    pub(crate) fn is_periodic(&self) -> bool {
        self.period.is_some()
    }

    /// A rank waits in its `round`-th `migrate`.
    pub(crate) fn offered(&mut self, rank: u32, round: u32) {
        self.offering.push((rank, round));
        self.look_soon();
    }

    /// A rank wants to move to another PE, and waits.
    pub(crate) fn goes(&mut self, rank: u32, to: u32) {
        self.going.push((rank, to));
        self.look_soon();
    }

    /// Whether `migrate_to` moves ranks by their state.
    pub(crate) fn goes_by_state(&self) -> bool {
        self.by_state
    }

    /// A rank has ended here.
    pub(crate) fn rank_ended(&mut self) {
        if self.move_by.is_some() && !self.is_periodic() {
            self.look_soon();
        }
    }

    /// A rank of this PE cannot be moved.
    fn tell_pinned(&mut self, pe: u32, rank: usize, why: &'static str) {
        if self.warned {
            return;
        }
        self.warned = true;
        let what = format!("rank {rank} on PE {pe} cannot be moved: {why}");
        match self.move_pinned {
            MovePinned::Warn => vrt_slot::report::say(format_args!("note: {what}")),
            MovePinned::Error => {
                vrt_slot::report::say(format_args!("{what} (--move-pinned error)"));
                vrt_slot::report::end_job(vrt_slot::report::STATUS_RUNTIME)
            }
        }
    }

    /// A rank that a step with a period has moved has come here.
    pub(crate) fn rank_came(&mut self) {
        self.came += 1;
        self.due = pe::cycle_counter();
    }

    fn look_soon(&mut self) {
        self.changed = true;
        self.due = pe::cycle_counter();
    }

    /// Writes what was to be recorded of the loads, on the PE that decides.
    pub(crate) fn write_dump(&self) {
        if let Some(Err(error)) = self.step.as_ref().and_then(Step::write_dump) {
            vrt_slot::report::say(format_args!("--lb-dump: {error}"));
        }
    }

    /// Says what balancing has done, on the PE that decides, if that was asked for or `anyway`.
    pub(crate) fn tell_totals(&self, anyway: bool) {
        if let Some(step) = &self.step
            && (anyway || step.balancing.report != LbReport::Off)
        {
            step.tell_totals();
        }
    }
}

/// The next step begins at least so many times as long after a step as that kept PEs from running
/// ranks, so that no more than a quarter of their time goes to steps, however short the period is.
const REST: u32 = 3;

/// The time from the end of a step that took so long to the next one.
fn rest(period: Duration, cost: Duration) -> Duration {
    period.max(cost.saturating_mul(REST))
}

/// A time that is never near: half the counter's range away.
const NEVER: u64 = 1 << 63;

impl Engine {
    /// Does what is due: begins a step on PE 0, or sees to the ranks that wait in `migrate`.
    #[cold]
    pub(crate) fn balance(&mut self) {
        let now = pe::cycle_counter();
        self.balancer.due = now.wrapping_add(NEVER);
        if std::mem::take(&mut self.balancer.changed) {
            for (rank, to) in std::mem::take(&mut self.balancer.going) {
                let began = Instant::now();
                match self.go(rank, to) {
                    Ok(bytes) => self.balancer.went_by_itself(bytes, began.elapsed()),
                    Err(why) => {
                        if let (Stays::Pinned(why), Some(state)) = (why, self.rank(rank)) {
                            state.refused = Some(why);
                        }
                        self.end_offer(rank);
                    }
                }
            }
            self.see_to_offers();
        }
        if self.balancer.came > 0 {
            let ranks = std::mem::take(&mut self.balancer.came);
            let copying = std::mem::take(&mut self.balancer.copying).as_nanos() as u64;
            self.tell(0, &Message::Came { ranks, copying });
        }
        if self.balancer.period.is_none() {
            return;
        }
        // While a step is under way nothing is due: its end says when the next one is.
        let Some(step) = &mut self.balancer.step else { return };
        if !matches!(step.stage, Stage::Resting) {
            return;
        }
        if step.begins_at.wrapping_sub(now) < NEVER && step.begins_at != now {
            self.balancer.due = step.begins_at;
            return;
        }
        step.ask();
        let ask = Message::Ask { step: step.number };
        for pe in 0..self.shared.pes() as u32 {
            self.tell(pe, &ask);
        }
    }

    /// The time until something is due here, for a PE that is about to sleep.
    pub(crate) fn until_balance(&self) -> Option<Duration> {
        let cycles = self.balancer.due.wrapping_sub(pe::cycle_counter());
        let overdue = cycles > NEVER;
        let steps = self.balancer.step.as_ref().filter(|_| self.balancer.period.is_some());
        let far = steps.is_none_or(|step| !matches!(step.stage, Stage::Resting));
        match (overdue, far) {
            (true, _) => Some(Duration::ZERO),
            (false, true) => None,
            (false, false) => {
                Some(Duration::from_secs_f64(cycles as f64 / self.cycles_per_second()))
            }
        }
    }

    /// Whether something is due here.
    #[inline(always)]
    pub(crate) fn balance_is_due(&self, now: u64) -> bool {
        now.wrapping_sub(self.balancer.due) < NEVER
    }

    fn see_to_offers(&mut self) {
        let Balancer { offering, round, .. } = &self.balancer;
        if self.balancer.move_by.is_none() || self.balancer.is_periodic() {
            return;
        }
        let ranks = self.ranks.iter().flatten();
        let here = ranks.filter(|state| state.status != Status::Ended).count();
        if offering.iter().filter(|(_, of)| of == round).count() == here {
            let loads = self.loads();
            self.tell(0, &Message::Arrived { loads });
        }
    }

    /// Moves a rank to another PE as the job is configured; returns the bytes that travel.
    fn go(&mut self, rank: u32, to: u32) -> Result<u64, Stays> {
        let began = Instant::now();
        if self.balancer.by_state || self.options.memory_moves {
            self.may_go(rank, to)?;
        }
        let bytes = match self.balancer.by_state {
            true => self.move_by_state(rank, to)?,
            false if !self.options.memory_moves => {
                return Err(Stays::Pinned("ranks of this job can only move by their state"));
            }
            false => {
                self.end_offer(rank);
                if self.shared.is_near(to) {
                    self.hand_over(rank, to)?
                } else {
                    self.ship(rank, to)?
                }
            }
        };
        self.balancer.moved_one(began.elapsed().as_secs_f64());
        Ok(bytes)
    }

    /// [`go`](Self::go) in a step: with a period, the other PE tells when the rank has come.
    fn go_in_step(&mut self, rank: u32, to: u32) -> Result<u64, Stays> {
        let periodic = self.balancer.is_periodic();
        if let Some(state) = self.rank(rank) {
            state.moved_in_step = periodic;
        }
        let moved = self.go(rank, to);
        if moved.is_err()
            && let Some(state) = self.rank(rank)
        {
            state.moved_in_step = false;
        }
        moved
    }

    /// Whether a rank has run since it was last moved by a step with a period, if it was.
    fn has_run_since_it_came(&self, rank: u32) -> bool {
        let state = self.ranks.get(rank as usize).and_then(Option::as_deref);
        state.is_none_or(|state| state.came_at != Some(state.counters.switches))
    }

    fn follow(&mut self, step: u32, orders: &[Order]) -> Moved {
        let began = Instant::now();
        let mut outcome = Moved::default();
        if let Some(meter) = &mut self.balancer.meter {
            meter.begin(self.busy, self.idle);
        }
        for state in self.ranks.iter_mut().flatten() {
            state.counters.reported = state.counters.run;
        }
        let (bytes, taken) = std::mem::take(&mut self.balancer.between);
        outcome.bytes = bytes;
        let periodic = u32::from(self.balancer.is_periodic());
        for Order { rank, to } in orders.iter().copied() {
            let moved = match self.balancer.by_state {
                true => self.order(rank, to).map(|()| 0),
                false if self.has_run_since_it_came(rank) => {
                    self.go_in_step(rank, to).inspect(|_| outcome.under_way += periodic)
                }
                false => Err(Stays::InUse),
            };
            match moved {
                Ok(bytes) => {
                    outcome.moved += 1;
                    outcome.bytes += bytes;
                }
                Err(why) => {
                    outcome.stayed += 1;
                    outcome.pinned += u32::from(matches!(why, Stays::Pinned(_)));
                }
            }
        }
        if !self.balancer.is_periodic() {
            // A rank that another PE has moved here in this step may wait for the next one already.
            let (now, later) = std::mem::take(&mut self.balancer.offering)
                .into_iter()
                .partition::<Vec<_>, _>(|(_, round)| *round == step);
            self.balancer.offering = later;
            for (rank, _) in now {
                self.end_offer(rank);
            }
            self.balancer.round = step.wrapping_add(1);
            self.balancer.look_soon();
        }
        outcome.nanoseconds = (began.elapsed() + taken).as_nanos() as u64;
        outcome
    }

    /// Another PE, or this one, has said something about balancing.
    pub(crate) fn balance_message(&mut self, from: u32, bytes: &[u8]) {
        match crate::encoding::decode_own(bytes) {
            Ok(message) => self.take_message(from, message),
            Err(error) => unreachable!("a PE of this job has encoded it: {error}"),
        }
    }

    fn take_message(&mut self, from: u32, message: Message) {
        match message {
            Message::Ask { step } => {
                let loads = self.loads();
                self.tell(from, &Message::Report { step, loads });
            }
            Message::Report { step, loads } => {
                let Some(this) = &mut self.balancer.step else { return };
                if let Some(orders) = this.report(step, from, loads) {
                    self.give(orders);
                }
            }
            Message::Arrived { loads } => {
                let left = self.shared.job().ranks_left.load(std::sync::atomic::Ordering::Acquire);
                let Some(this) = &mut self.balancer.step else { return };
                if let Some(orders) = this.arrived(from, loads, left) {
                    self.give(orders);
                }
            }
            Message::Move { step, orders } => {
                let moved = self.follow(step, &orders);
                self.tell(from, &Message::Moved { step, moved });
            }
            Message::Moved { step, moved } => {
                if let Some(this) = &mut self.balancer.step {
                    this.moved(step, moved);
                    self.rest_if_over();
                }
            }
            Message::Came { ranks, copying } => {
                if let Some(this) = &mut self.balancer.step {
                    this.came(from, ranks, Duration::from_nanos(copying));
                    self.rest_if_over();
                }
            }
        }
    }

    /// Says when the next step begins, if this one is over and they go by time.
    fn rest_if_over(&mut self) {
        let cycles = self.cycles_per_second();
        let Balancer { step: Some(step), period: Some(period), .. } = &mut self.balancer else {
            return;
        };
        let Some(cost) = step.take_cost() else { return };
        let pause = rest(*period, cost);
        let begins_at = ((pause.as_secs_f64() * cycles) as u64).max(1);
        step.begins_at = pe::cycle_counter().wrapping_add(begins_at);
        // What is due already is seen to first, and then this is found.
        if !self.balance_is_due(pe::cycle_counter()) {
            self.balancer.due = pe::cycle_counter().wrapping_add(begins_at);
        }
    }

    fn give(&mut self, orders: Vec<Vec<Order>>) {
        let Some(step) = self.balancer.step.as_ref().map(|step| step.number) else { return };
        for (to, orders) in orders.into_iter().enumerate() {
            self.tell(to as u32, &Message::Move { step, orders });
        }
    }

    /// What the ranks here have cost since the last step.
    fn loads(&mut self) -> Loads {
        let began = Instant::now();
        let cycles = self.cycles_per_second();
        let mut loads = Loads::default();
        if let Some(meter) = &mut self.balancer.meter {
            loads.pe = meter.report(self.busy, self.idle, cycles);
        }
        let mut pinned = None;
        for rank in 0..self.ranks.len() {
            let why = self.known_pin(rank as u32);
            let Some(state) = self.ranks[rank].as_deref() else { continue };
            if state.status == Status::Ended {
                continue;
            }
            let since = state.counters.run - state.counters.reported;
            // SAFETY: the slot of a rank of this PE.
            let bytes = unsafe {
                let stack = vrt_slot::rank::Body::live_stack(state.slot).len();
                (*(*state.slot).heap.get()).bytes + stack
            };
            pinned = pinned.or(why.map(|why| (rank, why)));
            if let Some(why) = why
                && loads.pinned.len() < step::PINNED_TOLD
            {
                loads.pinned.push((rank as u32, why.to_owned()));
            }
            loads.ranks.push(step::RankLoad {
                rank: rank as u32,
                seconds: since as f64 / cycles,
                bytes: bytes as u64,
                pinned: why.is_some(),
                coordinates: state.coordinates,
            });
            if self.balancer.wants_sent {
                let sent = state.peers.iter();
                let sent = sent.map(|(to, peer)| (rank as u32, to, peer.messages, peer.bytes));
                loads.sent.extend(sent);
            }
        }
        if let Some((rank, why)) = pinned {
            self.balancer.tell_pinned(self.id, rank, why);
        }
        loads.nanoseconds = began.elapsed().as_nanos() as u64;
        loads
    }

    fn tell(&mut self, to: u32, message: &Message) {
        let bytes = match crate::encoding::encode(message) {
            Ok(bytes) => bytes,
            Err(error) => unreachable!("plain numbers can be encoded: {error}"),
        };
        if to == self.id {
            self.balance_message(to, &bytes);
        } else {
            parcel::send(&mut self.net, self.id, to, Topic::Balance, &bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_leave_time_for_ranks_however_short_the_period_is() {
        let ms = Duration::from_millis;
        assert_eq!(rest(ms(500), ms(2)), ms(500));
        assert_eq!(rest(Duration::from_micros(200), ms(50)), ms(150));
    }
}
