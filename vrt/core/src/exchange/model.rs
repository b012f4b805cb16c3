//! The LogGP model of the protocols (Hoefler, Siebert, Lumsdaine, PPoPP 2010, sections 2 and 3).
//!
//! All times are in microseconds. [`Protocol::Auto`] decides by this model; `sparse-mini`'s
//! simulation executes the protocols message by message with the same parameters.

use serde::{Deserialize, Serialize};

use crate::exchange::Protocol;

/// The parameters of a network, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogGp {
    /// L: latency between two processes.
    pub latency: f64,
    /// o: time that a process spends on sending or receiving a message.
    pub overhead: f64,
    /// g: least time between two messages of a process.
    pub gap: f64,
    /// G: time per additional byte of a message.
    pub gap_per_byte: f64,
    /// L_s: latency of a synchronous send of one byte (the paper's table 2).
    pub synchronous_latency: f64,
}

/// Invalid parameters.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{name} is {value}: a number of microseconds from 0 to 1000000 is allowed")]
pub struct OutOfRange {
    /// The parameter.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

/// Bytes that the first phase sends for each rank: a size in PEX, a count in PCX.
pub const PEX_ENTRY: usize = 8;
/// See [`PEX_ENTRY`].
pub const PCX_ENTRY: usize = 4;

/// ⌈log2 P⌉.
fn rounds(ranks: usize) -> f64 {
    f64::from(ranks.max(1).next_power_of_two().trailing_zeros())
}

impl LogGp {
    /// The text of a file that may have been written by `sparse-mini loggp`.
    ///
    /// # Errors
    /// It cannot be read, is not text, or is longer than any such file.
    pub fn read_text(file: &std::path::Path) -> std::io::Result<String> {
        use std::io::Read;

        const LONGEST: u64 = 1 << 20;
        let mut text = String::new();
        let file = std::fs::File::open(file)?;
        if file.take(LONGEST).read_to_string(&mut text)? as u64 == LONGEST {
            let why = format!("{LONGEST} bytes or more are no parameters of a network");
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, why));
        }
        Ok(text)
    }

    /// Between ranks of different PEs of a node, as measured by `sparse-mini loggp` on a virtual
    /// machine with 2 cores.
    pub const RANKS: LogGp = LogGp {
        latency: 0.068,
        overhead: 0.077,
        gap: 0.085,
        gap_per_byte: 0.0003,
        synchronous_latency: 0.139,
    };

    /// Checks that all parameters are times.
    ///
    /// # Errors
    /// One is negative, not a number, or over a second.
    pub fn check(self) -> Result<LogGp, OutOfRange> {
        for (name, value) in [
            ("latency", self.latency),
            ("overhead", self.overhead),
            ("gap", self.gap),
            ("gap_per_byte", self.gap_per_byte),
            ("synchronous_latency", self.synchronous_latency),
        ] {
            if !(0.0..=1e6).contains(&value) {
                return Err(OutOfRange { name, value });
            }
        }
        Ok(self)
    }

    /// Time of a message of this many bytes: L + 2o + (bytes - 1) G (section 2.2).
    pub fn message(&self, bytes: usize) -> f64 {
        self.latency + 2.0 * self.overhead + bytes.saturating_sub(1) as f64 * self.gap_per_byte
    }

    /// Time of a census, for instance a barrier, by dissemination: the upper bound of corollary 1.
    pub fn census(&self, ranks: usize) -> f64 {
        rounds(ranks) * (self.latency + 2.0 * self.overhead)
    }

    /// Time of a personalized census or exchange with `entry` bytes for each rank: the bound of
    /// lemmas 2 and 3, with bytes as its elements.
    pub fn personalized(&self, ranks: usize, entry: usize) -> f64 {
        let g = self.gap_per_byte * entry as f64;
        let others = ranks.saturating_sub(1) as f64;
        g * others + (self.latency + 2.0 * self.overhead - g).max(0.0) * rounds(ranks)
    }

    /// Time of the data phase, k messages of this many bytes to and from each rank (the trivial
    /// method of lemma 4).
    pub fn data(&self, k: usize, bytes: usize) -> f64 {
        if k == 0 {
            return 0.0;
        }
        let each = self.overhead.max(self.gap);
        let first = self.message(bytes);
        let long = bytes.saturating_sub(1) as f64 * self.gap_per_byte;
        first + (k as f64 - 1.0) * (2.0 * each).max(long)
    }

    /// What synchronous sends add to k messages: L + k o in the worst case (equation 2).
    pub(crate) fn acknowledgement(&self, k: usize) -> f64 {
        self.latency + k as f64 * self.overhead
    }

    /// Time of an exchange in which every rank sends k messages of this many bytes (theorems 1 to 4
    /// and equation 2).
    pub fn predict(&self, protocol: Protocol, ranks: usize, k: usize, bytes: usize) -> f64 {
        let data = self.data(k, bytes);
        match protocol {
            Protocol::Pex => self.personalized(ranks, PEX_ENTRY) + data,
            Protocol::Pcx => self.personalized(ranks, PCX_ENTRY) + data,
            Protocol::Rsx => self.acknowledgement(k) + self.census(ranks) + data,
            Protocol::Nbx => self.census(ranks) + data + self.acknowledgement(k),
            Protocol::NbxByNode => {
                2.0 * self.census(ranks) + 2.0 * data + 2.0 * self.acknowledgement(k)
            }
            Protocol::Auto => self.predict(self.choose(ranks, k), ranks, k, bytes),
        }
    }

    /// The largest k for which NBX is not slower than PCX: (T_RS - T_BC - L) / o (section 4.2).
    /// Infinite if NBX costs nothing more, negative if it is always slower.
    pub fn threshold(&self, ranks: usize) -> f64 {
        let gain = self.personalized(ranks, PCX_ENTRY) - self.census(ranks) - self.latency;
        if self.overhead > 0.0 {
            gain / self.overhead
        } else if gain >= 0.0 {
            f64::INFINITY
        } else {
            -1.0
        }
    }

    /// The protocol for exchanges among so many ranks of which none sends more than `k` messages:
    /// NBX where the paper's inequality says so, else PCX.
    pub(crate) fn choose(&self, ranks: usize, k: usize) -> Protocol {
        if k as f64 <= self.threshold(ranks) { Protocol::Nbx } else { Protocol::Pcx }
    }

    /// [`choose`](Self::choose) where k does not matter: `None` when it does.
    pub(crate) fn choose_for_any_k(&self, ranks: usize) -> Option<Protocol> {
        // Several messages to one rank may make k larger than the number of ranks.
        let threshold = self.threshold(ranks);
        match threshold {
            _ if threshold < 0.0 => Some(Protocol::Pcx),
            _ if threshold.is_infinite() => Some(Protocol::Nbx),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTREPID: LogGp = LogGp {
        latency: 4.29,
        overhead: 2.87,
        gap: 2.04,
        gap_per_byte: 0.00267,
        synchronous_latency: 5.04,
    };

    #[test]
    fn formulas_of_the_paper() {
        // Ten bytes take L + 2o + 9G.
        assert!((INTREPID.message(10) - (4.29 + 5.74 + 9.0 * 0.00267)).abs() < 1e-12);
        assert!((INTREPID.census(8192) - 13.0 * (4.29 + 5.74)).abs() < 1e-9);
        let personalized = 0.00267 * 8191.0 + (4.29 + 5.74 - 0.00267) * 13.0;
        assert!((INTREPID.personalized(8192, 1) - personalized).abs() < 1e-9);
        let worst = INTREPID.predict(Protocol::Nbx, 8192, 6, 1)
            - INTREPID.census(8192)
            - INTREPID.data(6, 1);
        assert!((worst - (4.29 + 6.0 * 2.87)).abs() < 1e-9);
    }

    #[test]
    fn the_choice_is_the_inequality() {
        for ranks in [2, 64, 1024, 8192, 65536, 1 << 20] {
            let threshold = INTREPID.threshold(ranks);
            for k in [0, 1, 6, 50, 1000] {
                let nbx = INTREPID.predict(Protocol::Nbx, ranks, k, 512);
                let pcx = INTREPID.predict(Protocol::Pcx, ranks, k, 512);
                let chosen = INTREPID.choose(ranks, k);
                assert_eq!(chosen == Protocol::Nbx, k as f64 <= threshold);
                assert_eq!(chosen == Protocol::Nbx, nbx <= pcx, "{ranks} ranks, k = {k}");
            }
            // It grows with the number of ranks.
            assert!(threshold < INTREPID.threshold(2 * ranks));
        }
        assert_eq!(INTREPID.choose(16, 6), Protocol::Pcx);
        assert_eq!(INTREPID.choose(65536, 6), Protocol::Nbx);
    }

    #[test]
    fn parameters_are_times() {
        let wrong = LogGp { gap: -1.0, ..INTREPID }.check().unwrap_err().to_string();
        assert!(wrong.contains("gap is -1"), "{wrong}");
        assert!(LogGp { latency: f64::NAN, ..INTREPID }.check().is_err());
        assert_eq!(INTREPID.check(), Ok(INTREPID));
    }
}
