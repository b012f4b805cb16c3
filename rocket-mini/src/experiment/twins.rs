//! Twins of this program's codes in C, compiled for Open MPI and run by its launcher.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::ExperimentError;
use super::run::Outcome;

/// Sources by file name.
const SOURCES: [(&str, &str); 4] = [
    ("bench.h", include_str!("../../../bench/c/bench.h")),
    ("times.h", include_str!("../../../bench/c/times.h")),
    ("flow.c", include_str!("../../../bench/c/flow.c")),
    ("solid.c", include_str!("../../../bench/c/solid.c")),
];

/// The compiler of Open MPI.
pub(super) const COMPILER: &str = "mpicc.openmpi";
/// The launcher of Open MPI.
pub(super) const LAUNCHER: &str = "mpirun.openmpi";

/// Compiled twins, in a temporary directory that is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Twins {
    folder: PathBuf,
}

impl Drop for Twins {
    fn drop(&mut self) {
        // What is left over disturbs nobody.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Twins {
    /// Compiles them in a directory that is created below `out`.
    pub(super) fn compile(out: &Path) -> Result<Self, ExperimentError> {
        let twins = Self { folder: out.join("twins") };
        let folder = &twins.folder;
        let fail = |line: &str, why: String| ExperimentError::Twin { line: line.to_owned(), why };
        let write = |path: &Path, text: &str| {
            std::fs::write(path, text).map_err(|why| {
                fail("of the sources", format!("cannot write {}: {why}", path.display()))
            })
        };
        std::fs::create_dir_all(folder).map_err(|why| {
            fail("of the sources", format!("cannot make {}: {why}", folder.display()))
        })?;
        for (name, text) in SOURCES {
            write(&folder.join(name), text)?;
        }
        for (name, _) in SOURCES.iter().filter(|(name, _)| name.ends_with(".c")) {
            let mut command = Command::new(COMPILER);
            // Not contracted, or the arithmetic is not that of this program.
            command.args(["-O3", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-ffp-contract=off"]);
            command.arg(name).arg("-o").arg(name.trim_end_matches(".c")).arg("-lm");
            let output = command.current_dir(folder).stdin(Stdio::null()).output();
            let output = output.map_err(|why| fail(COMPILER, why.to_string()))?;
            if !output.status.success() {
                let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                return Err(fail(&format!("{COMPILER} {name}"), why));
            }
        }
        Ok(twins)
    }

    /// Runs one, as this many processes, each on its own core if there are enough.
    pub(super) fn run(&self, line: &str, processes: u32) -> Result<Outcome, ExperimentError> {
        let fail = |why: String| ExperimentError::Twin { line: line.to_owned(), why };
        let mut words = line.split_whitespace();
        let name = words.next().ok_or_else(|| fail("no twin is named".to_owned()))?;
        // Without its path it would be looked for where programs are installed.
        let program = self.folder.join(name).canonicalize().map_err(|it| fail(it.to_string()))?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut command = Command::new(LAUNCHER);
        command.arg("--allow-run-as-root");
        if processes as usize <= cores {
            command.args(["--bind-to", "core"]);
        } else {
            command.args(["--oversubscribe", "--bind-to", "none"]);
        }
        command.args(["-n", &processes.to_string()]).arg(program).args(words);
        let output = command.stdin(Stdio::null()).output().map_err(|it| fail(it.to_string()))?;
        let [report, errors] =
            [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
        if !output.status.success() {
            return Err(fail(format!("{}: {}", output.status, errors.trim())));
        }
        outcome(&report).ok_or_else(|| fail(format!("its report is not understood:\n{report}")))
    }
}

/// Parses the line that a twin prints.
fn outcome(report: &str) -> Option<Outcome> {
    let line = report.lines().find(|line| line.starts_with('{'))?;
    let fields: serde_json::Value = serde_json::from_str(line).ok()?;
    let number = |name: &str| fields.get(name)?.as_f64();
    let text = fields.get("checksum").and_then(|it| it.as_str()).map(str::to_owned);
    Some(Outcome {
        seconds: number("seconds")?,
        steps: number("steps").or_else(|| number("iterations"))?,
        result: text.or_else(|| Some(number("displacement")?.to_string())),
        ..Outcome::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_twins_print_is_read() {
        let flow = "{\"figure\":\"flow\",\"seconds\":0.5,\"cells_per_second\":1e6,\"steps\":40,\
                    \"checksum\":\"00ff\"}\n";
        let read = outcome(flow).unwrap();
        assert_eq!((read.seconds, read.steps, read.result.as_deref()), (0.5, 40.0, Some("00ff")));
        let solid = "{\"figure\":\"solid\",\"seconds\":2,\"iterations\":7,\"displacement\":2.5e-3}";
        let read = outcome(solid).unwrap();
        assert_eq!((read.steps, read.result.as_deref()), (7.0, Some("0.0025")));
        assert!(outcome("bench: out of memory\n").is_none());
    }

    #[test]
    fn twins_are_compiled_run_and_removed() {
        let out = tempfile::tempdir().unwrap();
        if !super::super::is_installed(COMPILER) {
            eprintln!("left out: {COMPILER} is missing");
            return;
        }
        let twins = Twins::compile(out.path()).unwrap();
        let run = twins.run("flow 16 50", 2).unwrap();
        assert!(run.seconds > 0.0 && run.steps > 0.0 && run.result.is_some(), "{run:?}");
        let error = twins.run("solid 1 1", 1).unwrap_err();
        assert!(error.to_string().starts_with("solid 1 1: "), "{error}");
        drop(twins);
        assert!(!out.path().join("twins").exists());
    }
}
