//! The type signature of a message's elements, in 16 bits that are sent with the message (MPI-4.1 section 5.1.1).
//!
//! A signature describes the sequence of built-in values in an element, not their positions in memory: so sender and
//! receiver may lay out the same values differently, an array may be received as its elements, and a structure as
//! another one with the same fields. If a sequence is a repetition of a shorter one, only the shorter one counts,
//! because the length of a message determines the number of elements.
//!
//! | signature | stands for |
//! |---|---|
//! | 0 | whatever the other side has: messages of the runtime itself |
//! | 1, 2, .. | a built-in value |
//! | [`VALUE`](Signature::VALUE) | an encoded serde value |
//! | from 2^15 on | a hash of a sequence of different built-in values |
//!
//! Two sequences have the same hash with a probability of 1 in 32,768. A process that has both detects that, and gives
//! the one that it encounters second another number: so ranks that use both types, such as those of one program, can
//! distinguish them. Two sequences that exist only in different processes are taken for each other, and bytes of one
//! become values of the other. A structure with more than [`MOST_RUNS`] changes from one built-in value to another is
//! compared by the parts it was made of.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::layout::Scalar;
use vrt_slot::hooks;

/// The signature of a message's elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(transparent)]
pub struct Signature(u16);

/// The first signature that is a hash.
const HASHED: u16 = 1 << 15;

/// Most runs that a sequence is kept with.
const MOST_RUNS: usize = 1024;

impl Signature {
    /// Matches everything.
    pub const ANY: Signature = Signature(0);
    /// An encoded serde value.
    pub const VALUE: Signature = Signature(HASHED - 1);

    /// The signature of messages of one built-in type.
    #[inline(always)]
    pub const fn of_scalar(scalar: Scalar) -> Signature {
        match scalar {
            // Two of them.
            Scalar::I32At => Signature((Scalar::I32 as u16).wrapping_add(1)),
            Scalar::F32Pair => Signature((Scalar::F32 as u16).wrapping_add(1)),
            Scalar::F64Pair => Signature((Scalar::F64 as u16).wrapping_add(1)),
            _ => Signature((scalar as u16).wrapping_add(1)),
        }
    }

    /// Its 16-bit representation in packets.
    pub fn number(self) -> u16 {
        self.0
    }

    /// The signature with this [`number`](Self::number).
    pub fn from_number(number: u16) -> Signature {
        Signature(number)
    }

    /// Whether it is an integer (in terms of messages: a located one is several values).
    pub fn is_integer(self) -> bool {
        let scalar = self.0.checked_sub(1).and_then(|at| Scalar::ALL.get(at as usize));
        scalar.is_some_and(|scalar| scalar.is_integer())
    }

    /// Whether `bytes` bytes with one signature may be received with the other.
    #[inline(always)]
    pub fn fits(self, other: Signature, bytes: u64) -> bool {
        self == other || self.fits_otherwise(other, bytes)
    }

    #[cold]
    fn fits_otherwise(self, other: Signature, bytes: u64) -> bool {
        bytes == 0 || self == Signature::ANY || other == Signature::ANY
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("any type"),
            number if *self == Signature::VALUE => {
                debug_assert!(number < HASHED);
                f.write_str("a serde value")
            }
            number if number < HASHED => {
                match Scalar::ALL.get(usize::from(number).saturating_sub(1)) {
                    Some(scalar) => f.write_str(scalar.name()),
                    None => write!(f, "an unknown type ({number})"),
                }
            }
            number => {
                let known = known();
                match known.as_ref().and_then(|known| known.get(&number)) {
                    Some(runs) => f.write_str(&describe(runs)),
                    None => write!(f, "a structure unknown here ({number:#x})"),
                }
            }
        }
    }
}

/// What hashes stand for that this process has made.
static KNOWN: Mutex<Option<HashMap<u16, Box<[ScalarRun]>>>> = Mutex::new(None);

fn known() -> std::sync::MutexGuard<'static, Option<HashMap<u16, Box<[ScalarRun]>>>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// So many of one built-in value (or of a long sequence, by its hash).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScalarRun {
    what: Item,
    count: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Scalar(Scalar),
    Sequence(u16),
}

/// Which built-in values an element is made of, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Nothing,
    All(Scalar),
    /// The shortest sequence of which the element is a repetition. Neighbours differ.
    Mixed(Arc<[ScalarRun]>),
}

impl Content {
    pub(super) fn signature(&self) -> Signature {
        match self {
            Content::Nothing => Signature::ANY,
            Content::All(scalar) => Signature::of_scalar(*scalar),
            Content::Mixed(runs) => signature_of(runs),
        }
    }

