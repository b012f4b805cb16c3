//! Heat below the burning surface: the propellant warms up before it burns.
//!
//! Seen from a surface that recedes at a rate `r`, heat is conducted into the propellant and carried back towards the
//! surface: `T_t = a T_yy + r T_y`, with the temperature of the surface at `y = 0` and that of cold propellant far
//! below. After ignition the profile settles to that of Michelson, an exponential of thickness `a / r`. This takes
//! about `a / r^2`, during which the profile is computed by explicit differences of second order; before, there is
//! none, and afterwards it is Michelson's. So a column is costly while it is being ignited, and cheap otherwise.

use serde::{Deserialize, Serialize};

/// How the propellant conducts heat, in the units of the gas: [`crate::flow`]'s gas leaves the surface
/// at temperature 1.
const DIFFUSIVITY: f64 = 1.5e-5;
const SURFACE: f64 = 1.0;
const COLD: f64 = 0.3;

/// The depth to which profiles are computed: ten times the thickness at the rate for pressure 1.
const DEPTH: f64 = 7.5e-3;

/// The least number of points of a profile: with fewer, convection over a cell outweighs conduction at rates above
/// 0.06, and profiles oscillate.
pub const MIN_POINTS: u32 = 16;

/// The fraction of the stable step that is used.
const STABILITY: f64 = 0.8;

/// A profile has settled when the sum of `r^2 dt / (4 a)` since ignition reaches this: the remainder is less than
/// `exp(-5)` of it.
const SETTLED: f64 = 5.0;

/// The heat below a column of gas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heat {
    stage: Stage,
    /// The last rate at which the surface receded.
    rate: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Stage {
    Cold,
    /// Temperatures from the surface down, evenly spaced, and how far the profile has settled.
    Warming {
        temperatures: Vec<f64>,
        settled: f64,
    },
    Settled,
}

impl Heat {
    /// Before ignition.
    pub fn cold() -> Self {
        Self { stage: Stage::Cold, rate: 0.0 }
    }

    /// Advances by `dt` with a surface that recedes at `rate`, which ignites it if it is above 0. A profile has this
    /// many `points`, at least [`MIN_POINTS`].
    pub fn advance(&mut self, rate: f64, dt: f64, points: usize) {
        self.rate = rate;
        if self.stage == Stage::Cold && rate > 0.0 {
            let mut temperatures = vec![COLD; points];
            temperatures[0] = SURFACE;
            self.stage = Stage::Warming { temperatures, settled: 0.0 };
        }
        if let Stage::Warming { temperatures, settled } = &mut self.stage {
            conduct(temperatures, rate, dt);
            *settled += rate * rate * dt / (4.0 * DIFFUSIVITY);
            if *settled >= SETTLED {
                self.stage = Stage::Settled;
            }
        }
    }

    /// Whether its profile is being computed.
    pub fn is_warming(&self) -> bool {
        matches!(self.stage, Stage::Warming { .. })
    }

    /// The heat per area above that of cold propellant, in temperatures times lengths.
    pub fn stored(&self) -> f64 {
        match &self.stage {
            Stage::Cold => 0.0,
            Stage::Warming { temperatures, .. } => {
                let spacing = DEPTH / (temperatures.len() - 1) as f64;
                let inner: f64 = temperatures[1..].iter().map(|t| t - COLD).sum();
                spacing * (0.5 * (SURFACE - COLD) + inner)
            }
            Stage::Settled => (SURFACE - COLD) * DIFFUSIVITY / self.rate,
        }
    }
}

/// Makes explicit steps, as many as stability requires. The ends keep their temperatures.
fn conduct(temperatures: &mut Vec<f64>, rate: f64, dt: f64) {
    let points = temperatures.len();
    let spacing = DEPTH / (points - 1) as f64;
    // Conduction and the flow of heat towards the surface each limit a step.
    let stable = (0.5 * spacing * spacing / DIFFUSIVITY).min(2.0 * DIFFUSIVITY / (rate * rate));
    let steps = (dt / (STABILITY * stable)).ceil().max(1.0);
    let step = dt / steps;
    let (conducted, carried) =
        (DIFFUSIVITY * step / (spacing * spacing), 0.5 * rate * step / spacing);
    let weights = [conducted - carried, 1.0 - 2.0 * conducted, conducted + carried];
    let mut next = temperatures.clone();
    for _ in 0..steps as usize {
        relax(temperatures, &mut next, weights);
        std::mem::swap(temperatures, &mut next);
    }
}

