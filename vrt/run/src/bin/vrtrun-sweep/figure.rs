//! Draws the results: medians with their spread over the ratio, where the PEs' time went, and how much of it was spent
//! in ranks.
//!
//! ```text
//! title                        the program, PEs, runs
//! --- none   --- auto          a colour for each balancer
//! +-------------------------+
//! | medians and spread      |
//! +-------------------------+
//! --- idle    - - overhead
//! +-------------------------+
//! | idle, the runtime's own |
//! +-------------------------+
//! | time in ranks           |
//! +-------------------------+
//! machine, date
//! ```

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use plotters::prelude::*;
use vrt_cli::Machine;
use vrt_cli::figure::{self, Area, Entry, LINE, Legend, Mark, Symbol, colour};
use vrt_cli::statistics::Spread;

use crate::job::Shares;
use crate::options::{Configuration, Plan};
use crate::results::{Results, Summary, digits};

const WIDTH: u32 = 900;
/// Heights of the title and of the three charts.
const TITLE: u32 = 34;
const CHARTS: [u32; 3] = [360, 240, 190];
/// Left margin of a chart, for its numbers.
const LEFT: u32 = 80;
/// Characters of a title that fit.
const LETTERS: usize = 100;
/// Horizontal distance between the points of two balancers, in powers of two.
const BESIDE: f64 = 0.05;

type Drawn = Result<(), Box<dyn Error>>;

/// The runs of one balancer, by ratio.
struct Series<'a> {
    strategy: &'a str,
    colour: RGBColor,
    points: Vec<(f64, Summary)>,
}

/// Draws the figure.
pub(crate) fn write(plan: &Plan, results: &Results, path: &Path) -> Drawn {
    let all = results.summaries();
    let series = series(&all);
    let (balancers, parts) = (legend(&series), legend_of_shares());
    let heights = [TITLE, balancers.height() + 6, parts.height(), CHARTS.iter().sum(), LINE];
    let root = SVGBackend::new(path, (WIDTH, heights.iter().sum())).into_drawing_area();
    root.fill(&WHITE)?;
    let (title, rest) = root.split_vertically(TITLE);
    title.titled(&words(plan), ("sans-serif", 17))?;
    let (above, rest) = rest.split_vertically(heights[1]);
    balancers.draw(&above)?;
    let (values, rest) = rest.split_vertically(CHARTS[0]);
    let (between, rest) = rest.split_vertically(heights[2]);
    let (shares, rest) = rest.split_vertically(CHARTS[1]);
    let (work, _) = rest.split_vertically(CHARTS[2]);
    draw_values(plan, &results.unit(plan), &series, &values)?;
    parts.draw(&between)?;
    draw_shares(&series, &shares)?;
    draw_work(&series, &work)?;
    figure::draw_footer(&root, LEFT, &Machine::at_start().brief())?;
    root.present()?;
    Ok(())
}

/// The subtitle: what was run, and where.
fn words(plan: &Plan) -> String {
    let mut words = plan.command.iter().map(|word| word.to_string_lossy().into_owned());
    let program = words.next().unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy();
    let command: Vec<String> = std::iter::once(program.into_owned()).chain(words).collect();
    let mut command = command.join(" ");
    let runs = if plan.repeat == 1 { "1 run".to_owned() } else { format!("{} runs", plan.repeat) };
    let behind = format!(", {} PEs, {runs} each", plan.pes);
    let room = LETTERS.saturating_sub(behind.len());
    if command.chars().count() > room {
        command = command.chars().take(room - 2).collect::<String>() + "..";
    }
    command + &behind
}

fn series<'a>(all: &[(&'a Configuration, Summary)]) -> Vec<Series<'a>> {
    let mut found: Vec<Series> = Vec::new();
    for (configuration, summary) in all {
        let point = (f64::from(configuration.ratio).log2(), *summary);
        match found.iter_mut().find(|it| it.strategy == configuration.strategy) {
            Some(series) => series.points.push(point),
            None => {
                let colour = colour(found.len());
                let strategy = configuration.strategy.as_str();
                found.push(Series { strategy, colour, points: vec![point] });
            }
        }
    }
    let middle = (found.len() - 1) as f64 / 2.0;
    for (number, series) in found.iter_mut().enumerate() {
        series.points.iter_mut().for_each(|point| point.0 += BESIDE * (number as f64 - middle));
    }
    found
}

/// From the least ratio to the greatest, with some margin.
fn across(series: &[Series]) -> Range<f64> {
    let at = || series.iter().flat_map(|it| &it.points).map(|point| point.0);
    at().fold(f64::INFINITY, f64::min) - 0.25..at().fold(0.0, f64::max) + 0.25
}

/// The greatest value of all points.
fn most(series: &[Series], of: impl Fn(&Summary) -> f64) -> f64 {
    series.iter().flat_map(|it| &it.points).map(|point| of(&point.1)).fold(0.0, f64::max)
}

