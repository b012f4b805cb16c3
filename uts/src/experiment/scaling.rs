//! The papers' figures over numbers of processes that are not available here, by simulation.
//!
//! Costs are those of the papers' machines, as far as they are given; trees are as large as a minute allows. A line of
//! a figure ends where a simulation does not complete within a limit of events: thieves that ask forever cause one
//! event per request. That is part of the result, not an error.

use super::ExperimentError;
use experiments::{Axis, Folder, Labels, Series, Table, cell};
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};
use uts::{
    estimate::Law,
    lanes::Kernel,
    named,
    plan::{Algorithm, Interval, Plan},
    simulation::{Costs, SimulationError, Source, simulate},
    statistics::Totals,
    tree::Tree,
};

/// Events after which a simulation is abandoned.
const MOST_EVENTS: u64 = 40_000_000;

/// The cluster of the 2007 paper: nodes at about the rate of the 2006 paper for its processors; MPI over its network,
/// whose manager has two receives open for each process and scans all of them.
const CLUSTER_2007: Costs = Costs {
    node: 700.0,
    look: 50.0,
    turn: 150.0,
    latency: 5000.0,
    overhead: 1000.0,
    byte: 1.2,
    branch: 0.0,
    scan: 100.0,
    access: 100.0,
    release: 500.0,
    acquire: 500.0,
    steal: 1000.0,
    group: 2,
};

/// The cluster of the 2012 paper: 3.1 million nodes/s per core; nodes of twelve cores.
const CLUSTER_2012: Costs = Costs {
    node: 322.0,
    look: 40.0,
    turn: 140.0,
    latency: 1500.0,
    overhead: 500.0,
    byte: 0.3,
    branch: 0.0,
    scan: 0.0,
    access: 100.0,
    release: 500.0,
    acquire: 500.0,
    steal: 500.0,
    group: 12,
};

/// A figure of a paper, to be simulated.
#[derive(Clone, Debug)]
struct Figure {
    /// The name of its files.
    name: &'static str,
    title: &'static str,
    /// The paper's result, and what it is compared with.
    question: &'static str,
    costs: Costs,
    shows: Shows,
    lines: Vec<Line>,
}

/// What is shown of each simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    /// Million nodes per second.
    Rate,
    /// Percentage of the ideal rate of this many processes.
    Efficiency,
}

/// One algorithm on one tree.
#[derive(Clone, Debug)]
struct Line {
    algorithm: Algorithm,
    tree: &'static str,
    by_law: bool,
    interval: u64,
    /// The fastest one of these is shown.
    chunks: &'static [u64],
    processes: &'static [u32],
    /// The paper's relative efficiency on eight times as many processes, in per cent.
    paper: Option<f64>,
}

impl Line {
    fn name(&self) -> String {
        format!("{}, {}", self.algorithm.name(), self.tree)
    }
}

