//! What a PE does when no rank is ready and nothing has arrived.
//!
//! It polls for a while (a message from another PE usually arrives within microseconds), then sleeps on its doorbell:
//! in a futex, or in tokio's driver while something outside `vrt` holds a waker. PEs of other nodes cannot ring the
//! doorbell, so if there are any the PE sleeps only for a while. With more PEs than cores it yields its core instead of
//! polling.
//!
//! **Idleness is granted to ranks.** A rank may wait for its PE to have nothing else to do (`pe::timers`): one that
//! would help others if that costs nothing, as a work thief. Idleness is granted to one such rank after another, the
//! next one when nothing is ready again.
//!
//! **Deadlock.** Before it sleeps, a PE publishes in shared memory that it is idle, and whether its ranks wait only for
//! messages. The last PE to become idle finds all others idle, too; if then every ring is empty, and no PE has a
//! signal, nothing can ever happen again. The check reads all epochs (they grow with each idling) before and after it
//! reads the rings, so that it notices a PE that woke, sent and slept again in between.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Runtime;
use vrt_shm::Sleep;

use crate::cycles::{self, cycles_between};
use crate::net::shared::{Ended, Idleness};
use crate::pe::core::{Core, Engine};
use crate::pe::rank_state::{Awaiting, Status};
use crate::pe::requests::Completion;
use crate::pe::thread::{self, Pe};
use crate::pe::{timers, turns};
use vrt_slot::rank;
use vrt_slot::{foreign, image_thread};

/// Looks for what comes from this node before somebody looks at the time.
const LOOKS: u32 = 64;
/// Looks before sleeping where something may come from other nodes.
const SPINS: u32 = 2_000;
/// Looks of a rank with nothing beside it before it suspends: a few microseconds.
const RANK_SPINS: u32 = 400;
/// From this look on the time is measured.
const TIMED_SPINS: u32 = 32;
/// Of so many calls of a rank that looks for something again and again, one suspends it though nothing else is to be
/// done: a switch costs as much as some of them.
const CALLS_BETWEEN_TURNS: u32 = 16;
/// Looks between giving the core away, with too few cores: some 50 us.
const YIELDS: u32 = 60;

/// Sleeps of a PE that other nodes cannot wake: the first, which grows, a usual one, and one after
/// half a second of idling.
const SHORT_BACK_OFF: Duration = Duration::from_micros(20);
const BACK_OFF: Duration = Duration::from_millis(1);
const LONG_BACK_OFF: Duration = Duration::from_millis(5);
const MANY_BACK_OFFS: u32 = 500;
/// Looks between two such sleeps.
const SPINS_BETWEEN_BACK_OFFS: u32 = 20;
const YIELDS_BETWEEN_BACK_OFFS: u32 = 2;
/// How long a PE sleeps whose ranks wait for locks, or have threads: nothing rings when the last thread ends that
/// could have woken them, or done anything else.
const LOOK_FOR_THREADS: Duration = Duration::from_secs(1);
/// How long a PE sleeps that might not be heard ringing.
const LOOK_UNHEARD: Duration = Duration::from_millis(1);
/// Looks before the first sleep, and between two others, while something long is on its way, which
/// may get on only while somebody looks: some milliseconds, and 20 us.
const SPINS_IN_TRANSFER: u32 = 50_000;
const SPINS_BETWEEN_BACK_OFFS_IN_TRANSFER: u32 = 200;

/// Waits until there may be something to do. Returns at once if there is.
pub fn idle(tokio: &Runtime) {
    if rank::foreign_wakers() > 0 || has_tasks(tokio) {
        turns::turn(tokio);
        if thread::with_in_loop(Pe::progress) {
            return;
        }
    }
    let found = thread::with_in_loop(|pe| pe.look_around());
    if found {
        return;
    }
    let tasks = has_tasks(tokio);
    let outside = rank::foreign_wakers() > 0 || tasks;
    let how = if outside { Sleep::Event } else { Sleep::Futex };
    let timeout = match thread::with_in_loop(|pe| pe.fall_asleep(how, tasks)) {
        Asleep::No => return,
        Asleep::Until(timeout) => timeout,
    };
    thread::with_in_loop(|pe| pe.engine.idles.store(true, Ordering::Relaxed));
    if outside {
        let event = thread::with_in_loop(|pe| pe.engine.net.event());
        sleep_in_tokio(tokio, event, timeout);
    } else {
        thread::with_in_loop(|pe| pe.doorbell().wait(timeout));
    }
    thread::with_in_loop(|pe| {
        let slept = pe.wake_up();
        if timeout.is_none() && !outside {
            pe.engine.patience.slept(slept);
        }
    });
}

