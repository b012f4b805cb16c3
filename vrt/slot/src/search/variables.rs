//! The thread-local variables and the statics of the program, by name.
//!
//! Polling a timer, drawing a random number, suspending itself: each leaves the address of some
//! library's thread-local variable on the stack, although it is not used any more. Those libraries
//! do not wait while they borrow their variables, so these are no obstacle to a move; a variable of
//! the program itself may be borrowed. The program's symbol table distinguishes the two; without
//! one every variable may be borrowed.

use std::sync::OnceLock;

use object::elf::{self, Sym64};
use object::read::elf::{ElfFile64, Sym};
use object::{Endianness, Object, ObjectSection};

use super::locks::Form;
use super::words::Range;

/// Crates that do not call the program while they borrow a thread-local variable or hold a lock, or only if the rank is
/// pinned for another reason: those that the runtime consists of, and common ones.
const LIBRARIES: [&str; 31] = [
    "std",
    "core",
    "alloc",
    "vrt",
    "vrt_balance",
    "vrt_core",
    "vrt_launch",
    "vrt_load",
    "vrt_shm",
    "vrt_slot",
    "vrt_trace",
    "tokio",
    "mio",
    "tracing",
    "tracing_core",
    "tracing_subscriber",
    "rand",
    "regex_automata",
    "rayon_core",
    "crossbeam_epoch",
    "parking_lot_core",
    "backtrace",
    "brotli",
    "clap_builder",
    "colorchoice",
    "lb_strategies",
    "log",
    "memchr",
    "memmap2",
    "rustix",
    "std_detect",
];

/// Prefixes of the names of variables of such libraries in C: mimalloc's and METIS's.
const OF_C_LIBRARIES: [&str; 3] = ["_mi_", "gk_", "old_SIG"];

/// Data about the program's variables from its symbol table.
#[derive(Debug)]
pub(super) struct Variables {
    /// By offset in the thread-local storage; `None`: nothing is known about the program.
    thread_locals: Option<Vec<Variable>>,
    /// Statics that may be or contain locks, by offset in the program; likewise.
    statics: Option<Vec<Variable>>,
    /// The functions whose first argument is a lock, with its form, by offset in the program, sorted.
    pub(super) locking: Vec<(usize, Form)>,
}

#[derive(Debug)]
struct Variable {
    start: usize,
    end: usize,
    /// The compiler's name for it.
    symbol: Box<str>,
    /// Created on first use, and kept permanently: reports refer to it.
    name: OnceLock<&'static str>,
}

impl Variable {
    fn name(&self) -> &'static str {
        self.name.get_or_init(|| Box::leak(readable(&self.symbol).into_boxed_str()))
    }
}

impl Variables {
    /// Reads the symbol table of this program, whose writable memory is in these ranges.
    pub(super) fn read(writable: &[Range]) -> Variables {
        match read(writable) {
            Ok((thread_locals, statics, locking)) => Variables {
                thread_locals: (!thread_locals.is_empty()).then_some(thread_locals),
                statics: (!statics.is_empty()).then_some(statics),
                locking,
            },
            Err(_) => Variables { thread_locals: None, statics: None, locking: Vec::new() },
        }
    }

    /// The name of the variable at an offset in the thread-local storage of the program, empty if it is not known;
    /// `None` if the variable belongs to a library.
    pub(super) fn thread_local(&self, offset: usize) -> Option<&'static str> {
        let known = self.thread_locals.as_ref().and_then(|all| at(all, offset));
        let name = known.map(Variable::name).unwrap_or_default();
        (!is_a_librarys(name)).then_some(name)
    }

    /// The name of the static at an offset in the program, empty if it is not known; `None` if it belongs to a library,
    /// or is too short for a lock. In the standard library only the standard streams can be locked.
    pub(super) fn of_static(&self, offset: usize) -> Option<&'static str> {
        let Some(statics) = &self.statics else { return Some("") };
        let name = at(statics, offset)?.name();
        let is_open = !is_a_librarys(name) || name.starts_with("std::io::stdio::");
        is_open.then_some(name)
    }
}

