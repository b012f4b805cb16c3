//! Snapshots as VTK files, and as a drawing.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use svg::Document;
use svg::node::element::{Polygon, Rectangle, Text};
use vtkio::model::{
    Attribute, Attributes, ByteOrder, CellType, Cells, DataArray, DataSet, UnstructuredGridPiece,
    Version, VertexNumbers, Vtk,
};

use super::snapshot::Snapshot;
use super::{PROBLEM, THICKNESS};
use crate::solid::Vector;

/// A file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {reason}", .path.display())]
pub struct WriteError {
    path: PathBuf,
    reason: String,
}

impl WriteError {
    /// A file or folder that could not be written, and why.
    pub fn new(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// Writes the gas, with density, velocity and pressure, and the propellant, with its displacements,
/// as two unstructured grids in VTK's legacy format; their names have the interval. Returns their
/// paths.
///
/// # Errors
///
/// [`WriteError`].
pub fn write_vtk(folder: &Path, snapshot: &Snapshot) -> Result<[PathBuf; 2], WriteError> {
    let path = |name: &str| folder.join(format!("{name}-{:05}.vtk", snapshot.interval));
    let title = |name: &str| format!("{name} at time {}", snapshot.time);
    let scalars = |name: &str, at: usize| {
        let values: Vec<f64> = snapshot.gas.iter().map(|cell| cell.state[at]).collect();
        Attribute::DataArray(DataArray::scalars(name, 1).with_vec(values))
    };
    let vectors = |name: &str, values: Vec<f64>| {
        Attribute::DataArray(DataArray::vectors(name).with_vec(values))
    };
    let velocity = snapshot.gas.iter().flat_map(|cell| cell.state[1..4].to_vec()).collect();
    let of_gas = Attributes {
        point: Vec::new(),
        cell: vec![scalars("density", 0), scalars("pressure", 4), vectors("velocity", velocity)],
    };
    let displacement = snapshot.propellant.iter().flat_map(|h| h.u.into_iter().flatten()).collect();
    let of_propellant =
        Attributes { point: vec![vectors("displacement", displacement)], cell: Vec::new() };
    let gas = path("gas");
    let corners = snapshot.gas.iter().map(|cell| cell.corners);
    export(&gas, title("gas"), corners, of_gas)?;
    let propellant = path("propellant");
    let corners = snapshot.propellant.iter().map(|hexahedron| hexahedron.corners);
    export(&propellant, title("propellant"), corners, of_propellant)?;
    Ok([gas, propellant])
}

/// Writes hexahedra, each with points of its own.
fn export(
    path: &Path,
    title: String,
    hexahedra: impl Iterator<Item = [Vector; 8]>,
    data: Attributes,
) -> Result<(), WriteError> {
    // VTK goes around the lower face and then around the upper one.
    const ORDER: [u32; 8] = [0, 1, 3, 2, 4, 5, 7, 6];
    let mut points: Vec<f64> = Vec::new();
    let mut vertices: Vec<u32> = Vec::new();
    let mut count = 0;
    for corners in hexahedra {
        points.extend(corners.into_iter().flatten());
        vertices.push(8);
        vertices.extend(ORDER.map(|corner| 8 * count + corner));
        count += 1;
    }
    let grid = UnstructuredGridPiece {
        points: points.into(),
        cells: Cells {
            cell_verts: VertexNumbers::Legacy { num_cells: count, vertices },
            types: vec![CellType::Hexahedron; count as usize],
        },
        data,
    };
    let file = Vtk {
        version: Version::new_legacy(2, 0),
        title,
        byte_order: ByteOrder::BigEndian,
        data: DataSet::inline(grid),
        file_path: None,
    };
    let to = File::create(path).map_err(|error| WriteError::new(path, error))?;
    file.write_legacy(BufWriter::new(to)).map_err(|error| WriteError::new(path, error))
}

/// How many times as large as they are displacements are drawn.
const MAGNIFIED: f64 = 10.0;

/// Width of a unit of length, space around and between drawings, height of a line of text.
const SCALE: f64 = 200.0;
const MARGIN: f64 = 20.0;
const LINE: f64 = 18.0;

/// Draws slices along the middle of the chamber, one below the other: the gas coloured by its
/// pressure, and the propellant by the length of its displacements, which are drawn magnified.
///
/// # Errors
///
/// [`WriteError`].
pub fn write_picture(path: &Path, snapshots: &[Snapshot]) -> Result<(), WriteError> {
    let [length, height, _] = PROBLEM.size();
    let full = height + THICKNESS;
    let step = full * SCALE + 2.0 * LINE + MARGIN;
    let pressures = snapshots.iter().flat_map(|s| &s.gas).map(|cell| cell.state[4]);
    let (least, most) = range(pressures);
    let lengths = snapshots.iter().flat_map(|s| &s.propellant).map(|h| mean_length(&h.u));
    let (_, longest) = range(lengths);

    let width = length * SCALE + 2.0 * MARGIN;
    let total = step * snapshots.len() as f64 + MARGIN;
    let mut document = Document::new()
        .set("viewBox", (0.0, 0.0, width, total))
        .set("width", width)
        .set("height", total)
        .set("font-family", "sans-serif")
        .set("font-size", 13)
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"));
    for (number, snapshot) in snapshots.iter().enumerate() {
        let top = MARGIN + step * number as f64 + LINE;
        let title = format!(
            "time {:.2}: pressure of the gas {least:.2} (blue) to {most:.2} (red); displacement of the \
             propellant 0 (white) to {longest:.4} (brown), drawn {MAGNIFIED} times as long",
            snapshot.time
        );
        document = document.add(Text::new(title).set("x", MARGIN).set("y", top - 0.4 * LINE));
        let place = |at: Vector| [MARGIN + at[0] * SCALE, top + (full - at[1]) * SCALE];
        let middle = |planes: usize| planes / 2;
        let planes = |at: &mut dyn Iterator<Item = usize>| middle(at.max().unwrap_or(0) + 1);
        let slice = planes(&mut snapshot.gas.iter().map(|cell| cell.at[2]));
        for cell in snapshot.gas.iter().filter(|cell| cell.at[2] == slice) {
            let share = (cell.state[4] - least) / (most - least).max(f64::MIN_POSITIVE);
            document = document.add(side(cell.corners.map(place), blue_to_red(share)));
        }
        let slice = planes(&mut snapshot.propellant.iter().map(|h| h.at[2]));
        for hexahedron in snapshot.propellant.iter().filter(|h| h.at[2] == slice) {
            let share = mean_length(&hexahedron.u) / longest.max(f64::MIN_POSITIVE);
            let corners: [Vector; 8] = std::array::from_fn(|corner| {
                std::array::from_fn(|axis| {
                    hexahedron.corners[corner][axis] + MAGNIFIED * hexahedron.u[corner][axis]
                })
            });
            let side = side(corners.map(place), white_to_brown(share));
            document = document.add(side.set("stroke", "#8a6d4b").set("stroke-width", 0.3));
        }
    }
    svg::save(path, &document).map_err(|error| WriteError::new(path, error))
}

/// The side of a hexahedron towards smaller z.
fn side(corners: [[f64; 2]; 8], colour: String) -> Polygon {
    let points: Vec<String> = [0, 1, 3, 2]
        .iter()
        .map(|at| format!("{:.2},{:.2}", corners[*at][0], corners[*at][1]))
        .collect();
    Polygon::new().set("points", points.join(" ")).set("fill", colour)
}

fn mean_length(u: &[Vector; 8]) -> f64 {
    u.iter().map(|u| u.iter().map(|u| u * u).sum::<f64>().sqrt()).sum::<f64>() / 8.0
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| (a.min(value), b.max(value)))
}

/// Blue, by way of a light grey, to red.
fn blue_to_red(share: f64) -> String {
    if share < 0.5 {
        mix([59.0, 76.0, 192.0], [221.0, 221.0, 221.0], 2.0 * share)
    } else {
        mix([221.0, 221.0, 221.0], [180.0, 4.0, 38.0], 2.0 * share - 1.0)
    }
}

fn white_to_brown(share: f64) -> String {
    mix([255.0, 252.0, 245.0], [150.0, 90.0, 30.0], share)
}

fn mix(from: [f64; 3], to: [f64; 3], share: f64) -> String {
    let [r, g, b] = [0, 1, 2].map(|c| (from[c] + share * (to[c] - from[c])).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}
