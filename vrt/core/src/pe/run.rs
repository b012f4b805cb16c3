//! The loop of a PE.
//!
//! The loop owns the thread. A tokio current-thread runtime is entered, so that ranks can create
//! tokio timers, sockets and tasks, but it runs only while something outside `vrt` holds a waker:
//! about every 100 us, or when the PE has nothing else to do. A turn costs 0.5 us.
//!
//! One time stamp is taken per switch: the end of one rank's time is the beginning of the next
//! one's.

use std::any::Any;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::cycles::{self, cycles_between};
use crate::mailbox::Posted;
use crate::net::Packet;
use crate::net::local::MEMORY;
use crate::net::shared::{Ended, PeBlock};
use crate::pe::abandon::Running;
use crate::pe::core::{Core, Engine};
use crate::pe::events::is_observed;
use crate::pe::idle;
use crate::pe::rank_state::{RankState, Status};
use crate::pe::requests::Request;
use crate::pe::thread::{Pe, Runs, with_in_loop};
use crate::pe::turns::turn;
use vrt_shm::Place;
use vrt_slot::external::{self, counted, threads};
use vrt_slot::rank::{self, Body, Resumed};
use vrt_slot::report;
use vrt_slot::signals;
use vrt_slot::{Arena, SlotHeader, TOUCHED_BY_SWITCH, fetch, hooks, outside};

/// Ranks resumed between two looks at the rings, if none of them runs for long.
const RESUMES_PER_POLL: u32 = 8;
/// After a rank has run for so long there is a look at the rings, which takes a hundredth of that: who waits on another PE
/// shall not wait for seven such ranks.
pub(super) const LONG_RUN: Duration = Duration::from_micros(2);
/// Packets taken from one ring before the next one has its turn.
const PACKETS_PER_RING: usize = 64;
/// With so many ready ranks the caches do not hold what switches to them touch.
const MANY: usize = 512;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Lines of a suspended rank's stack that it touches soon: the frames of the call that suspended it,
/// which are some 400 bytes of a collective operation.
const STACK_LINES: usize = 8;
/// A rank whose messages are there whenever it waits for them lets others run after about so long, ..
pub(super) const SLICE: Duration = Duration::from_micros(20);
/// .. but not before so many calls, with which those that work on much get through an iteration or two while that is in
/// the cache.
pub(super) const LEAST_CALLS_AHEAD: u32 = 16;
/// Time between two turns of tokio.
pub(super) const TOKIO_PERIOD: Duration = Duration::from_micros(100);

/// How a PE's loop ended.
#[derive(Debug)]
pub enum Outcome {
    /// All ranks of the job have ended.
    Finished,
    /// The job was ended; the status is in the job's state.
    Ended(Ended),
    /// A rank has panicked, with this payload.
    Panicked(u32, Box<dyn Any + Send>),
}

/// Why a PE could not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot create the tokio runtime: {0}")]
    Tokio(#[from] std::io::Error),
}

/// What the loop does next, outside of the PE's state. Two words, so that it stays in registers.
enum NextStep {
    Resume(u32, *mut SlotHeader),
    /// A rank has panicked.
    Panicked(u32),
    /// Let tokio run.
    Tokio,
    /// Nothing is ready and nothing has arrived.
    Idle,
    /// The job is over: all its ranks have ended, or it has been.
    Over(Option<Ended>),
}

const _: () = assert!(size_of::<NextStep>() == 2 * size_of::<usize>());

/// What it means for the job that a rank has stopped running.
enum Stopped {
    /// It continues.
    GoesOn,
    /// The rank has panicked.
    Panicked,
    /// The rank has ended it.
    EndsJob,
}

/// What comes after a rank with an image that has suspended.
enum After {
    /// A step of the loop, whose time must still be recorded.
    Look,
    /// A step of the loop; its time is recorded.
    Booked,
    /// Resume the next rank, which has an image, too; the time of the first one is recorded.
    Resume(u32, *mut SlotHeader),
}

