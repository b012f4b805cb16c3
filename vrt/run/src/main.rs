//! Starts a program as a job: `vrtrun --pes 2 --ranks 16 ./program its arguments`.
//!
//! What kind of program it is decides how (see `kind`): a program of the Rust face becomes a job by itself,
//! told by the `VRT_*` environment variables; a program of the MPI ABI is loaded here, once for each rank.

mod kind;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Parser;
use vrt_mpi::{Program, ProgramError};

use kind::Kind;

/// Runs a program as many virtual ranks on a few processes
///
/// The program may be one of vrt's Rust face, or any C or C++ program that was compiled with vrtcc or
/// vrtcxx: then each rank has its own globals and libraries, and nothing in the program is changed.
///
/// `vrtrun sweep` compares ratios of ranks to PEs, and balancers; `vrtrun top` shows what a running job does; see
/// their `--help`.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt_launch::Config,

    /// Libraries of which there is one for all ranks of a PE instead of one for each
    #[arg(
        long,
        value_name = "LIB",
        value_delimiter = ',',
        help_heading = "Programs of the MPI ABI"
    )]
    share: Vec<String>,

    /// Have this rank wait for a debugger before its program begins; says how one is attached
    #[arg(long, value_name = "RANK", help_heading = "Programs of the MPI ABI")]
    gdb: Option<u32>,

    /// Say what kind of program was found
    #[arg(long, short, help_heading = "Programs of the MPI ABI")]
    verbose: bool,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Programs of their own that come with this one: `vrtrun sweep` is `vrtrun-sweep`.
const COMMANDS: [&str; 2] = ["sweep", "top"];

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if let Some(name) = words.next().filter(|word| COMMANDS.iter().any(|it| word == it)) {
        return become_command(&name, words);
    }
    let arguments = Arguments::parse();
    let Some((program, rest)) = arguments.command.split_first() else {
        return ExitCode::from(USAGE);
    };
    let path = kind::find(Path::new(program));
    let kind = match Kind::of(&path) {
        Ok(kind) => kind,
        Err(error) => {
            eprintln!("vrtrun: {error}");
            return ExitCode::from(NOT_RUN);
        }
    };
    if arguments.verbose {
        eprintln!("vrtrun: {} is {kind}", path.display());
    }
    match kind {
        Kind::RustFace | Kind::Script => become_it(&path, kind, rest, &arguments),
        Kind::Abi | Kind::Starter => load(&path, rest, &arguments),
    }
}

/// Executes a command that is a program beside this one.
fn become_command(name: &OsStr, rest: impl Iterator<Item = OsString>) -> ExitCode {
    let mut file = OsString::from("vrtrun-");
    file.push(name);
    let beside = std::env::current_exe().unwrap_or_default().with_file_name(&file);
    let path = if beside.is_file() { beside } else { file.into() };
    let error = Command::new(&path).args(rest).exec();
    let name = name.display();
    eprintln!(
        "vrtrun: cannot run {}: {error}; it belongs beside this program (a program of your own is ./{name})",
        path.display()
    );
    ExitCode::from(NOT_RUN)
}

/// The command line cannot be.
const USAGE: u8 = 2;
/// The program cannot be run.
const NOT_RUN: u8 = 127;

/// Executes a program that becomes a job by itself.
fn become_it(path: &Path, kind: Kind, rest: &[OsString], arguments: &Arguments) -> ExitCode {
    if arguments.gdb.is_some() || !arguments.share.is_empty() {
        let which = if arguments.gdb.is_some() { "--gdb" } else { "--share" };
        eprintln!(
            "vrtrun: {which} is for programs of the MPI ABI, which this loads itself; {} is {kind}",
            path.display()
        );
        return ExitCode::from(USAGE);
    }
    // A program that does not become a job can see that it was to be one; and one that a script starts
    // is loaded by this program.
    let own = std::env::current_exe().unwrap_or_else(|_| "vrtrun".into());
    let error =
        Command::new(path).args(rest).envs(arguments.vrt.to_env()).env("VRTRUN", own).exec();
    eprintln!("vrtrun: cannot run {}: {error}", path.display());
    ExitCode::from(NOT_RUN)
}

/// Loads a program for each rank. One that does not use MPI starts a program that does, as a script would:
/// `env`, `perf`, `sh`.
fn load(path: &Path, rest: &[OsString], arguments: &Arguments) -> ExitCode {
    let config = match arguments.vrt.clone().overridden_by_env() {
        Ok(config) => config,
        Err(error) => return vrt_launch::report_usage_error(&error),
    };
    if let Some(rank) = arguments.gdb.filter(|rank| *rank >= config.ranks()) {
        let last = config.ranks() - 1;
        eprintln!("vrtrun: --gdb {rank}: there is no such rank; 0 to {last} are allowed");
        return ExitCode::from(USAGE);
    }
    let shared = arguments.share.iter().map(|library| match library.starts_with("lib") {
        true => library.clone(),
        false => format!("lib{library}.so"),
    });
    let program = Program {
        path: path.to_path_buf(),
        arguments: rest.to_vec(),
        shared: shared.collect(),
        debugged: arguments.gdb,
    };
    match vrt_mpi::run(config, &program) {
        Ok(status) => status,
        Err(ProgramError::WithoutMpi(_)) => {
            if arguments.verbose {
                eprintln!("vrtrun: {} does not use MPI: what it starts may", path.display());
            }
            become_it(path, Kind::Starter, rest, arguments)
        }
        Err(error) => {
            eprintln!("vrtrun: {error}");
            ExitCode::from(NOT_RUN)
        }
    }
}