/// Whether tasks were given to tokio that have not ended. They run though nobody waits for them.
fn has_tasks(tokio: &Runtime) -> bool {
    tokio.metrics().num_alive_tasks() > 0
}

/// What [`Pe::fall_asleep`] found.
enum Asleep {
    /// Something has arrived: do not sleep.
    No,
    /// Sleep until the doorbell rings or this time has passed.
    Until(Option<Duration>),
}

impl Pe {
    /// Looks for work for a while.
    fn look_around(&mut self) -> bool {
        self.engine.idles.store(true, Ordering::Relaxed);
        let found = if self.engine.options.oversubscribed {
            let yields = if self.engine.back_offs == 0 { YIELDS } else { YIELDS_BETWEEN_BACK_OFFS };
            (0..yields).any(|_| {
                // SAFETY: a plain system call.
                unsafe { libc::sched_yield() };
                self.progress() || self.engine.shared.job().ended() != Ended::Not
            })
        } else if self.engine.net.remote().is_none() {
            !self.consumers.is_empty() && self.look_patiently()
        } else {
            let transfer = self.engine.net.remote().is_some_and(|remote| remote.is_busy());
            let spins = match (self.engine.back_offs, transfer) {
                (0, false) => SPINS,
                (0, true) => SPINS_IN_TRANSFER,
                (_, false) => SPINS_BETWEEN_BACK_OFFS,
                (_, true) => SPINS_BETWEEN_BACK_OFFS_IN_TRANSFER,
            };
            (0..spins).any(|_| self.look())
        };
        self.book_idle();
        if found {
            self.engine.back_offs = 0;
        }
        found
    }

    fn look(&mut self) -> bool {
        std::hint::spin_loop();
        (self.has_arrivals() || self.engine.net.has_backlog()) && self.progress()
    }

    fn look_patiently(&mut self) -> bool {
        let began = cycles::now();
        let mut last = began;
        loop {
            if (0..LOOKS).any(|_| self.look()) {
                return true;
            }
            let now = cycles::now();
            let patience = &mut self.engine.patience;
            if patience.ends_at_gap(cycles_between(last, now))
                || cycles_between(began, now) > patience.cycles()
            {
                return false;
            }
            last = now;
        }
    }

    /// Whether the running rank need not suspend to wait for idleness, as that is there now.
    pub(crate) fn is_idle_beside(&mut self) -> bool {
        !self.engine.timers.await_idleness()
            && self.would_yield_to_nobody()
            && !self.engine.running().notified
    }

    /// Looks for a while whether the running rank's request gets done, when there is nothing else
    /// to do: an answer from another PE comes sooner than two switches take.
    #[inline(always)]
    pub(crate) fn look_for(&mut self, request: u32, outcome: &Cell<Option<Completion>>) -> bool {
        self.may_look()
            && self.look_long(|engine| {
                outcome.set(engine.running().take_if_done(request));
                outcome.get().is_some()
            })
    }

    /// The same for whatever the running rank waits for. When it returns true the rank does not
    /// have to suspend.
    pub(crate) fn look_until_woken(&mut self) -> bool {
        // Notified already: it yields.
        if !self.may_look() || self.engine.running().notified {
            return false;
        }
        let found = self.look_long(|engine| engine.running().notified);
        if found {
            let state = self.engine.running();
            state.notified = false;
            state.awaiting = Awaiting::Nothing;
        }
        found
    }

