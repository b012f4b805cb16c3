//! Ranks of the runtime's own process with their own thread-locals.
//!
//! Such a rank has an [image] without a program: a thread block, by which the process's own code finds thread-locals.
//! It contains the rank's: those of the program, of the standard library and of most crates, which begin as in a new
//! thread, move with the rank, and are destroyed when its program has ended. Those that identify the PE's thread remain
//! the PE's, as copies: the runtime's thread-locals, tokio's, and those of C code and of shared libraries, whose
//! purpose is unknown.
//!
//! So a rank is a thread to the standard library and to locks: channels between ranks of a PE work, and the rank that
//! has locked something unlocks it.
//!
//! ```text
//! PE's thread pointer -- begin --> the rank's: program, then destructors -- end --> the PE's: its loop goes on
//! ```
//!
//! Values given to other ranks, keys of `pthread_setspecific`, and functions called by the PE itself (operations of
//! reductions, serialization of a state) do not see them.

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use vrt_load::LoadError;
use vrt_load::Plan;

use crate::posix::interpose;
use crate::run::{gone_locals, image_switch, locals, outcome};
use crate::runtime::Program;
use crate::{image, report};

/// Gives each rank of the process its own thread-locals; to be called before an arena is reserved.
///
/// # Errors
/// The owner of the thread-locals cannot be determined; or this processor is not supported.
pub fn install() -> Result<(), LoadError> {
    image::install(Box::leak(Box::new(Plan::of_thread_locals(&is_of_rank)?)));
    Ok(())
}

/// Crates whose thread-locals belong to the PE.
const OF_PE: &[&str] = &["vrt", "tokio", "mio"];

/// Whether the thread-local with this symbol belongs to a rank.
fn is_of_rank(symbol: &str) -> bool {
    let Ok(name) = rustc_demangle::try_demangle(symbol) else { return false };
    let name = format!("{name:#}");
    // A name may begin with a type in brackets.
    let path = name.trim_start_matches(['<', '&', '*', '(', '[', '_']);
    let name = path.split("::").next().unwrap_or_default();
    !(name.starts_with("vrt_") || OF_PE.contains(&name))
}

/// Runs a rank's program with the rank's thread-locals. Returns its status.
///
/// Never inlined, and neither are its parts: between them the thread pointer changes.
#[inline(never)]
pub(crate) fn run(program: Program) -> i32 {
    // SAFETY: `coroutine::begin` alone calls this, once: the rank has no image yet. No thread-local is used here.
    if unsafe { image_switch::begin() }.is_none() {
        return report::STATUS_RUNTIME;
    }
    let outcome = run_inside(program);
    // SAFETY: the program has ended, and no thread-local is used here.
    unsafe { image_switch::end() };
    outcome::status_of(outcome)
}

#[inline(never)]
fn run_inside(program: Program) -> Result<i32, Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(|| {
        let status = program();
        while let Some((destructor, object)) = locals::take_at_end() {
            // SAFETY: it may be called now, says the caller of `at_end`.
            unsafe { destructor(object) };
        }
        // SAFETY: the program has ended.
        unsafe { locals::end() };
        status
    }))
}

/// `__cxa_thread_atexit_impl`: the destructor of a rank's own thread-local is called when the rank's program has ended,
/// not when the PE's thread ends.
///
/// # Safety
/// As in C: the destructor may be called once with the object, when its thread ends.
pub(crate) unsafe fn destroys_thread_local(
    destructor: unsafe extern "C" fn(*mut c_void),
    object: *mut c_void,
    real: impl FnOnce() -> c_int,
) -> c_int {
    if image::has_own_thread_locals() && image::is_in_own_locals(object as usize) {
        // SAFETY: to a rank the end of its program is that of its thread.
        unsafe { locals::at_end(destructor, object) };
        return 0;
    }
    // SAFETY: the caller's promise; if it is taken, libc is not told.
    if unsafe { gone_locals::is_taken(destructor, object) } {
        return 0;
    }
    interpose::process_wide(real)
}

#[cfg(test)]
mod tests {
    use super::is_of_rank;

    #[test]
    fn thread_locals_are_told_apart_by_their_crates() {
        let of_rank = [
            "_ZN4rand4rngs6thread14THREAD_RNG_KEY29_$u7b$$u7b$constant$u7d$$u7d$28_$u7b$$u7b$closure$u7d$$u7d$3VAL17h0123456789abcdefE",
            "_ZN3std4sync4mpmc7context7Context4with7CONTEXT3VAL17h0123456789abcdefE",
            "_ZN7program7SCRATCH3VAL17h0123456789abcdefE",
            "_ZN3std6thread7current7CURRENT17h0123456789abcdefE",
            "_ZN9vrtically7SCRATCH3VAL17h0123456789abcdefE",
        ];
        let of_pe = [
            "_ZN8vrt_core2pe7CURRENT3VAL17h0123456789abcdefE",
            "_ZN3vrt3ffi4HELD3VAL17h0123456789abcdefE",
            "_ZN5tokio7runtime7context7CONTEXT3VAL17h0123456789abcdefE",
            "_mi_heap_default",
        ];
        for symbol in of_rank {
            assert!(is_of_rank(symbol), "{symbol}");
        }
        for symbol in of_pe {
            assert!(!is_of_rank(symbol), "{symbol}");
        }
    }
}
