//! What the compilers `vrtcc` and `vrtcxx` do: they run another compiler with the header and the
//! stub library, and have the options by which build systems ask for its flags.
//!
//! Header and stub library are files of a [`Prefix`], which the first call makes. A program that is
//! built with them is an ordinary one: position-independent, linked to `libmpi_abi.so.1`.
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     vrt_abi::wrapper::main(vrt_abi::wrapper::Language::C)
//! }
//! ```

mod arguments;
mod command;
mod compiler;
mod error;
mod flags;
mod language;
mod prefix;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

pub use error::Error;
pub use language::Language;
pub use prefix::Prefix;

use arguments::{Job, Query};
use compiler::Compiler;
use flags::{Stage, flags};

/// The wrapper, with the arguments of this process. It returns only where no compiler was run in
/// the place of this process: when a question is answered, or something is wrong.
pub fn main(language: Language) -> ExitCode {
    match run(language, env::args_os().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody could be told that standard error is gone.
            let _ = writeln!(io::stderr(), "{}: {error}", language.wrapper());
            ExitCode::from(2)
        }
    }
}

fn run(language: Language, mut arguments: Vec<OsString>) -> Result<(), Error> {
    let all = arguments.iter().any(|argument| argument == arguments::ALL);
    arguments.retain(|argument| argument != arguments::ALL);
    match Job::parse(arguments)? {
        Job::Compile(arguments) => {
            let compiler = Compiler::of(language)?;
            let stage = Stage::of(&arguments);
            if stage == Stage::Nothing {
                return Err(compiler.exec(arguments));
            }
            let prefix = Prefix::find(language, all)?;
            if let (Stage::Link, Some(option)) = (stage, flags::fixed_address(&arguments)) {
                let _ = writeln!(
                    io::stderr(),
                    "{}: warning: vrtrun cannot run what is linked with `{option}`: ranks of one \
                     process need programs that can be anywhere",
                    language.wrapper()
                );
            }
            Err(compiler.exec(flags::around(&prefix, stage, arguments)))
        }
        Job::Answer(query, arguments) => {
            let answer = answer(language, query, &arguments, all)?;
            writeln!(io::stdout(), "{answer}").map_err(Error::Output)
        }
        Job::Install(directory) => {
            let directory = std::path::absolute(&directory).unwrap_or(directory);
            let prefix = Prefix::make(&directory, language, all)?;
            writeln!(io::stdout(), "{}", prefix.path().display()).map_err(Error::Output)
        }
    }
}

/// What is printed for a question; the arguments are the others.
fn answer(
    language: Language,
    query: Query,
    arguments: &[OsString],
    all: bool,
) -> Result<String, Error> {
    let prefix = || Prefix::find(language, all);
    let shown = |path: PathBuf| path.display().to_string();
    Ok(match query {
        Query::Command => {
            let compiler = Compiler::of(language)?;
            let (prefix, stage) = (prefix()?, Stage::of(arguments));
            // Without a file to compile, the question is for the flags: those of a link.
            let arguments = match stage {
                Stage::Nothing => {
                    let [before, after] = flags(&prefix, Stage::Link);
                    [before, arguments.to_vec(), after].concat()
                }
                _ => flags::around(&prefix, stage, arguments.to_vec()),
            };
            format!("{} {}", compiler.shown(), command::shown(&arguments))
        }
        Query::CompileCommand | Query::LinkCommand => {
            let [before, after] = flags(&prefix()?, Stage::Link);
            let flags = if query == Query::CompileCommand { before } else { after };
            format!("{} {}", Compiler::of(language)?.shown(), command::shown(&flags))
        }
        Query::CompileFlags => command::shown(&flags(&prefix()?, Stage::Compile)[0]),
        Query::LinkFlags => command::shown(&flags(&prefix()?, Stage::Link)[1]),
        Query::IncludeDirectories => shown(prefix()?.include()),
        Query::LibraryDirectories => shown(prefix()?.linked()),
        Query::Libraries => "mpi_abi".to_owned(),
        Query::Compiler => Compiler::of(language)?.shown(),
        Query::Version => format!(
            "{}: vrt {}, MPI {}.{} (Language: {language})",
            language.wrapper(),
            env!("CARGO_PKG_VERSION"),
            crate::constants::MPI_VERSION,
            crate::constants::MPI_SUBVERSION
        ),
        Query::Prefix => shown(prefix()?.path().to_owned()),
        Query::Help => arguments::help(language),
    })
}
