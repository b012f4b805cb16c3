//! Reductions of long vectors that the ranks of a PE fold among themselves, one window of the vector after another.
//!
//! When a rank enters a window, its part of it is folded at once, directly from its buffer, into the block of the tree
//! over ranks (see `parts`) that it belongs to. So each value is read once, and what the PE keeps of a window are a few
//! blocks that stay in its cache: if ranks arrive in order, as they usually do, one for each level of the tree. The
//! PE's data for the window is then sent to the other PEs in pieces that fit into a packet.
//!
//! Every PE gets the data of every other one, which is more than if ranks halve their data among each other, if there
//! are many PEs with few ranks on each; [`windows`] decides.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "places in buffers that are there, and ranks below their number"
    )
)]

use crate::comm::operator::Operator;
use crate::comm::parts::{EVERYBODY, Operation, Subtree};
use crate::comm::spec::{PHASE_BITS, Spec};
use crate::net::local::{MAX_PAYLOAD, Outgoing};
use crate::net::{Data, INLINE, Packet};

/// Bytes of a window: few enough that the blocks of its tree stay in a core's own cache, and so many that the switches
/// between two windows do not count.
const WINDOW: usize = 64 << 10;
/// Windows are longer where there would be more.
const MOST_WINDOWS: usize = 1 << 11;
/// The phase of an operation that is its first window; the next ones follow.
pub(super) const FIRST_WINDOW: u32 = 4;
const _: () = assert!(FIRST_WINDOW as usize + MOST_WINDOWS <= 1 << PHASE_BITS);

/// Into how many windows the vectors of `len` bytes of so many ranks are cut if PEs fold them; `None`: they do not.
///
/// To a PE come the blocks of all others, each of which is copied twice and folded: about 3 (P - 1) vectors on P PEs. That
/// its n / P ranks halve their vectors and double them again costs each of them two copies more than this way does.
pub(super) fn windows(len: usize, ranks: usize, pes: usize) -> Option<usize> {
    let pays = 2 * pes * (pes - 1) <= ranks && ranks > 1;
    pays.then(|| len.div_ceil(WINDOW).clamp(1, MOST_WINDOWS))
}

/// Where window `i` of `windows` begins and how long it is, of `len` bytes that are elements of `each` bytes.
pub(super) fn window(i: usize, windows: usize, len: usize, each: usize) -> (usize, usize) {
    let begin = |i: usize| (len / each * i / windows) * each;
    (begin(i), begin(i + 1) - begin(i))
}

impl Operation {
    /// Folds a rank's long contribution into the parts that are there, which are in rank order and of which no
    /// two can be folded with each other.
    #[inline(never)]
    pub(super) fn fold_in(&mut self, operator: Operator, rank: u32, bytes: &[u8]) {
        let size = self.spec.map_or(0, |spec| spec.size);
        let place = self.parts.partition_point(|part| part.start < rank);
        let (mut start, mut level, unit) = (rank, 0, bytes.len());
        // Where in `data` it is; in the rank's own memory as long as it was folded with nothing.
        let mut at = None;
        // The part at `place` may be its right neighbour, the one before that its left one.
        let mut first = place;
        let mut end = place;
        loop {
            let half = 1u32 << level;
            let data = self.data.as_mut_ptr();
            if start.is_multiple_of(2 * half) {
                if level < EVERYBODY - 1 && start + half >= size && start > 0 {
                    // Its right neighbour has no ranks.
                    level += 1;
                    continue;
                }
                let Some(right) = self.parts.get(end) else { break };
                if (right.start, right.level) != (start + half, level) {
                    break;
                }
                // SAFETY: B2; `bytes` are as many.
                unsafe {
                    match at {
                        None => operator.fold_right(bytes.as_ptr(), data.add(right.at), unit),
                        Some(at) => operator.fold(data.add(at), data.add(right.at), unit),
                    }
                }
                match at {
                    None => at = Some(right.at),
                    Some(_) => self.free.push(right.at),
                }
                end += 1;
            } else {
                let Some(left) = first.checked_sub(1).map(|i| self.parts[i]) else { break };
                if (left.start + half, left.level) != (start, level) {
                    break;
                }
                // SAFETY: B2; `bytes` are as many.
                unsafe {
                    let right = at.map_or(bytes.as_ptr(), |at| data.add(at));
                    operator.fold(data.add(left.at), right, unit);
                }
                self.free.extend(at.replace(left.at));
                start = left.start;
                first -= 1;
            }
            level += 1;
        }
        let at = at.unwrap_or_else(|| self.keep(bytes));
        self.parts.splice(first..end, [Subtree { start, level, at }]);
    }

    /// Copies a long part to a free place.
    fn keep(&mut self, bytes: &[u8]) -> usize {
        match self.free.pop() {
            Some(at) => {
                self.data[at..at + bytes.len()].copy_from_slice(bytes);
                at
            }
            None => self.store(0, 0, bytes).at,
        }
    }

    /// Some bytes of a long part of `unit` bytes have come from another PE: those from `offset` on.
    pub(super) fn store_some(
        &mut self,
        (start, level): (u32, u32),
        unit: usize,
        offset: usize,
        bytes: &[u8],
    ) {
        let known = self.arriving.iter().position(|(part, _)| part.start == start);
        let i = known.unwrap_or_else(|| {
            let at = self.free.pop().unwrap_or_else(|| {
                let at = self.data.len();
                self.data.resize(at + unit, 0);
                at
            });
            self.arriving.push((Subtree { start, level, at }, 0));
            self.arriving.len() - 1
        });
        let (part, have) = &mut self.arriving[i];
        self.data[part.at + offset..][..bytes.len()].copy_from_slice(bytes);
        *have += bytes.len();
        if *have == unit {
            self.remote.push(self.arriving.swap_remove(i).0);
        }
    }

    /// Sends the parts of a long operation to other PEs. `packet` says which one it is.
    pub(super) fn send_long_parts(
        &self,
        net: &mut Outgoing,
        spec: &Spec,
        targets: &[u32],
        mut packet: Packet,
    ) {
        packet.source = spec.unit as i32;
        let pieces = spec.unit.div_ceil(MAX_PAYLOAD).max(1);
        for part in &self.parts {
            for piece in 0..pieces {
                let (offset, len) = window(piece, pieces, spec.unit, 1);
                debug_assert!(len > INLINE);
                packet.len = len as u32;
                let level = u64::from(part.level) << 32;
                packet.data = Data::words([level | u64::from(part.start), offset as u64, 0]);
                let bytes = &self.data[part.at + offset..][..len];
                for target in targets {
                    // SAFETY: the packet's payload is `bytes`, which are too long for the packet itself.
                    unsafe { net.send(*target as usize, &packet, bytes.as_ptr()) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn windows_are_all_of_a_vector_in_whole_elements(
            elements in 1usize..1 << 24, each in 1usize..33, ranks in 2usize..5000, pes in 1usize..64,
        ) {
            let len = elements * each;
            let Some(windows) = windows(len, ranks, pes) else {
                prop_assert!(2 * pes * (pes - 1) > ranks);
                return Ok(());
            };
            prop_assert!(windows <= MOST_WINDOWS && windows <= len.div_ceil(WINDOW));
            let mut next = 0;
            for i in 0..windows {
                let (begin, bytes) = window(i, windows, len, each);
                prop_assert_eq!((begin, bytes % each), (next, 0));
                // No piece of one fits into a packet.
                prop_assert!(windows == 1 || bytes > WINDOW / 3);
                next += bytes;
            }
            prop_assert_eq!(next, len);
        }
    }
}
