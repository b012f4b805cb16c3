//! Operations that fold data. The oracle folds numbers of all ranks in the order that is
//! documented: reductions in a tree over neighbouring ranks, scans from the left. So sums of floats
//! have to be right to the last bit, and operations that do not commute keep the order of ranks.

use vrt::collective::{SystemOperation, UserOperation};
use vrt::datatype::{DynBuffer, DynBufferMut};
use vrt::request::scope;
use vrt::traits::*;

use crate::elements::{Elements, Kind, Record, float, record, second};
use crate::{Case, ring};

/// An operation and what it does to two lanes.
struct Op<'a> {
    name: &'static str,
    op: &'a dyn Operation,
    lanes: fn(i64, i64) -> i64,
}

/// Composes the maps `x -> a x + b` that two numbers stand for: associative, not commutative.
fn compose(left: i64, right: i64) -> i64 {
    let split = |word: i64| (word as u32, (word >> 32) as u32);
    let ((a, b), (c, d)) = (split(left), split(right));
    let (a, b) = (a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d));
    (u64::from(a) | (u64::from(b) << 32)) as i64
}

fn compose_records(left: Record, right: Record) -> Record {
    Record {
        tag: left.tag.wrapping_add(right.tag),
        value: compose(left.value, right.value),
        pair: (left.pair.0.max(right.pair.0), right.pair.1),
    }
}

/// The user operation, for any kind of element.
fn compose_buffers(x: DynBuffer<'_>, y: DynBufferMut<'_>) {
    if x.is::<Record>() {
        let (Some(x), Some(y)) = (x.downcast::<Record>(), y.downcast::<Record>()) else { return };
        x.iter().zip(y).for_each(|(x, y)| *y = compose_records(*x, *y));
    } else if x.is::<i64>() {
        let (Some(x), Some(y)) = (x.downcast::<i64>(), y.downcast::<i64>()) else { return };
        x.iter().zip(y).for_each(|(x, y)| *y = compose(*x, *y));
    } else if x.is::<f64>() {
        let (Some(x), Some(y)) = (x.downcast::<f64>(), y.downcast::<f64>()) else { return };
        x.iter().zip(y).for_each(|(x, y)| {
            *y = f64::from_bits(compose(x.to_bits() as i64, y.to_bits() as i64) as u64);
        });
    } else {
        let (words, mut y) = (x.len() * 4, y);
        // SAFETY: strided elements are two numbers with gaps, in 32 bytes each.
        let (x, y) = unsafe {
            (
                std::slice::from_raw_parts(x.as_ptr().cast::<i64>(), words),
                std::slice::from_raw_parts_mut(y.as_mut_ptr().cast::<i64>(), words),
            )
        };
        for at in (0..words).step_by(2) {
            y[at] = compose(x[at], y[at]);
        }
    }
}

fn float_sum(a: i64, b: i64) -> i64 {
    (f64::from_bits(a as u64) + f64::from_bits(b as u64)).to_bits() as i64
}

fn float_max(a: i64, b: i64) -> i64 {
    f64::from_bits(a as u64).max(f64::from_bits(b as u64)).to_bits() as i64
}

