//! The memory of statics, and of the calling thread's thread-local variables.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use vrt_load::{LoadedObject, for_each_object, of_program};

use super::code;
use super::locks::Form;
use super::variables::Variables;
use super::words::Range;

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
    /// The statics that it locks by their address.
    locks: Vec<KnownLock>,
}

/// A lock in a static of the program, with its name or an empty one.
#[derive(Debug)]
struct KnownLock {
    at: usize,
    form: Form,
    name: &'static str,
}

impl KnownLock {
    fn is_taken(&self) -> bool {
        // SAFETY: `read_program` has found it in a static of the program, whose code has its address as that of such a
        // lock.
        unsafe { self.form.is_taken(self.at) }
    }
}

/// Reads the data about the program, so that processes forked from this one need not do so. Locks held by `main` now
/// will never have been taken by a rank.
pub(super) fn prepare() {
    let mut roots = Roots::default();
    roots.refresh();
    PROGRAM.get_or_init(|| {
        let mut program = roots.read_program();
        program.locks.retain(|lock| !lock.is_taken());
        program
    });
}

impl Roots {
    /// Updates the ranges, if objects have been loaded or unloaded.
    pub(super) fn refresh(&mut self) {
        let loaded = of_program(LoadedObject::changes).unwrap_or_default();
        if loaded != self.loaded {
            *self = Roots { loaded, ..Roots::default() };
            for_each_object(|object| self.add(object));
        }
    }

    /// Adds what an object has.
    fn add(&mut self, object: &LoadedObject) {
        /// Memory that is executable and readable.
        const CODE: u32 = libc::PF_X | libc::PF_R;
        let range = |header: &libc::Elf64_Phdr| {
            let memory = object.memory(header);
            (memory.start, memory.end)
        };
        // Written only by the loader, before the program began.
        let mut headers = object.headers().iter();
        let constant = headers.find(|header| header.p_type == libc::PT_GNU_RELRO).map(range);
        let is_program = object.path().is_empty();
        if is_program {
            self.bias = object.bias();
        }
        let before = self.statics.len();
        for header in object.headers().iter().filter(|header| header.p_type == libc::PT_LOAD) {
            let (start, end) = range(header);
            let is_writable = header.p_flags & libc::PF_W != 0;
            if is_program && is_writable {
                let end = start + header.p_filesz as usize;
                self.first_values.push(((start, end), header.p_offset));
            }
            match constant {
                Some((first, last)) if is_writable && (start..end).contains(&first) => {
                    self.statics.extend([(start, first), (last.min(end), end)]);
                }
                _ if is_writable => self.statics.push((start, end)),
                _ if is_program && header.p_flags & CODE == CODE => {
                    self.code_of_program.push((start, end));
                }
                _ => {}
            }
        }
        if let Some((block, _)) = object.thread_locals() {
            match object.path().to_bytes() {
                b"" => self.of_program = block.start,
                path if path.starts_with(b"/lib") || path.starts_with(b"/usr/lib") => {
                    self.of_system.push(block.start);
                }
                _ => {}
            }
            self.thread_locals.push((block.start, block.end));
        }
        if is_program {
            self.statics_of_program.extend_from_slice(&self.statics[before..]);
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
        self.program().locks.iter().find(|lock| lock.is_taken()).map(|lock| lock.name)
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
        let named =
            |(at, form)| Some(KnownLock { at, form, name: variables.of_static(at - self.bias)? });
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
            // SAFETY: a segment that `add` has seen to be readable and not writable, of the program, which stays loaded.
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
        // SAFETY: the instructions change `WORDS`, atomically, and the registers that are named.
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
