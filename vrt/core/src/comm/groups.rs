//! The ranks that take part in the combined operations of a context, as known to a PE.
//!
//! If the members are consecutive ranks of the job, every operation itself contains them. Other groups are
//! *registered*: when the communicator is made, each member tells its home PE who the members are, and continues when
//! that PE knows. So a contribution never reaches a PE that does not know its group.
//!
//! A group is forgotten when all members of the PE have left it and all their contributions have arrived: a rank's last
//! contribution may take a longer way than its departure message, which may even arrive before the first contribution
//! of any member. A rank leaves a group when it drops the communicator, restarts from a state that does not contain it,
//! or ends; it leaves a group that it has never contributed to only if that is registered. Contexts are never reused,
//! so late messages are not mistaken for another group's. The groups of the predefined communicators are never
//! forgotten.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "places in buffers that are there, and ranks below their number"
    )
)]

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::comm::FIRST_FREE_CONTEXT;
use crate::comm::relay::Relay;
use crate::comm::spec::Spec;
use crate::net::shared::Shared;

/// Stands for a first rank: the members are registered.
pub(crate) const REGISTERED: u32 = u32::MAX;

/// The groups that a PE knows, by context and first rank.
#[derive(Debug, Default)]
pub struct Groups(FxHashMap<(u32, u32), Group>);

#[derive(Debug, Default)]
struct Group {
    /// The members are known, not only that some have left.
    known: bool,
    /// All of them, as ranks of the job; empty if they are consecutive.
    members: Vec<u32>,
    /// Members whose home is here.
    here: u32,
    /// The first of them, if they are consecutive.
    first_here: Option<u32>,
    /// Other PEs with members.
    elsewhere: Rc<[u32]>,
    /// How these are reached, if there are many.
    relay: Option<Rc<Relay>>,
    /// Members of this PE that have dropped the communicator.
    left: u32,
    /// Contributions that have arrived, and those that ranks which left report to have made.
    came: u32,
    announced: u32,
}

/// Who takes part in an operation, as a PE has to know.
#[derive(Debug)]
pub(super) struct Taking {
    /// Ranks of this PE.
    pub(super) here: u32,
    /// The first of them, if they follow each other.
    pub(super) first_here: Option<u32>,
    /// How other PEs are reached, if they are many.
    pub(super) relay: Option<Rc<Relay>>,
}

impl Group {
    fn new(shared: Shared, id: u32, members: Vec<u32>, all: impl Iterator<Item = u32>) -> Group {
        let mut elsewhere: Vec<u32> = all.map(|rank| shared.home(rank)).collect();
        let here = elsewhere.iter().filter(|pe| **pe == id).count() as u32;
        let first_here = elsewhere
            .iter()
            .position(|pe| *pe == id)
            .filter(|first| elsewhere[*first..][..here as usize].iter().all(|pe| *pe == id))
            .map(|first| first as u32);
        elsewhere.sort_unstable();
        let relay = Relay::of(id, &elsewhere);
        elsewhere.dedup();
        elsewhere.retain(|pe| *pe != id);
        let elsewhere = elsewhere.into();
        Group { known: true, members, here, first_here, elsewhere, relay, ..Group::default() }
    }

    /// The same, where members may have left before.
    fn make_known(&mut self, known: Group) {
        let Group { left, came, announced, .. } = *self;
        *self = Group { left, came, announced, ..known };
    }

    fn taking(&self) -> Taking {
        Taking { here: self.here, first_here: self.first_here, relay: self.relay.clone() }
    }

    fn is_over(&self) -> bool {
        self.known && self.left == self.here && self.came == self.announced
    }
}

impl Groups {
    /// A rank takes part in an operation: what this PE has to know of the group.
    pub(super) fn begin(&mut self, shared: Shared, id: u32, spec: &Spec) -> Taking {
        let key = (spec.context, spec.first);
        if let Some(group) = self.0.get(&key)
            && group.known
        {
            return group.taking();
        }
        debug_assert_ne!(spec.first, REGISTERED, "a group is registered before it is used");
        let group = self.0.entry(key).or_default();
        group.make_known(Group::new(shared, id, Vec::new(), spec.first..spec.first + spec.size));
        group.taking()
    }

    /// Whether members of an operation's group began on this PE, as far as that is known here: of registered
    /// ones from the time on when one of them has said so.
    pub(super) fn has_members_of(&self, shared: Shared, id: u32, spec: &Spec) -> bool {
        match self.0.get(&(spec.context, spec.first)) {
            Some(group) if group.known => group.here > 0,
            _ if spec.first == REGISTERED => false,
            _ => self.members(spec).any(|rank| shared.home(rank) == id),
        }
    }

