//! Snapshots as VTK files, and as a drawing.

use std::path::{Path, PathBuf};

use svg::node::element::{Polygon, Text};
use vtkio::model::Attributes;

use super::snapshot::Snapshot;
use super::{PROBLEM, THICKNESS};
use crate::picture::{
    HEXAHEDRON, MARGIN, TEXT_LINE, WriteError, blue_to_red, export, mix, page, quad, range, save,
    scalars, vectors,
};
use crate::solid::Vector;

/// Writes the gas, with density, velocity and pressure, and the propellant, with its displacements,
/// as two unstructured grids in VTK's legacy format; their names contain the interval. Returns
/// their paths.
///
/// # Errors
///
/// [`WriteError`].
pub fn write_vtk(folder: &Path, snapshot: &Snapshot) -> Result<[PathBuf; 2], WriteError> {
    let path = |name: &str| folder.join(format!("{name}-{:05}.vtk", snapshot.interval));
    let title = |name: &str| format!("{name} at time {}", snapshot.time);
    let of_state = |at: usize| -> Vec<f64> { snapshot.gas.iter().map(|c| c.state[at]).collect() };
    let velocity = snapshot.gas.iter().map(|cell| [1, 2, 3].map(|at| cell.state[at]));
    let of_gas = Attributes {
        point: Vec::new(),
        cell: vec![
            scalars("density", of_state(0)),
            scalars("pressure", of_state(4)),
            vectors("velocity", velocity),
        ],
    };
    let displacement = snapshot.propellant.iter().flat_map(|hexahedron| hexahedron.u);
    let of_propellant =
        Attributes { point: vec![vectors("displacement", displacement)], cell: Vec::new() };
    let gas = path("gas");
    let corners = snapshot.gas.iter().map(|cell| cell.corners);
    export(&gas, title("gas"), &HEXAHEDRON, corners, of_gas)?;
    let propellant = path("propellant");
    let corners = snapshot.propellant.iter().map(|hexahedron| hexahedron.corners);
    export(&propellant, title("propellant"), &HEXAHEDRON, corners, of_propellant)?;
    Ok([gas, propellant])
}

/// The factor by which displacements are magnified.
const MAGNIFIED: f64 = 10.0;

/// The width of a unit of length.
const SCALE: f64 = 200.0;

/// Draws slices along the middle of the chamber, one below the other: the gas coloured by its
/// pressure, and the propellant by the length of its displacements, which are drawn magnified.
///
/// # Errors
///
/// [`WriteError`].
pub fn write_picture(path: &Path, snapshots: &[Snapshot]) -> Result<(), WriteError> {
    let [length, height, _] = PROBLEM.size();
    let full = height + THICKNESS;
    let step = full * SCALE + 3.0 * TEXT_LINE + MARGIN;
    let pressures = snapshots.iter().flat_map(|s| &s.gas).map(|cell| cell.state[4]);
    let (least, most) = range(pressures);
    let lengths = snapshots.iter().flat_map(|s| &s.propellant).map(|h| mean_length(&h.u));
    let (_, longest) = range(lengths);

    let width = length * SCALE + 2.0 * MARGIN;
    let total = step * snapshots.len() as f64 + MARGIN;
    let mut document = page(width, total);
    for (number, snapshot) in snapshots.iter().enumerate() {
        let top = MARGIN + step * number as f64 + 2.0 * TEXT_LINE;
        let gas = format!(
            "time {:.2}: pressure of the gas {least:.2} (blue) to {most:.2} (red)",
            snapshot.time
        );
        let propellant = format!(
            "displacement of the propellant 0 (white) to {longest:.4} (brown), drawn {MAGNIFIED} times as long"
        );
        for (title, lines) in [(gas, 1.4), (propellant, 0.4)] {
            let text = Text::new(title).set("x", MARGIN).set("y", top - lines * TEXT_LINE);
            document = document.add(text);
        }
        let place = |at: Vector| [MARGIN + at[0] * SCALE, top + (full - at[1]) * SCALE];
        let middle = |planes: usize| planes / 2;
        let planes = |at: &mut dyn Iterator<Item = usize>| middle(at.max().unwrap_or(0) + 1);
        let slice = planes(&mut snapshot.gas.iter().map(|cell| cell.at[2]));
        for cell in snapshot.gas.iter().filter(|cell| cell.at[2] == slice) {
            let share = (cell.state[4] - least) / (most - least).max(f64::MIN_POSITIVE);
            document = document.add(side(cell.corners.map(place), &blue_to_red(share)));
        }
        let slice = planes(&mut snapshot.propellant.iter().map(|h| h.at[2]));
        for hexahedron in snapshot.propellant.iter().filter(|h| h.at[2] == slice) {
            let share = mean_length(&hexahedron.u) / longest.max(f64::MIN_POSITIVE);
            let corners: [Vector; 8] = std::array::from_fn(|corner| {
                std::array::from_fn(|axis| {
                    hexahedron.corners[corner][axis] + MAGNIFIED * hexahedron.u[corner][axis]
                })
            });
            let side = side(corners.map(place), &white_to_brown(share));
            document = document.add(side.set("stroke", "#8a6d4b").set("stroke-width", 0.3));
        }
    }
    save(path, &document)
}

/// The side of a hexahedron towards smaller z.
fn side([a, b, c, d, ..]: [[f64; 2]; 8], colour: &str) -> Polygon {
    quad([a, b, c, d], colour)
}

fn mean_length(u: &[Vector; 8]) -> f64 {
    u.iter().map(|u| u.iter().map(|u| u * u).sum::<f64>().sqrt()).sum::<f64>() / 8.0
}

fn white_to_brown(share: f64) -> String {
    mix([255.0, 252.0, 245.0], [150.0, 90.0, 30.0], share)
}
