//! What pins a rank, as said to others.

use rustc_hash::FxHashMap;

use crate::pe::Obstacle;
use vrt_slot::search::Reference;

/// What pins a rank.
#[derive(Clone, Copy, Debug)]
pub struct Pin {
    /// The reason.
    pub why: &'static str,
    /// For a reference that was found by a search: how many consecutive steps have found one. A word that a call has
    /// left behind looks like a reference until something else is written there.
    pub seemingly: Option<u32>,
}

impl Pin {
    pub(super) fn certain(why: &'static str) -> Pin {
        Pin { why, seemingly: None }
    }
}

impl From<Obstacle> for Pin {
    fn from(Obstacle { why, steps }: Obstacle) -> Pin {
        Pin { why, seemingly: Some(steps) }
    }
}

/// The texts of what was found to keep ranks from moving. A program has few of them; what comes
/// after very many is told without its place.
#[derive(Debug, Default)]
pub(super) struct Reasons(FxHashMap<String, &'static str>);

impl Reasons {
    const MOST: usize = 1000;

    pub(super) fn text(&mut self, found: Reference) -> &'static str {
        let text = found.to_string();
        match self.0.get(&text) {
            Some(known) => known,
            None if self.0.len() < Self::MOST => {
                let lasting: &'static str = Box::leak(text.clone().into_boxed_str());
                self.0.insert(text, lasting);
                lasting
            }
            None => "it refers to memory that is not its own, or something refers to its memory",
        }
    }
}
