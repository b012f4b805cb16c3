//! The systems that copy messages, and their measurements: copies without a runtime, `vrt`, Open
//! MPI.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use experiments::statistics::median;
use serde::Deserialize;

use crate::Error;
use crate::process::{mpirun, not_understood, run_program, run_to_end, vrt_bench};

/// Bytes that a repetition sends one way, unless a message has more.
const VOLUME: u32 = 8 << 20;
/// Repetitions per run; the program takes their median.
const REPETITIONS: u32 = 3;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub bytes: u32,
    /// Whether each cache line is written before it is sent and read after it was received.
    pub touched: bool,
}

impl Case {
    fn trips(self) -> u32 {
        (VOLUME / self.bytes).max(1)
    }

    /// In GB/s.
    pub(super) fn rate(self, seconds: f64) -> f64 {
        1e-9 * f64::from(self.bytes) / seconds
    }
}

/// Which end copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Who {
    Receiver,
    Sender,
    /// Each end copies one half, at the same time.
    Both,
}

impl Who {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Receiver => "receiver",
            Self::Sender => "sender",
            Self::Both => "both",
        }
    }
}

/// A method of copying without a runtime.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct Way {
    /// Its name in `c/methods.h`.
    pub method: String,
    pub who: Who,
    /// The size of pages.
    pub pages: String,
}

impl Way {
    /// Whether its stores bypass the caches.
    pub(super) fn is_non_temporal(&self) -> bool {
        self.method.contains("-nt") && !self.method.ends_with("-nta")
    }
}

/// A line of `c/copy.c`.
#[derive(Debug, Deserialize)]
pub(super) struct Line {
    #[serde(flatten)]
    way: Way,
    seconds: f64,
}

/// A runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum System {
    Vrt,
    /// With pages of 4 KiB.
    VrtSmallPages,
    OpenMpi,
}

impl System {
    /// All of them; without Open MPI if requested.
    pub(super) fn all(with_open_mpi: bool) -> Vec<Self> {
        let mut all = vec![Self::Vrt, Self::VrtSmallPages];
        all.extend(with_open_mpi.then_some(Self::OpenMpi));
        all
    }

    /// Its name in reports.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Vrt => "vrt",
            Self::VrtSmallPages => "vrt, pages of 4 KiB",
            Self::OpenMpi => "Open MPI",
        }
    }
}

/// Seconds of a message one way in each round.
pub(super) struct Results {
    pub case: Case,
    pub bare: BTreeMap<Way, Vec<f64>>,
    pub systems: BTreeMap<System, Vec<f64>>,
}

impl Results {
    /// The results of all rounds.
    pub(super) fn of(case: Case, rounds: Vec<Round>) -> Self {
        let mut results = Self { case, bare: BTreeMap::new(), systems: BTreeMap::new() };
        for (bare, systems) in rounds {
            for line in bare {
                results.bare.entry(line.way).or_default().push(line.seconds);
            }
            for (system, seconds) in systems {
                results.systems.entry(system).or_default().push(seconds);
            }
        }
        results
    }

    /// The fastest of some methods, by the median of its rounds, and its rate in GB/s.
    pub(super) fn best(&self, among: impl Fn(&Way) -> bool) -> Option<(&Way, f64)> {
        (self.bare.iter().filter(|(way, _)| among(way)))
            .map(|(way, seconds)| (way, self.case.rate(median(seconds))))
            .max_by(|left, right| left.1.total_cmp(&right.1))
    }

    /// GB/s of a runtime, by the median of its rounds.
    pub(super) fn rate(&self, system: System) -> Option<f64> {
        self.systems.get(&system).map(|seconds| self.case.rate(median(seconds)))
    }
}

/// What a round measures: plain copies, and runtimes.
pub(super) type Round = (Vec<Line>, Vec<(System, f64)>);

/// Where the C programs are.
pub(super) struct Programs {
    pub copy: PathBuf,
    pub pingpong: PathBuf,
}

impl Programs {
    /// Runs one more round of all programs.
    ///
    /// # Errors
    ///
    /// If one of them fails.
    pub(super) fn run(&self, systems: &[System], case: Case) -> Result<Round, Error> {
        let bare = bare_copies(self.bare(case))?;
        let seconds = |&system| Ok((system, run_program(self.command(system, case))?.seconds));
        Ok((bare, systems.iter().map(seconds).collect::<Result<_, Error>>()?))
    }

    /// All methods that are available here.
    fn bare(&self, case: Case) -> Command {
        let mut command = Command::new(&self.copy);
        command.args([case.bytes, case.trips(), REPETITIONS].map(|it| it.to_string()));
        command.args(["all", "all", "all"]).args(case.touched.then_some("touch"));
        command
    }

