//! The results of `lb-sim` for a case: it is recorded without balancing, and replayed without, with the best known
//! balancer and with `auto`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::cases::Case;
use super::job;
use super::{Balancer, Ratio, Times};
use crate::Error;
use crate::process::run_to_end;

/// Milliseconds between two phases of a recording.
const PHASE: u64 = 50;
/// A time that is longer by no more than this part, or by twice its uncertainty, counts as equally fast.
const CLOSE: f64 = 0.05;

/// Seconds of a case without balancing, with the best known balancer, if there is one, and with `auto`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seconds {
    pub none: f64,
    pub best: Option<f64>,
    pub auto: f64,
}

impl Seconds {
    /// Whether the fastest balancer here is among the fastest in real runs, and vice versa. Two of these are compared
    /// pairwise as they followed each other, which is more accurate than comparing both with a third one.
    pub(super) fn agrees_with(&self, real: &Times) -> bool {
        let there = Balancer::ALL.into_iter().filter(|it| !real.of(*it).is_empty());
        let there: Vec<(Balancer, f64)> =
            there.filter_map(|it| self.of(it).map(|seconds| (it, seconds))).collect();
        let beside = |one: Balancer| {
            there.iter().map(move |(other, _)| Ratio::between(real.of(one), real.of(*other)))
        };
        let least = there.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
        let fastest_here = there.iter().find(|(_, seconds)| *seconds == least);
        // The one that is beaten least.
        let slower_by = |one: Balancer| beside(one).map(|ratio| ratio.value).fold(1.0, f64::max);
        let fastest_there =
            there.iter().min_by(|one, other| slower_by(one.0).total_cmp(&slower_by(other.0)));
        let is_close = |ratio: Ratio| {
            let uncertain = if ratio.error.is_finite() { 2.0 * ratio.error } else { 0.0 };
            ratio.value <= 1.0 + CLOSE.max(uncertain)
        };
        fastest_here.is_some_and(|(it, _)| beside(*it).all(is_close))
            && fastest_there.is_some_and(|(_, seconds)| *seconds <= (1.0 + CLOSE) * least)
    }

    fn of(&self, balancer: Balancer) -> Option<f64> {
        match balancer {
            Balancer::Null => Some(self.none),
            Balancer::Best => self.best,
            Balancer::Auto => Some(self.auto),
        }
    }
}

/// The replay's result for one balancer.
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
    let mut replay = Command::new(lb_sim);
    replay.arg("--replay").args(&files);
    replay.args(["--lb", strategy, "--every", &every.to_string(), "--json"]);
    let said = run_to_end(&mut replay)?.out;
    let said: Replays = serde_json::from_str(&said).map_err(|error| failed(error.to_string()))?;
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

/// The strategy in some arguments, and the number of phases between its decisions.
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

    /// Runs in order.
    fn runs(none: &[f64], best: &[f64], auto: &[f64]) -> Times {
        let [none, best, auto] = [none, best, auto].map(<[f64]>::to_vec);
        Times { none, best, auto, balancing: Vec::new() }
    }

    #[test]
    fn winners_are_those_that_hardly_anybody_beats() {
        let seconds = |none, best, auto| Seconds { none, best, auto };
        let real = runs(&[2.0; 3], &[1.03; 3], &[1.0; 3]);
        assert!(seconds(4.0, Some(3.0), 3.1).agrees_with(&real));
        assert!(seconds(4.0, Some(3.1), 3.0).agrees_with(&real));
        assert!(!seconds(3.0, Some(3.0), 4.0).agrees_with(&real));
        assert!(!seconds(2.0, Some(3.0), 4.0).agrees_with(&real));
        let steady = runs(&[1.0; 4], &[], &[1.07, 1.08, 1.08, 1.09]);
        assert!(!seconds(1.0, None, 0.9).agrees_with(&steady));
        let unsteady = runs(&[1.0; 4], &[], &[0.9, 1.06, 1.1, 1.3]);
        assert!(seconds(1.0, None, 0.96).agrees_with(&unsteady));
        assert!(seconds(1.0, None, 1.04).agrees_with(&runs(&[1.0; 3], &[], &[1.0; 3])));
    }

    #[test]
    fn winners_are_compared_with_each_other() {
        // In four of five rounds `auto` is a little faster, though its median beside runs without is far larger.
        let best = [0.5, 0.6, 0.7, 0.8, 0.9];
        let auto = [0.49, 0.59, 0.8, 0.78, 0.88];
        let real = runs(&[1.0; 5], &best, &auto);
        assert!(Seconds { none: 2.0, best: Some(1.08), auto: 1.0 }.agrees_with(&real));
        assert!(!Seconds { none: 2.0, best: Some(1.0), auto: 1.08 }.agrees_with(&real));
    }

    #[test]
    fn the_best_is_read_from_arguments() {
        assert_eq!(best(&["--lb", "hilbert", "--lb-period", "400ms"]), ("hilbert", 8));
        assert_eq!(best(&[]), ("null", 1));
    }
}