    /// The ranks of the job that take part in an operation, if that is known here.
    pub(super) fn members(&self, spec: &Spec) -> impl Iterator<Item = u32> {
        let listed = match self.0.get(&(spec.context, spec.first)) {
            Some(group) => &group.members[..],
            None => &[],
        };
        let follow = match spec.first {
            REGISTERED => 0..0,
            first => first..first + spec.size,
        };
        listed.iter().copied().chain(follow)
    }

    /// The other PEs that have members, when only one is of this PE; a rank takes part in an
    /// operation.
    #[inline]
    pub(super) fn alone(&mut self, shared: Shared, id: u32, spec: &Spec) -> Option<Rc<[u32]>> {
        if let Some(group) = self.0.get(&(spec.context, spec.first))
            && group.known
        {
            return (group.here == 1).then(|| Rc::clone(&group.elsewhere));
        }
        self.begin(shared, id, spec);
        None
    }

    /// What ranks of this PE contributed to an operation has been dealt with.
    #[inline]
    pub(super) fn contributed(&mut self, spec: &Spec, contributions: u32) {
        if spec.context < FIRST_FREE_CONTEXT {
            return;
        }
        let key = (spec.context, spec.first);
        if let Some(group) = self.0.get_mut(&key) {
            group.came = group.came.wrapping_add(contributions);
            if group.is_over() {
                self.0.remove(&key);
            }
        }
    }

    /// The number of known groups, except those of the predefined communicators.
    pub fn made(&self) -> usize {
        self.0.keys().filter(|(context, _)| *context >= FIRST_FREE_CONTEXT).count()
    }

    /// The other PEs that have members.
    #[inline]
    pub(super) fn elsewhere(&self, spec: &Spec) -> Rc<[u32]> {
        let group = self.0.get(&(spec.context, spec.first));
        group.map(|group| Rc::clone(&group.elsewhere)).unwrap_or_default()
    }

    /// The rank of the job that is `rank` in the group.
    pub(super) fn job_rank(&self, spec: &Spec, rank: u32) -> u32 {
        match self.0.get(&(spec.context, spec.first)) {
            Some(group) if !group.members.is_empty() => group.members[rank as usize],
            _ => spec.first + rank,
        }
    }

    /// A rank of this PE joins a registered group.
    pub(super) fn join(&mut self, shared: Shared, id: u32, context: u32, members: &[u32]) {
        self.0
            .entry((context, REGISTERED))
            .or_insert_with(|| Group::new(shared, id, members.to_vec(), members.iter().copied()));
    }

    /// A rank of this PE leaves a group, to which it has made so many contributions.
    pub(super) fn leave(&mut self, context: u32, first: u32, contributions: u32) {
        let key = (context, first);
        let group = self.0.entry(key).or_default();
        group.left += 1;
        group.announced = group.announced.wrapping_add(contributions);
        if group.is_over() {
            self.0.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::spec::What;

    const CONTEXT: u32 = FIRST_FREE_CONTEXT + 1;

    fn spec(context: u32, first: u32) -> Spec {
        let what = What::Concatenate;
        let signature = crate::layout::Signature::ANY;
        Spec { what, root: None, context, rank: 0, size: 4, first, unit: 0, whole: 0, signature }
    }

    /// Two of the four members are here.
    fn groups() -> (Groups, Shared) {
        (Groups::default(), Shared::map(2, 4, 2).unwrap())
    }

    #[test]
    fn a_group_is_forgotten_when_all_have_left_and_all_has_come() {
        for first in [0, REGISTERED] {
            let (mut groups, shared) = groups();
            let spec = spec(CONTEXT, first);
            if first == REGISTERED {
                groups.join(shared, 0, CONTEXT, &[0, 1, 2, 3]);
            }
            assert_eq!(groups.begin(shared, 0, &spec).here, 2);
            groups.leave(CONTEXT, first, 1);
            groups.contributed(&spec, 1);
            assert_eq!(groups.made(), 1);
            groups.leave(CONTEXT, first, 1);
            assert_eq!(groups.made(), 1, "a contribution is still under way");
            groups.contributed(&spec, 1);
            assert_eq!(groups.made(), 0);
        }
    }

    #[test]
    fn farewells_may_come_before_what_they_announce() {
        let (mut groups, shared) = groups();
        let spec = spec(CONTEXT, 0);
        groups.leave(CONTEXT, 0, 2);
        groups.leave(CONTEXT, 0, 2);
        let taking = groups.begin(shared, 0, &spec);
        assert_eq!((taking.here, taking.first_here), (2, Some(0)));
        groups.contributed(&spec, 2);
        groups.begin(shared, 0, &spec);
        assert_eq!(groups.made(), 1);
        groups.contributed(&spec, 2);
        assert_eq!(groups.made(), 0);
    }

    #[test]
    fn the_group_of_all_ranks_stays() {
        let (mut groups, shared) = groups();
        let spec = spec(1, 0);
        groups.begin(shared, 0, &spec);
        groups.contributed(&spec, 2);
        assert_eq!((groups.0.len(), groups.made()), (1, 0));
    }
}
