//! Lines over an axis, or bars over names, as SVG.
//!
//! The legend is below the chart, where there are no data, and the machine below it.

use std::path::Path;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::element::ErrorBarOrientV;
use plotters::prelude::*;
use vrt_cli::figure::{self, COLOURS, Drawn, Entry, LINE, Legend, Mark, Symbol, colour};

use crate::Spread;

/// A line of a figure: its name, and its points.
pub type Series = (String, Vec<(f64, f64)>);

/// The spreads of several runs of a line, position by position.
pub type Spreads = Vec<(f64, Spread)>;

/// The texts of a figure, besides its lines.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// The heading.
    pub title: &'a str,
    /// What the horizontal axis shows.
    pub x: &'a str,
    /// What the vertical axis shows.
    pub y: &'a str,
}

/// How points are placed along the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// To scale, from zero; lines without marks, as for times.
    FromZero,
    /// From the first to the last, logarithmic if they are more than a factor of ten apart.
    Span,
    /// Side by side at equal distances, as suits numbers that double.
    Listed,
    /// For things that have no order: a bar for each line beside the others, above the name whose index is the
    /// position.
    Named {
        /// The names.
        names: &'static [&'static str],
        /// A height at which a line is drawn across the chart.
        mark: Option<u32>,
    },
}

/// Size of a picture without its legend.
const SIZE: (u32, u32) = (760, 440);
/// Room for numbers at the edges of the chart; half of an axis's last number extends beyond its position.
const MARGIN: u32 = 12;
const RIGHT: u32 = 30;

/// The error bar of a line.
fn error_bar(place: f64, of: &Spread, colour: RGBColor) -> Bar {
    ErrorBar::new_vertical(place, of.least, of.median, of.most, colour.stroke_width(1), 6)
}

/// Lines whose colour is already used are dashed.
fn is_dashed(number: usize) -> bool {
    number / COLOURS.len() % 2 == 1
}

/// How the points of a line are marked.
fn mark(number: usize) -> Mark {
    [Mark::Circle, Mark::Triangle, Mark::Cross][number % 3]
}

/// What a bar is filled with; bars whose colour is already used are lighter.
fn filled(number: usize) -> RGBAColor {
    colour(number).mix(if is_dashed(number) { 0.5 } else { 1.0 })
}

type Bar = ErrorBar<f64, f64, ErrorBarOrientV<f64, f64>>;

/// Draws the lines to a file, those with several runs with error bars, above a line that states where they were
/// measured.
pub(crate) fn draw(
    path: &Path,
    labels: &Labels,
    (lines, bars): (&[Series], &[Spreads]),
    axis: Axis,
    measured: &str,
) -> Result<(), String> {
    let mut places: Vec<f64> = lines.iter().flat_map(|line| line.1.iter().map(|it| it.0)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let least = places.first().copied().unwrap_or(0.0);
    let most = places.last().copied().unwrap_or(1.0).max(f64::MIN_POSITIVE);
    let figure = Figure { path, labels, lines, bars, axis, places: &places, measured };
    let drawn = match axis {
        Axis::Span if least > 0.0 && most / least > 10.0 => figure.draw((least..most).log_scale()),
        Axis::Span => figure.draw(least..most),
        Axis::FromZero => figure.draw(0.0..most),
        Axis::Listed => figure.draw(0.0..(places.len().max(2) - 1) as f64),
        Axis::Named { names, .. } => figure.draw(-0.5..names.len() as f64 - 0.5),
    };
    drawn.map_err(|error| error.to_string())
}

struct Figure<'a> {
    path: &'a Path,
    labels: &'a Labels<'a>,
    lines: &'a [Series],
    /// The error bars of each line; missing ones at the end are empty.
    bars: &'a [Spreads],
    axis: Axis,
    /// The positions of points, sorted, without repetition.
    places: &'a [f64],
    measured: &'a str,
}

