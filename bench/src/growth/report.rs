//! The results of all runs: the tables, the figures, and the numbers as `growth.json`.

use bytesize::ByteSize;
use experiments::{Axis, Folder, Labels, Spread, Spreads, Table};
use serde_json::{Value, json};
use vrt_cli::{Machine, quantity};

use super::curve::{Knee, Point, knees};
use super::system::{Sample, Whole};
use super::{Args, Series};
use crate::Error;
use crate::programs::Aspect;

/// A line over the number of ranks: which value of an aspect's samples it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Time per rank.
    Time(Aspect),
    /// Memory per rank, when all have started.
    Memory,
}

impl Line {
    /// All lines of these aspects, in the order of reports.
    fn all(aspects: &[Aspect]) -> Vec<Self> {
        let memory = aspects.contains(&Aspect::Start).then_some(Self::Memory);
        aspects.iter().copied().map(Self::Time).chain(memory).collect()
    }

    fn aspect(self) -> Aspect {
        match self {
            Self::Time(aspect) => aspect,
            Self::Memory => Aspect::Start,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Time(aspect) => aspect.title(),
            Self::Memory => "memory",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Time(_) => "ns",
            Self::Memory => "KiB",
        }
    }

    fn of(self, sample: &Sample) -> f64 {
        match self {
            Self::Time(_) => 1e9 * sample.seconds,
            Self::Memory => sample.bytes / 1024.0,
        }
    }

    fn number(self, cost: f64) -> String {
        match self {
            Self::Time(_) if cost < 100.0 => format!("{cost:.1}"),
            Self::Time(_) => format!("{cost:.0}"),
            Self::Memory => format!("{cost:.1}"),
        }
    }
}

/// The spread of the rounds for a line with a number of ranks.
fn spread(line: Line, series: &Series) -> Option<Spread> {
    Spread::of(series.samples.iter().map(|sample| line.of(sample)))
}

/// The medians of the rounds.
fn points(line: Line, all: &[Series]) -> Vec<Point> {
    let of_aspect = all.iter().filter(|series| series.aspect == line.aspect());
    let point = |series: &Series| {
        spread(line, series).map(|it| Point { ranks: series.ranks_per_pe, cost: it.median })
    };
    of_aspect.filter_map(point).collect()
}

/// The spreads of the rounds for a line.
fn spreads(line: Line, all: &[Series]) -> Spreads {
    let of_aspect = all.iter().filter(|series| series.aspect == line.aspect());
    of_aspect
        .filter_map(|series| Some((f64::from(series.ranks_per_pe), spread(line, series)?)))
        .collect()
}

/// Writes everything to the directory, and the report also to standard output.
///
/// # Errors
///
/// If a file cannot be written.
pub(super) fn write(
    args: &Args,
    mut folder: Folder,
    all: &[Series],
    million: Option<&Whole>,
) -> Result<(), Error> {
    let lines = Line::all(&args.aspects());
    let figures = [
        ("time", "Time for each rank", "ns", Line::is_short as fn(Line) -> bool),
        ("balance", "Balancing step, for each rank", "ns", |line| {
            line == Line::Time(Aspect::Balance)
        }),
        ("start", "Start, for each rank", "ns", |line| line == Line::Time(Aspect::Start)),
        ("memory", "Memory of a rank, with its page tables", "KiB", |line| line == Line::Memory),
    ];
    let (pes, rounds) = (quantity::count(args.pes, "PE"), quantity::count(args.rounds(), "round"));
    folder.add_paragraph(format!(
        "## What ranks cost as they grow many\n\n{}; {pes}, one for a switch; the medians of {rounds} and, in brackets, the \
         least and the most. For each rank of the job: ns of an operation of all, and KiB.\n",
        Machine::at_start().processor
    ));
    folder.add_paragraph(table(&lines, args, all));
    let knees = all_knees(&lines, all);
    folder.add_paragraph(told(&knees));
    if let Some(whole) = million {
        folder.add_paragraph(format!(
            "{} ranks on {pes}: they had started and met in a barrier after {:.1} s, and ended after {:.1} s; their PEs had \
             {} then.\n",
            whole.ranks,
            whole.seconds_to_barrier,
            whole.seconds,
            ByteSize(whole.bytes as u64)
        ));
    }
    for (name, title, unit, is_in) in figures {
        let of_figure: Vec<Line> = lines.iter().copied().filter(|line| is_in(*line)).collect();
        if of_figure.is_empty() {
            continue;
        }
        let series = |line: &Line| {
            let points = points(*line, all).into_iter();
            (line.title().to_owned(), points.map(|it| (f64::from(it.ranks), it.cost)).collect())
        };
        let series: Vec<_> = of_figure.iter().map(series).collect();
        let bars: Vec<Spreads> = of_figure.iter().map(|line| spreads(*line, all)).collect();
        let labels = Labels { title, x: "ranks on a PE", y: unit };
        folder.draw_with_bars(name, &labels, &series, &bars, Axis::Listed)?;
        folder.add_paragraph(format!("![{title}]({name}.svg)\n"));
    }
    let numbers = json!({
        "processor": Machine::at_start().processor,
        "pes": args.pes,
        "rounds": args.rounds(),
        "curves": lines.iter().map(|line| numbers(*line, all)).collect::<Vec<_>>(),
        "million": million.map(|whole| json!({
            "ranks": whole.ranks,
            "seconds_to_barrier": whole.seconds_to_barrier,
            "seconds": whole.seconds,
            "bytes": whole.bytes,
        })),
    });
    folder.write_json("growth", &numbers)?;
    Ok(folder.write_report()?)
}

