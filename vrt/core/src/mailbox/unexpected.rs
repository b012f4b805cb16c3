//! Messages that have arrived before their receive.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::mailbox::{LINEAR, Pattern};

/// Unexpected messages in order of arrival; `M` is what is kept of each. They are sent as a list: see
/// [`gather`](Unexpected::gather).
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "M: Deserialize<'de>"))]
pub struct Unexpected<M> {
    /// While they are found quickly: all of them, in order.
    few: VecDeque<(Pattern, M)>,
    #[serde(skip)]
    many: Option<Box<Index<M>>>,
    /// The number of messages above which the PE is notified.
    #[serde(skip)]
    high: usize,
    /// The length of the list below which the PE is notified: the list has more memory than it
    /// needs, or the rank is held.
    #[serde(skip)]
    low: usize,
}

/// A list that has room for no more than this keeps its memory.
const SMALL: usize = 4096;
/// Bytes that the index keeps for a message beside it, about.
const INDEXED: usize = 160;

/// Once they are not: each message by its time of arrival, and for every pattern that somebody
/// could ask for, the times of the messages it matches, in order. A taken message leaves its time
/// behind in up to three queues; those are skipped when met, and swept when they outnumber the
/// living.
#[derive(Debug)]
struct Index<M> {
    clock: u64,
    /// The time of the next message that is put before all others.
    first: u64,
    messages: FxHashMap<u64, (Pattern, M)>,
    times: FxHashMap<Pattern, VecDeque<u64>>,
    stale: usize,
}

/// Where the time of arrival begins; messages that are put before others have earlier times.
const NOON: u64 = 1 << 32;

impl<M> Default for Unexpected<M> {
    fn default() -> Self {
        Unexpected { few: VecDeque::new(), many: None, high: 0, low: 0 }
    }
}

impl<M> Unexpected<M> {
    /// Whether there are no messages.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        // An index is dropped with its last message.
        self.few.is_empty() && self.many.is_none()
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.many.as_ref().map_or(self.few.len(), |index| index.messages.len())
    }

    /// Bytes that the messages take here.
    pub(crate) fn list_bytes(&self) -> usize {
        let each = size_of::<(Pattern, M)>();
        match &self.many {
            None => self.few.len() * each,
            Some(index) => index.messages.len() * (each + INDEXED),
        }
    }

    /// Whether there are more messages than was said last.
    #[inline(always)]
    pub(crate) fn is_beyond(&self) -> bool {
        self.len() > self.high
    }

    /// Whether somebody wants to know that a message was taken.
    #[inline(always)]
    pub(crate) fn is_low(&self) -> bool {
        self.few.len() < self.low
    }

    /// Sets the marks anew for messages that may take so many more bytes.
    pub(crate) fn set_marks(&mut self, room: usize) {
        let len = self.len();
        let more = room / (size_of::<(Pattern, M)>() + INDEXED);
        // Looked at each time it has doubled, at least, so that a long list is known.
        self.high = len + more.min(len.max(SMALL));
        self.watch_memory();
    }

    /// Each message that comes, and each that is taken, is to be told.
    pub(crate) fn mark_all(&mut self) {
        self.high = self.len();
        self.low = usize::MAX;
    }

    /// Gives memory back that a long list does not need any more.
    pub(crate) fn shrink(&mut self) {
        let room = self.few.capacity();
        if room > SMALL && self.few.len() < room / 8 {
            self.few.shrink_to(2 * self.few.len());
        }
        if self.low < usize::MAX {
            self.watch_memory();
        }
    }

    fn watch_memory(&mut self) {
        let room = self.few.capacity();
        self.low = if room > SMALL { room / 8 } else { 0 };
    }

    /// Whether there is an index.
    #[inline(always)]
    pub(crate) fn is_indexed(&self) -> bool {
        self.many.is_some()
    }

    /// [`push`](Self::push) while there is no index: the message is made in its place.
    #[inline(always)]
    pub(crate) fn push_to_list(&mut self, key: Pattern, message: M) {
        debug_assert!(self.many.is_none());
        self.few.push_back((key, message));
    }

    /// Adds a message, the last to arrive; its key has no [`ANY`](super::ANY).
    pub(crate) fn push(&mut self, key: Pattern, message: M) {
        match &mut self.many {
            None => self.few.push_back((key, message)),
            Some(index) => index.push(key, message),
        }
    }

    /// Puts a message before all others.
    pub(crate) fn push_front(&mut self, key: Pattern, message: M) {
        match &mut self.many {
            None => self.few.push_front((key, message)),
            Some(index) => index.push_front(key, message),
        }
    }

    /// The earliest message, if it matches a pattern and the search ends there.
    #[inline(always)]
    pub fn first(&self, pattern: &Pattern) -> Option<&M> {
        let (key, message) = self.few.front()?;
        pattern.matches(key).then_some(message)
    }

    /// Takes away what [`first`](Self::first) found.
    #[inline(always)]
    pub(crate) fn drop_first(&mut self) {
        self.few.pop_front();
    }

    /// Finds the first match in the list; a long search leads to an index.
    #[inline]
    fn position(&mut self, pattern: &Pattern) -> Option<usize> {
        let at = self.few.iter().position(|(key, _)| pattern.matches(key));
        if self.few.len() > LINEAR && at.is_none_or(|at| at > LINEAR) {
            self.build_index();
        }
        at
    }

    #[cold]
    fn build_index(&mut self) {
        let mut index = Box::new(Index::new());
        for (key, message) in self.few.drain(..) {
            index.push(key, message);
        }
        self.many = Some(index);
        self.few = VecDeque::new();
        self.low = 0;
    }

    /// The earliest message that matches a pattern.
    #[inline(always)]
    pub fn find(&mut self, pattern: &Pattern) -> Option<(&Pattern, &M)> {
        // Mostly it is the earliest of all.
        if self.first(pattern).is_some() {
            return self.few.front().map(|(key, message)| (key, message));
        }
        self.search(pattern)
    }

    #[inline(never)]
    fn search(&mut self, pattern: &Pattern) -> Option<(&Pattern, &M)> {
        if self.many.is_none() {
            let at = self.position(pattern)?;
            if self.many.is_none() {
                return self.few.get(at).map(|(key, message)| (key, message));
            }
        }
        let index = self.many.as_mut()?;
        let time = index.first(pattern)?;
        index.messages.get(&time).map(|(key, message)| (key, message))
    }

    /// Takes the earliest message that matches a pattern.
    #[inline]
    pub fn take(&mut self, pattern: &Pattern) -> Option<(Pattern, M)> {
        if self.many.is_none() {
            let at = self.position(pattern)?;
            if self.many.is_none() {
                return if at == 0 { self.few.pop_front() } else { self.few.remove(at) };
            }
        }
        let index = self.many.as_mut()?;
        let time = index.first(pattern)?;
        self.take_at(time)
    }

    /// Takes the message with this key of which something is so.
    pub(crate) fn take_if(&mut self, key: &Pattern, is_it: impl Fn(&M) -> bool) -> Option<M> {
        let Some(index) = &mut self.many else {
            let at = self.few.iter().position(|(its, message)| its == key && is_it(message))?;
            return self.few.remove(at).map(|(_, message)| message);
        };
        let is_at = |time: &&u64| index.messages.get(time).is_some_and(|(_, it)| is_it(it));
        let time = *index.times.get(key)?.iter().find(is_at)?;
        self.take_at(time).map(|(_, message)| message)
    }

    /// Takes what arrived at a time, of the index.
    fn take_at(&mut self, time: u64) -> Option<(Pattern, M)> {
        let index = self.many.as_mut()?;
        let taken = index.messages.remove(&time);
        index.stale += 4;
        if index.messages.is_empty() {
            self.many = None;
        } else {
            index.sweep();
        }
        taken
    }

    /// Puts all messages back into the list, in the order of arrival, and gives them in this order.
    pub(crate) fn gather(&mut self) -> impl DoubleEndedIterator<Item = &mut M> {
        if let Some(index) = self.many.take() {
            let mut timed: Vec<_> = index.messages.into_iter().collect();
            timed.sort_unstable_by_key(|(time, _)| *time);
            self.few = timed.into_iter().map(|(_, message)| message).collect();
        }
        self.few.iter_mut().map(|(_, message)| message)
    }
}

