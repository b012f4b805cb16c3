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
    /// Those of the program itself, and by how much its addresses differ from those in its file.
    statics_of_program: Vec<Range>,
    bias: usize,
    /// Those with their first values in the program's file, and where these are in it; others begin as
    /// zero.
    first_values: Vec<(Range, u64)>,
    /// Its machine code.
    code_of_program: Vec<Range>,
    /// Where the program's thread-locals begin, and those of the system's libraries.
    of_program: usize,
    of_system: Vec<usize>,
    /// How many objects have been loaded and unloaded.
    loaded: (u64, u64),
}

/// What is known of the program, which does not change. It takes some milliseconds to read.
static PROGRAM: OnceLock<ProgramImage> = OnceLock::new();

/// What the program's files and code say of its variables.
#[derive(Debug)]
struct ProgramImage {
    variables: Variables,
    /// The statics that it locks by their address, by name.
    locks: Vec<(usize, Form, &'static str)>,
}

/// Reads what is known of the program, so that processes that are forked from this one need not. What
/// `main` has locked now no rank will ever have taken.
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
    /// Looks again, if objects have been loaded or unloaded.
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

    /// The name of the program's static at an address, or empty; nothing where it is none that the
    /// program may lock.
    pub(super) fn static_at(&self, address: usize) -> Option<&'static str> {
        self.program().variables.of_static(address - self.bias)
    }

    /// The name, or nothing in its place, of a lock in a static of the program that somebody has taken:
    /// a thread, or a rank, whose stack need not have a word of it.
    pub(super) fn taken_lock(&self) -> Option<&'static str> {
        let mut locks = self.program().locks.iter();
        // SAFETY: in statics of the program, at addresses that its own code has.
        locks.find(|(at, form, _)| unsafe { form.is_taken(*at) }).map(|(.., name)| *name)
    }

    /// Whether the program has locks of `parking_lot`'s.
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

    /// What the program's code gives, among its statics, to functions that lock.
    fn given_locks(&self, locking: &[(usize, Form)]) -> Vec<(usize, Form)> {
        if !code::IS_KNOWN || locking.is_empty() {
            return Vec::new();
        }
        code::arguments(&self.segments(), locking, &self.statics_of_program)
    }

    /// What the program's code locks among its statics, those of libraries, too.
    fn lock_words(&self) -> Vec<usize> {
        if !code::IS_KNOWN || self.statics_of_program.is_empty() {
            return Vec::new();
        }
        let mut found = code::locks(&self.segments(), &self.statics_of_program);
        let program = File::open("/proc/self/exe").ok();
        found.retain(|at| self.is_zero_at_first(program.as_ref(), *at));
        found
    }

    /// The program's code, with where it lies.
    fn segments(&self) -> Vec<(usize, &'static [u8])> {
        let segments = self.code_of_program.iter().map(|(start, end)| {
            // SAFETY: a segment of the program that can be read and that nobody writes.
            (*start, unsafe { std::slice::from_raw_parts(*start as *const u8, end - start) })
        });
        segments.collect()
    }

    /// Whether a word in a static of the program is zero before the program begins, so far as can be
    /// read. Locks are; an atomic variable with other numbers may have another meaning, such as "not yet
    /// filled".
    fn is_zero_at_first(&self, program: Option<&File>, at: usize) -> bool {
        let known = self.first_values.iter().find(|((start, end), _)| (*start..*end).contains(&at));
        let (Some(program), Some(((start, _), offset))) = (program, known) else { return true };
        let mut word = [0; size_of::<u32>()];
        let read = program.read_exact_at(&mut word, offset + (at - start) as u64);
        read.is_err() || word == [0; size_of::<u32>()]
    }

    /// The name of the thread-local variable at an address, in the storage that begins at `start`,
    /// or empty; nothing where nobody can have borrowed it.
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

/// Memory that is executed, and that can be read.
const CODE: u32 = libc::PF_X | libc::PF_R;

/// # Safety
/// Called by `dl_iterate_phdr`, which was given roots that nobody else uses.
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
    /// One after that which the test names itself: a lock; what is only exchanged; what is not free at
    /// first.
    static WORDS: [AtomicU32; 4] =
        [AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(1)];

    /// What the compiler makes of a lock and of atomic variables where it optimises.
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

    /// It depends on how the compiler and the standard library make locks.
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
