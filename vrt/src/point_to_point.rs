//! Messages between two ranks (MPI-4.1 chapter 3).
//!
//! The names and traits of the `mpi` crate's `point_to_point` module. Each blocking call suspends
//! the rank until it is done, and other ranks of the PE run; its async twin ends in `_async`
//! ([`AsyncSource`], [`AsyncDestination`]). Beside them, any serde value can be sent with
//! `send_value` and received with `receive_value`.
//!
//! Errors in the use of messages (a rank out of range, a negative tag, a message longer than its receive or of another
//! type) panic with the rank, the call and the values, in every form of a call, also in those that return a `Result` of
//! something else: nothing is ever cut off silently. The twins whose names begin with `try_` return them;
//! [`error`](crate::error) says what holds then.

mod async_twins;
mod destination;
mod exchange;
mod message;
mod receiving;
mod source;

pub use async_twins::{AsyncDestination, AsyncSource};
pub use destination::Destination;
pub(crate) use destination::{ToSend, address, outbound_value, to_send};
pub use exchange::{
    send_receive, send_receive_into, send_receive_into_with_tags, send_receive_replace_into,
    send_receive_replace_into_with_tags, send_receive_with_tags,
};
pub use message::{MatchedReceiveVec, Message};
pub use receiving::ReceiveFuture;
pub(crate) use receiving::{expect_one, keep_incoming, room_for};
pub use source::Source;
pub(crate) use source::pattern;

use crate::Tag;
use crate::error::ErrorKind;
pub use crate::operation::Status;
use crate::operation::site;

/// The traits of this module.
pub mod traits {
    pub use super::{AsyncDestination, AsyncSource, Destination, MatchedReceiveVec, Source};
}

#[inline(always)]
fn checked_tag(tag: Tag) -> Result<Tag, ErrorKind> {
    if tag < 0 { Err(ErrorKind::TagOutOfRange { tag }) } else { Ok(tag) }
}
