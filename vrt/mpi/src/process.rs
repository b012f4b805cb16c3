//! The MPI state of a rank: its tables of handles, and the phase of its life.
//!
//! It is in the rank's heap, is found by a word of the rank's slot, and moves with the rank. Everything in it except
//! its atomics is used only by the rank's own thread, and nothing of it is borrowed while the program's own functions
//! run (operations, handlers, attribute callbacks): their arguments were taken out before.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::handle::Members;
use vrt_slot::external::threads::header_of_starter;
use vrt_slot::hooks;

use crate::fault::{Outcome, refuse};
use crate::handles::{Kind, Table};
use crate::object::attribute::{Constants, Keyvals};
use crate::object::datatype::Types;
use crate::object::request::Requests;
use crate::object::{Codes, Comm, Errhandler, Info, Message, Op, Session, Window};

/// The MPI state of a rank.
pub(crate) struct Process {
    /// Read by the rank's other threads, too.
    phase: AtomicU8,
    /// Between `MPI_Init` and `MPI_Finalize`, or while there is a session.
    is_usable: Cell<bool>,
    pub(crate) world: Rc<Comm>,
    pub(crate) itself: Rc<Comm>,
    pub(crate) comms: Table<Comm>,
    pub(crate) groups: Table<Members>,
    pub(crate) types: Types,
    pub(crate) ops: Table<Op>,
    pub(crate) requests: Requests,
    pub(crate) messages: Table<Message>,
    pub(crate) errhandlers: Table<Errhandler>,
    pub(crate) infos: Table<Info>,
    pub(crate) windows: Table<Window>,
    pub(crate) sessions: Table<Session>,
    pub(crate) keyvals: Keyvals,
    pub(crate) codes: Codes,
    /// The buffer given to `MPI_Buffer_attach`.
    pub(crate) buffer: Cell<(usize, usize)>,
    /// The thread level requested from `MPI_Init_thread`; read by the rank's other threads, too.
    pub(crate) threads: AtomicI32,
    /// The values of predefined attributes, to which programs get pointers.
    pub(crate) constants: OnceCell<Box<Constants>>,
}

/// The phases of a rank's life: before `MPI_Init`, between that and `MPI_Finalize`, and after it.
const BEFORE: u8 = 0;
const BETWEEN: u8 = 1;
const AFTER: u8 = 2;

impl Process {
    /// The state of a rank that has not called MPI yet.
    pub(crate) fn new(world: Comm, itself: Comm) -> Process {
        Process {
            phase: AtomicU8::new(BEFORE),
            is_usable: Cell::new(false),
            world: Rc::new(world),
            itself: Rc::new(itself),
            comms: Table::new(Kind::Communicator),
            groups: Table::new(Kind::Group),
            types: Types::new(),
            ops: Table::new(Kind::Op),
            requests: Requests::new(),
            messages: Table::new(Kind::Message),
            errhandlers: Table::new(Kind::Errhandler),
            infos: Table::new(Kind::Info),
            windows: Table::new(Kind::Window),
            sessions: Table::new(Kind::Session),
            keyvals: Keyvals::default(),
            codes: Codes::default(),
            buffer: Cell::new((0, 0)),
            threads: AtomicI32::new(MPI_THREAD_SINGLE),
            constants: OnceCell::new(),
        }
    }

