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
//!
//! The functions by which programs complete, start and query requests are in `complete`.

mod complete;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::Site;
use vrt_core::mailbox::Pattern;
use vrt_core::operation::{self, Pending};
use vrt_core::pe::{self, Completion};
use vrt_slot::{locals, rank};

use crate::buffer::Unpack;
use crate::call::Call;
use crate::fault::{Outcome, refuse};
use crate::generalized::Generalized;
use crate::process::Process;
use crate::receive;
use crate::status::Stat;

pub(crate) use complete::EXPORTS;

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

/// Memory of completed requests, for reuse.
#[derive(Default)]
pub(crate) struct Spares(RefCell<Vec<Rc<Request>>>);

impl Spares {
    /// The most that are kept.
    const MOST: usize = 64;

    fn keep(&self, request: Rc<Request>) {
        let mut spares = self.0.borrow_mut();
        if spares.len() < Self::MOST {
            spares.push(request);
        }
    }

    /// The request, in memory of an earlier one if there is an unused one.
    fn fill(&self, request: Request) -> Rc<Request> {
        let Some(mut spare) = self.0.borrow_mut().pop() else { return Rc::new(request) };
        match Rc::get_mut(&mut spare) {
            Some(place) => *place = request,
            None => return Rc::new(request),
        }
        spare
    }
}

/// Starts a persistent operation.
pub(crate) type Start = dyn Fn(Call) -> Outcome<Begun>;
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
    fn new(
        call: Call,
        on: MPI_Comm,
        (state, buffers): Begun,
        start: Option<Box<Start>>,
    ) -> Request {
        let (state, buffers) = (RefCell::new(state), RefCell::new(buffers));
        Request { state, buffers, start, on, site: call.site }
    }

    /// A send in progress.
    pub(crate) fn send(call: Call, on: MPI_Comm, begun: Begun) -> Request {
        Request::new(call, on, begun, None)
    }

    /// A receive in progress.
    pub(crate) fn receive(call: Call, on: MPI_Comm, begun: Begun) -> Request {
        Request::new(call, on, begun, None)
    }

    /// An operation that continues as a task; it begins at once.
    pub(crate) fn task(call: Call, on: MPI_Comm, future: Future_) -> Request {
        Request::new(call, on, (State::task(future), Buffers::default()), None)
    }

    /// A request that the program completes.
    pub(crate) fn program(call: Call, generalized: Generalized) -> Request {
        let state = State::Program(Rc::new(generalized));
        Request::new(call, MPI_COMM_SELF, (state, Buffers::default()), None)
    }

    /// A request that is started repeatedly.
    pub(crate) fn persistent(call: Call, on: MPI_Comm, start: Box<Start>) -> Request {
        Request::new(call, on, (State::Inactive, Buffers::default()), Some(start))
    }

    /// Returns a handle of it to the program.
    ///
    /// # Safety
    /// There is room for one.
    pub(crate) unsafe fn give(self, call: Call, to: *mut MPI_Request) {
        let request = call.process.spare_requests.fill(self);
        // SAFETY: as the caller promises.
        unsafe { to.write(MPI_Request(call.process.requests.add(request))) };
    }

    fn is_active(&self) -> bool {
        !matches!(*self.state.borrow(), State::Inactive)
    }

    fn is_ready(&self) -> bool {
        self.state.borrow().is_ready()
    }

    /// What it waits for, for messages to people.
    fn pattern(&self) -> Option<Pattern> {
        match &*self.state.borrow() {
            State::Engine { pattern, .. } => *pattern,
            _ => None,
        }
    }

    /// Waits until it is done; returns its status. It is inactive then.
    fn wait(&self, call: Call) -> Outcome<Stat> {
        let state = self.state.replace(State::Inactive);
        let buffers = self.buffers.take();
        let site = Site { call: call.site.call, ..*self.site };
        match state {
            State::Inactive => Ok(Stat::EMPTY),
            State::Done(stat) => Ok(stat),
            // SAFETY: the program keeps the buffer until the request is done.
            State::Received(outcome) => unsafe {
                receive::finish(outcome, buffers.unpack.as_deref())
            },
            State::Engine { number, pattern } => {
                let start = |engine: &mut pe::Engine| engine.outcome(number);
                let outcome = operation::block_on_request(call.may_block(), start, pattern, site);
                // SAFETY: as above.
                unsafe { receive::finish(outcome, buffers.unpack.as_deref()) }
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
                wait_until(call, site, None, is_done)?;
            },
            State::Program(generalized) => {
                wait_until(call, site, None, || generalized.is_complete())?;
                generalized.finish()
            }
        }
    }

    /// Its status; it must be done, and is kept.
    fn look(&self) -> Stat {
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

    fn begin(&self, call: Call) -> Outcome {
        let Some(start) = &self.start else {
            refuse!(MPI_ERR_REQUEST, "the request is not persistent, so it cannot be started");
        };
        if self.is_active() {
            refuse!(MPI_ERR_REQUEST, "the request is active already");
        }
        let (state, buffers) = start(call)?;
        self.state.replace(state);
        self.buffers.replace(buffers);
        Ok(())
    }

    /// Lets it continue in the background; its outcome is ignored.
    fn abandon(&self) {
        let state = self.state.replace(State::Inactive);
        let buffers = self.buffers.take();
        match state {
            State::Engine { number, pattern } => {
                let pending = Pending::new(number, *self.site, pattern);
                locals::spawn(Box::pin(async move {
                    if let Ok(outcome) = pending.await {
                        // SAFETY: the program keeps the buffer until the operation is over.
                        let _ = unsafe { receive::finish(outcome, buffers.unpack.as_deref()) };
                    }
                    drop(buffers);
                }));
            }
            // SAFETY: as above.
            State::Received(outcome) => unsafe {
                let _ = receive::finish(outcome, buffers.unpack.as_deref());
            },
            State::Program(generalized) => generalized.forget(),
            State::Inactive | State::Done(_) | State::Task(_) => {}
        }
    }

    fn cancel(&self) -> Outcome {
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
fn wait_until(
    call: Call,
    site: Site,
    pattern: Option<Pattern>,
    is_so: impl Fn() -> bool,
) -> Outcome {
    let future = std::future::poll_fn(|context| {
        if is_so() {
            return Poll::Ready(());
        }
        pe::with(|pe| pe.engine.running().await_request(None, site.wait(pattern)));
        rank::remember(context.waker());
        Poll::Pending
    });
    operation::drive(call.may_block(), future);
    Ok(())
}

/// The request of a handle; `None` for the null handle.
fn find(process: &Process, handle: MPI_Request) -> Outcome<Option<Rc<Request>>> {
    if handle == MPI_REQUEST_NULL {
        return Ok(None);
    }
    match process.requests.get(handle.0) {
        Some(request) => Ok(Some(request)),
        None => {
            refuse!(MPI_ERR_REQUEST, "{:#x} is no request, or one that was freed", handle.0)
        }
    }
}

/// The generalized request of a handle, if it is one.
///
/// # Errors
/// The request does not exist.
pub(crate) fn generalized(
    process: &Process,
    handle: MPI_Request,
) -> Outcome<Option<Rc<Generalized>>> {
    Ok(find(process, handle)?.and_then(|request| match &*request.state.borrow() {
        State::Program(generalized) => Some(Rc::clone(generalized)),
        _ => None,
    }))
}
