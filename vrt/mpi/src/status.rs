//! What programs ask about statuses, and change in them (MPI-4.1 sections 3.2.5 and 13.3).

use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_abi::types::*;

use crate::call::{Call, functions};
use crate::datatype::{basic_elements, bytes_of_elements};
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, Whole, give};
use crate::object::Use;

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
    let size = Use::of(&call.process.types, datatype)?.size() as u64;
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
        numbers::give_fitting(whole, count);
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
        let elements = basic_elements(&call.process.types, datatype, bytes)?;
        numbers::give_fitting(elements.map_or(MPI_UNDEFINED.into(), |n| n as i64), count);
    }
    Ok(())
}

unsafe fn set_elements<N: Whole>(
    call: Call,
    status: *mut MPI_Status,
    datatype: MPI_Datatype,
    count: N,
) -> Outcome {
    let bytes = bytes_of_elements(&call.process.types, datatype, numbers::count(count)? as u64)?;
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
    unsafe { give((*status).MPI_internal[2], flag) }
}

macro_rules! fields {
    ($($get:ident, $set:ident: $field:ident;)*) => {$(
        unsafe fn $get(_: Call, status: *const MPI_Status, value: *mut c_int) -> Outcome {
            // SAFETY: the program gives a status and room for a number.
            unsafe { value.write((*status).$field) };
            Ok(())
        }

        unsafe fn $set(_: Call, status: *mut MPI_Status, value: c_int) -> Outcome {
            // SAFETY: the program gives a status.
            unsafe { (*status).$field = value };
            Ok(())
        }
    )*};
}
fields! {
    get_source, set_source: MPI_SOURCE;
    get_tag, set_tag: MPI_TAG;
    get_error, set_error: MPI_ERROR;
}