/// Runs the ranks of this thread's PE until the job has ended.
pub fn run() -> Result<Outcome, RunError> {
    // What ranks get of it they may hold when they move inside the node.
    let mut tokio = tokio::runtime::Builder::new_current_thread();
    tokio.enable_all().on_thread_start(threads::is_of_tokio);
    let tokio = outside::within(|| tokio.build())?;
    let entered = tokio.enter();
    counted::watch(tokio.handle());
    let _runs = Runs::begin();
    let mut running = Running { finished: false };
    with_in_loop(|pe| {
        pe.engine.stamp = cycles::now();
        pe.engine.begin_to_observe();
    });
    let mut done = None;
    let outcome = loop {
        match with_in_loop(|pe| pe.step(done.take())) {
            NextStep::Resume(rank, slot) => {
                // SAFETY: `step` gave a ready rank of this PE, and none runs here.
                done = match unsafe { Body::has_image(slot) } {
                    // SAFETY: as above.
                    false => Some((rank, slot, unsafe { Body::resume(slot) })),
                    true => resume_images(rank, slot),
                };
            }
            NextStep::Panicked(rank) => break Outcome::Panicked(rank, rank::take_panic()),
            NextStep::Tokio => turn(&tokio),
            NextStep::Idle => idle::idle(&tokio),
            NextStep::Over(ended) => break ended.map_or(Outcome::Finished, Outcome::Ended),
        }
    };
    running.finished = matches!(outcome, Outcome::Finished);
    if !running.finished && !with_in_loop(|pe| pe.engine.options.local) {
        // The process ends at once: a destructor of one of tokio's tasks might wait for a rank.
        std::mem::forget((running, entered));
        std::mem::forget(tokio);
        return Ok(outcome);
    }
    drop(running);
    drop(entered);
    tokio.shutdown_background();
    Ok(outcome)
}

/// Runs a ready rank with an image, and others that follow it. Gives the last one, if it is not booked.
#[inline(never)]
fn resume_images(mut rank: u32, slot: *mut SlotHeader) -> Option<(u32, *mut SlotHeader, Resumed)> {
    let mut is_booked = false;
    let next = || match with_in_loop(|pe| pe.engine.resume_next(rank)) {
        After::Look => None,
        After::Booked => {
            is_booked = true;
            None
        }
        After::Resume(next, slot) => {
            rank = next;
            Some(slot)
        }
    };
    // SAFETY: the caller's, a ready rank of this PE with an image; and so it is with those that follow.
    let (slot, resumed) = unsafe { Body::resume_images(slot, next) };
    (!is_booked).then_some((rank, slot, resumed))
}

impl Pe {
    /// Sends everything that this PE still has to send to others.
    pub fn send_what_is_left(&mut self) {
        loop {
            self.progress();
            let busy = self.engine.net.remote().is_some_and(|remote| remote.is_busy());
            if !busy && !self.engine.net.has_backlog() {
                return;
            }
        }
    }

    /// Books what a rank did that has just suspended or returned, and finds the next one.
    #[inline(always)]
    fn step(&mut self, done: Option<(u32, *mut SlotHeader, Resumed)>) -> NextStep {
        let engine = &mut self.engine;
        if let Some((rank, slot, resumed)) = done {
            match engine.end_resume(rank, slot, resumed) {
                Stopped::GoesOn => {}
                Stopped::Panicked => return NextStep::Panicked(rank),
                Stopped::EndsJob => return NextStep::Over(Some(Ended::Status)),
            }
            if engine.is_due(engine.stamp) {
                engine.do_what_is_due();
            }
            engine.resumes = engine.resumes.wrapping_add(1);
        } else if engine.is_due(engine.stamp) {
            engine.do_what_is_due();
        }
        if self.engine.look_is_due(self.engine.resumes) {
            self.progress();
            let engine = &mut self.engine;
            engine.next_look = engine.resumes.wrapping_add(RESUMES_PER_POLL);
            engine.drain_pool();
            if engine.waits_for_outside()
                && cycles_between(engine.tokio_turn, engine.stamp) > engine.tokio_period
            {
                engine.tokio_turn = engine.stamp;
                return NextStep::Tokio;
            }
        }
        match self.engine.begin_resume() {
            Some((rank, slot)) => NextStep::Resume(rank, slot),
            None => self.step_without_ready_rank(),
        }
    }

