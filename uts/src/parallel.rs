//! The search by many ranks: for the algorithms that send messages, a [`Machine`] on each rank and the messages between
//! them; the other algorithms are called from here.
//!
//! The papers have one process on each processor. If a PE has several ranks, one that has run out of work asks for some
//! only when none of the others has any ([`mpi::when_idle`], [`Asks`]): earlier requests would gain nothing, and keep
//! the others from their work.
//!
//! A rank with work polls for messages once in every poll interval; one without work blocks in a receive, and costs the
//! other ranks of its processor nothing. Messages without branches are short or empty and distinguished by their tags.
//! They are sent with blocking standard sends, which must not wait for the receiver; no MPI makes so small a message
//! wait. Messages with branches can be long; while a rank sends them it continues to receive, so that two ranks that
//! send each other branches do not wait for each other.

use crate::{
    budget::Budget,
    fixed::Fixed,
    frontier::{Branch, Counts, Frontier},
    hierarchical,
    lanes::Kernel,
    machine::{Machine, Message, Traffic},
    plan::{Algorithm, Asks, Plan},
    searcher::Searcher,
    shared_2006,
    sharing::Sharer,
    statistics::{Clock, RankStatistics, State},
    termination::Token,
    tree::Tree,
};
use mpi::{
    Tag,
    collective::SystemOperation,
    point_to_point::{AsyncSource, Status},
    topology::SimpleCommunicator,
    traits::*,
};
use std::{pin::Pin, task::Poll, time::Duration};

const TRY: Tag = 1;
const REFUSAL: Tag = 2;
const LIFELINE: Tag = 3;
const NOTE: Tag = 4;
const WORK: Tag = 5;
const GIFT: Tag = 6;
const RECEIPT: Tag = 7;
const END: Tag = 8;
const REQUEST: Tag = 9;
const TOKEN: Tag = 10;
const ASK: Tag = 11;
const TALLY: Tag = 12;
const STOP: Tag = 13;
const DRAINED: Tag = 14;

/// How long a rank without work waits for its PE to be idle before it looks at what others have written, or asks for
/// work on behalf of another rank. (Without this limit, work might not reach an idle PE, as it is passed on from
/// neighbour to neighbour.) It hardly ever finds anything, and each look takes time from working ranks.
pub(crate) const LONGEST: Duration = Duration::from_millis(40);

/// What a rank has done so far, for observers.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Its counts.
    pub counts: Counts,
    /// Its traffic.
    pub traffic: Traffic,
}

/// Searches the tree with all ranks of `world`; returns this rank's part of the result.
///
/// All ranks must call this, with the same arguments except `progress`, which is called once in every poll interval in
/// which the rank has work. No other message may be in flight on `world` meanwhile; none of the search is in flight
/// afterwards. With a limit ([`Plan::limit`]) not all of the tree is searched; nodes that were known and not searched
/// are counted in [`Counts::left`].
///
/// # Panics
///
/// If the plan is invalid for this many ranks ([`Plan::check`]), or if a message arrives that does not belong to the
/// search.
pub fn search(
    world: &SimpleCommunicator,
    tree: &Tree,
    kernel: Kernel,
    plan: Plan,
    progress: impl FnMut(Progress),
) -> RankStatistics {
    // Numbers and sizes are not negative.
    let (rank, ranks) = (world.rank() as usize, world.size() as usize);
    if let Err(error) = plan.check(ranks) {
        panic!("rank {rank} in search: {error}");
    }
    let Plan { algorithm, termination, sharing, limit } = plan;
    let budget = Budget::new(world, limit);
    match algorithm {
        Algorithm::Steal | Algorithm::Steal2007 => {
            let searcher =
                Searcher::new(Frontier::new(tree, kernel), rank, ranks, sharing, termination);
            run(world, searcher, budget, sharing.asks, progress)
        }
        Algorithm::Share => {
            let sharer = Sharer::new(Frontier::new(tree, kernel), rank, ranks, sharing);
            run(world, sharer, budget, sharing.asks, progress)
        }
        Algorithm::Static => {
            let fixed = Fixed::new(tree, kernel, rank, ranks, sharing);
            run(world, fixed, budget, sharing.asks, progress)
        }
        Algorithm::Shared2006 => {
            shared_2006::search(world, tree, kernel, sharing, budget, progress)
        }
        Algorithm::Hierarchical => {
            hierarchical::search(world, tree, kernel, sharing, budget, progress)
        }
    }
}

