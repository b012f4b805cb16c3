//! A file that stays open and mapped for reading as long as it is referred to.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr;

use crate::LoadError;

/// A file with its bytes.
///
/// They are a private mapping, so a file that is truncated meanwhile causes `SIGBUS`, as when the
/// system runs a program.
pub(crate) struct MappedFile {
    path: PathBuf,
    file: File,
    /// Device and inode number, which are equal for two names of the same file.
    identity: (u64, u64),
    start: *const u8,
    len: usize,
}

// SAFETY: the mapping is never written, and belongs to the value alone.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Opens a file and maps it.
    pub(crate) fn open(path: &Path) -> Result<MappedFile, LoadError> {
        let failed = |action| {
            move |source: io::Error| LoadError::Io { path: path.to_path_buf(), action, source }
        };
        let file = File::open(path).map_err(failed("open it"))?;
        let metadata = file.metadata().map_err(failed("ask for its length"))?;
        if !metadata.is_file() {
            return Err(LoadError::NotElf { path: path.to_path_buf() });
        }
        let len = metadata.len() as usize;
        let mut start = ptr::null();
        if len > 0 {
            // SAFETY: a new mapping at an address of the system's choice.
            let mapping = unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    len,
                    libc::PROT_READ,
                    libc::MAP_PRIVATE,
                    file.as_raw_fd(),
                    0,
                )
            };
            if mapping == libc::MAP_FAILED {
                return Err(failed("map it")(io::Error::last_os_error()));
            }
            start = mapping.cast_const().cast();
        }
        let identity = (metadata.dev(), metadata.ino());
        Ok(MappedFile { path: path.to_path_buf(), file, identity, start, len })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn identity(&self) -> (u64, u64) {
        self.identity
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the mapping has this length, lives as long as `self`, and is never written.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: the mapping that `open` made; nobody refers to it any more.
            unsafe { libc::munmap(self.start.cast_mut().cast(), self.len) };
        }
    }
}
