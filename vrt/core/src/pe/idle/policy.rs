//! How long to poll and to sleep: constants, each with its reason, and what follows from them.

use std::time::Duration;

use crate::pe::core::Core;
use vrt_slot::image_thread;

/// Looks for what comes from this node before somebody looks at the time, which takes as long as some ten of them.
pub(super) const LOOKS: u32 = 64;
/// Looks before sleeping where something may come from other nodes: some 50 us, as an answer from there takes.
const SPINS: u32 = 2_000;
/// Looks of a rank with nothing beside it before it suspends: a few microseconds, in which another PE of the node
/// answers; then a switch costs less than what is waited for.
pub(super) const RANK_SPINS: u32 = 400;
/// From this look on the time is measured: the first ones last less than asking for it.
pub(super) const TIMED_SPINS: u32 = 32;
/// Of so many calls of a rank that looks for something again and again, one suspends it though nothing else is to be
/// done: a switch costs as much as some of them.
pub(super) const CALLS_BETWEEN_TURNS: u32 = 16;
/// Looks between giving the core away, with too few cores: some 50 us, about what a sleep costs.
const YIELDS: u32 = 60;

/// Sleeps of a PE that other nodes cannot wake: the first, which grows, a usual one, and one after
/// half a second of idling.
const SHORT_BACK_OFF: Duration = Duration::from_micros(20);
const BACK_OFF: Duration = Duration::from_millis(1);
const LONG_BACK_OFF: Duration = Duration::from_millis(5);
const MANY_BACK_OFFS: u32 = 500;
/// Looks between two such sleeps: few, as the ones before the first found nothing.
const SPINS_BETWEEN_BACK_OFFS: u32 = 20;
const YIELDS_BETWEEN_BACK_OFFS: u32 = 2;
/// How long a PE sleeps while something may end or be dropped without ringing: its ranks wait for locks, have threads,
/// or wait for something outside, whose last holder may give it up.
pub(super) const LOOK_FOR_THREADS: Duration = Duration::from_secs(1);
/// How long a PE sleeps that might not be heard ringing.
const LOOK_UNHEARD: Duration = Duration::from_millis(1);
/// How long a PE sleeps that waits for room in a ring, which rings no bell.
pub(super) const LOOK_FOR_ROOM: Duration = Duration::from_micros(100);
/// Looks before the first sleep, and between two others, while something long is on its way, which
/// may get on only while somebody looks: some milliseconds, and 20 us.
const SPINS_IN_TRANSFER: u32 = 50_000;
const SPINS_BETWEEN_BACK_OFFS_IN_TRANSFER: u32 = 200;

impl Core {
    /// How often to give the core away before sleeping, where cores are too few.
    pub(super) fn yields_before_sleep(&self) -> u32 {
        if self.back_offs == 0 { YIELDS } else { YIELDS_BETWEEN_BACK_OFFS }
    }

    /// How often to look before sleeping, where something may come from other nodes.
    pub(super) fn looks_before_sleep(&mut self) -> u32 {
        match (self.back_offs, self.has_transfer()) {
            (0, false) => SPINS,
            (0, true) => SPINS_IN_TRANSFER,
            (_, false) => SPINS_BETWEEN_BACK_OFFS,
            (_, true) => SPINS_BETWEEN_BACK_OFFS_IN_TRANSFER,
        }
    }

    /// How long to sleep at most; `timer`: until the first deadline of a rank, `is_heard`: whoever sends rings.
    pub(super) fn longest_sleep(
        &mut self,
        timer: Option<Duration>,
        is_heard: bool,
    ) -> Option<Duration> {
        let silent =
            self.has_blocked_ranks() || self.waits_for_outside() || image_thread::are_there();
        let silent = silent.then_some(LOOK_FOR_THREADS);
        let unheard = (!is_heard).then_some(LOOK_UNHEARD);
        // Nothing rings when something comes from another node: look again, ever more rarely.
        let unseen = self.net.has_remote().then(|| self.next_back_off());
        [timer, self.until_due(), silent, unheard, unseen].into_iter().flatten().min()
    }

    /// How long to sleep before looking again for something that rings no bell.
    fn next_back_off(&mut self) -> Duration {
        let back_offs = self.back_offs;
        self.back_offs = back_offs.saturating_add(1);
        if self.has_transfer() {
            return SHORT_BACK_OFF;
        }
        match back_offs {
            0..6 => SHORT_BACK_OFF * (1 << back_offs),
            6..MANY_BACK_OFFS => BACK_OFF,
            _ => LONG_BACK_OFF,
        }
    }

    /// Something long is on its way from or to another node.
    fn has_transfer(&mut self) -> bool {
        self.net.remote().is_some_and(|remote| remote.is_busy())
    }
}
