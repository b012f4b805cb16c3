//! Communicators between two groups of ranks (MPI-4.1 section 7.6): creation, splitting and merging.
//!
//! One rank of each group, its *leader*, exchanges what both groups need to know with the other leader; each group's
//! own communicator distributes it. Both leaders offer contexts; those of the group with the lowest rank of the job are
//! used.

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

use crate::comm::CommunicatorHandle;
use crate::comm::create::{self, broadcast, new_contexts};
use crate::comm::handle::{Info, Members, RemoteGroup};
use crate::comm::shape::Shape;
use crate::comm::{CONTEXTS, membership};
use crate::error::{Error, Site};
use crate::operation::Pending;
use crate::pe::{self, Started};
use crate::{Rank, Tag};

/// The tag of messages between leaders who make a communicator of an intercommunicator.
const OF_TWO: Tag = Tag::MAX;

/// The remote group of an intercommunicator.
fn remote_of(comm: &CommunicatorHandle) -> Result<&RemoteGroup, Error> {
    comm.remote.as_ref().ok_or(Error::OneGroup)
}

/// Exchanges numbers between two groups: this group's, which its leader knows, for the other's.
///
/// # Errors
/// Those of [`create::exchange`] and [`broadcast`].
async fn exchange_groups(
    local: &CommunicatorHandle,
    leader: usize,
    peer: &CommunicatorHandle,
    partner: Rank,
    (tag, mine): (Tag, &[u32]),
    site: Site,
) -> Result<Vec<u32>, Error> {
    let mut theirs = Vec::new();
    let mut len = [0];
    if local.rank as usize == leader {
        theirs = create::exchange(peer, partner, tag, mine.to_vec(), site).await?;
        len = [theirs.len() as u32];
    }
    let [len] = broadcast(local, leader, len, site).await?;
    theirs.resize(len as usize, 0);
    broadcast(local, leader, theirs, site).await
}

/// Prepares a rank's part of an intercommunicator: if the ranks of its local group are not consecutive, its PE learns
/// who they are.
async fn finish(
    context: u32,
    local: CommunicatorHandle,
    remote: Members,
    site: Site,
) -> Result<CommunicatorHandle, Error> {
    let mut info = Info::new(context, local.rank, local.members.clone());
    if let Members::List(list) = &info.members {
        info.registered.set(true);
        let (context, list) = (info.context + 1, Rc::clone(list));
        let started = pe::with(|pe| membership::join(&mut pe.engine, context, &list));
        if let Started::Pending(request, _) = started {
            Pending::new(request, site, None).await?;
        }
    }
    info.remote = Some(RemoteGroup::new(remote, local));
    Ok(CommunicatorHandle::new(info))
}

/// An intercommunicator of the ranks of `comm` and those of another group, whose leader is rank `remote_leader` of
/// `peer`; only this group's leader uses these two.
///
/// # Errors
/// A leader does not exist, or the job has no more contexts.
pub async fn create(
    comm: &CommunicatorHandle,
    local_leader: Rank,
    peer: &CommunicatorHandle,
    remote_leader: Rank,
    tag: Tag,
    site: Site,
) -> Result<CommunicatorHandle, Error> {
    comm.job_rank(local_leader)?;
    let leader = local_leader as usize;
    let local = create::same_ranks(comm, Shape::Plain, site).await?;
    let offered = if comm.rank == local_leader { new_contexts(1)? } else { 0 };
    let mut mine = vec![offered];
    mine.extend(comm.members.iter());
    let told = (tag, &mine[..]);
    let theirs = exchange_groups(&local, leader, peer, remote_leader, told, site).await?;
    let offered = broadcast(&local, leader, [mine[0]], site).await?;
    let (mine, theirs) = ((offered[0], &mine[1..]), (theirs[0], &theirs[1..]));
    let first = mine.1.iter().min() < theirs.1.iter().min();
    let context = if first { mine.0 } else { theirs.0 };
    let remote = Members::from_list(theirs.1);
    finish(context, local, remote, site).await
}

