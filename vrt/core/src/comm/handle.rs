//! Defines a communicator: a few numbers, and its members.
//!
//! A handle is shared by all values that represent the communicator in a rank, and lies in the
//! rank's heap. When the last one is dropped, the communicator is freed without asking other ranks.
//! A rank that restarts from its state gets back the communicators that its state contains
//! (`records`).
//!
//! Every communicator has four contexts that no other one of the job has: point-to-point messages
//! use `context`, collective operations and one-sided synchronisation the next one, and the last
//! two form such a pair for sparse exchanges.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "there are fewer ranks than an i32 counts, and a rank is compared before it is an index"
    )
)]

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Deref;
use std::rc::Rc;

use crate::Rank;
use crate::comm::attributes::Attributes;
use crate::comm::groups::REGISTERED;
use crate::comm::membership;
use crate::comm::shape::Shape;
use crate::comm::table;
use crate::comm::turns::Turns;
use crate::comm::{CONTEXTS, FIRST_FREE_CONTEXT};
use crate::error::Error;
use crate::pe;

/// The ranks of a group, as ranks of the job, in order.
#[derive(Clone, Debug)]
pub enum Members {
    /// This many from the first on.
    Range {
        /// The first member, as a rank of the job.
        first: u32,
        /// Number of members.
        count: u32,
    },
    /// Any ranks of the job, each once, in the group's order.
    List(Rc<[u32]>),
}

impl Members {
    /// The group of these ranks of the job; consecutive ranks become a range.
    pub fn from_list(list: &[u32]) -> Members {
        let consecutive = list.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        if consecutive {
            let first = list.first().copied().unwrap_or_default();
            Members::Range { first, count: list.len() as u32 }
        } else {
            Members::List(list.into())
        }
    }

    /// Number of members.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks for that")]
    pub fn len(&self) -> usize {
        match self {
            Members::Range { count, .. } => *count as usize,
            Members::List(list) => list.len(),
        }
    }

    /// The job's rank of a member.
    #[inline]
    pub fn get(&self, rank: usize) -> u32 {
        match self {
            Members::Range { first, .. } => first + rank as u32,
            Members::List(list) => list[rank],
        }
    }

    /// The members as ranks of the job, in order of their ranks in the group.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len()).map(|rank| self.get(rank))
    }

    /// The member that is a rank of the job.
    pub fn position(&self, job_rank: u32) -> Option<usize> {
        match self {
            Members::Range { first, count } => {
                let at = job_rank.checked_sub(*first)?;
                (at < *count).then_some(at as usize)
            }
            Members::List(list) => list.iter().position(|member| *member == job_rank),
        }
    }
}

/// The additional data of an intercommunicator.
#[derive(Debug)]
pub struct RemoteGroup {
    /// The remote group: the ranks that messages go to and come from.
    pub members: Members,
    /// A communicator of the local group.
    pub local: CommunicatorHandle,
    /// The order of operations of several steps.
    pub(super) turns: Turns,
}

impl RemoteGroup {
    /// The remote group, beside the local one.
    pub fn new(members: Members, local: CommunicatorHandle) -> RemoteGroup {
        RemoteGroup { members, local, turns: Turns::default() }
    }
}

/// A communicator, from the point of view of its rank.
#[derive(Clone, Debug)]
pub struct CommunicatorHandle(Rc<Info>);

/// The data shared by all handles of a communicator in one rank. What each call reads is at the beginning, in one cache
/// line: among very many ranks each line comes from memory.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Info {
    /// The first of its contexts, the one of point-to-point messages.
    pub context: u32,
    /// The rank of the handle's owner; in an intercommunicator, in the local group.
    pub rank: Rank,
    /// Number of ranks; in an intercommunicator, of the local group.
    pub size: Rank,
    /// PEs know it by its context: its members are not a range of the job's ranks.
    pub registered: Cell<bool>,
    /// Its ranks; in an intercommunicator, the local group.
    pub members: Members,
    /// The other group of an intercommunicator; other communicators have none.
    pub remote: Option<RemoteGroup>,
    /// The relation of its ranks: its topology.
    pub shape: Shape,
    /// The name given by the program (`MPI_Comm_set_name`); empty before that.
    pub name: RefCell<String>,
    /// The values that the program has attached to it.
    pub attributes: Attributes,
    /// The same ranks in the contexts of sparse exchanges, once they were needed.
    pub exchange: OnceCell<CommunicatorHandle>,
}

