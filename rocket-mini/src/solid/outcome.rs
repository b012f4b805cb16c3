//! The result of a run, and its verification.

use super::{Problem, Settings, Shape};

/// The result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Iterations of the solver, over all steps.
    pub iterations: usize,
    /// Elastic and kinetic energy at the beginning.
    pub first_energy: f64,
    /// The same at the end.
    pub last_energy: f64,
    /// The root mean square of displacements.
    pub displacement: f64,
    /// The root mean square of the differences of displacements from the exact ones, where known.
    pub error: f64,
    /// The work of the load along the displacements.
    pub work: f64,
    /// The mean displacement along y of the far end along x.
    pub deflection: f64,
    /// A weighted sum of displacements, with a different weight for each node: the same for any partition except for
    /// rounding and the solver's tolerance.
    pub fingerprint: f64,
}

impl Outcome {
    /// The energy gained or lost, relative to the initial energy.
    pub fn energy_drift(&self) -> f64 {
        (self.last_energy / self.first_energy - 1.0).abs()
    }

    /// Verifies the run against one on a single part, and against known properties of the solution.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn verify(&self, settings: &Settings, whole: &Self) -> Result<(), Wrong> {
        // Errors of the steps add up, and a tolerance of the residual is one of the solution times
        // the condition of the matrix.
        let allowed = 1e4 * settings.precision.tolerance * (1.0 + settings.steps as f64);
        let differs = |a: f64, b: f64, scale: f64| {
            let off = (a - b).abs();
            off.is_nan() || off > allowed * scale
        };
        let scale = whole.displacement;
        if differs(self.displacement, whole.displacement, scale)
            || differs(self.fingerprint, whole.fingerprint, scale)
        {
            let (found, expected) = (self.fingerprint, whole.fingerprint);
            return Err(Wrong::Displacements { found, expected });
        }
        match settings.problem {
            Problem::Patch => self.check_error(allowed * scale)?,
            Problem::Wave | Problem::Vibration => self.check_energy(allowed)?,
            // A load that has grown slowly does half of its work (Clapeyron).
            Problem::Cantilever if differs(self.work, 2.0 * self.last_energy, self.work) => {
                let (found, expected) = (self.last_energy, 0.5 * self.work);
                return Err(Wrong::Work { found, expected });
            }
            Problem::Cantilever => (),
        }
        let Shape::Grid([size, _, _]) = settings.shape else { return Ok(()) };
        let size = size as f64;
        match settings.problem {
            Problem::Patch | Problem::Vibration => Ok(()),
            Problem::Wave => self.check_error(4e-3 / (size * size)),
            Problem::Cantilever => {
                let expected = settings.problem.beam_deflection();
                // Trilinear elements are too stiff in bending, by the square of their size.
                let share = 8.0 / size;
                if (self.deflection / expected - 1.0).abs() > 0.01 + share * share {
                    return Err(Wrong::Deflection { found: self.deflection, expected });
                }
                Ok(())
            }
        }
    }

    fn check_error(&self, bound: f64) -> Result<(), Wrong> {
        if self.error <= bound { Ok(()) } else { Err(Wrong::Error { found: self.error, bound }) }
    }

    fn check_energy(&self, bound: f64) -> Result<(), Wrong> {
        let found = self.energy_drift();
        if found <= bound { Ok(()) } else { Err(Wrong::Energy { found, bound }) }
    }
}

/// Why a result is wrong.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Wrong {
    /// The displacements.
    #[error("the fingerprint of the displacements is {found:e}, that of one part {expected:e}")]
    Displacements {
        /// Of this run.
        found: f64,
        /// Of the run on one part.
        expected: f64,
    },
    /// The distance from the exact solution.
    #[error("displacements are off by {found:e}, more than {bound:e}")]
    Error {
        /// The root mean square.
        found: f64,
        /// What is allowed.
        bound: f64,
    },
    /// The energy of a body that is left alone.
    #[error("the energy changed by {found:e} of itself, more than {bound:e}")]
    Energy {
        /// The change.
        found: f64,
        /// What is allowed.
        bound: f64,
    },
    /// The energy of a body at rest.
    #[error("the elastic energy is {found:e}, and half of the load's work {expected:e}")]
    Work {
        /// The energy.
        found: f64,
        /// Half of the work.
        expected: f64,
    },
    /// The deflection of a beam.
    #[error("the beam bends by {found:e}, by theory {expected:e}")]
    Deflection {
        /// Of this run.
        found: f64,
        /// By Timoshenko's theory.
        expected: f64,
    },
}
