//! What a communicator is: a few numbers, and who is in it.
//!
//! A handle is shared by all values that stand for the communicator in a rank and lies in the
//! rank's heap. When the last one is dropped the communicator is freed; other ranks are not asked.
//! A rank that begins again from its state finds those again that its state has (`table`).
//!
//! Every communicator has four contexts that no other one of the job has: point-to-point messages
//! use `context`, collective operations and one-sided synchronisation the next, and the last two
//! are such a pair for sparse exchanges.

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Deref;
use std::rc::Rc;

use crate::Rank;
use crate::comm::FIRST_FREE_CONTEXT;
use crate::comm::attributes::Attributes;
use crate::comm::groups;
use crate::comm::shape::Shape;
use crate::comm::table;
use crate::error::Error;
use crate::pe;

/// The ranks of a group, as ranks of the job, in order.
#[derive(Clone, Debug)]
pub enum Members {
    /// This many from the first on.
    Range {
        first: u32,
        count: u32,
    },
    List(Rc<[u32]>),
}

impl Members {
    pub fn from_list(list: &[u32]) -> Members {
        let consecutive = list.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        if consecutive {
            let first = list.first().copied().unwrap_or_default();
            Members::Range { first, count: list.len() as u32 }
        } else {
            Members::List(list.into())
        }
    }

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

/// What an intercommunicator has beside its local group.
#[derive(Debug)]
pub struct Remote {
    pub members: Members,
    /// A communicator of the local group.
    pub local: CommunicatorHandle,
}

/// A communicator as its rank sees it.
#[derive(Clone, Debug)]
pub struct CommunicatorHandle(Rc<Info>);

#[derive(Debug)]
pub struct Info {
    pub context: u32,
    pub rank: Rank,
    pub size: Rank,
    pub members: Members,
    pub remote: Option<Remote>,
    pub shape: Shape,
    /// PEs know it by its context: its members are not a range of the job's ranks.
    pub registered: Cell<bool>,
    pub name: RefCell<String>,
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

    /// The rank of the job that is `rank` here, for messages.
    ///
    /// # Errors
    /// There is no such rank.
    #[inline]
    pub fn job_rank(&self, rank: Rank) -> Result<u32, Error> {
        let partners = self.partners();
        if rank < 0 || rank as usize >= partners.len() {
            return Err(Error::RankOutOfRange { what: "rank", rank, size: partners.len() });
        }
        Ok(partners.get(rank as usize))
    }

    /// First rank of the job, if the members follow it, for the engine.
    pub fn first(&self) -> u32 {
        match self.members {
            Members::Range { first, .. } if !self.registered.get() => first,
            _ => groups::REGISTERED,
        }
    }
}

impl CommunicatorHandle {
    pub fn new(info: Info) -> CommunicatorHandle {
        if info.context >= FIRST_FREE_CONTEXT {
            pe::with(|pe| groups::count_communicator(&mut pe.engine, info.context));
        }
        let info = Rc::new(info);
        table::enter(&info);
        CommunicatorHandle(info)
    }

    pub fn from_shared(info: Rc<Info>) -> CommunicatorHandle {
        CommunicatorHandle(info)
    }

    pub fn shared(&self) -> &Rc<Info> {
        &self.0
    }

    /// Whether both are one communicator.
    pub fn is(&self, other: &CommunicatorHandle) -> bool {
        self.context == other.context && self.members.get(0) == other.members.get(0)
    }
}

impl Drop for Info {
    /// What PEs know of the communicator is forgotten when all its ranks have dropped it.
    fn drop(&mut self) {
        if self.context >= FIRST_FREE_CONTEXT && pe::in_rank() {
            table::remove(self.context);
            pe::with(|pe| groups::forget_communicator(&mut pe.engine, self.context));
        }
    }
}
