//! The control memory of a job: mapped by all its PEs, or separately by those of each node if nodes
//! are different machines. In that case it is *spread*: the state of the job here is only what the
//! node knows of it, and `pe::termination` keeps the nodes in agreement.
//!
//! | part | written by | read by |
//! |---|---|---|
//! | job state (ranks left, how it ended) | any PE, atomically | PEs, supervisor |
//! | a block per PE (doorbell, idleness) | the PE; its doorbell by any process | all |
//! | home of each rank: the PE where it began | the process that maps it, before any PE runs | all |
//! | location of each rank: its PE, as its node knows it | the rank's PE; a PE that receives the news | its node |
//! | lease of each rank's memory in a node | PEs that read or write it; the PE that ships it | its node |
//! | rings between PEs | producer and consumer | the deadlock detector |
//! | what PEs and ranks do, on request ([`view`](super::view)) | the PE; the rank's PE | the process that asks |
//!
//! A *location* inside the node is exact; one in another node is the last news received, and anything sent there is
//! passed on: see [`Location`]. For the memory of ranks, see [`Lease`].

use std::num::NonZeroU32;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::net::link::Link;
use crate::net::view::{PeEntry, RankEntry};
use vrt_shm::{Begun, Claims, Doorbell, Ending, KeptOff, Lease, Leased, Location, Place};

/// Pairs of contexts that communicators can have.
const CONTEXT_PAIRS: usize = 1 << 30;

/// Bytes of a cache line.
const LINE: usize = 64;

/// How a job ended, in [`JobState::ended`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Ended {
    /// It has not.
    Not = 0,
    /// A rank or the runtime ended it with a status; everything has been reported.
    Status = 1,
    /// All ranks wait for each other.
    Deadlock = 2,
}

/// State of the whole job.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct JobState {
    /// Number of ranks that have not ended. If control memory is spread: exact in the node of PE 0; elsewhere the total
    /// number, until none is left.
    pub ranks_left: AtomicU32,
    ending: Ending,
    /// Slots that were not reused because something was left in them.
    pub(crate) retired: AtomicU32,
    pub(crate) retired_blocks: AtomicU64,
    /// Number of context sets given to communicators so far.
    contexts: AtomicU32,
    /// The process of the first PE that crashed, or 0.
    crashed: AtomicU32,
    /// The status of the first rank that has failed while the job continues, or 0.
    failed: AtomicU32,
    /// How often somebody has asked what PEs do.
    pub(crate) asked: AtomicU32,
    /// Rings that PEs have opened.
    rings: AtomicU32,
}

impl JobState {
    /// Ends the job; the first caller decides how. Returns whether this was the first call.
    pub fn end(&self, how: Ended, status: i32) -> bool {
        NonZeroU32::new(how as u32).is_some_and(|how| self.ending.end(how, status))
    }

    /// A PE is about to die of a signal; returns whether it is the first of the job.
    pub fn claim_crash(&self, process: u32) -> bool {
        let first = self.crashed.compare_exchange(0, process, Ordering::Relaxed, Ordering::Relaxed);
        first.map_or_else(|first| first == process, |_| true)
    }

    /// The process of the first PE that crashed, if one has.
    pub fn crashed(&self) -> Option<u32> {
        NonZeroU32::new(self.crashed.load(Ordering::Relaxed)).map(NonZeroU32::get)
    }

    /// A rank has ended with a status other than 0, and the others run to completion. Returns whether it is the first
    /// such rank, whose status becomes the job's.
    pub fn fail(&self, status: i32) -> bool {
        let first =
            self.failed.compare_exchange(0, status as u32, Ordering::Relaxed, Ordering::Relaxed);
        first.is_ok()
    }

    /// The status of a job whose ranks have all ended: that of the first one that has failed, or 0.
    pub fn final_status(&self) -> i32 {
        self.failed.load(Ordering::Relaxed) as i32
    }

    /// The first of `n` sets of contexts that no communicator of the job has had.
    pub fn new_contexts(&self, n: u32) -> u32 {
        self.contexts.fetch_add(n, Ordering::Relaxed)
    }

    /// Whether it has ended, and how.
    pub fn ended(&self) -> Ended {
        match self.ending.get().map(|(how, _)| how.get()) {
            None => Ended::Not,
            Some(how) if how == Ended::Deadlock as u32 => Ended::Deadlock,
            Some(_) => Ended::Status,
        }
    }

