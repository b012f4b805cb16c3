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
use crate::pe::{self, Encoded, Started};
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
    if let Started::Pending(request, _) = pe::with(|pe| pe.engine.offer(at, len)) {
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
    let encode = |state: &T| encode(state, "migrate", location);
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

fn encode<T: Serialize>(state: &T, call: &str, location: &Location<'_>) -> Vec<u8> {
    let len = pe::with(|pe| pe.engine.running().state_len);
    crate::encoding::encode_long(state, len + len / 8)
        .unwrap_or_else(|error| panic!("{call} at {location}: {error}"))
}

/// Why a rank has not moved where it wanted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotMove {
    /// There is no such PE.
    #[error("there is no PE {pe}: 0 to {last} are allowed")]
    NoSuchPe {
        /// Where it wanted to go.
        pe: u32,
        /// The last PE.
        last: u32,
    },
    /// The rank holds something that cannot move.
    #[error("the rank cannot move: {0}")]
    Pinned(&'static str),
}

/// See [`Communicator::migrate_to`](crate::topology::Communicator::migrate_to).
pub(crate) fn migrate_to<T: Serialize + DeserializeOwned>(
    to: u32,
    state: &mut T,
    location: &'static Location<'static>,
) -> Result<(), CannotMove> {
    rank::expect_blocking("migrate_to", location);
    let by_state = pe::with(|pe| {
        let engine = &mut pe.engine;
        let last = engine.shared.pes() as u32 - 1;
        if to > last {
            return Err(CannotMove::NoSuchPe { pe: to, last });
        }
        match engine.pinned(engine.current) {
            Some(why) => Err(CannotMove::Pinned(why)),
            None => Ok(engine.balancer.goes_by_state()),
        }
    })?;
    let bytes = if by_state { encode(state, "migrate_to", location) } else { Vec::new() };
    let site = Site { call: "migrate_to", location };
    let (at, len) = (bytes.as_ptr() as usize, bytes.len());
    // Another PE may be using the rank's memory at this moment: then it stays, and tries again.
    while pe::with(|pe| pe.engine.id) != to {
        operation::block_on_request(|engine| engine.leave_for(to, at, len), None, site);
    }
    Ok(())
}

/// See [`Communicator::restore`](crate::topology::Communicator::restore).
pub(crate) fn restore<T: DeserializeOwned>(location: &'static Location<'static>) -> Option<T> {
    let Encoded { at, len } = pe::with(|pe| pe.engine.running().restored)?;
    // SAFETY: a block of a pool of this node, which belongs to the rank until it is given back.
    let bytes = unsafe { std::slice::from_raw_parts(at, len) };
    let decoded = crate::encoding::decode(bytes);
    pe::with(|pe| pe.engine.running().drop_restored());
    match decoded {
        Ok(state) => Some(state),
        Err(error) => {
            panic!("restore at {location}: this is not the type that was given to migrate: {error}")
        }
    }
}
