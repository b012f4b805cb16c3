//! References between a rank's memory and other memory, in both directions.
//!
//! A rank that moves takes its stack and its heap along. That is correct only if the addresses in them refer to nothing
//! else: not to the memory of another rank, which stays; not to a thread-local variable of its PE; and, when it leaves
//! the memory it shares, not to the PE's outside heap. And it must not take away memory that the PE's statics or other
//! ranks refer to. So before it moves its memory is searched, conservatively: every aligned word that is an address is
//! taken as a reference.
//!
//! | the rank moves | its stack | its heap | what statics refer to |
//! |---|---|---|---|
//! | to another PE of the node | searched | searched if statics refer to any rank's memory | stays where it is in the arena; a rank that shares it with a thread-local stays too |
//! | away from the memory it shares | searched | searched, and whether it reaches all its blocks | must not be its memory |
//! | by its state | dropped | dropped; does it reach all its blocks? | must not be its memory |
//!
//! Inside the node processes may share what threads may share, so a rank that moves to another PE may leave behind, or
//! continue to use, what it shares with statics or other ranks; but not what a thread-local refers to (an `Rc`, a
//! `Cell`).
//!
//! Ranks get to share memory through what their PE shares: statics, thread-locals. While none of these refers to any
//! rank's memory, nothing is shared, and the heap of a rank that stays in the node is not searched: its length does not
//! matter to a hand-over.
//!
//! A rank whose memory is referred to by the stack of another one does not take it away. A block that a rank does not
//! reach from its own stack is held by something else, or leaked: then the heaps of the other ranks are searched; a
//! block without any reference is leaked, and does not matter. Threads are not searched: while some run, one of them
//! may hold such a block (a queue's, from which it has taken the last item and which it is about to free).
//!
//! Statics, and what was allocated before the PEs were forked, are equal in all PEs and do not pin a rank. The
//! exception is a locked lock in a static: one that the rank's stack refers to, or one that the program's code does; as
//! any rank may have run that code, all ranks of the PE stay. Such a rank does not move by its state either, because
//! nothing would unlock the lock. References that are not addresses are not found: one that a rank keeps as a
//! difference or hidden in other bits, and one that only memory from before the fork contains.
//!
//! Invariants:
//! - R1. While a PE searches nobody else uses its slots: the search is made on its rank thread, and its ranks are suspended
//!   except for the calling one ([`Search::scan_roots`]). So the blocks that [`Blocks::of`] lists are live.
//! - R2. What is searched is readable: statics and thread-locals of loaded objects ([`Roots`]), stacks, blocks, images.
//! - R3. Other threads may change a word that is read, atomically; its value is only compared.

mod blocks;
mod code;
mod locks;
mod reference;
mod roots;
mod variables;
mod words;

use rustc_hash::FxHashMap;

use blocks::Blocks;
pub use locks::{LockStates, is_known, is_locked, know};
pub use reference::Reference;
use reference::{Holder, Target};
use roots::Roots;
pub use words::Range;

use crate::arena::resident::is_resident;
use crate::arena::{Arena, SlotHeader, SlotId};
use crate::stack::{live_stack, saved};
use crate::{heap_word, image};

/// Blocks with more bytes are searched last, and perhaps not at all, when a rank leaves by its state.
const LONG: usize = 64 << 10;

/// How far a rank moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journey {
    /// To another PE of its node: all memory of the arena stays readable.
    InNode,
    /// To another node, or into a file: only its own memory moves along.
    Away,
    /// Its memory is dropped; it restarts from its state.
    ByState,
}

/// What may refer to a rank's memory, besides the rank itself and statics.
pub trait Others {
    /// The slots of the PE's other ranks.
    fn slots(&self) -> Vec<*mut SlotHeader>;
    /// Whether the process has threads other than the runtime's.
    fn have_threads(&self) -> bool;
}

