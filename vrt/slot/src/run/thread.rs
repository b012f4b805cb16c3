//! A rank that is a thread of the process: in a world of one.
//!
//! Elsewhere the thread is the PE's and ranks are coroutines on it. Here the thread runs a program
//! that does not know about ranks, and the PE's loop is the coroutine:
//!
//! ```text
//! the thread, as rank        PE's loop, on a stack of its own
//!   begin ------------------> starts, resumes the rank --.
//!   goes on  <--------------------------------------------'
//!   waits  ------------------> takes messages, timers ... resumes the rank --.
//!   goes on  <----------------------------------------------------------------'
//!   the thread ends ---------> the rank has returned; the loop ends
//! ```

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::arena::{Body, SlotHeader, ThreadRank};
use crate::heap_word;
use crate::run::locals;
use crate::run::outcome::Resumed;
use crate::stack::forget_stack;

/// Bytes of stack of the PE's loop, which runs tasks of tokio too.
const STACK: usize = 2 << 20;

/// The loop of the PE whose only rank is the thread that calls it.
pub type Loop = Coroutine<(), (), (), DefaultStack>;

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// The loop of this thread's PE; the loop is ended with the thread.
struct World(*mut Loop);

/// A stack for the loop.
pub fn stack() -> std::io::Result<DefaultStack> {
    DefaultStack::new(STACK)
}

/// Makes the calling thread the rank of a PE whose loop is `run`: it gets the yielder, which it
/// must pass to [`become_thread`], and returns when the rank has.
///
/// # Errors
/// The error that `run` returns before it has resumed the rank.
pub fn begin<E: 'static>(
    stack: DefaultStack,
    run: impl FnOnce(&Yielder<(), ()>) -> Result<(), E> + 'static,
) -> Result<(), E> {
    let outcome = Rc::new(Cell::new(Ok(())));
    let run = {
        let outcome = Rc::clone(&outcome);
        move |yielder: &Yielder<(), ()>, ()| outcome.set(run(yielder))
    };
    let of_loop = Box::into_raw(Box::new(Loop::with_stack(stack, run)));
    let world = World(of_loop);
    // SAFETY: just made: nobody else knows it.
    match unsafe { (*of_loop).resume(()) } {
        CoroutineResult::Yield(()) => {
            // Not before: the thread's variables go in the order contrary to that in which they were
            // first used, and the loop uses some of tokio's to its end.
            WORLD.set(Some(world));
            Ok(())
        }
        CoroutineResult::Return(()) => outcome.replace(Ok(())),
    }
}

/// Replaces the program of a slot's rank, which has not begun, by the calling thread.
///
/// # Safety
/// The caller owns the slot, and is the loop that `yielder` belongs to.
pub unsafe fn become_thread(slot: *mut SlotHeader, yielder: &Yielder<(), ()>) {
    let inner = RefCell::default();
    let thread = ThreadRank { yielder, has_returned: Cell::new(false), inner };
    // SAFETY: S2, and T2, as the program has not begun.
    unsafe {
        forget_stack(slot);
        (*slot).body.get().write(Body::Thread(thread));
    }
}

impl ThreadRank {
    /// Called by the loop: lets the thread continue until it waits or ends.
    ///
    /// # Safety
    /// The slot belongs to this rank, and the caller is the loop of its PE.
    pub(super) unsafe fn resume(&self, slot: *mut SlotHeader) -> Resumed {
        // SAFETY: the yielder is that of the loop that calls this, and its PE owns the slot, says the caller.
        unsafe {
            heap_word::use_heap(slot);
            (*self.yielder).suspend(());
            heap_word::use_heap(std::ptr::null_mut());
        }
        if self.has_returned.get() { Resumed::Returned(0) } else { Resumed::Suspended }
    }

    pub(super) fn remember_inner(&self, waker: &Waker) {
        self.inner.borrow_mut().push(waker.clone());
    }

    pub(super) fn wake_inner(&self) {
        let wakers = self.inner.take();
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// The running rank, if it is a thread.
#[cold]
#[inline(never)]
pub(super) fn current() -> Option<&'static ThreadRank> {
    // SAFETY: S3, T2.
    match unsafe { &*heap_word::running()?.body.get() } {
        Body::Thread(this) => Some(this),
        _ => None,
    }
}

/// Whether the running rank is a thread.
#[cold]
#[inline(never)]
pub fn is_rank() -> bool {
    current().is_some()
}

/// Called by the thread: lets its PE's loop run until there is something for the rank.
///
/// # Panics
/// With the loop's panic: with a table of what the rank waits for, if that never comes.
#[cold]
pub(super) fn suspend() {
    let of_loop = WORLD.with_borrow(|world| world.as_ref().map(|world| world.0));
    let Some(of_loop) = of_loop.filter(|_| is_rank()) else {
        unreachable!("only a rank, on its own heap, suspends")
    };
    // SAFETY: the rank runs on the thread, so its loop is suspended; `World` drops it with the thread.
    if let CoroutineResult::Return(_) = unsafe { (*of_loop).resume(()) } {
        unreachable!("the loop of a PE ends when its rank has returned");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // SAFETY: the box that `begin` has made, which only this drops. The thread runs, at its end, so the loop is
        // suspended and now returns; one that is not resumed now had returned, or panicked, before.
        unsafe {
            if !(*self.0).done()
                && let Some(this) = current()
            {
                locals::end();
                this.has_returned.set(true);
                (*self.0).resume(());
            }
            drop(Box::from_raw(self.0));
        }
    }
}
