//! The whole state at one time, gathered on rank 0.

use mpi::topology::SimpleCommunicator;
use serde::{Deserialize, Serialize};

use crate::flow::Block;
use crate::picture;
use crate::solid::{Part, Vector};

/// A cell of gas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Its place in the grid.
    pub at: [usize; 3],
    /// Its corners, x fastest, then y, then z.
    pub corners: [Vector; 8],
    /// Density, velocities, pressure.
    pub state: [f64; 5],
}

/// A hexahedron of propellant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hexahedron {
    /// Its place in the mesh.
    pub at: [usize; 3],
    /// Its corners at rest, x fastest, then y, then z.
    pub corners: [Vector; 8],
    /// The displacements of its corners.
    pub u: [Vector; 8],
}

/// Gas and propellant at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The interval after which it was taken.
    pub interval: usize,
    /// The time.
    pub time: f64,
    /// The gas, in no order.
    pub gas: Vec<Cell>,
    /// The propellant, in no order.
    pub propellant: Vec<Hexahedron>,
}

impl Snapshot {
    /// The part of one rank.
    pub fn of(
        [interval, time]: [f64; 2],
        block: &Block,
        part: &Part,
        places: &[Vector],
        u: &[Vector],
    ) -> Self {
        let mut gas = Vec::new();
        let start = block.extent().start;
        block.for_each_cell(|cell| {
            gas.push(Cell {
                at: std::array::from_fn(|axis| start[axis] + cell[axis]),
                corners: block.corners(cell),
                state: block.state(cell),
            });
        });
        let [nx, ny, _] = part.lengths();
        let hexahedron = |(number, nodes): (usize, [usize; 8])| Hexahedron {
            at: [
                part.start[0] + number % nx,
                part.start[1] + number / nx % ny,
                part.start[2] + number / nx / ny,
            ],
            corners: nodes.map(|node| places[node]),
            u: nodes.map(|node| u[node]),
        };
        let propellant = part.element_nodes().enumerate().map(hexahedron).collect();
        Self { interval: interval as usize, time, gas, propellant }
    }

    /// Gathers the parts of all ranks on rank 0; the others get `None`.
    pub fn gather(self, world: &SimpleCommunicator) -> Option<Self> {
        picture::gather(self, world, |all, more| {
            all.gas.extend(more.gas);
            all.propellant.extend(more.propellant);
        })
    }
}
