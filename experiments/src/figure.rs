//! Lines over an axis, as SVG.

use std::path::Path;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

/// A line of a figure: its name, and its points.
pub type Series = (String, Vec<(f64, f64)>);

/// What a figure says beside its lines.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// The heading.
    pub title: &'a str,
    /// What the horizontal axis shows.
    pub x: &'a str,
    /// What the vertical axis shows.
    pub y: &'a str,
}

/// How points lie along the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// At their place, from zero; lines without marks, as of times.
    FromZero,
    /// From the first to the last, logarithmic where they are more than a factor of ten apart.
    Span,
    /// One next to the other at equal distances, as suits numbers that double.
    Listed,
}

type DrawResult<'a> =
    Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

/// Draws the lines to a file.
pub(crate) fn draw(
    path: &Path,
    labels: &Labels,
    lines: &[Series],
    axis: Axis,
) -> Result<(), String> {
    let mut places: Vec<f64> = lines.iter().flat_map(|line| line.1.iter().map(|it| it.0)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let least = places.first().copied().unwrap_or(0.0);
    let most = places.last().copied().unwrap_or(1.0).max(f64::MIN_POSITIVE);
    let figure = Figure { path, labels, lines, axis, places: &places };
    let drawn = match axis {
        Axis::Span if least > 0.0 && most / least > 10.0 => figure.draw((least..most).log_scale()),
        Axis::Span => figure.draw(least..most),
        Axis::FromZero => figure.draw(0.0..most),
        Axis::Listed => figure.draw(0.0..(places.len().max(2) - 1) as f64),
    };
    drawn.map_err(|error| error.to_string())
}

struct Figure<'a> {
    path: &'a Path,
    labels: &'a Labels<'a>,
    lines: &'a [Series],
    axis: Axis,
    /// Where points lie, each once, in order.
    places: &'a [f64],
}

impl Figure<'_> {
    fn draw<X>(&self, range: X) -> DrawResult<'_>
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
    {
        let Self { path, labels, lines, axis, places } = *self;
        let values = lines.iter().flat_map(|line| line.1.iter().map(|it| it.1));
        let top = 1.05 * values.fold(f64::MIN_POSITIVE, f64::max);
        let area = SVGBackend::new(path, (760, 440)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(labels.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(range, 0.0..top)?;
        let number = |x: &f64| self.number(*x);
        let mut mesh = chart.configure_mesh();
        if axis == Axis::Listed {
            mesh.x_labels(places.len());
        }
        mesh.x_desc(labels.x)
            .y_desc(labels.y)
            .x_label_formatter(&number)
            .light_line_style(WHITE.mix(0.0))
            .draw()?;
        for (at, (name, points)) in lines.iter().enumerate() {
            let colour = Palette99::pick(at).to_rgba();
            let points = points.iter().map(|(x, y)| (self.place(*x), *y));
            let size = if axis == Axis::FromZero { 0 } else { 3 };
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
    }

    /// Where on the axis a point is shown.
    fn place(&self, x: f64) -> f64 {
        match self.axis {
            Axis::Listed => self.places.partition_point(|it| *it < x) as f64,
            Axis::FromZero | Axis::Span => x,
        }
    }

    /// What stands at a place of the axis.
    fn number(&self, x: f64) -> String {
        match self.axis {
            Axis::FromZero => format!("{x:.1}"),
            // Between points that are numbered there is nothing to be read.
            Axis::Span if x.fract() != 0.0 && self.places.iter().all(|it| it.fract() == 0.0) => {
                String::new()
            }
            Axis::Span => format!("{x:.0}"),
            Axis::Listed if x.fract() == 0.0 => {
                self.places.get(x as usize).map(f64::to_string).unwrap_or_default()
            }
            Axis::Listed => String::new(),
        }
    }
}
