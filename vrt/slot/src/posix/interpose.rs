//! The mechanism of interposing functions in front of libc's; [`calls`](crate::calls) has these functions.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::heap_word::runtime_heap;
use crate::{image, outside};

/// A function that is interposed in front of libc's.
#[derive(Clone, Copy, Debug)]
pub struct InFront {
    /// Its name.
    pub name: &'static str,
    /// What it does in addition to libc's function.
    pub meaning: &'static str,
    /// Its address.
    pub address: *const (),
}

// SAFETY: the address is that of a function, of which nothing is changed.
unsafe impl Sync for InFront {}

/// libc's function of a name, as a pointer to a function of a type: what [`Real::get`] finds, or, after `of_process`,
/// what [`Real::of_process`] does.
macro_rules! real {
    ($name:expr, $type:ty) => {
        $crate::posix::interpose::real!(get $name, $type)
    };
    ($which:ident $name:expr, $type:ty) => {{
        static REAL: $crate::posix::interpose::Real = $crate::posix::interpose::Real::new($name);
        #[allow(unused_unsafe, reason = "it may be called at once, in an unsafe block")]
        // SAFETY: a pointer to a function that only an unsafe call uses, for which S4 gives it this type.
        let function = unsafe { std::mem::transmute::<*mut std::ffi::c_void, $type>(REAL.$which()) };
        function
    }};
}
pub(crate) use real;

/// A name for C, from one that ends with a NUL.
pub(crate) const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name ends with its only NUL"),
    }
}

/// The next definition of a symbol, looked up once: libc's, or that of the rank's own libc.
pub struct Real {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
    /// Its position in an image, or one of the two values below.
    offset: AtomicUsize,
}

/// It has not been looked up.
const UNKNOWN: usize = 0;
/// The image does not contain it.
const NONE: usize = 1;

impl Real {
    /// For this name.
    pub const fn new(name: &'static CStr) -> Real {
        let address = AtomicPtr::new(std::ptr::null_mut());
        Real { name, address, offset: AtomicUsize::new(UNKNOWN) }
    }

    /// The address of libc's function: for a rank with its own libc, that libc's.
    #[inline(always)]
    pub fn get(&self) -> *mut c_void {
        if image::has_libc()
            && let Some(own) = self.in_image()
        {
            return own;
        }
        self.of_process()
    }

    /// The function in the running rank's image.
    #[inline(never)]
    fn in_image(&self) -> Option<*mut c_void> {
        thread_local! {
            /// This thread is looking up a function: memory needed for that is the process's.
            static IS_LOOKING: Cell<bool> = const { Cell::new(false) };
        }
        let base = image::base_of_running()?;
        if self.offset.load(Ordering::Relaxed) == UNKNOWN {
            if IS_LOOKING.replace(true) {
                return None;
            }
            let name = self.name.to_str().unwrap_or_default();
            let found = runtime_heap(|| image::plan()?.symbol_in("libc.so", name));
            self.offset.store(found.unwrap_or(NONE), Ordering::Relaxed);
            IS_LOOKING.set(false);
        }
        match self.offset.load(Ordering::Relaxed) {
            NONE => None,
            offset => Some((base + offset) as *mut c_void),
        }
    }

    /// The address of the process's own function.
    #[inline(always)]
    pub fn of_process(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() { known } else { self.look_up() }
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self) -> *mut c_void {
        if !self.exists() {
            crate::report::say(format_args!("libc has no {:?}", self.name));
            std::process::abort();
        }
        self.address.load(Ordering::Relaxed)
    }

    /// Whether libc has the function.
    pub(crate) fn exists(&self) -> bool {
        if self.address.load(Ordering::Relaxed).is_null() {
            // What the loader allocates belongs to the process.
            // SAFETY: a C string.
            let found =
                runtime_heap(|| unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) });
            self.address.store(found, Ordering::Relaxed);
        }
        !self.address.load(Ordering::Relaxed).is_null()
    }
}

/// Runs `f`, a call of libc, on the PE's outside heap: a rank may hold what it allocates. A rank's own libc keeps
/// nothing for others: its allocations belong to the rank. `f` must not suspend the rank.
#[inline(always)]
pub fn outside_heap<R>(f: impl FnOnce() -> R) -> R {
    if image::has_libc() && image::base_of_running().is_some() {
        return f();
    }
    runtime_heap(|| outside::within(f))
}

/// The call keeps memory for the whole process, which must not be in the heap of the rank that happens to make it.
pub(crate) fn process_wide<R>(call: impl FnOnce() -> R) -> R {
    outside_heap(call)
}
