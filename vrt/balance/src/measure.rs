//! A PE's measurements of itself between two balancing steps: how much of its time ranks ran, how much it was idle, and
//! how much of its core it got.
//!
//! The *share* is the part of the time in which the PE was ready to run that it did run; the rest went to other
//! programs on its core. The kernel accounts for both (`/proc/thread-self/schedstat`). Ranks are timed by wall-clock
//! time, so a rank that ran a second on half a core has a load of half a second, and the PE a speed of a half: work
//! goes elsewhere until the other program has finished.
//!
//! The *speed* is measured by a fixed loop when the PE begins, for machines whose cores differ.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use vrt_core::migrate::Costs;

/// The kernel accounts in ticks of a few milliseconds: a shorter time does not determine the share.
const SHORTEST: Duration = Duration::from_millis(50);
/// Seconds that a PE must have been ready to run for its share to be meaningful.
const LEAST_READY: f64 = 0.01;
/// Iterations of the loop that is timed for the speed: about 100 us.
const LOOP: u64 = 100_000;

/// What a PE has done since the last report. Times are seconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PeLoad {
    /// Time since the last report.
    pub seconds: f64,
    /// Of that: in ranks, including the switches to them.
    pub busy: f64,
    /// Of that: asleep or polling.
    pub idle: f64,
    /// Of both: in the transport to other nodes.
    pub remote: f64,
    /// Part of the core that the PE got when it was ready to run.
    pub share: f64,
    /// Mean time that it waited each time that another program had its core.
    pub slice: f64,
    /// How often ranks stopped running.
    pub switches: u64,
    /// Iterations of the loop per second.
    pub(crate) speed: f64,
    /// The cost of moving ranks here.
    pub(crate) moving: Moving,
}

/// The cost of moving ranks.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Moving {
    /// Ranks packed here, and seconds for that, whatever their size.
    pub ranks: u64,
    pub seconds: f64,
    /// Bytes copied from or to here, and seconds for that.
    pub bytes: u64,
    pub(crate) copying: f64,
}

impl Moving {
    fn between(before: Costs, now: Costs) -> Moving {
        Moving {
            ranks: now.ranks - before.ranks,
            seconds: now.packing - before.packing,
            bytes: now.bytes - before.bytes,
            copying: now.copying - before.copying,
        }
    }

    pub(crate) fn add(&mut self, other: &Moving) {
        self.ranks += other.ranks;
        self.seconds += other.seconds;
        self.bytes += other.bytes;
        self.copying += other.copying;
    }
}

/// Cycle counters of a PE.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cycles {
    /// In ranks, including the switches to them.
    pub busy: u64,
    pub idle: u64,
    /// In the transport to other nodes.
    pub remote: u64,
}

/// Measures a PE.
#[derive(Debug)]
pub(crate) struct Meter {
    account: Option<File>,
    last: Instant,
    /// Their values at the last report.
    cycles: Cycles,
    switches: u64,
    /// When the account was last read, and its values.
    read: (Instant, Account),
    share: f64,
    slice: f64,
    speed: f64,
    /// The costs of moving ranks here, at the last report.
    costs: Costs,
}

impl Meter {
    /// For the calling thread.
    pub(crate) fn new() -> Meter {
        let account = File::open("/proc/thread-self/schedstat").ok();
        let now = Instant::now();
        let first = account.as_ref().and_then(read).unwrap_or_default();
        Meter {
            account,
            last: now,
            cycles: Cycles::default(),
            switches: 0,
            read: (now, first),
            share: 1.0,
            slice: 0.0,
            speed: speed(),
            costs: Costs::default(),
        }
    }

    /// What the PE has done since the last step; `switches` counts how often ranks stopped, `costs` are those of moving
    /// ranks.
    pub(crate) fn report(
        &mut self,
        cycles: Cycles,
        switches: u64,
        costs: Costs,
        cycles_per_second: f64,
    ) -> PeLoad {
        let now = Instant::now();
        let seconds = now.duration_since(self.last).as_secs_f64();
        let since = |counter: u64, last: u64| counter.wrapping_sub(last) as f64 / cycles_per_second;
        PeLoad {
            seconds,
            busy: since(cycles.busy, self.cycles.busy),
            idle: since(cycles.idle, self.cycles.idle),
            remote: since(cycles.remote, self.cycles.remote),
            share: self.look_at_share(now),
            slice: self.slice,
            switches: switches.wrapping_sub(self.switches),
            speed: self.speed,
            moving: Moving::between(self.costs, costs),
        }
    }

