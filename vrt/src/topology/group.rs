//! Groups of ranks and their set operations (MPI-4.1 section 7.3).

use rustc_hash::{FxHashMap, FxHashSet};

use crate::topology::Rank;
use crate::topology::sealed::HasMembers;
use vrt_core::comm::handle::Members;
use vrt_core::pe;
use vrt_slot::report::count;

/// A group that the program did not make: the empty one.
///
/// # Examples
///
/// ```
/// use vrt::topology::SystemGroup;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let nobody = SystemGroup::empty();
///     assert_eq!((nobody.size(), nobody.rank()), (0, None));
///     assert_eq!(nobody.union(&world.group()).size(), 2);
/// });
/// ```
#[derive(Clone, Debug)]
pub struct SystemGroup(Members);

impl SystemGroup {
    /// The group without ranks.
    ///
    /// Example: [`SystemGroup`].
    pub fn empty() -> SystemGroup {
        SystemGroup(Members::Range { first: 0, count: 0 })
    }
}

/// A group of ranks.
///
/// # Examples
///
/// ```
/// use vrt::topology::UserGroup;
/// use vrt::traits::*;
///
/// vrt::run_local(4, |world| {
///     let even: UserGroup = world.group().include(&[0, 2]);
///     assert_eq!(even.rank(), (world.rank() % 2 == 0).then(|| world.rank() / 2));
/// });
/// ```
#[derive(Clone, Debug)]
pub struct UserGroup(pub(crate) Members);

/// How two groups are related.
///
/// # Examples
///
/// ```
/// use vrt::topology::GroupRelation;
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     let (all, first) = (world.group(), world.group().include(&[0, 1]));
///     assert_eq!(first.compare(&all.exclude(&[2])), GroupRelation::Identical);
///     assert_eq!(first.compare(&all.include(&[1, 0])), GroupRelation::Similar);
///     assert_eq!(first.compare(&all), GroupRelation::Unequal);
/// });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupRelation {
    /// The same ranks in the same order.
    Identical,
    /// The same ranks in another order.
    Similar,
    /// Not the same ranks.
    Unequal,
}

impl HasMembers for SystemGroup {
    fn members(&self) -> &Members {
        &self.0
    }
}

impl HasMembers for UserGroup {
    fn members(&self) -> &Members {
        &self.0
    }
}

impl Group for SystemGroup {}
impl Group for UserGroup {}

/// Ranks in an order.
///
/// # Examples
///
/// ```
/// use vrt::topology::{Group, GroupRelation};
/// use vrt::traits::*;
///
/// vrt::run_local(4, |world| {
///     let (all, even) = (world.group(), world.group().include(&[0, 2]));
///     let odd = all.difference(&even);
///     assert_eq!((odd.size(), odd.rank().is_some()), (2, world.rank() % 2 == 1));
///     assert_eq!(odd.union(&even).compare(&all), GroupRelation::Similar);
///
///     let communicator = world.split_by_subgroup_collective(&odd);
///     assert_eq!(communicator.is_some(), odd.rank().is_some());
/// });
/// ```
pub trait Group: HasMembers {
    /// All ranks of this group, then those of the other that are not in this one.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let all = world.group();
    ///     let union = all.include(&[3, 1]).union(&all.include(&[0, 1]));
    ///     assert_eq!(union.translate_ranks(&[0, 1, 2], &all), [Some(3), Some(1), Some(0)]);
    /// });
    /// ```
    fn union<G: Group>(&self, other: &G) -> UserGroup
    where
        Self: Sized,
    {
        let mine: FxHashSet<u32> = self.members().iter().collect();
        let more = other.members().iter().filter(|rank| !mine.contains(rank));
        from_ranks(self.members().iter().chain(more))
    }

    /// The ranks of this group that are also in the other.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let all = world.group();
    ///     let both = all.include(&[3, 1, 0]).intersection(&all.include(&[0, 1, 2]));
    ///     assert_eq!(both.translate_ranks(&[0, 1], &all), [Some(1), Some(0)]);
    /// });
    /// ```
    fn intersection<G: Group>(&self, other: &G) -> UserGroup
    where
        Self: Sized,
    {
        let theirs: FxHashSet<u32> = other.members().iter().collect();
        from_ranks(self.members().iter().filter(|rank| theirs.contains(rank)))
    }

    /// The ranks of this group that are not in the other.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let all = world.group();
    ///     let odd = all.difference(&all.include(&[0, 2]));
    ///     assert_eq!(odd.translate_ranks(&[0, 1], &all), [Some(1), Some(3)]);
    /// });
    /// ```
    fn difference<G: Group>(&self, other: &G) -> UserGroup
    where
        Self: Sized,
    {
        let theirs: FxHashSet<u32> = other.members().iter().collect();
        from_ranks(self.members().iter().filter(|rank| !theirs.contains(rank)))
    }

    /// The given ranks, in the given order.
    ///
    /// # Panics
    /// When one of them is not in the group, or is given twice.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let (all, chosen) = (world.group(), world.group().include(&[3, 0]));
    ///     assert_eq!(chosen.translate_ranks(&[0, 1], &all), [Some(3), Some(0)]);
    /// });
    /// ```
    #[track_caller]
    fn include(&self, ranks: &[Rank]) -> UserGroup {
        let mut seen = FxHashSet::default();
        for rank in ranks {
            assert!(seen.insert(rank), "include: rank {rank} is given twice");
        }
        from_ranks(ranks.iter().map(|rank| member(self.members(), *rank, "include")))
    }

