//! The runtime's functions that the programs of the tests need.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use vrt_load::thread_pointer;

use super::run::current;

/// The address of a function that the harness provides.
pub(crate) fn provided(name: &str) -> Option<usize> {
    // Before an image needs it: with an image's thread pointer it could not be looked up.
    real_find_object();
    Some(match name {
        "report" => report as *const () as usize,
        "meet" => meet as *const () as usize,
        "exit" => exit as *const () as usize,
        "__cxa_atexit" => cxa_atexit as *const () as usize,
        "__cxa_finalize" => cxa_finalize as *const () as usize,
        "__libc_start_main" => libc_start_main as *const () as usize,
        "__tls_get_addr" => thread_pointer::tls_get_addr as *const () as usize,
        "_dl_find_object" => _dl_find_object as *const () as usize,
        "malloc" => libc::malloc as *const () as usize,
        "calloc" => libc::calloc as *const () as usize,
        "realloc" => libc::realloc as *const () as usize,
        "free" => libc::free as *const () as usize,
        "aligned_alloc" => libc::aligned_alloc as *const () as usize,
        "posix_memalign" => libc::posix_memalign as *const () as usize,
        "memalign" => libc::memalign as *const () as usize,
        _ => return None,
    })
}

unsafe extern "C" fn report(name: *const c_char, value: c_long) {
    // SAFETY: a string of the program; the run is this thread's.
    unsafe { (*current()).report(CStr::from_ptr(name).to_bytes(), value) }
}

/// Waits until all images have called this.
unsafe extern "C" fn meet() {
    // SAFETY: the barrier outlives the run.
    unsafe { libc::pthread_barrier_wait((*current()).barrier.cast_mut()) };
}

unsafe extern "C" fn cxa_atexit(function: usize, argument: usize, _module: *mut c_void) -> c_int {
    // SAFETY: the run is this thread's.
    unsafe {
        let run = &mut *current();
        let Some(place) = run.at_exit.get_mut(run.at_exit_count) else { return -1 };
        *place = (function, argument);
        run.at_exit_count += 1;
    }
    0
}

unsafe extern "C" fn cxa_finalize(_module: *mut c_void) {}

/// Ends a program: runs its exit functions and destructors, and flushes the buffers of its own
/// libc.
unsafe extern "C" fn exit(status: c_int) -> ! {
    let run = current();
    // SAFETY: the run is this thread's; functions are the image's.
    unsafe {
        while (*run).at_exit_count > 0 {
            (*run).at_exit_count -= 1;
            let (function, argument) = (*run).at_exit[(*run).at_exit_count];
            let function: extern "C" fn(usize) = std::mem::transmute(function);
            function(argument);
        }
        for destructor in (*(*run).plan).destructors((*run).base) {
            let destructor: extern "C" fn() = std::mem::transmute(destructor);
            destructor();
        }
        (*run).leave(status)
    }
}

unsafe extern "C" fn libc_start_main(
    main: usize,
    argc: c_int,
    argv: *const *mut c_char,
    _init: usize,
    _fini: usize,
    _loader_fini: usize,
    _stack_end: *mut c_void,
) -> ! {
    // SAFETY: what `_start` hands over; the environment lies behind the arguments.
    unsafe { start_main(main, argc, argv, argv.add(argc as usize + 1).cast()) }
}

type Main = extern "C" fn(c_int, *const *mut c_char, *const *const c_char) -> c_int;

/// Runs constructors, `main`, and the end.
///
/// # Safety
/// The image's thread pointer is set.
pub(super) unsafe fn start_main(
    main: usize,
    argc: c_int,
    argv: *const *mut c_char,
    environment: *const *const c_char,
) -> ! {
    let run = current();
    // SAFETY: the run is this thread's; functions are the image's.
    unsafe {
        for constructor in (*(*run).plan).constructors((*run).base) {
            let constructor: Main = std::mem::transmute(constructor);
            constructor(argc, argv, environment);
        }
        let main: Main = std::mem::transmute(main);
        exit(main(argc, argv, environment))
    }
}

/// glibc's `struct dl_find_object`.
#[repr(C)]
struct FoundObject {
    flags: u64,
    start: usize,
    end: usize,
    link_map: *mut c_void,
    eh_frame_hdr: usize,
    reserved: [u64; 7],
}

type FindObject = unsafe extern "C" fn(usize, *mut FoundObject) -> c_int;

/// The loader's own function, which the one below hides.
fn real_find_object() -> usize {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    let known = REAL.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: a string that ends with zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"_dl_find_object".as_ptr()) } as usize;
    REAL.store(found, Ordering::Relaxed);
    found
}

/// The function through which unwinders find their tables. It has this name so that the process's
/// libgcc uses it, too: frames of images are on the stack when that unwinds.
#[unsafe(no_mangle)]
unsafe extern "C" fn _dl_find_object(pc: usize, found: *mut FoundObject) -> c_int {
    let run = current();
    // SAFETY: the run is this thread's; the real function has this type.
    unsafe {
        if !run.is_null() {
            let run = &*run;
            if let Some(module) = (*run.plan).find_module(pc.wrapping_sub(run.base)) {
                let Some(table) = module.unwind_table else { return -1 };
                (*found).flags = 0;
                (*found).start = run.base + module.span.start;
                (*found).end = run.base + module.span.end;
                (*found).link_map = std::ptr::null_mut();
                (*found).eh_frame_hdr = run.base + table;
                return 0;
            }
        }
        let real: FindObject = std::mem::transmute(real_find_object());
        real(pc, found)
    }
}
