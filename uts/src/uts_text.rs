//! The same text as the benchmark's own program, version 2.1, by its verbosity.

use std::fmt::Write as _;
use uts::{
    plan::Plan,
    statistics::{RankStatistics, Totals},
    tree::{Kind, Parameters, Shape},
};

/// The data to print.
#[derive(Clone, Debug)]
pub(crate) struct UtsText<'a> {
    /// The tree.
    pub parameters: Parameters,
    /// How it was searched.
    pub plan: Plan,
    /// What each rank did.
    pub ranks: &'a [RankStatistics],
    /// Seconds from the first node to the last.
    pub seconds: f64,
}

impl UtsText<'_> {
    /// The text at this verbosity, 0 to 3.
    pub(crate) fn print(&self, verbosity: u8) -> String {
        if verbosity == 0 {
            return self.line();
        }
        let mut text = self.banner() + &self.sizes();
        if verbosity >= 2 {
            text += &self.sums();
        }
        if verbosity >= 3 {
            for (rank, statistics) in self.ranks.iter().enumerate() {
                text += &one(rank, statistics);
            }
        }
        text
    }

    fn rates(&self) -> (f64, f64) {
        let rate = Totals::new(self.ranks).nodes as f64 / self.seconds;
        (rate, rate / self.ranks.len() as f64)
    }

    /// The statistics line: ranks, seconds, nodes, nodes/s, the same per rank, and parameters.
    fn line(&self) -> String {
        let (rate, each) = self.rates();
        let it = self.parameters;
        format!(
            "{:4} {:7.3} {:9} {rate:7.0} {each:7.0} {} {} {:.2} {} {} {:1} {:.6} {:3}\n",
            self.ranks.len(),
            self.seconds,
            Totals::new(self.ranks).nodes,
            self.plan.sharing.chunk,
            kind(it.kind).0,
            it.branching,
            it.seed,
            it.depth,
            shape(it.shape).0,
            it.probability,
            it.children
        )
    }

    fn banner(&self) -> String {
        let it = self.parameters;
        let (number, name) = kind(it.kind);
        let mut text = format!(
            "UTS - Unbalanced Tree Search 2.1 (vrt)\nTree type:  {number} ({name})\n\
             Tree shape parameters:\n  root branching factor b_0 = {:.1}, root seed = {}\n",
            it.branching, it.seed
        );
        // Writing to a string cannot fail.
        if matches!(it.kind, Kind::Geometric | Kind::Hybrid) {
            let (number, name) = shape(it.shape);
            let _ = writeln!(
                text,
                "  GEO parameters: gen_mx = {}, shape function = {number} ({name})",
                it.depth
            );
        }
        if matches!(it.kind, Kind::Binomial | Kind::Hybrid) {
            let (q, m) = (it.probability, f64::from(it.children));
            let _ = writeln!(
                text,
                "  BIN parameters:  q = {q:.6}, m = {m}, E(n) = {:.6}, E(s) = {:.2}",
                q * m,
                1.0 / (1.0 - q * m)
            );
        }
        let _ = writeln!(
            text,
            "Random number generator: SHA-1 (state size = 20B)\nCompute granularity: {}\n\
             Execution strategy:  Parallel search using {} ranks\n   \
             Load balance by {}, chunk size = {} nodes\n   Polling interval: {}\n",
            it.granularity,
            self.ranks.len(),
            self.plan.algorithm.name(),
            self.plan.sharing.chunk,
            self.plan.sharing.interval
        );
        text
    }

    fn sizes(&self) -> String {
        let totals = Totals::new(self.ranks);
        let (rate, each) = self.rates();
        format!(
            "Tree size = {}, tree depth = {}, num leaves = {} ({:.2}%)\n\
             Wallclock time = {:.3} sec, performance = {rate:.0} nodes/sec \
             ({each:.0} nodes/sec per PE)\n\n",
            totals.nodes,
            totals.depth,
            totals.leaves,
            totals.leaf_percentage(),
            self.seconds
        )
    }

    fn sums(&self) -> String {
        let sum = |it: fn(&RankStatistics) -> u64| self.ranks.iter().map(it).sum::<u64>();
        let mut text = format!(
            "Total chunks released = {}, of which {} reacquired and {} stolen\n\
             Failed steals = {}, Max queue size = {}\n",
            sum(|it| it.traffic.releases),
            sum(|it| it.traffic.acquired),
            sum(|it| it.traffic.steals),
            sum(|it| it.traffic.failed_steals),
            self.ranks.iter().map(|it| it.counts.most_open).max().unwrap_or(0)
        );
        for (state, name) in ["Work", "Overhead", "Search", "Idle"].into_iter().enumerate() {
            let times: Vec<f64> = self.ranks.iter().map(|it| it.times.seconds[state]).collect();
            let average = times.iter().sum::<f64>() / times.len() as f64;
            let least = times.iter().copied().fold(f64::INFINITY, f64::min);
            let most = times.iter().copied().fold(0.0, f64::max);
            let _ = writeln!(
                text,
                "Avg time per thread: {name:<8} = {average:.6} (min {least:.6}, max {most:.6})"
            );
        }
        text + "\n"
    }
}