    /// All but the given ranks.
    ///
    /// # Panics
    /// When one of them is not in the group.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let (all, rest) = (world.group(), world.group().exclude(&[1, 2]));
    ///     assert_eq!(rest.translate_ranks(&[0, 1], &all), [Some(0), Some(3)]);
    /// });
    /// ```
    #[track_caller]
    fn exclude(&self, ranks: &[Rank]) -> UserGroup {
        let out: FxHashSet<u32> =
            ranks.iter().map(|rank| member(self.members(), *rank, "exclude")).collect();
        from_ranks(self.members().iter().filter(|rank| !out.contains(rank)))
    }

    /// The ranks of some ranges `(first, last, stride)`, in their order (`MPI_Group_range_incl`).
    ///
    /// # Panics
    /// When a stride is 0, or a rank is not in the group or occurs twice.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(5, |world| {
    ///     let all = world.group();
    ///     let odd_then_first = all.include_ranges(&[(1, 4, 2), (0, 0, 1)]);
    ///     let ranks = odd_then_first.translate_ranks(&[0, 1, 2], &all);
    ///     assert_eq!(ranks, [Some(1), Some(3), Some(0)]);
    /// });
    /// ```
    #[track_caller]
    fn include_ranges(&self, ranges: &[(Rank, Rank, Rank)]) -> UserGroup {
        self.include(&in_ranges(ranges, self.size()))
    }

    /// All but the ranks of some ranges `(first, last, stride)` (`MPI_Group_range_excl`).
    ///
    /// # Panics
    /// When a stride is 0, or a rank is not in the group.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(5, |world| {
    ///     let (all, odd) = (world.group(), world.group().exclude_ranges(&[(0, 4, 2)]));
    ///     assert_eq!(odd.translate_ranks(&[0, 1], &all), [Some(1), Some(3)]);
    /// });
    /// ```
    #[track_caller]
    fn exclude_ranges(&self, ranges: &[(Rank, Rank, Rank)]) -> UserGroup {
        self.exclude(&in_ranges(ranges, self.size()))
    }

    /// Number of ranks.
    ///
    /// Example: [`Group`].
    fn size(&self) -> Rank {
        self.members().len() as Rank
    }

    /// The calling rank's number in the group, if it is in it.
    ///
    /// Example: [`Group`].
    fn rank(&self) -> Option<Rank> {
        self.members().position(pe::current_rank()?).map(|rank| rank as Rank)
    }

    /// The number that a rank of this group has in another, if it is in that.
    ///
    /// # Panics
    /// When it is not in this group.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let odd = world.group().include(&[1, 3]);
    ///     assert_eq!(odd.translate_rank(1, &world.group()), Some(3));
    ///     assert_eq!(world.group().translate_rank(0, &odd), None);
    /// });
    /// ```
    #[track_caller]
    fn translate_rank<G: Group>(&self, rank: Rank, other: &G) -> Option<Rank>
    where
        Self: Sized,
    {
        let member = member(self.members(), rank, "translate_rank");
        other.members().position(member).map(|rank| rank as Rank)
    }

    /// The numbers that ranks of this group have in another.
    ///
    /// # Panics
    /// When one of them is not in this group.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let odd = world.group().include(&[1, 3]);
    ///     let numbers = world.group().translate_ranks(&[0, 1, 2, 3], &odd);
    ///     assert_eq!(numbers, [None, Some(0), None, Some(1)]);
    /// });
    /// ```
    #[track_caller]
    fn translate_ranks<G: Group>(&self, ranks: &[Rank], other: &G) -> Vec<Option<Rank>>
    where
        Self: Sized,
    {
        let theirs: FxHashMap<u32, Rank> = other.members().iter().zip(0..).collect();
        let translate =
            |rank: &Rank| theirs.get(&member(self.members(), *rank, "translate_ranks")).copied();
        ranks.iter().map(translate).collect()
    }

    /// How the two are related.
    ///
    /// Example: [`GroupRelation`].
    fn compare<G: Group>(&self, other: &G) -> GroupRelation
    where
        Self: Sized,
    {
        relation(self.members(), other.members())
    }
}

pub(crate) fn relation(one: &Members, other: &Members) -> GroupRelation {
    if one.len() != other.len() {
        return GroupRelation::Unequal;
    }
    if one.iter().eq(other.iter()) {
        return GroupRelation::Identical;
    }
    let ranks: FxHashSet<u32> = one.iter().collect();
    match other.iter().all(|rank| ranks.contains(&rank)) {
        true => GroupRelation::Similar,
        false => GroupRelation::Unequal,
    }
}

fn from_ranks(ranks: impl Iterator<Item = u32>) -> UserGroup {
    UserGroup(Members::from_list(&ranks.collect::<Vec<u32>>()))
}

#[track_caller]
fn member(members: &Members, rank: Rank, call: &str) -> u32 {
    assert!(
        rank >= 0 && (rank as usize) < members.len(),
        "{call}: rank {rank} is not in the group of {}",
        count(members.len(), "rank")
    );
    members.get(rank as usize)
}

/// The ranks of ranges in a group of this size.
#[track_caller]
fn in_ranges(ranges: &[(Rank, Rank, Rank)], size: Rank) -> Vec<Rank> {
    let mut ranks = Vec::new();
    for (first, last, stride) in ranges {
        assert!(*stride != 0, "the range from {first} to {last} has stride 0");
        let mut rank = *first;
        while if *stride > 0 { rank <= *last } else { rank >= *last } {
            assert!(
                (0..size).contains(&rank),
                "rank {rank} of the range from {first} to {last} is not in the group of {}",
                count(size as usize, "rank")
            );
            ranks.push(rank);
            let Some(next) = rank.checked_add(*stride) else { break };
            rank = next;
        }
    }
    ranks
}
