//! `scripts/bench-balance`: does `--lb auto` pay, and is it free where there is nothing to gain?
//!
//! Each case runs without balancing, with the strategy and period that an expert would choose for it, and with `--lb
//! auto`, alternately, so that other load on the machine affects all of them.
//!
//! | file | subject |
//! |---|---|
//! | `cases` | programs and their arguments, other load on a core |
//! | `job` | one run: its seconds, and the trials that it reports |
//! | `replay` | the results of `lb-sim` for a recording of the case |
//! | `plot` | predicted and measured gains, as a figure |

mod cases;
mod job;
mod plot;
mod replay;

use std::fmt;
use std::path::{Path, PathBuf};

use experiments::cell;
use experiments::statistics::{error_of_median, median, ratios};
use lb_strategies::auto;

use crate::Error;
use cases::{CASES, Case};
use job::Trial;

/// The options of `scripts/bench-balance`.
#[derive(Clone, Debug, clap::Args)]
#[command(about = "Compare `--lb auto` with no balancing and with the best known strategy")]
pub struct Args {
    /// Runs of each case with each balancer, alternately
    #[arg(long, default_value_t = 5, value_name = "COUNT", value_parser = vrt_cli::positive::<u32>)]
    repeat: u32,
    /// Only cases whose names contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Print the names of the cases and stop
    #[arg(long)]
    list: bool,
    /// The directory with the programs
    #[arg(long, value_name = "FOLDER", hide = true)]
    programs: Option<PathBuf>,
    /// The directory with the programs for cases on two machines, which are skipped without it
    #[arg(long, value_name = "FOLDER", hide = true, requires = "two_machines")]
    across: Option<PathBuf>,
    /// The program xtask, which runs them there
    #[arg(long, value_name = "FILE", hide = true)]
    two_machines: Option<PathBuf>,
    /// Record each case once more, and check whether `lb-sim` finds the same winners
    #[arg(long)]
    replay: bool,
    /// Where to draw predicted and measured gains, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// The most time that `auto` may take relative to no balancing, and relative to the best known
/// strategy.
const OVER_NONE: f64 = 1.02;
const OVER_BEST: f64 = 1.05;

/// Runs the cases and prints the table, which says where a target is missed.
///
/// # Errors
///
/// If a program fails, the case does not exist, or the figure cannot be written.
pub fn run(args: &Args) -> Result<(), Error> {
    let chosen = || CASES.iter().filter(|case| case.name.contains(&args.only));
    if chosen().next().is_none() {
        return Err(Error::NoCase(args.only.clone()));
    }
    if args.list {
        chosen().for_each(|case| println!("{}", case.name));
        return Ok(());
    }
    println!(
        "{:<34} {:>8} {:>8} {:>8} {:>15} {:>15} {:>8}",
        "case, median seconds", "none", "best", "auto", "auto/none", "auto/best", "loop"
    );
    let mut trials = Vec::new();
    for case in chosen() {
        if case.is_across && args.across.is_none() {
            println!("{:<34} left out: it needs root, Open MPI and iproute2", case.name);
            continue;
        }
        let times = times_of(case, args, &mut trials)?;
        times.print(case);
        if args.replay {
            replayed(case, args, &times)?;
        }
    }
    let decided: Vec<&Trial> = trials.iter().filter(|trial| trial.promised > 0.0).collect();
    if !decided.is_empty() {
        let error = |it: &&Trial| auto::relative_error(it.promised, it.came).abs();
        let errors: Vec<f64> = decided.iter().map(error).collect();
        println!(
            "{} trials were decided; the rate that came differs from the promised one by {:.1}% (median)",
            decided.len(),
            100.0 * median(&errors)
        );
    }
    if let Some(file) = &args.plot {
        plot::draw(file, &trials).map_err(|error| Error::Draw(file.clone(), error))?;
    }
    Ok(())
}

/// The balancer of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Balancer {
    /// No balancing.
    Null,
    /// The best known strategy, if there is one.
    Best,
    Auto,
}

impl Balancer {
    const ALL: [Balancer; 3] = [Balancer::Null, Balancer::Best, Balancer::Auto];
}

/// Seconds of a case's runs, by balancer.
#[derive(Debug, Default)]
struct Times {
    none: Vec<f64>,
    best: Vec<f64>,
    auto: Vec<f64>,
    /// The part of its time that `auto` used itself.
    balancing: Vec<f64>,
}