    /// Takes what has come from other PEs, beside the running rank; whether there was anything. (The loop of the PE
    /// does so only once in some switches: a rank that looks for a message between two pieces of work would be told
    /// of it some pieces late, and what it has sent to other nodes would wait here as long.)
    #[inline(always)]
    pub(crate) fn take_arrivals(&mut self) -> bool {
        // A rank that offers itself cannot be moved before it suspends.
        (self.engine.net.has_remote() || self.has_arrivals())
            && self.engine.running().at_sync.is_none()
            && self.progress()
    }

    /// Whether the running rank would go on at once if it let the others run: none is ready, and nothing is to be
    /// done. To be asked after [`take_arrivals`](Self::take_arrivals). Not at every [`CALLS_BETWEEN_TURNS`]th call:
    /// timers, tokio and who wants to move the rank have their turns then.
    #[inline(always)]
    pub(crate) fn has_no_other_work(&mut self) -> bool {
        let engine = &mut self.engine;
        engine.calls_without_turn += 1;
        let goes_on = engine.calls_without_turn < CALLS_BETWEEN_TURNS
            && engine.ready.is_empty()
            && !engine.net.has_remote()
            && !engine.net.has_backlog()
            && !engine.has_kept()
            // A rank that offers itself cannot be moved before it suspends.
            && engine.running().at_sync.is_none();
        if !goes_on {
            engine.calls_without_turn = 0;
        }
        goes_on
    }

    /// Whether the running rank would go on at once if it let the others run. Where some are ready they run, whatever has
    /// come.
    #[inline(always)]
    pub(crate) fn would_yield_to_nobody(&mut self) -> bool {
        if !self.engine.ready.is_empty() {
            return false;
        }
        self.take_arrivals();
        self.has_no_other_work()
    }

    #[inline(always)]
    fn may_look(&mut self) -> bool {
        let alone = self.engine.ready.is_empty() && !self.engine.timers.await_idleness();
        let others = !self.consumers.is_empty() || self.engine.net.has_remote();
        // A rank that offers itself cannot be moved before it suspends.
        alone
            && others
            && !self.engine.options.oversubscribed
            && self.engine.running().at_sync.is_none()
    }

    #[inline(never)]
    fn look_long(&mut self, is_done: impl Fn(&mut Engine) -> bool) -> bool {
        self.engine.send_gathered();
        if let Some(remote) = self.engine.net.remote() {
            remote.flush();
        }
        self.engine.idles.store(true, Ordering::Relaxed);
        let mut found = false;
        let mut spins = 0;
        let mut unhurried = None;
        // What is to be done beside is done before something has come, if there is time: nobody waits for that.
        let mut rest_is_done = false;
        while spins < RANK_SPINS {
            spins += 1;
            let taken = self.rings_are_ready() && self.take_from_rings();
            found = taken && is_done(&mut self.engine);
            if found && rest_is_done {
                break;
            }
            if taken || !rest_is_done || self.has_arrivals_beside_rings() {
                rest_is_done = true;
                if self.progress_beside_rings() || taken {
                    found = found || is_done(&mut self.engine);
                    if found || !self.engine.ready.is_empty() {
                        break;
                    }
                }
            }
            if spins > RANK_SPINS / 4 {
                std::hint::spin_loop();
            }
            if spins == TIMED_SPINS {
                unhurried = Some(cycles::now());
            }
        }
        // This time was the PE's, not the rank's. To ask for the time takes as long as a look, so
        // the first spins are taken to last as long as others did.
        let mut waited = self.engine.look_time.of(spins.min(TIMED_SPINS));
        if let Some(began) = unhurried {
            let rest = cycles::now().wrapping_sub(began);
            if spins > 2 * TIMED_SPINS {
                self.engine.look_time.have_taken(spins - TIMED_SPINS, rest);
            }
            waited += rest;
        }
        self.engine.idles.store(false, Ordering::Relaxed);
        self.engine.idle += waited;
        self.engine.stamp = self.engine.stamp.wrapping_add(waited);
        if self.engine.has_observer() {
            self.engine.observe_look(waited);
        }
        found
    }

