//! The small operations in progress on a PE.
//!
//! Ranks usually enter the same operation one after another, so the operation that was entered last is current, and
//! needs no search.

#![cfg_attr(not(test), expect(clippy::arithmetic_side_effects, reason = "it was just pushed"))]

use rustc_hash::FxHashMap;

use crate::comm::parts::{Key, Operation};
use crate::comm::spec::Disagreement;

/// The operations under way on a PE.
#[derive(Debug)]
pub(super) struct UnderWay {
    /// Operations in progress, and empty ones, to be used next.
    operations: Vec<Operation>,
    /// The index of the current one. Without a key it is an empty one.
    current: usize,
    key: Option<Key>,
    /// The indices of operations in progress that have not been current all the time.
    listed: FxHashMap<Key, usize>,
    /// The indices of empty operations, except the current one.
    spare: Vec<usize>,
}

impl Default for UnderWay {
    fn default() -> UnderWay {
        UnderWay {
            operations: vec![Operation::default()],
            current: 0,
            key: None,
            listed: FxHashMap::default(),
            spare: Vec::new(),
        }
    }
}

impl UnderWay {
    /// An operation, begun or not. It is current from now on.
    #[inline(always)]
    pub(super) fn get(&mut self, key: Key) -> &mut Operation {
        if self.key != Some(key) {
            self.make_current(key);
        }
        &mut self.operations[self.current]
    }

    /// Whether an operation may be there; if not, certainly nobody has come to it, and no packet but early ones.
    #[inline]
    pub(super) fn may_have(&self, key: Key) -> bool {
        self.key == Some(key) || !self.listed.is_empty()
    }

    /// What another rank means by an operation that a rank here has come to, if not the same.
    pub(super) fn conflict(&self, key: Key) -> Option<Disagreement> {
        let at = if self.key == Some(key) { self.current } else { *self.listed.get(&key)? };
        self.operations[at].conflict
    }

    #[inline(never)]
    fn make_current(&mut self, key: Key) {
        if let Some(before) = self.key
            && !std::mem::replace(&mut self.operations[self.current].is_listed, true)
        {
            self.listed.insert(before, self.current);
        }
        let is_empty = self.key.replace(key).is_none();
        if let Some(at) = self.listed.get(&key).copied() {
            let before = std::mem::replace(&mut self.current, at);
            if is_empty {
                self.spare.push(before);
            }
        } else if !is_empty {
            self.current = self.spare.pop().unwrap_or_else(|| {
                self.operations.push(Operation::default());
                self.operations.len() - 1
            });
        }
        self.operations[self.current].key = key;
    }

    /// Forgets an operation, whose state has been cleared.
    pub(super) fn forget(&mut self, key: Key) {
        if std::mem::take(&mut self.get(key).is_listed) {
            self.listed.remove(&key);
        }
        self.key = None;
    }
}
