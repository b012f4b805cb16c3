//! Requests (MPI-4.1 sections 3.7, 3.9 and 13.2): operations in progress, persistent operations, and requests that the
//! program completes itself.
//!
//! ```text
//!              start                        done; wait or test
//! inactive ------------> active: Engine ---------------------------> inactive (persistent)
//! (persistent)                   Received (done at once)              | freed (others)
//!                                Task                                 v
//!                                Program                             MPI_REQUEST_NULL
//! ```
//!
//! An active request that is freed continues as a task of the rank, with the memory that it uses.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::Site;
use vrt_core::mailbox::Pattern;
use vrt_core::operation::{self, MayBlock, Pending};
use vrt_core::pe::{self, Completion};
use vrt_slot::{locals, rank};

use super::buffer::{Unpack, finish};
use super::generalized::Generalized;
use super::status::Stat;
use crate::fault::{Outcome, refuse};
use crate::handles::{Kind, Table};

/// A request.
pub(crate) struct Request {
    state: RefCell<State>,
    buffers: RefCell<Buffers>,
    /// How it is started, if it is persistent.
    start: Option<Box<Start>>,
    /// The object on which its errors are raised.
    on: MPI_Comm,
    site: &'static Site,
}

/// The requests of a rank.
pub(crate) struct Requests {
    pub(crate) all: Table<Request>,
    /// Memory of completed requests, for reuse.
    spares: RefCell<Vec<Rc<Request>>>,
}

impl Requests {
    /// The most spare ones that are kept.
    const MOST: usize = 64;

    pub(crate) fn new() -> Requests {
        Requests { all: Table::new(Kind::Request), spares: RefCell::default() }
    }

    /// The request, in memory of an earlier one if there is an unused one.
    fn fill(&self, request: Request) -> Rc<Request> {
        let Some(mut spare) = self.spares.borrow_mut().pop() else { return Rc::new(request) };
        match Rc::get_mut(&mut spare) {
            Some(place) => *place = request,
            None => return Rc::new(request),
        }
        spare
    }

    /// Removes a completed request.
    pub(crate) fn remove(&self, handle: MPI_Request) {
        let mut spares = self.spares.borrow_mut();
        if let Some(request) = self.all.remove(handle.0)
            && spares.len() < Self::MOST
        {
            spares.push(request);
        }
    }

    /// The request of a handle; `None` for the null handle.
    ///
    /// # Errors
    /// The handle is invalid.
    #[inline]
    pub(crate) fn find(&self, handle: MPI_Request) -> Outcome<Option<Rc<Request>>> {
        if handle == MPI_REQUEST_NULL {
            return Ok(None);
        }
        match self.all.get(handle.0) {
            Some(request) => Ok(Some(request)),
            None => {
                refuse!(MPI_ERR_REQUEST, "{:#x} is no request, or one that was freed", handle.0)
            }
        }
    }
}

/// Starts a persistent operation.
pub(crate) type Start = dyn Fn() -> Outcome<Begun>;
/// An operation that continues as a task.
pub(crate) type Future_ = Pin<Box<dyn Future<Output = Outcome<Stat>>>>;
/// The state of an operation that was just started, with the memory that it uses.
pub(crate) type Begun = (State, Buffers);

/// Memory that an operation uses in addition to the program's.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// The packed data of a send: kept alive, not read.
    #[expect(dead_code, reason = "keeps the bytes that are sent")]
    pub(crate) outgoing: Option<Vec<u8>>,
    /// Where a received message is unpacked to.
    pub(crate) unpack: Option<Box<Unpack>>,
}

/// The state of a request.
pub(crate) enum State {
    /// A persistent one that is not started.
    Inactive,
    /// Done; nothing is left to do.
    Done(Stat),
    /// The message has arrived, but is not unpacked yet.
    Received(Completion),
    /// A request of the engine's.
    Engine { number: u32, pattern: Option<Pattern> },
    /// A task of the rank, and its result.
    Task(Rc<Cell<Option<Outcome<Stat>>>>),
    /// The program completes it.
    Program(Rc<Generalized>),
}

