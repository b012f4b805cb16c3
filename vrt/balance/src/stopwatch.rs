//! How long a thread has worked, without the time in which another program had its core.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Measures the calling thread's running time from now on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    began: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { began: run_time() }
    }

    /// To be called on the thread that has started it. Cost: about 0.2 us.
    pub(crate) fn elapsed(self) -> Duration {
        run_time().saturating_sub(self.began)
    }
}

/// The running time of the calling thread since it began.
fn run_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_thread_that_sleeps_does_not_work() {
        let (stopwatch, began) = (Stopwatch::start(), Instant::now());
        std::thread::sleep(Duration::from_millis(50));
        assert!(stopwatch.elapsed() < began.elapsed() / 2);
        let before = stopwatch.elapsed();
        while stopwatch.elapsed() < before + Duration::from_millis(2) {
            std::hint::spin_loop();
        }
        assert!(began.elapsed() >= Duration::from_millis(52));
    }
}
