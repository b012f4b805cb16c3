//! Running a job of an experiment: this program itself, whose report is parsed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rocket_mini::switching::keep_to_first_core;

use super::ExperimentError;
use super::cachegrind::Counts;
use super::catalog::Job;
use super::loads::Loads;

/// The measurements of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// Seconds of all steps.
    pub seconds: f64,
    /// Steps, or iterations.
    pub steps: f64,
    /// How PEs spent their time.
    pub uses: Uses,
    /// Seconds, and the number of steps by then.
    pub course: Vec<(f64, f64)>,
    /// The costs of ranks, period by period, if they were recorded.
    pub loads: Loads,
    /// The counts per step, if requested.
    pub counts: Option<Counts>,
    /// The result, in a few digits, if the report contains it.
    pub result: Option<String>,
}

/// Shares of the time, in percent: means over PEs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Uses {
    /// In ranks.
    pub ranks: f64,
    /// Idle.
    pub idle: f64,
    /// The part of the idle time by which the ranks of the busiest PE work longer than those of the others: the
    /// imbalance of the whole run. The rest is waiting for messages.
    pub uneven: f64,
    /// In the runtime itself: messages, switches, polling.
    pub own: f64,
}

impl Outcome {
    /// Steps per second.
    pub(super) fn rate(&self) -> f64 {
        self.steps / self.seconds
    }

    /// Steps per second in each of this many parts of the run, with the middle of each part.
    pub(super) fn rates(&self, parts: usize) -> Vec<(f64, f64)> {
        let Some((end, _)) = self.course.last() else { return Vec::new() };
        let steps_at = |time: f64| {
            let after = self.course.partition_point(|(seconds, _)| *seconds < time);
            let (a, b) = (
                self.course[after.max(1) - 1],
                self.course[after.max(1).min(self.course.len() - 1)],
            );
            let share = if b.0 > a.0 { (time - a.0) / (b.0 - a.0) } else { 1.0 };
            a.1 + share * (b.1 - a.1)
        };
        let length = end / parts as f64;
        (0..parts)
            .map(|part| {
                let [from, to] = [part, part + 1].map(|part| part as f64 * length);
                (0.5 * (from + to), (steps_at(to) - steps_at(from)) / length)
            })
            .collect()
    }

    /// Parses a report and the statistics of the PEs.
    pub(super) fn of(report: &str, statistics: &str, course: &str) -> Option<Self> {
        let word = |name: &str| {
            let text = report.lines().find_map(|line| line.strip_prefix(name))?.trim();
            text.split([' ', ',']).next()
        };
        let number = |name: &str| -> Option<f64> { word(name)?.parse().ok() };
        let shares = |name: &str| -> Vec<f64> {
            (statistics.lines())
                .filter_map(|line| line.split_once(name)?.1.split('%').next()?.parse().ok())
                .collect()
        };
        let mean = |shares: &[f64]| shares.iter().sum::<f64>() / (shares.len() as f64).max(1.0);
        let in_ranks = shares("in ranks ");
        let (ranks, idle) = (mean(&in_ranks), mean(&shares(", idle ")));
        let own = mean(&shares(", the runtime's own "));
        let uneven = (in_ranks.iter().copied().fold(ranks, f64::max) - ranks).min(idle);
        let course: Vec<(f64, f64)> = (course.lines().skip(1))
            .filter_map(|line| line.split_once(','))
            .filter_map(|(seconds, steps)| Some((seconds.parse().ok()?, steps.parse().ok()?)))
            .collect();
        let begin = course.first().map_or(0.0, |row| row.0);
        let course = course.into_iter().map(|(seconds, steps)| (seconds - begin, steps)).collect();
        Some(Self {
            seconds: number("time ")?,
            steps: number("steps ").or_else(|| number("iterations "))?,
            uses: Uses { ranks, idle, uneven, own },
            course,
            loads: Loads::default(),
            counts: None,
            result: word("checksum ").or_else(|| word("displacement ")).map(str::to_owned),
        })
    }
}

/// Whether two results are equal: checksums in all digits, numbers up to the tolerance of a solver.
pub(super) fn agree(a: &str, b: &str) -> bool {
    let is_number = |text: &str| text.contains('.');
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) if is_number(a) && is_number(b) => (x - y).abs() <= 1e-5 * x.abs(),
        _ => a == b,
    }
}

/// When another program computes: its start and its duration in seconds.
pub(super) type Disturbance = Option<(f64, f64)>;

