//! Compares this program with the authors' own, and checks claims about the two.
//!
//! All runs alternate, with the order reversed in every other round. A claim is about the ratio of two rates; the ratio
//! is computed for the two runs of each round, and the claim holds if it holds for the median of all rounds.

use super::{
    ExperimentError, catalog::Job, reference::Reference, run::Outcome, run::run as run_job,
};
use experiments::{
    Axis, Folder, Labels, Progress, Series, Spread, Spreads, Table, back_and_forth, run_in_turn,
    statistics::ratios as pairs,
};
use uts::{
    lanes::Kernel,
    named::{self, Named},
};

/// The heading.
pub(super) const TITLE: &str = "Beside the authors' program";

/// The name of its files.
const NAME: &str = "beside";

/// Algorithms with claims on two PEs. (Of two ranks of `share` one searches nothing, and `static` does not share.)
const ALGORITHMS: [&str; 4] = ["steal", "steal-2007", "hierarchical", "shared-2006"];

/// No algorithm: one thread.
const SEQUENTIAL: &str = "sequential";

/// The labels at the axis of the figure.
const PLACES: [&str; 5] = [SEQUENTIAL, ALGORITHMS[0], ALGORITHMS[1], ALGORITHMS[2], ALGORITHMS[3]];

/// What is run.
#[derive(Clone, Debug, PartialEq)]
enum Program {
    /// This program.
    Ours(String),
    /// The authors' sequential one.
    Sequential,
    /// The authors' on two processes.
    Parallel,
}

/// A run in each round.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    tree: &'static str,
    program: Program,
}

impl Run {
    fn name(&self) -> String {
        match &self.program {
            Program::Ours(arguments) => format!("uts --tree {} {arguments}", self.tree),
            Program::Sequential => format!("uts-seq, {}", self.tree),
            Program::Parallel => format!("uts-mpi-ws on 2 processes, {}", self.tree),
        }
    }
}

/// One rate is at least this many times another.
#[derive(Clone, Debug)]
struct Claim {
    tree: &'static str,
    /// One of [`ALGORITHMS`], or [`SEQUENTIAL`].
    algorithm: &'static str,
    /// Which two rates.
    what: &'static str,
    /// The numbers of the two runs.
    runs: [usize; 2],
    least: f64,
}

/// The runs, and the claims about them.
#[derive(Clone, Debug, Default)]
struct Plan {
    runs: Vec<Run>,
    claims: Vec<Claim>,
    /// Small trees replace large ones.
    quick: bool,
}

impl Plan {
    fn new(quick: bool) -> Self {
        let mut plan = Self { quick, ..Self::default() };
        for tree in ["T1", "T3"] {
            let reference = Program::Sequential;
            let ours = Program::Ours("--sequential".to_owned());
            plan.claim([tree, SEQUENTIAL, "uts / uts-seq"], ours, reference, 10.0);
        }
        for tree in if quick { ["T1", "T3"] } else { ["T1L", "T3L"] } {
            for algorithm in ALGORITHMS {
                let ours = |pes: u32, ranks: u32| {
                    Program::Ours(format!("--algorithm {algorithm} --pes {pes} --ranks {ranks}"))
                };
                let what = |of| [tree, algorithm, of];
                plan.claim(what("2 PEs / 1 PE"), ours(2, 2), ours(1, 1), 1.95);
                let reference = Program::Parallel;
                plan.claim(what("2 PEs / uts-mpi-ws"), ours(2, 2), reference, 11.0);
                let many = what("32 ranks per PE / 1 per PE");
                plan.claim(many, ours(2, 64), ours(2, 2), 0.98);
            }
            let ours = Program::Ours("--kernel plain --pes 2 --ranks 2".to_owned());
            let what = [tree, ALGORITHMS[0], "without lanes, 2 PEs / uts-mpi-ws"];
            plan.claim(what, ours, Program::Parallel, 2.0);
        }
        plan
    }

