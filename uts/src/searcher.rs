//! One rank's part of a parallel search, as a state machine without any communication in it.
//!
//! A [`Searcher`] is told what arrived ([`Searcher::receive`]) and how far to work
//! ([`Searcher::explore`]), and says what is to be sent ([`Searcher::respond`],
//! [`Searcher::next_outgoing`]). The program runs
//! it over ranks ([`crate::parallel`]); a test runs many of them under a scheduler that delays
//! and reorders messages as badly as it can.
//!
//! # Finding work
//!
//! Thieves must not keep others from working: many ranks may share a processor, and then every
//! message to a rank without work costs time that a rank with work would have had. So a rank
//! without work does not go on asking. It asks a few random ranks (*tries*), one after the other;
//! then it leaves its name with its neighbours in a hypercube (*lifelines*) and waits. A name
//! that was left stands until it is served: whoever has it and comes to have work to spare gives
//! some away (Saraswat et al., "Lifeline-based global load balancing", PPoPP 2011). The hypercube
//! is connected; so while any rank has work to spare, work reaches every rank. At first all
//! names but rank 0's are left already, without a message.
//!
//! # What is sent
//!
//! | message | means | answer |
//! |---|---|---|
//! | try | have you work to spare? | work or refusal |
//! | refusal | no | |
//! | lifeline | remember that I have no work | note |
//! | note | I do | |
//! | work | the answer to a try: branches | receipt |
//! | gift | to a remembered rank: branches | receipt |
//! | receipt | you need not wait for me: see below | |
//! | end | nobody has work any more | |
//!
//! # Knowing the end
//!
//! Dijkstra and Scholten's rule ("Termination detection for diffusing computations", Inf. Proc.
//! Letters 11, 1980), with requests counted as work. A rank is *engaged* or not. Rank 0 is engaged
//! from the start; another becomes so by receiving work, and the sender of that work is then its
//! *parent*. Every message with branches is answered by one receipt: at once if the receiver is
//! engaged already; if it engages the receiver, only when the receiver disengages. It does so
//! when
//!
//! 1. it has no open nodes,
//! 2. it has the answers to all its tries and lifelines,
//! 3. it has receipts for all the branches that it sent.
//!
//! When these hold for rank 0, the search has ended:
//!
//! * *The engaged ranks form a tree with rank 0 as its root.* A rank enters it below an engaged
//!   one, for its parent still misses its receipt and so is engaged by 3. It leaves it as a
//!   leaf, by 3 as well: its children's receipts are not sent yet.
//! * So when rank 0 has all receipts, it has no children, and no other rank is engaged.
//! * *Only engaged ranks have open nodes, and only they have messages on the way to or from
//!   them*: a try, a lifeline or its answer belongs to a rank that breaks 2; branches or
//!   their receipt to one that breaks 3. (A rank that is not engaged only answers.)
//!
//! So at the end no message of the search is in flight, and nothing has to be fenced off from
//! what the program does next. No step of this relies on the order of messages. Receipts cost one
//! short message for each successful steal; there is no token whose rounds take longer the more
//! ranks there are.

use crate::{
    frontier::{Branch, Counts, Frontier},
    lanes::Kernel,
    tree::Tree,
};
use std::collections::VecDeque;

/// What ranks say to each other; see this module's table.
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
    /// Branches, as the answer to a try.
    Work(Vec<Branch>),
    /// Branches, for a rank that was remembered.
    Gift(Vec<Branch>),
    /// Branches were received, and what came of them is finished or others answer for it.
    Receipt,
    /// The search is over.
    End,
}

/// When ranks share work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Nodes that a rank keeps, and gives, at least; 1 or more.
    pub chunk: u64,
    /// Nodes that a rank looks at between two looks for messages; 1 or more.
    pub poll_interval: u64,
    /// Random ranks that a rank without work asks before it waits.
    pub tries: u32,
}

impl Default for Sharing {
    fn default() -> Self {
        Self { chunk: 32, poll_interval: 2048, tries: 2 }
    }
}

/// How much a rank gave and took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages with branches that were received.
    pub steals: u64,
    /// Tries that were refused.
    pub failed_steals: u64,
    /// Messages with branches that were sent.
    pub releases: u64,
    /// Open nodes in the messages received.
    pub nodes_stolen: u64,
    /// Open nodes in the messages sent.
    pub nodes_released: u64,
}

