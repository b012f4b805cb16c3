//! The programs of the tests: compiled once, run as jobs.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::{env, fs, process};

use vrt_tests::job::Job;

const VRTRUN: &str = env!("CARGO_BIN_EXE_vrtrun");

/// A program of the directory `c`.
pub(crate) struct Program {
    /// Its source; the extension decides between C and C++.
    pub source: &'static str,
    /// Additional options of the compiler.
    pub options: &'static [&'static str],
    /// Sources of its own libraries, which are placed beside it.
    pub libraries: &'static [&'static str],
    /// Its default arguments.
    pub arguments: &'static str,
}

/// Programs that have been compiled, or are being compiled, by file.
static MADE: LazyLock<Mutex<HashMap<PathBuf, Arc<OnceLock<()>>>>> = LazyLock::new(Mutex::default);

impl Program {
    pub(crate) const fn new(source: &'static str) -> Program {
        Program { source, options: &[], libraries: &[], arguments: "" }
    }

    /// Its file, compiled on the first request.
    pub(crate) fn file(&self) -> PathBuf {
        // Programs of the same source with other options are others.
        let folder = folder().join(self.options.concat().replace(['/', '$', ' '], "_"));
        let file = folder.join(stem(self.source));
        let made = Arc::clone(MADE.lock().unwrap().entry(file.clone()).or_default());
        made.get_or_init(|| {
            fs::create_dir_all(&folder).unwrap();
            let mut options = vec![format!("-L{}", folder.display())];
            for library in self.libraries {
                let name = stem(library);
                let mut shared = vec!["-shared", "-fPIC"];
                shared.extend(self.options);
                compile(library, &folder.join(format!("lib{name}.so")), &shared);
                options.push(format!("-l{name}"));
            }
            let mut all: Vec<&str> = options.iter().map(String::as_str).collect();
            all.extend(["-Wl,-rpath,$ORIGIN", "-lm"]);
            all.extend(self.options);
            compile(self.source, &file, &all);
        });
        file
    }

    /// A job of the program with these options and arguments, separated by spaces.
    pub(crate) fn job(&self, options: &str, arguments: &str) -> Command {
        let limit = env::var("VRT_TEST_LIMIT").unwrap_or_else(|_| "60".to_owned());
        self.job_within(&limit, options, arguments)
    }

    /// The same, killed after this many seconds.
    pub(crate) fn job_within(&self, limit: &str, options: &str, arguments: &str) -> Command {
        let mut command = Command::new("env");
        // A crash has a backtrace, whatever panics of the tests are to have.
        command.args(["-u", "RUST_BACKTRACE", "timeout", "--kill-after=5", limit, VRTRUN]);
        command.args(options.split_whitespace());
        command.arg(self.file()).args(arguments.split_whitespace());
        command
    }

    /// Runs it as a job.
    pub(crate) fn run(&self, options: &str) -> Job {
        Job::of(self.job(options, self.arguments))
    }
}

fn stem(source: &str) -> &str {
    source.split_once('.').unwrap().0
}

/// Where the tests' files are created.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs")
}

/// Compiles a program of the directory `c` as an ordinary process, with the system's compiler.
pub(crate) fn compile_alone(source: &'static str, options: &[&str]) -> PathBuf {
    let folder = folder().join("alone");
    fs::create_dir_all(&folder).unwrap();
    let (file, new) = (folder.join(stem(source)), folder.join(process::id().to_string()));
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/c");
    let mut command = Command::new("cc");
    command.args(["-O1", "-Wall", "-Werror"]).args(options).arg(sources.join(source));
    let output = command.arg("-o").arg(&new).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    fs::rename(&new, &file).unwrap();
    file
}

/// Compiles a source of the directory `c`.
fn compile(source: &str, file: &Path, options: &[&str]) {
    let compiler = match source.ends_with(".cc") {
        true => env!("CARGO_BIN_EXE_vrtcxx"),
        false => env!("CARGO_BIN_EXE_vrtcc"),
    };
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/c");
    // Another run of these tests may use the one that is there.
    let mut new = OsString::from(file);
    new.push(format!(".{}", process::id()));
    let mut command = Command::new(compiler);
    command.args(["-O1", "-g", "-Wall", "-Werror"]).arg(sources.join(source)).arg("-o").arg(&new);
    command.args(options).env("XDG_CACHE_HOME", folder().join("cache"));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    fs::rename(&new, file).unwrap();
}