fn one(rank: usize, RankStatistics { counts, traffic, times }: &RankStatistics) -> String {
    let [work, overhead, search, idle] = times.seconds;
    let [works, overheads, searches, idles] = times.sessions;
    format!(
        "** Thread {rank}\n  # nodes explored    = {}\n  # chunks released   = {}\n  \
         # chunks reacquired = {}\n  # chunks stolen     = {}\n  # failed steals     = {}\n  \
         max stack depth     = {}\n  work time           = {work:.6} secs ({works} sessions)\n  \
         overhead time       = {overhead:.6} secs ({overheads} sessions)\n  \
         search time         = {search:.6} secs ({searches} sessions)\n  \
         idle time           = {idle:.6} secs ({idles} sessions)\n\n",
        counts.nodes,
        traffic.releases,
        traffic.acquired,
        traffic.steals,
        traffic.failed_steals,
        counts.most_open
    )
}

fn kind(kind: Kind) -> (u8, &'static str) {
    match kind {
        Kind::Binomial => (0, "Binomial"),
        Kind::Geometric => (1, "Geometric"),
        Kind::Hybrid => (2, "Hybrid"),
        Kind::Balanced => (3, "Balanced"),
    }
}

fn shape(shape: Shape) -> (u8, &'static str) {
    match shape {
        Shape::Linear => (0, "Linear decrease"),
        Shape::ExponentialDecrease => (1, "Exponential decrease"),
        Shape::Cyclic => (2, "Cyclic"),
        Shape::Fixed => (3, "Fixed branching factor"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uts::frontier::Counts;

    #[test]
    fn the_line_and_the_text_have_the_programs_form() {
        let counts = Counts { nodes: 600, leaves: 300, depth: 3, most_open: 2, left: 0 };
        let ranks = [RankStatistics { counts, ..RankStatistics::default() }; 2];
        let (parameters, plan) = (Parameters::default(), Plan::default());
        let text = UtsText { parameters, plan, ranks: &ranks, seconds: 0.5 };
        let line = "   2   0.500      1200    2400    1200 32 1 4.00 0 6 0 0.234375   4\n";
        assert_eq!(text.print(0), line);
        let sizes = "Tree size = 1200, tree depth = 3, num leaves = 600 (50.00%)\n\
                     Wallclock time = 0.500 sec, performance = 2400 nodes/sec \
                     (1200 nodes/sec per PE)\n";
        assert!(text.print(1).contains(sizes));
        assert!(!text.print(1).contains("Failed steals"));
        assert!(text.print(2).contains("\nFailed steals = 0, Max queue size = 2\n"));
        assert_eq!(text.print(3).matches("  # nodes explored    = 600\n").count(), 2);
    }
}
