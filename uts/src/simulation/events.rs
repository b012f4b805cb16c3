//! Simulated events in the order of their times.

use std::{cmp::Reverse, collections::BinaryHeap};

/// Future events. Of two at the same time, the one that was pushed first comes first.
#[derive(Debug)]
pub(super) struct Events<W> {
    queue: BinaryHeap<Reverse<Event<W>>>,
    told: u64,
}

/// Something that happens to a process.
#[derive(Debug)]
pub(super) struct Event<W> {
    /// Its time, in nanoseconds.
    pub at: f64,
    number: u64,
    /// The process it happens to.
    pub process: usize,
    /// The event.
    pub what: W,
}

impl<W> Events<W> {
    /// No events, with room for this many.
    pub(super) fn with_capacity(events: usize) -> Self {
        Self { queue: BinaryHeap::with_capacity(events), told: 0 }
    }

    /// Adds an event.
    pub(super) fn push(&mut self, at: f64, process: usize, what: W) {
        self.told += 1;
        self.queue.push(Reverse(Event { at, number: self.told, process, what }));
    }

    /// The next event.
    pub(super) fn pop(&mut self) -> Option<Event<W>> {
        self.queue.pop().map(|Reverse(event)| event)
    }

    /// The number of events pushed.
    pub(super) fn told(&self) -> u64 {
        self.told
    }
}

impl<W> PartialEq for Event<W> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<W> Eq for Event<W> {}

impl<W> PartialOrd for Event<W> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<W> Ord for Event<W> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.total_cmp(&other.at).then(self.number.cmp(&other.number))
    }
}