/// The label at a ratio. Ratios are whole numbers; other positions have no label.
fn ratio(at: &f64) -> String {
    let ratio = at.exp2();
    if (ratio - ratio.round()).abs() < 1e-6 { format!("{}", ratio.round()) } else { String::new() }
}

fn legend(series: &[Series]) -> Legend {
    let entry = |Series { strategy, colour, .. }: &Series| {
        let name = if *strategy == crate::options::NONE { "not balanced" } else { strategy };
        let symbol = Symbol::Line { is_dashed: false, mark: None };
        Entry { name: name.to_owned(), colour: (*colour).into(), symbol }
    };
    Legend::new(series.iter().map(entry).collect(), LEFT, WIDTH)
}

fn legend_of_shares() -> Legend {
    let entry = |(name, is_dashed, mark): (&str, bool, Mark)| {
        let symbol = Symbol::Line { is_dashed, mark: Some(mark) };
        Entry { name: name.to_owned(), colour: BLACK.into(), symbol }
    };
    let entries =
        [("idle", false, Mark::Circle), ("overhead: the runtime's own", true, Mark::Triangle)];
    Legend::new(entries.map(entry).to_vec(), LEFT, WIDTH)
}

/// A number at an axis, without redundant zeros.
fn short(value: &f64) -> String {
    let text = digits(*value);
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The axes that all three charts have.
macro_rules! chart {
    ($area:expr, $series:expr, $down:expr, $what:expr, $number:expr) => {{
        let across = across($series);
        let mut chart = ChartBuilder::on($area)
            .margin(8)
            .x_label_area_size(34)
            .y_label_area_size(LEFT - 8)
            .build_cartesian_2d(across.clone(), $down)?;
        chart
            .configure_mesh()
            .x_desc("ranks per PE")
            .y_desc($what)
            .x_labels((across.end - across.start) as usize + 1)
            .x_label_formatter(&ratio)
            .y_labels(8)
            .y_label_formatter($number)
            .max_light_lines(0)
            .draw()?;
        chart
    }};
}

fn draw_values(plan: &Plan, unit: &str, series: &[Series], area: &Area) -> Drawn {
    let what = if plan.rate {
        format!("{unit} (more is better)")
    } else {
        format!("{unit} (median, spread)")
    };
    let most = most(series, |it| it.values.most) * 1.05;
    let mut chart = chart!(area, series, 0.0..most, what, &short);
    for Series { colour, points, .. } in series {
        let line = points.iter().map(|(at, summary)| (*at, summary.values.median));
        chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
        chart.draw_series(points.iter().map(|(at, it)| {
            let Spread { least, median, most } = it.values;
            ErrorBar::new_vertical(*at, least, median, most, colour.filled(), 8)
        }))?;
    }
    Ok(())
}

/// The points of one share of the time, where the runtime reported it.
fn of_shares(points: &[(f64, Summary)], part: impl Fn(Shares) -> f64) -> Vec<(f64, f64)> {
    points.iter().filter_map(|(at, it)| Some((*at, part(it.shares?)))).collect()
}

fn draw_shares(series: &[Series], area: &Area) -> Drawn {
    let what = "% of the PEs' time";
    let of = |it: &Summary| it.shares.map_or(0.0, |it| it.idle.max(it.overhead()));
    let most = (most(series, of) * 110.0).clamp(5.0, 100.0);
    let mut chart = chart!(area, series, 0.0..most, what, &|part| format!("{part:.0}"));
    for Series { colour, points, .. } in series {
        let idle = of_shares(points, |it| 100.0 * it.idle);
        chart.draw_series(LineSeries::new(idle.clone(), colour.stroke_width(2)))?;
        chart.draw_series(idle.into_iter().map(|at| Circle::new(at, 3, colour.filled())))?;
        let own = of_shares(points, |it| 100.0 * it.overhead());
        chart.draw_series(DashedLineSeries::new(own.clone(), 6, 4, colour.stroke_width(2)))?;
        chart.draw_series(own.into_iter().map(|at| TriangleMarker::new(at, 4, colour.filled())))?;
    }
    Ok(())
}

fn draw_work(series: &[Series], area: &Area) -> Drawn {
    let most = most(series, |it| it.shares.map_or(0.0, |it| it.work)) * 1.1;
    let most = if most > 0.0 { most } else { 1.0 };
    let what = "s in all ranks";
    let mut chart = chart!(area, series, 0.0..most, what, &short);
    for Series { colour, points, .. } in series {
        let work = of_shares(points, |it| it.work);
        chart.draw_series(LineSeries::new(work.clone(), colour.stroke_width(2)))?;
        chart.draw_series(work.into_iter().map(|at| Circle::new(at, 3, colour.filled())))?;
    }
    Ok(())
}
