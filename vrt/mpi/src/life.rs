//! The life of a rank as a process: how its program begins, and what happens when it exits.
//!
//! ```text
//! image made -> private libc's early initialisation -> constructors -> _start -> __libc_start_main
//!     -> main -> exit: functions registered with atexit, the last first -> destructors -> streams flushed
//!     -> the rank ends (status 0, or after MPI_Finalize), or the job does
//! ```

#![cfg_attr(
    not(test),
    expect(clippy::arithmetic_side_effects, reason = "addresses in an image that is mapped")
)]

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Once;

use vrt_core::pe;
use vrt_load::{Entry, Plan};
use vrt_slot::{fork, hooks, image, image_switch, image_thread, locals, rank, report, signals};

use crate::abort::{end_job, flush};
use crate::object::Comm;
use crate::process::Process;
use crate::{debugger, numbers, settings};

/// The key under which a rank keeps its exit functions.
const AT_EXIT: u32 = 3;

/// The functions that are called when a rank exits.
#[derive(Default)]
struct AtExit {
    functions: RefCell<Vec<Function>>,
    quick: RefCell<Vec<Function>>,
}

#[derive(Clone, Copy)]
enum Function {
    /// With an argument, or one that it ignores.
    Plain(unsafe extern "C" fn(*mut c_void), *mut c_void),
    /// With the exit status as an additional argument.
    WithStatus(unsafe extern "C" fn(c_int, *mut c_void), *mut c_void),
}

fn at_exit() -> Rc<AtExit> {
    locals::keep(AT_EXIT, AtExit::default)
}

/// The arguments of the program, which every rank gets.
pub(crate) type Arguments = &'static [CString];

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Runs the program on the calling rank, in its own image.
pub(crate) fn run(arguments: Arguments) -> i32 {
    let Some(plan) = image::plan() else { return report::STATUS_RUNTIME };
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        signals::begin();
        prepare_unwinder();
    });
    Process::new(Comm::world(), Comm::itself()).begin();
    // SAFETY: this rank has no image yet, and this function uses no thread-local afterwards.
    match unsafe { image_switch::begin() } {
        Some(base) => run_image(plan, base, arguments),
        None => report::STATUS_RUNTIME,
    }
}

/// An exception of a program passes through functions of the runtime by the unwinder of the program's own image; the
/// runtime's functions then query the process's unwinder about its context, which must have unwound something before:
/// it then initialises a table of registers.
fn prepare_unwinder() {
    if cfg!(panic = "unwind") {
        let _ = hooks::runtime_heap(|| catch_unwind(|| resume_unwind(Box::new(()))));
    }
}

/// Never inlined: the thread pointer is the rank's now.
#[inline(never)]
fn run_image(plan: &'static Plan, base: usize, arguments: Arguments) -> i32 {
    debugger::wait(hooks::current_rank().unwrap_or_default(), plan, base);
    // Programs write to their arguments, and keep them.
    let mut own: Vec<*mut c_char> =
        arguments.iter().map(|argument| argument.clone().into_raw()).collect();
    let count = numbers::int(own.len());
    own.push(std::ptr::null_mut());
    let own: &'static [*mut c_char] = own.leak();
    // SAFETY: the image is complete, its thread pointer set, and functions of it are called with what they
    // expect.
    unsafe {
        if let Some(early) = plan.symbol_in("libc.so", "__libc_early_init") {
            let early = (base + early) as *const ();
            let early = std::mem::transmute::<*const (), unsafe extern "C" fn(bool)>(early);
            // It is not the only one of the process, and there may be threads.
            early(false);
        }
        type Constructor = unsafe extern "C" fn(c_int, *const *mut c_char, *const *const c_char);
        for constructor in plan.constructors(base) {
            let constructor = constructor as *const ();
            std::mem::transmute::<*const (), Constructor>(constructor)(
                count,
                own.as_ptr(),
                environ,
            );
        }
        match plan.entry() {
            Entry::Start(_) => plan.start(base, &own[..numbers::index(count)], environ),
            Entry::OfProcess => report::STATUS_RUNTIME,
            Entry::Main(main) => {
                type Main =
                    unsafe extern "C" fn(c_int, *const *mut c_char, *const *const c_char) -> c_int;
                let main = (base + main) as *const ();
                let main = std::mem::transmute::<*const (), Main>(main);
                image::program_begins();
                exit(main(count, own.as_ptr(), environ))
            }
        }
    }
}

