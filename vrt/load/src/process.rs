//! The process's own symbols and libraries, and the files of these libraries.

use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::elf::{ENDIAN, Symbol};
use crate::objects::{find_object, for_each_object};

/// The version of the symbols that the parts of glibc use among themselves.
pub(crate) const PRIVATE_VERSION: &[u8] = b"GLIBC_PRIVATE";

/// Whether a library of images must be the very file that the process uses, if it uses one: the
/// parts of glibc fit only their own loader, of which the process has one.
pub(crate) fn must_be_its_own(library: &str) -> bool {
    library.starts_with("libc.so")
}

/// Whether the name is that of the system's loader.
pub(crate) fn is_loader(library: &str) -> bool {
    library.starts_with("ld-linux")
}

/// The address of a symbol of the process.
pub(crate) fn symbol(name: &[u8], version: Option<&[u8]>) -> Option<usize> {
    let name = CString::new(name).ok()?;
    let Some(version) = version else {
        return address(|| {
            // SAFETY: a string that ends with zero.
            unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
        });
    };
    let version = CString::new(version).ok()?;
    let versioned = address(|| {
        // SAFETY: strings that end with zero.
        unsafe { libc::dlvsym(libc::RTLD_DEFAULT, name.as_ptr(), version.as_ptr()) }
    });
    // A library without versions serves references of any version; `dlvsym` does not look there.
    versioned.or_else(|| symbol(name.as_bytes(), None).filter(|found| is_without_versions(*found)))
}

/// The result of a lookup; a symbol's value can be zero, but then its address is never needed.
fn address(look_up: impl FnOnce() -> *mut c_void) -> Option<usize> {
    let found = look_up() as usize;
    (found != 0).then_some(found)
}

/// The public part of the system loader's record of a library.
#[repr(C)]
struct LinkMap {
    bias: usize,
    name: *const libc::c_char,
    dynamic: *const [usize; 2],
}

unsafe extern "C" {
    fn dladdr1(
        address: *const c_void,
        info: *mut libc::Dl_info,
        extra: *mut *mut c_void,
        flags: c_int,
    ) -> c_int;
}
const RTLD_DL_SYMENT: c_int = 1;
const RTLD_DL_LINKMAP: c_int = 2;

/// The system loader's description of an address; null if it has none.
fn described(address: usize, what: c_int) -> *mut c_void {
    let mut extra: *mut c_void = std::ptr::null_mut();
    // SAFETY: plain numbers, which the function sets.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: pointers to locals of the right types.
    let known = unsafe { dladdr1(address as *const c_void, &mut info, &mut extra, what) };
    if known == 0 { std::ptr::null_mut() } else { extra }
}

/// The file name of the library that contains this address; `None` for the program.
pub(crate) fn library_at(address: usize) -> Option<String> {
    let map = described(address, RTLD_DL_LINKMAP).cast::<LinkMap>();
    if map.is_null() {
        return None;
    }
    // SAFETY: the loader's own description of a library that stays loaded.
    let name = unsafe { (*map).name };
    if name.is_null() {
        return None;
    }
    // SAFETY: the loader's own string, which ends with zero.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let file = Path::new(OsStr::from_bytes(name)).file_name()?;
    Some(file.to_string_lossy().into_owned())
}

/// Whether the library that contains this address has no symbol versions.
fn is_without_versions(address: usize) -> bool {
    let map = described(address, RTLD_DL_LINKMAP).cast::<LinkMap>();
    if map.is_null() {
        return false;
    }
    // SAFETY: the loader's own description of a library that stays loaded; its dynamic section ends
    // with a zero tag.
    unsafe {
        let mut entry = (*map).dynamic;
        while !entry.is_null() && (*entry)[0] != 0 {
            if (*entry)[0] == object::elf::DT_VERSYM as usize {
                return false;
            }
            entry = entry.add(1);
        }
    }
    true
}

/// The length of a variable of the process, if a symbol gives it.
pub(crate) fn len_of(address: usize) -> Option<usize> {
    let symbol = described(address, RTLD_DL_SYMENT).cast::<Symbol>();
    // SAFETY: a symbol of a library that stays loaded.
    (!symbol.is_null()).then(|| unsafe { (*symbol).st_size.get(ENDIAN) as usize })
}

/// Loads a library for the process, so that [`symbol`] finds its symbols; the error is the message
/// of the system's loader.
pub(crate) fn load(library: &Path) -> Result<(), String> {
    let name = CString::new(library.as_os_str().as_bytes());
    let name = name.map_err(|_| "its name has a zero byte".to_string())?;
    // SAFETY: a string that ends with zero. Constructors of the library run, as the caller wants.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if !handle.is_null() {
        return Ok(());
    }
    // SAFETY: the string lives until the next call of this thread.
    let message = unsafe {
        let message = libc::dlerror();
        if message.is_null() { c"no reason given" } else { CStr::from_ptr(message) }
    };
    Err(message.to_string_lossy().into_owned())
}

/// Whether the process has a library of this name; if so, its symbols are found from now on.
pub(crate) fn has(library: &str) -> bool {
    let Ok(name) = CString::new(library) else { return false };
    let flags = libc::RTLD_NOW | libc::RTLD_GLOBAL | libc::RTLD_NOLOAD;
    // SAFETY: a string that ends with zero; nothing is loaded.
    !unsafe { libc::dlopen(name.as_ptr(), flags) }.is_null()
}

/// The names of the files of all libraries that the process has.
pub(crate) fn libraries() -> Vec<String> {
    let mut all = Vec::new();
    for_each_object(|object| {
        let file = Path::new(OsStr::from_bytes(object.path().to_bytes())).file_name();
        all.extend(file.map(|file| file.to_string_lossy().into_owned()));
    });
    all
}

/// The file of a library that the process has loaded, by the file's name.
pub(crate) fn file_of(library: &str) -> Option<PathBuf> {
    find_object(|object| {
        let path = Path::new(OsStr::from_bytes(object.path().to_bytes()));
        (path.file_name() == Some(OsStr::new(library))).then(|| path.to_path_buf())
    })
}