    fn doorbell(&self) -> &'static vrt_shm::Doorbell {
        &self.engine.block().doorbell
    }

    /// Announces the sleep, then looks once more. `tasks`: tokio has some, which may do anything.
    fn fall_asleep(&mut self, how: Sleep, tasks: bool) -> Asleep {
        self.release_rings();
        self.engine.locks.before_sleep(self.engine.at_locks.parked);
        let is_heard = self.doorbell().announce(how);
        let over = self.engine.shared.job().ended() != Ended::Not
            || self.engine.shared.job().ranks_left.load(Ordering::Acquire) == 0;
        if over || self.has_arrivals() || self.progress() {
            self.doorbell().awake();
            return Asleep::No;
        }
        self.engine.trim_pool();
        let timeout = self.engine.run_timers();
        // What extensions have to do must be done first: a PE that says that it is idle says that it
        // will send nothing of its own accord.
        if !self.engine.ready.is_empty() || self.engine.is_due(cycles::now()) {
            self.doorbell().awake();
            return Asleep::No;
        }
        if self.engine.net.has_backlog() {
            // Room in a ring rings no bell: look again soon.
            return Asleep::Until(Some(Duration::from_micros(100)));
        }
        let waits = self.engine.become_idle(timeout.is_some() || tasks);
        self.look_for_end(waits);
        let threads = self.engine.has_blocked_ranks() || image_thread::are_there();
        let threads = threads.then_some(LOOK_FOR_THREADS);
        let unheard = (!is_heard).then_some(LOOK_UNHEARD);
        let timeout =
            [timeout, self.engine.until_due(), threads, unheard].into_iter().flatten().min();
        if self.engine.shared.job().ended() != Ended::Not {
            self.wake_up();
            return Asleep::No;
        }
        if self.engine.net.remote().is_some() {
            // Nothing rings when something comes from another node: look again, ever more rarely.
            let back_off = self.engine.next_back_off();
            return Asleep::Until(Some(timeout.map_or(back_off, |timeout| timeout.min(back_off))));
        }
        Asleep::Until(timeout)
    }

    /// Books a sleep, and gives its cycles.
    fn wake_up(&mut self) -> u64 {
        self.doorbell().awake();
        let block = self.engine.block();
        block.idle.store(Idleness::Busy as u32, Ordering::SeqCst);
        self.book_idle()
    }

    fn book_idle(&mut self) -> u64 {
        let stamp = cycles::now();
        let cycles = cycles_between(self.engine.stamp, stamp);
        self.engine.idles.store(false, Ordering::Relaxed);
        self.engine.idle += cycles;
        self.engine.stamp = stamp;
        if self.engine.has_observer() {
            self.engine.observe_idle();
        }
        cycles
    }
}

impl Core {
    /// How long to sleep before looking again for something that rings no bell.
    fn next_back_off(&mut self) -> Duration {
        let back_offs = self.back_offs;
        self.back_offs = back_offs.saturating_add(1);
        if self.net.remote().is_some_and(|remote| remote.is_busy()) {
            return SHORT_BACK_OFF;
        }
        match back_offs {
            0..6 => SHORT_BACK_OFF * (1 << back_offs),
            6..MANY_BACK_OFFS => BACK_OFF,
            _ => LONG_BACK_OFF,
        }
    }

    /// Publishes that this PE is idle, and ends the job when all are and nothing is on its way.
    /// Returns whether its ranks wait for messages only. `awaits`: a timer or task may wake them.
    fn become_idle(&mut self, awaits: bool) -> bool {
        self.net.publish_sent();
        let block = self.block();
        block.epoch.fetch_add(1, Ordering::SeqCst);
        // From now on a rank elsewhere that begins to wait for a lock says so; those that did before
        // are seen.
        block.idle.store(Idleness::Looking as u32, Ordering::SeqCst);
        let acts = self.threads_act();
        let mut ranks = self.ranks.iter().flatten();
        let outside = awaits
            || acts
            || ranks.any(|rank| rank.status != Status::Ended && rank.waits_for_outside())
            || self.may_be_unlocked();
        let how = if outside { Idleness::Outside } else { Idleness::Messages };
        block.idle.store(how as u32, Ordering::SeqCst);
        if !outside && !self.shared.is_spread() && self.nothing_can_happen() {
            self.shared.job().end(Ended::Deadlock, vrt_slot::report::STATUS_RUNTIME);
            self.wake_all();
        }
        !outside
    }

