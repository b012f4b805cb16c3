//! Experiments that run this program over the values of a parameter.
//!
//! A figure shows the best run for rates, which only disturbances lower, and otherwise the median, or all runs
//! together.

use super::{
    ExperimentError,
    catalog::{Experiment, Job, Measure},
    run::{self, Outcome},
};
use experiments::{
    Axis, Folder, Labels, Progress, Series, Spread, Spreads, Table, rounds_by_place, run_in_turn,
};

/// Runs one experiment, and adds it to the report.
///
/// # Errors
///
/// If a job fails or a file cannot be written.
pub(super) fn run(
    experiment: &Experiment,
    repeat: u32,
    folder: &mut Folder,
) -> Result<(), ExperimentError> {
    let outcomes = measure(experiment, repeat)?;
    folder.write_table(experiment.name, &COLUMNS, rows(experiment, &outcomes))?;
    let lines = lines(experiment, &outcomes);
    let Experiment { title, axis: x, measure, names, .. } = *experiment;
    let labels = Labels { title, x, y: measure.axis() };
    let axis = if names.is_empty() { Axis::Listed } else { Axis::Named { names, mark: None } };
    let bars = bars(experiment, &lines, &outcomes);
    folder.draw_with_bars(experiment.name, &labels, &lines, &bars, axis)?;
    folder.add_paragraph(paragraph(experiment, &lines));
    Ok(())
}

/// The outcomes of each job.
fn measure(experiment: &Experiment, repeat: u32) -> Result<Vec<Vec<Outcome>>, ExperimentError> {
    let jobs = (experiment.jobs)();
    let places: Vec<f64> = jobs.iter().map(|job| job.x).collect();
    let order = rounds_by_place(&places, repeat as usize);
    let title = |job: &Job| format!("{}: {}", experiment.name, job.arguments);
    run_in_turn(&jobs, order, &mut Progress::new(true), title, run::run)
}

/// Column headings of a table.
const COLUMNS: [&str; 13] = [
    "series",
    "x",
    "arguments",
    "run",
    "seconds",
    "nodes",
    "value",
    "stolen",
    "failed",
    "working",
    "overhead",
    "searching",
    "idle",
];

/// The rows of the table: all runs of all jobs.
fn rows(experiment: &Experiment, outcomes: &[Vec<Outcome>]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (job, runs) in (experiment.jobs)().iter().zip(outcomes) {
        for (number, outcome) in runs.iter().enumerate() {
            let value = outcome.value(experiment.measure);
            let mut row = vec![
                job.series.clone(),
                job.x.to_string(),
                job.arguments.clone(),
                number.to_string(),
                format!("{:.6}", outcome.seconds),
                outcome.nodes.to_string(),
                value.map(|it| format!("{it:.3}")).unwrap_or_default(),
            ];
            row.extend(outcome.steals.map(|it| it.to_string()));
            row.extend(outcome.times.map(|it| format!("{it:.6}")));
            rows.push(row);
        }
    }
    rows
}

/// The points of the figure.
fn lines(experiment: &Experiment, outcomes: &[Vec<Outcome>]) -> Vec<Series> {
    let mut lines: Vec<Series> = Vec::new();
    for (job, runs) in (experiment.jobs)().into_iter().zip(outcomes) {
        let Some(value) = typical(runs, experiment.measure) else { continue };
        match lines.iter_mut().find(|it| it.0 == job.series) {
            Some((_, points)) => points.push((job.x, value)),
            None => lines.push((job.series, vec![(job.x, value)])),
        }
    }
    lines
}

/// The results of the runs of each line.
fn bars(experiment: &Experiment, lines: &[Series], outcomes: &[Vec<Outcome>]) -> Vec<Spreads> {
    let jobs = (experiment.jobs)();
    let of_line = |line: &Series| {
        let of_line = jobs.iter().zip(outcomes).filter(|(job, _)| job.series == line.0);
        let spread = |(job, runs): (&Job, &Vec<Outcome>)| {
            let values = runs.iter().filter_map(|it| it.value(experiment.measure));
            Some((job.x, Spread::of(values)?))
        };
        of_line.filter_map(spread).collect()
    };
    lines.iter().map(of_line).collect()
}

/// The best rate, the median of shares, or the success rate of all runs together.
fn typical(runs: &[Outcome], measure: Measure) -> Option<f64> {
    let values = Spread::of(runs.iter().filter_map(|it| it.value(measure)));
    match measure {
        Measure::Rate => values.map(|it| it.most),
        Measure::LargestShare => values.map(|it| it.median),
        Measure::Prefetched => {
            let sum = |which: usize| runs.iter().map(|it| it.prefetches[which]).sum::<u64>() as f64;
            (sum(0) > 0.0).then(|| 100.0 * sum(1) / sum(0))
        }
    }
}

/// The experiment in words: what was known, and what was found.
fn paragraph(experiment: &Experiment, lines: &[Series]) -> String {
    let Experiment { name, title, question, axis, measure, .. } = experiment;
    let highest = format!("{axis}: highest at");
    let mut table = Table::new(["", &highest, "lowest at", "highest / lowest"]);
    let place = |x: f64| match experiment.names.get(x as usize) {
        Some(name) => (*name).to_owned(),
        None => x.to_string(),
    };
    for (series, points) in lines {
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let ends = points.iter().max_by(by_value).zip(points.iter().min_by(by_value));
        let Some((most, least)) = ends else { continue };
        let [highest, lowest] = [most, least].map(|it| format!("{:.1} at {}", it.1, place(it.0)));
        let ratio = (least.1 > 0.0).then(|| format!("{:.2}", most.1 / least.1));
        table.row([series.clone(), highest, lowest, ratio.unwrap_or_else(|| "-".to_owned())]);
    }
    let what = measure.axis();
    format!(
        "## {title}\n\n{question}\n\n![{title}]({name}.svg)\n\nHere, {what} by {axis}:\n\n{table}"
    )
}

#[cfg(test)]
mod tests {
    use super::{super::catalog::EXPERIMENTS, *};

    #[test]
    fn a_paragraph_has_the_extremes_of_each_line() {
        let lines = [("T1".to_owned(), vec![(16.0, 20.0), (64.0, 50.0), (256.0, 40.0)])];
        let text = paragraph(&EXPERIMENTS[1], &lines);
        assert!(text.contains("| T1 | 50.0 at 64 | 20.0 at 16 | 2.50 |"), "{text}");
        let trees = EXPERIMENTS.iter().find(|it| it.name == "trees").expect("exists");
        let text = paragraph(trees, &[("steal".to_owned(), vec![(0.0, 20.0), (5.0, 50.0)])]);
        assert!(text.contains("| steal | 50.0 at T3L | 20.0 at T1 | 2.50 |"), "{text}");
    }

    #[test]
    fn rates_are_the_best_shares_the_median_and_successes_those_of_all_runs() {
        let run = |seconds: f64, most: u64, prefetches: [u64; 2]| Outcome {
            seconds,
            nodes: 1_000_000,
            most,
            prefetches,
            times: [0.0; 4],
            steals: [0; 2],
        };
        let runs = [run(1.0, 10_000, [1, 0]), run(0.5, 30_000, [0, 0]), run(2.0, 20_000, [3, 3])];
        assert_eq!(typical(&runs, Measure::Rate), Some(2.0));
        assert_eq!(typical(&runs, Measure::LargestShare), Some(2.0));
        assert_eq!(typical(&runs, Measure::Prefetched), Some(75.0));
        assert_eq!(typical(&runs[1..2], Measure::Prefetched), None);
    }
}