/// A PE's knowledge of references between its ranks and its statics.
#[derive(Debug, Default)]
pub struct Search {
    roots: Roots,
    /// How many ranks had been resumed when the statics were searched; the result is valid until the next one is.
    at: Option<u32>,
    /// The blocks of each rank of the PE that statics and thread-locals refer to, by their addresses, and whether a
    /// thread-local refers to them.
    pinned_by_statics: FxHashMap<SlotId, FxHashMap<usize, bool>>,
    /// Blocks of ranks without any reference found: their number, and the sum of their addresses.
    leaked: FxHashMap<SlotId, (usize, usize)>,
    /// References from the stacks of ranks of this PE into each other's slots, by slot: the address, and the rank that
    /// owns the stack. Not searched if no rank leaves the memory it shares.
    between: FxHashMap<SlotId, Vec<(usize, u32)>>,
    /// Blocks of slots of this PE, found while none of its ranks has run.
    blocks: FxHashMap<SlotId, Blocks>,
}

/// Reads the data about the program that the search needs, before PEs are forked whose ranks may move.
pub fn prepare() {
    roots::prepare();
}

impl Search {
    /// Searches the statics and the thread-locals of the calling thread, and the stacks of the ranks of a PE whose
    /// ranks may leave the memory they share, unless that was done since a rank was resumed for the `resumes`-th time
    /// and none runs now.
    ///
    /// # Safety
    /// The calling thread is its PE's rank thread; the slots that `header_of` knows belong to that PE, and none of
    /// their ranks runs except the calling one.
    pub unsafe fn scan_roots(
        &mut self,
        resumes: u32,
        one_runs: bool,
        header_of: &dyn Fn(SlotId) -> Option<*mut SlotHeader>,
        may_leave: &mut dyn Iterator<Item = *mut SlotHeader>,
    ) {
        if !one_runs && self.at == Some(resumes) {
            return;
        }
        self.at = (!one_runs).then_some(resumes);
        self.pinned_by_statics.clear();
        self.blocks.clear();
        let Some(arena) = Arena::current() else { return };
        self.roots.refresh();
        // SAFETY: R1, R2.
        unsafe {
            self.mark(arena, self.roots.thread_locals().collect(), true, header_of);
            self.mark(arena, self.roots.statics().collect(), false, header_of);
            self.between.clear();
            for slot in may_leave {
                let (own, rank) = ((*slot).id(), (*slot).rank.get());
                words::each_in_arena(arena, stack_of(arena, slot), |_, address| {
                    if arena.layout.outside_at(address).is_none() {
                        let of = arena.slot_at(address);
                        if of != own {
                            self.between.entry(of).or_default().push((address, rank));
                        }
                    }
                    true
                });
            }
        }
    }

    /// Marks what some ranges refer to, transitively.
    ///
    /// # Safety
    /// As for [`scan_roots`](Self::scan_roots); the ranges are readable.
    unsafe fn mark(
        &mut self,
        arena: &Arena,
        mut todo: Vec<Range>,
        by_thread_local: bool,
        header_of: &dyn Fn(SlotId) -> Option<*mut SlotHeader>,
    ) {
        while let Some(range) = todo.pop() {
            // SAFETY: readable, says the caller, or a block (R1).
            unsafe {
                words::each_in_arena(arena, range, |_, address| {
                    if arena.layout.outside_at(address).is_some() {
                        return true;
                    }
                    let slot = arena.slot_at(address);
                    let Some(header) = header_of(slot) else { return true };
                    let blocks = self.blocks.entry(slot).or_insert_with(|| Blocks::of(header));
                    if let Some(block) = blocks.at(address) {
                        self.pinned_by_statics
                            .entry(slot)
                            .or_default()
                            .entry(block.0)
                            .or_insert_with(|| {
                                todo.push(block);
                                by_thread_local
                            });
                    }
                    true
                });
            }
        }
    }

    /// Whether statics refer to memory of any rank of this PE.
    pub(crate) fn finds_sharing(&self) -> bool {
        !self.pinned_by_statics.is_empty()
    }

    /// Whether statics refer to memory of a rank.
    fn is_pinned_by_statics(&self, slot: SlotId) -> bool {
        self.pinned_by_statics.contains_key(&slot)
    }

    /// Records in the slot of a rank that leaves for another PE of the node whether statics of this PE refer to its
    /// memory: then it must not leave the node from there.
    ///
    /// # Safety
    /// As for [`obstacle`](Self::obstacle), which was called before.
    pub unsafe fn note_leaving(&self, slot: *mut SlotHeader, pe: u32) {
        // SAFETY: S2: a slot of this PE, says the caller.
        let slot = unsafe { &*slot };
        if self.is_pinned_by_statics(slot.id()) {
            slot.kept_by.set(slot.kept_by.get() | bit(pe));
        }
    }

