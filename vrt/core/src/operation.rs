//! Requests as futures, for bindings that await them or drive them on the stack of a rank.
//!
//! An operation starts with a leaf call into the PE that takes and returns numbers, and then awaits the number of its
//! request. Its state across the await lies in the rank's slot.
//!
//! A future can be dropped or forgotten at any time. The memory that the runtime reads or writes while a future waits
//! is therefore never memory that the future borrows: it is in the future itself (which is pinned, so that its drop is
//! noticed), in the rank's heap, or the runtime's.
//!
//! | file | subject |
//! |---|---|
//! | `landing` | receiving into a buffer that is borrowed only while the future is polled |
//! | `background` | operations that continue when their future is dropped |
//! | `block` | blocking calls of one request, without a future |
//! | `drive` | polling futures on the stack of a rank |

mod background;
mod block;
mod drive;
mod landing;

pub use background::{Background, Lasting, background};
pub use block::{block_on_exchange, block_on_receive, block_on_request, block_on_send};
pub use drive::{
    MayBlock, Turns, drive, drive_async_main, finish_tasks, look, yield_now, yield_now_async,
};
pub(crate) use landing::Landing;

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::{Error, Site};
use crate::mailbox::Pattern;
use crate::pe::{self, Completion, Outbound, Probed, Room, Started, Wait};
use vrt_slot::rank;

