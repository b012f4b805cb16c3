//! The basic elements of a datatype, in order: the basis of `MPI_Get_elements` and of `external32` conversion.

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_abi::{Kind, NamedDatatype};
use vrt_core::layout::Scalar;

use crate::fault::{Outcome, refuse};
use crate::object::TypeRef;
use crate::object::datatype::{Type, Types};

/// A number of consecutive elements of a predefined datatype; a pair counts as its two halves.
pub(super) type Run = (MPI_Datatype, usize);

/// Basic elements in packing order. Repetitions are stored once, so that a type of many elements has few parts.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Run(Run),
    Times(Vec<Part>, usize),
}

/// The basic elements of one element of a datatype.
pub(super) fn parts(datatype: &TypeRef) -> Vec<Part> {
    let mut all = Vec::new();
    append(datatype, 1, &mut all);
    all
}

/// The same as a flat list.
pub(super) fn runs(datatype: &TypeRef) -> Vec<Run> {
    fn flatten(parts: &[Part], all: &mut Vec<Run>) {
        for part in parts {
            match part {
                Part::Run((handle, count)) => match all.last_mut() {
                    Some((last, n)) if last == handle => *n = n.saturating_add(*count),
                    _ => all.push((*handle, *count)),
                },
                Part::Times(parts, n) => (0..*n).for_each(|_| flatten(parts, all)),
            }
        }
    }
    let mut all = Vec::new();
    flatten(&parts(datatype), &mut all);
    all
}

/// The sum of something over all elements.
pub(super) fn sum(parts: &[Part], of: &impl Fn(MPI_Datatype) -> usize) -> usize {
    let each = parts.iter().map(|part| match part {
        Part::Run((handle, n)) => of(*handle).saturating_mul(*n),
        Part::Times(parts, n) => sum(parts, of).saturating_mul(*n),
    });
    each.fold(0, usize::saturating_add)
}

fn push(all: &mut Vec<Part>, (handle, count): Run) {
    match all.last_mut() {
        Some(Part::Run((last, n))) if *last == handle => *n = n.saturating_add(count),
        _ if count > 0 => all.push(Part::Run((handle, count))),
        _ => {}
    }
}

fn append(datatype: &TypeRef, count: usize, all: &mut Vec<Part>) {
    let own = match datatype {
        TypeRef::Named(handle) => match NamedDatatype::of(*handle).map(|named| named.kind) {
            Some(Kind::Pair { value, index, .. }) => {
                let mut own = Vec::new();
                [value, index].into_iter().for_each(|of| push(&mut own, (of, 1)));
                own
            }
            _ => vec![Part::Run((*handle, 1))],
        },
        TypeRef::Made(made) => of_made(made),
    };
    match (&own[..], count) {
        (_, 0) | ([], _) => {}
        ([Part::Run((handle, n))], _) => push(all, (*handle, n.saturating_mul(count))),
        (_, 1) => all.extend(own),
        _ => all.push(Part::Times(own, count)),
    }
}

/// The elements of a type made by the program. The positions of its parts in memory do not matter.
fn of_made(made: &Type) -> Vec<Part> {
    let contents = &made.contents;
    let number = |at: usize| {
        let number = match contents.counts.is_empty() {
            true => contents.integers.get(at).copied().map(i64::from),
            false => contents.counts.get(at).copied(),
        };
        number.and_then(|number| usize::try_from(number).ok()).unwrap_or_default()
    };
    let mut all = Vec::new();
    let Some(first) = contents.types.first() else {
        return vec![Part::Run(selected(made))];
    };
    if contents.combiner == MPI_COMBINER_STRUCT {
        for (at, part) in contents.types.iter().enumerate() {
            append(part, number(at.saturating_add(1)), &mut all);
        }
        return all;
    }
    // All others repeat one type: so often as its data fits into theirs.
    let size = sum(&parts(first), &size_of_named);
    let times = made.datatype.layout().size().checked_div(size).unwrap_or_default();
    append(first, times, &mut all);
    all
}

/// The predefined type that was selected by Fortran's precision and range: its contents do not name it.
fn selected(made: &Type) -> Run {
    let layout = made.datatype.layout();
    let named = match layout.scalar_kind() {
        Some(Scalar::F32) => MPI_REAL4,
        Some(Scalar::F64) => MPI_REAL8,
        Some(Scalar::C32) => MPI_COMPLEX8,
        Some(Scalar::C64) => MPI_COMPLEX16,
        Some(Scalar::I8) => MPI_INTEGER1,
        Some(Scalar::I16) => MPI_INTEGER2,
        Some(Scalar::I32) => MPI_INTEGER4,
        Some(Scalar::I64) => MPI_INTEGER8,
        _ => return (MPI_BYTE, layout.size()),
    };
    (named, 1)
}

/// Size of a predefined type in bytes.
pub(super) fn size_of_named(handle: MPI_Datatype) -> usize {
    NamedDatatype::of(handle).map_or(0, |named| named.size)
}

/// The number of basic elements in this many bytes of a datatype; `None` if the bytes end inside an element.
///
/// # Errors
/// The datatype does not exist.
pub(crate) fn basic_elements(
    types: &Types,
    handle: MPI_Datatype,
    bytes: u64,
) -> Outcome<Option<u64>> {
    let all = [Part::Times(parts(&TypeRef::of(types, handle)?), usize::MAX)];
    let mut rest = usize::try_from(bytes).unwrap_or(usize::MAX);
    let elements = take(&all, &size_of_named, &|_| 1, &mut rest);
    Ok((rest == 0).then_some(elements as u64))
}

/// Takes whole elements of a given size from a number as long as there is enough; returns the sum of another quantity
/// over them.
fn take(
    parts: &[Part],
    has: &impl Fn(MPI_Datatype) -> usize,
    of: &impl Fn(MPI_Datatype) -> usize,
    rest: &mut usize,
) -> usize {
    let mut taken = 0usize;
    for part in parts {
        let (n, size, each) = match part {
            Part::Run((handle, n)) => (*n, has(*handle), of(*handle)),
            Part::Times(parts, n) => (*n, sum(parts, has), sum(parts, of)),
        };
        let whole = rest.checked_div(size).unwrap_or_default().min(n);
        *rest = rest.saturating_sub(whole.saturating_mul(size));
        taken = taken.saturating_add(whole.saturating_mul(each));
        if whole < n {
            if let Part::Times(parts, _) = part {
                taken = taken.saturating_add(take(parts, has, of, rest));
            }
            break;
        }
    }
    taken
}

/// The bytes of this many basic elements of a datatype.
///
/// # Errors
/// The datatype does not exist, or the size is too large.
pub(crate) fn bytes_of_elements(types: &Types, handle: MPI_Datatype, count: u64) -> Outcome<u64> {
    let parts = parts(&TypeRef::of(types, handle)?);
    if parts.is_empty() {
        return Ok(0);
    }
    let mut rest = usize::try_from(count).unwrap_or(usize::MAX);
    let bytes = take(&[Part::Times(parts, usize::MAX)], &|_| 1, &size_of_named, &mut rest);
    match bytes < usize::MAX {
        true => Ok(bytes as u64),
        false => refuse!(MPI_ERR_COUNT, "{count} elements have more bytes than can be counted"),
    }
}
