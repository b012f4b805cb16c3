//! The objects that the process itself has loaded: its program and libraries, as the system's loader describes them.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;

/// An object of the process.
#[derive(Debug)]
#[repr(transparent)]
pub struct LoadedObject(libc::dl_phdr_info);

impl LoadedObject {
    /// The path of its file; empty for the program.
    pub fn path(&self) -> &CStr {
        // SAFETY: the loader's own string, which ends with zero.
        if self.0.dlpi_name.is_null() { c"" } else { unsafe { CStr::from_ptr(self.0.dlpi_name) } }
    }

    /// The difference between its addresses in memory and those in its file.
    pub fn bias(&self) -> usize {
        self.0.dlpi_addr as usize
    }

    /// Its segments.
    pub fn headers(&self) -> &[libc::Elf64_Phdr] {
        // SAFETY: the loader's own table of this many headers.
        unsafe { std::slice::from_raw_parts(self.0.dlpi_phdr, usize::from(self.0.dlpi_phnum)) }
    }

    /// The memory of one of its segments.
    pub fn memory(&self, header: &libc::Elf64_Phdr) -> Range<usize> {
        let start = self.bias().wrapping_add(header.p_vaddr as usize);
        start..start + header.p_memsz as usize
    }

    /// The calling thread's copy of its thread-locals, if it has any and the thread has a copy; and their segment.
    pub fn thread_locals(&self) -> Option<(Range<usize>, &libc::Elf64_Phdr)> {
        let start = self.0.dlpi_tls_data as usize;
        let header = self.headers().iter().find(|header| header.p_type == libc::PT_TLS)?;
        (start != 0).then_some((start..start + header.p_memsz as usize, header))
    }

    /// How many objects the process has loaded, and unloaded.
    pub fn changes(&self) -> (u64, u64) {
        (self.0.dlpi_adds, self.0.dlpi_subs)
    }
}

/// Visits the objects of the process, the program first, until the function returns something. It allocates nothing
/// itself.
pub fn find_object<R>(mut visit: impl FnMut(&LoadedObject) -> Option<R>) -> Option<R> {
    type Visit<'a> = &'a mut dyn FnMut(&LoadedObject) -> bool;
    unsafe extern "C" fn each(
        info: *mut libc::dl_phdr_info,
        _len: libc::size_t,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: the pointer that is handed over below, and the loader's own description, which is all that an object is.
        unsafe { c_int::from((*visit.cast::<Visit<'_>>())(&*info.cast::<LoadedObject>())) }
    }
    let mut found = None;
    let mut until_found = |object: &LoadedObject| {
        found = visit(object);
        found.is_some()
    };
    let mut visit: Visit<'_> = &mut until_found;
    // SAFETY: the function takes exactly this pointer, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut visit).cast()) };
    found
}

/// Visits all objects of the process, the program first.
pub fn for_each_object(mut visit: impl FnMut(&LoadedObject)) {
    find_object(|object| {
        visit(object);
        None::<()>
    });
}

/// The result of a function for the program.
pub fn of_program<R>(ask: impl Fn(&LoadedObject) -> R) -> Option<R> {
    find_object(|program| Some(ask(program)))
}
