//! Error handlers (MPI-4.1 section 9.3): whom an object's errors are passed to.

use std::ffi::c_int;
use std::rc::Rc;

use vrt_abi::constants::*;
use vrt_abi::types::*;

use crate::fault::{Outcome, refuse};
use crate::handles::Table;

/// The object on which an error is raised.
#[derive(Clone, Copy, Debug)]
pub(crate) enum On {
    /// None: `MPI_COMM_SELF`'s handler is called (MPI-4.1 section 9.3).
    Nothing,
    /// A communicator.
    Comm(MPI_Comm),
    /// A window.
    Win(MPI_Win),
    /// A session.
    Session(MPI_Session),
}

/// A handler made by a program: its function, and the kind of object whose errors it handles.
#[derive(Debug)]
pub(crate) enum Errhandler {
    Comm(MPI_Comm_errhandler_function),
    Win(MPI_Win_errhandler_function),
    Session(MPI_Session_errhandler_function),
    /// For files, which do not exist yet.
    File,
}

/// The handler of an object. It remains usable when its handle has been freed.
#[derive(Clone, Debug)]
pub(crate) struct Handler {
    handle: MPI_Errhandler,
    function: Option<Rc<Errhandler>>,
}

impl Handler {
    /// The initial handler of communicators.
    pub(crate) const FATAL: Handler = Handler { handle: MPI_ERRORS_ARE_FATAL, function: None };

    /// The handler of a handle.
    ///
    /// # Errors
    /// The handle is invalid.
    pub(crate) fn of(made: &Table<Errhandler>, handle: MPI_Errhandler) -> Outcome<Handler> {
        match handle {
            MPI_ERRORS_ARE_FATAL | MPI_ERRORS_ABORT | MPI_ERRORS_RETURN => {
                Ok(Handler { handle, function: None })
            }
            MPI_Errhandler(number) => match made.get(number) {
                Some(function) => Ok(Handler { handle, function: Some(function) }),
                None => refuse!(MPI_ERR_ERRHANDLER, "{number:#x} is no error handler"),
            },
        }
    }

    /// Whether the job ends.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(self.handle, MPI_ERRORS_ARE_FATAL | MPI_ERRORS_ABORT)
    }

    /// A handle, which the program frees when it does not need it any more.
    pub(crate) fn give(&self, made: &Table<Errhandler>) -> MPI_Errhandler {
        match &self.function {
            Some(function) => MPI_Errhandler(made.add(Rc::clone(function))),
            None => self.handle,
        }
    }

    /// Passes an error to the program's function, if there is one for this kind of object; returns the code that the
    /// function has left.
    pub(crate) fn call(&self, on: On, mut code: c_int) -> c_int {
        // SAFETY: the program's own handlers, which it gave for this kind of object.
        unsafe {
            match (self.function.as_deref(), on) {
                (Some(Errhandler::Comm(Some(function))), On::Comm(mut comm)) => {
                    function(&raw mut comm, &raw mut code);
                }
                (Some(Errhandler::Comm(Some(function))), On::Nothing) => {
                    let mut comm = MPI_COMM_SELF;
                    function(&raw mut comm, &raw mut code);
                }
                (Some(Errhandler::Win(Some(function))), On::Win(mut win)) => {
                    function(&raw mut win, &raw mut code);
                }
                (Some(Errhandler::Session(Some(function))), On::Session(mut session)) => {
                    function(&raw mut session, &raw mut code);
                }
                _ => {}
            }
        }
        code
    }
}
