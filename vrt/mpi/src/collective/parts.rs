//! Buffers of collective operations: elements of a program, read or filled when the operation runs.

use std::ffi::c_void;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::algorithms::{In, Out};

use crate::fault::{Outcome, refuse};
use crate::numbers::{self, Whole};
use crate::object::Use;
use crate::object::buffer::{Incoming, Outgoing, UNTYPED};
use crate::object::datatype::Types;
use vrt_slot::report::count;

/// Elements to send.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) at: *const u8,
    pub(super) count: usize,
    pub(super) datatype: Use,
    /// Packed size in bytes.
    len: usize,
}

/// Elements to receive.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) at: *mut u8,
    pub(super) count: usize,
    pub(super) datatype: Use,
    /// Packed size in bytes.
    len: usize,
}

impl Source {
    /// From a program's arguments.
    ///
    /// # Errors
    /// The count is negative or too large, or the datatype does not exist.
    #[inline(always)]
    pub(super) fn of<N: Whole>(
        types: &Types,
        buf: *const c_void,
        count: N,
        datatype: MPI_Datatype,
    ) -> Outcome<Source> {
        Source::of_elements(buf, numbers::count(count)?, Use::of(types, datatype)?)
    }

    /// From elements.
    ///
    /// # Errors
    /// They are too large.
    #[inline(always)]
    pub(super) fn of_elements(buf: *const c_void, count: usize, datatype: Use) -> Outcome<Source> {
        Ok(Source { at: buf.cast(), count, len: datatype.bytes(count)?, datatype })
    }

    /// No elements.
    pub(super) fn nothing() -> Source {
        Source { at: std::ptr::null(), count: 0, datatype: Use::Dense(1), len: 0 }
    }

    /// Packed size in bytes.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Its bytes.
    ///
    /// # Errors
    /// The buffer is missing.
    ///
    /// # Safety
    /// The elements are readable.
    pub(super) unsafe fn read(&self) -> Outcome<Outgoing> {
        // SAFETY: as the caller promises.
        unsafe { Outgoing::of_elements(self.at, self.count, &self.datatype) }
    }

    /// A copy of its bytes.
    ///
    /// # Errors
    /// There is not enough memory for it.
    ///
    /// # Safety
    /// The elements are readable.
    pub(super) unsafe fn copy(&self) -> Outcome<Vec<u8>> {
        // SAFETY: as the caller promises.
        unsafe { self.datatype.pack(self.at, self.count) }
    }

    /// Its bytes, if its layout in memory is the packed one.
    #[inline(always)]
    pub(super) fn direct(&self) -> Option<In> {
        let begin = self.datatype.direct(self.count)?;
        let at = self.at.wrapping_offset(begin);
        (!at.is_null() || self.len() == 0).then_some(In(at, self.len(), UNTYPED))
    }
}

impl Target {
    /// From a program's arguments.
    ///
    /// # Errors
    /// The count is negative or too large, or the datatype does not exist.
    #[inline(always)]
    pub(super) fn of<N: Whole>(
        types: &Types,
        buf: *mut c_void,
        count: N,
        datatype: MPI_Datatype,
    ) -> Outcome<Target> {
        Target::of_elements(buf.cast(), numbers::count(count)?, Use::of(types, datatype)?)
    }

    /// From elements.
    ///
    /// # Errors
    /// They are too large.
    #[inline(always)]
    pub(super) fn of_elements(at: *mut u8, count: usize, datatype: Use) -> Outcome<Target> {
        Ok(Target { at, count, len: datatype.bytes(count)?, datatype })
    }

    /// Packed size in bytes.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The same elements, for sending.
    pub(super) fn as_source(&self) -> Source {
        let Target { at, count, ref datatype, len } = *self;
        Source { at, count, datatype: datatype.clone(), len }
    }

    /// This many of these, one after another.
    ///
    /// # Errors
    /// They are too large.
    #[inline(always)]
    pub(super) fn times(&self, n: usize) -> Outcome<Target> {
        match self.count.checked_mul(n) {
            Some(count) => Target::of_elements(self.at, count, self.datatype.clone()),
            None => numbers::too_many(self.count, self.datatype.size()),
        }
    }

    /// The part of `count` elements that is for the `nth` rank.
    ///
    /// # Errors
    /// It is too far away.
    pub(super) fn nth(&self, nth: usize) -> Outcome<Target> {
        let before = self.count.checked_mul(nth).and_then(|before| i64::try_from(before).ok());
        let offset = self.datatype.distance(before.unwrap_or(i64::MAX))?;
        Ok(Target { at: self.at.wrapping_offset(offset), ..self.clone() })
    }

    /// The parts of `n` ranks.
    ///
    /// # Errors
    /// Those of [`nth`](Self::nth).
    pub(super) fn parts(&self, n: usize) -> Outcome<Vec<Target>> {
        (0..n).map(|nth| self.nth(nth)).collect()
    }

