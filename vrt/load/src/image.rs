//! What all images have in common, and how one is created at an address.

use std::io;
use std::ops::Range;

use crate::file::MappedFile;
use crate::layout::{Code, Content, Layout, PAGE, joined};
use crate::memory::{Template, pages_of};
use crate::thread_block::ThreadBlock;
use crate::thread_pointer;

/// The pages that creating an image writes.
pub(crate) struct Written {
    /// Without code.
    pub data: Vec<Range<usize>>,
    /// With code that is copied.
    pub all: Vec<Range<usize>>,
}

/// Asks the system for the pages of an image at `base`. (A system without this request provides them when they are
/// written.)
pub(crate) fn populate(pages: &[Range<usize>], base: usize) {
    for pages in pages.iter().filter(|pages| pages.len() > PAGE) {
        let start = (base + pages.start) as *mut libc::c_void;
        // SAFETY: no content is changed, and what is not mapped for writing is refused.
        unsafe { libc::madvise(start, pages.len(), libc::MADV_POPULATE_WRITE) };
    }
}

/// The shape of images.
pub(crate) struct Shape {
    pub layout: Layout,
    pub block: ThreadBlock,
    /// The offset of the thread pointer.
    pub thread_pointer: usize,
    /// Bytes of an image: whole pages.
    pub len: usize,
    /// The initial data.
    pub template: Template,
}

impl Shape {
    /// Maps the code of an image from the files.
    ///
    /// # Safety
    /// `[base, base + len)` belongs to the caller, and `base` is aligned as the layout requires. Anything mapped where
    /// code goes is replaced.
    pub(crate) unsafe fn map_code(&self, files: &[MappedFile], base: usize) -> io::Result<()> {
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
    /// `[base, base + len)` belongs to the caller, is writable, and `base` is aligned as the layout requires.
    pub(crate) unsafe fn copy_code(&self, files: &[MappedFile], base: usize) {
        for code in &self.layout.code_content {
            let bytes = &files[code.module].bytes()[code.in_file.clone()];
            // SAFETY: a part of the caller's range.
            unsafe {
                let to = (base + code.offset) as *mut u8;
                to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
        }
    }

    /// The pages that creating an image writes, without and with its code, in ascending order.
    pub(crate) fn written(&self) -> Written {
        let of_code =
            |content: &Content| pages_of(content.offset..content.offset + content.in_file.len());
        let data = self.template.pages().chain(self.block.pages(self.thread_pointer));
        let data: Vec<_> = data.collect();
        let mut all: Vec<_> = self.layout.code_content.iter().map(of_code).collect();
        all.extend_from_slice(&data);
        Written { data: joined(data), all: joined(all) }
    }

    /// Writes the data of an image, with its thread block.
    ///
    /// # Safety
    /// `[base, base + len)` belongs to the caller, its data pages are writable and zero, and `base` is aligned as the
    /// layout requires.
    pub(crate) unsafe fn fill(&self, base: usize) {
        // SAFETY: as the caller promises; the calling thread does not end meanwhile.
        unsafe {
            self.template.write(base, base);
            self.block.fill(base, base + self.thread_pointer, thread_pointer::get());
        }
    }
}
