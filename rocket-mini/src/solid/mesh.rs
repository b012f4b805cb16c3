//! A body of any shape: a mesh of hexahedra from a file.
//!
//! The file has VTK's legacy format with an unstructured grid, as `rocket-mini rocket --out` and most mesh generators
//! write it. Points at the same position are one node. Parts are found by bisecting the elements' middles along the
//! axis of their greatest extent.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use vtkio::model::{CellType, DataSet, UnstructuredGridPiece};

use super::element::{Vector, is_sound};
use super::partition::Shared;
use super::problem::{FORCE, Problem};
use super::region::Region;
use crate::picture::HEXAHEDRON;

/// Why there is no body.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MeshError {
    /// The file cannot be read.
    #[error("cannot read {}: {why}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file is not a mesh, or not one of hexahedra, or it contains invalid ones.
    #[error(
        "{} is not a mesh of hexahedra: {why} (allowed is an unstructured grid in VTK's legacy format)",
        .path.display()
    )]
    NotAMesh {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A face that must be held or pulled does not exist.
    #[error("no face of the mesh lies at its {end} x, where the body has to be {what}")]
    NoFace {
        /// Which end.
        end: &'static str,
        /// What must be there.
        what: &'static str,
    },
}

/// A mesh of hexahedra.
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    places: Vec<Vector>,
    /// The nodes of each element, x fastest, then y, then z.
    elements: Vec<[usize; 8]>,
}

/// The corners of each face of an element, around it.
const FACES: [[usize; 4]; 6] =
    [[0, 2, 6, 4], [1, 3, 7, 5], [0, 1, 5, 4], [2, 3, 7, 6], [0, 1, 3, 2], [4, 5, 7, 6]];

impl Mesh {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Those of [`MeshError`].
    pub fn read(path: &Path) -> Result<Self, MeshError> {
        let read = |why: String| MeshError::Read { path: path.to_owned(), why };
        let bytes = std::fs::read(path).map_err(|error| read(error.to_string()))?;
        parse(&bytes).map_err(|why| MeshError::NotAMesh { path: path.to_owned(), why })
    }

    /// The number of its elements.
    pub fn element_count(&self) -> usize {
        self.elements.len()
    }

    /// Cuts it into consecutive parts.
    ///
    /// # Errors
    ///
    /// [`MeshError::NoFace`].
    ///
    /// # Panics
    ///
    /// If there are more parts than elements.
    pub fn regions(
        &self,
        problem: Problem,
        parts: usize,
    ) -> Result<impl Iterator<Item = Region>, MeshError> {
        assert!(parts <= self.elements.len(), "a part without elements");
        let owners = self.owners(parts);
        let mut parts_of: Vec<Vec<usize>> = vec![Vec::new(); self.places.len()];
        for (element, owner) in self.elements.iter().zip(&owners) {
            for node in element {
                if let Err(at) = parts_of[*node].binary_search(owner) {
                    parts_of[*node].insert(at, *owner);
                }
            }
        }
        let conditions = Conditions::new(self, problem)?;
        Ok((0..parts).map(move |part| self.region(part, &owners, &parts_of, &conditions)))
    }

    fn region(
        &self,
        part: usize,
        owners: &[usize],
        parts_of: &[Vec<usize>],
        conditions: &Conditions,
    ) -> Region {
        let own = || self.elements.iter().zip(owners).filter(|it| *it.1 == part).map(|it| it.0);
        // In the order of the whole, and so in the same one for all parts.
        let mut numbers: Vec<usize> = own().flatten().copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let here: HashMap<usize, usize> =
            numbers.iter().enumerate().map(|(here, number)| (*number, here)).collect();
        let mut shared: Vec<Shared> = Vec::new();
        for (here, number) in numbers.iter().enumerate() {
            for other in parts_of[*number].iter().filter(|other| **other != part) {
                match shared.binary_search_by_key(other, |shared| shared.part) {
                    Ok(at) => shared[at].nodes.push(here),
                    Err(at) => shared.insert(at, Shared { part: *other, nodes: vec![here] }),
                }
            }
        }
        Region {
            elements: own().map(|element| element.map(|node| here[&node])).collect(),
            places: numbers.iter().map(|node| self.places[*node]).collect(),
            is_given: numbers.iter().map(|node| [conditions.is_given[*node]; 3]).collect(),
            load: numbers.iter().map(|node| conditions.load[*node]).collect(),
            is_at_end: numbers.iter().map(|node| conditions.is_at_end[*node]).collect(),
            span: conditions.span,
            shared,
            is_counted: numbers.iter().map(|node| parts_of[*node][0] == part).collect(),
            numbers,
        }
    }

