//! What pictures have in common: when they are taken, how a snapshot is gathered on rank 0, and how it is turned into a
//! VTK file or a drawing.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use svg::Document;
use svg::node::element::{Polygon, Rectangle};
use vtkio::IOBuffer;
use vtkio::model::{
    Attribute, Attributes, ByteOrder, CellType, Cells, DataArray, DataSet, UnstructuredGridPiece,
    Version, VertexNumbers, Vtk,
};

/// A file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {reason}", .path.display())]
pub struct WriteError {
    path: PathBuf,
    reason: String,
}

impl WriteError {
    /// A file or directory that could not be written, and why.
    pub fn new(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// Whether a snapshot is taken after this many of `last` steps: once in `every` steps, and at the beginning and the
/// end; never if `every` is 0.
pub(crate) fn is_due(made: usize, every: usize, last: usize) -> bool {
    every > 0 && (made.is_multiple_of(every) || made == last)
}

/// Gathers the parts of all ranks on rank 0, which adds them up in rank order; the others get `None`.
pub(crate) fn gather<T: Serialize + DeserializeOwned>(
    own: T,
    world: &SimpleCommunicator,
    mut add: impl FnMut(&mut T, T),
) -> Option<T> {
    const TAG: mpi::Tag = 9;
    if world.rank() != 0 {
        let root = world.process_at_rank(0);
        root.send_value_with_tag(&own, TAG).expect("numbers can be encoded");
        return None;
    }
    let mut all = own;
    for rank in 1..world.size() {
        let from = world.process_at_rank(rank);
        let (more, _) = from.receive_value_with_tag::<T>(TAG).expect("what was encoded");
        add(&mut all, more);
    }
    Some(all)
}

/// A kind of cell, and VTK's order of its corners; here they are ordered x fastest, then y, then z.
pub(crate) struct Shape<const CORNERS: usize> {
    cell: CellType,
    pub(crate) order: [u32; CORNERS],
}

/// VTK goes around the lower face and then around the upper one.
pub(crate) const HEXAHEDRON: Shape<8> =
    Shape { cell: CellType::Hexahedron, order: [0, 1, 3, 2, 4, 5, 7, 6] };
/// VTK goes around it.
pub(crate) const QUAD: Shape<4> = Shape { cell: CellType::Quad, order: [0, 1, 3, 2] };
/// From one end to the other.
pub(crate) const LINE: Shape<2> = Shape { cell: CellType::Line, order: [0, 1] };

/// A number for each point or cell.
pub(crate) fn scalars(name: &str, values: impl Into<IOBuffer>) -> Attribute {
    Attribute::DataArray(DataArray::scalars(name, 1).with_buf(values.into()))
}

/// A vector for each point or cell.
pub(crate) fn vectors(name: &str, values: impl Iterator<Item = [f64; 3]>) -> Attribute {
    let values: Vec<f64> = values.flatten().collect();
    Attribute::DataArray(DataArray::vectors(name).with_vec(values))
}

/// Writes cells, each with its own points, as an unstructured grid in VTK's legacy format.
pub(crate) fn export<const CORNERS: usize>(
    path: &Path,
    title: String,
    shape: &Shape<CORNERS>,
    cells: impl Iterator<Item = [[f64; 3]; CORNERS]>,
    data: Attributes,
) -> Result<(), WriteError> {
    let corner_count = CORNERS as u32;
    let mut points: Vec<f64> = Vec::new();
    let mut vertices: Vec<u32> = Vec::new();
    let mut count = 0;
    for corners in cells {
        points.extend(corners.into_iter().flatten());
        vertices.push(corner_count);
        vertices.extend(shape.order.map(|corner| corner_count * count + corner));
        count += 1;
    }
    let grid = UnstructuredGridPiece {
        points: points.into(),
        cells: Cells {
            cell_verts: VertexNumbers::Legacy { num_cells: count, vertices },
            types: vec![shape.cell; count as usize],
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
    let mut to = BufWriter::new(File::create(path).map_err(|error| WriteError::new(path, error))?);
    file.write_legacy(&mut to).map_err(|error| WriteError::new(path, error))?;
    // What is left is written here: where it is dropped, nobody hears of an error.
    to.flush().map_err(|error| WriteError::new(path, error))
}

/// The space around and between drawings.
pub(crate) const MARGIN: f64 = 20.0;
/// The height of a line of text.
pub(crate) const TEXT_LINE: f64 = 18.0;

/// A white page.
pub(crate) fn page(width: f64, height: f64) -> Document {
    Document::new()
        .set("viewBox", (0.0, 0.0, width, height))
        .set("width", width)
        .set("height", height)
        .set("font-family", "sans-serif")
        .set("font-size", 13)
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"))
}

/// Writes a page.
pub(crate) fn save(path: &Path, page: &Document) -> Result<(), WriteError> {
    svg::save(path, page).map_err(|error| WriteError::new(path, error))
}

/// Four corners, x fastest, filled with a colour.
pub(crate) fn quad([a, b, c, d]: [[f64; 2]; 4], colour: &str) -> Polygon {
    let points = [a, b, d, c].map(|[x, y]| format!("{x:.2},{y:.2}"));
    Polygon::new().set("points", points.join(" ")).set("fill", colour)
}

/// The least and the greatest of some values.
pub(crate) fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| (a.min(value), b.max(value)))
}

/// A colour from blue through light grey to red.
pub(crate) fn blue_to_red(share: f64) -> String {
    if share < 0.5 {
        mix([59.0, 76.0, 192.0], [221.0, 221.0, 221.0], 2.0 * share)
    } else {
        mix([221.0, 221.0, 221.0], [180.0, 4.0, 38.0], 2.0 * share - 1.0)
    }
}

/// A colour between two, given as red, green and blue up to 255.
pub(crate) fn mix(from: [f64; 3], to: [f64; 3], share: f64) -> String {
    let [r, g, b] = [0, 1, 2].map(|c| (from[c] + share * (to[c] - from[c])).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}
