//! When a rank may access the memory of others, and they its own (MPI-4.1 section 12.5).
//!
//! ```text
//!                    fence                      fence, access
//!   None ------------------------> Fenced ----------------------> Fence
//!    ^   <------------------------         <--------------------
//!    |    fence that nothing succeeds       fence
//!    |
//!    |-- start ----> Started     -- complete ------------> None
//!    |-- lock -----> Locked      -- the last unlock -----> None
//!    '-- lock_all -> LockedAll   -- unlock_all ----------> None
//! ```
//!
//! A fence ends one epoch and begins another; one without any access is not an epoch (section 12.5.1), so that in
//! `Fenced`, as in `None`, any other kind of epoch may begin. (MPICH calls this state REFENCE.)
//!
//! The exposure of a rank's own memory, by post and wait, is a state of its own: the ranks that may access it.
//!
//! Only the state is kept here; who changes it orders the accesses ([`window`](super::window)).

use std::cell::{Cell, RefCell};

use crate::Rank;
use crate::error::Error;

/// What a rank may access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epoch {
    /// Nothing.
    None,
    /// Everything, since the last fence; nothing was accessed yet.
    Fenced,
    /// Everything, until the next fence.
    Fence,
    /// The memory of the ranks that it was started for.
    Started,
    /// The memory of the ranks that are locked.
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

impl EpochCall {
    /// The epochs in which it is allowed.
    pub const fn allowed(self) -> &'static [Epoch] {
        match self {
            EpochCall::Fence => &[Epoch::None, Epoch::Fenced, Epoch::Fence],
            EpochCall::Start | EpochCall::LockAll => &[Epoch::None, Epoch::Fenced],
            EpochCall::Lock => &[Epoch::None, Epoch::Fenced, Epoch::Locked],
            EpochCall::Complete => &[Epoch::Started],
            EpochCall::UnlockAll => &[Epoch::LockedAll],
            EpochCall::Flush => &[Epoch::Locked, Epoch::LockedAll],
        }
    }
}

/// What the epochs of a window do not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EpochError {
    /// A call in an epoch of another kind.
    #[error("this epoch does not allow it: {epoch:?}, allowed are {:?}", call.allowed())]
    Call {
        /// The call.
        call: EpochCall,
        /// The epoch in which it was called.
        epoch: Epoch,
    },
    /// An access to the memory of a rank that the epoch is not for.
    #[error(
        "the memory of rank {rank} is accessed outside of an epoch for it (fence, start, lock): {epoch:?}"
    )]
    Access {
        /// Whose memory.
        rank: Rank,
        /// The epoch.
        epoch: Epoch,
    },
    /// The memory is exposed already.
    #[error("ranks {to:?} may access it already")]
    Exposed {
        /// To whom.
        to: Vec<Rank>,
    },
    /// The memory of a rank is locked by the calling one.
    #[error("rank {rank} is locked already")]
    Locked {
        /// Whose memory.
        rank: Rank,
    },
    /// The memory of a rank is not locked by the calling one.
    #[error("rank {rank} is not locked")]
    NotLocked {
        /// Whose memory.
        rank: Rank,
    },
}

impl From<EpochError> for Error {
    #[cold]
    fn from(error: EpochError) -> Error {
        Error::Epoch { why: error.to_string() }
    }
}

/// The epochs of one rank at a window.
#[derive(Debug)]
pub struct Epochs {
    access: Cell<Epoch>,
    /// The ranks that have been started for, or that are locked.
    accessed: RefCell<Vec<Rank>>,
    /// The ranks that may access the own memory.
    exposed_to: RefCell<Vec<Rank>>,
}

impl Default for Epochs {
    fn default() -> Epochs {
        Epochs {
            access: Cell::new(Epoch::None),
            accessed: RefCell::default(),
            exposed_to: RefCell::default(),
        }
    }
}

impl Epochs {
    /// The access epoch.
    pub fn now(&self) -> Epoch {
        self.access.get()
    }