    /// The state of the calling rank; `None` on other threads.
    #[inline(always)]
    pub(crate) fn current() -> Option<&'static Process> {
        let slot = hooks::heap_in_use();
        if slot.is_null() {
            return None;
        }
        // SAFETY: the heap in use is the running rank's, whose header stays mapped; its guest is null
        // or the process that `begin` has leaked, which is never freed while the rank runs.
        unsafe { (*slot).guest.get().cast::<Process>().as_ref() }
    }

    /// The state of the rank that has started the calling thread: only its atomics may be used.
    #[cold]
    pub(crate) fn of_starter() -> Option<&'static Process> {
        let slot = header_of_starter()?;
        // SAFETY: the header of a rank's slot stays mapped; the rank does not move while the thread runs. Its
        // guest was set before the thread was started, to what `begin` has leaked.
        unsafe { (*slot).guest.get().cast::<Process>().as_ref() }
    }

    /// Makes this the state of the calling rank, until the rank ends.
    pub(crate) fn begin(self) -> &'static Process {
        let process: &'static Process = Box::leak(Box::new(self));
        let slot = hooks::heap_in_use();
        if !slot.is_null() {
            // SAFETY: the running rank's own slot.
            unsafe { (*slot).guest.set(std::ptr::from_ref(process).cast_mut().cast()) };
        }
        process
    }

    /// Whether functions that need MPI to be initialized may be called.
    #[inline(always)]
    pub(crate) fn is_usable(&self) -> bool {
        self.is_usable.get()
    }

    fn phase(&self) -> u8 {
        self.phase.load(Ordering::Relaxed)
    }

    fn set_phase(&self, phase: u8) {
        self.phase.store(phase, Ordering::Relaxed);
        self.count_sessions();
    }

    /// A session has begun or ended.
    pub(crate) fn count_sessions(&self) {
        self.is_usable.set(self.phase() == BETWEEN || !self.sessions.is_empty());
    }

    pub(crate) fn is_finalized(&self) -> bool {
        self.phase() == AFTER
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.phase() != BEFORE
    }

    pub(crate) fn initialize(&self) {
        self.set_phase(BETWEEN);
    }

    pub(crate) fn finalize(&self) {
        self.set_phase(AFTER);
    }

    /// The communicator of a handle.
    ///
    /// # Errors
    /// The handle is invalid.
    #[inline]
    pub(crate) fn comm(&self, handle: MPI_Comm) -> Outcome<Rc<Comm>> {
        if handle == MPI_COMM_WORLD {
            return Ok(Rc::clone(&self.world));
        }
        match self.comms.get(handle.0) {
            Some(comm) => Ok(comm),
            None => self.predefined_comm(handle),
        }
    }

    /// Calls a function, which neither blocks nor calls the program, with the communicator of a handle.
    ///
    /// # Errors
    /// The handle is invalid; or those of the function.
    #[inline(always)]
    pub(crate) fn with_comm<R>(
        &self,
        handle: MPI_Comm,
        f: impl FnOnce(&Comm) -> Outcome<R>,
    ) -> Outcome<R> {
        let kept;
        // One call of the function, so that it becomes a part of the caller.
        f(match handle {
            MPI_COMM_WORLD => &self.world,
            _ => {
                kept = self.comm(handle)?;
                &kept
            }
        })
    }

    #[cold]
    fn predefined_comm(&self, handle: MPI_Comm) -> Outcome<Rc<Comm>> {
        match handle {
            MPI_COMM_SELF => Ok(Rc::clone(&self.itself)),
            MPI_COMM_NULL => refuse!(MPI_ERR_COMM, "the communicator is MPI_COMM_NULL"),
            MPI_Comm(number) => {
                refuse!(MPI_ERR_COMM, "{number:#x} is no communicator, or one that was freed")
            }
        }
    }

    /// The group of a handle.
    ///
    /// # Errors
    /// The handle is invalid.
    pub(crate) fn group(&self, handle: MPI_Group) -> Outcome<Rc<Members>> {
        match handle {
            MPI_GROUP_EMPTY => Ok(Rc::new(Members::from_list(&[]))),
            MPI_GROUP_NULL => refuse!(MPI_ERR_GROUP, "the group is MPI_GROUP_NULL"),
            MPI_Group(number) => match self.groups.get(number) {
                Some(group) => Ok(group),
                None => refuse!(MPI_ERR_GROUP, "{number:#x} is no group, or one that was freed"),
            },
        }
    }

    /// The window of a handle.
    ///
    /// # Errors
    /// The handle is invalid.
    pub(crate) fn window(&self, handle: MPI_Win) -> Outcome<Rc<Window>> {
        match self.windows.get(handle.0) {
            Some(window) => Ok(window),
            None if handle == MPI_WIN_NULL => refuse!(MPI_ERR_WIN, "the window is MPI_WIN_NULL"),
            None => refuse!(MPI_ERR_WIN, "{:#x} is no window, or one that was freed", handle.0),
        }
    }

    /// The session of a handle.
    ///
    /// # Errors
    /// The handle is invalid.
    pub(crate) fn session(&self, handle: MPI_Session) -> Outcome<Rc<Session>> {
        match self.sessions.get(handle.0) {
            Some(found) => Ok(found),
            None if handle == MPI_SESSION_NULL => {
                refuse!(MPI_ERR_SESSION, "the session is MPI_SESSION_NULL")
            }
            None => {
                refuse!(MPI_ERR_SESSION, "{:#x} is no session, or one that was finalized", handle.0)
            }
        }
    }

    /// The info object of a handle.
    ///
    /// # Errors
    /// The handle is invalid.
    pub(crate) fn info(&self, handle: MPI_Info) -> Outcome<Rc<Info>> {
        match handle {
            MPI_INFO_ENV => Ok(Rc::new(Info::environment(self.world.engine.size))),
            MPI_INFO_NULL => refuse!(MPI_ERR_INFO, "the info is MPI_INFO_NULL"),
            _ => match self.infos.get(handle.0) {
                Some(info) => Ok(info),
                None => refuse!(MPI_ERR_INFO, "{:#x} is no info, or one that was freed", handle.0),
            },
        }
    }

    /// A copy of the info object of a handle; the null handle is an empty one.
    ///
    /// # Errors
    /// The handle is invalid.
    pub(crate) fn info_or_empty(&self, handle: MPI_Info) -> Outcome<Info> {
        match handle {
            MPI_INFO_NULL => Ok(Info::default()),
            _ => self.info(handle).map(|info| (*info).clone()),
        }
    }
}
