//! Joining and leaving the groups of communicators: a rank tells its home PE, which may be another one.

#![cfg_attr(
    not(test),
    expect(clippy::arithmetic_side_effects, reason = "contexts are given out in order")
)]

use serde::{Deserialize, Serialize};

use crate::comm::combine::Combining;
use crate::comm::groups::REGISTERED;
use crate::comm::{CONTEXTS, FIRST_FREE_CONTEXT};
use crate::net::parcel::{self, Parcel, Topic};
use crate::net::{Kind, Packet};
use crate::pe::{ContextUse, Core, Engine, RankState, Request, Started};

/// What a rank that is elsewhere tells its home PE.
#[derive(Debug, Serialize, Deserialize)]
enum Telling<'a> {
    Join {
        context: u32,
        rank: u32,
        request: u32,
        #[serde(borrow)]
        members: &'a [u8],
    },
    Leave {
        context: u32,
        first: u32,
        contributions: u32,
    },
}

/// The running rank joins a group of these ranks; its home PE must know them.
pub(super) fn join(engine: &mut Engine, context: u32, members: &[u32]) -> Started {
    let (combining, core) = engine.part::<Combining>();
    let (rank, shared, id) = (core.current, core.shared, core.id);
    core.running().collectives.join(context, REGISTERED);
    let home = shared.home(rank);
    if home == id {
        combining.groups.join(shared, id, context, members);
        return Started::done();
    }
    let request = core.running().new_request(Request::send());
    let members: Vec<u8> = members.iter().flat_map(|member| member.to_ne_bytes()).collect();
    let telling = Telling::Join { context, rank, request, members: &members };
    tell_home(core, home, &telling);
    Started::pending(request)
}

/// The running rank has made a communicator, whose first context this is.
pub(crate) fn count_communicator(core: &mut Core, context: u32) {
    if context.is_multiple_of(CONTEXTS) {
        core.running().owned.communicators += 1;
        core.used.made.communicators += 1;
    }
}

/// The running rank has dropped a communicator, whose first context this is.
pub(crate) fn forget_communicator(engine: &mut Engine, context: u32) {
    let rank = engine.current;
    let state = engine.running();
    if context.is_multiple_of(CONTEXTS) {
        state.owned.communicators = state.owned.communicators.saturating_sub(1);
    }
    // Exchanges are counted on the first one, collective operations on the other.
    state.collectives.forget(context);
    if let Some(used) = state.collectives.forget(context + 1) {
        leave_of(engine, rank, context + 1, used);
    }
}

/// A rank of this PE leaves a group that it has used so.
fn leave_of(engine: &mut Engine, rank: u32, context: u32, used: ContextUse) {
    let ContextUse { first, contributions, .. } = used;
    if first != REGISTERED && contributions == 0 {
        return;
    }
    let (combining, core) = engine.part::<Combining>();
    let home = core.shared.home(rank);
    if home == core.id {
        combining.groups.leave(context, first, contributions);
    } else {
        tell_home(core, home, &Telling::Leave { context, first, contributions });
    }
}

/// A rank of this PE ends: it has left all groups but those that are there from the beginning.
pub(super) fn leave_all(engine: &mut Engine, rank: u32, state: &mut RankState) {
    for (context, used) in state.collectives.forget_from(FIRST_FREE_CONTEXT) {
        leave_of(engine, rank, context, used);
    }
}

/// A rank that lives elsewhere has told its home PE something.
pub(super) fn parcel_came(engine: &mut Engine, parcel: &Parcel) {
    let (combining, core) = engine.part::<Combining>();
    match parcel.read() {
        Telling::Join { context, rank, request, members } => {
            let word = |bytes: &[u8]| u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let members: Vec<u32> = members.chunks_exact(4).map(word).collect();
            combining.groups.join(core.shared, core.id, context, &members);
            let mut answer = Packet::new(Kind::Finished, rank, rank);
            answer.request = request;
            core.post(&answer);
        }
        Telling::Leave { context, first, contributions } => {
            combining.groups.leave(context, first, contributions);
        }
    }
}

fn tell_home(core: &mut Core, home: u32, telling: &Telling<'_>) {
    parcel::send(&mut core.net, core.id, home, Topic::Group, telling);
}