    /// Of elements made of parts; each part comes with its size in bytes.
    pub(super) fn of_parts<'a>(
        parts: impl Iterator<Item = (&'a Content, usize)> + Clone,
    ) -> Content {
        let mut filled = parts.filter(|(content, size)| **content != Content::Nothing && *size > 0);
        let mut rest = filled.clone();
        let Some((first, _)) = rest.next() else { return Content::Nothing };
        if rest.all(|(content, _)| content == first) {
            return first.clone();
        }
        let mut runs: Vec<ScalarRun> = Vec::new();
        filled.by_ref().for_each(|(content, size)| content.append_to(&mut runs, size));
        if let [ScalarRun { what: Item::Scalar(scalar), .. }] = *runs {
            return Content::All(scalar);
        }
        Content::Mixed(shortest(runs).into())
    }

    /// Appends `size` bytes of it to a sequence.
    fn append_to(&self, runs: &mut Vec<ScalarRun>, size: usize) {
        match self {
            Content::Nothing => {}
            Content::All(scalar) => match scalar.pair() {
                // A value and its location are two values.
                Some((value, location)) => {
                    let pair =
                        [value, location].map(|of| ScalarRun { what: Item::Scalar(of), count: 1 });
                    repeat(
                        runs,
                        &pair,
                        size.checked_div(scalar.size()).unwrap_or_default(),
                        Item::Scalar(*scalar),
                    );
                }
                None => {
                    let count = size.checked_div(scalar.size()).unwrap_or_default();
                    push(runs, ScalarRun { what: Item::Scalar(*scalar), count });
                }
            },
            Content::Mixed(root) => {
                let each = root.iter().map(ScalarRun::size).fold(0, usize::saturating_add);
                let whole = Item::Sequence(signature_of(root).0);
                match each {
                    // Made of sequences of unknown size.
                    0 => push(runs, ScalarRun { what: whole, count: size }),
                    _ => repeat(runs, root, size.checked_div(each).unwrap_or_default(), whole),
                }
            }
        }
    }
}

/// Appends a sequence `count` times, or, if that is too long, as one item.
fn repeat(runs: &mut Vec<ScalarRun>, sequence: &[ScalarRun], count: usize, whole: Item) {
    if sequence.len().saturating_mul(count).saturating_add(runs.len()) > MOST_RUNS {
        return push(runs, ScalarRun { what: whole, count });
    }
    for _ in 0..count {
        sequence.iter().for_each(|run| push(runs, *run));
    }
}

fn push(runs: &mut Vec<ScalarRun>, run: ScalarRun) {
    match runs.last_mut() {
        Some(last) if last.what == run.what => last.count = last.count.saturating_add(run.count),
        _ => runs.push(run),
    }
}

/// The shortest sequence of which this one is a repetition. Where the end of one and the beginning
/// of the next are alike they have become one run: so runs are looked at in a circle.
fn shortest(mut runs: Vec<ScalarRun>) -> Vec<ScalarRun> {
    let (Some(first), Some(last)) = (runs.first().copied(), runs.last().copied()) else {
        return runs;
    };
    let joined = runs.len() > 2 && first.what == last.what;
    if joined {
        runs.pop();
        runs[0].count = runs[0].count.saturating_add(last.count);
    }
    let repeats = |period: usize| {
        runs.len().is_multiple_of(period) && runs.iter().zip(&runs[period..]).all(|(a, b)| a == b)
    };
    let period = (1..runs.len()).find(|period| repeats(*period)).unwrap_or(runs.len());
    runs.truncate(period);
    if joined {
        runs[0].count = first.count;
        runs.push(last);
    }
    runs
}

fn signature_of(runs: &[ScalarRun]) -> Signature {
    if let [
        ScalarRun { what: Item::Scalar(value), count: 1 },
        ScalarRun { what: Item::Scalar(at), count: 1 },
    ] = runs
        && let Some(pair) = Scalar::ALL.iter().find(|pair| pair.pair() == Some((*value, *at)))
    {
        return Signature::of_scalar(*pair);
    }
    // The process's, so not from the heap of the rank that happens to come first.
    hooks::runtime_heap(|| {
        let mut known = known();
        let known = known.get_or_insert_default();
        let first = hash(runs, 0);
        for attempt in 0..MOST_ATTEMPTS {
            let number = hash(runs, attempt);
            match known.get(&number) {
                None => {
                    known.insert(number, runs.into());
                    return Signature(number);
                }
                Some(of) if **of == *runs => return Signature(number),
                Some(_) => {}
            }
        }
        // A process with so many types that there are no numbers left for more.
        Signature(first)
    })
}

/// How many numbers are tried for a sequence.
const MOST_ATTEMPTS: u64 = 64;

/// The number of a sequence: 15 bits of its hash (FNV-1a), other bits with each attempt.
#[cfg_attr(
    not(test),
    expect(clippy::cast_possible_truncation, reason = "a hash is cut on purpose")
)]
fn hash(runs: &[ScalarRun], attempt: u64) -> u16 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |word: u64| {
        for byte in word.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    };
    if attempt > 0 {
        add(attempt);
    }
    for run in runs {
        add(match run.what {
            Item::Scalar(scalar) => scalar as u64,
            Item::Sequence(signature) => 1 << 32 | u64::from(signature),
        });
        add(run.count as u64);
    }
    let folded = hash ^ (hash >> 32);
    HASHED | (folded ^ (folded >> 16)) as u16
}

