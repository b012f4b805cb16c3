//! Load balancing while the job runs: who decides, and when ranks move.
//!
//! PE 0 decides. In a step it collects from all PEs the costs of their ranks since the last one, passes them to a
//! strategy of [`lb_strategies`], and tells each PE which of its ranks go where. A rank that runs, is pinned, or has
//! left meanwhile stays.
//!
//! ```text
//!        period over: ask all            all have answered: decide        all have said so
//! Resting ---------------> Asking -----------------------> Moving ---------------> Resting
//!        all ranks of the job wait in `migrate`: their PEs have said so and answered ^
//! ```
//!
//! With a period no rank waits: ranks move from wherever they are suspended when the order arrives. Without one, each
//! PE reports when all its ranks wait in `migrate`; when these are all ranks that have not ended, PE 0 decides, and
//! each PE resumes its ranks as soon as it has moved those that were ordered to. A rank that moves by its state is only
//! told to: it encodes its state and leaves by itself, in that call of `migrate`, or with a period in its next one.
//!
//! Steps must not cost more than they gain. With a period, a step ends when every rank that it
//! moved has arrived, and the next one begins a period after that, or a multiple of the step's cost
//! (the work of packing and copying ranks) if that is longer; and no rank is moved a second time
//! before it has run. Otherwise ranks whose memory takes longer to copy than a period lasts would
//! do nothing but move.

#![warn(clippy::multiple_unsafe_ops_per_block)]

mod database;
mod dump;
pub mod json;
mod learn;
mod looks;
pub mod measure;
mod options;
mod outcome;
mod reports;
mod step;
mod stopwatch;
mod trials;

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use measure::{Cycles, Meter};
pub use options::{Balancing, Chosen, expect_dumps_to, expect_learned, forecast, strategy};
pub use options::{LbReport, MovePinned};
use outcome::Moved;
use reports::{Loads, Order};
use step::{Stage, Step};
use stopwatch::Stopwatch;

use vrt_core::migrate::{self, Migration, Pin, Stays};
use vrt_core::net::parcel::{Parcel, Topic};
use vrt_core::net::shared::Shared;
use vrt_core::pe::{self, Core, Engine, Extension, Handlers, RankState, Status};

/// The part of a PE that balances.
#[derive(Debug)]
pub struct Balancer {
    period: Option<Duration>,
    /// On PE 0.
    step: Option<Step>,
    /// Number of the next step without a period: the number of the `migrate` calls that lead to it.
    round: u32,
    /// This PE's measurements of itself.
    meter: Meter,
    /// Whether the strategy needs to know who sends how much to whom.
    wants_sent: bool,
    /// Whether it needs to know how often ranks communicate.
    wants_events: bool,
    /// Seconds spent copying memory of ranks here, as far as reported to PE 0.
    copying_told: f64,
    /// What to do about ranks that cannot move, and whether that was reported.
    move_pinned: MovePinned,
    warned: bool,
}

impl Extension for Balancer {
    const INDEX: usize = 2;
    const HANDLERS: Handlers = Handlers {
        parcels: &[(Topic::Balance, message_came)],
        rank_ended: Some(rank_ended),
        due: Some(balance),
        ..Handlers::NONE
    };
}

/// Messages between PEs.
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
    /// This many ranks that a step has moved have arrived at a PE.
    Came {
        ranks: u32,
        /// Nanoseconds that it has spent copying memory of ranks since its last such message.
        copying: u64,
    },
}

impl Balancer {
    /// For a PE of a job with this configuration.
    pub fn new(balancing: &Balancing, id: u32, shared: &Shared) -> Balancer {
        Balancer {
            period: balancing.period.or_else(|| balancing.auto.as_ref().map(|_| FIRST_INTERVAL)),
            step: (id == 0).then(|| Step::new(balancing.clone(), *shared)),
            round: 1,
            meter: Meter::new(),
            wants_sent: match &balancing.auto {
                // Inside a node all messages cost about the same.
                Some(_) => shared.nodes() > 1 || balancing.dump.is_some(),
                None => balancing.strategy.heeds_communication() || balancing.dump.is_some(),
            },
            wants_events: balancing.auto.is_some(),
            copying_told: 0.0,
            move_pinned: balancing.move_pinned,
            warned: false,
        }
    }

