//! Requests that are pending, as futures.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::error::{Error, Site};
use crate::mailbox::Pattern;
use crate::pe::{self, Completion, Wait};
use vrt_slot::rank;

/// The number of a request or of a reserved message, and its owner: another rank has other requests with the same
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(super) number: u32,
    pub(super) rank: u32,
}

impl Ticket {
    /// A ticket of the running rank.
    pub fn new(number: u32) -> Ticket {
        Ticket { number, rank: pe::current_rank().unwrap_or(u32::MAX) }
    }

    /// The number, if its owner is the running rank.
    pub fn at_home(self) -> Option<u32> {
        (pe::current_rank() == Some(self.rank)).then_some(self.number)
    }

    /// The number.
    ///
    /// # Errors
    /// The caller is another rank.
    #[inline]
    pub fn number(self, site: Site) -> Result<u32, Error> {
        self.at_home().ok_or_else(|| foreign(self.rank, site))
    }
}

/// A pending request; awaits its outcome.
#[derive(Debug)]
pub struct Pending {
    pub(super) request: Option<u32>,
    /// The request's owner: another rank has other requests with the same number.
    rank: u32,
    pub(super) wait: Wait,
    /// Ranks of other PEs are in other threads or processes.
    not_send: PhantomData<*const ()>,
}

impl Pending {
    /// A request of the running rank; the deadlock table shows its site and pattern.
    pub fn new(request: u32, site: Site, pattern: Option<Pattern>) -> Pending {
        Pending::of(Ticket::new(request), site, pattern)
    }

    /// [`new`](Self::new) for a request that may belong to another rank: then polling gives an
    /// error.
    pub fn of(ticket: Ticket, site: Site, pattern: Option<Pattern>) -> Pending {
        let (request, rank, wait) = (Some(ticket.number), ticket.rank, site.wait(pattern));
        Pending { request, rank, wait, not_send: PhantomData }
    }

    /// Whether its rank runs.
    pub(super) fn is_at_home(&self) -> bool {
        pe::current_rank() == Some(self.rank)
    }
}

impl Future for Pending {
    /// An error where another rank polls.
    type Output = Result<Completion, Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(request) = self.request else {
            return Poll::Pending;
        };
        if !self.is_at_home() {
            return Poll::Ready(Err(foreign(self.rank, self.wait.site)));
        }
        let wait = self.wait;
        let outcome = pe::with(|pe| {
            let state = pe.engine.running();
            let outcome = state.take_if_done(request);
            if outcome.is_none() {
                state.await_request(Some(request), wait);
            }
            outcome
        });
        match outcome {
            Some(outcome) => {
                self.request = None;
                Poll::Ready(Ok(outcome))
            }
            None => {
                rank::remember(context.waker());
                Poll::Pending
            }
        }
    }
}

impl Pending {
    /// Ends a receive without waiting: it is withdrawn, or gives its outcome if it is done.
    pub(super) fn end(&mut self) -> Option<Completion> {
        let request = self.request.take().filter(|_| self.is_at_home())?;
        let outcome = pe::with(|pe| {
            pe.engine.cancel(request);
            pe.engine.running().take_if_done(request)
        });
        outcome.filter(|outcome| !outcome.is_cancelled())
    }

    /// Ends it without waiting, if possible: a receive without a message is withdrawn. Returns
    /// whether it has ended. It must not be used again.
    pub fn give_up(&mut self) -> bool {
        let Some(request) = self.request.take() else { return true };
        if !self.is_at_home() {
            return false;
        }
        pe::with(|pe| {
            pe.engine.cancel(request);
            pe.engine.running().take_if_done(request).is_some()
        })
    }
}

impl Drop for Pending {
    /// A future dropped early: a receive is withdrawn. A send whose data the receiver may be
    /// reading cannot be.
    fn drop(&mut self) {
        if self.request.is_none() || !self.is_at_home() {
            return;
        }
        if !self.give_up() {
            let rank = pe::current_rank().unwrap_or_default();
            vrt_slot::report::say(format_args!(
                "rank {rank} dropped a pending {} whose buffer is still in use; await it instead",
                self.wait.site.call
            ));
            vrt_slot::report::end_job(vrt_slot::report::STATUS_RUNTIME);
        }
    }
}

#[cold]
fn foreign(owner: u32, begun: Site) -> Error {
    Error::ForeignRequest { owner, begun: begun.to_string() }
}

/// Says that a message which came for a receive whose future was dropped could not be received: it is
/// not passed over.
///
/// # Panics
/// Always: a destructor has no other way to say it.
#[cold]
pub(super) fn lost(error: &Error, site: Site) {
    let rank = pe::current_rank().unwrap_or_default();
    panic!("rank {rank} in {site}: {error}");
}

/// A posted receive. Dropped early it is withdrawn; a message that has come for it is there for
/// the next receive.
pub(super) struct Receiving(pub(super) Pending);

impl Future for Receiving {
    type Output = Result<Completion, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        let Some(request) = self.0.request.filter(|_| self.0.is_at_home()) else { return };
        let faulty = pe::with(|pe| {
            if pe.engine.cancel(request) {
                return None;
            }
            if pe.engine.put_back(request) {
                self.0.request = None;
                return None;
            }
            pe.engine.running().take_if_done(request)
        });
        if let Some(outcome) = faulty {
            self.0.request = None;
            if let (Err(error), false) = (outcome.fitting(), std::thread::panicking()) {
                lost(&error, self.0.wait.site);
            }
        }
    }
}
