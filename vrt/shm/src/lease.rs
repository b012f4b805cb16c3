//! Whether the memory of a rank is in a node, and who uses it there.
//!
//! PEs of a node read and write the memory of ranks of other PEs (long messages, one-sided access). Meanwhile it must not
//! leave the node, so each of them is counted. Each node has a word for each rank:
//!
//! ```text
//!              begin_leaving (nobody uses it)            has_left
//!      here ---------------------------------> leaving -----------> away
//!       ^                                                             |
//!       |   has_come               begin_coming (nobody keeps it off) |
//!       +------------- coming <---------------------------------------+
//! ```
//!
//! | bits | meaning |
//! |---|---|
//! | 31 | the memory is not here: leaving, away or coming |
//! | 30 | it is under way: read by the PE that had the rank, or written by the one that will have it |
//! | 0..30 | how many use it; while it is away: how many keep it off, or have counted themselves in for a moment, to find that it is away |

use crate::sync::{AtomicU32, Ordering};

/// The memory is not here.
const AWAY: u32 = 1 << 31;
/// It is under way.
const MOVING: u32 = 1 << 30;

/// The lease of a rank's memory in a node; valid when zeroed (it is here).
#[derive(Debug)]
#[repr(C)]
pub struct Lease {
    word: AtomicU32,
}

/// Permission to use the memory of a rank, or to change what it has left behind, while this lives.
#[derive(Debug)]
pub struct Leased<'a>(Option<&'a Lease>);

impl Leased<'_> {
    /// Of memory that cannot leave, as there is one node.
    #[inline(always)]
    pub fn always() -> Leased<'static> {
        Leased(None)
    }
}

impl Drop for Leased<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(lease) = self.0 {
            lease.word.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// What came of an attempt to change where the memory is.
#[must_use = "nothing has changed if it is in use"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is under way from now on.
    Moving,
    /// Somebody uses it, or what was left of it. Nothing has changed.
    InUse,
}

/// What came of an attempt to keep the memory off.
#[must_use = "the memory is kept off as long as this lives"]
#[derive(Debug)]
pub enum KeptOff<'a> {
    /// It does not come while this lives.
    While(Leased<'a>),
    /// Somebody has counted itself in, for a moment.
    Busy,
    /// It is here, or under way.
    NotAway,
}

impl Lease {
    /// Of memory that is here.
    #[cfg(loom)]
    #[expect(clippy::new_without_default, reason = "in shared memory it is valid when zeroed")]
    pub fn new() -> Self {
        Lease { word: AtomicU32::new(0) }
    }

    /// The rank begins in another node. Before other processes see it.
    pub fn begin_away(&self) {
        self.word.store(AWAY, Ordering::Relaxed);
    }

    /// Keeps the memory here; `None` if it is not.
    #[inline]
    pub fn take(&self) -> Option<Leased<'_>> {
        let leased = Leased(Some(self));
        (self.word.fetch_add(1, Ordering::AcqRel) & AWAY == 0).then_some(leased)
    }

    /// The memory leaves the node, unless somebody uses it. For the PE that has the rank.
    pub fn begin_leaving(&self) -> Begun {
        self.begin(0)
    }

    /// All of the memory has left. For the PE that had the rank.
    ///
    /// # Panics
    /// It was not leaving.
    pub fn has_left(&self) {
        let before = self.word.fetch_and(!MOVING, Ordering::AcqRel);
        assert_eq!(before & (AWAY | MOVING), AWAY | MOVING, "memory has left that was not leaving");
    }

    /// The memory is about to come, unless somebody changes what was left of it here, which takes a moment. For the PE
    /// that will have the rank.
    pub fn begin_coming(&self) -> Begun {
        self.begin(AWAY)
    }

    /// All of the memory has come. For the PE that has the rank now.
    ///
    /// # Panics
    /// It was not coming.
    pub fn has_come(&self) {
        let before = self.word.fetch_and(!(AWAY | MOVING), Ordering::AcqRel);
        assert_eq!(before & (AWAY | MOVING), AWAY | MOVING, "memory has come that was not coming");
    }

    /// Keeps memory off that is away.
    pub fn keep_off(&self) -> KeptOff<'_> {
        match self.word.compare_exchange(AWAY, AWAY + 1, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => KeptOff::While(Leased(Some(self))),
            Err(now) if now & (AWAY | MOVING) == AWAY => KeptOff::Busy,
            Err(_) => KeptOff::NotAway,
        }
    }

    fn begin(&self, from: u32) -> Begun {
        let to = AWAY | MOVING;
        match self.word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Begun::Moving,
            Err(_) => Begun::InUse,
        }
    }
}
