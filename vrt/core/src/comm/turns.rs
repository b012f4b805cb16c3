//! The order of operations that consist of several others.
//!
//! An operation on an intercommunicator takes several steps among the ranks of one group, so operations that are under
//! way at the same time are executed one after another, in the order in which they have begun. That order is the same on
//! all ranks, so the steps of all ranks have the same order.

use std::cell::Cell;
use std::task::Poll;

use crate::error::Site;
use crate::pe;
use vrt_slot::rank;

/// Which operation's turn it is.
#[derive(Debug, Default)]
pub(super) struct Turns {
    begun: Cell<u64>,
    over: Cell<u64>,
}

/// A turn; dropping it begins the next one.
#[derive(Debug)]
pub(super) struct Turn<'a>(&'a Turns);

impl Turns {
    /// Waits until all operations that have begun earlier have ended. This one begins when the future is first polled.
    pub(super) async fn take(&self, site: Site) -> Turn<'_> {
        let number = self.begun.replace(self.begun.get().wrapping_add(1));
        std::future::poll_fn(|context| {
            if self.over.get() == number {
                return Poll::Ready(());
            }
            // Whoever's turn it is now is a task of this rank, and it looks again when a task is over.
            pe::with(|pe| pe.engine.running().await_request(None, site.wait(None)));
            rank::remember(context.waker());
            Poll::Pending
        })
        .await;
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.over.set(self.0.over.get().wrapping_add(1));
    }
}
