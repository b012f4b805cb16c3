//! The search by many ranks: a [`Searcher`] on each, and the messages between them.
//!
//! A rank with work looks for messages once in every poll interval; one without work blocks in a
//! receive, and costs the others of its processor nothing. Messages without branches are empty
//! and told apart by their tags. They are sent with blocking standard sends, which must not wait
//! for the receiver, as no MPI makes so small a message wait. Branches can be many; while a rank
//! sends them it goes on receiving, so that two ranks that send each other branches do not wait
//! for each other.

use crate::{
    frontier::{Branch, Counts},
    lanes::Kernel,
    searcher::{Message, Searcher, Sharing},
    statistics::RankStatistics,
    tree::Tree,
};
use mpi::{Tag, topology::SimpleCommunicator, traits::*};

const TRY: Tag = 1;
const REFUSAL: Tag = 2;
const LIFELINE: Tag = 3;
const NOTE: Tag = 4;
const WORK: Tag = 5;
const GIFT: Tag = 6;
const RECEIPT: Tag = 7;
const END: Tag = 8;

/// Searches the tree with all ranks of `world`; gives this rank's part of what was found.
///
/// All ranks must call this, with the same arguments but for `progress`, which is called once in
/// every poll interval in which the rank has work. No other message may be in flight on `world`
/// meanwhile. None of the search is afterwards.
///
/// # Panics
///
/// If a message arrives that is not of the search.
pub fn search(
    world: &SimpleCommunicator,
    tree: &Tree,
    kernel: Kernel,
    sharing: Sharing,
    mut progress: impl FnMut(Counts),
) -> RankStatistics {
    // Numbers and sizes are not negative.
    let (rank, ranks) = (world.rank() as usize, world.size() as usize);
    let mut searcher = Searcher::new(tree, kernel, rank, ranks, sharing);
    let (mut working, mut waiting) = (0.0, 0.0);
    let mut now = mpi::time();
    let mut passed = |sum: &mut f64| {
        let before = std::mem::replace(&mut now, mpi::time());
        *sum += now - before;
    };
    loop {
        searcher.respond();
        while let Some((to, message)) = searcher.next_outgoing() {
            send(world, &mut searcher, to, message);
        }
        if searcher.has_ended() {
            break;
        }
        if searcher.has_work() {
            searcher.explore();
            progress(searcher.counts());
            if ranks == 1 {
                continue;
            }
        } else {
            passed(&mut working);
            receive(world, &mut searcher);
            passed(&mut waiting);
        }
        receive_what_arrived(world, &mut searcher);
    }
    passed(&mut working);
    // The end does not reach all ranks at once, and rank 0 must not begin another search before.
    world.barrier();
    RankStatistics { counts: searcher.counts(), traffic: searcher.traffic(), working, waiting }
}

fn send(world: &SimpleCommunicator, searcher: &mut Searcher, to: usize, message: Message) {
    // A rank's number, which was an `i32` before.
    let to = world.process_at_rank(to as i32);
    let (tag, branches) = match message {
        Message::Try => (TRY, None),
        Message::Refusal => (REFUSAL, None),
        Message::Lifeline => (LIFELINE, None),
        Message::Note => (NOTE, None),
        Message::Work(branches) => (WORK, Some(branches)),
        Message::Gift(branches) => (GIFT, Some(branches)),
        Message::Receipt => (RECEIPT, None),
        Message::End => (END, None),
    };
    let Some(branches) = branches else {
        return to.send_with_tag::<[u32]>(&[], tag);
    };
    let words: Vec<u32> = branches.into_iter().flat_map(Branch::to_words).collect();
    mpi::request::scope(|scope| {
        let mut request = to.immediate_send_with_tag(scope, &words[..], tag);
        loop {
            match request.test() {
                Ok(_) => break,
                Err(pending) => request = pending,
            }
            receive_what_arrived(world, searcher);
        }
    });
}

/// Receives everything that has arrived.
fn receive_what_arrived(world: &SimpleCommunicator, searcher: &mut Searcher) {
    while world.any_process().immediate_probe().is_some() {
        receive(world, searcher);
    }
}

/// Waits for a message and takes it in.
fn receive(world: &SimpleCommunicator, searcher: &mut Searcher) {
    let (words, status) = world.any_process().receive_vec::<u32>();
    let message = match status.tag() {
        TRY => Message::Try,
        REFUSAL => Message::Refusal,
        LIFELINE => Message::Lifeline,
        NOTE => Message::Note,
        WORK => Message::Work(branches(&words)),
        GIFT => Message::Gift(branches(&words)),
        RECEIPT => Message::Receipt,
        END => Message::End,
        tag => panic!("message of rank {} with tag {tag} in a search", status.source_rank()),
    };
    // A sender's number is not negative.
    searcher.receive(status.source_rank() as usize, message);
}

fn branches(words: &[u32]) -> Vec<Branch> {
    words.as_chunks().0.iter().copied().map(Branch::from_words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        named::Published,
        statistics::{Totals, gather},
        tree::{Kind, Parameters},
    };

    #[test]
    fn any_number_of_ranks_finds_the_same_tree() {
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
        for (ranks, chunk, poll_interval) in [(1, 64, 1024), (2, 1, 16), (7, 8, 100), (64, 4, 32)] {
            let sharing = Sharing { chunk, poll_interval, ..Sharing::default() };
            mpi::run_local(ranks, |world| {
                // Twice, so that what one search left behind would meet the next.
                for _ in 0..2 {
                    let mine = search(world, &tree, Kernel::fastest(), sharing, |_| {});
                    if let Some(all) = gather(world, &mine) {
                        assert_eq!(all.len(), world.size() as usize);
                        assert_eq!(Totals::new(&all).differs_from(Some(published)), None);
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
            let sharing = Sharing { poll_interval: 160, ..Sharing::default() };
            let progress = |counts: Counts| seen.push(counts.nodes);
            let mine = search(world, &tree, Kernel::PLAIN, sharing, progress);
            assert!(seen.len() >= 10 && seen.is_sorted());
            assert_eq!(seen.last(), Some(&mine.counts.nodes));
        });
    }
}
