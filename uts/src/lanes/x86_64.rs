//! Kernels that need instructions not every processor has. The two vector kernels differ only in the names of the
//! operations.

use super::{Digests, LANES, LaneWords, Messages};
use crate::rng::{INITIAL, RANDOM_VALUES};
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

        for ((words, start), end) in $digests.words.iter_mut().zip(start).zip([a, b, c, d, e]) {
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
    // SAFETY: both arrays are at least 64 bytes long, and the loads need no alignment.
    let [word, least] = unsafe {
        [digests.words[4].as_ptr(), messages.least.as_ptr()].map(|it| _mm512_loadu_si512(it.cast()))
    };
    let number = _mm512_set1_epi32((RANDOM_VALUES - 1).cast_signed());
    let reversed = _mm512_srai_epi32::<31>(least);
    let random = _mm512_and_si512(_mm512_xor_si512(word, reversed), number);
    digests.parents = _mm512_cmpge_epu32_mask(random, _mm512_and_si512(least, number));
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
    digests.find_parents(&messages.least);
}

/// The processor's own SHA-1 instructions, two messages at a time, as each instruction waits for the previous one of
/// its message.
///
/// Without AVX: there are no SHA-1 instructions that keep the upper halves of wider registers zero, and while these are
/// not zero, some processors take a hundred times as long for them.
#[target_feature(enable = "sse4.1,sha")]
pub(super) fn hash_sha(messages: &Messages, digests: &mut Digests) {
    let mut lanes = blocks(messages);
    for pair in lanes.as_chunks_mut::<2>().0 {
        let [mut one, mut other] = [Block::begin(pair[0]), Block::begin(pair[1])];
        macro_rules! four_rounds {
            ($($four:literal),*) => {
                $(
                    one.four_rounds::<{ $four / 5 }>($four);
                    other.four_rounds::<{ $four / 5 }>($four);
                )*
            };
        }
        four_rounds!(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19);
        *pair = [one.end(), other.end()];
    }
    store_ends(&lanes, digests);
    digests.find_parents(&messages.least);
}

/// A message processed by SHA-NI instructions, the first word of each vector in its highest lane.
#[derive(Clone, Copy)]
struct Block {
    /// The last four vectors of the message schedule.
    schedule: [__m128i; 4],
    /// The words `a` to `d`, and their values four rounds before, from which `e` is derived.
    state: __m128i,
    before: __m128i,
}

impl Block {
    #[inline]
    #[target_feature(enable = "sse4.1,sha")]
    fn begin([first, second]: [__m128i; 2]) -> Self {
        let [a, b, c, d, _] = INITIAL.map(u32::cast_signed);
        let length = PADDING[9].cast_signed();
        let schedule = [first, second, _mm_setzero_si128(), _mm_set_epi32(0, 0, 0, length)];
        let state = _mm_set_epi32(a, b, c, d);
        Self { schedule, state, before: state }
    }

    /// Rounds `4 four` to `4 four + 3`, which belong to quarter `QUARTER` of all rounds.
    #[inline]
    #[target_feature(enable = "sse4.1,sha")]
    fn four_rounds<const QUARTER: i32>(&mut self, four: usize) {
        let at = |back: usize| (four + 4 - back) % 4;
        if four >= 4 {
            let [old, next] = [self.schedule[at(4)], self.schedule[at(3)]];
            let mixed = _mm_xor_si128(_mm_sha1msg1_epu32(old, next), self.schedule[at(2)]);
            self.schedule[at(4)] = _mm_sha1msg2_epu32(mixed, self.schedule[at(1)]);
        }
        let words = self.schedule[four % 4];
        let e = match four {
            0 => _mm_add_epi32(words, _mm_set_epi32(INITIAL[4].cast_signed(), 0, 0, 0)),
            _ => _mm_sha1nexte_epu32(self.before, words),
        };
        self.before = self.state;
        self.state = _mm_sha1rnds4_epu32::<QUARTER>(self.state, e);
    }

    /// The first four words of the digest, and the last one in the highest lane of another vector.
    #[inline]
    #[target_feature(enable = "sse4.1,sha")]
    fn end(self) -> [__m128i; 2] {
        let [a, b, c, d, e] = INITIAL.map(u32::cast_signed);
        let last = _mm_sha1nexte_epu32(self.before, _mm_set_epi32(e, 0, 0, 0));
        [_mm_add_epi32(self.state, _mm_set_epi32(a, b, c, d)), last]
    }
}

/// The words of each message: the first four, and the next four.
#[inline]
#[target_feature(enable = "sse4.1,sha")]
fn blocks(messages: &Messages) -> [[__m128i; 2]; LANES] {
    let mut blocks = [[_mm_setzero_si128(); 2]; LANES];
    for quad in [0, 4, 8, 12] {
        let load = |words: &LaneWords| {
            let four: &[u32] = &words[quad..quad + 4];
            // SAFETY: the slice is 16 bytes long, and the load needs no alignment.
            unsafe { _mm_loadu_si128(four.as_ptr().cast()) }
        };
        let [w0, w1, w2, w3, w4] = &messages.parent;
        let bit = _mm_set1_epi32(PADDING[0].cast_signed());
        let first = transposed([load(w3), load(w2), load(w1), load(w0)]);
        let second = transposed([_mm_setzero_si128(), bit, load(&messages.index), load(w4)]);
        for lane in 0..4 {
            blocks[quad + lane] = [first[lane], second[lane]];
        }
    }
    blocks
}

/// Writes all digests.
#[inline]
#[target_feature(enable = "sse4.1,sha")]
fn store_ends(ends: &[[__m128i; 2]; LANES], digests: &mut Digests) {
    for quad in [0, 4, 8, 12] {
        let [a, b, c, d] = [ends[quad], ends[quad + 1], ends[quad + 2], ends[quad + 3]];
        let [w3, w2, w1, w0] = transposed([a[0], b[0], c[0], d[0]]);
        let [_, _, _, w4] = transposed([a[1], b[1], c[1], d[1]]);
        for (words, value) in digests.words.iter_mut().zip([w0, w1, w2, w3, w4]) {
            let four: &mut [u32] = &mut words[quad..quad + 4];
            // SAFETY: the slice is 16 bytes long, and the store needs no alignment.
            unsafe { _mm_storeu_si128(four.as_mut_ptr().cast(), value) }
        }
    }
}

/// Lane `i` of vector `j` becomes lane `j` of vector `i`.
#[inline]
#[target_feature(enable = "sse2")]
fn transposed([a, b, c, d]: [__m128i; 4]) -> [__m128i; 4] {
    let [low_ab, high_ab] = [_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)];
    let [low_cd, high_cd] = [_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d)];
    [
        _mm_unpacklo_epi64(low_ab, low_cd),
        _mm_unpackhi_epi64(low_ab, low_cd),
        _mm_unpacklo_epi64(high_ab, high_cd),
        _mm_unpackhi_epi64(high_ab, high_cd),
    ]
}
