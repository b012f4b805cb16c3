//! Two graded meshes of the unit square, distributed over ranks in different ways; checks what is transferred between
//! them.

use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::{Corners, Face, Route, forces, graded_lines, interpolate};
use crate::jacobi::cell_checksum;

/// The trial to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Faces of the fluid's mesh along each axis; its ranks have strips.
    pub fluid: usize,
    /// Faces of the solid's mesh along each axis; each of its ranks has every n-th face.
    pub solid: usize,
    /// How often values are sent in both directions.
    pub rounds: usize,
}

/// The errors of the transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Number of ranks.
    pub ranks: usize,
    /// The greatest difference between a corner's force and that of a linear load on the mesh
    /// itself, relative to the greatest force.
    pub linear_load: f64,
    /// The same for a constant load.
    pub constant_load: f64,
    /// The force that is lost or gained for a load that jumps between faces, relative to it.
    pub force: f64,
    /// The greatest error of a linear motion.
    pub linear_motion: f64,
    /// The greatest number of ranks that one sends to or receives from.
    pub most_partners: usize,
    /// A checksum of all forces and motions: the same for any number of ranks.
    pub checksum: u64,
    /// Seconds to find the partners, and for all rounds.
    pub seconds: [f64; 2],
}

/// A transfer that is off.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{what} is off by {found:e}, more than {ALLOWED:e}")]
pub struct Wrong {
    /// What is off.
    pub what: &'static str,
    /// By how much.
    pub found: f64,
}

/// The greatest allowed error: a few roundings.
const ALLOWED: f64 = 1e-12;

impl Outcome {
    /// Checks that everything is exact except for rounding.
    ///
    /// # Errors
    ///
    /// What is not exact.
    pub fn verify(&self) -> Result<(), Wrong> {
        [
            ("a constant load", self.constant_load),
            ("a linear load", self.linear_load),
            ("the total force", self.force),
            ("a linear motion", self.linear_motion),
        ]
        .into_iter()
        .find(|(_, found)| found.is_nan() || *found > ALLOWED)
        .map_or(Ok(()), |(what, found)| Err(Wrong { what, found }))
    }
}

