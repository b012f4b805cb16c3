//! Draws the loads of PEs, before and after, as SVG.

use std::path::Path;

use lb_strategies::{Assignment, lower_bound};
use svg::{
    Document,
    node::element::{Line, Path as Shape, Rectangle, Text, path::Data},
};

use crate::{input::Input, measure::Measured, options::Failure};

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 120.0;
const MARGIN: f64 = 30.0;
/// More PEs than this share columns: each column is as high as its busiest PE.
const COLUMNS: usize = 400;

/// Draws one panel for the placement before, and one for each strategy, all to the same scale.
pub(crate) fn write(path: &Path, input: &Input, results: &[Measured]) -> Result<(), Failure> {
    let before = Assignment::today(&input.model).pe_loads(&input.model);
    let bound = lower_bound(&input.model);
    let mut panels: Vec<(&str, &[f64])> = vec![("before", &before)];
    panels.extend(results.iter().map(|it| (it.strategy, it.outcome.loads.as_slice())));
    let loads = panels.iter().flat_map(|it| it.1.iter().copied());
    let top = loads.fold(bound, f64::max).max(f64::MIN_POSITIVE);

    let full_height = MARGIN + panels.len() as f64 * (HEIGHT + MARGIN);
    let mut document = Document::new()
        .set("viewBox", (0, 0, WIDTH + 2.0 * MARGIN, full_height))
        .set("font-family", "sans-serif")
        .set("font-size", 11)
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"))
        .add(label(MARGIN, 14.0, &input.title));
    for (index, (name, loads)) in panels.into_iter().enumerate() {
        let base = (index + 1) as f64 * (HEIGHT + MARGIN);
        let y = |load: f64| base - load / top * HEIGHT;
        let busiest = loads.iter().copied().fold(0.0, f64::max);
        let caption = format!("{name}: busiest PE {busiest:.4} s (dashes: {bound:.4} s)");
        let fill = if index == 0 { "#999" } else { "#37a" };
        let dashes = Line::new()
            .set("x1", MARGIN)
            .set("x2", MARGIN + WIDTH)
            .set("y1", y(bound))
            .set("y2", y(bound))
            .set("stroke", "#c30")
            .set("stroke-dasharray", "4 3");
        document = document
            .add(label(MARGIN, base - HEIGHT - 2.0, &caption))
            .add(Shape::new().set("d", outline(loads, base, y)).set("fill", fill))
            .add(dashes);
    }
    let wrong = |error| Failure::Directory { file: path.display().to_string(), error };
    svg::save(path, &document).map_err(wrong)
}

fn label(x: f64, y: f64, text: &str) -> Text {
    Text::new(text).set("x", x).set("y", y)
}

/// The columns as one shape.
fn outline(loads: &[f64], base: f64, y: impl Fn(f64) -> f64) -> Data {
    let columns = loads.len().min(COLUMNS);
    let width = WIDTH / columns as f64;
    let mut data = Data::new().move_to((MARGIN, base));
    for column in 0..columns {
        let first = column * loads.len() / columns;
        let end = (column + 1) * loads.len() / columns;
        let busiest = loads[first..end].iter().copied().fold(0.0, f64::max);
        let x = MARGIN + column as f64 * width;
        let height = (y(busiest) * 100.0).round() / 100.0;
        data = data.line_to((x, height)).line_to((x + width, height));
    }
    data.line_to((MARGIN + WIDTH, base)).close()
}
