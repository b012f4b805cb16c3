//! Distributed arrays (MPI-4.1 section 5.1.4): one rank's part of an array whose dimensions are distributed in blocks
//! over a grid of ranks.

use vrt_abi::constants::*;
use vrt_core::layout::{ArrayOrder, Construction, Datatype};
use vrt_slot::report::count;

use crate::fault::{Outcome, refuse};

/// An array and its distribution.
pub(super) struct Array {
    pub(super) size: i64,
    pub(super) rank: i64,
    pub(super) sizes: Vec<i64>,
    pub(super) distributions: Vec<i64>,
    pub(super) arguments: Vec<i64>,
    pub(super) processes: Vec<i64>,
    pub(super) order: ArrayOrder,
}

impl Array {
    /// The rank's part of it; it has the extent of the whole array.
    ///
    /// # Errors
    /// The numbers do not describe a distribution.
    pub(super) fn datatype(&self, of: Datatype) -> Outcome<Datatype> {
        let product = self.processes.iter().try_fold(1i64, |all, n| all.checked_mul(*n));
        if product != Some(self.size) || !(0..self.size).contains(&self.rank) {
            refuse!(
                MPI_ERR_ARG,
                "rank {} of {} is not one of a grid of {:?}",
                self.rank,
                self.size,
                self.processes
            );
        }
        if let Some(dim) = self.processes.iter().find(|n| **n <= 0) {
            refuse!(MPI_ERR_ARG, "a dimension has {dim} processes: 1 and more are allowed");
        }
        // Ranks are counted with the last dimension running fastest, whatever the array's order.
        let mut place = vec![0; self.sizes.len()];
        let mut rest = self.rank;
        for at in (0..self.sizes.len()).rev() {
            place[at] = rest.checked_rem(self.processes[at]).unwrap_or_default();
            rest = rest.checked_div(self.processes[at]).unwrap_or_default();
        }
        let extent = of.layout().extent();
        let (mut part, mut stride, mut offset) = (of, extent, 0isize);
        let mut add = |at: usize| -> Outcome {
            let size = self.sizes[at];
            let block = self.block(at)?;
            let bytes = |elements: i64| match isize::try_from(elements) {
                Ok(elements) => elements.saturating_mul(stride),
                Err(_) => isize::MAX,
            };
            // Blocks of this rank: every so many elements one; what is behind the last whole one is shorter.
            let first = place[at].saturating_mul(block);
            let cycle = block.saturating_mul(self.processes[at]);
            let rest = size.saturating_sub(first).max(0);
            let whole = match rest < block {
                true => 0,
                false => {
                    rest.saturating_sub(block).checked_div(cycle).unwrap_or(0).saturating_add(1)
                }
            };
            let behind = whole.saturating_mul(cycle);
            let last = rest.saturating_sub(behind).clamp(0, block);
            let of = Datatype::new(Construction::Resized {
                lower_bound: 0,
                extent: stride,
                of: part.clone(),
            })?;
            let all = Datatype::new(Construction::Hvector {
                count: whole,
                block_length: block,
                stride: bytes(cycle),
                of: of.clone(),
            })?;
            let begin = if rest > 0 { bytes(first) } else { 0 };
            let short = Datatype::new(Construction::Contiguous { count: last, of })?;
            part = Datatype::new(Construction::Struct {
                blocks: vec![(1, 0, all), (1, bytes(behind), short)],
            })?;
            offset = offset.saturating_add(begin);
            stride = bytes(size);
            Ok(())
        };
        match self.order {
            ArrayOrder::Fortran => (0..self.sizes.len()).try_for_each(&mut add)?,
            ArrayOrder::C => (0..self.sizes.len()).rev().try_for_each(&mut add)?,
        }
        let placed = Datatype::new(Construction::Hindexed { blocks: vec![(1, offset)], of: part })?;
        Ok(Datatype::new(Construction::Resized { lower_bound: 0, extent: stride, of: placed })?)
    }

    /// Elements per block in a dimension.
    fn block(&self, at: usize) -> Outcome<i64> {
        let (size, processes) = (self.sizes[at], self.processes[at]);
        if size <= 0 || processes <= 0 {
            let (size, processes) = (count(size, "element"), count(processes, "rank"));
            refuse!(MPI_ERR_ARG, "dimension {at} has {size} for {processes}");
        }
        let argument = self.arguments[at];
        let is_default = argument == i64::from(MPI_DISTRIBUTE_DFLT_DARG);
        match i32::try_from(self.distributions[at]).unwrap_or(MPI_UNDEFINED) {
            MPI_DISTRIBUTE_NONE if processes == 1 => Ok(size),
            MPI_DISTRIBUTE_NONE => {
                refuse!(MPI_ERR_ARG, "dimension {at} is not distributed, but has {processes} ranks")
            }
            MPI_DISTRIBUTE_BLOCK if is_default => {
                let most = size.saturating_add(processes.saturating_sub(1));
                Ok(most.checked_div(processes).unwrap_or_default())
            }
            MPI_DISTRIBUTE_BLOCK if argument.saturating_mul(processes) < size => refuse!(
                MPI_ERR_ARG,
                "blocks of {argument} for {} do not cover {}",
                count(processes, "rank"),
                count(size, "element")
            ),
            MPI_DISTRIBUTE_CYCLIC if is_default => Ok(1),
            MPI_DISTRIBUTE_BLOCK | MPI_DISTRIBUTE_CYCLIC if argument > 0 => Ok(argument),
            other => refuse!(
                MPI_ERR_ARG,
                "dimension {at} is distributed as {other} with blocks of {argument}"
            ),
        }
    }
}