fn at(variables: &[Variable], offset: usize) -> Option<&Variable> {
    variables.iter().find(|variable| (variable.start..variable.end).contains(&offset))
}

/// Size of the shortest lock of the standard library in bytes.
const LOCK: usize = size_of::<std::sync::Once>();

/// The thread-local variables, the statics that may be locks, and the functions that lock.
type Found = (Vec<Variable>, Vec<Variable>, Vec<(usize, Form)>);

/// A substring of the compiler's names for all functions of `parking_lot`.
const PARKING_LOT: &str = "11parking_lot";

/// Finds the relevant symbols. There are tens of thousands, and this happens while ranks wait: the file is mapped, few
/// names are examined, and the results are copied.
fn read(writable: &[Range]) -> Result<Found, Box<dyn std::error::Error>> {
    let program = std::fs::File::open("/proc/self/exe")?;
    // SAFETY: the system keeps the file of a program that runs from being written to.
    let program = unsafe { memmap2::Mmap::map(&program)? };
    let program = ElfFile64::<Endianness>::parse(&*program)?;
    let (table, endian) = (program.elf_symbol_table(), program.endian());
    let name = |symbol: &Sym64<Endianness>| -> Result<&str, Box<dyn std::error::Error>> {
        Ok(std::str::from_utf8(symbol.name(endian, table.strings())?)?)
    };
    let names = program.section_by_index(table.string_section())?.data()?;
    let of_parking_lot = names_with(PARKING_LOT, names);
    let mut locking = Vec::new();
    let mut variables = [Vec::new(), Vec::new()];
    for symbol in table.iter().filter(|symbol| symbol.st_shndx(endian) != elf::SHN_UNDEF) {
        let start = symbol.st_value(endian) as usize;
        match symbol.st_type() {
            elf::STT_FUNC if are_in(&of_parking_lot, symbol.st_name(endian) as usize) => {
                let form = Form::of_argument(&readable(name(symbol)?));
                locking.extend(form.map(|form| (start, form)));
            }
            elf::STT_TLS => variables[0].push(symbol),
            elf::STT_OBJECT
                if writable.iter().any(|(first, last)| (*first..*last).contains(&start)) =>
            {
                variables[1].push(symbol);
            }
            _ => {}
        }
    }
    locking.sort_unstable_by_key(|(at, _)| *at);
    locking.dedup_by_key(|(at, _)| *at);
    // A mutex of those has a byte.
    let shortest = if locking.is_empty() { LOCK } else { 1 };
    variables[1].retain(|symbol| symbol.st_size(endian).max(1) as usize >= shortest);
    let known = |symbol: &&Sym64<Endianness>| {
        let start = symbol.st_value(endian) as usize;
        let end = start + symbol.st_size(endian).max(1) as usize;
        name(symbol).map(|name| Variable { start, end, symbol: name.into(), name: OnceLock::new() })
    };
    let [thread_locals, statics] = variables;
    let known = |all: Vec<_>| all.iter().map(known).collect::<Result<Vec<Variable>, _>>();
    Ok((known(thread_locals)?, known(statics)?, locking))
}

/// The positions of names that contain a substring, in a table of zero-terminated names: from the beginning of each to
/// its last occurrence of the substring, sorted. (A name may be the end of another one.)
fn names_with(part: &str, names: &[u8]) -> Vec<Range> {
    let mut found: Vec<Range> = Vec::new();
    let mut from = 0;
    loop {
        let rest = &names[from..];
        // The system's function is fast in a debug build, too.
        // SAFETY: `memmem` reads as many bytes as the slices have.
        let at = unsafe {
            libc::memmem(rest.as_ptr().cast(), rest.len(), part.as_ptr().cast(), part.len())
        };
        if at.is_null() {
            return found;
        }
        let at = at.addr() - names.as_ptr().addr();
        let begin = names[..at].iter().rposition(|byte| *byte == 0).map_or(0, |end| end + 1);
        match found.last_mut() {
            Some(last) if last.0 == begin => last.1 = at,
            _ => found.push((begin, at)),
        }
        from = at + 1;
    }
}