    fn claim(
        &mut self,
        [tree, algorithm, what]: [&'static str; 3],
        ours: Program,
        other: Program,
        least: f64,
    ) {
        let runs = [ours, other].map(|program| self.number(Run { tree, program }));
        self.claims.push(Claim { tree, algorithm, what, runs, least });
    }

    /// The number of a run, which is added if it is new.
    fn number(&mut self, run: Run) -> usize {
        let known = self.runs.iter().position(|it| *it == run);
        known.unwrap_or_else(|| {
            self.runs.push(run);
            self.runs.len() - 1
        })
    }
}

/// Runs everything, and adds it to the report.
///
/// # Errors
///
/// If a run fails or finds the wrong tree, or a file cannot be written.
pub(super) fn run(
    reference: &Reference,
    quick: bool,
    repeat: u32,
    folder: &mut Folder,
) -> Result<(), ExperimentError> {
    let plan = Plan::new(quick);
    let times = measure(&plan, reference, repeat)?;
    folder.write_table(
        NAME,
        &["run", "round", "seconds", "million nodes/s"],
        rows(&plan, &times),
    )?;
    let found = ratios(&plan, &times);
    let labels =
        Labels { title: TITLE, x: "algorithm", y: "ratio of rates / least ratio that is claimed" };
    let axis = Axis::Named { names: &PLACES, mark: Some(1) };
    let (lines, bars) = lines(&plan, &found);
    folder.draw_with_bars(NAME, &labels, &lines, &bars, axis)?;
    folder.add_paragraph(paragraph(&plan, &times, &found));
    Ok(())
}

/// The seconds of each run in each round.
fn measure(
    plan: &Plan,
    reference: &Reference,
    repeat: u32,
) -> Result<Vec<Vec<f64>>, ExperimentError> {
    let order = back_and_forth(plan.runs.len(), repeat as usize);
    let title = |run: &Run| format!("{NAME}: {}", run.name());
    let run = |run: &Run| seconds(run, reference);
    run_in_turn(&plan.runs, order, &mut Progress::new(true), title, run)
}

fn seconds(run: &Run, reference: &Reference) -> Result<f64, ExperimentError> {
    let tree = tree(run);
    match &run.program {
        Program::Ours(arguments) => {
            let arguments = format!("--tree {} {arguments}", run.tree);
            let Outcome { seconds, .. } =
                run_job(&Job { series: String::new(), x: 0.0, arguments })?;
            Ok(seconds)
        }
        Program::Sequential => Ok(reference.run_sequentially(tree)?.seconds),
        Program::Parallel => Ok(reference.run(tree, 2)?.seconds),
    }
}

fn tree(run: &Run) -> &'static Named {
    named::find(run.tree).unwrap_or(&named::NAMED[0])
}

/// Million nodes per second.
fn rate(run: &Run, seconds: f64) -> f64 {
    tree(run).published.nodes as f64 / seconds / 1e6
}

fn rows(plan: &Plan, times: &[Vec<f64>]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (run, times) in plan.runs.iter().zip(times) {
        for (round, seconds) in times.iter().enumerate() {
            let rate = rate(run, *seconds);
            let (seconds, rate) = (format!("{seconds:.6}"), format!("{rate:.3}"));
            rows.push(vec![run.name(), round.to_string(), seconds, rate]);
        }
    }
    rows
}

/// The ratios of each claim, round by round.
fn ratios(plan: &Plan, times: &[Vec<f64>]) -> Vec<Spread> {
    let ratio = |claim: &Claim| {
        let [ours, other] = claim.runs;
        // The less time, the higher the rate.
        Spread::of(pairs(&times[other], &times[ours]))
    };
    plan.claims.iter().filter_map(ratio).collect()
}

/// For each kind of claim, the ratio with each algorithm.
fn lines(plan: &Plan, found: &[Spread]) -> (Vec<Series>, Vec<Spreads>) {
    let (mut lines, mut bars): (Vec<Series>, Vec<Spreads>) = (Vec::new(), Vec::new());
    for (claim, ratio) in plan.claims.iter().zip(found) {
        let place = PLACES.iter().position(|it| *it == claim.algorithm).unwrap_or_default() as f64;
        let relative = ratio.map(|it| it / claim.least);
        let name = format!("{}, {}", claim.tree, claim.what);
        let at = lines.iter().position(|it| it.0 == name).unwrap_or_else(|| {
            lines.push((name, Vec::new()));
            bars.push(Vec::new());
            lines.len() - 1
        });
        lines[at].1.push((place, relative.median));
        bars[at].push((place, relative));
    }
    (lines, bars)
}

