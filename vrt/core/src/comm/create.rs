//! New communicators: splits, duplicates, communicators of groups (MPI-4.1 section 7.4).
//!
//! Every rank computes the members of its new communicator; rank 0 of the creating ranks gets fresh
//! contexts for all of them from the job. If the members are not consecutive ranks of the job, each
//! tells its home PE who they are before it continues (`groups`).

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "numbers of ranks and of communicators, which are given out in order"
    )
)]

use std::rc::Rc;

use crate::comm::algorithms::{Collective, In, Out};
use crate::comm::grid::SubGrid;
use crate::comm::handle::{CommunicatorHandle, Info, Members};
use crate::comm::membership;
use crate::comm::shape::Shape;
use crate::comm::{CONTEXTS, FIRST_FREE_CONTEXT};
use crate::error::{Error, Site};
use crate::layout::Signature;
use crate::mailbox::Pattern;
use crate::operation::{self, Pending};
use crate::pe::{self, Mode, Outbound, Room, Started};
use crate::{Rank, Tag};

/// The node of the calling rank: all PEs that share its memory.
pub fn node_now() -> u32 {
    pe::with(|pe| pe.engine.shared.node_of(pe.engine.id) as u32)
}

/// Plain numbers.
///
/// # Safety
/// Any bytes are a value.
pub unsafe trait Number: Copy + Default {}

// SAFETY: any bytes are an integer.
unsafe impl Number for i32 {}
// SAFETY: any bytes are an integer.
unsafe impl Number for u64 {}

/// Numbers that every rank gets from all.
///
/// # Errors
/// Those of [`Collective::gather`].
pub async fn all_gather<T: Number, const N: usize>(
    comm: &CommunicatorHandle,
    mine: [T; N],
    site: Site,
) -> Result<Vec<[T; N]>, Error> {
    let mut all = vec![[T::default(); N]; comm.size as usize];
    let bytes = size_of::<[T; N]>();
    let (from, to) = (In(mine.as_ptr().cast(), bytes, Signature::ANY), all.as_mut_ptr().cast());
    let out = Out(to, bytes * comm.size as usize, Signature::ANY);
    let collective = Collective::begin(comm, site);
    // SAFETY: B1: both are in this future.
    unsafe { collective.gather(None, from, Some(out)) }.await?;
    Ok(all)
}

/// Numbers that every rank gets from one. They are in this future: nobody else could forget it and use them.
///
/// # Errors
/// Those of [`Collective::broadcast`].
pub async fn broadcast<T: AsMut<[u32]> + 'static>(
    comm: &CommunicatorHandle,
    root: usize,
    mut numbers: T,
    site: Site,
) -> Result<T, Error> {
    let all = numbers.as_mut();
    let out = Out(all.as_mut_ptr().cast(), size_of_val(all), Signature::ANY);
    let collective = Collective::begin(comm, site);
    // SAFETY: B1: the numbers are in this future, or a vector's of it.
    unsafe { collective.broadcast(root, out) }.await?;
    Ok(numbers)
}

/// Reserves the contexts of this many communicators; returns the first one.
///
/// # Errors
/// The job has made several billion communicators: a context is never reused, as a late packet
/// could still carry it.
pub fn new_contexts(n: u32) -> Result<u32, Error> {
    let (first, end) = pe::with(|pe| {
        let shared = pe.engine.shared;
        (shared.job().new_contexts(n), shared.last_context())
    });
    // The last ones are nobody's, so that there is a number that stands for none.
    let end = end.min((u32::MAX - FIRST_FREE_CONTEXT) / CONTEXTS - 1);
    if first >= end || n > end - first {
        return Err(Error::NoMoreCommunicators { last: end });
    }
    Ok(FIRST_FREE_CONTEXT + CONTEXTS * first)
}

/// Prepares a rank's part of a communicator for collective operations.
///
/// # Errors
/// Another rank polls the future.
pub async fn finish(info: Info, site: Site) -> Result<CommunicatorHandle, Error> {
    if let Members::List(list) = &info.members {
        info.registered.set(true);
        let (context, list) = (info.context + 1, Rc::clone(list));
        let started = pe::with(|pe| membership::join(&mut pe.engine, context, &list));
        if let Started::Pending(request, _) = started {
            Pending::new(request, site, None).await?;
        }
    }
    Ok(CommunicatorHandle::new(info))
}

