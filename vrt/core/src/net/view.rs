//! The state of PEs and ranks, for a process that observes a running job.
//!
//! PEs write it only on request, each for itself and for the ranks that it has then:
//!
//! ```text
//! who asks                                        a PE
//!   asked += 1 (n)
//!   a signal to each PE, rings its doorbell ---->   takes the signal where it looks for messages
//!                                                   writes an entry for each of its ranks
//!   waits until answered >= n, or not longer <----  writes its own, with answered = asked
//! ```
//!
//! A PE whose thread is in a rank's code for long answers late; its previous answer can still be read then. An entry
//! has one writer at a time: the PE, or the rank's PE. Its *version* is odd while it is written: a reader that finds it
//! odd, or changed, reads again.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

/// Bytes of texts in an entry.
const CALL: usize = 32;
const PLACE: usize = 64;
/// Times that an entry is read before it is taken as not there: its writer may have died in the middle.
const ATTEMPTS: u32 = 1000;

/// The state of a PE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeView {
    /// The process.
    pub process: u32,
    /// The request that this answers.
    pub answered: u32,
    /// How long the PE has existed.
    pub age: Duration,
    /// Time attributed to ranks, including the switches to them and the runtime's own time.
    pub busy: Duration,
    /// Time asleep or polling.
    pub idle: Duration,
    /// How often a rank has stopped running.
    pub switches: u64,
    /// How often it was sampled whether a rank's code or the runtime's runs, during the time attributed to ranks.
    pub looks: u64,
    /// How many of these samples found the runtime.
    pub own_looks: u64,
    /// Number of its ranks.
    pub ranks: u32,
    /// Number of its ranks that are ready.
    pub ready: u32,
}

/// The state of a rank, as far as known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankView {
    /// The request that this answers; 0: never.
    pub answered: u32,
    /// Its PE.
    pub pe: u32,
    /// What it does.
    pub doing: Doing,
    /// The call in which it waits, or empty; truncated at the end if it is long.
    pub call: String,
    /// The line of the program that contains the call, or empty; truncated at the beginning if it is long.
    pub place: String,
    /// The partner and the tag that it waits for, if it does.
    pub pattern: Option<(i32, i32)>,
    /// The word of the lock for which it waits, or 0.
    pub lock: u64,
    /// Time for which it has run.
    pub run: Duration,
    /// Messages that it has sent.
    pub messages: u64,
    /// Bytes in those.
    pub bytes: u64,
    /// Live bytes of its heap.
    pub memory: u64,
    /// Messages that have arrived without a posted receive.
    pub unexpected: u32,
    /// How often it has moved.
    pub moves: u32,
}

/// What a rank does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Doing {
    /// It waits.
    #[default]
    Waits = 0,
    /// It is ready to run.
    Ready = 1,
    /// It runs.
    Runs = 2,
}

/// A [`PeView`] in control memory; valid when zeroed.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct PeEntry {
    version: AtomicU32,
    process: AtomicU32,
    answered: AtomicU32,
    ranks: AtomicU32,
    ready: AtomicU32,
    /// Age, busy, idle, in nanoseconds; switches; samples, and those that found the runtime.
    numbers: [AtomicU64; 6],
}

/// A [`RankView`] in control memory; valid when zeroed.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct RankEntry {
    version: AtomicU32,
    /// Request, PE, doing, moves, unexpected, whether there is a pattern, its partner and tag.
    words: [AtomicU32; 8],
    /// Lock, nanoseconds, messages, bytes, memory.
    numbers: [AtomicU64; 5],
    call: [AtomicU64; CALL / 8],
    place: [AtomicU64; PLACE / 8],
}

/// Writes an entry whose version this is.
fn write(version: &AtomicU32, f: impl FnOnce()) {
    let before = version.load(Ordering::Relaxed) & !1;
    version.store(before | 1, Ordering::Relaxed);
    fence(Ordering::Release);
    f();
    version.store(before.wrapping_add(2), Ordering::Release);
}

/// Reads an entry whose version this is; `None`: it never was whole.
fn read<T>(version: &AtomicU32, f: impl Fn() -> T) -> Option<T> {
    (0..ATTEMPTS).find_map(|_| {
        let before = version.load(Ordering::Acquire);
        if before % 2 == 1 {
            std::thread::yield_now();
            return None;
        }
        let found = f();
        fence(Ordering::Acquire);
        (version.load(Ordering::Relaxed) == before).then_some(found)
    })
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos().min(u128::from(u64::MAX)) as u64
}

impl PeEntry {
    pub(crate) fn write(&self, view: &PeView) {
        let [age, busy, idle] = [view.age, view.busy, view.idle].map(nanoseconds);
        let numbers = [age, busy, idle, view.switches, view.looks, view.own_looks];
        write(&self.version, || {
            self.process.store(view.process, Ordering::Relaxed);
            self.ranks.store(view.ranks, Ordering::Relaxed);
            self.ready.store(view.ready, Ordering::Relaxed);
            for (entry, number) in self.numbers.iter().zip(numbers) {
                entry.store(number, Ordering::Relaxed);
            }
            self.answered.store(view.answered, Ordering::Release);
        });
    }

    /// The last request that was answered; 0: none. What was said of ranks then can be seen.
    pub(crate) fn answered(&self) -> u32 {
        self.answered.load(Ordering::Acquire)
    }