pub(crate) fn check(case: Case<'_>) -> u64 {
    let user = UserOperation::associative(compose_buffers);
    let system = [
        SystemOperation::sum(),
        SystemOperation::max(),
        SystemOperation::min(),
        SystemOperation::product(),
        SystemOperation::bitwise_and(),
        SystemOperation::bitwise_or(),
        SystemOperation::bitwise_xor(),
        SystemOperation::logical_and(),
        SystemOperation::logical_or(),
        SystemOperation::logical_xor(),
    ];
    type Lanes = fn(i64, i64) -> i64;
    let on_integers: [(&str, Lanes); 10] = [
        ("sum", i64::wrapping_add),
        ("max", |a, b| a.max(b)),
        ("min", |a, b| a.min(b)),
        ("product", i64::wrapping_mul),
        ("bitwise_and", |a, b| a & b),
        ("bitwise_or", |a, b| a | b),
        ("bitwise_xor", |a, b| a ^ b),
        ("logical_and", |a, b| i64::from(a != 0 && b != 0)),
        ("logical_or", |a, b| i64::from(a != 0 || b != 0)),
        ("logical_xor", |a, b| i64::from((a != 0) != (b != 0))),
    ];
    let mut ops = vec![Op { name: "user", op: &user, lanes: compose }];
    match case.kind {
        Kind::Integers | Kind::Strided => {
            for (op, (name, lanes)) in system.iter().zip(on_integers) {
                ops.push(Op { name, op, lanes });
            }
        }
        Kind::Floats => {
            ops.push(Op { name: "sum", op: &system[0], lanes: float_sum });
            ops.push(Op { name: "max", op: &system[1], lanes: float_max });
        }
        Kind::Records => {}
    }
    // All operations on small data, those that keep the order on large data.
    let all = if case.count == 1 { ops.len() } else { ops.len().min(2) };
    for op in &ops[..all] {
        reduce(case, op);
        all_reduce(case, op);
        reduce_scatter_block(case, op);
        reduce_scatter(case, op);
        scan(case, op, false);
        scan(case, op, true);
    }
    6 * all as u64
}

/// Sums only.
pub(crate) fn check_large(case: Case<'_>) -> u64 {
    let sum = SystemOperation::sum();
    let lanes: fn(i64, i64) -> i64 = match case.kind {
        Kind::Integers | Kind::Strided => i64::wrapping_add,
        Kind::Floats => float_sum,
        Kind::Records => return 0,
    };
    all_reduce(case, &Op { name: "sum", op: &sum, lanes });
    1
}

/// The lanes (and for records the record) that a rank contributes at a place.
fn contribution(case: Case<'_>, rank: usize, place: usize) -> (Record, [i64; 2]) {
    let value = case.value(rank, place);
    match case.kind {
        Kind::Integers => (Record::default(), [value, 0]),
        Kind::Floats => (Record::default(), [float(value).to_bits() as i64, 0]),
        Kind::Strided => (Record::default(), [value, second(value)]),
        Kind::Records => (record(value), [0, 0]),
    }
}

type Folded = (Record, [i64; 2]);

fn fold_two(op: &Op<'_>, a: Folded, b: Folded) -> Folded {
    let lanes = [(op.lanes)(a.1[0], b.1[0]), (op.lanes)(a.1[1], b.1[1])];
    (compose_records(a.0, b.0), lanes)
}

/// The tree over ranks.
fn fold_tree(case: Case<'_>, op: &Op<'_>, place: usize) -> Folded {
    let mut blocks: Vec<Folded> =
        (0..case.size()).map(|rank| contribution(case, rank, place)).collect();
    while blocks.len() > 1 {
        let pair = |pair: &[Folded]| match pair {
            [a, b] => fold_two(op, *a, *b),
            rest => rest[0],
        };
        blocks = blocks.chunks(2).map(pair).collect();
    }
    blocks[0]
}

fn expect(case: Case<'_>, op: &Op<'_>, what: &str, got: &Elements, at: usize, wanted: Folded) {
    let good = match case.kind {
        Kind::Records => got.record(at) == wanted.0,
        Kind::Strided => got.lanes(at) == wanted.1,
        Kind::Integers | Kind::Floats => got.lanes(at)[0] == wanted.1[0],
    };
    assert!(good, "element {at} in {what} by {}, {case:?}", op.name);
}

fn mine(case: Case<'_>, len: usize) -> Elements {
    Elements::new(case.kind, len, |i| case.value(case.rank(), i))
}

