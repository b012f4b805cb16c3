//! Serde for addresses that mean the same in every PE of a node: in the arena, or in the program.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A pointer.
pub(crate) trait Address: Copy {
    fn address(self) -> usize;
    fn at(address: usize) -> Self;
}

impl<T> Address for *mut T {
    fn address(self) -> usize {
        self as usize
    }

    fn at(address: usize) -> *mut T {
        address as *mut T
    }
}

impl<T> Address for *const T {
    fn address(self) -> usize {
        self as usize
    }

    fn at(address: usize) -> *const T {
        address as *const T
    }
}

pub(crate) fn serialize<S: Serializer>(
    at: &impl Address,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (at.address() as u64).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>, A: Address>(
    deserializer: D,
) -> Result<A, D::Error> {
    u64::deserialize(deserializer).map(|address| A::at(address as usize))
}
