//! What all images have in common, and how one is made at an address.

use std::io;

use crate::file::MappedFile;
use crate::layout::{Code, Layout};
use crate::memory::Template;
use crate::thread_block::ThreadBlock;
use crate::thread_pointer;

/// The shape of images.
pub(crate) struct Shape {
    pub layout: Layout,
    pub block: ThreadBlock,
    /// The offset of the thread pointer.
    pub thread_pointer: usize,
    /// Bytes of an image, whole pages.
    pub len: usize,
    /// The initial data.
    pub template: Template,
}

impl Shape {
    /// Maps the code of an image from the files.
    ///
    /// # Safety
    /// `[base, base + len)` is the caller's, and `base` aligned as the layout says. What is mapped
    /// where code goes is replaced.
    pub unsafe fn map_code(&self, files: &[MappedFile], base: usize) -> io::Result<()> {
        for Code { offset, len, module, file_offset } in self.layout.code.iter().copied() {
            // SAFETY: a part of the caller's range.
            let mapping = unsafe {
                libc::mmap(
                    (base + offset) as *mut libc::c_void,
                    len,
                    libc::PROT_READ | libc::PROT_EXEC,
                    libc::MAP_PRIVATE | libc::MAP_FIXED,
                    files[module].descriptor(),
                    file_offset as libc::off_t,
                )
            };
            if mapping == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// Copies the code of an image.
    ///
    /// # Safety
    /// `[base, base + len)` is the caller's, writable, and `base` aligned as the layout says.
    pub unsafe fn copy_code(&self, files: &[MappedFile], base: usize) {
        for code in &self.layout.code_content {
            let bytes = &files[code.module].bytes()[code.in_file.clone()];
            // SAFETY: a part of the caller's range.
            unsafe {
                let to = (base + code.offset) as *mut u8;
                to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
        }
    }

    /// Writes the data of an image, with its thread block.
    ///
    /// # Safety
    /// `[base, base + len)` is the caller's, its data pages are writable and zero, and `base` is
    /// aligned as the layout says.
    pub unsafe fn fill(&self, base: usize) {
        // SAFETY: as the caller promises; the calling thread does not end meanwhile.
        unsafe {
            self.template.write(base, base);
            self.block.fill(base, base + self.thread_pointer, thread_pointer::get());
        }
    }
}
