//! Sixteen nodes at a time: SHA-1 with one message in each lane of a vector.
//!
//! Making a node is one compression of SHA-1, about 600 dependent operations that a scalar program cannot overlap.
//! Sixteen nodes are independent; with vectors of 32-bit lanes, each operation is executed for all of them at once:
//!
//! | kernel | needs | hashes per second on one core of a 2.5 GHz Cascade Lake |
//! |---|---|---|
//! | `plain` | nothing | 7.5 million |
//! | `avx2` | AVX2 | 44 million |
//! | `sha` | SSE4.1 and SHA-NI | (not supported there) |
//! | `avx512` | AVX-512F | 118 million |
//!
//! A node's message is 24 bytes, so that of the 16 words of its block ten are constants; the
//! compiler folds them.
//!
//! `sha` uses the processor's SHA-1 instructions. Some processors have these, some AVX-512, some both:
//! [`Kernel::fastest`] determines the fastest kernel by trying.
//!
//! This is the only unsafe module of the crate: a kernel may only be called if the processor has its instructions. A
//! [`Kernel`] exists only if it does: [`Kernel::available`] is the only source of kernels, and asks the processor.

#[cfg(target_arch = "x86_64")]
mod x86_64;

use crate::rng::{RANDOM_VALUES, State};
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Number of lanes.
pub const LANES: usize = 16;

/// Lanes are filled in groups of this many, the last of which may begin in the last lane.
pub const GROUP: usize = 8;

/// One word for each lane, and room for the rest of a group.
pub type LaneWords = [u32; LANES + GROUP];

/// In [`Messages::least`]: compare with the random number subtracted from the largest possible one.
pub const REVERSED: u32 = 1 << 31;

/// The input: for each lane, a parent's five words and a child's number; and the random numbers of nodes that may have
/// children.
#[derive(Clone, Debug, Default)]
#[repr(C, align(32))]
pub struct Messages {
    /// The words of the parents: the first words of all lanes, then the second ones, and so on.
    pub parent: [LaneWords; 5],
    /// The numbers of the children.
    pub index: LaneWords,
    /// Nodes with smaller random numbers have no children. With [`REVERSED`], those with larger ones.
    pub least: LaneWords,
}

/// The output: the children.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct Digests {
    /// Their words: the first words of all lanes, then the second ones, and so on.
    pub words: [[u32; LANES]; 5],
    /// A bit for each node that may have children itself ([`Messages::least`]).
    pub parents: u16,
}

impl Digests {
    /// Compares the random numbers.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn find_parents(&mut self, least: &LaneWords) {
        let lanes = self.words[4].iter().zip(least).enumerate();
        self.parents = lanes.fold(0, |parents, (lane, (word, least))| {
            parents | u16::from(may_be_parent(*word, *least)) << lane
        });
    }

    /// The state in one lane.
    ///
    /// # Panics
    ///
    /// If the lane does not exist.
    #[inline]
    #[must_use]
    pub fn state(&self, lane: usize) -> State {
        let [a, b, c, d, e] = &self.words;
        State([a[lane], b[lane], c[lane], d[lane], e[lane]])
    }
}

/// Whether a node with this last word may have children, for this element of [`Messages::least`].
#[inline(always)]
fn may_be_parent(word: u32, least: u32) -> bool {
    // All bits of a reversed one, or none.
    let reversed = (least.cast_signed() >> 31).cast_unsigned();
    (word ^ reversed) & (RANDOM_VALUES - 1) >= least & (RANDOM_VALUES - 1)
}

