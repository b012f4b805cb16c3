//! `exit`: a rank that exits with 0 has ended; with any other status it ends the job. And what lets several ranks of a
//! PE call `std::process::exit`, one after another.
//!
//! The standard library records the thread that has begun to exit, in a private static, and refuses
//! a second call on it. A rank that exits with 0 only ends itself, so that mark must be cleared.
//! Its address is found by an experiment, once, before the PEs are forked: one call of
//! `std::process::exit` on a separate coroutine, which our `exit` abandons, sets the mark, and the
//! one word of the program's data that has become this thread's mark is the one.
//!
//! If no thread can be created for the experiment, or it finds nothing, the first rank of a PE that
//! calls `std::process::exit(0)` ends normally; at the second one the standard library ends the job
//! by a panic that says that `exit` was called again.

use std::cell::Cell;
use std::ffi::c_int;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::mpsc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};
use vrt_load::of_program;

use crate::heap_word::in_rank;
use crate::posix::errno::of_process;
use crate::posix::interpose::real;
use crate::run::rank::exit_rank;
use crate::run::thread::is_rank as is_thread;
use crate::sys;

/// The address of the mark, or null if it was not found.
static MARK: AtomicPtr<AtomicUsize> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    /// The yielder of the experiment's coroutine while it runs.
    static EXPERIMENT: Cell<*const Yielder<(), ()>> = const { Cell::new(std::ptr::null()) };
}

/// Bytes of stack of the thread that holds stdout.
const HOLDER_STACK: usize = 256 << 10;
/// Programs with more writable data than this are not searched.
const MOST_DATA: usize = 256 << 20;

/// C `exit`. In a rank: status 0 ends the rank, any other ends the job with that status. In a world of
/// one it ends the process.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn exit(status: c_int) -> ! {
    abandon_experiment();
    if in_rank() && !is_thread() {
        clear();
        exit_rank(status);
    }
    // SAFETY: S4.
    unsafe { real!(c"exit", unsafe extern "C" fn(c_int) -> !)(status) }
}

/// Clears the mark, so that `std::process::exit` can be called again. Returns false if it is not known.
pub fn clear() -> bool {
    let mark = MARK.load(Ordering::Relaxed);
    if mark.is_null() {
        return false;
    }
    // SAFETY: `find` has set it: a word of the program's data, which only the standard library uses besides, atomically.
    unsafe { (*mark).store(0, Ordering::Release) };
    true
}

/// Whether `exit` was called by the experiment; then this does not return.
pub(crate) fn abandon_experiment() {
    let yielder = EXPERIMENT.replace(std::ptr::null());
    if !yielder.is_null() {
        // SAFETY: `exit_and_abandon` has set it, on the coroutine on which this runs.
        unsafe { (*yielder).suspend(()) };
        unreachable!("the experiment is never resumed");
    }
}

/// Finds the mark. Called in the supervisor before it forks.
///
/// # Safety
/// No other thread writes to the program's data meanwhile.
pub unsafe fn find() {
    let marks = [of_process().as_ptr() as usize, sys::pthread_self() as usize];
    let Some(before) = words_equal_to(marks) else { return };
    if !experiment(HOLDER_STACK) {
        return;
    }
    let Some(after) = words_equal_to(marks) else { return };
    let mut new = after.into_iter().filter(|word| !before.contains(word));
    if let (Some(mark), None) = (new.next(), new.next()) {
        MARK.store(mark as *mut AtomicUsize, Ordering::Relaxed);
        clear();
    }
}

/// Calls `std::process::exit` and abandons it; returns false if that was not possible. Another thread holds stdout
/// meanwhile, because the first exit would make it unbuffered permanently. That thread has ended, not only finished,
/// when this returns: a fork must not find it in the allocator, nor must a signal meant for the supervisor find it with
/// its signals unblocked.
fn experiment(holder_stack: usize) -> bool {
    std::thread::scope(|scope| {
        let (locked, is_locked) = mpsc::channel();
        let (release, is_released) = mpsc::channel::<()>();
        let hold = move || {
            let _stdout = std::io::stdout().lock();
            let _ = locked.send(());
            let _ = is_released.recv();
        };
        let builder = std::thread::Builder::new().stack_size(holder_stack);
        let Ok(holder) = builder.spawn_scoped(scope, hold) else { return false };
        let _ = is_locked.recv();
        let called = exit_and_abandon();
        drop(release);
        // The end of the scope alone waits for the closure, `join` for the thread.
        let _ = holder.join();
        called
    })
}

/// Whether our `exit` was reached.
fn exit_and_abandon() -> bool {
    let Ok(stack) = DefaultStack::new(256 << 10) else { return false };
    let mut coroutine = Coroutine::with_stack(stack, |yielder: &Yielder<(), ()>, ()| {
        EXPERIMENT.set(yielder);
        std::process::exit(0)
    });
    let _: corosensei::CoroutineResult<(), ()> = coroutine.resume(());
    // SAFETY: its frames are those of `process::exit`, which is not resumed: nothing in them is dropped.
    unsafe { coroutine.force_reset() };
    // Our `exit` has taken it.
    EXPERIMENT.replace(std::ptr::null()).is_null()
}

/// The addresses of the words in the program's writable data that have one of these values.
fn words_equal_to([first, second]: [usize; 2]) -> Option<Vec<usize>> {
    let mut found = Vec::with_capacity(16);
    for Range { start, end } in writable_segments()? {
        let mut at = start.next_multiple_of(size_of::<usize>()) as *const usize;
        // There are some 100,000 of them: that is quick in a debug build, too.
        while at.addr() < end {
            // SAFETY: an aligned word of a segment that the loader has mapped; its value is only compared.
            let word = unsafe { at.read_volatile() };
            if word == first || word == second {
                found.push(at.addr());
            }
            at = at.wrapping_add(1);
        }
    }
    Some(found)
}

/// The writable segments of the main program, or `None` if they are too large to search.
fn writable_segments() -> Option<Vec<Range<usize>>> {
    let is_writable = |header: &&libc::Elf64_Phdr| {
        header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0
    };
    let segments: Vec<_> = of_program(|program| {
        let writable = program.headers().iter().filter(is_writable);
        writable.map(|header| program.memory(header)).collect()
    })?;
    let size: usize = segments.iter().map(ExactSizeIterator::len).sum();
    (size <= MOST_DATA).then_some(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the mark only one rank per PE could call `std::process::exit`: if this test fails,
    /// check what has changed in the standard library (`std::sys::exit_guard`).
    #[test]
    fn the_mark_of_this_standard_library_is_found() {
        // SAFETY: other tests write no word like this thread's marks.
        unsafe { find() };
        assert!(clear(), "no word of the program's data, or several, became the thread's mark");
        for _ in 0..3 {
            assert!(experiment(HOLDER_STACK), "`exit` cannot be called again");
            clear();
        }
    }

    #[test]
    fn without_a_thread_nothing_happens() {
        assert!(!experiment(1 << 60));
    }
}