    /// Whether steps are taken by time.
    fn is_periodic(&self) -> bool {
        self.period.is_some()
    }

    /// Reports a rank of this PE that cannot be moved.
    fn tell_held(&mut self, pe: u32, rank: u32, why: &'static str) {
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

    /// Writes the recorded loads, on the PE that decides.
    pub fn write_dump(&self) {
        if let Some(Err(error)) = self.step.as_ref().and_then(Step::write_dump) {
            vrt_slot::report::say(format_args!("--lb-dump: {error}"));
        }
    }

    /// Keeps the findings for the next run of the job, if that was requested, on the PE that decides.
    pub fn keep_learned(&self) {
        if let Some(Err(error)) = self.step.as_ref().and_then(Step::keep_learned) {
            vrt_slot::report::say(format_args!("--lb-learn: {error}"));
        }
    }

    /// Prints a summary of balancing, on the PE that decides, if that was requested or `anyway`.
    pub fn tell_totals(&mut self, anyway: bool) {
        if let Some(step) = &mut self.step
            && (anyway || step.balancing.report != LbReport::Off)
        {
            step.close();
            step.tell_totals();
        }
    }

    /// Sets when the next step begins, if this one has ended and steps are taken by time.
    fn rest_if_over(&mut self, core: &mut Core) {
        let (Some(step), Some(period)) = (&mut self.step, self.period) else { return };
        let Some(cost) = step.take_cost() else { return };
        let period = match step.interval() {
            Some(interval) => interval.max(step.rest_of_looks()),
            None => period,
        };
        let pause = rest(period, cost).as_secs_f64() * core.cycles_per_second();
        step.begins_at = pe::cycle_counter().wrapping_add((pause as u64).max(1));
        core.call_at(step.begins_at);
    }
}

/// The next step begins after at least this many times as long as the step kept PEs from running ranks, so that at most
/// a quarter of their time goes to steps, however short the period is.
const REST: u32 = 3;

/// The time from the end of a step with this cost to the next one.
fn rest(period: Duration, cost: Duration) -> Duration {
    period.max(cost.saturating_mul(REST))
}

/// The interval until the length of `auto`'s samples is known.
const FIRST_INTERVAL: Duration = Duration::from_millis(10);

/// Stamps of the cycle counter that are less than this far ahead are in the future.
const NEVER: u64 = 1 << 63;

/// Does what is due: handles the ranks that wait in `migrate`, or begins a step on PE 0.
fn balance(engine: &mut Engine) {
    let migration = engine.extension::<Migration>();
    let came = std::mem::take(&mut migration.came);
    let (copying, changed) = (migration.costs.copying, migration.at_sync.take_changed());
    if changed {
        see_to_at_sync(engine);
    }
    if came > 0 {
        let told = &mut engine.extension::<Balancer>().copying_told;
        let since = Duration::try_from_secs_f64(copying - *told).unwrap_or_default();
        *told = copying;
        tell(engine, 0, Message::Came { ranks: came, copying: since.as_nanos() as u64 });
    }
    let (balancer, core) = engine.part::<Balancer>();
    if balancer.period.is_none() {
        return;
    }
    // While a step is under way nothing is due: its end says when the next one is.
    let Some(step) = &mut balancer.step else { return };
    if !matches!(step.stage, Stage::Resting) {
        return;
    }
    let now = pe::cycle_counter();
    if step.begins_at.wrapping_sub(now) < NEVER && step.begins_at != now {
        return core.call_at(step.begins_at);
    }
    step.ask();
    let step = step.number;
    for pe in 0..engine.shared().pes() as u32 {
        tell(engine, pe, Message::Ask { step });
    }
}

/// A rank has ended here: perhaps all others wait in `migrate`.
fn rank_ended(engine: &mut Engine, _: u32) {
    if !engine.extension::<Balancer>().is_periodic() {
        let (migration, core) = engine.part::<Migration>();
        migration.at_sync.one_less();
        migration.look_soon(core);
    }
}

fn see_to_at_sync(engine: &mut Engine) {
    let balancer = engine.extension::<Balancer>();
    if balancer.is_periodic() {
        return;
    }
    let round = balancer.round;
    let (migration, core) = engine.part::<Migration>();
    if !migration.at_sync.may_be_all() {
        return;
    }
    let here = core.ranks_mut().filter(|(_, state)| state.status != Status::Ended).count();
    migration.at_sync.counted(here);
    if migration.at_sync.waiting.iter().filter(|(_, of)| *of == round).count() == here {
        let loads = loads(engine);
        tell(engine, 0, Message::Arrived { loads });
    }
}

/// Moves a rank in a step: with a period, the other PE reports the rank's arrival.
fn go_in_step(engine: &mut Engine, rank: u32, to: u32, periodic: bool) -> Result<u64, Stays> {
    if let Some(state) = engine.rank(rank) {
        state.moved_in_step = periodic;
    }
    let moved = migrate::go(engine, rank, to);
    if moved.is_err()
        && let Some(state) = engine.rank(rank)
    {
        state.moved_in_step = false;
    }
    moved
}

/// Whether a rank has run since its program started, or since a step with a period last moved it.
fn has_run_since_it_came(core: &mut Core, rank: u32) -> bool {
    core.rank(rank).is_none_or(|state| state.came_at != Some(state.counters.switches))
}

fn follow(engine: &mut Engine, step: u32, orders: &[Order]) -> Moved {
    let began = Stopwatch::start();
    let mut outcome = Moved::default();
    let migration = engine.extension::<Migration>();
    let (costs, by_state) = (migration.costs, migration.rules.by_state);
    let (bytes, taken) = std::mem::take(&mut migration.at_sync.gone);
    outcome.bytes = bytes;
    let (balancer, core) = engine.part::<Balancer>();
    let switches = core.switches().load(Ordering::Relaxed);
    balancer.meter.begin(cycles_of(core), switches, costs);
    let periodic = balancer.is_periodic();
    for (_, state) in core.ranks_mut() {
        // Not of one that has followed its orders before this PE and is here already: nobody knows of what it has
        // run since.
        if std::mem::take(&mut state.counters.is_reported) {
            state.counters.reported = state.counters.run;
        }
    }
    for Order { rank, to } in orders.iter().copied() {
        let moved = if by_state {
            let (migration, core) = engine.part::<Migration>();
            migration.set_destination(core, rank, to).map(|()| 0)
        } else if has_run_since_it_came(engine, rank) {
            go_in_step(engine, rank, to, periodic)
                .inspect(|_| outcome.under_way += u32::from(periodic))
        } else {
            outcome.stayed.count_just_come();
            continue;
        };
        match moved {
            Ok(bytes) => {
                outcome.moved += 1;
                outcome.bytes += bytes;
            }
            Err(why) => outcome.stayed.count(rank, why),
        }
    }
    if !periodic {
        // A rank that another PE has moved here in this step may wait for the next one already.
        let (migration, core) = engine.part::<Migration>();
        let (now, later) = std::mem::take(&mut migration.at_sync.waiting)
            .into_iter()
            .partition::<Vec<_>, _>(|(_, round)| *round == step);
        migration.at_sync.waiting = later;
        for (rank, _) in now {
            migrate::end_at_sync(core, rank);
        }
        migration.look_soon(core);
        engine.extension::<Balancer>().round = step.wrapping_add(1);
    }
    outcome.nanoseconds = (began.elapsed() + taken).as_nanos() as u64;
    outcome
}

/// Handles a message of another PE about balancing.
fn message_came(engine: &mut Engine, parcel: &Parcel) {
    take_message(engine, parcel.from, parcel.read());
}

fn take_message(engine: &mut Engine, from: u32, message: Message) {
    let (balancer, core) = engine.part::<Balancer>();
    match message {
        Message::Ask { step } => {
            let loads = loads(engine);
            tell(engine, from, Message::Report { step, loads });
        }
        Message::Report { step, loads } => {
            let Some(this) = &mut balancer.step else { return };
            if let Some(orders) = this.report(step, from, loads) {
                give(engine, orders);
            }
        }
        Message::Arrived { loads } => {
            let left = core.shared().job().ranks_left.load(Ordering::Acquire);
            let Some(this) = &mut balancer.step else { return };
            if let Some(orders) = this.arrived(from, loads, left) {
                give(engine, orders);
            }
        }
        Message::Move { step, orders } => {
            let moved = follow(engine, step, &orders);
            tell(engine, from, Message::Moved { step, moved });
        }
        Message::Moved { step, moved } => {
            if let Some(this) = &mut balancer.step {
                this.moved(step, &moved);
                balancer.rest_if_over(core);
            }
        }
        Message::Came { ranks, copying } => {
            if let Some(this) = &mut balancer.step {
                this.came(from, ranks, Duration::from_nanos(copying));
                balancer.rest_if_over(core);
            }
        }
    }
}

fn give(engine: &mut Engine, orders: Vec<Vec<Order>>) {
    let (balancer, core) = engine.part::<Balancer>();
    let Some(this) = &mut balancer.step else { return };
    this.show(core);
    let step = this.number;
    for (to, orders) in orders.into_iter().enumerate() {
        tell(engine, to as u32, Message::Move { step, orders });
    }
}

/// The number of consecutive steps by time after which a reference that pins a rank is reported. The word may be a
/// leftover of a call on a stack; if ranks offer themselves in each of their iterations, a leftover does not pin one
/// twice.
const LASTING: u32 = 20;

/// The costs of the ranks here since the last step.
fn loads(engine: &mut Engine) -> Loads {
    let began = Stopwatch::start();
    let cycles = engine.cycles_per_second();
    let costs = engine.extension::<Migration>().costs;
    let (balancer, core) = engine.part::<Balancer>();
    let (wants_sent, wants_events) = (balancer.wants_sent, balancer.wants_events);
    let switches = core.switches().load(Ordering::Relaxed);
    let mut loads = Loads {
        pe: balancer.meter.report(cycles_of(core), switches, costs, cycles),
        ..Loads::default()
    };
    let lasting = if balancer.is_periodic() { LASTING } else { 1 };
    let mut first_held = None;
    let (migration, core) = engine.part::<Migration>();
    for rank in 0..core.shared().ranks() as u32 {
        let pin = migration.known_pin(core, rank);
        let Some(state) = core.rank(rank) else { continue };
        if state.status == Status::Ended {
            continue;
        }
        let since = state.counters.run - state.counters.reported;
        state.counters.is_reported = true;
        // SAFETY: `core.ranks` has the ranks of this PE, which owns their slots.
        let bytes = unsafe { vrt_slot::live::used(state.slot) };
        let held = pin.filter(|pin| pin.seemingly.is_none_or(|steps| steps >= lasting));
        if let Some(Pin { why, .. }) = held {
            first_held.get_or_insert((rank, why));
            if loads.held.len() < step::PINNED_TOLD {
                loads.held.push((rank, why.to_owned()));
            }
        }
        loads.ranks.push(reports::RankLoad {
            rank,
            seconds: since as f64 / cycles,
            bytes: bytes as u64,
            pinned: pin.is_some(),
            held: held.is_some(),
            coordinates: state.coordinates,
            events: if wants_events { events(state) } else { 0 },
        });
        if wants_sent {
            let sent = state.peers.iter();
            let sent = sent.map(|(to, peer)| (rank, to, peer.messages, peer.bytes));
            loads.sent.extend(sent);
        }
    }
    if let Some((rank, why)) = first_held {
        let (balancer, core) = engine.part::<Balancer>();
        balancer.tell_held(core.id(), rank, why);
    }
    loads.nanoseconds = began.elapsed().as_nanos() as u64;
    loads
}

fn cycles_of(core: &Core) -> Cycles {
    Cycles { busy: core.busy(), idle: core.idle(), remote: core.cycles_of_remote() }
}

/// How often a rank has sent a message, begun a collective operation, or offered itself to be moved.
fn events(state: &RankState) -> u64 {
    let sent: u64 = state.peers.iter().map(|(_, peer)| peer.messages).sum();
    sent + state.collectives.operations() + u64::from(state.at_sync_calls)
}

fn tell(engine: &mut Engine, to: u32, message: Message) {
    if to == engine.id() {
        return take_message(engine, to, message);
    }
    engine.send_parcel(to, Topic::Balance, &message);
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
