//! Requests as futures, for bindings that await them or drive them on the stack of a rank.
//!
//! An operation starts with a leaf call into the PE that takes and returns numbers, and then awaits the number of its
//! request. Its state across the await lies in the rank's slot.
//!
//! A future can be dropped or forgotten at any time. The memory that the runtime reads or writes while a future waits
//! is therefore never memory that the future borrows: it is in the future itself (which is pinned, so that its drop is
//! noticed), in the rank's heap, or the runtime's.
//!
//! Invariants:
//! - O1. What a request reads or writes stays until the request is done: the caller of an `unsafe` function promises it
//!   of its data and its buffer, or they are the operation's own, as said above.
//! - O2. What a PE knows of a rank's stack ([`block`]) stays until the rank goes on.
//!
//! | file | subject |
//! |---|---|
//! | `pending` | requests as futures |
//! | `landing` | receiving into a buffer that is borrowed only while the future is polled |
//! | `background` | operations that continue when their future is dropped |
//! | `block` | blocking calls of one request, without a future |
//! | `drive` | polling futures on the stack of a rank |

mod background;
mod block;
mod drive;
mod landing;
mod pending;

pub use background::{Background, Lasting, background};
pub use block::{block_on_exchange, block_on_receive, block_on_request, block_on_send};
pub use drive::{
    InstantCalls, MayBlock, drive, drive_async_main, finish_tasks, look, yield_now, yield_now_async,
};
pub(crate) use landing::Landing;
use pending::Receiving;
pub use pending::{Pending, Ticket};

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::{Error, Site};
use crate::mailbox::Pattern;
use crate::pe::{self, Completion, Outbound, Probed, Room, Started};
use vrt_slot::rank;

/// Sends a message.
///
/// # Errors
/// Another rank polls the future.
///
/// # Safety
/// The data stays readable until the future is ready or dropped.
#[inline]
pub async unsafe fn send(message: Outbound, site: Site) -> Result<(), Error> {
    // SAFETY: O1.
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
    // SAFETY: O1.
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
    // SAFETY: O1. The send comes first: a replaced buffer is copied by it.
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
    // SAFETY: the buffer is writable now, says the caller.
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
    // SAFETY: the buffer is writable now, says the caller.
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
    // SAFETY: the data is readable now, says the caller; this mode copies it.
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
