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

/// Writes the plate, with displacements and stress, and its edges that are no longer bonded, with
/// displacements between those of their sides, as two unstructured grids in VTK's legacy format; their
/// names have the steps made. Edges have a `state`, which is 1 while they hold and 2 when they are
/// broken, and `notch` is 1 of those that were broken from the first. Returns their paths.
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

/// The width of a unit of length.
const SCALE: f64 = 400.0;

/// How long the longest displacement is drawn at most.
const LONGEST: f64 = 0.05;

/// Draws the plate with its displacements magnified, coloured by the largest principal stress. Edges
/// that are broken are thick lines, along both sides, those that still hold thin ones.
///
/// # Errors
///
/// [`WriteError`].
pub fn write_picture(path: &Path, snapshot: &Snapshot) -> Result<(), WriteError> {
    let stresses = snapshot.elements.iter().map(Element::principal_stress);
    let (least, most) = range(stresses);
    let displacements = snapshot.elements.iter().flat_map(|element| element.u);
    let (_, longest) = range(displacements.map(|[x, y]| (x * x + y * y).sqrt()));
    let magnified = magnification(longest);

    let border = MARGIN + LONGEST * SCALE;
    let top = border + 2.0 * TEXT_LINE;
    let [width, height] = SIZE.map(|size| size * SCALE + 2.0 * border);
    let titles = [
        format!(
            "time {:.4}: {} edges broken, the tip is at {:.3} of a length of {}",
            snapshot.time,
            snapshot.broken(),
            snapshot.tip(),
            SIZE[0]
        ),
        format!(
            "largest principal stress {least:.2} (blue) to {most:.2} (red); displacements drawn \
             {magnified} times as long",
        ),
    ];
    let mut document = page(width, height + 2.0 * TEXT_LINE);
    for (title, line) in titles.into_iter().zip([0.7, 1.7]) {
        let y = MARGIN + line * TEXT_LINE;
        document = document.add(Text::new(title).set("x", border).set("y", y));
    }
    let place = |at: [f64; 2], u: [f64; 2]| {
        let [x, y] = [0, 1].map(|axis| at[axis] + magnified * u[axis]);
        [border + x * SCALE, top + (SIZE[1] - y) * SCALE]
    };
    for element in &snapshot.elements {
        let share = (element.principal_stress() - least) / (most - least).max(f64::MIN_POSITIVE);
        let corners =
            std::array::from_fn(|corner| place(element.corners[corner], element.u[corner]));
        let colour = blue_to_red(share);
        // Without a stroke the page shines through between neighbours.
        let drawn = quad(corners, &colour).set("stroke", colour).set("stroke-width", 0.4);
        document = document.add(drawn);
    }
    let spacing =
        SCALE * snapshot.elements.first().map_or(0.0, |e| e.corners[1][0] - e.corners[0][0]);
    let thick = (0.2 * spacing).clamp(0.8, 2.0);
    let thin = (0.08 * spacing).clamp(0.3, 0.7);
    for edge in &snapshot.edges {
        let line = |u: [[f64; 2]; 2], width: f64| {
            let [[ax, ay], [bx, by]] = [0, 1].map(|end| place(edge.ends[end], u[end]));
            let text = |value: f64| format!("{value:.2}");
            Line::new()
                .set("x1", text(ax))
                .set("y1", text(ay))
                .set("x2", text(bx))
                .set("y2", text(by))
                .set("stroke", "#202020")
                .set("stroke-linecap", "round")
                .set("stroke-width", text(width))
        };
        if edge.is_broken {
            for side in 0..2 {
                document = document.add(line(edge.u.map(|sides| sides[side]), thick));
            }
        } else {
            document = document.add(line(edge.u.map(middle), thin));
        }
    }
    save(path, &document)
}

/// Between both sides.
fn middle([before, behind]: [[f64; 2]; 2]) -> [f64; 2] {
    [0, 1].map(|axis| 0.5 * (before[axis] + behind[axis]))
}

/// The largest of 1, 2, 5, 10, 20 and so on with which the longest displacement is drawn no longer than
/// [`LONGEST`].
fn magnification(longest: f64) -> f64 {
    let most = LONGEST / longest;
    if !(most.is_finite() && most > 1.0) {
        return 1.0;
    }
    let power = 10f64.powf(most.log10().floor());
    [5.0, 2.0].map(|digit| digit * power).into_iter().find(|m| *m <= most).unwrap_or(power)
}
