//! The communicators of a rank, by number: for code that hands one on as a number, and for a rank that restarts from
//! its state.
//!
//! The number is the communicator's context, which no other one of the job ever has. The `table` does not keep a
//! communicator alive: each of its handles does, and dropping the last one removes the entry. Predefined communicators
//! have no entry.
//!
//! ```text
//! the rank encodes its state: handles in it become numbers           records(): what the table has
//! stack and heap are dropped whole; no handle is dropped
//! the program begins again: reopen(records) fills the table, holds all that was there
//! the state is decoded: numbers become handles
//! Reopened is dropped: what no handle of the state stands for is freed, as by its last handle
//! ```
//!
//! Meanwhile PEs know the communicator as before: the numbering of operations continues, so that one rank may restart
//! while the others continue.

#![cfg_attr(
    not(test),
    expect(clippy::arithmetic_side_effects, reason = "contexts are given out in order")
)]

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::Rank;
use crate::comm::CONTEXTS;
use crate::comm::handle::{CommunicatorHandle, Info, Members, RemoteGroup};
use crate::comm::shape::Shape;
use crate::comm::table;

/// Encodes or decodes the running rank's state: meanwhile numbers represent its communicators.
pub fn open<R>(f: impl FnOnce() -> R) -> R {
    table::open::<Info, R>(f)
}

/// Whether the calling rank's state is being encoded or decoded.
pub fn is_open() -> bool {
    table::is_open::<Info>()
}

/// A communicator in encoded form.
#[derive(Debug, Serialize, Deserialize)]
pub struct Record {
    context: u32,
    rank: Rank,
    members: MemberList,
    /// For an intercommunicator: the remote group, and the communicator of the local one.
    remote: Option<(MemberList, u32)>,
    shape: Shape,
    registered: bool,
    name: String,
    /// Whether it was used by sparse exchanges, and then whether PEs know that half of it.
    exchange: Option<bool>,
}

#[derive(Debug, Serialize, Deserialize)]
enum MemberList {
    Range { first: u32, count: u32 },
    List(Vec<u32>),
}

impl MemberList {
    fn of(members: &Members) -> MemberList {
        match members {
            Members::Range { first, count } => MemberList::Range { first: *first, count: *count },
            Members::List(list) => MemberList::List(list.to_vec()),
        }
    }

    fn members(self) -> Members {
        match self {
            MemberList::Range { first, count } => Members::Range { first, count },
            MemberList::List(list) => Members::List(list.into()),
        }
    }
}

/// All communicators of the running rank, to be encoded with its state.
pub fn records() -> Vec<Record> {
    let record = |info: Rc<Info>| Record {
        context: info.context,
        rank: info.rank,
        members: MemberList::of(&info.members),
        remote: info
            .remote
            .as_ref()
            .map(|remote| (MemberList::of(&remote.members), remote.local.context)),
        shape: info.shape.clone(),
        registered: info.registered.get(),
        name: info.name.borrow().clone(),
        exchange: info.exchange.get().map(|own| own.registered.get()),
    };
    let mut records: Vec<Record> = table::all().into_iter().map(record).collect();
    records.sort_by_key(|record| record.context);
    records
}

/// The communicators of a rank that restarts. Those without another handle when this is dropped are freed.
#[derive(Debug)]
#[must_use = "the communicators are freed when this is dropped"]
pub struct Reopened(#[expect(dead_code, reason = "keeps them")] Vec<CommunicatorHandle>);

/// Fills the table of a rank that restarts from the records.
pub fn reopen(mut records: Vec<Record>) -> Reopened {
    let mut handles = Vec::with_capacity(records.len());
    // An intercommunicator comes after the communicator of its local group.
    records.sort_by_key(|record| record.remote.is_some());
    for record in records {
        let mut info = Info::new(record.context, record.rank, record.members.members());
        info.remote = record.remote.and_then(|(members, local)| {
            Some(RemoteGroup::new(members.members(), CommunicatorHandle::find(local)?))
        });
        info.shape = record.shape;
        info.registered.set(record.registered);
        *info.name.borrow_mut() = record.name;
        if let Some(registered) = record.exchange {
            let own = exchange_half(&info);
            own.registered.set(registered);
            info.exchange.get_or_init(|| CommunicatorHandle::new(own));
        }
        handles.push(CommunicatorHandle::new(info));
    }
    Reopened(handles)
}

/// The half of a communicator that sparse exchanges use: the same ranks in the contexts after its own.
pub fn exchange_half(info: &Info) -> Info {
    Info::new(info.context + CONTEXTS / 2, info.rank, info.members.clone())
}
