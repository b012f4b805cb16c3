//! Work stealing: one rank's part, as a [`Machine`].
//!
//! # Finding work
//!
//! Thieves must not keep others from working: many ranks may share a processor, and then every message to a rank
//! without work costs time that a rank with work would have had. So with the default [`Victims`], `Lifelines`, a rank
//! without work does not ask forever. It asks a few random ranks (*tries*), one after another; then it leaves its name
//! with its neighbours in a hypercube (*lifelines*) and waits. A name stays until it is served: a rank that holds a
//! name and gets work to spare gives some away (Saraswat et al., "Lifeline-based global load balancing", PPoPP 2011).
//! The hypercube is connected; so while any rank has work to spare, work reaches every rank. Initially, all names
//! except rank 0's are left already, without a message.
//!
//! The other victims are those of the papers: a thief is *persistent*; it asks one rank after another until the end.
//! `steal-2007` works that way: round robin, one chunk, one request served per poll (J. Dinan et al., IPDPS 2007,
//! section 3.2).
//!
//! # Messages
//!
//! | message | meaning | answer |
//! |---|---|---|
//! | try | do you have work to spare? | work or refusal |
//! | refusal | no | |
//! | lifeline | remember that I have no work | note |
//! | note | I do | |
//! | work | the answer to a try: branches | |
//! | gift | to a remembered rank: branches | |
//!
//! # Termination
//!
//! A rank with lifelines is passive when it has no open nodes and has received the answers to all its tries and
//! lifelines; it asks again only after it has got work. So when a detector of [`crate::termination`] finds that no rank
//! had work or will have some, nothing is in flight either, and rank 0 announces the end. A persistent thief is passive
//! when it has no open nodes: when there is no work, it is stopped first ([`crate::termination::Drain`]), unless the
//! detector has its own fence. Either way, no message of the search is in flight at the end, and the program's later
//! messages need no protection from it.

use crate::{
    frontier::{Branch, Counts, OpenNodes},
    machine::{Machine, Message, Traffic, below, mix},
    plan::{Amount, Asks, Sharing, Victims},
    termination::{Detector, Drain, Outbox, Termination, Verdict},
};
use std::collections::VecDeque;

/// One rank's part of a search.
#[derive(Debug)]
pub struct Searcher<N> {
    rank: usize,
    ranks: usize,
    sharing: Sharing,
    frontier: N,
    traffic: Traffic,

    /// Ranks whose tries have not been answered.
    trying: VecDeque<usize>,
    /// Ranks that have left their names here, the longest-waiting first.
    remembered: VecDeque<usize>,
    /// How many of them have asked for it; the others were here from the beginning, and are served first.
    came: usize,

    lifelines: Vec<Lifeline>,
    tries_left: u32,
    /// Tries and lifelines sent, minus their answers.
    unanswered: usize,
    /// The rank that was asked last, and the one that gave work last.
    asked: usize,
    gave: Option<usize>,
    detector: Detector,
    drain: Drain,
    everybody_knows: bool,
    random: u64,
    /// Nodes until the next poll.
    interval: u64,
    ended: bool,
    outbox: Outbox,
}

/// A neighbour, and whether this rank's name is left there.
#[derive(Clone, Copy, Debug)]
struct Lifeline {
    neighbour: usize,
    stands: bool,
}

impl<N: OpenNodes> Searcher<N> {
    /// The part of `rank`, which has no nodes yet, in a search by `ranks` ranks. Rank 0 looks at the root.
    #[must_use]
    pub fn new(
        mut frontier: N,
        rank: usize,
        ranks: usize,
        sharing: Sharing,
        termination: Termination,
    ) -> Self {
        if rank == 0 {
            frontier.start();
        }
        let lifelines = match sharing.victims {
            Victims::Lifelines => neighbours(rank, ranks),
            _ => Vec::new(),
        };
        let tries = if ranks - 1 > lifelines.len() { sharing.tries } else { 0 };
        Self {
            rank,
            ranks,
            sharing: Sharing { tries, ..sharing },
            frontier,
            traffic: Traffic::default(),
            trying: VecDeque::new(),
            remembered: lifelines.iter().copied().filter(|&it| it != 0).collect(),
            came: 0,
            lifelines: lifelines
                .iter()
                .map(|&neighbour| Lifeline { neighbour, stands: rank != 0 })
                .collect(),
            tries_left: if rank == 0 { tries } else { 0 },
            unanswered: 0,
            asked: rank,
            gave: None,
            detector: Detector::new(termination, rank, ranks),
            drain: Drain::new(rank, ranks),
            everybody_knows: termination == Termination::Quiescence,
            random: rank as u64,
            interval: sharing.interval.first(),
            ended: false,
            outbox: Outbox::new(),
        }
    }

