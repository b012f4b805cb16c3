//! What `external`, which keeps account of what ranks hold outside their slots, does for those below it: `signals`
//! and `timers`. Set once, when the process is to run ranks; before that nobody holds anything.

use std::ffi::c_int;
use std::sync::OnceLock;

use crate::SlotHeader;
use crate::held::Kind;

/// Is told of each child, what its rank was last told of it, and the slot of the rank; says what it has told now.
pub(crate) type TellOfChild<'a> = &'a mut dyn FnMut(libc::pid_t, c_int, u32) -> Option<c_int>;

/// The functions of `external`.
pub(crate) struct Accounts {
    /// Goes through the children that ranks have. It may be called in a signal handler.
    pub(crate) children: fn(TellOfChild<'_>),
    /// The slot's header of the rank that has started the calling thread.
    pub(crate) starter: fn() -> Option<*mut SlotHeader>,
    /// The running rank holds something from now on.
    pub(crate) holds: fn(Kind, usize),
    /// Something that a rank holds has ended.
    pub(crate) ends: fn(Kind, usize),
}

static ACCOUNTS: OnceLock<Accounts> = OnceLock::new();

/// These are the functions, from now on.
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
