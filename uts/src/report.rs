//! The program's output.

use std::fmt::Write as _;
use uts::{
    named::Published,
    statistics::{RankStatistics, Totals},
};

/// The result of a run.
#[derive(Clone, Debug)]
pub(crate) struct Report<'a> {
    /// What was searched and how, one item per line.
    pub heading: Vec<String>,
    /// What each rank did.
    pub ranks: &'a [RankStatistics],
    /// Number of PEs.
    pub pes: u32,
    /// Seconds from the first node to the last.
    pub seconds: f64,
    /// The published size of the tree.
    pub published: Option<Published>,
    /// Whether to list every rank.
    pub verbose: bool,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The tree is the published one, as far as known.
    Right,
    /// It is not, or nodes were lost.
    Wrong,
    /// The search stopped at its limit: the tree cannot be checked.
    Limited,
    /// It was interrupted.
    Interrupted,
}

impl Report<'_> {
    /// The last line, and the outcome.
    pub(crate) fn verdict(&self) -> (String, Outcome) {
        let totals = Totals::new(self.ranks);
        let (nodes, left) = (totals.nodes, totals.left);
        if self.interrupted {
            let text = "PARTIAL: interrupted before the tree was searched";
            return (text.to_owned(), Outcome::Interrupted);
        }
        if left > 0 {
            let text = format!(
                "PARTIAL: stopped at the limit, after {nodes} nodes; {left} open ones were left"
            );
            return (text, Outcome::Limited);
        }
        match totals.differs_from(self.published) {
            Some(expected) => (format!("WRONG: expected {expected}"), Outcome::Wrong),
            None if self.published.is_none() => {
                ("ok (no size was published for this tree)".to_owned(), Outcome::Right)
            }
            None => ("ok".to_owned(), Outcome::Right),
        }
    }

    /// The text, without the last line.
    pub(crate) fn print(&self) -> String {
        let totals = Totals::new(self.ranks);
        let mut lines = self.heading.clone();
        lines.push(format!(
            "nodes {}, depth {}, leaves {} ({:.2}%)",
            totals.nodes,
            totals.depth,
            totals.leaves,
            totals.leaf_percentage()
        ));
        let rate = totals.nodes as f64 / self.seconds;
        lines.push(format!(
            "time {:.6} s, {rate:.0} nodes/s, {:.0} nodes/s per PE",
            self.seconds,
            rate / f64::from(self.pes)
        ));
        lines.push(summary(self.ranks));
        if self.verbose {
            lines.push(table(self.ranks));
        }
        lines.join("\n") + "\n"
    }
}

/// A column of the tables: its name, and how to obtain and show its values.
struct Column {
    name: &'static str,
    value: fn(&RankStatistics) -> f64,
    decimals: usize,
}

const COLUMNS: [Column; 10] = [
    Column { name: "nodes", value: |it| it.counts.nodes as f64, decimals: 0 },
    Column { name: "steals", value: |it| it.traffic.steals as f64, decimals: 0 },
    Column { name: "failed steals", value: |it| it.traffic.failed_steals as f64, decimals: 0 },
    Column { name: "releases", value: |it| it.traffic.releases as f64, decimals: 0 },
    Column { name: "acquired", value: |it| it.traffic.acquired as f64, decimals: 0 },
    Column { name: "max stack", value: |it| it.counts.most_open as f64, decimals: 0 },
    Column { name: "seconds working", value: |it| it.times.seconds[0], decimals: 3 },
    Column { name: "seconds overhead", value: |it| it.times.seconds[1], decimals: 3 },
    Column { name: "seconds searching", value: |it| it.times.seconds[2], decimals: 3 },
    Column { name: "seconds idle", value: |it| it.times.seconds[3], decimals: 3 },
];

/// Least, mean and greatest value of every column.
fn summary(ranks: &[RankStatistics]) -> String {
    let mut text = format!("{:<18}{:>15}{:>15}{:>15}", "per rank", "min", "mean", "max");
    for Column { name, value, decimals } in COLUMNS {
        let values: Vec<f64> = ranks.iter().map(value).collect();
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let max = values.iter().copied().fold(0.0, f64::max);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n{name:<18}{min:>15.decimals$}{mean:>15.*}{max:>15.decimals$}",
            decimals.max(1)
        );
    }
    text
}