/// One communicator of both groups. `high`: this group's ranks come last; if both groups give the same value, those of
/// the group with the lowest rank of the job come first.
///
/// # Errors
/// The communicator has one group only, or the job has no more contexts.
pub async fn merge(
    comm: &CommunicatorHandle,
    high: bool,
    site: Site,
) -> Result<CommunicatorHandle, Error> {
    let remote = remote_of(comm)?;
    let _turn = remote.turns.take(site).await;
    let offered = if comm.rank == 0 { new_contexts(1)? } else { 0 };
    let mine = [offered, high.into()];
    let theirs = exchange_groups(&remote.local, 0, comm, 0, (OF_TWO, &mine), site).await?;
    let offered = broadcast(&remote.local, 0, [offered], site).await?;
    let first = if u32::from(high) == theirs[1] { is_lower(comm, remote) } else { !high };
    let (local, other) = (comm.members.iter(), remote.members.iter());
    let members: Vec<u32> =
        if first { local.chain(other).collect() } else { other.chain(local).collect() };
    let rank = comm.rank + if first { 0 } else { remote.members.len() as Rank };
    let context = if first { offered[0] } else { theirs[0] };
    create::finish(Info::new(context, rank, Members::from_list(&members)), site).await
}

/// Whether the local group has the lowest rank of the job.
fn is_lower(comm: &CommunicatorHandle, remote: &RemoteGroup) -> bool {
    comm.members.iter().min() < remote.members.iter().min()
}

/// A communicator of the same two groups.
///
/// # Errors
/// Those of [`merge`].
pub async fn duplicate(comm: &CommunicatorHandle, site: Site) -> Result<CommunicatorHandle, Error> {
    match split(comm, Some(0), comm.rank, site).await? {
        Some(made) => Ok(made),
        None => Err(Error::NotInCommunicator { rank: comm.members.get(comm.rank as usize) }),
    }
}

/// A communicator for each color that both groups have; ranks are ordered by their keys.
///
/// # Errors
/// Those of [`merge`].
pub async fn split(
    comm: &CommunicatorHandle,
    color: Option<u32>,
    key: i32,
    site: Site,
) -> Result<Option<CommunicatorHandle>, Error> {
    let remote = remote_of(comm)?;
    let _turn = remote.turns.take(site).await;
    let color_number = color.map_or(-1, |color| color as i32);
    let own = create::all_gather(&remote.local, [color_number, key], site).await?;
    // What each side can offer: a context for each of its colors.
    let colors = colors_of(&own);
    let offered = if comm.rank == 0 { new_contexts(colors.len().max(1) as u32)? } else { 0 };
    let mut mine = vec![offered];
    mine.extend(own.iter().flatten().map(|number| *number as u32));
    let theirs = exchange_groups(&remote.local, 0, comm, 0, (OF_TWO, &mine), site).await?;
    let offered = broadcast(&remote.local, 0, [offered], site).await?;
    let other: Vec<[i32; 2]> =
        theirs[1..].chunks_exact(2).map(|pair| [pair[0] as i32, pair[1] as i32]).collect();
    let local = create::split(&remote.local, color, key, Shape::Plain, site).await?;
    let (Some(local), true) = (local, colors_of(&other).contains(&color_number)) else {
        return Ok(None);
    };
    let (first, colors) = match is_lower(comm, remote) {
        true => (offered[0], colors),
        false => (theirs[0], colors_of(&other)),
    };
    let Ok(place) = colors.binary_search(&color_number) else { return Ok(None) };
    let members = members_of(&other, color_number, &remote.members);
    finish(first + CONTEXTS * place as u32, local, members, site).await.map(Some)
}

/// The colors that ranks have, in order.
fn colors_of(all: &[[i32; 2]]) -> Vec<i32> {
    let mut colors: Vec<i32> = all.iter().map(|[color, _]| *color).filter(|c| *c >= 0).collect();
    colors.sort_unstable();
    colors.dedup();
    colors
}

/// The ranks of a color, by their keys.
fn members_of(all: &[[i32; 2]], color: i32, members: &Members) -> Members {
    let same = all.iter().enumerate().filter(|(_, [of, _])| *of == color);
    let mut ranks: Vec<(i32, usize)> = same.map(|(rank, [_, key])| (*key, rank)).collect();
    ranks.sort_unstable();
    let ranks: Vec<u32> = ranks.iter().map(|(_, rank)| members.get(*rank)).collect();
    Members::from_list(&ranks)
}

/// A communicator of a part of each group; each rank gives the part of its own group. A rank in neither part gets none.
///
/// # Errors
/// Those of [`merge`]; or the part is not of this group.
pub async fn from_groups(
    comm: &CommunicatorHandle,
    group: &Members,
    site: Site,
) -> Result<Option<CommunicatorHandle>, Error> {
    if let Some(rank) = group.iter().find(|member| comm.members.position(*member).is_none()) {
        return Err(Error::NotInCommunicator { rank });
    }
    let place = group.position(comm.members.get(comm.rank as usize));
    let (color, key) = (place.map(|_| 0), place.unwrap_or_default());
    split(comm, color, key as i32, site).await
}
