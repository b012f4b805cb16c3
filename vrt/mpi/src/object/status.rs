//! Statuses (MPI-4.1 section 3.2.5): the data about a received message.
//!
//! Of the five words reserved for the library, two hold the length in bytes, and one whether the request was cancelled.

use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::pe::{Completion, Probed};

use crate::numbers;

/// The data about a message or a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stat {
    pub(crate) source: c_int,
    pub(crate) tag: c_int,
    pub(crate) bytes: u64,
    pub(crate) cancelled: bool,
}

impl Stat {
    /// For a null or inactive request.
    pub(crate) const EMPTY: Stat =
        Stat { source: MPI_ANY_SOURCE, tag: MPI_ANY_TAG, bytes: 0, cancelled: false };
    /// For a message from no process.
    pub(crate) const NOBODY: Stat =
        Stat { source: MPI_PROC_NULL, tag: MPI_ANY_TAG, bytes: 0, cancelled: false };

    #[inline(always)]
    pub(crate) fn of(outcome: &Completion) -> Stat {
        let Completion { source, tag, bytes, capacity, .. } = *outcome;
        let cancelled = outcome.is_cancelled();
        Stat { source, tag, bytes: bytes.min(capacity), cancelled }
    }

    pub(crate) fn of_probed(found: &Probed) -> Stat {
        let Probed { source, tag, bytes, .. } = *found;
        Stat { source, tag, bytes, cancelled: false }
    }

    /// Returns an empty status without an error to the program (MPI-4.1 section 3.7.3).
    ///
    /// # Safety
    /// As for [`give`](Self::give).
    pub(crate) unsafe fn give_empty(to: *mut MPI_Status) {
        // SAFETY: as the caller promises.
        unsafe {
            Stat::EMPTY.give(to);
            if let Some(to) = to.as_mut() {
                to.MPI_ERROR = MPI_SUCCESS;
            }
        }
    }

    /// Returns it to the program, unless statuses are ignored; the error field is unchanged.
    ///
    /// # Safety
    /// There is room for a status, or the pointer is `MPI_STATUS_IGNORE`.
    #[inline(always)]
    pub(crate) unsafe fn give(self, to: *mut MPI_Status) {
        if to.is_null() {
            return;
        }
        // SAFETY: as the caller promises.
        unsafe {
            (*to).MPI_SOURCE = self.source;
            (*to).MPI_TAG = self.tag;
            [(*to).MPI_internal[0], (*to).MPI_internal[1]] = numbers::halves(self.bytes);
            (*to).MPI_internal[2] = c_int::from(self.cancelled);
        }
    }
}
