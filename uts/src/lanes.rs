//! Sixteen nodes at a time: SHA-1 with one message in each lane of a vector.
//!
//! Making a node is one compression of SHA-1, about 600 dependent operations that a scalar
//! program cannot overlap. Sixteen nodes are independent; in vectors of 32-bit lanes, each
//! operation is done for all of them at once:
//!
//! | kernel | needs | hashes a second on one core of a 2.5 GHz Cascade Lake |
//! |---|---|---|
//! | `plain` | nothing | 7.5 million |
//! | `avx2` | AVX2 | 44 million |
//! | `avx512` | AVX-512F | 118 million |
//!
//! A node's message is 24 bytes, so that of the 16 words of its block ten are constants; the
//! compiler folds them.
//!
//! This is the one unsafe module of the crate: kernels may only be called where the processor has
//! their instructions. A [`Kernel`] exists only where it does: [`Kernel::available`] makes the
//! list by asking the processor, and nothing else makes one.

use crate::rng::State;
use std::hint::black_box;

/// Number of lanes.
pub const LANES: usize = 16;

/// Lanes are filled in groups of so many, the last of which may begin in the last lane.
pub const GROUP: usize = 8;

/// One word for each lane, and room for the rest of a group.
pub type LaneWords = [u32; LANES + GROUP];

/// What is hashed: for each lane, a parent's five words and a child's number.
#[derive(Clone, Debug, Default)]
#[repr(C, align(32))]
pub struct Messages {
    /// The words of the parents, the first words of all first.
    pub parent: [LaneWords; 5],
    /// The numbers of the children.
    pub index: LaneWords,
}

/// What comes out: the words of the children, the first words of all first.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct Digests(pub [[u32; LANES]; 5]);

impl Digests {
    /// The state in one lane.
    ///
    /// # Panics
    ///
    /// If there is no such lane.
    #[inline]
    #[must_use]
    pub fn state(&self, lane: usize) -> State {
        State([0, 1, 2, 3, 4].map(|word: usize| self.0[word][lane]))
    }
}

/// A way to hash sixteen messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(Variant);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Kernel {
    /// The kernels that this processor can run, the fastest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        [
            #[cfg(target_arch = "x86_64")]
            is_x86_feature_detected!("avx512f").then_some(Self(Variant::Avx512)),
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

    /// The fastest kernel of this processor.
    #[must_use]
    pub fn fastest() -> Self {
        Self::available()[0]
    }

    /// The kernel's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Variant::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Variant::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Variant::Avx512 => "avx512",
        }
    }

    /// Hashes the messages in the first `used` lanes, `times` times over. What the other lanes
    /// become is not specified.
    ///
    /// # Panics
    ///
    /// If there are not so many lanes.
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
            // SAFETY: this variant is made only where the processor has AVX-512F.
            Variant::Avx512 => unsafe { x86_64::hash_avx512(messages, digests) },
        }
    }
}