impl Deref for CommunicatorHandle {
    type Target = Info;

    #[inline(always)]
    fn deref(&self) -> &Info {
        &self.0
    }
}

impl Info {
    /// A communicator without remote group, topology, name and attributes, for the member `rank` of
    /// `members`.
    pub fn new(context: u32, rank: Rank, members: Members) -> Info {
        Info {
            context,
            rank,
            size: members.len() as Rank,
            members,
            remote: None,
            shape: Shape::Plain,
            registered: Cell::new(false),
            name: RefCell::default(),
            attributes: Attributes::default(),
            exchange: OnceCell::new(),
        }
    }

    /// The ranks that messages go to and come from.
    #[inline]
    pub fn partners(&self) -> &Members {
        match &self.remote {
            None => &self.members,
            Some(remote) => &remote.members,
        }
    }

    /// The job's rank of `rank` in this communicator, for messages.
    ///
    /// # Errors
    /// The rank does not exist.
    #[inline]
    pub fn job_rank(&self, rank: Rank) -> Result<u32, Error> {
        let partners = self.partners();
        if rank < 0 || rank as usize >= partners.len() {
            return Err(Error::RankOutOfRange { what: "rank", rank, size: partners.len() });
        }
        Ok(partners.get(rank as usize))
    }

    /// Whether it is found by its number: not one that is there from the beginning, nor the half of another one that
    /// sparse exchanges use.
    fn is_listed(&self) -> bool {
        self.context >= FIRST_FREE_CONTEXT && self.context.is_multiple_of(CONTEXTS)
    }

    /// The first rank of the job, if the members are consecutive, for the engine.
    pub fn first(&self) -> u32 {
        match self.members {
            Members::Range { first, .. } if !self.registered.get() => first,
            _ => REGISTERED,
        }
    }
}

impl CommunicatorHandle {
    /// The first handle of a communicator. The PE counts the communicator until its rank drops the
    /// last handle, except for predefined communicators.
    pub fn new(info: Info) -> CommunicatorHandle {
        if info.context >= FIRST_FREE_CONTEXT {
            pe::with(|pe| membership::count_communicator(&mut pe.engine, info.context));
        }
        let info = Rc::new(info);
        if info.is_listed() {
            table::enter(info.context, &info);
        }
        CommunicatorHandle(info)
    }

    /// The running rank's communicator with a number, which is its context; predefined ones are not found.
    pub fn find(number: u32) -> Option<CommunicatorHandle> {
        table::find(number).map(CommunicatorHandle)
    }

    /// Another handle of a communicator, from the result of [`shared`](Self::shared).
    pub fn from_shared(info: Rc<Info>) -> CommunicatorHandle {
        CommunicatorHandle(info)
    }

    /// The data shared by the handles; a weak reference to it does not keep the communicator alive.
    pub fn shared(&self) -> &Rc<Info> {
        &self.0
    }

    /// Whether both are the same communicator.
    pub fn is(&self, other: &CommunicatorHandle) -> bool {
        self.context == other.context && self.members.get(0) == other.members.get(0)
    }
}

impl Drop for Info {
    /// What PEs know of the communicator is forgotten when all its ranks have dropped it.
    fn drop(&mut self) {
        if self.context >= FIRST_FREE_CONTEXT && pe::in_rank() {
            if self.is_listed() {
                table::remove::<Info>(self.context);
            }
            pe::with(|pe| membership::forget_communicator(&mut pe.engine, self.context));
        }
    }
}
