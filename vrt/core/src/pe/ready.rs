//! The queue of the ranks that are ready to run, first in, first out.
//!
//! Every switch and every message to a waiting rank goes through it, so it is a ring whose length is a power of two,
//! and no call is made unless it grows. A rank that has moved away may still be in it; the taker checks.

/// Ranks in the order in which they became ready.
#[derive(Debug)]
pub(crate) struct ReadyQueue {
    /// Its length is a power of two.
    ring: Box<[u32]>,
    /// The index of the first one, not reduced to the ring's length.
    first: usize,
    len: usize,
}

impl ReadyQueue {
    /// An empty one with room for so many before it has to grow.
    pub(super) fn with_room(ranks: usize) -> ReadyQueue {
        let ring = vec![0; ranks.next_power_of_two()].into_boxed_slice();
        ReadyQueue { ring, first: 0, len: 0 }
    }

    #[inline(always)]
    pub(crate) fn push_back(&mut self, rank: u32) {
        if self.len == self.ring.len() {
            self.grow();
        }
        let mask = self.ring.len() - 1;
        self.ring[self.first.wrapping_add(self.len) & mask] = rank;
        self.len += 1;
    }

    #[inline(always)]
    pub(super) fn pop_front(&mut self) -> Option<u32> {
        let rank = self.get(0)?;
        self.first = self.first.wrapping_add(1);
        self.len -= 1;
        Some(rank)
    }

    /// The one that is taken out after `place` others.
    #[inline(always)]
    pub(super) fn get(&self, place: usize) -> Option<u32> {
        let mask = self.ring.len() - 1;
        (place < self.len).then(|| self.ring[self.first.wrapping_add(place) & mask])
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut longer = ReadyQueue::with_room(2 * self.ring.len());
        while let Some(rank) = self.pop_front() {
            longer.push_back(rank);
        }
        *self = longer;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_queue(room in 0usize..5, steps in prop::collection::vec(any::<Option<u32>>(), 0..200)) {
            let (mut queue, mut model) = (ReadyQueue::with_room(room), VecDeque::new());
            for step in steps {
                match step {
                    Some(rank) => {
                        queue.push_back(rank);
                        model.push_back(rank);
                    }
                    None => prop_assert_eq!(queue.pop_front(), model.pop_front()),
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.is_empty(), model.is_empty());
                for place in 0..=model.len() {
                    prop_assert_eq!(queue.get(place), model.get(place).copied());
                }
            }
        }
    }
}
