//! The protocols of sparse exchanges: every rank sends to a few others, and no rank knows from
//! which ones it will receive.
//!
//! | file | subject |
//! |---|---|
//! | `protocol` | the protocols by name |
//! | `run` | the protocols, implemented once over the trait in `party` |
//! | `counter` | remotely incremented counters, for RSX |
//! | `model` | LogGP: the cost of each protocol |

pub mod counter;
mod model;
pub mod party;
mod protocol;
pub mod run;

pub use model::{LogGp, OutOfRange, PCX_ENTRY, PEX_ENTRY};
pub use protocol::{Protocol, UnknownProtocol, list};

use crate::net::Kind;
use crate::pe::{Extension, Handlers};

/// How the sparse exchanges of a job are done.
#[derive(Clone, Copy, Debug)]
pub struct Exchanges {
    /// The protocol of exchanges for which the program names none.
    pub protocol: Protocol,
    /// The network for which protocols are chosen.
    pub model: LogGp,
}

impl Extension for Exchanges {
    const INDEX: usize = 4;
    const HANDLERS: Handlers =
        Handlers { packets: &[(Kind::CountUp, counter::counted_up)], ..Handlers::NONE };
}
