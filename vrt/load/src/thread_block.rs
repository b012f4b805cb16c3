//! The thread block of an image: what a thread pointer refers to.
//!
//! ```text
//!   lower addresses                                                        thread pointer
//!        |                                                                       |
//!        | room | thread-locals of | - - - reserve - - - - - - - - - - - - - - - | control
//!        |      | the process      |   unused    | libraries' | program's        | block
//! ```
//!
//! The block looks like that of a thread of the process: the same thread-locals at the same
//! distances from the thread pointer, with the values that they had when the block was made, and
//! the same control block (glibc's `struct pthread`). So code of the process can run with it. Below
//! the thread pointer the process has a reserve that it does not use; the private modules have
//! their thread-locals there, at the same distances in all images, so that all relocations for them
//! are constants.
//!
//! The modules of a small image are placed in the unused part of the reserve.
//!
//! The program is closest, because the linker put its distances into its code.

use std::ops::Range;
use std::path::Path;

use object::elf;
use object::read::elf::ProgramHeader;

use crate::LoadError;
use crate::elf::{ENDIAN, Elf};
use crate::layout::{Layout, PAGE, add_range};
use crate::memory::{Template, pages_of};
use crate::own_locals::OwnLocals;
use crate::process_thread::ProcessThread;

/// The positions of the private modules' thread-locals.
#[derive(Default)]
pub(crate) struct ThreadLocals {
    /// By module: the distance of its block's beginning below the thread pointer. 0 for modules without a block.
    pub distances: Vec<usize>,
    /// Bytes right below the thread pointer that are in use.
    pub len: usize,
    /// The thread pointer must be a multiple of this.
    pub alignment: usize,
}

impl ThreadLocals {
    /// For images without modules.
    pub(crate) fn none() -> ThreadLocals {
        ThreadLocals { alignment: 64, ..ThreadLocals::default() }
    }

    /// Places the modules' thread-locals below each other, and checks that they fit.
    pub(crate) fn new(modules: &[Elf], reserve: usize) -> Result<ThreadLocals, LoadError> {
        let mut locals = ThreadLocals::none();
        let mut largest: (usize, &Path) = (0, Path::new(""));
        for module in modules {
            let Some(segment) = module.segment(elf::PT_TLS) else {
                locals.distances.push(0);
                continue;
            };
            let alignment = (segment.p_align(ENDIAN) as usize).max(1);
            let len = segment.p_memsz(ENDIAN) as usize;
            if !alignment.is_power_of_two() || alignment > PAGE || len > isize::MAX as usize / 2 {
                return Err(module.malformed("its thread-locals cannot be aligned so"));
            }
            let before = locals.len;
            locals.len = distance(before, segment.p_vaddr(ENDIAN) as usize, len, alignment);
            locals.alignment = locals.alignment.max(alignment);
            locals.distances.push(locals.len);
            largest = largest.max((locals.len - before, module.path()));
        }
        if locals.len > reserve {
            return Err(LoadError::ThreadLocalsTooLarge {
                program: modules.first().map(|m| m.path().to_path_buf()).unwrap_or_default(),
                needed: locals.len,
                reserve,
                largest: largest.0,
                largest_of: largest.1.to_path_buf(),
            });
        }
        Ok(locals)
    }

    /// The offset of a module's thread-local from the thread pointer, modulo 2^64.
    pub(crate) fn offset(&self, module: usize, value: u64) -> u64 {
        value.wrapping_sub(self.distances[module] as u64)
    }
}

/// The distance below the thread pointer at which a block begins, if `before` bytes are taken.
///
/// The linker and the system's loader use the same formula: the least distance at which the block has the same
/// alignment as its address in the file.
fn distance(before: usize, address: usize, len: usize, alignment: usize) -> usize {
    let least = before + len;
    least + (address.wrapping_add(least).wrapping_neg() & (alignment - 1))
}

/// The parts of images' thread blocks, and how they are made.
pub(crate) struct ThreadBlock {
    process: ProcessThread,
    /// Bytes of a block below the thread pointer.
    below: usize,
    /// Bytes right below the thread pointer that the process does not use.
    reserve: usize,
    /// Bytes right below the thread pointer that private modules use.
    private: usize,
    alignment: usize,
    /// The initial thread-locals of the private modules, from the lowest on.
    initial: Template,
    /// Those of the process's thread-locals of which the block has its own copies.
    own: OwnLocals,
    /// The others: the distances of parts below the thread pointer, and their lengths.
    copied: Vec<(usize, usize)>,
}

impl ThreadBlock {
    pub(crate) fn new(
        process: ProcessThread,
        reserve: usize,
        locals: &ThreadLocals,
    ) -> ThreadBlock {
        let below = process.room.max(process.locals).max(reserve);
        let alignment = process.alignment.max(locals.alignment);
        let below = below.next_multiple_of(alignment);
        let of_process = process.locals.max(reserve);
        let copied = vec![(of_process, of_process - reserve)];
        let (initial, own) = (Template::default(), OwnLocals::default());
        ThreadBlock {
            process,
            below,
            reserve,
            private: locals.len,
            alignment,
            initial,
            own,
            copied,
        }
    }

