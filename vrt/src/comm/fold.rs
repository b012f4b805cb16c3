//! Folding contributions with a predefined or a user's operation.
//!
//! Contributions are packed. A predefined operation works on them as they are; a user's operation
//! sees elements as they lie in memory, so they are unpacked for it if they are packed more
//! closely. The lower rank's contribution is always the left operand.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Count;
use crate::comm::operator::{Op, Operator};
use crate::datatype::{DatatypeRef, DynBuffer, DynBufferMut, OwnedDatatype};
use crate::ffi::MPI_Datatype;
use crate::operation::Site;
use crate::raw::AsRaw;

/// What an operation does.
#[derive(Clone, Copy)]
#[doc(hidden)]
pub enum Function<'a> {
    Predefined(Op),
    Closure { function: &'a Closure<'a>, commutes: bool },
    C { function: UnsafeUserFunction, commutes: bool },
}

pub(crate) type Closure<'a> = dyn Fn(DynBuffer<'_>, DynBufferMut<'_>) + Sync + 'a;

impl fmt::Debug for Function<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Function::Predefined(op) => op.fmt(f),
            Function::Closure { .. } | Function::C { .. } => f.write_str("user operation"),
        }
    }
}

/// A reduction as C writes it: first operands, second operands and result, how many, of what type.
pub type UnsafeUserFunction =
    unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut MPI_Datatype);

/// An operation on elements of a datatype.
#[derive(Debug)]
pub(crate) enum Fold<'a> {
    Predefined(Operator),
    User { function: Function<'a>, datatype: OwnedDatatype, site: Site },
}

impl<'a> Fold<'a> {
    /// # Panics
    /// When the operation is predefined, but not for these elements.
    pub(crate) fn new(function: Function<'a>, datatype: &OwnedDatatype, site: Site) -> Fold<'a> {
        match Fold::predefined(function, datatype.datatype_ref(), site) {
            Some(operator) => Fold::Predefined(operator),
            None => Fold::User { function, datatype: datatype.clone(), site },
        }
    }

    /// A predefined operation on elements of a datatype; `None` when it is a user's.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[inline]
    pub(crate) fn predefined(
        function: Function<'_>,
        datatype: DatatypeRef<'_>,
        site: Site,
    ) -> Option<Operator> {
        let Function::Predefined(op) = function else { return None };
        let operator = datatype.scalar().map(|scalar| Operator { op, scalar });
        if !operator.is_some_and(Operator::is_defined) {
            refuse(op, operator, site);
        }
        operator
    }

    /// `left = left op right`; `right` is used up.
    pub(crate) fn fold(&self, left: &mut Vec<u8>, right: &mut Vec<u8>) {
        debug_assert_eq!(left.len(), right.len());
        match self {
            // SAFETY: both have the same length.
            Fold::Predefined(operator) => unsafe {
                operator.fold(left.as_mut_ptr(), right.as_ptr(), left.len());
            },
            Fold::User { .. } => {
                self.fold_right(left, right);
                std::mem::swap(left, right);
            }
        }
    }

    /// `right = left op right`.
    pub(crate) fn fold_right(&self, left: &[u8], right: &mut [u8]) {
        let Fold::User { function, datatype, site } = self else {
            let mut result = left.to_vec();
            self.fold(&mut result, &mut right.to_vec());
            right.copy_from_slice(&result);
            return;
        };
        let (size, extent, lower, span) = datatype.datatype_ref().with_layout(|layout| {
            let lower = layout.lower_bound().min(layout.true_lower_bound());
            let upper = layout.true_lower_bound() + layout.true_extent();
            let span = upper.max(layout.lower_bound() + layout.extent()) - lower;
            (layout.size(), layout.extent(), lower, span)
        });
        if size == 0 || right.is_empty() {
            return;
        }
        let count = right.len() / size;
        // Aligned for anything that elements are made of.
        let bytes = (extent.max(0) as usize) * (count - 1) + span.max(0) as usize;
        let mut memory = [vec![0u128; bytes.div_ceil(16)], vec![0u128; bytes.div_ceil(16)]];
        let [left_at, right_at] =
            memory.each_mut().map(|m| m.as_mut_ptr().cast::<u8>().wrapping_offset(-lower));
        datatype.datatype_ref().with_layout(|layout| {
            // SAFETY: both blocks hold `count` elements, as computed above.
            unsafe {
                layout.unpack(left.as_ptr(), left.len(), left_at, count);
                layout.unpack(right.as_ptr(), right.len(), right_at, count);
            }
        });
        call(*function, datatype, left_at, right_at, count, *site);
        datatype.datatype_ref().with_layout(|layout| {
            // SAFETY: as above.
            unsafe { layout.pack(right_at, count, right.as_mut_ptr()) };
        });
    }

    /// Folds contributions of `unit` bytes that lie side by side, in the order of the tree over
    /// ranks that all reductions here follow: neighbouring blocks of 1, 2, 4, .. ranks.
    pub(crate) fn fold_all(&self, all: &[u8], unit: usize) -> Vec<u8> {
        let mut blocks: Vec<Vec<u8>> = if unit == 0 {
            vec![Vec::new()]
        } else {
            all.chunks(unit).map(<[u8]>::to_vec).collect()
        };
        while blocks.len() > 1 {
            let mut above = Vec::with_capacity(blocks.len().div_ceil(2));
            let mut rest = blocks.into_iter();
            while let Some(mut left) = rest.next() {
                if let Some(mut right) = rest.next() {
                    self.fold(&mut left, &mut right);
                }
                above.push(left);
            }
            blocks = above;
        }
        blocks.pop().unwrap_or_default()
    }
}

#[cold]
fn refuse(op: Op, operator: Option<Operator>, Site { call, location }: Site) -> ! {
    match operator {
        None => panic!(
            "{call} at {location}: {op:?} is defined for built-in types only; a struct needs a \
             user operation"
        ),
        Some(Operator { scalar, .. }) => panic!(
            "{call} at {location}: {op:?} is not defined for {scalar:?} (MPI-4.1 section 6.9.2)"
        ),
    }
}

fn call(
    function: Function<'_>,
    datatype: &OwnedDatatype,
    left: *mut u8,
    right: *mut u8,
    count: usize,
    site: Site,
) {
    let datatype = datatype.datatype_ref();
    let len = count as Count;
    let outcome = catch_unwind(AssertUnwindSafe(|| match function {
        Function::Predefined(_) => {}
        Function::Closure { function, .. } => {
            // SAFETY: both blocks hold `count` elements and belong to the caller.
            let (left, right) = unsafe {
                (
                    DynBuffer::from_raw(left, len, datatype),
                    DynBufferMut::from_raw(right, len, datatype),
                )
            };
            function(left, right);
        }
        Function::C { function, .. } => {
            let (mut len, mut raw): (i32, MPI_Datatype) = (len, datatype.as_raw());
            // SAFETY: as above; whoever made the operation promised that it does what one does.
            unsafe { function(left.cast(), right.cast(), &raw mut len, &raw mut raw) };
        }
    }));
    if let Err(payload) = outcome {
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "(no message)".to_owned());
        panic!(
            "{}: the user operation panicked on {count} elements: {text}",
            site
        );
    }
}
