//! The slots of local runs, which are created and released within one process.
//!
//! ```text
//!            take              finish, and nothing left in it
//! free -----------> in use ------------------------------------> free
//!   ^                 |
//!   |                 |  something left in it; or the run ended by a panic
//!   |                 v
//!   `---------- abandoned      (`reclaim`: nothing in the process refers to it any more)
//! ```
//!
//! The contents of an abandoned slot may still be used: a static or a result of the run may own some of them. So the
//! slot is reused only when no word of the process's memory is an address in its stack or heap. This is checked when
//! there are many such slots, or no others, and while no local run is active.
//!
//! The arena of local runs is replaced by a larger one, or by a job's, only while no slot is in use or abandoned.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::reclaim;
use vrt_slot::{Arena, ArenaError, SlotId, SlotSizes, hooks};

/// The least number of slots of an arena for local runs.
const SLOTS: usize = 4096;
/// The number of abandoned slots from which on it is worth searching for references to them.
const MANY: usize = 512;

#[derive(Debug)]
struct Slots {
    /// Slots from this one on have never been used.
    next: u32,
    free: Vec<SlotId>,
    abandoned: Vec<SlotId>,
    /// The number of abandoned slots at which to search again.
    look_at: usize,
}

static SLOTS_OF_PROCESS: Mutex<Slots> = Mutex::new(Slots::new());

fn lock() -> MutexGuard<'static, Slots> {
    SLOTS_OF_PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Slots {
    const fn new() -> Slots {
        Slots { next: 0, free: Vec::new(), abandoned: Vec::new(), look_at: MANY }
    }

    /// Slots of runs, and abandoned ones.
    fn in_use(&self) -> usize {
        self.next as usize - self.free.len()
    }

    fn take(&mut self, n: usize, sizes: &SlotSizes) -> Result<&'static Arena, ArenaError> {
        let room = |slots: &Slots| {
            Arena::current().filter(|arena| arena.serves(slots.in_use() + n, sizes))
        };
        if room(self).is_none() || self.abandoned.len() >= self.look_at {
            self.reclaim();
        }
        match room(self) {
            Some(arena) => Ok(arena),
            None => self.replace(n, n.max(SLOTS), sizes),
        }
    }

    /// Reserves a new arena.
    fn replace(
        &mut self,
        asked: usize,
        slots: usize,
        sizes: &SlotSizes,
    ) -> Result<&'static Arena, ArenaError> {
        let in_use = self.in_use();
        if in_use > 0 {
            let slots = Arena::current().map_or(0, |arena| arena.layout.slots);
            return Err(ArenaError::InUse { asked, slots, in_use });
        }
        *self = Slots::new();
        // SAFETY: nothing is in a slot, and whoever takes one has the lock.
        unsafe {
            Arena::release();
            Arena::reserve(slots, sizes)
        }
    }

    /// Frees abandoned slots that nothing refers to any more.
    fn reclaim(&mut self) {
        let Some(arena) = Arena::current() else { return };
        if self.abandoned.is_empty() || self.in_use() > self.abandoned.len() {
            return;
        }
        let kept = reclaim::referred_to(arena, &self.abandoned);
        for slot in std::mem::take(&mut self.abandoned) {
            if kept.contains(&slot) {
                self.abandoned.push(slot);
                continue;
            }
            // SAFETY: the run of its rank is over, and nothing refers to it.
            unsafe {
                hooks::own(arena.header(slot), 0);
                arena.discard(slot);
            }
            self.free.push(slot);
        }
        self.look_at = self.abandoned.len() + MANY;
    }
}

/// The slots of one run.
#[derive(Debug)]
pub(super) struct LocalSlots {
    arena: &'static Arena,
    ids: Vec<SlotId>,
    finished: bool,
}

impl LocalSlots {
    /// Takes `n` slots.
    ///
    /// # Errors
    /// No arena has room for them beside the slots in use.
    pub(super) fn take(n: usize, sizes: &SlotSizes) -> Result<LocalSlots, ArenaError> {
        let mut slots = lock();
        let arena = slots.take(n, sizes)?;
        let mut ids = Vec::with_capacity(n);
        while ids.len() < n {
            let new = SlotId(slots.next);
            ids.push(slots.free.pop().unwrap_or(new));
            slots.next += u32::from(ids.last() == Some(&new));
        }
        Ok(LocalSlots { arena, ids, finished: false })
    }

    pub(super) fn arena(&self) -> &'static Arena {
        self.arena
    }

    pub(super) fn ids(&self) -> &[SlotId] {
        &self.ids
    }

    /// Every rank has ended.
    pub(super) fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for LocalSlots {
    fn drop(&mut self) {
        let mut slots = lock();
        for slot in std::mem::take(&mut self.ids) {
            if self.finished && vrt_core::pe::slot_is_clean(slot) {
                slots.free.push(slot);
            } else {
                slots.abandoned.push(slot);
            }
        }
    }
}

/// Reserves an arena for a job that this process will supervise.
///
/// # Errors
/// Local runs of this process have left something in the arena; or the system has no room.
pub(super) fn arena_for_job(slots: usize, sizes: &SlotSizes) -> Result<&'static Arena, ArenaError> {
    let mut local = lock();
    local.reclaim();
    local.replace(slots, slots, sizes)
}
