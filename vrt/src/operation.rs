//! How the face runs operations of the engine: it names the call, drives or hands out the operation's
//! future, and says what was wrong.
//!
//! | file | subject |
//! |---|---|
//! | `blocking` | waiting on the stack of a blocking rank |
//! | `refuse` | wrong use, said with the rank, the call and its line |
//! | `status` | what is known of a received message |
//! | `timeout` | giving up after a time |

mod blocking;
mod refuse;
mod status;
mod timeout;

pub use blocking::{block_on, sleep, sleep_async, when_idle, yield_now};
pub(crate) use blocking::{block_on_at, give_way, may_block, try_block_on};
pub(crate) use refuse::{OrRefuse, refuse};
pub use status::Status;
pub use timeout::{Elapsed, Timeout, timeout};

pub use vrt_core::operation::yield_now_async;
pub(crate) use vrt_core::operation::{
    Background, Lasting, Pending, Ticket, background, block_on_exchange, block_on_receive,
    block_on_request, block_on_send, drive_async_main, finish_tasks, land, look, matched_probe,
    probe, receive, receive_matched, send, send_copied, sent_to,
};
pub(crate) use vrt_core::{Error, Site};

/// Names the call, for errors and the table of a deadlock.
macro_rules! site {
    ($call:literal) => {
        vrt_core::Site { call: $call, location: Some(std::panic::Location::caller()) }
    };
}
pub(crate) use site;