    /// A step has been decided from the report: the next report covers the time from now on.
    pub(crate) fn begin(&mut self, cycles: Cycles, switches: u64, costs: Costs) {
        self.last = Instant::now();
        self.cycles = cycles;
        self.switches = switches;
        self.costs = costs;
    }

    fn look_at_share(&mut self, now: Instant) -> f64 {
        if now.duration_since(self.read.0) < SHORTEST {
            return self.share;
        }
        let Some(account) = self.account.as_ref().and_then(read) else { return self.share };
        let before = self.read.1;
        self.read = (now, account);
        let ran = account.ran.saturating_sub(before.ran) as f64 * 1e-9;
        let waited = account.waited.saturating_sub(before.waited) as f64 * 1e-9;
        let slices = account.slices.saturating_sub(before.slices).max(1);
        self.slice = waited / slices as f64;
        // When it hardly ran, what was known is slowly forgotten.
        let ready = ran + waited >= LEAST_READY;
        let now = if ready { (ran / (ran + waited)).clamp(0.01, 1.0) } else { 1.0 };
        // Other programs come in bursts; ranks shall not run after each.
        self.share = f64::midpoint(self.share, now);
        self.share
    }
}

/// The kernel's account of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Nanoseconds that it has run, and has waited for its core.
    ran: u64,
    waited: u64,
    /// How often it has got the core.
    slices: u64,
}

/// The kernel's account of the calling thread.
fn read(account: &File) -> Option<Account> {
    let mut text = [0u8; 96];
    let len = account.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..len]).ok()?;
    let mut words = text.split_ascii_whitespace();
    let mut number = || words.next()?.parse().ok();
    Some(Account { ran: number()?, waited: number()?, slices: number()? })
}

/// Iterations of a fixed loop per second: the best of several tries, so that interruptions do not count.
fn speed() -> f64 {
    let once = || {
        let began = Instant::now();
        let mut x = black_box(1u64);
        for _ in 0..LOOP {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
        black_box(x);
        LOOP as f64 / began.elapsed().as_secs_f64().max(1e-9)
    };
    (0..5).map(|_| once()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PE waits three quarters of the time because another program uses its core, and is alone again afterwards.
    #[test]
    fn a_share_follows_what_the_kernel_says_by_halves() {
        let path = std::env::temp_dir().join(format!("vrt-schedstat-{}", std::process::id()));
        let says = |ran: u64, waited: u64| {
            std::fs::write(&path, format!("{ran} {waited} 7\n")).unwrap();
        };
        says(1_000_000_000, 500_000_000);
        let account = File::open(&path).unwrap();
        let begin = Instant::now();
        let read_at_first = read(&account).unwrap();
        let mut meter =
            Meter { account: Some(account), read: (begin, read_at_first), ..Meter::new() };
        for (looks_after, ran, waited, share) in [
            (0, 2_000_000_000, 3_500_000_000, 1.0),
            (2, 2_000_000_000, 3_500_000_000, (1.0 + 0.25) / 2.0),
            (4, 3_000_000_000, 6_500_000_000, (0.625 + 0.25) / 2.0),
            // It hardly ran, as if it were alone; then it was.
            (6, 3_000_000_001, 6_500_000_001, (0.4375 + 1.0) / 2.0),
            (8, 4_000_000_001, 6_500_000_001, (0.71875 + 1.0) / 2.0),
        ] {
            says(ran, waited);
            let got = meter.look_at_share(begin + looks_after * SHORTEST);
            assert!((got - share).abs() < 1e-9, "{got} after {looks_after}, not {share}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_thread_that_runs_is_accounted_for() {
        let mut meter = Meter::new();
        let began = Instant::now();
        while began.elapsed() < SHORTEST * 2 {
            black_box(speed());
        }
        let costs = |ranks| Costs { ranks, bytes: 100 * ranks, ..Costs::default() };
        let cycles = |busy, remote| Cycles { busy, idle: 1_000, remote };
        let load = meter.report(cycles(2_000, 0), 7, costs(1), 1e6);
        assert!(load.seconds >= 0.1 && load.speed > 0.0, "{load:?}");
        assert_eq!((load.busy, load.idle), (0.002, 0.001));
        assert!(load.share > 0.0 && load.share <= 1.0, "{load:?}");
        meter.begin(cycles(2_000, 0), 7, costs(1));
        let load = meter.report(cycles(2_500, 40), 9, costs(3), 1e6);
        assert_eq!((load.busy, load.idle, load.switches), (0.0005, 0.0, 2));
        assert_eq!((load.moving.ranks, load.moving.bytes), (2, 200));
        assert!((load.remote - 4e-5).abs() < 1e-12, "{load:?}");
    }
}
