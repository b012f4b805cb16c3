//! The results of all runs: medians and spreads, and the best configuration.

use std::fmt::Write;

use vrt_cli::statistics::Spread;

use crate::job::{Run, Shares};
use crate::options::{Configuration, NONE, Plan};

/// All runs, by configuration.
#[derive(Debug)]
pub(crate) struct Results {
    /// In the order of the plan.
    pub rows: Vec<Row>,
}

/// The runs of a configuration.
#[derive(Debug)]
pub(crate) struct Row {
    /// The configuration.
    pub configuration: Configuration,
    /// Its runs, in the order in which they ran.
    pub runs: Vec<Run>,
}

/// Summarises several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    /// The median, the least and the greatest value.
    pub values: Spread,
    /// Means over the runs.
    pub shares: Option<Shares>,
}

impl Row {
    /// A summary of its runs; `None` before the first has finished.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let values = Spread::of(self.runs.iter().map(|run| run.value))?;
        let shares: Vec<Shares> = self.runs.iter().filter_map(|run| run.shares).collect();
        let mean =
            |of: fn(&Shares) -> f64| shares.iter().map(of).sum::<f64>() / shares.len() as f64;
        let shares = (!shares.is_empty()).then(|| Shares {
            busy: mean(|it| it.busy),
            idle: mean(|it| it.idle),
            work: mean(|it| it.work),
        });
        Some(Summary { values, shares })
    }
}

impl Results {
    /// No runs yet.
    pub(crate) fn new(configurations: &[Configuration]) -> Results {
        let row = |configuration: &Configuration| Row {
            configuration: configuration.clone(),
            runs: Vec::new(),
        };
        Results { rows: configurations.iter().map(row).collect() }
    }

    /// Adds a run of the configuration of this number.
    pub(crate) fn add(&mut self, configuration: usize, run: Run) {
        self.rows[configuration].runs.push(run);
    }

    /// The configurations with summaries of their runs.
    pub(crate) fn summaries(&self) -> Vec<(&Configuration, Summary)> {
        let rows = self.rows.iter();
        rows.filter_map(|row| Some((&row.configuration, row.summary()?))).collect()
    }

    /// A table, the best configuration, and the reasons.
    pub(crate) fn text(&self, plan: &Plan) -> String {
        let all = self.summaries();
        let mut text = String::new();
        let unit = self.unit(plan);
        let _ = writeln!(
            text,
            "{:>6} {:>7}  {:<24} {:>12} {:>25}  {:>6} {:>8} {:>8}",
            "ratio", "ranks", "balancer", unit, "least .. most", "idle", "overhead", "work"
        );
        for (configuration, summary) in &all {
            let Configuration { ratio, ranks, strategy } = configuration;
            let spread =
                format!("{} .. {}", digits(summary.values.least), digits(summary.values.most));
            let part = |of: Option<f64>| of.map_or("-".to_owned(), percent);
            let _ = writeln!(
                text,
                "{ratio:>6} {ranks:>7}  {strategy:<24} {:>12} {spread:>25}  {:>6} {:>8} {:>8}",
                digits(summary.values.median),
                part(summary.shares.map(|it| it.idle)),
                part(summary.shares.map(Shares::overhead)),
                summary.shares.map_or("-".to_owned(), |it| format!("{} s", digits(it.work))),
            );
        }
        text.push_str(
            "\nidle, overhead: parts of the PEs' time, overhead is the runtime's own; work: time in all ranks\n\n",
        );
        text.push_str(&best(plan, &all, &unit));
        text
    }

    /// The unit of the values.
    pub(crate) fn unit(&self, plan: &Plan) -> String {
        let seen = self.rows.iter().flat_map(|row| &row.runs).map(|run| run.unit.as_str()).next();
        let unit = match plan.unit.as_deref().or(seen) {
            Some("") | None => "metric",
            Some(unit) => unit,
        };
        if plan.weak && !plan.rate { format!("{unit}/rank") } else { unit.to_owned() }
    }
}

/// The most configurations that are listed as equally good.
const NAMED: usize = 4;

