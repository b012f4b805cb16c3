//! Lookups by a rank in its program and libraries, by name or address: `dlopen` and `dlsym`, `dladdr`,
//! `dl_iterate_phdr`, `/proc/self/exe`.
//!
//! The system's loader does not know images. A rank gets handles of the libraries in its image; a library that is not
//! in the image cannot be loaded at run time, as all images are equal: `dlopen` fails, with the reason in `dlerror`.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "addresses in an image that is mapped, and numbers of its modules"
    )
)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::OnceLock;

use vrt_load::{Module, Plan};
use vrt_slot::interpose::Real;
use vrt_slot::{hooks, image, locals, report};

use crate::symbols;

/// The key under which a rank keeps its last error.
const LAST_ERROR: u32 = 4;

/// The file of the program, for programs that look up their own.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets the file of the program.
pub(crate) fn set_program(path: PathBuf) {
    let _: &PathBuf = PROGRAM.get_or_init(|| path);
}

/// The next result of `dlerror`.
#[derive(Default)]
struct LastError {
    text: RefCell<Option<CString>>,
    /// Its last result, which is kept until the next call.
    said: RefCell<Option<CString>>,
}

fn last_error() -> Option<Rc<LastError>> {
    hooks::current_rank()?;
    Some(locals::keep(LAST_ERROR, LastError::default))
}

fn fail(text: String) -> *mut c_void {
    if let Some(last) = last_error() {
        last.text.replace(CString::new(text).ok());
    }
    std::ptr::null_mut()
}

/// The plan, and the address of the calling rank's image.
fn own_image() -> Option<(&'static Plan, usize)> {
    Some((image::plan()?, image::base_of_running()?))
}

unsafe extern "C" fn dlopen(file: *const c_char, _flags: c_int) -> *mut c_void {
    let Some((plan, base)) = own_image() else { return fail("this is no rank".to_owned()) };
    if file.is_null() {
        return base as *mut c_void;
    }
    // SAFETY: the program gives a string.
    let file = unsafe { CStr::from_ptr(file) }.to_string_lossy();
    let name = file.rsplit('/').next().unwrap_or_default();
    let is_it = |module: &&Module| {
        module.name == name
            || module.path.file_name().is_some_and(|of| of.as_bytes() == name.as_bytes())
    };
    if let Some(module) = plan.modules()[1..].iter().find(is_it) {
        return (base + module.span.start) as *mut c_void;
    }
    let rank = hooks::current_rank().unwrap_or_default();
    report::say(format_args!(
        "rank {rank} cannot load {file} (dlopen): the libraries of ranks are loaded before they begin; link \
         the program with it"
    ));
    fail(format!("{file}: a rank cannot load libraries while it runs; link the program with it"))
}

unsafe extern "C" fn dlmopen(_list: isize, file: *const c_char, flags: c_int) -> *mut c_void {
    // SAFETY: as the program promises.
    unsafe { dlopen(file, flags) }
}

unsafe extern "C" fn dlclose(_handle: *mut c_void) -> c_int {
    0
}

unsafe extern "C" fn dlerror() -> *mut c_char {
    let Some(last) = last_error() else { return std::ptr::null_mut() };
    let text = last.text.take();
    let said = text.as_ref().map_or(std::ptr::null_mut(), |text| text.as_ptr().cast_mut());
    last.said.replace(text);
    said
}

unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: the program gives a string.
    let name = unsafe { CStr::from_ptr(name) };
    let text = name.to_str().unwrap_or_default();
    let Some((plan, base)) = own_image() else { return fail("this is no rank".to_owned()) };
    let found = if handle == libc::RTLD_NEXT {
        symbols::provided(text).or_else(|| behind_program(plan, base, text))
    } else if handle == libc::RTLD_DEFAULT || handle as usize == base {
        symbols::provided(text).or_else(|| Some(base + plan.symbol(text)?))
    } else {
        let module = plan.find_module((handle as usize).wrapping_sub(base));
        let Some(module) = module else { return fail("this is no handle of dlopen".to_owned()) };
        symbols::provided(text).or_else(|| Some(base + plan.symbol_in(&module.name, text)?))
    };
    if let Some(address) = found {
        return address as *mut c_void;
    }
    // SAFETY: a string that ends with zero.
    let of_process =
        hooks::runtime_heap(|| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) });
    if of_process.is_null() || is_of_refused_library(of_process) {
        return fail(format!("undefined symbol: {text}"));
    }
    of_process
}

