//! The protocols of sparse exchanges: everybody sends to a few, and nobody knows from whom it will
//! receive.
//!
//! | file | subject |
//! |---|---|
//! | `protocol` | the protocols by name |
//! | `run` | the protocols, once, over the trait in `party` |
//! | `counter` | counters that are increased from afar, for RSX |
//! | `model` | LogGP: what each costs |

pub mod counter;
mod model;
pub mod party;
mod protocol;
pub mod run;

pub use model::{LogGp, OutOfRange, PCX_ENTRY, PEX_ENTRY};
pub use protocol::{Protocol, UnknownProtocol, list};

use crate::net::Kind;
use crate::pe::{Extension, Handlers};

/// How the sparse exchanges of a job go.
#[derive(Clone, Copy, Debug)]
pub struct Exchanges {
    /// The protocol of exchanges for which the program names none.
    pub protocol: Protocol,
    /// The network that protocols are chosen for.
    pub model: LogGp,
}

impl Extension for Exchanges {
    const INDEX: usize = 4;
    const HANDLERS: Handlers =
        Handlers { packets: &[(Kind::CountUp, counter::counted_up)], ..Handlers::NONE };
}