/// The papers' figures.
fn figures() -> Vec<Figure> {
    let line_2007 = |algorithm, interval, tree| Line {
        algorithm,
        tree,
        by_law: false,
        interval,
        chunks: &[5, 10, 20, 50],
        processes: &[4, 8, 16, 32, 48, 64, 128],
        paper: None,
    };
    let line_2012 = |algorithm, interval, tree, chunks, processes, paper| Line {
        algorithm,
        tree,
        by_law: true,
        interval,
        chunks,
        processes,
        paper,
    };
    let lines_2012 = |interval, tree, mpi, gpi| {
        use Algorithm::{Hierarchical, Steal, Steal2007};
        let (all, fewer): (&[u32], &[u32]) = (&[96, 384, 768, 3072], &[48, 96, 384, 768]);
        vec![
            line_2012(Hierarchical, interval, tree, &[20], all, Some(gpi)),
            line_2012(Steal2007, interval, tree, &[20], fewer, Some(mpi)),
            line_2012(Steal, interval, tree, &[32], all, None),
        ]
    };
    vec![
        Figure {
            name: "scaling-binomial",
            title: "Scaling on a binomial tree (2012, figure 4)",
            question: "The paper of 2012 searches T2WL, 300 billion nodes, on 384 to 3072 cores. From the \
                       first to the last, its one-sided program keeps 76% of its efficiency, the one on MPI \
                       26%. Here T3XXL, a hundredth of that, by its law, looked for messages after every 512 \
                       nodes; `steal-2007` on 768 processes at most, as its requests are an event each.",
            costs: CLUSTER_2012,
            shows: Shows::Efficiency,
            lines: lines_2012(512, "T3XXL", 26.0, 76.0),
        },
        Figure {
            name: "scaling-geometric",
            title: "Scaling on a geometric tree (2012, figure 3)",
            question: "The paper of 2012 searches T1WL, 270 billion nodes, on 384 to 3072 cores. From the \
                       first to the last, its one-sided program keeps 89% of its efficiency, the one on MPI \
                       48% (85% if only six cores of each node work; that the twelve of a node are in each \
                       other's way is not simulated). Here T1XL, a 166th of that, by its law, looked for \
                       messages after every 256 nodes; `steal-2007` on 768 processes at most.",
            costs: CLUSTER_2012,
            shows: Shows::Efficiency,
            lines: lines_2012(256, "T1XL", 48.0, 89.0),
        },
        Figure {
            name: "scaling-2007",
            title: "Sharing and stealing over processors (2007, figures 3 and 4)",
            question: "In the paper of 2007 (section 4.4) sharing loses much of its rate beyond 32 \
                       processors, on T3 also; stealing scales up to 64, all there were. Release interval \
                       128 and polling interval 8, as there (here 16, the lanes); of chunks of 5, 10, 20 and \
                       50 nodes the best. The manager looks through two receives of each process, by \
                       which its latency grows with their number; what that costs is assumed.",
            costs: CLUSTER_2007,
            shows: Shows::Rate,
            lines: vec![
                line_2007(Algorithm::Share, 128, "T1"),
                line_2007(Algorithm::Share, 128, "T3"),
                line_2007(Algorithm::Steal2007, 16, "T1"),
                line_2007(Algorithm::Steal2007, 16, "T3"),
            ],
        },
    ]
}

/// A simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    processes: u32,
    chunk: u64,
    nodes: u64,
    seconds: f64,
    failed: u64,
    events: u64,
}

impl Point {
    fn rate(&self) -> f64 {
        self.nodes as f64 / self.seconds / 1e6
    }

    fn efficiency(&self, costs: &Costs) -> f64 {
        100.0 * self.nodes as f64 * costs.node * 1e-9 / self.seconds / f64::from(self.processes)
    }
}

/// The results of a line: completed simulations, and the numbers of processes, and chunks, of the abandoned ones.
#[derive(Clone, Debug, Default, PartialEq)]
struct Found {
    points: Vec<Point>,
    not_over: Vec<(u32, u64)>,
}

impl Found {
    /// The fastest simulation for each number of processes.
    fn best(&self) -> Vec<Point> {
        let mut best: Vec<Point> = Vec::new();
        for point in &self.points {
            match best.iter_mut().find(|it| it.processes == point.processes) {
                Some(known) if known.seconds > point.seconds => *known = *point,
                Some(_) => {}
                None => best.push(*point),
            }
        }
        best
    }
}

/// Simulates all figures, and adds them to the report.
///
/// # Errors
///
/// If a simulation finds the wrong tree or a file cannot be written.
pub(super) fn run(folder: &mut Folder) -> Result<(), ExperimentError> {
    let figures = figures();
    let found = simulate_all(&figures, MOST_EVENTS)?;
    for (figure, found) in figures.iter().zip(found).rev() {
        add(figure, &found, MOST_EVENTS, folder)?;
    }
    Ok(())
}