/// One rank's part of a search.
#[derive(Debug)]
pub struct Searcher<'t> {
    rank: usize,
    ranks: usize,
    sharing: Sharing,
    frontier: Frontier<'t>,
    traffic: Traffic,

    /// Ranks whose tries have not been answered.
    trying: VecDeque<usize>,
    /// Ranks that have left their names here, the one that has waited longest first.
    remembered: VecDeque<usize>,

    lifelines: Vec<Lifeline>,
    tries_left: u32,
    /// Tries and lifelines sent, less their answers.
    unanswered: usize,
    /// Messages with branches sent, less receipts.
    unreceipted: usize,
    engagement: Engagement,
    random: u64,
    ended: bool,
    outbox: VecDeque<(usize, Message)>,
}

/// A neighbour, and whether this rank's name is left there.
#[derive(Clone, Copy, Debug)]
struct Lifeline {
    neighbour: usize,
    stands: bool,
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

impl<'t> Searcher<'t> {
    /// The part of `rank` in a search by `ranks` ranks. Rank 0 looks at the root.
    #[must_use]
    pub fn new(
        tree: &'t Tree,
        kernel: Kernel,
        rank: usize,
        ranks: usize,
        sharing: Sharing,
    ) -> Self {
        let mut frontier = Frontier::new(tree, kernel);
        if rank == 0 {
            frontier.start();
        }
        let neighbours = neighbours(rank, ranks);
        let tries = if ranks - 1 > neighbours.len() { sharing.tries } else { 0 };
        Self {
            rank,
            ranks,
            sharing: Sharing { tries, ..sharing },
            frontier,
            traffic: Traffic::default(),
            trying: VecDeque::new(),
            remembered: neighbours.iter().copied().filter(|&it| it != 0).collect(),
            lifelines: neighbours
                .iter()
                .map(|&neighbour| Lifeline { neighbour, stands: rank != 0 })
                .collect(),
            tries_left: tries,
            unanswered: 0,
            unreceipted: 0,
            engagement: if rank == 0 { Engagement::Root } else { Engagement::Disengaged },
            random: rank as u64,
            ended: false,
            outbox: VecDeque::new(),
        }
    }

    /// Whether there are open nodes. If not, there is nothing to do but to wait for messages.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.frontier.open() > 0
    }

    /// Whether the search is over for this rank: nothing more will arrive.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.frontier.counts()
    }

    /// What was given and taken so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Looks at the nodes of one poll interval.
    pub fn explore(&mut self) {
        self.frontier.explore(self.sharing.poll_interval);
    }

    /// Takes in a message from another rank.
    pub fn receive(&mut self, from: usize, message: Message) {
        match message {
            Message::Try => self.trying.push_back(from),
            Message::Refusal => {
                self.unanswered -= 1;
                self.traffic.failed_steals += 1;
            }
            Message::Lifeline => {
                self.remembered.push_back(from);
                self.outbox.push_back((from, Message::Note));
            }
            Message::Note => self.unanswered -= 1,
            Message::Work(branches) => {
                self.unanswered -= 1;
                self.take_in(from, branches);
            }
            Message::Gift(branches) => {
                if let Some(line) = self.lifelines.iter_mut().find(|it| it.neighbour == from) {
                    line.stands = false;
                }
                self.take_in(from, branches);
            }
            Message::Receipt => self.unreceipted -= 1,
            Message::End => self.end(),
        }
    }

    /// Answers those who ask for work, and, if this rank has none itself, takes its next step to
    /// find some. To be called first, and after messages were received.
    pub fn respond(&mut self) {
        self.share();
        if !self.has_work() && self.unanswered == 0 && !self.ended {
            self.look_for_work();
        }
    }

    /// The next message to be sent, and to whom.
    pub fn next_outgoing(&mut self) -> Option<(usize, Message)> {
        self.outbox.pop_front()
    }

    fn take_in(&mut self, from: usize, branches: Vec<Branch>) {
        self.traffic.steals += 1;
        self.traffic.nodes_stolen += branches.iter().map(|it| it.nodes()).sum::<u64>();
        self.frontier.add(branches);
        self.tries_left = self.sharing.tries;
        if self.engagement == Engagement::Disengaged {
            self.engagement = Engagement::Engaged { parent: from };
        } else {
            self.outbox.push_back((from, Message::Receipt));
        }
    }

    /// Deals what can be spared to those who ask now, then to those who were remembered; refuses
    /// the rest of those who ask now.
    fn share(&mut self) {
        let asking = self.trying.len() + self.remembered.len();
        let chunks = self.frontier.open() / self.sharing.chunk;
        // Not more than are asking, so that it fits.
        let spared = chunks.saturating_sub(1).min(asking as u64) as usize;
        if spared > 0 {
            for branches in self.frontier.deal(spared) {
                if branches.is_empty() {
                    continue;
                }
                self.unreceipted += 1;
                self.traffic.releases += 1;
                self.traffic.nodes_released += branches.iter().map(|it| it.nodes()).sum::<u64>();
                if let Some(thief) = self.trying.pop_front() {
                    self.outbox.push_back((thief, Message::Work(branches)));
                } else if let Some(thief) = self.remembered.pop_front() {
                    self.outbox.push_back((thief, Message::Gift(branches)));
                }
            }
        }
        self.outbox.extend(self.trying.drain(..).map(|thief| (thief, Message::Refusal)));
    }

    fn look_for_work(&mut self) {
        if self.engagement == Engagement::Disengaged {
            return;
        }
        if self.tries_left > 0 {
            self.tries_left -= 1;
            self.unanswered += 1;
            let victim = self.random_victim();
            self.outbox.push_back((victim, Message::Try));
            return;
        }
        for line in self.lifelines.iter_mut().filter(|it| !it.stands) {
            line.stands = true;
            self.unanswered += 1;
            self.outbox.push_back((line.neighbour, Message::Lifeline));
        }
        if self.unanswered > 0 || self.unreceipted > 0 {
            return;
        }
        match self.engagement {
            Engagement::Root => self.end(),
            Engagement::Engaged { parent } => {
                self.engagement = Engagement::Disengaged;
                self.outbox.push_back((parent, Message::Receipt));
            }
            Engagement::Disengaged => {}
        }
    }

    /// Ends, and passes the end on along a binary tree.
    fn end(&mut self) {
        self.ended = true;
        let children = [2 * self.rank + 1, 2 * self.rank + 2];
        let children = children.into_iter().filter(|&it| it < self.ranks);
        self.outbox.extend(children.map(|it| (it, Message::End)));
    }

    /// Any rank but this one.
    fn random_victim(&mut self) -> usize {
        // SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        // The remainder of a division by a rank number fits.
        let other = (bits % (self.ranks as u64 - 1)) as usize;
        if other < self.rank { other } else { other + 1 }
    }
}

