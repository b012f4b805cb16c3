//! The entry of MPI functions, and the handling of their errors (MPI-4.1 section 9.3).
//!
//! Each function is declared once, by [`functions!`]: its name, the name of its large-count form if it has one, its
//! arguments as in the table of the ABI, the object on which its errors are raised, and the Rust function that
//! implements it. The declaration is checked against the table, and enters the function into the list that programs are
//! bound to.
//!
//! ```text
//! program -> extern "C-unwind" MPI_X -> enter: in a rank? between MPI_Init and MPI_Finalize?
//!                                  `-> the function -> Ok          -> MPI_SUCCESS
//!                                                   -> Err(Fault)  -> raise: the handler of the object
//!                                                                      fatal: the job ends with a text
//!                                                                      return: the code
//!                                                                      the program's own: called
//! ```
//!
//! Functions that implement one of MPI's are unsafe like that: a program gives what MPI demands, such as room for results,
//! strings that end, and buffers that stay until their operation is over. Their comments call this the program's promise.
//!
//! Exceptions thrown by the program's own functions (error handlers, operations, attribute copy functions) pass
//! through.

use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_core::Site;
use vrt_core::operation::MayBlock;
use vrt_slot::{fork, report};

use crate::abort;
use crate::fault::{Fault, Outcome, fault};
use crate::object::{Handler, On};
use crate::process::Process;

/// A function and its name, for binding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Export {
    pub(crate) name: &'static str,
    pub(crate) address: *const (),
}

// SAFETY: the address of a function.
unsafe impl Sync for Export {}

/// A call in progress.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    /// The calling rank.
    pub(crate) process: &'static Process,
    /// The function.
    pub(crate) site: &'static Site,
}

impl Call {
    /// Proves that the rank may block here.
    #[inline(always)]
    pub(crate) fn may_block(self) -> MayBlock {
        // SAFETY: only a rank's own thread has a process (`Process::current`), and no program of C is async.
        // Functions for other threads, too, do not wait.
        unsafe { MayBlock::assume() }
    }
}

/// When a function may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Between `MPI_Init` and `MPI_Finalize`.
    Initialized,
    /// At any time.
    Always,
    /// Like `Initialized`, and also in the rank's other threads (MPI-4.1 sections 11.2 and 11.6): such functions use
    /// only the atomics of the process, and do not fail.
    InitializedAnywhere,
    AlwaysAnywhere,
}

/// Runs an MPI function for the calling rank; returns its error code.
#[inline(always)]
pub(crate) fn enter(
    site: &'static Site,
    when: When,
    on: On,
    function: impl FnOnce(Call) -> Outcome,
) -> c_int {
    let Some(process) = Process::current() else {
        if matches!(when, When::InitializedAnywhere | When::AlwaysAnywhere)
            && let Some(process) = Process::of_starter()
        {
            return function(Call { process, site })
                .map_or_else(|fault| fault.code, |()| MPI_SUCCESS);
        }
        return not_of_a_rank(site.call);
    };
    let call = Call { process, site };
    let needs_init = matches!(when, When::Initialized | When::InitializedAnywhere);
    if needs_init && !process.is_usable() {
        return raise(call, On::Nothing, not_initialized(process));
    }
    let never_panics = NeverPanics;
    let code = match function(call) {
        Ok(()) => MPI_SUCCESS,
        Err(fault) => raise(call, on, fault),
    };
    std::mem::forget(never_panics);
    code
}

/// A function may be left by exceptions that the program's own functions throw, but not by a panic of the runtime,
/// which the program could catch and continue.
struct NeverPanics;