/// The results of each line of each figure. Each line is one thread's work; as many threads as there are processors
/// process one line after another.
fn simulate_all(figures: &[Figure], most: u64) -> Result<Vec<Vec<Found>>, ExperimentError> {
    let tasks: Vec<(&Figure, &Line)> =
        figures.iter().flat_map(|it| it.lines.iter().map(move |line| (it, line))).collect();
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((figure, line)) = tasks.get(number) else { break };
                    let found = simulate_line(line, figure.costs, most);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    results.push((number, found));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|it| it.0);
    let mut results = results.into_iter().map(|it| it.1);
    figures.iter().map(|it| results.by_ref().take(it.lines.len()).collect()).collect()
}

/// Simulates a line, from few processes to many. A chunk size that fails for some number of processes is not tried for
/// larger ones.
fn simulate_line(line: &Line, costs: Costs, most: u64) -> Result<Found, ExperimentError> {
    let fail = |why: String| ExperimentError::Simulation { what: line.name(), why };
    let named = named::find(line.tree).ok_or_else(|| fail("no such tree".to_owned()))?;
    let kernel = Kernel::fastest();
    let tree = Tree::new(named.parameters).map_err(|it| fail(it.to_string()))?;
    let law = line.by_law.then(|| Law::of(named, kernel)).transpose();
    let law = law.map_err(|it| fail(it.to_string()))?;
    let source = law.as_ref().map_or(Source::Tree(&tree, kernel), Source::Law);
    let published = law.is_none().then_some(named.published);
    let mut found = Found::default();
    for &chunk in line.chunks {
        for &processes in line.processes {
            let mut plan = Plan::of(line.algorithm);
            plan.sharing.chunk = chunk;
            plan.sharing.interval = Interval::Fixed(line.interval);
            plan.check(processes as usize).map_err(|it| fail(it.to_string()))?;
            match simulate(source, plan, processes as usize, costs, most) {
                Ok(result) => {
                    let totals = Totals::new(&result.processes);
                    if let Some(expected) = totals.differs_from(published) {
                        return Err(fail(format!("{processes} processes: expected {expected}")));
                    }
                    found.points.push(Point {
                        processes,
                        chunk,
                        nodes: totals.nodes,
                        seconds: result.seconds,
                        failed: result.processes.iter().map(|it| it.traffic.failed_steals).sum(),
                        events: result.events,
                    });
                }
                Err(SimulationError::TooMany(_)) => {
                    found.not_over.push((processes, chunk));
                    break;
                }
                Err(other) => return Err(fail(other.to_string())),
            }
        }
    }
    Ok(found)
}

/// Writes table, figure and paragraph.
fn add(
    figure: &Figure,
    found: &[Found],
    most: u64,
    folder: &mut Folder,
) -> Result<(), ExperimentError> {
    folder.write_table(figure.name, &COLUMNS, rows(figure, found))?;
    let y = match figure.shows {
        Shows::Rate => "million nodes/s",
        Shows::Efficiency => "efficiency (%)",
    };
    let labels = Labels { title: figure.title, x: "processes", y };
    let series = figure.lines.iter().zip(found).map(|(line, found)| -> Series {
        let value = |it: &Point| match figure.shows {
            Shows::Rate => it.rate(),
            Shows::Efficiency => it.efficiency(&figure.costs),
        };
        let points = found.best();
        (line.name(), points.iter().map(|it| (f64::from(it.processes), value(it))).collect())
    });
    folder.draw(figure.name, &labels, &series.collect::<Vec<_>>(), Axis::Listed)?;
    folder.add_paragraph(paragraph(figure, found, most));
    Ok(())
}

/// Column headings of a table.
const COLUMNS: [&str; 8] = [
    "line",
    "processes",
    "chunk",
    "seconds",
    "million nodes/s",
    "efficiency",
    "failed steals",
    "events",
];

