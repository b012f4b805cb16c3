//! Collective operations between two groups (MPI-4.1 section 6.2.3): what one group's ranks contribute is received by
//! the other group.
//!
//! A rank sends to the other group's root, or to its first rank, which distributes the data in its group; operations
//! within a group use its own communicator. Messages between the groups have the number of their operation on the
//! intercommunicator, so that later ones do not overtake.

use crate::comm::algorithms::{Collective, In, Out};
use crate::comm::bytes::zeroed;
use crate::comm::handle::{CommunicatorHandle, RemoteGroup};
use crate::comm::reduce_op::ReduceOp;
use crate::comm::turns::Turn;
use crate::error::{Error, Site};
use crate::operation::{self, Pending};
use crate::pe::{self, Mode, Outbound, Started};

/// The part of a rank in an operation that has a root, with its buffer.
#[derive(Clone, Copy, Debug)]
pub enum Part<R, O> {
    /// The root.
    Root(R),
    /// A rank of the root's group: it takes no part.
    Neighbor,
    /// A rank of the other group, which knows the root's rank there.
    Other(usize, O),
}

/// The phase of messages between the groups.
const BETWEEN: u32 = 0;

/// One operation between two groups.
///
/// Dropped when the operation has ended on the rank: until then it lasts in traces, as `both` does.
struct Between<'a> {
    both: Collective,
    remote: &'a RemoteGroup,
    _turn: Turn<'a>,
}

