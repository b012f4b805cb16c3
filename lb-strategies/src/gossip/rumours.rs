//! Rumours: which PEs have heard of which PEs below the mean.
//!
//! PEs are divided into parts; in each round threads go through the parts, first as senders, then as receivers. Each
//! sending part draws from its own random stream. What is sent in a round is what was known before it: a receiving part
//! reads the previous knowledge of all, and writes the next knowledge of its own PEs. So it does not matter which
//! thread processes which part when. The division into parts depends only on the number of PEs.
//!
//! The names known to the PEs of a part are stored contiguously: most of the time is spent reading them, in random
//! order.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{Job, stream};
use crate::{parallel, random::generator};

/// Which PEs have heard of which.
pub(super) struct Rumours {
    pes: usize,
    /// All parts except the last have two to this power PEs.
    bits: u32,
    known: Vec<Names>,
    /// The knowledge after this round.
    next: Vec<Names>,
    tellers: Vec<Teller>,
    /// For each PE, whether it has learnt something in the last round.
    has_news: Vec<bool>,
    /// For each PE, whether it knows as many names as it can remember, or all.
    is_full: Vec<bool>,
    /// Number of names.
    count: usize,
}

/// For each PE of a part, the PEs below the mean that it has heard of.
#[derive(Clone, Default)]
struct Names {
    names: Vec<u32>,
    /// The end of each PE's names, where those of the next begin.
    ends: Vec<u32>,
}

impl Names {
    fn of(&self, pe: usize) -> &[u32] {
        let begin = if pe == 0 { 0 } else { self.ends[pe - 1] };
        &self.names[begin as usize..self.ends[pe] as usize]
    }
}

/// What the PEs of a part send.
struct Teller {
    lots: ChaCha8Rng,
    /// For each receiving part, what is sent to it.
    told: Vec<Vec<Told>>,
}

/// PE `to` receives all that `from` knows, beginning at the fraction `begin` of 2^32.
#[derive(Clone, Copy, Default)]
struct Told {
    to: u32,
    from: u32,
    begin: u32,
}

/// Parts have at least two to this power PEs.
const LEAST_BITS: u32 = 10;
/// The approximate number of parts is at most this.
const PARTS: usize = 64;

impl Rumours {
    pub(super) fn new(job: &Job, trial: usize) -> Self {
        let pes = job.speeds.len();
        let bits = pes.div_ceil(PARTS).next_power_of_two().ilog2().max(LEAST_BITS);
        // All names of a part can be counted in 32 bits.
        let bits = bits.min(31 - job.knowledge.min(pes).ilog2());
        let parts = pes.div_ceil(1 << bits);
        let teller = |number| Teller {
            lots: generator(job.seed, stream(trial, number + 1)),
            told: vec![vec![]; parts],
        };
        Self {
            pes,
            bits,
            known: vec![Names::default(); parts],
            next: vec![Names::default(); parts],
            tellers: (0..parts).map(teller).collect(),
            has_news: vec![false; pes],
            is_full: vec![false; pes],
            count: 0,
        }
    }

    /// The PEs that `pe` has heard of.
    pub(super) fn of(&self, pe: usize) -> &[u32] {
        self.known[pe >> self.bits].of(pe & ((1 << self.bits) - 1))
    }

    /// Starts from scratch, and sends for the number of rounds in `job`.
    pub(super) fn spread(&mut self, job: &Job, loads: &[f64], threads: usize) {
        self.count = loads.iter().filter(|&&load| load < job.mean).count();
        for (pe, &load) in loads.iter().enumerate() {
            self.has_news[pe] = load < job.mean;
            self.is_full[pe] = self.has_news[pe] && job.memory(load).min(self.count) == 1;
        }
        let parts = self.has_news.chunks(1 << self.bits).zip(&mut self.known);
        for (number, (is_known, known)) in parts.enumerate() {
            known.names.clear();
            known.ends.clear();
            for (is_known, pe) in is_known.iter().zip((number << self.bits) as u32..) {
                known.names.extend(is_known.then_some(pe));
                known.ends.push(known.names.len() as u32);
            }
        }
        for _ in 0..job.rounds {
            self.tell(job, threads);
            if self.tellers.iter().flat_map(|it| &it.told).all(Vec::is_empty) {
                break;
            }
            self.hear(job, loads, threads);
        }
    }

    /// PEs with news draw the receivers; PEs that are full do not listen.
    fn tell(&mut self, job: &Job, threads: usize) {
        let Self { pes, bits, ref is_full, .. } = *self;
        let news = self.has_news.chunks(1 << bits).zip(&mut self.tellers);
        parallel::each(threads, news.enumerate(), |(number, (has_news, teller))| {
            teller.told.iter_mut().for_each(Vec::clear);
            let first = (number << bits) as u32;
            for from in has_news.iter().zip(first..).filter(|it| *it.0).map(|it| it.1) {
                for _ in 0..job.fanout.min(pes) {
                    let lot: u64 = teller.lots.random();
                    let to = (((lot >> 32) * pes as u64) >> 32) as u32;
                    if to != from && !is_full[to as usize] {
                        let told = Told { to, from, begin: lot as u32 };
                        teller.told[to as usize >> bits].push(told);
                    }
                }
            }
        });
    }