fn rows(figure: &Figure, found: &[Found]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (line, found) in figure.lines.iter().zip(found) {
        for point in &found.points {
            rows.push(vec![
                line.name(),
                point.processes.to_string(),
                point.chunk.to_string(),
                format!("{:.6}", point.seconds),
                format!("{:.3}", point.rate()),
                format!("{:.2}", point.efficiency(&figure.costs)),
                point.failed.to_string(),
                point.events.to_string(),
            ]);
        }
    }
    rows
}

fn paragraph(figure: &Figure, found: &[Found], most: u64) -> String {
    let Figure { name, title, question, costs, .. } = figure;
    let Costs { node, latency, overhead, scan, group, .. } = costs;
    let looks = match scan {
        0.0 => String::new(),
        _ => format!(", {scan} ns a process for the manager's look through its receives"),
    };
    let mut text = format!(
        "## {title}\n\n{question}\n\n![{title}]({name}.svg)\n\nSimulated: a node {node} ns, L {latency} ns, o \
         {overhead} ns, {group} processes of a node{looks}. Million nodes/s, and efficiency:\n\n"
    );
    let mut places: Vec<u32> = figure.lines.iter().flat_map(|it| it.processes).copied().collect();
    places.sort_unstable();
    places.dedup();
    let heads = places.iter().map(u32::to_string);
    let mut table = Table::new(std::iter::once("processes".to_owned()).chain(heads));
    for (line, found) in figure.lines.iter().zip(found) {
        let best = found.best();
        let shown = |place: &u32| {
            let point = best.iter().find(|it| it.processes == *place);
            cell(point, |it| format!("{:.1}, {:.1}%", it.rate(), it.efficiency(costs)))
        };
        table.row(std::iter::once(line.name()).chain(places.iter().map(shown)));
    }
    text += &format!("{table}\n");
    for (line, found) in figure.lines.iter().zip(found) {
        text += &in_words(line, figure, &found.best());
        for (processes, chunk) in &found.not_over {
            text += &format!(
                "- {}: with chunk {chunk} on {processes} processes it was not over after {most} events.\n",
                line.name()
            );
        }
    }
    text
}

