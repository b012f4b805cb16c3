//! Sessions (MPI-4.1 section 11.3).

use std::cell::RefCell;

use super::errhandler::Handler;
use super::info::Info;

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) errhandler: RefCell<Handler>,
    pub(crate) info: Info,
}