    /// The part of each element.
    fn owners(&self, parts: usize) -> Vec<usize> {
        let middle = |element: &[usize; 8]| -> Vector {
            std::array::from_fn(|axis| element.iter().map(|node| self.places[*node][axis]).sum())
        };
        let middles: Vec<Vector> = self.elements.iter().map(middle).collect();
        let mut owners = vec![0; middles.len()];
        let mut all: Vec<usize> = (0..middles.len()).collect();
        bisect(&middles, &mut all, 0..parts, &mut owners);
        owners
    }

    /// The faces that belong to only one element, by their nodes.
    fn surface(&self) -> Vec<[usize; 4]> {
        let faces = || {
            let of_element =
                |element: [usize; 8]| FACES.map(|face| face.map(|corner| element[corner]));
            self.elements.iter().copied().flat_map(of_element)
        };
        let key = |mut face: [usize; 4]| {
            face.sort_unstable();
            face
        };
        let mut times: HashMap<[usize; 4], u32> = HashMap::new();
        faces().for_each(|face| *times.entry(key(face)).or_default() += 1);
        faces().filter(|face| times[&key(*face)] == 1).collect()
    }
}

/// Bisects the elements so that each of `parts` gets an equal number, and records their owners.
fn bisect(middles: &[Vector], elements: &mut [usize], parts: Range<usize>, owners: &mut [usize]) {
    if parts.len() <= 1 {
        elements.iter().for_each(|element| owners[*element] = parts.start);
        return;
    }
    let extent = |axis: usize| {
        let [least, most] = range(elements.iter().map(|element| middles[*element][axis]));
        most - least
    };
    let extents = [0, 1, 2].map(extent);
    let axis = (0..3).max_by(|a, b| extents[*a].total_cmp(&extents[*b])).unwrap_or(0);
    let lower = parts.len() / 2;
    let cut = elements.len() * lower / parts.len();
    // By number where they lie side by side, so that each run cuts alike.
    elements.select_nth_unstable_by(cut, |a, b| {
        middles[*a][axis].total_cmp(&middles[*b][axis]).then(a.cmp(b))
    });
    let (below, above) = elements.split_at_mut(cut);
    let middle = parts.start + lower;
    bisect(middles, below, parts.start..middle, owners);
    bisect(middles, above, middle..parts.end, owners);
}

/// The constraints and loads of a mesh's nodes.
struct Conditions {
    is_given: Vec<bool>,
    is_at_end: Vec<bool>,
    load: Vec<Vector>,
    span: [f64; 2],
}