/// Sends loads in one direction and motions in the other. All ranks get the outcome.
pub fn run(
    world: &SimpleCommunicator,
    settings: &Settings,
    mut progress: impl FnMut(usize),
) -> Outcome {
    let (rank, ranks) = (world.rank() as usize, world.size() as usize);
    let fluid = faces(settings.fluid, 0.3, |[i, _]| i * ranks / settings.fluid == rank);
    let solid = faces(settings.solid, -0.4, |[i, j]| (i + 3 * j) % ranks == rank);
    let points: Vec<[f64; 2]> = fluid.iter().map(|face| face.low).collect();

    world.barrier();
    let start = mpi::time();
    let loads = Route::discover(world, &fluid, &solid);
    let motions = Route::discover(world, &solid, &fluid);
    world.barrier();
    let found = mpi::time();

    // Of each face a constant, a linear, and a wild load.
    let jumps =
        |face: &Face| [0, 1, 2, 3].map(|c| 2.0 + libm::sin(3.0 * (face.number * 4 + c) as f64));
    let given: Vec<[f64; 12]> = (fluid.iter())
        .map(|face| {
            let mut row = [1.0; 12];
            row[4..8].copy_from_slice(&corners(face, linear));
            row[8..].copy_from_slice(&jumps(face));
            row
        })
        .collect();
    let moved: Vec<[f64; 4]> = solid.iter().map(|face| corners(face, linear)).collect();
    let mut pressures = Vec::new();
    let mut displacements = Vec::new();
    for round in 0..settings.rounds {
        pressures = loads.send(world, &given);
        displacements = motions.send(world, &moved);
        if rank == 0 {
            progress(round + 1);
        }
    }
    world.barrier();
    let seconds = [found - start, mpi::time() - found];

    let on_solid = |at: usize| {
        let part: Vec<Corners> =
            pressures.iter().map(|row| std::array::from_fn(|c| row[at + c])).collect();
        forces(&solid, &loads.faces, &part)
    };
    let off = |found: &[Corners], field: fn([f64; 2]) -> f64| {
        let mut worst: f64 = 0.0;
        let mut largest: f64 = 0.0;
        for (face, found) in solid.iter().zip(found) {
            let own = own_force(face, &corners(face, field));
            for (own, found) in own.iter().zip(found) {
                worst = worst.max((own - found).abs());
                largest = largest.max(own.abs());
            }
        }
        [worst, largest]
    };
    let constant = on_solid(0);
    let linear_loads = on_solid(4);
    let wild = on_solid(8);
    let [constant_off, constant_size] = off(&constant, |_| 1.0);
    let [linear_off, linear_size] = off(&linear_loads, linear);
    let came: Vec<[Corners; 1]> = displacements.iter().map(|corners| [*corners]).collect();
    let at_points = interpolate(&points, &motions.faces, &came);
    let mut motion_off: f64 = 0.0;
    let mut checksum: u64 = 0;
    for ((point, value), face) in points.iter().zip(&at_points).zip(&fluid) {
        let value = value.map_or(f64::INFINITY, |[value]| value);
        motion_off = motion_off.max((value - linear(*point)).abs());
        checksum = checksum.wrapping_add(cell_checksum(face.number, value));
    }
    for (face, forces) in solid.iter().zip(&wild) {
        for (corner, force) in (1..).zip(forces) {
            let number = (face.number << 3 | corner) << 32;
            checksum = checksum.wrapping_add(cell_checksum(number, *force));
        }
    }
    let partners = [loads.partners(), motions.partners()].into_iter().flatten().max().unwrap_or(0);
    let largest = max(
        world,
        [constant_off, constant_size, linear_off, linear_size, motion_off, partners as f64],
    );
    let total = |forces: &[Corners]| forces.iter().flatten().sum::<f64>();
    let on_fluid: Vec<Corners> = fluid.iter().map(|face| own_force(face, &jumps(face))).collect();
    let mut totals = [0.0f64; 2];
    let own = [total(&on_fluid), total(&wild)];
    world.all_reduce_into(&own[..], &mut totals[..], SystemOperation::sum());
    let mut checksums = vec![0; ranks];
    world.all_gather_into(&checksum, &mut checksums[..]);
    Outcome {
        ranks,
        constant_load: largest[0] / largest[1],
        linear_load: largest[2] / largest[3],
        linear_motion: largest[4],
        force: (totals[1] / totals[0] - 1.0).abs(),
        most_partners: largest[5] as usize,
        checksum: checksums.into_iter().fold(0, u64::wrapping_add),
        seconds,
    }
}

fn max(world: &SimpleCommunicator, values: [f64; 6]) -> [f64; 6] {
    let mut largest = [0.0; 6];
    world.all_reduce_into(&values[..], &mut largest[..], SystemOperation::max());
    largest
}

/// The faces of a graded mesh of the unit square that a rank has.
fn faces(cells: usize, grading: f64, is_mine: impl Fn([usize; 2]) -> bool) -> Vec<Face> {
    let lines = graded_lines(cells, grading);
    let mut faces = Vec::new();
    for j in 0..cells {
        for i in (0..cells).filter(|i| is_mine([*i, j])) {
            faces.push(Face {
                number: (j * cells + i) as u64,
                low: [lines[i], lines[j]],
                high: [lines[i + 1], lines[j + 1]],
            });
        }
    }
    faces
}

fn corners(face: &Face, field: impl Fn([f64; 2]) -> f64) -> Corners {
    let Face { low, high, .. } = face;
    [*low, [high[0], low[1]], [low[0], high[1]], *high].map(field)
}

fn linear([x, y]: [f64; 2]) -> f64 {
    2.0 - 1.5 * x + 0.5 * y
}

/// The forces of a load on its own face.
fn own_force(face: &Face, load: &Corners) -> Corners {
    let mut own = [0.0; 4];
    face.add_load(&mut own, face, load);
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_is_found() {
        let right = Outcome::default();
        assert_eq!(right.verify(), Ok(()));
        let lost = Outcome { force: 1e-9, ..right };
        assert_eq!(lost.verify(), Err(Wrong { what: "the total force", found: 1e-9 }));
        let nothing = Outcome { linear_motion: f64::NAN, ..right };
        assert!(nothing.verify().is_err());
    }
}