impl State {
    pub(crate) fn done(stat: Stat) -> State {
        State::Done(stat)
    }

    /// A task that runs in the background; it begins at once.
    pub(crate) fn task(future: Future_) -> State {
        let outcome = Rc::new(Cell::new(None));
        let tell = Rc::clone(&outcome);
        locals::spawn(Box::pin(async move { tell.set(Some(future.await)) }));
        State::Task(outcome)
    }

    /// Whether waiting for it would end at once.
    fn is_ready(&self) -> bool {
        match self {
            State::Inactive | State::Done(_) | State::Received(_) => true,
            State::Engine { number, .. } => pe::with(|pe| pe.engine.running().is_done(*number)),
            State::Task(outcome) => {
                let taken = outcome.take();
                let is_ready = taken.is_some();
                outcome.set(taken);
                is_ready
            }
            State::Program(generalized) => generalized.is_complete(),
        }
    }
}

impl Request {
    fn with_start(
        site: &'static Site,
        on: MPI_Comm,
        (state, buffers): Begun,
        start: Option<Box<Start>>,
    ) -> Request {
        let (state, buffers) = (RefCell::new(state), RefCell::new(buffers));
        Request { state, buffers, start, on, site }
    }

    /// An operation in progress.
    pub(crate) fn new(site: &'static Site, on: MPI_Comm, begun: Begun) -> Request {
        Request::with_start(site, on, begun, None)
    }

    /// An operation that continues as a task; it begins at once.
    pub(crate) fn task(site: &'static Site, on: MPI_Comm, future: Future_) -> Request {
        Request::new(site, on, (State::task(future), Buffers::default()))
    }

    /// A request that the program completes.
    pub(crate) fn program(site: &'static Site, generalized: Generalized) -> Request {
        let state = State::Program(Rc::new(generalized));
        Request::new(site, MPI_COMM_SELF, (state, Buffers::default()))
    }

    /// A request that is started repeatedly.
    pub(crate) fn persistent(site: &'static Site, on: MPI_Comm, start: Box<Start>) -> Request {
        Request::with_start(site, on, (State::Inactive, Buffers::default()), Some(start))
    }

    /// Returns a handle of it to the program.
    ///
    /// # Safety
    /// There is room for one.
    pub(crate) unsafe fn give(self, requests: &Requests, to: *mut MPI_Request) {
        let request = requests.fill(self);
        // SAFETY: as the caller promises.
        unsafe { to.write(MPI_Request(requests.all.add(request))) };
    }

    /// Whether it is started repeatedly.
    #[inline]
    pub(crate) fn is_persistent(&self) -> bool {
        self.start.is_some()
    }

    /// The object on which its errors are raised.
    pub(crate) fn on(&self) -> MPI_Comm {
        self.on
    }

    /// The generalized request, if it is one.
    pub(crate) fn generalized(&self) -> Option<Rc<Generalized>> {
        match &*self.state.borrow() {
            State::Program(generalized) => Some(Rc::clone(generalized)),
            _ => None,
        }
    }

    /// Whether it is to be waited for.
    pub(crate) fn is_active(&self) -> bool {
        !matches!(*self.state.borrow(), State::Inactive)
    }

