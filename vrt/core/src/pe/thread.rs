//! The thread of a PE: who may use the PE's state, and when.
//!
//! [`with`] is for ranks, [`with_in_loop`] for the loop, [`while_stopped`] before and after it; none of them inside
//! another.

use std::cell::Cell;

use crate::net::receivers::Receivers;
use crate::pe::about::{ABOUT, About, RAN_LAST};
use crate::pe::core::Engine;
use crate::pe::inject::Injector;
use vrt_slot::{SlotHeader, hooks, outside};

thread_local! {
    pub(super) static PE: Cell<*mut Pe> = const { Cell::new(std::ptr::null_mut()) };
    /// The loop has called tokio.
    pub(super) static OUTSIDE: Cell<bool> = const { Cell::new(false) };
    /// The loop runs.
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

#[cfg(debug_assertions)]
thread_local! {
    /// The loop has the PE's state.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// A PE and its ends of the rings.
pub struct Pe {
    /// Everything except the receiving ends, so that handlers can use it while a ring is read.
    pub engine: Engine,
    /// Of the PEs that have sent something.
    pub(super) receivers: Receivers,
}

impl Pe {
    /// Makes this the PE of the calling thread until the guard is dropped, and the PE with it.
    ///
    /// # Panics
    /// If the thread has a PE.
    pub fn enter(self: Box<Pe>) -> Entered {
        assert!(ABOUT.get().is_none(), "this thread runs ranks already");
        let about = About { pool: self.engine.pool, id: self.engine.id };
        // SAFETY: a PE is made once, by who says that nobody else has its slots, and enters one thread.
        unsafe { hooks::set_pe_of_thread(self.engine.uid) };
        self.engine.locks.begin();
        ABOUT.set(Some(about));
        RAN_LAST.set(self.engine.current);
        let pe = Box::into_raw(self);
        PE.set(pe);
        Entered(pe)
    }
}

impl Drop for Pe {
    fn drop(&mut self) {
        Injector::unregister(self.engine.uid);
        self.engine.locks.end(self.engine.uid);
    }
}

/// While it lives, [`with`] works on this thread.
pub struct Entered(*mut Pe);

impl Drop for Entered {
    fn drop(&mut self) {
        PE.set(std::ptr::null_mut());
        ABOUT.set(None);
        // SAFETY: of none any more.
        unsafe { hooks::set_pe_of_thread(0) };
        // SAFETY: `enter` made the pointer of a box, and nobody finds it any more.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Runs `f` on the PE of the running rank, on the process's heap. `f` cannot suspend.
///
/// # Panics
/// If no rank runs on this thread, or inside another `with`.
#[inline(always)]
pub fn with<R>(f: impl FnOnce(&mut Pe) -> R) -> R {
    let result = enter(f);
    vrt_slot::check::wipe_below();
    result
}

/// Never inlined: pointers into the PE stay in its frame, which is gone when the rank suspends,
/// instead of in a forgotten corner of a frame that goes with the rank.
#[inline(never)]
fn enter<R>(f: impl FnOnce(&mut Pe) -> R) -> R {
    struct Leave(*mut SlotHeader);
    impl Drop for Leave {
        #[inline(always)]
        fn drop(&mut self) {
            // SAFETY: it was in use before, and its rank still runs.
            unsafe { hooks::use_heap(self.0) };
        }
    }
    // SAFETY: the process's heap.
    let slot = unsafe { hooks::use_heap(std::ptr::null_mut()) };
    if slot.is_null() {
        refuse_to_enter();
    }
    let _leave = Leave(slot);
    // SAFETY: a rank's heap was in use, so a rank runs on this thread and `PE` is its PE; while
    // `f` runs the process's heap is in use, so nobody enters a second time.
    f(unsafe { &mut *PE.get() })
}

/// [`with`] for the loop of the PE, which runs on the process's heap and outside of any rank; not inside itself.
///
/// # Panics
/// When the thread is no PE's.
#[inline(always)]
pub(crate) fn with_in_loop<R>(f: impl FnOnce(&mut Pe) -> R) -> R {
    debug_assert!(hooks::heap_in_use().is_null());
    let pe = PE.get();
    if pe.is_null() {
        refuse_to_enter();
    }
    #[cfg(debug_assertions)]
    let _inside = Inside::begin();
    // SAFETY: the pointer was set by `enter` on this thread and is cleared before the PE goes. No
    // rank runs, and the loop, which is of this crate, does not call this inside itself.
    f(unsafe { &mut *pe })
}

/// The loop has the PE's state while it lives.
#[cfg(debug_assertions)]
struct Inside;

#[cfg(debug_assertions)]
impl Inside {
    fn begin() -> Inside {
        assert!(!INSIDE.replace(true), "the PE's state is in use");
        Inside
    }
}

#[cfg(debug_assertions)]
impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Runs `f` on the PE of this thread while its loop does not run: before it, or after it.
///
/// # Panics
/// If the thread has no PE, a rank or the loop runs on it, or inside itself.
pub fn while_stopped<R>(f: impl FnOnce(&mut Pe) -> R) -> R {
    struct GiveBack(*mut Pe);
    impl Drop for GiveBack {
        fn drop(&mut self) {
            PE.set(self.0);
        }
    }
    assert!(hooks::heap_in_use().is_null() && !RUNS.get(), "the PE of this thread is running");
    let pe = PE.replace(std::ptr::null_mut());
    if pe.is_null() {
        refuse_to_enter();
    }
    let _back = GiveBack(pe);
    // SAFETY: the pointer was set by `enter` on this thread and is cleared before the PE goes. Neither the loop
    // nor a rank runs, and whoever else asks for the PE finds none meanwhile.
    f(unsafe { &mut *pe })
}

/// Notes that the PE's loop runs, until it is dropped.
pub(super) struct Runs;

impl Runs {
    pub(super) fn begin() -> Runs {
        RUNS.set(true);
        Runs
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        RUNS.set(false);
    }
}

#[cold]
fn refuse_to_enter() -> ! {
    if PE.get().is_null() {
        panic!(
            "a vrt operation was called on a thread that runs no ranks: use it in the program \
             given to `#[vrt::main]`, `launch` or `run_local`, on the rank's own thread"
        );
    }
    panic!("a vrt operation was called while no rank runs on this thread");
}

/// Runs `f`, the loop's call of something that may wake ranks of this PE: tokio.
pub fn outside<R>(f: impl FnOnce() -> R) -> R {
    struct Back;
    impl Drop for Back {
        fn drop(&mut self) {
            OUTSIDE.set(false);
        }
    }
    OUTSIDE.set(true);
    let _back = Back;
    outside::within(f)
}
