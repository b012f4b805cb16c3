//! Operations under way (MPI-4.1 section 3.7).
//!
//! The names and types of the `mpi` crate's `request` module. A [`Request`] borrows its buffer
//! until it has been waited for or tested successfully; a [`LocalScope`] makes sure that it is. A
//! request can also be awaited: `request.await` gives its [`Status`]. That of a collective operation says nothing.
//!
//! Whatever completes a request, or tests it, panics if the operation went wrong, for example because a message was longer
//! than its buffer; [`Request::try_wait`] returns that.

mod collection;
mod future;
mod generalized;
mod guards;
mod kept;
mod persistent;
mod scope;

pub use collection::{RequestCollection, multiple_scope, wait_any};
pub use future::RequestFuture;
pub use generalized::{Completer, generalized};
pub use guards::{CancelGuard, WaitGuard};
pub(crate) use kept::Kept;
pub use persistent::{PersistentRequest, start_all};
pub use scope::{LocalScope, Scope, StaticScope, scope};

use std::cell::OnceCell;
use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::rc::Rc;

use crate::error::{At, Error, OrRefuse};
use crate::operation::Status;
use crate::operation::{Site, Ticket};
use crate::operation::{block_on_request, give_way};
use crate::request::scope::die_with_open_requests;
use vrt_core::mailbox::Pattern;
use vrt_core::operation::MayBlock;
use vrt_core::pe::{self, Completion, Started};
use vrt_slot::locals::{self, Task};

/// A non-blocking operation that uses `data` until it is done.
///
/// # Panics
/// When it is dropped without having been completed by `wait`, `test` or awaiting.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     let (mine, mut theirs) = ([world.rank(); 4], [0; 4]);
///     vrt::request::scope(|scope| {
///         let receive = other.immediate_receive_into(scope, &mut theirs);
///         let send = other.immediate_send(scope, &mine);
///         // What is done here goes on beside the messages.
///         send.wait();
///         assert_eq!(receive.wait().source_rank(), other.rank());
///     });
///     assert_eq!(theirs, [other.rank(); 4]);
/// });
/// ```
#[must_use = "a request has to be completed"]
pub struct Request<'a, D: ?Sized, S: Scope<'a> = StaticScope> {
    state: State,
    data: &'a D,
    scope: S,
    pattern: Option<Pattern>,
    site: Site,
    /// Bytes that are not in the buffer: packed ones to be sent, or to be unpacked at the end.
    kept: Option<Box<Kept>>,
}

#[derive(Clone, Debug)]
enum State {
    /// It was done at once.
    Done(Completion),
    Pending(Ticket),
    /// A task of the rank; it says here what came of it.
    Task(TaskOutcome),
}

/// What came of a task, when it is done.
type TaskOutcome = Rc<OnceCell<Result<(), Error>>>;

/// A request for an operation that goes on as a task of the rank.
///
/// # Safety
/// What the future uses lives until the request is done, as scopes make sure for `data`.
pub(crate) unsafe fn immediate<'a, D: ?Sized, S: Scope<'a>>(
    scope: S,
    data: &'a D,
    future: impl Future<Output = Result<(), Error>>,
    site: Site,
) -> Request<'a, D, S> {
    let done = TaskOutcome::default();
    let tell = Rc::clone(&done);
    let task = Box::pin(async move {
        let came = future.await;
        if Rc::strong_count(&tell) == 1 {
            // Nobody waits for it: an error is not passed over.
            came.or_refuse();
        } else {
            // It is set once.
            let _ = tell.set(came);
        }
    });
    // SAFETY: as the caller promises; the task is dropped when it is done.
    let task = unsafe { std::mem::transmute::<Pin<Box<dyn Future<Output = ()> + '_>>, Task>(task) };
    locals::spawn(task);
    scope.register();
    Request { state: State::Task(done), data, scope, pattern: None, site, kept: None }
}

impl<'a, D: ?Sized, S: Scope<'a>> fmt::Debug for Request<'a, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("call", &self.site.call).finish_non_exhaustive()
    }
}

