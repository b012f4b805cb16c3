//! Defines the problems: the domain, the boundaries, the initial state, and the exact solution if
//! there is one.

use serde::{Deserialize, Serialize};

use super::gas::{Gas, Primitive};
use super::riemann::Riemann;

/// What lies beyond a side of the domain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Boundary {
    /// The other end of the domain.
    Periodic,
    /// A wall along which the gas slips.
    Wall,
    /// Gas in the same state as inside.
    Open,
    /// Gas at this pressure, if the outflow is subsonic.
    Outlet(f64),
    /// A burning propellant; it recedes and releases gas.
    Burning,
}

/// How a propellant burns. It recedes along y at `coefficient * pressure^exponent`, and all of its
/// mass becomes gas.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Propellant {
    /// The rate at pressure 1, in lengths per time.
    pub coefficient: f64,
    /// The exponent of the pressure.
    pub exponent: f64,
    /// Its mass per volume.
    pub density: f64,
    /// The temperature of the released gas.
    pub temperature: f64,
}

impl Propellant {
    /// How fast it recedes.
    pub fn rate(&self, pressure: f64) -> f64 {
        self.coefficient * libm::pow(pressure.max(0.0), self.exponent)
    }
}

/// The problems that the solver knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum Problem {
    /// Sod's shock tube (J. Comput. Phys. 27, 1978).
    Sod,
    /// Lax's shock tube (Comm. Pure Appl. Math. 7, 1954).
    Lax,
    /// An isentropic vortex that is carried along a diagonal (Shu, 1998).
    Vortex,
    /// Gas of high pressure in the corner of a closed box.
    Blast,
    /// A closed chamber with a burning side.
    Bomb,
    /// A chamber with a burning side that is open at one end.
    Chamber,
}

impl Problem {
    /// The gas.
    pub fn gas(self) -> Gas {
        match self {
            Self::Bomb | Self::Chamber => Gas { gamma: 1.2 },
            _ => Gas { gamma: 1.4 },
        }
    }

    /// The lengths of the domain at time zero.
    pub fn size(self) -> [f64; 3] {
        match self {
            Self::Sod | Self::Lax | Self::Blast => [1.0; 3],
            Self::Vortex => [10.0; 3],
            Self::Bomb => [1.0, 0.5, 0.5],
            Self::Chamber => [4.0, 0.5, 0.5],
        }
    }

    /// The boundaries: before and after the domain along x, y and z.
    pub fn boundaries(self) -> [[Boundary; 2]; 3] {
        use Boundary::{Burning, Open, Outlet, Periodic, Wall};
        match self {
            Self::Sod | Self::Lax => [[Open, Open], [Wall, Wall], [Wall, Wall]],
            Self::Vortex => [[Periodic; 2]; 3],
            Self::Blast => [[Wall; 2]; 3],
            Self::Bomb => [[Wall, Wall], [Wall, Burning], [Wall, Wall]],
            Self::Chamber => [[Wall, Outlet(1.0)], [Wall, Burning], [Wall, Wall]],
        }
    }

    /// The propellant of a burning side.
    pub fn propellant(self) -> Propellant {
        Propellant { coefficient: 0.02, exponent: 0.5, density: 10.0, temperature: 1.0 }
    }

    /// The default end time.
    pub fn end_time(self) -> f64 {
        match self {
            Self::Sod => 0.2,
            Self::Lax => 0.14,
            Self::Vortex => 2.0,
            Self::Blast => 0.5,
            Self::Bomb => 2.0,
            Self::Chamber => 6.0,
        }
    }

    /// Cells along each axis if there are `size` along the longest.
    pub fn cells(self, size: usize) -> [usize; 3] {
        match self {
            Self::Sod | Self::Lax => [size, 1, 1],
            Self::Vortex => [size, size, 1],
            Self::Blast => [size; 3],
            // Across an axis of one cell nothing would pass, and nothing burn.
            Self::Bomb => [size, size.div_ceil(2).max(2), size.div_ceil(2).max(2)],
            Self::Chamber => [size, size.div_ceil(4).max(2), size.div_ceil(4).max(2)],
        }
    }

    /// The initial state at a point.
    pub fn first(self, [x, y, z]: [f64; 3]) -> Primitive {
        match self {
            Self::Sod | Self::Lax => {
                let (left, right) = self.tube();
                let [density, velocity, pressure] = if x < 0.5 { left } else { right };
                [density, velocity, 0.0, 0.0, pressure]
            }
            Self::Vortex => vortex([x - 5.0, y - 5.0], self.gas()),
            Self::Blast => {
                let distance = (x * x + y * y + z * z).sqrt();
                let pressure = if distance < 0.4 { 10.0 } else { 1.0 };
                [1.0, 0.0, 0.0, 0.0, pressure]
            }
            Self::Bomb | Self::Chamber => [1.0, 0.0, 0.0, 0.0, 1.0],
        }
    }

    /// The state at a point and a time, where there is a formula for it.
    pub fn exact(self, [x, y, _]: [f64; 3], time: f64) -> Option<Primitive> {
        match self {
            Self::Sod | Self::Lax => {
                let (left, right) = self.tube();
                let speed = (x - 0.5) / time.max(f64::MIN_POSITIVE);
                let [density, velocity, pressure] =
                    Riemann::new(self.gas(), left, right)?.at(speed);
                Some([density, velocity, 0.0, 0.0, pressure])
            }
            Self::Vortex => {
                let carried = |x: f64| (x - 5.0 - time + 5.0).rem_euclid(10.0) - 5.0;
                Some(vortex([carried(x), carried(y)], self.gas()))
            }
            Self::Blast | Self::Bomb | Self::Chamber => None,
        }
    }

    /// The two states of a shock tube: density, velocity, pressure.
    fn tube(self) -> ([f64; 3], [f64; 3]) {
        match self {
            Self::Lax => ([0.445, 0.698, 3.528], [0.5, 0.0, 0.571]),
            _ => ([1.0, 0.0, 1.0], [0.125, 0.0, 0.1]),
        }
    }
}

/// The vortex, at a position relative to its centre.
fn vortex([x, y]: [f64; 2], gas: Gas) -> Primitive {
    const STRENGTH: f64 = 5.0;
    let g = gas.gamma;
    let square = x * x + y * y;
    let swirl = STRENGTH / std::f64::consts::TAU * libm::exp(0.5 * (1.0 - square));
    let temperature = 1.0 - (g - 1.0) / (2.0 * g) * swirl * swirl;
    let density = libm::pow(temperature, 1.0 / (g - 1.0));
    [density, 1.0 - swirl * y, 1.0 + swirl * x, 0.0, density * temperature]
}
