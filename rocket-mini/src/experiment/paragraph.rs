//! An experiment in lines and in words: what was known, what was found.

use std::fmt::Write as _;

use experiments::{Labels, Series};

use super::catalog::{Experiment, Job, Shape, Value};
use super::run::Outcome;

/// What stands at the axes.
pub fn labels(experiment: &Experiment) -> Labels<'static> {
    let (x, y) = match experiment.shape {
        Shape::Points { axis, value: Value::RelativeRate } => (axis, "rate, relative to the first"),
        Shape::Points { axis, value: Value::Rate } => (axis, "iterations/s"),
        Shape::Points { axis, value: Value::Nanoseconds } => (axis, "ns each"),
        Shape::Points { axis, value: Value::Seconds } => (axis, "seconds"),
        Shape::Course => ("seconds", "steps/s"),
    };
    Labels { title: experiment.title, x, y }
}

/// How many rates a line has that shows a course.
const PARTS: usize = 40;

/// The lines of the figure.
pub fn lines(experiment: &Experiment, jobs: &[Job], best: &[&Outcome]) -> Vec<Series> {
    let mut lines: Vec<Series> = Vec::new();
    for (job, outcome) in jobs.iter().zip(best) {
        let value = match experiment.shape {
            Shape::Course => {
                lines.push((job.series.clone(), outcome.rates(PARTS)));
                continue;
            }
            Shape::Points { value: Value::Nanoseconds, .. } => 1e9 / outcome.rate(),
            Shape::Points { value: Value::Seconds, .. } => outcome.seconds,
            Shape::Points { .. } => outcome.rate(),
        };
        let point = (job.x, value);
        match lines.iter_mut().find(|line| line.0 == job.series) {
            Some((_, points)) => points.push(point),
            None => lines.push((job.series.clone(), vec![point])),
        }
    }
    if let Shape::Points { value: Value::RelativeRate, .. } = experiment.shape {
        for (_, points) in &mut lines {
            let first = points[0].1;
            points.iter_mut().for_each(|point| point.1 /= first);
        }
    }
    lines
}

/// The experiment in words.
pub fn paragraph(
    experiment: &Experiment,
    jobs: &[Job],
    best: &[&Outcome],
    lines: &[Series],
) -> String {
    let Experiment { name, title, question, .. } = experiment;
    let head = format!("## {title}\n\n{question}\n\n![{title}]({name}.svg)\n\n");
    let found = match experiment.shape {
        Shape::Course => course(jobs, best, lines),
        Shape::Points { value: Value::Nanoseconds, .. } => all_points(lines),
        Shape::Points { value: Value::Seconds, .. } => pairs(lines),
        Shape::Points { .. } => extremes(jobs, best, lines),
    };
    head + &found
}

// Writing to a string cannot fail, so what it gives is of no interest below.

fn course(jobs: &[Job], best: &[&Outcome], lines: &[Series]) -> String {
    let mut text =
        "| | steps/s, mean | in the first quarter | in the last | idle | command line |\n\
         |---|---|---|---|---|---|\n"
            .to_owned();
    for ((job, outcome), (series, points)) in jobs.iter().zip(best).zip(lines) {
        let quarter = PARTS / 4;
        let mean = |points: &[(f64, f64)]| {
            points.iter().map(|it| it.1).sum::<f64>() / points.len().max(1) as f64
        };
        let _ = writeln!(
            text,
            "| {series} | {:.1} | {:.1} | {:.1} | {:.1}% | `{}` |",
            outcome.rate(),
            mean(&points[..quarter.min(points.len())]),
            mean(&points[points.len().saturating_sub(quarter)..]),
            outcome.idle,
            job.arguments
        );
    }
    if let [still, balanced, ..] = best {
        let gain = balanced.rate() / still.rate();
        let _ = writeln!(
            text,
            "\nBalancing makes it {gain:.2} times as fast; without idle time the balanced run would \
             take {:.0}% of its time.",
            100.0 - balanced.idle
        );
    }
    text
}

