//! What the process keeps in the slots of ranks: memory that a static or a thread-local variable
//! refers to.
//!
//! A `LazyLock`, a `OnceLock` or a cache of a library is filled by the rank that happens to need it
//! first, from that rank's heap, but belongs to the PE and is used by all ranks on it. Such a rank
//! must not take its memory away: neither to another node, nor by beginning anew in its slot.
//!
//! The search is a conservative marking: every aligned word of the writable segments of the program
//! and its libraries, and of the calling thread's thread-local storage, that is an address inside
//! a live block of a rank's heap is taken as a reference, and so is every such word in a block
//! found that way. What is reached only through memory of the process's own heap is not found.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::arena::live::{self, Part};
use crate::arena::{Arena, SlotHeader, SlotId};

const WORD: usize = size_of::<usize>();

/// Start and end of an allocated block.
type Block = (usize, usize);

/// The slots in which the process keeps something, of those that `header_of` knows.
///
/// # Safety
/// The calling thread is its PE's rank thread; the slots that `header_of` knows are that PE's, and
/// none of their ranks runs but the one that calls.
pub(crate) unsafe fn slots(
    header_of: impl Fn(SlotId) -> Option<*mut SlotHeader>,
) -> FxHashSet<SlotId> {
    let Some(arena) = Arena::current() else { return FxHashSet::default() };
    let mut found = Found {
        arena,
        header_of,
        blocks: FxHashMap::default(),
        marked: FxHashSet::default(),
        todo: VecDeque::new(),
    };
    // SAFETY: writable segments of loaded objects are readable, and so is this thread's storage;
    // blocks are live: nobody else touches the slots.
    unsafe {
        for (start, end) in roots() {
            found.look_through(start, end);
        }
        while let Some((start, end)) = found.todo.pop_front() {
            found.look_through(start, end);
        }
    }
    found.marked.into_iter().map(|start| arena.slot_at(start)).collect()
}

struct Found<'a, F> {
    arena: &'a Arena,
    header_of: F,
    /// The live blocks of slots that some word has pointed into, in order.
    blocks: FxHashMap<SlotId, Vec<Block>>,
    /// Where the blocks begin that have been reached.
    marked: FxHashSet<usize>,
    todo: VecDeque<Block>,
}

impl<F: Fn(SlotId) -> Option<*mut SlotHeader>> Found<'_, F> {
    /// # Safety
    /// The range is readable.
    unsafe fn look_through(&mut self, start: usize, end: usize) {
        let mut at = start.next_multiple_of(WORD);
        // SAFETY: as the caller promises.
        while let Some((found, address)) = unsafe { self.next_address(at, end) } {
            // SAFETY: as the caller promises.
            unsafe { self.reach(address) };
            at = found + WORD;
        }
    }

    /// The first word of a range that is an address in the arena, and where it is.
    ///
    /// # Safety
    /// The range is readable.
    unsafe fn next_address(&self, mut at: usize, end: usize) -> Option<(usize, usize)> {
        let (base, size) = (self.arena.layout.base, self.arena.layout.size());
        while at + WORD <= end {
            // SAFETY: in the range. Other threads may write there: the word is only a number, and
            // what they may refer to is of no rank that could move (a thread pins its rank).
            let word = unsafe { (at as *const usize).read_volatile() };
            if word.wrapping_sub(base) < size {
                return Some((at, word));
            }
            at += WORD;
        }
        None
    }

    /// # Safety
    /// As [`slots`].
    unsafe fn reach(&mut self, address: usize) {
        let slot = self.arena.slot_at(address);
        let header_of = &self.header_of;
        let blocks = self.blocks.entry(slot).or_insert_with(|| match header_of(slot) {
            // SAFETY: a slot of the calling PE, whose rank does not run.
            Some(header) => unsafe { blocks(header) },
            None => Vec::new(),
        });
        let next = blocks.partition_point(|(start, _)| *start <= address);
        if let Some((start, end)) = next.checked_sub(1).map(|at| blocks[at])
            && address < end
            && self.marked.insert(start)
        {
            self.todo.push_back((start, end));
        }
    }
}

/// The live blocks of a slot's heap.
///
/// # Safety
/// As [`slots`], for this slot.
unsafe fn blocks(slot: *mut SlotHeader) -> Vec<Block> {
    let mut blocks = Vec::new();
    // SAFETY: as the caller promises.
    unsafe {
        for used in (*(*slot).heap.get()).used() {
            live::parts(used, |part| match part {
                Part::Chunk { at, size, in_use: true } => blocks.push((at + 16, at + size + 8)),
                Part::Chunk { .. } | Part::Mark(_) => {}
                Part::Unknown { at, end } => blocks.push((at, end)),
            });
        }
    }
    blocks.sort_unstable();
    blocks
}

/// The memory of statics and of the calling thread's thread-locals.
fn roots() -> Vec<Block> {
    let mut roots = Vec::new();
    // SAFETY: the function below follows the protocol; the vector outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(add_roots), (&raw mut roots).cast()) };
    roots
}

unsafe extern "C" fn add_roots(
    object: *mut libc::dl_phdr_info,
    _: usize,
    roots: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid description of an object, with its table of headers, and
    // the vector that `roots` gave it.
    unsafe {
        let object = &*object;
        let roots = &mut *roots.cast::<Vec<Block>>();
        let headers = (0..usize::from(object.dlpi_phnum)).map(|i| &*object.dlpi_phdr.add(i));
        let range = |header: &libc::Elf64_Phdr| {
            let start = object.dlpi_addr as usize + header.p_vaddr as usize;
            (start, start + header.p_memsz as usize)
        };
        // Written only by the loader, before the program began.
        let constant =
            headers.clone().find(|header| header.p_type == libc::PT_GNU_RELRO).map(range);
        for header in headers {
            let (start, end) = range(header);
            match header.p_type {
                libc::PT_LOAD if header.p_flags & libc::PF_W != 0 => match constant {
                    Some((first, last)) if (start..end).contains(&first) => {
                        roots.extend([(start, first), (last.min(end), end)]);
                    }
                    _ => roots.push((start, end)),
                },
                libc::PT_TLS if !object.dlpi_tls_data.is_null() => {
                    let start = object.dlpi_tls_data as usize;
                    roots.push((start, start + header.p_memsz as usize));
                }
                _ => {}
            }
        }
    }
    0
}