fn hash_plain(messages: &Messages, used: usize, digests: &mut Digests) {
    for lane in 0..used {
        let parent = State([0, 1, 2, 3, 4].map(|word: usize| messages.parent[word][lane]));
        let child = parent.child(messages.index[lane]);
        for (words, word) in digests.0.iter_mut().zip(child.0) {
            words[lane] = word;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    //! The two vector kernels. They differ in the names of the operations only.

    use super::{Digests, LANES, LaneWords, Messages};
    use crate::rng::INITIAL;
    use std::arch::x86_64::*;

    /// Words 6 to 15 of the padded message: the closing bit, zeros, and the length in bits.
    const PADDING: [u32; 10] = [0x8000_0000, 0, 0, 0, 0, 0, 0, 0, 0, 8 * 24];

    /// The body of a kernel for the lanes from `$lane` on. Unrolled completely, because every
    /// index into the message schedule must be a constant.
    macro_rules! sha1 {
        ($messages:ident, $digests:ident, $lane:expr, $vector:ty, $load:ident, $store:ident,
         $set:ident, $add:ident, $rol1:ident, $rol5:ident, $rol30:ident, $xor:ident,
         $choose:ident, $majority:ident) => {{
            let splat = |word: u32| $set(word.cast_signed());
            let mut w: [$vector; 16] = [splat(0); 16];
            for (w, words) in w.iter_mut().zip($messages.parent.iter().chain([&$messages.index])) {
                *w = $load(words, $lane);
            }
            for (w, word) in w[6..].iter_mut().zip(PADDING) {
                *w = splat(word);
            }
            let start = INITIAL.map(splat);
            let [mut a, mut b, mut c, mut d, mut e] = start;

            /// One round: the new `a` is left in `$e`, and `$b` is rotated.
            macro_rules! round {
                ($a:ident, $b:ident, $c:ident, $d:ident, $e:ident, $f:ident, $k:expr, $t:expr) => {
                    if $t >= 16 {
                        w[$t % 16] = $rol1($xor(
                            $xor(w[($t + 13) % 16], w[($t + 8) % 16]),
                            $xor(w[($t + 2) % 16], w[$t % 16]),
                        ));
                    }
                    let added = $add($add($e, splat($k)), w[$t % 16]);
                    $e = $add($add($rol5($a), $f($b, $c, $d)), added);
                    $b = $rol30($b);
                };
            }
            macro_rules! five {
                ($f:ident, $k:expr, $t:expr) => {
                    round!(a, b, c, d, e, $f, $k, $t);
                    round!(e, a, b, c, d, $f, $k, $t + 1);
                    round!(d, e, a, b, c, $f, $k, $t + 2);
                    round!(c, d, e, a, b, $f, $k, $t + 3);
                    round!(b, c, d, e, a, $f, $k, $t + 4);
                };
            }
            macro_rules! twenty {
                ($f:ident, $k:expr, $t:expr) => {
                    five!($f, $k, $t);
                    five!($f, $k, $t + 5);
                    five!($f, $k, $t + 10);
                    five!($f, $k, $t + 15);
                };
            }
            let parity = |b, c, d| $xor($xor(b, c), d);
            twenty!($choose, 0x5a82_7999, 0);
            twenty!(parity, 0x6ed9_eba1, 20);
            twenty!($majority, 0x8f1b_bcdc, 40);
            twenty!(parity, 0xca62_c1d6, 60);

            for ((words, start), end) in $digests.0.iter_mut().zip(start).zip([a, b, c, d, e]) {
                $store(words, $lane, $add(start, end));
            }
        }};
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn hash_avx512(messages: &Messages, digests: &mut Digests) {
        let load = |words: &LaneWords, _: usize| {
            // SAFETY: the array is at least 64 bytes long, and the load needs no alignment.
            unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
        };
        let store = |words: &mut [u32; LANES], _: usize, value| {
            // SAFETY: the array is 64 bytes long, and the store needs no alignment.
            unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), value) }
        };
        let rol1 = |x| _mm512_rol_epi32::<1>(x);
        let rol5 = |x| _mm512_rol_epi32::<5>(x);
        let rol30 = |x| _mm512_rol_epi32::<30>(x);
        let choose = |b, c, d| _mm512_ternarylogic_epi32::<0xca>(b, c, d);
        let majority = |b, c, d| _mm512_ternarylogic_epi32::<0xe8>(b, c, d);
        sha1!(
            messages,
            digests,
            0,
            __m512i,
            load,
            store,
            _mm512_set1_epi32,
            _mm512_add_epi32,
            rol1,
            rol5,
            rol30,
            _mm512_xor_si512,
            choose,
            majority
        );
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn hash_avx2(messages: &Messages, digests: &mut Digests) {
        const HALF: usize = LANES / 2;
        let load = |words: &LaneWords, lane: usize| {
            let half: &[u32] = &words[lane..lane + HALF];
            // SAFETY: the slice is 32 bytes long, and the load needs no alignment.
            unsafe { _mm256_loadu_si256(half.as_ptr().cast()) }
        };
        let store = |words: &mut [u32; LANES], lane: usize, value| {
            let half: &mut [u32] = &mut words[lane..lane + HALF];
            // SAFETY: the slice is 32 bytes long, and the store needs no alignment.
            unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), value) }
        };
        let rol1 = |x| _mm256_or_si256(_mm256_add_epi32(x, x), _mm256_srli_epi32::<31>(x));
        let rol5 = |x| _mm256_or_si256(_mm256_slli_epi32::<5>(x), _mm256_srli_epi32::<27>(x));
        let rol30 = |x| _mm256_or_si256(_mm256_slli_epi32::<30>(x), _mm256_srli_epi32::<2>(x));
        let choose = |b, c, d| _mm256_xor_si256(d, _mm256_and_si256(b, _mm256_xor_si256(c, d)));
        // The two terms have no bit in common; so their sum is their union.
        let majority = |b, c, d| {
            let both = _mm256_and_si256(c, d);
            _mm256_or_si256(both, _mm256_and_si256(b, _mm256_xor_si256(c, d)))
        };
        for lane in [0, HALF] {
            sha1!(
                messages,
                digests,
                lane,
                __m256i,
                load,
                store,
                _mm256_set1_epi32,
                _mm256_add_epi32,
                rol1,
                rol5,
                rol30,
                _mm256_xor_si256,
                choose,
                majority
            );
        }
    }
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
    fn the_plain_kernel_is_everywhere_and_the_slowest() {
        assert_eq!(Kernel::available().last(), Some(&Kernel::PLAIN));
        assert_eq!(Kernel::PLAIN.name(), "plain");
    }
}
