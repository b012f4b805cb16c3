//! The number of ranks of a grid along each dimension (MPI-4.1 sections 8.5.1 and 8.5.2).
//!
//! The numbers come from the program, so every product is checked: a grid with more places than ranks is refused
//! whatever its size.

use crate::{Count, Rank};
use vrt_slot::report::count;

/// Invalid dimensions of a grid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DimsError {
    /// There are no ranks to divide.
    #[error("{} cannot be divided among dimensions", count(*ranks, "rank"))]
    NoRanks {
        /// The number of ranks.
        ranks: Rank,
    },
    /// A dimension is too small.
    #[error("a dimension has {}: {least} and more are allowed", count(*dim, "rank"))]
    TooFew {
        /// Its number of ranks.
        dim: Count,
        /// The least allowed number.
        least: Count,
    },
    /// The given dimensions do not divide the number of ranks.
    #[error("{} cannot fill a grid of {dims:?}", count(*ranks, "rank"))]
    NotFilled {
        /// The number of ranks.
        ranks: Rank,
        /// The dimensions, 0 where one is to be chosen.
        dims: Vec<Count>,
    },
    /// The grid has more places than there are ranks.
    #[error("a grid of {dims:?} does not fit {}", count(*ranks, "rank"))]
    TooMany {
        /// The number of ranks.
        ranks: Rank,
        /// The dimensions.
        dims: Vec<Count>,
    },
}

fn expect_at_least(least: Count, dims: &[Count]) -> Result<(), DimsError> {
    match dims.iter().find(|dim| **dim < least) {
        Some(dim) => Err(DimsError::TooFew { dim: *dim, least }),
        None => Ok(()),
    }
}

/// Divides ranks among the dimensions that are 0, as evenly as possible and the largest first (`MPI_Dims_create`): the
/// difference between the largest and the smallest is minimal, and among such divisions the one with the largest
/// smallest dimension is chosen. The other dimensions are given and unchanged.
///
/// # Errors
/// There are no ranks, a dimension is negative, or the given ones do not divide the number of ranks.
pub fn fill(ranks: Rank, dims: &mut [Count]) -> Result<(), DimsError> {
    if ranks <= 0 {
        return Err(DimsError::NoRanks { ranks });
    }
    expect_at_least(0, dims)?;
    let open = dims.iter().filter(|dim| **dim == 0).count();
    // What is left for the open dimensions; a product that is more than all ranks divides nothing.
    let left = dims.iter().filter(|dim| **dim > 0).try_fold(ranks, |left, dim| {
        (left.checked_rem(*dim) == Some(0)).then(|| left.checked_div(*dim)).flatten()
    });
    let left = match left {
        Some(left) if open > 0 || left == 1 => left,
        _ => return Err(DimsError::NotFilled { ranks, dims: dims.to_vec() }),
    };
    let mut chosen = balanced(left, open).into_iter();
    for dim in dims.iter_mut().filter(|dim| **dim == 0) {
        *dim = chosen.next().unwrap_or(1);
    }
    Ok(())
}

/// The number of places of a grid in which each dimension has at least `least` ranks.
///
/// # Errors
/// A dimension is smaller, or there are more places than ranks.
pub fn places(dims: &[Count], least: Count, ranks: Rank) -> Result<Rank, DimsError> {
    expect_at_least(least, dims)?;
    if dims.contains(&0) {
        return Ok(0);
    }
    match dims.iter().try_fold(1, |all: Rank, dim| all.checked_mul(*dim)) {
        Some(places) if places <= ranks => Ok(places),
        _ => Err(DimsError::TooMany { ranks, dims: dims.to_vec() }),
    }
}

