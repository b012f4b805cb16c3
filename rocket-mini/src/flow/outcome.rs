//! The result of a run, and its verification.

use super::block::Block;
use super::march::Clock;
use super::problem::Problem;
use super::{Conserved, Limiter, Settings};

/// Sums over all blocks. Floating-point sums depend on the blocks in their last bits; the checksum does not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Mass, momenta, energy.
    pub totals: Conserved,
    /// What has entered through the boundary.
    pub gained: Conserved,
    /// The volume.
    pub volume: f64,
    /// The integral of the pressure.
    pub pressure: f64,
    /// The integral of the density's difference from the exact one, where that is known.
    pub error: f64,
    /// The checksum of all cells and of the surface.
    pub checksum: u64,
}

impl Sums {
    /// The sums of one block.
    pub fn of(settings: &Settings, block: &Block, time: f64) -> Self {
        let (totals, volume) = block.totals();
        let mut sums = Self {
            totals,
            volume,
            gained: block.gained(),
            checksum: block.checksum(),
            ..Self::default()
        };
        block.for_each_cell(|cell| {
            let state = block.state(cell);
            let volume = block.volume(cell);
            sums.pressure += volume * state[4];
            if let Some(exact) = settings.problem.exact(block.centre(cell), time) {
                sums.error += volume * (state[0] - exact[0]).abs();
            }
        });
        sums
    }

    /// The numbers as a row, for a sum over ranks; without the checksum.
    pub fn to_row(self) -> [f64; 13] {
        let mut row = [0.0; 13];
        row[..5].copy_from_slice(&self.totals);
        row[5..10].copy_from_slice(&self.gained);
        row[10..].copy_from_slice(&[self.volume, self.pressure, self.error]);
        row
    }

    /// The sums of such a row.
    pub fn from_row(row: [f64; 13], checksum: u64) -> Self {
        let [totals @ .., _, _, _, _, _, _, _, _] = row;
        let [_, _, _, _, _, gained @ .., volume, pressure, error] = row;
        Self { totals, gained, volume, pressure, error, checksum }
    }
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Number of steps, and the time reached.
    pub clock: Clock,
    /// The sums at the beginning.
    pub first: Sums,
    /// The sums at the end.
    pub last: Sums,
}

/// The tolerance for the balances of mass and energy, relative to the total: 1e4 roundings.
const ROUND_OFF: f64 = 2e-12;

impl Outcome {
    /// Mass and energy at the end that were neither present at the beginning nor entered, relative to the total.
    pub fn imbalance(&self) -> [f64; 2] {
        [0, 4].map(|q| {
            let (first, last) = (self.first.totals[q], self.last.totals[q]);
            (last - first - self.last.gained[q]).abs() / first.max(last)
        })
    }

    /// The mean difference of the density from the exact one, where that is known.
    pub fn error(&self, problem: Problem) -> Option<f64> {
        let known = problem.exact([0.5; 3], self.clock.time).is_some();
        known.then(|| self.last.error / self.last.volume)
    }

    /// The mean pressure.
    pub fn mean_pressure(&self) -> f64 {
        self.last.pressure / self.last.volume
    }

    /// Verifies the run against one on a single block, against what must be conserved, and against known properties of
    /// the solution.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn verify(&self, settings: &Settings, alone: &Self) -> Result<(), Wrong> {
        if self.clock.steps != alone.clock.steps {
            return Err(Wrong::Steps { found: self.clock.steps, expected: alone.clock.steps });
        }
        if self.last.checksum != alone.last.checksum {
            let (found, expected) = (self.last.checksum, alone.last.checksum);
            return Err(Wrong::Cells { found, expected });
        }
        let [mass, energy] = self.imbalance();
        if !(mass <= ROUND_OFF && energy <= ROUND_OFF) {
            return Err(Wrong::Balance { mass, energy });
        }
        let cells = settings.cells[0] as f64;
        // Bounds for the default Courant number and the slopes of second order, from twice the
        // errors seen at 50 to 400 cells.
        let bound = match settings.problem {
            Problem::Sod => 1.2 / cells,
            Problem::Lax => 4.5 / cells,
            Problem::Vortex => (18.0 / (cells * cells)).max(0.4 / cells.powf(1.3)),
            _ => f64::INFINITY,
        };
        if let Some(error) = self.error(settings.problem)
            && settings.limiter != Limiter::None
            && error > bound
        {
            return Err(Wrong::Error { found: error, bound });
        }
        if settings.problem == Problem::Bomb {
            let expected = closed_chamber_pressure(settings.problem, self.clock.time);
            let found = self.mean_pressure();
            if (found / expected - 1.0).abs() > 0.02 {
                return Err(Wrong::Pressure { found, expected });
            }
        }
        Ok(())
    }
}

/// The pressure at a time in a closed chamber of gas at rest whose upper side burns: the released gas brings its
/// enthalpy, and the pressure does work on the receding surface.
pub fn closed_chamber_pressure(problem: Problem, time: f64) -> f64 {
    let gamma = problem.gas().gamma;
    let propellant = problem.propellant();
    let [x, y, z] = problem.size();
    let area = x * z;
    let enthalpy = gamma / (gamma - 1.0) * propellant.temperature;
    // Internal energy and volume, by the classical Runge-Kutta method.
    let rate = |[energy, volume]: [f64; 2]| {
        let pressure = (gamma - 1.0) * energy / volume;
        let grown = area * propellant.rate(pressure);
        [grown * (propellant.density * enthalpy - pressure), grown]
    };
    let steps = 1000;
    let dt = time / f64::from(steps);
    let mut state = [area * y / (gamma - 1.0), area * y];
    for _ in 0..steps {
        let add =
            |to: [f64; 2], rate: [f64; 2], dt: f64| [to[0] + dt * rate[0], to[1] + dt * rate[1]];
        let a = rate(state);
        let b = rate(add(state, a, dt / 2.0));
        let c = rate(add(state, b, dt / 2.0));
        let d = rate(add(state, c, dt));
        state = std::array::from_fn(|q| state[q] + dt / 6.0 * (a[q] + 2.0 * (b[q] + c[q]) + d[q]));
    }
    (gamma - 1.0) * state[0] / state[1]
}

/// Why a result is wrong.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Wrong {
    /// The number of steps.
    #[error("made {found} steps, one block alone {expected}")]
    Steps {
        /// Of this run.
        found: usize,
        /// Of the run on one block.
        expected: usize,
    },
    /// The cells.
    #[error("the checksum of the cells is {found:016x}, that of one block alone {expected:016x}")]
    Cells {
        /// Of this run.
        found: u64,
        /// Of the run on one block.
        expected: u64,
    },
    /// Mass or energy.
    #[error("mass is off by {mass:e} of itself, energy by {energy:e}; allowed is {ROUND_OFF:e}")]
    Balance {
        /// See [`Outcome::imbalance`].
        mass: f64,
        /// See [`Outcome::imbalance`].
        energy: f64,
    },
    /// The distance from the exact solution.
    #[error("the density is off by {found:e} in the mean, more than {bound:e}")]
    Error {
        /// The mean distance.
        found: f64,
        /// What is allowed for this many cells.
        bound: f64,
    },
    /// The pressure in a closed chamber.
    #[error("the mean pressure is {found}, that of gas at rest would be {expected}")]
    Pressure {
        /// Of this run.
        found: f64,
        /// See [`closed_chamber_pressure`].
        expected: f64,
    },
}