/// Calls the registered functions, the last first, including those that are registered meanwhile.
fn call_all(list: &RefCell<Vec<Function>>, status: c_int) {
    loop {
        let last = list.borrow_mut().pop();
        // SAFETY: the program registered these to be called now.
        unsafe {
            match last {
                Some(Function::Plain(function, argument)) => function(argument),
                Some(Function::WithStatus(function, argument)) => function(status, argument),
                None => return,
            }
        }
    }
}

/// C `exit`, for a rank.
unsafe extern "C" fn exit(status: c_int) -> ! {
    if hooks::current_rank().is_none() {
        end_from_thread(status);
    }
    let functions = image::beside_program(at_exit);
    call_all(&functions.functions, status);
    if let (Some(plan), Some(base)) = (image::plan(), image::base_of_running()) {
        // SAFETY: the image is complete, and its program over.
        unsafe {
            for destructor in plan.destructors(base) {
                let destructor = destructor as *const ();
                std::mem::transmute::<*const (), unsafe extern "C" fn()>(destructor)();
            }
        }
    }
    flush();
    if settings::checks_leaks() {
        free_own_blocks_of_libc();
    }
    end(status)
}

/// The rank exits as by `exit(0)`.
pub(crate) fn exit_with_success() -> ! {
    // SAFETY: a plain function.
    unsafe { exit(0) }
}

/// Makes the rank's libc free what it has allocated itself, such as the buffers of streams: libc provides a function
/// for leak checkers.
fn free_own_blocks_of_libc() {
    let own = image::plan().and_then(|plan| plan.symbol_in("libc.so", "__libc_freeres"));
    if let (Some(offset), Some(base)) = (own, image::base_of_running()) {
        let free = (base + offset) as *const ();
        // SAFETY: libc's function, after which the rank calls nothing of its libc any more.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn()>(free)() };
    }
}

/// The rank ends without calling anything of its program.
fn end(status: c_int) -> ! {
    if hooks::current_rank().is_none() {
        end_from_thread(status);
    }
    if fork::is_child() {
        fork::end_child(status);
    }
    let status = status & 0xff;
    if let Some(process) = Process::current()
        && status == 0
        && process.has_begun()
        && !process.is_finalized()
    {
        let rank = hooks::current_rank().unwrap_or_default();
        report::say(format_args!(
            "rank {rank} has ended without MPI_Finalize, and others may wait for it; ending the job"
        ));
        end_job(report::STATUS_RUNTIME);
    }
    if status == 0 {
        rank::exit_rank(0);
    }
    let rank = hooks::current_rank().unwrap_or_default();
    if Process::current().is_some_and(Process::is_finalized) {
        // Nobody waits for it any more, and others may have more to do.
        if pe::with(|pe| pe.engine.rank_fails(status)) {
            report::say(format_args!(
                "rank {rank} exited with status {status}, which is the job's when all ranks have ended"
            ));
        }
        rank::exit_rank(0);
    }
    report::say(format_args!("rank {rank} exited with status {status}; ending the job"));
    rank::exit_rank(status)
}

/// A thread that a rank has started ends its process: this ends the job, as other ranks may rely on the rank.
fn end_from_thread(status: c_int) -> ! {
    report::say(format_args!(
        "a thread that a rank has started has called exit({status}); ending the job"
    ));
    report::end_job(if status & 0xff == 0 { report::STATUS_RUNTIME } else { status & 0xff })
}

/// C `_exit`.
unsafe extern "C" fn exit_at_once(status: c_int) -> ! {
    end(status)
}

/// C11 `quick_exit`.
unsafe extern "C" fn quick_exit(status: c_int) -> ! {
    call_all(&at_exit().quick, status);
    end(status)
}

/// The C++ ABI's registration of a destructor. Libraries are not unloaded, so the library is ignored.
unsafe extern "C" fn cxa_atexit(
    function: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
    _library: *mut c_void,
) -> c_int {
    at_exit().functions.borrow_mut().push(Function::Plain(function, argument));
    0
}

