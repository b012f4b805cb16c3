//! Runs resolvers of indirect functions (IFUNC), which choose the code that suits the processor.
//!
//! They run once, in a scratch image that is complete except for their results, with its thread
//! pointer. They return an address in that image, which yields the offset for every image.
//! Resolvers of dependencies run first, and their results are written at once, as others may call
//! these functions.
//!
//! What they write is kept as well: one of glibc's resolvers only exists to determine the sizes of
//! the processor's caches, on which its `memcpy` relies.

use std::{io, ptr};

use rustc_hash::FxHashMap;

use crate::LoadError;
use crate::file::MappedFile;
use crate::image::Shape;
use crate::layout::PAGE;
use crate::memory::WORD;
use crate::relocate::Relocated;
use crate::thread_pointer;

/// Runs all resolvers; `order` is that of constructors. Returns whether there were any.
pub(crate) fn run(
    shape: &Shape,
    files: &[MappedFile],
    order: &[usize],
    relocated: &mut Relocated,
) -> Result<bool, LoadError> {
    if relocated.resolved.iter().all(Vec::is_empty) {
        return Ok(false);
    }
    let failed = |source| LoadError::Io {
        path: files.first().map(|file| file.path().to_path_buf()).unwrap_or_default(),
        action: "make an image of it, to run the resolvers of its indirect functions",
        source,
    };
    let map = || Scratch::map(shape.len, shape.layout.alignment).map_err(failed);
    let (scratch, before) = (map()?, map()?);
    let base = scratch.base;
    // SAFETY: fresh mappings as long as an image.
    unsafe {
        shape.map_code(files, base).map_err(failed)?;
        shape.fill(base);
        shape.template.write(before.base, base);
    }
    let mut chosen = FxHashMap::default();
    for module in order {
        for word in relocated.resolved[*module].clone() {
            let address = *chosen.entry(word.resolver).or_insert_with(|| {
                // SAFETY: the image is complete, and this its function.
                unsafe { call(base + word.resolver, base + shape.thread_pointer) }
            });
            let in_image = (base..base + shape.len).contains(&address);
            relocated.resolve(&word, if in_image { Ok(address - base) } else { Err(address) });
            for base in [base, before.base] {
                let value = address.wrapping_add_signed(word.addend as isize);
                // SAFETY: a word of the image's data.
                unsafe { ((base + word.at) as *mut usize).write_unaligned(value) };
            }
        }
    }
    keep_written(shape, &scratch, &before, relocated).map_err(failed)?;
    Ok(true)
}

/// Keeps what the resolvers wrote into the data of their image.
fn keep_written(
    shape: &Shape,
    scratch: &Scratch,
    before: &Scratch,
    relocated: &mut Relocated,
) -> io::Result<()> {
    let image = scratch.base..scratch.base + shape.len;
    for page in shape.layout.data.iter().flat_map(|data| data.clone().step_by(PAGE)) {
        // Large arrays that nobody touched stay as they are.
        if !is_present(scratch.base + page)? {
            continue;
        }
        for at in (page..page + PAGE).step_by(WORD) {
            // SAFETY: words of two mappings as long as an image.
            let (was, is) = unsafe {
                let word = |base: usize| ((base + at) as *const usize).read();
                (word(before.base), word(scratch.base))
            };
            if was != is {
                let is = if image.contains(&is) { Ok(is - image.start) } else { Err(is) };
                relocated.write(at, is);
            }
        }
    }
    Ok(())
}

/// Whether a page of this process has memory.
fn is_present(page: usize) -> io::Result<bool> {
    let mut is_present = 0u8;
    // SAFETY: asks about one page, and there is room for the answer.
    match unsafe { libc::mincore(page as *mut libc::c_void, PAGE, &raw mut is_present) } {
        0 => Ok(is_present & 1 != 0),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Calls a resolver with a thread pointer.
///
/// # Safety
/// The function and the thread pointer belong to a complete image.
unsafe fn call(resolver: usize, thread_pointer: usize) -> usize {
    let own = thread_pointer::get();
    // SAFETY: a resolver takes no arguments on x86-64. Nothing of this process runs in between.
    unsafe {
        let resolver = std::mem::transmute::<usize, extern "C" fn() -> usize>(resolver);
        thread_pointer::set(thread_pointer);
        let address = resolver();
        thread_pointer::set(own);
        address
    }
}

/// Memory for one image.
struct Scratch {
    mapping: *mut libc::c_void,
    len: usize,
    base: usize,
}

impl Scratch {
    fn map(len: usize, alignment: usize) -> io::Result<Scratch> {
        let len = len + alignment;
        // SAFETY: a new mapping at an address of the system's choice.
        let mapping = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = (mapping as usize).next_multiple_of(alignment);
        Ok(Scratch { mapping, len, base })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the mapping that `map` made, with what was mapped over it.
        unsafe { libc::munmap(self.mapping, self.len) };
    }
}
