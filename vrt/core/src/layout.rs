//! The memory layout of a datatype: which bytes, in which order (MPI-4.1 section 5.1).
//!
//! A type is flattened once, when it is created, into a short program of copies and loops over
//! copies. Neighbouring bytes are joined on the way, so packing uses the longest possible copies,
//! and a type without gaps is a single copy: such a type is never packed.
//!
//! | file | subject |
//! |---|---|
//! | `datatype` | datatypes as they were constructed, with their layout |
//! | `scalar` | built-in values, pairs of a value and its location |
//! | `signature` | which types a message may be received as |
//!
//! Invariants: `size` is the sum of all copies; the order of copies is the order of the type map,
//! so equal signatures yield equal packed bytes; `body` of a loop is relative to its own start.

#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]

mod datatype;
mod scalar;
mod signature;

use std::sync::Arc;

pub use datatype::{ArrayOrder, Construction, Datatype, DatatypeError, Dimension};
pub use scalar::Located;
pub use scalar::Scalar;
use signature::Content;
pub use signature::Signature;

/// The most bytes that elements may span, and the greatest distance of an element from its beginning. It is far more
/// than any memory, and far enough below the largest number that sums of several such values do not overflow. If a
/// constructor would overflow, it saturates, exceeds this, and yields no datatype ([`Datatype::new`]).
pub const LONGEST: usize = 1 << 60;

/// A step of the program that packs one element.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Contiguous bytes.
    Copy { offset: isize, len: usize },
    /// The body, `count` times, `stride` bytes apart.
    Loop { offset: isize, count: usize, stride: isize, body: Arc<[Step]> },
}

/// A flattened datatype. All lengths are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    steps: Arc<[Step]>,
    size: usize,
    lower: isize,
    upper: isize,
    true_lower: isize,
    true_upper: isize,
    /// The bounds were set by `resized`: those of all components, or its own.
    has_set_bounds: bool,
    /// The strictest alignment of its components.
    align: usize,
    /// The built-in values that it consists of.
    content: Content,
    /// Its signature in messages.
    signature: Signature,
}

