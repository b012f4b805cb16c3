//! Spans of `tracing` that ranks are in, or hold.
//!
//! A span is a number assigned by its subscriber. Each PE has its own copy of the subscriber that
//! the program has set for all threads; on another PE the number means another span, or none. A
//! span refers to its subscriber by an address and a table of functions, side by side. So a rank is
//! pinned while its memory contains these two words.

use std::cell::Cell;

use tracing::dispatcher::{self, Dispatch};

use super::counted::{count_of, is_mapped, search};
use crate::arena::SlotHeader;

const WORD: usize = size_of::<usize>();

thread_local! {
    /// The two words, once they are known.
    static SUBSCRIBER: Cell<Option<[usize; 2]>> = const { Cell::new(None) };
}

/// Why the rank of a slot is pinned, if it holds a span; `frame`: it runs, and its own stack ends there.
///
/// # Safety
/// The slot is of a rank of this thread's PE, which is suspended or is the caller.
pub unsafe fn pin(slot: *mut SlotHeader, frame: Option<usize>) -> Option<&'static str> {
    let words = SUBSCRIBER.get().or_else(subscriber)?;
    // SAFETY: the same promise.
    let holds = unsafe { search(slot, &words, frame) };
    holds.then_some("it is in a span of `tracing`, or holds one: spans are their PE's")
}

/// The words by which spans refer to the global subscriber, if there is one. A subscriber that was set for only a part
/// of the program is counted, and lies in the memory of the rank that has set it.
fn subscriber() -> Option<[usize; 2]> {
    if !dispatcher::has_been_set() {
        return None;
    }
    let words = dispatcher::get_default(|dispatch| {
        // SAFETY: a handle of tracing's.
        let is_counted = unsafe { count_of(dispatch) } != 0;
        if is_counted { None } else { words_of(dispatch) }
    });
    SUBSCRIBER.set(words);
    words
}

fn words_of(dispatch: &Dispatch) -> Option<[usize; 2]> {
    let words = std::ptr::from_ref(dispatch).cast::<usize>();
    // SAFETY: inside the value. Beside a tag there may be bytes that are not initialised, which are
    // no address of memory, or are not taken for one below.
    let at = |i: usize| unsafe { words.add(i).read_volatile() };
    let is_address = |word: usize| word.is_multiple_of(WORD) && is_mapped(word);
    let mut pairs = (1..size_of::<Dispatch>() / WORD).map(|i| [at(i - 1), at(i)]);
    // A subscriber without data is nobody's.
    pairs.rfind(|pair| pair.iter().all(|word| is_address(*word)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    /// Depends on how `tracing` refers to subscribers.
    #[test]
    fn spans_have_the_words_of_their_subscriber() {
        // For all threads of this process: other tests do without.
        tracing_subscriber::fmt().with_writer(std::io::sink).init();
        let words = subscriber().expect("look at how a `Dispatch` is made");
        let has = |span: &tracing::Span| {
            let first = std::ptr::from_ref(span).cast::<usize>();
            // SAFETY: a word of the span.
            let at = |i: usize| unsafe { first.add(i).read_volatile() };
            (1..size_of::<tracing::Span>() / WORD).any(|i| [at(i - 1), at(i)] == words)
        };
        assert!(has(&tracing::info_span!("a span")));
    }
}
