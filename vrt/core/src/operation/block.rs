//! Blocking calls of one request, without a future.
//!
//! What the PE must know about a waiting rank lies on the rank's stack: [`Awaited`], whose address the PE has until the
//! rank continues.

use std::cell::Cell;
use std::mem::MaybeUninit;

use super::drive::{MayBlock, drive_here};
use super::{Pending, sent_to};
use crate::error::Site;
use crate::mailbox::Pattern;
use crate::pe::{self, Awaited, Completion, Outbound, Room, Started, Wait};
use vrt_slot::rank;

/// Starts an operation of the running rank and suspends the rank until it is done: equivalent to awaiting its
/// [`Pending`], but with one entry into the PE instead of three and without a future.
///
/// What is soon read again is written once, directly to where it is read: a wide load of data that was just written in
/// parts waits until all of them have left the processor's store buffer.
#[inline(always)]
pub fn block_on_request(
    _: MayBlock,
    start: impl FnOnce(&mut pe::Engine) -> Started,
    pattern: Option<Pattern>,
    site: &Site,
) -> Completion {
    if vrt_slot::locals::has_tasks() {
        // A copy, here alone, as in `receive_after`.
        return beside_tasks(start, pattern, *site);
    }
    let awaited = Awaited { outcome: Cell::new(None), wait: site.wait(pattern) };
    let pending = pe::with(|pe| {
        let request = match start(&mut pe.engine) {
            Started::Done(outcome) => {
                awaited.outcome.set(Some(outcome));
                return pe.engine.has_run_ahead().then_some(GIVE_WAY);
            }
            Started::Pending(request, _) => request,
        };
        // SAFETY: O2: this function does not return before the rank has gone on.
        unsafe { has_to_wait(pe, request, &awaited) }.then_some(request)
    });
    match pending {
        Some(request) => suspend_until_done(request, &awaited),
        None => awaited.outcome.take().unwrap_or_default(),
    }
}

/// Stands for a request: there is nothing to wait for, but others shall run.
const GIVE_WAY: u32 = u32::MAX;

/// [`block_on_request`] for a receive.
///
/// # Safety
/// The room's buffer is writable during the call.
#[inline(always)]
pub unsafe fn block_on_receive(
    _: MayBlock,
    pattern: Pattern,
    room: Room,
    site: &Site,
) -> Completion {
    // SAFETY: the buffer is writable during the call, says the caller.
    unsafe { receive_after(|_| {}, pattern, room, site) }
}

/// [`block_on_request`] for a send and a receive, in this order; returns the outcome of the receive.
///
/// # Safety
/// The message's data is readable, and the room's buffer writable, during the call. They may be the same if the message
/// is copied.
#[inline(always)]
pub unsafe fn block_on_exchange(
    may_block: MayBlock,
    message: &Outbound,
    pattern: Pattern,
    room: Room,
    site: &Site,
) -> Completion {
    let mut sending = None;
    // SAFETY: O1: the data is readable during the call, says the caller.
    let send = |engine: &mut pe::Engine| unsafe {
        if let Started::Pending(request, _) = engine.send(message) {
            sending = Some(request);
        }
    };
    // SAFETY: the buffer is writable during the call, says the caller.
    let received = unsafe { receive_after(send, pattern, room, site) };
    if let Some(request) = sending {
        let outcome = |engine: &mut pe::Engine| engine.outcome(request);
        block_on_request(may_block, outcome, Some(sent_to(message)), site);
    }
    received
}

