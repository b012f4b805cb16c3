//! Room right below the thread pointer that nothing of the process uses.
//!
//! The code of an ordinary program contains the distances of its thread-locals from the thread pointer in its
//! instructions, and the linker counts them from there downwards. If a process loads such programs, its own program
//! must leave that room free in all of its threads. It does so if the last of its own thread-locals is a large one that
//! is never used: then that one lies right below the thread pointer.
//!
//! This file defines it. Linkers put it last because of the name of its section:
//!
//! * GNU ld has a special rule for `.tcommon`, which comes after all other thread-locals.
//! * Others (rustc uses lld) make an output section for each unknown name, and order sections of the same kind as they
//!   first occur. As this file has an empty place in `.tbss`, too, that section occurs first.
//!
//! Both sections are kept where [`thread_reserve`] is linked, which refers to them. It measures
//! where the reserve really is, so that a linker with another order is detected. A program only
//! needs to call it: no build script, no linker arguments. The function must be in the program
//! itself, not in a shared library.

/// Bytes of the reserve.
const RESERVE: usize = 64 << 10;

/// The reserve is not in its required place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReserveError {
    /// Something else lies between the reserve and the thread pointer.
    #[error(
        "the {RESERVE} bytes that are to be free right below the thread pointer end {distance} \
         bytes too early in the program's thread-locals: link with GNU ld (-C link-arg=-fuse-ld=bfd) or \
         lld (-C link-arg=-fuse-ld=lld)"
    )]
    NotLast {
        /// Bytes of thread-locals after the reserve.
        distance: usize,
    },
    /// The reserve is in the thread-locals of a library.
    #[error(
        "the {RESERVE} bytes that are to be free right below the thread pointer are not in the \
         program's thread-locals: link this library statically into the program"
    )]
    NotInProgram,
    /// This processor has no reserve.
    #[error(
        "programs can be loaded on x86_64 alone, and only there is room below the thread pointer"
    )]
    UnsupportedArchitecture,
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".p2align 3",
    ".globl vrt_load_anchor",
    ".hidden vrt_load_anchor",
    "vrt_load_anchor:",
    ".zero 8",
    ".popsection",
    ".pushsection .tcommon,\"awT\",@nobits",
    ".p2align 6",
    ".globl vrt_load_reserve",
    ".hidden vrt_load_reserve",
    "vrt_load_reserve:",
    ".zero {reserve}",
    ".popsection",
    reserve = const RESERVE,
);

/// The distance of the reserve's beginning from the thread pointer.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn offset() -> usize {
    let (reserve, _anchor): (usize, usize);
    // SAFETY: reads two words of the program's table, which hold distances from the thread pointer.
    unsafe {
        std::arch::asm!(
            "mov {reserve}, qword ptr [rip + vrt_load_reserve@gottpoff]",
            "mov {anchor}, qword ptr [rip + vrt_load_anchor@gottpoff]",
            reserve = out(reg) reserve,
            anchor = out(reg) _anchor,
            options(nostack, pure, readonly)
        )
    }
    reserve
}

/// The number of bytes right below the thread pointer that are free in all threads of this process,
/// for [`Options::thread_reserve`](crate::Options::thread_reserve).
///
/// # Errors
/// The linker put other thread-locals of the program there.
#[cfg(target_arch = "x86_64")]
pub fn thread_reserve() -> Result<usize, ReserveError> {
    use crate::objects::of_program;

    let pointer = crate::thread_pointer::get();
    let start = pointer.wrapping_add(offset());
    let program = of_program(|program| Some(program.thread_locals()?.0)).flatten();
    let program = program.ok_or(ReserveError::NotInProgram)?;
    if !program.contains(&start) {
        return Err(ReserveError::NotInProgram);
    }
    match program.end - (start + RESERVE) {
        0 => Ok((pointer - start) & !63),
        distance => Err(ReserveError::NotLast { distance }),
    }
}

/// The number of free bytes right below the thread pointer: none on this processor.
///
/// # Errors
/// Always.
#[cfg(not(target_arch = "x86_64"))]
pub fn thread_reserve() -> Result<usize, ReserveError> {
    Err(ReserveError::UnsupportedArchitecture)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_a_reserve_in_every_thread() {
        assert_eq!(thread_reserve(), Ok(RESERVE));
        assert_eq!(std::thread::spawn(thread_reserve).join().unwrap(), Ok(RESERVE));
    }
}
