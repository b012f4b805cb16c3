//! Defines the problems: the body, its constraints and loads, and known properties of the solution.

use std::f64::consts::{PI, TAU};

use serde::{Deserialize, Serialize};

use super::element::{Material, Vector};

/// The problems that the solver knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum Problem {
    /// A cube of distorted elements whose surface is displaced linearly: displacements inside must
    /// be linear, too (the patch test).
    Patch,
    /// A beam, clamped at one end and pulled to the side at the other, at rest.
    Cantilever,
    /// A standing wave along a bar, for a period and a quarter.
    Wave,
    /// A clamped beam that is struck and left alone.
    Vibration,
}

impl Problem {
    /// The lengths of the body.
    pub fn size(self) -> Vector {
        match self {
            Self::Patch => [1.0; 3],
            Self::Cantilever | Self::Vibration => [8.0, 1.0, 1.0],
            Self::Wave => [1.0, 0.25, 0.25],
        }
    }

    /// Elements along each axis if there are `size` along the longest.
    pub fn elements(self, size: usize) -> [usize; 3] {
        match self {
            Self::Patch => [size; 3],
            Self::Cantilever | Self::Vibration => [size, size.div_ceil(8), size.div_ceil(8)],
            Self::Wave => [size, size.div_ceil(4), size.div_ceil(4)],
        }
    }

    /// The material.
    pub fn material(self) -> Material {
        let poisson = if self == Self::Wave { 0.0 } else { 0.3 };
        Material { young: 1000.0, poisson, density: 1.0 }
    }

    /// Time steps for this many elements along the longest axis; none for a body at rest.
    pub fn steps(self, size: usize) -> usize {
        match self {
            Self::Patch | Self::Cantilever => 0,
            Self::Wave => 5 * size,
            Self::Vibration => 40,
        }
    }

    /// The length of a step, if there are `steps` of them.
    pub fn step(self, steps: usize) -> f64 {
        match self {
            Self::Wave => 1.25 * self.period() / steps as f64,
            _ => 0.02,
        }
    }

    /// The place of a node of the grid.
    pub fn place(self, node: [usize; 3], elements: [usize; 3]) -> Vector {
        let size = self.size();
        std::array::from_fn(|axis| {
            let is_inside = (0..3).all(|a| node[a] > 0 && node[a] < elements[a]);
            let shift = if self == Self::Patch && is_inside {
                let [x, y, z] = [node[0], node[1], node[2] + axis].map(|at| at as f64);
                0.2 * libm::sin(1.3 * x + 2.1 * y + 3.7 * z)
            } else {
                0.0
            };
            size[axis] * (node[axis] as f64 + shift) / elements[axis] as f64
        })
    }

    /// Whether the displacement of a node is given, along each axis.
    pub fn is_given(self, node: [usize; 3], elements: [usize; 3]) -> [bool; 3] {
        let at_end = |axis: usize| node[axis] == 0 || node[axis] == elements[axis];
        match self {
            Self::Patch => [(0..3).any(at_end); 3],
            Self::Cantilever | Self::Vibration => [node[0] == 0; 3],
            Self::Wave => [at_end(0), false, false],
        }
    }

    /// The displacement at a point at time zero, or where it is given for a body at rest.
    pub fn displacement(self, [x, y, z]: Vector) -> Vector {
        match self {
            Self::Patch => linear([x, y, z]),
            Self::Cantilever | Self::Vibration => [0.0; 3],
            Self::Wave => [AMPLITUDE * libm::sin(PI * x), 0.0, 0.0],
        }
    }

    /// The velocity at time zero, at a fraction of the length along x.
    pub fn velocity(self, share: f64) -> Vector {
        match self {
            Self::Vibration => [0.0, 0.3 * share * share, 0.1 * share],
            _ => [0.0; 3],
        }
    }

    /// The load at a node: a force across the far end of a beam, spread evenly over it.
    pub fn load(self, node: [usize; 3], elements: [usize; 3]) -> Vector {
        if self != Self::Cantilever || node[0] != elements[0] {
            return [0.0; 3];
        }
        let share = |axis: usize| {
            let is_edge = node[axis] == 0 || node[axis] == elements[axis];
            (if is_edge { 0.5 } else { 1.0 }) / elements[axis] as f64
        };
        [0.0, FORCE * share(1) * share(2), 0.0]
    }

    /// The displacement at a point and a time, where there is a formula for it.
    pub fn exact(self, [x, y, z]: Vector, time: f64) -> Option<Vector> {
        match self {
            Self::Patch => Some(linear([x, y, z])),
            Self::Wave => {
                let phase = TAU * time / self.period();
                Some([AMPLITUDE * libm::sin(PI * x) * libm::cos(phase), 0.0, 0.0])
            }
            Self::Cantilever | Self::Vibration => None,
        }
    }

    /// The deflection of the far end of a beam by Timoshenko's theory: bending and shear.
    pub fn beam_deflection(self) -> f64 {
        let [length, width, height] = self.size();
        let Material { young, .. } = self.material();
        let (_, shear) = self.material().lame();
        let inertia = width * height.powi(3) / 12.0;
        let bending = FORCE * length.powi(3) / (3.0 * young * inertia);
        bending + FORCE * length / (5.0 / 6.0 * shear * width * height)
    }

    /// The period of the standing wave.
    fn period(self) -> f64 {
        let Material { young, density, .. } = self.material();
        2.0 * self.size()[0] / (young / density).sqrt()
    }
}

const AMPLITUDE: f64 = 1e-3;
/// The force across the far end of a beam.
pub(super) const FORCE: f64 = 0.1;

fn linear([x, y, z]: Vector) -> Vector {
    let u = 0.1 + 0.3 * x - 0.2 * y + 0.05 * z;
    [u, -0.4 * x + 0.1 * y + 0.2 * z, 0.15 * x + 0.25 * y - 0.35 * z]
}
