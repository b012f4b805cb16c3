//! Receives that wait for a message.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::mailbox::{LINEAR, Pattern};

/// A posted receive: the number of its request, and whether it has a buffer yet. One word, as matching reads many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PostedReceive(u32);

impl PostedReceive {
    /// The bit of receives that reserve. (No rank has as many requests.)
    const RESERVES: u32 = 1 << 31;

    /// A receive whose message goes into the buffer of its request.
    #[inline(always)]
    pub(crate) fn into_buffer(request: u32) -> PostedReceive {
        debug_assert!(request < PostedReceive::RESERVES);
        PostedReceive(request)
    }

    /// A receive without a buffer so far: its message is reserved for it.
    pub(crate) fn reserving(request: u32) -> PostedReceive {
        debug_assert!(request < PostedReceive::RESERVES);
        PostedReceive(request | PostedReceive::RESERVES)
    }

    /// The number of its request.
    #[inline(always)]
    pub(crate) fn request(self) -> u32 {
        self.0 & !PostedReceive::RESERVES
    }

    /// Whether its message is reserved.
    #[inline(always)]
    pub(crate) fn reserves(self) -> bool {
        self.0 >= PostedReceive::RESERVES
    }
}

/// Receives of each pattern, with their times of posting.
type ByPattern = FxHashMap<Pattern, VecDeque<(u64, PostedReceive)>>;

/// Posted receives, by pattern, in the order of posting.
///
/// They are sent as a list: see [`gather`](Posted::gather).
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Posted {
    /// While they are found quickly: all of them, in order.
    few: VecDeque<(Pattern, PostedReceive)>,
    /// Otherwise: all of them, by pattern, with the time of posting.
    #[serde(skip)]
    many: Option<Box<ByPattern>>,
    #[serde(skip)]
    clock: u64,
    len: usize,
}

impl Posted {
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, pattern: Pattern, receive: PostedReceive) {
        self.len += 1;
        match &mut self.many {
            None => self.few.push_back((pattern, receive)),
            Some(many) => {
                self.clock += 1;
                many.entry(pattern).or_default().push_back((self.clock, receive));
            }
        }
    }

    #[cold]
    fn build_index(&mut self) {
        let mut many = Box::<ByPattern>::default();
        for (pattern, receive) in self.few.drain(..) {
            self.clock += 1;
            many.entry(pattern).or_default().push_back((self.clock, receive));
        }
        self.many = Some(many);
    }

    /// Takes the earliest receive that matches a message.
    #[inline(always)]
    pub(crate) fn take(&mut self, message: &Pattern) -> Option<PostedReceive> {
        if self.len == 0 {
            return None;
        }
        if self.many.is_none() {
            // Most often the first one.
            if let Some((first, receive)) = self.few.front()
                && first.matches(message)
            {
                let receive = *receive;
                self.few.pop_front();
                self.len -= 1;
                return Some(receive);
            }
            let at = self.few.iter().position(|(pattern, _)| pattern.matches(message));
            if self.few.len() <= LINEAR || at.is_some_and(|at| at <= LINEAR) {
                let taken = self.few.remove(at?);
                self.removed();
                return taken.map(|(_, receive)| receive);
            }
            self.build_index();
        }
        let receive = match &mut self.many {
            None => return None,
            Some(many) => {
                let (_, pattern) = message
                    .matched_by()
                    .into_iter()
                    .filter_map(|p| Some((many.get(&p)?.front()?.0, p)))
                    .min_by_key(|(time, _)| *time)?;
                let queue = many.get_mut(&pattern)?;
                let (_, receive) = queue.pop_front()?;
                if queue.is_empty() {
                    many.remove(&pattern);
                }
                receive
            }
        };
        self.removed();
        Some(receive)
    }

    /// Withdraws a receive; returns false if it has been matched already.
    pub(crate) fn cancel(&mut self, pattern: &Pattern, receive: PostedReceive) -> bool {
        let found = match &mut self.many {
            None => self.few.iter().position(|(_, r)| *r == receive).map(|at| {
                self.few.remove(at);
            }),
            Some(many) => many.get_mut(pattern).and_then(|queue| {
                let at = queue.iter().position(|(_, r)| *r == receive)?;
                queue.remove(at).map(|_| ())
            }),
        };
        if found.is_some() {
            self.removed();
        }
        found.is_some()
    }

    /// Puts all receives back into the list, in the order of posting.
    pub(crate) fn gather(&mut self) {
        let Some(many) = self.many.take() else { return };
        let mut timed: Vec<(u64, Pattern, PostedReceive)> = Vec::with_capacity(self.len);
        for (pattern, queue) in *many {
            timed.extend(queue.into_iter().map(|(time, receive)| (time, pattern, receive)));
        }
        timed.sort_unstable_by_key(|(time, ..)| *time);
        self.few = timed.into_iter().map(|(_, pattern, receive)| (pattern, receive)).collect();
    }

    fn removed(&mut self) {
        self.len -= 1;
        if self.len == 0 {
            self.many = None;
        }
    }
}