    /// The status that it has ended with; 0 while it has not.
    pub fn status(&self) -> i32 {
        self.ending.get().map_or(0, |(_, status)| status)
    }
}

/// The public state of a PE.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct PeBlock {
    /// The PE sleeps on it; a process with work for the PE rings it.
    pub doorbell: Doorbell,
    /// An [`Idleness`].
    pub idle: AtomicU32,
    /// How often it has become idle.
    pub epoch: AtomicU64,
    /// Packets that it had sent in rings, and taken from rings, when it last became idle.
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
    /// What others have done for its ranks before they rang its doorbell: see `pe::inject`.
    pub signals: AtomicU64,
    /// Number of its ranks that wait for words of the arena, by the words' buckets.
    pub waiting: [AtomicU32; WORD_BUCKETS],
    /// The same for all PEs of its node, over all buckets, if it is the node's first.
    waiting_in_node: AtomicU32,
    /// The last ring that was opened to it and that it has not seen: its number plus 1, or 0.
    new_rings: AtomicU32,
    /// A copy of the PE in which others can take part: see `pe::sharing`.
    pub(crate) copying: Claims,
}

/// In [`PeBlock::signals`]: a ring was opened to the PE. The bits below are those of `pe::inject`.
pub(crate) const NEW_RINGS: u64 = 1 << 63;

/// Buckets of words that ranks wait for.
pub(crate) const WORD_BUCKETS: usize = 60;

/// Whether a PE has anything to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Idleness {
    /// None of the other states: it runs ranks, or processes incoming packets.
    Busy = 0,
    /// Every rank waits for a message (or has ended).
    Messages = 1,
    /// Some rank waits for an external event: a timer, a socket, a thread.
    Outside = 2,
    /// It is about to enter one of these states.
    Looking = 3,
}

/// The mapped control memory, for a PE of one node.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    base: *mut u8,
    pes: usize,
    ranks: usize,
    /// Number of PEs per node.
    node_size: usize,
    /// The node of this view's owner.
    node: usize,
    /// Other nodes have their own control memory.
    spread: bool,
    /// Offsets of the tables that messages use: homes, this node's locations and leases.
    homes: usize,
    locations: usize,
    leases: usize,
}

// SAFETY: what lies there is made of atomics, and of rings, whose ends `open_ring` and `take_new_rings` give to one
// PE each; whoever unmaps it promises that nobody uses it.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// The ranks that begin on a PE: consecutive ones, distributed as evenly as possible.
pub fn first_ranks(pe: u32, pes: u32, ranks: u32) -> Range<u32> {
    let edge = |pe: u32| (u64::from(pe) * u64::from(ranks)).div_ceil(u64::from(pes)) as u32;
    edge(pe)..edge(pe + 1)
}

impl Shared {
    /// Maps control memory for all PEs of a job, which are forked afterwards.
    pub fn map(pes: usize, ranks: usize, node_size: usize) -> std::io::Result<Shared> {
        let shared = Shared::unmapped((pes, ranks, node_size), 0, false).mapped(None)?;
        shared.initialise(0..shared.nodes());
        Ok(shared)
    }

    /// Maps the control memory of a node, which lies in a file that its PEs have opened. The first of them initialises
    /// it.
    pub fn map_node(
        file: BorrowedFd<'_>,
        (pes, ranks, node_size): (usize, usize, usize),
        node: usize,
        first: bool,
    ) -> std::io::Result<Shared> {
        let spread = node_size < pes;
        let shared = Shared::unmapped((pes, ranks, node_size), node, spread).mapped(Some(file))?;
        if first {
            shared.initialise(node..node + 1);
        }
        Ok(shared)
    }

    fn unmapped(
        (pes, ranks, node_size): (usize, usize, usize),
        node: usize,
        spread: bool,
    ) -> Shared {
        let homes = size_of::<JobState>() + pes * size_of::<PeBlock>();
        let base = std::ptr::null_mut();
        Shared { base, pes, ranks, node_size, node: 0, spread, homes, locations: 0, leases: 0 }
            .in_node(node)
    }