    /// Blocks for code of the process only, with their own copies of these thread-locals.
    pub(crate) fn of_process(process: ProcessThread, own: OwnLocals) -> ThreadBlock {
        // A thread pointer like others.
        const POINTER: usize = 1 << 32;
        let block = ThreadBlock::new(process, 0, &ThreadLocals::none());
        let copied = own.without(POINTER, POINTER - block.process.locals..POINTER);
        let copied = copied.into_iter().map(|part| (POINTER - part.start, part.len())).collect();
        ThreadBlock { own, copied, ..block }
    }

    /// Sets the initial values of the private modules' thread-locals.
    pub(crate) fn set_initial(&mut self, initial: Template) {
        self.initial = initial;
    }

    /// The offset of the process's own thread-local from the thread pointer.
    pub(crate) fn offset_in_process(&self, address: usize) -> Option<isize> {
        self.process.offset_of(address)
    }

    /// Combines a block and modules, for which there is a layout from an offset on: returns the layout, the offset of
    /// the thread pointer, and the end of the image (whole pages).
    ///
    /// Small modules are placed in the block's reserve if the control block fits into the rest of their last page,
    /// which saves a page; otherwise the block follows the modules.
    pub(crate) fn with(
        &self,
        layout: impl Fn(usize) -> Result<Layout, LoadError>,
    ) -> Result<(Layout, usize, usize), LoadError> {
        let modules = layout(0)?;
        if let Some(pointer) = self.pointer_in_last_page(&modules) {
            let start = self.below.saturating_sub(pointer).next_multiple_of(modules.alignment);
            let modules = layout(start)?;
            let len = modules.len;
            return Ok((modules, start + pointer, len));
        }
        let (pointer, len) = self.behind(modules.len);
        Ok((modules, pointer, len))
    }

    /// The possible thread pointer in the last page of modules that are shorter than the reserve.
    fn pointer_in_last_page(&self, modules: &Layout) -> Option<usize> {
        let end = modules.end_of_data()?;
        let pointer = self.last_pointer(modules.len);
        let fits = end + self.private <= pointer && pointer <= self.reserve;
        (fits && modules.alignment.is_multiple_of(self.alignment)).then_some(pointer)
    }

    /// The thread pointer of a block that ends at or slightly before `end`.
    fn last_pointer(&self, end: usize) -> usize {
        let tail = self.process.control.next_multiple_of(64);
        end.saturating_sub(tail) & !(self.alignment - 1)
    }

    /// Places a block after `start` bytes of an image: returns the offset of the thread pointer, and the end of the
    /// image (whole pages).
    ///
    /// The control block ends where the image does, so that it shares its page with the
    /// thread-locals.
    pub(crate) fn behind(&self, start: usize) -> (usize, usize) {
        let tail = self.process.control.next_multiple_of(64);
        let mut end = (start + self.below + tail).next_multiple_of(PAGE);
        if self.last_pointer(end) < start + self.below {
            end += self.alignment.next_multiple_of(PAGE);
        }
        (self.last_pointer(end), end)
    }