/// A communicator for each color, with a shape.
///
/// # Errors
/// Those of [`all_gather`], [`new_contexts`] and [`finish`].
pub async fn split(
    comm: &CommunicatorHandle,
    color: Option<u32>,
    key: i32,
    shape: Shape,
    site: Site,
) -> Result<Option<CommunicatorHandle>, Error> {
    let color = color.map_or(-1, |color| color as i32);
    let all = all_gather(comm, [color, key], site).await?;
    let mut colors: Vec<i32> = all.iter().map(|[c, _]| *c).filter(|c| *c >= 0).collect();
    colors.sort_unstable();
    colors.dedup();
    let mut first = [0];
    if comm.rank == 0 {
        first = [new_contexts(colors.len() as u32)?];
    }
    let first = broadcast(comm, 0, first, site).await?;
    let Ok(place) = colors.binary_search(&color) else { return Ok(None) };
    let same = all.iter().enumerate().filter(|(_, [c, _])| *c == color);
    let mut ranks: Vec<(i32, usize)> = same.map(|(rank, [_, key])| (*key, rank)).collect();
    ranks.sort_unstable();
    let members: Vec<u32> = ranks.iter().map(|(_, rank)| comm.members.get(*rank)).collect();
    let me = ranks.iter().position(|(_, rank)| *rank == comm.rank as usize).unwrap_or_default();
    let context = first[0] + CONTEXTS * place as u32;
    let mut info = Info::new(context, me as Rank, Members::from_list(&members));
    info.shape = shape;
    finish(info, site).await.map(Some)
}

/// A communicator of the first ranks, which have this shape; the others get none. Collective.
///
/// # Errors
/// Those of [`split`].
pub async fn in_shape(
    comm: &CommunicatorHandle,
    places: usize,
    shape: Shape,
    site: Site,
) -> Result<Option<CommunicatorHandle>, Error> {
    let is_placed = usize::try_from(comm.rank).is_ok_and(|rank| rank < places);
    split(comm, is_placed.then_some(0), comm.rank, shape, site).await
}

/// The communicator of the calling rank's part of a grid. Collective.
///
/// # Errors
/// Those of [`split`].
pub async fn part_of_grid(
    comm: &CommunicatorHandle,
    part: SubGrid,
    site: Site,
) -> Result<Option<CommunicatorHandle>, Error> {
    split(comm, Some(part.color), part.key, Shape::Cartesian(part.grid), site).await
}

/// A communicator of the same ranks, with the same shape.
///
/// # Errors
/// Those of [`same_ranks`].
pub async fn duplicate(comm: &CommunicatorHandle, site: Site) -> Result<CommunicatorHandle, Error> {
    same_ranks(comm, comm.shape.clone(), site).await
}

/// A communicator of the same ranks, with a shape and the attributes that are to be copied.
///
/// # Errors
/// Those of [`broadcast`], [`new_contexts`] and [`finish`].
pub async fn same_ranks(
    comm: &CommunicatorHandle,
    shape: Shape,
    site: Site,
) -> Result<CommunicatorHandle, Error> {
    let mut context = [0];
    if comm.rank == 0 {
        context = [new_contexts(1)?];
    }
    let context = broadcast(comm, 0, context, site).await?;
    let mut info = Info::new(context[0], comm.rank, comm.members.clone());
    info.shape = shape;
    info.attributes = comm.attributes.duplicate();
    finish(info, site).await
}

/// Checks that a group lies in a communicator; gives the caller's place in the group.
fn place_in(comm: &CommunicatorHandle, group: &Members) -> Result<Option<usize>, Error> {
    match group.iter().find(|member| comm.members.position(*member).is_none()) {
        Some(rank) => Err(Error::NotInCommunicator { rank }),
        None => Ok(group.position(comm.members.get(comm.rank as usize))),
    }
}