/// Every column of every rank.
fn table(ranks: &[RankStatistics]) -> String {
    let mut text = format!("{:>6}", "rank");
    for Column { name, .. } in COLUMNS {
        let _ = write!(text, "{name:>19}");
    }
    let _ = write!(text, "{:>19}", "% of nodes");
    let nodes = Totals::new(ranks).nodes as f64;
    for (rank, statistics) in ranks.iter().enumerate() {
        let _ = write!(text, "\n{rank:>6}");
        for Column { value, decimals, .. } in COLUMNS {
            let _ = write!(text, "{:>19.decimals$}", value(statistics));
        }
        let _ = write!(text, "{:>19.2}", 100.0 * statistics.counts.nodes as f64 / nodes);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use uts::frontier::Counts;

    fn rank(nodes: u64) -> RankStatistics {
        let counts = Counts { nodes, leaves: nodes / 2, depth: 3, most_open: 2, left: 0 };
        RankStatistics { counts, ..RankStatistics::default() }
    }

    /// The text, verdict and outcome of a report.
    fn print(report: Report<'_>) -> (String, Outcome) {
        let (verdict, outcome) = report.verdict();
        (report.print() + &verdict, outcome)
    }

    fn report(published: Option<Published>, verbose: bool) -> (String, Outcome) {
        let (heading, ranks) = (vec!["tree".to_owned()], &[rank(100), rank(300)]);
        let (seconds, interrupted) = (0.5, false);
        print(Report { heading, ranks, pes: 2, seconds, published, verbose, interrupted })
    }

    #[test]
    fn right_sizes_are_ok() {
        let published = Published { nodes: 400, depth: Some(3), leaves: Some(200) };
        let (text, outcome) = report(Some(published), false);
        assert_eq!(outcome, Outcome::Right);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "tree");
        assert_eq!(lines[1], "nodes 400, depth 3, leaves 200 (50.00%)");
        assert_eq!(lines[2], "time 0.500000 s, 800 nodes/s, 400 nodes/s per PE");
        let nodes: Vec<&str> = lines[4].split_whitespace().collect();
        assert_eq!(nodes, ["nodes", "100", "200.0", "300"]);
        assert_eq!(lines.last(), Some(&"ok"));
    }

    #[test]
    fn wrong_sizes_are_named() {
        let published = Published { nodes: 401, depth: Some(3), leaves: None };
        let (text, outcome) = report(Some(published), false);
        assert_eq!(outcome, Outcome::Wrong);
        assert!(text.ends_with("\nWRONG: expected nodes 401"), "{text}");
    }

    #[test]
    fn unknown_trees_say_so_and_verbose_lists_ranks() {
        let (text, outcome) = report(None, true);
        assert_eq!(outcome, Outcome::Right);
        assert!(text.ends_with("\nok (no size was published for this tree)"));
        let row = text.lines().find(|line| line.starts_with("     1"));
        assert!(row.is_some_and(|row| row.contains(" 300 ") && row.ends_with(" 75.00")), "{text}");
    }

    #[test]
    fn a_partial_result_says_that_it_is_and_has_no_verdict() {
        let published = Some(Published { nodes: 400, depth: None, leaves: None });
        let mut ranks = [rank(100), rank(50)];
        ranks[1].counts.left = 7;
        for (interrupted, expected, last) in [
            (true, Outcome::Interrupted, "interrupted before the tree was searched"),
            (
                false,
                Outcome::Limited,
                "stopped at the limit, after 150 nodes; 7 open ones were left",
            ),
        ] {
            let (heading, pes, seconds) = (vec!["tree".to_owned()], 1, 0.5);
            let ranks = &ranks;
            let (text, outcome) = print(Report {
                heading,
                ranks,
                pes,
                seconds,
                published,
                verbose: false,
                interrupted,
            });
            assert_eq!(outcome, expected);
            assert!(
                text.contains("\nnodes 150, ") && !text.contains("ok") && !text.contains("WRONG")
            );
            assert!(text.ends_with(&format!("\nPARTIAL: {last}")), "{text}");
        }
    }
}