/// Runs a machine on each rank until it ends.
pub(crate) fn run(
    world: &SimpleCommunicator,
    machine: impl Machine,
    mut budget: Budget,
    asks: Asks,
    mut progress: impl FnMut(Progress),
) -> RankStatistics {
    let mut party = Party { world, machine, sums: None };
    let mut clock = Clock::start(State::Working);
    let alone = world.size() == 1;
    let mut is_idle = false;
    loop {
        let may_ask = asks == Asks::AtOnce || std::mem::take(&mut is_idle);
        party.machine.respond(may_ask);
        party.send_all();
        if party.machine.has_ended() {
            break;
        }
        if party.machine.has_work() {
            clock.enter(State::Working);
            party.machine.explore();
            let (counts, traffic) = (party.machine.counts(), party.machine.traffic());
            progress(Progress { counts, traffic });
            if budget.is_spent(counts.nodes) {
                party.machine.abandon();
            }
            if alone || !party.has_message() {
                continue;
            }
            clock.enter(State::Overhead);
        } else {
            let would_ask = party.machine.would_ask();
            let searches = would_ask || party.machine.is_asking();
            clock.enter(if searches { State::Searching } else { State::Idle });
            is_idle = party.wait(would_ask && asks == Asks::WhenIdle);
        }
        party.receive_what_arrived();
    }
    clock.enter(State::Idle);
    // The end does not reach all ranks at once, and rank 0 must not begin another search before.
    world.barrier();
    budget.close();
    let (counts, traffic) = (party.machine.counts(), party.machine.traffic());
    RankStatistics { counts, traffic, times: clock.stop() }
}

/// A pending sum over all ranks.
type Sums<'w> = Pin<Box<dyn Future<Output = [u64; 2]> + 'w>>;

struct Party<'w, M> {
    world: &'w SimpleCommunicator,
    machine: M,
    sums: Option<Sums<'w>>,
}

/// What a rank without work waits for.
enum Event {
    Message(Vec<u32>, Status),
    Sums([u64; 2]),
    /// The PE is idle, or has not become idle within the time limit.
    Idle(bool),
}

impl<M: Machine> Party<'_, M> {
    fn send_all(&mut self) {
        while let Some((to, message)) = self.machine.next_outgoing() {
            self.send(to, message);
        }
    }

    fn send(&mut self, to: usize, message: Message) {
        // A rank's number, which was an `i32` before.
        let to = self.world.process_at_rank(to as i32);
        let halves = |numbers: &[u64]| -> Vec<u32> {
            numbers.iter().flat_map(|it| [*it as u32, (it >> 32) as u32]).collect()
        };
        let (tag, words) = match message {
            Message::Try => (TRY, vec![]),
            Message::Refusal => (REFUSAL, vec![]),
            Message::Lifeline => (LIFELINE, vec![]),
            Message::Note => (NOTE, vec![]),
            Message::Receipt => (RECEIPT, vec![]),
            Message::Ask => (ASK, vec![]),
            Message::Stop => (STOP, vec![]),
            Message::Drained => (DRAINED, vec![]),
            Message::End => (END, vec![]),
            Message::Request(number) => (REQUEST, halves(&[number])),
            Message::Token(token) => (TOKEN, token.to_words().to_vec()),
            Message::Tally { sent, received } => (TALLY, halves(&[sent, received])),
            Message::Work(branches) => return self.send_branches(to.rank(), &branches, WORK),
            Message::Gift(branches) => return self.send_branches(to.rank(), &branches, GIFT),
        };
        to.send_with_tag(&words[..], tag);
    }

    fn send_branches(&mut self, to: i32, branches: &[Branch], tag: Tag) {
        let to = self.world.process_at_rank(to);
        let words: Vec<u32> = branches.iter().flat_map(|it| it.to_words()).collect();
        mpi::request::scope(|scope| {
            let mut request = to.immediate_send_with_tag(scope, &words[..], tag);
            loop {
                match request.test() {
                    Ok(_) => break,
                    Err(pending) => request = pending,
                }
                self.receive_what_arrived();
            }
        });
    }

    fn has_message(&self) -> bool {
        self.world.any_process().immediate_probe().is_some()
    }

    /// Receives everything that has arrived.
    fn receive_what_arrived(&mut self) {
        while self.has_message() {
            self.receive();
        }
    }

    /// Waits for a message and processes it.
    fn receive(&mut self) {
        let (words, status) = self.world.any_process().receive_vec::<u32>();
        self.take_in(&words, status);
    }

    /// Waits for a message, or for the sums over all ranks if they are pending or about to begin; or until the PE has
    /// nothing else to do. Returns whether it is time to ask for work.
    fn wait(&mut self, or_idleness: bool) -> bool {
        let world = self.world;
        if self.sums.is_none() {
            self.sums = self.machine.contribution().map(|mine| -> Sums<'_> {
                Box::pin(async move {
                    let mut sums = [0; 2];
                    let add = SystemOperation::sum();
                    world.all_reduce_into_async(&mine[..], &mut sums[..], add).await;
                    sums
                })
            });
        }
        if self.sums.is_none() && !or_idleness {
            self.receive();
            return false;
        }
        let source = world.any_process();
        let sums = &mut self.sums;
        let mut message = std::pin::pin!(source.receive_vec_async::<u32>());
        let mut idleness = std::pin::pin!(mpi::timeout(LONGEST, mpi::when_idle()));
        let event = mpi::block_on(std::future::poll_fn(|context| {
            if let Poll::Ready((words, status)) = message.as_mut().poll(context) {
                return Poll::Ready(Event::Message(words, status));
            }
            if let Some(sums) = sums
                && let Poll::Ready(sums) = sums.as_mut().poll(context)
            {
                return Poll::Ready(Event::Sums(sums));
            }
            match or_idleness {
                true => idleness.as_mut().poll(context).map(|it| Event::Idle(it.is_ok())),
                false => Poll::Pending,
            }
        }));
        match event {
            Event::Idle(is_idle) => return is_idle || self.machine.is_awaited(),
            Event::Message(words, status) => self.take_in(&words, status),
            Event::Sums(sums) => {
                self.sums = None;
                self.machine.receive_sums(sums);
            }
        }
        false
    }

    fn take_in(&mut self, words: &[u32], status: Status) {
        let number = |at: usize| match words.get(2 * at..2 * at + 2) {
            Some(&[low, high]) => u64::from(low) | (u64::from(high) << 32),
            _ => panic!("message of rank {} is too short", status.source_rank()),
        };
        let message = match status.tag() {
            TRY => Message::Try,
            REFUSAL => Message::Refusal,
            LIFELINE => Message::Lifeline,
            NOTE => Message::Note,
            WORK => Message::Work(branches(words)),
            GIFT => Message::Gift(branches(words)),
            RECEIPT => Message::Receipt,
            REQUEST => Message::Request(number(0)),
            TOKEN => match Token::from_words(words) {
                Some(token) => Message::Token(token),
                None => panic!("message of rank {} is no token", status.source_rank()),
            },
            ASK => Message::Ask,
            TALLY => Message::Tally { sent: number(0), received: number(1) },
            STOP => Message::Stop,
            DRAINED => Message::Drained,
            END => Message::End,
            tag => panic!("message of rank {} with tag {tag} in a search", status.source_rank()),
        };
        // A sender's number is not negative.
        self.machine.receive(status.source_rank() as usize, message);
    }
}