/// Whether an address belongs to a library that only the process has: `vrtrun` may be linked with
/// another MPI.
fn is_of_refused_library(address: *const c_void) -> bool {
    // SAFETY: all zero is a valid description.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: asks only.
    let is_known = hooks::runtime_heap(|| unsafe { libc::dladdr(address, &mut found) }) != 0;
    if !is_known || found.dli_fname.is_null() {
        return false;
    }
    // SAFETY: the loader's string.
    let file = unsafe { CStr::from_ptr(found.dli_fname) }.to_string_lossy();
    refused(file.rsplit('/').next().unwrap_or_default()).is_some()
}

/// Libraries of other MPIs, by the beginnings of their names.
const OTHER_MPIS: [&str; 6] =
    ["libmpi.so", "libmpich", "libmpi_cxx", "libmpi_mpifh", "libmpifort", "libmpicxx"];

/// Libraries that compilers add with `-fsanitize=`: they need a separate process from its beginning on.
const SANITIZERS: [&str; 5] = ["libasan", "libhwasan", "liblsan", "libmsan", "libtsan"];

/// Why a library must not be loaded.
pub(crate) fn refused(name: &str) -> Option<String> {
    if SANITIZERS.iter().any(|prefix| name.starts_with(prefix)) {
        return Some(
            "it checks the memory of a whole process: compile without -fsanitize".to_owned(),
        );
    }
    OTHER_MPIS.iter().any(|prefix| name.starts_with(prefix)).then(|| {
        "it is another MPI's, whose ranks are processes: compile the program again with vrtcc or vrtcxx"
            .to_owned()
    })
}

/// The first definition in a library.
fn behind_program(plan: &Plan, base: usize, name: &str) -> Option<usize> {
    let mut libraries = plan.modules()[1..].iter();
    libraries.find_map(|module| Some(base + plan.symbol_in(&module.name, name)?))
}

unsafe extern "C" fn dlvsym(
    handle: *mut c_void,
    name: *const c_char,
    _version: *const c_char,
) -> *mut c_void {
    // SAFETY: as the program promises.
    unsafe { dlsym(handle, name) }
}

unsafe extern "C" fn dladdr(address: *const c_void, found: *mut libc::Dl_info) -> c_int {
    if let Some((base, module)) = image::module_at(address as usize) {
        let plan = image::plan();
        let symbol = plan.and_then(|plan| plan.symbol_at(address as usize - base));
        // Names stay: a program may ask for as many as it has functions.
        let (name, start) = match &symbol {
            Some((name, offset)) => (kept(name.as_bytes()), (base + offset) as *mut c_void),
            None => (std::ptr::null(), std::ptr::null_mut()),
        };
        // SAFETY: the program gives room for a description.
        unsafe {
            found.write(libc::Dl_info {
                dli_fname: kept(module.path.as_os_str().as_bytes()),
                dli_fbase: (base + module.span.start) as *mut c_void,
                dli_sname: name,
                dli_saddr: start,
            });
        }
        return 1;
    }
    // SAFETY: as the program promises.
    hooks::runtime_heap(|| unsafe { libc::dladdr(address, found) })
}

/// A string that is kept as long as the rank, without duplicates.
fn kept(text: &[u8]) -> *const c_char {
    /// The key under which a rank keeps them.
    const STRINGS: u32 = 5;
    let strings = locals::keep(STRINGS, RefCell::<Vec<CString>>::default);
    let mut strings = strings.borrow_mut();
    let known = strings.iter().position(|known| known.as_bytes() == text);
    let at = known.unwrap_or_else(|| {
        strings.push(CString::new(text).unwrap_or_default());
        strings.len() - 1
    });
    strings[at].as_ptr()
}

type Each = unsafe extern "C" fn(*mut libc::dl_phdr_info, libc::size_t, *mut c_void) -> c_int;

