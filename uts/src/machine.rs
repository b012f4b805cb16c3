//! What all algorithms that send messages are: state machines without any communication in them.
//!
//! A [`Machine`] is one rank's part of a search. It is told what arrived ([`Machine::receive`]) and
//! to work for a while ([`Machine::explore`]), and says what is to be sent ([`Machine::respond`],
//! [`Machine::next_outgoing`]). The program runs it over ranks ([`crate::parallel`]); tests run many
//! of them under a scheduler that delays and reorders messages as badly as it can.

use crate::{
    frontier::{Branch, Counts},
    termination::Token,
};

/// What ranks say to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Have you work to spare?
    Try,
    /// No.
    Refusal,
    /// Remember that I have no work.
    Lifeline,
    /// I remember.
    Note,
    /// Branches, as the answer to a request.
    Work(Vec<Branch>),
    /// Branches that were not asked for just now: for a rank that was remembered, or for the manager.
    Gift(Vec<Branch>),
    /// To the manager: I have no work, and this is my so-manieth message.
    Request(u64),
    /// Branches were received, and what came of them is finished or others answer for it.
    Receipt,
    /// The token on its way around the ring.
    Token(Token),
    /// How many messages with branches have you sent and received? Passed on down a tree.
    Ask,
    /// So many have I sent and received, with all ranks below me.
    Tally {
        /// Sent.
        sent: u64,
        /// Received.
        received: u64,
    },
    /// There is no work any more: ask nobody from now on. Passed on down a tree.
    Stop,
    /// Neither I nor the ranks below me wait for an answer any more.
    Drained,
    /// The search is over, and no message on its way. Passed on down a tree.
    End,
}

impl Message {
    /// The branches in it.
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
    /// Chunks that were taken from other ranks.
    pub steals: u64,
    /// Chunks that were taken back from where this rank had put them.
    pub acquired: u64,
    /// Attempts that brought nothing.
    pub failed_steals: u64,
    /// Chunks that were put where others get them.
    pub releases: u64,
    /// Open nodes in the chunks that this rank got, its own ones too.
    pub nodes_stolen: u64,
    /// Open nodes in the chunks that this rank put.
    pub nodes_released: u64,
    /// The identities of all chunks that this rank put, added up.
    pub put: u64,
    /// The identities of all chunks that this rank got, added up.
    pub got: u64,
    /// Requests that were made before the rank had run out of work.
    pub prefetches: u64,
    /// Those that brought work.
    pub prefetched: u64,
}

impl Traffic {
    /// Notes that a chunk was put.
    pub fn note_put(&mut self, branches: &[Branch]) {
        self.releases += 1;
        self.nodes_released += nodes(branches);
        self.put = self.put.wrapping_add(identity(branches));
    }

    /// Notes that a chunk was got from another rank.
    pub fn note_got(&mut self, branches: &[Branch]) {
        self.steals += 1;
        self.note_in(branches);
    }

    /// Notes that a chunk was taken back.
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

/// A number that two different chunks are unlikely to share: added up over all chunks put and over
/// all chunks got, it shows one that was lost and another that was got twice in its place.
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
    /// Whether there are open nodes. If not, there is nothing to do but to wait for messages.
    fn has_work(&self) -> bool;

    /// Whether the search is over for this rank: nothing more will arrive.
    fn has_ended(&self) -> bool;

    /// Whether an answer is awaited that may be work: the rank searches. If not, it is idle.
    fn is_asking(&self) -> bool;

    /// Looks at the nodes of one poll interval.
    fn explore(&mut self);

    /// Gives up the open nodes, and from now on all that come: the search has reached its limit.
    fn abandon(&mut self);

    /// Takes in a message from another rank.
    fn receive(&mut self, from: usize, message: Message);

    /// Answers others, and, if this rank has no work itself and may ask for some, takes its next step to find
    /// it. To be called first, and after messages were received.
    fn respond(&mut self, may_ask: bool);

    /// Whether it would ask for work if it might.
    fn would_ask(&self) -> bool;

    /// Whether another rank waits for work that reaches this one: then it has to ask though its PE is not idle, if
    /// that goes on.
    fn is_awaited(&self) -> bool {
        false
    }

    /// The next message to be sent, and to whom.
    fn next_outgoing(&mut self) -> Option<(usize, Message)>;

    /// What was counted so far.
    fn counts(&self) -> Counts;

    /// What was given and taken so far.
    fn traffic(&self) -> Traffic;

    /// What this rank adds to the next sum over all ranks, if it is ready for one: chunks sent and
    /// received. Asked of idle ranks between their sums.
    fn contribution(&mut self) -> Option<[u64; 2]> {
        None
    }

    /// Whether it waits for messages of all others all the time: a program that has a receive open for each has to look
    /// through them.
    fn awaits_all(&self) -> bool {
        false
    }

    /// Takes in the sums over all ranks.
    fn receive_sums(&mut self, _sums: [u64; 2]) {}
}

/// The ranks to which a rank passes things on: a binary tree with rank 0 as its root.
pub fn below(rank: usize, ranks: usize) -> impl Iterator<Item = usize> {
    [2 * rank + 1, 2 * rank + 2].into_iter().filter(move |&it| it < ranks)
}

/// The rank above one that is not 0.
#[must_use]
pub fn above(rank: usize) -> usize {
    rank.saturating_sub(1) / 2
}