impl Layout {
    /// One built-in value.
    #[cfg_attr(
        not(test),
        expect(clippy::arithmetic_side_effects, reason = "sizes of built-in values")
    )]
    pub fn scalar(scalar: Scalar) -> Layout {
        let (size, extent) = (scalar.size(), scalar.extent() as isize);
        let (steps, end): (Arc<[Step]>, _) = match scalar.gap() {
            None => (Arc::new([Step::Copy { offset: 0, len: size }]), size),
            Some(gap) => {
                let location = Step::Copy { offset: gap.end as isize, len: size - gap.start };
                (Arc::new([Step::Copy { offset: 0, len: gap.start }, location]), size + gap.len())
            }
        };
        Layout {
            steps,
            size,
            lower: 0,
            upper: extent,
            true_lower: 0,
            true_upper: end as isize,
            has_set_bounds: false,
            align: scalar.align(),
            content: Content::All(scalar),
            signature: Signature::of_scalar(scalar),
        }
    }

    /// No data.
    pub fn empty() -> Layout {
        Layout {
            steps: Arc::new([]),
            size: 0,
            lower: 0,
            upper: 0,
            true_lower: 0,
            true_upper: 0,
            has_set_bounds: false,
            align: 1,
            content: Content::Nothing,
            signature: Signature::ANY,
        }
    }

    /// Whether it has neither data nor bounds.
    fn is_nothing(&self) -> bool {
        self.size == 0 && !self.has_set_bounds
    }

    /// `count` elements, `stride` bytes apart.
    pub fn repeat(&self, count: usize, stride: isize) -> Layout {
        if count == 0 || self.is_nothing() {
            return Layout::empty();
        }
        let last = stride.saturating_mul(signed(count).saturating_sub(1));
        let (low, high) = (last.min(0), last.max(0));
        // Where there is no data it lies nowhere.
        let (true_low, true_high) = if self.size == 0 { (0, 0) } else { (low, high) };
        let steps: Arc<[Step]> = match *self.steps {
            _ if count == 1 => Arc::clone(&self.steps),
            [] => Arc::new([]),
            [Step::Copy { offset, len }] if signed(len) == stride => {
                Arc::new([Step::Copy { offset, len: len.saturating_mul(count) }])
            }
            _ => Arc::new([Step::Loop { offset: 0, count, stride, body: Arc::clone(&self.steps) }]),
        };
        Layout {
            steps,
            size: self.size.saturating_mul(count),
            lower: self.lower.saturating_add(low),
            upper: self.upper.saturating_add(high),
            true_lower: self.true_lower.saturating_add(true_low),
            true_upper: self.true_upper.saturating_add(true_high),
            content: self.content.clone(),
            ..*self
        }
    }

    /// Consecutive elements.
    pub fn contiguous(&self, count: usize) -> Layout {
        self.repeat(count, self.extent())
    }

    /// Parts at displacements, in the given order.
    pub fn concatenate(parts: &[(isize, Layout)]) -> Layout {
        let mut all = Layout::empty();
        let mut steps: Vec<Step> = Vec::new();
        let (mut any, mut any_data) = (false, false);
        let mut have_set_bounds = true;
        for (at, part) in parts {
            if part.is_nothing() {
                continue;
            }
            let (lower, upper) = (part.lower.saturating_add(*at), part.upper.saturating_add(*at));
            all.lower = if any { all.lower.min(lower) } else { lower };
            all.upper = if any { all.upper.max(upper) } else { upper };
            any = true;
            have_set_bounds &= part.has_set_bounds;
            all.align = all.align.max(part.align);
            if part.size == 0 {
                continue;
            }
            let (lower, upper) =
                (part.true_lower.saturating_add(*at), part.true_upper.saturating_add(*at));
            all.true_lower = if any_data { all.true_lower.min(lower) } else { lower };
            all.true_upper = if any_data { all.true_upper.max(upper) } else { upper };
            any_data = true;
            all.size = all.size.saturating_add(part.size);
            for step in part.steps.iter() {
                let step = step.shifted(*at);
                if let (Some(Step::Copy { offset, len }), Step::Copy { offset: next, len: more }) =
                    (steps.last_mut(), &step)
                    && offset.saturating_add(signed(*len)) == *next
                {
                    *len = len.saturating_add(*more);
                } else {
                    steps.push(step);
                }
            }
        }
        all.steps = steps.into();
        all.has_set_bounds = any && have_set_bounds;
        all.content = Content::of_parts(parts.iter().map(|(_, part)| (&part.content, part.size)));
        all.signature = all.content.signature();
        all
    }

    /// The same data with other bounds, which types constructed from it keep.
    pub fn resized(&self, lower: isize, extent: isize) -> Layout {
        let upper = lower.saturating_add(extent);
        Layout { lower, upper, has_set_bounds: true, ..self.clone() }
    }

    /// The same with its end rounded up to a multiple of its alignment, as C lays out structures. An end that was set
    /// for all of its parts is kept (MPI-4.1 section 5.1.7: if there is an upper-bound marker, nothing is added).
    pub fn padded(&self) -> Layout {
        if self.has_set_bounds {
            return self.clone();
        }
        let extent = self.extent().max(0).unsigned_abs();
        let extent = extent.checked_next_multiple_of(self.align).unwrap_or(usize::MAX);
        Layout { upper: self.lower.saturating_add(signed(extent)), ..self.clone() }
    }

    /// Bytes of data.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The distance between the lower and the upper bound: how far apart elements lie.
    pub fn extent(&self) -> isize {
        self.upper.saturating_sub(self.lower)
    }

    /// The offset of an element's beginning from the address of its buffer; may be negative, and the element's data may
    /// begin elsewhere.
    pub fn lower_bound(&self) -> isize {
        self.lower
    }

    /// The offset of the first byte of data.
    pub fn true_lower_bound(&self) -> isize {
        self.true_lower
    }

    /// The distance between the first and the last byte of data.
    pub fn true_extent(&self) -> isize {
        self.true_upper.saturating_sub(self.true_lower)
    }

    /// Whether all of it lies within [`LONGEST`].
    fn is_bounded(&self) -> bool {
        let bounds = [self.lower, self.upper, self.true_lower, self.true_upper, self.extent()];
        self.size <= LONGEST && bounds.iter().all(|bound| bound.unsigned_abs() <= LONGEST)
    }

    /// Bytes of data of `count` elements, if these do not span more than [`LONGEST`].
    pub fn bytes(&self, count: usize) -> Option<usize> {
        let span = count.checked_mul(self.extent().unsigned_abs())?;
        count.checked_mul(self.size).filter(|bytes| *bytes <= LONGEST && span <= LONGEST)
    }

    /// The built-in type of all components, if they have the same one.
    pub fn scalar_kind(&self) -> Option<Scalar> {
        match self.content {
            Content::All(scalar) => Some(scalar),
            Content::Nothing | Content::Mixed(_) => None,
        }
    }

    /// The signature of an element in messages.
    pub fn signature(&self) -> Signature {
        self.signature
    }

    /// Where the data of `count` elements begins and ends; unspecified if they exceed the limit of
    /// [`bytes`](Self::bytes).
    pub fn reach(&self, count: usize) -> (isize, isize) {
        let last = self.extent().saturating_mul(signed(count).saturating_sub(1));
        let (low, high) = (last.min(0), last.max(0));
        (self.true_lower.saturating_add(low), self.true_upper.saturating_add(high))
    }

    /// The beginning of `count` elements, if their layout in memory is the packed one.
    pub fn direct(&self, count: usize) -> Option<isize> {
        if self.size == 0 || count == 0 {
            return Some(0);
        }
        match *self.steps {
            [Step::Copy { offset, len }] if count == 1 || signed(len) == self.extent() => {
                Some(offset)
            }
            _ => None,
        }
    }

    /// Copies `count` elements into packed form.
    ///
    /// # Safety
    /// The elements at `from` are readable, `to` is writable for `count * size` bytes, and they do
    /// not overlap.
    #[cfg_attr(
        not(test),
        expect(
            clippy::arithmetic_side_effects,
            reason = "the elements are in memory, so their places are addresses"
        )
    )]
    pub unsafe fn pack(&self, from: *const u8, count: usize, to: *mut u8) {
        let mut to = to;
        self.runs(from as isize, count, &mut |run| {
            // SAFETY: a run of elements, which are readable, says the caller; all runs have `count * size` bytes.
            unsafe {
                copy_run(run.at as *const u8, run.stride, to, run.len as isize, run);
                to = to.add(run.count * run.len);
            }
            true
        });
    }

    /// Copies packed elements into memory, `len` bytes of them: if they end inside an element, its rest is unchanged.
    ///
    /// # Safety
    /// `from` is readable for `len` bytes, the elements at `to` are writable, and they do not
    /// overlap.
    #[cfg_attr(
        not(test),
        expect(
            clippy::arithmetic_side_effects,
            reason = "the elements are in memory, so their places are addresses"
        )
    )]
    pub unsafe fn unpack(&self, from: *const u8, len: usize, to: *mut u8, count: usize) {
        let (mut from, mut left) = (from, len);
        self.runs(to as isize, count, &mut |run| {
            let whole = Run { count: run.count.min(left / run.len.max(1)), ..run };
            let len = whole.count * whole.len;
            // SAFETY: parts of a run of elements, which are writable, says the caller; `left` bytes are left at `from`.
            unsafe {
                copy_run(from, whole.len as isize, run.at as *mut u8, run.stride, whole);
                from = from.add(len);
                left -= len;
                if whole.count < run.count {
                    let rest = run.at + whole.count as isize * run.stride;
                    std::ptr::copy_nonoverlapping(from, rest as *mut u8, left);
                    left = 0;
                }
            }
            left > 0
        });
    }

    /// Calls `f` with the offset and length of each contiguous piece of `count` elements, in the order of packing;
    /// offsets are relative to the address of the first element.
    pub fn pieces(&self, count: usize, f: &mut impl FnMut(isize, usize)) {
        self.runs(0, count, &mut |run| {
            (0..run.count as isize)
                .for_each(|i| f(run.at.wrapping_add(i.wrapping_mul(run.stride)), run.len));
            true
        });
    }

    /// Calls `f` for all runs of `count` elements in their order, until it returns false.
    fn runs(&self, base: isize, count: usize, f: &mut impl FnMut(Run) -> bool) {
        if self.size == 0 {
            return;
        }
        let mut at = base;
        for _ in 0..count {
            if !walk(&self.steps, at, f) {
                return;
            }
            at = at.wrapping_add(self.extent());
        }
    }
}