    /// The room for its bytes.
    ///
    /// # Errors
    /// The buffer is missing.
    ///
    /// # Safety
    /// The elements are writable until [`put`].
    pub(super) unsafe fn room(&self) -> Outcome<Incoming> {
        // SAFETY: as the caller promises.
        unsafe { Incoming::of_elements(self.at, self.count, self.datatype.clone()) }
    }

    /// The room for its bytes, if its layout in memory is the packed one.
    #[inline(always)]
    pub(super) fn direct(&self) -> Option<Out> {
        let begin = self.datatype.direct(self.count)?;
        let at = self.at.wrapping_offset(begin);
        (!at.is_null() || self.len() == 0).then_some(Out(at, self.len(), UNTYPED))
    }

    /// Unpacks bytes into its elements.
    ///
    /// # Safety
    /// They are writable.
    pub(super) unsafe fn fill(&self, packed: &[u8]) {
        // SAFETY: as the caller promises.
        unsafe { self.datatype.unpack(packed, self.at, self.count) };
    }
}

/// The input of an operation.
pub(super) fn input(data: &Outgoing) -> In {
    In(data.at, data.len, UNTYPED)
}

/// The input of an operation, from a copy.
pub(super) fn input_of(bytes: &[u8]) -> In {
    In(bytes.as_ptr(), bytes.len(), UNTYPED)
}

/// The output of an operation.
pub(super) fn output(room: &Incoming) -> Out {
    Out(room.room.buffer, room.room.capacity, UNTYPED)
}

/// The output of an operation, in separate memory.
pub(super) fn output_of(bytes: &mut [u8]) -> Out {
    Out(bytes.as_mut_ptr(), bytes.len(), UNTYPED)
}

/// Unpacks the received data.
///
/// # Safety
/// The elements are writable.
pub(super) unsafe fn put(room: &Incoming) {
    if let Some(unpack) = &room.unpack {
        // SAFETY: as the caller promises.
        unsafe { unpack.put(room.room.capacity) };
    }
}

/// A part for each rank, at displacements in elements.
///
/// # Errors
/// An array is missing, a count is negative, a count or displacement is too large, or the datatype does not exist.
///
/// # Safety
/// The arrays have this many entries.
pub(super) unsafe fn targets<N: Whole, D: Whole>(
    types: &Types,
    buf: *mut c_void,
    (counts, displacements): (*const N, *const D),
    datatype: MPI_Datatype,
    ranks: usize,
) -> Outcome<Vec<Target>> {
    let datatype = Use::of(types, datatype)?;
    // SAFETY: as the caller promises.
    let (counts, places) =
        unsafe { (numbers::counts(counts, ranks)?, numbers::list(displacements, ranks)?) };
    let part = |(count, at): (usize, i64)| {
        let at = buf.cast::<u8>().wrapping_offset(datatype.distance(at)?);
        Target::of_elements(at, count, datatype.clone())
    };
    counts.into_iter().zip(places).map(part).collect()
}

/// A part for each rank with its own type, at displacements in bytes.
///
/// # Errors
/// Those of [`targets`].
///
/// # Safety
/// As for [`targets`].
pub(super) unsafe fn typed_targets<N: Whole, D: Whole>(
    types: &Types,
    buf: *mut c_void,
    (counts, displacements): (*const N, *const D),
    handles: *const MPI_Datatype,
    ranks: usize,
) -> Outcome<Vec<Target>> {
    // SAFETY: as the caller promises.
    let (counts, places) =
        unsafe { (numbers::counts(counts, ranks)?, numbers::list(displacements, ranks)?) };
    let parts = counts.into_iter().zip(places).enumerate().map(|(i, (count, at))| {
        // SAFETY: as the caller promises. Where nothing is sent the type does not matter.
        let datatype = match (count, unsafe { *handles.add(i) }) {
            (0, handle) => Use::of(types, handle).unwrap_or(Use::Dense(1)),
            (_, handle) => Use::of(types, handle)?,
        };
        let at = buf.cast::<u8>().wrapping_offset(numbers::place(at));
        Target::of_elements(at, count, datatype)
    });
    parts.collect()
}

/// What a rank sends to itself must be as long as the room for it.
pub(super) fn expect_equal(sent: usize, room: usize) -> Outcome {
    if sent > room {
        let sent = count(sent, "byte");
        refuse!(MPI_ERR_TRUNCATE, "a rank sends {sent} to itself and has room for {room}");
    }
    if sent < room {
        let sent = count(sent, "byte");
        refuse!(MPI_ERR_COUNT, "a rank sends {sent} to itself and expects {room}");
    }
    Ok(())
}

/// # Safety
/// As for [`Target::room`], of all.
pub(super) unsafe fn rooms(parts: &[Target]) -> Outcome<Vec<Incoming>> {
    // SAFETY: as the caller promises.
    parts.iter().map(|part| unsafe { part.room() }).collect()
}

/// # Safety
/// As for [`Source::read`], of all.
pub(super) unsafe fn datas(parts: &[Source]) -> Outcome<Vec<Outgoing>> {
    // SAFETY: as the caller promises.
    parts.iter().map(|part| unsafe { part.read() }).collect()
}
