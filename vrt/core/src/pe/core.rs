//! A PE: its ranks, messages and loop, and the table of its extensions. Only what they are; what they do is in the
//! other files.

use std::any::{Any, TypeId};
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use crate::net::local::Outgoing;
use crate::net::parcel::{self, Parcel, TOPICS, Topic};
use crate::net::remote::Remote;
use crate::net::shared::Shared;
use crate::net::{KINDS, Kind, Packet};
use crate::pe::events::Observer;
use crate::pe::idle::{LookTime, Patience};
use crate::pe::inject::Injector;
use crate::pe::locks::{AtLocks, Locks};
use crate::pe::outbound::Eager;
use crate::pe::rank_state::RankState;
use crate::pe::ready::ReadyQueue;
use crate::pe::stray::{Coming, StrayPacket};
use crate::pe::timers::Timers;
use crate::pe::unexpected::Pool;
use crate::pe::usage::Usage;
use crate::pe::waves::Termination;
use serde::Serialize;
use vrt_slot::SlotHeader;
use vrt_slot::rank::Program;

/// Everything of a PE except its receiving ends: its core, and its extensions.
pub struct Engine {
    /// Ranks, messages and the loop; the engine derefs to it.
    pub core: Core,
    pub(super) extensions: Extensions,
}

/// Whatever does not concern an extension belongs to the core.
impl Deref for Engine {
    type Target = Core;

    #[inline(always)]
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl DerefMut for Engine {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.core
    }
}

/// Ranks, messages and the loop: a PE without extensions.
pub struct Core {
    /// Number of this PE in the job.
    pub(crate) id: u32,
    /// Its number in the arena: unique among all PEs that share it, never 0.
    pub(crate) uid: u32,
    /// The control memory, for this PE's node.
    pub(crate) shared: Shared,
    /// The sending ends to all PEs.
    pub(crate) net: Outgoing,
    /// The ranks that live here, by rank number.
    pub(crate) ranks: Vec<Option<Box<RankState>>>,
    pub(crate) ready: ReadyQueue,
    /// The rank that runs, or ran last.
    pub(crate) current: u32,
    /// The slot whose heap keeps payloads of unexpected messages.
    pub(crate) pool: *mut SlotHeader,
    pub(super) pool_marks: Pool,
    /// Sends that are done when packets have been taken once more.
    pub(crate) stalled: Vec<(u32, u32)>,
    /// What was sent to other nodes since packets were last processed, in bytes plus a constant per message; not 0
    /// while sends are stalled.
    pub(super) sent_away: usize,
    /// What its ranks have used, for reports.
    pub(crate) used: Usage,
    /// What the job's configuration says to this PE.
    pub(crate) options: Options,
    /// The part that concerns standard sends.
    pub(super) eager: Eager,
    pub(crate) timers: Timers,
    pub(crate) injected: Arc<Injector>,
    pub(super) observer: Option<Box<dyn Observer>>,
    /// Until when the observer has been told what the PE has done.
    pub(super) observed_until: u64,
    pub(super) locks: &'static dyn Locks,
    /// How many ranks wait for these.
    pub(crate) at_locks: AtLocks,
    /// When the PE began, by the cycle counter and the clock.
    pub(super) began: (u64, std::time::Instant),
    /// Cycle counter at the last switch.
    pub(super) stamp: u64,
    /// Cycles between two turns of tokio.
    pub(super) tokio_period: u64,
    /// Cycles after which a rank counts as running for long.
    pub(super) long_run: u64,
    /// Cycles of `run::SLICE`.
    pub(super) slice: u64,
    /// The number of resumed ranks after which the rings are polled next.
    pub(super) next_look: u32,
    /// Calls of the running rank that could have suspended it, and the limit if other ranks wait.
    pub(super) calls_ahead: u32,
    pub(super) most_calls_ahead: u32,
    pub(super) patience: Patience,
    pub(super) look_time: LookTime,
    /// Cycles spent in ranks, including the switches to them.
    pub(crate) busy: u64,
    /// Cycles asleep or polling.
    pub(crate) idle: u64,
    /// How often a rank has stopped running; read by the watchdog.
    pub(crate) switches: AtomicU64,
    /// The PE sleeps or polls now, which counts as idle; read by the thread that samples shares.
    pub(crate) idles: AtomicBool,
    /// Ranks resumed so far, and when tokio last had a turn.
    pub(crate) resumes: u32,
    /// Calls in a row that could have let others run, and did not, as there was nothing to run.
    pub(crate) calls_without_turn: u32,
    /// How often it has slept since something happened, if other nodes cannot wake it.
    pub(super) back_offs: u32,
    /// When the state of ranks' threads is checked next, in nanoseconds.
    pub(super) next_look_at_threads: u64,
    pub(super) tokio_turn: u64,
    /// Number of its ranks that wait for something outside `vrt`, which holds their wakers.
    pub(super) wait_for_outside: &'static AtomicU32,
    /// Ranks whose stacks have their guards in this process.
    pub(super) guarded: Vec<bool>,
    /// Packets for ranks that are moving here.
    pub(super) coming: Coming,
    /// Packets that must be processed again.
    pub(super) again: VecDeque<StrayPacket>,
    /// When extensions want to be called, by the cycle counter.
    pub(super) due: u64,
    /// An extension has something that it sends when there is more of it, or nothing is ready.
    pub(crate) has_gathered: bool,
    /// The PE whose packets are being taken.
    pub(crate) receiving_from: u32,
    /// Packets taken from rings.
    pub(super) received: u64,
    /// The program of every rank.
    pub(crate) program: Program,
    /// Parcels of which some pieces have come.
    pub(crate) parcels: parcel::Incoming,
    /// What the nodes of the job agree on.
    pub(super) termination: Termination,
    /// The exit status of the rank that just suspended.
    pub(super) exiting: Option<i32>,
}

