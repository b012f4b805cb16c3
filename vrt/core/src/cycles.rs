//! The cycle counter by which PEs measure time: reading it takes a few nanoseconds, reading a clock
//! takes tens.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The time stamp counter.
#[inline(always)]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86_64 has the instruction, and Linux lets programs use it.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: Linux lets programs read the virtual counter.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
}

/// Cycles from one stamp to another, none if an estimated one lies behind it.
#[inline(always)]
pub(crate) fn cycles_between(from: u64, to: u64) -> u64 {
    (to.wrapping_sub(from) as i64).max(0) as u64
}

/// How long it is measured: clocks tell times to some 50 ns.
const SHORT: Duration = Duration::from_micros(20);

/// How fast the cycle counter runs, as measured once for a short time.
pub(crate) fn cycles_per_second() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let once = || {
            let (began, cycles) = (Instant::now(), now());
            while began.elapsed() < SHORT {
                std::hint::spin_loop();
            }
            let cycles = now().wrapping_sub(cycles);
            cycles as f64 / began.elapsed().as_secs_f64()
        };
        // The thread may have lost its core between two looks at clocks.
        let mut rates = [once(), once(), once(), once(), once()];
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cycle_counter_is_measured() {
        let known = cycles_per_second();
        let (began, cycles) = (Instant::now(), now());
        std::thread::sleep(Duration::from_millis(200));
        let cycles = now().wrapping_sub(cycles);
        let rate = cycles as f64 / began.elapsed().as_secs_f64();
        assert!((known / rate - 1.0).abs() < 0.05, "{known} cycles a second are taken for {rate}");
    }
}