/// A communicator of a group, made by all ranks of a communicator.
///
/// # Errors
/// The group contains a rank that is not in the communicator; otherwise those of [`split`].
pub async fn from_group_collective(
    comm: &CommunicatorHandle,
    group: &Members,
    site: Site,
) -> Result<Option<CommunicatorHandle>, Error> {
    let place = place_in(comm, group)?;
    // A group is known by its first rank: different groups have none in common.
    let color = place.map(|_| group.get(0));
    split(comm, color, place.unwrap_or_default() as i32, Shape::Plain, site).await
}

/// Tags of messages between those who make a communicator; numbered operations have lower ones.
const CREATION: i32 = 0x4000_0000;

/// Sends a message that only the creation of communicators uses. Its data is in the caller's future.
async fn send(
    comm: &CommunicatorHandle,
    to: u32,
    tag: Tag,
    data: &[u32],
    site: Site,
) -> Result<(), Error> {
    let message = Outbound {
        context: comm.context + 1,
        to,
        source: comm.rank,
        tag: CREATION | (tag & 0x3fff_ffff),
        data: data.as_ptr().cast(),
        len: size_of_val(data),
        mode: Mode::Standard,
        signature: Signature::ANY,
    };
    // SAFETY: O1: the data is in the future that awaits this one.
    unsafe { operation::send(message, site) }.await
}

/// Receives such a message.
async fn receive(
    comm: &CommunicatorHandle,
    from: Rank,
    tag: Tag,
    data: &mut [u32],
    site: Site,
) -> Result<(), Error> {
    let tag = CREATION | (tag & 0x3fff_ffff);
    let pattern = Pattern { context: comm.context + 1, source: from, tag };
    let room = Room::untyped(data.as_mut_ptr().cast(), size_of_val(data));
    // SAFETY: O1: the data is in the future that awaits this one.
    unsafe { operation::receive(pattern, room, site) }.await?.fitting().map(|_| ())
}

/// Exchanges numbers between two ranks; both lists may have any length.
///
/// # Errors
/// The rank `with` does not exist, or another rank polls the future.
pub async fn exchange(
    comm: &CommunicatorHandle,
    with: Rank,
    tag: Tag,
    mine: Vec<u32>,
    site: Site,
) -> Result<Vec<u32>, Error> {
    let to = comm.job_rank(with)?;
    // The lower rank of the job speaks first. (Lengths first: lists may be long.)
    let mut len = [0];
    let speaks_first = comm.members.get(comm.rank as usize) < to;
    if speaks_first {
        send(comm, to, tag, &[mine.len() as u32], site).await?;
    }
    receive(comm, with, tag, &mut len, site).await?;
    if !speaks_first {
        send(comm, to, tag, &[mine.len() as u32], site).await?;
    }
    let mut theirs = vec![0; len[0] as usize];
    if speaks_first {
        send(comm, to, tag, &mine, site).await?;
    }
    receive(comm, with, tag, &mut theirs, site).await?;
    if !speaks_first {
        send(comm, to, tag, &mine, site).await?;
    }
    Ok(theirs)
}

/// A communicator of a group, made only by the group's ranks.
///
/// # Errors
/// The group contains a rank that is not in the communicator, the job has no more contexts, or
/// another rank polls the future.
pub async fn from_group(
    comm: &CommunicatorHandle,
    group: &Members,
    tag: Tag,
    site: Site,
) -> Result<Option<CommunicatorHandle>, Error> {
    let Some(place) = place_in(comm, group)? else { return Ok(None) };
    let mut context = [0];
    if place == 0 {
        context = [new_contexts(1)?];
        for member in group.iter().skip(1) {
            send(comm, member, tag, &context, site).await?;
        }
    } else {
        let leader = comm.members.position(group.get(0)).unwrap_or_default();
        receive(comm, leader as Rank, tag, &mut context, site).await?;
    }
    finish(Info::new(context[0], place as Rank, group.clone()), site).await.map(Some)
}

/// Checks that ranks can be neighbours in a communicator.
///
/// # Errors
/// One is not in the communicator.
pub fn check_neighbors(comm: &CommunicatorHandle, ranks: &[Rank]) -> Result<(), Error> {
    let size = comm.size as usize;
    match ranks.iter().find(|rank| **rank < 0 || **rank as usize >= size) {
        Some(rank) => Err(Error::RankOutOfRange { what: "neighbour", rank: *rank, size }),
        None => Ok(()),
    }
}
