//! What the combining of collective operations does when something comes for it.

use crate::comm::combine::{Combining, contributions_came, parts_came, send_gathered};
use crate::comm::membership::{leave_all, parcel_came};
use crate::net::Kind;
use crate::net::parcel::Topic;
use crate::pe::{Extension, Handlers};

impl Extension for Combining {
    const INDEX: usize = 1;
    const HANDLERS: Handlers = Handlers {
        packets: &[(Kind::Collective, parts_came)],
        parcels: &[(Topic::Contribution, contributions_came), (Topic::Group, parcel_came)],
        rank_over: Some(leave_all),
        send_gathered: Some(send_gathered),
        ..Handlers::NONE
    };
}
