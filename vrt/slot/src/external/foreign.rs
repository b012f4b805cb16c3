//! What else is on the thread and in the process beside the ranks: other threads, which may wake a
//! rank that waits for a lock, and code that relies on the thread.

use std::cell::Cell;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use vrt_load::{LoadedObject, find_object};

use crate::{heap_word, sys};

/// Number of threads of this process that never wake a rank: the PE's own, and those of the runtime.
static KNOWN: AtomicU64 = AtomicU64::new(1);

/// This many more threads belong to the runtime.
pub fn expect_threads(more: u64) {
    KNOWN.fetch_add(more, Ordering::AcqRel);
}

/// Whether there are threads that could wake a rank. If the system does not report it, there are.
pub fn has_foreign_threads() -> bool {
    threads().is_none_or(|threads| threads > KNOWN.load(Ordering::Acquire))
}

/// The threads of this process.
pub fn threads() -> Option<u64> {
    let links = std::fs::metadata("/proc/self/task").ok()?.nlink();
    // A link for each thread, and two as every directory has.
    links.checked_sub(2).filter(|threads| *threads > 0)
}

/// Whether another thread of this process runs or is runnable. If the system does not report it, none is.
pub fn others_run() -> bool {
    let own = sys::gettid().to_string();
    heap_word::runtime_heap(|| {
        let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
        threads.flatten().filter(|thread| thread.file_name() != *own).any(|thread| {
            let status = std::fs::read(thread.path().join("stat")).unwrap_or_default();
            // The state follows the name, which is in parentheses and may have any characters.
            let name_end = status.iter().rposition(|byte| *byte == b')');
            let state = name_end.and_then(|end| status.get(end + 2));
            state.is_some_and(|state| b"RD".contains(state))
        })
    })
}

/// Whether an address lies in the calling thread's own thread-local storage.
pub fn is_thread_local(address: usize) -> bool {
    let is_there = |object: &LoadedObject| {
        object.thread_locals().filter(|(block, _)| block.contains(&address)).map(drop)
    };
    heap_word::runtime_heap(|| find_object(is_there)).is_some()
}

thread_local! {
    static PROBING: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic on this thread is the result of [`is_inside_tokio`], and must not be printed.
pub fn is_probing() -> bool {
    PROBING.get()
}

/// Whether the running rank is inside `block_on` of a tokio runtime. tokio reveals this only by refusing another
/// `block_on`.
pub fn is_inside_tokio() -> bool {
    heap_word::runtime_heap(|| {
        let Ok(handle) = tokio::runtime::Handle::try_current() else { return false };
        if cfg!(panic = "abort") {
            // The answer would be the end of the process.
            return false;
        }
        PROBING.set(true);
        let refused =
            catch_unwind(AssertUnwindSafe(|| handle.block_on(std::future::ready(())))).is_err();
        PROBING.set(false);
        refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted() {
        let before = threads().unwrap();
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || is_done.recv());
        // Other tests of this process start and end threads of their own meanwhile.
        assert!(before >= 1 && has_foreign_threads());
        drop(done);
        assert!(thread.join().unwrap().is_err());
    }

    #[test]
    fn threads_that_run_are_told_from_those_that_wait() {
        use std::sync::atomic::AtomicBool;
        let done = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| while !done.load(Ordering::Relaxed) {});
            while !others_run() {
                std::thread::yield_now();
            }
            done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn what_is_thread_local_is_known() {
        thread_local! {
            static HERE: Cell<u64> = const { Cell::new(7) };
        }
        static THERE: AtomicU64 = AtomicU64::new(7);
        let address = HERE.with(|here| std::ptr::from_ref(here) as usize);
        assert!(is_thread_local(address));
        assert!(!is_thread_local((&raw const THERE) as usize));
        assert!(!is_thread_local((&raw const *Box::new(7)) as usize));
        let of_another = std::thread::spawn(move || is_thread_local(address)).join().unwrap();
        assert!(!of_another, "it is this thread's");
    }

    #[test]
    fn tokio_is_noticed() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert!(!is_inside_tokio(), "no runtime");
        let entered = runtime.enter();
        assert!(!is_inside_tokio(), "entered only");
        drop(entered);
        assert!(runtime.block_on(async { is_inside_tokio() }));
        assert!(!is_inside_tokio(), "left again");
    }
}
