//! What a rank holds outside its slot, in the slot's header: the number of things of each kind, and which locks. These
//! are only the numbers; `external` raises and lowers them.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Kinds of things that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Descriptor,
    Thread,
    Unjoined,
    Mapping,
    Protection,
    Child,
    Stream,
    Lock,
    Library,
    Timer,
    Semaphore,
    Conversion,
    Locale,
    Catalogue,
    Directories,
    Addresses,
    List,
    Io,
}

impl Kind {
    pub(crate) const ALL: [Kind; 18] = [
        Kind::Descriptor,
        Kind::Thread,
        Kind::Unjoined,
        Kind::Mapping,
        Kind::Protection,
        Kind::Child,
        Kind::Stream,
        Kind::Lock,
        Kind::Library,
        Kind::Timer,
        Kind::Semaphore,
        Kind::Conversion,
        Kind::Locale,
        Kind::Catalogue,
        Kind::Directories,
        Kind::Addresses,
        Kind::List,
        Kind::Io,
    ];

    /// Why a rank that holds one is pinned.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Kind::Descriptor => "it has a file, socket or other descriptor open",
            Kind::Thread => "a thread that it started is running",
            Kind::Unjoined => "it has not joined a thread that it started",
            Kind::Mapping => "it has mapped memory of its own (mmap)",
            Kind::Protection => "it has changed who may use pages of its memory (mprotect)",
            Kind::Child => "it has started a program and not waited for its end",
            Kind::Stream => "it has a stream of C open (FILE)",
            Kind::Lock => "it holds a lock (pthread)",
            Kind::Library => "it has loaded a library (dlopen)",
            Kind::Timer => "it has a timer of the system (timer_create)",
            Kind::Semaphore => "it has a named semaphore open (sem_open)",
            Kind::Conversion => "it has a conversion of characters open (iconv_open)",
            Kind::Locale => "it has a locale of its own (newlocale)",
            Kind::Catalogue => "it has a catalogue of messages open (catopen)",
            Kind::Directories => "it walks through directories (fts_open)",
            Kind::Addresses => "it holds what getaddrinfo returned",
            Kind::List => "it reads the list of users or groups (getpwent, getgrent)",
            Kind::Io => "it has a context of asynchronous input and output (io_setup)",
        }
    }
}

/// Locks that a rank may hold before further ones go to the register of `external`.
const FEW: usize = 6;

/// What a rank holds outside its slot. Lies in the slot's header; zero means nothing.
#[derive(Debug, Default)]
pub struct Held {
    counts: [AtomicU32; Kind::ALL.len()],
    /// Number of descriptors that can move along to another PE of the node.
    carried: AtomicU32,
    pub(crate) locks: Locks,
}

impl Held {
    /// Whether threads run that the rank has started.
    pub fn has_threads(&self) -> bool {
        self.has(Kind::Thread)
    }

    /// Whether some of its threads are neither joined nor detached.
    pub fn has_threads_to_join(&self) -> bool {
        self.has(Kind::Unjoined)
    }

    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.counts[kind as usize].load(Ordering::Acquire) > 0
    }

    /// The first kind with a count above zero.
    pub(crate) fn first_kind(&self) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| self.has(*kind))
    }

    /// The same, ignoring kinds that move along inside a node if all descriptors do.
    pub(crate) fn first_kind_that_stays(&self) -> Option<Kind> {
        let stays = |kind: &Kind| !matches!(kind, Kind::Descriptor | Kind::Stream);
        Kind::ALL.into_iter().filter(stays).find(|kind| self.has(*kind))
    }

    pub(crate) fn more(&self, kind: Kind) {
        self.counts[kind as usize].fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn less(&self, kind: Kind) {
        let one_less = |n: u32| n.checked_sub(1);
        let count = &self.counts[kind as usize];
        let _ = count.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less);
    }

    /// The number of things of a kind.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.counts[kind as usize].load(Ordering::Acquire) as usize
    }

    /// Whether all its descriptors can move along inside the node.
    pub(crate) fn has_only_carried(&self) -> bool {
        self.count(Kind::Descriptor) == self.carried.load(Ordering::Acquire) as usize
    }

    /// One more of its descriptors, or one less, can move along.
    pub(crate) fn count_carried(&self, more: bool) {
        match more {
            true => self.carried.fetch_add(1, Ordering::AcqRel),
            false => self.carried.fetch_sub(1, Ordering::AcqRel),
        };
    }

    /// Sets all counts to zero.
    pub(crate) fn forget_counts(&self) {
        self.carried.store(0, Ordering::Release);
        self.counts.iter().for_each(|count| count.store(0, Ordering::Release));
    }
}

/// Addresses of locks that a slot's rank holds, or 0, and the process in which they are valid. Only
/// the rank's thread adds to them.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    pub(crate) addresses: [AtomicUsize; FEW],
    process: AtomicU32,
}

impl Locks {
    pub(crate) fn any(&self) -> bool {
        self.addresses.iter().any(|lock| lock.load(Ordering::Acquire) != 0)
    }

    pub(crate) fn forget_all(&self) {
        self.addresses.iter().for_each(|lock| lock.store(0, Ordering::Relaxed));
    }

    /// Whether the addresses belong to this process.
    pub(crate) fn are_of(&self, process: u32) -> bool {
        self.process.load(Ordering::Relaxed) == process
    }

    /// A free place for an address, if there is one.
    #[inline(always)]
    pub(crate) fn free_place(&self) -> Option<&AtomicUsize> {
        self.addresses.iter().find(|lock| lock.load(Ordering::Relaxed) == 0)
    }

    /// Writes an address of this process to a free place.
    #[inline(always)]
    pub(crate) fn put(&self, place: &AtomicUsize, address: usize, process: u32) {
        self.process.store(process, Ordering::Relaxed);
        place.store(address, Ordering::Release);
    }

    /// Removes an address from the list.
    #[inline(always)]
    pub(crate) fn remove(&self, address: usize) -> bool {
        let is_it = |lock: &&AtomicUsize| lock.load(Ordering::Relaxed) == address;
        match self.addresses.iter().find(is_it) {
            // Nobody else takes it out: whoever unlocks is the only one who does.
            Some(lock) => {
                lock.store(0, Ordering::Release);
                true
            }
            None => false,
        }
    }
}
