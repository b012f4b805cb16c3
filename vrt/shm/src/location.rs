//! Where a rank is, as its node knows it.
//!
//! Each node has a word for each rank. In the rank's node only the rank's PE changes where it is, so it is exact there;
//! in others it is the latest news. Each move gives the location a new version, so that old news never replaces newer.
//! Beside it there is a hint that the rank is *held*: its unexpected messages take too much memory, and senders keep
//! their data.
//!
//! | bits | meaning |
//! |---|---|
//! | 32..64 | the version |
//! | 31 | the rank is held |
//! | 0..31 | its PE, or all ones: it has ended |

use crate::sync::{AtomicU64, Ordering};

/// The PE of a rank that has ended.
const ENDED: u32 = u32::MAX >> 1;
/// The rank is held.
const HELD: u32 = !ENDED;

/// Where a rank is: its PE, or that it has ended; and whether it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    /// Of a rank that has ended.
    pub const ENDED: Place = Place(ENDED);

    /// On a PE.
    #[inline(always)]
    pub fn on(pe: u32) -> Place {
        debug_assert!(pe < ENDED, "PE {pe}");
        Place(pe)
    }

    /// The same, held or not.
    pub fn held(self, is_held: bool) -> Place {
        Place(self.0 & !HELD | if is_held { HELD } else { 0 })
    }

    /// The PE; `None`: the rank has ended.
    #[inline(always)]
    pub fn pe(self) -> Option<u32> {
        let pe = self.0 & !HELD;
        (pe != ENDED).then_some(pe)
    }

    /// The form in which it is sent to others, who know by themselves whether it is held.
    pub fn to_bits(self) -> u32 {
        self.0 & !HELD
    }

    /// The place from the form received from others.
    pub fn from_bits(bits: u32) -> Place {
        Place(bits & !HELD)
    }

    /// Its PE, if it is not held: the common case, in one comparison.
    #[inline(always)]
    pub fn plain(self) -> Option<u32> {
        (self.0 < ENDED).then_some(self.0)
    }

    /// Whether it is held.
    #[inline(always)]
    pub fn is_held(self) -> bool {
        self.0 & HELD != 0
    }
}

/// What came of news.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// The location is the one in the news now.
    New,
    /// The news was not newer than what is known. Nothing has changed.
    Old,
}

/// The location of a rank as its node knows it; valid when zeroed (on PE 0).
#[derive(Debug)]
#[repr(C)]
pub struct Location {
    word: AtomicU64,
}

fn word(place: Place, version: u32) -> u64 {
    u64::from(version) << 32 | u64::from(place.0)
}

impl Location {
    /// On PE 0.
    #[cfg(loom)]
    #[expect(clippy::new_without_default, reason = "in shared memory it is valid when zeroed")]
    pub fn new() -> Self {
        Location { word: AtomicU64::new(0) }
    }

    /// Where the rank is. What its PE has written before it said so is seen afterwards.
    #[inline(always)]
    pub fn get(&self) -> Place {
        Place(self.word.load(Ordering::Acquire) as u32)
    }

    /// Where the rank is, with the version of this knowledge.
    pub fn get_with_version(&self) -> (Place, u32) {
        let word = self.word.load(Ordering::Acquire);
        (Place(word as u32), (word >> 32) as u32)
    }

    /// Says where the rank is. For the PE that has it, or gets it: `version` is that of its last move.
    pub fn set(&self, place: Place, version: u32) {
        let before = self.word.swap(word(place, version), Ordering::AcqRel);
        debug_assert!(
            version.wrapping_sub((before >> 32) as u32) as i32 >= 0,
            "a rank is where it was"
        );
    }

    /// News of where a rank of another node is; it stays held if it was.
    pub fn learn(&self, place: Place, version: u32) -> Learned {
        let newer = |known: u64| {
            let is_newer = version.wrapping_sub((known >> 32) as u32) as i32 > 0;
            is_newer.then_some(word(place, version) | known & u64::from(HELD))
        };
        match self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, newer) {
            Ok(_) => Learned::New,
            Err(_) => Learned::Old,
        }
    }

    /// The rank is held.
    pub fn hold(&self) {
        self.word.fetch_or(u64::from(HELD), Ordering::Relaxed);
    }

    /// The rank is held, unless it is on one of certain PEs, whose node knows that better.
    pub fn hold_unless(&self, is_on: impl Fn(u32) -> bool) {
        let held = |known: u64| {
            let is_there = Place(known as u32).pe().is_some_and(&is_on);
            (!is_there).then_some(known | u64::from(HELD))
        };
        // It is known better: nothing to do.
        let _ = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, held);
    }

    /// The rank is not held any more.
    pub fn release(&self) {
        self.word.fetch_and(!u64::from(HELD), Ordering::Relaxed);
    }
}
