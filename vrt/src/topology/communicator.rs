//! What every communicator can do.

use std::panic::Location;

use crate::attribute::{CommAttribute, Stored};
use crate::datatype::{Buffer, BufferMut, Datatype, DatatypeRef, UncommittedDatatype, wire};
use crate::error::{At, Error, refuse};
use crate::operation::block_on_or_refuse;
use crate::operation::site;
use crate::topology::sealed::AsHandle;
use crate::topology::{
    AnyProcess, CartesianCommunicator, Color, CommunicatorRelation, DistributedGraphCommunicator,
    GraphCommunicator, Group, GroupRelation, InterCommunicator, Key, Process, Rank,
    SimpleCommunicator, UserGroup, cartesian, graph, group, inter, migrate,
};
use crate::{Count, Tag};
use vrt_core::comm::create;
use vrt_core::comm::dims;
use vrt_core::comm::shape::Shape;
use vrt_slot::check;
use vrt_slot::report::count;

/// What every communicator can do (MPI-4.1 chapter 7).
///
/// # Examples
///
/// ```
/// use vrt::topology::CommunicatorRelation;
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     assert_eq!(world.size(), 3);
///     let other = world.duplicate();
///     assert_eq!(other.compare(world), CommunicatorRelation::Congruent);
///     // Messages of one communicator are never received through another.
///     let next = (world.rank() + 1) % 3;
///     world.process_at_rank(next).send(&1u8);
///     other.process_at_rank(next).send(&2u8);
///     assert_eq!(other.any_process().receive::<u8>().0, 2);
///     assert_eq!(world.any_process().receive::<u8>().0, 1);
/// });
/// ```
pub trait Communicator: AsHandle {
    /// Number of ranks that can be addressed: of an intercommunicator, the remote ones.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// fn send_to_all<C: Communicator>(comm: &C, value: i32) {
    ///     (0..comm.target_size()).for_each(|rank| comm.process_at_rank(rank).send(&value));
    /// }
    ///
    /// vrt::run_local(2, |world| {
    ///     send_to_all(world, world.rank());
    ///     let received = [0, 1].map(|rank| world.process_at_rank(rank).receive::<i32>().0);
    ///     assert_eq!(received, [0, 1]);
    /// });
    /// ```
    fn target_size(&self) -> Rank {
        self.as_handle().partners().len() as Rank
    }

    /// Number of ranks; of an intercommunicator, of the local ones.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| assert_eq!(world.size(), 3));
    /// ```
    fn size(&self) -> Rank {
        self.as_handle().size
    }

    /// This rank's number.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| assert!((0..3).contains(&world.rank())));
    /// ```
    fn rank(&self) -> Rank {
        self.as_handle().rank
    }

