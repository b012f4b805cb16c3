//! How the API runs operations of the engine: it names the call, and drives or hands out the operation's
//! future.
//!
//! | file | subject |
//! |---|---|
//! | `blocking` | waiting on the stack of a blocking rank |
//! | `status` | what is known of a received message |
//! | `timeout` | giving up after a time |

mod blocking;
mod status;
mod timeout;

pub(crate) use crate::error::{At, Error, ErrorKind, OrRefuse};
pub use blocking::{block_on, sleep, sleep_async, when_idle, yield_now};
pub(crate) use blocking::{block_on_at, block_on_or_refuse, give_way, may_block};
pub use status::Status;
pub use timeout::{Elapsed, Timeout, timeout};

pub(crate) use vrt_core::Site;
pub use vrt_core::operation::yield_now_async;
pub(crate) use vrt_core::operation::{
    Background, Lasting, Pending, Ticket, background, block_on_exchange, block_on_receive,
    block_on_request, block_on_send, drive_async_main, finish_tasks, land, look, matched_probe,
    probe, receive_matched, send, send_copied, sent_to,
};

/// Names the call, for errors and the table of a deadlock.
macro_rules! site {
    ($call:literal) => {
        vrt_core::Site { call: $call, location: Some(std::panic::Location::caller()) }
    };
}
pub(crate) use site;
