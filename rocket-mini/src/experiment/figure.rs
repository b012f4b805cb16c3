//! The figure of an experiment, as SVG.

use std::path::Path;

use plotters::prelude::*;

/// A line of a figure: its name, and its points.
pub type Series = (String, Vec<(f64, f64)>);

/// What a figure says beside its lines.
pub struct Labels<'a> {
    /// The heading.
    pub title: &'a str,
    /// What the horizontal axis shows.
    pub x: &'a str,
    /// What the vertical axis shows.
    pub y: &'a str,
}

/// Draws the lines, over the numbers of their points in order where `is_listed`, which suits those that
/// double; the axis is labelled with what they stand for.
///
/// # Errors
///
/// If the file cannot be written.
pub fn draw(path: &Path, labels: &Labels, lines: &[Series], is_listed: bool) -> Result<(), String> {
    let mut places: Vec<f64> = lines.iter().flat_map(|line| line.1.iter().map(|it| it.0)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let place = |x: f64| {
        if is_listed { places.partition_point(|it| *it < x) as f64 } else { x }
    };
    let right = place(places.last().copied().unwrap_or(1.0)).max(f64::MIN_POSITIVE);
    let values = lines.iter().flat_map(|line| line.1.iter().map(|it| it.1));
    let top = 1.05 * values.fold(f64::MIN_POSITIVE, f64::max);
    let area = SVGBackend::new(path, (760, 440)).into_drawing_area();
    let paint = || -> Result<(), DrawingAreaErrorKind<_>> {
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(labels.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..right, 0.0..top)?;
        let number = |x: &f64| {
            if !is_listed {
                return format!("{x:.1}");
            }
            let is_whole = x.fract() == 0.0;
            let value = is_whole.then(|| places.get(*x as usize)).flatten();
            value.map(|value| value.to_string()).unwrap_or_default()
        };
        let mut mesh = chart.configure_mesh();
        if is_listed {
            mesh.x_labels(places.len());
        }
        mesh.x_desc(labels.x)
            .y_desc(labels.y)
            .x_label_formatter(&number)
            .light_line_style(WHITE.mix(0.0))
            .draw()?;
        for (at, (name, points)) in lines.iter().enumerate() {
            let colour = Palette99::pick(at).to_rgba();
            let points = points.iter().map(|(x, y)| (place(*x), *y));
            let size = if is_listed { 3 } else { 0 };
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(size))?
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
            .draw()?;
        area.present()
    };
    paint().map_err(|error| error.to_string())
}
