//! The standard trees, with their published sizes.
//!
//! From the sample trees of the benchmark's distribution. Sizes were found by other programs than
//! this one, so reproducing them checks a whole search: a lost, duplicated or wrong node changes
//! them.

use crate::tree::{Kind, Parameters, Shape};

/// A tree with a name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its name in the distribution.
    pub name: &'static str,
    /// The tree.
    pub parameters: Parameters,
    /// Its published size.
    pub published: Published,
}

/// What was published about a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Number of nodes, including the root.
    pub nodes: u64,
    /// Depth of the deepest node; the root's is 0.
    pub depth: Option<u64>,
    /// Number of nodes without children.
    pub leaves: Option<u64>,
}

/// The tree with this name, whatever its case.
#[must_use]
pub fn find(name: &str) -> Option<&'static Named> {
    NAMED.iter().find(|tree| tree.name.eq_ignore_ascii_case(name))
}

/// The published size for these parameters, if they are those of a named tree. Granularity is
/// ignored: it does not change a tree.
#[must_use]
pub fn published(parameters: &Parameters) -> Option<Published> {
    NAMED.iter().find(|tree| same_tree(&tree.parameters, parameters)).map(|tree| tree.published)
}

/// Whether two sets of parameters describe the same tree, whatever their other values.
fn same_tree(a: &Parameters, b: &Parameters) -> bool {
    let binomial = (a.probability, a.children) == (b.probability, b.children);
    let geometric = (a.shape, a.depth) == (b.shape, b.depth);
    (a.kind, a.branching, a.seed) == (b.kind, b.branching, b.seed)
        && match a.kind {
            Kind::Binomial => binomial,
            Kind::Geometric => geometric,
            Kind::Hybrid => binomial && geometric && a.shift == b.shift,
            Kind::Balanced => a.depth == b.depth,
        }
}

/// All named trees.
pub const NAMED: &[Named] = &[
    geometric("T1", Shape::Fixed, 10, 4.0, 19, size(4_130_071, 10, 3_305_118)),
    geometric("T5", Shape::Linear, 20, 4.0, 34, size(4_147_582, 20, 2_181_318)),
    geometric("T2", Shape::Cyclic, 16, 6.0, 502, size(4_117_769, 81, 2_342_762)),
    binomial("T3", 0.124_875, 8, 42, size(4_112_897, 1572, 3_599_034)),
    Named {
        name: "T4",
        parameters: Parameters {
            kind: Kind::Hybrid,
            probability: 0.234_375,
            children: 4,
            ..geometric("", Shape::Linear, 16, 6.0, 1, size(0, 0, 0)).parameters
        },
        published: size(4_132_453, 134, 3_108_986),
    },
    geometric("T1L", Shape::Fixed, 13, 4.0, 29, size(102_181_082, 13, 81_746_377)),
    geometric("T2L", Shape::Cyclic, 23, 7.0, 220, size(96_793_510, 67, 53_791_152)),
    binomial("T3L", 0.200_014, 5, 7, size(111_345_631, 17_844, 89_076_904)),
    geometric("T1XL", Shape::Fixed, 15, 4.0, 29, size(1_635_119_272, 15, 1_308_100_063)),
    geometric(
        "T1XXL",
        Shape::Fixed,
        15,
        4.0,
        19,
        Published { nodes: 4_230_646_601, depth: Some(15), leaves: None },
    ),
    binomial(
        "T3XXL",
        0.499_995,
        2,
        316,
        Published { nodes: 2_793_220_501, depth: None, leaves: None },
    ),
    binomial("T2XXL", 0.499_999_995, 2, 0, size(10_612_052_303, 216_370, 5_306_027_151)),
    geometric("T1WL", Shape::Fixed, 18, 4.0, 19, size(270_751_679_750, 18, 216_601_257_283)),
    binomial("T2WL", 0.499_999_999_5, 2, 559, size(295_393_891_003, 1_021_239, 147_696_946_501)),
    binomial("T3WL", 0.499_999_5, 2, 559, size(157_063_495_159, 758_577, 78_531_748_579)),
];

const fn size(nodes: u64, depth: u64, leaves: u64) -> Published {
    Published { nodes, depth: Some(depth), leaves: Some(leaves) }
}

const fn geometric(
    name: &'static str,
    shape: Shape,
    depth: u32,
    branching: f64,
    seed: u32,
    published: Published,
) -> Named {
    Named {
        name,
        parameters: Parameters { shape, depth, branching, seed, ..Parameters::DEFAULT },
        published,
    }
}

const fn binomial(
    name: &'static str,
    probability: f64,
    children: u32,
    seed: u32,
    published: Published,
) -> Named {
    let (kind, branching) = (Kind::Binomial, 2000.0);
    let parameters =
        Parameters { kind, branching, probability, children, seed, ..Parameters::DEFAULT };
    Named { name, parameters, published }
}
