//! The octree of Barnes and Hut (Nature 324, 1986): far groups of bodies act as one.

/// A mass at a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Its mass.
    pub mass: f64,
    /// Its place.
    pub place: [f64; 3],
}

/// The most bodies in a leaf (unless they are at one position).
const LEAF: usize = 8;
/// The most levels: bodies at one position would be divided forever.
const DEPTH: u32 = 64;
const NOBODY: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Cell {
    /// Length of its edges.
    size: f64,
    mass: f64,
    /// Its centre of mass.
    centre: [f64; 3],
    /// The points in it, in the tree's order.
    points: std::ops::Range<u32>,
    /// The first of its children, which are contiguous, and their number; leaves have none.
    children: (u32, u32),
}

/// Points in a tree.
#[derive(Clone, Debug)]
pub struct Tree {
    cells: Vec<Cell>,
    points: Vec<Point>,
    /// The index of each of the tree's points among the given ones.
    order: Vec<u32>,
}

/// The field at a body.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Field {
    /// Acceleration.
    pub acceleration: [f64; 3],
    /// Potential.
    pub potential: f64,
    /// Number of cells and points visited.
    pub interactions: u32,
}

impl Tree {
    /// A tree of points.
    pub fn new(points: &[Point]) -> Tree {
        let mut tree = Tree {
            cells: Vec::new(),
            points: points.to_vec(),
            order: (0..points.len() as u32).collect(),
        };
        if points.is_empty() {
            return tree;
        }
        let mut low = [f64::INFINITY; 3];
        let mut high = [f64::NEG_INFINITY; 3];
        for point in points {
            for axis in 0..3 {
                low[axis] = low[axis].min(point.place[axis]);
                high[axis] = high[axis].max(point.place[axis]);
            }
        }
        let size = (0..3).map(|axis| high[axis] - low[axis]).fold(1e-12, f64::max);
        tree.cells.push(tree.cell(0..points.len() as u32, size));
        tree.divide(0, low, 0);
        tree
    }

    fn cell(&self, points: std::ops::Range<u32>, size: f64) -> Cell {
        let (mut mass, mut centre) = (0.0, [0.0; 3]);
        for point in &self.points[points.start as usize..points.end as usize] {
            mass += point.mass;
            for (sum, x) in centre.iter_mut().zip(point.place) {
                *sum += point.mass * x;
            }
        }
        Cell { size, mass, centre: centre.map(|sum| sum / mass), points, children: (0, 0) }
    }

    fn divide(&mut self, cell: usize, low: [f64; 3], depth: u32) {
        let Cell { size, points, .. } = self.cells[cell].clone();
        if points.len() <= LEAF || depth == DEPTH {
            return;
        }
        let half = size / 2.0;
        let octant = |point: &Point| {
            (0..3).map(|axis| usize::from(point.place[axis] >= low[axis] + half) << axis).sum()
        };
        // The points of each octant follow each other.
        let range = points.start as usize..points.end as usize;
        let mut sorted: [Vec<(Point, u32)>; 8] = Default::default();
        for i in range {
            let octant: usize = octant(&self.points[i]);
            sorted[octant].push((self.points[i], self.order[i]));
        }
        let (mut at, first) = (points.start as usize, self.cells.len());
        let mut corners = Vec::new();
        for (octant, inside) in sorted.iter().enumerate().filter(|(_, inside)| !inside.is_empty()) {
            let begin = at;
            for (point, number) in inside {
                (self.points[at], self.order[at]) = (*point, *number);
                at += 1;
            }
            let child = self.cell(begin as u32..at as u32, half);
            self.cells.push(child);
            let corner = |axis: usize| low[axis] + half * (octant >> axis & 1) as f64;
            corners.push([corner(0), corner(1), corner(2)]);
        }
        self.cells[cell].children = (first as u32, corners.len() as u32);
        for (i, corner) in corners.into_iter().enumerate() {
            self.divide(first + i, corner, depth + 1);
        }
    }