    /// Whether waiting for it would end at once.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.state.borrow().is_ready()
    }

    /// What it waits for, for messages to people.
    pub(crate) fn pattern(&self) -> Option<Pattern> {
        match &*self.state.borrow() {
            State::Engine { pattern, .. } => *pattern,
            _ => None,
        }
    }

    /// Waits until it is done; returns its status. It is inactive then.
    ///
    /// # Errors
    /// The operation, or a function of the program, has failed.
    pub(crate) fn wait(&self, may_block: MayBlock, call: &'static str) -> Outcome<Stat> {
        let state = self.state.replace(State::Inactive);
        let buffers = self.buffers.take();
        let site = Site { call, ..*self.site };
        match state {
            State::Inactive => Ok(Stat::EMPTY),
            State::Done(stat) => Ok(stat),
            // SAFETY: the program keeps the buffer until the request is done.
            State::Received(outcome) => unsafe { finish(outcome, buffers.unpack.as_deref()) },
            State::Engine { number, pattern } => {
                let start = |engine: &mut pe::Engine| engine.outcome(number);
                let outcome = operation::block_on_request(may_block, start, pattern, &site);
                // SAFETY: as above.
                unsafe { finish(outcome, buffers.unpack.as_deref()) }
            }
            State::Task(outcome) => loop {
                if let Some(outcome) = outcome.take() {
                    return outcome;
                }
                let is_done = || {
                    let taken = outcome.take();
                    let is_done = taken.is_some();
                    outcome.set(taken);
                    is_done
                };
                wait_until(may_block, site, None, is_done);
            },
            State::Program(generalized) => {
                wait_until(may_block, site, None, || generalized.is_complete());
                generalized.finish()
            }
        }
    }

    /// Its status; it must be done, and is kept.
    pub(crate) fn look(&self) -> Stat {
        match &*self.state.borrow() {
            State::Inactive => Stat::EMPTY,
            State::Done(stat) => *stat,
            State::Received(outcome) => Stat::of(outcome),
            State::Engine { number, .. } => {
                let outcome = pe::with(|pe| pe.engine.running().outcome_of(*number));
                Stat::of(&outcome)
            }
            State::Task(outcome) => {
                let taken = outcome.take();
                let stat = taken.as_ref().and_then(|outcome| outcome.as_ref().ok().copied());
                outcome.set(taken);
                stat.unwrap_or(Stat::EMPTY)
            }
            State::Program(generalized) => generalized.query().unwrap_or(Stat::EMPTY),
        }
    }

    /// Starts it.
    ///
    /// # Errors
    /// It is not persistent, or active already, or its operation cannot be started.
    pub(crate) fn begin(&self) -> Outcome {
        let Some(start) = &self.start else {
            refuse!(MPI_ERR_REQUEST, "the request is not persistent, so it cannot be started");
        };
        if self.is_active() {
            refuse!(MPI_ERR_REQUEST, "the request is active already");
        }
        let (state, buffers) = start()?;
        self.state.replace(state);
        self.buffers.replace(buffers);
        Ok(())
    }

    /// Lets it continue in the background; its outcome is ignored.
    pub(crate) fn abandon(&self) {
        let state = self.state.replace(State::Inactive);
        let buffers = self.buffers.take();
        match state {
            State::Engine { number, pattern } => {
                let pending = Pending::new(number, *self.site, pattern);
                locals::spawn(Box::pin(async move {
                    if let Ok(outcome) = pending.await {
                        // SAFETY: the program keeps the buffer until the operation is over.
                        let _ = unsafe { finish(outcome, buffers.unpack.as_deref()) };
                    }
                    drop(buffers);
                }));
            }
            // SAFETY: as above.
            State::Received(outcome) => unsafe {
                let _ = finish(outcome, buffers.unpack.as_deref());
            },
            State::Program(generalized) => generalized.forget(),
            State::Inactive | State::Done(_) | State::Task(_) => {}
        }
    }

    /// Cancels it, if that is possible still.
    ///
    /// # Errors
    /// A function of the program fails.
    pub(crate) fn cancel(&self) -> Outcome {
        match &*self.state.borrow() {
            State::Engine { number, .. } => {
                pe::with(|pe| pe.engine.cancel_any(*number));
                Ok(())
            }
            State::Program(generalized) => generalized.cancel(),
            _ => Ok(()),
        }
    }
}

/// Suspends the rank until a condition holds.
pub(crate) fn wait_until(
    may_block: MayBlock,
    site: Site,
    pattern: Option<Pattern>,
    is_so: impl Fn() -> bool,
) {
    let future = std::future::poll_fn(|context| {
        if is_so() {
            return Poll::Ready(());
        }
        pe::with(|pe| pe.engine.running().await_request(None, site.wait(pattern)));
        rank::remember(context.waker());
        Poll::Pending
    });
    operation::drive(may_block, future);
}
