//! The compiler that does the work.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::command::{find_program, shown};
use super::error::Error;
use super::language::Language;
use crate::{LIBRARY, STUB};

/// A compiler: a program, and arguments that come before all others, as in `ccache gcc`.
pub(super) struct Compiler {
    language: Language,
    words: Vec<OsString>,
}

impl Compiler {
    /// The compiler of the language: what its variable names, or the system's.
    pub(super) fn of(language: Language) -> Result<Compiler, Error> {
        let named = env::var_os(language.variable());
        let words = match named {
            // A path may have blanks in it.
            Some(path) if Path::new(&path).is_file() => vec![path],
            Some(line) => line
                .as_bytes()
                .split(u8::is_ascii_whitespace)
                .filter(|word| !word.is_empty())
                .map(|word| OsString::from_vec(word.to_vec()))
                .collect(),
            None => Vec::new(),
        };
        let words = if words.is_empty() { vec![language.compiler().into()] } else { words };
        let compiler = Compiler { language, words };
        if compiler.is_this_program() {
            return Err(Error::Itself { language, program: compiler.shown() });
        }
        Ok(compiler)
    }

    /// Whether it would run itself for ever.
    fn is_this_program(&self) -> bool {
        let of_compiler = find_program(Path::new(&self.words[0]));
        let of_compiler = of_compiler.and_then(|path| path.canonicalize().ok());
        of_compiler.is_some() && of_compiler == env::current_exe().ok()
    }

    /// The command as a user would write it.
    pub(super) fn shown(&self) -> String {
        shown(&self.words)
    }

    /// Becomes the compiler; returns only if that is not possible.
    pub(super) fn exec(self, arguments: Vec<OsString>) -> Error {
        let error = self.command().args(arguments).exec();
        self.failed(error)
    }

    /// Compiles the stub library to a file, with the functions that are missing if it is to have `all`.
    pub(super) fn compile_stub(&self, output: &Path, all: bool) -> Result<(), Error> {
        let mut command = self.command();
        command.args(["-shared", "-fPIC", "-O2", "-x", "c", "-", "-o"]).arg(output);
        command.arg(format!("-Wl,-soname,{LIBRARY}"));
        command.args(all.then_some("-DVRT_ALL"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| self.failed(error))?;
        if let Some(mut input) = child.stdin.take() {
            // A compiler that does not read it says why; that comes below.
            let _ = input.write_all(STUB.as_bytes());
        }
        let done = child.wait_with_output().map_err(|error| self.failed(error))?;
        if done.status.success() {
            return Ok(());
        }
        let mut output = String::from_utf8_lossy(&done.stderr).trim_end().to_owned();
        if output.is_empty() {
            output = done.status.to_string();
        }
        Err(Error::Stub { command: self.shown(), output })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        command
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::Compiler { language: self.language, program: self.shown(), error }
    }
}
