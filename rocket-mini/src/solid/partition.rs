//! The parts of a mesh of hexahedra: boxes of elements, found by bisection along the longest axis.
//!
//! Parts share the nodes between them. Each has the sum of all parts' contributions to such a node, added in the order
//! of parts, so that all copies of a node have the same bits.

use serde::{Deserialize, Serialize};

use super::Error;

/// The elements of a part: `start` to `end` along each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The first element along x, y and z.
    pub start: [usize; 3],
    /// The element after the last one.
    pub end: [usize; 3],
}

impl Part {
    /// Elements along each axis.
    pub fn lengths(&self) -> [usize; 3] {
        std::array::from_fn(|axis| self.end[axis] - self.start[axis])
    }

    /// The middle, in elements.
    pub fn centre(&self) -> [f64; 3] {
        std::array::from_fn(|axis| (self.start[axis] + self.end[axis]) as f64 / 2.0)
    }

    /// The number of its nodes.
    pub fn node_count(&self) -> usize {
        self.lengths().iter().map(|length| length + 1).product()
    }

    /// The positions of its nodes in the grid of nodes, x fastest. The index in this order is the
    /// node's number in the part.
    pub fn nodes(&self) -> impl Iterator<Item = [usize; 3]> + use<> {
        let Self { start, end } = *self;
        (start[2]..=end[2]).flat_map(move |z| {
            (start[1]..=end[1]).flat_map(move |y| (start[0]..=end[0]).map(move |x| [x, y, z]))
        })
    }

    /// The nodes of its elements, x fastest, by their numbers in the part.
    pub fn element_nodes(&self) -> impl Iterator<Item = [usize; 8]> + use<> {
        let [nx, ny, nz] = self.lengths();
        let nodes = move |[i, j, k]: [usize; 3]| {
            std::array::from_fn(|node| {
                let [x, y, z] = [i + (node & 1), j + (node >> 1 & 1), k + (node >> 2)];
                (z * (ny + 1) + y) * (nx + 1) + x
            })
        };
        (0..nz).flat_map(move |k| (0..ny).flat_map(move |j| (0..nx).map(move |i| nodes([i, j, k]))))
    }

    /// A node's number in the part, if it has that node.
    pub fn number(&self, node: [usize; 3]) -> Option<usize> {
        let has = (0..3).all(|axis| (self.start[axis]..=self.end[axis]).contains(&node[axis]));
        has.then(|| {
            let [x, y, _] = self.lengths();
            let [i, j, k]: [usize; 3] = std::array::from_fn(|axis| node[axis] - self.start[axis]);
            (k * (y + 1) + j) * (x + 1) + i
        })
    }

    /// The numbers of the nodes that it shares with another part, in the order of the grid.
    fn shared(&self, other: &Self) -> Vec<usize> {
        let start = std::array::from_fn(|axis| self.start[axis].max(other.start[axis]));
        let end: [usize; 3] = std::array::from_fn(|axis| self.end[axis].min(other.end[axis]));
        if (0..3).any(|axis| start[axis] > end[axis]) {
            return Vec::new();
        }
        Self { start, end }.nodes().filter_map(|node| self.number(node)).collect()
    }
}

/// The nodes that a part shares with another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// The number of the other part.
    pub part: usize,
    /// The numbers of the nodes in this part; both parts have them in the same order.
    pub nodes: Vec<usize>,
}

/// The parts of a box of elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    parts: Vec<Part>,
}

impl Partition {
    /// Bisects a box of `elements` into `parts` parts.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyRanks`] if a part would have no element.
    pub fn new(elements: [usize; 3], parts: usize) -> Result<Self, Error> {
        let mut all = Vec::with_capacity(parts);
        bisect(Part { start: [0; 3], end: elements }, parts, &mut all);
        if all.iter().any(|part| part.lengths().contains(&0)) {
            return Err(Error::TooManyRanks { ranks: parts, elements });
        }
        Ok(Self { parts: all })
    }

    /// The elements of a part.
    pub fn part(&self, number: usize) -> Part {
        self.parts[number]
    }

    /// The parts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Which nodes a part counts in sums: those that no earlier part has.
    pub fn counted(&self, number: usize) -> Vec<bool> {
        let mut counted = vec![true; self.parts[number].node_count()];
        let before = self.shared(number).into_iter().filter(|shared| shared.part < number);
        for node in before.flat_map(|shared| shared.nodes) {
            counted[node] = false;
        }
        counted
    }

    /// The parts with which a part shares nodes, and these nodes' numbers.
    pub fn shared(&self, number: usize) -> Vec<Shared> {
        let part = self.parts[number];
        (self.parts.iter().enumerate())
            .filter(|(other, _)| *other != number)
            .map(|(other, theirs)| Shared { part: other, nodes: part.shared(theirs) })
            .filter(|shared| !shared.nodes.is_empty())
            .collect()
    }
}

fn bisect(part: Part, count: usize, all: &mut Vec<Part>) {
    if count <= 1 {
        all.push(part);
        return;
    }
    let lengths = part.lengths();
    let axis = (0..3).max_by_key(|axis| (lengths[*axis], 2 - axis)).unwrap_or(0);
    let lower = count / 2;
    let cut = part.start[axis] + (lengths[axis] * lower + count / 2) / count;
    let (mut below, mut above) = (part, part);
    below.end[axis] = cut;
    above.start[axis] = cut;
    bisect(below, lower, all);
    bisect(above, count - lower, all);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_each_element_once() {
        let elements = [9, 4, 5];
        for count in [1, 2, 3, 7, 12, 32] {
            let partition = Partition::new(elements, count).unwrap();
            let mut covered = vec![0; 9 * 4 * 5];
            for part in partition.parts() {
                for z in part.start[2]..part.end[2] {
                    for y in part.start[1]..part.end[1] {
                        for x in part.start[0]..part.end[0] {
                            covered[(z * 4 + y) * 9 + x] += 1;
                        }
                    }
                }
            }
            assert!(covered.iter().all(|times| *times == 1), "{count} parts");
        }
    }

    #[test]
    fn both_parts_name_the_nodes_between_them_in_one_order() {
        let partition = Partition::new([9, 4, 5], 7).unwrap();
        for number in 0..7 {
            for Shared { part, nodes } in partition.shared(number) {
                let theirs = partition.shared(part);
                let back = theirs.iter().find(|shared| shared.part == number).unwrap();
                let places = |part: usize, nodes: &[usize]| -> Vec<[usize; 3]> {
                    let all: Vec<_> = partition.part(part).nodes().collect();
                    nodes.iter().map(|node| all[*node]).collect()
                };
                assert_eq!(places(number, &nodes), places(part, &back.nodes));
            }
        }
    }

    #[test]
    fn parts_without_elements_are_refused() {
        assert!(Partition::new([2, 2, 2], 8).is_ok());
        let error = Partition::new([2, 2, 2], 9).unwrap_err();
        assert_eq!(error, Error::TooManyRanks { ranks: 9, elements: [2, 2, 2] });
    }
}
