//! The layout of an image: modules one after another, the thread block at the end or around them.
//!
//! An image consists of whole pages. Each page is either *code*, which is equal in all images and comes from files
//! (read-only segments count as code), or *data*, which is written; no page is both. Consecutive code of a module at
//! the same distance from its position in the file is one piece, and so needs only one mapping: linkers make three
//! segments of it.

use std::ops::Range;

use object::elf;
use object::read::elf::ProgramHeader;

use crate::LoadError;
use crate::elf::{ENDIAN, Elf, Segment};

/// Code, data and mappings consist of whole pages of this size.
pub const PAGE: usize = 4096;

/// The largest alignment of modules. Some linkers request 2 MiB, for pages of that size.
const LARGEST_ALIGNMENT: usize = 64 << 10;

/// A piece of code: pages that can be mapped from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Its offset in the image.
    pub offset: usize,
    /// Its length in bytes: whole pages.
    pub len: usize,
    /// Its module, as an index into [`Plan::modules`](crate::Plan::modules).
    pub module: usize,
    /// Its offset in the module's file.
    pub file_offset: usize,
}

/// The bytes of a segment that are in a file.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    /// Their offset in the image.
    pub offset: usize,
    pub module: usize,
    pub in_file: Range<usize>,
}

/// The position of a module.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The difference between an offset in the image and the module's own address.
    pub bias: usize,
    /// From its first page to the last byte of its memory.
    pub span: Range<usize>,
    /// Its writable memory, as offsets in the image.
    pub writable: Vec<Range<usize>>,
}

impl Place {
    /// The offset of an address of the module.
    pub(crate) fn offset(&self, address: u64) -> usize {
        self.bias.wrapping_add(address as usize)
    }

    /// Whether relocations may write there.
    pub(crate) fn is_writable(&self, range: &Range<usize>) -> bool {
        self.writable.iter().any(|part| part.start <= range.start && range.end <= part.end)
    }
}

/// The positions of all modules.
#[derive(Default)]
pub(crate) struct Layout {
    pub places: Vec<Place>,
    pub code: Vec<Code>,
    /// The contents of code, and of data, from the files.
    pub code_content: Vec<Content>,
    pub data_content: Vec<Content>,
    /// Pages of data.
    pub data: Vec<Range<usize>>,
    /// Total length in bytes: whole pages.
    pub len: usize,
    /// The address of an image must be a multiple of this.
    pub alignment: usize,
}

impl Layout {
    /// Places modules one after another, from an offset on that is a multiple of their alignments.
    pub(crate) fn new(modules: &[Elf], start: usize) -> Result<Layout, LoadError> {
        let mut layout = Layout { alignment: PAGE, len: start, ..Layout::default() };
        for (number, module) in modules.iter().enumerate() {
            layout.add(number, module)?;
        }
        Ok(layout)
    }

    fn add(&mut self, number: usize, module: &Elf) -> Result<(), LoadError> {
        let segments = checked_segments(module)?;
        let alignment = |segment: &SegmentRange| {
            (segment.header.p_align(ENDIAN) as usize).clamp(PAGE, LARGEST_ALIGNMENT)
        };
        let alignment = segments.iter().map(alignment).max().unwrap_or(PAGE);
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
            return Err(module.malformed("it has no segment to load"));
        };
        let low = first.pages.start;
        // A module begins where its alignment allows it, and so do all of its addresses.
        let start = self.len.next_multiple_of(alignment) + low % alignment;
        let bias = start.wrapping_sub(low);
        let end = last.pages.end.wrapping_add(bias);
        if end < start || end > isize::MAX as usize {
            return Err(module.malformed("its segments are larger than memory"));
        }
        let memory = last.header.p_vaddr(ENDIAN) + last.header.p_memsz(ENDIAN);
        let span = start..bias.wrapping_add(memory as usize);
        let mut place = Place { bias, span, writable: Vec::new() };
        for segment in &segments {
            self.add_segment(number, module, segment, &mut place)?;
        }
        self.places.push(place);
        self.alignment = self.alignment.max(alignment);
        self.len = end;
        Ok(())
    }

    fn add_segment(
        &mut self,
        number: usize,
        module: &Elf,
        segment: &SegmentRange,
        place: &mut Place,
    ) -> Result<(), LoadError> {
        let path = || module.path().to_path_buf();
        let pages =
            place.offset(segment.pages.start as u64)..place.offset(segment.pages.end as u64);
        let address = segment.header.p_vaddr(ENDIAN);
        let offset = place.offset(address);
        let start = segment.header.p_offset(ENDIAN) as usize;
        let in_file = start..start + segment.header.p_filesz(ENDIAN) as usize;
        let content = Content { offset, module: number, in_file };
        if segment.is_data {
            if segment.header.p_flags(ENDIAN) & elf::PF_X != 0 {
                let what = "a segment is both writable and executable";
                return Err(LoadError::WritableCode { path: path(), what });
            }
            if self.code.last().is_some_and(|code| code.offset + code.len > pages.start) {
                let what = "code and data share a page";
                return Err(LoadError::WritableCode { path: path(), what });
            }
            place.writable.push(offset..offset + segment.header.p_memsz(ENDIAN) as usize);
            self.data_content.push(content);
            add_range(&mut self.data, pages);
            return Ok(());
        }
        if self.data.last().is_some_and(|data| data.end > pages.start) {
            let what = "code and data share a page";
            return Err(LoadError::WritableCode { path: path(), what });
        }
        let from_start = address as usize - segment.pages.start;
        let file_offset = (segment.header.p_offset(ENDIAN) as usize).checked_sub(from_start);
        let Some(file_offset) = file_offset.filter(|offset| offset.is_multiple_of(PAGE)) else {
            return Err(module.malformed("a segment does not begin at a page of the file"));
        };
        self.code_content.push(content);
        let code = Code { offset: pages.start, len: pages.len(), module: number, file_offset };
        match self.code.last_mut() {
            Some(last) if continues(last, &code) && !is_between(&self.data, last, &code) => {
                last.len = code.offset + code.len - last.offset;
            }
            _ => self.code.push(code),
        }
        Ok(())
    }

    /// The number of mappings per image, if many are side by side: one for each piece of code, and one for each piece
    /// in between. What follows the last code shares a mapping with what precedes the code of the next image.
    pub(crate) fn mappings(&self, len: usize) -> usize {
        let (Some(first), Some(last)) = (self.code.first(), self.code.last()) else { return 1 };
        let between = self.code.windows(2);
        let between = between.filter(|code| code[0].offset + code[0].len < code[1].offset).count();
        let outside = first.offset > 0 || last.offset + last.len < len;
        self.code.len() + between + usize::from(outside)
    }

    /// The end of the last module's memory, if the page of its end is a data page.
    pub(crate) fn end_of_data(&self) -> Option<usize> {
        let of_modules = self.places.iter().flat_map(|place| &place.writable);
        let end = of_modules.map(|part| part.end).max()?;
        (end.next_multiple_of(PAGE) == self.len).then_some(end)
    }
}

