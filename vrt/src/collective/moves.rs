//! The operations that move data, each described once.

use crate::Rank;
use crate::collective::call::{Description, Plan, Running};
use crate::collective::caller::Caller;
use crate::collective::checks::{expect_bytes, expect_type};
use crate::datatype::wire::{Incoming, Outgoing};
use crate::error::ErrorKind;
use vrt_core::comm::algorithms::{Combined, In, Out};

pub(super) fn ins(parts: &[Outgoing]) -> Vec<In> {
    parts.iter().map(Outgoing::input).collect()
}

pub(super) fn outs(parts: &[Incoming]) -> Vec<Out> {
    parts.iter().map(Incoming::out).collect()
}

/// All wait for all.
#[derive(Clone, Copy)]
pub(super) struct Barrier;

impl Description for Barrier {
    type From = ();
    type To = ();

    #[inline(always)]
    fn check(&self, _: &Caller<'_>, _: &(), _: &mut ()) -> Plan {
        Ok(Some(Combined::barrier()))
    }

    async unsafe fn run(&self, begun: &Running<'_>, _: &(), _: &()) -> Result<(), ErrorKind> {
        begun.collective.barrier().await
    }
}

/// All get what lies in the root's receive buffer.
#[derive(Clone, Copy)]
pub(super) struct Broadcast {
    pub(super) root: Rank,
}

impl Description for Broadcast {
    type From = Outgoing;
    type To = Incoming;

    const FILLED: bool = true;

    #[inline(always)]
    fn check(&self, _: &Caller<'_>, _: &Outgoing, data: &mut Incoming) -> Plan {
        Ok(Some(Combined::broadcast(self.root as usize, data.out())))
    }

    async unsafe fn run(
        &self,
        begun: &Running<'_>,
        _: &Outgoing,
        data: &Incoming,
    ) -> Result<(), ErrorKind> {
        // SAFETY: as the caller promises.
        unsafe { begun.collective.broadcast(self.root as usize, data.out()) }.await
    }
}

/// Equal contributions side by side, for the root or for all.
#[derive(Clone, Copy)]
pub(super) struct Gather {
    pub(super) root: Option<Rank>,
}

impl Description for Gather {
    type From = Outgoing;
    type To = Incoming;

    #[inline(always)]
    fn receiver(&self) -> Option<Rank> {
        self.root
    }

    #[inline(always)]
    fn check(&self, caller: &Caller<'_>, from: &Outgoing, to: &mut Incoming) -> Plan {
        if caller.is(self.root) {
            caller.expect_gathered(from.len, to.len)?;
            expect_type(from, to, from.len)?;
        }
        let root = self.root.map(|root| root as usize);
        Ok(Some(Combined::gather(root, from.input(), Some(to.out()))))
    }

    async unsafe fn run(
        &self,
        begun: &Running<'_>,
        from: &Outgoing,
        to: &Incoming,
    ) -> Result<(), ErrorKind> {
        let root = self.root.map(|root| root as usize);
        // SAFETY: as the caller promises.
        unsafe { begun.collective.gather(root, from.input(), Some(to.out())) }.await
    }
}

/// Contributions of different lengths, for the root or for all.
#[derive(Clone, Copy)]
pub(super) struct GatherVarcount {
    pub(super) root: Option<Rank>,
}

impl Description for GatherVarcount {
    type From = Outgoing;
    type To = Vec<Incoming>;

    fn receiver(&self) -> Option<Rank> {
        self.root
    }

    fn check(&self, caller: &Caller<'_>, _: &Outgoing, to: &mut Vec<Incoming>) -> Plan {
        if caller.is(self.root) {
            caller.expect_parts("receive buffer", to.len())?;
        }
        Ok(None)
    }

    async unsafe fn run(
        &self,
        begun: &Running<'_>,
        from: &Outgoing,
        to: &Vec<Incoming>,
    ) -> Result<(), ErrorKind> {
        let root = self.root.map(|root| root as usize);
        let parts = outs(to);
        // SAFETY: as the caller promises.
        unsafe { begun.collective.gather_parts(root, from.input(), Some(&parts)) }.await
    }
}