    fn mapped(mut self, file: Option<BorrowedFd<'_>>) -> std::io::Result<Shared> {
        let size = self.size();
        let fd = file.map_or(-1, |file| file.as_raw_fd());
        let kind = if file.is_some() { 0 } else { libc::MAP_ANONYMOUS };
        // SAFETY: a fresh mapping; the file is only ever made longer.
        let base = unsafe {
            if let Some(file) = &file {
                vrt_slot::make_long(file, size)?;
            }
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE | kind,
                fd,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        self.base = base.cast();
        Ok(self)
    }

    /// Fills zeroed control memory with what is true when a job begins.
    fn initialise(&self, nodes: Range<usize>) {
        self.job().ranks_left.store(self.ranks as u32, Ordering::Relaxed);
        // Nodes that do not share the counter count in ranges of their own.
        let own = if self.spread { self.node * (CONTEXT_PAIRS / self.nodes()) } else { 0 };
        self.job().contexts.store(own as u32, Ordering::Relaxed);
        for home in 0..self.pes as u32 {
            for rank in first_ranks(home, self.pes as u32, self.ranks as u32) {
                self.home_entry(rank).store(home, Ordering::Relaxed);
            }
        }
        for node in nodes {
            let there = self.in_node(node);
            for rank in 0..self.ranks as u32 {
                let home = there.home(rank);
                there.location_entry(rank).set(Place::on(home), 0);
                if !there.is_near(home) {
                    there.lease(rank).begin_away();
                }
            }
        }
    }

    /// The number that follows the last one of the pairs of contexts that this node may give out.
    pub(crate) fn last_context(&self) -> u32 {
        let own = CONTEXT_PAIRS / self.nodes();
        let end = if self.spread { (self.node + 1) * own } else { CONTEXT_PAIRS };
        end as u32
    }

    /// Whether other nodes have control memory of their own.
    pub(crate) fn is_spread(&self) -> bool {
        self.spread
    }

    /// The same memory, for a PE of `node`.
    pub fn in_node(&self, node: usize) -> Shared {
        let locations = self.location_offset() + node * self.ranks * size_of::<Location>();
        let leases = self.lease_offset() + node * self.ranks * size_of::<Lease>();
        Shared { node, locations, leases, ..*self }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.pes.div_ceil(self.node_size)
    }

    /// The node of a PE.
    pub fn node_of(&self, pe: u32) -> usize {
        pe as usize / self.node_size
    }

    /// Whether a PE is of this node.
    #[inline(always)]
    pub(crate) fn is_near(&self, pe: u32) -> bool {
        self.node_size == self.pes || self.node_of(pe) == self.node
    }

    /// The PEs of this node.
    pub(crate) fn pes_of_node(&self) -> Range<usize> {
        let first = self.node * self.node_size;
        first..(first + self.node_size).min(self.pes)
    }

    /// Unmaps it.
    ///
    /// # Safety
    /// Nothing in it is used any more.
    pub unsafe fn unmap(self) {
        // SAFETY: the mapping made by `map`.
        unsafe { libc::munmap(self.base.cast(), self.size()) };
    }

    /// Number of PEs of the job.
    pub fn pes(&self) -> usize {
        self.pes
    }

    /// Number of ranks of the job, including ended ones.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The state of the job; if control memory is spread, what this node knows of it.
    pub fn job(&self) -> &'static JobState {
        self.at(0)
    }