    /// No rank is ready: sends what was gathered, and takes what has come. A function of its own, so that the way from
    /// a rank to the next one is straight.
    #[inline(never)]
    fn step_without_ready_rank(&mut self) -> NextStep {
        if self.engine.is_due(cycles::now()) {
            self.engine.do_what_is_due();
        }
        self.engine.send_gathered();
        self.progress();
        match self.engine.begin_resume() {
            Some((rank, slot)) => NextStep::Resume(rank, slot),
            None => self.engine.nothing_is_ready(),
        }
    }

    /// Takes what has come and sends what waits; true when anything happened.
    #[inline]
    pub(crate) fn progress(&mut self) -> bool {
        let taken = self.take_from_rings();
        taken | self.progress_beside_rings()
    }

    /// Handles what has come from PEs of this node; whether there was anything.
    #[inline(always)]
    pub(super) fn take_from_rings(&mut self) -> bool {
        let engine = &mut self.engine;
        let taken = self.receivers.drain(PACKETS_PER_RING, |(from, ring)| {
            let mut taken = 0;
            engine.receiving_from = *from;
            while taken < PACKETS_PER_RING {
                let got = ring.receive(|cell, payload| {
                    let packet = Packet::in_cell(cell);
                    let payload = payload.take(packet.payload());
                    // SAFETY: the ring yields the bytes that were sent with this packet, good
                    // until the closure returns.
                    unsafe { engine.handle(packet, payload) };
                });
                if got.is_none() {
                    break;
                }
                taken += 1;
            }
            taken
        });
        if taken == 0 {
            return false;
        }
        engine.received += taken as u64;
        true
    }

    /// The rest of [`progress`](Self::progress).
    #[inline(always)]
    pub(super) fn progress_beside_rings(&mut self) -> bool {
        let mut any = false;
        if self.engine.net.remote().is_some() {
            any |= self.engine.progress_remote();
        }
        if !self.engine.injected.is_empty() {
            any |= self.take_signals();
        }
        any | self.engine.progress_own()
    }

    /// Takes what others have signalled; whether there was anything.
    #[cold]
    fn take_signals(&mut self) -> bool {
        let mut any = false;
        if self.engine.injected.take_new_rings() {
            let (shared, id) = (self.engine.shared, self.engine.id);
            // SAFETY: this is the PE that they were opened to.
            self.receivers.add(unsafe { shared.take_new_rings(id) });
            any = true;
        }
        any | self.engine.take_injected()
    }

    /// Whether something has come.
    #[inline]
    pub(crate) fn has_arrivals(&mut self) -> bool {
        self.rings_are_ready() || self.has_arrivals_beside_rings()
    }

    /// Whether something has come from a PE of this node.
    #[inline(always)]
    pub(super) fn rings_are_ready(&self) -> bool {
        self.receivers.are_ready()
    }

    /// Whether something has come in another way.
    #[inline(always)]
    pub(super) fn has_arrivals_beside_rings(&mut self) -> bool {
        !self.engine.injected.is_empty()
            || self.engine.net.remote().is_some_and(|remote| remote.is_ready())
    }
}

impl Engine {
    /// Takes a batch that has come from another node, and sends off what was gathered for them.
    #[inline(never)]
    fn progress_remote(&mut self) -> bool {
        let Some(remote) = self.net.remote() else { return false };
        remote.flush();
        if !remote.is_ready() {
            return false;
        }
        self.back_offs = 0;
        while let Some(transfer) = self.net.remote().and_then(|remote| remote.take_done()) {
            self.transfer_done(transfer);
        }
        if let Some(batch) = self.net.remote().and_then(|remote| remote.take()) {
            self.receiving_from = batch.from;
            // SAFETY: just taken; what is beside a packet is good until the batch is given back.
            unsafe { batch.for_each(|packet, payload| self.handle(packet, payload)) };
            if let Some(remote) = self.net.remote() {
                remote.give_back(batch);
                // Who looks for something to come does not come here again until it has; answers
                // must not wait for that.
                remote.flush();
            }
        }
        true
    }

