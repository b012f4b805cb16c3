//! Runs a program as a job: the symbols it is bound to, and the libraries of which each rank has a
//! copy.

use std::cell::{Cell, RefCell};
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::ExitCode;

use vrt_core::blocking;
use vrt_launch::Config;
use vrt_load::{LoadError, Options, Plan, ReserveError};
use vrt_slot::external::carried;
use vrt_slot::{image, report};

use crate::{
    collective, datatype, debugger, environment, libraries, life, settings, symbols, thread_exit,
};

/// A program and how to run it.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Libraries of which all ranks of a PE share one copy, by the beginnings of their names.
    pub shared: Vec<String>,
    /// The rank that waits for a debugger before its program begins, if one does.
    pub debugged: Option<u32>,
}

/// Why a program cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// This program cannot load others.
    #[error(transparent)]
    Reserve(#[from] ReserveError),
    /// Neither it nor any of its libraries uses MPI.
    #[error("{} does not use MPI", path.display())]
    WithoutMpi {
        /// The program's file.
        path: PathBuf,
        /// It or one of its libraries can start or load something that may use MPI.
        starts_others: bool,
    },
    /// An argument cannot be passed to it.
    #[error("the argument {0:?} has a zero byte in it")]
    Argument(OsString),
}

/// The functions of MPI: any may be missing, and those that are here come behind those that say so.
fn functions() -> impl Iterator<Item = (&'static str, usize)> {
    let missing = vrt_abi::NOT_THERE.iter().map(|(name, function)| (*name, *function as usize));
    missing.chain(exports().map(|export| (export.name, export.address as usize)))
}

fn exports() -> impl Iterator<Item = &'static crate::call::Export> {
    [
        crate::attribute::EXPORTS,
        crate::communicator::EXPORTS,
        crate::conversions::EXPORTS,
        environment::EXPORTS,
        environment::OTHERS,
        crate::errhandler::EXPORTS,
        crate::exchange::EXPORTS,
        crate::generalized::EXPORTS,
        crate::group::EXPORTS,
        crate::info::EXPORTS,
        crate::op::EXPORTS,
        crate::probe::EXPORTS,
        crate::receive::EXPORTS,
        crate::request::EXPORTS,
        crate::send::EXPORTS,
        crate::session::EXPORTS,
        crate::status::EXPORTS,
    ]
    .into_iter()
    .chain(datatype::EXPORTS)
    .chain(collective::ALL)
    .chain(crate::topology::ALL)
    .chain(crate::window::ALL)
    .flatten()
}

/// Whether vrt implements an MPI function.
pub fn has_function(name: &str) -> bool {
    exports().any(|export| export.name == name)
}

/// Runs a program on every rank of a job; returns the job's exit status.
///
/// # Errors
/// It cannot be loaded. Later errors are printed, and reported by the status.
pub fn run(config: Config, program: &Program) -> Result<ExitCode, ProgramError> {
    let _ = vrt_abi::MISSING.set(environment::missing);
    let plan = plan(program)?;
    let arguments = std::iter::once(program.path.clone().into_os_string())
        .chain(program.arguments.iter().cloned())
        .map(|argument| {
            CString::new(argument.clone().into_vec()).map_err(|_| ProgramError::Argument(argument))
        })
        .collect::<Result<Vec<CString>, ProgramError>>()?;
    libraries::set_program(
        std::fs::canonicalize(&program.path).unwrap_or_else(|_| program.path.clone()),
    );
    // What has started this program again was told to; what ranks start are others' programs.
    for variable in ["VRTRUN", "VRT_STARTED_AGAIN"] {
        // SAFETY: no thread is there yet.
        unsafe { std::env::remove_var(variable) };
    }
    if let Some(rank) = program.debugged {
        debugger::set(rank);
    }
    if !program.shared.is_empty() {
        carried::set_shared();
    }
    settings::set(&config);
    image::install(Box::leak(Box::new(plan)));
    let arguments: life::Arguments = arguments.leak();
    Ok(vrt_launch::launch(config, move || life::run(arguments)))
}

/// Functions with which a process starts others, or loads libraries at run time.
const STARTS_OTHERS: [&str; 17] = [
    "execl",
    "execle",
    "execlp",
    "execv",
    "execve",
    "execveat",
    "execvp",
    "execvpe",
    "fexecve",
    "posix_spawn",
    "posix_spawnp",
    "popen",
    "system",
    "syscall",
    "dlopen",
    "dlmopen",
    "wordexp",
];

/// Reports libraries that were to be shared but are not used by the program, with those that are.
fn tell_what_is_not_shared(shared: &[String], needed: &[String]) {
    if !vrt_launch::is_first_process() {
        return;
    }
    for library in shared.iter().filter(|it| !needed.iter().any(|name| name.starts_with(*it))) {
        report::say(format_args!(
            "note: --share {library}: the program has no such library; it has {}",
            needed.join(", ")
        ));
    }
}

/// Computes the images of the program.
fn plan(program: &Program) -> Result<Plan, ProgramError> {
    let is_shared =
        |name: &str| program.shared.iter().any(|prefix| name.starts_with(prefix.as_str()));
    let own_libc = !is_shared("libc.so.6");
    // The libraries that are needed, each once.
    let asked = RefCell::new(Vec::<String>::new());
    let shared = |name: &str| {
        if !asked.borrow().iter().any(|known| known == name) {
            asked.borrow_mut().push(name.to_owned());
        }
        is_shared(name)
    };
    let in_front = vrt_slot::in_front()
        .chain(blocking::in_front())
        .chain([&blocking::SCHED_YIELD])
        .filter(|function| !own_libc || is_needed_by_own_libc(function.meaning))
        .map(|function| (function.name, function.address as usize));
    let of_own_libc = vrt_slot::for_own_libc().into_iter().chain(vrt_slot::of_libc_threads());
    let others = of_own_libc
        .filter(|_| own_libc)
        .chain(libraries::PROVIDED.iter().copied())
        .chain(thread_exit::PROVIDED.iter().copied())
        .chain(life::PROVIDED.iter().copied())
        .map(|(name, address)| (name, address as usize));
    symbols::provide(functions().chain(in_front).chain(others));
    let uses_mpi = Cell::new(false);
    let options = Options {
        provided: &symbols::provided,
        is_provided: &|name| {
            let is_mpi = name.starts_with("libmpi_abi.so");
            uses_mpi.set(uses_mpi.get() || is_mpi);
            is_mpi
        },
        refused: &libraries::refused,
        shared: &shared,
        thread_reserve: vrt_load::thread_reserve()?,
    };
    let plan = Plan::open(&program.path, &options)?;
    if !uses_mpi.get() {
        return Err(ProgramError::WithoutMpi {
            path: program.path.clone(),
            starts_others: plan.refers_to_any(&STARTS_OTHERS),
        });
    }
    tell_what_is_not_shared(&program.shared, &asked.into_inner());
    Ok(plan)
}

/// What a rank with its own libc needs in front of it nevertheless: not the functions that only separate the results
/// and settings of a process's libc, nor locks, which are the rank's own.
fn is_needed_by_own_libc(meaning: &str) -> bool {
    !matches!(
        meaning,
        "answers"
            | "answers_unless_given"
            | "reads_list"
            | "ends_list"
            | "process_wide"
            | "locks"
            | "locks_surely"
            | "unlocks"
            | "unlocks_surely"
            | "acquires"
            | "acquires_at"
            | "acquires_from"
            | "releases"
    )
}