/// One step of all inner points.
fn relax(from: &[f64], to: &mut [f64], [before, here, after]: [f64; 3]) {
    let inner = from.len() - 2;
    let (above, centre, below) = (&from[..inner], &from[1..=inner], &from[2..]);
    for (((to, a), c), b) in to[1..=inner].iter_mut().zip(above).zip(centre).zip(below) {
        *to = before * a + here * c + after * b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libm::erfc;

    const RATE: f64 = 0.03;

    /// The profile below a surface that has one temperature and recedes at one rate since time zero: the solution of
    /// Ogata and Banks (US Geological Survey, Professional Paper 411-A, 1961).
    fn exact(depth: f64, time: f64) -> f64 {
        let width = 2.0 * (DIFFUSIVITY * time).sqrt();
        let ahead = erfc((depth + RATE * time) / width);
        let settled = (-RATE * depth / DIFFUSIVITY).exp() * erfc((depth - RATE * time) / width);
        COLD + 0.5 * (SURFACE - COLD) * (ahead + settled)
    }

    fn profile(heat: &Heat) -> &[f64] {
        match &heat.stage {
            Stage::Warming { temperatures, .. } => temperatures,
            stage => panic!("{stage:?}"),
        }
    }

    fn error(points: usize, time: f64) -> f64 {
        let mut heat = Heat::cold();
        for _ in 0..20 {
            heat.advance(RATE, time / 20.0, points);
        }
        let spacing = DEPTH / (points - 1) as f64;
        let errors = profile(&heat).iter().enumerate();
        errors.map(|(at, t)| (t - exact(at as f64 * spacing, time)).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn the_transient_is_that_of_ogata_and_banks_of_second_order() {
        let errors = [65, 129, 257].map(|points| error(points, 0.05));
        assert!(errors[0] < 8e-3, "{errors:?}");
        for pair in errors.windows(2) {
            let order = (pair[0] / pair[1]).log2();
            assert!((1.8..2.6).contains(&order), "{errors:?}: order {order}");
        }
    }

    #[test]
    fn it_settles_to_michelsons_profile_and_keeps_its_heat_then() {
        let mut heat = Heat::cold();
        heat.advance(0.0, 1.0, 129);
        assert_eq!((heat.stored(), heat.is_warming()), (0.0, false));
        let end = SETTLED * 4.0 * DIFFUSIVITY / (RATE * RATE);
        heat.advance(RATE, 0.99 * end, 129);
        assert!(heat.is_warming());
        let spacing = DEPTH / 128.0;
        for (at, temperature) in profile(&heat).iter().enumerate() {
            let depth = at as f64 * spacing;
            let michelson = COLD + (SURFACE - COLD) * (-RATE * depth / DIFFUSIVITY).exp();
            assert!((temperature - michelson).abs() < 4e-3, "{depth}: {temperature}, {michelson}");
        }
        let before = heat.stored();
        heat.advance(RATE, 0.02 * end, 129);
        assert!(!heat.is_warming());
        assert!((heat.stored() / before - 1.0).abs() < 0.01);
    }

    #[test]
    fn steps_of_any_length_are_stable() {
        for (points, dt) in [(MIN_POINTS as usize, 0.03), (64, 0.02), (64, 1e-6), (200, 0.01)] {
            let mut heat = Heat::cold();
            for rate in [0.01, 0.04, 0.02, 0.04] {
                heat.advance(rate, dt, points);
            }
            let possible = COLD - 1e-12..SURFACE + 1e-12;
            assert!(profile(&heat).iter().all(|t| possible.contains(t)), "{points}");
        }
    }
}