    /// Checks that the epoch allows a call.
    ///
    /// # Errors
    /// It does not.
    pub fn expect(&self, call: EpochCall) -> Result<(), EpochError> {
        let epoch = self.access.get();
        match call.allowed().contains(&epoch) {
            true => Ok(()),
            false => Err(EpochError::Call { call, epoch }),
        }
    }

    /// The memory of a rank is to be accessed.
    ///
    /// # Errors
    /// The epoch does not allow it.
    #[inline]
    pub fn access(&self, rank: Rank) -> Result<(), EpochError> {
        match self.access.get() {
            Epoch::Fence | Epoch::LockedAll => Ok(()),
            Epoch::Fenced => {
                self.access.set(Epoch::Fence);
                Ok(())
            }
            Epoch::Started | Epoch::Locked if self.is_listed(rank) => Ok(()),
            epoch => Err(EpochError::Access { rank, epoch }),
        }
    }

    fn is_listed(&self, rank: Rank) -> bool {
        self.accessed.borrow().contains(&rank)
    }

    /// All ranks have fenced; `succeeded`: accesses may follow.
    pub fn fenced(&self, succeeded: bool) {
        self.access.set(if succeeded { Epoch::Fenced } else { Epoch::None });
    }

    /// These ranks have exposed their memory to this one.
    pub fn started(&self, ranks: Vec<Rank>) {
        *self.accessed.borrow_mut() = ranks;
        self.access.set(Epoch::Started);
    }

    /// Ends what [`started`](Self::started) began; returns the ranks.
    ///
    /// # Errors
    /// In another epoch.
    pub fn complete(&self) -> Result<Vec<Rank>, EpochError> {
        self.expect(EpochCall::Complete)?;
        self.access.set(Epoch::None);
        Ok(self.accessed.take())
    }

    /// Checks that the memory of a rank can be locked.
    ///
    /// # Errors
    /// In another epoch, and if it is locked already.
    pub fn expect_lock(&self, rank: Rank) -> Result<(), EpochError> {
        self.expect(EpochCall::Lock)?;
        match self.is_listed(rank) {
            true => Err(EpochError::Locked { rank }),
            false => Ok(()),
        }
    }

    /// The memory of a rank has been locked.
    pub fn locked(&self, rank: Rank) {
        self.accessed.borrow_mut().push(rank);
        self.access.set(Epoch::Locked);
    }

    /// The memory of a rank is to be unlocked.
    ///
    /// # Errors
    /// It is not locked.
    pub fn unlock(&self, rank: Rank) -> Result<(), EpochError> {
        let mut locked = self.accessed.borrow_mut();
        let at = locked.iter().position(|locked| *locked == rank);
        let (Epoch::Locked, Some(at)) = (self.access.get(), at) else {
            return Err(EpochError::NotLocked { rank });
        };
        locked.swap_remove(at);
        if locked.is_empty() {
            self.access.set(Epoch::None);
        }
        Ok(())
    }

    /// The memory of all ranks has been locked.
    pub fn locked_all(&self) {
        self.access.set(Epoch::LockedAll);
    }

    /// Ends what [`locked_all`](Self::locked_all) began.
    ///
    /// # Errors
    /// In another epoch.
    pub fn unlock_all(&self) -> Result<(), EpochError> {
        self.expect(EpochCall::UnlockAll)?;
        self.access.set(Epoch::None);
        Ok(())
    }

    /// These ranks may access this rank's memory from now on.
    ///
    /// # Errors
    /// Others may already.
    pub fn expose(&self, ranks: &[Rank]) -> Result<(), EpochError> {
        let mut exposed_to = self.exposed_to.borrow_mut();
        if !exposed_to.is_empty() {
            return Err(EpochError::Exposed { to: exposed_to.clone() });
        }
        exposed_to.extend(ranks);
        Ok(())
    }

    /// The ranks that may access this rank's memory.
    pub fn exposed_to(&self) -> Vec<Rank> {
        self.exposed_to.borrow().clone()
    }

