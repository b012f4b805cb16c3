//! An experiment as lines and in words: what was known, and what was found.

use std::fmt::Write as _;

use experiments::{Labels, Series, Spread, Spreads, Table, cell};
use lb_strategies::LoadModelError;

use super::cachegrind::Counts;
use super::catalog::{Experiment, Job, Shape, Value};
use super::loads::{NEAR, Recovery};
use super::run::{Outcome, Uses};

/// The labels at the axes.
pub(super) fn labels(experiment: &Experiment) -> Labels<'static> {
    let (x, y) = match experiment.shape {
        Shape::Points { axis, value: Value::RelativeRate } => (axis, "rate, relative to the first"),
        Shape::Points { axis, value: Value::Rate } => (axis, "iterations/s"),
        Shape::Points { axis, value: Value::Nanoseconds } => (axis, "ns each"),
        Shape::Points { axis, value: Value::Seconds } => (axis, "seconds"),
        Shape::Points { axis, value: Value::RelativeMisses } => {
            (axis, "misses of the second cache, relative to the first")
        }
        Shape::Course => ("seconds", "steps/s"),
    };
    Labels { title: experiment.title, x, y }
}

/// The number of rates of a line that shows a course.
const PARTS: usize = 40;

/// The lines of the figure.
pub(super) fn lines(experiment: &Experiment, jobs: &[Job], best: &[&Outcome]) -> Vec<Series> {
    let mut lines: Vec<Series> = Vec::new();
    for (job, outcome) in jobs.iter().zip(best) {
        let value = match experiment.shape {
            Shape::Course => {
                lines.push((job.series.clone(), outcome.rates(PARTS)));
                continue;
            }
            Shape::Points { value: Value::Nanoseconds, .. } => 1e9 / outcome.rate(),
            Shape::Points { value: Value::Seconds, .. } => outcome.seconds,
            Shape::Points { value: Value::RelativeMisses, .. } => {
                outcome.counts.map_or(f64::NAN, |counts| counts.second)
            }
            Shape::Points { .. } => outcome.rate(),
        };
        let point = (job.x, value);
        match lines.iter_mut().find(|line| line.0 == job.series) {
            Some((_, points)) => points.push(point),
            None => lines.push((job.series.clone(), vec![point])),
        }
    }
    if let Shape::Points { value: Value::RelativeRate | Value::RelativeMisses, .. } =
        experiment.shape
    {
        for (_, points) in &mut lines {
            let first = points[0].1;
            points.iter_mut().for_each(|point| point.1 /= first);
        }
    }
    lines
}

/// The results of the runs of each line, where lines are points; relative to the first one if the figure is.
pub(super) fn bars(
    experiment: &Experiment,
    jobs: &[Job],
    runs: &[Vec<Outcome>],
    best: &[&Outcome],
    lines: &[Series],
) -> Vec<Spreads> {
    let Shape::Points { value, .. } = experiment.shape else { return Vec::new() };
    let number = |outcome: &Outcome| match value {
        Value::Nanoseconds => 1e9 / outcome.rate(),
        Value::Seconds => outcome.seconds,
        Value::RelativeMisses => outcome.counts.map_or(f64::NAN, |counts| counts.second),
        Value::Rate | Value::RelativeRate => outcome.rate(),
    };
    let of_line = |line: &Series| {
        let of_line = || (0..jobs.len()).filter(|at| jobs[*at].series == line.0);
        let first = of_line().next().map_or(1.0, |at| number(best[at]));
        let is_relative = matches!(value, Value::RelativeRate | Value::RelativeMisses);
        let unit = if is_relative { first } else { 1.0 };
        let spread = |at: usize| {
            Some((jobs[at].x, Spread::of(runs[at].iter().map(|run| number(run) / unit))?))
        };
        of_line().filter_map(spread).collect()
    };
    lines.iter().map(of_line).collect()
}

/// For each job, how close it came to the ideal over time.
pub(super) fn efficiencies(jobs: &[Job], best: &[&Outcome]) -> Vec<Series> {
    let line =
        |(job, outcome): (&Job, &&Outcome)| (job.series.clone(), outcome.loads.efficiencies());
    jobs.iter().zip(best).map(line).collect()
}

