//! Which slots of finished local runs are still referred to by something in the process.
//!
//! A conservative search: every aligned word of the memory that this process can write (statics, heaps, stacks of all
//! threads, thread-locals), and of slots found that way, that is an address in the stack or heap of a slot counts as a
//! reference. Memory is read through the kernel, because other threads may unmap parts of it meanwhile. The search
//! misses an address that is only in a register of another thread, and one that a program keeps in encoded form.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use vrt_slot::rank::live_stack;
use vrt_slot::{Arena, SlotId};

const WORD: usize = size_of::<usize>();
/// Bytes read at a time.
const PIECE: usize = 256 << 10;
/// With more writable memory than this the search would take too long: then all slots are kept.
const MOST: usize = 16 << 30;

/// Those of `slots` that something in the process refers to. No other slot is in use.
pub(super) fn referred_to(arena: &Arena, slots: &[SlotId]) -> HashSet<SlotId> {
    let all: HashSet<SlotId> = slots.iter().copied().collect();
    if !can_read() {
        return all;
    }
    let Some(memory) = writable_memory(arena) else { return all };
    let mut search = Search {
        arena,
        unseen: all,
        found: HashSet::new(),
        todo: VecDeque::new(),
        buffer: vec![0; PIECE / WORD],
    };
    let own = search.buffer.as_ptr_range();
    let own = own.start as usize..own.end as usize;
    for range in memory {
        // What was read last is no reference.
        for part in [range.start..range.end.min(own.start), range.start.max(own.end)..range.end] {
            search.look_through(part);
        }
    }
    while let Some(slot) = search.todo.pop_front() {
        for range in parts_of(arena, slot) {
            search.look_through(range);
        }
    }
    search.found
}

struct Search<'a> {
    arena: &'a Arena,
    unseen: HashSet<SlotId>,
    found: HashSet<SlotId>,
    todo: VecDeque<SlotId>,
    buffer: Vec<usize>,
}

impl Search<'_> {
    fn look_through(&mut self, range: Range<usize>) {
        let mut at = range.start.next_multiple_of(WORD);
        while at < range.end {
            let bytes = (range.end - at).min(PIECE);
            let read = read(at, &mut self.buffer[..bytes / WORD]);
            for n in 0..read / WORD {
                let address = self.buffer[n];
                if Arena::contains(address) {
                    self.reach(address);
                }
            }
            // What cannot be read is nobody's, or was a moment ago: the next page may be.
            at += if read > 0 { read } else { 4096 };
        }
    }

    fn reach(&mut self, address: usize) {
        if self.arena.layout.outside_at(address).is_some() {
            return;
        }
        let slot = self.arena.slot_at(address);
        if self.unseen.contains(&slot)
            && parts_of(self.arena, slot).iter().any(|part| part.contains(&address))
        {
            self.unseen.remove(&slot);
            self.found.insert(slot);
            self.todo.push_back(slot);
        }
    }
}

/// The used parts of a slot's stack (of its suspended rank) and heap. Without the header, to which only the runtime
/// refers, and without memory that was never written, for which reading would allocate pages.
fn parts_of(arena: &Arena, slot: SlotId) -> [Range<usize>; 3] {
    let header = arena.header(slot);
    // SAFETY: headers are mapped; the slot was prepared, or is zeroed, and nobody runs in it.
    let (stack, [near, far]) = unsafe { (live_stack(header), (*(*header).heap.get()).used()) };
    [stack, near, far]
}

/// The memory that this process can write, without the arena and the unused part of this thread's
/// stack; `None` if there is too much.
fn writable_memory(arena: &Arena) -> Option<Vec<Range<usize>>> {
    let text = std::fs::read_to_string("/proc/self/maps").ok()?;
    let here = &raw const text as usize;
    let mut ranges = Vec::new();
    let mut total = 0;
    for line in text.lines() {
        let Some((mut range, writable)) = parse(line) else { continue };
        if !writable || (arena.layout.base..arena.layout.end()).contains(&range.start) {
            continue;
        }
        if range.contains(&here) {
            // What callees save of this function's registers lies below it.
            range.start = (here & !(WORD - 1)) - 2048;
        }
        total += range.len();
        ranges.push(range);
    }
    (total <= MOST).then_some(ranges)
}

/// A mapping and whether it can be written, from a line of `/proc/self/maps`.
fn parse(line: &str) -> Option<(Range<usize>, bool)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some((address(start)?..address(end)?, words.next()?.starts_with("rw")))
}

/// Whether the kernel lets this process read memory this way.
fn can_read() -> bool {
    let (here, mut copy) = ([!0usize], [0]);
    read(here.as_ptr() as usize, &mut copy) == WORD && copy == here
}

/// Reads this process's memory; returns how many bytes.
fn read(at: usize, into: &mut [usize]) -> usize {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: size_of_val(into) };
    let remote = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: local.iov_len };
    // SAFETY: `local` is writable; the kernel checks `remote`.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    read.max(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_understood() {
        let line = "7f00a000-7f00c000 rw-p 00000000 00:00 0    [stack]";
        assert_eq!(parse(line), Some((0x7f00a000..0x7f00c000, true)));
        assert_eq!(
            parse("00400000-00452000 r-xp 0 08:02 1 /bin/x"),
            Some((0x400000..0x452000, false))
        );
    }

    #[test]
    fn memory_is_read_and_what_is_not_there_is_not() {
        let here = [7usize, 8, 9];
        let mut copy = [0usize; 3];
        assert_eq!(read(here.as_ptr() as usize, &mut copy), size_of_val(&here));
        assert_eq!(copy, here);
        assert_eq!(read(8, &mut copy), 0);
    }
}
