//! Moving by state: a rank offers itself, and begins again elsewhere from what it said it is.
//!
//! ```text
//! program: restore() -> None       first life
//!          ... migrate(&mut state) offers itself; goes on when it stays
//!                |
//!                `- told to go: encodes its state; stack and heap are dropped whole (no
//!                   destructors run, as with exec); on the other PE the program begins again
//! program: restore() -> Some(state) and goes on from there
//! ```
//!
//! With `--move memory` the rank goes as it is, and `restore` never finds anything; the same
//! program runs both ways.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use serde::{Serialize, de::DeserializeOwned};

use crate::operation::{self, At, ErrorKind, Lasting, OrRefuse, Pending, Site, may_block};
use vrt_core::comm::records::{self, Reopened};
use vrt_core::encoding::{self, DecodeError, EncodeError};
use vrt_core::migrate::{KeptState, Migration, MoveBy};
use vrt_core::pe::{self, Completion, Encoded, Engine, Started};

/// See [`Communicator::migrate`](crate::topology::Communicator::migrate).
pub(crate) fn migrate<T: Serialize + DeserializeOwned>(state: &mut T, site: Site) {
    let may_block = may_block(site);
    if !prepare(state, site) {
        return;
    }
    vrt_slot::check::wipe();
    operation::block_on_request(may_block, at_sync, None, &site);
    if let Some((to, kept)) = encode_if_told(state, site) {
        let leave = |engine: &mut Engine| leave_for(engine, to, kept.as_ref());
        operation::block_on_request(may_block, leave, None, &site);
    }
}

/// See [`Communicator::migrate_async`](crate::topology::Communicator::migrate_async).
///
/// It begins in a block of its own, when it is first polled. A future is copied to where it is awaited as a whole,
/// and what is not initialised yet has what earlier calls have left on the stack: addresses that would keep the
/// rank where it is.
pub(crate) struct Migrating<'a, T> {
    state: Option<&'a mut T>,
    site: Site,
    begun: Option<Pin<Box<dyn Future<Output = ()> + 'a>>>,
}

impl<'a, T> Migrating<'a, T> {
    pub(crate) fn new(state: &'a mut T, site: Site) -> Self {
        Migrating { state: Some(state), site, begun: None }
    }
}

impl<T: Serialize + DeserializeOwned> Future for Migrating<'_, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(state) = self.state.take() {
            vrt_slot::check::wipe();
            self.begun = Some(begin(state, self.site));
        }
        let Some(begun) = &mut self.begun else { return Poll::Pending };
        begun.as_mut().poll(context)
    }
}

/// A call of its own, whose frame lies where the stack was wiped.
#[inline(never)]
fn begin<'a, T: Serialize + DeserializeOwned>(
    state: &'a mut T,
    site: Site,
) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
    Box::pin(migrate_async(state, site))
}

async fn migrate_async<T: Serialize + DeserializeOwned>(state: &mut T, site: Site) {
    if !prepare(state, site) {
        return;
    }
    if let Started::Pending(request, _) = pe::with(|pe| at_sync(&mut pe.engine)) {
        AtSync::of(request, site).await.at(site).or_refuse();
    }
    if let Some((to, kept)) = encode_if_told(state, site) {
        let started = pe::with(|pe| leave_for(&mut pe.engine, to, kept.as_ref()));
        if let Started::Pending(request, _) = started {
            AtSync::of(request, site).await.at(site).or_refuse();
        }
    }
}

fn at_sync(engine: &mut Engine) -> Started {
    let (migration, core) = engine.part::<Migration>();
    migration.at_sync(core)
}

fn leave_for(engine: &mut Engine, to: u32, kept: Option<&KeptState>) -> Started {
    let (migration, core) = engine.part::<Migration>();
    migration.leave_for(core, to, kept)
}

/// The rank waits to be moved or told to stay. Dropped early, it does not wait any more.
struct AtSync {
    request: u32,
    pending: Lasting,
}

impl AtSync {
    fn of(request: u32, site: Site) -> AtSync {
        AtSync { request, pending: Lasting(Pending::new(request, site, None)) }
    }
}

impl Future for AtSync {
    type Output = Result<Completion, ErrorKind>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.pending).poll(context)
    }
}

impl Drop for AtSync {
    fn drop(&mut self) {
        if self.pending.is_under_way() {
            let request = self.request;
            pe::with(|pe| {
                let state = pe.engine.running();
                state.at_sync.take_if(|at_sync| at_sync.request == request);
            });
        }
    }
}

/// Whether there is a reason to offer the rank now.
fn prepare<T: Serialize + DeserializeOwned>(state: &mut T, site: Site) -> bool {
    let how = pe::with(|pe| {
        let (migration, core) = pe.engine.part::<Migration>();
        migration.would_move(core)
    });
    if how == Some(MoveBy::InPlace) {
        let Some(kept) = encode(state, site) else { panic!("{site}: no room for the state") };
        match decode(kept.bytes()) {
            Ok((same, _)) => *state = same,
            Err(error) => panic!("{site}: {error}"),
        }
    }
    how.is_some()
}

/// Where the rank is to go by its state, if so, and that state, if there is room for it.
fn encode_if_told<T: Serialize>(state: &T, site: Site) -> Option<(u32, Option<KeptState>)> {
    let to = pe::with(|pe| pe.engine.running().destination.take())?;
    let began = Instant::now();
    let kept = encode(state, site);
    let taken = began.elapsed();
    let len = kept.as_ref().map_or(0, |kept| kept.bytes().len());
    pe::with(|pe| {
        let migration = pe.engine.extension::<Migration>();
        migration.at_sync.went_by_itself(0, taken);
        // It will be decoded, too.
        migration.costs.copied(len as u64, 2.0 * taken.as_secs_f64());
    });
    Some((to, kept))
}