    /// The process at a rank.
    ///
    /// # Panics
    /// When there is no such rank.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send(&world.rank());
    ///     assert_eq!(other.receive::<i32>().0, other.rank());
    /// });
    /// ```
    #[track_caller]
    #[inline(always)]
    fn process_at_rank(&self, r: Rank) -> Process<'_> {
        match self.as_handle().job_rank(r) {
            Ok(_) => Process { comm: AnyProcess(self.as_handle()), rank: r },
            Err(kind) => refuse(kind, site!("process_at_rank")),
        }
    }

    /// [`process_at_rank`](Self::process_at_rank) that returns what was wrong.
    ///
    /// # Errors
    /// There is no such rank.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     assert!(world.try_process_at_rank(1).is_ok());
    ///     assert_eq!(world.try_process_at_rank(2).unwrap_err().class(), vrt::ErrorClass::Rank);
    /// });
    /// ```
    #[track_caller]
    fn try_process_at_rank(&self, r: Rank) -> Result<Process<'_>, Error> {
        self.as_handle().job_rank(r).at(site!("process_at_rank"))?;
        Ok(Process { comm: AnyProcess(self.as_handle()), rank: r })
    }

    /// Any process, as a source.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     world.process_at_rank(1 - world.rank()).send(&world.rank());
    ///     let (value, status) = world.any_process().receive::<i32>();
    ///     assert_eq!((value, status.source_rank()), (1 - world.rank(), 1 - world.rank()));
    /// });
    /// ```
    fn any_process(&self) -> AnyProcess<'_> {
        AnyProcess(self.as_handle())
    }

    /// This process.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let this = world.this_process();
    ///     this.buffered_send(&7);
    ///     assert_eq!((this.rank(), this.receive::<i32>().0), (world.rank(), 7));
    /// });
    /// ```
    fn this_process(&self) -> Process<'_> {
        Process { comm: AnyProcess(self.as_handle()), rank: self.rank() }
    }

    /// How this communicator is related to another.
    ///
    /// Example: [`CommunicatorRelation`].
    fn compare(&self, other: &dyn Communicator) -> CommunicatorRelation {
        let (one, other) = (self.as_handle(), other.as_handle());
        if one.is(other) {
            return CommunicatorRelation::Identical;
        }
        let relation = match (&one.remote, &other.remote) {
            (None, None) => group::relation(&one.members, &other.members),
            (Some(a), Some(b)) => {
                let local = group::relation(&one.members, &other.members);
                let remote = group::relation(&a.members, &b.members);
                if local == GroupRelation::Identical { remote } else { local }
            }
            _ => GroupRelation::Unequal,
        };
        match relation {
            GroupRelation::Identical => CommunicatorRelation::Congruent,
            GroupRelation::Similar => CommunicatorRelation::Similar,
            GroupRelation::Unequal => CommunicatorRelation::Unequal,
        }
    }

    /// Another communicator of the same ranks, with their topology and those attributes that ask
    /// for it. Collective.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.duplicate();
    ///     world.this_process().buffered_send(&7);
    ///     // Messages of one communicator are not received through another.
    ///     assert!(other.this_process().immediate_probe().is_none());
    ///     assert_eq!(world.this_process().receive::<i32>().0, 7);
    /// });
    /// ```
    #[track_caller]
    fn duplicate(&self) -> SimpleCommunicator {
        let site = site!("duplicate");
        SimpleCommunicator(block_on_or_refuse(create::duplicate(self.as_handle(), site), site))
    }

    /// A communicator for each color. Collective.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::topology::Color;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let half = world.split_by_color(Color::with_value(world.rank() % 2)).unwrap();
    ///     assert_eq!((half.rank(), half.size()), (world.rank() / 2, 2));
    /// });
    /// ```
    #[track_caller]
    fn split_by_color(&self, color: Color) -> Option<SimpleCommunicator> {
        self.split_by_color_with_key(color, Key::default())
    }

    /// A communicator for each color, its ranks ordered by key, then by rank here. Collective.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::topology::Color;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let reversed = world.split_by_color_with_key(Color::with_value(0), -world.rank()).unwrap();
    ///     assert_eq!(reversed.rank(), 2 - world.rank());
    /// });
    /// ```
    #[track_caller]
    fn split_by_color_with_key(&self, color: Color, key: Key) -> Option<SimpleCommunicator> {
        let site = site!("split_by_color_with_key");
        let split = create::split(self.as_handle(), color.0, key, Shape::Plain, site);
        block_on_or_refuse(split, site).map(SimpleCommunicator)
    }

    /// A communicator of the ranks that are on this rank's node now, ordered by key, then by rank
    /// here. Collective.
    ///
    /// When a rank is moved to another node later, the communicator stays what it is: it says who
    /// shared memory when it was made. Windows keep working then, through messages.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let node = world.split_shared(0);
    ///     // Local ranks are on one node.
    ///     assert_eq!((node.rank(), node.size()), (world.rank(), 3));
    /// });
    /// ```
    #[track_caller]
    fn split_shared(&self, key: Key) -> SimpleCommunicator {
        let site = site!("split_shared");
        let node = Some(create::node_now());
        let split = create::split(self.as_handle(), node, key, Shape::Plain, site);
        match block_on_or_refuse(split, site) {
            Some(communicator) => SimpleCommunicator(communicator),
            None => unreachable!("every rank is on a node"),
        }
    }

    /// A communicator of a group of these ranks, for those in it. Collective over all ranks here;
    /// groups of different ranks may differ if they have no rank in common.
    ///
    /// # Panics
    /// When the group has ranks that are not in this communicator.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let even = world.group().include(&[0, 2]);
    ///     let comm = world.split_by_subgroup_collective(&even);
    ///     assert_eq!(comm.map(|comm| comm.rank()), even.rank());
    /// });
    /// ```
    #[track_caller]
    fn split_by_subgroup_collective(&self, group: &dyn Group) -> Option<SimpleCommunicator> {
        let site = site!("split_by_subgroup_collective");
        let make = create::from_group_collective(self.as_handle(), group.members(), site);
        block_on_or_refuse(make, site).map(SimpleCommunicator)
    }

    /// A communicator of a group of these ranks. Only they have to call it.
    ///
    /// # Panics
    /// When the group has ranks that are not in this communicator.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let even = world.group().include(&[0, 2]);
    ///     if even.rank().is_some() {
    ///         let comm = world.split_by_subgroup(&even);
    ///         assert_eq!(comm.map(|comm| comm.rank()), even.rank());
    ///     }
    /// });
    /// ```
    #[track_caller]
    fn split_by_subgroup(&self, group: &dyn Group) -> Option<SimpleCommunicator> {
        self.split_by_subgroup_with_tag(group, Tag::default())
    }

    /// [`split_by_subgroup`](Self::split_by_subgroup) with a tag that keeps calls at the same time
    /// apart.
    ///
    /// # Panics
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank 1 is in both groups.
    ///     for (tag, ranks) in [(1, [0, 1]), (2, [1, 2])] {
    ///         let pair = world.group().include(&ranks);
    ///         if pair.rank().is_some() {
    ///             let comm = world.split_by_subgroup_with_tag(&pair, tag);
    ///             assert_eq!(comm.map(|comm| comm.rank()), pair.rank());
    ///         }
    ///     }
    /// });
    /// ```
    #[track_caller]
    fn split_by_subgroup_with_tag(
        &self,
        group: &dyn Group,
        tag: Tag,
    ) -> Option<SimpleCommunicator> {
        let site = site!("split_by_subgroup");
        let make = create::from_group(self.as_handle(), group.members(), tag, site);
        block_on_or_refuse(make, site).map(SimpleCommunicator)
    }

    /// Its ranks; of an intercommunicator, the local ones.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let group = world.group();
    ///     assert_eq!((group.size(), group.rank()), (3, Some(world.rank())));
    /// });
    /// ```
    fn group(&self) -> UserGroup {
        UserGroup(self.as_handle().members.clone())
    }

    /// Whether it is an intercommunicator.
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
    ///     assert!(between.test_inter() && !world.test_inter());
    /// });
    /// ```
    fn test_inter(&self) -> bool {
        self.as_handle().remote.is_some()
    }

    /// Gives it a name.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let solver = world.duplicate();
    ///     solver.set_name("solver");
    ///     assert_eq!(solver.get_name(), "solver");
    /// });
    /// ```
    fn set_name(&self, name: &str) {
        name.clone_into(&mut self.as_handle().name.borrow_mut());
    }

    /// Its name, or nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| assert_eq!(world.get_name(), "MPI_COMM_WORLD"));
    /// ```
    fn get_name(&self) -> String {
        self.as_handle().name.borrow().clone()
    }

    /// The same ranks as a grid (section 8.5.1). Ranks that the grid has no place for get `None`.
    /// Ranks keep their order whatever `reorder` says: a runtime that moves ranks needs no other
    /// numbers to bring neighbours together. Collective.
    ///
    /// # Panics
    /// When the slices differ in length, a dimension is negative or the grid is larger than the
    /// communicator.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(7, |world| {
    ///     let grid = world.create_cartesian_communicator(&[3, 2], &[false, true], false);
    ///     assert_eq!(grid.is_some(), world.rank() < 6);
    ///     if let Some(grid) = grid {
    ///         assert_eq!(grid.get_layout().coords, [grid.rank() / 2, grid.rank() % 2]);
    ///     }
    /// });
    /// ```
    #[track_caller]
    fn create_cartesian_communicator(
        &self,
        dims: &[Count],
        periods: &[bool],
        reorder: bool,
    ) -> Option<CartesianCommunicator> {
        let _ = reorder;
        let site = site!("create_cartesian_communicator");
        cartesian::create(self.as_handle(), dims, periods, site)
    }

    /// The rank that the caller would have in such a grid, if it would have one.
    ///
    /// # Panics
    /// When the slices differ in length, a dimension is negative, or there are more places than ranks.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let rank = world.cartesian_map(&[2, 1], &[false, false]);
    ///     assert_eq!(rank, (world.rank() < 2).then(|| world.rank()));
    /// });
    /// ```
    #[track_caller]
    fn cartesian_map(&self, dims: &[Count], periods: &[bool]) -> Option<Rank> {
        cartesian::expect_parallel(dims, periods);
        let places = dims::places(dims, 0, self.size());
        let places = places.unwrap_or_else(|error| panic!("cartesian_map: {error}"));
        (self.rank() < places).then(|| self.rank())
    }

    /// The same ranks as a graph that every rank knows (section 8.5.3): the neighbours of rank `i`
    /// are `edges[index[i - 1]..index[i]]`. Ranks that the graph has no node for get `None`.
    /// Collective.
    ///
    /// # Panics
    /// When the graph names ranks that it does not have, has more nodes than there are ranks, or an index that is
    /// negative or decreases.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // A row: rank 1 is between the two others.
    ///     let row = world.create_graph_communicator(&[1, 3, 4], &[1, 0, 2, 1], false).unwrap();
    ///     assert_eq!(row.neighbors(), if world.rank() == 1 { vec![0, 2] } else { vec![1] });
    /// });
    /// ```
    #[track_caller]
    fn create_graph_communicator(
        &self,
        index: &[Count],
        edges: &[Rank],
        reorder: bool,
    ) -> Option<GraphCommunicator> {
        let _ = reorder;
        let site = site!("create_graph_communicator");
        graph::create(self.as_handle(), index, edges, site)
    }

    /// The same ranks as a graph of which each rank knows its own edges (section 8.5.4,
    /// `MPI_Dist_graph_create_adjacent`): from whom it receives and to whom it sends. Collective.
    ///
    /// # Panics
    /// When a rank is out of range.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (left, right) = ((world.rank() + 2) % 3, (world.rank() + 1) % 3);
    ///     let ring = world.create_distributed_graph_adjacent(&[left], &[right], false);
    ///     let mut from_left = [0];
    ///     ring.neighbor_all_gather_into(&world.rank(), &mut from_left);
    ///     assert_eq!(from_left, [left]);
    /// });
    /// ```
    #[track_caller]
    fn create_distributed_graph_adjacent(
        &self,
        sources: &[Rank],
        destinations: &[Rank],
        reorder: bool,
    ) -> DistributedGraphCommunicator {
        let _ = reorder;
        let site = site!("create_distributed_graph_adjacent");
        graph::create_adjacent(self.as_handle(), sources, destinations, site)
    }

    /// The same ranks as a graph of which each rank names some edges (section 8.5.4,
    /// `MPI_Dist_graph_create`), its own or others': pairs of source and destination. Collective.
    ///
    /// # Panics
    /// When a rank is out of range.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank 0 names the edges of a star.
    ///     let edges = if world.rank() == 0 { vec![(0, 1), (0, 2)] } else { vec![] };
    ///     let star = world.create_distributed_graph(&edges, false);
    ///     assert_eq!(star.sources(), if world.rank() == 0 { vec![] } else { vec![0] });
    /// });
    /// ```
    #[track_caller]
    fn create_distributed_graph(
        &self,
        edges: &[(Rank, Rank)],
        reorder: bool,
    ) -> DistributedGraphCommunicator {
        let _ = reorder;
        let site = site!("create_distributed_graph");
        graph::create_from_edges(self.as_handle(), edges, site)
    }

    /// An intercommunicator between this communicator's ranks and those of another, which call it
    /// too (section 7.6.2). The leaders, given by their ranks in their communicators, reach each
    /// other through `peer`; other ranks do not look at `peer` and `remote_leader`.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::topology::Color;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank 0, and the two others, whose leader is rank 1.
    ///     let part = i32::from(world.rank() > 0);
    ///     let own = world.split_by_color(Color::with_value(part)).unwrap();
    ///     let between = own.create_intercommunicator(0, world, 1 - part, 0);
    ///     assert_eq!(between.size() + between.remote_size(), 3);
    /// });
    /// ```
    #[track_caller]
    fn create_intercommunicator(
        &self,
        local_leader: Rank,
        peer: &dyn Communicator,
        remote_leader: Rank,
        tag: Tag,
    ) -> InterCommunicator {
        let site = site!("create_intercommunicator");
        inter::create(self.as_handle(), local_leader, peer.as_handle(), remote_leader, tag, site)
    }

    /// The processes that started this job: there are none.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| assert!(world.parent().is_none()));
    /// ```
    fn parent(&self) -> Option<InterCommunicator> {
        None
    }

    /// Bytes that so many elements of a datatype have when packed (section 5.2).
    ///
    /// # Panics
    /// When they are more than a count can say, or the count is negative.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(1, |world| assert_eq!(world.pack_size(3, &f64::equivalent_datatype()), 24));
    /// ```
    #[track_caller]
    fn pack_size<Dt: Datatype>(&self, incount: Count, datatype: &Dt) -> Count
    where
        Self: Sized,
    {
        assert!(incount >= 0, "pack_size: count {incount}");
        let size = datatype.datatype_ref().size() as i64 * i64::from(incount);
        Count::try_from(size).unwrap_or_else(|_| panic!("pack_size: {size} bytes in a count"))
    }

    /// A buffer's data, packed.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send(&world.pack(&[1.5f64, 2.5]));
    ///     assert_eq!(other.receive_vec::<u8>().0.len(), 16);
    /// });
    /// ```
    #[track_caller]
    fn pack<Buf: Buffer + ?Sized>(&self, inbuf: &Buf) -> Vec<u8>
    where
        Self: Sized,
    {
        let mut packed = vec![0; inbuf.len_in_elements() * wire::element_size(inbuf)];
        self.pack_into(inbuf, &mut packed, 0);
        packed
    }

    /// Packs a buffer's data into bytes from a position on; returns the position behind it.
    ///
    /// # Panics
    /// When there is not enough room.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(1, |world| {
    ///     let mut packed = [0; 3];
    ///     let position = world.pack_into(&b'a', &mut packed, 0);
    ///     assert_eq!(world.pack_into(b"bc", &mut packed, position), 3);
    ///     assert_eq!(&packed, b"abc");
    /// });
    /// ```
    #[track_caller]
    fn pack_into<Buf: Buffer + ?Sized>(
        &self,
        inbuf: &Buf,
        outbuf: &mut [u8],
        position: Count,
    ) -> Count
    where
        Self: Sized,
    {
        let (datatype, count) = (inbuf.as_datatype(), inbuf.len_in_elements());
        let datatype = datatype.datatype_ref();
        let len = bytes_of("pack_into", datatype, count);
        let room = outbuf_range("pack_into", outbuf.len(), position, len);
        let end = position_behind("pack_into", &room);
        let to = outbuf[room].as_mut_ptr();
        let from = inbuf.pointer().cast();
        // SAFETY: the buffer promises its elements; there is room for all of them.
        datatype.with_layout(|layout| unsafe { layout.pack(from, count, to) });
        end
    }

    /// Unpacks packed data from a position on into a buffer; returns the position behind it.
    ///
    /// # Safety
    /// The packed data is of an equal type signature.
    ///
    /// # Panics
    /// When there is not enough data.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(1, |world| {
    ///     let packed = world.pack(&[1.5f64, 2.5]);
    ///     let mut second = 0f64;
    ///     // SAFETY: numbers of this type were packed.
    ///     let position = unsafe { world.unpack_into(&packed, &mut second, 8) };
    ///     assert_eq!((second, position), (2.5, 16));
    /// });
    /// ```
    #[track_caller]
    unsafe fn unpack_into<Buf: BufferMut + ?Sized>(
        &self,
        inbuf: &[u8],
        outbuf: &mut Buf,
        position: Count,
    ) -> Count
    where
        Self: Sized,
    {
        let (datatype, count) = (outbuf.as_datatype(), outbuf.len_in_elements());
        let to = outbuf.pointer_mut().cast();
        let datatype = datatype.datatype_ref();
        let len = bytes_of("unpack_into", datatype, count);
        let room = outbuf_range("unpack_into", inbuf.len(), position, len);
        let end = position_behind("unpack_into", &room);
        let from = inbuf[room].as_ptr();
        // SAFETY: the buffer promises its elements; there are `len` bytes for them.
        datatype.with_layout(|layout| unsafe { layout.unpack(from, len, to, count) });
        end
    }

    /// Offers the calling rank to be moved to another PE; all ranks of the job call this at the
    /// same points of their programs. A balancing step happens when all have arrived (with
    /// `--lb-period`: at any time, and this returns at once unless the rank is to go).
    ///
    /// With `--move memory`, the default, the rank moves as it is. With `--move state` it is
    /// encoded and dropped whole, without running destructors, and its program begins again on the
    /// other PE, where [`restore`](Self::restore) returns the state. Without `--lb` this does
    /// nothing.
    ///
    /// # Panics
    /// When the state cannot be encoded; in an async rank.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let mut step = world.restore().unwrap_or(0u32);
    ///     while step < 100 {
    ///         step += 1;
    ///         if step % 10 == 0 {
    ///             world.migrate(&mut step);
    ///         }
    ///     }
    ///     assert_eq!(step, 100);
    /// });
    /// ```
    #[track_caller]
    fn migrate<T: serde::Serialize + serde::de::DeserializeOwned>(&self, state: &mut T)
    where
        Self: Sized,
    {
        // Before the frames of the call, which have holes.
        check::wipe();
        migrate::migrate(state, site!("migrate"));
    }

    /// Moves the calling rank to a PE, by memory or by state as [`migrate`](Self::migrate) does,
    /// with or without `--lb`. A rank that moves by state begins again there; one that is there
    /// already does nothing.
    ///
    /// # Errors
    /// There is no such PE, or the rank holds something that cannot move.
    ///
    /// # Panics
    /// When the state cannot be encoded; in an async rank.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(1, |world| {
    ///     let mut state = vec![1.5f64; 10];
    ///     // Local ranks have one PE.
    ///     assert_eq!(world.migrate_to(0, &mut state), Ok(()));
    ///     assert!(world.migrate_to(1, &mut state).is_err());
    /// });
    /// ```
    #[track_caller]
    fn migrate_to<T: serde::Serialize + serde::de::DeserializeOwned>(
        &self,
        pe: u32,
        state: &mut T,
    ) -> Result<(), migrate::CannotMove>
    where
        Self: Sized,
    {
        check::wipe();
        migrate::migrate_to(pe, state, site!("migrate_to"))
    }

    /// The async twin of [`migrate`](Self::migrate).
    ///
    /// # Panics
    /// When the state cannot be encoded.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let mut step = world.restore().unwrap_or(0u32);
    ///     vrt::block_on(async {
    ///         while step < 100 {
    ///             step += 1;
    ///             world.migrate_async(&mut step).await;
    ///         }
    ///     });
    ///     assert_eq!(step, 100);
    /// });
    /// ```
    #[track_caller]
    fn migrate_async<T: serde::Serialize + serde::de::DeserializeOwned>(
        &self,
        state: &mut T,
    ) -> impl Future<Output = ()>
    where
        Self: Sized,
    {
        migrate::Migrating::new(state, site!("migrate_async"))
    }

    /// Says where in space the calling rank's work is, for balancing strategies that keep
    /// neighbours together (`orb`, `hilbert`).
    ///
    /// # Panics
    /// When a coordinate is not a finite number.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(6, |world| {
    ///     // The middle of the rank's part of a plane.
    ///     let [x, y] = [world.rank() / 3, world.rank() % 3].map(|i| f64::from(i) + 0.5);
    ///     world.set_coordinates([x, y, 0.0]);
    /// });
    /// ```
    fn set_coordinates(&self, coordinates: [f64; 3]) {
        assert!(
            coordinates.iter().all(|x| x.is_finite()),
            "coordinates {coordinates:?}: finite numbers are allowed"
        );
        vrt_core::pe::with(|pe| pe.engine.running().coordinates = Some(coordinates));
    }

    /// The state that was given to [`migrate`](Self::migrate), if this rank has been moved by its
    /// state and its program begins again; `None` at its first beginning.
    ///
    /// # Panics
    /// When it is another type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct State {
    ///     step: u32,
    /// }
    ///
    /// vrt::run_local(2, |world| {
    ///     let state = world.restore().unwrap_or_else(|| State { step: 0 });
    ///     // Nothing has moved the rank.
    ///     assert_eq!(state.step, 0);
    /// });
    /// ```
    #[track_caller]
    fn restore<T: serde::de::DeserializeOwned>(&self) -> Option<T>
    where
        Self: Sized,
    {
        migrate::restore(site!("restore"))
    }

    /// Ends the whole job with a status from 1 to 255; any other one is 1.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use vrt::traits::*;
    ///
    /// #[vrt::main]
    /// fn main(world: vrt::World) {
    ///     if std::fs::metadata("input").is_err() {
    ///         world.abort(2);
    ///     }
    /// }
    /// ```
    #[track_caller]
    fn abort(&self, errorcode: i32) -> ! {
        let location = Location::caller();
        let rank = self.as_handle().rank;
        let status = if (1..=255).contains(&errorcode) { errorcode } else { 1 };
        vrt_slot::report::say(format_args!(
            "rank {rank} called abort({errorcode}) at {location}; ending the job"
        ));
        std::process::exit(status)
    }
}

