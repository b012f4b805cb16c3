//! The gas in several cells at a time: states, HLLC's flux and limited slopes, without branches.
//!
//! [`Lanes`] are as many cells as the loops over rows process at a time. All operations treat each lane separately, so
//! the bits of a cell do not depend on its neighbours in the lanes.

use wide::{CmpGe, CmpGt, CmpLt, f64x4};

use super::gas::{Gas, Limiter};

/// A value of several cells.
pub(super) type Lanes = f64x4;

/// Number of cells.
pub(super) const LANES: usize = 4;

/// A state of several cells, or a flux: as [`Primitive`](super::Primitive) or
/// [`Conserved`](super::Conserved).
pub(super) type State = [Lanes; 5];

/// The state whose quantities a function gives. Unrolled by hand: the library's `from_fn` may become calls that copy
/// states.
#[inline(always)]
pub(super) fn each(quantity: impl Fn(usize) -> Lanes) -> State {
    [quantity(0), quantity(1), quantity(2), quantity(3), quantity(4)]
}

/// The values from a position on, which must be followed by enough others.
#[inline(always)]
pub(super) fn load(row: &[f64], at: usize) -> Lanes {
    // One by one: copies of slices become calls.
    let row = &row[at..at + LANES];
    Lanes::new([row[0], row[1], row[2], row[3]])
}

/// Writes the values from a position on.
#[inline(always)]
pub(super) fn store(row: &mut [f64], at: usize, lanes: Lanes) {
    let row = &mut row[at..at + LANES];
    [row[0], row[1], row[2], row[3]] = lanes.to_array();
}

/// The direction of faces.
pub(super) trait Normal: Copy {
    /// The component of vectors along it.
    fn along(self, vector: [Lanes; 3]) -> Lanes;

    /// A vector of this length along it.
    fn times(self, length: Lanes) -> [Lanes; 3];
}

/// Along x (0) or z (2).
#[derive(Clone, Copy)]
pub(super) struct Axis<const AXIS: usize>;

impl<const AXIS: usize> Normal for Axis<AXIS> {
    #[inline(always)]
    fn along(self, vector: [Lanes; 3]) -> Lanes {
        vector[AXIS]
    }

    #[inline(always)]
    fn times(self, length: Lanes) -> [Lanes; 3] {
        let mut vector = [Lanes::ZERO; 3];
        vector[AXIS] = length;
        vector
    }
}

/// Any direction, as a unit vector.
impl Normal for [Lanes; 3] {
    #[inline(always)]
    fn along(self, [x, y, z]: [Lanes; 3]) -> Lanes {
        x * self[0] + y * self[1] + z * self[2]
    }

    #[inline(always)]
    fn times(self, length: Lanes) -> [Lanes; 3] {
        let [x, y, z] = self;
        [length * x, length * y, length * z]
    }
}

impl Gas {
    /// The states with these conserved quantities.
    #[inline(always)]
    pub(super) fn states(&self, [density, mx, my, mz, energy]: State) -> State {
        let volume = Lanes::ONE / density;
        let (u, v, w) = (mx * volume, my * volume, mz * volume);
        let half = Lanes::splat(0.5);
        let kinetic = half * (mx * u + my * v + mz * w);
        [density, u, v, w, Lanes::splat(self.gamma - 1.0) * (energy - kinetic)]
    }

    /// The fluxes, per area and time, from `left` to `right` through faces that move along their normal at `speed`:
    /// HLLC's. All branches of [`Gas::flux`] are computed.
    #[inline(always)]
    pub(super) fn fluxes<N: Normal>(
        &self,
        left: &State,
        right: &State,
        normal: N,
        speed: Lanes,
    ) -> State {
        let gamma = Lanes::splat(self.gamma);
        let along = |s: &State| normal.along([s[1], s[2], s[3]]);
        let (ul, ur) = (along(left), along(right));
        // Pressure over density: the temperature.
        let (tl, tr) = (left[4] / left[0], right[4] / right[0]);
        let (cl, cr) = ((gamma * tl).sqrt(), (gamma * tr).sqrt());
        let sl = (ul - cl).fast_min(ur - cr);
        let sr = (ul + cl).fast_max(ur + cr);
        let (ml, mr) = (left[0] * (sl - ul), right[0] * (sr - ur));
        let contact = (right[4] - left[4] + ml * ul - mr * ur) / (ml - mr);
        let is_between = sl.cmp_lt(speed) & sr.cmp_gt(speed);
        let is_left = sl.cmp_ge(speed) | (sr.cmp_gt(speed) & contact.cmp_ge(speed));
        let choose = |l: Lanes, r: Lanes| is_left.blend(l, r);
        let state = each(|q| choose(left[q], right[q]));
        let (u, wave, mass) = (choose(ul, ur), choose(sl, sr), choose(ml, mr));
        let temperature = choose(tl, tr);

        let [density, vx, vy, vz, pressure] = state;
        let half = Lanes::splat(0.5);
        let kinetic = half * (vx * vx + vy * vy + vz * vz);
        let specific = temperature * (1.0 / (self.gamma - 1.0)) + kinetic;
        // Behind the wave, per volume.
        let behind = mass / (wave - contact);
        let pushed = contact - u;
        let [px, py, pz] = normal.times(pushed);
        let specific_behind = specific + pushed * (contact + pressure / mass);
        // The state itself is carried by what is left of the gas's velocity, beyond the wave's if the
        // face lies between the waves; then what is behind the wave comes with the wave.
        let carried = density * (u - is_between.blend(wave, speed));
        let brought = is_between.blend(behind * (wave - speed), Lanes::ZERO);
        let [nx, ny, nz] = normal.times(pressure);
        [
            carried + brought,
            carried * vx + brought * (vx + px) + nx,
            carried * vy + brought * (vy + py) + ny,
            carried * vz + brought * (vz + pz) + nz,
            carried * specific + brought * specific_behind + pressure * u,
        ]
    }
}

