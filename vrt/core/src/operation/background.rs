//! Operations that continue when their future is dropped.
//!
//! What others wait for cannot be undone: a message that was sent, a part in a collective
//! operation. Such an operation uses its own memory or the runtime's, and when its future is
//! dropped, the rank continues it beside its other work, and before it ends.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::error::Error;
use crate::operation::pending::Pending;
use crate::pe::{self, Completion};
use vrt_slot::locals;

/// A request that uses only the runtime's memory, or none. If it is dropped early, it continues.
pub struct Lasting(pub Pending);

impl Lasting {
    /// Whether the running rank has begun it, and has not seen its end.
    pub fn is_under_way(&self) -> bool {
        self.0.request.is_some() && self.0.is_at_home()
    }
}

impl Future for Lasting {
    type Output = Result<Completion, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        let is_at_home = self.0.is_at_home();
        if let Some(request) = self.0.request.take()
            && is_at_home
        {
            pe::with(|pe| pe.engine.detach(request));
        }
    }
}

/// An operation of several steps with all the memory that it uses. If it is dropped after it has
/// begun, it becomes a task of the rank; its result is discarded.
pub struct Background<F: Future + 'static> {
    /// Until it has ended.
    future: Option<Pin<Box<F>>>,
    /// The rank that has begun it.
    rank: Option<u32>,
}

/// Makes an operation continue when this is dropped.
pub fn background<F: Future + 'static>(future: F) -> Background<F> {
    Background { future: Some(Box::pin(future)), rank: None }
}

impl<F: Future + 'static> Future for Background<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if self.rank.is_none() {
            self.rank = pe::current_rank();
        }
        let Some(future) = &mut self.future else { return Poll::Pending };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.future = None;
        }
        polled
    }
}

impl<F: Future + 'static> Drop for Background<F> {
    fn drop(&mut self) {
        let Some(future) = self.future.take() else { return };
        match self.rank {
            None => drop(future),
            rank if rank == pe::current_rank() && !std::thread::panicking() => {
                locals::adopt(Box::pin(async move { std::mem::forget(future.await) }));
                pe::with(|pe| pe.engine.running().notified = true);
            }
            // It has panicked, or the rank does and may not come to its tasks again; or it is
            // another rank's.
            _ => std::mem::forget(future),
        }
    }
}