    /// The written pages of a block, for a thread pointer, in ascending order.
    pub(crate) fn pages(&self, pointer: usize) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        let of_process = pointer - self.process.locals.max(self.reserve)..pointer - self.reserve;
        let private = pointer - self.private..pointer + self.process.control;
        for range in [of_process, private] {
            if !range.is_empty() {
                add_range(&mut ranges, pages_of(range));
            }
        }
        ranges
    }

    /// The positions of copies of the process's thread-locals in the block of a thread pointer.
    pub(crate) fn process_locals(&self, pointer: usize) -> impl Iterator<Item = Range<usize>> {
        self.copied.iter().map(move |(distance, len)| {
            let start = pointer - distance;
            start..start + len
        })
    }

    /// Bytes that [`make`](Self::make) needs.
    pub(crate) fn size(&self) -> usize {
        self.alignment + self.below + self.process.control
    }

    /// Makes a block in memory of [`size`](Self::size) bytes. Returns its thread pointer.
    ///
    /// # Safety
    /// As [`fill`](Self::fill); the memory need not be zero.
    pub(crate) unsafe fn make(&self, image: usize, at: usize, from: usize) -> usize {
        let pointer = (at + self.below).next_multiple_of(self.alignment);
        // SAFETY: inside of the memory that the caller gives.
        unsafe {
            ((pointer - self.private) as *mut u8).write_bytes(0, self.private);
            self.fill(image, pointer, from);
        }
        pointer
    }

    /// Makes the block of a thread pointer `to`, for the image at `image`, as a copy of the block of the thread pointer
    /// `from`.
    ///
    /// # Safety
    /// `from` is the thread pointer of a thread of this process that does not end meanwhile. The memory around `to`
    /// belongs to the caller; it is zero where private thread-locals go.
    pub(crate) unsafe fn fill(&self, image: usize, to: usize, from: usize) {
        // SAFETY: the caller's memory around `to`.
        unsafe {
            self.copy_locals(to, from);
            self.initial.write(to - self.private, image);
            self.own.write(to);
            self.process.copy_control(to, from);
        }
    }

    /// Takes over the process's thread-locals from another thread pointer. The stack protector's canary and the key of
    /// pointers are kept, as they are on the stack and in memory, and so is the number by which locks know their owner.
    ///
    /// # Safety
    /// As [`fill`](Self::fill); `to` is the thread pointer of a block.
    pub(crate) unsafe fn refresh(&self, to: usize, from: usize) {
        // SAFETY: the caller's block.
        unsafe {
            self.copy_locals(to, from);
            self.process.copy_dynamic(to, from);
        }
    }

    /// The layout of a thread block of the process.
    pub(crate) fn process(&self) -> &ProcessThread {
        &self.process
    }

    /// # Safety
    /// As [`fill`](Self::fill).
    unsafe fn copy_locals(&self, to: usize, from: usize) {
        for (distance, len) in self.copied.iter().copied() {
            // SAFETY: both blocks have these bytes below the thread pointer, and are two.
            unsafe {
                ((to - distance) as *mut u8).copy_from((from - distance) as *const u8, len);
            }
        }
        // SAFETY: the caller's block.
        unsafe { self.process.forget_restartable(to) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Place;

    #[test]
    fn blocks_are_aligned_as_in_their_files() {
        // Nothing to align.
        assert_eq!(distance(0, 0, 12, 4), 12);
        assert_eq!(distance(0, 0x1000, 13, 16), 16);
        // The file has it 8 behind a multiple of 64, so it ends there, too.
        assert_eq!(distance(0, 0x3008, 8, 64), 56);
        assert_eq!(distance(0, 0x3008, 56, 64), 56);
        assert_eq!(distance(0, 0x3008, 57, 64), 120);
        for address in [0usize, 8, 24, 0x1010, 0x2fff] {
            for len in [1, 7, 64, 100] {
                for alignment in [1usize, 8, 64, 4096] {
                    let at = distance(100, address, len, alignment);
                    assert!(at >= 100 + len && at < 100 + len + alignment);
                    // The thread pointer is a multiple of the alignment.
                    assert_eq!(at.wrapping_neg() % alignment, address % alignment);
                }
            }
        }
    }

    #[test]
    fn small_modules_lie_in_the_reserve() {
        let mut process = ProcessThread::default();
        (process.room, process.locals, process.control) = (68_000, 66_500, 2304);
        let locals = ThreadLocals { alignment: 64, len: 100, ..ThreadLocals::default() };
        let block = ThreadBlock::new(process, 65_536, &locals);
        // Code, and data up to so many bytes of the last of `pages` pages.
        let modules = |pages: usize, used: usize, start: usize| {
            let data = start + PAGE..start + (pages - 1) * PAGE + used;
            let writable = std::iter::once(data).collect();
            let span = start..start + pages * PAGE;
            let place = Place { bias: start, span: span.clone(), writable };
            let (places, len) = (vec![place], span.end);
            Layout { places, len, alignment: PAGE, ..Layout::default() }
        };
        let place = |pages, used| block.with(|start| Ok(modules(pages, used, start))).unwrap();
        let (layout, pointer, len) = place(4, 500);
        let start = layout.places[0].span.start;
        assert_eq!((start % PAGE, pointer % 64, len), (0, 0, start + 4 * PAGE));
        assert!(pointer >= block.below && pointer + 2304 <= len, "the block is in the image");
        assert!(pointer - 65_536 <= start, "what the process uses is in front of the modules");
        assert!(pointer - 100 >= start + 3 * PAGE + 500, "thread-locals are behind their data");
        assert_eq!(block.pages(pointer).len(), 2);
        // No room in the last page; longer than the reserve.
        for (pages, used) in [(4, 1700), (17, 500)] {
            let (layout, pointer, len) = place(pages, used);
            assert_eq!(layout.places[0].span.start, 0);
            assert!(pointer - block.below >= pages * PAGE && len > pages * PAGE);
        }
    }

    #[test]
    fn a_block_ends_with_the_image() {
        let mut process = ProcessThread::default();
        (process.room, process.control) = (70_000, 2304);
        for alignment in [64, 256, 4096] {
            let locals = ThreadLocals { alignment, len: 100, ..ThreadLocals::default() };
            let block = ThreadBlock::new(process.clone(), 65_536, &locals);
            let (pointer, end) = block.behind(5 * PAGE);
            assert!(pointer.is_multiple_of(alignment) && end.is_multiple_of(PAGE));
            assert!(pointer >= 5 * PAGE + block.below && pointer + 2304 <= end);
        }
    }
}
