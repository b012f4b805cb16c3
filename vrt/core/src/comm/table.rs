//! The communicators of a rank, by number: for code that hands one on as a number, and for a rank that restarts from
//! its state.
//!
//! The number is the communicator's context, which no other one of the job ever has. The table lies in the rank's heap
//! and does not keep a communicator alive: each of its handles does, and dropping the last one removes the entry.
//! Predefined communicators have no entry.
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

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use vrt_slot::locals;

use crate::Rank;
use crate::comm::handle::{CommunicatorHandle, Info, Members, RemoteGroup};
use crate::comm::shape::Shape;
use crate::comm::{CONTEXTS, FIRST_FREE_CONTEXT};

/// Under which number a rank keeps its table among its locals.
const TABLE: u32 = FIRST_FREE_CONTEXT;

#[derive(Debug, Default)]
struct CommunicatorTable {
    known: RefCell<FxHashMap<u32, Weak<Info>>>,
    /// The rank's state is being encoded or decoded: numbers represent communicators.
    open: Cell<bool>,
}

/// Whether a communicator has an entry: not one that is there from the beginning, nor the half of another
/// one that sparse exchanges use.
fn is_listed(context: u32) -> bool {
    context >= FIRST_FREE_CONTEXT && context.is_multiple_of(CONTEXTS)
}

pub(super) fn enter(info: &Rc<Info>) {
    if is_listed(info.context) {
        let table = locals::keep(TABLE, CommunicatorTable::default);
        table.known.borrow_mut().insert(info.context, Rc::downgrade(info));
    }
}

pub(super) fn remove(context: u32) {
    if is_listed(context)
        && let Some(table) = locals::kept::<CommunicatorTable>(TABLE)
    {
        table.known.borrow_mut().remove(&context);
    }
}

/// The running rank's communicator with a number; predefined ones are not found.
pub fn find(number: u32) -> Option<CommunicatorHandle> {
    let table = locals::kept::<CommunicatorTable>(TABLE)?;
    let info = table.known.borrow().get(&number)?.upgrade()?;
    Some(CommunicatorHandle::from_shared(info))
}

/// Encodes or decodes the running rank's state: meanwhile numbers represent its communicators.
pub fn open<R>(f: impl FnOnce() -> R) -> R {
    struct Close(Rc<CommunicatorTable>, bool);
    impl Drop for Close {
        fn drop(&mut self) {
            self.0.open.set(self.1);
        }
    }
    let table = locals::keep(TABLE, CommunicatorTable::default);
    let _close = Close(Rc::clone(&table), table.open.replace(true));
    f()
}

/// Whether the calling rank's state is being encoded or decoded.
pub fn is_open() -> bool {
    locals::kept::<CommunicatorTable>(TABLE).is_some_and(|table| table.open.get())
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
    let Some(table) = locals::kept::<CommunicatorTable>(TABLE) else { return Vec::new() };
    let known = table.known.borrow();
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
    let mut records: Vec<Record> = known.values().filter_map(Weak::upgrade).map(record).collect();
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
            Some(RemoteGroup { members: members.members(), local: find(local)? })
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