/// Whether a name that begins there is one of those, which are sorted.
fn are_in(names: &[Range], begin: usize) -> bool {
    let next = names.partition_point(|(first, _)| *first <= begin);
    next.checked_sub(1).is_some_and(|number| begin <= names[number].1)
}

/// `program::module::NAME`, from the compiler's name for the variable.
fn readable(symbol: &str) -> String {
    let name = format!("{:#}", rustc_demangle::demangle(symbol));
    let end = name.find("::{").unwrap_or(name.len());
    name[..end].to_owned()
}

fn is_a_librarys(name: &str) -> bool {
    // `<std::hash::RandomState>::new::KEYS` is in `std`, too.
    let name = name.trim_start_matches('<');
    let first = name.split("::").next().unwrap_or_default();
    LIBRARIES.contains(&first)
        || OF_C_LIBRARIES.iter().any(|start| name.starts_with(start))
        || name == "recurse"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::atomic::Ordering::Relaxed;

    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(1) };
    }

    #[test]
    fn libraries_keep_their_variables_to_themselves() {
        for name in [
            "std::thread::current::CURRENT",
            "<std::hash::RandomState>::new::KEYS",
            "gk_jbufs",
            "recurse",
        ] {
            assert!(is_a_librarys(name), "{name}");
        }
        for name in ["program::NUMBERS", "standard::X", "<program::A as std::B>::c::KEYS"] {
            assert!(!is_a_librarys(name), "{name}");
        }
    }

    /// The offset of the test's variable with this name.
    fn offset(all: &[Variable], of: &str) -> usize {
        let all: Vec<_> = all.iter().filter(|v| v.name().ends_with(of)).collect();
        assert_eq!(all.len(), 1, "{of}: {all:?}");
        all[0].start
    }

    #[test]
    fn names_with_a_part_are_found_wherever_they_begin() {
        let names = b"\0one\0a_part\0part_of_part\0PART\0apar\0part";
        let found = names_with("part", names);
        let begins: Vec<usize> = (0..names.len()).filter(|begin| are_in(&found, *begin)).collect();
        let has = |begin: &usize| {
            let name = names[*begin..].split(|byte| *byte == 0).next().expect("a first piece");
            name.windows(4).any(|piece| piece == b"part")
        };
        assert_eq!(begins, (0..names.len()).filter(has).collect::<Vec<usize>>());
        assert!(names_with("parting", names).is_empty() && !are_in(&[], 3));
    }

    const EVERYWHERE: [Range; 1] = [(0, usize::MAX)];

    #[test]
    fn a_static_is_known_by_its_name() {
        static LOCKED: std::sync::Mutex<u64> = std::sync::Mutex::new(1);
        static SHORT: std::sync::atomic::AtomicU16 = std::sync::atomic::AtomicU16::new(1);
        *LOCKED.lock().expect("no panic") += u64::from(SHORT.load(Relaxed));
        let known = Variables::read(&EVERYWHERE);
        let statics = known.statics.as_ref().expect("a test has a table of symbols");
        assert!(!statics.iter().any(|v| v.name().ends_with("SHORT")), "no lock");
        let of_this_crate = offset(statics, "is_known_by_its_name::LOCKED");
        assert_eq!(known.of_static(of_this_crate), None);
        let stdout = known.of_static(offset(statics, "io::stdio::STDOUT"));
        assert_eq!(stdout, Some("std::io::stdio::STDOUT"));
        let read_only = Variables::read(&[]);
        assert!(read_only.statics.is_none(), "{read_only:?}");
    }

    #[test]
    fn a_variable_is_known_by_its_name() {
        // Nothing would be left of a variable that nobody reads.
        NUMBER.with(|number| std::hint::black_box(number).set(2));
        let known = Variables::read(&EVERYWHERE);
        let all = known.thread_locals.as_ref().expect("a test has a table of symbols");
        let number = offset(all, "variables::tests::NUMBER");
        assert_eq!(known.thread_local(number + 7), None, "it is of this crate");
        let nowhere = all.iter().map(|v| v.end).max().expect("there are some");
        assert_eq!(known.thread_local(nowhere), Some(""));
    }
}