/// The neighbours of a rank in a hypercube, of which a last part may be missing: numbers that
/// differ from the rank's in one bit.
///
/// Connected for any number of ranks: clearing a rank's bits one by one leads to rank 0 over
/// smaller numbers only.
fn neighbours(rank: usize, ranks: usize) -> Vec<usize> {
    (0..usize::BITS).map(|bit| rank ^ (1 << bit)).filter(|&it| it < ranks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Kind, Parameters, Shape};

    /// Searchers, and the messages on their way between them.
    struct World<'t> {
        searchers: Vec<Searcher<'t>>,
        flying: Vec<(usize, usize, Message)>,
        random: u64,
    }

    impl<'t> World<'t> {
        fn new(tree: &'t Tree, ranks: usize, sharing: Sharing, seed: u64) -> Self {
            let new = |rank| Searcher::new(tree, Kernel::fastest(), rank, ranks, sharing);
            let searchers = (0..ranks).map(new).collect();
            Self { searchers, flying: Vec::new(), random: seed.wrapping_mul(2) + 1 }
        }

        fn draw(&mut self, below: usize) -> usize {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.random >> 33) as usize % below
        }

        /// Lets one rank respond, and sends what it says.
        fn respond(&mut self, rank: usize) {
            self.searchers[rank].respond();
            if rank == 0 && self.searchers[0].has_ended() {
                assert!(self.flying.is_empty(), "in flight at the end: {:?}", self.flying);
                let working = self.searchers.iter().filter(|it| it.has_work()).count();
                assert_eq!(working, 0);
            }
            while let Some((to, message)) = self.searchers[rank].next_outgoing() {
                self.flying.push((rank, to, message));
            }
        }

        /// Lets ranks work and messages arrive in any order until the end.
        fn run(&mut self) {
            self.respond(0);
            while !self.searchers.iter().all(Searcher::has_ended) {
                let working: Vec<usize> =
                    (0..self.searchers.len()).filter(|&it| self.searchers[it].has_work()).collect();
                let choices = working.len() + self.flying.len();
                assert!(choices > 0, "nobody works, nothing is on its way, and it is not the end");
                match self.draw(choices) {
                    choice if choice < working.len() => {
                        self.searchers[working[choice]].explore();
                        self.respond(working[choice]);
                    }
                    choice => {
                        let (from, to, message) = self.flying.swap_remove(choice - working.len());
                        assert!(!self.searchers[to].has_ended(), "{message:?} after the end");
                        self.searchers[to].receive(from, message);
                        self.respond(to);
                    }
                }
            }
            assert!(self.flying.is_empty(), "left over: {:?}", self.flying);
        }
    }

    fn small_trees() -> Vec<Parameters> {
        let default = Parameters::default();
        vec![
            default,
            Parameters { kind: Kind::Balanced, depth: 0, ..default },
            Parameters { shape: Shape::Fixed, depth: 4, seed: 19, ..default },
            Parameters {
                kind: Kind::Binomial,
                branching: 100.0,
                probability: 0.124_875,
                children: 8,
                seed: 42,
                ..default
            },
        ]
    }

    #[test]
    fn any_order_of_messages_gives_the_whole_tree_and_a_clean_end() {
        for parameters in small_trees() {
            let tree = Tree::new(parameters).expect("a sound tree");
            let mut alone = Frontier::new(&tree, Kernel::fastest());
            alone.start();
            alone.explore(u64::MAX);
            for (seed, ranks) in (0..20).flat_map(|seed| [1, 2, 3, 7, 16, 33].map(|it| (seed, it)))
            {
                let sharing =
                    Sharing { chunk: 1 + seed % 9, poll_interval: 1 + seed % 40, tries: 2 };
                let mut world = World::new(&tree, ranks, sharing, seed);
                world.run();
                let sum = |it: fn(&Searcher) -> u64| world.searchers.iter().map(it).sum::<u64>();
                assert_eq!(sum(|it| it.counts().nodes), alone.counts().nodes);
                assert_eq!(sum(|it| it.counts().leaves), alone.counts().leaves);
                let depth = world.searchers.iter().map(|it| it.counts().depth).max();
                assert_eq!(depth, Some(alone.counts().depth));
                assert_eq!(sum(|it| it.traffic().releases), sum(|it| it.traffic().steals));
                let released = sum(|it| it.traffic().nodes_released);
                assert_eq!(released, sum(|it| it.traffic().nodes_stolen));
            }
        }
    }

    #[test]
    fn work_reaches_everybody_when_there_is_much() {
        let (shape, depth) = (Shape::Fixed, 6);
        let parameters = Parameters { shape, depth, seed: 19, ..Parameters::default() };
        let tree = Tree::new(parameters).expect("a sound tree");
        let sharing = Sharing { chunk: 2, poll_interval: 16, tries: 2 };
        let mut world = World::new(&tree, 16, sharing, 1);
        world.run();
        assert!(world.searchers.iter().all(|it| it.counts().nodes > 0));
    }

    #[test]
    fn a_thief_asks_a_bounded_number_of_times_and_then_waits() {
        let tree = Tree::new(Parameters::default()).expect("a sound tree");
        let sharing = Sharing { tries: 3, ..Sharing::default() };
        let mut thief = Searcher::new(&tree, Kernel::PLAIN, 5, 16, sharing);
        thief.respond();
        assert_eq!(thief.next_outgoing(), None, "at the start its name is left already");

        let state = crate::rng::State::root(0);
        let branch = Branch { state, depth: 6, next: 0, end: 1 };
        thief.receive(4, Message::Gift(vec![branch]));
        thief.explore();
        for _ in 0..3 {
            thief.respond();
            let (victim, message) = thief.next_outgoing().expect("it tries again");
            assert_eq!((message, victim == 5), (Message::Try, false));
            assert_eq!(thief.next_outgoing(), None);
            thief.receive(victim, Message::Refusal);
        }
        thief.respond();
        assert_eq!(thief.next_outgoing(), Some((4, Message::Lifeline)), "the others still stand");
        assert_eq!(thief.next_outgoing(), None);
        thief.receive(4, Message::Note);
        thief.respond();
        assert_eq!(thief.next_outgoing(), Some((4, Message::Receipt)), "its parent's");
        thief.receive(9, Message::Try);
        thief.respond();
        assert_eq!(thief.next_outgoing(), Some((9, Message::Refusal)));
        assert_eq!(thief.next_outgoing(), None, "from now on it only answers");
    }

    #[test]
    fn hypercubes_are_symmetric_and_connected() {
        for ranks in 1..70 {
            for rank in 1..ranks {
                let neighbours = neighbours(rank, ranks);
                assert!(neighbours.iter().any(|&it| it < rank));
                assert!(neighbours.iter().all(|&it| super::neighbours(it, ranks).contains(&rank)));
            }
        }
        assert!(neighbours(0, 1).is_empty());
        assert_eq!(neighbours(5, 7), [4, 1]);
    }
}