impl Limiter {
    /// The slopes of cells between others: zero if density or pressure would not be positive.
    #[inline(always)]
    pub(super) fn slopes(self, before: &State, here: &State, after: &State) -> State {
        let slopes = each(|q| self.limited(here[q] - before[q], after[q] - here[q]));
        let half = Lanes::splat(0.5);
        let is_gas = |q: usize| (half * slopes[q].abs()).cmp_lt(here[q]);
        let is_gas = is_gas(0) & is_gas(4);
        each(|q| is_gas & slopes[q])
    }

    /// As [`Limiter::slope`].
    #[inline(always)]
    fn limited(self, before: Lanes, after: Lanes) -> Lanes {
        let product = before * after;
        let slope = match self {
            Self::None => Lanes::ZERO,
            Self::Minmod => before.abs().cmp_lt(after.abs()).blend(before, after),
            Self::VanLeer => (product + product) / (before + after),
            Self::VanAlbada => product * (before + after) / (before * before + after * after),
        };
        // Where there is no slope, the quotient may be none.
        product.cmp_gt(Lanes::ZERO) & slope
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Primitive;

    const AIR: Gas = Gas { gamma: 1.4 };

    fn splat(state: Primitive) -> State {
        state.map(Lanes::splat)
    }

    #[test]
    fn fluxes_are_those_of_the_gas_between_states_of_all_kinds() {
        let states = [
            [1.0, 0.5, 1.0, 0.1, 2.0],
            [0.3, -0.2, -1.0, 0.0, 0.4],
            [1.0, 4.0, -3.0, 2.0, 1.0],
            [0.125, -5.0, 0.3, 0.3, 0.1],
        ];
        let normals = [[1.0, 0.0, 0.0], [0.6, 0.0, -0.8], [0.0, 0.0, 1.0]];
        for (left, right) in states.iter().flat_map(|l| states.iter().map(move |r| (l, r))) {
            for speed in [-3.0, -0.4, 0.0, 0.3, 3.0] {
                for (at, normal) in normals.into_iter().enumerate() {
                    let (l, r) = (splat(*left), splat(*right));
                    let s = Lanes::splat(speed);
                    let found = match at {
                        0 => AIR.fluxes(&l, &r, Axis::<0>, s),
                        1 => AIR.fluxes(&l, &r, normal.map(Lanes::splat), s),
                        _ => AIR.fluxes(&l, &r, Axis::<2>, s),
                    };
                    let expected = AIR.flux(left, right, normal, speed);
                    for (found, expected) in found.into_iter().zip(expected) {
                        for lane in found.to_array() {
                            let off = (lane - expected).abs();
                            assert!(off < 1e-12 * (1.0 + expected.abs()), "{left:?} {right:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn slopes_are_those_of_the_limiters_and_none_where_there_would_be_no_gas() {
        let limiters = [Limiter::None, Limiter::Minmod, Limiter::VanLeer, Limiter::VanAlbada];
        let differences = [-0.4, -0.1, 0.0, 0.1, 0.4];
        for limiter in limiters {
            for (a, b) in differences.iter().flat_map(|a| differences.iter().map(move |b| (a, b))) {
                let states = [2.0 - a, 2.0, 2.0 + b].map(|value| splat([value; 5]));
                let found = limiter.slopes(&states[0], &states[1], &states[2])[2].to_array()[3];
                let expected = limiter.slope(2.0 - (2.0 - a), 2.0 + b - 2.0);
                assert!((found - expected).abs() < 1e-15, "{limiter:?} {a} {b}");
            }
        }
        let steep = [0.0, 1.0, 3.5].map(|value| splat([1.0, value, 0.0, 0.0, value]));
        let slopes = Limiter::Minmod.slopes(&steep[0], &steep[1], &steep[2]);
        assert_eq!(slopes[4].to_array(), [1.0; LANES]);
        let steeper = [-2.0, 0.5, 3.5].map(|value| splat([1.0, value, 0.0, 0.0, value]));
        let slopes = Limiter::Minmod.slopes(&steeper[0], &steeper[1], &steeper[2]);
        assert_eq!(slopes[1].to_array(), [0.0; LANES]);
    }

    #[test]
    fn states_are_those_of_the_gas() {
        let conserved = AIR.conserved([1.3, -0.4, 0.9, 2.0, 0.7]);
        let found = AIR.states(splat(conserved));
        for (found, expected) in found.into_iter().zip(AIR.primitive(conserved)) {
            assert!(found.to_array().iter().all(|lane| (lane - expected).abs() < 1e-14));
        }
    }
}
