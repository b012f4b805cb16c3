//! Collective operations between two groups (MPI-4.1 section 6.2.3): the contributions of one group's ranks are sent to
//! the other group.
//!
//! A rank sends to the other group's root, or to its first rank, which distributes the data in its group; operations
//! within a group use its own communicator. The tag of messages is the number of their operation on the
//! intercommunicator, so that later ones do not overtake.

use vrt_core::Site;
use vrt_core::comm::algorithms::{Collective, In, Out};
use vrt_core::comm::handle::CommunicatorHandle;
use vrt_core::mailbox::Pattern;
use vrt_core::operation;
use vrt_core::pe::{Mode, Outbound};

use super::Root;
use super::parts::{Source, Target, input, input_of, output, output_of, put};
use crate::buffer::UNTYPED;
use crate::communicator::Comm;
use crate::fault::Outcome;
use crate::numbers;
use crate::op::Reduction;
use crate::turns::Turn;

/// One operation between two groups.
///
/// Dropped when the operation has ended on the rank: until then it lasts in traces, as `both` does.
struct Between<'a> {
    both: Collective,
    local: &'a CommunicatorHandle,
    number: u32,
    site: Site,
    _turn: Turn<'a>,
}

impl<'a> Between<'a> {
    /// Begins the operation on the intercommunicator, when it is its turn.
    async fn begin(comm: &'a Comm, site: Site) -> Outcome<Between<'a>> {
        comm.expect_inter()?;
        let turn = comm.turns.take(site).await;
        let engine = &comm.engine;
        let local = engine.remote.as_ref().map_or(engine, |remote| &remote.local);
        let both = Collective::begin(engine, site);
        let number = both.number();
        Ok(Between { both, local, number, site, _turn: turn })
    }

    fn tag(&self, phase: u32) -> i32 {
        (((self.number & 0x3f_ffff) << 8) | phase).cast_signed()
    }

    fn outbound(&self, phase: u32, to: usize, data: In) -> Outbound {
        Outbound {
            context: self.both.comm.context.saturating_add(1),
            to: self.both.comm.partners().get(to),
            source: self.both.comm.rank,
            tag: self.tag(phase),
            data: data.0,
            len: data.1,
            mode: Mode::Standard,
            signature: UNTYPED,
        }
    }

    fn pattern(&self, phase: u32, from: usize) -> Pattern {
        let context = self.both.comm.context.saturating_add(1);
        Pattern { context, source: numbers::int(from), tag: self.tag(phase) }
    }

    /// Sends to a rank of the other group.
    async unsafe fn send(&self, phase: u32, to: usize, data: In) -> Outcome {
        // SAFETY: as the caller promises.
        Ok(unsafe { operation::send(self.outbound(phase, to, data), self.site) }.await?)
    }

    /// Receives from a rank of the other group.
    async unsafe fn receive(&self, phase: u32, from: usize, out: Out) -> Outcome {
        let pattern = self.pattern(phase, from);
        // SAFETY: as the caller promises.
        let outcome = unsafe { operation::receive(pattern, out.room(), self.site) }.await?;
        outcome.fitting()?;
        Ok(())
    }

    /// The first ranks of the groups exchange data.
    async unsafe fn exchange(&self, phase: u32, data: In, out: Out) -> Outcome {
        let (message, pattern) = (self.outbound(phase, 0, data), self.pattern(phase, 0));
        // SAFETY: as the caller promises.
        let exchange = unsafe { operation::exchange(message, pattern, out.room(), self.site) };
        exchange.await?.fitting()?;
        Ok(())
    }

    fn is_first(&self) -> bool {
        self.both.comm.rank == 0
    }

    fn here(&self) -> Collective {
        Collective::begin(self.local, self.site)
    }
}

pub(super) async fn barrier(comm: &Comm, site: Site) -> Outcome {
    let both = Between::begin(comm, site).await?;
    // SAFETY: nothing is read or written.
    unsafe {
        both.here().barrier().await?;
        if both.is_first() {
            both.exchange(0, In::NOTHING, Out::NOTHING).await?;
        }
        both.here().barrier().await?;
    }
    Ok(())
}

/// # Safety
/// The buffers are valid until the future is ready; so for all that follow.
pub(super) async unsafe fn broadcast(
    comm: &Comm,
    root: Root,
    target: &Target,
    site: Site,
) -> Outcome {
    let both = Between::begin(comm, site).await?;
    // SAFETY: as the caller promises.
    unsafe {
        match root {
            Root::Here => {
                let data = target.as_source().read()?;
                both.send(0, 0, input(&data)).await?;
            }
            Root::Neighbor => {}
            Root::There(root) => {
                let room = target.room()?;
                if both.is_first() {
                    both.receive(0, root, output(&room)).await?;
                }
                both.here().broadcast(0, output(&room)).await?;
                put(&room);
            }
        }
    }
    Ok(())
}

/// # Safety
/// As [`broadcast`].
pub(super) async unsafe fn gather(
    comm: &Comm,
    root: Root,
    source: &Source,
    targets: Option<Vec<Target>>,
    site: Site,
) -> Outcome {
    let both = Between::begin(comm, site).await?;
    // SAFETY: as the caller promises.
    unsafe {
        match (root, targets) {
            (Root::Here, Some(targets)) => {
                for (from, target) in targets.iter().enumerate() {
                    let room = target.room()?;
                    both.receive(0, from, output(&room)).await?;
                    put(&room);
                }
            }
            (Root::There(root), _) => {
                let data = source.read()?;
                both.send(0, root, input(&data)).await?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// # Safety
/// As [`broadcast`].
pub(super) async unsafe fn scatter(
    comm: &Comm,
    root: Root,
    sources: Option<Vec<Source>>,
    target: Option<Target>,
    site: Site,
) -> Outcome {
    let both = Between::begin(comm, site).await?;
    // SAFETY: as the caller promises.
    unsafe {
        match (root, sources, target) {
            (Root::Here, Some(sources), _) => {
                for (to, source) in sources.iter().enumerate() {
                    let data = source.read()?;
                    both.send(0, to, input(&data)).await?;
                }
            }
            (Root::There(root), _, Some(target)) => {
                let room = target.room()?;
                both.receive(0, root, output(&room)).await?;
                put(&room);
            }
            _ => {}
        }
    }
    Ok(())
}

/// # Safety
/// As [`broadcast`].
pub(super) async unsafe fn allgather(
    comm: &Comm,
    source: &Source,
    targets: &[Target],
    site: Site,
) -> Outcome {
    let both = Between::begin(comm, site).await?;
    let lengths: Vec<usize> = targets.iter().map(Target::len).collect();
    let mut all = numbers::zeroed(numbers::sum(&lengths)?)?;
    // SAFETY: as the caller promises.
    unsafe {
        // Each rank sends to the other group's first, which may be waiting for another one: nobody waits
        // for a send.
        let data = source.read()?;
        let sending = both.send(0, 0, input(&data));
        let receiving = async {
            if both.is_first() {
                let mut rest = &mut all[..];
                for (from, len) in lengths.iter().enumerate() {
                    let (part, behind) = std::mem::take(&mut rest).split_at_mut(*len);
                    both.receive(0, from, output_of(part)).await?;
                    rest = behind;
                }
            }
            Ok(())
        };
        super::neighbors::both(sending, receiving).await?;
        both.here().broadcast(0, output_of(&mut all)).await?;
        let mut rest = &all[..];
        for target in targets {
            let (part, behind) = rest.split_at(target.len());
            target.fill(part);
            rest = behind;
        }
    }
    Ok(())
}

/// # Safety
/// As [`broadcast`].
pub(super) async unsafe fn alltoall(
    comm: &Comm,
    sources: &[Source],
    targets: &[Target],
    site: Site,
) -> Outcome {
    let both = Between::begin(comm, site).await?;
    // SAFETY: as the caller promises.
    unsafe {
        let sending = async {
            for (to, source) in sources.iter().enumerate() {
                let data = source.read()?;
                both.send(0, to, input(&data)).await?;
            }
            Ok(())
        };
        let receiving = async {
            for (from, target) in targets.iter().enumerate() {
                let room = target.room()?;
                both.receive(0, from, output(&room)).await?;
                put(&room);
            }
            Ok(())
        };
        super::neighbors::both(sending, receiving).await
    }
}

/// The reduction of the local group, at its first rank.
async unsafe fn reduce_here(
    both: &Between<'_>,
    source: &Source,
    reduction: &Reduction,
) -> Outcome<Vec<u8>> {
    // SAFETY: as the caller promises.
    unsafe {
        let data = source.copy()?;
        let mut result = numbers::zeroed(data.len())?;
        let out = both.is_first().then(|| output_of(&mut result));
        both.here().reduce(Some(0), &reduction.as_engine(), input_of(&data), out).await?;
        Ok(result)
    }
}

/// # Safety
/// As [`broadcast`].
pub(super) async unsafe fn reduce(
    comm: &Comm,
    root: Root,
    source: &Source,
    target: Option<Target>,
    reduction: &Reduction,
    site: Site,
) -> Outcome {
    let both = Between::begin(comm, site).await?;
    // SAFETY: as the caller promises.
    unsafe {
        match (root, target) {
            (Root::Here, Some(target)) => {
                let mut result = numbers::zeroed(target.len())?;
                both.receive(0, 0, output_of(&mut result)).await?;
                target.fill(&result);
            }
            (Root::There(root), _) => {
                let result = reduce_here(&both, source, reduction).await?;
                if both.is_first() {
                    both.send(0, root, input_of(&result)).await?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// # Safety
/// As [`broadcast`].
pub(super) async unsafe fn allreduce(
    comm: &Comm,
    source: &Source,
    target: &Target,
    reduction: &Reduction,
    site: Site,
) -> Outcome {
    let both = Between::begin(comm, site).await?;
    // SAFETY: as the caller promises.
    unsafe {
        let own = reduce_here(&both, source, reduction).await?;
        let mut result = numbers::zeroed(target.len())?;
        if both.is_first() {
            both.exchange(0, input_of(&own), output_of(&mut result)).await?;
        }
        both.here().broadcast(0, output_of(&mut result)).await?;
        target.fill(&result);
    }
    Ok(())
}

/// # Safety
/// As [`broadcast`].
pub(super) async unsafe fn reduce_scatter(
    comm: &Comm,
    source: &Source,
    target: &Target,
    lengths: &[usize],
    reduction: &Reduction,
    site: Site,
) -> Outcome {
    let both = Between::begin(comm, site).await?;
    // SAFETY: as the caller promises.
    unsafe {
        let own = reduce_here(&both, source, reduction).await?;
        let mut all = numbers::zeroed(numbers::sum(lengths)?)?;
        if both.is_first() {
            both.exchange(0, input_of(&own), output_of(&mut all)).await?;
        }
        let mut part = numbers::zeroed(target.len())?;
        let mut rest = &all[..];
        let mut parts = Vec::with_capacity(lengths.len());
        for len in lengths {
            let (one, behind) = rest.split_at(*len);
            parts.push(input_of(one));
            rest = behind;
        }
        let parts = both.is_first().then_some(&parts[..]);
        both.here().scatter_parts(0, parts, output_of(&mut part)).await?;
        target.fill(&part);
    }
    Ok(())
}