impl Drop for NeverPanics {
    #[cold]
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

#[cold]
fn not_initialized(process: &Process) -> Box<Fault> {
    let text = match process.is_finalized() {
        true => "it was called after MPI_Finalize",
        false => "it was called before MPI_Init",
    };
    fault(MPI_ERR_OTHER, text)
}

/// Threads that ranks start, and children that they fork, cannot take part in the rank's messages.
#[cold]
fn not_of_a_rank(name: &str) -> c_int {
    if fork::is_child() {
        report::say(format_args!(
            "{name} was called by a process that a rank has forked, which has no part in the job"
        ));
        fork::end_child(report::STATUS_RUNTIME);
    }
    report::say(format_args!(
        "{name} was called by a thread that is not a rank's own: MPI_THREAD_FUNNELED is what there is \
         (MPI_Init_thread says so)"
    ));
    report::end_job(report::STATUS_RUNTIME)
}

/// Passes an error to the handler of its object; returns the function's return value.
#[cold]
#[inline(never)]
pub(crate) fn raise(call: Call, on: On, fault: Box<Fault>) -> c_int {
    let process = call.process;
    let on = fault.on.map_or(on, On::Comm);
    let found = match on {
        On::Comm(comm) => process.comm(comm).ok().map(|found| found.errhandler.borrow().clone()),
        On::Win(win) => process.window(win).ok().map(|found| found.errhandler.borrow().clone()),
        On::Session(session) => {
            process.session(session).ok().map(|found| found.errhandler.borrow().clone())
        }
        On::Nothing => None,
    };
    let (handler, on) = found.map_or_else(|| (of_nothing(process), On::Nothing), |it| (it, on));
    if handler.is_fatal() {
        end_job(call, on, &fault);
    }
    handler.call(on, fault.code)
}

/// Errors without an object belong to `MPI_COMM_SELF`; programs written before MPI-4 have set a handler only for
/// `MPI_COMM_WORLD`.
fn of_nothing(process: &Process) -> Handler {
    let own = process.itself.errhandler.borrow().clone();
    if own.is_fatal() { process.world.errhandler.borrow().clone() } else { own }
}

#[cold]
fn end_job(call: Call, on: On, fault: &Fault) -> ! {
    let rank = vrt_core::pe::current_rank().unwrap_or_default();
    let name = match on {
        On::Comm(comm) => call.process.comm(comm).map(|comm| comm.name()).unwrap_or_default(),
        On::Win(_) | On::Session(_) | On::Nothing => String::new(),
    };
    let on = if name.is_empty() { name } else { format!(" on {name}") };
    let class = vrt_abi::error_class_name(call.process.codes.class_of(fault.code));
    let class = class.map_or(format!("error {}", fault.code), str::to_owned);
    report::say(format_args!(
        "rank {rank} in {}{on}: {} ({class}); ending the job",
        call.site.call, fault.text
    ));
    abort::end_job(abort::exit_status(fault.code))
}

/// Declares functions of MPI; see the module.
macro_rules! functions {
    ($(
        $name:ident $(/ $large:ident)? ($($argument:tt)*)
            on $on:ident $(($handle:ident))? $(when $when:ident)? = $($body:ident)::+;
    )*) => {
        $(
            $crate::call::function!{
                [$name $($large)?] ($($argument)*) [$on $(($handle))?] [$($when)?] ($($body)::+)
            }
        )*
        /// The functions of this module.
        pub(crate) const EXPORTS: &[$crate::call::Export] = &[
            $(
                $name::EXPORT,
                $($large::EXPORT,)?
            )*
        ];
    };
}
pub(crate) use functions;

/// One function, and its large-count form: modules with their names, in which `N` is a count, `D` a displacement in
/// elements, `A` one in bytes.
macro_rules! function {
    ([$name:ident $large:ident] $arguments:tt $on:tt $when:tt $body:tt) => {
        $crate::call::function!{ [$name] $arguments $on $when $body }
        $crate::call::function!{
            [vrt_abi::types::MPI_Count, vrt_abi::types::MPI_Aint, vrt_abi::types::MPI_Count]
            $large $arguments $on $when $body
        }
    };
    ([$name:ident] $arguments:tt $on:tt $when:tt $body:tt) => {
        $crate::call::function!{
            [std::ffi::c_int, std::ffi::c_int, vrt_abi::types::MPI_Aint]
            $name $arguments $on $when $body
        }
    };
    ($types:tt $name:ident $arguments:tt $on:tt [] $body:tt) => {
        $crate::call::function!{ $types $name $arguments $on [Initialized] $body }
    };
    (
        [$n:ty, $d:ty, $a:ty] $name:ident ($($arg:ident: $ty:ty),* $(,)?)
            [$on:ident $(($handle:ident))?] [$when:ident] ($($body:ident)::+)
    ) => {
        #[allow(non_snake_case, unused_imports, dead_code, reason = "the names are MPI's")]
        mod $name {
            use super::*;
            type N = $n;
            type D = $d;
            type A = $a;

            unsafe extern "C-unwind" fn call($($arg: $ty),*) -> std::ffi::c_int {
                let on = $crate::object::On::$on $(($handle))?;
                let when = $crate::call::When::$when;
                const SITE: &vrt_core::Site = &vrt_core::Site { call: stringify!($name), location: None };
                $crate::call::enter(SITE, when, on, |call| {
                    // SAFETY: the arguments are what the program has given, as MPI demands them.
                    #[allow(unused_unsafe, reason = "not every function is unsafe")]
                    unsafe { super::$($body)::+(call $(, $arg)*) }
                })
            }

            const _: vrt_abi::signatures::$name = call;

            pub(super) const EXPORT: $crate::call::Export = $crate::call::Export {
                name: stringify!($name),
                address: call as *const (),
            };
        }
    };
}
pub(crate) use function;
