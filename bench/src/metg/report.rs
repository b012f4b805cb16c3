//! The results of all runs: a figure for each pattern, `report.md`, and `metg.json`.

use experiments::{Axis, Folder, Labels, Spread, Table};
use serde_json::{Value, json};
use vrt_cli::{Machine, quantity};

use super::curve::{Metg, Point, curve, metg};
use super::system::System;
use super::{Args, Series};
use crate::Error;
use crate::programs::metg::Pattern;

/// The results of a system's runs with a pattern.
struct Finding<'a> {
    series: &'a Series,
    /// From the medians of all rounds.
    points: Vec<Point>,
    metg: Metg,
    /// METG of each round, in seconds, if it exists.
    each: Option<Spread>,
}

impl Finding<'_> {
    fn of(series: &Series, peak: f64) -> Finding<'_> {
        let points = curve(series.scale, &series.medians(), peak);
        let each = (series.rounds.iter())
            .filter_map(|runs| metg(&curve(series.scale, runs, peak)).seconds());
        Finding { series, metg: metg(&points), each: Spread::of(each), points }
    }

    /// METG(50%) in microseconds, with the range of the rounds.
    fn shown(&self) -> String {
        let number = |seconds: f64| format!("{:.2}", 1e6 * seconds);
        let value = match self.metg {
            Metg::At(seconds) => number(seconds),
            Metg::Below(seconds) => format!("at most {}", number(seconds)),
            Metg::Never => return "none".to_owned(),
        };
        match self.each {
            Some(each) => format!("{value} ({} to {})", number(each.least), number(each.most)),
            None => value,
        }
    }

    fn json(&self, ranks_per_pe: u32) -> Value {
        let points: Vec<Value> = (self.points.iter())
            .map(|it| {
                json!({
                    "iterations": it.iterations,
                    "granularity_seconds": it.granularity,
                    "efficiency": it.efficiency,
                })
            })
            .collect();
        json!({
            "pattern": self.series.pattern.name(),
            "system": self.series.system.title(ranks_per_pe),
            "metg_seconds": self.metg.seconds(),
            "is_upper_bound": matches!(self.metg, Metg::Below(_)),
            "least_seconds": self.each.map(|it| it.least),
            "most_seconds": self.each.map(|it| it.most),
            "ranks_moved": self.series.moved,
            "points": points,
        })
    }
}

/// Writes everything to the directory, and the report also to standard output.
///
/// # Errors
///
/// If a file cannot be written.
pub(super) fn write(args: &Args, mut folder: Folder, all: &[Series]) -> Result<(), Error> {
    let peak = all.iter().map(Series::rate_of_largest).fold(0.0, f64::max);
    let findings: Vec<Finding> = all.iter().map(|series| Finding::of(series, peak)).collect();
    let mut patterns: Vec<Pattern> = all.iter().map(|series| series.pattern).collect();
    patterns.dedup();
    for &pattern in &patterns {
        draw(args, &folder, pattern, &findings)?;
    }
    let systems: Vec<System> = System::all(!args.no_open_mpi);
    folder.add_paragraph(head(args, peak));
    let of = |pattern, system| {
        findings.iter().find(move |it| (it.series.pattern, it.series.system) == (pattern, system))
    };
    let table = |title: &str, cell: &dyn Fn(&Finding) -> String| {
        let titles = systems.iter().map(|it| it.title(args.ranks_per_pe));
        let mut table = Table::new(std::iter::once(title.to_owned()).chain(titles));
        for &pattern in &patterns {
            let cells = systems.iter().filter_map(|&system| of(pattern, system).map(cell));
            table.row(std::iter::once(pattern.name().to_owned()).chain(cells));
        }
        table
    };
    folder.add_paragraph(table("METG(50%) in us", &|finding| finding.shown()));
    let iterations = args.iterations().last().copied().unwrap_or_default();
    folder.add_paragraph(format!(
        "Of each: by the medians of all rounds, and in brackets the least and the most of single rounds.\n\n\
         A task with {}, in ns of a core: what it costs beside its kernel.\n",
        quantity::count(iterations, "iteration")
    ));
    folder.add_paragraph(table("ns a task", &|finding| {
        finding.points.last().map_or_else(String::new, |it| format!("{:.0}", 1e9 * it.granularity))
    }));
    let moved: u64 = all.iter().map(|series| series.moved).sum();
    folder.add_paragraph(format!(
        "`--lb {} --lb-period {}ms` moved ranks {moved} times in all rounds.\n",
        args.lb, args.period
    ));
    for pattern in patterns {
        let name = pattern.name();
        folder.add_paragraph(format!("![Efficiency over granularity, {name}]({name}.svg)\n"));
    }
    let numbers = json!({
        "processor": Machine::at_start().processor,
        "cores": args.pes(),
        "rounds": args.rounds(),
        "steps": args.steps(),
        "bytes": args.bytes,
        "peak_flops_per_core": peak,
        "findings": findings.iter().map(|it| it.json(args.ranks_per_pe)).collect::<Vec<_>>(),
    });
    folder.write_json("metg", &numbers)?;
    Ok(folder.write_report()?)
}