    /// Why a rank must not make a journey. It is suspended, or it runs and its own stack ends at `frame`. With
    /// `thorough` its heap is searched even if nothing seems to be shared.
    ///
    /// # Safety
    /// As for [`scan_roots`](Self::scan_roots), which was called before; `slot` is a slot of this PE, `own_roots` are
    /// the runtime's pointers into it; `others` knows the slots of the PE's other ranks and whether it has threads
    /// other than the runtime's.
    pub unsafe fn obstacle(
        &mut self,
        slot: *mut SlotHeader,
        journey: Journey,
        thorough: bool,
        frame: Option<usize>,
        own_roots: &[usize],
        others: &dyn Others,
    ) -> Option<Reference> {
        let arena = Arena::current()?;
        // SAFETY: R1.
        let (id, kept_by, (low, high)) =
            unsafe { ((*slot).id(), (*slot).kept_by.get(), stack_of(arena, slot)) };
        let stack = (frame.unwrap_or(low).next_multiple_of(size_of::<usize>()), high);
        if journey != Journey::InNode && (kept_by != 0 || self.is_pinned_by_statics(id)) {
            return Some(Reference { from: Holder::Static, to: Target::Own });
        }
        let mut seen = Seen { arena, id, journey, search: self, found: None, reached: Vec::new() };
        if journey != Journey::ByState {
            // SAFETY: R1, R2.
            unsafe { seen.stack(stack) };
            if seen.found.is_some() {
                return seen.found;
            }
        }
        if let Some(name) = seen.search.roots.taken_lock() {
            return Some(Reference { from: Holder::Code, to: Target::Lock(name) });
        }
        if journey == Journey::InNode && !thorough && !seen.search.finds_sharing() {
            return None;
        }
        // SAFETY: R1, R2.
        let (blocks, outcome) = unsafe {
            let known = seen.search.blocks.remove(&id);
            let blocks = known.unwrap_or_else(|| Blocks::of(slot));
            let outcome = if journey == Journey::InNode {
                seen.image(&*slot);
                seen.heap(&blocks);
                seen.found
            } else {
                seen.reachable(slot, stack, &blocks, own_roots, others)
            };
            (blocks, outcome)
        };
        self.blocks.insert(id, blocks);
        outcome
    }
}

/// A PE in [`SlotHeader::kept_by`].
fn bit(pe: u32) -> u64 {
    1 << (pe % u64::BITS)
}

/// A rank has arrived at one of this many PEs: the references of that PE's statics are checked there again.
///
/// # Safety
/// The slot belongs to the PE, and its rank is suspended.
pub unsafe fn has_come(slot: *mut SlotHeader, pe: u32, pes: usize) {
    // Of more PEs several share a bit.
    if pes <= u64::BITS as usize {
        // SAFETY: S2.
        unsafe { (*slot).kept_by.set((*slot).kept_by.get() & !bit(pe)) };
    }
}

/// The live part of a suspended rank's stack, including what the switch saves.
///
/// # Safety
/// The rank is suspended, or it is the caller, and the slot belongs to the PE.
unsafe fn stack_of(arena: &Arena, slot: *mut SlotHeader) -> Range {
    // SAFETY: R1.
    let (live, id) = unsafe { (live_stack(slot), (*slot).id()) };
    if live.is_empty() {
        return (0, 0);
    }
    // A rank that waits actively handles orders to move others on its own stack.
    let here = (&raw const live).addr();
    if (arena.layout.stack_limit(id)..live.end).contains(&here) {
        return (here & !7, live.end);
    }
    // SAFETY: R1.
    let (low, _) = unsafe { saved(slot) };
    (low.max(arena.layout.stack_limit(id)) & !7, live.end)
}

/// A search through one rank's memory.
struct Seen<'a> {
    arena: &'static Arena,
    id: SlotId,
    journey: Journey,
    search: &'a mut Search,
    found: Option<Reference>,
    /// Addresses in the rank's own slot that were encountered.
    reached: Vec<usize>,
}

