//! Finds statics that the program locks, in its machine code.
//!
//! A guard contains the address of its lock. The compiler knows that of a static, though: an optimised program
//! writes it into the instructions that lock and unlock, relative to their position, and has no word of it on the stack
//! while a rank holds the guard. So locks are found by their uses:
//!
//! | what the program does | instruction | bytes |
//! |---|---|---|
//! | it takes the lock, if it is free | `lock cmpxchg %r32, disp32(%rip)` | `F0`, optionally `40`-`47`, `0F B1`, modrm, disp32 |
//! | it passes the lock's address to a function that waits, or wakes waiters | `lea disp32(%rip), %r64` | `48` or `4C`, `8D`, modrm, disp32 |
//!
//! A static that only one of the two refers to is another atomic variable, or none. Bytes in the middle of other
//! instructions may look the same, but hardly ever twice, with the address of the same static. A 32-bit atomic variable
//! that is used in both ways is taken for a lock; ranks are pinned while its lower bits are not 0.
//!
//! Locks of `parking_lot` are a byte or 64 bits long, like many other variables. But code that waits for one, or wakes
//! waiters, calls a function named in the symbol table, with the lock's address as its first argument:
//!
//! | instruction | bytes |
//! |---|---|
//! | `lea disp32(%rip), %rdi` | `48 8D 3D`, disp32 |
//! | within a few bytes `call rel32` | `E8`, rel32 |

use super::words::Range;

/// Whether the locking code of this architecture's programs is known.
pub(super) const IS_KNOWN: bool = cfg!(target_arch = "x86_64");

/// The words in some ranges that code, given with its addresses, both compares and exchanges and takes the address of;
/// sorted.
pub(super) fn locks(code: &[(usize, &[u8])], statics: &[Range]) -> Vec<usize> {
    let is_word = |at: usize| {
        at.is_multiple_of(align_of::<u32>())
            && statics.iter().any(|(start, end)| (*start..*end).contains(&at))
    };
    let mut exchanged: Vec<usize> =
        code.iter().flat_map(|(at, code)| exchanged(*at, code)).filter(|at| is_word(*at)).collect();
    exchanged.sort_unstable();
    exchanged.dedup();
    let (Some(&first), Some(&last)) = (exchanged.first(), exchanged.last()) else {
        return exchanged;
    };
    let mut is_given = vec![false; exchanged.len()];
    for at in code.iter().flat_map(|(at, code)| addressed(*at, code)) {
        if (first..=last).contains(&at)
            && let Ok(number) = exchanged.binary_search(&at)
        {
            is_given[number] = true;
        }
    }
    let both = exchanged.iter().zip(is_given).filter(|(_, is_given)| *is_given);
    both.map(|(at, _)| *at).collect()
}

/// The greatest distance between an argument and its call, in bytes.
const ARGUMENTS: usize = 32;

/// The addresses in some ranges that code, given with its addresses, passes to functions as their first argument, with
/// the data about the function: `functions` contains their addresses, sorted.
pub(super) fn arguments<T: Copy>(
    code: &[(usize, &[u8])],
    functions: &[(usize, T)],
    statics: &[Range],
) -> Vec<(usize, T)> {
    let mut found = Vec::new();
    let (Some((first, _)), Some((last, _))) = (functions.first(), functions.last()) else {
        return found;
    };
    for (at, code) in code {
        for call in places(0xE8, code) {
            let Some(distance) = code[call + 1..].first_chunk() else { continue };
            let next = at + call + 5;
            let function = next.wrapping_add_signed(i32::from_le_bytes(*distance) as isize);
            if !(first..=last).contains(&&function) {
                continue;
            }
            let Ok(number) = functions.binary_search_by_key(&function, |(at, _)| *at) else {
                continue;
            };
            let before = &code[call.saturating_sub(ARGUMENTS)..call];
            let argument = before.windows(3).rposition(|bytes| bytes == [0x48, 0x8D, 0x3D]);
            let argument = argument.and_then(|lea| target(&before[lea + 2..], at + call));
            if let Some(argument) = argument
                && statics.iter().any(|(start, end)| (*start..*end).contains(&argument))
            {
                found.push((argument, functions[number].1));
            }
        }
    }
    found.sort_unstable_by_key(|(at, _)| *at);
    found.dedup_by_key(|(at, _)| *at);
    found
}

/// The positions of the 32-bit words that are compared and exchanged.
fn exchanged(at: usize, code: &[u8]) -> impl Iterator<Item = usize> {
    places(0xF0, code).filter_map(move |prefix| {
        let ([0x40..=0x47, 0x0F, 0xB1, operand @ ..] | [0x0F, 0xB1, operand @ ..]) =
            &code[prefix + 1..]
        else {
            return None;
        };
        target(operand, at + code.len())
    })
}

/// The addresses that are put into registers.
fn addressed(at: usize, code: &[u8]) -> impl Iterator<Item = usize> {
    places(0x8D, code).filter_map(move |opcode| {
        let before = code[..opcode].last()?;
        matches!(before, 0x48 | 0x4C).then(|| target(&code[opcode + 1..], at + code.len()))?
    })
}

/// The positions of a byte. The system's function is fast in a debug build, too.
fn places(byte: u8, code: &[u8]) -> impl Iterator<Item = usize> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = &code[from..];
        // SAFETY: `memchr` reads as many bytes as `rest` has.
        let found = unsafe { libc::memchr(rest.as_ptr().cast(), i32::from(byte), rest.len()) };
        let at = (!found.is_null()).then(|| found.addr() - code.as_ptr().addr())?;
        from = at + 1;
        Some(at)
    })
}