/// The best configuration in words: its gain over one rank per PE, and where the time went.
fn best(plan: &Plan, all: &[(&Configuration, Summary)], unit: &str) -> String {
    // A smaller number is better from here on.
    let cost =
        |summary: &Summary| if plan.rate { -summary.values.median } else { summary.values.median };
    let Some((best, of_best)) = all.iter().min_by(|a, b| cost(&a.1).total_cmp(&cost(&b.1))) else {
        return String::new();
    };
    let mut text = format!("best           {best}: {} {unit}\n", digits(of_best.values.median));
    let alike: Vec<String> = all
        .iter()
        .filter(|(configuration, summary)| {
            configuration != best && overlaps(plan, of_best, summary)
        })
        .map(|(configuration, _)| configuration.to_string())
        .collect();
    if !alike.is_empty() {
        let more = match alike.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!("; {more} more"),
        };
        let named = alike[..alike.len().min(NAMED)].join("; ");
        let _ = writeln!(text, "as good        {named}{more} (their runs overlap)");
    }
    let plain = |it: &&(&Configuration, Summary)| it.0.strategy == NONE;
    let base = all.iter().filter(plain).min_by_key(|it| it.0.ratio);
    if let Some((base, of_base)) = base
        && base != best
    {
        let gain = match plan.rate {
            true => of_best.values.median / of_base.values.median,
            false => of_base.values.median / of_best.values.median,
        };
        let _ = writeln!(text, "gain           {gain:.2} times as fast as {base}");
        if let (Some(then), Some(now)) = (of_base.shares, of_best.shares) {
            let _ = writeln!(text, "why            {}", compared(now, then));
        }
    }
    let most = all.iter().filter(|it| it.0.strategy == best.strategy).max_by_key(|it| it.0.ratio);
    if let Some((most, of_most)) = most
        && most.ratio > best.ratio
        && let (Some(best), Some(more)) = (of_best.shares, of_most.shares)
    {
        let _ =
            writeln!(text, "beyond         with {} per PE {}", most.ratio, compared(more, best));
    }
    text
}

/// Compares where the time went in two configurations.
fn compared(now: Shares, then: Shares) -> String {
    format!(
        "idle {} instead of {}, the runtime's own {} instead of {}, {:.2} times the work in ranks",
        percent(now.idle),
        percent(then.idle),
        percent(now.overhead()),
        percent(then.overhead()),
        now.work / then.work.max(f64::MIN_POSITIVE),
    )
}

/// Whether some run of the best configuration was no better than some run of the other one, whose median is worse.
fn overlaps(plan: &Plan, best: &Summary, other: &Summary) -> bool {
    if plan.rate {
        other.values.most >= best.values.least
    } else {
        other.values.least <= best.values.most
    }
}

/// A number with its significant digits.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        it if (1e-3..1e6).contains(&it) => {
            let behind = (3 - it.log10().floor() as i32).clamp(0, 6) as usize;
            format!("{value:.behind$}")
        }
        _ => format!("{value:.3e}"),
    }
}

fn percent(part: f64) -> String {
    format!("{:.1}%", 100.0 * part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use clap::Parser;

    fn run(value: f64) -> Run {
        let shares = Some(Shares { busy: 0.9, idle: 1.0 / (10.0 + value), work: value });
        Run { value, same: String::new(), shares, unit: "s".to_owned() }
    }

    #[test]
    fn medians_and_the_best_are_told() {
        let out = std::env::temp_dir();
        let words =
            ["sweep", "--pes", "2", "--ratios", "4,1,2", "--out", out.to_str().unwrap(), "x"];
        let plan = Options::try_parse_from(words).unwrap().plan().unwrap();
        let mut results = Results::new(&plan.configurations);
        for (ratio, values) in [(0, [3.0, 1.0, 2.0]), (1, [0.5, 0.6, 0.4]), (2, [0.9, 0.58, 0.9])] {
            values.iter().for_each(|value| results.add(ratio, run(*value)));
        }
        let of_first = results.rows[0].summary().unwrap();
        assert_eq!(
            (of_first.values.median, of_first.values.least, of_first.values.most),
            (2.0, 1.0, 3.0)
        );
        let text = results.text(&plan);
        assert!(text.contains("best           2 ranks per PE (4 ranks): 0.5000 s"), "{text}");
        assert!(text.contains("as good        4 ranks per PE (8 ranks) (their runs"), "{text}");
        assert!(text.contains("gain           4.00 times as fast as 1 rank per PE"), "{text}");
        assert!(text.contains("0.25 times the work in ranks"), "{text}");
    }

    #[test]
    fn digits_say_what_matters() {
        assert_eq!(digits(0.123456), "0.1235");
        assert_eq!(digits(12.3456), "12.35");
        assert_eq!(digits(123_456.0), "123456");
        assert_eq!(digits(2.5e9), "2.500e9");
    }
}
