//! The uneven relaxation, balanced, at several ratios of ranks to PEs.

use comfy_table::Table;

use crate::run::{self, Finished, Job};
use crate::stage::relaxation;
use crate::{Arguments, DemoError, new_table};

/// Ranks per PE.
pub(crate) const RATIOS: [u32; 5] = [1, 2, 4, 8, 16];
/// Runs at each ratio, alternately.
const REPEAT: usize = 3;
/// The iterations are this fraction (1/n) of those of the other runs.
const PART: usize = 6;

/// The results at a ratio.
#[derive(Clone, Debug)]
pub(crate) struct AtRatio {
    pub(crate) ratio: u32,
    /// All its runs, from the fastest to the slowest: seconds, and the part of the PEs' time in ranks.
    pub(crate) runs: Vec<(f64, f64)>,
}

impl AtRatio {
    /// The median run.
    pub(crate) fn median(&self) -> (f64, f64) {
        self.runs.get(self.runs.len() / 2).copied().unwrap_or_default()
    }
}

/// The results.
#[derive(Clone, Debug)]
pub(crate) struct Sweep(pub(crate) Vec<AtRatio>);

/// Runs at all ratios. All must have the same result.
pub(crate) fn run(iterations: usize, arguments: &Arguments) -> Result<Sweep, DemoError> {
    let mut all = RATIOS.map(|ratio| AtRatio { ratio, runs: Vec::new() }).to_vec();
    let mut first: Option<Finished> = None;
    for _ in 0..REPEAT {
        for at in &mut all {
            let job = Job {
                title: "Jacobi at several ratios",
                name: "sweep",
                about: String::new(),
                arguments: relaxation(iterations / PART),
                options: &["--lb", "greedy-refine", "--lb-period", "50ms"],
            };
            let run = run::run(job, at.ratio, arguments)?;
            at.runs.push((run.outcome.seconds, run.busy()));
            match &first {
                Some(first) => first.agrees_with(&run)?,
                None => first = Some(run),
            }
        }
    }
    all.iter_mut().for_each(|at| at.runs.sort_by(|a, b| a.0.total_cmp(&b.0)));
    Ok(Sweep(all))
}

impl Sweep {
    pub(crate) fn table(&self) -> Table {
        let mut table = new_table(&["ranks per PE", "time", "from", "to", "PEs busy"], 0..5);
        for at in &self.0 {
            let (seconds, busy) = at.median();
            let ends = [at.runs.first(), at.runs.last()].map(|run| run.map_or(0.0, |run| run.0));
            table.add_row([
                at.ratio.to_string(),
                format!("{seconds:.2} s"),
                format!("{:.2} s", ends[0]),
                format!("{:.2} s", ends[1]),
                format!("{:.0}%", 100.0 * busy),
            ]);
        }
        table
    }

    /// The best ratio, in words.
    pub(crate) fn best(&self) -> String {
        let best = self.0.iter().min_by(|a, b| a.median().0.total_cmp(&b.median().0));
        let (Some(best), Some(one)) = (best, self.0.first()) else { return String::new() };
        let ((seconds, busy), (of_one, busy_one)) = (best.median(), one.median());
        if best.ratio == one.ratio {
            return format!("best here is {} rank per PE", best.ratio);
        }
        format!(
            "best here are {} ranks per PE: {:.2} times as fast as {}; the PEs are busy {:.0}% of the time instead of \
             {:.0}%",
            best.ratio,
            of_one / seconds,
            one.ratio,
            100.0 * busy,
            100.0 * busy_one
        )
    }
}
