//! Load balancing while the job runs: who decides, and when ranks move.
//!
//! PE 0 decides. Every period it asks all PEs what their ranks have cost since the last time,
//! gives what they answer to a strategy of [`lb_strategies`], and tells each PE which of its ranks
//! go where. Nobody waits: ranks go on running, and go wherever they are suspended when the order
//! comes. A rank that runs, is pinned, or has gone meanwhile stays.
//!
//! ```text
//! PE 0        Resting --period over--> Asking --all have answered--> Moving --all are done--> Resting
//!                                        |  ask                        |  orders
//! every PE                               +-> report loads              +-> hand over, tell how many
//! ```

mod step;

use serde::{Deserialize, Serialize};

pub(crate) use step::Order;
use step::{Loads, Stage, Step, Totals};

use crate::config::Balancing;
use crate::net::parcel::{self, Topic};
use crate::pe::{self, Engine};

/// The part of a PE that balances.
#[derive(Debug)]
pub(crate) struct Balancer {
    /// Cycle counter at which the next step begins; far away when there is none.
    pub(crate) due: u64,
    /// On PE 0, if balancing is on.
    step: Option<Step>,
}

/// What PEs say to each other.
#[derive(Debug, Serialize, Deserialize)]
enum Message {
    Ask { step: u32 },
    Report { step: u32, loads: Loads },
    Move { step: u32, orders: Vec<Order> },
    Moved { step: u32, moved: u32, stayed: u32 },
}

impl Balancer {
    /// For a PE of a job with this configuration.
    pub(crate) fn new(balancing: Option<&Balancing>, id: u32, pes: usize) -> Balancer {
        let balancing = balancing.filter(|_| id == 0 && pes > 1);
        let step = balancing.map(|balancing| Step::new(balancing.clone(), pes));
        let due = if step.is_some() { pe::cycle_counter() } else { NEVER };
        Balancer { due, step }
    }
}

impl Balancer {
    /// What balancing has done, on the PE that decides.
    pub(crate) fn totals(&self) -> Option<Totals> {
        self.step.as_ref().map(Step::totals)
    }
}

/// A time that is never near: half the counter's range away from any.
const NEVER: u64 = 1 << 63;

impl Engine {
    /// Begins a step on PE 0 when it is due.
    #[cold]
    pub(crate) fn balance(&mut self) {
        let cycles = self.cycles_per_second();
        let now = pe::cycle_counter();
        let Some(step) = &mut self.balancer.step else {
            self.balancer.due = now.wrapping_add(NEVER);
            return;
        };
        let period = (step.balancing.period.as_secs_f64() * cycles) as u64;
        self.balancer.due = now.wrapping_add(period.max(1));
        if !matches!(step.stage, Stage::Resting) {
            return;
        }
        step.begin();
        let ask = Message::Ask { step: step.number };
        self.tell_all(&ask);
    }

    /// The time until the next step begins here, for a PE that is about to sleep.
    pub(crate) fn until_balance(&self) -> Option<std::time::Duration> {
        self.balancer.step.as_ref()?;
        let cycles = self.balancer.due.wrapping_sub(pe::cycle_counter());
        let cycles = if cycles > NEVER { 0 } else { cycles };
        Some(std::time::Duration::from_secs_f64(cycles as f64 / self.cycles_per_second()))
    }

    /// Another PE, or this one, has said something about balancing.
    pub(crate) fn balance_message(&mut self, from: u32, bytes: &[u8]) {
        match crate::encoding::decode(bytes) {
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
                let Some(orders) =
                    self.balancer.step.as_mut().and_then(|s| s.report(step, from, loads))
                else {
                    return;
                };
                for (to, orders) in orders.into_iter().enumerate() {
                    self.tell(to as u32, &Message::Move { step, orders });
                }
            }
            Message::Move { step, orders } => {
                let moved = orders.iter().filter(|o| self.hand_over(o.rank, o.to).is_ok()).count();
                let (moved, stayed) = (moved as u32, (orders.len() - moved) as u32);
                self.tell(from, &Message::Moved { step, moved, stayed });
            }
            Message::Moved { step, moved, stayed } => {
                if let Some(this) = &mut self.balancer.step {
                    this.moved(step, moved, stayed);
                }
            }
        }
    }

    /// What the ranks here have cost since the last report.
    fn loads(&mut self) -> Loads {
        let cycles = self.cycles_per_second();
        let mut loads = Loads::default();
        for (rank, state) in self.ranks.iter().enumerate() {
            let Some(state) = state.as_deref() else { continue };
            let run = state.counters.run;
            let since = run.wrapping_sub(state.counters.reported);
            // SAFETY: the slot of a rank of this PE.
            let bytes = unsafe { (*(*state.slot).heap.get()).bytes };
            loads.ranks.push(step::RankLoad {
                rank: rank as u32,
                seconds: since as f64 / cycles,
                bytes: bytes as u64,
                pinned: crate::migrate::pinned(state).is_some(),
            });
        }
        for state in self.ranks.iter_mut().flatten() {
            state.counters.reported = state.counters.run;
        }
        loads
    }

    fn tell_all(&mut self, message: &Message) {
        for pe in 0..self.shared.pes() as u32 {
            self.tell(pe, message);
        }
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