/// Waits for a message, when something was begun. What the PE needs of the receive is handed over by one
/// pointer.
///
/// # Safety
/// The room's buffer is writable during the call.
#[inline(always)]
unsafe fn receive_after(
    begin: impl FnOnce(&mut pe::Engine),
    pattern: Pattern,
    room: Room,
    site: &Site,
) -> Completion {
    if vrt_slot::locals::has_tasks() {
        // Copies, here alone: a reference to them would have them in memory on the usual way, too.
        let start = move |engine: &mut pe::Engine| {
            begin(engine);
            // SAFETY: O1: the buffer is writable during the call, says the caller.
            unsafe { engine.receive(pattern, room) }
        };
        return beside_tasks(start, Some(pattern), *site);
    }
    struct Receive<'a> {
        pattern: Pattern,
        room: Room,
        site: &'a Site,
        awaited: MaybeUninit<Awaited>,
    }
    let mut receive = Receive { pattern, room, site, awaited: MaybeUninit::uninit() };
    let receive = &raw mut receive;
    // SAFETY: O1: the buffer is writable during the call, says the caller. O2: this does not return before the rank has
    // gone on. What is awaited is written in either case.
    unsafe {
        let pending = pe::with(move |pe| {
            begin(&mut pe.engine);
            let Receive { pattern, room, site, ref mut awaited } = *receive;
            let request = match pe.engine.receive(pattern, room) {
                Started::Done(done) => {
                    let outcome = Cell::new(Some(done));
                    awaited.write(Awaited { outcome, wait: Wait::default() });
                    return pe.engine.has_run_ahead().then_some(GIVE_WAY);
                }
                Started::Pending(request, _) => request,
            };
            let wait = site.wait(Some(pattern));
            let awaited = awaited.write(Awaited { outcome: Cell::new(None), wait });
            has_to_wait(pe, request, awaited).then_some(request)
        });
        let awaited = (*receive).awaited.assume_init_ref();
        match pending {
            Some(request) => suspend_until_done(request, awaited),
            None => awaited.outcome.take().unwrap_or_default(),
        }
    }
}

/// [`block_on_request`] for a send, of which only the completion matters.
///
/// # Safety
/// The data stays readable during the call.
#[inline(always)]
pub unsafe fn block_on_send(_: MayBlock, message: &Outbound, site: &Site) {
    // SAFETY: O1: the data is readable during the call, says the caller.
    let start = move |engine: &mut pe::Engine| unsafe { engine.send(message) };
    if vrt_slot::locals::has_tasks() {
        beside_tasks(start, Some(sent_to(message)), *site);
        return;
    }
    if let Started::Pending(request, _) = pe::with(|pe| start(&mut pe.engine)) {
        block_on_started(request, sent_to(message), site);
    }
}

/// Most sends are done when they have begun.
#[inline(never)]
fn block_on_started(request: u32, pattern: Pattern, site: &Site) {
    let awaited = Awaited { outcome: Cell::new(None), wait: site.wait(Some(pattern)) };
    // SAFETY: O2: this function does not return before the rank has gone on.
    if pe::with(|pe| unsafe { has_to_wait(pe, request, &awaited) }) {
        suspend_until_done(request, &awaited);
    }
}

/// Looks for a while whether a request of the running rank gets done; if it does not, the rank waits for it
/// from now on.
///
/// # Safety
/// What is awaited lives until the rank goes on after it was resumed.
#[inline(always)]
unsafe fn has_to_wait(pe: &mut pe::Pe, request: u32, awaited: &Awaited) -> bool {
    let is_found = pe.look_for(request, &awaited.outcome);
    if !is_found {
        // SAFETY: O2, says the caller.
        unsafe { pe.engine.running().await_outcome(request, awaited) };
    }
    !is_found
}

/// Suspends the running rank, which waits for this, until it is done.
#[inline(always)]
fn suspend_until_done(request: u32, awaited: &Awaited) -> Completion {
    if request == GIVE_WAY {
        pe::with(|pe| pe.engine.yield_current());
    }
    loop {
        rank::suspend_and_resume();
        if let Some(outcome) = awaited.outcome.take() {
            return outcome;
        }
        // SAFETY: O2: `awaited` is borrowed until this returns.
        pe::with(|pe| unsafe { pe.engine.running().await_outcome(request, awaited) });
    }
}

/// [`block_on_request`] for a rank with tasks, which go on meanwhile.
#[cold]
fn beside_tasks(
    start: impl FnOnce(&mut pe::Engine) -> Started,
    pattern: Option<Pattern>,
    site: Site,
) -> Completion {
    match pe::with(|pe| start(&mut pe.engine)) {
        Started::Done(outcome) => outcome,
        Started::Pending(request, _) => {
            // The running rank's own, so there is no error.
            drive_here(Pending::new(request, site, pattern)).unwrap_or_default()
        }
    }
}