impl Figure<'_> {
    fn draw<X>(&self, range: X) -> Drawn<'_>
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
    {
        let Self { path, labels, lines, bars, axis, places, measured } = *self;
        let values = lines.iter().flat_map(|line| line.1.iter().map(|it| it.1));
        let values = values.chain(bars.iter().flatten().map(|it| it.1.most));
        let top = 1.05 * values.fold(f64::MIN_POSITIVE, f64::max);
        let legend = Legend::new(self.entries(), MARGIN, SIZE.0 - MARGIN);
        let height = SIZE.1 + legend.height() + MARGIN + LINE;
        let root = SVGBackend::new(path, (SIZE.0, height)).into_drawing_area();
        root.fill(&WHITE)?;
        let (area, below) = root.split_vertically(SIZE.1);
        let mut chart = ChartBuilder::on(&area)
            .caption(labels.title, ("sans-serif", 18))
            .margin(MARGIN)
            .margin_right(RIGHT)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(range, 0.0..top)?;
        let number = |x: &f64| self.number(*x);
        let mut mesh = chart.configure_mesh();
        match axis {
            Axis::Listed => mesh.x_labels(places.len()),
            // As many as there are places at halves, of which the names' are whole.
            Axis::Named { names, .. } => mesh.x_labels(2 * names.len() + 1).disable_x_mesh(),
            Axis::FromZero | Axis::Span => &mut mesh,
        };
        mesh.x_desc(labels.x)
            .y_desc(labels.y)
            .x_label_formatter(&number)
            .light_line_style(WHITE.mix(0.0))
            .draw()?;
        for (at, (_, points)) in lines.iter().enumerate() {
            let bars = bars.get(at).into_iter().flatten();
            if let Axis::Named { .. } = axis {
                let wide = 0.8 / lines.len() as f64;
                let left = |x: f64| x - 0.4 + at as f64 * wide;
                let columns = points.iter().map(|(x, y)| {
                    let (left, right) = (left(*x), left(*x) + 0.9 * wide);
                    Rectangle::new([(left, 0.0), (right, *y)], filled(at).filled())
                });
                chart.draw_series(columns)?;
                let middle = |x: f64| left(x) + 0.45 * wide;
                chart.draw_series(bars.map(|bar| error_bar(middle(bar.0), &bar.1, BLACK)))?;
                continue;
            }
            chart.draw_series(bars.map(|bar| error_bar(self.place(bar.0), &bar.1, colour(at))))?;
            let points = points.iter().map(|(x, y)| (self.place(*x), *y));
            let style = colour(at).stroke_width(2);
            match is_dashed(at) {
                true => chart.draw_series(DashedLineSeries::new(points.clone(), 6, 4, style))?,
                false => chart.draw_series(LineSeries::new(points.clone(), style))?,
            };
            if axis == Axis::FromZero {
                continue;
            }
            match mark(at) {
                Mark::Circle => {
                    chart.draw_series(points.map(|it| Circle::new(it, 3, colour(at).filled())))?
                }
                Mark::Triangle => chart.draw_series(
                    points.map(|it| TriangleMarker::new(it, 5, colour(at).filled())),
                )?,
                Mark::Cross => chart.draw_series(points.map(|it| Cross::new(it, 4, style)))?,
            };
        }
        if let Axis::Named { names, mark: Some(height) } = axis {
            let height = f64::from(height);
            let across = [(-0.5, height), (names.len() as f64 - 0.5, height)];
            chart.draw_series(DashedLineSeries::new(across, 6, 4, BLACK.stroke_width(2)))?;
        }
        legend.draw(&below)?;
        figure::draw_footer(&root, MARGIN, measured)?;
        root.present()
    }

    /// What the legend says.
    fn entries(&self) -> Vec<Entry> {
        let entry = |(at, (name, _)): (usize, &Series)| {
            let (colour, symbol) = match self.axis {
                Axis::Named { .. } => (filled(at), Symbol::Bar),
                Axis::FromZero | Axis::Span | Axis::Listed => {
                    let mark = (self.axis != Axis::FromZero).then(|| mark(at));
                    (colour(at).into(), Symbol::Line { is_dashed: is_dashed(at), mark })
                }
            };
            Entry { name: name.clone(), colour, symbol }
        };
        self.lines.iter().enumerate().map(entry).collect()
    }

    /// The position on the axis at which a point is shown.
    fn place(&self, x: f64) -> f64 {
        match self.axis {
            Axis::Listed => self.places.partition_point(|it| *it < x) as f64,
            Axis::FromZero | Axis::Span | Axis::Named { .. } => x,
        }
    }

    /// The label at a position of the axis.
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
            Axis::Named { names, .. } if x.fract() == 0.0 && x >= 0.0 => {
                names.get(x as usize).map(|name| (*name).to_owned()).unwrap_or_default()
            }
            Axis::Listed | Axis::Named { .. } => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(name: &str, lines: &[Series], axis: Axis) -> String {
        let path = std::env::temp_dir().join(format!("figure-{name}-{}.svg", std::process::id()));
        let labels = Labels { title: "title", x: "across", y: "up" };
        let bars = [vec![(1.0, Spread { least: 1.0, median: 2.0, most: 4.0 })]];
        draw(&path, &labels, (lines, &bars), axis, "measured here")
            .expect("a file that can be written");
        let text = std::fs::read_to_string(&path).expect("it was written");
        std::fs::remove_file(path).ok();
        text
    }

    /// The positions of texts with this content.
    fn places_of(svg: &str, text: &str) -> Vec<(i32, i32)> {
        let number = |line: &str, name: &str| {
            let (_, rest) = line.split_once(&format!(" {name}=\""))?;
            rest.split_once('"')?.0.parse().ok()
        };
        let lines: Vec<&str> = svg.lines().collect();
        lines
            .windows(2)
            .filter(|pair| pair[1] == text)
            .filter_map(|pair| Some((number(pair[0], "x")?, number(pair[0], "y")?)))
            .collect()
    }

    #[test]
    fn things_without_an_order_have_bars_above_their_names() {
        const NAMES: &[&str] = &["steal", "share", "static"];
        let line = |name: &str| (name.to_owned(), (0..3).map(|x| (f64::from(x), 1.5)).collect());
        let axis = Axis::Named { names: NAMES, mark: Some(1) };
        let svg = drawn("bars", &[line("one"), line("other")], axis);
        for name in NAMES {
            assert_eq!(places_of(&svg, name).len(), 1, "{name}");
        }
        for RGBColor(r, g, b) in &COLOURS[..2] {
            let fill = format!("fill=\"#{r:02X}{g:02X}{b:02X}\"");
            // Three bars, and what they mean.
            assert_eq!(svg.matches(&fill).count(), 4, "{fill}");
        }
    }

    /// The legend is below the chart and entirely inside the picture, and so are the last numbers.
    #[test]
    fn nothing_covers_data_and_nothing_is_cut_off() {
        let names: Vec<String> = (0..9).map(|number| format!("line number {number}")).collect();
        let points: Vec<(f64, f64)> = [1.0, 10.0, 100_000.0].map(|x| (x, 3.0)).to_vec();
        let lines: Vec<Series> = names.iter().map(|name| (name.clone(), points.clone())).collect();
        let svg = drawn("lines", &lines, Axis::Listed);
        for name in &names {
            let [(x, y)] = places_of(&svg, name)[..] else { panic!("{name} stands once") };
            assert!(y >= SIZE.1 as i32 && x + 7 * 14 <= SIZE.0 as i32, "{name}: {x}, {y}");
        }
        let [(x, _)] = places_of(&svg, "100000")[..] else { panic!("the last number stands once") };
        assert!(x + 24 <= SIZE.0 as i32, "{x}");
        assert_eq!(places_of(&svg, "measured here").len(), 1);
        // The eighth line has the colour of the first, and dashes.
        assert!(is_dashed(7) && !is_dashed(6) && colour(7) == colour(0));
    }
}