    fn nothing_is_ready(&mut self) -> NextStep {
        if let Some(over) = self.is_over() {
            return over;
        }
        let next = if self.give_idleness() { self.begin_resume() } else { None };
        next.map_or(NextStep::Idle, |(rank, slot)| NextStep::Resume(rank, slot))
    }

    #[inline]
    fn progress_own(&mut self) -> bool {
        let mut any = self.take_kept();
        if self.net.has_backlog() {
            any |= self.send_backlog();
        }
        if self.sent_away != 0 {
            any |= self.end_stalls();
        }
        if self.has_timers() {
            self.run_timers();
        }
        any | !self.ready.is_empty() | self.has_kept()
    }

    /// Sends what has waited for room. Whether some of it has gone.
    #[cold]
    fn send_backlog(&mut self) -> bool {
        let mut done = Vec::new();
        let any = self.net.flush(|rank, request| done.push((rank, request)));
        for (rank, request) in done {
            match request {
                MEMORY => self.memory_gone(rank),
                request => self.message_gone(rank, request),
            }
        }
        any
    }

    /// After so many resumes, whether there is a look at the rings before the next rank runs.
    #[inline(always)]
    fn look_is_due(&self, resumes: u32) -> bool {
        resumes.wrapping_sub(self.next_look) <= i32::MAX as u32
    }

    /// A rank with an image has just suspended: finds the next one, if there is nothing else to do before it
    /// runs.
    #[inline]
    fn resume_next(&mut self, rank: u32) -> After {
        let resumes = self.resumes.wrapping_add(1);
        if self.look_is_due(resumes) || self.exiting.is_some() || self.options.check_stacks {
            return After::Look;
        }
        let state = |rank: Option<u32>| self.ranks[rank? as usize].as_deref();
        let (Some(this), Some(next)) = (state(Some(rank)), state(self.ready.get(0))) else {
            return After::Look;
        };
        // SAFETY: a slot of this PE.
        if next.status != Status::Ready || unsafe { !Body::has_image(next.slot) } {
            return After::Look;
        }
        // It has suspended, and does not exit: the job goes on.
        let _: Stopped = self.end_resume(rank, this.slot, Resumed::Suspended);
        self.resumes = resumes;
        match self.is_due(self.stamp) || self.look_is_due(resumes) {
            true => After::Booked,
            false => {
                self.begin_resume().map_or(After::Booked, |(rank, slot)| After::Resume(rank, slot))
            }
        }
    }