    /// The public state of a PE; `None` if the PE does not exist.
    pub fn block_of(&self, pe: usize) -> Option<&'static PeBlock> {
        (pe < self.pes).then(|| self.pe(pe))
    }

    /// The PE where a rank began; `None` if the rank does not exist.
    pub fn home_of(&self, rank: u32) -> Option<u32> {
        ((rank as usize) < self.ranks).then(|| self.home(rank))
    }

    /// Where a rank is, as far as this node knows; `None` if the rank does not exist.
    pub fn location_of(&self, rank: u32) -> Option<Place> {
        ((rank as usize) < self.ranks).then(|| self.location(rank))
    }

    /// What a PE lets others know. `pe` is below [`pes`](Self::pes).
    pub(crate) fn pe(&self, pe: usize) -> &'static PeBlock {
        debug_assert!(pe < self.pes);
        self.at(size_of::<JobState>() + pe * size_of::<PeBlock>())
    }

    /// The PE on which a rank began. Its contributions to collective operations always go there.
    #[inline(always)]
    pub(crate) fn home(&self, rank: u32) -> u32 {
        self.home_entry(rank).load(Ordering::Relaxed)
    }

    /// The ranks whose home is a PE.
    pub fn begin_at(&self, pe: u32) -> impl Iterator<Item = u32> {
        (0..self.ranks as u32).filter(move |rank| self.home(*rank) == pe)
    }

    /// Where a rank is, or is about to be, as far as this node knows.
    #[inline(always)]
    pub(crate) fn location(&self, rank: u32) -> Place {
        self.location_entry(rank).get()
    }

    /// Whether a rank is on a PE of this node.
    pub(crate) fn has_near(&self, rank: u32) -> bool {
        self.location(rank).pe().is_some_and(|pe| self.is_near(pe))
    }

    /// What this node knows of where a rank is.
    #[inline(always)]
    pub(crate) fn location_entry(&self, rank: u32) -> &'static Location {
        debug_assert!((rank as usize) < self.ranks);
        self.at(self.locations + rank as usize * size_of::<Location>())
    }

    #[inline(always)]
    fn home_entry(&self, rank: u32) -> &'static AtomicU32 {
        debug_assert!((rank as usize) < self.ranks);
        self.at(self.homes + rank as usize * size_of::<AtomicU32>())
    }

    /// Whether the memory of a rank is in this node.
    ///
    /// # Panics
    /// There is no such rank.
    #[inline]
    pub(crate) fn lease(&self, rank: u32) -> &'static Lease {
        assert!((rank as usize) < self.ranks, "no rank {rank}");
        self.at(self.leases + rank as usize * size_of::<Lease>())
    }

    /// Keeps the memory of a rank in this node while another PE uses it; `None` if it is not here.
    #[inline]
    pub fn lease_of(&self, rank: u32) -> Option<Leased<'static>> {
        if self.node_size == self.pes {
            // One node: it cannot leave.
            return Some(Leased::always());
        }
        self.lease(rank).take()
    }

    /// The memory of a rank is about to come into the node. `false`: the job is over before it can.
    #[must_use]
    pub(crate) fn will_come(&self, rank: u32) -> bool {
        // Somebody may be giving back what was left of it here: that takes a moment, unless their PE has died
        // meanwhile, with which the job ends.
        while self.lease(rank).begin_coming() == Begun::InUse {
            if self.job().ended() != Ended::Not {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// Does something to what a rank has left here, unless it is here or under way. Who has counted itself in for a
    /// moment, to find that the rank is away, is waited for.
    pub(crate) fn while_away(&self, rank: u32, f: impl FnOnce()) {
        loop {
            match self.lease(rank).keep_off() {
                KeptOff::While(_kept) => return f(),
                KeptOff::NotAway => return,
                KeptOff::Busy if self.job().ended() != Ended::Not => return,
                KeptOff::Busy => std::thread::yield_now(),
            }
        }
    }

    /// How many ranks of this node wait for words of the arena.
    pub(crate) fn waiting_in_node(&self) -> &'static AtomicU32 {
        &self.pe(self.node * self.node_size).waiting_in_node
    }

    /// How many rings were opened.
    pub(super) fn rings_made(&self) -> &'static AtomicU32 {
        &self.job().rings
    }

    /// The list of rings that a PE has not seen yet.
    pub(super) fn new_rings(&self, pe: u32) -> &'static AtomicU32 {
        &self.pe(pe as usize).new_rings
    }

    /// The ring of a number below the limit, which is that of all pairs.
    pub(super) fn link(&self, number: u32) -> &'static Link {
        assert!((number as usize) < self.pairs(), "more rings than pairs of PEs");
        self.at(self.ring_offset(number as usize))
    }

    /// Ordered pairs of PEs that have rings between them.
    fn pairs(&self) -> usize {
        let pes = if self.spread { self.node_size.min(self.pes) } else { self.pes };
        pes * (pes - 1)
    }

    /// What a PE says of itself when somebody asks.
    pub(crate) fn pe_entry(&self, pe: usize) -> &'static PeEntry {
        debug_assert!(pe < self.pes);
        self.at(self.view_offset() + pe * size_of::<PeEntry>())
    }

    /// What the PE that has a rank says of it when somebody asks.
    pub(crate) fn rank_entry(&self, rank: u32) -> &'static RankEntry {
        debug_assert!((rank as usize) < self.ranks);
        let ranks = self.view_offset() + self.pes * size_of::<PeEntry>();
        self.at(ranks + rank as usize * size_of::<RankEntry>())
    }

    fn location_offset(&self) -> usize {
        self.homes + (self.ranks * size_of::<AtomicU32>()).next_multiple_of(LINE)
    }

    fn lease_offset(&self) -> usize {
        self.location_offset() + self.nodes() * self.ranks * size_of::<Location>()
    }

    fn ring_offset(&self, number: usize) -> usize {
        let leases = self.nodes() * self.ranks * size_of::<Lease>();
        (self.lease_offset() + leases).next_multiple_of(4096) + number * size_of::<Link>()
    }

    /// Behind the rings: nothing of it takes memory until somebody asks.
    fn view_offset(&self) -> usize {
        self.ring_offset(self.pairs()).next_multiple_of(4096)
    }

    fn size(&self) -> usize {
        self.view_offset() + self.pes * size_of::<PeEntry>() + self.ranks * size_of::<RankEntry>()
    }

    #[inline(always)]
    fn at<T>(&self, offset: usize) -> &'static T {
        // SAFETY: the parts are laid out without overlap by the offsets above, aligned, valid
        // when zeroed, only reached through shared references, and mapped until `unmap`.
        unsafe { &*self.base.add(offset).cast::<T>() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes of a PE each; as the first one sees it, and with rank 1, which begins in the other one.
    fn two_nodes(f: impl FnOnce(Shared, u32)) {
        let shared = Shared::map(2, 2, 1).unwrap().in_node(0);
        assert_eq!((shared.home_of(1), shared.location_of(1)), (Some(1), Some(Place::on(1))));
        f(shared, 1);
        // SAFETY: nobody uses it any more.
        unsafe { shared.unmap() };
    }

    #[test]
    fn what_a_rank_left_behind_is_given_back_unless_it_comes() {
        two_nodes(|shared, rank| {
            let mut is_done = false;
            shared.while_away(rank, || is_done = true);
            assert!(is_done && shared.will_come(rank));
            shared.while_away(rank, || unreachable!("it is coming"));
            shared.lease(rank).has_come();
            shared.while_away(rank, || unreachable!("it is here"));
        });
    }

    #[test]
    fn nobody_waits_for_who_has_died_when_the_job_is_over() {
        two_nodes(|shared, rank| {
            let KeptOff::While(_kept) = shared.lease(rank).keep_off() else { unreachable!("away") };
            assert!(shared.job().end(Ended::Status, 70));
            assert!(!shared.will_come(rank));
            shared.while_away(rank, || unreachable!("somebody is counted in"));
        });
    }

    #[test]
    fn who_asks_for_what_is_not_there_is_told_so() {
        two_nodes(|shared, _| {
            assert_eq!((shared.home_of(2), shared.location_of(2)), (None, None));
            assert!(shared.block_of(1).is_some() && shared.block_of(2).is_none());
        });
    }

    #[test]
    fn a_rank_is_at_home_where_it_begins() {
        let shared = Shared::map(3, 7, 2).unwrap();
        for pe in 0..3 {
            let ranks: Vec<u32> = shared.begin_at(pe).collect();
            assert_eq!(ranks, Vec::from_iter(first_ranks(pe, 3, 7)));
            for node in 0..2 {
                let there = shared.in_node(node);
                assert!(
                    ranks
                        .iter()
                        .all(|rank| there.home(*rank) == pe
                            && there.location(*rank) == Place::on(pe))
                );
            }
        }
        // SAFETY: nobody uses it any more.
        unsafe { shared.unmap() };
    }

    #[test]
    fn every_rank_begins_on_one_pe() {
        for (pes, ranks) in [(1, 1), (2, 1), (3, 7), (4, 64), (7, 100_000), (5, 3)] {
            let all: Vec<u32> = (0..pes).flat_map(|pe| first_ranks(pe, pes, ranks)).collect();
            assert_eq!(all, (0..ranks).collect::<Vec<_>>());
            let counts: Vec<usize> = (0..pes).map(|pe| first_ranks(pe, pes, ranks).len()).collect();
            assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
        }
    }
}
