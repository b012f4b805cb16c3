//! The services of `external`, which accounts for what ranks hold outside their slots, for the modules below it:
//! `signals` and `timers`. Set once, when the process is to run ranks; before that no rank holds anything.

use std::ffi::c_int;
use std::sync::OnceLock;

use crate::SlotHeader;
use crate::held::Kind;

/// Receives each child, the last state that its rank was told, and the slot of the rank; returns the state that it has
/// told now.
pub(crate) type TellOfChild<'a> = &'a mut dyn FnMut(libc::pid_t, c_int, u32) -> Option<c_int>;

/// The functions of `external`.
pub(crate) struct Accounts {
    /// Visits the children of ranks. It may be called in a signal handler.
    pub(crate) children: fn(TellOfChild<'_>),
    /// The slot's header of the rank that has started the calling thread.
    pub(crate) starter: fn() -> Option<*mut SlotHeader>,
    /// The running rank holds something from now on.
    pub(crate) holds: fn(Kind, usize),
    /// Something that a rank holds has ended.
    pub(crate) ends: fn(Kind, usize),
}

static ACCOUNTS: OnceLock<Accounts> = OnceLock::new();

/// Sets the functions.
pub(crate) fn set(accounts: Accounts) {
    let _: &Accounts = ACCOUNTS.get_or_init(|| accounts);
}

/// [`Accounts::children`].
pub(crate) fn children(tell: TellOfChild<'_>) {
    if let Some(accounts) = ACCOUNTS.get() {
        (accounts.children)(tell);
    }
}

/// [`Accounts::starter`].
pub(crate) fn starter() -> Option<*mut SlotHeader> {
    (ACCOUNTS.get()?.starter)()
}

/// [`Accounts::holds`].
pub(crate) fn holds(kind: Kind, key: usize) {
    if let Some(accounts) = ACCOUNTS.get() {
        (accounts.holds)(kind, key);
    }
}

/// [`Accounts::ends`].
pub(crate) fn ends(kind: Kind, key: usize) {
    if let Some(accounts) = ACCOUNTS.get() {
        (accounts.ends)(kind, key);
    }
}
