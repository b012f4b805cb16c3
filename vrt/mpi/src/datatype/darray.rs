//! Distributed arrays (MPI-4.1 section 5.1.4): the part of an array that one rank of a grid has, when each
//! dimension is dealt out in blocks.

use vrt_abi::constants::*;
use vrt_core::layout::{ArrayOrder, Construction, Datatype};

use crate::fault::{Outcome, refuse};

/// An array and how it is dealt out.
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
        let product: i64 = self.processes.iter().product();
        if product != self.size || !(0..self.size).contains(&self.rank) {
            refuse!(
                MPI_ERR_ARG,
                "rank {} of {} is not one of a grid of {:?}",
                self.rank,
                self.size,
                self.processes
            );
        }
        // Ranks are counted with the last dimension running fastest, whatever the array's order.
        let mut place = vec![0; self.sizes.len()];
        let mut rest = self.rank;
        for at in (0..self.sizes.len()).rev() {
            place[at] = rest % self.processes[at];
            rest /= self.processes[at];
        }
        let extent = of.layout().extent();
        let (mut part, mut stride, mut offset) = (of, extent, 0isize);
        let mut add = |at: usize| -> Outcome {
            let (size, processes) = (self.sizes[at], self.processes[at]);
            let block = self.block(at)?;
            let first = place[at] * block;
            // Blocks of this rank: every so many elements one, the last one may be shorter.
            let cycle = block * processes;
            let mut blocks = Vec::new();
            let mut start = first;
            while start < size {
                blocks.push((block.min(size - start), (start as isize) * stride));
                start += cycle;
            }
            let begin = blocks.first().map_or(0, |(_, at)| *at);
            let row = Datatype::new(Construction::Resized {
                lower_bound: 0,
                extent: stride,
                of: part.clone(),
            })?;
            let blocks = blocks.into_iter().map(|(len, at)| (len, at - begin)).collect();
            part = Datatype::new(Construction::Hindexed { blocks, of: row })?;
            offset += begin;
            stride *= size as isize;
            Ok(())
        };
        match self.order {
            ArrayOrder::Fortran => (0..self.sizes.len()).try_for_each(&mut add)?,
            ArrayOrder::C => (0..self.sizes.len()).rev().try_for_each(&mut add)?,
        }
        let placed = Datatype::new(Construction::Hindexed { blocks: vec![(1, offset)], of: part })?;
        Ok(Datatype::new(Construction::Resized { lower_bound: 0, extent: stride, of: placed })?)
    }

    /// Elements of a block in a dimension.
    fn block(&self, at: usize) -> Outcome<i64> {
        let (size, processes) = (self.sizes[at], self.processes[at]);
        if size <= 0 || processes <= 0 {
            refuse!(MPI_ERR_ARG, "dimension {at} has {size} elements for {processes} ranks");
        }
        let argument = self.arguments[at];
        let is_default = argument == i64::from(MPI_DISTRIBUTE_DFLT_DARG);
        match self.distributions[at] as i32 {
            MPI_DISTRIBUTE_NONE if processes == 1 => Ok(size),
            MPI_DISTRIBUTE_NONE => {
                refuse!(MPI_ERR_ARG, "dimension {at} is not distributed, but has {processes} ranks")
            }
            MPI_DISTRIBUTE_BLOCK if is_default => Ok((size + processes - 1) / processes),
            MPI_DISTRIBUTE_BLOCK if argument * processes < size => refuse!(
                MPI_ERR_ARG,
                "blocks of {argument} for {processes} ranks do not cover {size} elements"
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