impl Seen<'_> {
    /// # Safety
    /// The range is the live part of a stack: R1.
    unsafe fn stack(&mut self, stack: Range) {
        let thread_locals: Vec<Range> = self.search.roots.thread_locals().collect();
        let arena = self.arena;
        let has_parking_lot = self.search.roots.has_parking_lot();
        let mut before = 0;
        // SAFETY: R1; and R2 for the word of a static that a word refers to, and the next ones.
        unsafe {
            words::each(stack, |at, word| {
                let before = std::mem::replace(&mut before, word);
                if let Some((start, _)) =
                    thread_locals.iter().find(|(start, end)| (*start..*end).contains(&word))
                {
                    if let Some(name) = self.search.roots.thread_local(*start, word) {
                        self.note(Holder::Stack(at - stack.0), Target::ThreadLocal(name));
                    }
                } else if Arena::contains(word)
                    && let Some(to) = self.target(arena, word)
                {
                    self.note(Holder::Stack(at - stack.0), to);
                } else if self.search.roots.is_static(word)
                    && (is_locked(word)
                        || locks::is_read_by(before, word)
                        || (has_parking_lot && locks::may_be_taken(word)))
                    && let Some(name) = self.search.roots.static_at(word)
                {
                    self.note(Holder::Stack(at - stack.0), Target::Lock(name));
                }
                self.found.is_none()
            });
        }
    }

    /// Searches the heap except what statics share of it.
    ///
    /// # Safety
    /// As [`Search::obstacle`].
    unsafe fn heap(&mut self, blocks: &Blocks) {
        for block in blocks.iter() {
            let pinned = self.search.pinned_by_statics.get(&self.id);
            if !pinned.is_some_and(|blocks| blocks.contains_key(&block.0)) {
                // SAFETY: R1: a live block.
                unsafe { self.block(block) };
            }
            if self.found.is_some() {
                return;
            }
        }
    }

    /// Searches the data of the rank's image.
    ///
    /// # Safety
    /// As [`Search::obstacle`].
    unsafe fn image(&mut self, slot: &SlotHeader) {
        for part in image::of_program(slot) {
            // SAFETY: R2.
            unsafe { self.words((part.start, part.end), Holder::Image) };
        }
    }

    /// # Safety
    /// The block is live in the rank's heap, or another readable range.
    unsafe fn block(&mut self, block: Range) {
        // SAFETY: readable, says the caller.
        unsafe { self.words(block, Holder::Heap) };
    }

    /// # Safety
    /// The range is readable.
    unsafe fn words(&mut self, range: Range, holder: fn(usize) -> Holder) {
        let arena = self.arena;
        // SAFETY: readable, says the caller.
        unsafe {
            words::each_in_arena(arena, range, |at, word| {
                if let Some(to) = self.target(arena, word) {
                    self.note(holder(at), to);
                }
                self.found.is_none()
            });
        }
    }

    fn note(&mut self, from: Holder, to: Target) {
        self.found.get_or_insert(Reference { from, to });
    }

    /// The target of an address in the arena, if it is an obstacle.
    fn target(&mut self, arena: &Arena, address: usize) -> Option<Target> {
        if let Some(pe) = arena.layout.outside_at(address) {
            let is_foreign = self.journey == Journey::Away && is_resident(address);
            return is_foreign.then_some(Target::Outside(pe));
        }
        let slot = arena.slot_at(address);
        if slot == self.id {
            if self.journey != Journey::InNode {
                self.reached.push(address);
                return None;
            }
            let pinned = self.search.pinned_by_statics.get(&slot)?;
            let blocks = self.search.blocks.get(&slot)?;
            let block = blocks.at(address)?;
            return pinned.get(&block.0)?.then_some(Target::Shared);
        }
        if self.journey == Journey::ByState || slot.0 as usize >= arena.layout.first_pool() {
            return None;
        }
        self.is_live_in(arena, slot, address).then_some(Target::Rank(slot.0))
    }

    /// Whether an address is that of live memory of another rank that this one must not share. Stacks do not count: no
    /// reference into a stack outlives the call that it was given to, but messages are copied to and from it, and leave
    /// its addresses behind.
    fn is_live_in(&mut self, arena: &Arena, slot: SlotId, address: usize) -> bool {
        let header = arena.header(slot);
        // SAFETY: S1; the owner is an atomic.
        let is_own = unsafe { (*header).is_owned_by(heap_word::pe_of_thread()) };
        let in_node = self.journey == Journey::InNode;
        if is_own {
            // SAFETY: R1: this PE owns the slot.
            let blocks = || unsafe { Blocks::of(header) };
            let blocks = self.search.blocks.entry(slot).or_insert_with(blocks);
            let Some(block) = blocks.at(address) else { return false };
            let pinned =
                self.search.pinned_by_statics.get(&slot).and_then(|blocks| blocks.get(&block.0));
            return !in_node || pinned == Some(&true);
        }
        // The rank may be on another PE of the node, so its heap's own data is not looked at.
        let (near, _) = arena.layout.near_heap(slot, size_of::<SlotHeader>());
        !in_node && address >= near && is_resident(address)
    }

    /// Follows references from the rank's stack from block to block. Unreached blocks may be held by something else.
    ///
    /// # Safety
    /// As [`Search::obstacle`].
    unsafe fn reachable(
        &mut self,
        slot: *mut SlotHeader,
        stack: Range,
        blocks: &Blocks,
        own_roots: &[usize],
        others: &dyn Others,
    ) -> Option<Reference> {
        let theirs = self.search.between.get(&self.id).into_iter().flatten();
        if let Some((_, rank)) = theirs.into_iter().find(|(at, _)| blocks.at(*at).is_some()) {
            return Some(Reference { from: Holder::Rank(*rank), to: Target::Own });
        }
        let mut marked = vec![false; blocks.len()];
        let mut unmarked = blocks.len();
        // A rank that leaves by its state only has to reach all its blocks, for which the short ones
        // often do.
        let by_state = self.journey == Journey::ByState;
        let mut long = Vec::new();
        self.reached.extend_from_slice(own_roots);
        // SAFETY: R1, R2; `blocks` are the rank's.
        unsafe {
            if by_state {
                self.block(stack);
            }
            let (_, beside) = saved(slot);
            self.block((beside.start, beside.end));
            self.image(&*slot);
            self.reached.push((*slot).locals.get() as usize);
            self.reached.push((*slot).guest.get() as usize);
            loop {
                while let Some(address) = self.reached.pop() {
                    if let Some(number) = blocks.number_at(address)
                        && !std::mem::replace(&mut marked[number], true)
                    {
                        unmarked -= 1;
                        let block = blocks.get(number);
                        if by_state && block.1 - block.0 > LONG {
                            long.push(block);
                        } else {
                            self.block(block);
                        }
                        if self.found.is_some() {
                            return self.found;
                        }
                    }
                }
                match long.pop() {
                    Some(block) if unmarked > 0 => self.block(block),
                    _ => break,
                }
            }
        }
        let lost: Vec<Range> =
            blocks.iter().zip(&marked).filter(|(_, marked)| !**marked).map(|(b, _)| b).collect();
        let sum = lost.iter().fold(0usize, |sum, (start, _)| sum.wrapping_add(*start));
        let print = (lost.len(), sum);
        if lost.is_empty() {
            return None;
        }
        if others.have_threads() {
            return Some(Reference { from: Holder::Thread, to: Target::Own });
        }
        if self.search.leaked.get(&self.id) == Some(&print) {
            return None;
        }
        let holder = others.slots().into_iter().find_map(|other| {
            // SAFETY: R1: `others` has the slots of this PE's other ranks, says the caller of `obstacle`.
            unsafe { holds_one_of(self.arena, other, &lost) }
        });
        if holder.is_none() {
            self.search.leaked.insert(self.id, print);
        }
        holder.map(|rank| Reference { from: Holder::Rank(rank), to: Target::Own })
    }
}

/// The rank of a slot, if its stack or heap refers to one of some blocks, which are sorted.
///
/// # Safety
/// The rank is suspended, and the slot belongs to the PE.
unsafe fn holds_one_of(arena: &Arena, slot: *mut SlotHeader, lost: &[Range]) -> Option<u32> {
    let mut found = false;
    // SAFETY: R1.
    unsafe {
        let mut look = |range| {
            words::each_in_arena(arena, range, |_, word| {
                let before = lost.partition_point(|(start, _)| *start <= word);
                found |= before > 0 && word < lost[before - 1].1;
                !found
            });
            found
        };
        let _ = look(stack_of(arena, slot)) || Blocks::of(slot).iter().any(look);
        found.then(|| (*slot).rank.get())
    }
}