/// The factors of a number, the largest first, at most `n` of them: missing ones are 1.
#[cfg_attr(
    not(test),
    expect(clippy::arithmetic_side_effects, reason = "the divisors of a positive number")
)]
fn balanced(number: Count, n: usize) -> Vec<Count> {
    // No number has more factors than bits.
    let n = n.min(Count::BITS as usize);
    let divisors: Vec<Count> = {
        let roots = (1..=number.isqrt()).filter(|small| number % small == 0);
        let mut all: Vec<Count> = roots.flat_map(|small| [small, number / small]).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let mut search = Balance { divisors, chosen: Vec::new(), best: vec![1; n] };
    if let Some(first) = search.best.first_mut() {
        *first = number;
    }
    if n > 1 {
        search.choose(number, n, number);
    }
    search.best
}

/// A search for factors.
struct Balance {
    divisors: Vec<Count>,
    chosen: Vec<Count>,
    best: Vec<Count>,
}

impl Balance {
    /// How far the largest and the smallest differ.
    #[cfg_attr(not(test), expect(clippy::arithmetic_side_effects, reason = "factors are positive"))]
    fn spread(factors: &[Count]) -> Count {
        factors.first().zip(factors.last()).map_or(0, |(first, last)| first - last)
    }

    fn is_better(&self) -> bool {
        let spreads = (Balance::spread(&self.chosen), Balance::spread(&self.best));
        let smallest_first = self.chosen.iter().rev().gt(self.best.iter().rev());
        spreads.0 < spreads.1 || (spreads.0 == spreads.1 && smallest_first)
    }

    /// Chooses `n` more factors of what is left, none of them above `most`.
    #[cfg_attr(not(test), expect(clippy::arithmetic_side_effects, reason = "factors are positive"))]
    fn choose(&mut self, rest: Count, n: usize, most: Count) {
        if n == 0 {
            if rest == 1 && self.is_better() {
                self.best.clone_from(&self.chosen);
            }
            return;
        }
        // Of what is left, the smallest factor is at most the mean, the largest at least.
        let mean = f64::from(rest).powf(1.0 / n as f64);
        for at in 0..self.divisors.len() {
            let factor = self.divisors[at];
            let largest = self.chosen.first().copied().unwrap_or(factor);
            let least_spread = f64::from(largest) - mean.min(f64::from(factor)) - 0.5;
            let best = f64::from(Balance::spread(&self.best));
            if factor > most || (self.chosen.is_empty() && least_spread > best) {
                break;
            }
            if f64::from(factor) < mean - 0.5 || rest % factor != 0 || least_spread > best {
                continue;
            }
            self.chosen.push(factor);
            self.choose(rest / factor, n - 1, factor);
            self.chosen.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(ranks: Rank, given: &[Count]) -> Result<Vec<Count>, DimsError> {
        let mut dims = given.to_vec();
        fill(ranks, &mut dims).map(|()| dims)
    }

    #[test]
    fn ranks_are_divided_as_equally_as_can_be() {
        for (ranks, given, wanted) in [
            (12, vec![0, 0], vec![4, 3]),
            (64, vec![0; 3], vec![4, 4, 4]),
            (6, vec![0; 3], vec![3, 2, 1]),
            (7, vec![0, 0], vec![7, 1]),
            (1, vec![0, 0], vec![1, 1]),
            (36, vec![0; 3], vec![4, 3, 3]),
            (6, vec![0, 3, 0], vec![2, 3, 1]),
            (360, vec![0; 3], vec![10, 6, 6]),
            (720, vec![0; 3], vec![10, 9, 8]),
            (5040, vec![0; 3], vec![21, 16, 15]),
            (6, vec![2, 3], vec![2, 3]),
            (1, vec![], vec![]),
            (Rank::MAX, vec![0; 3], vec![Rank::MAX, 1, 1]),
            (1 << 30, vec![0; 40], [vec![2; 30], vec![1; 10]].concat()),
        ] {
            assert_eq!(filled(ranks, &given), Ok(wanted), "{ranks} ranks in {given:?}");
        }
    }

    #[test]
    fn the_search_ends_for_numbers_of_many_divisors() {
        for ranks in [2_095_133_040, 1_745_944_200, 2_147_483_646, 1 << 30] {
            for n in 1..=10 {
                let dims = filled(ranks, &vec![0; n]).unwrap();
                assert!(dims.is_sorted_by(|a, b| a >= b), "{dims:?}");
                assert_eq!(dims.iter().map(|dim| i64::from(*dim)).product::<i64>(), ranks.into());
            }
        }
    }

    #[test]
    fn dimensions_that_do_not_divide_are_refused() {
        let not_filled = |ranks, dims: &[Count]| {
            assert_eq!(
                filled(ranks, dims),
                Err(DimsError::NotFilled { ranks, dims: dims.to_vec() })
            );
        };
        not_filled(7, &[0, 3, 0]);
        not_filled(6, &[2, 2]);
        not_filled(6, &[3, 0, 3]);
        // The product of these is 2^64, 2^32, and 0 and 2^31 where it wraps.
        not_filled(4, &[65536, 65536, 65536, 65536, 0]);
        not_filled(4, &[65536, 65536, 0]);
        not_filled(Rank::MAX, &[Count::MAX, Count::MAX, 0]);
        let error = filled(7, &[0, 3]).unwrap_err();
        assert_eq!(error.to_string(), "7 ranks cannot fill a grid of [0, 3]");
        assert_eq!(filled(Rank::MIN, &[0]), Err(DimsError::NoRanks { ranks: Rank::MIN }));
        assert_eq!(
            filled(4, &[0, Count::MIN]),
            Err(DimsError::TooFew { dim: Count::MIN, least: 0 })
        );
    }

    #[test]
    fn grids_have_no_more_places_than_ranks() {
        assert_eq!(places(&[2, 3], 1, 6), Ok(6));
        assert_eq!(places(&[], 1, 6), Ok(1));
        assert_eq!(places(&[Count::MAX, Count::MAX, 0], 0, 6), Ok(0));
        for dims in [vec![2, 4], vec![65536, 65536], vec![Count::MAX; 3], vec![65536; 4]] {
            assert_eq!(places(&dims, 1, 6), Err(DimsError::TooMany { ranks: 6, dims }));
        }
        assert_eq!(places(&[3, 0], 1, 6), Err(DimsError::TooFew { dim: 0, least: 1 }));
    }
}
