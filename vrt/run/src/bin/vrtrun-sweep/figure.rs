//! Results as a picture: medians with their spread over the ratio, and where the PEs' time went.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::job::Shares;
use crate::options::{Configuration, Plan};
use crate::results::{Results, Summary, unit};

const SIZE: (u32, u32) = (900, 720);
const COLOURS: [RGBColor; 6] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(148, 103, 189),
    RGBColor(255, 127, 14),
    RGBColor(23, 190, 207),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

/// What runs of the same balancer say, by ratio.
struct Series<'a> {
    strategy: &'a str,
    colour: RGBColor,
    points: Vec<(f64, Summary)>,
}

/// Draws the figure.
pub fn write(plan: &Plan, results: &Results, path: &Path) -> Drawn {
    let all = results.summaries();
    let series = series(&all);
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (above, below) = root.split_vertically(SIZE.1 * 6 / 10);
    draw_values(plan, &series, &above)?;
    draw_shares(&series, &below)?;
    root.present()?;
    Ok(())
}

fn series<'a>(all: &[(&'a Configuration, Summary)]) -> Vec<Series<'a>> {
    let mut found: Vec<Series> = Vec::new();
    for (configuration, summary) in all {
        let point = (f64::from(configuration.ratio).log2(), *summary);
        match found.iter_mut().find(|it| it.strategy == configuration.strategy) {
            Some(series) => series.points.push(point),
            None => {
                let colour = COLOURS[found.len() % COLOURS.len()];
                let strategy = configuration.strategy.as_str();
                found.push(Series { strategy, colour, points: vec![point] });
            }
        }
    }
    found
}

/// From the least ratio to the most, with some room.
fn across(series: &[Series]) -> std::ops::Range<f64> {
    let at = || series.iter().flat_map(|it| &it.points).map(|point| point.0);
    at().fold(f64::INFINITY, f64::min) - 0.2..at().fold(0.0, f64::max) + 0.2
}

/// Ratios are whole numbers; other places have no label.
fn label(at: &f64) -> String {
    let ratio = at.exp2();
    if (ratio - ratio.round()).abs() < 1e-6 { format!("{}", ratio.round()) } else { String::new() }
}

fn draw_values(plan: &Plan, series: &[Series], area: &Area) -> Drawn {
    let most =
        series.iter().flat_map(|it| &it.points).map(|point| point.1.most).fold(0.0, f64::max);
    let words: Vec<_> = plan.command.iter().map(|word| word.to_string_lossy()).collect();
    let mut title = words.join(" ");
    if title.chars().count() > 80 {
        title = title.chars().take(77).collect::<String>() + "...";
    }
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{title}, {} PEs", plan.pes), ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(80)
        .build_cartesian_2d(across(series), 0.0..most * 1.08)?;
    chart
        .configure_mesh()
        .x_desc("ranks per PE")
        .y_desc(if plan.rate {
            format!("{} (more is better)", unit(plan))
        } else {
            unit(plan).into()
        })
        .x_label_formatter(&label)
        .light_line_style(WHITE)
        .draw()?;
    for Series { strategy, colour, points } in series {
        let style = colour.stroke_width(2);
        let line = points.iter().map(|(at, summary)| (*at, summary.median));
        chart
            .draw_series(LineSeries::new(line, style))?
            .label(*strategy)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        chart.draw_series(points.iter().map(|(at, it)| {
            ErrorBar::new_vertical(*at, it.least, it.median, it.most, colour.filled(), 8)
        }))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.4))
        .draw()?;
    Ok(())
}

/// A part of the PEs' time.
type Part = fn(Shares) -> f64;

fn draw_shares(series: &[Series], area: &Area) -> Drawn {
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(80)
        .build_cartesian_2d(across(series), 0.0..100.0)?;
    chart
        .configure_mesh()
        .x_desc("ranks per PE")
        .y_desc("% of the PEs' time")
        .x_label_formatter(&label)
        .light_line_style(WHITE)
        .draw()?;
    let parts: [(&str, Part, u32); 2] =
        [("idle", |it| it.idle, 2), ("the runtime's own", Shares::overhead, 1)];
    for Series { strategy, colour, points } in series {
        for (name, part, width) in parts {
            let style = colour.stroke_width(width);
            let line = points.iter().filter_map(|(at, it)| Some((*at, 100.0 * part(it.shares?))));
            let line: Vec<(f64, f64)> = line.collect();
            if line.is_empty() {
                continue;
            }
            let dots = line.clone();
            chart
                .draw_series(LineSeries::new(line, style))?
                .label(format!("{name}, {strategy}"))
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            let radius = 2 * width as i32;
            chart
                .draw_series(dots.into_iter().map(|at| Circle::new(at, radius, colour.filled())))?;
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.4))
        .draw()?;
    Ok(())
}
