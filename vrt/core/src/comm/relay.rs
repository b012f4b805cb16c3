//! How the PEs of a large group exchange the contributions of their ranks.
//!
//! A few PEs send to each other directly: each gets everything after one hop. For P PEs that takes P (P - 1) packets,
//! and as many rings. So from [`MOST_DIRECT`] on, PEs pass parts along a binomial tree, with P - 1 packets up and as
//! many down:
//!
//! ```text
//! 8 PEs:   0 <-- 1          a PE whose own ranks and whose children have contributed
//!          0 <-- 2 <-- 3        folds, and sends to its parent
//!          0 <-- 4 <-- 5    PE 0 then has all, and sends it to its children,
//!                4 <-- 6 <-- 7  which hand it to their ranks and send it on
//! ```
//!
//! The PEs below a PE in the tree are those that follow it, so parts become large before they are passed on. They are
//! blocks of the same tree over ranks as always (`parts`): results have the same bits.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "places in a list that is there, and ranks below their number"
    )
)]

use std::rc::Rc;

/// So many PEs send to each other directly.
pub(super) const MOST_DIRECT: usize = 16;

/// A PE's place in the tree of a group's PEs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Relay {
    /// Where it sends what it has; `None`: it is the first one, which gets all.
    pub(super) parent: Option<u32>,
    pub(super) children: Vec<u32>,
    /// Ranks that began on it or below.
    pub(super) ranks: u32,
}

impl Relay {
    /// The place of a PE among those of its group's ranks, in order; `None`: these are few.
    pub(super) fn of(id: u32, homes: &[u32]) -> Option<Rc<Relay>> {
        let pes: Vec<(u32, u32)> = homes
            .chunk_by(|one, other| one == other)
            .map(|ranks| (ranks[0], ranks.len() as u32))
            .collect();
        if pes.len() <= MOST_DIRECT {
            return None;
        }
        let at = pes.iter().position(|(pe, _)| *pe == id)?;
        // The first one has all below it.
        let span = if at == 0 { pes.len().next_power_of_two() } else { 1 << at.trailing_zeros() };
        let children = (0..span.trailing_zeros()).filter_map(|bit| pes.get(at + (1 << bit)));
        Some(Rc::new(Relay {
            parent: (at > 0).then(|| pes[at & (at - 1)].0),
            children: children.map(|(pe, _)| *pe).collect(),
            ranks: pes[at..pes.len().min(at + span)].iter().map(|(_, ranks)| ranks).sum(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_pes_need_none() {
        let homes: Vec<u32> = (0..MOST_DIRECT as u32).flat_map(|pe| [pe; 3]).collect();
        assert_eq!(Relay::of(0, &homes), None);
    }

    /// Whatever number of PEs, each but the first is the child of its parent, and a PE waits for its own ranks and
    /// for what is below its children.
    #[test]
    fn all_pes_hang_together() {
        for number in MOST_DIRECT + 1..70 {
            // Not all PEs of the job have ranks of the group, nor equally many.
            let pes: Vec<u32> = (0..number as u32).map(|pe| 3 * pe + 1).collect();
            let own = |pe: u32| pe % 4 + 1;
            let homes: Vec<u32> = pes.iter().flat_map(|pe| vec![*pe; own(*pe) as usize]).collect();
            let relay = |pe: u32| Relay::of(pe, &homes).unwrap();
            for pe in &pes {
                let here = relay(*pe);
                assert_eq!(here.parent.is_none(), *pe == pes[0]);
                if let Some(parent) = here.parent {
                    assert!(parent < *pe && relay(parent).children.contains(pe));
                }
                let below = here.children.iter().map(|child| relay(*child).ranks);
                assert_eq!(here.ranks, own(*pe) + below.sum::<u32>());
            }
            assert_eq!(relay(pes[0]).ranks as usize, homes.len());
        }
    }
}
