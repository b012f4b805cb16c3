//! Predicted and measured gains of each trial, as a figure.

use std::path::Path;

use plotters::prelude::*;

use super::job::{Trial, Verdict};

/// Draws the trials as points, in percent.
pub(super) fn draw(path: &Path, trials: &[Trial]) -> Result<(), String> {
    let values = || trials.iter().flat_map(|trial| [trial.promised, trial.came]);
    let most = 100.0 * values().fold(0.1, f64::max) * 1.05;
    let least = 100.0 * values().fold(-0.05, f64::min) * 1.05;
    let area = SVGBackend::new(path, (640, 560)).into_drawing_area();
    let text = |error: DrawingAreaErrorKind<_>| error.to_string();
    area.fill(&WHITE).map_err(text)?;
    let mut chart = ChartBuilder::on(&area)
        .caption("trials of --lb auto", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(least..most, least..most)
        .map_err(text)?;
    chart
        .configure_mesh()
        .x_desc("promised gain in %")
        .y_desc("measured gain in %")
        .light_line_style(WHITE.mix(0.0))
        .draw()
        .map_err(text)?;
    let diagonal = [(least, least), (most, most)];
    chart
        .draw_series(LineSeries::new(diagonal, BLACK.mix(0.4)))
        .map_err(text)?
        .label("as promised")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], BLACK.mix(0.4)));
    // Colours of Okabe and Ito, which people tell apart who see no difference between red and green.
    for (verdict, name, colour) in [
        (Verdict::Kept, "kept", RGBColor(0, 158, 115)),
        (Verdict::Unclear, "no clear gain", RGBColor(86, 180, 233)),
        (Verdict::TakenBack, "taken back", RGBColor(213, 94, 0)),
    ] {
        let points = trials.iter().filter(|trial| trial.verdict == verdict);
        let points = points.map(|trial| (100.0 * trial.promised, 100.0 * trial.came));
        chart
            .draw_series(points.map(|point| Circle::new(point, 3, colour.mix(0.6).filled())))
            .map_err(text)?
            .label(name)
            .legend(move |(x, y)| Circle::new((x + 9, y), 3, colour.mix(0.6).filled()));
    }
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .position(SeriesLabelPosition::UpperLeft)
        .draw()
        .map_err(text)?;
    area.present().map_err(text)
}
