//! The control memory of a node: mapped shared before the PEs are forked, at one address in all.
//!
//! | part | written by | read by |
//! |---|---|---|
//! | job state (ranks left, how it ended) | any PE, atomically | PEs, supervisor |
//! | a block per PE (doorbell, idleness) | the PE; its doorbell by anybody | all |
//! | location of each rank | the PE that has the rank | all |
//! | rings, one per ordered pair of PEs | producer and consumer | the deadlock detector |

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use vrt_shm::{Doorbell, Ring};

/// Cells of a ring between two PEs.
pub(crate) const RING_CELLS: usize = 256;
/// Bytes of payload space beside them.
pub(crate) const RING_BYTES: usize = 128 << 10;
/// A ring between two PEs.
pub(crate) type PeRing = Ring<RING_CELLS, RING_BYTES>;

/// The location of a rank that has ended.
pub(crate) const ENDED: u32 = u32::MAX;

/// How a job ended, in [`JobState::ended`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Ended {
    /// It has not.
    Not = 0,
    /// A rank or the runtime ended it with a status; what there was to say has been said.
    Status = 1,
    /// All ranks wait for each other.
    Deadlock = 2,
}

/// State of the whole job.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct JobState {
    /// Ranks that have not ended.
    pub(crate) ranks_left: AtomicU32,
    ended: AtomicU32,
    status: AtomicU32,
    /// Slots that were not reused because something was left in them.
    pub(crate) retired: AtomicU32,
    pub(crate) retired_blocks: AtomicU64,
    /// Pairs of contexts given to communicators so far.
    contexts: AtomicU32,
}

impl JobState {
    /// Ends the job; the first one to do so decides how. Returns whether this call was.
    pub(crate) fn end(&self, how: Ended, status: i32) -> bool {
        let first = self
            .ended
            .compare_exchange(0, how as u32 | 0x100, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        if first {
            self.status.store(status as u32, Ordering::Relaxed);
            self.ended.store(how as u32, Ordering::Release);
        }
        first
    }

    /// The first of `n` pairs of contexts that no communicator of the job has had.
    pub(crate) fn new_contexts(&self, n: u32) -> u32 {
        self.contexts.fetch_add(n, Ordering::Relaxed)
    }

    pub(crate) fn ended(&self) -> Ended {
        match self.ended.load(Ordering::Acquire) & 0xff {
            0 => Ended::Not,
            1 => Ended::Status,
            _ => Ended::Deadlock,
        }
    }

    pub(crate) fn status(&self) -> i32 {
        self.status.load(Ordering::Relaxed) as i32
    }
}

/// What a PE lets others know.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct PeBlock {
    pub(crate) doorbell: Doorbell,
    /// An [`Idleness`].
    pub(crate) idle: AtomicU32,
    /// Times it has become idle.
    pub(crate) epoch: AtomicU64,
}

/// Whether a PE has anything to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Idleness {
    Busy = 0,
    /// Every rank waits for a message (or has ended).
    Messages = 1,
    /// Some rank waits for something from outside: a timer, a socket, a thread.
    Outside = 2,
}

/// The mapped control memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared {
    base: *mut u8,
    pes: usize,
    ranks: usize,
}

impl Shared {
    /// Maps zeroed control memory for a job.
    pub(crate) fn map(pes: usize, ranks: usize) -> std::io::Result<Shared> {
        let mut shared = Shared { base: std::ptr::null_mut(), pes, ranks };
        let size = shared.ring_offset(pes, 0);
        // SAFETY: a fresh anonymous mapping.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        shared.base = base.cast();
        shared.job().ranks_left.store(ranks as u32, Ordering::Relaxed);
        Ok(shared)
    }

    /// Unmaps it.
    ///
    /// # Safety
    /// Nothing in it is used any more.
    pub(crate) unsafe fn unmap(self) {
        // SAFETY: the mapping made by `map`.
        unsafe { libc::munmap(self.base.cast(), self.ring_offset(self.pes, 0)) };
    }

    pub(crate) fn pes(&self) -> usize {
        self.pes
    }

    pub(crate) fn ranks(&self) -> usize {
        self.ranks
    }

    pub(crate) fn job(&self) -> &'static JobState {
        self.at(0)
    }

    pub(crate) fn pe(&self, pe: usize) -> &'static PeBlock {
        debug_assert!(pe < self.pes);
        self.at(size_of::<JobState>() + pe * size_of::<PeBlock>())
    }

    /// The PE on which a rank began. Its contributions to collective operations always go there.
    pub(crate) fn home(&self, rank: u32) -> u32 {
        (u64::from(rank) * self.pes as u64 / self.ranks as u64) as u32
    }

    /// The PE that has a rank, or is about to get it; [`ENDED`] when it has ended.
    #[inline(always)]
    pub(crate) fn location(&self, rank: u32) -> &'static AtomicU32 {
        debug_assert!((rank as usize) < self.ranks);
        self.at(self.location_offset() + rank as usize * size_of::<AtomicU32>())
    }

    /// Cells that `from` has sent to `to`, as published when `from` became idle.
    pub(crate) fn sent(&self, from: usize, to: usize) -> &'static AtomicU64 {
        self.at(self.sent_offset() + (from * self.pes + to) * size_of::<AtomicU64>())
    }

    pub(crate) fn ring(&self, from: usize, to: usize) -> &'static PeRing {
        self.at(self.ring_offset(from, to))
    }

    fn location_offset(&self) -> usize {
        size_of::<JobState>() + self.pes * size_of::<PeBlock>()
    }

    fn sent_offset(&self) -> usize {
        (self.location_offset() + self.ranks * size_of::<AtomicU32>()).next_multiple_of(128)
    }

    fn ring_offset(&self, from: usize, to: usize) -> usize {
        let rings = self.sent_offset() + self.pes * self.pes * size_of::<AtomicU64>();
        rings.next_multiple_of(4096) + (from * self.pes + to) * size_of::<PeRing>()
    }

    #[inline(always)]
    fn at<T>(&self, offset: usize) -> &'static T {
        // SAFETY: the parts are laid out without overlap by the offsets above, aligned, valid
        // when zeroed, only reached through shared references, and mapped until `unmap`.
        unsafe { &*self.base.add(offset).cast::<T>() }
    }
}