fn branches(words: &[u32]) -> Vec<Branch> {
    words.as_chunks().0.iter().copied().map(Branch::from_words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        named::Published,
        plan::{Interval, Sharing},
        statistics::{Totals, gather},
        tree::{Kind, Parameters},
    };

    #[test]
    fn any_number_of_ranks_finds_the_same_tree_with_every_algorithm() {
        let tree = Tree::new(Parameters {
            kind: Kind::Binomial,
            branching: 100.0,
            probability: 0.124_875,
            children: 8,
            seed: 42,
            ..Parameters::default()
        })
        .expect("a sound tree");
        let published = Published { nodes: 6797, depth: Some(67), leaves: Some(5959) };
        for algorithm in Algorithm::ALL {
            for (ranks, chunk, interval) in [(1, 64, 1024), (2, 1, 16), (7, 8, 100), (64, 4, 32)] {
                for &termination in algorithm.terminations() {
                    let interval = Interval::Fixed(interval);
                    let sharing = Sharing { chunk, interval, ..algorithm.defaults() };
                    let plan = Plan { algorithm, termination, sharing, limit: None };
                    if plan.check(ranks).is_err() {
                        continue;
                    }
                    mpi::run_local(ranks as u32, |world| {
                        // Twice, so that what one search left behind would meet the next.
                        for _ in 0..2 {
                            let mine = search(world, &tree, Kernel::fastest(), plan, |_| {});
                            if let Some(all) = gather(world, &mine) {
                                assert_eq!(all.len(), world.size() as usize);
                                let wrong = Totals::new(&all).differs_from(Some(published));
                                assert_eq!(wrong, None, "{plan:?}");
                            }
                        }
                    });
                }
            }
        }
    }

    #[test]
    fn a_limited_search_loses_no_chunk_and_leaves_no_message_behind() {
        let tree = Tree::new(Parameters {
            kind: Kind::Binomial,
            branching: 100.0,
            probability: 0.6,
            children: 2,
            ..Parameters::default()
        })
        .expect("a sound tree");
        for algorithm in Algorithm::ALL {
            let sharing =
                Sharing { chunk: 4, interval: Interval::Fixed(32), ..algorithm.defaults() };
            let plan = Plan { sharing, limit: Some(20_000), ..Plan::of(algorithm) };
            mpi::run_local(7, |world| {
                for _ in 0..2 {
                    let mine = search(world, &tree, Kernel::fastest(), plan, |_| {});
                    if let Some(all) = gather(world, &mine) {
                        let totals = Totals::new(&all);
                        assert_eq!(totals.differs_from(None), None, "{plan:?}");
                        let Totals { nodes, left, .. } = totals;
                        assert!((20_000..25_000).contains(&nodes) && left > 0, "{totals:?}");
                    }
                }
            });
        }
    }

    #[test]
    fn one_rank_reports_progress() {
        let tree = Tree::new(Parameters::default()).expect("a sound tree");
        mpi::run_local(1, |world| {
            let mut seen = Vec::new();
            let sharing = Sharing { interval: Interval::Fixed(160), ..Sharing::default() };
            let plan = Plan { sharing, ..Plan::default() };
            let progress = |it: Progress| seen.push(it.counts.nodes);
            let mine = search(world, &tree, Kernel::PLAIN, plan, progress);
            assert!(seen.len() >= 10 && seen.is_sorted());
            assert_eq!(seen.last(), Some(&mine.counts.nodes));
        });
    }
}
