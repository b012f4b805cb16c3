//! A PE: one thread that runs ranks.
//!
//! All state of a PE is plain single-threaded Rust, reached through [`with`], whose closure cannot
//! suspend: while it runs, the thread's heap is the process's, so a suspend or a second `with`
//! inside is caught. A closure returns numbers and `Copy` values; nothing of the PE's heap ever
//! lies on a rank's stack while the rank is suspended.
//!
//! | file | subject |
//! |---|---|
//! | `core` | what a PE consists of |
//! | `setup`, `thread`, `about` | making a PE; who may use its state, and when |
//! | `run`, `turns` | the loop: ready ranks, progress, tokio's turns |
//! | `idle` | polling, going to sleep, and detecting that all PEs do (deadlock) |
//! | `contexts` | a rank's operations on its communicators |
//! | `rank_state`, `ranks` | a rank's state in the PE; waking, resuming and stopping it |
//! | `requests` | incomplete operations, their memory, and their outcomes |
//! | `ready` | the queue of ready ranks |
//! | `outbound`, `send`, `receive` | messages: the engine's half of point-to-point |
//! | `sharing` | long copies between PEs, in which both take part |
//! | `withdraw` | withdrawing a send that waits for its receive |
//! | `reserve` | receives that get their memory late, requests that are no longer awaited |
//! | `waves`, `termination` | how many ranks are left, and deadlock, if nodes share no memory |
//! | `unexpected`, `flow` | messages without a receive: where their data is; limits their memory |
//! | `extension` | extensions of a PE: migration, collective operations, windows, balancing |
//! | `stray`, `location` | packets for ranks that are not here |
//! | `abandon` | ranks that have not ended when a local run does |
//! | `stall` | which rank keeps the thread, and which wait for it |
//! | `timers`, `timed` | `vrt`'s own timers |
//! | `locks` | ranks that wait for locks of their process |
//! | `inject`, `wake` | waking a rank from another thread |
//! | `events`, `observe` | reports events to an observer: the basis of traces |
//! | `report`, `usage` | reports what ranks wait for, and what the PE has done |
//! | `shares` | the runtime's share of its time |
//! | `answer` | the same for an observer of the running job |

mod abandon;
mod about;
mod answer;
mod contexts;
mod core;
mod events;
mod extension;
mod flow;
mod idle;
mod inject;
mod location;
mod locks;
mod matching;
mod memory;
mod observe;
mod outbound;
mod rank_state;
mod ranks;
mod ready;
mod receive;
mod report;
mod requests;
mod reserve;
mod run;
mod send;
mod setup;
mod shares;
mod sharing;
mod stall;
mod stray;
mod termination;
mod thread;
mod timed;
mod timers;
mod turns;
mod unexpected;
mod usage;
mod wake;
mod waves;
mod withdraw;

pub use crate::cycles::now as cycle_counter;
pub use about::{pool_of_thread, whereabouts};
pub use answer::Looker;
pub use contexts::Begun;
pub(crate) use contexts::ContextUse;
pub use core::{Core, Engine, Extensions, Handlers, Options};
pub use events::{By, CAN_BE_OBSERVED, Envelope, Event, Observer, Placed, Then, is_observed};
pub use extension::Extension;
pub(crate) use inject::{bucket, wake_elsewhere};
pub use locks::{AtLocks, Locks};
pub(crate) use observe::collective_ends;
pub use observe::{region_begins, region_ends};
pub use outbound::{Mode, Outbound};
pub use rank_state::{
    AtSync, Awaited, Counters, Encoded, Owned, RankState, Status, Wait, WindowPart,
};
pub(crate) use rank_state::{Awaiting, Obstacle};
pub use receive::Probed;
pub use report::waits;
pub(crate) use requests::copy_short;
pub use requests::{Completion, Request, RequestEnd, Room, Started};
pub(crate) use reserve::Landed;
pub use run::{Outcome, run};
pub use setup::{Setup, slot_is_clean};
pub use shares::{count_look, when_asked};
pub use stall::{Holder, blocked_for_ever, pe_in_tokio, stall};
pub use thread::{Entered, Pe, outside, while_stopped, with};
pub use timers::monotonic;
pub(crate) use unexpected::Told;
pub use unexpected::{Body, UnexpectedPayload};
pub use vrt_slot::hooks::{current_rank, in_rank};
pub(crate) use wake::wake_from_outside;