/// A line in words.
fn in_words(line: &Line, figure: &Figure, best: &[Point]) -> String {
    let (name, on) = (line.name(), |number| best.iter().find(|it| it.processes == number));
    match figure.shows {
        // The paper's claim is about 32 and 64.
        Shows::Rate => {
            let Some((few, many)) = on(32).zip(on(64)) else {
                return format!("- {name}: 32 and 64 processes were not both over.\n");
            };
            let (gain, efficiency) = (many.rate() / few.rate(), many.efficiency(&figure.costs));
            let beyond = on(128).map_or(String::new(), |it| {
                format!(", and 128 have {:.2} times that of 64", it.rate() / many.rate())
            });
            format!(
                "- {name}: 64 processes have {gain:.2} times the rate of 32, an efficiency of \
                 {efficiency:.1}% (with chunks of {} nodes){beyond}.\n",
                many.chunk
            )
        }
        Shows::Efficiency => {
            let mut pairs = best.iter().filter_map(|many| Some((on(many.processes / 8)?, many)));
            let Some((few, many)) = pairs.next_back() else {
                return format!(
                    "- {name}: no number of processes and eight times as many were over.\n"
                );
            };
            let relative = 100.0 * many.efficiency(&figure.costs) / few.efficiency(&figure.costs);
            let paper = line.paper.map_or("it is in no paper".to_owned(), |it| {
                format!("the paper has {it:.0}% from 384 to 3072")
            });
            format!(
                "- {name}: from {} to {} processes it keeps {relative:.0}% of its efficiency; {paper}.\n",
                few.processes, many.processes
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(algorithm: Algorithm, processes: &'static [u32]) -> Line {
        let (tree, chunks, paper) = ("T3", &[10, 20], Some(50.0));
        Line { algorithm, tree, by_law: true, interval: 64, chunks, processes, paper }
    }

    fn figure(lines: Vec<Line>) -> Figure {
        let (name, title, question) = ("scaling-test", "A figure", "What is it?");
        Figure { name, title, question, costs: CLUSTER_2012, shows: Shows::Efficiency, lines }
    }

    #[test]
    fn every_line_can_be_simulated() {
        for figure in figures() {
            for line in &figure.lines {
                let named = named::find(line.tree).expect("a tree");
                assert!(!line.by_law || Law::of(named, Kernel::PLAIN).is_ok(), "{}", line.name());
                assert!(line.processes.is_sorted() && !line.chunks.is_empty(), "{}", line.name());
                for &processes in line.processes {
                    assert!(Plan::of(line.algorithm).check(processes as usize).is_ok());
                }
            }
        }
    }

    #[test]
    fn a_line_that_is_not_over_is_said_and_the_others_are_there() {
        let lines = vec![
            line(Algorithm::Steal, &[1, 8, 64]),
            // On 512 processes thieves ask for more than is allowed.
            line(Algorithm::Steal2007, &[1, 8, 512, 1024]),
        ];
        let figures = [figure(lines)];
        let found = simulate_all(&figures, 400_000).expect("a simulation");
        assert_eq!((found[0][0].points.len(), &found[0][0].not_over[..]), (6, &[][..]));
        assert_eq!(found[0][1].points.len(), 4);
        assert_eq!(found[0][1].not_over, [(512, 10), (512, 20)]);
        assert_eq!(found[0][0].best().len(), 3);
        assert!(found[0][0].points.iter().all(|it| it.nodes == 4_112_897));

        let out = tempfile::tempdir().expect("a place");
        let mut folder = Folder::create(out.path()).expect("a folder");
        add(&figures[0], &found[0], 400_000, &mut folder).expect("files");
        folder.write_report().expect("a file");
        let read = |name: &str| std::fs::read_to_string(out.path().join(name)).expect("a file");
        assert_eq!(read("scaling-test.csv").lines().count(), 1 + 10);
        assert!(read("scaling-test.svg").contains("steal-2007, T3"));
        let report = read("report.md");
        let said =
            "- steal-2007, T3: with chunk 10 on 512 processes it was not over after 400000 events.";
        assert!(report.contains(said), "{report}");
        assert!(report.contains("| processes | 1 | 8 | 64 | 512 | 1024 |"), "{report}");
        let words = "- steal, T3: from 8 to 64 processes it keeps ";
        assert!(
            report.contains(words) && report.contains("the paper has 50% from 384"),
            "{report}"
        );
    }

    #[test]
    fn a_simulation_that_cannot_be_is_an_error_with_its_line() {
        let figures = [figure(vec![line(Algorithm::Share, &[1])])];
        let error = simulate_all(&figures, 1000).expect_err("no manager").to_string();
        assert!(error.starts_with("simulation of share, T3: algorithm share on 1 rank"), "{error}");
    }

    #[test]
    fn rates_are_compared_between_32_and_64() {
        let point = |processes, seconds, chunk| {
            let (nodes, failed, events) = (1_000_000, 0, 0);
            Point { processes, chunk, nodes, seconds, failed, events }
        };
        let found = Found {
            points: vec![
                point(32, 0.05, 5),
                point(64, 0.08, 5),
                point(64, 0.04, 10),
                point(128, 0.08, 5),
            ],
            not_over: vec![],
        };
        let figure = Figure { shows: Shows::Rate, ..figure(vec![]) };
        let text = in_words(&line(Algorithm::Share, &[]), &figure, &found.best());
        let expected = "- share, T3: 64 processes have 1.25 times the rate of 32, an efficiency of 12.6% \
                        (with chunks of 10 nodes), and 128 have 0.50 times that of 64.\n";
        assert_eq!(text, expected);
    }
}
