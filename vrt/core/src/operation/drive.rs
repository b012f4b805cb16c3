//! Polling futures on the stack of a rank: the basis of all blocking calls.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll};

use crate::pe;
use vrt_slot::{locals, rank};

/// Proves that the running rank is not async: a blocking call of an async rank would stop its whole PE.
#[derive(Clone, Copy, Debug)]
pub struct MayBlock(());

impl MayBlock {
    /// `None` in an async rank, and outside of ranks.
    #[inline(always)]
    pub fn here() -> Option<MayBlock> {
        rank::may_block().then_some(MayBlock(()))
    }

    /// Without a check.
    ///
    /// # Safety
    /// The caller is a rank, on its own thread, and not an async one.
    #[inline(always)]
    pub unsafe fn assume() -> MayBlock {
        debug_assert!(rank::may_block());
        MayBlock(())
    }
}

/// Polls a future to completion on the stack of the running rank: suspends the rank while the future is pending.
#[inline(always)]
pub fn drive<F: Future>(_: MayBlock, future: F) -> F::Output {
    drive_here(future)
}

#[inline(always)]
pub(super) fn drive_here<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = rank::rank_waker();
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        if !locals::poll_tasks(&mut context) && !pe::with(pe::Pe::look_until_woken) {
            rank::suspend_and_resume();
        }
    }
}

/// Continues the tasks of a rank whose program has ended: others may wait for them, and for messages that it has begun
/// to receive.
pub fn finish_tasks() {
    if locals::has_tasks() {
        drive_here(std::future::poll_fn(|_| match locals::has_tasks() {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }));
    }
    pe::with(|pe| pe.engine.forget_reserved());
}

/// The main function of an async rank: polls its program to completion.
pub fn drive_async_main<F: Future>(future: F) -> F::Output {
    rank::forbid_blocking();
    // The future may be large; it lies in the slot's heap, not on the stack.
    drive_here(Box::pin(future))
}

/// Lets other ranks of this PE run before this one continues, if there are any or something has arrived.
#[inline(always)]
pub fn yield_now(_: MayBlock) {
    if locals::has_tasks() {
        return drive_here(yield_now_async());
    }
    let others_run = pe::with(|pe| {
        let others_run = !pe.would_yield_to_nobody();
        if others_run {
            pe.engine.yield_current();
        }
        others_run
    });
    if others_run {
        rank::suspend_and_resume();
    }
}

/// Polls for something that may already exist. If it does not, others run once, as by [`yield_now`], and it polls
/// again: if no other rank waits for that and nothing has arrived, all this is a single entry into the PE.
#[inline(always)]
pub fn look<T>(_: MayBlock, find: impl Fn(&mut pe::Engine) -> Option<T>) -> Option<T> {
    let has_tasks = locals::has_tasks();
    let (found, is_all) = pe::with(|pe| {
        let mut found = find(&mut pe.engine);
        if found.is_none() && pe.take_arrivals() {
            found = find(&mut pe.engine);
        }
        let is_all = found.is_some() || (!has_tasks && pe.has_no_other_work());
        (found, is_all)
    });
    if is_all {
        return found;
    }
    // Whether there is other work has been asked, and is not asked again: each so-manieth time the answer is yes,
    // whatever there is, and the time after that it is no.
    let_others_run();
    pe::with(|pe| find(&mut pe.engine))
}

/// Suspends the rank once.
#[inline(never)]
fn let_others_run() {
    if locals::has_tasks() {
        return drive_here(yield_now_async());
    }
    pe::with(|pe| pe.engine.yield_current());
    rank::suspend_and_resume();
}

/// [`yield_now`] for async ranks.
pub async fn yield_now_async() {
    let mut yielded = false;
    std::future::poll_fn(|_| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        pe::with(|pe| pe.engine.yield_current());
        Poll::Pending
    })
    .await;
}

/// Counts calls that complete at once, and lets other ranks of the PE run at some of them.
///
/// A rank that reads memory repeatedly until another one has written it (a user-defined lock, a flag) never waits for
/// anything that the runtime knows about: the other one, which may be its neighbour, would never run.
#[derive(Debug, Default)]
pub struct InstantCalls(Cell<u32>);

impl InstantCalls {
    /// So many calls go by between two turns of the others: a turn costs as much as some of them.
    const CALLS: u32 = 128;

    /// Counts a call. Async ranks let others run where they await.
    #[inline]
    pub fn count(&self) {
        let calls = self.0.get() + 1;
        self.0.set(calls % Self::CALLS);
        if calls == Self::CALLS {
            Self::give_way();
        }
    }

    #[cold]
    fn give_way() {
        if let Some(may_block) = MayBlock::here() {
            yield_now(may_block);
        }
    }
}
