//! Arithmetic on C's `long double` where that is an x87 number (x86-64), which Rust has no type for.

use std::cmp::Ordering;
use std::ops::{Add, Mul, Sub};

/// Whether this processor has such numbers.
pub(super) const IS_KNOWN: bool = cfg!(target_arch = "x86_64");

/// A `long double`: ten bytes of a number, and six of nothing.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct F80([u8; 16]);

macro_rules! arithmetic {
    ($name:ident, $instruction:literal) => {
        fn $name(self, other: F80) -> F80 {
            let mut result = self;
            // SAFETY: reads and writes ten of the sixteen bytes of `result` and `other`; the x87 stack is as it was.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                std::arch::asm!(
                    "fld tbyte ptr [{left}]",
                    "fld tbyte ptr [{right}]",
                    $instruction,
                    "fstp tbyte ptr [{left}]",
                    left = in(reg) &raw mut result,
                    right = in(reg) &raw const other,
                    out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                    out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                    options(nostack)
                );
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = (&mut result, other);
            result
        }
    };
}

impl Add for F80 {
    type Output = F80;
    arithmetic!(add, "faddp st(1), st");
}

impl Sub for F80 {
    type Output = F80;
    arithmetic!(sub, "fsubp st(1), st");
}

impl Mul for F80 {
    type Output = F80;
    arithmetic!(mul, "fmulp st(1), st");
}

impl F80 {
    /// Whether it is not equal to itself.
    pub(super) fn is_nan(self) -> bool {
        self.partial_cmp(&self).is_none()
    }
}

impl PartialEq for F80 {
    fn eq(&self, other: &F80) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for F80 {
    fn partial_cmp(&self, other: &F80) -> Option<Ordering> {
        #[cfg(target_arch = "x86_64")]
        {
            let (above, below, unordered): (u8, u8, u8);
            // SAFETY: reads ten of the sixteen bytes of each number; the x87 stack is as it was.
            unsafe {
                std::arch::asm!(
                    "fld tbyte ptr [{right}]",
                    "fld tbyte ptr [{left}]",
                    "fucomip st, st(1)",
                    "setp {unordered}",
                    "seta {above}",
                    "setb {below}",
                    "fstp st(0)",
                    left = in(reg) &raw const *self,
                    right = in(reg) &raw const *other,
                    above = out(reg_byte) above,
                    below = out(reg_byte) below,
                    unordered = out(reg_byte) unordered,
                    out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                    out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                    options(nostack)
                );
            }
            match (unordered, above, below) {
                (1, ..) => None,
                (_, 1, _) => Some(Ordering::Greater),
                (_, _, 1) => Some(Ordering::Less),
                _ => Some(Ordering::Equal),
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = other;
            None
        }
    }
}

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests {
    use super::*;

    fn number(value: f64) -> F80 {
        let mut it = F80([0; 16]);
        // SAFETY: reads `value`, and writes ten of the sixteen bytes of `it`; the x87 stack is as it was.
        unsafe {
            std::arch::asm!(
                "fld qword ptr [{from}]", "fstp tbyte ptr [{to}]",
                from = in(reg) &raw const value, to = in(reg) &raw mut it, out("st(0)") _
            );
        }
        it
    }

    #[test]
    fn long_doubles_are_numbers() {
        assert!(number(0.5) + number(0.25) == number(0.75));
        assert!(number(0.5) - number(2.0) == number(-1.5));
        assert!(number(-3.0) * number(7.0) == number(-21.0));
        assert!(number(1.0) < number(2.0) && number(2.0) > number(-2.0));
        assert!(number(f64::NAN).is_nan() && !number(1.0).is_nan());
        // More digits than a `f64` has.
        let tiny = number(2f64.powi(-60));
        assert!((number(1.0) + tiny) - number(1.0) == tiny);
    }
}
