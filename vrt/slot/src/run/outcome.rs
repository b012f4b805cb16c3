//! How the program of a rank has ended, or that it has not.

use std::any::Any;
use std::cell::Cell;

/// The result of resuming a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// It waits, or lets others run.
    Suspended,
    /// Its program has ended with this status.
    Returned(i32),
}

/// The status of a rank whose program panicked.
pub const PANICKED: i32 = i32::MIN;

thread_local! {
    /// The payload of a panic of a rank of this thread.
    static PANIC: Cell<Option<Box<dyn Any + Send>>> = const { Cell::new(None) };
}

/// The payload of the panic of the rank that has just returned [`PANICKED`].
pub fn take_panic() -> Box<dyn Any + Send> {
    PANIC.take().unwrap_or_else(|| Box::new("a rank panicked"))
}

/// The status of a rank for this outcome of its program. Never inlined: the thread pointer is the PE's again.
#[inline(never)]
pub(crate) fn status_of(outcome: Result<i32, Box<dyn Any + Send>>) -> i32 {
    outcome.unwrap_or_else(|payload| {
        PANIC.set(Some(payload));
        PANICKED
    })
}