/// The same for a thread-local object; a rank's own thread ends with it.
unsafe extern "C" fn cxa_thread_atexit(
    function: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
    _library: *mut c_void,
) -> c_int {
    // SAFETY: the compiler, which calls this, registers a destructor with its object.
    if unsafe { image_thread::at_end(function, argument) } {
        return 0;
    }
    at_exit().functions.borrow_mut().push(Function::Plain(function, argument));
    0
}

/// C `atexit`, for programs that do not contain such a function.
unsafe extern "C" fn atexit(function: unsafe extern "C" fn(*mut c_void)) -> c_int {
    at_exit().functions.borrow_mut().push(Function::Plain(function, std::ptr::null_mut()));
    0
}

unsafe extern "C" fn on_exit(
    function: unsafe extern "C" fn(c_int, *mut c_void),
    argument: *mut c_void,
) -> c_int {
    at_exit().functions.borrow_mut().push(Function::WithStatus(function, argument));
    0
}

unsafe extern "C" fn at_quick_exit(
    function: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
    _library: *mut c_void,
) -> c_int {
    at_exit().quick.borrow_mut().push(Function::Plain(function, argument));
    0
}

/// Runs the destructors of a library that is unloaded: not needed, as all run when the rank exits.
unsafe extern "C" fn cxa_finalize(_library: *mut c_void) {}

/// Called by `_start`. Constructors have run already; older programs contain a function that would run theirs again.
unsafe extern "C" fn libc_start_main(
    main: unsafe extern "C" fn(c_int, *mut *mut c_char, *const *const c_char) -> c_int,
    count: c_int,
    arguments: *mut *mut c_char,
    _init: *const c_void,
    _fini: *const c_void,
    _loader_fini: *const c_void,
    _stack: *const c_void,
) -> c_int {
    image::program_begins();
    // SAFETY: the program's own function, with its own arguments.
    unsafe { exit(main(count, arguments, environ)) }
}

/// The result for unwinders (glibc 2.35): the tables of the module that contains an address.
#[repr(C)]
pub(crate) struct FoundObject {
    flags: u64,
    start: usize,
    end: usize,
    link_map: *mut c_void,
    unwind_table: usize,
    reserved: [u64; 7],
}

/// `_dl_find_object` for the code of images and, as it is interposed in front of the loader's, of the process: an
/// address that is not in the running rank's image belongs to the process.
///
/// # Safety
/// As for the loader's function.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn _dl_find_object(address: usize, found: *mut FoundObject) -> c_int {
    if let Some((base, module)) = image::module_at(address)
        && let Some(table) = module.unwind_table
    {
        let (start, end) = (base + module.span.start, base + module.span.end);
        let (link_map, unwind_table) = (std::ptr::null_mut(), base + table);
        // SAFETY: the unwinder gives room for it.
        unsafe {
            found.write(FoundObject {
                flags: 0,
                start,
                end,
                link_map,
                unwind_table,
                reserved: [0; 7],
            });
        }
        return 0;
    }
    type Find = unsafe extern "C" fn(usize, *mut FoundObject) -> c_int;
    static REAL: vrt_slot::interpose::Real = vrt_slot::interpose::Real::new(c"_dl_find_object");
    // SAFETY: the loader's function has this type.
    unsafe { std::mem::transmute::<*mut c_void, Find>(REAL.of_process())(address, found) }
}

/// The replacements for libc's functions.
pub(crate) const PROVIDED: &[(&str, *const ())] = &[
    ("exit", exit as *const ()),
    ("_exit", exit_at_once as *const ()),
    ("_Exit", exit_at_once as *const ()),
    ("quick_exit", quick_exit as *const ()),
    ("atexit", atexit as *const ()),
    ("on_exit", on_exit as *const ()),
    ("__cxa_atexit", cxa_atexit as *const ()),
    ("__cxa_at_quick_exit", at_quick_exit as *const ()),
    ("__cxa_finalize", cxa_finalize as *const ()),
    ("__cxa_thread_atexit_impl", cxa_thread_atexit as *const ()),
    ("__libc_start_main", libc_start_main as *const ()),
    ("__tls_get_addr", vrt_load::thread_pointer::tls_get_addr as *const ()),
    ("_dl_find_object", _dl_find_object as *const ()),
];