unsafe extern "C" fn dl_iterate_phdr(each: Each, data: *mut c_void) -> c_int {
    if let Some((plan, base)) = own_image() {
        for module in plan.modules() {
            let Some((headers, count)) = module.program_headers else { continue };
            let name = CString::new(module.path.as_os_str().as_bytes()).unwrap_or_default();
            // SAFETY: all zero is a valid description.
            let mut info: libc::dl_phdr_info = unsafe { std::mem::zeroed() };
            info.dlpi_addr = base.wrapping_add(module.bias) as libc::Elf64_Addr;
            info.dlpi_name = name.as_ptr();
            info.dlpi_phdr = (base + headers) as *const libc::Elf64_Phdr;
            info.dlpi_phnum = count as libc::Elf64_Half;
            // SAFETY: the program's own function, with a description of this size.
            let status = unsafe { each(&raw mut info, size_of_val(&info), data) };
            if status != 0 {
                return status;
            }
        }
    }
    type Iterate = unsafe extern "C" fn(Each, *mut c_void) -> c_int;
    static REAL: Real = Real::new(c"dl_iterate_phdr");
    // SAFETY: the loader's function of this name has this type.
    unsafe { std::mem::transmute::<*mut c_void, Iterate>(REAL.of_process())(each, data) }
}

/// Whether a path is a link to the running program.
fn is_own_program(path: *const c_char) -> bool {
    // SAFETY: the program gives a string.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    path == b"/proc/self/exe" || path == format!("/proc/{}/exe", std::process::id()).as_bytes()
}

unsafe extern "C" fn readlinkat(
    at: c_int,
    path: *const c_char,
    to: *mut c_char,
    room: libc::size_t,
) -> libc::ssize_t {
    if !path.is_null()
        && is_own_program(path)
        && let Some(program) = PROGRAM.get()
    {
        let name = program.as_os_str().as_bytes();
        let len = name.len().min(room);
        // SAFETY: the program gives so much room.
        unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), to.cast(), len) };
        return len as libc::ssize_t;
    }
    type Read =
        unsafe extern "C" fn(c_int, *const c_char, *mut c_char, libc::size_t) -> libc::ssize_t;
    static REAL: Real = Real::new(c"readlinkat");
    // SAFETY: libc's function of this name has this type.
    unsafe { std::mem::transmute::<*mut c_void, Read>(REAL.get())(at, path, to, room) }
}

unsafe extern "C" fn readlink(
    path: *const c_char,
    to: *mut c_char,
    room: libc::size_t,
) -> libc::ssize_t {
    // SAFETY: as the program promises.
    unsafe { readlinkat(libc::AT_FDCWD, path, to, room) }
}

/// The variants of these two functions that compilers use, with the size of the buffer as an
/// additional argument.
unsafe extern "C" fn readlink_checked(
    path: *const c_char,
    to: *mut c_char,
    room: libc::size_t,
    size: libc::size_t,
) -> libc::ssize_t {
    // SAFETY: as the program promises.
    unsafe { readlinkat(libc::AT_FDCWD, path, to, room.min(size)) }
}

unsafe extern "C" fn readlinkat_checked(
    at: c_int,
    path: *const c_char,
    to: *mut c_char,
    room: libc::size_t,
    size: libc::size_t,
) -> libc::ssize_t {
    // SAFETY: as the program promises.
    unsafe { readlinkat(at, path, to, room.min(size)) }
}

/// The replacements for libc's functions.
pub(crate) const PROVIDED: &[(&str, *const ())] = &[
    ("dlopen", dlopen as *const ()),
    ("dlmopen", dlmopen as *const ()),
    ("dlclose", dlclose as *const ()),
    ("dlerror", dlerror as *const ()),
    ("dlsym", dlsym as *const ()),
    ("dlvsym", dlvsym as *const ()),
    ("dladdr", dladdr as *const ()),
    ("dl_iterate_phdr", dl_iterate_phdr as *const ()),
    ("readlink", readlink as *const ()),
    ("readlinkat", readlinkat as *const ()),
    ("__readlink_chk", readlink_checked as *const ()),
    ("__readlinkat_chk", readlinkat_checked as *const ()),
];
