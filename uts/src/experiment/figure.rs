//! The figure of an experiment, as SVG.

use super::catalog::Experiment;
use plotters::prelude::*;
use std::path::Path;

/// A line of a figure: its name, and its points.
pub type Series = (String, Vec<(f64, f64)>);

/// Draws the lines over a logarithmic axis, or a plain one if it is short.
///
/// # Errors
///
/// If the file cannot be written.
pub fn draw(path: &Path, experiment: &Experiment, lines: &[Series]) -> Result<(), String> {
    let points = || lines.iter().flat_map(|it| it.1.iter().copied());
    let (least, most) = points()
        .fold((f64::INFINITY, 1.0_f64), |(least, most), (x, _)| (least.min(x), most.max(x)));
    let top = points().map(|it| it.1).fold(f64::MIN_POSITIVE, f64::max) * 1.05;
    let area = SVGBackend::new(path, (760, 440)).into_drawing_area();
    area.fill(&WHITE).map_err(|it| it.to_string())?;
    let mut builder = ChartBuilder::on(&area);
    builder
        .caption(experiment.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(56);
    // A macro, as the two kinds of chart have different types.
    macro_rules! chart {
        ($axis:expr) => {{
            let mut chart =
                builder.build_cartesian_2d($axis, 0.0..top).map_err(|it| it.to_string())?;
            chart
                .configure_mesh()
                .x_desc(experiment.axis)
                .y_desc(experiment.measure.axis())
                .x_label_formatter(&|x| format!("{x:.0}"))
                .light_line_style(WHITE.mix(0.0))
                .draw()
                .map_err(|it| it.to_string())?;
            for (number, (name, points)) in lines.iter().enumerate() {
                let colour = Palette99::pick(number).to_rgba();
                chart
                    .draw_series(
                        LineSeries::new(points.iter().copied(), colour.stroke_width(2))
                            .point_size(3),
                    )
                    .map_err(|it| it.to_string())?
                    .label(name)
                    .legend(move |(x, y)| {
                        PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2))
                    });
            }
            chart
                .configure_series_labels()
                .background_style(WHITE.mix(0.8))
                .border_style(BLACK.mix(0.3))
                .position(SeriesLabelPosition::LowerRight)
                .draw()
                .map_err(|it| it.to_string())?;
        }};
    }
    if most / least > 10.0 {
        chart!((least..most).log_scale());
    } else {
        chart!(least..most);
    }
    area.present().map_err(|it| it.to_string())
}
