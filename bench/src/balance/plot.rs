//! Predicted and measured gains of each trial, as a figure.

use std::path::Path;

use plotters::prelude::*;
use vrt_cli::Machine;
use vrt_cli::figure::{self, COLOURS, Drawn, Entry, LINE, Legend, Mark, Symbol};

use super::job::{Trial, Verdict};

/// Size of the chart.
const SIZE: (u32, u32) = (640, 560);
const MARGIN: u32 = 12;

/// What became of a trial, and the colour of its point.
const VERDICTS: [(Verdict, &str, RGBColor); 3] = [
    (Verdict::Kept, "kept", COLOURS[2]),
    (Verdict::Unclear, "no clear gain", COLOURS[4]),
    (Verdict::TakenBack, "taken back", COLOURS[5]),
];

/// Draws the trials as points, in percent.
pub(super) fn draw(path: &Path, trials: &[Trial]) -> Result<(), String> {
    drawn(path, trials).map_err(|error| error.to_string())
}

fn drawn<'a>(path: &'a Path, trials: &[Trial]) -> Drawn<'a> {
    let values = || trials.iter().flat_map(|trial| [trial.promised, trial.came]);
    let most = 100.0 * values().fold(0.1, f64::max) * 1.05;
    let least = 100.0 * values().fold(-0.05, f64::min) * 1.05;
    let points = |(_, name, colour): &(Verdict, &str, RGBColor)| Entry {
        name: (*name).to_owned(),
        colour: colour.mix(0.6),
        symbol: Symbol::Points(Mark::Circle),
    };
    let mut entries: Vec<Entry> = VERDICTS.iter().map(points).collect();
    let symbol = Symbol::Line { is_dashed: false, mark: None };
    entries.push(Entry { name: "as promised".to_owned(), colour: BLACK.mix(0.4), symbol });
    let legend = Legend::new(entries, MARGIN, SIZE.0 - MARGIN);
    let height = SIZE.1 + legend.height() + MARGIN + LINE;
    let picture = SVGBackend::new(path, (SIZE.0, height)).into_drawing_area();
    picture.fill(&WHITE)?;
    let (area, below) = picture.split_vertically(SIZE.1);
    let mut chart = ChartBuilder::on(&area)
        .caption("trials of --lb auto", ("sans-serif", 18))
        .margin(MARGIN)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(least..most, least..most)?;
    chart
        .configure_mesh()
        .x_desc("promised gain in %")
        .y_desc("measured gain in %")
        .light_line_style(WHITE.mix(0.0))
        .draw()?;
    let diagonal = [(least, least), (most, most)];
    chart.draw_series(LineSeries::new(diagonal, BLACK.mix(0.4)))?;
    for (verdict, _, colour) in VERDICTS {
        let points = trials.iter().filter(|trial| trial.verdict == verdict);
        let points = points.map(|trial| (100.0 * trial.promised, 100.0 * trial.came));
        let dot = |point| Circle::new(point, 3, colour.mix(0.6).filled());
        chart.draw_series(points.map(dot))?;
    }
    legend.draw(&below)?;
    figure::draw_footer(&picture, MARGIN, &Machine::at_start().brief())?;
    picture.present()
}
