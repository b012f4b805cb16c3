//! One run of a case.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::cases::Case;
use crate::Error;
use crate::process::run_to_end_within;

/// The time after which a run is ended.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// A placement that was tried and judged.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    /// The predicted gain, as a part, and the measured one.
    pub promised: f64,
    pub came: f64,
    /// Its result.
    pub verdict: Verdict,
}

/// The result of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Kept,
    Unclear,
    TakenBack,
}

/// The results of a run.
pub(super) struct Outcome {
    pub seconds: f64,
    /// The part of them spent on measuring ranks, deciding and moving.
    pub balancing: f64,
    pub trials: Vec<Trial>,
}

/// Runs a case with a balancer; `folder` is the directory of its program, and `two_machines` the program xtask if it
/// has to run as one PE on each of two machines.
pub(super) fn run(
    case: &Case,
    folder: Option<&Path>,
    two_machines: Option<&Path>,
    balancer: &[&str],
) -> Result<Outcome, Error> {
    let mut words = case.command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let program = folder.map_or_else(|| program.into(), |folder| folder.join(program));
    let mut command = Command::new(two_machines.unwrap_or(&program));
    match two_machines {
        Some(_) => command.args(["two-machines", "--pes", "1", "--"]).arg(&program),
        None => command.env("VRT_PES", "2"),
    };
    let _other = (case.shared > 0.0).then(|| Other::start(case.shared)).transpose();
    let _other = _other.map_err(|error| {
        Error::Job(case.name.to_owned(), format!("taskset and timeout are needed: {error}"))
    })?;
    let ended = run_to_end_within(command.args(words).args(balancer), TIME_LIMIT)?;
    Ok(Outcome {
        seconds: seconds_in(&ended.out).unwrap_or(ended.seconds),
        balancing: balancing_in(&ended.err).unwrap_or(0.0),
        trials: trials_in(&ended.err),
    })
}

/// Another program on the core of PE 1, which is killed when this is dropped.
struct Other(Child);

impl Other {
    fn start(seconds: f64) -> std::io::Result<Other> {
        let seconds = format!("{seconds}");
        // It ends when this program has, however that ends: then there is no such process.
        const LOOP: &str = "while kill -0 \"$0\" 2>/dev/null; do \
             i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done";
        let this = std::process::id().to_string();
        let mut command = Command::new("taskset");
        command.args(["-c", "1", "timeout", &seconds, "sh", "-c", LOOP, &this]);
        command.stdin(Stdio::null()).spawn().map(Other)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // `taskset` and `timeout`, as it is now, end what they have started on this signal only.
        let terminate = Command::new("kill").arg(self.0.id().to_string()).status();
        if terminate.is_err() {
            // Nothing else can be done about it.
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

/// The seconds that a program reports: a line `time` with a number. If it reports those of a part that it repeats (`s a
/// search`), the whole run counts.
fn seconds_in(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("time "))?;
    if line.contains("a search") {
        return None;
    }
    line.split_whitespace().next()?.parse().ok()
}

/// The seconds that balancing took, from the balancer's final report.
fn balancing_in(said: &str) -> Option<f64> {
    let line = said.lines().rfind(|line| line.contains("load balancing: "))?;
    let (_, rest) = line.split_once(" moved")?.1.split_once(" in ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The trials reported by the balancer: one line contains the predicted gain, a later one the measured one.
fn trials_in(said: &str) -> Vec<Trial> {
    let mut promised = None;
    let mut trials = Vec::new();
    for line in said.lines().filter(|line| line.contains("balancing step")) {
        if let Some((_, rest)) = line.split_once("which promises ") {
            promised = percent(rest);
            continue;
        }
        let (verdict, rest) = if let Some((_, rest)) = line.split_once("; keeps ") {
            (Verdict::Kept, rest)
        } else if let Some((_, rest)) = line.split_once("told from noise: ") {
            (Verdict::Unclear, rest)
        } else if let Some((_, rest)) = line.split_once("; takes ") {
            (Verdict::TakenBack, rest)
        } else {
            continue;
        };
        let came = rest.rsplit_once(": ").map_or(rest, |(_, number)| number);
        if let (Some(promised), Some(came)) = (promised.take(), percent(came)) {
            trials.push(Trial { promised, came, verdict });
        }
    }
    trials
}

/// The part at the beginning of a text such as `+18.2%`.
fn percent(text: &str) -> Option<f64> {
    let (number, _) = text.split_once('%')?;
    Some(number.trim().parse::<f64>().ok()? / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_read_from_what_the_balancer_says() {
        let step = |news: &str| {
            format!(
                "vrt: balancing step 7 (auto): imbalance 0.309 -> 0.048, 6 ranks moved, 4.0 us; {news}\n"
            )
        };
        let said = [
            step("tries greedy-refine, which promises +18.2%"),
            step("keeps greedy-refine: +77.0% +- 26.8"),
            step("tries hilbert, which promises +3.0%"),
            step("no gain by hilbert that can be told from noise: -0.4% +- 1.0"),
            step("tries pile, which promises +100.0%"),
            step("takes pile back: -40.0% +- 2.0"),
            step("tries greedy, which promises +5.0%"),
        ]
        .concat();
        let trial = |promised: f64, came: f64, verdict| Trial { promised, came, verdict };
        assert_eq!(
            trials_in(&said),
            [
                trial(18.2 / 100.0, 77.0 / 100.0, Verdict::Kept),
                trial(3.0 / 100.0, -0.4 / 100.0, Verdict::Unclear),
                trial(1.0, -40.0 / 100.0, Verdict::TakenBack),
            ]
        );
    }

    #[test]
    fn what_balancing_takes_is_said_at_the_end() {
        let said = "vrt: balancing step 1\nvrt: load balancing: auto: 41 steps, 16 ranks moved in 0.009 s; imbalance\n";
        assert_eq!(balancing_in(said), Some(0.009));
        let said =
            "vrt: load balancing: auto: 4 steps, 1 rank moved (3.0 MiB) in 0.010 s; imbalance\n";
        assert_eq!(balancing_in(said), Some(0.01));
        assert_eq!(balancing_in("vrt: no rank moved"), None);
    }

    #[test]
    fn seconds_are_those_of_the_whole() {
        assert_eq!(seconds_in("x\ntime           2.5 s, 3 ms a step\n"), Some(2.5));
        assert_eq!(seconds_in("time 0.025736 s, 160477653 nodes/s\n"), Some(0.025736));
        assert_eq!(seconds_in("time           0.000688 s a search, 7e8 arcs/s"), None);
    }
}