    /// Books the time and sees what the rank has become.
    #[inline(always)]
    fn end_resume(&mut self, rank: u32, slot: *mut SlotHeader, resumed: Resumed) -> Stopped {
        let stamp = cycles::now();
        let elapsed = cycles_between(self.stamp, stamp);
        self.stamp = stamp;
        self.busy += elapsed;
        if elapsed > self.long_run {
            self.next_look = self.resumes;
        }
        if self.calls_ahead > 0 {
            let calls = std::mem::take(&mut self.calls_ahead);
            let in_slice = self.slice * u64::from(calls) / elapsed.max(1);
            self.most_calls_ahead = (in_slice as u32).max(LEAST_CALLS_AHEAD);
        }
        // Only this thread writes it.
        self.switches.store(self.switches.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if is_observed() {
            self.observe_stop(rank, resumed == Resumed::Suspended);
        }
        if self.set_stopped(rank, elapsed, resumed == Resumed::Suspended) {
            if self.options.check_stacks {
                // SAFETY: the slot of a rank of this PE, which has just suspended.
                unsafe { vrt_slot::check::scan_stack(rank, slot) };
            }
            return Stopped::GoesOn;
        }
        match (resumed, self.exiting.take()) {
            (Resumed::Returned(status), _) | (Resumed::Suspended, Some(status)) => {
                self.rank_returned(rank, slot, status)
            }
            (Resumed::Suspended, None) => Stopped::GoesOn,
        }
    }

    /// A rank has returned from its program or called `exit`.
    fn rank_returned(&mut self, rank: u32, slot: *mut SlotHeader, status: i32) -> Stopped {
        match status {
            0 => {
                self.end_rank(rank, slot);
                Stopped::GoesOn
            }
            rank::PANICKED => {
                self.end_rank(rank, slot);
                Stopped::Panicked
            }
            status if self.options.local => report::end_job(status),
            status => {
                // The loop ends as on other PEs, so that this one tells what it has to tell, too.
                self.shared.job().end(Ended::Status, status);
                self.wake_all();
                Stopped::EndsJob
            }
        }
    }

    /// A rank is over: its slot is given back unless something is left in it, which may be the data of a send that its
    /// receiver has not got yet. Its state stays while somebody may still ask for what it has sent.
    fn end_rank(&mut self, rank: u32, slot: *mut SlotHeader) {
        let Some(mut state) = self.ranks[rank as usize].take() else { return };
        state.status = Status::Ended;
        // SAFETY: the slot is this PE's, and its rank does not run any more.
        let heap = unsafe { (*(*slot).heap.get()).used() };
        self.used.rank_ends(rank, heap.iter().map(ExactSizeIterator::len).sum(), &state);
        if self.has_observer() {
            self.observe_end(rank, &state);
        }
        self.rank_over(rank, &mut state);
        self.end_hold(rank, std::mem::take(&mut state.flow.told));
        state.drop_restored();
        state.posted = Posted::default();
        for (packet, payload) in std::mem::take(&mut state.unexpected).gather() {
            self.forget(packet, *payload);
        }
        // SAFETY: the rank has ended; the slot is ours, and nobody will resume it.
        unsafe {
            external::abandon(slot);
            hooks::drain_remote(slot);
            let heap = &*(*slot).heap.get();
            let (blocks, bytes) = (heap.blocks, heap.bytes);
            let has_wakers = rank::give_up_wakers(&*slot);
            let owes = state.requests.iter().any(Request::is_owed);
            if blocks == 0 && !has_wakers && !owes {
                if let Some(arena) = Arena::current() {
                    let id = (*slot).id();
                    hooks::own(slot, 0);
                    arena.discard(id);
                }
            } else {
                let job = self.shared.job();
                job.retired.fetch_add(1, Ordering::Relaxed);
                job.retired_blocks.fetch_add(blocks as u64, Ordering::Relaxed);
                let (usual_blocks, usual_bytes) = (*slot).usual.get();
                let has_left = blocks > usual_blocks || (usual_blocks == 0 && has_wakers);
                if self.options.check_leaks && has_left {
                    let why = match usual_blocks {
                        0 => ", held by something that outlives it; its slot is not used again",
                        _ => " beside those of its libraries",
                    };
                    report::say(format_args!(
                        "rank {rank} ended and left {} ({}) in its heap{why}",
                        report::count((blocks - usual_blocks) as u64, "block"),
                        report::count(bytes.saturating_sub(usual_bytes) as u64, "byte")
                    ));
                }
            }
        }
        self.ranks[rank as usize] = Some(state);
        self.forget_rank_without_sends(rank);
        self.rank_ended(rank);
        self.count_ended();
    }
}

impl Core {
    /// One call more of the running rank that would have suspended it, had not all been there already. Whether it has
    /// run so far ahead that those of this PE which are ready shall run first: else a rank that nobody holds up would run to its
    /// end before those come to their turn whose messages other PEs wait for.
    #[inline(always)]
    pub(crate) fn has_run_ahead(&mut self) -> bool {
        self.calls_ahead += 1;
        self.calls_ahead >= self.most_calls_ahead && !self.ready.is_empty()
    }

    /// The PE has taken a rank in: that was no rank's time, least of all that of a rank which ran elsewhere until then.
    /// While the PE is idle, or looks for what the running rank waits for, that time is booked when it is over.
    pub(crate) fn book_taking_in(&mut self) {
        if !self.idles.load(Ordering::Relaxed) {
            self.stamp = cycles::now();
            self.observed_until = self.stamp;
        }
    }

