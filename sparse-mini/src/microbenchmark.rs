//! The microbenchmark of the paper (section 4.3): in each round every rank sends messages of
//! random lengths to k random other ranks; nothing is computed.

use mpi::Rank;
use mpi::collective::SystemOperation;
use mpi::exchange::{Protocol, SparseExchange};
use mpi::traits::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What is exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Number of different targets of each rank; all other ranks if there are fewer.
    pub k: usize,
    /// Messages have from 1 to this many bytes, all lengths being equally likely.
    pub longest: usize,
    /// Exchanges that are timed.
    pub rounds: usize,
    /// Seed of targets and lengths, the same for all protocols.
    pub seed: u64,
}

/// Untimed exchanges at the beginning.
const WARM_UP: usize = 10;

/// The messages of a rank in a round: targets and lengths.
pub fn draw(random: &mut impl Rng, load: &Load, me: usize, ranks: usize) -> Vec<(usize, usize)> {
    let others = ranks - 1;
    let chosen = rand::seq::index::sample(random, others, load.k.min(others));
    let skip_me = |other: usize| if other < me { other } else { other + 1 };
    chosen.iter().map(|to| (skip_me(to), random.random_range(1..=load.longest))).collect()
}

/// The random generator of a rank.
pub fn random_of(load: &Load, rank: usize) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(load.seed);
    random.set_stream(rank as u64);
    random
}

/// The result of a run of the benchmark, the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Seconds for all timed rounds.
    pub seconds: f64,
    /// Number of messages that were missing or had wrong contents.
    pub wrong: u64,
}

/// Runs the benchmark with one protocol. Collective.
pub fn run(comm: &impl Communicator, protocol: Protocol, load: &Load) -> Outcome {
    let (me, ranks) = (comm.rank() as usize, comm.size() as usize);
    let mut random = random_of(load, me);
    let data = vec![me as u8; load.longest];
    let (mut sent, mut came, mut wrong) = (0u64, 0u64, 0u64);
    let mut began = 0.0;
    for round in 0..WARM_UP + load.rounds {
        if round == WARM_UP {
            comm.barrier();
            began = mpi::time();
        }
        let messages: Vec<(Rank, &[u8])> = draw(&mut random, load, me, ranks)
            .into_iter()
            .map(|(to, bytes)| (to as Rank, &data[..bytes]))
            .collect();
        sent += messages.len() as u64;
        for (source, bytes) in comm.sparse_exchange_by(protocol, &messages) {
            came += 1;
            // Its ends say enough: nothing but the exchange is to be timed.
            let ends = [bytes.first(), bytes.last()];
            wrong += u64::from(ends != [Some(&(source as u8)); 2]);
        }
    }
    comm.barrier();
    let seconds = mpi::time() - began;
    let mut totals = [0u64; 3];
    comm.all_reduce_into(&[sent, came, wrong], &mut totals, SystemOperation::sum());
    let mut longest = 0.0;
    comm.all_reduce_into(&seconds, &mut longest, SystemOperation::max());
    Outcome { seconds: longest, wrong: totals[2] + totals[0].abs_diff(totals[1]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_different_others() {
        let load = Load { k: 6, longest: 1024, rounds: 1, seed: 3 };
        for (me, ranks) in [(0, 2), (4, 5), (3, 7), (9, 64)] {
            let mut random = random_of(&load, me);
            for _ in 0..100 {
                let drawn = draw(&mut random, &load, me, ranks);
                assert_eq!(drawn.len(), load.k.min(ranks - 1));
                let mut targets: Vec<usize> = drawn.iter().map(|(to, _)| *to).collect();
                targets.sort_unstable();
                targets.dedup();
                assert_eq!(targets.len(), drawn.len());
                assert!(targets.iter().all(|to| *to != me && *to < ranks));
                assert!(drawn.iter().all(|(_, bytes)| (1..=1024).contains(bytes)));
            }
        }
    }

    #[test]
    fn every_protocol_brings_everything() {
        let load = Load { k: 3, longest: 100, rounds: 20, seed: 1 };
        mpi::run_local(5, |world| {
            for protocol in Protocol::all() {
                assert_eq!(run(world, protocol, &load).wrong, 0, "{protocol}");
            }
        });
    }
}
