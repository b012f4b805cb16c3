//! A rank's part of a body: elements, nodes, constraints and loads.
//!
//! Regions share the nodes between them, and all list shared nodes in the same order.

use serde::{Deserialize, Serialize};

use super::element::Vector;
use super::partition::{Partition, Shared};
use super::problem::Problem;

/// A part of a body, cut from a grid or from a mesh.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Region {
    /// The nodes of each element, x fastest, then y, then z, as numbers in the region.
    pub elements: Vec<[usize; 8]>,
    /// The place of each node.
    pub places: Vec<Vector>,
    /// The number of each node in the whole body.
    pub numbers: Vec<usize>,
    /// Whether the displacement of a node is given, along each axis.
    pub is_given: Vec<[bool; 3]>,
    /// The force at each node.
    pub load: Vec<Vector>,
    /// Whether a node lies at the far end along x.
    pub is_at_end: Vec<bool>,
    /// The extent of the whole body along x.
    pub span: [f64; 2],
    /// The nodes shared with other regions.
    pub shared: Vec<Shared>,
    /// Whether this region counts a node in sums: exactly one of the regions that have the node
    /// does.
    pub is_counted: Vec<bool>,
}

impl Region {
    /// A part of a problem's own body, a grid with this many elements along x, y and z.
    pub fn of_grid(
        problem: Problem,
        elements: [usize; 3],
        partition: &Partition,
        number: usize,
    ) -> Self {
        let part = partition.part(number);
        let [nx, ny, _] = elements;
        let number_of = |[x, y, z]: [usize; 3]| (z * (ny + 1) + y) * (nx + 1) + x;
        Self {
            elements: part.element_nodes().collect(),
            places: part.nodes().map(|node| problem.place(node, elements)).collect(),
            numbers: part.nodes().map(number_of).collect(),
            is_given: part.nodes().map(|node| problem.is_given(node, elements)).collect(),
            load: part.nodes().map(|node| problem.load(node, elements)).collect(),
            is_at_end: part.nodes().map(|[x, _, _]| x == nx).collect(),
            span: [0.0, problem.size()[0]],
            shared: partition.shared(number),
            is_counted: partition.counted(number),
        }
    }

    /// The middle of the bounding box of its nodes.
    pub fn centre(&self) -> Vector {
        std::array::from_fn(|axis| {
            let along = || self.places.iter().map(|place| place[axis]);
            let (least, most) =
                (along().fold(f64::INFINITY, f64::min), along().fold(f64::NEG_INFINITY, f64::max));
            0.5 * (least + most)
        })
    }
}