    /// Whether it asks until the end.
    fn is_persistent(&self) -> bool {
        self.sharing.victims != Victims::Lifelines
    }

    fn send(&mut self, to: usize, message: Message) {
        if let Some(branches) = message.branches() {
            self.traffic.note_put(branches);
            self.detector.gave(to);
        }
        // Work in place of a refusal is an answer, too.
        if !matches!(message, Message::Gift(_)) {
            self.detector.control(true);
        }
        self.outbox.push_back((to, message));
    }

    fn take_in(&mut self, from: usize, branches: Vec<Branch>) {
        self.traffic.note_got(&branches);
        self.frontier.add(branches);
        self.tries_left = self.sharing.tries;
        self.gave = Some(from);
        self.detector.got(from, &mut self.outbox);
    }

    /// Gives what can be spared to the ranks that ask now, then to remembered ones; refuses the remaining requests.
    fn share(&mut self) {
        let given = match self.sharing.amount {
            Amount::Half => self.deal(),
            Amount::Chunk => self.give_chunks(),
        };
        // At an idle rank no request may be left over: it does not look again by itself.
        let refused = match self.sharing.one_at_a_look && self.has_work() {
            true => usize::from(given == 0),
            false => usize::MAX,
        };
        for _ in 0..refused {
            let Some(thief) = self.trying.pop_front() else { break };
            self.send(thief, Message::Refusal);
        }
    }

    fn deal(&mut self) -> usize {
        let asking = self.trying.len() + self.remembered.len();
        let chunks = self.frontier.open() / self.sharing.chunk;
        // Not more than are asking, so that it fits.
        let spared = chunks.saturating_sub(1).min(asking as u64) as usize;
        if spared > 0 {
            for branches in self.frontier.deal(spared) {
                self.give(branches);
            }
        }
        spared
    }

    fn give_chunks(&mut self) -> usize {
        let most = if self.sharing.one_at_a_look { 1 } else { usize::MAX };
        let mut given = 0;
        while given < most
            && self.trying.len() + self.remembered.len() > 0
            && self.frontier.open() > 2 * self.sharing.chunk
        {
            let chunk = self.frontier.take_bottom(self.sharing.chunk);
            self.give(chunk);
            given += 1;
        }
        given
    }

    fn give(&mut self, branches: Vec<Branch>) {
        if branches.is_empty() {
            return;
        }
        if let Some(thief) = self.trying.pop_front() {
            self.send(thief, Message::Work(branches));
        } else if let Some(thief) = self.remembered.pop_front() {
            self.came = self.came.min(self.remembered.len());
            self.send(thief, Message::Gift(branches));
        }
    }

    fn look_for_work(&mut self) {
        if self.is_persistent() || self.tries_left > 0 {
            self.tries_left = self.tries_left.saturating_sub(1);
            self.unanswered += 1;
            let victim = self.next_victim();
            self.asked = victim;
            return self.send(victim, Message::Try);
        }
        for line in 0..self.lifelines.len() {
            let Lifeline { neighbour, stands } = self.lifelines[line];
            if !stands {
                self.lifelines[line].stands = true;
                self.unanswered += 1;
                self.send(neighbour, Message::Lifeline);
            }
        }
    }

    /// Any rank except this one.
    fn next_victim(&mut self) -> usize {
        let following = |rank: usize| match (rank + 1) % self.ranks {
            next if next == self.rank => (next + 1) % self.ranks,
            next => next,
        };
        let Sharing { victims, asks, .. } = self.sharing;
        match (victims, self.gave.take()) {
            (Victims::Last, Some(gave)) => gave,
            (Victims::RoundRobin, Some(gave)) if asks == Asks::WhenIdle => gave,
            (Victims::RoundRobin | Victims::Last, _) => following(self.asked),
            (Victims::Random | Victims::Lifelines, _) => {
                let bits = mix(self.random);
                self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
                // The remainder of a division by a rank number fits.
                let other = (bits % (self.ranks as u64 - 1)) as usize;
                if other < self.rank { other } else { other + 1 }
            }
        }
    }

