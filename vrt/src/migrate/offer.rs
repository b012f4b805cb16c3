//! Moving by state: a rank offers itself, and begins again elsewhere from what it said it is.
//!
//! ```text
//! program: restore() -> None       first life
//!          ... migrate(&mut state) offers itself; goes on when it stays
//!                |
//!                `- moved: state encoded, stack and heap dropped whole (no destructors run, as
//!                   with exec), sent; on the other PE the program begins again
//! program: restore() -> Some(state) and goes on from there
//! ```
//!
//! With `--move memory` the rank goes as it is, and `restore` never finds anything; the same
//! program runs both ways.

use serde::{Serialize, de::DeserializeOwned};
use std::panic::Location;
use std::time::Instant;

use crate::config::MoveBy;
use crate::operation::{self, Pending, Site};
use crate::pe::{self, Started};
use crate::rank;

/// See [`Communicator::migrate`](crate::topology::Communicator::migrate).
pub(crate) fn migrate<T: Serialize + DeserializeOwned>(
    state: &mut T,
    location: &'static Location<'static>,
) {
    rank::expect_blocking("migrate", location);
    let Some(bytes) = prepare(state, location) else { return };
    let site = Site { call: "migrate", location };
    let (at, len) = (bytes.as_ptr() as usize, bytes.len());
    operation::block_on_request(|engine| engine.offer(at, len), None, site);
}

/// See [`Communicator::migrate_async`](crate::topology::Communicator::migrate_async).
pub(crate) async fn migrate_async<T: Serialize + DeserializeOwned>(
    state: &mut T,
    location: &'static Location<'static>,
) {
    let Some(bytes) = prepare(state, location) else { return };
    let site = Site { call: "migrate_async", location };
    let (at, len) = (bytes.as_ptr() as usize, bytes.len());
    if let Started::Pending(request) = pe::with(|pe| pe.engine.offer(at, len)) {
        Pending::new(request, site, None).await;
    }
}

/// The state as it would travel, empty when the rank moves with its memory; `None` when there is
/// no reason to offer it now.
fn prepare<T: Serialize + DeserializeOwned>(
    state: &mut T,
    location: &'static Location<'static>,
) -> Option<Vec<u8>> {
    let began = Instant::now();
    let encode = |state: &T| {
        crate::encoding::encode(state)
            .unwrap_or_else(|error| panic!("migrate at {location}: {error}"))
    };
    let bytes = match pe::with(|pe| pe.engine.would_move()) {
        None => return None,
        Some(MoveBy::Memory) => return Some(Vec::new()),
        Some(MoveBy::State) => encode(state),
        Some(MoveBy::InPlace) => {
            let bytes = encode(state);
            match crate::encoding::decode(&bytes) {
                Ok(same) => *state = same,
                Err(error) => panic!("migrate at {location}: {error}"),
            }
            return Some(Vec::new());
        }
    };
    // It will be decoded, too.
    let (len, seconds) = (bytes.len() as u64, 2.0 * began.elapsed().as_secs_f64());
    pe::with(|pe| pe.engine.balancer.copied(len, seconds));
    Some(bytes)
}

/// See [`Communicator::restore`](crate::topology::Communicator::restore).
pub(crate) fn restore<T: DeserializeOwned>(location: &'static Location<'static>) -> Option<T> {
    let len = pe::with(|pe| pe.engine.running().restored.as_ref().map(Vec::len))?;
    // The rank decodes on its own heap; the PE keeps its copy on its own.
    let mut bytes = vec![0u8; len];
    pe::with(|pe| {
        if let Some(restored) = pe.engine.running().restored.take() {
            bytes.copy_from_slice(&restored);
        }
    });
    match crate::encoding::decode(&bytes) {
        Ok(state) => Some(state),
        Err(error) => {
            panic!("restore at {location}: this is not the type that was given to migrate: {error}")
        }
    }
}
