//! Communicators as numbers, and as a part of a rank's state.
//!
//! The number is the communicator's context. In what is given to
//! [`migrate`](crate::topology::Communicator::migrate) a communicator is written as its number, and found
//! again by it when the program begins again (`vrt_core::comm::records`). Elsewhere it cannot be written: to
//! another rank the number says nothing.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use vrt_core::comm::handle::{CommunicatorHandle, Members};
use vrt_core::comm::shape::Shape;
use vrt_core::comm::{SELF, WORLD, records};

use crate::ffi::MPI_Comm;
use crate::raw::{AsRaw, FromRaw};
use crate::topology::sealed::AsHandle;
use crate::topology::{
    CartesianCommunicator, DistributedGraphCommunicator, GraphCommunicator, InterCommunicator,
    SimpleCommunicator, UserGroup,
};

// SAFETY: the handle is a number that stands for this communicator.
unsafe impl AsRaw for CommunicatorHandle {
    type Raw = MPI_Comm;

    fn as_raw(&self) -> MPI_Comm {
        MPI_Comm(self.context)
    }
}

/// The running rank's communicator of a number.
fn find(number: u32) -> Option<CommunicatorHandle> {
    match number {
        WORLD => Some(SimpleCommunicator::world().0),
        SELF => Some(SimpleCommunicator::self_comm().0),
        number => CommunicatorHandle::find(number),
    }
}

impl FromRaw for CommunicatorHandle {
    /// # Panics
    /// When the rank has no such communicator.
    #[track_caller]
    unsafe fn from_raw(handle: MPI_Comm) -> CommunicatorHandle {
        match find(handle.0) {
            Some(found) => found,
            None => panic!("this rank has no communicator of the number {}", handle.0),
        }
    }
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

/// Writes a communicator as a part of its rank's state.
fn write<S: Serializer>(handle: &CommunicatorHandle, serializer: S) -> Result<S::Ok, S::Error> {
    if !records::is_open() {
        return Err(S::Error::custom(
            "a communicator can be written as a part of the state given to `migrate` only: to other ranks \
             it means nothing",
        ));
    }
    handle.context.serialize(serializer)
}

/// The communicator that was written.
fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CommunicatorHandle, D::Error> {
    let number = u32::deserialize(deserializer)?;
    if !records::is_open() {
        return Err(D::Error::custom(
            "a communicator can be read as a part of the state given to `migrate` only",
        ));
    }
    find(number).ok_or_else(|| {
        D::Error::custom(format!("this rank has no communicator of the number {number}"))
    })
}

macro_rules! written_in_states {
    ($($communicator:ty, $name:literal, $is:expr, $make:expr;)*) => {$(
        impl Serialize for $communicator {
            /// As a part of the state of a rank that moves by it; an error elsewhere.
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                write(self.as_handle(), serializer)
            }
        }

        impl<'de> Deserialize<'de> for $communicator {
            /// From the state of a rank that has moved by it; an error elsewhere.
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let handle = read(deserializer)?;
                let is: fn(&CommunicatorHandle) -> bool = $is;
                if !is(&handle) {
                    return Err(D::Error::custom(concat!("the communicator is not ", $name)));
                }
                Ok($make(handle))
            }
        }
    )*};
}

written_in_states! {
    SimpleCommunicator, "one group's", |it| it.remote.is_none(), SimpleCommunicator;
    InterCommunicator, "an intercommunicator", |it| it.remote.is_some(), InterCommunicator;
    CartesianCommunicator, "Cartesian", |it| matches!(it.shape, Shape::Cartesian(_)),
        |it| CartesianCommunicator(SimpleCommunicator(it));
    GraphCommunicator, "a graph", |it| matches!(it.shape, Shape::Graph(_)),
        |it| GraphCommunicator(SimpleCommunicator(it));
    DistributedGraphCommunicator, "a distributed graph",
        |it| matches!(it.shape, Shape::DistributedGraph(_)),
        |it| DistributedGraphCommunicator(SimpleCommunicator(it));
}

impl Serialize for UserGroup {
    /// As its ranks of the job.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter())
    }
}

impl<'de> Deserialize<'de> for UserGroup {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(UserGroup(Members::from_list(&Vec::deserialize(deserializer)?)))
    }
}

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
