//! Requests as futures.

use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::error::{At, Error, OrRefuse};
use crate::operation::{Pending, Site, Status, block_on_at};
use crate::request::kept::Kept;
use crate::request::{Parts, Request, Scope, State, StaticScope, TaskOutcome, settle};
use vrt_core::pe::{self, Completion};
use vrt_slot::rank;

impl<'a, D: ?Sized, S: Scope<'a>> Request<'a, D, S> {
    #[inline(never)]
    pub(super) fn wait_by_future(self) -> Result<Status, Error> {
        let site = self.site;
        let mut future = self.into_future();
        block_on_at(poll_fn(|context| future.try_poll(context)), site)
    }
}

impl<'a, D: ?Sized, S: Scope<'a>> IntoFuture for Request<'a, D, S> {
    type Output = Status;
    type IntoFuture = RequestFuture<'a, S>;

    fn into_future(self) -> RequestFuture<'a, S> {
        let Parts { state, scope, pattern, site, kept, .. } = self.into_parts();
        let state = match state {
            State::Done(outcome) => Waiting::Done(outcome),
            State::Pending(ticket) => Waiting::Pending(Pending::of(ticket, site, pattern)),
            State::Task(done) => Waiting::Task(done),
        };
        scope.register();
        RequestFuture { state, kept, site, scope: Some(scope), buffer: PhantomData }
    }
}

/// Awaits the status of a [`Request`]. Until it is ready, it counts as the request.
///
/// # Examples
///
/// ```
/// use vrt::request::RequestFuture;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), 0);
///     vrt::request::scope(|scope| {
///         let receive = other.immediate_receive_into(scope, &mut theirs);
///         let received: RequestFuture<'_, _> = receive.into_future();
///         other.send(&world.rank());
///         assert_eq!(vrt::block_on(received).source_rank(), other.rank());
///     });
/// });
/// ```
pub struct RequestFuture<'a, S: Scope<'a> = StaticScope> {
    state: Waiting,
    kept: Option<Box<Kept>>,
    site: Site,
    /// Where it is registered until it is ready.
    scope: Option<S>,
    buffer: PhantomData<&'a ()>,
}

impl<'a, S: Scope<'a>> Unpin for RequestFuture<'a, S> {}

impl<'a, S: Scope<'a>> fmt::Debug for RequestFuture<'a, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestFuture").field("call", &self.site.call).finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Waiting {
    Done(Completion),
    Pending(Pending),
    Task(TaskOutcome),
}

impl<'a, S: Scope<'a>> RequestFuture<'a, S> {
    fn try_poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Status, Error>> {
        let came = match &mut self.state {
            Waiting::Done(outcome) => Ok(*outcome),
            Waiting::Pending(pending) => Ok(ready!(Pin::new(pending).poll(context)).at(self.site)?),
            Waiting::Task(done) => match done.get() {
                Some(came) => came.clone().map(|()| Completion::default()),
                None => {
                    let wait = self.site.wait(None);
                    pe::with(|pe| pe.engine.running().await_request(None, wait));
                    rank::remember(context.waker());
                    return Poll::Pending;
                }
            },
        };
        self.state = Waiting::Done(Completion::default());
        self.unregister();
        let kept = self.kept.take();
        Poll::Ready(came.and_then(|outcome| settle(outcome, kept, self.site)))
    }

    fn unregister(&mut self) {
        if let Some(scope) = self.scope.take() {
            // SAFETY: the request is done, or was taken back.
            unsafe { scope.unregister() };
        }
    }
}

impl<'a, S: Scope<'a>> Drop for RequestFuture<'a, S> {
    /// A receive is withdrawn, and so is registered no more; what cannot be is noticed by the
    /// scope.
    fn drop(&mut self) {
        let over = match &mut self.state {
            Waiting::Done(_) => true,
            Waiting::Pending(pending) => pending.give_up(),
            Waiting::Task(done) => done.get().is_some(),
        };
        if over {
            self.unregister();
        } else {
            std::mem::forget(self.kept.take());
        }
    }
}

impl<'a, S: Scope<'a>> Future for RequestFuture<'a, S> {
    type Output = Status;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Status> {
        self.try_poll(context).map(OrRefuse::or_refuse)
    }
}