fn extremes(jobs: &[Job], best: &[&Outcome], lines: &[Series]) -> String {
    let mut text = "| | highest at | idle there | lowest at | idle there | highest / lowest |\n\
                    |---|---|---|---|---|---|\n"
        .to_owned();
    for (series, points) in lines {
        let idle = |x: f64| {
            let at = jobs.iter().position(|job| job.series == *series && job.x == x);
            at.map_or(f64::NAN, |at| best[at].idle)
        };
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let ends = points.iter().max_by(by_value).zip(points.iter().min_by(by_value));
        let Some((most, least)) = ends else { continue };
        let _ = writeln!(
            text,
            "| {series} | {:.2} at {} | {:.1}% | {:.2} at {} | {:.1}% | {:.2} |",
            most.1,
            most.0,
            idle(most.0),
            least.1,
            least.0,
            idle(least.0),
            most.1 / least.1
        );
    }
    text
}

/// A row for each line, a column for each place; lines have the same places.
fn all_points(lines: &[Series]) -> String {
    let row = |head: &str, cells: &[String]| format!("| {head} | {} |\n", cells.join(" | "));
    let Some((_, first)) = lines.first() else { return String::new() };
    let places: Vec<String> = first.iter().map(|point| point.0.to_string()).collect();
    let mut text = row("", &places) + &"|---".repeat(places.len() + 1) + "|\n";
    for (series, points) in lines {
        let values: Vec<String> = points.iter().map(|point| format!("{:.1}", point.1)).collect();
        text += &row(series, &values);
    }
    text
}

/// Lines two by two, place by place: a code and its twin.
fn pairs(lines: &[Series]) -> String {
    let mut text =
        "| | processes | seconds | on Open MPI | ratio |\n|---|---|---|---|---|\n".to_owned();
    for pair in lines.chunks(2) {
        let [(series, points), (_, twin)] = pair else { continue };
        for ((x, seconds), (_, other)) in points.iter().zip(twin) {
            let ratio = seconds / other;
            let _ = writeln!(text, "| {series} | {x} | {seconds:.3} | {other:.3} | {ratio:.2} |");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::catalog::EXPERIMENTS;
    use super::*;

    fn named(name: &str) -> &'static Experiment {
        EXPERIMENTS.iter().find(|it| it.name == name).unwrap()
    }

    #[test]
    fn points_are_relative_to_the_first_and_paragraphs_have_the_extremes() {
        let outcome = |seconds: f64, idle: f64| Outcome {
            seconds,
            steps: 10.0,
            idle,
            course: vec![],
            result: None,
        };
        let experiment = named("ratios");
        let jobs: Vec<Job> = (experiment.jobs)().into_iter().take(3).collect();
        let outcomes = [outcome(1.0, 5.0), outcome(0.5, 1.0), outcome(4.0, 60.0)];
        let best: Vec<&Outcome> = outcomes.iter().collect();
        let lines = lines(experiment, &jobs, &best);
        assert_eq!(lines[0].1, [(1.0, 1.0), (2.0, 2.0), (4.0, 0.25)]);
        let text = paragraph(experiment, &jobs, &best, &lines);
        assert!(text.contains("| flow | 2.00 at 2 | 1.0% | 0.25 at 4 | 60.0% | 8.00 |"), "{text}");
    }

    #[test]
    fn a_switch_is_shown_in_nanoseconds_at_each_depth() {
        let experiment = named("switching");
        let jobs = (experiment.jobs)();
        let outcomes: Vec<Outcome> = (1..=jobs.len())
            .map(|number| {
                let seconds = 1e-6 * number as f64;
                Outcome { seconds, steps: 100.0, idle: 0.0, course: vec![], result: None }
            })
            .collect();
        let best: Vec<&Outcome> = outcomes.iter().collect();
        let lines = lines(experiment, &jobs, &best);
        let text = paragraph(experiment, &jobs, &best, &lines);
        assert!(text.contains("| 256 | 1024 | 4096 |"), "{text}");
        assert!(text.contains("| slots | 10.0 | 40.0 | 70.0 |"), "{text}");
        assert!(text.contains("| copied | 20.0 | 50.0 |"), "{text}");
    }

    #[test]
    fn codes_stand_beside_their_twins() {
        let lines = [
            ("flow".to_owned(), vec![(1.0, 2.0), (2.0, 1.1)]),
            ("flow on Open MPI".to_owned(), vec![(1.0, 2.5), (2.0, 1.0)]),
        ];
        let text = pairs(&lines);
        assert!(
            text.ends_with(
                "| flow | 1 | 2.000 | 2.500 | 0.80 |\n| flow | 2 | 1.100 | 1.000 | 1.10 |\n"
            ),
            "{text}"
        );
    }
}