    /// Whether threads that ranks have started do something, which may end the job: they have no part in MPI. Looked at
    /// once in a while; in between it is taken to be so.
    fn threads_act(&mut self) -> bool {
        if !image_thread::are_there() {
            return false;
        }
        let now = timers::monotonic();
        if now < self.next_look_at_threads {
            return true;
        }
        self.next_look_at_threads = now + LOOK_FOR_THREADS.as_nanos() as u64;
        image_thread::act()
    }

    /// Whether a thread may wake a rank that waits for a lock, here or in another PE of the node.
    fn may_be_unlocked(&self) -> bool {
        self.has_blocked_ranks()
            // What a thread did before it ended has come by the time that it is not seen any more.
            && (foreign::has_foreign_threads() || !self.injected.is_empty())
    }

    fn has_blocked_ranks(&self) -> bool {
        self.at_locks.blocked > 0 || self.injected.others_wait()
    }

    fn nothing_can_happen(&self) -> bool {
        let pes = self.shared.pes();
        let is_signalled = |pe: usize| self.shared.pe(pe).signals.load(Ordering::SeqCst) != 0;
        let epochs = || -> Vec<u64> {
            (0..pes).map(|pe| self.shared.pe(pe).epoch.load(Ordering::SeqCst)).collect()
        };
        let all_wait = || {
            let waits = Idleness::Messages as u32;
            (0..pes).all(|pe| self.shared.pe(pe).idle.load(Ordering::SeqCst) == waits)
        };
        // Mostly somebody does not wait, which is soon seen.
        if !all_wait() {
            return false;
        }
        let before = epochs();
        all_wait()
            && self.shared.rings_are_empty()
            && !(0..pes).any(is_signalled)
            && all_wait()
            && epochs() == before
            && self.shared.job().ranks_left.load(Ordering::Acquire) > 0
    }
}

/// Sleeps in tokio's driver until the doorbell's event, a tokio event or the time-out.
fn sleep_in_tokio(tokio: &Runtime, event: i32, timeout: Option<Duration>) {
    use std::os::fd::BorrowedFd;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    let sleep = async {
        // SAFETY: the PE's eventfd stays open while the PE lives.
        let fd = unsafe { BorrowedFd::borrow_raw(event) };
        // SAFETY: as above: the descriptor does not change while it is registered.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
        let Ok(fd) = fd else { return };
        let rung = async {
            if let Ok(mut ready) = fd.readable().await {
                let mut counts = [0u64; 64];
                // SAFETY: writable bytes; the descriptor is non-blocking.
                unsafe { libc::read(event, counts.as_mut_ptr().cast(), size_of_val(&counts)) };
                ready.clear_ready();
            }
        };
        // A rank woken by tokio's driver is seen by `any_woken`, which this future polls after
        // each turn of the driver.
        let woken = std::future::poll_fn(|context| {
            if thread::with_in_loop(|pe| !pe.engine.ready.is_empty() || pe.has_arrivals()) {
                return std::task::Poll::Ready(());
            }
            WAITING.with(|waiting| *waiting.borrow_mut() = Some(context.waker().clone()));
            std::task::Poll::Pending
        });
        let timer = tokio::time::sleep(timeout.unwrap_or(Duration::from_secs(3600)));
        tokio::pin!(rung, woken, timer);
        std::future::poll_fn(|context| {
            use std::future::Future;
            let any = rung.as_mut().poll(context).is_ready()
                || woken.as_mut().poll(context).is_ready()
                || timer.as_mut().poll(context).is_ready();
            if any { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    };
    thread::outside(|| tokio.block_on(sleep));
    WAITING.with(|waiting| waiting.borrow_mut().take());
}

thread_local! {
    /// The sleeping PE's waker, for ranks that become ready inside tokio's driver.
    static WAITING: std::cell::RefCell<Option<std::task::Waker>> =
        const { std::cell::RefCell::new(None) };
}

/// Interrupts [`sleep_in_tokio`] on this thread.
pub(crate) fn interrupt_sleep() {
    if let Some(waker) = WAITING.with(|waiting| waiting.borrow_mut().take()) {
        waker.wake();
    }
}
