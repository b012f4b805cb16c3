//! Thread-locals of the process's own program of which each image gets its own.
//!
//! The program's block of thread-locals has the same distance below every thread pointer, and a symbol of the program
//! gives each variable's position in it. So the variables can be distinguished byte by byte. The rest of the block (of
//! the system's loader, libc, libraries) remains a copy of the thread's.

use std::ops::Range;
use std::path::Path;

use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, Sym};

use crate::LoadError;
use crate::elf::ENDIAN;
use crate::file::MappedFile;
use crate::objects::of_program;
use crate::thread_pointer;

type Header = elf::FileHeader64<LittleEndian>;

/// Bytes that each image has for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnPart {
    /// Their distance below the thread pointer.
    distance: usize,
    /// Their initial values.
    initial: Vec<u8>,
}

/// Their positions in a thread block, and their initial values.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnLocals {
    /// In ascending order of addresses, without overlap.
    parts: Vec<OwnPart>,
}

impl OwnLocals {
    /// Finds those of the process's program for whose symbol's name `is_own` returns true.
    pub(crate) fn find(is_own: &dyn Fn(&str) -> bool) -> Result<OwnLocals, LoadError> {
        let Some(segment) = ProgramLocals::of_program() else { return Ok(OwnLocals::default()) };
        let file = MappedFile::open(Path::new("/proc/self/exe"))?;
        let mut found: Vec<Range<usize>> = symbols(&file)?
            .into_iter()
            .filter(|(name, range)| range.end <= segment.len && is_own(name))
            .map(|(_, range)| range)
            .collect();
        found.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<usize>> = Vec::new();
        for range in found {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        let parts = joined.into_iter().map(|range| segment.part(range)).collect();
        Ok(OwnLocals { parts })
    }

    /// Their positions in the block of a thread pointer.
    fn ranges(&self, pointer: usize) -> impl Iterator<Item = Range<usize>> {
        self.parts.iter().map(move |part| {
            let start = pointer - part.distance;
            start..start + part.initial.len()
        })
    }

    /// A part of the block of a thread pointer without them.
    pub(crate) fn without(&self, pointer: usize, part: Range<usize>) -> Vec<Range<usize>> {
        let mut rest = Vec::new();
        let mut start = part.start;
        for own in self.ranges(pointer) {
            rest.push(start..own.start.clamp(start, part.end));
            start = own.end.clamp(start, part.end);
        }
        rest.push(start..part.end);
        rest.retain(|range| !range.is_empty());
        rest
    }

    /// Writes their initial values into the block of a thread pointer.
    ///
    /// # Safety
    /// The block belongs to the caller.
    pub(crate) unsafe fn write(&self, pointer: usize) {
        for part in &self.parts {
            let OwnPart { distance, initial } = part;
            // SAFETY: inside of the caller's block.
            unsafe {
                let to = (pointer - distance) as *mut u8;
                to.copy_from_nonoverlapping(initial.as_ptr(), initial.len());
            }
        }
    }
}

/// The program's part of all thread blocks of the process.
struct ProgramLocals {
    /// Its distance below the thread pointer.
    distance: usize,
    len: usize,
    /// The initial values in memory, relocated; the rest is zero.
    initial: &'static [u8],
}

impl ProgramLocals {
    /// The part of the program.
    fn of_program() -> Option<ProgramLocals> {
        of_program(|program| {
            let (block, header) = program.thread_locals()?;
            let start = program.memory(header).start as *const u8;
            Some(ProgramLocals {
                distance: thread_pointer::get().wrapping_sub(block.start),
                len: block.len(),
                // SAFETY: the program's first values of thread-locals, which nobody writes once it runs.
                initial: unsafe { std::slice::from_raw_parts(start, header.p_filesz as usize) },
            })
        })?
    }

    fn part(&self, range: Range<usize>) -> OwnPart {
        let mut initial = vec![0; range.len()];
        let known = range.start.min(self.initial.len())..range.end.min(self.initial.len());
        initial[..known.len()].copy_from_slice(&self.initial[known]);
        OwnPart { distance: self.distance - range.start, initial }
    }
}

/// The program's thread-locals: names, and positions in its segment.
fn symbols(file: &MappedFile) -> Result<Vec<(String, Range<usize>)>, LoadError> {
    let malformed = |_| LoadError::Malformed {
        path: file.path().to_path_buf(),
        what: "its table of symbols is cut off".to_owned(),
    };
    let bytes = file.bytes();
    let sections = Header::parse(bytes).and_then(|header| header.sections(ENDIAN, bytes));
    let sections = sections.map_err(malformed)?;
    let table = sections.symbols(ENDIAN, bytes, elf::SHT_SYMTAB).map_err(malformed)?;
    if table.is_empty() {
        return Err(LoadError::NoSymbols);
    }
    let strings = table.strings();
    let mut found = Vec::new();
    for symbol in table.iter().filter(|symbol| symbol.st_type() == elf::STT_TLS) {
        let start = symbol.st_value(ENDIAN) as usize;
        let len = symbol.st_size(ENDIAN) as usize;
        if symbol.is_undefined(ENDIAN) || len == 0 {
            continue;
        }
        let name = symbol.name(ENDIAN, strings).map_err(malformed)?;
        let Some(end) = start.checked_add(len) else { continue };
        found.push((String::from_utf8_lossy(name).into_owned(), start..end));
    }
    Ok(found)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static OWN_OF_TEST: Cell<u64> = const { Cell::new(0x1234_5678) };
        static OTHER_OF_TEST: Cell<u64> = const { Cell::new(7) };
    }

    #[test]
    fn a_thread_local_is_found_by_its_name_with_its_first_value() {
        OWN_OF_TEST.set(1);
        let own = OwnLocals::find(&|name| name.contains("OWN_OF_TEST")).unwrap();
        let [part] = &own.parts[..] else { panic!("{own:?}") };
        let address = OWN_OF_TEST.with(|cell| std::ptr::from_ref(cell).addr());
        assert_eq!(thread_pointer::get() - part.distance, address);
        assert_eq!(part.initial, 0x1234_5678_u64.to_ne_bytes());
        let other = OTHER_OF_TEST.with(|cell| std::ptr::from_ref(cell).addr());
        let pointer = thread_pointer::get();
        // The reserve lies nearer.
        let rest = own.without(pointer, pointer - (1 << 18)..pointer);
        assert!(rest.iter().any(|range| range.contains(&other)));
        assert!(!rest.iter().any(|range| range.contains(&address)));
        assert_eq!(rest.iter().map(Range::len).sum::<usize>(), (1 << 18) - 8);
    }

    #[test]
    fn what_lies_outside_of_a_part_is_no_matter() {
        let part = |distance, len| OwnPart { distance, initial: vec![0; len] };
        let own = OwnLocals { parts: vec![part(90, 10), part(50, 20), part(10, 5)] };
        assert_eq!(own.without(100, 0..100), [0..10, 20..50, 70..90, 95..100]);
        assert_eq!(own.without(100, 15..75), [20..50, 70..75]);
        assert_eq!(own.without(100, 96..98).first(), Some(&(96..98)));
        assert_eq!(OwnLocals::default().without(100, 3..5).first(), Some(&(3..5)));
    }
}
