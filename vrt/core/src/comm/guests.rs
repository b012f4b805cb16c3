//! Contributions of ranks that live on another PE than the one where they began: the PE's *guests*.
//!
//! A guest's contribution is sent to its home, the PE where it began. The contributions for one home and one operation
//! are gathered, and sent together when the last of them has arrived:
//!
//! ```text
//! guest arrives: gathered ---- last guest of its home here? -yes-> sent
//! nothing is ready, or a guest moves on: all that is gathered is sent
//! ```
//!
//! This delays no rank: an operation needs the contributions of all members, including those that are awaited here.
//! Contributions are sent early if they may wait for a rank that will not arrive any more, or that takes part in a
//! different operation instead, which the others must learn.
//!
//! Broadcasts, to which only the root contributes, and operations of groups without a member that began on this PE are
//! not gathered.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "places in buffers that are there, and ranks below their number"
    )
)]

use serde::{Deserialize, Serialize};

use crate::comm::groups::Groups;
use crate::comm::spec::{Spec, Waiting};
use crate::net::parcel::{self, Topic};
use crate::pe::Core;

/// What a PE sends to the home of some of its ranks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Contributions<'a> {
    /// As one of them began it.
    pub(super) spec: Spec,
    pub(super) number: u32,
    /// Which ranks of the communicator they are.
    pub(super) places: Vec<u32>,
    /// The one of them that the home has to send the result to, if it has to.
    pub(super) waiting: Option<Waiting>,
    /// What they contribute, one after the other.
    #[serde(borrow)]
    pub(super) bytes: &'a [u8],
}

/// The contributions of this PE's guests that have not been sent yet.
#[derive(Debug, Default)]
pub(super) struct Guests {
    gathered: Vec<Gathered>,
}

/// Those of one home to one operation.
#[derive(Debug)]
struct Gathered {
    home: u32,
    /// Guests of that home that are members.
    awaited: usize,
    spec: Spec,
    number: u32,
    places: Vec<u32>,
    waiting: Option<Waiting>,
    bytes: Vec<u8>,
}

impl Gathered {
    fn is_of(&self, home: u32, spec: &Spec, number: u32) -> bool {
        self.home == home
            && (self.spec.context, self.spec.first, self.number)
                == (spec.context, spec.first, number)
            && self.spec.agrees_with(spec)
    }

    fn send(self, core: &mut Core) {
        let Gathered { home, spec, number, places, waiting, bytes, .. } = self;
        let contributions = Contributions { spec, number, places, waiting, bytes: &bytes };
        parcel::send(&mut core.net, core.id, home, Topic::Contribution, &contributions);
    }
}

impl Guests {
    /// A guest contributes. `waiting`: its home has to send it the result.
    pub(super) fn add(
        &mut self,
        core: &mut Core,
        groups: &Groups,
        spec: &Spec,
        number: u32,
        waiting: Option<Waiting>,
        bytes: &[u8],
    ) {
        let home = core.shared.home(core.current);
        let known = self.gathered.iter().position(|it| it.is_of(home, spec, number));
        let at = known.unwrap_or_else(|| {
            let is_guest = |rank: &u32| {
                core.shared.home(*rank) == home && core.ranks[*rank as usize].is_some()
            };
            let awaited = groups.members(spec).filter(is_guest).count();
            self.gathered.push(Gathered {
                home,
                awaited,
                spec: *spec,
                number,
                places: Vec::with_capacity(awaited),
                waiting: None,
                bytes: Vec::with_capacity(awaited * bytes.len()),
            });
            core.has_gathered = true;
            self.gathered.len() - 1
        });
        let gathered = &mut self.gathered[at];
        gathered.places.push(spec.rank);
        gathered.bytes.extend_from_slice(bytes);
        gathered.waiting = gathered.waiting.or(waiting);
        if gathered.places.len() >= gathered.awaited {
            self.gathered.swap_remove(at).send(core);
            core.has_gathered = !self.gathered.is_empty();
        }
    }

    /// Sends all that is there.
    #[cold]
    pub(super) fn send_all(&mut self, core: &mut Core) {
        core.has_gathered = false;
        self.gathered.drain(..).for_each(|it| it.send(core));
    }
}

/// Sends what the running rank contributes to its home by itself.
pub(super) fn send_alone(
    core: &mut Core,
    spec: &Spec,
    number: u32,
    waiting: Option<Waiting>,
    bytes: &[u8],
) {
    let home = core.shared.home(core.current);
    let contributions =
        Contributions { spec: *spec, number, places: vec![spec.rank], waiting, bytes };
    parcel::send(&mut core.net, core.id, home, Topic::Contribution, &contributions);
}