impl Line {
    /// Whether its times are those of a few hundred instructions.
    fn is_short(self) -> bool {
        matches!(self, Self::Time(Aspect::Switch | Aspect::Barrier | Aspect::Allreduce))
    }
}

/// A row for each number of ranks.
fn table(lines: &[Line], args: &Args, all: &[Series]) -> Table {
    let mut titles: Vec<String> =
        lines.iter().map(|line| format!("{}, {}", line.title(), line.unit())).collect();
    let balances = args.aspects().contains(&Aspect::Balance);
    titles.extend(balances.then(|| "ranks moved in a step".to_owned()));
    let mut table = Table::new(std::iter::once("ranks on a PE".to_owned()).chain(titles));
    for count in args.counts() {
        let of =
            |aspect| all.iter().find(move |it| (it.aspect, it.ranks_per_pe) == (aspect, count));
        let cell = |line: &Line| {
            let spread = of(line.aspect()).and_then(|series| spread(*line, series));
            spread.map_or_else(String::new, |it| {
                let number = |cost| line.number(cost);
                let [median, least, most] = [it.median, it.least, it.most].map(number);
                format!("{median} ({least} to {most})")
            })
        };
        let mut cells: Vec<String> = lines.iter().map(cell).collect();
        if balances {
            let moved = of(Aspect::Balance).and_then(|series| {
                Spread::of(series.samples.iter().map(|sample| 100.0 * sample.moved))
            });
            cells.push(moved.map_or_else(String::new, |it| format!("{:.1}%", it.median)));
        }
        table.row(std::iter::once(count.to_string()).chain(cells));
    }
    table
}

fn all_knees(lines: &[Line], all: &[Series]) -> Vec<(Line, Knee)> {
    let of_line = |&line: &Line| knees(&points(line, all)).into_iter().map(move |it| (line, it));
    lines.iter().flat_map(of_line).collect()
}

/// Describes where costs grow with the number of ranks.
fn told(knees: &[(Line, Knee)]) -> String {
    if knees.is_empty() {
        return "No cost grows with the number of ranks.\n".to_owned();
    }
    let mut table = Table::new(["knee", "from ranks on a PE", "to", "cost there", "grows by"]);
    for (line, knee) in knees {
        let Knee { from, to } = *knee;
        let [before, after] = [from.cost, to.cost].map(|cost| line.number(cost));
        table.row([
            line.title().to_owned(),
            from.ranks.to_string(),
            to.ranks.to_string(),
            format!("{before} to {after} {}", line.unit()),
            format!("{:.1}", knee.factor()),
        ]);
    }
    table.to_string()
}