/// Whether two pieces of code are contiguous both in memory and in the file.
fn continues(last: &Code, code: &Code) -> bool {
    last.module == code.module
        && code.offset.wrapping_sub(code.file_offset) == last.offset.wrapping_sub(last.file_offset)
}

fn is_between(data: &[Range<usize>], last: &Code, code: &Code) -> bool {
    data.last().is_some_and(|data| data.start >= last.offset && data.start < code.offset)
}

/// Adds pages after the existing ones.
pub(crate) fn add_range(ranges: &mut Vec<Range<usize>>, pages: Range<usize>) {
    match ranges.last_mut() {
        Some(last) if last.end >= pages.start => last.end = last.end.max(pages.end),
        _ => ranges.push(pages),
    }
}

/// The same pages as ranges in ascending order.
pub(crate) fn joined(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|pages| pages.start);
    let mut joined = Vec::new();
    ranges.into_iter().for_each(|pages| add_range(&mut joined, pages));
    joined
}

/// A segment with its pages, as addresses of the module.
struct SegmentRange<'data> {
    header: &'data Segment,
    pages: Range<usize>,
    is_data: bool,
}

/// The segments of a module, checked and in ascending order.
fn checked_segments<'data>(module: &Elf<'data>) -> Result<Vec<SegmentRange<'data>>, LoadError> {
    let mut segments: Vec<SegmentRange> = Vec::new();
    for header in module.loaded().filter(|header| header.p_memsz(ENDIAN) > 0) {
        let (address, len) = (header.p_vaddr(ENDIAN), header.p_memsz(ENDIAN));
        let end = address.checked_add(len).filter(|end| *end <= isize::MAX as u64 - (1 << 30));
        let is_whole =
            header.p_filesz(ENDIAN) <= len && header.data(ENDIAN, module.file_bytes()).is_ok();
        let (Some(end), true) = (end, is_whole) else {
            return Err(module.malformed(format!("the segment at {address:#x} is cut off")));
        };
        let pages = address as usize & !(PAGE - 1)..(end as usize).next_multiple_of(PAGE);
        if segments.last().is_some_and(|last| address < last.header.p_vaddr(ENDIAN)) {
            return Err(module.malformed("its segments are not in order"));
        }
        // Memory behind what the file has is zero, which a mapping of the file is not.
        let is_data = header.p_flags(ENDIAN) & elf::PF_W != 0 || header.p_filesz(ENDIAN) < len;
        segments.push(SegmentRange { header, pages, is_data });
    }
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(offset: usize, len: usize) -> Code {
        Code { offset, len, module: 0, file_offset: offset }
    }

    #[test]
    fn mappings_are_pieces_of_code_and_what_lies_between() {
        let layout = |code| Layout { code, ..Layout::default() };
        assert_eq!(layout(vec![]).mappings(PAGE), 1);
        assert_eq!(layout(vec![code(0, PAGE)]).mappings(2 * PAGE), 2);
        let two = vec![code(0, PAGE), code(PAGE, PAGE), code(3 * PAGE, PAGE)];
        assert_eq!(layout(two.clone()).mappings(4 * PAGE), 4);
        assert_eq!(layout(two).mappings(5 * PAGE), 5);
        // What is in front of the code joins what is behind that of the image before.
        let around = layout(vec![code(PAGE, PAGE)]);
        assert_eq!((around.mappings(2 * PAGE), around.mappings(3 * PAGE)), (2, 2));
    }

    #[test]
    fn adjoining_pages_are_one_range() {
        let mut ranges = Vec::new();
        for pages in [0..PAGE, PAGE..2 * PAGE, 4 * PAGE..5 * PAGE, 4 * PAGE..6 * PAGE] {
            add_range(&mut ranges, pages);
        }
        assert_eq!(ranges, [0..2 * PAGE, 4 * PAGE..6 * PAGE]);
    }
}
