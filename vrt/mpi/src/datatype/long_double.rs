//! C's `long double` in the common representation of all systems: in `external32` it is an IEEE 754 binary128 number
//! (MPI-4.1 section 14.5.2). Both formats have a 15-bit exponent with the same bias; the x87 has 63 bits of the
//! fraction and stores the leading 1 explicitly, binary128 has 112 and does not store it.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "the parts of a number's bits are cut out of it"
    )
)]

/// Size of either in bytes.
pub(super) const LEN: usize = 16;

const EXPONENT: u16 = 0x7fff;
const SIGN: u16 = 0x8000;
/// The explicit leading 1.
const ONE: u64 = 1 << 63;
/// Fraction bits of binary128, and how many of these the x87 lacks.
const FRACTION_BITS: u32 = 112;
const LOST_BITS: u32 = FRACTION_BITS - 63;
/// A quiet NaN has the highest bit of its fraction set.
const QUIET: u64 = 1 << 62;

/// The bytes of binary128, most significant first, for a `long double` in memory.
pub(super) fn to_external(number: [u8; LEN]) -> [u8; LEN] {
    if cfg!(not(target_arch = "x86_64")) {
        // It is binary128 in memory.
        return u128::from_le_bytes(number).to_be_bytes();
    }
    let bits = u128::from_le_bytes(number);
    let (head, significand) = ((bits >> 64) as u16, bits as u64);
    let (sign, exponent) = (head & SIGN, head & EXPONENT);
    let (exponent, fraction) = match (exponent, significand & ONE != 0) {
        // Denormal; if its 1 is there all the same it is the number that the next exponent has.
        (0, false) => (0, significand),
        (0, true) => (1, significand & !ONE),
        (exponent, true) => (exponent, significand & !ONE),
        // Without it the processor knows no number.
        (_, false) => (EXPONENT, QUIET | significand),
    };
    let head = u128::from(sign | exponent) << FRACTION_BITS;
    (head | u128::from(fraction) << LOST_BITS).to_be_bytes()
}

/// A `long double` in memory, from the bytes of binary128, most significant first: rounded to nearest, ties to even.
/// The padding after its ten bytes is 0.
pub(super) fn from_external(bytes: [u8; LEN]) -> [u8; LEN] {
    if cfg!(not(target_arch = "x86_64")) {
        return u128::from_be_bytes(bytes).to_le_bytes();
    }
    let bits = u128::from_be_bytes(bytes);
    let head = (bits >> FRACTION_BITS) as u16;
    let (sign, mut exponent) = (head & SIGN, head & EXPONENT);
    let fraction = bits & ((1 << FRACTION_BITS) - 1);
    let (kept, lost) = ((fraction >> LOST_BITS) as u64, fraction & ((1 << LOST_BITS) - 1));
    let significand = match exponent {
        EXPONENT if fraction == 0 => ONE,
        EXPONENT => ONE | kept | if kept == 0 { QUIET } else { 0 },
        _ => {
            let half = 1 << (LOST_BITS - 1);
            let up = lost > half || (lost == half && kept & 1 != 0);
            let one = if exponent == 0 { 0 } else { ONE };
            let (rounded, over) = (one | kept).overflowing_add(u64::from(up));
            // The next power of two, or the least number that is not denormal.
            if over || (exponent == 0 && rounded & ONE != 0) {
                exponent += 1;
            }
            if over { ONE } else { rounded }
        }
    };
    (u128::from(sign | exponent) << 64 | u128::from(significand)).to_le_bytes()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    fn x87(head: u16, significand: u64) -> [u8; LEN] {
        (u128::from(head) << 64 | u128::from(significand)).to_le_bytes()
    }

    fn binary128(head: u16, fraction: u128) -> [u8; LEN] {
        (u128::from(head) << FRACTION_BITS | fraction).to_be_bytes()
    }

    #[test]
    fn numbers_are_the_same_outside_and_inside() {
        let third = 0x5555_5555_5555_5556_u128 << 48;
        for (inside, outside) in [
            (x87(0, 0), binary128(0, 0)),
            (x87(0x8000, 0), binary128(0x8000, 0)),
            (x87(0xbfff, 0xa << 60), binary128(0xbfff, 1 << 110)),
            (x87(0x3ffd, 0xaaaa_aaaa_aaaa_aaab), binary128(0x3ffd, third)),
            // The largest, the least normal one, the denormal ones around it.
            (x87(0x7ffe, u64::MAX), binary128(0x7ffe, ((1 << 63) - 1) << 49)),
            (x87(1, ONE), binary128(1, 0)),
            (x87(0, ONE - 1), binary128(0, ((1 << 63) - 1) << 49)),
            (x87(0, 1), binary128(0, 1 << 49)),
            // Infinity, NaN with what it says.
            (x87(0xffff, ONE), binary128(0xffff, 0)),
            (x87(0x7fff, ONE | QUIET | 5), binary128(0x7fff, 1 << 111 | 5 << 49)),
        ] {
            assert_eq!(to_external(inside), outside, "{inside:x?}");
            assert_eq!(from_external(outside), inside, "{outside:x?}");
        }
    }

    #[test]
    fn what_is_no_number_of_the_processor_is_none_outside() {
        for number in [x87(0x3fff, 1), x87(0x7fff, 0), x87(5, 0)] {
            let bits = u128::from_be_bytes(to_external(number));
            assert_eq!(bits >> FRACTION_BITS, 0x7fff);
            assert_ne!(bits << 16, 0);
        }
        // A denormal one with a 1 in front is a number.
        assert_eq!(to_external(x87(0, ONE | 3)), binary128(1, 3 << 49));
    }

    #[test]
    fn more_digits_than_there_are_are_rounded() {
        let half = 1u128 << 48;
        for (outside, inside) in [
            (binary128(0x3fff, half), x87(0x3fff, ONE)),
            (binary128(0x3fff, half + 1), x87(0x3fff, ONE | 1)),
            (binary128(0x3fff, (1 << 49) + half), x87(0x3fff, ONE | 2)),
            (binary128(0x3fff, (1 << 112) - 1), x87(0x4000, ONE)),
            (binary128(0x7ffe, (1 << 112) - 1), x87(0x7fff, ONE)),
            (binary128(0, (1 << 112) - 1), x87(1, ONE)),
            (binary128(0x8000, 1), x87(0x8000, 0)),
            // Still none where its digits do not fit.
            (binary128(0x7fff, 1), x87(0x7fff, ONE | QUIET)),
        ] {
            assert_eq!(from_external(outside), inside, "{outside:x?}");
        }
    }
}