impl Conditions {
    /// Those of a problem: its ends are the ends of the mesh along x, its surface consists of the faces that belong to
    /// only one element.
    ///
    /// # Errors
    ///
    /// [`MeshError::NoFace`].
    fn new(mesh: &Mesh, problem: Problem) -> Result<Self, MeshError> {
        let span = range(mesh.places.iter().map(|place| place[0]));
        let [is_at_beginning, is_at_end] = span.map(|end| {
            let is_there = |place: &Vector| (place[0] - end).abs() <= 1e-9 * (span[1] - span[0]);
            mesh.places.iter().map(is_there).collect::<Vec<bool>>()
        });
        let surface = mesh.surface();
        let mut load = vec![[0.0; 3]; mesh.places.len()];
        let faces_at = |is_there: &[bool], end, what| {
            let is_flat = |face: &&[usize; 4]| face.iter().all(|node| is_there[*node]);
            let faces: Vec<[usize; 4]> = surface.iter().filter(is_flat).copied().collect();
            if faces.is_empty() { Err(MeshError::NoFace { end, what }) } else { Ok(faces) }
        };
        let is_given = match problem {
            Problem::Patch => {
                let mut is_given = vec![false; mesh.places.len()];
                surface.iter().flatten().for_each(|node| is_given[*node] = true);
                is_given
            }
            Problem::Cantilever | Problem::Vibration | Problem::Wave => {
                faces_at(&is_at_beginning, "smallest", "held")?;
                is_at_beginning
            }
        };
        if problem == Problem::Cantilever {
            let faces = faces_at(&is_at_end, "largest", "pulled")?;
            let area = |face: &[usize; 4]| area(face.map(|node| mesh.places[node]));
            let whole: f64 = faces.iter().map(area).sum();
            for face in &faces {
                let share = 0.25 * FORCE * area(face) / whole;
                face.iter().for_each(|node| load[*node][1] += share);
            }
        }
        Ok(Self { is_given, is_at_end, load, span })
    }
}

/// The area of a plane face with these corners in order.
fn area([a, b, c, d]: [Vector; 4]) -> f64 {
    let along = |from: Vector, to: Vector| [0, 1, 2].map(|axis| to[axis] - from[axis]);
    let ([ux, uy, uz], [vx, vy, vz]) = (along(a, c), along(b, d));
    let cross = [uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx];
    0.5 * cross.iter().map(|it| it * it).sum::<f64>().sqrt()
}

fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], value| {
        [least.min(value), most.max(value)]
    })
}

/// The mesh in a file with these contents, or what is wrong with it.
fn parse(bytes: &[u8]) -> Result<Mesh, String> {
    if !bytes.starts_with(b"# vtk DataFile") {
        return Err("it does not begin with `# vtk DataFile`".to_owned());
    }
    let file = vtkio::Vtk::parse_legacy_be(bytes).map_err(|error| error.to_string())?;
    let DataSet::UnstructuredGrid { pieces, .. } = file.data else {
        return Err("it has no `UNSTRUCTURED_GRID`".to_owned());
    };
    let mut mesh = Mesh { places: Vec::new(), elements: Vec::new() };
    let mut nodes = HashMap::new();
    for piece in pieces {
        let piece = piece.into_loaded_piece_data(None).map_err(|error| error.to_string())?;
        mesh.add(&piece, &mut nodes)?;
    }
    if mesh.elements.is_empty() {
        return Err("it has no cells".to_owned());
    }
    Ok(mesh)
}

