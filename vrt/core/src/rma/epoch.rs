//! Which epochs of a window a call may begin, need or end (MPI-4.1 section 12.5).
//!
//! ```text
//! None <-> Fence    : a fence begins an epoch, unless it says that nothing succeeds it
//! None, Fence -> Started -> None     : start, complete
//! None, Fence -> Locked -> None      : lock, the last unlock
//! None, Fence -> LockedAll -> None   : lock_all, unlock_all
//! ```
//!
//! A fence ends one epoch and begins another; one without any access is not an epoch (section 12.5.1), so that any
//! other kind of epoch may begin after a fence.

/// What an access epoch allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epoch {
    /// Nothing.
    None,
    /// Everything, between two fences.
    Fence,
    /// Access to the ranks that it was started for.
    Started,
    /// Access to the ranks that are locked.
    Locked,
    /// Everything.
    LockedAll,
}

/// A call that is allowed in some epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochCall {
    /// `MPI_Win_fence`
    Fence,
    /// `MPI_Win_start`
    Start,
    /// `MPI_Win_complete`
    Complete,
    /// `MPI_Win_lock`
    Lock,
    /// `MPI_Win_lock_all`
    LockAll,
    /// `MPI_Win_unlock_all`
    UnlockAll,
    /// `MPI_Win_flush` and its variants
    Flush,
}

/// A call that the epoch does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this epoch does not allow it: {epoch:?}, allowed are {:?}", step.allowed())]
pub struct WrongEpoch {
    /// The epoch in which it was called.
    pub epoch: Epoch,
    /// The call.
    pub step: EpochCall,
}

impl EpochCall {
    /// The epochs in which it is allowed.
    pub const fn allowed(self) -> &'static [Epoch] {
        match self {
            EpochCall::Fence | EpochCall::Start | EpochCall::LockAll => {
                &[Epoch::None, Epoch::Fence]
            }
            EpochCall::Lock => &[Epoch::None, Epoch::Fence, Epoch::Locked],
            EpochCall::Complete => &[Epoch::Started],
            EpochCall::UnlockAll => &[Epoch::LockedAll],
            EpochCall::Flush => &[Epoch::Locked, Epoch::LockedAll],
        }
    }
}

impl Epoch {
    /// Whether a call is allowed.
    ///
    /// # Errors
    /// It is not.
    pub fn expect(self, step: EpochCall) -> Result<(), WrongEpoch> {
        match step.allowed().contains(&self) {
            true => Ok(()),
            false => Err(WrongEpoch { epoch: self, step }),
        }
    }

    /// Whether the memory of a rank may be accessed; `listed` returns whether it is one of those that the epoch was
    /// started for or that are locked.
    #[inline]
    pub fn lets_access(self, listed: impl FnOnce() -> bool) -> bool {
        match self {
            Epoch::None => false,
            Epoch::Fence | Epoch::LockedAll => true,
            Epoch::Started | Epoch::Locked => listed(),
        }
    }
}