/// What others may ask a PE, and have it do.
impl Core {
    /// Number of this PE in the job.
    #[inline(always)]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The control memory, for this PE's node.
    #[inline(always)]
    pub fn shared(&self) -> Shared {
        self.shared
    }

    /// The rank that runs, or ran last.
    #[inline(always)]
    pub fn running_rank(&self) -> u32 {
        self.current
    }

    /// The ranks that live here, by number, with those that have ended and still owe somebody what they have sent.
    pub fn ranks_mut(&mut self) -> impl Iterator<Item = (u32, &mut RankState)> {
        (0..).zip(&mut self.ranks).filter_map(|(rank, state)| Some((rank, state.as_deref_mut()?)))
    }

    /// Cycles spent in ranks, including the switches to them.
    pub fn busy(&self) -> u64 {
        self.busy
    }

    /// Cycles asleep or polling.
    pub fn idle(&self) -> u64 {
        self.idle
    }

    /// Cycles that messages to and from other nodes have kept this PE busy.
    pub fn cycles_of_remote(&self) -> u64 {
        self.net.cycles_of_remote()
    }

    /// How often a rank has stopped running.
    pub fn switches(&self) -> &AtomicU64 {
        &self.switches
    }

    /// Whether the PE sleeps or polls now, which counts as idle.
    pub fn idles(&self) -> &AtomicBool {
        &self.idles
    }

    /// Sends a value to another PE.
    pub fn send_parcel<T: Serialize>(&mut self, to: u32, topic: Topic, contents: &T) {
        parcel::send(&mut self.net, self.id, to, topic, contents);
    }

    /// Removes the transport to other nodes: nothing is sent there any more.
    pub fn take_remote(&mut self) -> Option<Box<dyn Remote>> {
        self.net.take_remote()
    }
}

/// The part of the job's configuration that a PE needs.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The longest message that is sent before its receive is known; `None`: chosen automatically.
    pub eager: Option<usize>,
    /// Bytes that unexpected messages of a rank may take before their senders have to wait.
    pub unexpected: usize,
    /// The PE lives in a thread of a process that continues without it.
    pub local: bool,
    /// There are more PEs than cores: an idle PE yields its core.
    pub oversubscribed: bool,
    /// Memory means the same on all PEs, so that ranks can move with it.
    pub memory_moves: bool,
    /// Report what ranks leave behind in their heaps.
    pub check_leaks: bool,
    /// Search all memory of a rank at each move, and report what it refers to.
    pub check_moves: bool,
    /// Search the stacks of suspended ranks for pointers into the PE's heap.
    pub check_stacks: bool,
}

/// Entries of the table.
pub(super) const ENTRIES: usize = 8;

/// Handles a packet; its payload is readable for `packet.payload()` bytes during the call.
pub(crate) type TakePacket = unsafe fn(&mut Engine, &Packet, *const u8);

/// Handles a completely received parcel.
pub(crate) type TakeParcel = fn(&mut Engine, &Parcel);

/// Handles an event of a rank.
pub(crate) type OfRank = fn(&mut Engine, u32);

/// The packets, parcels and events that an extension handles.
#[derive(Clone, Copy)]
pub struct Handlers {
    /// The kinds of packets that it handles, each with its handler.
    pub packets: &'static [(Kind, TakePacket)],
    /// The topics of parcels that it handles, each with its handler.
    pub parcels: &'static [(Topic, TakeParcel)],
    /// A rank has ended, or restarts from its state: nothing that it made is left.
    pub rank_over: Option<fn(&mut Engine, u32, &mut RankState)>,
    /// A rank has ended.
    pub rank_ended: Option<OfRank>,
    /// The last of a rank's memory has been sent to another node.
    pub memory_gone: Option<OfRank>,
    /// The time requested with [`Core::call_at`], by this or another extension, has come.
    pub due: Option<fn(&mut Engine)>,
    /// Nothing is ready, or a rank has left: whatever was gathered, by this or another extension, must be sent now.
    pub send_gathered: Option<fn(&mut Engine)>,
}

impl Handlers {
    /// No handlers.
    pub const NONE: Handlers = Handlers {
        packets: &[],
        parcels: &[],
        rank_over: None,
        rank_ended: None,
        memory_gone: None,
        due: None,
        send_gathered: None,
    };
}

/// An extension's state: what it is, for a comparison without a call, and the state itself.
pub(super) struct ExtensionEntry {
    pub(super) of: TypeId,
    pub(super) state: Box<dyn Any>,
}

/// The extensions of a PE.
pub struct Extensions {
    pub(super) entries: [ExtensionEntry; ENTRIES],
    pub(super) handlers: Vec<Handlers>,
    pub(super) packets: [TakePacket; KINDS],
    pub(super) parcels: [TakeParcel; TOPICS],
}