/// Bytes behind an encoded state: how many bytes the records of communicators before them are.
const TRAILER: usize = size_of::<u64>();

/// The state, then the communicators that the rank has, then how long these are: all in a block that it can
/// leave with, if there is room for one.
fn encode<T: Serialize>(state: &T, site: Site) -> Option<KeptState> {
    try_to_encode(state).unwrap_or_else(|error| panic!("{site}: {error}"))
}

fn try_to_encode<T: Serialize>(state: &T) -> Result<Option<KeptState>, EncodeError> {
    let len = records::open(|| encoding::encoded_len(state))?;
    let records = match records::records() {
        none if none.is_empty() => Vec::new(),
        records => encoding::encode(&records)?,
    };
    let whole = len + records.len() + TRAILER;
    let Some(mut kept) = pe::with(|pe| KeptState::allocate(&mut pe.engine, whole)) else {
        return Ok(None);
    };
    let (room, behind) = kept.write().split_at_mut(len);
    records::open(|| encoding::encode_into(state, room))?;
    let trailer = (records.len() as u64).to_le_bytes();
    for (to, byte) in behind.iter_mut().zip(records.iter().chain(&trailer)) {
        to.write(*byte);
    }
    Ok(Some(kept))
}

/// The state again, and what comes of the communicators that are made from what stands behind it: `again`.
fn decode_with<T: DeserializeOwned, R>(
    bytes: &[u8],
    again: impl FnOnce(&[u8]) -> Result<R, DecodeError>,
) -> Result<(T, R), DecodeError> {
    let (bytes, trailer) = bytes.split_at(bytes.len().saturating_sub(TRAILER));
    let records = trailer.try_into().map_or(0, u64::from_le_bytes) as usize;
    let (state, records) = bytes.split_at(bytes.len().saturating_sub(records));
    let again = again(records)?;
    Ok((records::open(|| encoding::decode_own(state))?, again))
}

/// The state, where the communicators are still there.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, ()), DecodeError> {
    decode_with(bytes, |_| Ok(()))
}

/// The state, and all communicators that there were.
fn decode_again<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, Option<Reopened>), DecodeError> {
    decode_with(bytes, |records| {
        if records.is_empty() {
            return Ok(None);
        }
        encoding::decode_own(records).map(|records| Some(records::reopen(records)))
    })
}

/// Why a rank has not moved where it wanted to.
///
/// # Examples
///
/// ```
/// use vrt::CannotMove;
/// use vrt::traits::*;
///
/// vrt::run_local(1, |world| {
///     let moved = world.migrate_to(5, &mut 0u32);
///     assert_eq!(moved, Err(CannotMove::NoSuchPe { pe: 5, last: 0 }));
/// });
/// ```
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
    site: Site,
) -> Result<(), CannotMove> {
    let may_block = may_block(site);
    let by_state = pe::with(|pe| {
        let engine = &mut pe.engine;
        let last = engine.shared().pes() as u32 - 1;
        if to > last {
            return Err(CannotMove::NoSuchPe { pe: to, last });
        }
        Ok(engine.extension::<Migration>().rules.by_state)
    })?;
    let kept = if by_state { encode(state, site) } else { None };
    vrt_slot::check::wipe();
    // Another PE may be using the rank's memory at this moment: then it stays, and tries again.
    while pe::with(|pe| pe.engine.id()) != to {
        let leave = |engine: &mut Engine| leave_for(engine, to, kept.as_ref());
        operation::block_on_request(may_block, leave, None, &site);
        if let Some(why) = pe::with(|pe| pe.engine.running().refused.take()) {
            return Err(CannotMove::Pinned(why));
        }
    }
    Ok(())
}

/// See [`Communicator::restore`](crate::topology::Communicator::restore).
pub(crate) fn restore<T: DeserializeOwned>(site: Site) -> Option<T> {
    let Encoded { at, len } = pe::with(|pe| pe.engine.running().restored)?;
    // SAFETY: a block of a pool of this node, which belongs to the rank until it is given back.
    let bytes = unsafe { std::slice::from_raw_parts(at, len) };
    let decoded = decode_again(bytes);
    pe::with(|pe| pe.engine.running().drop_restored());
    match decoded {
        // The communicators that the state does not have are given up.
        Ok((state, _)) => Some(state),
        Err(error) => {
            panic!("{site}: this is not the type that was given to migrate: {error}")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use crate::topology::SimpleCommunicator;

    const MARK: usize = 0x5eed_0000_0bad_cafe;
    /// Words that an earlier call has left.
    const LEFT: usize = 200;

    #[inline(never)]
    fn leave() {
        black_box(&mut [MARK; LEFT]);
    }

    /// How many there are below the caller.
    #[inline(never)]
    fn found() -> usize {
        let own = 0usize;
        let end = std::ptr::from_ref(black_box(&own)).addr() & !7;
        let words = (end - 8 * (LEFT + 256)..end).step_by(8);
        // SAFETY: words of the rank's stack, which is far longer.
        words.filter(|at| unsafe { (*at as *const usize).read_volatile() } == MARK).count()
    }

    #[test]
    fn a_wiped_stack_has_nothing_of_earlier_calls() {
        crate::run_local(1, |_: &SimpleCommunicator| {
            leave();
            assert!(found() > LEFT / 2);
            vrt_slot::check::wipe();
            assert_eq!(found(), 0);
        });
    }
}
