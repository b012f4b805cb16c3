//! The memory of statics, and of the calling thread's thread-local variables.

use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use crate::search::locks::Form;
use crate::search::variables::Variables;
use crate::search::{Range, code};

/// Writable memory of the program and its libraries.
#[derive(Debug, Default)]
pub(super) struct Roots {
    statics: Vec<Range>,
    thread_locals: Vec<Range>,
    /// The statics of the program itself, and the difference between its addresses and those in its file.
    statics_of_program: Vec<Range>,
    bias: usize,
    /// Statics with initial values in the program's file, and the positions of these; others begin as zero.
    first_values: Vec<(Range, u64)>,
    /// Its machine code.
    code_of_program: Vec<Range>,
    /// The addresses of the program's thread-locals, and of those of the system's libraries.
    of_program: usize,
    of_system: Vec<usize>,
    /// Number of objects loaded and unloaded.
    loaded: (u64, u64),
}

/// Constant data about the program. It takes a few milliseconds to read.
static PROGRAM: OnceLock<ProgramImage> = OnceLock::new();

/// Data about the program's variables from its files and code.
#[derive(Debug)]
struct ProgramImage {
    variables: Variables,
    /// The statics that it locks by their address, by name.
    locks: Vec<(usize, Form, &'static str)>,
}

/// Reads the data about the program, so that processes forked from this one need not do so. Locks held by `main` now
/// will never have been taken by a rank.
pub(super) fn prepare() {
    let mut roots = Roots::default();
    roots.refresh();
    PROGRAM.get_or_init(|| {
        let mut program = roots.read_program();
        // SAFETY: as in `taken_lock`.
        program.locks.retain(|(at, form, _)| !unsafe { form.is_taken(*at) });
        program
    });
}

impl Roots {
    /// Updates the ranges, if objects have been loaded or unloaded.
    pub(super) fn refresh(&mut self) {
        let mut loaded = (0, 0);
        // SAFETY: the pair, which `count` writes to, outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(count), (&raw mut loaded).cast()) };
        if loaded != self.loaded {
            *self = Roots { loaded, ..Roots::default() };
            // SAFETY: `add` gets these roots, which nobody else uses meanwhile.
            unsafe { libc::dl_iterate_phdr(Some(add), std::ptr::from_mut(self).cast()) };
        }
    }

    pub(super) fn statics(&self) -> impl Iterator<Item = Range> + '_ {
        self.statics.iter().copied()
    }

    pub(super) fn thread_locals(&self) -> impl Iterator<Item = Range> + '_ {
        self.thread_locals.iter().copied()
    }

    /// Whether an address is that of a writable static of the program.
    pub(super) fn is_static(&self, address: usize) -> bool {
        self.statics_of_program.iter().any(|(start, end)| (*start..*end).contains(&address))
    }

    /// The name of the program's static at an address, or empty; `None` if it is not one that the program may lock.
    pub(super) fn static_at(&self, address: usize) -> Option<&'static str> {
        self.program().variables.of_static(address - self.bias)
    }

    /// The name, or an empty one, of a taken lock in a static of the program: a thread may hold it, or a rank, whose
    /// stack need not have a word of it.
    pub(super) fn taken_lock(&self) -> Option<&'static str> {
        let mut locks = self.program().locks.iter();
        // SAFETY: in statics of the program, at addresses that its own code has.
        locks.find(|(at, form, _)| unsafe { form.is_taken(*at) }).map(|(.., name)| *name)
    }

    /// Whether the program contains locks of `parking_lot`.
    pub(super) fn has_parking_lot(&self) -> bool {
        !self.program().variables.locking.is_empty()
    }

    fn program(&self) -> &'static ProgramImage {
        PROGRAM.get_or_init(|| self.read_program())
    }

    fn read_program(&self) -> ProgramImage {
        let in_file = |(start, end): &Range| (start - self.bias, end - self.bias);
        let writable: Vec<Range> = self.statics_of_program.iter().map(in_file).collect();
        let variables = Variables::read(&writable);
        let named = |(at, form)| Some((at, form, variables.of_static(at - self.bias)?));
        let in_memory = |(at, form): &(usize, Form)| (at + self.bias, *form);
        let locking: Vec<(usize, Form)> = variables.locking.iter().map(in_memory).collect();
        let words = self.lock_words().into_iter().map(|at| (at, Form::Word));
        let others = self.given_locks(&locking).into_iter();
        let locks = words.chain(others).filter_map(named).collect();
        ProgramImage { variables, locks }
    }

    /// The statics that the program's code passes to functions that lock.
    fn given_locks(&self, locking: &[(usize, Form)]) -> Vec<(usize, Form)> {
        if !code::IS_KNOWN || locking.is_empty() {
            return Vec::new();
        }
        code::arguments(&self.segments(), locking, &self.statics_of_program)
    }

    /// The statics that the program's code, including that of libraries, locks.
    fn lock_words(&self) -> Vec<usize> {
        if !code::IS_KNOWN || self.statics_of_program.is_empty() {
            return Vec::new();
        }
        let mut found = code::locks(&self.segments(), &self.statics_of_program);
        let program = File::open("/proc/self/exe").ok();
        found.retain(|at| self.is_zero_at_first(program.as_ref(), *at));
        found
    }

    /// The program's code, with its addresses.
    fn segments(&self) -> Vec<(usize, &'static [u8])> {
        let segments = self.code_of_program.iter().map(|(start, end)| {
            // SAFETY: a segment of the program that can be read and that nobody writes.
            (*start, unsafe { std::slice::from_raw_parts(*start as *const u8, end - start) })
        });
        segments.collect()
    }

    /// Whether a word in a static of the program is zero before the program begins, as far as this can be read. Locks
    /// are; an atomic variable with another initial value may have another meaning, such as "not yet filled".
    fn is_zero_at_first(&self, program: Option<&File>, at: usize) -> bool {
        let known = self.first_values.iter().find(|((start, end), _)| (*start..*end).contains(&at));
        let (Some(program), Some(((start, _), offset))) = (program, known) else { return true };
        let mut word = [0; size_of::<u32>()];
        let read = program.read_exact_at(&mut word, offset + (at - start) as u64);
        read.is_err() || word == [0; size_of::<u32>()]
    }

    /// The name of the thread-local variable at an address, in the storage that begins at `start`, or empty; `None` if
    /// it cannot be borrowed.
    pub(super) fn thread_local(&self, start: usize, address: usize) -> Option<&'static str> {
        if start != self.of_program {
            // The system's libraries do not call a rank while they use theirs.
            return (!self.of_system.contains(&start)).then_some("of a library");
        }
        self.program().variables.thread_local(address - start)
    }
}