/// The target address of an operand at the beginning of the rest of some code that ends at `end`, if it is relative to
/// the next instruction.
fn target(operand: &[u8], end: usize) -> Option<usize> {
    let (modrm, rest) = operand.split_first()?;
    let (distance, rest) = rest.split_first_chunk()?;
    let next = end - rest.len();
    let is_relative = modrm & 0xC7 == 0x05;
    is_relative.then(|| next.wrapping_add_signed(i32::from_le_bytes(*distance) as isize))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The addresses of the test's code and statics.
    const CODE: usize = 0x1000;
    const STATICS: [Range; 2] = [(0x4000, 0x4100), (0x5000, 0x5100)];

    const EXCHANGE: [&[u8]; 2] = [&[0xF0, 0x0F, 0xB1, 0x0D], &[0xF0, 0x44, 0x0F, 0xB1, 0x05]];
    const EXCHANGE_LONG: &[u8] = &[0xF0, 0x48, 0x0F, 0xB1, 0x0D];
    const EXCHANGE_AT_REGISTER: &[u8] = &[0xF0, 0x0F, 0xB1, 0x8F];
    const ADDRESS: [&[u8]; 2] = [&[0x48, 0x8D, 0x3D], &[0x4C, 0x8D, 0x35]];
    const ADDRESS_SHORT: &[u8] = &[0x8D, 0x3D];
    const NONE: [usize; 0] = [];

    /// Code with these instructions, each with its target.
    fn assembled(instructions: &[(&[u8], usize)]) -> Vec<u8> {
        let mut code = vec![0x90];
        for (instruction, target) in instructions {
            code.extend_from_slice(instruction);
            let next = CODE + code.len() + size_of::<i32>();
            code.extend_from_slice(&(*target as i32 - next as i32).to_le_bytes());
            code.push(0xC3);
        }
        code
    }

    fn found(instructions: &[(&[u8], usize)]) -> Vec<usize> {
        locks(&[(CODE, &assembled(instructions))], &STATICS)
    }

    #[test]
    fn a_lock_is_exchanged_and_given_to_a_function() {
        let code = [
            (ADDRESS[0], 0x5010),
            (EXCHANGE[0], 0x4008),
            (ADDRESS[1], 0x4008),
            (EXCHANGE[1], 0x5010),
            (EXCHANGE[0], 0x4008),
        ];
        assert_eq!(found(&code), [0x4008, 0x5010]);
    }

    #[test]
    fn it_may_be_in_several_segments() {
        let (first, second) =
            (assembled(&[(EXCHANGE[0], 0x4008)]), assembled(&[(ADDRESS[0], 0x4008)]));
        assert_eq!(locks(&[(CODE, &first), (CODE, &second)], &STATICS), [0x4008]);
    }

    #[test]
    fn what_is_only_exchanged_or_only_given_is_no_lock() {
        assert_eq!(found(&[(EXCHANGE[0], 0x4008), (ADDRESS[0], 0x4010)]), NONE);
        assert_eq!(found(&[(ADDRESS[0], 0x4008)]), NONE);
    }

    #[test]
    fn what_is_not_aligned_or_no_static_is_no_lock() {
        for at in [0x400A, 0x3FFC, 0x4100, 0x5100, 0x6000] {
            assert_eq!(found(&[(EXCHANGE[0], at), (ADDRESS[0], at)]), NONE, "{at:#x}");
        }
    }

    #[test]
    fn other_instructions_are_not_taken_for_these() {
        for exchange in [EXCHANGE_LONG, EXCHANGE_AT_REGISTER] {
            assert_eq!(found(&[(exchange, 0x4008), (ADDRESS[0], 0x4008)]), NONE, "{exchange:x?}");
        }
        assert_eq!(found(&[(EXCHANGE[0], 0x4008), (ADDRESS_SHORT, 0x4008)]), NONE);
    }

    /// Arguments of two functions, one of which is called.
    #[test]
    fn what_is_given_to_a_function_is_found() {
        let functions = [(0x1800, 'm'), (0x1900, 'r')];
        let call: &[u8] = &[0x31, 0xF6, 0xE8];
        let jump: &[u8] = &[0xE9];
        let given = |instructions: &[(&[u8], usize)]| {
            arguments(&[(CODE, &assembled(instructions))], &functions, &STATICS)
        };
        let first = ADDRESS[0];
        assert_eq!(given(&[(first, 0x4001), (call, 0x1800)]), [(0x4001, 'm')]);
        assert_eq!(
            given(&[(first, 0x5010), (call, 0x1900), (first, 0x4001), (call, 0x1800)]),
            [(0x4001, 'm'), (0x5010, 'r')]
        );
        let none = [
            ([(ADDRESS[1], 0x4001), (call, 0x1800)], "another argument"),
            ([(first, 0x4001), (call, 0x1880)], "another function"),
            ([(first, 0x4001), (jump, 0x1800)], "another instruction"),
            ([(first, 0x6000), (call, 0x1800)], "no static"),
        ];
        for (instructions, what) in none {
            assert_eq!(given(&instructions), [], "{what}");
        }
    }

    #[test]
    fn code_may_end_anywhere() {
        let code = assembled(&[(ADDRESS[0], 0x4008), (EXCHANGE[1], 0x4008)]);
        // The last byte is another instruction.
        for end in 0..code.len() {
            let is_whole = end == code.len() - 1;
            assert_eq!(
                locks(&[(CODE, &code[..end])], &STATICS).len(),
                usize::from(is_whole),
                "{end}"
            );
        }
    }
}