impl<'a, D: ?Sized, S: Scope<'a>> Request<'a, D, S> {
    /// A request for an operation that was just started. `data` may be written to by it; nobody
    /// can look at it through the request before that is over. `kept` lives as long.
    pub(crate) fn with_buffers(
        started: Started,
        data: &'a D,
        scope: S,
        site: Site,
        pattern: Option<Pattern>,
        kept: Option<Box<Kept>>,
    ) -> Request<'a, D, S> {
        scope.register();
        let state = match started {
            Started::Done(outcome) => State::Done(outcome),
            Started::Pending(request, _) => State::Pending(Ticket::new(request)),
        };
        Request { state, data, scope, pattern, site, kept }
    }

    /// Takes it apart, so that dropping it is no error any more.
    fn into_parts(self) -> Parts<'a, D, S> {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used again; each field is read once.
        let (state, scope, kept) = unsafe {
            (
                std::ptr::read(&raw const this.state),
                std::ptr::read(&raw const this.scope),
                std::ptr::read(&raw const this.kept),
            )
        };
        // SAFETY: the request is completed, or registered again, by whoever has its parts.
        unsafe { scope.unregister() };
        Parts { state, data: this.data, scope, pattern: this.pattern, site: this.site, kept }
    }

    /// Waits until it is done; gives its buffer back.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), 0);
    ///     vrt::request::scope(|scope| {
    ///         let receive = other.immediate_receive_into(scope, &mut theirs);
    ///         other.send(&world.rank());
    ///         assert_eq!(*receive.wait_for_data(), other.rank());
    ///     });
    /// });
    /// ```
    pub fn wait_for_data(self) -> &'a D {
        let data = self.data;
        self.wait();
        data
    }

    /// Waits until it is done.
    ///
    /// # Panics
    /// When a message was longer than its buffer, or of another type, or ranks do not agree about a
    /// collective operation.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), 0);
    ///     vrt::request::scope(|scope| {
    ///         let receive = other.immediate_receive_into(scope, &mut theirs);
    ///         other.send(&world.rank());
    ///         let status = receive.wait();
    ///         assert_eq!(status.source_rank(), other.rank());
    ///     });
    /// });
    /// ```
    #[inline]
    pub fn wait(self) -> Status {
        self.try_wait().or_refuse()
    }

    /// [`wait`](Self::wait) that returns what was wrong.
    ///
    /// # Errors
    /// The message was longer than its buffer, or of another type: it is gone then. Or ranks do not
    /// agree about a collective operation; [`error`](crate::error) says what holds then. In both cases
    /// the request is completed. Or the request is another rank's: it goes on there.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     let mut short = [0u8; 2];
    ///     vrt::request::scope(|scope| {
    ///         let receive = other.immediate_receive_into(scope, &mut short);
    ///         other.send(&[1u8, 2, 3]);
    ///         let error = receive.try_wait().unwrap_err();
    ///         assert_eq!(error.class(), vrt::ErrorClass::Truncate);
    ///     });
    /// });
    /// ```
    #[inline(always)]
    pub fn try_wait(self) -> Result<Status, Error> {
        let outcome = match self.awaits() {
            Awaits::Nothing(outcome) => outcome,
            Awaits::Request(may_block, request) => {
                let outcome = |engine: &mut pe::Engine| engine.outcome(request);
                block_on_request(may_block, outcome, self.pattern, &self.site)
            }
            Awaits::Future => return self.wait_by_future(),
        };
        let Parts { kept, site, .. } = self.into_parts();
        settle(outcome, kept, site)
    }

    /// What a blocking rank has to do to wait for it.
    #[inline(always)]
    fn awaits(&self) -> Awaits {
        match (&self.state, MayBlock::here()) {
            (State::Done(outcome), Some(_)) => Awaits::Nothing(*outcome),
            (State::Pending(ticket), Some(may_block)) => match ticket.at_home() {
                Some(request) => Awaits::Request(may_block, request),
                None => Awaits::Future,
            },
            _ => Awaits::Future,
        }
    }

    /// Waits until it is done.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
    ///     vrt::request::scope(|scope| {
    ///         let send = other.immediate_send(scope, &me);
    ///         assert_eq!(other.receive::<i32>().0, other.rank());
    ///         send.wait_without_status();
    ///     });
    /// });
    /// ```
    pub fn wait_without_status(self) {
        self.wait();
    }

    /// Its status if it is done, otherwise itself; then other ranks get a turn.
    ///
    /// # Errors
    /// Itself, when it is not done.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), 0);
    ///     vrt::request::scope(|scope| {
    ///         let mut receive = other.immediate_receive_into(scope, &mut theirs);
    ///         other.send(&world.rank());
    ///         let status = loop {
    ///             // Here a rank does a part of its work.
    ///             match receive.test() {
    ///                 Ok(status) => break status,
    ///                 Err(pending) => receive = pending,
    ///             }
    ///         };
    ///         assert_eq!(status.source_rank(), other.rank());
    ///     });
    /// });
    /// ```
    pub fn test(self) -> Result<Status, Self> {
        self.test_with_data().map(|(status, _)| status)
    }

    /// Its status and buffer if it is done, otherwise itself.
    ///
    /// # Errors
    /// Itself, when it is not done.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), 0);
    ///     vrt::request::scope(|scope| {
    ///         let mut receive = other.immediate_receive_into(scope, &mut theirs);
    ///         other.send(&world.rank());
    ///         let (_, value) = loop {
    ///             match receive.test_with_data() {
    ///                 Ok(done) => break done,
    ///                 Err(pending) => receive = pending,
    ///             }
    ///         };
    ///         assert_eq!(*value, other.rank());
    ///     });
    /// });
    /// ```
    pub fn test_with_data(self) -> Result<(Status, &'a D), Self> {
        if !self.is_done() {
            give_way(self.site);
        }
        if !self.is_done() {
            return Err(self);
        }
        let Parts { state, data, site, kept, .. } = self.into_parts();
        let outcome = match state {
            State::Done(outcome) => outcome,
            State::Pending(ticket) => {
                let request = ticket.number(site).at(site).or_refuse();
                pe::with(|pe| pe.engine.running().take_if_done(request)).unwrap_or_default()
            }
            State::Task(done) => {
                done.get().cloned().unwrap_or(Ok(())).or_refuse();
                Completion::default()
            }
        };
        Ok((settle(outcome, kept, site).or_refuse(), data))
    }

    pub(crate) fn site(&self) -> Site {
        self.site
    }

    fn is_done(&self) -> bool {
        match &self.state {
            State::Done(_) => true,
            State::Pending(ticket) => {
                let request = ticket.number(self.site).at(self.site).or_refuse();
                pe::with(|pe| pe.engine.running().is_done(request))
            }
            State::Task(done) => done.get().is_some(),
        }
    }

    /// Asks to cancel it (section 3.8.4): a receive without a message is done then, and a send that waits
    /// for its receive soon, if that is not there. It still has to be completed. Collective and generalized requests
    /// cannot be cancelled: for them, nothing happens.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), 0);
    ///     vrt::request::scope(|scope| {
    ///         let receive = other.immediate_receive_into(scope, &mut theirs);
    ///         // No message is sent.
    ///         receive.cancel();
    ///         assert!(receive.wait().is_cancelled());
    ///     });
    /// });
    /// ```
    pub fn cancel(&self) {
        if let State::Pending(ticket) = self.state {
            let request = ticket.number(self.site).at(self.site).or_refuse();
            pe::with(|pe| pe.engine.cancel_any(request));
        }
    }

    /// Moves it to a scope that ends sooner.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::request::{StaticScope, wait_any};
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
    ///     vrt::request::scope(|scope| {
    ///         let of_static = other.immediate_send(StaticScope, &7);
    ///         let mut requests =
    ///             vec![of_static.shrink_scope_to(scope), other.immediate_send(scope, &me)];
    ///         while wait_any(&mut requests).is_some() {}
    ///     });
    ///     assert_eq!(other.receive::<i32>().0, 7);
    ///     assert_eq!(other.receive::<i32>().0, other.rank());
    /// });
    /// ```
    pub fn shrink_scope_to<'b, S2>(self, scope: S2) -> Request<'b, D, S2>
    where
        'a: 'b,
        S2: Scope<'b>,
    {
        let Parts { state, data, pattern, site, kept, .. } = self.into_parts();
        scope.register();
        Request { state, data, scope, pattern, site, kept }
    }
}

