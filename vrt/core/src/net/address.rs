//! Serde for addresses that mean the same in every PE of a node: in the arena, or in the program.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<S: Serializer>(at: &*mut u8, serializer: S) -> Result<S::Ok, S::Error> {
    (*at as usize as u64).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<*mut u8, D::Error> {
    u64::deserialize(deserializer).map(|at| at as usize as *mut u8)
}
