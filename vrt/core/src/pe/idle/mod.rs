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
//! | file | subject |
//! |---|---|
//! | `policy`, `patience` | how long to poll and to sleep: constants with reasons, what has been learnt |
//! | `look` | polling, by the loop and by a rank that waits with nothing beside it |
//! | `sleep` | the protocol of falling asleep and waking up |
//! | `deadlock` | whether anything can still happen once all PEs are idle |

mod deadlock;
mod look;
mod patience;
mod policy;
mod sleep;

use std::sync::atomic::Ordering;

use tokio::runtime::Runtime;
use vrt_shm::Sleep;

use crate::pe::thread::{self, Pe};
use crate::pe::turns;
pub(super) use patience::{LookTime, Patience};
pub(crate) use sleep::interrupt_sleep;
use sleep::{Asleep, sleep_in_tokio};

/// Waits until there may be something to do. Returns at once if there is.
pub(super) fn idle(tokio: &Runtime) {
    let waits_for_outside = || thread::with_in_loop(|pe| pe.engine.waits_for_outside());
    if waits_for_outside() || has_tasks(tokio) {
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
    let outside = waits_for_outside() || tasks;
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
