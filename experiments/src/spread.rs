//! The spread of several runs of the same thing.

use std::fmt;

/// The median of measured values, with the least and the greatest.
///
/// ```
/// use experiments::Spread;
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
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (&least, &most) = (values.first()?, values.last()?);
        let median = 0.5 * (values[(values.len() - 1) / 2] + values[values.len() / 2]);
        Some(Self { least, median, most })
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
        assert_eq!(one.to_string(), "3 (3 to 3)");
    }
}
