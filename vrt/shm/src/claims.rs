//! How two PEs share a piece of work that one of them owns: a long copy.
//!
//! The work is a row of equal pieces. Its owner claims pieces from the front, the helper from the back, until all are
//! claimed; the owner is done when the pieces claimed from the back are done.
//!
//! ```text
//! owner                                       helper
//!   begin: (round, front, back) = (r+1, n/2, n)
//!   works on 0 .. n/2                           claim_back(r+1): back -= some
//!   claim_front: front += some                  works on them, finish(some)
//!   ...                                         ...
//!   front == back: waits until finished == n - what it has claimed
//! ```
//!
//! One word holds the round and both ends, so that a claim is one compare-exchange and a late helper, whose round has
//! passed, gets nothing. The owner's first claim is part of `begin`: it takes half of the work before the helper knows
//! of it, and if the helper starts at once, it takes the same half each time, so that the caches of both keep their
//! contents. Each claim takes a part of what is left, so that a helper that begins late takes less and neither end
//! waits long for the other.

use std::ops::Range;

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Work that a PE shares; valid when zeroed (none).
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Claims {
    /// The round in the upper half, then the front, then the back.
    state: AtomicU64,
    /// Number of completed pieces that were claimed from the back.
    finished: AtomicU32,
}

/// The most pieces of a piece of work.
pub const MOST_PIECES: u32 = u16::MAX as u32;

/// How much of a rest is claimed at once.
fn share(rest: u32) -> u32 {
    rest - rest / 4
}

impl Claims {
    /// No work.
    #[cfg(loom)]
    #[expect(clippy::new_without_default, reason = "in shared memory it is valid when zeroed")]
    pub fn new() -> Self {
        Claims { state: AtomicU64::new(0), finished: AtomicU32::new(0) }
    }

    fn pack(round: u32, front: u32, back: u32) -> u64 {
        u64::from(round) << 32 | u64::from(front) << 16 | u64::from(back)
    }

    fn unpack(state: u64) -> (u32, u32, u32) {
        ((state >> 32) as u32, (state >> 16) as u32 & MOST_PIECES, state as u32 & MOST_PIECES)
    }

    /// The owner begins work of this many pieces, at most [`MOST_PIECES`], and must do the first half. Returns the
    /// round, which the helper must know, and that half.
    pub fn begin(&self, pieces: u32) -> (u32, Range<u32>) {
        debug_assert!(pieces <= MOST_PIECES);
        let (round, _, _) = Self::unpack(self.state.load(Ordering::Relaxed));
        let round = round.wrapping_add(1);
        let half = pieces.div_ceil(2);
        self.finished.store(0, Ordering::Relaxed);
        self.state.store(Self::pack(round, half, pieces), Ordering::Release);
        (round, 0..half)
    }

    /// The owner claims more of its work; `None`: everything is claimed.
    pub fn claim_front(&self) -> Option<Range<u32>> {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let (round, front, back) = Self::unpack(state);
            if front == back {
                return None;
            }
            let next = front + share(back - front);
            match self.exchange(state, Self::pack(round, next, back)) {
                Ok(()) => return Some(front..next),
                Err(now) => state = now,
            }
        }
    }

    /// The helper claims a part of the work of a round; `None`: nothing is left.
    pub fn claim_back(&self, of: u32) -> Option<Range<u32>> {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let (round, front, back) = Self::unpack(state);
            if round != of || front == back {
                return None;
            }
            let next = back - share(back - front);
            match self.exchange(state, Self::pack(round, front, next)) {
                Ok(()) => return Some(next..back),
                Err(now) => state = now,
            }
        }
    }

    fn exchange(&self, from: u64, to: u64) -> Result<(), u64> {
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        self.state.compare_exchange_weak(from, to, success, failure).map(|_| ())
    }

    /// This many pieces that were claimed from the back are done.
    pub fn finish(&self, pieces: u32) {
        self.finished.fetch_add(pieces, Ordering::Release);
    }

    /// Whether all pieces that were claimed from the back are done, if the owner has claimed `own` of `pieces`.
    pub fn are_finished(&self, own: u32, pieces: u32) -> bool {
        self.finished.load(Ordering::Acquire) == pieces - own
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// In the state of memory from the system.
    fn zeroed() -> Claims {
        Claims { state: AtomicU64::new(0), finished: AtomicU32::new(0) }
    }

    #[test]
    fn all_is_claimed_once_from_both_ends() {
        let claims = zeroed();
        for pieces in [1, 2, 3, 7, 64, 1000, MOST_PIECES] {
            let (round, mine) = claims.begin(pieces);
            let mut claimed = vec![0; pieces as usize];
            let mut own = mine.len() as u32;
            claimed[mine.start as usize..mine.end as usize].iter_mut().for_each(|n| *n += 1);
            assert_eq!(claims.claim_back(round.wrapping_sub(1)), None);
            for turn in 0.. {
                let of_owner = turn % 3 == 0;
                let Some(part) =
                    (if of_owner { claims.claim_front() } else { claims.claim_back(round) })
                else {
                    break;
                };
                if of_owner {
                    own += part.len() as u32;
                } else {
                    assert!(!claims.are_finished(own, pieces));
                    claims.finish(part.len() as u32);
                }
                claimed[part.start as usize..part.end as usize].iter_mut().for_each(|n| *n += 1);
            }
            assert!(claimed.iter().all(|n| *n == 1));
            assert!(claims.are_finished(own, pieces));
        }
    }
}
