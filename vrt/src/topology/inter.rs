//! Communicators between two groups of ranks (MPI-4.1 section 7.6).
//!
//! Messages go to and come from the remote group. Collective operations exist within a group only:
//! [`merge`](InterCommunicator::merge) makes one communicator of both.

use crate::Tag;
use crate::operation::Site;
use crate::operation::site;
use crate::operation::{Error, OrRefuse, try_block_on};
use crate::topology::{Rank, SimpleCommunicator, UserGroup};
use vrt_core::comm::create;
use vrt_core::comm::handle::{CommunicatorHandle, Info, Members, RemoteGroup};
use vrt_core::comm::shape::Shape;

/// A communicator between two groups of ranks.
#[derive(Clone, Debug)]
pub struct InterCommunicator(pub(crate) CommunicatorHandle);

/// Where a group's ranks go when an intercommunicator is merged. When both groups say the same, the
/// one with the lowest rank of the job goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOrder {
    /// First.
    Low,
    /// Last.
    High,
}

impl InterCommunicator {
    fn remote(&self) -> &RemoteGroup {
        match &self.0.remote {
            Some(remote) => remote,
            None => unreachable!("an intercommunicator has a remote group"),
        }
    }

    /// Number of ranks in the remote group.
    pub fn remote_size(&self) -> Rank {
        self.remote().members.len() as Rank
    }

    /// The remote group.
    pub fn remote_group(&self) -> UserGroup {
        UserGroup(self.remote().members.clone())
    }

    /// One communicator of both groups. Collective over both.
    #[track_caller]
    pub fn merge(&self, merge_order: MergeOrder) -> SimpleCommunicator {
        let site = site!("merge");
        let merge = merge(&self.0, self.remote(), merge_order, site);
        SimpleCommunicator(try_block_on(merge, site))
    }
}

/// The leaders of two groups tell each other numbers and then their groups.
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
        theirs = create::exchange(peer, partner, tag, mine, site).await?;
        len = [theirs.len() as u32];
    }
    create::broadcast(local, leader, &mut len, site).await?;
    theirs.resize(len[0] as usize, 0);
    create::broadcast(local, leader, &mut theirs, site).await?;
    Ok(theirs)
}

pub(crate) fn create(
    comm: &CommunicatorHandle,
    local_leader: Rank,
    peer: &CommunicatorHandle,
    remote_leader: Rank,
    tag: Tag,
    site: Site,
) -> InterCommunicator {
    comm.job_rank(local_leader).or_refuse(Site { call: "", ..site });
    let make = async {
        let leader = local_leader as usize;
        let local = create::same_ranks(comm, Shape::Plain, site).await?;
        // Both leaders offer a context; that of the group with the lowest rank of the job counts.
        let offered = if comm.rank == local_leader { create::new_contexts(1)? } else { 0 };
        let mut mine = vec![offered];
        mine.extend(comm.members.iter());
        let partner = (tag, &mine[..]);
        let theirs = exchange_groups(&local, leader, peer, remote_leader, partner, site).await?;
        let mut offered = [mine[0]];
        create::broadcast(&local, leader, &mut offered, site).await?;
        let (mine, theirs) = ((offered[0], &mine[1..]), (theirs[0], &theirs[1..]));
        let first = mine.1.iter().min() < theirs.1.iter().min();
        let context = if first { mine.0 } else { theirs.0 };
        let mut info = Info::new(context, comm.rank, comm.members.clone());
        info.remote = Some(RemoteGroup { members: Members::from_list(theirs.1), local });
        Ok(InterCommunicator(CommunicatorHandle::new(info)))
    };
    try_block_on(make, site)
}

async fn merge(
    comm: &CommunicatorHandle,
    remote: &RemoteGroup,
    order: MergeOrder,
    site: Site,
) -> Result<CommunicatorHandle, Error> {
    let offered = if comm.rank == 0 { create::new_contexts(1)? } else { 0 };
    let high = u32::from(order == MergeOrder::High);
    let mine = [offered, high];
    let theirs = exchange_groups(&remote.local, 0, comm, 0, (Tag::MAX, &mine), site).await?;
    let mut offered = [offered];
    create::broadcast(&remote.local, 0, &mut offered, site).await?;
    let lowest = comm.members.iter().min() < remote.members.iter().min();
    let first = if high == theirs[1] { lowest } else { high == 0 };
    let (local, other) = (comm.members.iter(), remote.members.iter());
    let members: Vec<u32> =
        if first { local.chain(other).collect() } else { other.chain(local).collect() };
    let rank = comm.rank + if first { 0 } else { remote.members.len() as Rank };
    let context = if first { offered[0] } else { theirs[0] };
    create::finish(Info::new(context, rank, Members::from_list(&members)), site).await
}
