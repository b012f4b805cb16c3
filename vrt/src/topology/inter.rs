//! Communicators between two groups of ranks (MPI-4.1 section 7.6).
//!
//! Messages go to and come from the remote group. Collective operations exist within a group only:
//! [`merge`](InterCommunicator::merge) makes one communicator of both.

use crate::Tag;
use crate::operation::Site;
use crate::operation::site;
use crate::operation::{At, OrRefuse, block_on_or_refuse};
use crate::topology::{Rank, SimpleCommunicator, UserGroup};
use vrt_core::comm::handle::{CommunicatorHandle, RemoteGroup};
use vrt_core::comm::inter;

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
        let merge = inter::merge(&self.0, merge_order == MergeOrder::High, site);
        SimpleCommunicator(block_on_or_refuse(merge, site))
    }
}

pub(crate) fn create(
    comm: &CommunicatorHandle,
    local_leader: Rank,
    peer: &CommunicatorHandle,
    remote_leader: Rank,
    tag: Tag,
    site: Site,
) -> InterCommunicator {
    comm.job_rank(local_leader).at(site).or_refuse();
    let make = inter::create(comm, local_leader, peer, remote_leader, tag, site);
    InterCommunicator(block_on_or_refuse(make, site))
}