impl<M> Index<M> {
    fn new() -> Self {
        let (messages, times) = (FxHashMap::default(), FxHashMap::default());
        Index { clock: NOON, first: NOON, messages, times, stale: 0 }
    }

    fn push_front(&mut self, key: Pattern, message: M) {
        self.messages.insert(self.first, (key, message));
        for pattern in key.matched_by() {
            self.times.entry(pattern).or_default().push_front(self.first);
        }
        self.first -= 1;
    }

    fn push(&mut self, key: Pattern, message: M) {
        self.clock += 1;
        self.messages.insert(self.clock, (key, message));
        for pattern in key.matched_by() {
            self.times.entry(pattern).or_default().push_back(self.clock);
        }
    }

    fn first(&mut self, pattern: &Pattern) -> Option<u64> {
        let queue = self.times.get_mut(pattern)?;
        while let Some(time) = queue.front() {
            if self.messages.contains_key(time) {
                return Some(*time);
            }
            queue.pop_front();
        }
        self.times.remove(pattern);
        None
    }

    fn sweep(&mut self) {
        if self.stale > 4 * self.messages.len() + 4 * LINEAR {
            let messages = &self.messages;
            self.times.retain(|_, queue| {
                queue.retain(|time| messages.contains_key(time));
                !queue.is_empty()
            });
            self.stale = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Pattern = Pattern { context: 0, source: 1, tag: 2 };
    // An interpreter takes a thousand times as long.
    const MANY: u64 = if cfg!(miri) { 500 } else { 1_000_000 };
    const LIMIT: usize = if cfg!(miri) { 1 << 13 } else { 1 << 20 };

    #[test]
    fn a_long_list_gives_its_memory_back() {
        let mut unexpected = Unexpected::<u64>::default();
        for n in 0..MANY {
            unexpected.push_to_list(KEY, n);
            if unexpected.is_beyond() {
                unexpected.set_marks(1 << 40);
            }
        }
        assert!(unexpected.few.capacity() >= MANY as usize);
        for n in 0..MANY {
            assert_eq!(unexpected.first(&KEY), Some(&n));
            unexpected.drop_first();
            if unexpected.is_low() {
                unexpected.shrink();
            }
            let room = unexpected.few.capacity();
            assert!(
                room <= SMALL || room <= 16 * (unexpected.len() + 1),
                "{room} for {}",
                unexpected.len()
            );
        }
        assert!(unexpected.few.capacity() <= SMALL);
    }

    #[test]
    fn marks_say_when_there_is_no_room_for_more() {
        let mut unexpected = Unexpected::<u64>::default();
        let limit = LIMIT;
        let mut looks = 0;
        while unexpected.list_bytes() <= limit {
            unexpected.push(KEY, 0);
            if unexpected.is_beyond() {
                looks += 1;
                unexpected.set_marks(limit.saturating_sub(unexpected.list_bytes()) / 2);
            }
        }
        assert!(looks < 300, "{looks} looks");
        assert!(unexpected.list_bytes() < limit + 1000);
    }
}
