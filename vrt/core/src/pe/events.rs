//! The events that an observer of a PE receives.
//!
//! Times are stamps of the cycle counter; those between `from` and `to` of [`Event::Ran`] and [`Event::Idle`] follow
//! each other from the PE's beginning on, without a gap except for the time in which the PE takes in a rank, and the
//! times of a rank add up to its [`Counters`](super::Counters).

use std::sync::atomic::{AtomicBool, Ordering};

use crate::net::Packet;

/// Receives the events of a PE, on the PE's thread and the process's heap.
pub trait Observer {
    /// Something has happened just now.
    fn observe(&mut self, event: Event<'_>);
}

/// An event. Ranks are ranks of the job.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A rank has run.
    Ran {
        /// The rank.
        rank: u32,
        /// When it began.
        from: u64,
        /// When it stopped.
        to: u64,
        /// What it does next.
        then: Then,
    },
    /// No rank could run.
    Idle {
        /// When that began.
        from: u64,
        /// When it ended.
        to: u64,
    },
    /// A rank has sent a message.
    Sent(Envelope),
    /// A message has been matched. Its sender may still wait for that, and its data may arrive later.
    Matched(Envelope),
    /// A rank has sent a message, which was matched at once.
    SentAndMatched(Envelope),
    /// The receive of a message was cancelled: the message waits for another one.
    PutBack {
        /// The receiver.
        rank: u32,
    },
    /// A rank has begun a collective operation.
    CollectiveBegins {
        /// The rank.
        rank: u32,
        /// The operation's context.
        context: u32,
        /// The call, if it is known.
        call: &'static str,
    },
    /// A rank has finished its part in the first collective operation of the context that it has begun.
    CollectiveEnds {
        /// The rank.
        rank: u32,
        /// The operation's context.
        context: u32,
        /// The call, if it is known.
        call: &'static str,
    },
    /// A rank has left for another PE.
    Leaves {
        /// The rank.
        rank: u32,
        /// The destination PE.
        to: u32,
        /// Bytes transferred.
        bytes: u64,
        /// How it moves.
        by: By,
    },
    /// A rank has arrived from another PE.
    Comes {
        /// The rank.
        rank: u32,
        /// The source PE.
        from: u32,
    },
    /// A rank was to move and could not.
    Stays {
        /// The rank.
        rank: u32,
        /// What pins it.
        why: &'a str,
    },
    /// A balancing step has found the loads, and decided.
    Step {
        /// Number of the step.
        number: u32,
        /// The strategy that decides.
        strategy: &'a str,
        /// Every rank that has not ended.
        ranks: &'a [Placed],
    },
    /// A rank has entered a region of its program.
    RegionBegins {
        /// The rank.
        rank: u32,
        /// The program's name for it.
        name: &'a str,
    },
    /// A rank has left the region that it entered last.
    RegionEnds {
        /// The rank.
        rank: u32,
    },
    /// A rank's program has ended.
    Over {
        /// The rank.
        rank: u32,
        /// Cycles for which it has run.
        run: u64,
        /// How often it has stopped running.
        switches: u64,
        /// Messages that it has sent.
        messages: u64,
        /// Bytes in those.
        bytes: u64,
    },
}

/// What a rank does after it has stopped running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is ready to run.
    Ready,
    /// It continues running: the PE polled whether what it waits for would arrive soon.
    Looks,
    /// It waits in a call.
    Waits {
        /// The call, or empty.
        call: &'static str,
        /// The partner, as a rank of the communicator; `ANY` for any, `None` if there is none.
        partner: Option<i32>,
    },
    /// Its program has ended.
    Over,
}

/// How a rank moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Inside a node: its slot changes owner.
    HandOver,
    /// To another node, with its memory.
    Memory,
    /// By its encoded state.
    State,
}

impl By {
    /// How a rank moves with its memory.
    pub(crate) fn within(is_near: bool) -> By {
        if is_near { By::HandOver } else { By::Memory }
    }
}

/// A message, in flight or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The sending rank of the job.
    pub from: u32,
    /// The destination rank of the job.
    pub to: u32,
    /// Its index among the messages from this rank to that one.
    pub sequence: u32,
    /// Its context.
    pub context: u32,
    /// Its tag.
    pub tag: i32,
    /// Its length in bytes.
    pub bytes: u64,
}

impl Envelope {
    pub(crate) fn of(packet: &Packet) -> Envelope {
        let Packet { from, to, sequence, context, tag, .. } = *packet;
        Envelope { from, to, sequence, context, tag, bytes: packet.message_len() }
    }
}

/// A rank in a balancing step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// The rank.
    pub rank: u32,
    /// Its current PE.
    pub at: u32,
    /// The PE that it is assigned to.
    pub to: u32,
    /// Time that it has run since the last step.
    pub seconds: f64,
    /// Live bytes of its memory.
    pub bytes: u64,
    /// Whether it is pinned.
    pub pinned: bool,
}

/// A PE of this process is observed.
pub(super) static OBSERVED: AtomicBool = AtomicBool::new(false);

/// Whether there can be observers. If built with `--cfg vrt_unobserved` there are none, and no place checks for one:
/// `scripts/bench tracing` compares with that.
pub const CAN_BE_OBSERVED: bool = cfg!(not(vrt_unobserved));

/// Whether a PE of this process is observed.
#[inline(always)]
pub fn is_observed() -> bool {
    CAN_BE_OBSERVED && OBSERVED.load(Ordering::Relaxed)
}