fn head(args: &Args, peak: f64) -> String {
    format!(
        "## METG(50%)\n\n{} of {}; {} timesteps, {} bytes to each task that needs them; {} of each system, in turn. \
         The peak is {:.1} GFLOP/s of a core.\n",
        quantity::count(args.pes(), "core"),
        Machine::at_start().processor,
        args.steps(),
        args.bytes,
        quantity::count(args.rounds(), "round"),
        1e-9 * peak
    )
}

/// Efficiency over granularity of all systems.
fn draw(args: &Args, folder: &Folder, pattern: Pattern, all: &[Finding]) -> Result<(), Error> {
    let of_pattern = || all.iter().filter(|it| it.series.pattern == pattern);
    // Whole nanoseconds: the numbers at the axis are so, too.
    let place = |point: &Point| (1e9 * point.granularity).round();
    let mut lines: Vec<_> = of_pattern()
        .map(|it| {
            let points = it.points.iter().map(|point| (place(point), point.efficiency)).collect();
            (it.series.system.title(args.ranks_per_pe), points)
        })
        .collect();
    let places = of_pattern().flat_map(|it| it.points.iter().map(place));
    let (least, most) = places
        .fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), it| (least.min(it), most.max(it)));
    lines.push(("half of the peak".to_owned(), vec![(least, 0.5), (most, 0.5)]));
    let labels = Labels {
        title: &format!("Efficiency over granularity: {}", pattern.name()),
        x: "wall time x cores / tasks, in ns",
        y: "share of the peak rate",
    };
    Ok(folder.draw(pattern.name(), &labels, &lines, Axis::Span)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metg::curve::Run;
    use crate::parsed;

    #[test]
    fn figures_report_and_numbers_are_written() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("metg");
        let args = ["metg", "--quick", "--pes", "2", "--no-open-mpi", "--pattern", "tree"];
        let args = [&args[..], &["--out", out.to_str().unwrap()]].concat();
        let args = parsed::<Args>(&args).unwrap();
        let series: Vec<Series> = System::all(false)
            .into_iter()
            .map(|system| {
                let graph = args.graph(system, Pattern::Tree);
                let scale = super::super::Scale { cores: 2.0, tasks: graph.tasks() as f64 };
                let run = |&iterations: &u32| Run {
                    iterations,
                    seconds: 0.5 * scale.tasks * (3e-7 + 2e-9 * f64::from(iterations)),
                };
                let runs: Vec<Run> = args.iterations().iter().map(run).collect();
                Series { pattern: Pattern::Tree, system, scale, rounds: vec![runs], moved: 7 }
            })
            .collect();
        write(&args, Folder::create(&out).unwrap(), &series).unwrap();
        let report = std::fs::read_to_string(out.join("report.md")).unwrap();
        for part in [
            "| tree | 0.58 (0.58 to 0.58)",
            "vrt, 16 ranks per PE that move",
            "moved ranks 28 times",
            "tree.svg",
        ] {
            assert!(report.contains(part), "no {part} in {report}");
        }
        let svg = std::fs::read_to_string(out.join("tree.svg")).unwrap();
        assert!(svg.contains("half of the peak"));
        let numbers: Value =
            serde_json::from_str(&std::fs::read_to_string(out.join("metg.json")).unwrap()).unwrap();
        assert_eq!(numbers["findings"].as_array().unwrap().len(), 4);
        let seconds = numbers["findings"][0]["metg_seconds"].as_f64().unwrap();
        assert!((5e-7..7e-7).contains(&seconds), "{seconds}");
    }
}