/// The number of a request or of a reserved message, and its owner: another rank has other requests with the same
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    number: u32,
    rank: u32,
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
    request: Option<u32>,
    /// The request's owner: another rank has other requests with the same number.
    rank: u32,
    wait: Wait,
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
    fn is_at_home(&self) -> bool {
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
    fn end(&mut self) -> Option<Completion> {
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
fn lost(error: &Error, site: Site) {
    let rank = pe::current_rank().unwrap_or_default();
    panic!("rank {rank} in {site}: {error}");
}

/// A posted receive. Dropped early it is withdrawn; a message that has come for it is there for
/// the next receive.
struct Receiving(Pending);

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

/// Sends a message.
///
/// # Errors
/// Another rank polls the future.
///
/// # Safety
/// The data stays readable until the future is ready or dropped.
#[inline]
pub async unsafe fn send(message: Outbound, site: Site) -> Result<(), Error> {
    // SAFETY: as the caller promises.
    if let Started::Pending(request, _) = pe::with(|pe| unsafe { pe.engine.send(&message) }) {
        Pending::new(request, site, Some(sent_to(&message))).await?;
    }
    Ok(())
}

/// The partner of a send, for messages to people.
#[inline]
pub fn sent_to(message: &Outbound) -> Pattern {
    Pattern { context: message.context, source: message.to as i32, tag: message.tag }
}

/// Receives a message.
///
/// # Errors
/// Another rank polls the future.
///
/// # Safety
/// The buffer stays writable, and is not used, until the future is ready or dropped.
#[inline]
pub async unsafe fn receive(pattern: Pattern, room: Room, site: Site) -> Result<Completion, Error> {
    // SAFETY: as the caller promises.
    match pe::with(|pe| unsafe { pe.engine.receive(pattern, room) }) {
        Started::Done(outcome) => Ok(outcome),
        Started::Pending(request, _) => Receiving(Pending::new(request, site, Some(pattern))).await,
    }
}

/// Sends and receives at the same time; returns the outcome of the receive.
///
/// # Errors
/// Another rank polls the future.
///
/// # Safety
/// The message's data stays readable and the buffer writable until the future is ready.
pub async unsafe fn exchange(
    message: Outbound,
    pattern: Pattern,
    room: Room,
    site: Site,
) -> Result<Completion, Error> {
    // SAFETY: as the caller promises. The send comes first: a replaced buffer is copied by it.
    let (sent, received) =
        pe::with(|pe| unsafe { (pe.engine.send(&message), pe.engine.receive(pattern, room)) });
    let receiving = match received {
        Started::Done(outcome) => Ok(outcome),
        Started::Pending(request, _) => Err(Pending::new(request, site, Some(pattern))),
    };
    if let Started::Pending(request, _) = sent {
        Pending::new(request, site, None).await?;
    }
    match receiving {
        Ok(outcome) => Ok(outcome),
        Err(pending) => pending.await,
    }
}

/// Receives a message taken by a matched probe. If the future is dropped early, the message remains
/// for the next receive.
///
/// # Errors
/// Another rank polls the future.
///
/// # Safety
/// The buffer is writable, and not used, whenever the future is polled.
pub async unsafe fn receive_matched(
    message: Ticket,
    room: Room,
    site: Site,
) -> Result<Completion, Error> {
    let mut landing = Landing::of_message(message, site);
    // SAFETY: as the caller promises.
    std::future::poll_fn(|context| unsafe { landing.poll(room, context) }).await
}

/// Receives a message. If the future is dropped early, the message remains for the next receive.
///
/// # Errors
/// Another rank polls the future.
///
/// # Safety
/// The buffer is writable, and not used, whenever the future is polled.
pub async unsafe fn land(pattern: Pattern, room: Room, site: Site) -> Result<Completion, Error> {
    let mut landing = Landing::new(pattern, site);
    // SAFETY: as the caller promises.
    std::future::poll_fn(|context| unsafe { landing.poll(room, context) }).await
}

/// Sends a message whose data is read only when the future is first polled. If the future is
/// dropped early, the message is sent nevertheless.
///
/// # Errors
/// Another rank polls the future.
///
/// # Safety
/// The data is readable when the future is first polled.
///
/// # Panics
/// If its mode does not copy.
pub async unsafe fn send_copied(message: Outbound, site: Site) -> Result<(), Error> {
    assert!(message.mode.copies(), "the data of this send has to stay where it is");
    // SAFETY: as the caller promises.
    if let Started::Pending(request, _) = pe::with(|pe| unsafe { pe.engine.send(&message) }) {
        Lasting(Pending::new(request, site, Some(sent_to(&message)))).await?;
    }
    Ok(())
}

/// Waits until `look` finds a message in the mailbox.
async fn until_found<R>(
    pattern: Pattern,
    site: Site,
    look: impl Fn(&mut pe::Engine) -> Option<R>,
) -> R {
    std::future::poll_fn(|context| {
        let found = pe::with(|pe| {
            let found = look(&mut pe.engine);
            let state = pe.engine.running();
            if found.is_none() {
                state.probing = true;
                state.await_request(None, site.wait(Some(pattern)));
            }
            found
        });
        match found {
            Some(found) => Poll::Ready(found),
            None => {
                rank::remember(context.waker());
                Poll::Pending
            }
        }
    })
    .await
}

/// Waits for a message without receiving it.
pub async fn probe(pattern: Pattern, site: Site) -> Probed {
    until_found(pattern, site, |engine| engine.probe(pattern)).await
}

/// Waits for a message and takes it out of matching.
pub async fn matched_probe(pattern: Pattern, site: Site) -> (u32, Probed) {
    until_found(pattern, site, |engine| engine.matched_probe(pattern)).await
}

/// A timer, from when it is first polled. Unlike a tokio timer it does not pin the rank to its PE.
/// If it is dropped early, it ends.
#[derive(Debug)]
pub struct Sleep {
    /// `None`: until the PE is idle.
    duration: Option<Duration>,
    pending: Option<Pending>,
    site: Site,
}

impl Sleep {
    /// A timer that has not been polled yet.
    pub fn new(duration: Duration, site: Site) -> Sleep {
        Sleep { duration: Some(duration), pending: None, site }
    }

    /// A timer that ends when the rank's PE has nothing else to do, or the rank was moved.
    pub fn while_others_run(site: Site) -> Sleep {
        Sleep { duration: None, pending: None, site }
    }
}

impl Future for Sleep {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Sleep { duration, site, .. } = *self;
        if duration.is_none() && self.pending.is_none() && pe::with(pe::Pe::is_idle_beside) {
            return Poll::Ready(Ok(()));
        }
        let pending = self.pending.get_or_insert_with(|| {
            let request = pe::with(|pe| match duration {
                Some(duration) => pe.engine.start_timer(duration),
                None => pe.engine.start_timer_for_idleness(),
            });
            Pending::new(request, site, None)
        });
        Pin::new(pending).poll(context).map_ok(|_| ())
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(pending) = self.pending.as_mut().filter(|pending| pending.is_at_home())
            && let Some(request) = pending.request.take()
        {
            pe::with(|pe| pe.engine.cancel_timer(request));
        }
    }
}