fn paragraph(plan: &Plan, times: &[Vec<f64>], found: &[Spread]) -> String {
    let rounds = times.first().map_or(0, Vec::len);
    let mut claims = Table::new(["", "rates", "ratio", "at least", ""]);
    for (number, (claim, ratio)) in plan.claims.iter().zip(found).enumerate() {
        let Claim { tree, algorithm, what, least, .. } = claim;
        let verdict = if ratio.median >= *least { "hold" } else { "NOT" };
        claims.row([
            (number + 1).to_string(),
            format!("{tree}: {algorithm}, {what}"),
            format!("{ratio:.2}"),
            least.to_string(),
            verdict.to_owned(),
        ]);
    }
    let mut runs = Table::new(["run", "million nodes/s"]);
    for (run, times) in plan.runs.iter().zip(times) {
        if let Some(rates) = Spread::of(times.iter().map(|it| rate(run, *it))) {
            runs.row([format!("`{}`", run.name()), format!("{rates:.1}")]);
        }
    }
    format!(
        "## {TITLE}\n\n{rounds} rounds, in which all runs take turns; kernel {}. Each ratio of rates is that of \
         two runs of one round: the median of the rounds, and from the least to the most. It holds if the \
         median does. All runs of either program found the published trees.\n\n![{TITLE}]({NAME}.svg)\n\n\
         {}{claims}\n{runs}",
        Kernel::fastest().name(),
        if plan.quick {
            "Only to see whether everything runs: searches of T1 and T3 in parallel are too short to tell \
             anything; without --quick T1L and T3L are taken.\n\n"
        } else {
            ""
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use clap::Parser;

    #[test]
    fn every_run_is_there_once_and_can_be_run() {
        let plan = Plan::new(false);
        assert_eq!(plan.claims.len(), 2 + 2 * (4 * 3 + 1));
        assert_eq!(plan.runs.len(), 4 + 2 * (4 * 3 + 2));
        for run in &plan.runs {
            assert!(named::find(run.tree).is_some());
            let Program::Ours(_) = &run.program else { continue };
            let name = run.name();
            let options = Options::try_parse_from(name.split(' ')).expect("a sound line");
            assert!(options.plan().is_ok(), "{name}");
        }
    }

    #[test]
    fn a_claim_holds_by_the_median_of_the_ratios_of_the_rounds() {
        let mut plan = Plan::default();
        let ours = || Program::Ours("--sequential".to_owned());
        let what = |what| ["T1", SEQUENTIAL, what];
        plan.claim(what("ten times"), ours(), Program::Sequential, 10.0);
        plan.claim(what("twelve times"), ours(), Program::Sequential, 12.0);
        // The machine is slow in the second round: both are.
        let times = [vec![0.1, 0.2, 0.1], vec![1.1, 2.2, 0.5]];
        let found = ratios(&plan, &times);
        assert!((found[0].median - 11.0).abs() < 1e-9 && (found[0].least - 5.0).abs() < 1e-9);
        let text = paragraph(&plan, &times, &found);
        assert!(
            text.contains("| 1 | T1: sequential, ten times | 11.00 (5.00 to 11.00) | 10 | hold |"),
            "{text}"
        );
        assert!(
            text.contains(
                "| 2 | T1: sequential, twelve times | 11.00 (5.00 to 11.00) | 12 | NOT |"
            ),
            "{text}"
        );
        assert!(text.contains("| `uts-seq, T1` | 3.8 (1.9 to 8.3) |"), "{text}");
        let (lines, _) = lines(&plan, &found);
        let (name, points) = &lines[0];
        assert!(name == "T1, ten times" && points[0].0 == 0.0 && (points[0].1 - 1.1).abs() < 1e-9);
        assert_eq!(lines.len(), 2);
        assert_eq!(rows(&plan, &times).len(), 6);
    }
}
