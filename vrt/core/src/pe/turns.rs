//! Turns of tokio.

use crate::pe::thread::outside;

/// Lets tokio's driver and tasks run once.
pub(super) fn turn(tokio: &tokio::runtime::Runtime) {
    outside(|| tokio.block_on(tokio::task::yield_now()));
}