/// A length as a distance; what is none is further than any.
fn signed(len: usize) -> isize {
    isize::try_from(len).unwrap_or(isize::MAX)
}

/// Pieces of `len` bytes in memory, `stride` bytes apart.
#[derive(Clone, Copy, Debug)]
struct Run {
    at: isize,
    stride: isize,
    count: usize,
    len: usize,
}

impl Step {
    fn shifted(&self, by: isize) -> Step {
        let mut step = self.clone();
        let (Step::Copy { offset, .. } | Step::Loop { offset, .. }) = &mut step;
        *offset = offset.saturating_add(by);
        step
    }
}

#[cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "an element lies within `LONGEST` of its address"
    )
)]
fn walk(steps: &[Step], base: isize, f: &mut impl FnMut(Run) -> bool) -> bool {
    for step in steps {
        let more = match step {
            Step::Copy { offset, len } => {
                f(Run { at: base + offset, stride: 0, count: 1, len: *len })
            }
            Step::Loop { offset: begin, count, stride, body } => match **body {
                // The innermost loop.
                [Step::Copy { offset, len }] => {
                    f(Run { at: base + begin + offset, stride: *stride, count: *count, len })
                }
                _ => (0..*count as isize).all(|i| walk(body, base + begin + i * stride, f)),
            },
        };
        if !more {
            return false;
        }
    }
    true
}

