//! A rank's operations on the contexts of its communicators.
//!
//! Each rank numbers the collective operations of a context itself, and PEs that combine them count its contributions.
//! A rank updates this with each operation and takes it along when it moves; a context that it has freed is forgotten.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// A rank's operations on the contexts of the communicators that it has.
#[derive(Debug, Serialize, Deserialize)]
pub struct Begun {
    /// The context of the last operation, and its data; [`NO_CONTEXT`] before the first.
    last: (u32, ContextUse),
    /// All contexts; the entry of the last one is out of date.
    all: FxHashMap<u32, ContextUse>,
}

/// What a rank has done on a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContextUse {
    /// Number of the last collective operation.
    pub number: u32,
    /// Contributions to operations that PEs combine.
    pub contributions: u32,
    /// First rank of the group in those, as in their `Spec`.
    pub first: u32,
}

/// No communicator has it: contexts come in fours, and the last four are never given out.
pub(super) const NO_CONTEXT: u32 = u32::MAX;

impl Default for Begun {
    fn default() -> Self {
        Begun { last: (NO_CONTEXT, ContextUse::default()), all: FxHashMap::default() }
    }
}

impl Begun {
    #[inline(always)]
    fn used(&mut self, context: u32) -> &mut ContextUse {
        if self.last.0 != context {
            self.recall(context);
        }
        &mut self.last.1
    }

    #[inline(never)]
    fn recall(&mut self, context: u32) {
        let (before, used) = self.last;
        if before != NO_CONTEXT {
            self.all.insert(before, used);
        }
        self.last = (context, self.all.get(&context).copied().unwrap_or_default());
    }

    /// The number of the next operation on a context.
    #[inline]
    pub fn next(&mut self, context: u32) -> u32 {
        let used = self.used(context);
        used.number = used.number.wrapping_add(1);
        used.number
    }

    /// Counts a contribution to an operation that PEs combine; `first` is the group's.
    #[inline]
    pub fn contribute(&mut self, context: u32, first: u32) {
        let used = self.used(context);
        used.contributions = used.contributions.wrapping_add(1);
        used.first = first;
    }

    /// [`contribute`](Self::contribute) to the next operation, whose number this is.
    #[inline]
    pub(crate) fn next_with_contribution(&mut self, context: u32, first: u32) -> u32 {
        let used = self.used(context);
        used.number = used.number.wrapping_add(1);
        used.contributions = used.contributions.wrapping_add(1);
        used.first = first;
        used.number
    }

    /// The number of collective operations that it has begun, on the contexts that it has.
    pub fn operations(&self) -> u64 {
        let last = self.last.0;
        let others = self.all.iter().filter(|(context, _)| **context != last);
        others.map(|(_, used)| u64::from(used.number)).sum::<u64>() + u64::from(self.last.1.number)
    }

    /// The rank is in a group that PEs know by this context.
    pub fn join(&mut self, context: u32, first: u32) {
        self.used(context).first = first;
    }

    /// Forgets a context that the rank does not use any more; what it has done there, if anything.
    pub(crate) fn forget(&mut self, context: u32) -> Option<ContextUse> {
        let known = self.all.remove(&context);
        if self.last.0 != context {
            return known;
        }
        let (_, used) = std::mem::replace(&mut self.last, (NO_CONTEXT, ContextUse::default()));
        Some(used)
    }

    /// Forgets all contexts from a first one on.
    pub(crate) fn forget_from(&mut self, first: u32) -> Vec<(u32, ContextUse)> {
        self.recall(NO_CONTEXT);
        self.all.extract_if(|context, _| *context >= first).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_contexts_in_use_are_kept() {
        let mut begun = Begun::default();
        for context in 8..1000 {
            assert_eq!(
                [begun.next(1), begun.next(context), begun.next(context)],
                [context - 7, 1, 2]
            );
            begun.contribute(context, 5);
            let used = begun.forget(context).unwrap();
            assert_eq!((used.number, used.contributions, used.first), (2, 1, 5));
            assert_eq!(begun.forget(context), None);
        }
        begun.join(1001, 7);
        begun.next(1005);
        let mut gone = begun.forget_from(8);
        gone.sort_by_key(|(context, _)| *context);
        assert_eq!(
            gone.iter().map(|(context, used)| (*context, used.first)).collect::<Vec<_>>(),
            [(1001, 7), (1005, 0)]
        );
        assert_eq!(
            begun.all.into_iter().collect::<Vec<_>>(),
            [(1, ContextUse { number: 992, ..ContextUse::default() })]
        );
    }
}
