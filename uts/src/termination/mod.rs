//! Termination detection: when no rank has work, and none is in flight.
//!
//! | module | rule | costs |
//! |---|---|---|
//! | [`diffusing`] | Dijkstra and Scholten: receipts along a tree of engaged ranks | a message per chunk |
//! | [`token`] | the coloured token of the 2007 paper, around a ring | ranks messages per round |
//! | [`counting`] | Mattern's four counters, up and down a tree | 2 ranks messages per wave |
//! | [`counting`] | the same, summed by an all-reduce of the runtime (`quiescence`) | a collective operation per wave |
//!
//! A [`Detector`] is told about each chunk given and received ([`Detector::gave`],
//! [`Detector::got`]), gets its own messages ([`Detector::receive`]), and is called whenever its
//! rank is *passive* ([`Detector::passive`]): without work, and not waiting for an answer that may
//! be work, unless such answers continue until the end (see [`Drain`]).
//!
//! All four are correct if messages overtake each other; the tests of [`crate::searcher`] check
//! this.

pub mod counting;
pub mod diffusing;
pub mod token;

use crate::machine::{Message, above, below};
use counting::Counting;
use diffusing::Diffusing;
use std::collections::VecDeque;
use token::Ring;
pub use token::{Colour, Token};

/// Messages to be sent, with their destinations.
pub type Outbox = VecDeque<(usize, Message)>;

/// How the end is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Termination {
    /// Receipts (Dijkstra and Scholten 1980).
    DijkstraScholten,
    /// A coloured token and a pink fence (Dinan et al. 2007).
    Token,
    /// Chunks are counted.
    Counting,
    /// Chunks are counted by the runtime's own collective operations.
    Quiescence,
}

impl Termination {
    /// All values.
    pub const ALL: [Self; 4] =
        [Self::DijkstraScholten, Self::Token, Self::Counting, Self::Quiescence];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DijkstraScholten => "dijkstra-scholten",
            Self::Token => "token",
            Self::Counting => "counting",
            Self::Quiescence => "quiescence",
        }
    }
}

/// The result of a detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing new.
    Unknown,
    /// No rank has work, and none is in flight.
    NoWork,
    /// As `NoWork`, and ranks must not ask for work from now on; the detector does the rest.
    Fence,
    /// As `NoWork`, and no message is in flight.
    Clean,
}

/// One rank's part of a termination detection.
#[derive(Clone, Debug)]
pub enum Detector {
    /// Receipts.
    Diffusing(Diffusing),
    /// The token.
    Ring(Ring),
    /// Waves of counts.
    Counting(Counting),
}

impl Detector {
    /// The part of `rank`.
    #[must_use]
    pub fn new(termination: Termination, rank: usize, ranks: usize) -> Self {
        match termination {
            Termination::DijkstraScholten => Self::Diffusing(Diffusing::new(rank)),
            Termination::Token => Self::Ring(Ring::new(rank, ranks)),
            Termination::Counting => Self::Counting(Counting::new(rank, ranks, false)),
            Termination::Quiescence => Self::Counting(Counting::new(rank, ranks, true)),
        }
    }

    /// A chunk was sent to a rank.
    pub fn gave(&mut self, to: usize) {
        match self {
            Self::Diffusing(it) => it.gave(),
            Self::Ring(it) => it.gave(to),
            Self::Counting(it) => it.gave(),
        }
    }

    /// A chunk was received from a rank.
    pub fn got(&mut self, from: usize, out: &mut Outbox) {
        match self {
            Self::Diffusing(it) => it.got(from, out),
            Self::Ring(it) => it.got(),
            Self::Counting(it) => it.got(),
        }
    }

    /// A request or an answer without work was sent (`true`) or received.
    pub fn control(&mut self, sent: bool) {
        if let Self::Ring(it) = self {
            it.control(sent);
        }
    }

    /// Whether this rank may ask for work of its own accord.
    #[must_use]
    pub fn may_ask(&self, persistent: bool) -> bool {
        match self {
            // With one that is not engaged nobody would wait for the answer.
            Self::Diffusing(it) => persistent || it.is_engaged(),
            Self::Ring(it) => !it.is_fenced(),
            Self::Counting(_) => true,
        }
    }

    /// Processes a message of the detection. Returns any other message.
    pub fn receive(&mut self, message: Message, out: &mut Outbox) -> Option<Message> {
        match (self, message) {
            (Self::Diffusing(it), Message::Receipt) => it.receive_receipt(),
            (Self::Ring(it), Message::Token(token)) => it.receive(token),
            (Self::Counting(it), Message::Ask) => it.receive_ask(out),
            (Self::Counting(it), Message::Tally { sent, received }) => {
                it.receive_tally(sent, received);
            }
            (_, message) => return Some(message),
        }
        None
    }

    /// The rank is passive: advances the detection, if possible.
    pub fn passive(&mut self, out: &mut Outbox) -> Verdict {
        match self {
            Self::Diffusing(it) => it.passive(out),
            Self::Ring(it) => it.passive(out),
            Self::Counting(it) => it.passive(out),
        }
    }
}

/// Ends the search of ranks that ask for work until the end: ranks stop asking (`Stop`, down the tree), have all
/// answers (`Drained`, up), and nothing is in flight (`End`, down).
#[derive(Clone, Debug)]
pub struct Drain {
    rank: usize,
    ranks: usize,
    stopped: bool,
    told: bool,
    drained_below: usize,
}

impl Drain {
    /// The part of `rank`.
    #[must_use]
    pub fn new(rank: usize, ranks: usize) -> Self {
        Self { rank, ranks, stopped: false, told: false, drained_below: 0 }
    }

    /// Whether ranks must not ask any more.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// There is no work left. `everybody_knows` if others need not be told.
    pub fn stop(&mut self, everybody_knows: bool, out: &mut Outbox) {
        if !self.stopped && !everybody_knows {
            out.extend(below(self.rank, self.ranks).map(|it| (it, Message::Stop)));
        }
        self.stopped = true;
    }

    /// A rank below has drained, with all ranks below it.
    pub fn receive_drained(&mut self) {
        self.drained_below += 1;
    }

    /// Advances; returns whether the search has ended for all ranks, which only rank 0 finds out.
    pub fn step(&mut self, unanswered: usize, out: &mut Outbox) -> bool {
        let missing = below(self.rank, self.ranks).count() - self.drained_below;
        if !self.stopped || self.told || unanswered > 0 || missing > 0 {
            return false;
        }
        self.told = true;
        if self.rank == 0 {
            return true;
        }
        out.push_back((above(self.rank), Message::Drained));
        false
    }
}
