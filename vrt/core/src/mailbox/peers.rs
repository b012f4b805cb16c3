//! A rank's data about each of its partners: the numbers that keep messages in order, and how much
//! was sent.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// One partner of a rank.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Peer {
    /// Number of the next message to it.
    next_out: u32,
    /// Number of the next message from it.
    next_in: u32,
    /// Messages sent to it.
    pub messages: u64,
    /// Bytes sent to it.
    pub bytes: u64,
}

/// All partners of a rank, by rank number in the job, and the messages of each that arrived too
/// early; `M` is what is kept of a message.
#[derive(Debug, Serialize, Deserialize)]
pub struct Peers<M> {
    /// Partners with low rank numbers, by number: most jobs have no others.
    #[serde(with = "known")]
    low: Vec<Peer>,
    high: FxHashMap<u32, Peer>,
    early: BTreeMap<(u32, u32), M>,
}

impl<M> Default for Peers<M> {
    fn default() -> Self {
        Peers { low: Vec::new(), high: FxHashMap::default(), early: BTreeMap::new() }
    }
}

/// Ranks below this are kept by number.
const LOW: u32 = 256;

impl<M> Peers<M> {
    #[inline(always)]
    fn peer(&mut self, rank: u32) -> &mut Peer {
        if rank >= LOW {
            return self.high.entry(rank).or_default();
        }
        if rank as usize >= self.low.len() {
            self.make_room(rank);
        }
        &mut self.low[rank as usize]
    }

    #[cold]
    fn make_room(&mut self, rank: u32) {
        self.low.resize(rank as usize + 1, Peer::default());
    }

    /// Counts a message to `peer` and returns its number.
    #[inline(always)]
    pub(crate) fn number_outgoing(&mut self, peer: u32, bytes: u64) -> u32 {
        let peer = self.peer(peer);
        let number = peer.next_out;
        peer.next_out = number.wrapping_add(1);
        peer.messages += 1;
        peer.bytes += bytes;
        number
    }

    /// The number of something for `peer` that comes in the order of messages and is none.
    pub(crate) fn number_control(&mut self, peer: u32) -> u32 {
        let peer = self.peer(peer);
        let number = peer.next_out;
        peer.next_out = number.wrapping_add(1);
        number
    }

    /// Whether the message `number` from `peer` is the next one; then the one after it is. After
    /// a message in order, [`take_early`](Self::take_early) gives the one that has become so.
    #[inline(always)]
    pub(crate) fn is_next(&mut self, peer: u32, number: u32) -> bool {
        let entry = self.peer(peer);
        let next = entry.next_in == number;
        if next {
            entry.next_in = number.wrapping_add(1);
        }
        next
    }

    /// The number of messages that have arrived early.
    #[inline(always)]
    pub fn early(&self) -> usize {
        self.early.len()
    }

    /// Keeps a message that is not the next one.
    pub(crate) fn keep_early(&mut self, peer: u32, number: u32, message: M) {
        self.early.insert((peer, number), message);
    }

    /// Takes the message from `peer` that is the next one now, if it came early.
    pub(crate) fn take_early(&mut self, peer: u32) -> Option<M> {
        let next = self.peer(peer).next_in;
        self.early.remove(&(peer, next))
    }

    /// The messages that came early, always in the same order.
    pub(crate) fn early_mut(&mut self) -> impl Iterator<Item = &mut M> {
        self.early.values_mut()
    }

    /// Every partner to which something was sent.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Peer)> {
        let low = self.low.iter().enumerate().map(|(rank, peer)| (rank as u32, peer));
        let high = self.high.iter().map(|(rank, peer)| (*rank, peer));
        low.chain(high).filter(|(_, peer)| peer.messages > 0)
    }
}

/// Partners by number: those with whom nothing was exchanged are not sent.
mod known {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Peer;

    pub(super) fn serialize<S: Serializer>(
        peers: &[Peer],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let known = |peer: &Peer| peer.messages > 0 || peer.next_in > 0 || peer.next_out > 0;
        let known = (0u32..).zip(peers).filter(|(_, peer)| known(peer));
        serializer.collect_seq(known.collect::<Vec<_>>())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Peer>, D::Error> {
        let known = Vec::<(u32, Peer)>::deserialize(deserializer)?;
        let mut peers =
            vec![Peer::default(); known.last().map_or(0, |(rank, _)| *rank as usize + 1)];
        known.into_iter().for_each(|(rank, peer)| peers[rank as usize] = peer);
        Ok(peers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_permutation_of_messages_is_put_in_order(
            order in Just((0u32..50).collect::<Vec<_>>()).prop_shuffle(),
            wrap in any::<bool>(),
            rank in prop_oneof![Just(7u32), Just(LOW + 7)],
        ) {
            let start = if wrap { u32::MAX - 20 } else { 0 };
            let mut peers = Peers::<u32>::default();
            *peers.peer(rank) = Peer { next_in: start, ..Peer::default() };
            let mut out = Vec::new();
            for n in order {
                if !peers.is_next(rank, start.wrapping_add(n)) {
                    peers.keep_early(rank, start.wrapping_add(n), n);
                    continue;
                }
                out.push(n);
                while let Some(m) = peers.take_early(rank) {
                    assert!(peers.is_next(rank, start.wrapping_add(m)));
                    out.push(m);
                }
            }
            prop_assert_eq!(out, (0..50).collect::<Vec<_>>());
        }
    }

    #[test]
    fn outgoing_messages_are_numbered_and_counted_per_pair() {
        let mut peers = Peers::<()>::default();
        assert_eq!([3, 4, 3, 3].map(|p| peers.number_outgoing(p, 10)), [0, 0, 1, 2]);
        let mut sums: Vec<_> = peers.iter().map(|(r, p)| (r, p.messages, p.bytes)).collect();
        sums.sort_unstable();
        assert_eq!(sums, [(3, 3, 30), (4, 1, 10)]);
    }
}
