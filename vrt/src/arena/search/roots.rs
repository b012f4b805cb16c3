//! The memory of statics, and of the calling thread's thread-local variables.

use std::ffi::{CStr, c_int, c_void};

use crate::arena::search::Range;
use crate::arena::search::variables::Variables;

/// Writable memory of the program and its libraries.
#[derive(Debug, Default)]
pub(super) struct Roots {
    statics: Vec<Range>,
    thread_locals: Vec<Range>,
    /// Those of the program itself, and by how much its addresses differ from those in its file.
    statics_of_program: Vec<Range>,
    bias: usize,
    /// Where the program's thread-locals begin, and those of the system's libraries.
    of_program: usize,
    of_system: Vec<usize>,
    /// Read when they are first asked for.
    variables: Option<Variables>,
    /// How many objects have been loaded and unloaded.
    loaded: (u64, u64),
}

impl Roots {
    /// Looks again, if objects have been loaded or unloaded.
    pub(super) fn refresh(&mut self) {
        let mut loaded = (0, 0);
        // SAFETY: the function below follows the protocol, and the pair outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(count), (&raw mut loaded).cast()) };
        if loaded != self.loaded {
            *self = Roots { loaded, ..Roots::default() };
            // SAFETY: as above.
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
    pub(super) fn static_at(&mut self, address: usize) -> Option<&'static str> {
        let offset = address - self.bias;
        self.variables().of_static(offset)
    }

    /// The name of the thread-local variable at an address, in the storage that begins at `start`,
    /// or empty; nothing where nobody can have borrowed it.
    pub(super) fn thread_local(&mut self, start: usize, address: usize) -> Option<&'static str> {
        if start != self.of_program {
            // The system's libraries do not call a rank while they use theirs.
            return (!self.of_system.contains(&start)).then_some("of a library");
        }
        self.variables().thread_local(address - start)
    }

    fn variables(&mut self) -> &Variables {
        let Roots { variables, statics_of_program, bias, .. } = self;
        variables.get_or_insert_with(|| {
            let in_file = |(start, end): &Range| (start - *bias, end - *bias);
            Variables::read(&statics_of_program.iter().map(in_file).collect::<Vec<_>>())
        })
    }
}

unsafe extern "C" fn count(
    object: *mut libc::dl_phdr_info,
    _: usize,
    loaded: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid description; `refresh` passes the pair.
    unsafe { *loaded.cast::<(u64, u64)>() = ((*object).dlpi_adds, (*object).dlpi_subs) };
    1
}

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
            match header.p_type {
                libc::PT_LOAD if header.p_flags & libc::PF_W != 0 => match constant {
                    Some((first, last)) if (start..end).contains(&first) => {
                        roots.statics.extend([(start, first), (last.min(end), end)]);
                    }
                    _ => roots.statics.push((start, end)),
                },
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
