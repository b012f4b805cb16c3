//! Starts a program as a job: `vrtrun --pes 2 --ranks 16 ./program its arguments`.
//!
//! The kind of the program decides how (see `kind`): a program that uses the Rust API becomes a job by itself,
//! configured by the `VRT_*` environment variables; a program of the MPI ABI is loaded here, once for each rank.

mod kind;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};
use vrt_mpi::{LoadError, Program, ProgramError};

use kind::{Kind, KindError};

/// Runs a program as many virtual ranks on a few processes
///
/// The program may use vrt's Rust API, or be any C or C++ program compiled with vrtcc or vrtcxx: then each rank has its
/// own globals and libraries, and the program needs no changes.
///
/// `vrtrun sweep` compares ratios of ranks to PEs, and balancers; `vrtrun top` shows what a running job does; `vrtrun
/// doctor` examines this machine. Each has its own `--help`.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt_launch::Config,

    /// Libraries that are loaded once per PE, for all its ranks, instead of once per rank
    #[arg(
        long,
        value_name = "LIB",
        value_delimiter = ',',
        help_heading = "Programs of the MPI ABI"
    )]
    share: Vec<String>,

    /// Make this rank wait for a debugger before its program begins, and print how to attach one
    #[arg(long, value_name = "RANK", help_heading = "Programs of the MPI ABI")]
    gdb: Option<u32>,

    /// Print the kind of program that was found
    #[arg(long, short, help_heading = "Programs of the MPI ABI")]
    verbose: bool,

    /// The program and its arguments
    // Not required: there is none where a list is asked for.
    #[arg(trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// The command line's parser: launchers of other MPIs call the number of ranks `-n`, too.
fn command() -> clap::Command {
    let command = Arguments::command().override_usage("vrtrun [OPTIONS] <PROGRAM> [ARGUMENTS]...");
    command
        .mut_args(|argument| {
            match argument.get_action().takes_values() && !argument.is_positional() {
                // `-n -3` is a wrong number, and no unknown option.
                true => argument.allow_negative_numbers(true),
                false => argument,
            }
        })
        .mut_arg("ranks", |ranks| ranks.short('n').visible_alias("np"))
}

/// The words, with `-np N` as `--np N`: the parser would read `-np` as two one-letter options.
fn spelled_out(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let command = command();
    let takes_value = |word: &str| {
        command.get_arguments().any(|option| {
            let names = option.get_long_and_visible_aliases().unwrap_or_default();
            let is_it = word.strip_prefix("--").is_some_and(|long| names.contains(&long))
                || option.get_short().is_some_and(|short| word == format!("-{short}"));
            is_it && option.get_action().takes_values()
        })
    };
    let mut all = Vec::new();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        if !text.starts_with('-') || text == "--" {
            // The program; what follows is its own.
            all.push(word);
            break;
        }
        let is_np = text == "-np";
        all.push(if is_np { "--np".into() } else { word });
        if is_np || takes_value(&text) {
            // `--lb` may stand alone.
            all.extend(
                words.next_if(|next| text != "--lb" || !next.as_encoded_bytes().starts_with(b"-")),
            );
        }
    }
    all.extend(words);
    all
}

/// Commands that are separate programs beside this one: `vrtrun sweep` is `vrtrun-sweep`.
const COMMANDS: [&str; 3] = ["sweep", "top", "doctor"];
/// How alike words are of which one is a misspelling of the other.
const ALIKE: f64 = 0.85;

fn main() -> ExitCode {
    vrt_cli::print_if_asked(command);
    let mut words = std::env::args_os().skip(1);
    if let Some(name) = words.next().filter(|word| COMMANDS.iter().any(|it| word == it)) {
        return become_command(&name, words);
    }
    let own_name = std::env::args_os().next().unwrap_or_else(|| "vrtrun".into());
    let words = std::iter::once(own_name).chain(spelled_out(std::env::args_os().skip(1)));
    let matches = command().get_matches_from(words);
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Some(list) = arguments.vrt.asked_list() {
        return vrt_launch::print_list(&list);
    }
    let Some((program, rest)) = arguments.command.split_first() else {
        let text = match arguments.vrt.balances() {
            true => "no program is given (write `--lb auto PROGRAM`, not `--lb PROGRAM`)",
            false => "no program is given",
        };
        command().error(ErrorKind::MissingRequiredArgument, text).exit()
    };
    let path = kind::find(Path::new(program));
    let kind = match Kind::of(&path) {
        Ok(kind) => kind,
        Err(error) => {
            let name = program.to_string_lossy();
            let meant = COMMANDS.iter().find(|it| strsim::jaro_winkler(it, &name) > ALIKE);
            let meant = meant.map(|it| format!("; did you mean `vrtrun {it}`?"));
            eprintln!("vrtrun: {error}{}", meant.unwrap_or_default());
            let is_forbidden = matches!(error, KindError::NotExecutable(_));
            return ExitCode::from(if is_forbidden { FORBIDDEN } else { NOT_RUN });
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

/// Executes the program of a command, which is beside this one.
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

/// The command line is invalid.
const USAGE: u8 = 2;
/// The program cannot be run.
const NOT_RUN: u8 = 127;
/// The program cannot be run because its file is not executable.
const FORBIDDEN: u8 = 126;

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

/// Whether this program has been started before, unchanged, and has called a function of MPI: then the library that it
/// is linked with has started this process.
fn calls_mpi_all_the_same() -> bool {
    std::env::var_os("VRT_STARTED_AGAIN").is_some()
}

/// Loads a program for each rank. A program that does not use MPI is assumed to start one that does, as a script would:
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
        Err(ProgramError::WithoutMpi { .. }) if calls_mpi_all_the_same() => {
            eprintln!(
                "vrtrun: {} is not linked with MPI, but loads a library that is while it runs, which ranks \
                 cannot: link it with -lmpi_abi (vrtcc does)",
                path.display()
            );
            ExitCode::from(NOT_RUN)
        }
        Err(ProgramError::WithoutMpi { starts_others, .. }) => {
            // Nothing would read them, so nothing else would say what is wrong with them.
            if let Err(error) = arguments.vrt.check() {
                return vrt_launch::report_usage_error(&error);
            }
            if !starts_others {
                eprintln!(
                    "vrtrun: note: {} does not use MPI and runs once; programs become ranks if they are \
                     compiled with vrtcc or vrtcxx, or use vrt from Rust",
                    path.display()
                );
            } else if arguments.verbose {
                eprintln!("vrtrun: {} does not use MPI: what it starts may", path.display());
            }
            become_it(path, Kind::Starter, rest, arguments)
        }
        // One that could not be loaded, but need not be.
        Err(ProgramError::Load(
            LoadError::FixedAddress { .. }
            | LoadError::Static { .. }
            | LoadError::StaticPie { .. }
            | LoadError::ThirtyTwoBit { .. }
            | LoadError::Refused { .. },
        )) if !calls_mpi_all_the_same() && !kind::mentions_mpi(path) => {
            become_it(path, Kind::Starter, rest, arguments)
        }
        Err(error) => {
            eprintln!("vrtrun: {error}");
            ExitCode::from(NOT_RUN)
        }
    }
}
