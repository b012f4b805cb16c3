//! The compute kernel of a task: 64 numbers, to each of which its square is added repeatedly.
//!
//! The numbers begin between -1 and 0, so they stay there, and the sum of the results is a finite number that shows
//! whether all iterations have been done. With AVX2 and FMA the numbers fit into sixteen registers; `c/metg.c` has the
//! same instructions, so that both programs do the same work in the same time.

use std::hint::black_box;

/// Number of numbers.
const NUMBERS: usize = 64;

/// The floating-point operations of a kernel: a multiplication and an addition for each number in an iteration, and the
/// sum at the end.
pub fn flops(iterations: u32) -> f64 {
    (2 * NUMBERS) as f64 * f64::from(iterations) + NUMBERS as f64
}

/// Runs this many iterations; returns the sum of the numbers.
pub(super) fn compute(iterations: u32) -> f64 {
    // Tasks alike must not become one that is computed once.
    let iterations = black_box(iterations);
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has both.
        return unsafe { fused::compute(iterations) };
    }
    plain(iterations)
}

const fn start(number: usize) -> f64 {
    -0.5 - number as f64 / 256.0
}

/// Without fused multiply-add instructions.
fn plain(iterations: u32) -> f64 {
    let mut numbers: [f64; NUMBERS] = std::array::from_fn(start);
    for _ in 0..iterations {
        for number in &mut numbers {
            *number += *number * *number;
        }
    }
    let mut half = NUMBERS;
    while half > 1 {
        half /= 2;
        for at in 0..half {
            numbers[at] += numbers[at + half];
        }
    }
    numbers[0]
}

#[cfg(target_arch = "x86_64")]
mod fused {
    use std::arch::x86_64::{
        __m256d, _mm_add_pd, _mm_cvtsd_f64, _mm_unpackhi_pd, _mm256_add_pd, _mm256_castpd256_pd128,
        _mm256_extractf128_pd, _mm256_fmadd_pd, _mm256_set_pd, _mm256_setzero_pd,
    };

    use super::{NUMBERS, start};

    /// As many registers as the processor has.
    const REGISTERS: usize = NUMBERS / 4;

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn compute(iterations: u32) -> f64 {
        let mut numbers: [__m256d; REGISTERS] = [_mm256_setzero_pd(); REGISTERS];
        for (at, four) in numbers.iter_mut().enumerate() {
            let [a, b, c, d] = [0, 1, 2, 3].map(|lane| start(4 * at + lane));
            *four = _mm256_set_pd(d, c, b, a);
        }
        for _ in 0..iterations {
            for four in &mut numbers {
                *four = _mm256_fmadd_pd(*four, *four, *four);
            }
        }
        let mut half = REGISTERS;
        while half > 1 {
            half /= 2;
            for at in 0..half {
                numbers[at] = _mm256_add_pd(numbers[at], numbers[at + half]);
            }
        }
        let two =
            _mm_add_pd(_mm256_castpd256_pd128(numbers[0]), _mm256_extractf128_pd::<1>(numbers[0]));
        _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_between_minus_one_and_zero_and_every_iteration_counts() {
        let sums: Vec<f64> = (0..50).map(compute).collect();
        assert_eq!(sums[0], (0..NUMBERS).map(start).sum::<f64>());
        assert!(sums.windows(2).all(|pair| -64.0 < pair[0] && pair[0] < pair[1] && pair[1] < 0.0));
    }

    #[test]
    fn one_rounding_instead_of_two_changes_little() {
        for iterations in [0, 1, 7, 1000] {
            let (fused, plain) = (compute(iterations), plain(iterations));
            assert!((fused / plain - 1.0).abs() < 1e-12, "{iterations}: {fused} {plain}");
        }
    }
}
