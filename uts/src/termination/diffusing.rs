//! Dijkstra and Scholten's rule ("Termination detection for diffusing computations", Inf. Proc.
//! Letters 11, 1980).
//!
//! A rank is *engaged* or not. Rank 0 is engaged from the start; another becomes so by receiving work, and the sender
//! of that work is then its *parent*. Every message with branches is answered by one receipt: at once if the receiver
//! is engaged already; if the message engages the receiver, only when the receiver disengages. It does so when it is
//! passive and has receipts for all the branches that it sent. When rank 0 reaches this state, there is no work:
//!
//! * *The engaged ranks form a tree with rank 0 as its root.* A rank enters it below an engaged one, as its parent
//!   still lacks its receipt and so is engaged. It leaves the tree as a leaf: its children's receipts would otherwise
//!   be missing.
//! * So when rank 0 has all receipts, it has no children, and no other rank is engaged.
//! * *Only engaged ranks have open nodes, and only they have branches in flight to or from them.*
//!
//! If ranks ask only while they are engaged, and count as passive only when they have their answers, no other message
//! is in flight then either. No step of this relies on the order of messages. There is no token whose rounds take
//! longer the more ranks there are.

use super::{Outbox, Verdict};
use crate::machine::Message;

/// One rank's part.
#[derive(Clone, Debug)]
pub struct Diffusing {
    engagement: Engagement,
    /// Messages with branches sent, minus receipts.
    unreceipted: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engagement {
    /// Rank 0.
    Root,
    /// The parent still waits for a receipt.
    Engaged {
        parent: usize,
    },
    Disengaged,
}

impl Diffusing {
    pub(super) fn new(rank: usize) -> Self {
        let engagement = if rank == 0 { Engagement::Root } else { Engagement::Disengaged };
        Self { engagement, unreceipted: 0 }
    }

    pub(super) fn is_engaged(&self) -> bool {
        self.engagement != Engagement::Disengaged
    }

    pub(super) fn gave(&mut self) {
        self.unreceipted += 1;
    }

    pub(super) fn got(&mut self, from: usize, out: &mut Outbox) {
        if self.engagement == Engagement::Disengaged {
            self.engagement = Engagement::Engaged { parent: from };
        } else {
            out.push_back((from, Message::Receipt));
        }
    }

    pub(super) fn receive_receipt(&mut self) {
        self.unreceipted -= 1;
    }

    pub(super) fn passive(&mut self, out: &mut Outbox) -> Verdict {
        if self.unreceipted > 0 {
            return Verdict::Unknown;
        }
        match self.engagement {
            Engagement::Root => return Verdict::NoWork,
            Engagement::Engaged { parent } => {
                self.engagement = Engagement::Disengaged;
                out.push_back((parent, Message::Receipt));
            }
            Engagement::Disengaged => {}
        }
        Verdict::Unknown
    }
}