/// The experiment in words.
pub(super) fn paragraph(
    experiment: &Experiment,
    jobs: &[Job],
    best: &[&Outcome],
    lines: &[Series],
) -> Result<String, LoadModelError> {
    let Experiment { name, title, question, .. } = experiment;
    let head = format!("## {title}\n\n{question}\n\n![{title}]({name}.svg)\n\n");
    let found = match experiment.shape {
        Shape::Course => {
            format!("![Part of the ideal]({name}-ideal.svg)\n\n") + &course(jobs, best, lines)?
        }
        Shape::Points { value: Value::RelativeRate, .. } => ratios(jobs, best, lines),
        Shape::Points { value: Value::Nanoseconds, .. } => all_points(lines),
        Shape::Points { value: Value::Seconds, .. } => pairs(lines),
        Shape::Points { value: Value::RelativeMisses, .. } => counts(jobs, best),
        Shape::Points { .. } => extremes(jobs, best, lines),
    };
    Ok(head + &found)
}

// Writing to a string cannot fail, so what it gives is of no interest below.

fn course(jobs: &[Job], best: &[&Outcome], lines: &[Series]) -> Result<String, LoadModelError> {
    let mut text = "| | steps/s, mean | in the first quarter | in the last | in ranks | idle | of the ideal | command line |\n\
                    |---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for ((job, outcome), (series, points)) in jobs.iter().zip(best).zip(lines) {
        let quarter = PARTS / 4;
        let mean = |points: &[(f64, f64)]| {
            points.iter().map(|it| it.1).sum::<f64>() / points.len().max(1) as f64
        };
        let _ = writeln!(
            text,
            "| {series} | {:.1} | {:.1} | {:.1} | {:.1}% | {:.1}% | {} | `{}` |",
            outcome.rate(),
            mean(&points[..quarter.min(points.len())]),
            mean(&points[points.len().saturating_sub(quarter)..]),
            outcome.uses.ranks,
            outcome.uses.idle,
            cell(outcome.loads.of_ideal(), percent),
            job.arguments
        );
    }
    text += "\nThe ideal is that no PE ever waits: the measured work of the ranks, divided by the PEs. PEs count for how \
             long they are in ranks; between its looks, the balancer measures how near to the ideal they are by the \
             ranks' loads.\n";
    let Some((still, others)) = best.split_first() else { return Ok(text) };
    for (job, outcome) in jobs.iter().skip(1).zip(others) {
        let gain = outcome.rate() / still.rate();
        let _ = write!(text, "`{}` is {gain:.2} times as fast as it began", job.series);
        if let Some(Recovery { median, near, longest }) = outcome.loads.recovery() {
            let _ = write!(
                text,
                "; after its second look at {} of the ideal (median), at {} or more in {} of the times between two \
                 looks, and less at most {longest} times in a row",
                percent(median),
                percent(NEAR),
                percent(near)
            );
        }
        text += ".\n";
    }
    // What another program took is not among the loads.
    if jobs.iter().any(|job| job.is_disturbed) {
        return Ok(text);
    }
    text += "\nWhat balancers would have made of the loads of the first run, by replay (`lb-sim`), deciding after each \
             period of it:\n\n| | seconds | moves |\n|---|---|---|\n";
    for replay in still.loads.replays()? {
        let _ = writeln!(text, "| {} | {:.3} | {} |", replay.name, replay.seconds, replay.moves);
    }
    Ok(text)
}

fn percent(part: f64) -> String {
    format!("{:.1}%", 100.0 * part)
}

