//! The suspended program of a rank, as its slot's header keeps it. Where it is on its stack is known to
//! [`stack`](crate::stack); it is run by `run`.

use std::cell::{Cell, RefCell};
use std::task::Waker;

use corosensei::Yielder;

use crate::runtime::Program;

/// The suspended program of a rank, in its slot's header.
pub enum Body {
    /// There is none: not begun, or ended.
    None,
    /// A coroutine on the slot's stack; also while it runs.
    Suspended(Suspended),
    /// The rank is a thread of the process, and the PE's loop the coroutine.
    Thread(ThreadRank),
}

/// A rank's coroutine and the data needed for suspending.
pub struct Suspended {
    /// Where its stack ends while it does not run, ..
    pub(crate) end: Cell<usize>,
    /// .. and where that of its PE's loop ends while it does.
    pub(crate) end_of_loop: Cell<usize>,
    pub(crate) program: Program,
    /// Whether the rank is async: then blocking calls are refused.
    pub(crate) is_async: Cell<bool>,
    /// An address in the frame that runs the program; above it lie only the frames of the switch.
    pub(crate) first_frame: Cell<usize>,
    /// Wakers of executors inside the rank (`join_all` and the like) that wait for `vrt`.
    pub(crate) inner: RefCell<Vec<Waker>>,
    /// Whether there are any.
    pub(crate) has_inner: Cell<bool>,
}

/// The body of a rank that is a thread of the process.
pub struct ThreadRank {
    /// On the loop's stack.
    pub(crate) yielder: *const Yielder<(), ()>,
    /// The thread is about to end.
    pub(crate) has_returned: Cell<bool>,
    /// Wakers of executors inside the rank that wait for `vrt`.
    pub(crate) inner: RefCell<Vec<Waker>>,
}
