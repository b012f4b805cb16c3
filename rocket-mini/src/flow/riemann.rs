//! The exact solution of the Riemann problem of a perfect gas.
//!
//! Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics, chapter 4: Newton's method for
//! the pressure between the waves, then the state on each ray.

use libm::pow;

use super::gas::Gas;

/// A state of one-dimensional flow: density, velocity, pressure.
pub(super) type State = [f64; 3];

/// Two states that meet at the origin at time zero, and the state between their waves.
#[derive(Clone, Copy, Debug)]
pub struct Riemann {
    gas: Gas,
    left: State,
    right: State,
    pressure: f64,
    velocity: f64,
}

impl Riemann {
    /// Solves the problem; `None` if a vacuum forms between the states.
    pub fn new(gas: Gas, left: State, right: State) -> Option<Self> {
        let sound = |[density, _, pressure]: State| (gas.gamma * pressure / density).sqrt();
        let (cl, cr) = (sound(left), sound(right));
        if 2.0 * (cl + cr) / (gas.gamma - 1.0) <= right[1] - left[1] {
            return None;
        }
        // The difference of the velocities on the two sides rises monotonically and is concave, so
        // Newton's method converges from any pressure below the solution; a step below zero is cut.
        let mut pressure = 1e-6 * left[2].min(right[2]);
        for _ in 0..200 {
            let (fl, dl) = across_wave(gas, left, pressure);
            let (fr, dr) = across_wave(gas, right, pressure);
            let step = (fl + fr + right[1] - left[1]) / (dl + dr);
            let next = (pressure - step).max(1e-3 * pressure);
            let change = (next - pressure).abs();
            pressure = next;
            if change <= 1e-15 * pressure {
                break;
            }
        }
        let (fl, _) = across_wave(gas, left, pressure);
        let (fr, _) = across_wave(gas, right, pressure);
        let velocity = 0.5 * (left[1] + right[1]) + 0.5 * (fr - fl);
        Some(Self { gas, left, right, pressure, velocity })
    }

    /// The pressure between the waves.
    pub fn pressure(&self) -> f64 {
        self.pressure
    }

    /// The velocity of the contact.
    pub fn velocity(&self) -> f64 {
        self.velocity
    }

    /// The state on the ray with position / time = `speed`.
    pub fn at(&self, speed: f64) -> State {
        if speed <= self.velocity {
            self.beside(self.left, speed, 1.0)
        } else {
            self.beside(self.right, speed, -1.0)
        }
    }

    /// The state on the side of the contact with state `side`; `sign` is 1 for the left one. Mirrored, the right side
    /// is a left one.
    fn beside(&self, side: State, speed: f64, sign: f64) -> State {
        let [density, velocity, pressure] = side;
        let g = self.gas.gamma;
        let (u, s, contact) = (sign * velocity, sign * speed, sign * self.velocity);
        let c = (g * pressure / density).sqrt();
        let ratio = self.pressure / pressure;
        let mirrored = |density: f64, u: f64, pressure: f64| [density, sign * u, pressure];
        if ratio > 1.0 {
            let shock = u - c * ((g + 1.0) / (2.0 * g) * ratio + (g - 1.0) / (2.0 * g)).sqrt();
            if s <= shock {
                return side;
            }
            let k = (g - 1.0) / (g + 1.0);
            return mirrored(density * (ratio + k) / (k * ratio + 1.0), contact, self.pressure);
        }
        let behind = c * pow(ratio, (g - 1.0) / (2.0 * g));
        if s <= u - c {
            side
        } else if s >= contact - behind {
            mirrored(density * pow(ratio, 1.0 / g), contact, self.pressure)
        } else {
            let inside = 2.0 / (g + 1.0) * (c + (g - 1.0) / 2.0 * (u - s));
            let density = density * pow(inside / c, 2.0 / (g - 1.0));
            let pressure = pressure * pow(inside / c, 2.0 * g / (g - 1.0));
            mirrored(density, inside + s, pressure)
        }
    }
}

/// The change of velocity across the wave that brings a state to a pressure, and its derivative
/// with respect to the pressure.
fn across_wave(gas: Gas, [density, _, pressure]: State, to: f64) -> (f64, f64) {
    let g = gas.gamma;
    if to > pressure {
        let a = 2.0 / ((g + 1.0) * density);
        let b = (g - 1.0) / (g + 1.0) * pressure;
        let root = (a / (to + b)).sqrt();
        ((to - pressure) * root, root * (1.0 - 0.5 * (to - pressure) / (to + b)))
    } else {
        let c = (g * pressure / density).sqrt();
        let ratio = to / pressure;
        let velocity = 2.0 * c / (g - 1.0) * (pow(ratio, (g - 1.0) / (2.0 * g)) - 1.0);
        (velocity, pow(ratio, -(g + 1.0) / (2.0 * g)) / (density * c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Toro's five tests, table 4.1, with the star pressures and velocities of his table 4.2.
    #[test]
    fn star_states_are_those_of_toros_table() {
        let gas = Gas { gamma: 1.4 };
        for (left, right, pressure, velocity) in [
            ([1.0, 0.0, 1.0], [0.125, 0.0, 0.1], 0.30313, 0.92745),
            ([1.0, -2.0, 0.4], [1.0, 2.0, 0.4], 0.00189, 0.0),
            ([1.0, 0.0, 1000.0], [1.0, 0.0, 0.01], 460.894, 19.5975),
            ([1.0, 0.0, 0.01], [1.0, 0.0, 100.0], 46.0950, -6.19633),
            ([5.99924, 19.5975, 460.894], [5.99242, -6.19633, 46.0950], 1691.64, 8.68975),
        ] {
            let found = Riemann::new(gas, left, right).unwrap();
            assert!((found.pressure() / pressure - 1.0).abs() < 3e-3, "{found:?}");
            assert!((found.velocity() - velocity).abs() < 1e-4 * velocity.abs().max(1.0));
        }
    }

    #[test]
    fn shocks_satisfy_the_jump_conditions_and_fans_are_isentropic() {
        let gas = Gas { gamma: 1.4 };
        let (left, right) = ([1.0, 0.0, 1.0], [0.125, 0.0, 0.1]);
        let tube = Riemann::new(gas, left, right).unwrap();
        for speed in [-1.1, -0.7, -0.2, 0.5] {
            let [density, _, pressure] = tube.at(speed);
            assert!((pressure / density.powf(1.4) - 1.0).abs() < 1e-12, "entropy at {speed}");
        }
        let [density, velocity, pressure] = tube.at(1.7);
        let shock = density * velocity / (density - right[0]);
        assert!((density * (shock - velocity) - right[0] * shock).abs() < 1e-12);
        let momentum = pressure - right[2] - right[0] * shock * velocity;
        assert!(momentum.abs() < 1e-12, "{momentum}");
        assert_eq!(tube.at(shock + 1e-9), right);
        assert_eq!(tube.at(-2.0), left);
    }

    #[test]
    fn a_vacuum_is_no_solution() {
        let gas = Gas { gamma: 1.4 };
        assert!(Riemann::new(gas, [1.0, -9.0, 0.4], [1.0, 9.0, 0.4]).is_none());
    }
}
