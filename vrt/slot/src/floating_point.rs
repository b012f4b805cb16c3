//! The floating-point environment of a rank that runs an image: how it rounds, which exceptions trap, which
//! it has met (`fenv.h`). It is the processor's, so it is changed when ranks take turns.
//!
//! A PE has the usual one between its ranks. Only what differs is written: registers are read each time,
//! which takes a few cycles, and the x87 unit is not asked for more than two words of 16 bits.

/// An environment. Zeros are the usual one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FloatingPoint(Registers);

/// On x86_64, each as what it differs in from the usual one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Registers {
    #[cfg(target_arch = "x86_64")]
    sse: u32,
    #[cfg(target_arch = "x86_64")]
    x87_control: u16,
    #[cfg(target_arch = "x86_64")]
    x87_exceptions: u16,
    #[cfg(target_arch = "aarch64")]
    control: u64,
    #[cfg(target_arch = "aarch64")]
    status: u64,
}

#[cfg(target_arch = "x86_64")]
mod processor {
    use std::arch::asm;

    use super::{FloatingPoint, Registers};

    /// All exceptions masked, none met, to the nearest; the x87 unit with all its digits.
    const SSE: u32 = 0x1f80;
    const X87_CONTROL: u16 = 0x37f;
    /// The exceptions that have been met.
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
    fn sse() -> u32 {
        let mut value = 0u32;
        // SAFETY: writes the word.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags)) };
        value
    }

    #[inline(always)]
    fn set_sse(value: u32) {
        // SAFETY: reads the word, which is one that the processor gave, or the usual one.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags))
        };
    }

    #[inline(always)]
    fn x87() -> (u16, u16) {
        let (mut control, mut status) = (0u16, 0u16);
        // SAFETY: writes both words; neither waits for exceptions.
        unsafe {
            asm!(
                "fnstcw [{}]",
                "fnstsw [{}]",
                in(reg) &raw mut control,
                in(reg) &raw mut status,
                options(nostack, preserves_flags)
            );
        }
        (control, status & EXCEPTIONS)
    }

    #[cold]
    fn set_x87(control: u16, exceptions: u16) {
        let mut all = X87::default();
        let place = &raw mut all;
        // SAFETY: writes the environment, which masks all exceptions; reads it again with other words.
        unsafe {
            asm!("fnstenv [{}]", in(reg) place, options(nostack, preserves_flags));
            (*place).control = (*place).control & !0xffff | u32::from(control);
            (*place).status = (*place).status & !u32::from(EXCEPTIONS) | u32::from(exceptions);
            asm!("fldenv [{}]", in(reg) place, options(nostack, preserves_flags));
        }
    }

    impl FloatingPoint {
        /// The rank with this environment is about to run, on a processor with the usual one.
        #[inline(always)]
        pub(crate) fn enter(self) {
            let FloatingPoint(own) = self;
            if own.sse ^ SSE != sse() {
                set_sse(own.sse ^ SSE);
            }
            if own.x87_control != 0 || own.x87_exceptions != 0 {
                set_x87(own.x87_control ^ X87_CONTROL, own.x87_exceptions);
            }
        }

        /// The environment of the rank that has just run; the processor keeps it.
        #[inline(always)]
        pub(crate) fn now() -> FloatingPoint {
            let (sse, (x87_control, x87_exceptions)) = (sse(), x87());
            FloatingPoint(Registers {
                sse: sse ^ SSE,
                x87_control: x87_control ^ X87_CONTROL,
                x87_exceptions,
            })
        }

        /// The processor, which has this environment [`now`](Self::now), has the usual one then, but for
        /// exceptions that it has met.
        #[inline(always)]
        pub(crate) fn leave(self) {
            let FloatingPoint(own) = self;
            if own.sse & !u32::from(EXCEPTIONS) != 0 {
                set_sse(SSE);
            }
            if own.x87_control != 0 || own.x87_exceptions != 0 {
                set_x87(X87_CONTROL, 0);
            }
        }

        /// The rank with the environment `to` is about to run on a processor that has this one
        /// [`now`](Self::now).
        #[inline(always)]
        pub(crate) fn change(self, to: FloatingPoint) {
            let (FloatingPoint(from), FloatingPoint(to)) = (self, to);
            if from.sse != to.sse {
                set_sse(to.sse ^ SSE);
            }
            if (from.x87_control, from.x87_exceptions) != (to.x87_control, to.x87_exceptions) {
                set_x87(to.x87_control ^ X87_CONTROL, to.x87_exceptions);
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod processor {
    use std::arch::asm;

    use super::{FloatingPoint, Registers};

    #[inline(always)]
    fn registers() -> Registers {
        let (control, status);
        // SAFETY: only reads the registers.
        unsafe {
            asm!("mrs {}, fpcr", "mrs {}, fpsr", out(reg) control, out(reg) status,
                options(nomem, nostack, preserves_flags));
        }
        Registers { control, status }
    }

    #[cold]
    fn set(to: Registers) {
        // SAFETY: values that the processor gave, or the usual ones.
        unsafe {
            asm!("msr fpcr, {}", "msr fpsr, {}", in(reg) to.control, in(reg) to.status,
                options(nomem, nostack, preserves_flags));
        }
    }

    impl FloatingPoint {
        /// The rank with this environment is about to run, on a processor with the usual one.
        #[inline(always)]
        pub(crate) fn enter(self) {
            if self.0 != registers() {
                set(self.0);
            }
        }

        /// The environment of the rank that has just run; the processor keeps it.
        #[inline(always)]
        pub(crate) fn now() -> FloatingPoint {
            FloatingPoint(registers())
        }

        /// The processor, which has this environment [`now`](Self::now), has the usual one then, but for
        /// exceptions that it has met.
        #[inline(always)]
        pub(crate) fn leave(self) {
            if self.0.control != 0 {
                set(Registers::default());
            }
        }

        /// The rank with the environment `to` is about to run on a processor that has this one
        /// [`now`](Self::now).
        #[inline(always)]
        pub(crate) fn change(self, to: FloatingPoint) {
            if self.0 != to.0 {
                set(to.0);
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
        let usual = FloatingPoint::default();
        usual.enter();
        let (flush_to_zero, upward) = (0x8000u32 | 0x1f80, 0x0b7f_u16);
        // SAFETY: valid values of both registers.
        unsafe {
            asm!("ldmxcsr [{}]", "fldcw [{}]", in(reg) &raw const flush_to_zero, in(reg) &raw const upward);
        }
        let own = FloatingPoint::now();
        own.leave();
        assert_ne!(own, usual);
        assert_eq!(FloatingPoint::now(), usual, "the next one has the usual environment");
        own.enter();
        assert_eq!(FloatingPoint::now(), own);
        own.change(usual);
        assert_eq!(FloatingPoint::now(), usual);
        usual.change(own);
        assert_eq!(FloatingPoint::now(), own);
        own.leave();
        usual.enter();
        assert_eq!(FloatingPoint::now(), usual);
    }
}
