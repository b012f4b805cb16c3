//! The command line of a wrapper: its own options are in one table, all others are the compiler's.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::path::PathBuf;

use super::error::Error;
use super::language::Language;
use crate::MISSING_NAMES;

/// What a wrapper is asked to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Run the compiler with these arguments and what belongs around them.
    Compile(Vec<OsString>),
    /// Answer a question; these are the other arguments.
    Answer(Query, Vec<OsString>),
    /// Make the files of a prefix in this directory.
    Install(PathBuf),
}

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Query {
    /// The whole command line.
    Command,
    /// The compiler and what it needs to compile.
    CompileCommand,
    /// The compiler and what it needs to link.
    LinkCommand,
    /// What is needed to compile.
    CompileFlags,
    /// What is needed to link.
    LinkFlags,
    /// Where the header is.
    IncludeDirectories,
    /// Where the library is.
    LibraryDirectories,
    /// What the library is called.
    Libraries,
    /// The compiler.
    Compiler,
    /// Which version this is.
    Version,
    /// Where header and library are.
    Prefix,
    /// The wrapper's options.
    Help,
}

/// Options that ask: their names, what they ask, and what the help says.
const QUERIES: &[(&[&str], Query, &str)] = &[
    (&["-show", "-showme"], Query::Command, "print the command instead of running it"),
    (
        &["-compile_info", "-compile-info"],
        Query::CompileCommand,
        "print the compiler and what it needs to compile",
    ),
    (
        &["-link_info", "-link-info"],
        Query::LinkCommand,
        "print the compiler and what it needs to link",
    ),
    (&["-showme:compile"], Query::CompileFlags, "print what is needed to compile"),
    (&["-showme:link"], Query::LinkFlags, "print what is needed to link"),
    (&["-showme:incdirs"], Query::IncludeDirectories, "print the header's directory"),
    (&["-showme:libdirs"], Query::LibraryDirectories, "print the library's directory"),
    (&["-showme:libs"], Query::Libraries, "print the library's name"),
    (&["-showme:command"], Query::Compiler, "print the compiler"),
    (&["-showme:version"], Query::Version, "print the versions of vrt and MPI"),
    (&["--vrt-prefix"], Query::Prefix, "print where include/mpi.h and lib/libmpi_abi.so.1 are"),
    (&["--vrt-help", "-showme:help"], Query::Help, "print this"),
];
const INSTALL: &str = "--vrt-install";
/// Links with functions that are not there, too.
pub(super) const ALL: &str = "--vrt-all-functions";

impl Job {
    /// Reads the arguments behind the wrapper's name.
    pub(super) fn parse(arguments: Vec<OsString>) -> Result<Job, Error> {
        let mut query = None;
        let mut others = Vec::new();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let known = |&&(names, ..): &&(&[&str], _, _)| {
                names.iter().any(|name| argument == OsStr::new(name))
            };
            if let Some(&(_, asked, _)) = QUERIES.iter().find(known) {
                query.get_or_insert(asked);
            } else if argument == OsStr::new(INSTALL) {
                let directory = arguments.next().filter(|directory| !directory.is_empty());
                return directory.map(|path| Job::Install(path.into())).ok_or(Error::NoDirectory);
            } else if is_ours(&argument) {
                let option = argument.to_string_lossy().into_owned();
                return Err(Error::Option { option });
            } else {
                others.push(argument);
            }
        }
        Ok(match query {
            Some(query) => Job::Answer(query, others),
            None => Job::Compile(others),
        })
    }
}

/// Whether an argument can only be meant for a wrapper.
fn is_ours(argument: &OsStr) -> bool {
    let argument = argument.as_encoded_bytes();
    argument.starts_with(b"--vrt-") || argument.starts_with(b"-showme:")
}

/// What `--vrt-help` prints.
pub(super) fn help(language: Language) -> String {
    let (name, compiler, variable) = (language.wrapper(), language.compiler(), language.variable());
    let mut text = format!(
        "{name} runs the {language} compiler (`{compiler}`, or what ${variable} names) with mpi.h \
         and the stub library of vrt.\nStart what it builds with `vrtrun --ranks N PROGRAM`.\n\n\
         usage: {name} [option of the compiler]...\n       {name} option [argument]...\n\n"
    );
    let mut option = |names: &str, help: &str| {
        // Writing to a text does not fail.
        let _ = writeln!(text, "  {names:<30} {help}");
    };
    for (names, _, help) in QUERIES {
        option(&names.join(", "), help);
    }
    option("--vrt-install DIR", "write the header and the library to DIR");
    option(ALL, "link functions that are not there, too: they end the job when they are called");
    text += "\nThese functions of MPI are not there, so that what needs them is not linked (`configure` sees that):\n";
    let mut line = String::from(" ");
    for name in MISSING_NAMES.iter().filter(|name| !name.ends_with("_c")) {
        if line.len() + 1 + name.len() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = String::from(" ");
        }
        let _ = write!(line, " {name}");
    }
    text + &line
}

/// Columns of help.
const WIDTH: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Job, Error> {
        Job::parse(arguments.iter().map(OsString::from).collect())
    }

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn what_is_not_ours_is_the_compilers() {
        let job = parse(&["-O2", "-shown", "-c", "a.c", "--version"]).unwrap();
        assert_eq!(job, Job::Compile(words(&["-O2", "-shown", "-c", "a.c", "--version"])));
    }

    #[test]
    fn questions_stand_anywhere_and_the_first_counts() {
        let job = parse(&["-c", "-show", "a.c", "-showme:libs"]).unwrap();
        assert_eq!(job, Job::Answer(Query::Command, words(&["-c", "a.c"])));
    }

    #[test]
    fn unknown_options_of_wrappers_are_wrong() {
        for option in ["-showme:nothing", "--vrt-nothing"] {
            let error = parse(&[option, "a.c"]).unwrap_err().to_string();
            assert!(error.contains(option) && error.contains("--vrt-help"), "{error}");
        }
        for arguments in [&["--vrt-install"][..], &["--vrt-install", ""]] {
            assert!(matches!(parse(arguments), Err(Error::NoDirectory)));
        }
    }

    #[test]
    fn the_help_names_every_option() {
        let help = help(Language::Cxx);
        for name in QUERIES.iter().flat_map(|(names, ..)| *names).chain(&[INSTALL, ALL]) {
            assert!(help.contains(name), "{name}");
        }
        for name in MISSING_NAMES.iter().filter(|name| !name.ends_with("_c")) {
            assert!(help.split_whitespace().any(|word| word == *name), "{name}");
        }
        assert!(help.lines().all(|line| line.len() <= WIDTH + 20), "{help}");
    }
}
