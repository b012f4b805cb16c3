//! The order in which ranks are shown.

use std::cmp::Reverse;

use bytesize::ByteSize;
use clap::ValueEnum;
use vrt_launch::count;
use vrt_launch::monitor::{RankSeen, Snapshot};

/// An order of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    Rank,
    Pe,
    Load,
    Memory,
    Messages,
    Moves,
    Wait,
}

impl Order {
    /// The order that a key selects.
    pub(crate) fn of_key(letter: char) -> Option<Order> {
        Some(match letter {
            'r' => Order::Rank,
            'p' => Order::Pe,
            'l' => Order::Load,
            'm' => Order::Memory,
            's' => Order::Messages,
            'v' => Order::Moves,
            'w' => Order::Wait,
            _ => return None,
        })
    }

    /// The ranks in this order.
    pub(crate) fn of(self, shot: &Snapshot) -> Vec<&RankSeen> {
        let mut ranks: Vec<&RankSeen> = shot.ranks.iter().collect();
        match self {
            Order::Rank => ranks.sort_by_key(|it| it.rank),
            Order::Pe => ranks.sort_by_key(|it| (it.pe, it.rank)),
            Order::Load => ranks.sort_by(|a, b| b.load.total_cmp(&a.load)),
            Order::Memory => ranks.sort_by_key(|it| Reverse(it.memory)),
            Order::Messages => ranks.sort_by(|a, b| b.message_rate.total_cmp(&a.message_rate)),
            Order::Moves => ranks.sort_by_key(|it| Reverse(it.moves)),
            Order::Wait => ranks.sort_by(|a, b| a.wait.cmp(&b.wait)),
        }
        ranks
    }
}

/// The column headings.
pub(crate) const COLUMNS: [&str; 9] =
    ["rank", "PE", "state", "load", "memory", "messages/s", "bytes/s", "moves", "waits"];

/// A rank's cells.
pub(crate) fn cells(rank: &RankSeen) -> [String; 9] {
    [
        rank.rank.to_string(),
        rank.pe.to_string(),
        rank.state.clone(),
        percent(rank.load),
        ByteSize(rank.memory).to_string(),
        format!("{:.0}", rank.message_rate),
        ByteSize(rank.byte_rate as u64).to_string(),
        rank.moves.to_string(),
        rank.wait.clone(),
    ]
}

/// A part of 1 as a percentage.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.1}%", 100.0 * part)
}

/// The job, in a few lines.
pub(crate) fn headline(shot: &Snapshot) -> Vec<String> {
    let running = shot.number_of_ranks - shot.ended;
    let mut lines = vec![
        format!("{} (process {}), {:.1} s", shot.command, shot.process, shot.seconds),
        format!(
            "{}, {}, {running} of them run; {} ({}) sent, {:.0} a second; {}",
            count(shot.pes.len() as u64, "PE"),
            count(shot.number_of_ranks, "rank"),
            count(shot.messages, "message"),
            ByteSize(shot.bytes),
            shot.message_rate,
            count(shot.all_moves, "move")
        ),
    ];
    if shot.unseen_pes > 0 {
        lines.push(format!(
            "not seen from here: {} of other nodes, with their ranks; look at the first process of each node",
            count(shot.unseen_pes as u64, "PE")
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_shown_in_the_order_asked_for() {
        let rank = |rank, pe, load| RankSeen { rank, pe, load, ..RankSeen::default() };
        let ranks = vec![rank(0, 1, 0.1), rank(1, 0, 0.5), rank(2, 1, 0.3)];
        let shot = Snapshot { ranks, ..Snapshot::default() };
        let order = |order: Order| order.of(&shot).iter().map(|it| it.rank).collect::<Vec<_>>();
        assert_eq!(order(Order::Load), [1, 2, 0]);
        assert_eq!(order(Order::Pe), [1, 0, 2]);
        assert_eq!(Order::of_key('l'), Some(Order::Load));
        assert_eq!(Order::of_key('x'), None);
    }
}
