//! A directory in which programs are compiled.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Outcome;

/// A directory that is removed at the end.
pub(crate) struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    pub(crate) fn new() -> Workshop {
        let workshop = Workshop { folder: tempfile::tempdir().unwrap() };
        // Programs are linked with something that defines what the harness provides.
        workshop.library("libruntime.so", STUBS, "");
        workshop
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Compiles and links C; `flags` come last, are split at spaces, and are relative to the
    /// directory.
    pub(crate) fn c(&self, name: &str, source: &str, flags: &str) -> PathBuf {
        self.compile("cc", "c", name, source, flags)
    }

    /// A C program, position independent by default.
    pub(crate) fn program(&self, name: &str, source: &str, flags: &str) -> PathBuf {
        self.c(name, source, &format!("-fPIE -pie {flags} {RUNTIME}"))
    }

    /// A C library.
    pub(crate) fn library(&self, name: &str, source: &str, flags: &str) -> PathBuf {
        self.c(name, source, &format!("-fPIC -shared -Wl,-soname,{name} {flags}"))
    }

    /// A C++ program.
    pub(crate) fn cpp(&self, name: &str, source: &str, flags: &str) -> PathBuf {
        self.compile("c++", "cc", name, source, &format!("-fPIE -pie {flags} {RUNTIME}"))
    }

    /// A C++ library.
    pub(crate) fn cpp_library(&self, name: &str, source: &str, flags: &str) -> PathBuf {
        let flags = format!("-fPIC -shared -Wl,-soname,{name} {flags}");
        self.compile("c++", "cc", name, source, &flags)
    }

    /// Runs a program as a separate process, loaded by the system: images should behave like it.
    /// Its first argument is 0.
    pub(crate) fn native(&self, program: &Path) -> Outcome {
        let mut command = Command::new(program);
        let result = command.arg("0").env("LD_LIBRARY_PATH", self.folder.path()).output().unwrap();
        let output = String::from_utf8_lossy(&result.stdout);
        let report = |line: &str| {
            let (name, value) = line.strip_prefix("report ")?.rsplit_once('=')?;
            Some((name.to_string(), value.parse().ok()?))
        };
        let reports = output.lines().filter_map(report).collect();
        let status = result.status.code();
        Outcome { status: status.unwrap_or_else(|| panic!("{result:?}")), reports }
    }

    fn compile(
        &self,
        compiler: &str,
        suffix: &str,
        name: &str,
        source: &str,
        flags: &str,
    ) -> PathBuf {
        let source = self.write(&format!("{name}.{suffix}"), &format!("{PRELUDE}{source}"));
        let output = self.path(name);
        let mut command = Command::new(compiler);
        command.current_dir(self.folder.path()).args(["-O2", "-g0", "-o"]);
        command.arg(&output).arg(&source).args(flags.split_whitespace());
        let result = command.output().unwrap();
        let message = String::from_utf8_lossy(&result.stderr);
        assert!(result.status.success(), "{command:?}: {message}");
        output
    }
}

const RUNTIME: &str = "-L. -lruntime";

/// For programs that are run by the system.
const STUBS: &str = r#"
int dprintf(int descriptor, const char *format, ...);
void report(const char *what, long value) { dprintf(1, "report %s=%ld\n", what, value); }
void meet(void) {}
"#;

const PRELUDE: &str = "
#ifdef __cplusplus
extern \"C\" {
#endif
void report(const char *what, long value);
void meet(void);
#ifdef __cplusplus
}
#endif
#line 1
";
