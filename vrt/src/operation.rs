//! Every operation, once, as a future; the blocking face drives these with `block_on`.
//!
//! An operation starts in a leaf call into the PE that takes and returns numbers, and then awaits
//! the number of its request. What it keeps across the await lies in the rank's slot.
//!
//! A future can be dropped or forgotten at any time. What the runtime reads or writes while a future
//! waits is therefore never memory that the future borrows: it is in the future itself (which is
//! pinned, so that dropping it is noticed), in the rank's heap, or the runtime's.
//!
//! | file | subject |
//! |---|---|
//! | `landing` | receiving into a buffer that is borrowed only while the future is polled |
//! | `background` | operations that go on when their future is dropped |
//! | `drive` | polling futures on the stack of a rank |
//! | `status` | what is known of a received message |
//! | `timeout` | giving up after a time |

mod background;
mod drive;
mod landing;
mod status;
mod timeout;

pub(crate) use background::{Background, Lasting, background};
pub use drive::{block_on, yield_now, yield_now_async};
pub(crate) use drive::{block_on_at, drive_async_main, finish_tasks};
pub(crate) use landing::Landing;
pub use status::Status;
pub(crate) use status::refuse_type;
pub use timeout::{Elapsed, Timeout, timeout};

use std::cell::Cell;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::mailbox::Pattern;
use crate::pe::{self, Awaited, Completion, Outbound, Probed, Room, Started, Wait};
use vrt_slot::rank;

/// Where and in which call an operation was started, for people.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub(crate) call: &'static str,
    pub(crate) location: &'static Location<'static>,
}

impl Site {
    pub(crate) const fn here(call: &'static str, location: &'static Location<'static>) -> Site {
        Site { call, location }
    }

    pub(crate) fn wait(self, pattern: Option<Pattern>) -> Wait {
        Wait { call: self.call, pattern, location: Some(self.location) }
    }
}

/// Names the call, for errors and the table of a deadlock.
macro_rules! site {
    ($call:literal) => {
        crate::operation::Site { call: $call, location: Location::caller() }
    };
}
pub(crate) use site;

/// The number of a request or of a reserved message, and whose it is: another rank has other ones of
/// the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    number: u32,
    rank: u32,
}

impl Ticket {
    /// One of the running rank.
    pub(crate) fn new(number: u32) -> Ticket {
        Ticket { number, rank: pe::current_rank().unwrap_or(u32::MAX) }
    }

    /// The number, if its rank runs.
    pub(crate) fn at_home(self) -> Option<u32> {
        (pe::current_rank() == Some(self.rank)).then_some(self.number)
    }

    /// The number.
    ///
    /// # Panics
    /// When another rank asks.
    pub(crate) fn number(self, site: Site) -> u32 {
        self.at_home().unwrap_or_else(|| refuse_foreign(self.rank, &site.wait(None)))
    }
}

/// A request under way; awaits its outcome.
#[derive(Debug)]
pub(crate) struct Pending {
    request: Option<u32>,
    /// Whose request it is: another rank has other ones of the same number.
    rank: u32,
    wait: Wait,
    /// Ranks of other PEs are in other threads or processes.
    not_send: PhantomData<*const ()>,
}

impl Pending {
    pub(crate) fn new(request: u32, site: Site, pattern: Option<Pattern>) -> Pending {
        Pending::of(Ticket::new(request), site, pattern)
    }

    pub(crate) fn of(ticket: Ticket, site: Site, pattern: Option<Pattern>) -> Pending {
        let (request, rank, wait) = (Some(ticket.number), ticket.rank, site.wait(pattern));
        Pending { request, rank, wait, not_send: PhantomData }
    }

    /// Whether its rank runs.
    fn is_at_home(&self) -> bool {
        pe::current_rank() == Some(self.rank)
    }
}

impl Future for Pending {
    type Output = Completion;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        let Some(request) = self.request else {
            return Poll::Pending;
        };
        if !self.is_at_home() {
            refuse_foreign(self.rank, &self.wait);
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
                Poll::Ready(outcome)
            }
            None => {
                rank::remember(context.waker());
                Poll::Pending
            }
        }
    }
}

impl Pending {
    /// Ends a receive without waiting: it is taken back, or gives its outcome if it is done.
    fn end(&mut self) -> Option<Completion> {
        let request = self.request.take().filter(|_| self.is_at_home())?;
        let outcome = pe::with(|pe| {
            pe.engine.cancel(request);
            pe.engine.running().take_if_done(request)
        });
        outcome.filter(|outcome| !outcome.is_cancelled())
    }