impl<'a> Between<'a> {
    /// Begins the operation on the intercommunicator, when it is its turn.
    async fn begin(comm: &'a CommunicatorHandle, site: Site) -> Result<Between<'a>, Error> {
        let remote = comm.remote.as_ref().ok_or(Error::OneGroup)?;
        let turn = remote.turns.take(site).await;
        let both = Collective::begin(comm, site);
        both.number();
        Ok(Between { both, remote, _turn: turn })
    }

    fn outbound(&self, to: usize, data: In) -> Outbound {
        Outbound {
            to: self.remote.members.get(to),
            mode: Mode::Standard,
            ..self.both.outbound(BETWEEN, 0, data)
        }
    }

    /// Sends to a rank of the other group.
    ///
    /// # Safety
    /// B1, as for all `unsafe` functions here.
    async unsafe fn send(&self, to: usize, data: In) -> Result<(), Error> {
        // SAFETY: B1.
        unsafe { operation::send(self.outbound(to, data), self.both.site) }.await
    }

    /// Receives from a rank of the other group.
    async unsafe fn receive(&self, from: usize, out: Out) -> Result<(), Error> {
        let pattern = self.both.pattern(BETWEEN, from);
        // SAFETY: B1.
        let outcome = unsafe { operation::receive(pattern, out.room(), self.both.site) }.await?;
        self.both.check_came(&outcome, out.1, from)
    }

    /// Starts sends to ranks of the other group, which may be waiting for another rank first.
    ///
    /// # Safety
    /// The data is readable until all have ended.
    unsafe fn start_sends(&self, to: impl Iterator<Item = (usize, In)>) -> Vec<Pending> {
        let start = |(to, data)| {
            let message = self.outbound(to, data);
            // SAFETY: B1; readable until all have ended, says the caller.
            match pe::with(|pe| unsafe { pe.engine.send(&message) }) {
                Started::Done(_) => None,
                Started::Pending(request, _) => Some(Pending::new(request, self.both.site, None)),
            }
        };
        to.filter_map(start).collect()
    }

    /// The first ranks of the groups exchange data.
    async unsafe fn exchange(&self, data: In, out: Out) -> Result<(), Error> {
        let (message, pattern) = (self.outbound(0, data), self.both.pattern(BETWEEN, 0));
        // SAFETY: B1.
        let came = unsafe { operation::exchange(message, pattern, out.room(), self.both.site) };
        self.both.check_came(&came.await?, out.1, 0)
    }

    fn is_first(&self) -> bool {
        self.both.comm.rank == 0
    }

    /// An operation within the own group.
    fn here(&self) -> Collective {
        Collective::begin(&self.remote.local, self.both.site)
    }

    /// The reduction of the own group, at its first rank.
    async unsafe fn reduce_here(&self, op: &ReduceOp<'_>, input: In) -> Result<Vec<u8>, Error> {
        let mut result = zeroed(if self.is_first() { input.1 } else { 0 })?;
        let out = self.is_first().then(|| Out::of_slice(&mut result, input.2));
        let here = self.here();
        // SAFETY: B1.
        unsafe { here.reduce(Some(0), op, input, out) }.await?;
        Ok(result)
    }
}

/// Waits for all ranks of both groups.
///
/// # Errors
/// The communicator has one group only, or ranks call different operations; so for all that follow.
pub async fn barrier(comm: &CommunicatorHandle, site: Site) -> Result<(), Error> {
    let both = Between::begin(comm, site).await?;
    both.here().barrier().await?;
    if both.is_first() {
        // SAFETY: B1: there are no buffers.
        unsafe { both.exchange(In::NOTHING, Out::NOTHING) }.await?;
    }
    both.here().barrier().await
}

/// A rank of the root's group takes part in an operation with a root: all that it does is to count it.
///
/// # Errors
/// As [`barrier`].
pub async fn beside_root(comm: &CommunicatorHandle, site: Site) -> Result<(), Error> {
    Between::begin(comm, site).await.map(drop)
}

/// Sends the root's bytes to all ranks of the other group.
///
/// # Errors
/// As [`barrier`], and what is received differs from a buffer in length or type.
///
/// # Safety
/// All buffers are readable, or writable, until the future is ready (B1); so for all that follow.
pub async unsafe fn broadcast(
    comm: &CommunicatorHandle,
    part: Part<In, Out>,
    site: Site,
) -> Result<(), Error> {
    let both = Between::begin(comm, site).await?;
    // SAFETY: B1.
    unsafe {
        match part {
            Part::Root(data) => both.send(0, data).await,
            Part::Neighbor => Ok(()),
            Part::Other(root, out) => {
                if both.is_first() {
                    both.receive(root, out).await?;
                }
                both.here().broadcast(0, out).await
            }
        }
    }
}

/// The root gets a part from each rank of the other group.
///
/// # Errors
/// As [`broadcast`].
///
/// # Safety
/// As [`broadcast`].
pub async unsafe fn gather(
    comm: &CommunicatorHandle,
    part: Part<&[Out], In>,
    site: Site,
) -> Result<(), Error> {
    let both = Between::begin(comm, site).await?;
    // SAFETY: B1.
    unsafe {
        match part {
            Part::Root(outs) => {
                for (from, out) in outs.iter().enumerate() {
                    both.receive(from, *out).await?;
                }
                Ok(())
            }
            Part::Neighbor => Ok(()),
            Part::Other(root, data) => both.send(root, data).await,
        }
    }
}

/// Each rank of the other group gets a part of the root's.
///
/// # Errors
/// As [`broadcast`].
///
/// # Safety
/// As [`broadcast`].
pub async unsafe fn scatter(
    comm: &CommunicatorHandle,
    part: Part<&[In], Out>,
    site: Site,
) -> Result<(), Error> {
    let both = Between::begin(comm, site).await?;
    // SAFETY: B1.
    unsafe {
        match part {
            Part::Root(ins) => {
                for (to, data) in ins.iter().enumerate() {
                    both.send(to, *data).await?;
                }
                Ok(())
            }
            Part::Neighbor => Ok(()),
            Part::Other(root, out) => both.receive(root, out).await,
        }
    }
}

/// Every rank gets a part from each rank of the other group.
///
/// # Errors
/// As [`broadcast`], and there is no memory for all parts.
///
/// # Safety
/// As [`broadcast`].
pub async unsafe fn all_gather(
    comm: &CommunicatorHandle,
    data: In,
    outs: &[Out],
    site: Site,
) -> Result<(), Error> {
    let both = Between::begin(comm, site).await?;
    let signature = outs.first().map_or(data.2, |out| out.2);
    let mut all = zeroed(outs.iter().map(|out| out.1).fold(0, usize::saturating_add))?;
    // SAFETY: B1; all parts are in `all`, one behind the other.
    unsafe {
        let sends = both.start_sends(std::iter::once((0, data)));
        if both.is_first() {
            let mut rest = &mut all[..];
            for (from, out) in outs.iter().enumerate() {
                let (part, behind) = std::mem::take(&mut rest).split_at_mut(out.1);
                both.receive(from, Out::of_slice(part, out.2)).await?;
                rest = behind;
            }
        }
        for send in sends {
            send.await?;
        }
        both.here().broadcast(0, Out::of_slice(&mut all, signature)).await?;
        let mut rest = &all[..];
        for out in outs {
            let (part, behind) = rest.split_at(out.1);
            out.copy_from(In::of_slice(part, out.2));
            rest = behind;
        }
    }
    Ok(())
}

/// Every rank sends a part to each rank of the other group, and receives one from each.
///
/// # Errors
/// As [`broadcast`].
///
/// # Safety
/// As [`broadcast`].
pub async unsafe fn all_to_all(
    comm: &CommunicatorHandle,
    ins: &[In],
    outs: &[Out],
    site: Site,
) -> Result<(), Error> {
    let both = Between::begin(comm, site).await?;
    // SAFETY: B1.
    unsafe {
        let sends = both.start_sends(ins.iter().copied().enumerate());
        for (from, out) in outs.iter().enumerate() {
            both.receive(from, *out).await?;
        }
        for send in sends {
            send.await?;
        }
    }
    Ok(())
}

/// The root gets the reduction of the other group's contributions.
///
/// # Errors
/// As [`broadcast`], and those of [`Collective::reduce`].
///
/// # Safety
/// As [`broadcast`].
pub async unsafe fn reduce(
    comm: &CommunicatorHandle,
    part: Part<Out, In>,
    op: &ReduceOp<'_>,
    site: Site,
) -> Result<(), Error> {
    let both = Between::begin(comm, site).await?;
    // SAFETY: B1.
    unsafe {
        match part {
            Part::Root(out) => both.receive(0, out).await,
            Part::Neighbor => Ok(()),
            Part::Other(root, data) => {
                let result = both.reduce_here(op, data).await?;
                match both.is_first() {
                    true => both.send(root, In::of_slice(&result, data.2)).await,
                    false => Ok(()),
                }
            }
        }
    }
}

/// Every rank gets the reduction of the other group's contributions.
///
/// # Errors
/// As [`reduce`].
///
/// # Safety
/// As [`broadcast`].
pub async unsafe fn all_reduce(
    comm: &CommunicatorHandle,
    data: In,
    out: Out,
    op: &ReduceOp<'_>,
    site: Site,
) -> Result<(), Error> {
    let both = Between::begin(comm, site).await?;
    // SAFETY: B1.
    unsafe {
        let own = both.reduce_here(op, data).await?;
        if both.is_first() {
            both.exchange(In::of_slice(&own, data.2), out).await?;
        }
        both.here().broadcast(0, out).await
    }
}

/// The reduction of the other group's contributions: rank `i` of this group gets the part of `lengths[i]` bytes.
///
/// # Errors
/// As [`reduce`].
///
/// # Safety
/// As [`broadcast`].
pub async unsafe fn reduce_scatter(
    comm: &CommunicatorHandle,
    data: In,
    lengths: &[usize],
    out: Out,
    op: &ReduceOp<'_>,
    site: Site,
) -> Result<(), Error> {
    let both = Between::begin(comm, site).await?;
    // SAFETY: B1.
    unsafe {
        let own = both.reduce_here(op, data).await?;
        let total = lengths.iter().copied().fold(0, usize::saturating_add);
        let mut all = zeroed(if both.is_first() { total } else { 0 })?;
        let mut parts = Vec::new();
        if both.is_first() {
            both.exchange(In::of_slice(&own, data.2), Out::of_slice(&mut all, out.2)).await?;
            let mut rest = &all[..];
            for len in lengths {
                let (part, behind) = rest.split_at(*len);
                parts.push(In::of_slice(part, out.2));
                rest = behind;
            }
        }
        let parts = both.is_first().then_some(&parts[..]);
        both.here().scatter_parts(0, parts, out).await
    }
}