impl Mesh {
    /// Adds the elements of a piece of a file, and their nodes; `nodes` maps the bits of a position to the number of
    /// its node.
    fn add(
        &mut self,
        piece: &UnstructuredGridPiece,
        nodes: &mut HashMap<[u64; 3], usize>,
    ) -> Result<(), String> {
        let points: Vec<f64> = piece.points.cast_into().ok_or("its points are not numbers")?;
        let (points, _) = points.as_chunks::<3>();
        let (count, vertices) = piece.cells.cell_verts.clone().into_legacy();
        let mut rest = &vertices[..];
        let types = &piece.cells.types;
        if types.len() != count as usize {
            return Err(format!("it has {count} cells and the types of {}", types.len()));
        }
        for (number, kind) in types.iter().enumerate() {
            if *kind != CellType::Hexahedron {
                return Err(format!("cell {number} is a {kind:?}"));
            }
            let corners = rest.split_first().and_then(|(count, behind)| {
                rest = behind.get(*count as usize..)?;
                <[u32; 8]>::try_from(behind.get(..*count as usize)?).ok()
            });
            let corners = corners.ok_or_else(|| format!("cell {number} does not have 8 points"))?;
            let places: [Vector; 8] = HEXAHEDRON
                .order
                .map(|at| points.get(corners[at as usize] as usize).copied())
                .into_iter()
                .collect::<Option<Vec<_>>>()
                .and_then(|places| places.try_into().ok())
                .ok_or_else(|| {
                    format!("cell {number} has a point beyond the last of {}", points.len())
                })?;
            if !is_sound(&places) {
                return Err(format!("cell {number} is turned inside out, or has no volume"));
            }
            self.elements.push(places.map(|place| {
                // Of the two zeros, one.
                let key = place.map(|it| (it + 0.0).to_bits());
                *nodes.entry(key).or_insert_with(|| {
                    self.places.push(place);
                    self.places.len() - 1
                })
            }));
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// A file with a grid of `cells` deformed by `place`, whose points and cells are in no order.
    pub(crate) fn file(cells: [usize; 3], place: impl Fn(Vector) -> Vector) -> String {
        let [nx, ny, nz] = cells;
        let points = (nx + 1) * (ny + 1) * (nz + 1);
        // A number that shares no factor with the number of things visits all of them.
        let stir = |count: usize| (7..).step_by(2).find(|it| gcd(*it, count) == 1).unwrap();
        let (of_points, of_cells) = (stir(points), stir(nx * ny * nz));
        let mut text = format!(
            "# vtk DataFile Version 2.0\nbent\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS {points} double\n"
        );
        let mut numbers = vec![0; points];
        for number in 0..points {
            let at = number * of_points % points;
            numbers[at] = number;
            let node = [at % (nx + 1), at / (nx + 1) % (ny + 1), at / (nx + 1) / (ny + 1)];
            let [x, y, z] = place([0, 1, 2].map(|axis| node[axis] as f64 / cells[axis] as f64));
            writeln!(text, "{x:?} {y:?} {z:?}").unwrap();
        }
        let count = nx * ny * nz;
        writeln!(text, "CELLS {count} {}", 9 * count).unwrap();
        for number in 0..count {
            let at = number * of_cells % count;
            let cell = [at % nx, at / nx % ny, at / nx / ny];
            let corner = |corner: u32| {
                let [x, y, z] = [0, 1, 2].map(|axis| cell[axis] + (corner as usize >> axis & 1));
                numbers[(z * (ny + 1) + y) * (nx + 1) + x].to_string()
            };
            writeln!(text, "8 {}", HEXAHEDRON.order.map(corner).join(" ")).unwrap();
        }
        writeln!(text, "CELL_TYPES {count}\n{}", vec!["12"; count].join("\n")).unwrap();
        text
    }

    fn gcd(a: usize, b: usize) -> usize {
        if b == 0 { a } else { gcd(b, a % b) }
    }

    /// A quarter of a tube along x.
    pub(crate) fn tube([x, y, z]: Vector) -> Vector {
        let (radius, angle) = (1.0 + 0.5 * y, std::f64::consts::FRAC_PI_2 * z);
        [4.0 * x, radius * angle.cos(), radius * angle.sin()]
    }

    #[test]
    fn regions_have_each_element_once_and_name_the_nodes_between_them_alike() {
        let mesh = parse(file([9, 3, 5], tube).as_bytes()).unwrap();
        assert_eq!((mesh.element_count(), mesh.places.len()), (135, 240));
        for parts in [1, 2, 7, 32, 135] {
            let regions: Vec<Region> = mesh.regions(Problem::Patch, parts).unwrap().collect();
            let sizes: Vec<usize> = regions.iter().map(|region| region.elements.len()).collect();
            assert_eq!(sizes.iter().sum::<usize>(), 135);
            assert!(
                sizes
                    .iter()
                    .all(|size| (135 / parts..=135usize.div_ceil(parts) + 3).contains(size)),
                "{sizes:?}"
            );
            let counted = regions.iter().flat_map(|region| &region.is_counted);
            assert_eq!(counted.filter(|is_counted| **is_counted).count(), 240);
            for (number, region) in regions.iter().enumerate() {
                for shared in &region.shared {
                    let theirs = &regions[shared.part];
                    let back = theirs.shared.iter().find(|it| it.part == number).unwrap();
                    let names = |region: &Region, nodes: &[usize]| -> Vec<usize> {
                        nodes.iter().map(|node| region.numbers[*node]).collect()
                    };
                    assert_eq!(names(region, &shared.nodes), names(theirs, &back.nodes));
                }
            }
        }
    }

    #[test]
    fn a_mesh_is_held_where_it_begins_and_pulled_where_it_ends() {
        let mesh = parse(file([4, 2, 2], tube).as_bytes()).unwrap();
        let conditions = Conditions::new(&mesh, Problem::Cantilever).unwrap();
        let held = conditions.is_given.iter().filter(|it| **it).count();
        assert_eq!((held, conditions.is_at_end.iter().filter(|it| **it).count()), (9, 9));
        let force: f64 = conditions.load.iter().map(|load| load[1]).sum();
        assert!((force / FORCE - 1.0).abs() < 1e-14);
        assert!(
            mesh.places
                .iter()
                .zip(&conditions.load)
                .all(|(at, load)| (load[1] > 0.0) == (at[0] > 3.9))
        );
        // Faces that are askew lie at no end.
        let askew = |at: Vector| [at[0] + 0.2 * at[1] * at[0], at[1], at[2]];
        let mesh = parse(file([2, 2, 2], askew).as_bytes()).unwrap();
        let error = Conditions::new(&mesh, Problem::Cantilever).err().unwrap().to_string();
        assert_eq!(
            error,
            "no face of the mesh lies at its largest x, where the body has to be pulled"
        );
        assert!(Conditions::new(&mesh, Problem::Vibration).is_ok());
    }

    #[test]
    fn what_is_not_a_mesh_of_hexahedra_is_refused() {
        let right = file([2, 1, 1], |at| at);
        assert!(parse(right.as_bytes()).is_ok());
        let refused = |from: &str, to: &str, why: &str| {
            assert!(right.contains(from), "{right}");
            let error = parse(right.replacen(from, to, 1).as_bytes()).unwrap_err();
            assert!(error.contains(why), "{to}: {error}");
        };
        refused("# vtk", "# obj", "does not begin with");
        refused("\n12\n", "\n10\n", "cell 0 is a Tetra");
        refused("\n12\n", "\n", "");
        refused("\n8 ", "\n8 99 ", "");
        refused("POINTS 12", "POINTS 13", "");
        refused("0.0 0.0 0.0", "0.0 nan 0.0", "");
        refused("1.0 1.0 1.0", "0.0 -1.0 1.0", "turned inside out");
        let mut lines: Vec<&str> = right.lines().collect();
        let at = lines.iter().position(|line| line.starts_with("8 ")).unwrap();
        lines[at] = "8 0 1 2 3 4 5 6 77";
        let error = parse(lines.join("\n").as_bytes()).unwrap_err();
        assert_eq!(error, "cell 0 has a point beyond the last of 12");
    }

    #[test]
    fn no_file_that_was_cut_off_or_changed_is_a_panic() {
        let right = file([2, 2, 1], tube);
        for length in 0..right.len() {
            // Whatever is left: an error, or a mesh.
            let _ = parse(&right.as_bytes()[..length]);
        }
        let binary = {
            let vtk = vtkio::Vtk::parse_legacy_be(right.as_bytes()).unwrap();
            let mut bytes = Vec::new();
            vtk.write_legacy(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(parse(&binary).unwrap(), parse(right.as_bytes()).unwrap());
        for bytes in [right.as_bytes(), &binary[..]] {
            for at in 0..bytes.len() {
                for other in [0, b'-', b'9', b' ', 255] {
                    let mut changed = bytes.to_vec();
                    changed[at] = other;
                    let _ = parse(&changed);
                }
            }
        }
    }
}
