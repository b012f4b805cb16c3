//! Converts cycle counters of PEs to nanoseconds on a common time line.
//!
//! PEs of one machine have the same counter: its time is a straight line from the first block of any of them to the
//! last. Clocks of different machines differ, and run at different speeds; they are corrected by the messages between
//! the machines, none of which can arrive before it was sent. For two machines that send in both directions, the
//! fastest messages of each direction, one pair of them early in the job and one late, show how much the clocks
//! differed then: half of the difference of the apparent travel times (the offset of NTP, RFC 5905 section 8, with the
//! messages of the job as its packets).

use std::collections::BTreeMap;

/// Converts a machine's counter to time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Clock {
    /// A stamp, and the nanoseconds that belong to it.
    stamp: u64,
    nanoseconds: u64,
    /// Nanoseconds per cycle.
    pub(crate) cycle: f64,
}

impl Clock {
    /// Of a machine, from pairs of a stamp and nanoseconds since 1970. `None` if these do not increase.
    pub(crate) fn of(pairs: impl IntoIterator<Item = (u64, u64)>) -> Option<Clock> {
        let mut pairs = pairs.into_iter();
        let first = pairs.next()?;
        let (first, last) = pairs.fold((first, first), |(first, last), pair| {
            (if pair.0 < first.0 { pair } else { first }, if pair.0 > last.0 { pair } else { last })
        });
        let (cycles, time) = (last.0 - first.0, last.1.checked_sub(first.1)?);
        (cycles > 0 && time > 0).then(|| Clock {
            stamp: first.0,
            nanoseconds: first.1,
            cycle: time as f64 / cycles as f64,
        })
    }

    /// Nanoseconds since 1970 minus `zero`.
    pub(crate) fn time(&self, stamp: u64, zero: u64) -> i64 {
        let cycles = stamp.wrapping_sub(self.stamp) as i64;
        let since = (cycles as f64 * self.cycle).round() as i64;
        self.nanoseconds.wrapping_sub(zero) as i64 + since
    }
}

/// A message between machines: when it was sent and when it was matched, each by its own machine's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) sent: i64,
    pub(crate) matched: i64,
}

/// What is added to the times of a machine: given at two times, and interpolated and extrapolated linearly.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Correction {
    early: (i64, f64),
    late: (i64, f64),
}

impl Correction {
    pub(crate) fn apply(&self, time: i64) -> i64 {
        let ((early, first), (late, last)) = (self.early, self.late);
        let part = if late > early { (time - early) as f64 / (late - early) as f64 } else { 0.0 };
        time + (first + part * (last - first)).round() as i64
    }
}

/// The corrections of machines to the clock of the first one. Machines that exchange no messages with already corrected
/// machines keep their clocks.
pub(crate) fn corrections(machines: usize, crossings: &[Crossing]) -> Vec<Correction> {
    let mut known: Vec<Option<Correction>> = vec![None; machines];
    if let Some(first) = known.first_mut() {
        *first = Some(Correction::default());
    }
    let mut between: BTreeMap<(usize, usize), Vec<(i64, i64)>> = BTreeMap::new();
    for Crossing { from, to, sent, matched } in crossings.iter().copied() {
        between.entry((from, to)).or_default().push((sent, matched));
    }
    loop {
        let next = between.iter().find_map(|(&(a, b), there)| {
            let back = between.get(&(b, a))?;
            let base = known[a]?;
            known[b].is_none().then(|| (b, offset(&base, there, back)))
        });
        match next {
            Some((machine, correction)) => known[machine] = Some(correction),
            None => break,
        }
    }
    known.into_iter().map(Option::unwrap_or_default).collect()
}

/// What is added to the clock of `b`, from messages `there`, from `a` to `b`, and `back`. Times of `a` are corrected by
/// `base`.
fn offset(base: &Correction, there: &[(i64, i64)], back: &[(i64, i64)]) -> Correction {
    let sent = || there.iter().map(|it| it.1).chain(back.iter().map(|it| it.0));
    let (begin, end) = (sent().min().unwrap_or(0), sent().max().unwrap_or(0));
    let middle = begin + (end - begin) / 2;
    let half = |is_early: bool| {
        let mine = |time: i64| (time <= middle) == is_early;
        let out = there
            .iter()
            .filter(|(_, matched)| mine(*matched))
            .map(|(sent, matched)| (matched - base.apply(*sent), *matched))
            .min()?;
        let home = back
            .iter()
            .filter(|(sent, _)| mine(*sent))
            .map(|(sent, matched)| (base.apply(*matched) - sent, *sent))
            .min()?;
        Some(((out.1 + home.1) / 2, (home.0 - out.0) as f64 / 2.0))
    };
    match (half(true), half(false)) {
        (Some(early), Some(late)) => Correction { early, late },
        (Some(only), None) | (None, Some(only)) => Correction { early: only, late: only },
        (None, None) => Correction::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_becomes_time() {
        let clock = Clock::of([(3000, 5_000), (1000, 4_000), (5000, 6_000)]).unwrap_or_else(|| {
            panic!("no clock");
        });
        assert_eq!(clock.time(3000, 4_000), 1_000);
        assert_eq!(clock.time(0, 4_000), -500);
        assert_eq!(Clock::of([(7, 7)]), None);
    }

    /// Machine 1 is ahead by 1 ms at the beginning and by 3 ms after ten seconds.
    #[test]
    fn machines_whose_clocks_drift_are_brought_together() {
        let ahead = |time: i64| 1_000_000 + time / 5_000;
        let mut crossings = Vec::new();
        for step in 0..=1000 {
            let now = step * 10_000_000;
            // Queues make most messages slow: the quickest of each way take 5 us.
            let slow = (step * 7919 % 13) * 20_000;
            let there = now + 5_000 + slow;
            crossings.push(Crossing { from: 0, to: 1, sent: now, matched: there + ahead(there) });
            let back = now + 5_000 + (step * 31 % 11) * 9_000;
            crossings.push(Crossing { from: 1, to: 0, sent: now + ahead(now), matched: back });
        }
        let corrections = corrections(3, &crossings);
        for now in [0, 2_000_000_000, 9_999_000_000] {
            let off = corrections[1].apply(now + ahead(now)) - now;
            assert!(off.abs() < 20_000, "{now}: {off} ns");
        }
        assert_eq!(corrections[2].apply(77), 77, "nobody has heard of it");
    }
}
