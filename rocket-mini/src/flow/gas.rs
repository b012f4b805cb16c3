//! A perfect gas: its states, the flux between two of them, and the limiters.
//!
//! The flux is that of Toro, Spruce and Speares (Shock Waves 4, 1994; HLLC), with the wave speeds of Davis, through a
//! face that may move. Everything here is a function of its arguments, with one order of operations: the two blocks at
//! a face get the same bits.

use serde::{Deserialize, Serialize};

/// Per unit volume: mass, three momenta, total energy.
pub type Conserved = [f64; 5];

/// Density, three velocities, pressure.
pub type Primitive = [f64; 5];

/// A perfect gas, in units in which its constant is 1: pressure = density * temperature.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gas {
    /// The ratio of specific heats, above 1.
    pub gamma: f64,
}

impl Gas {
    /// The conserved quantities of a state.
    #[inline(always)]
    pub fn conserved(&self, [density, u, v, w, pressure]: Primitive) -> Conserved {
        let kinetic = 0.5 * density * (u * u + v * v + w * w);
        let energy = pressure / (self.gamma - 1.0) + kinetic;
        [density, density * u, density * v, density * w, energy]
    }

    /// The state with these conserved quantities.
    #[inline(always)]
    pub fn primitive(&self, [density, mx, my, mz, energy]: Conserved) -> Primitive {
        let (u, v, w) = (mx / density, my / density, mz / density);
        let pressure = (self.gamma - 1.0) * (energy - 0.5 * (mx * u + my * v + mz * w));
        [density, u, v, w, pressure]
    }

    /// The speed of sound.
    #[inline(always)]
    pub fn sound_speed(&self, state: &Primitive) -> f64 {
        (self.gamma * state[4] / state[0]).sqrt()
    }

    /// The flux, per area and time, from `left` to `right` through a face with unit normal `normal`
    /// that moves along it at `speed`.
    #[inline(always)]
    pub fn flux(
        &self,
        left: &Primitive,
        right: &Primitive,
        normal: [f64; 3],
        speed: f64,
    ) -> Conserved {
        let along = |s: &Primitive| s[1] * normal[0] + s[2] * normal[1] + s[3] * normal[2];
        let (ul, ur) = (along(left), along(right));
        let (cl, cr) = (self.sound_speed(left), self.sound_speed(right));
        let sl = (ul - cl).min(ur - cr);
        let sr = (ul + cl).max(ur + cr);
        if sl >= speed {
            return self.moving_flux(left, normal, ul, speed);
        }
        if sr <= speed {
            return self.moving_flux(right, normal, ur, speed);
        }
        let (ml, mr) = (left[0] * (sl - ul), right[0] * (sr - ur));
        let contact = (right[4] - left[4] + ml * ul - mr * ur) / (ml - mr);
        let (state, u, wave, mass) =
            if contact >= speed { (left, ul, sl, ml) } else { (right, ur, sr, mr) };
        let flux = self.moving_flux(state, normal, u, 0.0);
        let before = self.conserved(*state);
        let density = mass / (wave - contact);
        let energy = density * (before[4] / state[0] + (contact - u) * (contact + state[4] / mass));
        let momentum = |axis: usize| density * (state[1 + axis] + (contact - u) * normal[axis]);
        let behind = [density, momentum(0), momentum(1), momentum(2), energy];
        std::array::from_fn(|q| flux[q] + wave * (behind[q] - before[q]) - speed * behind[q])
    }

    /// The flux of one state whose velocity along the normal is `u`.
    #[inline(always)]
    fn moving_flux(&self, state: &Primitive, normal: [f64; 3], u: f64, speed: f64) -> Conserved {
        let conserved = self.conserved(*state);
        let pressure = state[4];
        let relative = u - speed;
        [
            conserved[0] * relative,
            conserved[1] * relative + pressure * normal[0],
            conserved[2] * relative + pressure * normal[1],
            conserved[3] * relative + pressure * normal[2],
            conserved[4] * relative + pressure * u,
        ]
    }
}

/// How steep a cell's linear profile may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum Limiter {
    /// No slope: first order.
    None,
    /// The smaller of the two differences: the most diffusive of second order.
    Minmod,
    /// Van Leer's harmonic mean.
    VanLeer,
    /// Van Albada's, which is smooth.
    VanAlbada,
}

impl Limiter {
    /// The slope for the differences to the cell before and to the one after.
    #[inline(always)]
    pub fn slope(self, before: f64, after: f64) -> f64 {
        let product = before * after;
        if product <= 0.0 {
            return 0.0;
        }
        match self {
            Self::None => 0.0,
            Self::Minmod => {
                if before.abs() < after.abs() {
                    before
                } else {
                    after
                }
            }
            Self::VanLeer => 2.0 * product / (before + after),
            Self::VanAlbada => product * (before + after) / (before * before + after * after),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AIR: Gas = Gas { gamma: 1.4 };

    #[test]
    fn states_survive_the_way_to_conserved_quantities_and_back() {
        let state = [1.3, -0.4, 0.9, 2.0, 0.7];
        let back = AIR.primitive(AIR.conserved(state));
        assert!(state.iter().zip(back).all(|(a, b)| (a - b).abs() < 1e-14));
    }

    #[test]
    fn the_flux_between_equal_states_is_their_own() {
        let state = [1.3, -0.4, 0.9, 0.2, 0.7];
        let normal = [0.6, 0.0, -0.8];
        let u = state[1] * 0.6 - state[3] * 0.8;
        for speed in [-3.0, -0.5, 0.0, 0.3, 3.0] {
            let found = AIR.flux(&state, &state, normal, speed);
            let expected = AIR.moving_flux(&state, normal, u, speed);
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-13), "{speed}");
        }
    }

    #[test]
    fn a_contact_that_moves_with_the_face_lets_nothing_pass() {
        let (left, right) = ([1.0, 0.5, 1.0, 0.0, 2.0], [0.1, 0.5, -1.0, 0.0, 2.0]);
        let [mass, mx, my, _, energy] = AIR.flux(&left, &right, [1.0, 0.0, 0.0], 0.5);
        assert!(mass.abs() < 1e-15 && my.abs() < 1e-15);
        assert!((mx - 2.0).abs() < 1e-14 && (energy - 1.0).abs() < 1e-14);
    }

    #[test]
    fn seen_from_the_other_side_the_flux_is_its_opposite() {
        let (left, right) = ([1.0, 0.5, 1.0, 0.1, 2.0], [0.3, -0.2, -1.0, 0.0, 0.4]);
        let there = AIR.flux(&left, &right, [0.0, 1.0, 0.0], 0.2);
        let back = AIR.flux(&right, &left, [0.0, -1.0, 0.0], -0.2);
        assert!(there.iter().zip(back).all(|(a, b)| (a + b).abs() < 1e-14));
    }

    #[test]
    fn limiters_keep_linear_profiles_and_flatten_extrema() {
        for limiter in [Limiter::Minmod, Limiter::VanLeer, Limiter::VanAlbada] {
            assert!((limiter.slope(0.3, 0.3) - 0.3).abs() < 1e-15);
            assert_eq!(limiter.slope(0.3, -0.2), 0.0);
            let slope = limiter.slope(-0.1, -0.4);
            assert!((-0.4..=-0.1).contains(&slope), "{limiter:?}: {slope}");
        }
    }
}
