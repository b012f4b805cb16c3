//! What all figures have in common: colours, a legend outside of the chart, where there are no data, and a line at the
//! bottom that says where they were measured.

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

/// The palette of Okabe and Ito, which people who cannot tell red from green can distinguish. Marks and dashes carry the
/// same information.
pub const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(0, 0, 0),
];

/// The height of a line of text, in pixels: of a legend, and of the line at the bottom.
pub const LINE: u32 = 20;

/// The size of the text of a legend, and the approximate width of its letters.
const TEXT: u32 = 13;
const LETTER: u32 = 7;
/// The width of a symbol, and of a symbol with the room around it.
const SYMBOL: i32 = 24;
const ROOM: u32 = 40;

/// A part of a picture.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Whether it could be drawn, and written.
pub type Drawn<'a> =
    Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

/// The colour of the line with this number; they repeat.
#[must_use]
pub fn colour(number: usize) -> RGBColor {
    COLOURS[number % COLOURS.len()]
}

/// How a point is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A filled circle.
    Circle,
    /// A filled triangle.
    Triangle,
    /// A cross.
    Cross,
}

/// What stands before a name in a legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A line, and what its points are marked with.
    Line {
        /// Whether it is dashed.
        is_dashed: bool,
        /// The mark in its middle.
        mark: Option<Mark>,
    },
    /// A piece of a bar.
    Bar,
    /// Points without a line.
    Points(Mark),
}

/// A name in a legend.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// The colour.
    pub colour: RGBAColor,
    /// The symbol.
    pub symbol: Symbol,
}

/// The names of what a chart shows, in as many columns as fit.
#[derive(Clone, Debug)]
pub struct Legend {
    entries: Vec<Entry>,
    /// Pixels from the left edge of the picture, and the width of a column.
    left: u32,
    column: u32,
    in_line: usize,
}

impl Legend {
    /// A legend for the part of a picture between these two positions, in pixels.
    #[must_use]
    pub fn new(entries: Vec<Entry>, left: u32, right: u32) -> Legend {
        let longest = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
        let width = right.saturating_sub(left);
        let in_line = (width / (ROOM + LETTER * longest as u32)).max(1) as usize;
        Legend { entries, left, column: width / in_line as u32, in_line }
    }

    /// The height that it needs, in pixels.
    #[must_use]
    pub fn height(&self) -> u32 {
        LINE * self.entries.len().div_ceil(self.in_line) as u32
    }

    /// Draws it at the top of a part of a picture that is as wide as the picture.
    ///
    /// # Errors
    ///
    /// If it cannot be drawn.
    pub fn draw<'a>(&self, area: &Area<'a>) -> Drawn<'a> {
        for (at, entry) in self.entries.iter().enumerate() {
            let x = (self.left + (at % self.in_line) as u32 * self.column) as i32;
            let y = ((at / self.in_line) as u32 * LINE + LINE / 2) as i32;
            let (middle, colour) = ((x + SYMBOL / 2, y), entry.colour);
            let mark = match entry.symbol {
                Symbol::Line { is_dashed, mark } => {
                    let (line, style) = ([(x, y), (x + SYMBOL, y)], colour.stroke_width(2));
                    match is_dashed {
                        true => area.draw(&DashedPathElement::new(line, 6, 4, style))?,
                        false => area.draw(&PathElement::new(line, style))?,
                    }
                    mark
                }
                Symbol::Bar => {
                    let corners = [(x, y - 5), (x + SYMBOL, y + 5)];
                    area.draw(&Rectangle::new(corners, colour.filled()))?;
                    None
                }
                Symbol::Points(mark) => Some(mark),
            };
            match mark {
                Some(Mark::Circle) => area.draw(&Circle::new(middle, 3, colour.filled()))?,
                Some(Mark::Triangle) => {
                    area.draw(&TriangleMarker::new(middle, 5, colour.filled()))?;
                }
                Some(Mark::Cross) => area.draw(&Cross::new(middle, 4, colour.stroke_width(2)))?,
                None => {}
            }
            let text = ("sans-serif", TEXT);
            area.draw(&Text::new(entry.name.clone(), (x + SYMBOL + 6, y - 6), text))?;
        }
        Ok(())
    }
}

/// Writes into the last [`LINE`] of a picture where it was measured.
///
/// # Errors
///
/// If it cannot be drawn.
pub fn draw_footer<'a>(picture: &Area<'a>, left: u32, measured: &str) -> Drawn<'a> {
    let place = (left as i32, (picture.dim_in_pixel().1 - LINE) as i32);
    let text = ("sans-serif", 11).into_font().color(&BLACK.mix(0.65));
    picture.draw(&Text::new(measured, place, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Entry {
        Entry { name: name.to_owned(), colour: BLACK.into(), symbol: Symbol::Bar }
    }

    #[test]
    fn a_legend_has_as_many_columns_as_fit() {
        let names = || ["none", "greedy-refine", "auto"].map(entry).to_vec();
        let narrow = Legend::new(names(), 10, 100);
        assert_eq!((narrow.in_line, narrow.height()), (1, 3 * LINE));
        let wide = Legend::new(names(), 10, 300);
        assert_eq!((wide.in_line, wide.height()), (2, 2 * LINE));
        assert_eq!(Legend::new(Vec::new(), 0, 0).height(), 0);
    }

    #[test]
    fn what_was_measured_where_is_in_the_last_line() {
        let mut svg = String::new();
        {
            let picture = SVGBackend::with_string(&mut svg, (200, 100)).into_drawing_area();
            let legend = Legend::new(vec![entry("a name")], 0, 200);
            assert!(legend.draw(&picture).is_ok());
            assert!(draw_footer(&picture, 10, "measured here").is_ok());
            assert!(picture.present().is_ok());
        }
        assert!(svg.contains("a name") && svg.contains("measured here"), "{svg}");
    }
}
