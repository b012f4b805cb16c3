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
    fn target_size(&self) -> Rank {
        self.as_handle().partners().len() as Rank
    }

    /// Number of ranks; of an intercommunicator, of the local ones.
    fn size(&self) -> Rank {
        self.as_handle().size
    }

    /// This rank's number.
    fn rank(&self) -> Rank {
        self.as_handle().rank
    }

    /// The process at a rank.
    ///
    /// # Panics
    /// When there is no such rank.
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
    fn any_process(&self) -> AnyProcess<'_> {
        AnyProcess(self.as_handle())
    }

    /// This process.
    fn this_process(&self) -> Process<'_> {
        Process { comm: AnyProcess(self.as_handle()), rank: self.rank() }
    }

    /// How this communicator is related to another.
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
    #[track_caller]
    fn duplicate(&self) -> SimpleCommunicator {
        let site = site!("duplicate");
        SimpleCommunicator(block_on_or_refuse(create::duplicate(self.as_handle(), site), site))
    }

    /// A communicator for each color. Collective.
    #[track_caller]
    fn split_by_color(&self, color: Color) -> Option<SimpleCommunicator> {
        self.split_by_color_with_key(color, Key::default())
    }

    /// A communicator for each color, its ranks ordered by key, then by rank here. Collective.
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
    #[track_caller]
    fn split_by_subgroup(&self, group: &dyn Group) -> Option<SimpleCommunicator> {
        self.split_by_subgroup_with_tag(group, Tag::default())
    }

    /// [`split_by_subgroup`](Self::split_by_subgroup) with a tag that keeps calls at the same time
    /// apart.
    ///
    /// # Panics
    /// As there.
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
    fn group(&self) -> UserGroup {
        UserGroup(self.as_handle().members.clone())
    }

    /// Whether it is an intercommunicator.
    fn test_inter(&self) -> bool {
        self.as_handle().remote.is_some()
    }

    /// Gives it a name.
    fn set_name(&self, name: &str) {
        name.clone_into(&mut self.as_handle().name.borrow_mut());
    }

    /// Its name, or nothing.
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
    /// When the slices differ in length.
    #[track_caller]
    fn cartesian_map(&self, dims: &[Count], periods: &[bool]) -> Option<Rank> {
        cartesian::expect_parallel(dims, periods);
        let places: i64 = dims.iter().map(|d| i64::from(*d)).product();
        (i64::from(self.rank()) < places).then(|| self.rank())
    }

    /// The same ranks as a graph that every rank knows (section 8.5.3): the neighbours of rank `i`
    /// are `edges[index[i - 1]..index[i]]`. Ranks that the graph has no node for get `None`.
    /// Collective.
    ///
    /// # Panics
    /// When the graph names ranks that it does not have.
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
    fn parent(&self) -> Option<InterCommunicator> {
        None
    }

    /// Bytes that so many elements of a datatype have when packed (section 5.2).
    ///
    /// # Panics
    /// When they are more than a count can say.
    #[track_caller]
    fn pack_size<Dt: Datatype>(&self, incount: Count, datatype: &Dt) -> Count
    where
        Self: Sized,
    {
        let size = datatype.datatype_ref().size() as i64 * i64::from(incount);
        Count::try_from(size).unwrap_or_else(|_| panic!("pack_size: {size} bytes in a count"))
    }

    /// A buffer's data, packed.
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
    #[track_caller]
    fn restore<T: serde::de::DeserializeOwned>(&self) -> Option<T>
    where
        Self: Sized,
    {
        migrate::restore(site!("restore"))
    }

    /// Ends the whole job with a status.
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
pub trait AnyCommunicator: Communicator {
    /// The value of a type that the communicator carries.
    fn get_attr<A: CommAttribute>(&self) -> Option<&A>;

    /// Has the communicator carry a value.
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