    /// Ends what [`expose`](Self::expose) began; returns the ranks.
    pub fn end_exposure(&self) -> Vec<Rank> {
        self.exposed_to.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fence without accesses is not an epoch: others may begin; after an access they may not.
    #[test]
    fn an_epoch_may_begin_after_a_fence_without_accesses() {
        let others = [EpochCall::Start, EpochCall::Lock, EpochCall::LockAll];
        let epochs = Epochs::default();
        for succeeded in [true, false] {
            epochs.fenced(succeeded);
            assert!(others.iter().all(|call| epochs.expect(*call).is_ok()), "{epochs:?}");
        }
        assert_eq!(epochs.access(1), Err(EpochError::Access { rank: 1, epoch: Epoch::None }));
        epochs.fenced(true);
        assert_eq!(epochs.access(1), Ok(()));
        for call in others {
            assert_eq!(epochs.expect(call), Err(EpochError::Call { call, epoch: Epoch::Fence }));
        }
        assert_eq!(epochs.expect(EpochCall::Fence), Ok(()));
    }

    /// Only the ranks that are locked may be accessed, until the last one is unlocked.
    #[test]
    fn locks_are_one_epoch() {
        let epochs = Epochs::default();
        for rank in [2, 5] {
            assert_eq!(epochs.expect_lock(rank), Ok(()));
            epochs.locked(rank);
        }
        assert_eq!(epochs.expect_lock(5), Err(EpochError::Locked { rank: 5 }));
        assert_eq!((epochs.access(2), epochs.access(5)), (Ok(()), Ok(())));
        assert_eq!(epochs.access(3), Err(EpochError::Access { rank: 3, epoch: Epoch::Locked }));
        assert_eq!(epochs.unlock(3), Err(EpochError::NotLocked { rank: 3 }));
        assert_eq!((epochs.unlock(2), epochs.now()), (Ok(()), Epoch::Locked));
        assert!(epochs.expect(EpochCall::Fence).is_err());
        assert_eq!((epochs.unlock(5), epochs.now()), (Ok(()), Epoch::None));
    }

    #[test]
    fn exposure_goes_beside_access() {
        let epochs = Epochs::default();
        assert_eq!(epochs.expose(&[1, 3]), Ok(()));
        assert_eq!(epochs.expose(&[2]), Err(EpochError::Exposed { to: vec![1, 3] }));
        epochs.started(vec![3]);
        assert_eq!(epochs.access(1), Err(EpochError::Access { rank: 1, epoch: Epoch::Started }));
        assert_eq!((epochs.access(3), epochs.complete()), (Ok(()), Ok(vec![3])));
        assert_eq!((epochs.exposed_to(), epochs.end_exposure()), (vec![1, 3], vec![1, 3]));
        assert_eq!(epochs.expose(&[]), Ok(()));
    }

    /// Each call is refused in each epoch that does not allow it, and changes nothing.
    #[test]
    fn what_is_refused_changes_nothing() {
        type Begin = fn(&Epochs);
        let begin: [(Epoch, Begin); 6] = [
            (Epoch::None, |_| ()),
            (Epoch::Fenced, |epochs| epochs.fenced(true)),
            (Epoch::Fence, |epochs| (epochs.fenced(true), epochs.access(0).unwrap()).1),
            (Epoch::Started, |epochs| epochs.started(vec![0])),
            (Epoch::Locked, |epochs| epochs.locked(0)),
            (Epoch::LockedAll, Epochs::locked_all),
        ];
        for (epoch, begin) in begin {
            let epochs = Epochs::default();
            begin(&epochs);
            assert_eq!(epochs.now(), epoch);
            let outcomes = [
                (EpochCall::Complete, epoch != Epoch::Started && epochs.complete().is_err()),
                (EpochCall::UnlockAll, epoch != Epoch::LockedAll && epochs.unlock_all().is_err()),
            ];
            for (call, is_refused) in outcomes {
                assert_eq!(is_refused, !call.allowed().contains(&epoch), "{call:?} in {epoch:?}");
            }
            assert_eq!(epochs.now(), epoch);
        }
    }
}
