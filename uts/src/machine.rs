//! The common form of all algorithms that send messages: state machines without any communication in them.
//!
//! A [`Machine`] is one rank's part of a search. It takes messages ([`Machine::receive`]), works for a while
//! ([`Machine::explore`]), and produces messages to be sent ([`Machine::respond`], [`Machine::next_outgoing`]). The
//! program runs it over ranks ([`crate::parallel`]); tests run many of them under a scheduler that delays and reorders
//! messages as badly as it can.

use crate::{
    frontier::{Branch, Counts},
    termination::Token,
};

/// The messages between ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Do you have work to spare?
    Try,
    /// No.
    Refusal,
    /// Remember that I have no work.
    Lifeline,
    /// I do.
    Note,
    /// Branches, as the answer to a request.
    Work(Vec<Branch>),
    /// Branches that are not the answer to a request: for a remembered rank, or for the manager.
    Gift(Vec<Branch>),
    /// To the manager: I have no work, and this is the number of my message.
    Request(u64),
    /// Branches were received, and the work that resulted is finished or others are responsible for it.
    Receipt,
    /// The token on its way around the ring.
    Token(Token),
    /// How many messages with branches have you sent and received? Passed on down a tree.
    Ask,
    /// The numbers that I and all ranks below me have sent and received.
    Tally {
        /// Sent.
        sent: u64,
        /// Received.
        received: u64,
    },
    /// There is no work left: do not ask from now on. Passed on down a tree.
    Stop,
    /// Neither I nor the ranks below me wait for an answer any more.
    Drained,
    /// The search has ended, and no message is in flight. Passed on down a tree.
    End,
}

impl Message {
    /// The branches in the message.
    #[must_use]
    pub fn branches(&self) -> Option<&[Branch]> {
        match self {
            Self::Work(branches) | Self::Gift(branches) => Some(branches),
            _ => None,
        }
    }
}

/// How much a rank gave and took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Chunks taken from other ranks.
    pub steals: u64,
    /// Chunks that this rank released and acquired again.
    pub acquired: u64,
    /// Attempts without success.
    pub failed_steals: u64,
    /// Chunks released for others.
    pub releases: u64,
    /// Open nodes in the chunks that this rank got, including its own ones.
    pub nodes_stolen: u64,
    /// Open nodes in the chunks that this rank released.
    pub nodes_released: u64,
    /// The sum of the identities of all chunks that this rank released.
    pub put: u64,
    /// The sum of the identities of all chunks that this rank got.
    pub got: u64,
    /// Requests sent before the rank had run out of work.
    pub prefetches: u64,
    /// Those of them that brought work.
    pub prefetched: u64,
}

impl Traffic {
    /// Records a released chunk.
    pub fn note_put(&mut self, branches: &[Branch]) {
        self.releases += 1;
        self.nodes_released += nodes(branches);
        self.put = self.put.wrapping_add(identity(branches));
    }

    /// Records a chunk from another rank.
    pub fn note_got(&mut self, branches: &[Branch]) {
        self.steals += 1;
        self.note_in(branches);
    }

    /// Records a chunk that was acquired again.
    pub fn note_acquired(&mut self, branches: &[Branch]) {
        self.acquired += 1;
        self.note_in(branches);
    }

    fn note_in(&mut self, branches: &[Branch]) {
        self.nodes_stolen += nodes(branches);
        self.got = self.got.wrapping_add(identity(branches));
    }
}

fn nodes(branches: &[Branch]) -> u64 {
    branches.iter().map(|it| it.nodes()).sum()
}

/// A number that two different chunks are unlikely to share: the sums over all released and over all received chunks
/// reveal a lost chunk, and one that was received twice in its place.
fn identity(branches: &[Branch]) -> u64 {
    let ends = [branches.first(), branches.last()];
    ends.into_iter().flatten().fold(branches.len() as u64, |hash, branch| {
        branch.to_words().iter().fold(hash, |hash, &word| mix(hash ^ u64::from(word)))
    })
}

/// SplitMix64's finalizer (Steele, Lea, Flood, OOPSLA 2014).
#[must_use]
pub fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// One rank's part of a search.
pub trait Machine {
    /// Whether there are open nodes. If not, the machine can only wait for messages.
    fn has_work(&self) -> bool;

    /// Whether the search has ended for this rank: nothing more will arrive.
    fn has_ended(&self) -> bool;

    /// Whether an answer is pending that may be work: then the rank is searching, otherwise it is idle.
    fn is_asking(&self) -> bool;

    /// Looks at the nodes of one poll interval.
    fn explore(&mut self);

    /// Abandons the open nodes, and from now on all that arrive: the search has reached its limit.
    fn abandon(&mut self);

    /// Processes a message from another rank.
    fn receive(&mut self, from: usize, message: Message);

    /// Answers others, and, if this rank has no work itself and may ask for some, takes its next step to find work. To
    /// be called first, and after messages were received.
    fn respond(&mut self, may_ask: bool);

    /// Whether it would ask for work if allowed.
    fn would_ask(&self) -> bool;

    /// Whether another rank waits for work that must pass through this one: then it has to ask even if its PE does not
    /// become idle for long.
    fn is_awaited(&self) -> bool {
        false
    }

    /// The next message to be sent, and its destination.
    fn next_outgoing(&mut self) -> Option<(usize, Message)>;

    /// The counts so far.
    fn counts(&self) -> Counts;

    /// The traffic so far.
    fn traffic(&self) -> Traffic;

    /// What this rank adds to the next sum over all ranks, if it is ready for one: chunks sent and received. Idle ranks
    /// are asked between their sums.
    fn contribution(&mut self) -> Option<[u64; 2]> {
        None
    }

    /// Whether it always waits for messages from all others: a program with a receive open for each must scan them.
    fn awaits_all(&self) -> bool {
        false
    }

    /// Processes the sums over all ranks.
    fn receive_sums(&mut self, _sums: [u64; 2]) {}
}

/// The ranks below a rank in a binary tree with rank 0 as its root.
pub fn below(rank: usize, ranks: usize) -> impl Iterator<Item = usize> {
    [2 * rank + 1, 2 * rank + 2].into_iter().filter(move |&it| it < ranks)
}

/// The rank above one that is not 0.
#[must_use]
pub fn above(rank: usize) -> usize {
    rank.saturating_sub(1) / 2
}
