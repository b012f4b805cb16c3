//! Operations under way (MPI-4.1 section 3.7).
//!
//! The names and types of the `mpi` crate's `request` module. A [`Request`] borrows its buffer
//! until it has been waited for or tested successfully; a [`LocalScope`] makes sure that it is. A
//! request can also be awaited: `request.await` gives its [`Status`].

mod collection;
mod scope;

pub use collection::{RequestCollection, multiple_scope, wait_any};
pub use scope::{LocalScope, Scope, StaticScope, scope};

use std::fmt;
use std::future::{Future, IntoFuture};
use std::mem::ManuallyDrop;

use crate::mailbox::Pattern;
use crate::operation::{Pending, Site};
use crate::pe::{self, Completion, Started};
use crate::point_to_point::Status;
use crate::rank::{block_on_at, yield_now_async};

/// A non-blocking operation that uses `data` until it is done.
///
/// # Panics
/// When it is dropped without having been completed by `wait`, `test` or awaiting.
#[must_use = "a request has to be completed"]
pub struct Request<'a, D: ?Sized, S: Scope<'a> = StaticScope> {
    state: State,
    data: &'a D,
    scope: S,
    pattern: Option<Pattern>,
    site: Site,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// It was done at once.
    Done(Completion),
    Pending(u32),
}

impl<'a, D: ?Sized, S: Scope<'a>> fmt::Debug for Request<'a, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("call", &self.site.call).finish_non_exhaustive()
    }
}

impl<'a, D: ?Sized, S: Scope<'a>> Request<'a, D, S> {
    /// A request for an operation that was just started. `data` may be written to by it; nobody
    /// can look at it through the request before that is over.
    pub(crate) fn new(
        started: Started,
        data: &'a D,
        scope: S,
        site: Site,
        pattern: Option<Pattern>,
    ) -> Request<'a, D, S> {
        scope.register();
        let state = match started {
            Started::Done(outcome) => State::Done(outcome),
            Started::Pending(request) => State::Pending(request),
        };
        Request { state, data, scope, pattern, site }
    }

    /// Takes it apart, so that dropping it is no error any more.
    fn into_parts(self) -> (State, &'a D, S, Option<Pattern>, Site) {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used again; each field is read once.
        let scope = unsafe { std::ptr::read(&raw const this.scope) };
        // SAFETY: the request is completed, or registered again, by whoever has its parts.
        unsafe { scope.unregister() };
        (this.state, this.data, scope, this.pattern, this.site)
    }

    /// Waits until it is done; gives its buffer back.
    pub fn wait_for_data(self) -> &'a D {
        let data = self.data;
        self.wait();
        data
    }

    /// Waits until it is done.
    ///
    /// # Panics
    /// When a message was longer than its buffer.
    pub fn wait(self) -> Status {
        let site = self.site;
        block_on_at(self.into_future(), site.call, site.location)
    }

    /// Waits until it is done.
    pub fn wait_without_status(self) {
        self.wait();
    }

    /// Its status if it is done, otherwise itself; then other ranks get a turn.
    ///
    /// # Errors
    /// Itself, when it is not done.
    pub fn test(self) -> Result<Status, Self> {
        self.test_with_data().map(|(status, _)| status)
    }

    /// Its status and buffer if it is done, otherwise itself.
    ///
    /// # Errors
    /// Itself, when it is not done.
    pub fn test_with_data(self) -> Result<(Status, &'a D), Self> {
        if !self.is_done() {
            block_on_at(yield_now_async(), self.site.call, self.site.location);
        }
        if !self.is_done() {
            return Err(self);
        }
        let (state, data, _, _, site) = self.into_parts();
        let outcome = match state {
            State::Done(outcome) => outcome,
            State::Pending(request) => {
                pe::with(|pe| pe.engine.running().take_if_done(request)).unwrap_or_default()
            }
        };
        Ok((Status::of(outcome, site), data))
    }

    fn is_done(&self) -> bool {
        match self.state {
            State::Done(_) => true,
            State::Pending(request) => pe::with(|pe| pe.engine.running().is_done(request)),
        }
    }

    /// Asks to cancel it (section 3.8.4): a receive without a message is done then. It still has
    /// to be completed.
    pub fn cancel(&self) {
        if let State::Pending(request) = self.state {
            pe::with(|pe| pe.engine.cancel(request));
        }
    }

    /// Moves it to a scope that ends sooner.
    pub fn shrink_scope_to<'b, S2>(self, scope: S2) -> Request<'b, D, S2>
    where
        'a: 'b,
        S2: Scope<'b>,
    {
        let (state, data, _, pattern, site) = self.into_parts();
        scope.register();
        Request { state, data, scope, pattern, site }
    }
}

