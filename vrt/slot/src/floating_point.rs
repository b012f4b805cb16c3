//! The floating-point environment of a rank that runs an image: rounding mode, trapping exceptions, and exception flags
//! (`fenv.h`). It is part of the processor's state, so it is switched with ranks.
//!
//! Between its ranks a PE has the default environment. Registers are saved to the slot whenever a rank stops, which
//! takes a few cycles; they are set only if they differ.

use std::cell::Cell;

/// An environment: the words of the processor's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct FloatingPoint {
    #[cfg(target_arch = "x86_64")]
    sse: u32,
    #[cfg(target_arch = "x86_64")]
    x87_control: u16,
    /// Only its exception flags belong to the environment.
    #[cfg(target_arch = "x86_64")]
    x87_status: u16,
    #[cfg(target_arch = "aarch64")]
    control: u64,
    #[cfg(target_arch = "aarch64")]
    status: u64,
}

#[cfg(target_arch = "x86_64")]
mod processor {
    use std::arch::asm;

    use super::{Cell, FloatingPoint};

    /// The exception flags.
    const EXCEPTIONS: u16 = 0x3f;

    /// The x87 unit's environment, as `fnstenv` writes it.
    #[repr(C)]
    #[derive(Default)]
    struct X87 {
        control: u32,
        status: u32,
        others: [u32; 5],
    }

    #[inline(always)]
    fn set_sse(value: u32) {
        // SAFETY: a word that `keep` has read from the register, or `USUAL`'s: neither has a reserved bit.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags))
        };
    }

    #[cold]
    fn set_x87(control: u16, status: u16) {
        let mut all = X87::default();
        let place = &raw mut all;
        // SAFETY: `all` is as long as `fnstenv` writes; what is loaded is that, with words that `keep` has read.
        unsafe {
            asm!("fnstenv [{}]", in(reg) place, options(nostack, preserves_flags));
            (*place).control = (*place).control & !0xffff | u32::from(control);
            (*place).status =
                (*place).status & !u32::from(EXCEPTIONS) | u32::from(status & EXCEPTIONS);
            asm!("fldenv [{}]", in(reg) place, options(nostack, preserves_flags));
        }
    }

    impl FloatingPoint {
        /// All exceptions masked, no flags set, round to nearest; the x87 unit with full precision.
        pub(crate) const USUAL: FloatingPoint =
            FloatingPoint { sse: 0x1f80, x87_control: 0x37f, x87_status: 0 };

        /// Saves the environment of the rank that has just run; the processor still has it.
        #[inline(always)]
        pub(crate) fn keep(place: &Cell<FloatingPoint>) {
            let place = place.as_ptr();
            // SAFETY: each word of the cell is as long as what is stored there. None of these waits for exceptions.
            unsafe {
                asm!(
                    "stmxcsr [{sse}]",
                    "fnstcw [{control}]",
                    "fnstsw [{status}]",
                    sse = in(reg) &raw mut (*place).sse,
                    control = in(reg) &raw mut (*place).x87_control,
                    status = in(reg) &raw mut (*place).x87_status,
                    options(nostack, preserves_flags)
                );
            }
        }

        /// Replaces this environment, which the processor has, by `to`.
        #[inline(always)]
        pub(crate) fn change(&self, to: &FloatingPoint) {
            if self.sse != to.sse {
                set_sse(to.sse);
            }
            self.change_x87(to);
        }

        #[inline(always)]
        fn change_x87(&self, to: &FloatingPoint) {
            let exceptions = (self.x87_status ^ to.x87_status) & EXCEPTIONS;
            if self.x87_control != to.x87_control || exceptions != 0 {
                set_x87(to.x87_control, to.x87_status);
            }
        }

        /// Gives the processor, which has this environment, the default one. Exception flags of the SSE unit, which are
        /// set in nearly all programs, are kept.
        #[inline(always)]
        pub(crate) fn leave(&self) {
            if (self.sse ^ Self::USUAL.sse) & !u32::from(EXCEPTIONS) != 0 {
                set_sse(Self::USUAL.sse);
            }
            self.change_x87(&Self::USUAL);
        }

        /// Gives the processor this environment after another one was [left](Self::leave).
        #[inline(always)]
        pub(crate) fn enter(&self) {
            let mut sse = 0u32;
            // SAFETY: `stmxcsr` writes the four bytes of `sse`.
            unsafe {
                asm!("stmxcsr [{}]", in(reg) &raw mut sse, options(nostack, preserves_flags));
            }
            if sse != self.sse {
                set_sse(self.sse);
            }
            Self::USUAL.change_x87(self);
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod processor {
    use std::arch::asm;

    use super::{Cell, FloatingPoint};

    impl FloatingPoint {
        /// No exception traps, no flags set; round to nearest.
        pub(crate) const USUAL: FloatingPoint = FloatingPoint { control: 0, status: 0 };

        /// Saves the environment of the rank that has just run; the processor still has it.
        #[inline(always)]
        pub(crate) fn keep(place: &Cell<FloatingPoint>) {
            let (control, status);
            // SAFETY: only reads the two registers.
            unsafe {
                asm!("mrs {}, fpcr", "mrs {}, fpsr", out(reg) control, out(reg) status,
                    options(nomem, nostack, preserves_flags));
            }
            place.set(FloatingPoint { control, status });
        }

        /// Gives the processor, which has this environment, the default one.
        #[inline(always)]
        pub(crate) fn leave(&self) {
            self.change(&Self::USUAL);
        }

        /// Gives the processor this environment after another one was [left](Self::leave).
        #[inline(always)]
        pub(crate) fn enter(&self) {
            Self::USUAL.change(self);
        }

        /// Replaces this environment, which the processor has, by `to`.
        #[inline(always)]
        pub(crate) fn change(&self, to: &FloatingPoint) {
            if self == to {
                return;
            }
            // SAFETY: values that `keep` has read from the registers, or `USUAL`'s.
            unsafe {
                asm!("msr fpcr, {}", "msr fpsr, {}", in(reg) to.control, in(reg) to.status,
                    options(nomem, nostack, preserves_flags));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn what_a_rank_has_set_is_there_when_it_runs_again() {
        use std::arch::asm;
        fn now() -> FloatingPoint {
            let now = Cell::new(FloatingPoint::USUAL);
            FloatingPoint::keep(&now);
            let now = now.get();
            FloatingPoint { x87_status: now.x87_status & 0x3f, ..now }
        }
        let usual = FloatingPoint::USUAL;
        now().change(&usual);
        let (flush_to_zero, upward) = (0x8000u32 | 0x1f80, 0x0b7f_u16);
        // SAFETY: both words mask all exceptions, and have no reserved bit; the x87 stack is left empty.
        unsafe {
            asm!(
                "ldmxcsr [{}]", "fldcw [{}]", "fld1", "fld1", "fld1", "faddp", "fld1", "faddp",
                "fdivp", "fstp st(0)", in(reg) &raw const flush_to_zero, in(reg) &raw const upward
            );
        }
        let own = now();
        assert!(own.sse == flush_to_zero && own.x87_control == upward && own.x87_status != 0);
        own.leave();
        assert_eq!(now(), usual, "the next one has the usual environment");
        own.enter();
        assert_eq!(now(), own);
        own.change(&usual);
        assert_eq!(now(), usual);
        usual.change(&own);
        assert_eq!(now(), own);
        own.change(&usual);
        assert_eq!(now(), usual);
    }
}
