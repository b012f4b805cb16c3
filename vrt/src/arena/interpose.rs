//! libc functions that this crate defines in front of libc's.
//!
//! - Calls that keep memory for the whole process (environment, locale, time zone, resolver,
//!   dynamic loader, thread-local destructors): what they allocate must not lie in
//!   the slot of the rank that happened to call them first, so they run on the process's heap.
//! - `exit`: a rank that exits with 0 has ended; with anything else it ends the job.
//! - `fork`: parent and child would run on one shared stack, so it is refused.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::arena::hooks::runtime_heap;

/// The next definition of a symbol, looked up once.
pub(crate) struct Real {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Real {
    pub(crate) const fn new(name: &'static CStr) -> Real {
        Real { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// The address of libc's function.
    pub(crate) fn get(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: a valid C string; the loader's own allocations belong to the process.
        let found = runtime_heap(|| unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) });
        if found.is_null() {
            crate::launch::crash::say(format_args!("libc has no {:?}", self.name));
            std::process::abort();
        }
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// Defines functions that call libc's own on the process's heap.
macro_rules! on_runtime_heap {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As in C.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            static REAL: Real = Real::new(
                // SAFETY: `concat!` ends the literal with its only NUL.
                unsafe { CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) },
            );
            type Function = unsafe extern "C" fn($($ty),*) -> $ret;
            let real = REAL.get();
            // SAFETY: libc's function of this name has this type; the caller keeps its contract.
            runtime_heap(|| unsafe { std::mem::transmute::<*mut c_void, Function>(real)($($arg),*) })
        }
    )*};
}

on_runtime_heap! {
    /// Environment.
    fn setenv(name: *const c_char, value: *const c_char, overwrite: c_int) -> c_int;
    /// Environment.
    fn unsetenv(name: *const c_char) -> c_int;
    /// Environment.
    fn putenv(string: *mut c_char) -> c_int;
    /// Time zone tables.
    fn tzset() -> ();
    /// Time zone tables.
    fn localtime(time: *const libc::time_t) -> *mut libc::tm;
    /// Time zone tables.
    fn localtime_r(time: *const libc::time_t, out: *mut libc::tm) -> *mut libc::tm;
    /// Time zone tables.
    fn mktime(time: *mut libc::tm) -> libc::time_t;
    /// Locale tables.
    fn setlocale(category: c_int, locale: *const c_char) -> *mut c_char;
    /// Resolver state; the result is freed by `freeaddrinfo`, which goes by address.
    fn getaddrinfo(
        node: *const c_char,
        service: *const c_char,
        hints: *const libc::addrinfo,
        out: *mut *mut libc::addrinfo
    ) -> c_int;
    /// The dynamic loader's tables.
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    /// The dynamic loader's tables.
    fn dlclose(handle: *mut c_void) -> c_int;
    /// The dynamic loader's message buffer.
    fn dlerror() -> *mut c_char;
    /// Name service state.
    fn getpwnam(name: *const c_char) -> *mut libc::passwd;
    /// Name service state.
    fn getpwuid(uid: libc::uid_t) -> *mut libc::passwd;
    /// Name service state.
    fn getgrnam(name: *const c_char) -> *mut libc::group;
    /// Name service state.
    fn getgrgid(gid: libc::gid_t) -> *mut libc::group;
    /// The list of destructors of thread-locals, which belong to the PE's thread.
    fn __cxa_thread_atexit_impl(
        destructor: unsafe extern "C" fn(*mut c_void),
        object: *mut c_void,
        library: *mut c_void
    ) -> c_int;
}

/// C `exit`. In a rank: status 0 ends the rank, any other ends the job with that status.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exit(status: c_int) -> ! {
    crate::arena::exit_guard::abandon_experiment();
    if crate::pe::in_rank() {
        crate::arena::exit_guard::clear();
        crate::rank::exit_rank(status);
    }
    static REAL: Real = Real::new(c"exit");
    // SAFETY: libc's `exit` has this type.
    let real: unsafe extern "C" fn(c_int) -> ! = unsafe { std::mem::transmute(REAL.get()) };
    // SAFETY: as the caller promises.
    unsafe { real(status) }
}

/// POSIX `fork`. In a rank it ends the job with an explanation.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fork() -> libc::pid_t {
    if crate::pe::in_rank() {
        crate::rank::refuse_fork();
    }
    static REAL: Real = Real::new(c"fork");
    // SAFETY: libc's `fork` has this type.
    let real: unsafe extern "C" fn() -> libc::pid_t = unsafe { std::mem::transmute(REAL.get()) };
    // SAFETY: as the caller promises.
    unsafe { real() }
}