/// Equal parts of what the root has.
#[derive(Clone, Copy)]
pub(super) struct Scatter {
    pub(super) root: Rank,
}

impl Description for Scatter {
    type From = Outgoing;
    type To = Incoming;

    fn sender(&self) -> Option<Rank> {
        Some(self.root)
    }

    fn check(&self, caller: &Caller<'_>, from: &Outgoing, to: &mut Incoming) -> Plan {
        if caller.is(Some(self.root)) {
            expect_bytes(
                "send buffer",
                from.len,
                to.len.saturating_mul(caller.comm.size as usize),
            )?;
            expect_type(from, to, to.len)?;
        }
        Ok(None)
    }

    async unsafe fn run(
        &self,
        begun: &Running<'_>,
        from: &Outgoing,
        to: &Incoming,
    ) -> Result<(), ErrorKind> {
        let root = self.root as usize;
        // SAFETY: as the caller promises.
        unsafe { begun.collective.scatter(root, Some(from.input()), to.out()) }.await
    }
}

/// Parts of different lengths of what the root has.
#[derive(Clone, Copy)]
pub(super) struct ScatterVarcount {
    pub(super) root: Rank,
}

impl Description for ScatterVarcount {
    type From = Vec<Outgoing>;
    type To = Incoming;

    fn sender(&self) -> Option<Rank> {
        Some(self.root)
    }

    fn check(&self, caller: &Caller<'_>, from: &Vec<Outgoing>, _: &mut Incoming) -> Plan {
        if caller.is(Some(self.root)) {
            caller.expect_parts("send buffer", from.len())?;
        }
        Ok(None)
    }

    async unsafe fn run(
        &self,
        begun: &Running<'_>,
        from: &Vec<Outgoing>,
        to: &Incoming,
    ) -> Result<(), ErrorKind> {
        let (root, parts) = (self.root as usize, ins(from));
        // SAFETY: as the caller promises.
        unsafe { begun.collective.scatter_parts(root, Some(&parts), to.out()) }.await
    }
}

/// An equal part from each for each.
#[derive(Clone, Copy)]
pub(super) struct AllToAll;

impl Description for AllToAll {
    type From = Outgoing;
    type To = Incoming;

    #[inline(always)]
    fn check(&self, caller: &Caller<'_>, from: &Outgoing, to: &mut Incoming) -> Plan {
        caller.expect_equal_parts(from.len, to.len)?;
        expect_type(from, to, from.len)?;
        Ok(Some(Combined::all_to_all(from.input(), to.out())))
    }

    async unsafe fn run(
        &self,
        begun: &Running<'_>,
        from: &Outgoing,
        to: &Incoming,
    ) -> Result<(), ErrorKind> {
        // SAFETY: as the caller promises.
        unsafe { begun.collective.all_to_all(from.input(), to.out()) }.await
    }
}

/// A part from each for each, of different lengths, and perhaps of different datatypes.
#[derive(Clone, Copy)]
pub(super) struct AllToAllVarcount;

impl Description for AllToAllVarcount {
    type From = Vec<Outgoing>;
    type To = Vec<Incoming>;

    fn check(&self, caller: &Caller<'_>, from: &Vec<Outgoing>, to: &mut Vec<Incoming>) -> Plan {
        caller.expect_parts("send buffer", from.len())?;
        caller.expect_parts("receive buffer", to.len())?;
        Ok(None)
    }

    async unsafe fn run(
        &self,
        begun: &Running<'_>,
        from: &Vec<Outgoing>,
        to: &Vec<Incoming>,
    ) -> Result<(), ErrorKind> {
        let (ins, outs) = (ins(from), outs(to));
        // SAFETY: as the caller promises.
        unsafe { begun.collective.all_to_all_parts(&ins, &outs) }.await
    }
}