fn reduce(case: Case<'_>, op: &Op<'_>) {
    let root = case.size() / 2;
    let process = case.comm.process_at_rank(root as i32);
    let (mine, mut result) = (mine(case, case.count), Elements::blank(case.kind, case.count));
    let (from, mut to) = (mine.buffer(), result.buffer_mut());
    match (case.immediate, process.is_self()) {
        (false, true) => process.reduce_into_root(&from, &mut to, op.op),
        (false, false) => process.reduce_into(&from, op.op),
        (true, true) => scope(|scope| {
            let request = process.immediate_reduce_into_root(scope, &from, &mut to, op.op);
            ring(case.comm);
            request.wait();
        }),
        (true, false) => scope(|scope| {
            let request = process.immediate_reduce_into(scope, &from, op.op);
            ring(case.comm);
            request.wait();
        }),
    }
    if process.is_self() {
        for i in 0..case.count {
            expect(case, op, "reduce", &result, i, fold_tree(case, op, i));
        }
    }
}

fn all_reduce(case: Case<'_>, op: &Op<'_>) {
    let (mine, mut result) = (mine(case, case.count), Elements::blank(case.kind, case.count));
    let (from, mut to) = (mine.buffer(), result.buffer_mut());
    if case.immediate {
        scope(|scope| {
            let request = case.comm.immediate_all_reduce_into(scope, &from, &mut to, op.op);
            ring(case.comm);
            request.wait();
        });
    } else {
        case.comm.all_reduce_into(&from, &mut to, op.op);
    }
    for i in 0..case.count {
        expect(case, op, "all_reduce", &result, i, fold_tree(case, op, i));
    }
}

fn reduce_scatter_block(case: Case<'_>, op: &Op<'_>) {
    let all = mine(case, case.count * case.size());
    let mut result = Elements::blank(case.kind, case.count);
    let (from, mut to) = (all.buffer(), result.buffer_mut());
    if case.immediate {
        let op = op.op;
        scope(|scope| {
            let comm = case.comm;
            let request = comm.immediate_reduce_scatter_block_into(scope, &from, &mut to, op);
            ring(comm);
            request.wait();
        });
    } else {
        case.comm.reduce_scatter_block_into(&from, &mut to, op.op);
    }
    for i in 0..case.count {
        let place = case.rank() * case.count + i;
        expect(case, op, "reduce_scatter_block", &result, i, fold_tree(case, op, place));
    }
}

fn reduce_scatter(case: Case<'_>, op: &Op<'_>) {
    let count = |rank: usize| (case.count + rank) % (case.count + 1);
    let counts: Vec<i32> = (0..case.size()).map(|rank| count(rank) as i32).collect();
    let before: usize = (0..case.rank()).map(count).sum();
    let all = mine(case, (0..case.size()).map(count).sum());
    let mut result = Elements::blank(case.kind, count(case.rank()));
    let (from, mut to) = (all.buffer(), result.buffer_mut());
    case.comm.reduce_scatter_into(&from, &mut to, &counts, op.op);
    for i in 0..count(case.rank()) {
        expect(case, op, "reduce_scatter", &result, i, fold_tree(case, op, before + i));
    }
}

fn scan(case: Case<'_>, op: &Op<'_>, exclusive: bool) {
    let (mine, mut result) = (mine(case, case.count), Elements::blank(case.kind, case.count));
    let (from, mut to) = (mine.buffer(), result.buffer_mut());
    let (comm, dynamic) = (case.comm, op.op);
    match (case.immediate, exclusive) {
        (false, false) => comm.scan_into(&from, &mut to, dynamic),
        (false, true) => comm.exclusive_scan_into(&from, &mut to, dynamic),
        (true, false) => scope(|scope| {
            let request = comm.immediate_scan_into(scope, &from, &mut to, dynamic);
            ring(comm);
            request.wait();
        }),
        (true, true) => scope(|scope| {
            let request = comm.immediate_exclusive_scan_into(scope, &from, &mut to, dynamic);
            ring(comm);
            request.wait();
        }),
    }
    let last = if exclusive { case.rank() } else { case.rank() + 1 };
    for i in 0..case.count {
        let mut upto = (0..last).map(|rank| contribution(case, rank, i));
        match upto.next() {
            None => result.expect(i, -1, || format!("exclusive_scan of rank 0, {case:?}")),
            Some(first) => {
                let wanted = upto.fold(first, |a, b| fold_two(op, a, b));
                expect(case, op, "scan", &result, i, wanted);
            }
        }
    }
}
