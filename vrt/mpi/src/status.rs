//! Statuses (MPI-4.1 section 3.2.5): the data about a received message.
//!
//! Of the five words reserved for the library, two hold the length in bytes, and one whether the request was cancelled.

use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::pe::{Completion, Probed};

use crate::call::{Call, functions};
use crate::datatype::{Use, basic_elements, bytes_of_elements};
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, Whole};

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

/// The number of bytes in a status.
///
/// # Safety
/// It is readable.
unsafe fn bytes_of(status: *const MPI_Status) -> u64 {
    // SAFETY: as the caller promises.
    let [low, high, ..] = unsafe { (*status).MPI_internal };
    numbers::word([low, high])
}

functions! {
    MPI_Get_count / MPI_Get_count_c(status: *const MPI_Status, datatype: MPI_Datatype, count: *mut N)
        on Nothing when Always = get_count;
    MPI_Get_elements / MPI_Get_elements_c(
        status: *const MPI_Status, datatype: MPI_Datatype, count: *mut N,
    ) on Nothing when Always = get_elements;
    MPI_Get_elements_x(status: *const MPI_Status, datatype: MPI_Datatype, count: *mut MPI_Count)
        on Nothing when Always = get_elements;
    MPI_Status_set_elements / MPI_Status_set_elements_c(
        status: *mut MPI_Status, datatype: MPI_Datatype, count: N,
    ) on Nothing when Always = set_elements;
    MPI_Status_set_elements_x(status: *mut MPI_Status, datatype: MPI_Datatype, count: MPI_Count)
        on Nothing when Always = set_elements;
    MPI_Status_set_cancelled(status: *mut MPI_Status, flag: c_int) on Nothing when Always = set_cancelled;
    MPI_Test_cancelled(status: *const MPI_Status, flag: *mut c_int)
        on Nothing when Always = test_cancelled;
    MPI_Status_get_source(status: *const MPI_Status, source: *mut c_int)
        on Nothing when Always = get_source;
    MPI_Status_get_tag(status: *const MPI_Status, tag: *mut c_int) on Nothing when Always = get_tag;
    MPI_Status_get_error(status: *const MPI_Status, error: *mut c_int)
        on Nothing when Always = get_error;
    MPI_Status_set_source(status: *mut MPI_Status, source: c_int) on Nothing when Always = set_source;
    MPI_Status_set_tag(status: *mut MPI_Status, tag: c_int) on Nothing when Always = set_tag;
    MPI_Status_set_error(status: *mut MPI_Status, error: c_int) on Nothing when Always = set_error;
}

unsafe fn get_count<N: Whole>(
    call: Call,
    status: *const MPI_Status,
    datatype: MPI_Datatype,
    count: *mut N,
) -> Outcome {
    let size = Use::of(call.process, datatype)?.size() as u64;
    // SAFETY: the program gives a status and room for a number.
    unsafe {
        let bytes = bytes_of(status);
        let whole = match (size, bytes) {
            (_, 0) => 0,
            (0, _) => MPI_UNDEFINED.into(),
            _ if bytes.is_multiple_of(size) => {
                let count = bytes.checked_div(size).and_then(|count| i64::try_from(count).ok());
                count.unwrap_or(MPI_UNDEFINED.into())
            }
            _ => MPI_UNDEFINED.into(),
        };
        numbers::give(whole, count);
    }
    Ok(())
}

unsafe fn get_elements<N: Whole>(
    call: Call,
    status: *const MPI_Status,
    datatype: MPI_Datatype,
    count: *mut N,
) -> Outcome {
    // SAFETY: the program gives a status and room for a number.
    unsafe {
        let bytes = bytes_of(status);
        let elements = basic_elements(call.process, datatype, bytes)?;
        numbers::give(elements.map_or(MPI_UNDEFINED.into(), |n| n as i64), count);
    }
    Ok(())
}

unsafe fn set_elements<N: Whole>(
    call: Call,
    status: *mut MPI_Status,
    datatype: MPI_Datatype,
    count: N,
) -> Outcome {
    let bytes = bytes_of_elements(call.process, datatype, numbers::count(count)? as u64)?;
    // SAFETY: the program gives a status.
    unsafe {
        [(*status).MPI_internal[0], (*status).MPI_internal[1]] = numbers::halves(bytes);
    }
    Ok(())
}

unsafe fn set_cancelled(_: Call, status: *mut MPI_Status, flag: c_int) -> Outcome {
    // SAFETY: the program gives a status.
    unsafe { (*status).MPI_internal[2] = c_int::from(flag != 0) };
    Ok(())
}

unsafe fn test_cancelled(_: Call, status: *const MPI_Status, flag: *mut c_int) -> Outcome {
    if status.is_null() {
        refuse!(MPI_ERR_ARG, "the status is MPI_STATUS_IGNORE");
    }
    // SAFETY: the program gives a status and room for a number.
    unsafe { flag.write((*status).MPI_internal[2]) };
    Ok(())
}

unsafe fn get_source(_: Call, status: *const MPI_Status, source: *mut c_int) -> Outcome {
    // SAFETY: the program gives a status and room for a number.
    unsafe { source.write((*status).MPI_SOURCE) };
    Ok(())
}

unsafe fn get_tag(_: Call, status: *const MPI_Status, tag: *mut c_int) -> Outcome {
    // SAFETY: the program gives a status and room for a number.
    unsafe { tag.write((*status).MPI_TAG) };
    Ok(())
}

unsafe fn get_error(_: Call, status: *const MPI_Status, error: *mut c_int) -> Outcome {
    // SAFETY: the program gives a status and room for a number.
    unsafe { error.write((*status).MPI_ERROR) };
    Ok(())
}

unsafe fn set_source(_: Call, status: *mut MPI_Status, source: c_int) -> Outcome {
    // SAFETY: the program gives a status.
    unsafe { (*status).MPI_SOURCE = source };
    Ok(())
}

unsafe fn set_tag(_: Call, status: *mut MPI_Status, tag: c_int) -> Outcome {
    // SAFETY: the program gives a status.
    unsafe { (*status).MPI_TAG = tag };
    Ok(())
}

unsafe fn set_error(_: Call, status: *mut MPI_Status, error: c_int) -> Outcome {
    // SAFETY: the program gives a status.
    unsafe { (*status).MPI_ERROR = error };
    Ok(())
}