/// A line as JSON.
fn numbers(line: Line, all: &[Series]) -> Value {
    let of_aspect = all.iter().filter(|series| series.aspect == line.aspect());
    let points: Vec<Value> = of_aspect
        .filter_map(|series| {
            let it = spread(line, series)?;
            let moved = series.samples.iter().map(|sample| sample.moved);
            let moved = Spread::of(moved).filter(|_| line == Line::Time(Aspect::Balance));
            Some(json!({
                "ranks_per_pe": series.ranks_per_pe,
                "median": it.median,
                "least": it.least,
                "most": it.most,
                "part_of_ranks_moved": moved.map(|it| it.median),
            }))
        })
        .collect();
    json!({ "what": line.title(), "unit": line.unit(), "of_each_rank": points })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsed;

    #[test]
    fn figures_report_and_numbers_are_written() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("growth");
        let args = ["growth", "--ranks-per-pe", "16,64,256", "--out", out.to_str().unwrap()];
        let args = parsed::<Args>(&args).unwrap();
        let sample = |seconds| Sample { seconds, bytes: 14_336.0, moved: 0.125 };
        let all: Vec<Series> = (args.counts().into_iter())
            .flat_map(|count| args.aspects().into_iter().map(move |aspect| (count, aspect)))
            .map(|(ranks_per_pe, aspect)| {
                let grows = aspect == Aspect::Switch && ranks_per_pe > 64;
                let seconds = if grows { 80e-9 } else { 40e-9 };
                let samples = [1.0, 0.5, 10.0].map(|factor| sample(factor * seconds)).to_vec();
                Series { aspect, ranks_per_pe, samples }
            })
            .collect();
        let whole =
            Whole { ranks: 1_000_000, seconds_to_barrier: 8.76, seconds: 16.1, bytes: 14e9 };
        write(&args, Folder::create(&out).unwrap(), &all, Some(&whole)).unwrap();
        let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
        let report = read("report.md");
        for part in [
            "| ranks on a PE | start, ns | switch, ns | barrier, ns | allreduce, ns | balancing step, ns | memory, KiB | ranks moved",
            "| 256 | 40.0 (20.0 to 400) | 80.0 (40.0 to 800) |",
            "| 14.0 (14.0 to 14.0) | 12.5% |",
            "| switch | 64 | 256 | 40.0 to 80.0 ns | 2.0 |",
            "1000000 ranks on 2 PEs: they had started and met in a barrier after 8.8 s, and ended after 16.1 s",
            "13.0 GiB",
        ] {
            assert!(report.contains(part), "no {part} in {report}");
        }
        assert!(!report.contains("| barrier | 64"), "{report}");
        let figures = [
            ("time", "allreduce"),
            ("balance", "balancing step"),
            ("start", "start"),
            ("memory", "memory"),
        ];
        for (name, line) in figures {
            assert!(read(&format!("{name}.svg")).contains(line), "{name}");
        }
        let numbers: Value = serde_json::from_str(&read("growth.json")).unwrap();
        assert_eq!(numbers["curves"].as_array().unwrap().len(), 6);
        assert_eq!(numbers["curves"][1]["of_each_rank"][2]["median"], json!(80.0));
        assert_eq!(numbers["million"]["ranks"], json!(1_000_000));
    }

    #[test]
    fn what_was_not_measured_is_not_in_the_report() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("growth");
        let args = ["growth", "--what", "barrier", "--ranks-per-pe", "16", "--pes", "1"];
        let args = [&args[..], &["--out", out.to_str().unwrap()]].concat();
        let args = parsed::<Args>(&args).unwrap();
        let samples = vec![Sample { seconds: 1e-6, bytes: 1.0, moved: 0.0 }];
        let all = [Series { aspect: Aspect::Barrier, ranks_per_pe: 16, samples }];
        write(&args, Folder::create(&out).unwrap(), &all, None).unwrap();
        let report = std::fs::read_to_string(out.join("report.md")).unwrap();
        assert!(report.contains("| 16 | 1000 (1000 to 1000) |\n"), "{report}");
        assert!(report.contains("No cost grows"), "{report}");
        assert!(!report.contains("memory") && !out.join("balance.svg").exists(), "{report}");
    }
}
