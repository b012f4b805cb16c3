//! LogGP parameters of the network between ranks on this machine, measured between two of them.
//!
//! After Hoefler, Lichei, Rehm, *Low-Overhead LogGP Parameter Assessment for Modern Interconnection
//! Networks*, IPDPS 2007: o from the duration of calls that wait for nothing, g from trains of
//! messages, L + 2o from a ping-pong of one byte, G from the growth of its time with the length.
//! L_s is L with synchronous sends. Medians of several blocks are taken.

use mpi::Rank;
use mpi::exchange::{LogGp, Protocol};
use mpi::traits::*;
use serde::Serialize;
use vrt_cli::statistics::median;

/// Number of blocks whose median is taken.
const BLOCKS: usize = 15;
/// Messages in a block of a ping-pong of short messages.
const SHORT: usize = 400;
/// Messages in a train: few enough to wait nowhere.
const TRAIN: usize = 32;
/// Lengths between which G is measured.
const LENGTHS: [usize; 2] = [64 << 10, 1 << 20];

/// The measurements, and predictions from them.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Where the two ranks were.
    pub between: String,
    /// The parameters, in microseconds.
    pub parameters: LogGp,
    /// Half a round trip of one byte, and with synchronous sends.
    pub half_round_trip: [f64; 2],
    /// Half a round trip of each of two lengths in bytes.
    pub long: [(usize, f64); 2],
    /// The model's predictions for the protocols.
    pub predictions: Vec<Prediction>,
}

/// The model's prediction for exchanges, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// Number of ranks.
    pub ranks: usize,
    /// Messages of each rank.
    pub k: usize,
    /// The largest k with which NBX is chosen.
    pub threshold: f64,
    /// Time with each protocol.
    pub times: Vec<(String, f64)>,
}

/// Bytes per message in predictions: the mean of the microbenchmark's.
const PREDICTED_BYTES: usize = 512;

/// Measures between the first and the last rank; `None` on ranks other than the first.
pub fn measure(comm: &impl Communicator, between: String) -> Option<Measured> {
    let (me, last) = (comm.rank(), comm.size() - 1);
    if me != 0 && me != last {
        comm.barrier();
        return None;
    }
    let pair = Pair { comm, me, other: last - me };
    let half = pair.ping_pong(1, SHORT, false);
    let synchronous = pair.ping_pong(1, SHORT, true);
    let long = LENGTHS.map(|length| (length, pair.ping_pong(length, 20, false)));
    let overhead = pair.overhead();
    let gap = pair.gap();
    comm.barrier();
    let slope = (long[1].1 - long[0].1) / (LENGTHS[1] - LENGTHS[0]) as f64;
    let parameters = LogGp {
        latency: (half - 2.0 * overhead).max(0.0),
        overhead,
        gap,
        gap_per_byte: slope.max(0.0),
        synchronous_latency: (synchronous - 2.0 * overhead).max(0.0),
    };
    (me == 0).then(|| Measured {
        between,
        parameters,
        half_round_trip: [half, synchronous],
        long,
        predictions: predict(&parameters),
    })
}

/// The model's predictions for exchanges on a network.
pub fn predict(parameters: &LogGp) -> Vec<Prediction> {
    let sizes = (1..=20).step_by(3).map(|n| 1usize << n);
    let cases = sizes.flat_map(|ranks| [1, 6, 50].map(|k| (ranks, k)));
    cases
        .map(|(ranks, k)| Prediction {
            ranks,
            k,
            threshold: parameters.threshold(ranks),
            times: Protocol::all()
                .map(|it| (it.to_string(), parameters.predict(it, ranks, k, PREDICTED_BYTES)))
                .collect(),
        })
        .collect()
}

/// Two ranks.
struct Pair<'a, C> {
    comm: &'a C,
    me: Rank,
    other: Rank,
}

impl<C: Communicator> Pair<'_, C> {
    /// The duration of `block` in microseconds, the median of several; both ranks run it.
    fn time(&self, mut block: impl FnMut() -> f64) -> f64 {
        block();
        median(&(0..BLOCKS).map(|_| block()).collect::<Vec<_>>())
    }

    fn send(&self, data: &[u8], synchronous: bool) {
        let other = self.comm.process_at_rank(self.other);
        if synchronous {
            other.synchronous_send(data);
        } else {
            other.send(data);
        }
    }

    fn receive(&self, data: &mut [u8]) {
        self.comm.process_at_rank(self.other).receive_into(data);
    }

    /// Synchronises the two ranks.
    fn meet(&self) {
        let mut nothing = [0u8];
        for turn in [0, 1] {
            if (self.me == 0) == (turn == 0) {
                self.send(&nothing, false);
            } else {
                self.receive(&mut nothing);
            }
        }
    }

    /// Half a round trip of this many bytes.
    fn ping_pong(&self, bytes: usize, rounds: usize, synchronous: bool) -> f64 {
        let mut data = vec![1u8; bytes];
        self.time(|| {
            self.meet();
            let began = mpi::time();
            for _ in 0..rounds {
                if self.me == 0 || self.me == self.other {
                    self.send(&data, synchronous);
                    self.receive(&mut data);
                } else {
                    self.receive(&mut data);
                    self.send(&data, synchronous);
                }
            }
            (mpi::time() - began) / rounds as f64 / 2.0 * 1e6
        })
    }

    /// The duration of a call that waits for nothing, the mean of sends and of receives of messages
    /// that have already arrived.
    fn overhead(&self) -> f64 {
        let mut data = [1u8];
        self.time(|| {
            self.meet();
            let mut took = [0.0; 2];
            for turn in [0, 1] {
                let sends = (self.me == 0) == (turn == 0);
                let began = mpi::time();
                if sends {
                    (0..TRAIN).for_each(|_| self.send(&data, false));
                    took[0] = mpi::time() - began;
                } else {
                    // Everything has come when the last message has.
                    let all = self.comm.process_at_rank(self.other);
                    while all.immediate_probe().is_none() {}
                    mpi::sleep(std::time::Duration::from_micros(200));
                    let began = mpi::time();
                    (0..TRAIN).for_each(|_| self.receive(&mut data));
                    took[1] = mpi::time() - began;
                }
            }
            (took[0] + took[1]) / (2 * TRAIN) as f64 * 1e6
        })
    }

    /// Time per message in a long train.
    fn gap(&self) -> f64 {
        let mut data = [1u8];
        self.time(|| {
            self.meet();
            let began = mpi::time();
            if self.me == 0 {
                (0..SHORT).for_each(|_| self.send(&data, false));
                self.receive(&mut data);
            } else {
                (0..SHORT).for_each(|_| self.receive(&mut data));
                self.send(&data, false);
            }
            (mpi::time() - began) / SHORT as f64 * 1e6
        })
    }
}