/// Where `len` bytes from a position on lie.
#[track_caller]
fn outbuf_range(call: &str, have: usize, position: Count, len: usize) -> std::ops::Range<usize> {
    let begin = usize::try_from(position).ok();
    match begin.and_then(|at| Some(at..at.checked_add(len)?)) {
        Some(range) if range.end <= have => range,
        _ => {
            let bytes = count(len, "byte");
            panic!("{call}: {bytes} from {position} on, not inside a buffer of {have}")
        }
    }
}

/// Bytes of so many elements of a datatype.
#[track_caller]
fn bytes_of(call: &str, datatype: DatatypeRef<'_>, count: usize) -> usize {
    let each = datatype.size();
    match each.checked_mul(count) {
        Some(bytes) => bytes,
        None => panic!("{call}: {count} elements of {each} bytes are more than can be counted"),
    }
}

/// The position behind a part of a packed buffer.
#[track_caller]
fn position_behind(call: &str, part: &std::ops::Range<usize>) -> Count {
    match Count::try_from(part.end) {
        Ok(position) => position,
        Err(_) => panic!("{call}: the position behind is {}, {} is the last", part.end, Count::MAX),
    }
}

/// What every communicator can do, but not through a trait object's table.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// #[derive(Clone, Debug, PartialEq)]
/// struct Calls(u32);
///
/// impl CommAttribute for Calls {}
///
/// vrt::run_local(2, |world| {
///     let mut library = world.duplicate();
///     library.set_attr(Calls(1));
///     assert_eq!(library.get_attr(), Some(&Calls(1)));
/// });
/// ```
pub trait AnyCommunicator: Communicator {
    /// The value of a type that the communicator carries.
    ///
    /// Example: [`AnyCommunicator`].
    fn get_attr<A: CommAttribute>(&self) -> Option<&A>;

    /// Has the communicator carry a value.
    ///
    /// Example: [`AnyCommunicator`].
    fn set_attr<A: CommAttribute>(&mut self, val: A);
}

impl<C: Communicator + ?Sized> AnyCommunicator for C {
    fn get_attr<A: CommAttribute>(&self) -> Option<&A> {
        self.as_handle().attributes.get::<Stored<A>>().map(|kept| &kept.0)
    }

    fn set_attr<A: CommAttribute>(&mut self, val: A) {
        self.as_handle().attributes.set(Stored(val));
    }
}