    fn command(&self, system: System, case: Case) -> Command {
        let numbers = [case.bytes, case.trips(), REPETITIONS].map(|it| it.to_string());
        if system == System::OpenMpi {
            let mut command = mpirun(2);
            command.arg(&self.pingpong).args(numbers).args(case.touched.then_some("touch"));
            return command;
        }
        let [bytes, trips, repetitions] = &numbers;
        let mut command = vrt_bench(["pingpong", "--pes", "2", "--ranks", "2", "--bytes", bytes]);
        command.args(["--operations", trips, "--repetitions", repetitions]);
        command.args(case.touched.then_some("--touch"));
        command.args((system == System::VrtSmallPages).then_some("--no-huge-pages"));
        command
    }
}

/// The lines that a run of `c/copy.c` prints.
fn bare_copies(mut command: Command) -> Result<Vec<Line>, Error> {
    let job = run_to_end(&mut command)?;
    let lines: Result<Vec<Line>, _> = job.out.lines().map(serde_json::from_str).collect();
    match lines {
        Ok(lines) if !lines.is_empty() => Ok(lines),
        _ => Err(not_understood(job)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn way(method: &str, who: Who, pages: &str) -> Way {
        Way { method: method.to_owned(), who, pages: pages.to_owned() }
    }

    #[test]
    fn lines_are_understood_and_others_refused() {
        let print = |text: &str| {
            let mut command = Command::new("echo");
            command.arg(text);
            bare_copies(command)
        };
        let line = r#"{"figure":"copy","seconds":2e-06,"least":1e-06,"most":3e-06,"repetitions":3,"bytes":4096,"method":"avx512-nt","who":"both","pages":"2M","touched":true}"#;
        let lines = print(line).unwrap();
        assert_eq!(lines[0].way, way("avx512-nt", Who::Both, "2M"));
        assert_eq!((lines.len(), lines[0].seconds), (1, 2e-6));
        for wrong in ["", "hello", &line.replace("both", "all"), &format!("{line}\nhello")] {
            assert!(matches!(print(wrong), Err(Error::Printed { .. })), "{wrong}");
        }
    }

    #[test]
    fn stores_past_the_caches_are_told_from_loads() {
        let is = |method| way(method, Who::Both, "4K").is_non_temporal();
        assert!(is("avx512-nt") && is("avx2-nt") && is("avx512-nt4"));
        assert!(!is("avx512-nta") && !is("memcpy"));
    }

    #[test]
    fn the_best_way_is_that_of_the_best_median() {
        let mut results = Results::of(Case { bytes: 4096, touched: false }, Vec::new());
        let (steady, lucky) = (way("memcpy", Who::Both, "2M"), way("movsb", Who::Both, "2M"));
        results.bare.insert(steady.clone(), vec![2e-6, 2e-6, 3e-6]);
        results.bare.insert(lucky, vec![1e-6, 3e-6, 4e-6]);
        let (best, rate) = results.best(|way| way.who == Who::Both).unwrap();
        assert_eq!(*best, steady);
        assert!((rate - 2.048).abs() < 1e-9, "{rate}");
        assert!(results.best(|way| way.who == Who::Sender).is_none());
        assert_eq!(results.rate(System::Vrt), None);
    }

    #[test]
    fn the_c_program_copies_in_every_way_there_is() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if Command::new("cc").arg("--version").output().is_err() || cores < 2 {
            eprintln!("left out: there is no cc, or one processor only");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let copy = place.path().join("copy");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/copy.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra"]);
        compiler.arg("-Werror").arg(source).arg("-o").arg(&copy);
        let told = compiler.output().unwrap();
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        for touched in [false, true] {
            let mut command = Command::new(&copy);
            command.args(["36864", "2", "1", "all", "all", "all"]);
            command.args(touched.then_some("touch"));
            let lines = bare_copies(command).unwrap();
            for who in [Who::Receiver, Who::Sender, Who::Both] {
                let memcpy = lines.iter().find(|it| it.way == way("memcpy", who, "4K")).unwrap();
                assert!(memcpy.seconds > 0.0);
            }
        }
        for (wrong, named) in [
            (&["100", "1", "1", "all", "all", "all"][..], "512"),
            (&["4096", "1", "0", "all", "all", "all"], "repetitions"),
            (&["4096", "1", "1", "memcpy,luck", "all", "all"], "luck"),
            (&["4096", "1", "1", "all", "nobody", "all"], "nobody"),
            (&["4096", "1", "1", "all", "all", "1G"], "1G"),
            (&["4096", "1", "1", "all", "all", "all", "tuch"], "tuch"),
            (&["4096"], "BYTES"),
        ] {
            let output = Command::new(&copy).args(wrong).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{wrong:?}: {said}");
            assert!(said.contains(named) && said.lines().count() == 1, "{said}");
        }
    }
}
