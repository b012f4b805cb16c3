//! How a job ended, recorded once for all its processes.
//!
//! One word contains both how it ended and the status, so a process that sees that the job has
//! ended sees both:
//!
//! | bits | meaning |
//! |---|---|
//! | 32..64 | how: a number that is not 0; 0 while the job has not ended |
//! | 0..32 | the status |

use std::num::NonZeroU32;

use crate::sync::{AtomicU64, Ordering};

/// Whether a job has ended, how, and with what status; valid when zeroed (it has not).
#[derive(Debug)]
#[repr(C)]
pub struct Ending {
    word: AtomicU64,
}

impl Ending {
    /// Of a job that has not ended.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Ending { word: AtomicU64::new(0) }
    }

    /// Of a job that has not ended.
    #[cfg(loom)]
    pub fn new() -> Self {
        Ending { word: AtomicU64::new(0) }
    }

    /// Ends the job. The first caller decides how and with what status; returns whether this was
    /// the first call.
    pub fn end(&self, how: NonZeroU32, status: i32) -> bool {
        let word = u64::from(how.get()) << 32 | u64::from(status as u32);
        // Whoever acts on the end finds what was written before it.
        self.word.compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// How the job has ended and with what status, or `None` while it has not.
    pub fn get(&self) -> Option<(NonZeroU32, i32)> {
        let word = self.word.load(Ordering::Acquire);
        Some((NonZeroU32::new((word >> 32) as u32)?, word as u32 as i32))
    }
}

impl Default for Ending {
    fn default() -> Self {
        Self::new()
    }
}
