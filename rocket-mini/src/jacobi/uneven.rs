//! Which cells are costly, and when.

use std::str::FromStr;

/// The part of the domain whose cells cost more: they are computed several times
/// over, always with the same result.
///
/// Written `FRACTION:FACTOR`, as in `0.25:10`: the cells with the smallest z.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costly {
    /// The fraction of the cells, from 0 to 1.
    pub fraction: f64,
    /// How often each of them is computed, at least once.
    pub factor: u32,
    /// The fraction of the domain, from 0 to 1, before them along z; cells beyond its end wrap
    /// around to its beginning.
    pub first: f64,
}

impl Costly {
    /// How often a cell is computed whose position along z is `z` of `size`.
    pub(super) fn times(&self, z: usize, size: usize) -> u32 {
        let first = (self.first * size as f64).round() as usize;
        let place = (z + size - first % size) % size;
        if (place as f64) < self.fraction * size as f64 { self.factor } else { 1 }
    }
}

impl FromStr for Costly {
    type Err = ParseCostlyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (fraction, factor) = text.split_once(':').ok_or(ParseCostlyError::NoColon)?;
        let fraction = (fraction.parse())
            .ok()
            .filter(|fraction| (0.0..=1.0).contains(fraction))
            .ok_or(ParseCostlyError::Fraction)?;
        let factor = (factor.parse())
            .ok()
            .filter(|factor| (1..=Self::MAX_FACTOR).contains(factor))
            .ok_or(ParseCostlyError::Factor)?;
        Ok(Self { fraction, factor, first: 0.0 })
    }
}

impl Costly {
    /// The largest factor that is accepted.
    pub const MAX_FACTOR: u32 = 1_000_000;
}

/// Which cells are costly at a time of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uneven {
    /// The costly part at the beginning.
    pub costly: Costly,
    /// Seconds after which it moves on by its own size, repeatedly.
    pub wander: Option<f64>,
    /// Seconds for which it is costly, and then for as long not, alternately.
    pub come_and_go: Option<f64>,
}

impl Uneven {
    /// The costly part this many seconds after the beginning, if there is one then.
    pub fn at(&self, seconds: f64) -> Option<Costly> {
        let periods = |length: f64| (seconds.max(0.0) / length).floor();
        if self.come_and_go.is_some_and(|length| periods(length) % 2.0 == 1.0) {
            return None;
        }
        let moved = self.wander.map_or(0.0, |length| periods(length) * self.costly.fraction);
        Some(Costly { first: (self.costly.first + moved).fract(), ..self.costly })
    }
}

impl From<Costly> for Uneven {
    /// Always the same part.
    fn from(costly: Costly) -> Self {
        Self { costly, wander: None, come_and_go: None }
    }
}

/// Why a text is not a [`Costly`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseCostlyError {
    /// The text does not consist of two numbers.
    #[error("expected FRACTION:FACTOR, as in 0.25:10")]
    NoColon,
    /// The fraction is invalid.
    #[error("FRACTION must be a number from 0 to 1")]
    Fraction,
    /// The factor is invalid.
    #[error("FACTOR must be a whole number from 1 to {}", Costly::MAX_FACTOR)]
    Factor,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_costly_share_has_the_size_asked_for() {
        for (fraction, planes) in [(0.0, 0), (0.25, 25), (0.5, 50), (1.0, 100)] {
            let costly = Costly { fraction, factor: 9, first: 0.0 };
            let found = (0..100).filter(|z| costly.times(*z, 100) == 9).count();
            assert_eq!(found, planes);
        }
    }

    #[test]
    fn costly_is_parsed_and_errors_say_what_is_allowed() {
        let costly = Costly { fraction: 0.25, factor: 10, first: 0.0 };
        assert_eq!("0.25:10".parse(), Ok(costly));
        for (text, error) in [
            ("0.25", ParseCostlyError::NoColon),
            ("1.5:10", ParseCostlyError::Fraction),
            ("NaN:10", ParseCostlyError::Fraction),
            ("0.5:0", ParseCostlyError::Factor),
            ("0.5:2.5", ParseCostlyError::Factor),
        ] {
            assert_eq!(text.parse::<Costly>(), Err(error), "{text}");
        }
    }

    #[test]
    fn the_costly_part_wanders_and_comes_and_goes() {
        let costly: Costly = "0.25:10".parse().unwrap();
        let planes = |costly: Option<Costly>| -> Vec<usize> {
            costly.map_or(vec![], |c| (0..8).filter(|z| c.times(*z, 8) > 1).collect())
        };
        let wanders = Uneven { wander: Some(2.0), ..costly.into() };
        for (seconds, expected) in
            [(0.0, [0, 1]), (1.9, [0, 1]), (2.0, [2, 3]), (7.0, [6, 7]), (8.5, [0, 1])]
        {
            assert_eq!(planes(wanders.at(seconds)), expected, "at {seconds}");
        }
        let comes = Uneven { come_and_go: Some(1.5), ..costly.into() };
        let is_there = [0.0, 1.4, 1.6, 2.9, 3.1].map(|seconds| comes.at(seconds).is_some());
        assert_eq!(is_there, [true, true, false, false, true]);
        let wide = Costly { first: 0.875, ..costly };
        assert_eq!(planes(Some(wide)), [0, 7]);
    }
}
