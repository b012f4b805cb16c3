//! The elements of an access in a rank's part of a window: where they lie, and that they lie inside.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "a piece lies in its elements, whose bytes are counted by `Use::bytes` and whose places by `Window::place`"
    )
)]

use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::operator::Operator;
use vrt_core::layout::Scalar;
use vrt_core::operation;
use vrt_core::rma::access::Access;
use vrt_slot::report;

use crate::call::Call;
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, Whole};
use crate::object::{Use, Window};

/// Elements in a rank's part.
pub(super) struct Place {
    pub(super) rank: usize,
    /// The offset of the first one, in bytes from the beginning of the part.
    pub(super) offset: isize,
    count: usize,
    datatype: Use,
    /// Bytes of data.
    pub(super) len: usize,
}

impl Place {
    /// The contiguous pieces: offset and number of bytes.
    pub(super) fn pieces(&self) -> Vec<(isize, usize)> {
        if self.len == 0 {
            return Vec::new();
        }
        if let Some(begin) = self.datatype.direct(self.count) {
            return vec![(self.offset.saturating_add(begin), self.len)];
        }
        let mut all = Vec::new();
        if let Use::Laid(layout) = &self.datatype {
            layout
                .pieces(self.count, &mut |at, len| all.push((self.offset.saturating_add(at), len)));
        }
        all
    }

    /// The built-in values of the elements, in runs of adjacent values including the gaps between them: the offset of
    /// each run, and the number of values.
    pub(super) fn elements(&self, scalar: Scalar) -> Vec<(isize, usize)> {
        let (size, extent) = (scalar.size(), scalar.extent());
        let mut all: Vec<(isize, usize)> = Vec::new();
        let mut add = |at: isize, count: usize| match all.last_mut() {
            Some((first, n)) if *first + (*n * extent) as isize == at => *n += count,
            _ => all.push((at, count)),
        };
        if size == extent {
            self.pieces().into_iter().for_each(|(at, len)| add(at, len / size));
            return all;
        }
        // A value may be several pieces, and a piece the end of one and the beginning of the next.
        let mut rest = 0;
        for (mut at, mut len) in self.pieces() {
            while len > 0 {
                if rest == 0 {
                    add(at, 1);
                    rest = size;
                }
                let part = rest.min(len);
                (at, len, rest) = (at + part as isize, len - part, rest - part);
            }
        }
        all
    }
}

impl Window {
    /// The elements of an access; `None` for an access to no process.
    ///
    /// # Errors
    /// The datatype or the rank does not exist, or the elements do not lie in the rank's part, or may not be accessed now.
    pub(super) fn place<N: Whole>(
        &self,
        call: Call,
        rank: c_int,
        displacement: MPI_Aint,
        count: N,
        datatype: MPI_Datatype,
    ) -> Outcome<Option<Place>> {
        let (count, datatype) = (numbers::count(count)?, Use::of(&call.process.types, datatype)?);
        if rank == MPI_PROC_NULL {
            return Ok(None);
        }
        let part = self.core.target(rank)?.len;
        self.core.expect_access(rank).map_err(vrt_core::Error::from)?;
        let rank = numbers::index(rank);
        let unit = isize::try_from(self.units[rank]).unwrap_or(isize::MAX);
        // What cannot be counted lies outside of every part.
        let offset = displacement.saturating_mul(unit);
        let len = datatype.bytes(count)?;
        // All of it lies in the part, before anything is done to any of it.
        if len > 0 {
            let (begin, end) = datatype.reach(count);
            let begin = usize::try_from(offset.saturating_add(begin));
            let end = usize::try_from(offset.saturating_add(end));
            if begin.is_err() || end.is_ok_and(|end| end > part) {
                refuse!(
                    MPI_ERR_RMA_RANGE,
                    "{} from byte {offset} on, not inside the window of rank {rank}, which has {}",
                    report::count(count, "element"),
                    part
                );
            }
        }
        Ok(Some(Place { rank, offset, count, datatype, len }))
    }

    /// Accesses contiguous elements.
    ///
    /// # Errors
    /// They do not lie in the rank's part, or the access fails.
    ///
    /// # Safety
    /// The origin's memory is valid for as many.
    pub(super) unsafe fn touch(
        &self,
        call: Call,
        rank: usize,
        at: isize,
        (count, each): (usize, usize),
        access: Access,
    ) -> Outcome {
        let part = self.core.targets()[rank].len;
        // Behind the data of the last element there need be nothing.
        let len = match access {
            Access::Accumulate { operator: Operator { scalar, .. }, .. } if count > 0 => {
                (count - 1).saturating_mul(each).saturating_add(scalar.span())
            }
            _ => count.saturating_mul(each),
        };
        let inside = usize::try_from(at)
            .ok()
            .filter(|at| at.checked_add(len).is_some_and(|end| end <= part));
        let Some(at) = inside else {
            refuse!(
                MPI_ERR_RMA_RANGE,
                "{} from byte {at} on, not inside the window of rank {rank}, which has {part}",
                report::count(len, "byte")
            );
        };
        let elements = (count, each);
        // SAFETY: the place was just checked; of the origin's memory, as the caller promises.
        unsafe {
            if self.core.access_here(rank, at, elements, access) {
                return Ok(());
            }
            let there = self.core.access_elsewhere(rank, at, elements, access, *call.site);
            Ok(operation::drive(call.may_block(), there)?)
        }
    }
}
