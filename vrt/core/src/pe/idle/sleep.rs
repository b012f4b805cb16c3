//! Falling asleep and waking up: nothing that comes in between is missed. What others do about it is in
//! [`vrt_shm::Doorbell`].
//!
//! ```text
//! give room in the rings back
//! announce                            -- whoever sends from now on rings
//! the job is over, or something has come?      awake, go on
//! something is due, or ready?                  awake, go on
//! become idle                         -- may end the job: deadlock
//! sleep: futex, or tokio with the eventfd, as long as the policy says
//! awake, busy
//! ```

use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Runtime;
use vrt_shm::Sleep;

use crate::cycles::{self, cycles_between};
use crate::net::shared::{Ended, Idleness};
use crate::pe::idle::policy::LOOK_FOR_ROOM;
use crate::pe::thread::{self, Pe};

/// What [`Pe::fall_asleep`] found.
pub(super) enum Asleep {
    /// Something has arrived: do not sleep.
    No,
    /// Sleep until the doorbell rings or this time has passed.
    Until(Option<Duration>),
}

impl Pe {
    pub(super) fn doorbell(&self) -> &'static vrt_shm::Doorbell {
        &self.engine.block().doorbell
    }

    /// Announces the sleep, then looks once more. `tasks`: tokio has some, which may do anything.
    pub(super) fn fall_asleep(&mut self, how: Sleep, tasks: bool) -> Asleep {
        self.receivers.release();
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
            return Asleep::Until(Some(LOOK_FOR_ROOM));
        }
        let waits = self.engine.become_idle(timeout.is_some() || tasks);
        self.look_for_end(waits);
        if self.engine.shared.job().ended() != Ended::Not {
            self.wake_up();
            return Asleep::No;
        }
        Asleep::Until(self.engine.longest_sleep(timeout, is_heard))
    }

    /// Books a sleep, and gives its cycles.
    pub(super) fn wake_up(&mut self) -> u64 {
        self.doorbell().awake();
        let block = self.engine.block();
        block.idle.store(Idleness::Busy as u32, Ordering::SeqCst);
        self.book_idle()
    }

    pub(super) fn book_idle(&mut self) -> u64 {
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

/// Sleeps in tokio's driver until the doorbell's event, a tokio event or the time-out.
pub(super) fn sleep_in_tokio(tokio: &Runtime, event: i32, timeout: Option<Duration>) {
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
                return Poll::Ready(());
            }
            WAITING.with(|waiting| *waiting.borrow_mut() = Some(context.waker().clone()));
            Poll::Pending
        });
        let timer = tokio::time::sleep(timeout.unwrap_or(Duration::from_secs(3600)));
        tokio::pin!(rung, woken, timer);
        std::future::poll_fn(|context| {
            use std::future::Future;
            let any = rung.as_mut().poll(context).is_ready()
                || woken.as_mut().poll(context).is_ready()
                || timer.as_mut().poll(context).is_ready();
            if any { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    };
    thread::outside(|| tokio.block_on(sleep));
    WAITING.with(|waiting| waiting.borrow_mut().take());
}

thread_local! {
    /// The sleeping PE's waker, for ranks that become ready inside tokio's driver.
    static WAITING: RefCell<Option<Waker>> =
        const { RefCell::new(None) };
}

/// Interrupts [`sleep_in_tokio`] on this thread.
pub(crate) fn interrupt_sleep() {
    if let Some(waker) = WAITING.with(|waiting| waiting.borrow_mut().take()) {
        waker.wake();
    }
}
