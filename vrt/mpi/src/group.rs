//! Groups of ranks (MPI-4.1 section 7.3).

use std::ffi::c_int;

use rustc_hash::FxHashSet;
use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::handle::Members;

use crate::call::{Call, functions};
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, give};

functions! {
    MPI_Group_size(group: MPI_Group, size: *mut c_int) on Nothing = size;
    MPI_Group_rank(group: MPI_Group, rank: *mut c_int) on Nothing = rank;
    MPI_Group_translate_ranks(
        group: MPI_Group, count: c_int, ranks: *const c_int, other: MPI_Group, translated: *mut c_int,
    ) on Nothing = translate;
    MPI_Group_compare(one: MPI_Group, other: MPI_Group, result: *mut c_int) on Nothing = compare;
    MPI_Group_union(one: MPI_Group, other: MPI_Group, new: *mut MPI_Group) on Nothing = union;
    MPI_Group_intersection(one: MPI_Group, other: MPI_Group, new: *mut MPI_Group)
        on Nothing = intersection;
    MPI_Group_difference(one: MPI_Group, other: MPI_Group, new: *mut MPI_Group)
        on Nothing = difference;
    MPI_Group_incl(group: MPI_Group, count: c_int, ranks: *const c_int, new: *mut MPI_Group)
        on Nothing = include;
    MPI_Group_excl(group: MPI_Group, count: c_int, ranks: *const c_int, new: *mut MPI_Group)
        on Nothing = exclude;
    MPI_Group_range_incl(
        group: MPI_Group, count: c_int, ranges: *mut [c_int; 3], new: *mut MPI_Group,
    ) on Nothing = include_ranges;
    MPI_Group_range_excl(
        group: MPI_Group, count: c_int, ranges: *mut [c_int; 3], new: *mut MPI_Group,
    ) on Nothing = exclude_ranges;
    MPI_Group_free(group: *mut MPI_Group) on Nothing = free;
}

/// The relation of two groups: `MPI_IDENT`, `MPI_SIMILAR` or `MPI_UNEQUAL`.
pub(crate) fn relation(one: &Members, other: &Members) -> c_int {
    if one.len() != other.len() {
        return MPI_UNEQUAL;
    }
    if one.iter().eq(other.iter()) {
        return MPI_IDENT;
    }
    let members: FxHashSet<u32> = one.iter().collect();
    if other.iter().all(|rank| members.contains(&rank)) { MPI_SIMILAR } else { MPI_UNEQUAL }
}

/// Returns a handle of a group to the program.
///
/// # Safety
/// There is room for a handle.
unsafe fn give_group(call: Call, ranks: &[u32], to: *mut MPI_Group) -> Outcome {
    let handle = match ranks {
        [] => MPI_GROUP_EMPTY,
        _ => MPI_Group(call.process.groups.add(Members::from_list(ranks))),
    };
    // SAFETY: the program gives room for a handle.
    unsafe { give(handle, to) }
}

unsafe fn size(call: Call, group: MPI_Group, size: *mut c_int) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { give(numbers::int(call.process.group(group)?.len()), size) }
}

unsafe fn rank(call: Call, group: MPI_Group, rank: *mut c_int) -> Outcome {
    let group = call.process.group(group)?;
    let me = call.process.world.engine.rank.cast_unsigned();
    let place = group.position(me).map_or(MPI_UNDEFINED, numbers::int);
    // SAFETY: as the program promises.
    unsafe { give(place, rank) }
}

/// The job's rank of a member.
fn member(group: &Members, rank: i64) -> Outcome<u32> {
    match usize::try_from(rank).ok().filter(|rank| *rank < group.len()) {
        Some(rank) => Ok(group.get(rank)),
        None => refuse!(
            MPI_ERR_RANK,
            "rank {rank} is out of range: the group's size is {}",
            group.len()
        ),
    }
}

unsafe fn translate(
    call: Call,
    group: MPI_Group,
    count: c_int,
    ranks: *const c_int,
    other: MPI_Group,
    translated: *mut c_int,
) -> Outcome {
    let (group, other) = (call.process.group(group)?, call.process.group(other)?);
    // SAFETY: the program gives so many ranks, and room for as many.
    unsafe {
        for (at, rank) in numbers::ints(ranks, numbers::count(count)?)?.into_iter().enumerate() {
            let place = match rank {
                MPI_PROC_NULL => MPI_PROC_NULL,
                _ => {
                    let member = member(&group, rank.into())?;
                    other.position(member).map_or(MPI_UNDEFINED, numbers::int)
                }
            };
            translated.add(at).write(place);
        }
    }
    Ok(())
}

unsafe fn compare(call: Call, one: MPI_Group, other: MPI_Group, result: *mut c_int) -> Outcome {
    let relation = relation(&*call.process.group(one)?, &*call.process.group(other)?);
    // SAFETY: as the program promises.
    unsafe { give(relation, result) }
}

