//! Snapshots as VTK files, and as a drawing.

use std::path::{Path, PathBuf};

use svg::node::element::{Line, Text};
use vtkio::model::Attributes;

use super::SIZE;
use super::snapshot::{Element, Snapshot};
use crate::picture::{
    LINE, MARGIN, QUAD, TEXT_LINE, WriteError, blue_to_red, export, page, quad, range, save,
    scalars, vectors,
};

/// Writes the plate, with displacements and stress, and its edges that are no longer bonded, with displacements halfway
/// between those of their sides, as two unstructured grids in VTK's legacy format; their names contain the number of
/// steps. Edges have a `state`, which is 1 while they hold and 2 when they are broken; `notch` is 1 for those that were
/// broken from the beginning. Returns their paths.
///
/// # Errors
///
/// [`WriteError`].
pub fn write_vtk(folder: &Path, snapshot: &Snapshot) -> Result<[PathBuf; 2], WriteError> {
    let path = |name: &str| folder.join(format!("{name}-{:05}.vtk", snapshot.steps));
    let title = |name: &str| format!("{name} at time {}", snapshot.time);
    let in_space = |[x, y]: [f64; 2]| [x, y, 0.0];

    let elements = &snapshot.elements;
    let of_elements =
        |value: &dyn Fn(&Element) -> f64| -> Vec<f64> { elements.iter().map(value).collect() };
    let displacement = elements.iter().flat_map(|element| element.u).map(in_space);
    let of_plate = Attributes {
        point: vec![vectors("displacement", displacement)],
        cell: vec![
            scalars("stress_xx", of_elements(&|element| element.stress[0])),
            scalars("stress_yy", of_elements(&|element| element.stress[1])),
            scalars("stress_xy", of_elements(&|element| element.stress[2])),
            scalars("largest_principal_stress", of_elements(&Element::principal_stress)),
        ],
    };
    let plate = path("plate");
    let corners = elements.iter().map(|element| element.corners.map(in_space));
    export(&plate, title("plate"), &QUAD, corners, of_plate)?;

    let edges = &snapshot.edges;
    let displacement = edges.iter().flat_map(|edge| edge.u.map(middle)).map(in_space);
    let states: Vec<i32> = edges.iter().map(|edge| 1 + i32::from(edge.is_broken)).collect();
    let notch: Vec<i32> = edges.iter().map(|edge| i32::from(edge.is_notch)).collect();
    let of_crack = Attributes {
        point: vec![vectors("displacement", displacement)],
        cell: vec![scalars("state", states), scalars("notch", notch)],
    };
    let crack = path("crack");
    let ends = edges.iter().map(|edge| edge.ends.map(in_space));
    export(&crack, title("crack"), &LINE, ends, of_crack)?;
    Ok([plate, crack])
}

/// The width of a unit of length, if everything fits.
const SCALE: f64 = 400.0;

/// The greatest drawn length of a displacement, if displacements are magnified at all.
const LONGEST: f64 = 0.05;

/// Draws the plate with its displacements magnified, coloured by the largest principal stress. Broken edges are thick
/// lines, along both sides; those that still hold are thin ones.
///
/// # Errors
///
/// [`WriteError`].
pub fn write_picture(path: &Path, snapshot: &Snapshot) -> Result<(), WriteError> {
    let elements = &snapshot.elements;
    let frame = Frame::new(elements);
    let (least, most) = range(elements.iter().map(Element::principal_stress));
    let strongest = least.abs().max(most.abs());
    let titles = [
        format!(
            "time {:.4}: {} edges broken, the tip is at {:.3} of a length of {}",
            snapshot.time,
            snapshot.broken(),
            snapshot.tip(),
            SIZE[0]
        ),
        format!(
            "largest principal stress 0 (grey) to {strongest:.2} (red) or -{strongest:.2} (blue); \
             displacements drawn {} times as long",
            frame.magnified
        ),
    ];
    let [width, height] = ROOM.map(|size| size * SCALE + 2.0 * MARGIN);
    let mut document = page(width, height + 2.0 * TEXT_LINE);
    for (title, number) in titles.into_iter().zip([1.0, 2.0]) {
        let y = MARGIN + (number - 0.3) * TEXT_LINE;
        document = document.add(Text::new(title).set("x", 2.0 * MARGIN).set("y", y));
    }
    for element in elements {
        let share = 0.5 + 0.5 * element.principal_stress() / strongest.max(f64::MIN_POSITIVE);
        let colour = blue_to_red(share);
        let place = |corner: usize| frame.place(element.corners[corner], element.u[corner]);
        // Without a stroke the page shines through between neighbours.
        let drawn = quad([0, 1, 2, 3].map(place), &colour);
        document = document.add(drawn.set("stroke", colour).set("stroke-width", 0.7));
    }
    let width = frame.scale * elements.first().map_or(0.0, |e| e.corners[1][0] - e.corners[0][0]);
    let (thick, thin) = ((0.2 * width).clamp(0.8, 2.0), (0.08 * width).clamp(0.3, 0.7));
    for edge in &snapshot.edges {
        let between = |u: [[f64; 2]; 2]| [0, 1].map(|end| frame.place(edge.ends[end], u[end]));
        if edge.is_broken {
            for side in 0..2 {
                document = document.add(line(between(edge.u.map(|sides| sides[side])), thick));
            }
        } else {
            document = document.add(line(between(edge.u.map(middle)), thin));
        }
    }
    save(path, &document)
}

