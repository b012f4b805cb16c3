//! Operations that move data: what has to arrive is known element by element.

use vrt::datatype::{Partition, PartitionMut};
use vrt::request::scope;
use vrt::traits::*;

use crate::elements::Elements;
use crate::{Case, ring};

type Check = fn(Case<'_>);

const TABLE: [(&str, Check); 10] = [
    ("barrier", barrier),
    ("broadcast", broadcast),
    ("gather", gather),
    ("gather_varcount", gather_varcount),
    ("all_gather", all_gather),
    ("all_gather_varcount", all_gather_varcount),
    ("scatter", scatter),
    ("scatter_varcount", scatter_varcount),
    ("all_to_all", all_to_all),
    ("all_to_all_varcount", all_to_all_varcount),
];

pub(crate) fn check(case: Case<'_>) -> u64 {
    for (_, check) in TABLE {
        check(case);
    }
    all_to_all_buffers(case);
    TABLE.len() as u64 + 1
}

fn barrier(case: Case<'_>) {
    if case.immediate {
        let request = case.comm.immediate_barrier();
        ring(case.comm);
        request.wait();
    } else {
        case.comm.barrier();
    }
}

fn roots(case: Case<'_>) -> impl Iterator<Item = i32> {
    let last = case.comm.size() - 1;
    std::iter::once(0).chain((last > 0).then_some(last))
}

fn broadcast(case: Case<'_>) {
    for root in roots(case) {
        let value = |i| case.value(root as usize, i);
        let mut data = if case.comm.rank() == root {
            Elements::new(case.kind, case.count, value)
        } else {
            Elements::blank(case.kind, case.count)
        };
        let process = case.comm.process_at_rank(root);
        let mut buffer = data.buffer_mut();
        if case.immediate {
            scope(|scope| {
                let request = process.immediate_broadcast_into(scope, &mut buffer);
                ring(case.comm);
                request.wait();
            });
        } else {
            process.broadcast_into(&mut buffer);
        }
        for i in 0..case.count {
            data.expect(i, value(i), || format!("broadcast from {root}, {case:?}"));
        }
    }
}

/// Lengths of parts that differ, and where they begin with a gap between them.
fn uneven(case: Case<'_>, rank: usize) -> i32 {
    ((case.count + rank) % (case.count + 1)) as i32
}

fn uneven_parts(case: Case<'_>) -> (Vec<i32>, Vec<i32>, usize) {
    let counts: Vec<i32> = (0..case.size()).map(|rank| uneven(case, rank)).collect();
    let mut end = 1;
    let displacements = counts.iter().map(|count| {
        let at = end;
        end += count + 1;
        at
    });
    let displacements = displacements.collect();
    (counts, displacements, end as usize)
}

fn gather(case: Case<'_>) {
    for root in roots(case) {
        let mine = Elements::new(case.kind, case.count, |i| case.value(case.rank(), i));
        let mut all = Elements::blank(case.kind, case.count * case.size());
        let process = case.comm.process_at_rank(root);
        let (from, mut to) = (mine.buffer(), all.buffer_mut());
        match (case.immediate, process.is_self()) {
            (false, true) => process.gather_into_root(&from, &mut to),
            (false, false) => process.gather_into(&from),
            (true, true) => scope(|scope| {
                let request = process.immediate_gather_into_root(scope, &from, &mut to);
                ring(case.comm);
                request.wait();
            }),
            (true, false) => scope(|scope| {
                let request = process.immediate_gather_into(scope, &from);
                ring(case.comm);
                request.wait();
            }),
        }
        if process.is_self() {
            expect_gathered(case, &all, "gather");
        }
    }
}

fn expect_gathered(case: Case<'_>, all: &Elements, what: &str) {
    for rank in 0..case.size() {
        for i in 0..case.count {
            let at = rank * case.count + i;
            all.expect(at, case.value(rank, i), || format!("{what}, {case:?}"));
        }
    }
}

fn expect_uneven(case: Case<'_>, all: &Elements, what: &str) {
    let (counts, displacements, len) = uneven_parts(case);
    let mut written = vec![false; len];
    for rank in 0..case.size() {
        for i in 0..counts[rank] as usize {
            let at = displacements[rank] as usize + i;
            written[at] = true;
            all.expect(at, case.value(rank, i), || format!("{what}, {case:?}"));
        }
    }
    for at in (0..len).filter(|at| !written[*at]) {
        all.expect(at, -1, || format!("{what} writes between parts, {case:?}"));
    }
}

fn gather_varcount(case: Case<'_>) {
    for root in roots(case) {
        let mine = uneven(case, case.rank()) as usize;
        let mine = Elements::new(case.kind, mine, |i| case.value(case.rank(), i));
        let (counts, displacements, len) = uneven_parts(case);
        let mut all = Elements::blank(case.kind, len);
        let process = case.comm.process_at_rank(root);
        let from = mine.buffer();
        let mut to = all.buffer_mut();
        let mut to = PartitionMut::new(&mut to, &counts[..], &displacements[..]);
        match (case.immediate, process.is_self()) {
            (false, true) => process.gather_varcount_into_root(&from, &mut to),
            (false, false) => process.gather_varcount_into(&from),
            (true, true) => scope(|scope| {
                let request = process.immediate_gather_varcount_into_root(scope, &from, &mut to);
                ring(case.comm);
                request.wait();
            }),
            (true, false) => scope(|scope| {
                let request = process.immediate_gather_varcount_into(scope, &from);
                ring(case.comm);
                request.wait();
            }),
        }
        if process.is_self() {
            expect_uneven(case, &all, "gather_varcount");
        }
    }
}

fn all_gather(case: Case<'_>) {
    let mine = Elements::new(case.kind, case.count, |i| case.value(case.rank(), i));
    let mut all = Elements::blank(case.kind, case.count * case.size());
    let (from, mut to) = (mine.buffer(), all.buffer_mut());
    if case.immediate {
        scope(|scope| {
            let request = case.comm.immediate_all_gather_into(scope, &from, &mut to);
            ring(case.comm);
            request.wait();
        });
    } else {
        case.comm.all_gather_into(&from, &mut to);
    }
    expect_gathered(case, &all, "all_gather");
}

fn all_gather_varcount(case: Case<'_>) {
    let mine = uneven(case, case.rank()) as usize;
    let mine = Elements::new(case.kind, mine, |i| case.value(case.rank(), i));
    let (counts, displacements, len) = uneven_parts(case);
    let mut all = Elements::blank(case.kind, len);
    let (from, mut to) = (mine.buffer(), all.buffer_mut());
    let mut to = PartitionMut::new(&mut to, &counts[..], &displacements[..]);
    if case.immediate {
        scope(|scope| {
            let request = case.comm.immediate_all_gather_varcount_into(scope, &from, &mut to);
            ring(case.comm);
            request.wait();
        });
    } else {
        case.comm.all_gather_varcount_into(&from, &mut to);
    }
    expect_uneven(case, &all, "all_gather_varcount");
}

fn scatter(case: Case<'_>) {
    for root in roots(case) {
        let part = |at: usize| {
            let each = case.count.max(1);
            case.part(root as usize, at / each, at % each)
        };
        let all = Elements::new(case.kind, case.count * case.size(), part);
        let mut mine = Elements::blank(case.kind, case.count);
        let process = case.comm.process_at_rank(root);
        let (from, mut to) = (all.buffer(), mine.buffer_mut());
        match (case.immediate, process.is_self()) {
            (false, true) => process.scatter_into_root(&from, &mut to),
            (false, false) => process.scatter_into(&mut to),
            (true, true) => scope(|scope| {
                let request = process.immediate_scatter_into_root(scope, &from, &mut to);
                ring(case.comm);
                request.wait();
            }),
            (true, false) => scope(|scope| {
                let request = process.immediate_scatter_into(scope, &mut to);
                ring(case.comm);
                request.wait();
            }),
        }
        for i in 0..case.count {
            let value = case.part(root as usize, case.rank(), i);
            mine.expect(i, value, || format!("scatter from {root}, {case:?}"));
        }
    }
}

fn scatter_varcount(case: Case<'_>) {
    for root in roots(case) {
        let (counts, displacements, len) = uneven_parts(case);
        let mut all = Elements::blank(case.kind, len);
        for rank in 0..case.size() {
            for i in 0..counts[rank] as usize {
                let value = case.part(root as usize, rank, i);
                all.set(displacements[rank] as usize + i, value);
            }
        }
        let count = counts[case.rank()] as usize;
        let mut mine = Elements::blank(case.kind, count);
        let process = case.comm.process_at_rank(root);
        let from = all.buffer();
        let from = Partition::new(&from, &counts[..], &displacements[..]);
        let mut to = mine.buffer_mut();
        match (case.immediate, process.is_self()) {
            (false, true) => process.scatter_varcount_into_root(&from, &mut to),
            (false, false) => process.scatter_varcount_into(&mut to),
            (true, true) => scope(|scope| {
                let request = process.immediate_scatter_varcount_into_root(scope, &from, &mut to);
                ring(case.comm);
                request.wait();
            }),
            (true, false) => scope(|scope| {
                let request = process.immediate_scatter_varcount_into(scope, &mut to);
                ring(case.comm);
                request.wait();
            }),
        }
        for i in 0..count {
            let value = case.part(root as usize, case.rank(), i);
            mine.expect(i, value, || format!("scatter_varcount from {root}, {case:?}"));
        }
    }
}

/// What this rank sends to all, and a place for what all send to it.
fn for_all(case: Case<'_>) -> (Elements, Elements) {
    let each = case.count.max(1);
    let part = |at: usize| case.part(case.rank(), at / each, at % each);
    let len = case.count * case.size();
    (Elements::new(case.kind, len, part), Elements::blank(case.kind, len))
}

fn expect_from_all(case: Case<'_>, theirs: &Elements, what: &str) {
    for rank in 0..case.size() {
        for i in 0..case.count {
            let value = case.part(rank, case.rank(), i);
            theirs.expect(rank * case.count + i, value, || format!("{what}, {case:?}"));
        }
    }
}

fn all_to_all(case: Case<'_>) {
    let (mine, mut theirs) = for_all(case);
    let (from, mut to) = (mine.buffer(), theirs.buffer_mut());
    if case.immediate {
        scope(|scope| {
            let request = case.comm.immediate_all_to_all_into(scope, &from, &mut to);
            ring(case.comm);
            request.wait();
        });
    } else {
        case.comm.all_to_all_into(&from, &mut to);
    }
    expect_from_all(case, &theirs, "all_to_all");
}

/// The length of what one rank sends another.
fn between(case: Case<'_>, from: usize, to: usize) -> i32 {
    ((case.count + 3 * from + to) % (case.count + 1)) as i32
}

fn all_to_all_varcount(case: Case<'_>) {
    let (me, n) = (case.rank(), case.size());
    let out: Vec<i32> = (0..n).map(|to| between(case, me, to)).collect();
    let back: Vec<i32> = (0..n).map(|from| between(case, from, me)).collect();
    // Parts lie in a grid of equal places.
    let places: Vec<i32> = (0..n).map(|rank| (rank * case.count) as i32).collect();
    let (mine, mut theirs) = for_all(case);
    let (from, mut to) = (mine.buffer(), theirs.buffer_mut());
    let from = Partition::new(&from, &out[..], &places[..]);
    let mut to = PartitionMut::new(&mut to, &back[..], &places[..]);
    if case.immediate {
        scope(|scope| {
            let request = case.comm.immediate_all_to_all_varcount_into(scope, &from, &mut to);
            ring(case.comm);
            request.wait();
        });
    } else {
        case.comm.all_to_all_varcount_into(&from, &mut to);
    }
    for (rank, came) in back.iter().enumerate() {
        for i in 0..case.count {
            let came = (i as i32) < *came;
            let value = if came { case.part(rank, me, i) } else { -1 };
            let at = rank * case.count + i;
            theirs.expect(at, value, || format!("all_to_all_varcount, {case:?}"));
        }
    }
}

fn all_to_all_buffers(case: Case<'_>) {
    let (mine, _) = for_all(case);
    let blank = |_| Elements::blank(case.kind, case.count);
    let mut theirs: Vec<Elements> = (0..case.size()).map(blank).collect();
    let range = |rank| mine.range(rank * case.count, case.count);
    let from: Vec<_> = (0..case.size()).filter(|_| case.count > 0).map(range).collect();
    if case.count == 0 {
        return;
    }
    let mut to: Vec<_> = theirs.iter_mut().map(Elements::buffer_mut).collect();
    case.comm.all_to_all_buffers_into(&from, &mut to);
    for (rank, part) in theirs.iter().enumerate() {
        for i in 0..case.count {
            let value = case.part(rank, case.rank(), i);
            part.expect(i, value, || format!("all_to_all_buffers, {case:?}"));
        }
    }
}