/// A row for each point: how fast, and how PEs spent their time. For each line, where it is best, and why.
fn ratios(jobs: &[Job], best: &[&Outcome], lines: &[Series]) -> String {
    let mut text = "| | ranks per PE | rate | work | uneven | waiting | the runtime's own |\n\
                    |---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut reasons = String::new();
    for (series, points) in lines {
        let outcomes: Vec<&Outcome> =
            jobs.iter().zip(best).filter(|it| it.0.series == *series).map(|it| *it.1).collect();
        let Some(first) = outcomes.first() else { continue };
        let work = |outcome: &Outcome| {
            outcome.uses.ranks * outcome.seconds / (first.uses.ranks * first.seconds)
        };
        let waiting = |outcome: &Outcome| outcome.uses.idle - outcome.uses.uneven;
        for ((x, rate), outcome) in points.iter().zip(&outcomes) {
            let Uses { uneven, own, .. } = outcome.uses;
            let (work, waiting) = (work(outcome), waiting(outcome));
            let _ = writeln!(
                text,
                "| {series} | {x} | {rate:.2} | {work:.2} | {uneven:.1}% | {waiting:.1}% | {own:.1}% |"
            );
        }
        let by_rate = |a: &(&(f64, f64), _), b: &(&(f64, f64), _)| a.0.1.total_cmp(&b.0.1);
        let Some((most, outcome)) = points.iter().zip(&outcomes).max_by(by_rate) else { continue };
        let _ = writeln!(
            reasons,
            "- `{series}` is fastest at {} per PE, {:.2} times as fast as at {}: ranks work {:.2} times as long, PEs \
             are idle {:.1}% instead of {:.1}% of the time as they have less to do than the busiest, {:.1}% instead of \
             {:.1}% as they wait for messages, and the runtime takes {:.1}% instead of {:.1}%.",
            most.0,
            most.1,
            points[0].0,
            work(outcome),
            outcome.uses.uneven,
            first.uses.uneven,
            waiting(outcome),
            waiting(first),
            outcome.uses.own,
            first.uses.own
        );
    }
    text + "\nRates and work are relative to the first row of each; work is the time in ranks of all PEs. PEs are idle \
            because the ranks of another have more to do over the whole run (uneven), or until a message comes \
            (waiting).\n\n"
        + &reasons
}

/// A row for each job: the counts per step.
fn counts(jobs: &[Job], best: &[&Outcome]) -> String {
    let head = ["", "ranks per PE", "instructions", "misses of the first cache", "of the second"];
    let mut table = Table::new(head);
    for (Job { series, x, .. }, outcome) in jobs.iter().zip(best) {
        let Some(Counts { instructions, first, second }) = outcome.counts else { continue };
        let [instructions, first, second] = [instructions, first, second].map(|it| it / 1e6);
        table.row([
            series.clone(),
            x.to_string(),
            format!("{instructions:.1}"),
            format!("{first:.3}"),
            format!("{second:.3}"),
        ]);
    }
    format!("{table}\nMillions in a step.\n")
}