/// The lengths that fit on a page.
const ROOM: [f64; 2] = [SIZE[0] + 2.0 * LONGEST, SIZE[1] + 2.0 * LONGEST];

/// The position of the plate, or its pieces, on the page.
struct Frame {
    /// The factor by which displacements are magnified.
    magnified: f64,
    /// The width of a unit of length.
    scale: f64,
    /// The point that is drawn at the upper left.
    corner: [f64; 2],
}

impl Frame {
    /// All elements fit on the page, at the same position in all pictures unless displacements are long.
    fn new(elements: &[Element]) -> Self {
        let displacements = elements.iter().flat_map(|element| element.u);
        let (_, longest) = range(displacements.map(|[x, y]| (x * x + y * y).sqrt()));
        let magnified = magnification(longest);
        let [[left, right], [bottom, top]] = [0, 1].map(|axis| {
            let corners = elements.iter().flat_map(|element| element.corners.iter().zip(element.u));
            let (least, most) = range(corners.map(|(at, u)| at[axis] + magnified * u[axis]));
            [least.min(-LONGEST), most.max(SIZE[axis] + LONGEST)]
        });
        let share = (ROOM[0] / (right - left)).min(ROOM[1] / (top - bottom));
        Self { magnified, scale: SCALE * share, corner: [left, top] }
    }

    /// The position on the page of a point at rest with a displacement.
    fn place(&self, at: [f64; 2], u: [f64; 2]) -> [f64; 2] {
        let [x, y] = [0, 1].map(|axis| at[axis] + self.magnified * u[axis]);
        let [left, top] = self.corner;
        [MARGIN + (x - left) * self.scale, MARGIN + 2.0 * TEXT_LINE + (top - y) * self.scale]
    }
}

/// A dark line between two places of the page.
fn line([[ax, ay], [bx, by]]: [[f64; 2]; 2], width: f64) -> Line {
    let text = |value: f64| format!("{value:.2}");
    Line::new()
        .set("x1", text(ax))
        .set("y1", text(ay))
        .set("x2", text(bx))
        .set("y2", text(by))
        .set("stroke", "#202020")
        .set("stroke-linecap", "round")
        .set("stroke-width", text(width))
}

/// The middle between both sides.
fn middle([before, behind]: [[f64; 2]; 2]) -> [f64; 2] {
    [0, 1].map(|axis| 0.5 * (before[axis] + behind[axis]))
}

/// The largest factor of 1, 2, 5, 10, 20 and so on with which the longest displacement is drawn no longer than
/// [`LONGEST`].
fn magnification(longest: f64) -> f64 {
    let most = LONGEST / longest;
    if !(most.is_finite() && most > 1.0) {
        return 1.0;
    }
    let power = 10f64.powf(most.log10().floor());
    [5.0, 2.0].map(|digit| digit * power).into_iter().find(|m| *m <= most).unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_far_away_are_on_the_page() {
        let corners = [[0.0, 0.0], [0.5, 0.0], [0.0, 0.5], [0.5, 0.5]];
        let element = |u: [f64; 2]| Element { at: [0; 2], corners, u: [u; 4], stress: [0.0; 3] };
        let room = ROOM.map(|size| size * SCALE);
        for u in [[0.0, 0.0], [1e-3, -2e-3], [3.0, -0.5], [-0.2, 7.0]] {
            let frame = Frame::new(&[element(u), element([0.0; 2])]);
            for at in corners {
                let [x, y] = frame.place(at, u);
                let (x, y) = (x - MARGIN, y - MARGIN - 2.0 * TEXT_LINE);
                let is_there = |at: f64, room: f64| (-1e-9..room + 1e-9).contains(&at);
                assert!(is_there(x, room[0]) && is_there(y, room[1]), "{u:?}: {x} {y}");
            }
        }
    }

    #[test]
    fn displacements_are_magnified_by_round_numbers_and_never_made_shorter() {
        for (longest, expected) in [
            (0.0, 1.0),
            (f64::NAN, 1.0),
            (f64::INFINITY, 1.0),
            (3.0, 1.0),
            (0.03, 1.0),
            (0.024, 2.0),
            (0.003, 10.0),
            (0.0009, 50.0),
        ] {
            assert_eq!(magnification(longest), expected, "{longest}");
        }
    }
}
