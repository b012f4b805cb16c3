//! Requests that are started again and again (MPI-4.1 sections 3.9 and 6.13).
//!
//! A persistent request that runs can be forgotten, and the borrow of its buffers is over then. So
//! what runs has all its bytes apart from them: a start copies what is sent, and `wait` or `test` put
//! what has come into its place.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::error::{At, Error, ErrorKind, OrRefuse};
use crate::operation::Site;
use crate::operation::{Status, site};
use crate::request::kept::Kept;
use crate::request::{Request, StaticScope, immediate};
use vrt_core::mailbox::Pattern;
use vrt_core::pe::Started;

type Boxed = Pin<Box<dyn Future<Output = Result<(), Error>>>>;
/// What puts what has come into its place.
pub(crate) type Settle<R> = Option<Box<dyn FnOnce(&mut R) -> Result<(), ErrorKind>>>;
type Begun = (Started, Box<Kept>, Option<Pattern>);
type StartWith<'a, S, R, T> = dyn FnMut(&mut S, &mut R) -> T + 'a;

/// How a start begins the operation.
enum Start<'a, S, R> {
    /// In the engine: how it stands, what has to be kept, and what it waits for.
    Message(Box<StartWith<'a, S, R, Begun>>),
    Collective(Box<StartWith<'a, S, R, (Boxed, Settle<R>)>>),
}

/// An operation with its arguments, which can be started any number of times.
///
/// It holds its buffers; a start copies what is sent, and `wait` or `test` put what was received into
/// its place. Between two runs they are looked at and changed through
/// [`send_data`](Self::send_data) and [`receive_data`](Self::receive_data).
///
/// # Panics
/// When it is dropped while it runs.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     let (mut out, mut back) = ([0u64; 2], [0u64; 2]);
///     let mut send = other.persistent_send(&mut out[..]);
///     let mut receive = other.persistent_receive_into(&mut back[..]);
///     for step in 0..10 {
///         send.send_data()[0] = step;
///         receive.start();
///         send.start();
///         send.wait();
///         receive.wait();
///         assert_eq!(receive.receive_data()[0], step);
///     }
/// });
/// ```
#[must_use = "a persistent request does nothing until it is started"]
pub struct PersistentRequest<'a, S, R> {
    active: Option<Request<'static, ()>>,
    settle: Settle<R>,
    start: Start<'a, S, R>,
    send: S,
    receive: R,
    site: Site,
}

impl<S, R> fmt::Debug for PersistentRequest<'_, S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersistentRequest")
            .field("call", &self.site.call)
            .field("active", &self.active.is_some())
            .finish_non_exhaustive()
    }
}

impl<'a, S, R> PersistentRequest<'a, S, R> {
    pub(crate) fn message(
        send: S,
        receive: R,
        site: Site,
        start: impl FnMut(&mut S, &mut R) -> Begun + 'a,
    ) -> Self {
        let start = Start::Message(Box::new(start));
        PersistentRequest { active: None, settle: None, start, send, receive, site }
    }

    pub(crate) fn collective(
        send: S,
        receive: R,
        site: Site,
        start: impl FnMut(&mut S, &mut R) -> (Boxed, Settle<R>) + 'a,
    ) -> Self {
        let start = Start::Collective(Box::new(start));
        PersistentRequest { active: None, settle: None, start, send, receive, site }
    }

    /// Starts it (`MPI_Start`).
    ///
    /// # Panics
    /// When it runs already.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), 0);
    ///     let mut receive = other.persistent_receive_into(&mut theirs);
    ///     for step in 0..3 {
    ///         receive.start();
    ///         other.send(&step);
    ///         receive.wait();
    ///         assert_eq!(**receive.receive_data(), step);
    ///     }
    /// });
    /// ```
    #[track_caller]
    pub fn start(&mut self) {
        self.expect_idle(site!("start"));
        let site = self.site;
        self.active = Some(match &mut self.start {
            Start::Message(start) => {
                let (started, kept, pattern) = start(&mut self.send, &mut self.receive);
                Request::with_buffers(started, &(), StaticScope, site, pattern, Some(kept))
            }
            Start::Collective(start) => {
                let (future, settle) = start(&mut self.send, &mut self.receive);
                self.settle = settle;
                // SAFETY: the future has what it uses.
                unsafe { immediate(StaticScope, &(), future, site) }
            }
        });
    }

