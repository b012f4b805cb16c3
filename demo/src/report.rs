//! The report: an HTML page with tables and the figure of the sweep, and a page of `vrt-trace` for each run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use svg::Document;
use svg::node::element::{Circle, Line, Polyline, Text};
use vrt_trace::page;

use crate::run::Finished;
use crate::sweep::Sweep;
use crate::{DemoError, RATIO, gained};

/// Size of the figure, and room for its labels.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 16.0;

/// Writes the report, and beside it a page for each run.
pub(crate) fn write(
    file: &Path,
    runs: &[Finished],
    sweep: &Sweep,
    pes: u32,
) -> Result<(), DemoError> {
    let save = |file: &Path, bytes: &[u8]| {
        std::fs::write(file, bytes)
            .map_err(DemoError::system(format!("write the report to {}", file.display())))
    };
    for run in runs {
        save(&page_of(file, run), &run.page)?;
    }
    save(file, report(file, runs, sweep, pes).as_bytes())
}

/// The page of a run is beside the report.
fn page_of(report: &Path, run: &Finished) -> PathBuf {
    let stem = report.file_stem().unwrap_or_default().to_string_lossy();
    report.with_file_name(format!("{stem}-{}.html", run.job.name))
}

fn report(file: &Path, runs: &[Finished], sweep: &Sweep, pes: u32) -> String {
    let mut html = page::of(HEAD);
    // Writing to a String cannot fail.
    let _ = writeln!(html, "<h1>What vrt gained</h1><p>{} ranks on {pes} PEs.</p>", RATIO * pes);
    html.push_str(&table(runs));
    let _ = writeln!(
        html,
        "<h2>How many ranks for each PE</h2><p>The uneven relaxation, balanced: seconds at each ratio, the median and \
         the spread of its runs; {}.</p>{}",
        sweep.best(),
        figure(sweep)
    );
    for run in runs {
        let page = page_of(file, run);
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let _ = writeln!(
            html,
            "<h2>{}</h2><p>{}. PEs were busy {:.0}% of the time; {} moves. <a href=\"{name}\">A page of its \
             own</a></p><iframe src=\"{name}\" title=\"{}\" loading=\"lazy\"></iframe>",
            run.job.title,
            run.job.about,
            100.0 * run.busy(),
            run.statistics.moves,
            run.job.title
        );
    }
    html.push_str("</main></body></html>\n");
    html
}

const HEAD: &str = r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>What vrt gained</title><style>
/*STYLE*/
th:last-child, td:last-child { text-align: left }
td.gain { font-weight: 600; color: var(--mark) }
td.loss { color: var(--warn) }
svg text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: var(--quiet) }
svg .grid { stroke: var(--line) } svg .spread { stroke: var(--run2); stroke-width: 2 } svg .mean { stroke: var(--run); fill: none } svg circle { fill: var(--run) }
iframe { width: 100%; height: 640px; border: 1px solid var(--line) }
</style></head><body><main>
"#;

fn table(runs: &[Finished]) -> String {
    let mut html = String::from(
        "<table><tr><th>run</th><th>time</th><th>gained</th><th>PEs busy</th><th>moves</th>\
         <th>result</th></tr>\n",
    );
    for (number, run) in runs.iter().enumerate() {
        let ratio = gained(runs, number);
        let class = if ratio.is_some_and(|ratio| ratio >= 1.0) { "gain" } else { "loss" };
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td>{:.2} s</td><td class=\"{class}\">{}</td><td>{:.0}%</td>\
             <td>{}</td><td>{}</td></tr>",
            run.job.title,
            run.outcome.seconds,
            ratio.map(|ratio| format!("{ratio:.2}x")).unwrap_or_default(),
            100.0 * run.busy(),
            run.statistics.moves,
            run.outcome.result
        );
    }
    html + "</table>\n"
}

/// Seconds over ranks per PE.
fn figure(sweep: &Sweep) -> Document {
    let most = sweep.0.iter().flat_map(|at| &at.runs).map(|run| run.0).fold(1e-9, f64::max);
    let step = (WIDTH - LEFT - 30.0) / sweep.0.len().saturating_sub(1).max(1) as f64;
    let x = |at: usize| LEFT + 10.0 + at as f64 * step;
    let y = |seconds: f64| HEIGHT - BOTTOM - seconds / most * (HEIGHT - BOTTOM - TOP);
    let line = |from: (f64, f64), to: (f64, f64), class: &str| {
        Line::new()
            .set("x1", from.0)
            .set("y1", from.1)
            .set("x2", to.0)
            .set("y2", to.1)
            .set("class", class)
    };
    let text = |text: String, x: f64, y: f64, anchor: &str| {
        Text::new(text).set("x", x).set("y", y).set("text-anchor", anchor)
    };
    let mut figure = Document::new()
        .set("viewBox", (0, 0, WIDTH as i32, HEIGHT as i32))
        .set("width", WIDTH as i32)
        .set("role", "img")
        .set("aria-label", "Seconds at each number of ranks per PE");
    for tick in 0..=4 {
        let seconds = most * f64::from(tick) / 4.0;
        let at = y(seconds);
        figure = figure.add(line((LEFT, at), (WIDTH - 8.0, at), "grid")).add(text(
            format!("{seconds:.2} s"),
            LEFT - 6.0,
            at + 4.0,
            "end",
        ));
    }
    let mut points = String::new();
    for (number, at) in sweep.0.iter().enumerate() {
        let (x, middle) = (x(number), y(at.median().0));
        let _ = write!(points, "{x:.1},{middle:.1} ");
        if let (Some(fastest), Some(slowest)) = (at.runs.first(), at.runs.last()) {
            figure = figure.add(line((x, y(fastest.0)), (x, y(slowest.0)), "spread"));
        }
        figure = figure.add(Circle::new().set("cx", x).set("cy", middle).set("r", 3.5)).add(text(
            at.ratio.to_string(),
            x,
            HEIGHT - BOTTOM + 16.0,
            "middle",
        ));
    }
    figure
        .add(Polyline::new().set("points", points).set("class", "mean").set("stroke-width", 1.5))
        .add(text("ranks per PE".to_owned(), WIDTH / 2.0, HEIGHT - 6.0, "middle"))
}