fn extremes(jobs: &[Job], best: &[&Outcome], lines: &[Series]) -> String {
    let mut text = "| | highest at | idle there | lowest at | idle there | highest / lowest |\n\
                    |---|---|---|---|---|---|\n"
        .to_owned();
    for (series, points) in lines {
        let idle = |x: f64| {
            let at = jobs.iter().position(|job| job.series == *series && job.x == x);
            at.map_or(f64::NAN, |at| best[at].uses.idle)
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

/// A row for each line, a column for each position; all lines have the same positions.
fn all_points(lines: &[Series]) -> String {
    let Some((_, first)) = lines.first() else { return String::new() };
    let places = first.iter().map(|point| point.0.to_string());
    let mut table = Table::new(std::iter::once(String::new()).chain(places));
    for (series, points) in lines {
        let values = points.iter().map(|point| format!("{:.1}", point.1));
        table.row(std::iter::once(series.clone()).chain(values));
    }
    table.to_string()
}

/// Pairs of lines, position by position: a code and its twin.
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
    use super::super::loads::tests::loads;
    use super::*;

    fn named(name: &str) -> &'static Experiment {
        EXPERIMENTS.iter().find(|it| it.name == name).unwrap()
    }

    #[test]
    fn points_are_relative_to_the_first_and_the_best_has_a_reason() {
        let outcome = |seconds: f64, ranks: f64, idle: f64| Outcome {
            seconds,
            steps: 10.0,
            uses: Uses { ranks, idle, uneven: 0.5 * idle, own: 100.0 - ranks - idle },
            ..Outcome::default()
        };
        let experiment = named("ratios");
        let jobs: Vec<Job> = (experiment.jobs)().into_iter().take(3).collect();
        let outcomes =
            [outcome(1.0, 80.0, 19.0), outcome(0.5, 96.0, 2.0), outcome(4.0, 40.0, 60.0)];
        let best: Vec<&Outcome> = outcomes.iter().collect();
        let lines = lines(experiment, &jobs, &best);
        assert_eq!(lines[0].1, [(1.0, 1.0), (2.0, 2.0), (4.0, 0.25)]);
        let text = paragraph(experiment, &jobs, &best, &lines).unwrap();
        assert!(text.contains("| flow | 2 | 2.00 | 0.60 | 1.0% | 1.0% | 2.0% |"), "{text}");
        assert!(
            text.contains(
                "fastest at 2 per PE, 2.00 times as fast as at 1: ranks work 0.60 times as long, PEs are idle 1.0% \
                 instead of 9.5%"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_course_says_how_near_it_came_to_the_ideal_and_who_would_have_done_better() {
        let experiment = named("crack");
        let jobs = (experiment.jobs)();
        let outcome = |seconds: f64, periods: &[[f64; 2]]| Outcome {
            seconds,
            steps: 10.0,
            loads: loads(periods),
            ..Outcome::default()
        };
        let outcomes = [
            outcome(9.0, &[[1.0, 0.2]; 9]),
            outcome(6.0, &[[1.0, 0.2], [1.0, 0.2], [0.9, 1.0], [0.9, 1.0], [1.0, 0.6], [1.0, 1.0]]),
            outcome(6.0, &[[0.9, 0.9]; 6]),
        ];
        let best: Vec<&Outcome> = outcomes.iter().collect();
        let text = paragraph(experiment, &jobs, &best, &lines(experiment, &jobs, &best)).unwrap();
        assert!(
            text.contains("| as they began | 1.1 |") && text.contains("| 0.0% | 60.0% |"),
            "{text}"
        );
        assert!(
            text.contains(
                "`greedy-refine` is 1.50 times as fast as it began; after its second look at 95.0% of the ideal \
                 (median), at 90.0% or more in 75.0% of the times between two looks, and less at most 1 times in a row."
            ),
            "{text}"
        );
        assert!(text.contains("| nobody moves | 9.000 | 0 |"), "{text}");
    }

    #[test]
    fn a_switch_is_shown_in_nanoseconds_at_each_depth() {
        let experiment = named("switching");
        let jobs = (experiment.jobs)();
        let outcomes: Vec<Outcome> = (1..=jobs.len())
            .map(|number| {
                let seconds = 1e-6 * number as f64;
                Outcome { seconds, steps: 100.0, ..Outcome::default() }
            })
            .collect();
        let best: Vec<&Outcome> = outcomes.iter().collect();
        let lines = lines(experiment, &jobs, &best);
        let text = paragraph(experiment, &jobs, &best, &lines).unwrap();
        assert!(text.contains("| 256 | 1024 | 4096 |"), "{text}");
        assert!(text.contains("| slots | 10.0 | 40.0 | 70.0 |"), "{text}");
        assert!(text.contains("| copied | 20.0 | 50.0 |"), "{text}");
    }

    #[test]
    fn what_a_step_takes_is_shown_in_millions_and_drawn_relative_to_the_first() {
        let experiment = named("caches");
        let jobs: Vec<Job> = (experiment.jobs)().into_iter().take(2).collect();
        let outcome = |second| {
            let counts = Counts { instructions: 2.5e8, first: 3e6, second };
            Outcome { counts: Some(counts), ..Outcome::default() }
        };
        let outcomes = [outcome(2e5), outcome(5e4)];
        let best: Vec<&Outcome> = outcomes.iter().collect();
        let lines = lines(experiment, &jobs, &best);
        assert_eq!(lines[0].1, [(1.0, 1.0), (2.0, 0.25)]);
        let text = paragraph(experiment, &jobs, &best, &lines).unwrap();
        assert!(text.contains("| flow | 2 | 250.0 | 3.000 | 0.050 |"), "{text}");
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