    /// Ranks that others have woken are ready; whether there are any.
    pub(crate) fn take_injected(&mut self) -> bool {
        let taken = self.injected.take();
        let mut any = false;
        for rank in taken.ranks.into_iter().chain(self.locks.take_signalled(self.uid, taken.words))
        {
            self.notify(rank, None);
            any = true;
        }
        if taken.asked {
            self.answer();
        }
        if taken.signalled {
            any |= self.resume_signalled();
        }
        any
    }

    /// Ranks that have signals look for them; whether there are any.
    #[cold]
    fn resume_signalled(&mut self) -> bool {
        // SAFETY: the slots of this PE's ranks.
        let has_some = |state: &RankState| unsafe { signals::has_some(state.slot) };
        let states = self.ranks.iter().enumerate();
        let signalled: Vec<u32> = states
            .filter(|(_, state)| state.as_deref().is_some_and(has_some))
            .map(|(rank, _)| rank as u32)
            .collect();
        signalled.iter().for_each(|rank| self.notify(*rank, None));
        !signalled.is_empty()
    }

    /// What has come has been taken. Whether a send is done now.
    #[cold]
    fn end_stalls(&mut self) -> bool {
        self.sent_away = 0;
        let stalled = std::mem::take(&mut self.stalled);
        for (rank, request) in &stalled {
            self.complete(*rank, *request);
        }
        !stalled.is_empty()
    }

    #[inline(always)]
    fn begin_resume(&mut self) -> Option<(u32, *mut SlotHeader)> {
        loop {
            let rank = self.ready.pop_front()?;
            if self.ready.len() >= MANY {
                self.fetch_ahead();
            }
            if let Some(slot) = self.set_running(rank) {
                return Some((rank, slot));
            }
        }
    }

    /// Has the caches fetch what the switches to the next ranks touch: the ranks' state, then the
    /// slots' headers, whose addresses it has, then the tops of the stacks, which those know.
    #[inline(never)]
    fn fetch_ahead(&self) {
        let state = |place: usize| {
            let rank = self.ready.get(place)?;
            self.ranks[rank as usize].as_deref()
        };
        if let Some(state) = state(6) {
            let at = std::ptr::from_ref(state).addr();
            let used = std::mem::offset_of!(RankState, matched);
            (0..used).step_by(LINE).for_each(|offset| fetch(at + offset));
        }
        if let Some(state) = state(4) {
            let slot = state.slot.addr();
            (0..TOUCHED_BY_SWITCH).step_by(LINE).for_each(|offset| fetch(slot + offset));
            fetch(state.requests.as_ptr().addr());
        }
        if let Some(state) = state(2) {
            // SAFETY: ranks that are ready are suspended, and their slots this PE's.
            let stack = unsafe { rank::live_stack(state.slot) }.start;
            (0..STACK_LINES).for_each(|line| fetch(stack + line * LINE));
        }
    }

    /// The last that is left of a rank that has ended are sends whose data its PE still has; without them it is
    /// forgotten.
    pub(crate) fn forget_rank_without_sends(&mut self, rank: u32) {
        let Some(state) = self.rank(rank) else { return };
        if state.requests.iter().any(Request::is_owed) {
            return;
        }
        let version = state.moves.wrapping_add(1);
        self.ranks[rank as usize] = None;
        self.shared.location_entry(rank).set(Place::ENDED, version);
    }

    /// What this PE lets others know.
    pub(crate) fn block(&self) -> &'static PeBlock {
        self.shared.pe(self.id as usize)
    }

    /// Rings every other PE's doorbell.
    pub fn wake_all(&self) {
        for other in (0..self.shared.pes()).filter(|other| *other != self.id as usize) {
            self.net.wake(other);
        }
    }

    fn is_over(&self) -> Option<NextStep> {
        let job = self.shared.job();
        match job.ended() {
            Ended::Not if job.ranks_left.load(Ordering::Acquire) == 0 => Some(NextStep::Over(None)),
            Ended::Not => None,
            ended => Some(NextStep::Over(Some(ended))),
        }
    }
}
