//! Buffers of programs: an address, a count and a datatype, converted to the bytes of messages.

use std::ffi::c_void;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::bytes::zeroed;
use vrt_core::layout::{LONGEST, Signature};
use vrt_core::pe::{Completion, Room};

use super::datatype::{self, Types, Use};
use super::status::Stat;
use crate::fault::{Fault, Outcome, fault, refuse};
use crate::numbers::{self, Whole};

/// Types are not compared: programs that represent the same bytes by two types (a `double` sent as
/// `MPI_BYTE`) work with every MPI.
pub(crate) const UNTYPED: Signature = Signature::ANY;

/// The bytes of this many elements of a predefined datatype without gaps; `None` for another
/// datatype.
///
/// # Errors
/// The count is negative or too large, or the buffer is missing.
#[inline(always)]
pub(crate) fn dense<N: Whole>(
    buf: *const c_void,
    count: N,
    datatype: MPI_Datatype,
) -> Outcome<Option<usize>> {
    let Some(size) = datatype::dense(datatype) else { return Ok(None) };
    let count = numbers::count(count)?;
    let Some(len) = count.checked_mul(size).filter(|len| *len <= LONGEST) else {
        return numbers::too_many(count, size);
    };
    if buf.is_null() && len > 0 {
        return Err(missing(len));
    }
    Ok(Some(len))
}

/// The data of a send: contiguous bytes, or a packed copy.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) at: *const u8,
    pub(crate) len: usize,
    /// The copy, kept until the message has been sent.
    pub(crate) packed: Option<Vec<u8>>,
}

impl Outgoing {
    /// For a buffer.
    ///
    /// # Errors
    /// The count is negative, the datatype does not exist, or the buffer is missing.
    ///
    /// # Safety
    /// The elements are readable.
    #[inline(always)]
    pub(crate) unsafe fn of<N: Whole>(
        types: &Types,
        buf: *const c_void,
        count: N,
        datatype: MPI_Datatype,
    ) -> Outcome<Outgoing> {
        let (count, datatype) = (numbers::count(count)?, Use::of(types, datatype)?);
        // SAFETY: as the caller promises.
        unsafe { Outgoing::of_elements(buf.cast(), count, &datatype) }
    }

    /// For elements.
    ///
    /// # Errors
    /// The buffer is missing.
    ///
    /// # Safety
    /// They are readable.
    #[inline(always)]
    pub(crate) unsafe fn of_elements(
        buf: *const u8,
        count: usize,
        datatype: &Use,
    ) -> Outcome<Outgoing> {
        let len = datatype.bytes(count)?;
        if let Some(begin) = datatype.direct(count) {
            let at = buf.wrapping_offset(begin);
            if at.is_null() && len > 0 {
                return Err(missing(len));
            }
            return Ok(Outgoing { at, len, packed: None });
        }
        // SAFETY: as the caller promises.
        let packed = unsafe { datatype.pack(buf, count)? };
        Ok(Outgoing { at: packed.as_ptr(), len, packed: Some(packed) })
    }
}

#[cold]
fn missing(len: usize) -> Box<Fault> {
    let bytes = vrt_slot::report::count(len, "byte");
    let text = format!("the buffer is missing: {bytes} at the null pointer");
    fault(MPI_ERR_BUFFER, text)
}

/// The destination of a message: contiguous bytes, or memory from which it is unpacked.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) room: Room,
    pub(crate) unpack: Option<Box<Unpack>>,
}

/// Where packed bytes are unpacked to.
#[derive(Debug)]
pub(crate) struct Unpack {
    pub(crate) packed: Vec<u8>,
    datatype: Use,
    to: *mut u8,
    count: usize,
}

impl Incoming {
    /// For a buffer.
    ///
    /// # Errors
    /// Those of [`Outgoing::of`].
    ///
    /// # Safety
    /// The elements are writable until the message has arrived.
    #[inline(always)]
    pub(crate) unsafe fn of<N: Whole>(
        types: &Types,
        buf: *mut c_void,
        count: N,
        datatype: MPI_Datatype,
    ) -> Outcome<Incoming> {
        let (count, datatype) = (numbers::count(count)?, Use::of(types, datatype)?);
        // SAFETY: as the caller promises.
        unsafe { Incoming::of_elements(buf.cast(), count, datatype) }
    }

    /// For elements.
    ///
    /// # Errors
    /// The buffer is missing.
    ///
    /// # Safety
    /// They are writable until the message has arrived.
    #[inline(always)]
    pub(crate) unsafe fn of_elements(
        buf: *mut u8,
        count: usize,
        datatype: Use,
    ) -> Outcome<Incoming> {
        let len = datatype.bytes(count)?;
        if let Some(begin) = datatype.direct(count) {
            let at = buf.wrapping_offset(begin);
            if at.is_null() && len > 0 {
                return Err(missing(len));
            }
            let room = Room { buffer: at, capacity: len, signature: UNTYPED };
            return Ok(Incoming { room, unpack: None });
        }
        let mut packed = zeroed(len)?;
        let room = Room { buffer: packed.as_mut_ptr(), capacity: len, signature: UNTYPED };
        let unpack = Unpack { packed, datatype, to: buf, count };
        Ok(Incoming { room, unpack: Some(Box::new(unpack)) })
    }
}

impl Unpack {
    /// Unpacks the first bytes of the received message.
    ///
    /// # Safety
    /// The destination elements are writable.
    pub(crate) unsafe fn put(&self, bytes: usize) {
        let len = bytes.min(self.packed.len());
        // SAFETY: as the caller promises.
        unsafe { self.datatype.unpack(&self.packed[..len], self.to, self.count) };
    }
}

/// The status of a message that has arrived, after unpacking it.
///
/// # Errors
/// It was longer than its buffer.
///
/// # Safety
/// The destination of unpacking is writable.
#[inline(always)]
pub(crate) unsafe fn finish(outcome: Completion, unpack: Option<&Unpack>) -> Outcome<Stat> {
    let stat = Stat::of(&outcome);
    if let Some(unpack) = unpack
        && !stat.cancelled
    {
        // SAFETY: as the caller promises.
        unsafe { unpack.put(usize::try_from(stat.bytes).unwrap_or(usize::MAX)) };
    }
    outcome.fitting()?;
    Ok(stat)
}

/// Refuses `MPI_IN_PLACE` where it is not allowed.
///
/// # Errors
/// The buffer is `MPI_IN_PLACE`.
#[inline(always)]
pub(crate) fn not_in_place(buf: *const c_void) -> Outcome {
    if is_in_place(buf) {
        refuse!(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed for this buffer");
    }
    Ok(())
}

/// Whether a buffer is `MPI_IN_PLACE`.
#[inline(always)]
pub(crate) fn is_in_place(buf: *const c_void) -> bool {
    std::ptr::eq(buf, MPI_IN_PLACE)
}
