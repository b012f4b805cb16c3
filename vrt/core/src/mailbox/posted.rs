//! Receives that wait for a message.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::mailbox::{LINEAR, Pattern};

/// Receives of each pattern: time of posting and request.
type ByPattern = FxHashMap<Pattern, VecDeque<(u64, u32)>>;

/// Posted receives, by pattern, in the order of posting. A receive is the number of its request.
#[derive(Debug, Default)]
pub(crate) struct Posted {
    /// While they are found quickly: all of them, in order.
    few: VecDeque<(Pattern, u32)>,
    /// Otherwise: all of them, by pattern, with the time of posting.
    many: Option<Box<ByPattern>>,
    clock: u64,
    len: usize,
}

impl Posted {
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub fn push(&mut self, pattern: Pattern, request: u32) {
        self.len += 1;
        match &mut self.many {
            None => self.few.push_back((pattern, request)),
            Some(many) => {
                self.clock += 1;
                many.entry(pattern).or_default().push_back((self.clock, request));
            }
        }
    }

    #[cold]
    fn build_index(&mut self) {
        let mut many = Box::<ByPattern>::default();
        for (pattern, request) in self.few.drain(..) {
            self.clock += 1;
            many.entry(pattern).or_default().push_back((self.clock, request));
        }
        self.many = Some(many);
    }

    /// Takes the earliest receive that matches a message.
    #[inline(always)]
    pub fn take(&mut self, message: &Pattern) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        if self.many.is_none() {
            // Most often the first one.
            if let Some((first, request)) = self.few.front()
                && first.matches(message)
            {
                let request = *request;
                self.few.pop_front();
                self.len -= 1;
                return Some(request);
            }
            let at = self.few.iter().position(|(pattern, _)| pattern.matches(message));
            if self.few.len() <= LINEAR || at.is_some_and(|at| at <= LINEAR) {
                let taken = self.few.remove(at?);
                self.removed();
                return taken.map(|(_, request)| request);
            }
            self.build_index();
        }
        let request = match &mut self.many {
            None => return None,
            Some(many) => {
                let (_, pattern) = message
                    .matched_by()
                    .into_iter()
                    .filter_map(|p| Some((many.get(&p)?.front()?.0, p)))
                    .min_by_key(|(time, _)| *time)?;
                let queue = many.get_mut(&pattern)?;
                let (_, request) = queue.pop_front()?;
                if queue.is_empty() {
                    many.remove(&pattern);
                }
                request
            }
        };
        self.removed();
        Some(request)
    }

    /// Withdraws a receive; returns false if it has been matched already.
    pub fn cancel(&mut self, pattern: &Pattern, request: u32) -> bool {
        let found = match &mut self.many {
            None => self.few.iter().position(|(_, r)| *r == request).map(|at| {
                self.few.remove(at);
            }),
            Some(many) => many.get_mut(pattern).and_then(|queue| {
                let at = queue.iter().position(|(_, r)| *r == request)?;
                queue.remove(at).map(|_| ())
            }),
        };
        if found.is_some() {
            self.removed();
        }
        found.is_some()
    }

    /// All receives in the order of posting.
    pub(crate) fn into_list(self) -> Vec<(Pattern, u32)> {
        let Some(many) = self.many else { return self.few.into() };
        let mut timed: Vec<(u64, Pattern, u32)> = Vec::with_capacity(self.len);
        for (pattern, queue) in *many {
            timed.extend(queue.into_iter().map(|(time, request)| (time, pattern, request)));
        }
        timed.sort_unstable_by_key(|(time, ..)| *time);
        timed.into_iter().map(|(_, pattern, request)| (pattern, request)).collect()
    }

    fn removed(&mut self) {
        self.len -= 1;
        if self.len == 0 {
            self.many = None;
        }
    }
}
