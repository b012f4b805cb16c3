//! How MPICH's tests are built: without their configure, for the MPI ABI.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::job::{command, regex, right, run, succeed};
use crate::steps::{Error, Steps, at};

/// What configure would find, for the MPI ABI: only what is in the standard.
const FOUND: &str = "ENABLE_STRICTMPI USE_STRICT_MPI HAVE_MPI_SPAWN HAVE_MPI_WIN_CREATE HAVE_MPI_IO
    HAVE_MPI_INTEGER16 HAVE_MPI_REAL16 HAVE_MPI_COMPLEX32 HAVE_LONG_DOUBLE HAVE_LONG_LONG HAVE_FLOAT16 HAVE_ATOMIC
    HAVE__BOOL HAVE_FLOAT__COMPLEX HAVE_DOUBLE__COMPLEX HAVE_LONG_DOUBLE__COMPLEX USE_LONG_DOUBLE_COMPLEX STDC_HEADERS
    HAVE_INTTYPES_H HAVE_STDARG_H HAVE_STDINT_H HAVE_STDIO_H HAVE_STDLIB_H HAVE_STRING_H HAVE_STRINGS_H
    HAVE_SYS_RESOURCE_H HAVE_SYS_STAT_H HAVE_SYS_TIME_H HAVE_SYS_TYPES_H HAVE_UNISTD_H HAVE_PTHREAD_H HAVE_H_ADDR_LIST
    HAVE_GETRUSAGE HAVE_STRDUP HAVE_USLEEP";

/// The rest. Some tests need their threads' kind even though they have only one.
const FOUND_VALUES: &str = "
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#define MPIO_USES_MPI_REQUEST
#define SIZEOF_VOID_P 8
#define SIZEOF_INT 4
#define SIZEOF_LONG 8
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SHORT 2
#define POINTERINT_t long
#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX
";

/// What the tests have in common, as far as the tree has it: MPICH 3 divides it otherwise. The `main` in it is that of
/// tests that have none.
const COMMON: [&str; 7] = [
    "mtest",
    "mtest_common",
    "mtest_single",
    "mtest_datatype",
    "mtest_datatype_gen",
    "dtypes",
    "run_mpitests",
];

/// Builds programs.
pub(super) struct Builder {
    tests: PathBuf,
    work: PathBuf,
    compiler: PathBuf,
    /// Of programs that are not made of the source of their name alone: the sources, and options for the preprocessor.
    special: HashMap<String, Vec<String>>,
}

impl Builder {
    /// Prepares what all programs need.
    pub(super) fn new(
        steps: &Steps,
        [tests, work, bin]: [&Path; 3],
        directories: &[String],
    ) -> Result<Builder, Error> {
        let write = |file: PathBuf, text: &str| fs::write(&file, text).map_err(at(&file));
        for directory in ["include", "lib"] {
            fs::create_dir_all(work.join(directory)).map_err(at(work))?;
        }
        let found: String =
            FOUND.split_whitespace().map(|name| format!("#define {name} 1\n")).collect();
        write(work.join("include/mpitestconf.h"), &format!("#pragma once\n{found}{FOUND_VALUES}"))?;
        // Where MPICH's own build puts new functions by other names.
        write(work.join("include/mtest_mpix.h"), "")?;
        // It is searched for in the directory above one of those of headers.
        write(work.join("dtpoolsconf.h"), "#define HAVE_MEMSET 1\n")?;
        let mut special = HashMap::new();
        for directory in directories {
            let file = tests.join(directory).join("Makefile.am");
            let text = fs::read_to_string(&file).map_err(at(&file))?;
            add_special(&mut special, directory, &text);
        }
        let [tests, work] = [tests.to_owned(), work.to_owned()];
        let builder = Builder { tests, work, compiler: bin.join("vrtcc"), special };
        builder.build_common(steps)?;
        Ok(builder)
    }

    /// The compiler, without its warnings. Tests of functions that are not there end by saying so.
    fn compile(&self) -> Command {
        let mut compile = Command::new(&self.compiler);
        compile.args(["-g", "-O1", "-w", "--vrt-all-functions", "-I"]);
        compile.arg(self.work.join("include")).arg("-I").arg(self.tests.join("include"));
        compile.arg("-I").arg(self.tests.join("dtpools/include"));
        compile
    }