    pub(crate) fn read(&self) -> Option<PeView> {
        read(&self.version, || {
            let [age, busy, idle, switches, looks, own_looks] =
                std::array::from_fn(|n| self.numbers[n].load(Ordering::Relaxed));
            let [age, busy, idle] = [age, busy, idle].map(Duration::from_nanos);
            let [process, answered, ranks, ready] =
                [&self.process, &self.answered, &self.ranks, &self.ready]
                    .map(|word| word.load(Ordering::Relaxed));
            let times = PeView { age, busy, idle, ..PeView::default() };
            PeView { process, answered, switches, looks, own_looks, ranks, ready, ..times }
        })
    }
}

impl RankEntry {
    /// `call` is cut off at its end, `place` at its beginning, if they are long.
    pub(crate) fn write(&self, view: &RankView) {
        let pattern = view.pattern.unwrap_or_default();
        let words = [
            view.answered,
            view.pe,
            view.doing as u32,
            view.moves,
            view.unexpected,
            u32::from(view.pattern.is_some()),
            pattern.0 as u32,
            pattern.1 as u32,
        ];
        let numbers = [view.lock, nanoseconds(view.run), view.messages, view.bytes, view.memory];
        let call: [u8; CALL] = padded(beginning(&view.call, CALL));
        let place: [u8; PLACE] = padded(ending(&view.place, PLACE));
        write(&self.version, || {
            self.words
                .iter()
                .zip(words)
                .for_each(|(entry, word)| entry.store(word, Ordering::Relaxed));
            self.numbers
                .iter()
                .zip(numbers)
                .for_each(|(entry, number)| entry.store(number, Ordering::Relaxed));
            store_text(&self.call, &call);
            store_text(&self.place, &place);
        });
    }

    /// What was said of the rank last; `None`: nothing yet.
    pub(crate) fn read(&self) -> Option<RankView> {
        let view = read(&self.version, || {
            let word = |n: usize| self.words[n].load(Ordering::Relaxed);
            let number = |n: usize| self.numbers[n].load(Ordering::Relaxed);
            RankView {
                answered: word(0),
                pe: word(1),
                doing: [Doing::Waits, Doing::Ready, Doing::Runs][word(2).min(2) as usize],
                moves: word(3),
                unexpected: word(4),
                pattern: (word(5) != 0).then(|| (word(6) as i32, word(7) as i32)),
                lock: number(0),
                run: Duration::from_nanos(number(1)),
                messages: number(2),
                bytes: number(3),
                memory: number(4),
                call: load_text(&self.call),
                place: load_text(&self.place),
            }
        })?;
        (view.answered != 0).then_some(view)
    }
}

/// As much of the beginning of a text as goes into so many bytes.
fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}

/// As much of the end of a text as goes into so many bytes.
fn ending(text: &str, most: usize) -> &str {
    let least = text.len().saturating_sub(most);
    let begin = (least..=text.len()).find(|at| text.is_char_boundary(*at));
    &text[begin.unwrap_or_default()..]
}

fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

fn store_text(words: &[AtomicU64], bytes: &[u8]) {
    for (word, part) in words.iter().zip(bytes.chunks_exact(8)) {
        let mut eight = [0; 8];
        eight.copy_from_slice(part);
        word.store(u64::from_ne_bytes(eight), Ordering::Relaxed);
    }
}

fn load_text(words: &[AtomicU64]) -> String {
    let bytes: Vec<u8> =
        words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::shared::Shared;

    #[test]
    fn what_is_written_is_read() {
        let shared = Shared::map(2, 5, 2).unwrap();
        assert_eq!(shared.rank_entry(4).read(), None);
        let view = RankView {
            answered: 3,
            pe: 1,
            doing: Doing::Runs,
            call: "receive_into_a_buffer_of_a_very_long_name".to_owned(),
            place: format!("{}/größe/last.rs:12", "a".repeat(60)),
            pattern: Some((-1, 7)),
            run: Duration::from_millis(5),
            messages: 9,
            ..RankView::default()
        };
        shared.rank_entry(4).write(&view);
        let found = shared.rank_entry(4).read().unwrap();
        assert_eq!(found.call, "receive_into_a_buffer_of_a_very_");
        assert!(found.place.ends_with("/größe/last.rs:12") && found.place.len() <= PLACE);
        assert_eq!(RankView { call: view.call.clone(), place: view.place.clone(), ..found }, view);
        assert_eq!(shared.rank_entry(3).read(), None);
        let of_pe = PeView {
            answered: 3,
            ranks: 5,
            busy: Duration::from_secs(2),
            own_looks: 7,
            ..PeView::default()
        };
        shared.pe_entry(1).write(&of_pe);
        assert_eq!((shared.pe_entry(1).read(), shared.pe_entry(1).answered()), (Some(of_pe), 3));
        // SAFETY: nobody uses it any more.
        unsafe { shared.unmap() };
    }

    #[test]
    fn what_is_torn_is_not_taken() {
        let version = AtomicU32::new(0);
        write(&version, || assert_eq!(read(&version, || ()), None));
        assert_eq!(read(&version, || 1), Some(1));
        assert_eq!(read(&version, || write(&version, || ())), None);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!((beginning("größe", 3), ending("größe", 3)), ("gr", "ße"));
        assert_eq!((beginning("ab", 3), ending("ab", 2)), ("ab", "ab"));
    }
}
