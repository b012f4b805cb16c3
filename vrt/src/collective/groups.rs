//! Which ranks take part in the combined operations of a context, as a PE knows them.
//!
//! Members that follow each other in the job are known from every operation itself. Other groups
//! are *registered*: each member tells its home PE who the members are when the communicator is
//! made, and goes on when that PE knows. So a contribution never comes to a PE that does not know
//! its group. A group is forgotten when all members of the PE have dropped the communicator and
//! all that they contributed has come (a rank's last contribution may take a longer way than its
//! farewell).

use std::rc::Rc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::collective::combine::Spec;
use crate::net::parcel::{self, Topic};
use crate::net::shared::Shared;
use crate::net::{Kind, Packet};
use crate::pe::{Completion, Engine, Request, Started};

/// Stands for a first rank: the members are registered.
pub(crate) const REGISTERED: u32 = u32::MAX;

/// The groups that a PE knows, by context and first rank.
#[derive(Debug, Default)]
pub(crate) struct Groups(FxHashMap<(u32, u32), Group>);

#[derive(Debug, Default)]
struct Group {
    /// All of them, as ranks of the job; empty if they follow the first one.
    members: Vec<u32>,
    /// Members whose home is here.
    here: u32,
    /// The first of them, if they follow each other.
    first_here: Option<u32>,
    /// Other PEs that have some.
    elsewhere: Rc<[u32]>,
    /// Members of this PE that have dropped the communicator.
    left: u32,
    /// Contributions that have come, and those that ranks which left say they made.
    came: u32,
    announced: u32,
}

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
        contributions: u32,
    },
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
        elsewhere.dedup();
        elsewhere.retain(|pe| *pe != id);
        Group { members, here, first_here, elsewhere: elsewhere.into(), ..Group::default() }
    }
}

impl Groups {
    /// A rank takes part in an operation: the number of those of this PE that will, and the first
    /// of them if they follow each other.
    pub(super) fn begin(&mut self, shared: Shared, id: u32, spec: &Spec) -> (u32, Option<u32>) {
        let key = (spec.context, spec.first);
        if let Some(group) = self.0.get(&key) {
            return (group.here, group.first_here);
        }
        debug_assert_ne!(spec.first, REGISTERED, "a group is registered before it is used");
        let group = Group::new(shared, id, Vec::new(), spec.first..spec.first + spec.size);
        let known = (group.here, group.first_here);
        self.0.insert(key, group);
        known
    }

    /// The other PEs that have members, when only one is of this PE; a rank takes part in an
    /// operation.
    #[inline]
    pub(super) fn alone(&mut self, shared: Shared, id: u32, spec: &Spec) -> Option<Rc<[u32]>> {
        if let Some(group) = self.0.get(&(spec.context, spec.first)) {
            return (group.here == 1).then(|| Rc::clone(&group.elsewhere));
        }
        self.begin(shared, id, spec);
        None
    }

    /// What ranks of this PE contributed to an operation has been dealt with.
    pub(super) fn contributed(&mut self, spec: &Spec, contributions: u32) {
        if spec.first == REGISTERED {
            if let Some(group) = self.0.get_mut(&(spec.context, REGISTERED)) {
                group.came = group.came.wrapping_add(contributions);
            }
            self.forget_if_over(spec.context);
        }
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

    fn join(&mut self, shared: Shared, id: u32, context: u32, members: &[u32]) {
        self.0
            .entry((context, REGISTERED))
            .or_insert_with(|| Group::new(shared, id, members.to_vec(), members.iter().copied()));
    }

    fn leave(&mut self, context: u32, contributions: u32) {
        if let Some(group) = self.0.get_mut(&(context, REGISTERED)) {
            group.left += 1;
            group.announced = group.announced.wrapping_add(contributions);
        }
        self.forget_if_over(context);
    }

    fn forget_if_over(&mut self, context: u32) {
        let key = (context, REGISTERED);
        let over = |group: &Group| group.left == group.here && group.came == group.announced;
        if self.0.get(&key).is_some_and(over) {
            self.0.remove(&key);
        }
    }
}

impl Engine {
    /// The running rank is in a group of these ranks; its home PE has to know them.
    pub(crate) fn join_group(&mut self, context: u32, members: &[u32]) -> Started {
        let (rank, shared, id) = (self.current, self.shared, self.id);
        let home = shared.home(rank);
        if home == id {
            self.combining.groups.join(shared, id, context, members);
            return Started::Done(Completion::default());
        }
        let request = self.running().new_request(Request::send());
        let members: Vec<u8> = members.iter().flat_map(|member| member.to_ne_bytes()).collect();
        let telling = Telling::Join { context, rank, request, members: &members };
        self.tell_home(home, &telling);
        Started::pending(request)
    }

    /// The running rank has dropped a communicator after so many combined operations.
    pub(crate) fn leave_group(&mut self, context: u32, contributions: u32) {
        let home = self.shared.home(self.current);
        self.running().collectives.forget(context);
        if home == self.id {
            self.combining.groups.leave(context, contributions);
        } else {
            self.tell_home(home, &Telling::Leave { context, contributions });
        }
    }

    fn tell_home(&mut self, home: u32, telling: &Telling<'_>) {
        match crate::encoding::encode(telling) {
            Ok(bytes) => parcel::send(&mut self.net, self.id, home, Topic::Group, &bytes),
            Err(error) => unreachable!("plain numbers and bytes can be encoded: {error}"),
        }
    }

    /// A rank that lives elsewhere has told its home PE something.
    pub(crate) fn group_parcel(&mut self, bytes: &[u8]) {
        match crate::encoding::decode_borrowed::<Telling<'_>>(bytes) {
            Ok(Telling::Join { context, rank, request, members }) => {
                let word =
                    |bytes: &[u8]| u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                let members: Vec<u32> = members.chunks_exact(4).map(word).collect();
                self.combining.groups.join(self.shared, self.id, context, &members);
                let mut answer = Packet::new(Kind::Finished, rank, rank);
                answer.request = request;
                self.post(&answer);
            }
            Ok(Telling::Leave { context, contributions }) => {
                self.combining.groups.leave(context, contributions);
            }
            Err(error) => unreachable!("a PE of this job has encoded it: {error}"),
        }
    }
}
