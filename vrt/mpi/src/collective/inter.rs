//! Collective operations between two groups (MPI-4.1 section 6.2.3): the core's, on the elements of a program.

use vrt_core::Site;
use vrt_core::comm::algorithms::{In, Out};
use vrt_core::comm::between::{self, Part};
use vrt_core::comm::bytes::zeroed;

use super::parts::{Source, Target, datas, input, input_of, output, output_of, put, rooms};
use super::root::Root;
use crate::fault::Outcome;
use crate::object::Comm;
use crate::op::Reduction;

pub(super) async fn barrier(comm: &Comm, site: Site) -> Outcome {
    Ok(between::barrier(&comm.engine, site).await?)
}

/// # Safety
/// The buffers are valid until the future is ready; so for all that follow.
pub(super) async unsafe fn broadcast(
    comm: &Comm,
    root: Root,
    target: &Target,
    site: Site,
) -> Outcome {
    // SAFETY: as the caller promises.
    unsafe {
        match root {
            Root::Here => {
                let data = target.as_source().read()?;
                between::broadcast(&comm.engine, Part::Root(input(&data)), site).await?;
            }
            Root::Neighbor => between::broadcast(&comm.engine, Part::Neighbor, site).await?,
            Root::There(root) => {
                let room = target.room()?;
                let part = Part::Other(root, output(&room));
                between::broadcast(&comm.engine, part, site).await?;
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
    // SAFETY: as the caller promises.
    unsafe {
        let rooms = rooms(&targets.unwrap_or_default())?;
        let outs: Vec<Out> = rooms.iter().map(output).collect();
        let data = source.read()?;
        let part = match root {
            Root::Here => Part::Root(&outs[..]),
            Root::Neighbor => Part::Neighbor,
            Root::There(root) => Part::Other(root, input(&data)),
        };
        between::gather(&comm.engine, part, site).await?;
        rooms.iter().for_each(|room| put(room));
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
    // SAFETY: as the caller promises.
    unsafe {
        let data = datas(&sources.unwrap_or_default())?;
        let ins: Vec<In> = data.iter().map(input).collect();
        let room = target.map(|target| target.room()).transpose()?;
        let part = match (root, &room) {
            (Root::Here, _) => Part::Root(&ins[..]),
            (Root::There(root), Some(room)) => Part::Other(root, output(room)),
            _ => Part::Neighbor,
        };
        between::scatter(&comm.engine, part, site).await?;
        room.iter().for_each(|room| put(room));
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
    // SAFETY: as the caller promises.
    unsafe {
        let (data, rooms) = (source.read()?, rooms(targets)?);
        let outs: Vec<Out> = rooms.iter().map(output).collect();
        between::all_gather(&comm.engine, input(&data), &outs, site).await?;
        rooms.iter().for_each(|room| put(room));
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
    // SAFETY: as the caller promises.
    unsafe {
        let (data, rooms) = (datas(sources)?, rooms(targets)?);
        let ins: Vec<In> = data.iter().map(input).collect();
        let outs: Vec<Out> = rooms.iter().map(output).collect();
        between::all_to_all(&comm.engine, &ins, &outs, site).await?;
        rooms.iter().for_each(|room| put(room));
    }
    Ok(())
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
    // SAFETY: as the caller promises.
    unsafe {
        let mut result = zeroed(target.as_ref().map_or(0, Target::len))?;
        let data = match root {
            Root::There(_) => source.copy()?,
            _ => Vec::new(),
        };
        let part = match root {
            Root::Here => Part::Root(output_of(&mut result)),
            Root::Neighbor => Part::Neighbor,
            Root::There(root) => Part::Other(root, input_of(&data)),
        };
        between::reduce(&comm.engine, part, &reduction.as_engine(), site).await?;
        if let Some(target) = target {
            target.fill(&result);
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
    // SAFETY: as the caller promises.
    unsafe {
        let (data, mut result) = (source.copy()?, zeroed(target.len())?);
        let (op, out) = (reduction.as_engine(), output_of(&mut result));
        between::all_reduce(&comm.engine, input_of(&data), out, &op, site).await?;
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
    // SAFETY: as the caller promises.
    unsafe {
        let (data, mut result) = (source.copy()?, zeroed(target.len())?);
        let (op, out) = (reduction.as_engine(), output_of(&mut result));
        between::reduce_scatter(&comm.engine, input_of(&data), lengths, out, &op, site).await?;
        target.fill(&result);
    }
    Ok(())
}