impl<'a, D: ?Sized, S: Scope<'a>> IntoFuture for Request<'a, D, S> {
    type Output = Status;
    type IntoFuture = RequestFuture;

    fn into_future(self) -> RequestFuture {
        let (state, _, _, pattern, site) = self.into_parts();
        let state = match state {
            State::Done(outcome) => Ok(outcome),
            State::Pending(request) => Err(Pending::new(request, site, pattern)),
        };
        RequestFuture { state, site }
    }
}

/// Awaits the status of a [`Request`].
#[derive(Debug)]
pub struct RequestFuture {
    state: Result<Completion, Pending>,
    site: Site,
}

impl Future for RequestFuture {
    type Output = Status;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Status> {
        let site = self.site;
        match &mut self.state {
            Ok(outcome) => std::task::Poll::Ready(Status::of(*outcome, site)),
            Err(pending) => {
                std::pin::Pin::new(pending).poll(context).map(|outcome| Status::of(outcome, site))
            }
        }
    }
}

impl<'a, D: ?Sized, S: Scope<'a>> Drop for Request<'a, D, S> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!(
                "the request of {} at {} was dropped without being completed",
                self.site.call, self.site.location
            );
        }
    }
}

/// Waits for its request when it is dropped.
#[derive(Debug)]
pub struct WaitGuard<'a, D: ?Sized, S: Scope<'a> = StaticScope>(Option<Request<'a, D, S>>);

impl<'a, D: ?Sized, S: Scope<'a>> Drop for WaitGuard<'a, D, S> {
    fn drop(&mut self) {
        if let Some(request) = self.0.take() {
            request.wait_without_status();
        }
    }
}

impl<'a, D: ?Sized, S: Scope<'a>> From<Request<'a, D, S>> for WaitGuard<'a, D, S> {
    fn from(request: Request<'a, D, S>) -> Self {
        WaitGuard(Some(request))
    }
}

impl<'a, D: ?Sized, S: Scope<'a>> From<WaitGuard<'a, D, S>> for Request<'a, D, S> {
    fn from(mut guard: WaitGuard<'a, D, S>) -> Self {
        match guard.0.take() {
            Some(request) => request,
            None => unreachable!("a guard holds its request until it is dropped"),
        }
    }
}

/// Cancels its request, then waits for it, when it is dropped.
#[derive(Debug)]
pub struct CancelGuard<'a, D: ?Sized, S: Scope<'a> = StaticScope>(WaitGuard<'a, D, S>);

impl<'a, D: ?Sized, S: Scope<'a>> Drop for CancelGuard<'a, D, S> {
    fn drop(&mut self) {
        if let Some(request) = &self.0.0 {
            request.cancel();
        }
    }
}

impl<'a, D: ?Sized, S: Scope<'a>> From<WaitGuard<'a, D, S>> for CancelGuard<'a, D, S> {
    fn from(guard: WaitGuard<'a, D, S>) -> Self {
        CancelGuard(guard)
    }
}

impl<'a, D: ?Sized, S: Scope<'a>> From<Request<'a, D, S>> for CancelGuard<'a, D, S> {
    fn from(request: Request<'a, D, S>) -> Self {
        CancelGuard(WaitGuard::from(request))
    }
}
