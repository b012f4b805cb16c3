//! The initial memory of an image: while it is being computed, and in its final form.
//!
//! [`Memory`] has pages where there is content, and records which words are addresses in the image:
//! such a word holds an offset, to which the image's address is added. [`Template`] is the same
//! information for copying: pieces of bytes, and runs of those words. A page without content is in
//! neither, so it is not touched: large zero arrays cost nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::layout::PAGE;

/// Bytes of a word.
pub(crate) const WORD: usize = size_of::<u64>();

/// Memory under construction. Addresses are offsets.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    pages: BTreeMap<usize, Box<[u8; PAGE]>>,
    /// Positions of words whose value is an offset in the image.
    addresses: BTreeSet<usize>,
}

impl Memory {
    /// Writes bytes that are the same in all images.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        self.forget_addresses(at..end);
        let mut rest = bytes;
        let mut at = at;
        while !rest.is_empty() {
            let within = at % PAGE;
            let (now, later) = rest.split_at(rest.len().min(PAGE - within));
            // Zeros need no page of their own.
            let page = match now.iter().all(|byte| *byte == 0) {
                true => self.pages.get_mut(&(at / PAGE)),
                false => Some(self.pages.entry(at / PAGE).or_insert_with(|| Box::new([0; PAGE]))),
            };
            if let Some(page) = page {
                page[within..within + now.len()].copy_from_slice(now);
            }
            at += now.len();
            rest = later;
        }
    }

    /// Writes a word that is the same in all images.
    pub(crate) fn write_word(&mut self, at: usize, value: u64) {
        self.write(at, &value.to_le_bytes());
    }

    /// Writes a word that is the address of an offset in the image.
    pub(crate) fn write_address(&mut self, at: usize, offset: usize) {
        self.write_word(at, offset as u64);
        self.addresses.insert(at);
    }

    pub(crate) fn read(&self, at: usize, bytes: &mut [u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let within = (at + done) % PAGE;
            let now = (bytes.len() - done).min(PAGE - within);
            let part = &mut bytes[done..done + now];
            match self.pages.get(&((at + done) / PAGE)) {
                Some(page) => part.copy_from_slice(&page[within..within + now]),
                None => part.fill(0),
            }
            done += now;
        }
    }

    pub(crate) fn read_word(&self, at: usize) -> u64 {
        let mut bytes = [0; WORD];
        self.read(at, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Copies memory, including the addresses in it, to another memory.
    pub(crate) fn copy_to(&self, from: Range<usize>, to: usize, target: &mut Memory) {
        target.copy_pages(self, from.clone(), to);
        for at in self.addresses.range(from.clone()) {
            if at + WORD <= from.end {
                target.addresses.insert(at - from.start + to);
            }
        }
    }

    /// Copies memory within itself.
    pub(crate) fn copy_within(&mut self, from: Range<usize>, to: usize) {
        let mut part = Memory::default();
        self.copy_to(from.clone(), 0, &mut part);
        part.copy_to(0..from.len(), to, self);
    }

    /// Copies page by page, as the range can be an array of gigabytes without content.
    fn copy_pages(&mut self, source: &Memory, from: Range<usize>, to: usize) {
        self.clear(to..to + from.len());
        if from.is_empty() {
            return;
        }
        for (number, page) in source.pages.range(from.start / PAGE..=(from.end - 1) / PAGE) {
            let start = (number * PAGE).max(from.start);
            let end = ((number + 1) * PAGE).min(from.end);
            self.write(start - from.start + to, &page[start - number * PAGE..end - number * PAGE]);
        }
    }

    fn clear(&mut self, range: Range<usize>) {
        self.forget_addresses(range.clone());
        if range.is_empty() {
            return;
        }
        for (number, page) in self.pages.range_mut(range.start / PAGE..=(range.end - 1) / PAGE) {
            let start = (number * PAGE).max(range.start) - number * PAGE;
            let end = ((number + 1) * PAGE).min(range.end) - number * PAGE;
            page[start..end].fill(0);
        }
    }

    fn forget_addresses(&mut self, range: Range<usize>) {
        let first = range.start.saturating_sub(WORD - 1);
        while let Some(at) = self.addresses.range(first..range.end).next().copied() {
            self.addresses.remove(&at);
        }
    }

    /// Converts it into the form for copying.
    pub(crate) fn template(&self) -> Template {
        let mut template = Template::default();
        for (number, page) in &self.pages {
            let first = page.iter().position(|byte| *byte != 0);
            let last = page.iter().rposition(|byte| *byte != 0);
            if let (Some(first), Some(last)) = (first, last) {
                let (at, end) = (number * PAGE + first, number * PAGE + last + 1);
                template.add_bytes(at..end, self);
            }
        }
        for at in &self.addresses {
            match template.addresses.last_mut() {
                Some(run) if run.at + run.words * WORD == *at => run.words += 1,
                _ => template.addresses.push(Run { at: *at, words: 1 }),
            }
        }
        template
    }
}

/// The pages of a range.
pub(crate) fn pages_of(range: Range<usize>) -> Range<usize> {
    range.start & !(PAGE - 1)..range.end.next_multiple_of(PAGE)
}

/// The initial content of memory.
#[derive(Default)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    addresses: Vec<Run>,
}

