//! What `lb-sim` says of a case: it is recorded without balancing, and replayed without, with the best known balancer
//! and with `auto`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::Error;
use super::cases::Case;
use super::job;

/// Milliseconds between two phases of a recording.
const PHASE: u64 = 50;
/// Whose time is longer by no more than this part is as fast, or by twice what is not certain of it.
const CLOSE: f64 = 0.05;

/// Seconds of a case without balancing, with the best known balancer, if there is one, and with `auto`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seconds {
    pub none: f64,
    pub best: Option<f64>,
    pub auto: f64,
}

impl Seconds {
    /// Whether the fastest here is among the fastest in real runs, and the other way round; times of these are known up
    /// to such a part.
    pub fn agrees_with(&self, real: &Seconds, uncertain: f64) -> bool {
        let wins = |one: &[f64; 3], other: &[f64; 3], close: f64| {
            let least = |times: &[f64; 3]| times.iter().copied().fold(f64::INFINITY, f64::min);
            let is_close = |time: f64| time <= (1.0 + close) * least(other);
            one.iter().zip(other).any(|(time, there)| *time == least(one) && is_close(*there))
        };
        let (one, real) = (self.all(), real.all());
        wins(&one, &real, CLOSE.max(2.0 * uncertain)) && wins(&real, &one, CLOSE)
    }

    fn all(&self) -> [f64; 3] {
        [self.none, self.best.unwrap_or(f64::INFINITY), self.auto]
    }
}

/// What a replay says of who decided.
#[derive(Debug, Deserialize)]
struct Replayed {
    balancer: String,
    seconds: f64,
}

#[derive(Debug, Deserialize)]
struct Replays {
    replays: Vec<Replayed>,
}

/// Records a case and replays it; for `programs` and `two_machines` see [`job::run`], `lb_sim` is the program.
pub(super) fn of(
    case: &Case,
    programs: Option<&Path>,
    two_machines: Option<&Path>,
    lb_sim: &Path,
) -> Result<Seconds, Error> {
    let failed = |why: String| Error::Job(format!("{}, replayed", case.name), why);
    let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let name = folder.path().join("loads");
    let period = format!("{PHASE}ms");
    let dump = name.to_string_lossy();
    job::run(
        case,
        programs,
        two_machines,
        &["--lb", "null", "--lb-period", &period, "--lb-dump", &dump],
    )?;
    let files: Vec<PathBuf> =
        (0..2).map(|pe| folder.path().join(format!("loads.{pe}.json"))).collect();
    let (strategy, every) = best(case.best);
    let output = Command::new(lb_sim)
        .arg("--replay")
        .args(&files)
        .args(["--lb", strategy, "--every", &every.to_string(), "--json"])
        .output()
        .map_err(|error| failed(format!("{}: {error}", lb_sim.display())))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let said: Replays =
        serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))?;
    let seconds = |name: &str| {
        let replay = said.replays.iter().find(|it| it.balancer == name);
        replay.map(|it| it.seconds).ok_or_else(|| failed(format!("it does not say {name}")))
    };
    Ok(Seconds {
        none: seconds("nobody moves")?,
        best: (!case.best.is_empty()).then(|| seconds(strategy)).transpose()?,
        auto: seconds("auto")?,
    })
}

/// The strategy that arguments name, and after how many phases it decides.
fn best<'a>(arguments: &[&'a str]) -> (&'a str, u64) {
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| *argument == name)?;
        arguments.get(at + 1).copied()
    };
    let period = after("--lb-period").and_then(|period| period.strip_suffix("ms")?.parse().ok());
    (after("--lb").unwrap_or("null"), period.unwrap_or(PHASE).div_ceil(PHASE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn winners_are_those_that_hardly_anybody_beats() {
        let seconds = |none, best, auto| Seconds { none, best, auto };
        let real = seconds(2.0, Some(1.03), 1.0);
        assert!(seconds(4.0, Some(3.0), 3.1).agrees_with(&real, 0.0));
        assert!(seconds(4.0, Some(3.1), 3.0).agrees_with(&real, 0.0));
        assert!(!seconds(3.0, Some(3.0), 4.0).agrees_with(&real, 0.0));
        assert!(!seconds(2.0, Some(3.0), 4.0).agrees_with(&real, 0.4));
        let unsteady = seconds(1.0, None, 1.08);
        assert!(!seconds(1.0, None, 0.9).agrees_with(&unsteady, 0.01));
        assert!(seconds(1.0, None, 0.96).agrees_with(&unsteady, 0.05));
        assert!(seconds(1.0, None, 1.04).agrees_with(&seconds(1.0, None, 1.0), 0.0));
    }

    #[test]
    fn the_best_is_read_from_arguments() {
        assert_eq!(best(&["--lb", "hilbert", "--lb-period", "400ms"]), ("hilbert", 8));
        assert_eq!(best(&[]), ("null", 1));
    }
}