/// What has to be done to wait for a request.
enum Awaits {
    Nothing(Completion),
    /// It is the running rank's request of this number.
    Request(MayBlock, u32),
    /// Its future has to be polled, or says what is wrong.
    Future,
}

/// A request taken apart.
struct Parts<'a, D: ?Sized, S> {
    state: State,
    data: &'a D,
    scope: S,
    pattern: Option<Pattern>,
    site: Site,
    kept: Option<Box<Kept>>,
}

/// The status of what is done; what has come is put into its place.
#[inline(always)]
fn settle(outcome: Completion, kept: Option<Box<Kept>>, site: Site) -> Result<Status, Error> {
    let status = Status::of(outcome, site)?;
    if let Some(mut kept) = kept
        && !outcome.is_cancelled()
    {
        kept.incoming.finish(status.bytes() as usize).at(site)?;
    }
    Ok(status)
}

impl<'a, D: ?Sized, S: Scope<'a>> Request<'a, D, S> {
    /// Ends it without waiting, if that can be done: a receive that no message has come for is
    /// withdrawn. It is registered no more then.
    fn give_up(&mut self) -> bool {
        let over = match &self.state {
            State::Done(_) => true,
            State::Task(done) => done.get().is_some(),
            State::Pending(ticket) => ticket.at_home().is_some_and(|request| {
                pe::with(|pe| {
                    pe.engine.cancel(request);
                    pe.engine.running().take_if_done(request).is_some()
                })
            }),
        };
        if over {
            self.state = State::Done(Completion::default());
            // SAFETY: it is completed.
            unsafe { self.scope.unregister() };
        } else {
            // The engine goes on using it.
            std::mem::forget(self.kept.take());
        }
        over
    }

    /// Ends it without waiting, while the rank is panicking; the job ends if that cannot be done.
    fn abandon(self) {
        let mut this = ManuallyDrop::new(self);
        if !this.give_up() {
            die_with_open_requests(1);
        }
        // SAFETY: it is not used again.
        drop(unsafe { std::ptr::read(&raw const this.kept) });
    }
}

impl<'a, D: ?Sized, S: Scope<'a>> Drop for Request<'a, D, S> {
    fn drop(&mut self) {
        // What cannot be ended its scope will notice.
        self.give_up();
        if !std::thread::panicking() {
            panic!("the request of {} was dropped without being completed", self.site);
        }
    }
}