    /// Builds the library of what tests have in common.
    fn build_common(&self, steps: &Steps) -> Result<(), Error> {
        let mut sources: Vec<PathBuf> =
            COMMON.iter().map(|name| self.tests.join(format!("util/{name}.c"))).collect();
        let pools = fs::read_dir(self.tests.join("dtpools/src")).into_iter().flatten().flatten();
        sources.extend(
            pools.map(|it| it.path()).filter(|it| it.extension().is_some_and(|it| it == "c")),
        );
        let mut archive = command("ar rcs");
        archive.arg(self.library());
        for source in sources.iter().filter(|it| it.is_file()) {
            let name = source.file_stem().unwrap_or_default();
            let object = self.work.join("lib").join(name).with_extension("o");
            let mut compile = self.compile();
            let job = run(600, compile.arg("-c").arg(source).arg("-o").arg(&object))?;
            // What uses functions that MPI 3.0 has removed cannot be compiled; nor then what needs it.
            if job.status == 0 {
                archive.arg(object);
            } else if name == "mtest" {
                return right(job, Some("mtest.c cannot be compiled".to_owned())).map(drop);
            } else {
                steps.say(&first_error(&job.text()));
            }
        }
        succeed(&archive).map(drop)
    }

    fn library(&self) -> PathBuf {
        self.work.join("lib/libtests.a")
    }

    /// The file of a program.
    pub(super) fn file(&self, program: &str) -> PathBuf {
        self.work.join("programs").join(program)
    }

    /// Builds a program that is not there; returns the first error, if there is one. The compiler's whole output is left
    /// beside the program.
    pub(super) fn build(&self, program: &str) -> Result<Option<String>, Error> {
        let file = self.file(program);
        if file.is_file() {
            return Ok(None);
        }
        let (directory, name) = program.split_once('/').unwrap_or(("", program));
        let [errors, part] =
            ["errors", "part"].map(|it| PathBuf::from(format!("{}.{it}", file.display())));
        let parent = file.parent().unwrap_or(&self.work);
        fs::create_dir_all(parent).map_err(at(parent))?;
        let mut words = self.special.get(program).cloned().unwrap_or_default();
        if words.iter().all(|it| it.starts_with('-')) {
            words.push(format!("{name}.c"));
        }
        let sources = format!("{}/", self.tests.display());
        let mut compile = self.compile();
        for word in words {
            match word.starts_with('-') {
                true => compile.arg(word),
                false => compile.arg(format!("{sources}{directory}/{word}")),
            };
        }
        compile.arg("-o").arg(&part).arg(self.library());
        let job = run(600, compile.args(["-lm", "-lpthread"]))?;
        if job.status == 0 {
            fs::rename(&part, &file).map_err(at(&part))?;
            return Ok(None);
        }
        fs::write(&errors, job.text()).map_err(at(&errors))?;
        Ok(Some(first_error(&job.text()).replace(&sources, "")))
    }
}

fn first_error(text: &str) -> String {
    let is_error = |line: &&str| line.contains("error") || line.contains("undefined reference");
    text.lines().find(is_error).unwrap_or("no error was found").to_owned()
}

/// Adds what a Makefile.am says of its programs.
fn add_special(special: &mut HashMap<String, Vec<String>>, directory: &str, makefile: &str) {
    let makefile = makefile.replace("\\\n", " ");
    let variable = regex(r"(?m)^(\w+)_(SOURCES|CPPFLAGS)[ \t]*=(.*)$");
    for found in variable.captures_iter(&makefile) {
        let is_source = &found[2] == "SOURCES";
        let is_wanted =
            |word: &&str| if is_source { word.ends_with(".c") } else { word.starts_with("-D") };
        let words = found[3].split_whitespace().filter(is_wanted).map(str::to_owned);
        special.entry(format!("{directory}/{}", &found[1])).or_default().extend(words);
    }
}
