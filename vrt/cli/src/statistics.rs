//! Statistics of repeated measurements: medians and spreads, and ratios of runs that alternated.
//!
//! Other load on a machine affects runs that follow each other alike: two programs are compared by the ratios of such
//! pairs, not by the ratio of two medians.

use std::fmt;

/// The median of measured values, with the least and the greatest.
///
/// ```
/// use vrt_cli::statistics::Spread;
///
/// let rates = Spread::of([98.0, 102.0, 70.0]).expect("there are some");
/// assert_eq!((rates.least, rates.median, rates.most), (70.0, 98.0, 102.0));
/// assert_eq!(format!("{rates:.1}"), "98.0 (70.0 to 102.0)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The least value.
    pub least: f64,
    /// The median; of an even number, the mean of the two in the middle.
    pub median: f64,
    /// The greatest value.
    pub most: f64,
}

impl Spread {
    /// The spread of these values; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values = sorted(values);
        let (&least, &most) = (values.first()?, values.last()?);
        Some(Self { least, median: quantile_of_sorted(&values, 0.5), most })
    }

    /// The spread of the values that a growing function makes of these, such as another unit.
    #[must_use]
    pub fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self { least: of(self.least), median: of(self.median), most: of(self.most) }
    }
}

impl fmt::Display for Spread {
    /// The median, with the other two in brackets, with the requested number of decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { least, median, most } = *self;
        match f.precision() {
            Some(n) => write!(f, "{median:.n$} ({least:.n$} to {most:.n$})"),
            None => write!(f, "{median} ({least} to {most})"),
        }
    }
}

/// The median of some numbers; not a number if there are none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    Spread::of(values.iter().copied()).map_or(f64::NAN, |it| it.median)
}

/// The approximate standard error of the median of some numbers, if they are normally distributed except for a few
/// outliers, computed from their median deviation. Infinite for fewer than four.
#[must_use]
pub fn error_of_median(values: &[f64]) -> f64 {
    /// Standard deviations per median deviation, and standard errors of the mean per standard error of the median.
    const SCALE: f64 = 1.4826 * 1.2533;
    if values.len() < 4 {
        return f64::INFINITY;
    }
    let middle = median(values);
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    SCALE * median(&deviations) / (values.len() as f64).sqrt()
}

/// Half of the interquartile range of some numbers, as a part of their median; 0 if there are none.
#[must_use]
pub fn relative_spread(values: &[f64]) -> f64 {
    let values = sorted(values.iter().copied());
    if values.is_empty() {
        return 0.0;
    }
    let at = |part| quantile_of_sorted(&values, part);
    (at(0.75) - at(0.25)) / 2.0 / at(0.5)
}

/// The ratios of the pairs of two series of runs, the first by the second.
#[must_use]
pub fn ratios(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| of / to).collect()
}

/// The median of the pairs' [`ratios`]; `None` if there are no pairs.
#[must_use]
pub fn ratio(of: &[f64], to: &[f64]) -> Option<f64> {
    Spread::of(ratios(of, to)).map(|it| it.median)
}

fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The value below which this part of some sorted numbers lies, by interpolation.
fn quantile_of_sorted(values: &[f64], part: f64) -> f64 {
    let place = part * (values.len() - 1) as f64;
    let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
    if low == high { low } else { low + (high - low) * place.fract() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_lies_in_the_middle() {
        assert_eq!(Spread::of([]), None);
        let one = Spread { least: 3.0, median: 3.0, most: 3.0 };
        assert_eq!(Spread::of([3.0]), Some(one));
        let four = Spread { least: 1.0, median: 3.0, most: 9.0 };
        assert_eq!(Spread::of([9.0, 2.0, 1.0, 4.0]), Some(four));
        assert_eq!(four.map(|it| 2.0 * it), Spread { least: 2.0, median: 6.0, most: 18.0 });
        assert_eq!(one.to_string(), "3 (3 to 3)");
        assert_eq!((median(&[9.0, 1.0, 2.0]), median(&[9.0, 1.0, 2.0, 4.0])), (2.0, 3.0));
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_median_is_known_the_better_the_less_values_differ() {
        assert_eq!(error_of_median(&[1.0, 2.0, 3.0]), f64::INFINITY);
        assert_eq!(error_of_median(&[2.0; 5]), 0.0);
        let error = error_of_median(&[9.0, 10.0, 11.0, 50.0]);
        assert!((0.9..1.0).contains(&error), "{error}");
        assert!(error_of_median(&[[9.0, 10.0, 11.0, 50.0]; 4].concat()) < 0.6 * error);
        assert_eq!(relative_spread(&[]), 0.0);
        assert_eq!(relative_spread(&[1.0, 3.0, 2.0, 4.0, 5.0]), 1.0 / 3.0);
    }

    #[test]
    fn ratios_are_of_runs_that_followed_each_other() {
        assert_eq!(ratios(&[1.0, 4.0, 9.0], &[1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]);
        assert_eq!(ratio(&[1.0, 10.0, 3.0], &[2.0, 10.0, 1.0]), Some(1.0));
        assert_eq!(ratio(&[1.0], &[]), None);
    }
}