/// An implementation that hashes sixteen messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(Variant);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Sha,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Kernel {
    /// The kernels that this processor can run, the most demanding first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        [
            #[cfg(target_arch = "x86_64")]
            is_x86_feature_detected!("avx512f").then_some(Self(Variant::Avx512)),
            #[cfg(target_arch = "x86_64")]
            (is_x86_feature_detected!("sse4.1") && is_x86_feature_detected!("sha"))
                .then_some(Self(Variant::Sha)),
            #[cfg(target_arch = "x86_64")]
            is_x86_feature_detected!("avx2").then_some(Self(Variant::Avx2)),
            Some(Self::PLAIN),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The kernel that runs everywhere: the `sha1` crate, lane by lane.
    pub const PLAIN: Self = Self(Variant::Plain);

    /// The fastest kernel of this processor, determined once per process by trying all. Cost: less than a millisecond.
    #[must_use]
    pub fn fastest() -> Self {
        static FASTEST: OnceLock<Kernel> = OnceLock::new();
        *FASTEST.get_or_init(|| {
            let all = Self::available();
            all.into_iter().min_by_key(|kernel| kernel.time()).unwrap_or(Self::PLAIN)
        })
    }

    /// Its time for several messages: the least of several tries, as disturbances only lengthen it.
    fn time(self) -> Duration {
        const TRIES: usize = 16;
        const TIMES: u32 = 8;
        let (messages, mut digests) = (Messages::default(), Digests::default());
        let once = |_| {
            let start = Instant::now();
            self.hash(&messages, LANES, TIMES, &mut digests);
            start.elapsed()
        };
        (0..TRIES).map(once).min().unwrap_or_default()
    }

    /// The kernel's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Variant::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Variant::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Variant::Sha => "sha",
            #[cfg(target_arch = "x86_64")]
            Variant::Avx512 => "avx512",
        }
    }

    /// Hashes the messages in the first `used` lanes, `times` times over. The contents of the other lanes are
    /// unspecified.
    ///
    /// # Panics
    ///
    /// If `used` exceeds the number of lanes.
    #[inline]
    pub fn hash(self, messages: &Messages, used: usize, times: u32, digests: &mut Digests) {
        self.hash_once(messages, used, digests);
        for _ in 1..times {
            // Nothing may be known of the arguments, lest the repetition be left out.
            self.hash_once(black_box(messages), used, black_box(&mut *digests));
        }
    }

    #[inline]
    fn hash_once(self, messages: &Messages, used: usize, digests: &mut Digests) {
        match self.0 {
            Variant::Plain => hash_plain(messages, used, digests),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this variant is made only where the processor has AVX2.
            Variant::Avx2 => unsafe { x86_64::hash_avx2(messages, digests) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this variant is made only where the processor has SSE4.1 and SHA-NI.
            Variant::Sha => unsafe { x86_64::hash_sha(messages, digests) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this variant is made only where the processor has AVX-512F.
            Variant::Avx512 => unsafe { x86_64::hash_avx512(messages, digests) },
        }
    }
}

fn hash_plain(messages: &Messages, used: usize, digests: &mut Digests) {
    let mut parents = 0;
    let [a, b, c, d, e] = &messages.parent;
    for lane in 0..used.min(LANES) {
        let parent = State([a[lane], b[lane], c[lane], d[lane], e[lane]]);
        let child = parent.child(messages.index[lane]);
        for (words, word) in digests.words.iter_mut().zip(child.0) {
            words[lane] = word;
        }
        parents |= u16::from(may_be_parent(child.0[4], messages.least[lane])) << lane;
    }
    digests.parents = parents;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages that are different in every lane, and in every batch.
    fn messages(batch: u32) -> (Messages, Vec<State>) {
        let (mut messages, mut parents) = (Messages::default(), Vec::new());
        for lane in 0..LANES {
            let parent = State::root(batch).child(lane as u32).child(7);
            for word in 0..5 {
                messages.parent[word][lane] = parent.0[word];
            }
            messages.index[lane] = batch.wrapping_mul(0x9e37_79b9) ^ lane as u32;
            messages.least[lane] = batch.wrapping_mul(0xc2b2_ae35) ^ (lane as u32) << 28;
            parents.push(parent);
        }
        (messages, parents)
    }

    #[test]
    fn every_kernel_agrees_with_the_sha1_crate() {
        for kernel in Kernel::available() {
            for batch in 0..1024 {
                let (messages, parents) = messages(batch);
                let mut digests = Digests::default();
                kernel.hash(&messages, LANES, 1, &mut digests);
                for (lane, parent) in parents.iter().enumerate() {
                    let expected = parent.child(messages.index[lane]);
                    assert_eq!(digests.state(lane), expected, "{} lane {lane}", kernel.name());
                    let (random, least) = (expected.random(), messages.least[lane]);
                    let may_have = match least & REVERSED {
                        0 => random >= least,
                        _ => RANDOM_VALUES - 1 - random >= least - REVERSED,
                    };
                    let told = digests.parents >> lane & 1 == 1;
                    assert_eq!(told, may_have, "{} lane {lane}", kernel.name());
                }
            }
        }
    }

    #[test]
    fn repeating_changes_nothing() {
        let (messages, _) = messages(1);
        for kernel in Kernel::available() {
            let (mut once, mut often) = (Digests::default(), Digests::default());
            kernel.hash(&messages, 5, 1, &mut once);
            kernel.hash(&messages, 5, 4, &mut often);
            for lane in 0..5 {
                assert_eq!(once.state(lane), often.state(lane), "{}", kernel.name());
            }
        }
    }

    #[test]
    fn the_plain_kernel_is_everywhere_and_the_fastest_is_one_of_all() {
        assert_eq!(Kernel::available().last(), Some(&Kernel::PLAIN));
        assert_eq!(Kernel::PLAIN.name(), "plain");
        assert!(Kernel::available().contains(&Kernel::fastest()));
    }
}