    /// The field of all points except `except` (its index among the given ones) at a position. A
    /// cell acts as one if its size is less than `opening` times its distance; forces are softened
    /// at `soft`.
    pub fn field(&self, place: [f64; 3], except: Option<u32>, opening: f64, soft: f64) -> Field {
        let mut field = Field::default();
        let except = except.unwrap_or(NOBODY);
        let soft = soft * soft;
        let mut stack = Vec::with_capacity(64);
        if !self.cells.is_empty() {
            stack.push(0u32);
        }
        while let Some(at) = stack.pop() {
            let cell = &self.cells[at as usize];
            let step = between(place, cell.centre);
            let square = step.iter().map(|x| x * x).sum::<f64>();
            if cell.size * cell.size < opening * opening * square {
                field.add(cell.mass, step, square + soft);
            } else if cell.children.1 > 0 {
                stack.extend(cell.children.0..cell.children.0 + cell.children.1);
            } else {
                for i in cell.points.start as usize..cell.points.end as usize {
                    if self.order[i] != except {
                        let step = between(place, self.points[i].place);
                        let square = step.iter().map(|x| x * x).sum::<f64>();
                        field.add(self.points[i].mass, step, square + soft);
                    }
                }
            }
        }
        field
    }

    /// What must be known about these points anywhere in a box: cells that act as one on all of it,
    /// and single points near it (the locally essential tree of Salmon 1991).
    pub fn essential(&self, low: [f64; 3], high: [f64; 3], opening: f64) -> Vec<Point> {
        let mut essential = Vec::new();
        let mut stack = Vec::new();
        if !self.cells.is_empty() {
            stack.push(0u32);
        }
        while let Some(at) = stack.pop() {
            let cell = &self.cells[at as usize];
            let outside = |axis: usize| {
                let x = cell.centre[axis];
                (low[axis] - x).max(x - high[axis]).max(0.0)
            };
            let square = (0..3).map(|axis| outside(axis) * outside(axis)).sum::<f64>();
            if cell.size * cell.size < opening * opening * square {
                essential.push(Point { mass: cell.mass, place: cell.centre });
            } else if cell.children.1 > 0 {
                stack.extend(cell.children.0..cell.children.0 + cell.children.1);
            } else {
                let range = cell.points.start as usize..cell.points.end as usize;
                essential.extend_from_slice(&self.points[range]);
            }
        }
        essential
    }
}

impl Field {
    fn add(&mut self, mass: f64, step: [f64; 3], square: f64) {
        let inverse = 1.0 / square.sqrt();
        let force = mass * inverse * inverse * inverse;
        for (sum, x) in self.acceleration.iter_mut().zip(step) {
            *sum += force * x;
        }
        self.potential -= mass * inverse;
        self.interactions += 1;
    }
}

fn between(from: [f64; 3], to: [f64; 3]) -> [f64; 3] {
    [to[0] - from[0], to[1] - from[1], to[2] - from[2]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    fn points(n: usize) -> Vec<Point> {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let point = |_| Point { mass: random.random(), place: [(); 3].map(|()| random.random()) };
        (0..n).map(point).collect()
    }

    #[test]
    fn without_opening_all_points_act_singly() {
        let points = points(300);
        let tree = Tree::new(&points);
        let field = tree.field(points[7].place, Some(7), 0.0, 0.01);
        assert_eq!(field.interactions, 299);
        let direct = points.iter().enumerate().filter(|(i, _)| *i != 7).map(|(_, other)| {
            let step = between(points[7].place, other.place);
            -other.mass / (step.iter().map(|x| x * x).sum::<f64>() + 1e-4).sqrt()
        });
        let direct: f64 = direct.sum();
        assert!((field.potential / direct - 1.0).abs() < 1e-12);
    }

    #[test]
    fn essential_points_act_as_all_do() {
        let points = points(2000);
        let tree = Tree::new(&points);
        let (low, high) = ([2.0, 0.0, 0.0], [3.0, 1.0, 1.0]);
        let essential = tree.essential(low, high, 0.5);
        assert!(essential.len() < 400, "{}", essential.len());
        let mass = |points: &[Point]| points.iter().map(|point| point.mass).sum::<f64>();
        assert!((mass(&essential) / mass(&points) - 1.0).abs() < 1e-12);
        let exact = tree.field([2.5, 0.5, 0.5], None, 0.0, 0.0);
        let short = Tree::new(&essential).field([2.5, 0.5, 0.5], None, 0.0, 0.0);
        assert!((short.potential / exact.potential - 1.0).abs() < 1e-3);
    }

    #[test]
    fn points_in_one_place_are_no_endless_tree() {
        let same = vec![Point { mass: 1.0, place: [0.5; 3] }; 100];
        let field = Tree::new(&same).field([0.0; 3], None, 0.5, 0.1);
        assert!((field.potential + 100.0 / (0.75f64 + 0.01).sqrt()).abs() < 1e-9);
        assert!(Tree::new(&[]).essential([0.0; 3], [1.0; 3], 0.5).is_empty());
    }
}
