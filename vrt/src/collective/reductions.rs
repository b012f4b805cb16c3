//! The operations that fold data, each described once.

use crate::collective::buffers::Folded;
use crate::collective::call::{Description, Plan, Running};
use crate::collective::caller::Caller;
use crate::collective::checks::{expect_bytes, expect_result_type};
use crate::collective::operation::Operation;
use crate::collective::reduce_op::{predefined, reduce_op};
use crate::datatype::wire::Outgoing;
use crate::error::ErrorKind;
use crate::{Count, Rank};
use vrt_core::comm::algorithms::Combined;
use vrt_core::comm::operator::Operator;
use vrt_core::comm::reduce_op::ReduceOp;

impl Caller<'_> {
    /// The predefined operation that is applied to what is sent; `None` when it is a user's.
    ///
    /// # Errors
    /// The operation is predefined, but not for these elements.
    #[inline(always)]
    fn operator(&self, op: &impl Operation) -> Result<Option<Operator>, ErrorKind> {
        predefined(op.function(), self.elements)
    }

    /// What is applied to what is sent.
    fn reduce_op<'a>(&self, op: &'a impl Operation) -> Result<ReduceOp<'a>, ErrorKind> {
        reduce_op(op.function(), &self.elements.to_owned_type())
    }

    /// Checks that there is room for the result of a reduction, and takes no more of it.
    #[inline(always)]
    fn take_result(&self, from: &Outgoing, to: &mut Folded) -> Result<(), ErrorKind> {
        self.expect_result(from, &to.0)?;
        to.0.len = from.len;
        Ok(())
    }
}

/// The contributions of all, folded, for the root or for all.
#[derive(Clone, Copy)]
pub(super) struct Reduce<O> {
    pub(super) root: Option<Rank>,
    pub(super) op: O,
}

impl<O: Operation> Description for Reduce<O> {
    type From = Outgoing;
    type To = Folded;

    #[inline(always)]
    fn receiver(&self) -> Option<Rank> {
        self.root
    }

    #[inline(always)]
    fn check(&self, caller: &Caller<'_>, from: &Outgoing, to: &mut Folded) -> Plan {
        if caller.is(self.root) {
            caller.take_result(from, to)?;
        }
        let Some(operator) = caller.operator(&self.op)? else { return Ok(None) };
        let root = self.root.map(|root| root as usize);
        Ok(Some(Combined::reduce(operator, root, from.input(), Some(to.0.out()))))
    }

    async unsafe fn run(
        &self,
        begun: &Running<'_>,
        from: &Outgoing,
        to: &Folded,
    ) -> Result<(), ErrorKind> {
        let op = begun.caller.reduce_op(&self.op)?;
        let root = self.root.map(|root| root as usize);
        let (input, out) = (from.input(), to.0.out());
        // SAFETY: as the caller promises.
        unsafe { begun.collective.reduce(root, &op, input, Some(out)) }.await
    }
}

/// The contributions of all, folded, of which each rank gets a part: as many elements as the counts
/// say, or as its buffer has.
#[derive(Clone)]
pub(super) struct ReduceScatter<O> {
    pub(super) counts: Option<Vec<Count>>,
    pub(super) op: O,
}

impl<O> ReduceScatter<O> {
    /// The bytes that each rank gets.
    fn lengths(&self, caller: &Caller<'_>, to: &Folded) -> Result<Vec<usize>, ErrorKind> {
        let Some(counts) = &self.counts else {
            return Ok(vec![to.0.len; caller.comm.size as usize]);
        };
        let each = caller.elements.size();
        let length = |&elements: &Count| {
            let length = usize::try_from(elements).ok().and_then(|it| it.checked_mul(each));
            length.ok_or(ErrorKind::PartLength { elements, each })
        };
        counts.iter().map(length).collect()
    }
}

impl<O: Operation> Description for ReduceScatter<O> {
    type From = Outgoing;
    type To = Folded;

    fn check(&self, caller: &Caller<'_>, from: &Outgoing, to: &mut Folded) -> Plan {
        let lengths = self.lengths(caller, to)?;
        caller.expect_parts("list of counts", lengths.len())?;
        expect_bytes("receive buffer", to.0.len, lengths[caller.comm.rank as usize])?;
        expect_bytes(
            "send buffer",
            from.len,
            lengths.iter().fold(0, |sum, len| sum.saturating_add(*len)),
        )?;
        expect_result_type(from, &to.0, to.0.len)?;
        caller.operator(&self.op)?;
        Ok(None)
    }

    async unsafe fn run(
        &self,
        begun: &Running<'_>,
        from: &Outgoing,
        to: &Folded,
    ) -> Result<(), ErrorKind> {
        let op = begun.caller.reduce_op(&self.op)?;
        let lengths = self.lengths(&begun.caller, to)?;
        let (input, out) = (from.input(), to.0.out());
        // SAFETY: as the caller promises.
        unsafe { begun.collective.reduce_scatter(&op, input, &lengths, out) }.await
    }
}

/// The contributions of the ranks up to each, or before it, folded.
#[derive(Clone, Copy)]
pub(super) struct Scan<O> {
    pub(super) exclusive: bool,
    pub(super) op: O,
}

impl<O: Operation> Description for Scan<O> {
    type From = Outgoing;
    type To = Folded;

    fn check(&self, caller: &Caller<'_>, from: &Outgoing, to: &mut Folded) -> Plan {
        caller.take_result(from, to)?;
        if self.exclusive && caller.comm.rank == 0 {
            // Nothing comes for it.
            to.0.len = 0;
        }
        caller.operator(&self.op)?;
        Ok(None)
    }

    async unsafe fn run(
        &self,
        begun: &Running<'_>,
        from: &Outgoing,
        to: &Folded,
    ) -> Result<(), ErrorKind> {
        let op = begun.caller.reduce_op(&self.op)?;
        let (input, out) = (from.input(), to.0.out());
        // SAFETY: as the caller promises.
        unsafe { begun.collective.scan(&op, input, out, self.exclusive) }.await
    }
}