unsafe fn union(call: Call, one: MPI_Group, other: MPI_Group, new: *mut MPI_Group) -> Outcome {
    let (one, other) = (call.process.group(one)?, call.process.group(other)?);
    let mine: FxHashSet<u32> = one.iter().collect();
    let more = other.iter().filter(|rank| !mine.contains(rank));
    let all: Vec<u32> = one.iter().chain(more).collect();
    // SAFETY: as the program promises.
    unsafe { give_group(call, &all, new) }
}

/// The ranks of a group that are, or are not, in another one.
///
/// # Safety
/// There is room for a handle.
unsafe fn part(
    call: Call,
    (one, other): (MPI_Group, MPI_Group),
    common: bool,
    new: *mut MPI_Group,
) -> Outcome {
    let (one, other) = (call.process.group(one)?, call.process.group(other)?);
    let theirs: FxHashSet<u32> = other.iter().collect();
    let part: Vec<u32> = one.iter().filter(|rank| theirs.contains(rank) == common).collect();
    // SAFETY: as the caller promises.
    unsafe { give_group(call, &part, new) }
}

unsafe fn intersection(
    call: Call,
    one: MPI_Group,
    other: MPI_Group,
    new: *mut MPI_Group,
) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { part(call, (one, other), true, new) }
}

unsafe fn difference(call: Call, one: MPI_Group, other: MPI_Group, new: *mut MPI_Group) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { part(call, (one, other), false, new) }
}

/// The members with these ranks, each at most once.
fn named(group: &Members, ranks: &[i64]) -> Outcome<Vec<u32>> {
    let mut seen = FxHashSet::default();
    ranks
        .iter()
        .map(|rank| {
            let member = member(group, *rank)?;
            if !seen.insert(member) {
                refuse!(MPI_ERR_RANK, "rank {rank} is given twice");
            }
            Ok(member)
        })
        .collect()
}

/// Returns the group of some members, or of all others, to the program.
///
/// # Safety
/// There is room for a handle.
unsafe fn chosen(
    call: Call,
    group: &Members,
    ranks: &[i64],
    include: bool,
    new: *mut MPI_Group,
) -> Outcome {
    let named = named(group, ranks)?;
    let chosen = if include {
        named
    } else {
        let out: FxHashSet<u32> = named.into_iter().collect();
        group.iter().filter(|rank| !out.contains(rank)).collect()
    };
    // SAFETY: as the caller promises.
    unsafe { give_group(call, &chosen, new) }
}

/// The ranks in ranges: first, last, stride.
///
/// # Safety
/// The array has this many entries.
unsafe fn in_ranges(group: &Members, count: c_int, ranges: *const [c_int; 3]) -> Outcome<Vec<i64>> {
    let mut all = Vec::new();
    for at in 0..numbers::count(count)? {
        // SAFETY: as the caller promises.
        let [first, last, stride] = unsafe { *ranges.add(at) }.map(i64::from);
        if stride == 0 {
            refuse!(MPI_ERR_ARG, "the stride of a range is 0");
        }
        // All are differences of two `int`s, or less.
        let distance = last.saturating_sub(first);
        if distance != 0 && distance.signum() != stride.signum() {
            continue;
        }
        let steps = distance.checked_div(stride).unwrap_or_default();
        let end = first.saturating_add(steps.saturating_mul(stride));
        // Both ends are ranks, so what lies between them is no more than there are.
        for rank in [first, end] {
            member(group, rank)?;
        }
        all.extend((0..=steps).map(|step| first.saturating_add(step.saturating_mul(stride))));
    }
    Ok(all)
}

/// The ranks in a list.
///
/// # Safety
/// The array has this many entries.
unsafe fn in_list(_: &Members, count: c_int, ranks: *const c_int) -> Outcome<Vec<i64>> {
    // SAFETY: as the caller promises.
    unsafe { numbers::list(ranks, numbers::count(count)?) }
}

macro_rules! choice {
    ($($name:ident($given:ty) = $ranks:ident, $include:literal;)*) => {$(
        unsafe fn $name(
            call: Call,
            group: MPI_Group,
            count: c_int,
            given: $given,
            new: *mut MPI_Group,
        ) -> Outcome {
            let group = call.process.group(group)?;
            // SAFETY: the program gives so many ranks or ranges, and room for a handle.
            unsafe { chosen(call, &group, &$ranks(&group, count, given)?, $include, new) }
        }
    )*};
}
choice! {
    include(*const c_int) = in_list, true;
    exclude(*const c_int) = in_list, false;
    include_ranges(*mut [c_int; 3]) = in_ranges, true;
    exclude_ranges(*mut [c_int; 3]) = in_ranges, false;
}

unsafe fn free(call: Call, group: *mut MPI_Group) -> Outcome {
    // SAFETY: the program gives its handle.
    let handle = unsafe { *group };
    if handle != MPI_GROUP_EMPTY && call.process.groups.remove(handle.0).is_none() {
        refuse!(MPI_ERR_GROUP, "{:#x} is no group, or one that was freed", handle.0);
    }
    // SAFETY: as above.
    unsafe { *group = MPI_GROUP_NULL };
    Ok(())
}