fn times_of(case: &Case, args: &Args, trials: &mut Vec<Trial>) -> Result<Times, Error> {
    let mut times = Times::default();
    let (folder, launcher) = where_it_runs(case, args);
    for _ in 0..args.repeat {
        let run = |balancer: &[&str]| job::run(case, folder, launcher, balancer);
        times.none.push(run(&[])?.seconds);
        if !case.best.is_empty() {
            times.best.push(run(case.best)?.seconds);
        }
        let outcome = run(case.auto)?;
        times.auto.push(outcome.seconds);
        times.balancing.push(outcome.balancing / outcome.seconds);
        trials.extend(outcome.trials);
    }
    Ok(times)
}

/// Prints the result of a case's replay, and whether it has the same winners.
fn replayed(case: &Case, args: &Args, times: &Times) -> Result<(), Error> {
    let (folder, launcher) = where_it_runs(case, args);
    let lb_sim = args.programs.as_deref().map_or_else(|| "lb-sim".into(), |it| it.join("lb-sim"));
    let said = replay::of(case, folder, launcher, &lb_sim)?;
    let best = cell(said.best, |best| format!("{best:.3}"));
    println!(
        "{:<34} {:>8.3} {best:>8} {:>8.3} {}",
        "    lb-sim",
        said.none,
        said.auto,
        if said.agrees_with(times) { "the same winners" } else { "OTHER WINNERS" }
    );
    Ok(())
}

/// The directory with a case's programs, and the program xtask if it has to run them.
fn where_it_runs<'a>(case: &Case, args: &'a Args) -> (Option<&'a Path>, Option<&'a Path>) {
    match case.is_across {
        true => (args.across.as_deref(), args.two_machines.as_deref()),
        false => (args.programs.as_deref(), None),
    }
}

impl Times {
    /// Seconds of the runs with a balancer, in order.
    fn of(&self, balancer: Balancer) -> &[f64] {
        match balancer {
            Balancer::Null => &self.none,
            Balancer::Best => &self.best,
            Balancer::Auto => &self.auto,
        }
    }

    /// Prints the row, and whether the targets are met.
    fn print(&self, case: &Case) {
        let (none, auto) = (median(&self.none), median(&self.auto));
        let best = (!self.best.is_empty()).then(|| median(&self.best));
        let over_none = Ratio::between(&self.auto, &self.none);
        // Where nobody knows better, nothing is gained.
        let over_best = best.map(|_| Ratio::between(&self.auto, &self.best));
        let verdict = over_best
            .map_or(Verdict::Met, |over| over.verdict(OVER_BEST))
            .max(over_none.verdict(OVER_NONE));
        println!(
            "{:<34} {none:>8.3} {:>8} {auto:>8.3} {over_none:>15} {:>15} {:>7.2}%{}",
            case.name,
            cell(best, |best| format!("{best:.3}")),
            cell(over_best, |over| over.to_string()),
            100.0 * median(&self.balancing),
            match verdict {
                Verdict::Met => "",
                Verdict::Unclear => "  unclear",
                Verdict::Missed => "  MISSED",
            }
        );
    }
}

/// How much longer runs took than the preceding ones.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ratio {
    /// Median.
    value: f64,
    /// Its standard error; infinite if there are too few runs.
    error: f64,
}

/// Whether a target is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Met,
    /// It does not seem so, but the difference is within noise.
    Unclear,
    Missed,
}

impl Ratio {
    fn between(of: &[f64], to: &[f64]) -> Ratio {
        let ratios = ratios(of, to);
        Ratio { value: median(&ratios), error: error_of_median(&ratios) }
    }

    /// Whether it is at most this much.
    fn verdict(self, most: f64) -> Verdict {
        let errors = if self.error.is_finite() { 2.0 * self.error } else { 0.0 };
        match self.value {
            value if value <= most => Verdict::Met,
            value if value - errors <= most => Verdict::Unclear,
            _ => Verdict::Missed,
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.error.is_finite() {
            true => f.pad(&format!("{:.3} +- {:.3}", self.value, self.error)),
            false => f.pad(&format!("{:.3}", self.value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_is_one_that_runs_do_not_differ_by() {
        let ratio = |value, error| Ratio { value, error };
        assert_eq!(ratio(1.01, 0.05).verdict(1.02), Verdict::Met);
        assert_eq!(ratio(1.05, 0.02).verdict(1.02), Verdict::Unclear);
        assert_eq!(ratio(1.05, 0.01).verdict(1.02), Verdict::Missed);
        assert_eq!(ratio(1.03, f64::INFINITY).verdict(1.02), Verdict::Missed, "of one run");
    }

    #[test]
    fn cases_have_names_of_their_own() {
        let mut names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CASES.len());
    }
}