/// Bytes to be copied.
struct Piece {
    at: usize,
    bytes: Range<usize>,
}

/// Adjoining words that are addresses, such as tables of functions and of symbols.
struct Run {
    at: usize,
    words: usize,
}

impl Template {
    /// Appends content. What lies in between in the same or in adjoining pages is added as well: a
    /// longer copy is cheaper than another one.
    fn add_bytes(&mut self, mut range: Range<usize>, memory: &Memory) {
        let last = self.pieces.last_mut().map(|piece| {
            let end = piece.at + piece.bytes.len();
            (piece, end)
        });
        let start = self.bytes.len();
        match last {
            Some((piece, end)) if range.start / PAGE <= (end - 1) / PAGE + 1 => {
                range.start = end;
                piece.bytes.end += range.len();
            }
            _ => self.pieces.push(Piece { at: range.start, bytes: start..start + range.len() }),
        }
        self.bytes.resize(start + range.len(), 0);
        memory.read(range.start, &mut self.bytes[start..]);
    }

    /// Writes the content, for an image at `base`.
    ///
    /// # Safety
    /// The memory at `to` belongs to the caller, is writable as far as the template reaches, and
    /// zero.
    pub(crate) unsafe fn write(&self, to: usize, base: usize) {
        for piece in &self.pieces {
            let bytes = &self.bytes[piece.bytes.clone()];
            // SAFETY: the caller's memory, which this template does not lie in.
            unsafe {
                let to = (to + piece.at) as *mut u8;
                to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
        }
        for run in &self.addresses {
            let words = (to + run.at) as *mut u64;
            for word in 0..run.words {
                // SAFETY: the caller's memory. Words need not be aligned in it.
                unsafe {
                    let word = words.add(word);
                    word.write_unaligned(word.read_unaligned().wrapping_add(base as u64));
                }
            }
        }
    }

    /// The pages of the content, in ascending order.
    pub(crate) fn pages(&self) -> impl Iterator<Item = Range<usize>> {
        self.pieces.iter().map(|piece| pages_of(piece.at..piece.at + piece.bytes.len()))
    }

    /// Number of words that hold addresses.
    pub(crate) fn address_count(&self) -> usize {
        self.addresses.iter().map(|run| run.words).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(memory: &Memory, len: usize, base: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        // SAFETY: a zeroed vector as long as the memory in these tests.
        unsafe { memory.template().write(bytes.as_mut_ptr() as usize, base) };
        bytes
    }

    fn word(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(bytes[at..at + WORD].try_into().unwrap())
    }

    #[test]
    fn addresses_get_the_base_and_other_words_do_not() {
        let mut memory = Memory::default();
        memory.write_word(16, 77);
        memory.write_address(24, 100);
        memory.write_address(32, 0);
        memory.write_address(PAGE - 4, 0x1_0000_0001);
        memory.write_address(3 * PAGE, 5);
        // What is written later counts.
        memory.write_address(40, 9);
        memory.write_word(40, 9);
        let bytes = written(&memory, 4 * PAGE, 0x7000_0000);
        assert_eq!(word(&bytes, 16), 77);
        assert_eq!(word(&bytes, 24), 0x7000_0064);
        assert_eq!(word(&bytes, 32), 0x7000_0000);
        assert_eq!(word(&bytes, 40), 9);
        assert_eq!(word(&bytes, PAGE - 4), 0x1_7000_0001);
        assert_eq!(word(&bytes, 3 * PAGE), 0x7000_0005);
        assert_eq!(memory.template().address_count(), 4);
    }

    #[test]
    fn zero_pages_are_in_no_piece() {
        let mut memory = Memory::default();
        memory.write(0, &[1; 10]);
        memory.write(10, &[0; 20 * PAGE]);
        memory.write(20 * PAGE, &[2; 10]);
        memory.write(21 * PAGE + 9, &[3]);
        let template = memory.template();
        let pieces: Vec<_> = template.pieces.iter().map(|p| (p.at, p.bytes.len())).collect();
        assert_eq!(pieces, [(0, 10), (20 * PAGE, PAGE + 10)]);
        assert_eq!(memory.pages.len(), 3);
    }

    #[test]
    fn a_copy_takes_addresses_along_and_replaces_what_was_there() {
        let mut memory = Memory::default();
        memory.write_address(PAGE - 16, 3);
        memory.write_word(PAGE - 8, 4);
        memory.write_address(PAGE, 5);
        memory.write_address(5 * PAGE + 8, 6);
        memory.write_word(5 * PAGE + 24, 7);
        memory.copy_within(PAGE - 16..PAGE + 3 * WORD, 5 * PAGE);
        let bytes = written(&memory, 6 * PAGE, 1000);
        let words: Vec<_> = (0..5).map(|index| word(&bytes, 5 * PAGE + index * WORD)).collect();
        assert_eq!(words, [1003, 4, 1005, 0, 0]);
    }
}
