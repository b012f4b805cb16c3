//! Communicators between two groups of ranks (MPI-4.1 section 7.6).
//!
//! Messages go to and come from the remote group, and so do contributions to collective operations
//! ([`collective`](crate::collective)). [`merge`](InterCommunicator::merge) makes one communicator of both.

use crate::Tag;
use crate::operation::Site;
use crate::operation::site;
use crate::operation::{At, OrRefuse, block_on_or_refuse};
use crate::topology::{Rank, SimpleCommunicator, UserGroup};
use vrt_core::comm::handle::{CommunicatorHandle, RemoteGroup};
use vrt_core::comm::inter;

/// A communicator between two groups of ranks.
///
/// # Examples
///
/// ```
/// use vrt::topology::{Color, MergeOrder};
/// use vrt::traits::*;
///
/// vrt::run_local(4, |world| {
///     let part = world.rank() / 2;
///     let own = world.split_by_color(Color::with_value(part)).unwrap();
///     // The leaders are the first ranks of both parts; they reach each other through the world.
///     let between = own.create_intercommunicator(0, world, 2 * (1 - part), 0);
///     let partner = between.process_at_rank(own.rank());
///     partner.send(&world.rank());
///     assert_eq!(partner.receive::<i32>().0, (world.rank() + 2) % 4);
///
///     let order = if part == 0 { MergeOrder::Low } else { MergeOrder::High };
///     assert_eq!(between.merge(order).rank(), world.rank());
/// });
/// ```
#[derive(Clone, Debug)]
pub struct InterCommunicator(pub(crate) CommunicatorHandle);

/// Where a group's ranks go when an intercommunicator is merged. When both groups say the same, the
/// one with the lowest rank of the job goes first.
///
/// Example: [`InterCommunicator`].
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::topology::Color;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank 0, and the two others.
    ///     let part = i32::from(world.rank() > 0);
    ///     let own = world.split_by_color(Color::with_value(part)).unwrap();
    ///     let between = own.create_intercommunicator(0, world, 1 - part, 0);
    ///     assert_eq!((between.size(), between.remote_size()), (1 + part, 2 - part));
    /// });
    /// ```
    pub fn remote_size(&self) -> Rank {
        self.remote().members.len() as Rank
    }

    /// The remote group.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::topology::Color;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let alone = world.split_by_color(Color::with_value(world.rank())).unwrap();
    ///     let between = alone.create_intercommunicator(0, world, 1 - world.rank(), 0);
    ///     let other = between.remote_group().translate_rank(0, &world.group());
    ///     assert_eq!(other, Some(1 - world.rank()));
    /// });
    /// ```
    pub fn remote_group(&self) -> UserGroup {
        UserGroup(self.remote().members.clone())
    }

    /// One communicator of both groups. Collective over both.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::topology::{Color, MergeOrder};
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let alone = world.split_by_color(Color::with_value(world.rank())).unwrap();
    ///     let between = alone.create_intercommunicator(0, world, 1 - world.rank(), 0);
    ///     let order = if world.rank() == 0 { MergeOrder::High } else { MergeOrder::Low };
    ///     let both = between.merge(order);
    ///     assert_eq!((both.size(), both.rank()), (2, 1 - world.rank()));
    /// });
    /// ```
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