/// Runs the job. Its results are verified by tests, not here, where that takes time.
pub(super) fn run(
    job: &Job,
    folder: &Path,
    disturbance: Disturbance,
) -> Result<Outcome, ExperimentError> {
    let fail = |why: String| ExperimentError::Job { line: job.arguments.clone(), why };
    let program = std::env::current_exe().map_err(|it| fail(it.to_string()))?;
    let history = folder.join("course.csv");
    let dump = job.is_recorded.then(|| folder.join("loads"));
    let has_ended = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        let other = disturbance.map(|(from, length)| {
            let has_ended = &has_ended;
            scope.spawn(move || compute(from, length, has_ended))
        });
        let mut command = Command::new(program);
        command.args(job.arguments.split_whitespace()).args(["--no-verify", "--no-progress"]);
        if !job.is_bare {
            command.args(["--statistics", "--history"]).arg(&history);
        }
        if let Some(dump) = &dump {
            command.arg("--lb-dump").arg(dump);
        }
        let output = command.stdin(Stdio::null()).output();
        has_ended.store(true, Ordering::Relaxed);
        let other = other.map_or(Ok(Ok(())), |thread| thread.join());
        match other {
            Ok(Ok(())) => output.map_err(|it| it.to_string()),
            Ok(Err(why)) => Err(format!("cannot keep the other program on one core: {why}")),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    let output = output.map_err(fail)?;
    let [report, statistics] =
        [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    if !output.status.success() {
        return Err(fail(format!("{}: {}", output.status, statistics.trim())));
    }
    // A run that is too short for it has no course.
    let course = std::fs::read_to_string(&history).unwrap_or_default();
    // Left over, it would be read as that of the next run.
    let _ = std::fs::remove_file(&history);
    let mut outcome = Outcome::of(&report, &statistics, &course)
        .ok_or_else(|| fail(format!("its report is not understood:\n{report}")))?;
    if let Some(dump) = &dump {
        outcome.loads = Loads::take(dump).map_err(|error| fail(error.to_string()))?;
    }
    Ok(outcome)
}

/// Computes, after some seconds and for some seconds, as another program would that shares the core of the first PE,
/// which is the first core that may be used.
fn compute(from: f64, length: f64, has_ended: &AtomicBool) -> std::io::Result<()> {
    keep_to_first_core()?;
    let start = Instant::now();
    let seconds = || start.elapsed().as_secs_f64();
    while seconds() < from + length && !has_ended.load(Ordering::Relaxed) {
        if seconds() < from {
            std::thread::sleep(Duration::from_millis(5));
        } else {
            std::hint::spin_loop();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rustix::thread::sched_getaffinity;

    use super::*;

    #[test]
    fn another_program_keeps_to_one_core_until_the_job_has_ended() {
        let has_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                compute(0.0, f64::INFINITY, &has_ended).unwrap();
                sched_getaffinity(None).unwrap().count()
            });
            has_ended.store(true, Ordering::Relaxed);
            assert_eq!(other.join().unwrap(), 1);
        });
    }

    #[test]
    fn reports_and_statistics_are_read() {
        let report = "grid           8 x 8\nsteps          40 intervals, 380 steps of the gas\n\
                      checksum       00ff\n\
                      time           2.5 s, 1e6 cells/s\n";
        let statistics = "vrt: PE 0: in ranks 90.0%, idle 7.0%, the runtime's own 3.0% of 2.5 s\n\
                          vrt: PE 1: in ranks 70.0%, idle 29.0%, the runtime's own 1.0% of 2.5 s\n\
                          vrt: PE 1: largest heap\n";
        let course = "seconds,steps\n0.5,1\n1.5,11\n2.5,41\n";
        let outcome = Outcome::of(report, statistics, course).unwrap();
        assert_eq!((outcome.seconds, outcome.steps), (2.5, 40.0));
        assert_eq!(outcome.uses, Uses { ranks: 80.0, idle: 18.0, uneven: 10.0, own: 2.0 });
        assert_eq!((outcome.rate(), outcome.result.as_deref()), (16.0, Some("00ff")));
        assert_eq!(outcome.rates(2), [(0.5, 10.0), (1.5, 30.0)]);
        let short = Outcome::of("iterations     7, converged\ntime  1 s\n", "", "").unwrap();
        assert_eq!((short.steps, short.rates(3)), (7.0, vec![]));
        assert!(Outcome::of("time           1 s\n", "", "").is_none());
    }

    #[test]
    fn checksums_agree_in_all_digits_and_displacements_in_some() {
        assert!(agree("1.000000e-3", "0.001000001") && !agree("1.0e-3", "0.0011"));
        assert!(agree("1234567890123456", "1234567890123456"));
        assert!(!agree("1234567890123456", "1234567890123457"));
    }
}
