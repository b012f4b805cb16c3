//! The basic elements of a datatype, in their order: what `MPI_Get_elements` counts, and what `external32`
//! converts.

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_abi::{Kind, NamedDatatype};
use vrt_core::layout::Scalar;

use super::{Type, TypeRef};
use crate::fault::{Outcome, refuse};
use crate::process::Process;

/// So many of a predefined datatype one after the other; a pair counts as its two halves.
pub(super) type Run = (MPI_Datatype, usize);

/// The basic elements of one element of a datatype, in the order in which they are packed.
pub(super) fn runs(datatype: &TypeRef) -> Vec<Run> {
    let mut all = Vec::new();
    append(datatype, 1, &mut all);
    all
}

fn push(all: &mut Vec<Run>, (handle, count): Run) {
    match all.last_mut() {
        Some((last, n)) if *last == handle => *n += count,
        _ if count > 0 => all.push((handle, count)),
        _ => {}
    }
}

fn append(datatype: &TypeRef, count: usize, all: &mut Vec<Run>) {
    match datatype {
        TypeRef::Named(handle) => match NamedDatatype::of(*handle).map(|named| named.kind) {
            Some(Kind::Pair { value, index, .. }) => {
                (0..count)
                    .for_each(|_| [value, index].into_iter().for_each(|of| push(all, (of, 1))));
            }
            _ => push(all, (*handle, count)),
        },
        TypeRef::Made(made) => {
            let own = of_made(made);
            if let [(handle, n)] = own[..] {
                return push(all, (handle, n * count));
            }
            (0..count).for_each(|_| own.iter().for_each(|run| push(all, *run)));
        }
    }
}

/// Those of a type that the program has made. How its parts lie in memory does not matter.
fn of_made(made: &Type) -> Vec<Run> {
    let contents = &made.contents;
    let number = |at: usize| match contents.counts.is_empty() {
        true => contents.integers.get(at).copied().unwrap_or_default() as usize,
        false => contents.counts.get(at).copied().unwrap_or_default() as usize,
    };
    let mut all = Vec::new();
    let Some(first) = contents.types.first() else {
        return vec![selected(made)];
    };
    if contents.combiner == MPI_COMBINER_STRUCT {
        for (at, part) in contents.types.iter().enumerate() {
            append(part, number(1 + at), &mut all);
        }
        return all;
    }
    // All others repeat one type: so often as its data fits into theirs.
    let part = runs(first);
    let size: usize = part.iter().map(|(of, n)| size_of_named(*of) * n).sum();
    let times = made.datatype.layout().size().checked_div(size).unwrap_or_default();
    append(first, times, &mut all);
    all
}

/// The predefined type that Fortran's precision and range have selected: its contents do not name it.
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

/// Bytes of a predefined type.
pub(super) fn size_of_named(handle: MPI_Datatype) -> usize {
    NamedDatatype::of(handle).map_or(0, |named| named.size)
}

/// How many basic elements so many bytes of a datatype are; `None` if they end inside of one.
///
/// # Errors
/// There is no such datatype.
pub(crate) fn basic_elements(
    process: &Process,
    handle: MPI_Datatype,
    bytes: u64,
) -> Outcome<Option<u64>> {
    let runs = runs(&TypeRef::of(process, handle)?);
    let size: u64 = runs.iter().map(|(of, n)| (size_of_named(*of) * n) as u64).sum();
    let each: u64 = runs.iter().map(|(_, n)| *n as u64).sum();
    if size == 0 {
        return Ok((bytes == 0).then_some(0));
    }
    let (mut elements, mut rest) = (bytes / size * each, bytes % size);
    for (of, n) in runs {
        let one = size_of_named(of) as u64;
        let fit = (rest / one).min(n as u64);
        elements += fit;
        rest -= fit * one;
        if fit < n as u64 {
            break;
        }
    }
    Ok((rest == 0).then_some(elements))
}

/// The bytes of so many basic elements of a datatype.
///
/// # Errors
/// There is no such datatype, or these are more bytes than can be counted.
pub(crate) fn bytes_of_elements(
    process: &Process,
    handle: MPI_Datatype,
    count: u64,
) -> Outcome<u64> {
    let runs = runs(&TypeRef::of(process, handle)?);
    let size: u64 = runs.iter().map(|(of, n)| (size_of_named(*of) * n) as u64).sum();
    let each: u64 = runs.iter().map(|(_, n)| *n as u64).sum();
    if each == 0 {
        return Ok(0);
    }
    let mut rest = count % each;
    let mut part = 0;
    for (of, n) in runs {
        let these = rest.min(n as u64);
        part += these * size_of_named(of) as u64;
        rest -= these;
    }
    match (count / each).checked_mul(size).and_then(|whole| whole.checked_add(part)) {
        Some(bytes) => Ok(bytes),
        None => refuse!(MPI_ERR_COUNT, "{count} elements have more bytes than can be counted"),
    }
}