    /// Ends it without waiting, if that can be done: a receive that no message has come for is
    /// taken back. Returns whether it is over. Nobody looks at it again.
    pub(crate) fn give_up(&mut self) -> bool {
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
    /// A future dropped early: a receive is taken back. A send whose data the receiver may be
    /// reading cannot be.
    fn drop(&mut self) {
        if self.request.is_none() || !self.is_at_home() {
            return;
        }
        if !self.give_up() {
            let rank = pe::current_rank().unwrap_or_default();
            vrt_slot::report::say(format_args!(
                "rank {rank} dropped a pending {} whose buffer is still in use; await it instead",
                self.wait.call
            ));
            vrt_slot::report::end_job(vrt_slot::report::STATUS_RUNTIME);
        }
    }
}

#[cold]
fn refuse_foreign(of: u32, begun: &Wait) -> ! {
    let rank = pe::current_rank().map_or("no rank".to_owned(), |rank| format!("rank {rank}"));
    let at = begun.location.map_or(String::new(), |location| format!(" at {location}"));
    panic!(
        "{rank} goes on with what rank {of} has begun, its {}{at}: only that rank can",
        begun.call
    );
}

/// A posted receive. Dropped early it is taken back; a message that has come for it is there for
/// the next receive.
struct Receiving(Pending);

impl Future for Receiving {
    type Output = Completion;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
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
        if let (Some(outcome), Some(location)) = (faulty, self.0.wait.location) {
            self.0.request = None;
            if !std::thread::panicking() {
                // A message that could not be received is not passed over.
                Status::of(outcome, Site { call: self.0.wait.call, location });
            }
        }
    }
}

/// Sends a message.
///
/// # Safety
/// The data stays readable until the future is ready or dropped.
#[inline]
pub(crate) async unsafe fn send(message: Outbound, site: Site) {
    // SAFETY: as the caller promises.
    if let Started::Pending(request, _) = pe::with(|pe| unsafe { pe.engine.send(&message) }) {
        Pending::new(request, site, Some(sent_to(&message))).await;
    }
}

/// The partner of a send, for people.
pub(crate) fn sent_to(message: &Outbound) -> Pattern {
    Pattern { context: message.context, source: message.to as i32, tag: message.tag }
}

/// Receives a message.
///
/// # Safety
/// The buffer stays writable, and is not used, until the future is ready or dropped.
#[inline]
pub(crate) async unsafe fn receive(pattern: Pattern, room: Room, site: Site) -> Completion {
    // SAFETY: as the caller promises.
    match pe::with(|pe| unsafe { pe.engine.receive(pattern, room) }) {
        Started::Done(outcome) => outcome,
        Started::Pending(request, _) => Receiving(Pending::new(request, site, Some(pattern))).await,
    }
}

/// Starts an operation of the current blocking rank and suspends the rank until it is done: what
/// awaiting its [`Pending`] does, in one entry into the PE instead of three and without a future.
///
/// What is read again soon is written once, to where it is read: a wide load of what was written
/// in parts a moment ago waits until all of them have left the processor's store buffer.
#[inline(always)]
pub(crate) fn block_on_request(
    start: impl FnOnce(&mut pe::Engine) -> Started,
    pattern: Option<Pattern>,
    site: Site,
) -> Completion {
    rank::expect_blocking(site.call, site.location);
    if vrt_slot::locals::has_tasks() {
        return beside_tasks(start, pattern, site);
    }
    let Site { call, location } = site;
    let awaited = Awaited { outcome: Cell::new(None), call, location, pattern };
    let pending = pe::with(|pe| {
        let request = match start(&mut pe.engine) {
            Started::Done(outcome) => {
                awaited.outcome.set(Some(outcome));
                return None;
            }
            Started::Pending(request, _) => request,
        };
        if pe.look_for(request, &awaited.outcome) {
            return None;
        }
        // SAFETY: this function does not return before the rank has been resumed.
        unsafe { pe.engine.running().await_outcome(request, &awaited) };
        Some(request)
    });
    let Some(request) = pending else {
        return awaited.outcome.take().unwrap_or_default();
    };
    loop {
        rank::suspend_and_resume();
        if let Some(outcome) = awaited.outcome.take() {
            return outcome;
        }
        // SAFETY: as above.
        pe::with(|pe| unsafe { pe.engine.running().await_outcome(request, &awaited) });
    }
}

