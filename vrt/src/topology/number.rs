//! Communicators as numbers.
//!
//! The number is the communicator's context. A rank remembers which communicators it has asked for
//! their numbers, without keeping them alive.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use rustc_hash::FxHashMap;

use crate::ffi::MPI_Comm;
use crate::raw::{AsRaw, FromRaw};
use crate::topology::sealed::AsHandle;
use crate::topology::{CartesianCommunicator, InterCommunicator, NUMBERED, SimpleCommunicator};
use vrt_core::comm::handle::{CommunicatorHandle, Info};
use vrt_core::comm::shape::Shape;
use vrt_slot::locals;

// SAFETY: the handle is a number that stands for this communicator.
unsafe impl AsRaw for CommunicatorHandle {
    type Raw = MPI_Comm;

    fn as_raw(&self) -> MPI_Comm {
        numbered(|known| {
            known.retain(|_, info| info.strong_count() > 0);
            known.insert(self.context, Rc::downgrade(self.shared()));
        });
        MPI_Comm(self.context)
    }
}

impl FromRaw for CommunicatorHandle {
    /// # Panics
    /// When the rank has no such communicator.
    #[track_caller]
    unsafe fn from_raw(handle: MPI_Comm) -> CommunicatorHandle {
        let info = numbered(|known| known.get(&handle.0).and_then(Weak::upgrade));
        let Some(info) = info else {
            panic!("this rank has no communicator that has told it the number {}", handle.0);
        };
        CommunicatorHandle::from_shared(info)
    }
}

/// The communicators of the running rank whose numbers were asked for. A rank has at most one of a
/// context.
fn numbered<R>(f: impl FnOnce(&mut FxHashMap<u32, Weak<Info>>) -> R) -> R {
    let known = locals::keep(NUMBERED, RefCell::default);
    f(&mut known.borrow_mut())
}

macro_rules! numbers {
    ($($communicator:ty),*) => {$(
        // SAFETY: the handle is a number that stands for this communicator.
        unsafe impl AsRaw for $communicator {
            type Raw = MPI_Comm;

            fn as_raw(&self) -> MPI_Comm {
                self.as_handle().as_raw()
            }
        }
    )*};
}

numbers!(SimpleCommunicator, InterCommunicator, CartesianCommunicator);

impl FromRaw for SimpleCommunicator {
    /// # Panics
    /// When the rank has no such communicator, or it is an intercommunicator.
    #[track_caller]
    unsafe fn from_raw(handle: MPI_Comm) -> SimpleCommunicator {
        // SAFETY: as the caller promises.
        let this = unsafe { CommunicatorHandle::from_raw(handle) };
        assert!(this.remote.is_none(), "{handle:?} is an intercommunicator");
        SimpleCommunicator(this)
    }
}

impl FromRaw for InterCommunicator {
    /// # Panics
    /// When the rank has no such communicator, or it is no intercommunicator.
    #[track_caller]
    unsafe fn from_raw(handle: MPI_Comm) -> InterCommunicator {
        // SAFETY: as the caller promises.
        let this = unsafe { CommunicatorHandle::from_raw(handle) };
        assert!(this.remote.is_some(), "{handle:?} is no intercommunicator");
        InterCommunicator(this)
    }
}

impl FromRaw for CartesianCommunicator {
    /// # Panics
    /// When the rank has no such communicator, or it is not Cartesian.
    #[track_caller]
    unsafe fn from_raw(handle: MPI_Comm) -> CartesianCommunicator {
        // SAFETY: as the caller promises.
        let this = unsafe { CommunicatorHandle::from_raw(handle) };
        assert!(matches!(this.shape, Shape::Cartesian(_)), "{handle:?} is not Cartesian");
        CartesianCommunicator(SimpleCommunicator(this))
    }
}