    /// Receivers remember new names, as far as they have room.
    fn hear(&mut self, job: &Job, loads: &[f64], threads: usize) {
        let Self { bits, count, ref known, ref tellers, .. } = *self;
        let names_of = |pe: u32| known[pe as usize >> bits].of(pe as usize & ((1 << bits) - 1));
        let news = self.has_news.chunks_mut(1 << bits).zip(self.is_full.chunks_mut(1 << bits));
        let parts = news.zip(&mut self.next).enumerate();
        parallel::each(threads, parts, |(number, ((has_news, is_full), next))| {
            let first = number << bits;
            let told = Heard::new(tellers.iter().map(|it| &*it.told[number]), first, is_full.len());
            let mut rumours = vec![];
            next.names.clear();
            next.ends.clear();
            for pe in 0..is_full.len() {
                // They are far apart in memory: all are asked for before the first is looked at.
                rumours.clear();
                rumours.extend(told.by(pe).iter().map(|told| {
                    let names = names_of(told.from);
                    // From anywhere on, so that not all that have little room hear the same.
                    let begin = ((u64::from(told.begin) * names.len() as u64) >> 32) as usize;
                    (names[begin], begin, names)
                }));
                let before = known[number].of(pe);
                let memory = job.memory(loads[first + pe]).min(count);
                let begin = next.names.len();
                next.names.extend(before);
                'full: for &(name, begins, rumour) in &rumours {
                    let (back, front) = rumour.split_at(begins);
                    for name in [name].iter().chain(&front[1..]).chain(back) {
                        if next.names.len() - begin == memory {
                            break 'full;
                        }
                        if !next.names[begin..].contains(name) {
                            next.names.push(*name);
                        }
                    }
                }
                let known = next.names.len() - begin;
                has_news[pe] = known > before.len();
                is_full[pe] = known == memory;
                next.ends.push(next.names.len() as u32);
            }
        });
        std::mem::swap(&mut self.known, &mut self.next);
    }
}

/// What is sent to the PEs of a part, by PE.
struct Heard {
    told: Vec<Told>,
    /// For each PE, the end of what is sent to it, where that of the next begins.
    ends: Vec<u32>,
}

impl Heard {
    /// For `count` PEs from `first` on.
    fn new<'a>(told: impl Iterator<Item = &'a [Told]> + Clone, first: usize, count: usize) -> Self {
        let mut ends = vec![0_u32; count];
        for it in told.clone().flatten() {
            ends[it.to as usize - first] += 1;
        }
        let mut begin = 0;
        for end in &mut ends {
            (*end, begin) = (begin, begin + *end);
        }
        let mut sorted = vec![Told::default(); begin as usize];
        for it in told.flatten() {
            let end = &mut ends[it.to as usize - first];
            sorted[*end as usize] = *it;
            *end += 1;
        }
        Self { told: sorted, ends }
    }

    fn by(&self, pe: usize) -> &[Told] {
        let begin = if pe == 0 { 0 } else { self.ends[pe - 1] };
        &self.told[begin as usize..self.ends[pe] as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rumours_reach_everybody_and_are_true() {
        for (count, threads) in [(200, 1), (5000, 1), (5000, 3)] {
            let loads: Vec<f64> = (0..count).map(|pe| f64::from(pe % 4 == 0)).collect();
            let job = job(loads.len());
            let mut rumours = Rumours::new(&job, 0);
            rumours.spread(&job, &loads, threads);
            let is_full = |&pe: &usize| rumours.of(pe).len() == job.memory(loads[pe]);
            let full = (0..loads.len()).filter(is_full).count();
            assert!(full > loads.len() * 3 / 4, "{full}");
            for names in (0..loads.len()).map(|pe| rumours.of(pe)) {
                assert!((1..=20).contains(&names.len()), "{}", names.len());
                assert!(names.iter().all(|&pe| loads[pe as usize] < 0.25));
                let different: BTreeSet<u32> = names.iter().copied().collect();
                assert_eq!(different.len(), names.len());
            }
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let loads: Vec<f64> = (0..4000).map(|pe| f64::from(pe % 7)).collect();
        let job = job(loads.len());
        let known = |threads| {
            let mut rumours = Rumours::new(&job, 1);
            rumours.spread(&job, &loads, threads);
            (0..loads.len()).map(|pe| rumours.of(pe).to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(known(1), known(2));
        assert_eq!(known(1), known(7));
    }

    fn job(pes: usize) -> Job {
        Job {
            rounds: 6,
            fanout: 4,
            knowledge: 20,
            iterations: 1,
            seed: 0,
            aim: 0.0,
            mean: 0.25,
            speeds: vec![1.0; pes],
            fixed: vec![0.0; pes],
            loads: vec![],
            homes: vec![],
        }
    }
}