/// [`block_on_request`] for a rank with tasks, which go on meanwhile.
#[cold]
fn beside_tasks(
    start: impl FnOnce(&mut pe::Engine) -> Started,
    pattern: Option<Pattern>,
    site: Site,
) -> Completion {
    match pe::with(|pe| start(&mut pe.engine)) {
        Started::Done(outcome) => outcome,
        Started::Pending(request, _) => {
            let pending = Pending::new(request, site, pattern);
            block_on_at(pending, site.call, site.location)
        }
    }
}

/// Sends and receives at the same time; gives the outcome of the receive.
///
/// # Safety
/// The message's data stays readable and the buffer writable until the future is ready.
pub(crate) async unsafe fn exchange(
    message: Outbound,
    pattern: Pattern,
    room: Room,
    site: Site,
) -> Completion {
    // SAFETY: as the caller promises. The send comes first: a replaced buffer is copied by it.
    let (sent, received) =
        pe::with(|pe| unsafe { (pe.engine.send(&message), pe.engine.receive(pattern, room)) });
    let receiving = match received {
        Started::Done(outcome) => Ok(outcome),
        Started::Pending(request, _) => Err(Pending::new(request, site, Some(pattern))),
    };
    if let Started::Pending(request, _) = sent {
        Pending::new(request, site, None).await;
    }
    match receiving {
        Ok(outcome) => outcome,
        Err(pending) => pending.await,
    }
}

/// Receives a message taken by a matched probe. Dropped early, it is there for the next receive.
///
/// # Safety
/// The buffer is writable, and not used, whenever the future is polled.
pub(crate) async unsafe fn receive_matched(message: Ticket, room: Room, site: Site) -> Completion {
    let mut landing = Landing::of_message(message, site);
    // SAFETY: as the caller promises.
    std::future::poll_fn(|context| unsafe { landing.poll(room, context) }).await
}

/// Receives a message. Dropped early, it is there for the next receive.
///
/// # Safety
/// The buffer is writable, and not used, whenever the future is polled.
pub(crate) async unsafe fn land(pattern: Pattern, room: Room, site: Site) -> Completion {
    let mut landing = Landing::new(pattern, site);
    // SAFETY: as the caller promises.
    std::future::poll_fn(|context| unsafe { landing.poll(room, context) }).await
}

/// Sends a message whose data is looked at only when the future is first polled. Dropped early, it
/// goes all the same.
///
/// # Safety
/// The data is readable when the future is first polled.
///
/// # Panics
/// If its mode does not copy.
pub(crate) async unsafe fn send_copied(message: Outbound, site: Site) {
    assert!(message.mode.copies(), "the data of this send has to stay where it is");
    // SAFETY: as the caller promises.
    if let Started::Pending(request, _) = pe::with(|pe| unsafe { pe.engine.send(&message) }) {
        Lasting(Pending::new(request, site, Some(sent_to(&message)))).await;
    }
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
pub(crate) async fn probe(pattern: Pattern, site: Site) -> Probed {
    until_found(pattern, site, |engine| engine.probe(pattern)).await
}

/// Waits for a message and takes it out of matching.
pub(crate) async fn matched_probe(pattern: Pattern, site: Site) -> (u32, Probed) {
    until_found(pattern, site, |engine| engine.matched_probe(pattern)).await
}

/// A timer, from when it is first polled.
#[derive(Debug)]
struct Sleep {
    duration: Duration,
    pending: Option<Pending>,
    site: Site,
}

impl Sleep {
    fn new(duration: Duration, site: Site) -> Sleep {
        Sleep { duration, pending: None, site }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Sleep { duration, site, .. } = *self;
        let pending = self.pending.get_or_insert_with(|| {
            let request = pe::with(|pe| pe.engine.start_timer(duration));
            Pending::new(request, site, None)
        });
        Pin::new(pending).poll(context).map(|_| ())
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

/// Suspends the rank for a time. Dropped early, it is over.
///
/// # Panics
/// Outside of a rank.
#[track_caller]
pub fn sleep_async(duration: Duration) -> impl Future<Output = ()> {
    Sleep::new(duration, Site::here("sleep", Location::caller()))
}

/// Suspends the rank for a time; others of its PE run meanwhile. Unlike a tokio timer it does not
/// pin the rank to its PE.
///
/// # Panics
/// Outside of a rank, and in an async rank (which awaits [`sleep_async`]).
#[track_caller]
pub fn sleep(duration: Duration) {
    let location = Location::caller();
    block_on_at(sleep_async(duration), "sleep", location);
}