/// Most runs that a description names.
const MOST_NAMED: usize = 12;

fn describe(runs: &[ScalarRun]) -> String {
    let one = |run: &ScalarRun| {
        let what = match run.what {
            Item::Scalar(scalar) => scalar.name().to_owned(),
            Item::Sequence(signature) => Signature(signature).to_string_unlocked(),
        };
        if run.count == 1 { what } else { format!("{} x {what}", run.count) }
    };
    let mut all: Vec<String> = runs.iter().take(MOST_NAMED).map(one).collect();
    if runs.len() > MOST_NAMED {
        all.push("..".to_owned());
    }
    format!("{{{}}}", all.join(", "))
}

impl Signature {
    /// What it stands for, without the table of names.
    fn to_string_unlocked(self) -> String {
        if self.0 < HASHED { self.to_string() } else { format!("a structure ({:#x})", self.0) }
    }
}

impl ScalarRun {
    /// Bytes of all of it; 0 if that is not known.
    fn size(&self) -> usize {
        match self.what {
            Item::Scalar(scalar) => scalar.size().saturating_mul(self.count),
            Item::Sequence(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(list: &[(&Content, usize)]) -> Content {
        Content::of_parts(list.iter().copied())
    }

    const U8: Content = Content::All(Scalar::U8);
    const U32: Content = Content::All(Scalar::U32);
    const F64: Content = Content::All(Scalar::F64);

    #[test]
    fn repetitions_have_the_signature_of_what_they_repeat() {
        let pair = parts(&[(&U32, 4), (&F64, 8)]);
        let triple = parts(&[(&pair, 12), (&U32, 4), (&pair, 0), (&F64, 8), (&pair, 12)]);
        assert_eq!(pair, triple);
        assert_eq!(parts(&[(&F64, 80), (&F64, 8)]), F64);
        assert_ne!(pair.signature(), parts(&[(&F64, 8), (&U32, 4)]).signature());
        assert_ne!(pair.signature(), parts(&[(&U32, 8), (&F64, 8)]).signature());
        let nested = parts(&[(&U32, 4), (&parts(&[(&F64, 8), (&U32, 4)]), 12), (&F64, 8)]);
        assert_eq!(nested, pair);
    }

    #[test]
    fn ends_that_are_alike_do_not_hide_a_repetition() {
        let one = parts(&[(&U8, 1), (&F64, 8), (&U8, 2)]);
        let two = parts(&[(&one, 11), (&U8, 1), (&F64, 8), (&U8, 2)]);
        assert_eq!(one, two);
        let other = parts(&[(&U8, 2), (&F64, 8), (&U8, 1)]);
        assert_ne!(one.signature(), other.signature());
    }

    #[test]
    fn a_value_and_its_location_are_their_parts() {
        assert_eq!(Content::All(Scalar::I32At).signature(), Content::All(Scalar::I32).signature());
        let located = Content::All(Scalar::F64At);
        let parts_of = parts(&[(&F64, 8), (&Content::All(Scalar::I32), 4)]);
        assert_eq!(located.signature(), parts_of.signature());
    }

    #[test]
    fn long_sequences_are_told_apart_too() {
        let pair = parts(&[(&U32, 4), (&F64, 8)]);
        let long = |n: usize| parts(&[(&pair, 12 * n), (&U8, 1)]).signature();
        assert_ne!(long(100_000), long(100_001));
        assert_eq!(long(100_000), long(100_000));
    }

    #[test]
    fn types_of_one_hash_are_told_apart() {
        // By counts, until two sequences have one hash.
        let sequence = |count: usize| {
            [(Scalar::U8, count), (Scalar::F64, 1)]
                .map(|(of, count)| ScalarRun { what: Item::Scalar(of), count })
        };
        let mut seen = HashMap::new();
        let (one, other) = (1usize..)
            .find_map(|count| seen.insert(hash(&sequence(count), 0), count).map(|one| (one, count)))
            .unwrap();
        let signatures = [one, other].map(|count| parts(&[(&U8, count), (&F64, 8)]).signature());
        assert_ne!(signatures[0], signatures[1], "{one} and {other}");
        assert_eq!(
            signatures,
            [one, other].map(|count| parts(&[(&U8, count), (&F64, 8)]).signature())
        );
        assert_eq!(signatures[1].to_string(), format!("{{{other} x u8, f64}}"));
    }

    #[test]
    fn signatures_have_names() {
        assert_eq!(Signature::of_scalar(Scalar::Bool).to_string(), "bool");
        let mixed = parts(&[(&U8, 3), (&F64, 8)]);
        assert_eq!(mixed.signature().to_string(), "{3 x u8, f64}");
        assert!(Signature(HASHED).to_string().contains("unknown here"));
        assert_eq!(Signature::VALUE.to_string(), "a serde value");
    }
}