    /// Takes the next step to detect the end, if there is one.
    fn look_for_end(&mut self) {
        let persistent = self.is_persistent();
        if persistent || self.unanswered == 0 {
            match self.detector.passive(&mut self.outbox) {
                Verdict::Unknown | Verdict::Fence => {}
                Verdict::NoWork if persistent => {
                    self.drain.stop(self.everybody_knows, &mut self.outbox);
                }
                // Rank 0's, and it tells the others; or all ranks know.
                Verdict::NoWork => self.end(!self.everybody_knows),
                Verdict::Clean => self.end(false),
            }
        }
        if self.drain.step(self.unanswered, &mut self.outbox) {
            self.end(true);
        }
    }

    /// Ends, and passes the end on along a binary tree if the others do not know it.
    fn end(&mut self, tell: bool) {
        self.ended = true;
        if tell {
            self.outbox.extend(below(self.rank, self.ranks).map(|it| (it, Message::End)));
        }
    }
}

impl<N: OpenNodes> Machine for Searcher<N> {
    fn has_work(&self) -> bool {
        self.frontier.open() > 0
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    fn is_asking(&self) -> bool {
        self.unanswered > 0
    }

    fn explore(&mut self) {
        self.frontier.explore(self.interval);
        self.interval = self.sharing.interval.next(self.interval);
    }

    fn abandon(&mut self) {
        self.frontier.abandon();
    }

    fn receive(&mut self, from: usize, message: Message) {
        self.interval = self.sharing.interval.first();
        let Some(message) = self.detector.receive(message, &mut self.outbox) else { return };
        match message {
            Message::Try => {
                self.detector.control(false);
                self.trying.push_back(from);
            }
            Message::Refusal => {
                self.detector.control(false);
                self.unanswered -= 1;
                self.traffic.failed_steals += 1;
            }
            Message::Lifeline => {
                self.detector.control(false);
                self.remembered.push_back(from);
                self.came += 1;
                self.send(from, Message::Note);
            }
            Message::Note => {
                self.detector.control(false);
                self.unanswered -= 1;
            }
            Message::Work(branches) => {
                self.detector.control(false);
                self.unanswered -= 1;
                self.take_in(from, branches);
            }
            Message::Gift(branches) => {
                if let Some(line) = self.lifelines.iter_mut().find(|it| it.neighbour == from) {
                    line.stands = false;
                }
                self.take_in(from, branches);
            }
            Message::Stop => self.drain.stop(false, &mut self.outbox),
            Message::Drained => self.drain.receive_drained(),
            Message::End => self.end(true),
            other => unreachable!("{other:?} from rank {from}: not a message of this search"),
        }
    }

    fn respond(&mut self, may_ask: bool) {
        self.share();
        if self.has_work() || self.ended {
            return;
        }
        if self.would_ask() {
            if may_ask {
                self.look_for_work();
            } else if !self.is_persistent() {
                // It is not passive before it has asked.
                return;
            }
        }
        self.look_for_end();
    }

    fn is_awaited(&self) -> bool {
        self.came > 0
    }

    fn would_ask(&self) -> bool {
        let persistent = self.is_persistent();
        !self.has_work()
            && self.unanswered == 0
            && self.ranks > 1
            && !self.ended
            && !self.drain.is_stopped()
            && self.detector.may_ask(persistent)
            && (persistent || self.tries_left > 0 || self.lifelines.iter().any(|it| !it.stands))
    }

    fn next_outgoing(&mut self) -> Option<(usize, Message)> {
        self.outbox.pop_front()
    }

    fn counts(&self) -> Counts {
        self.frontier.counts()
    }

    fn traffic(&self) -> Traffic {
        self.traffic
    }

    fn contribution(&mut self) -> Option<[u64; 2]> {
        match &mut self.detector {
            Detector::Counting(it) => it.contribution(),
            _ => None,
        }
    }

    fn receive_sums(&mut self, sums: [u64; 2]) {
        if let Detector::Counting(it) = &mut self.detector {
            it.receive_sums(sums);
        }
    }
}

/// The neighbours of a rank in a hypercube that may lack its last part: numbers that differ from the rank's in one bit.
///
/// Connected for any number of ranks: clearing a rank's bits one by one leads to rank 0 through smaller numbers only.
fn neighbours(rank: usize, ranks: usize) -> Vec<usize> {
    (0..usize::BITS).map(|bit| rank ^ (1 << bit)).filter(|&it| it < ranks).collect()
}

#[cfg(test)]
mod tests;