/// Copies the pieces of a run that have these distances on each side.
///
/// # Safety
/// All pieces are valid on both sides and do not overlap.
#[cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "the elements are in memory, so their places are addresses"
    )
)]
unsafe fn copy_run(from: *const u8, from_stride: isize, to: *mut u8, to_stride: isize, run: Run) {
    let (count, len) = (run.count, run.len);
    // A length that the compiler knows makes each copy a load and a store.
    macro_rules! copy {
        ($len:expr) => {
            for i in 0..count as isize {
                let (from, to) =
                    (from.wrapping_offset(i * from_stride), to.wrapping_offset(i * to_stride));
                // SAFETY: a piece of the run, on both sides, says the caller.
                unsafe { std::ptr::copy_nonoverlapping(from, to, $len) };
            }
        };
    }
    match len {
        8 => copy!(8),
        4 => copy!(4),
        16 => copy!(16),
        1 => copy!(1),
        2 => copy!(2),
        _ => copy!(len),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(layout: &Layout, count: usize) -> Vec<(isize, usize)> {
        let mut all = Vec::new();
        layout.runs(0, count, &mut |run| {
            all.extend((0..run.count as isize).map(|i| (run.at + i * run.stride, run.len)));
            true
        });
        all
    }

    #[test]
    fn contiguous_types_are_one_copy_however_they_are_nested() {
        let number = Layout::scalar(Scalar::I32);
        let nested = number.contiguous(3).contiguous(5).contiguous(7);
        assert_eq!(pieces(&nested, 1), [(0, 3 * 5 * 7 * 4)]);
        assert_eq!(nested.direct(1000), Some(0));
        let parts = [(0, number.clone()), (4, number.contiguous(2)), (12, number.clone())];
        assert_eq!(Layout::concatenate(&parts).direct(9), Some(0));
    }

    #[test]
    fn elements_without_data_have_no_runs_however_many_they_are() {
        let nothing = Layout::scalar(Scalar::I32).repeat(0, 4).resized(0, 8);
        assert_eq!((pieces(&nothing, usize::MAX), nothing.direct(usize::MAX)), (vec![], Some(0)));
    }

    #[test]
    fn bytes_are_counted_or_refused() {
        let number = Layout::scalar(Scalar::F64);
        assert_eq!(number.bytes(1 << 40), Some(1 << 43));
        let wide = number.resized(0, 1 << 40);
        let still = number.resized(0, 0);
        for count in [(1 << 61) + 1, 1 << 58, 1 << 57 | 1, usize::MAX, usize::MAX - 1] {
            assert_eq!(number.bytes(count), None, "{count}");
            assert_eq!(wide.bytes(count), None, "{count}");
            assert_eq!(still.bytes(count), None, "{count}");
        }
        assert_eq!(wide.bytes(1 << 20), Some(1 << 23));
        assert_eq!(wide.bytes(1 << 21), None);
    }

    #[test]
    fn a_block_at_a_displacement_is_sent_where_it_lies() {
        let number = Layout::scalar(Scalar::F64);
        let one = Layout::concatenate(&[(24, number.contiguous(2))]);
        assert_eq!((one.direct(1), one.size(), one.extent()), (Some(24), 16, 16));
    }

    #[test]
    fn a_vector_is_a_loop_over_its_blocks() {
        let number = Layout::scalar(Scalar::I32);
        let vector = number.contiguous(2).repeat(3, 20);
        assert_eq!(pieces(&vector, 1), [(0, 8), (20, 8), (40, 8)]);
        assert_eq!((vector.size(), vector.extent(), vector.true_extent()), (24, 48, 48));
        assert_eq!(vector.direct(1), None);
        let back = number.repeat(3, -8);
        assert_eq!((back.lower_bound(), back.extent()), (-16, 20));
        assert_eq!(pieces(&back, 1), [(0, 4), (-8, 4), (-16, 4)]);
    }

    #[test]
    fn nothing_stays_nothing_however_often_and_far_apart() {
        assert_eq!(Layout::empty().repeat(3, 5), Layout::empty());
        // Unless it has bounds.
        let resized = Layout::empty().resized(0, 0).repeat(3, 5);
        assert_eq!((resized.lower_bound(), resized.extent(), resized.size()), (0, 10, 0));
    }

    #[test]
    fn unpacking_stops_where_the_data_ends() {
        let number = Layout::scalar(Scalar::U8);
        let vector = number.contiguous(2).repeat(2, 4);
        let mut memory = [9u8; 6];
        // SAFETY: the element covers the six bytes.
        unsafe { vector.unpack([1, 2, 3].as_ptr(), 3, memory.as_mut_ptr(), 1) };
        assert_eq!(memory, [1, 2, 9, 9, 3, 9]);
    }
}