/// # Safety
/// Called by `dl_iterate_phdr`, which was given a pair of numbers.
unsafe extern "C" fn count(
    object: *mut libc::dl_phdr_info,
    _: usize,
    loaded: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid description; `refresh` passes the pair.
    unsafe { *loaded.cast::<(u64, u64)>() = ((*object).dlpi_adds, (*object).dlpi_subs) };
    1
}

/// Memory that is executable and readable.
const CODE: u32 = libc::PF_X | libc::PF_R;

/// # Safety
/// Called by `dl_iterate_phdr`, with roots that nothing else uses.
unsafe extern "C" fn add(object: *mut libc::dl_phdr_info, _: usize, roots: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid description of an object, with its table of headers;
    // `refresh` passes the roots.
    unsafe {
        let object = &*object;
        let roots = &mut *roots.cast::<Roots>();
        let headers = (0..usize::from(object.dlpi_phnum)).map(|i| &*object.dlpi_phdr.add(i));
        let range = |header: &libc::Elf64_Phdr| {
            let start = object.dlpi_addr as usize + header.p_vaddr as usize;
            (start, start + header.p_memsz as usize)
        };
        // Written only by the loader, before the program began.
        let constant =
            headers.clone().find(|header| header.p_type == libc::PT_GNU_RELRO).map(range);
        let is_program = CStr::from_ptr(object.dlpi_name).is_empty();
        if is_program {
            roots.bias = object.dlpi_addr as usize;
        }
        let before = roots.statics.len();
        for header in headers {
            let (start, end) = range(header);
            let has_values = header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0;
            if is_program && has_values {
                let end = start + header.p_filesz as usize;
                roots.first_values.push(((start, end), header.p_offset));
            }
            match header.p_type {
                libc::PT_LOAD if header.p_flags & libc::PF_W != 0 => match constant {
                    Some((first, last)) if (start..end).contains(&first) => {
                        roots.statics.extend([(start, first), (last.min(end), end)]);
                    }
                    _ => roots.statics.push((start, end)),
                },
                libc::PT_LOAD if is_program && header.p_flags & CODE == CODE => {
                    roots.code_of_program.push((start, end));
                }
                libc::PT_TLS if !object.dlpi_tls_data.is_null() => {
                    let start = object.dlpi_tls_data as usize;
                    match CStr::from_ptr(object.dlpi_name).to_bytes() {
                        b"" => roots.of_program = start,
                        path if path.starts_with(b"/lib") || path.starts_with(b"/usr/lib") => {
                            roots.of_system.push(start);
                        }
                        _ => {}
                    }
                    roots.thread_locals.push((start, start + header.p_memsz as usize));
                }
                _ => {}
            }
        }
        if is_program {
            roots.statics_of_program.extend_from_slice(&roots.statics[before..]);
        }
    }
    0
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::arch::asm;
    use std::sync::atomic::AtomicU32;
    use std::sync::{Mutex, RwLock};

    use super::*;

    static MUTEX: Mutex<u64> = Mutex::new(0);
    static LOCK: RwLock<u64> = RwLock::new(0);
    /// In order: one that the test names itself; a lock; one that is only exchanged; one that is not free at first.
    static WORDS: [AtomicU32; 4] =
        [AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(1)];

    /// The compiler's code for a lock and for atomic variables, if it optimises.
    fn exchange() {
        // SAFETY: the instructions change the static, atomically, and the registers that are named.
        unsafe {
            asm!(
                "lock cmpxchg dword ptr [rip + {words} + 4], {one:e}",
                "lock cmpxchg dword ptr [rip + {words} + 8], {one:e}",
                "lock cmpxchg dword ptr [rip + {words} + 12], {one:e}",
                "lea {given}, [rip + {words} + 4]",
                "lea {given}, [rip + {words} + 12]",
                words = sym WORDS,
                one = in(reg) 1,
                given = out(reg) _,
                inout("eax") 7 => _,
            );
        }
    }

    /// Depends on how the compiler and the standard library implement locks.
    #[test]
    fn locks_are_found_in_the_code_of_the_program() {
        *MUTEX.lock().unwrap() += *LOCK.read().unwrap();
        *LOCK.write().unwrap() += *MUTEX.try_lock().unwrap();
        let mut roots = Roots::default();
        roots.refresh();
        let found = roots.lock_words();
        exchange();
        let words = std::hint::black_box((&raw const WORDS).addr());
        assert_eq!([4, 8, 12].map(|at| found.contains(&(words + at))), [true, false, false]);
        // Otherwise a function locks it that is given its address.
        if !cfg!(debug_assertions) {
            assert!(found.contains(&(&raw const MUTEX).addr()), "{found:x?}");
            assert!(found.contains(&(&raw const LOCK).addr()), "{found:x?}");
        }
    }
}
