//! What a message needs until it is done.

use crate::datatype::wire::{Incoming, Outgoing};

/// What a message that was started needs until it is done.
#[derive(Debug)]
pub(crate) struct Kept {
    #[expect(dead_code, reason = "keeps the bytes that are sent")]
    pub(crate) outgoing: Outgoing,
    pub(crate) incoming: Incoming,
}