    /// Whether it runs.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let mut barrier = world.persistent_barrier();
    ///     assert!(!barrier.is_active());
    ///     barrier.start();
    ///     assert!(barrier.is_active());
    ///     barrier.wait();
    ///     assert!(!barrier.is_active());
    /// });
    /// ```
    pub fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// Waits until it is done; at once if it does not run.
    ///
    /// # Panics
    /// As [`Request::wait`].
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), 0);
    ///     let mut receive = other.persistent_receive_into(&mut theirs);
    ///     assert_eq!(receive.wait(), None);
    ///     receive.start();
    ///     other.send(&7);
    ///     assert_eq!(receive.wait().map(|status| status.source_rank()), Some(other.rank()));
    /// });
    /// ```
    pub fn wait(&mut self) -> Option<Status> {
        self.try_wait().or_refuse()
    }

    /// [`wait`](Self::wait) that returns what was wrong. The request can be started again then.
    ///
    /// # Errors
    /// As [`Request::try_wait`]. The receive buffer stays what it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), 0);
    ///     let mut receive = other.persistent_receive_into(&mut theirs);
    ///     receive.start();
    ///     other.send(&[7, 8]);
    ///     // The message is too long.
    ///     assert!(receive.try_wait().is_err());
    ///
    ///     receive.start();
    ///     other.send(&9);
    ///     assert!(receive.try_wait().is_ok());
    ///     assert_eq!(**receive.receive_data(), 9);
    /// });
    /// ```
    pub fn try_wait(&mut self) -> Result<Option<Status>, Error> {
        let settle = self.settle.take();
        let status = self.active.take().map(Request::try_wait).transpose()?;
        settle.map_or(Ok(()), |settle| settle(&mut self.receive)).at(self.site)?;
        Ok(status)
    }

    /// Its status if it is done. `None` if it is not, or does not run.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), 0);
    ///     let mut receive = other.persistent_receive_into(&mut theirs);
    ///     receive.start();
    ///     other.send(&7);
    ///     while receive.test().is_none() {
    ///         // Here a rank does a part of its work.
    ///     }
    ///     assert_eq!(**receive.receive_data(), 7);
    /// });
    /// ```
    pub fn test(&mut self) -> Option<Status> {
        match self.active.take()?.test() {
            Ok(status) => {
                let settle = self.settle.take();
                settle.map_or(Ok(()), |settle| settle(&mut self.receive)).at(self.site).or_refuse();
                Some(status)
            }
            Err(request) => {
                self.active = Some(request);
                None
            }
        }
    }

    /// Asks to cancel what runs.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), 0);
    ///     let mut receive = other.persistent_receive_into(&mut theirs);
    ///     receive.start();
    ///     // No message is sent.
    ///     receive.cancel();
    ///     assert!(receive.wait().is_some_and(|status| status.is_cancelled()));
    /// });
    /// ```
    pub fn cancel(&self) {
        if let Some(active) = &self.active {
            active.cancel();
        }
    }

    /// The buffer that is sent from.
    ///
    /// # Panics
    /// When it runs.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut mine) = (world.process_at_rank(1 - world.rank()), [0; 2]);
    ///     let mut send = other.persistent_send(&mut mine);
    ///     send.send_data()[1] = 7;
    ///     send.start();
    ///     send.wait();
    ///     assert_eq!(other.receive_vec::<i32>().0, [0, 7]);
    /// });
    /// ```
    #[track_caller]
    pub fn send_data(&mut self) -> &mut S {
        self.expect_idle(site!("send_data"));
        &mut self.send
    }

    /// The buffer that is received into.
    ///
    /// # Panics
    /// When it runs.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), 0);
    ///     let mut receive = other.persistent_receive_into(&mut theirs);
    ///     receive.start();
    ///     other.send(&7);
    ///     receive.wait();
    ///     assert_eq!(**receive.receive_data(), 7);
    /// });
    /// ```
    #[track_caller]
    pub fn receive_data(&mut self) -> &mut R {
        self.expect_idle(site!("receive_data"));
        &mut self.receive
    }

    fn expect_idle(&self, site: Site) {
        if self.active.is_some() {
            panic!("{site} of a persistent request that runs: {}", self.site);
        }
    }
}

/// Starts several (`MPI_Startall`).
///
/// # Panics
/// When one of them runs already.
///
/// # Examples
///
/// ```
/// use vrt::request::start_all;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let (mut one, mut two) = (0, 0);
///     let mut receives = [
///         world.process_at_rank(0).persistent_receive_into(&mut one),
///         world.process_at_rank(1).persistent_receive_into(&mut two),
///     ];
///     start_all(&mut receives);
///     (0..2).for_each(|rank| world.process_at_rank(rank).send(&(10 + world.rank())));
///     for (receive, value) in receives.iter_mut().zip([10, 11]) {
///         receive.wait();
///         assert_eq!(**receive.receive_data(), value);
///     }
/// });
/// ```
#[track_caller]
pub fn start_all<'r, 'a: 'r, S: 'r, R: 'r>(
    requests: impl IntoIterator<Item = &'r mut PersistentRequest<'a, S, R>>,
) {
    requests.into_iter().for_each(PersistentRequest::start);
}
