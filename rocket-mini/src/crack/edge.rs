//! An edge between two elements: bonded, held together, or broken.

use serde::{Deserialize, Serialize};

/// The traction that an edge bears before it is no longer bonded.
pub(super) const STRENGTH: f64 = 5.0;
/// How far its sides part before it is broken.
const REACH: f64 = 2e-3;
/// How far they part while the edge is intact, just after it was inserted: this determines its
/// stiffness.
const WHOLE: f64 = 0.05 * REACH;

/// An edge with two ends, at each of which its sides part independently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Edge {
    /// The sides are joined.
    #[default]
    Bonded,
    /// The sides may part.
    Cohesive {
        /// The farthest they have been apart, at either end.
        farthest: [f64; 2],
        /// How far they are apart along the normal, at either end.
        opening: [f64; 2],
    },
}

impl Edge {
    /// An edge that has just been inserted.
    pub fn inserted() -> Self {
        Self::Cohesive { farthest: [WHOLE; 2], opening: [0.0; 2] }
    }

    /// An edge that is broken from the beginning.
    pub fn notch() -> Self {
        Self::Cohesive { farthest: [REACH; 2], opening: [0.0; 2] }
    }

    /// Whether it is broken at both ends.
    pub fn is_broken(&self) -> bool {
        matches!(self, Self::Cohesive { farthest: [a, b], .. } if a.min(*b) >= REACH)
    }

    /// The energy per length that was dissipated at an end: the area below the curve up to the
    /// greatest opening, without the part that would be released from there.
    pub fn dissipated(&self, end: usize) -> f64 {
        match self {
            Self::Bonded => 0.0,
            Self::Cohesive { farthest, .. } => {
                let farthest = farthest[end].min(REACH);
                0.5 * traction_at(WHOLE) * farthest - 0.5 * (traction_at(farthest) * WHOLE)
            }
        }
    }

    /// The energy per length that is stored at an end whose opening is `apart`.
    pub fn stored(&self, end: usize, [normal, tangential]: [f64; 2]) -> f64 {
        match self {
            Self::Bonded => 0.0,
            Self::Cohesive { farthest, .. } => {
                let stiffness = traction_at(farthest[end]) / farthest[end];
                let stiff_normal = if normal < 0.0 { CONTACT } else { stiffness };
                0.5 * (stiff_normal * normal * normal + stiffness * tangential * tangential)
            }
        }
    }

    /// The traction at an end whose opening is `apart`, along the normal and across it: it pulls
    /// the sides together, or pushes them apart where they overlap.
    pub fn traction(&mut self, end: usize, apart: [f64; 2]) -> [f64; 2] {
        let Self::Cohesive { farthest, opening } = self else { return [0.0; 2] };
        let [normal, tangential] = apart;
        opening[end] = normal;
        let open = normal.max(0.0);
        let distance = (open * open + tangential * tangential).sqrt();
        farthest[end] = farthest[end].max(distance);
        let stiffness = traction_at(farthest[end]) / farthest[end];
        [(if normal < 0.0 { CONTACT } else { stiffness }) * normal, stiffness * tangential]
    }
}

/// The stiffness of sides that overlap.
const CONTACT: f64 = STRENGTH / WHOLE;

/// The traction of sides at a new greatest opening.
fn traction_at(distance: f64) -> f64 {
    if distance <= WHOLE {
        STRENGTH * distance / WHOLE
    } else {
        (STRENGTH * (REACH - distance) / (REACH - WHOLE)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pulling_an_edge_apart_takes_the_area_below_the_curve() {
        let mut edge = Edge::inserted();
        let steps = 100_000;
        let apart = |step: usize| 1.2 * REACH * step as f64 / steps as f64;
        let mut work = 0.0;
        for step in 0..steps {
            let middle = 0.5 * (apart(step) + apart(step + 1));
            work += edge.traction(0, [middle, 0.0])[0] * (apart(step + 1) - apart(step));
            if step == steps / 4 {
                let known = edge.dissipated(0) + edge.stored(0, [middle, 0.0]);
                assert!((work / known - 1.0).abs() < 1e-3, "{work} {known}");
            }
        }
        assert!((work / (0.5 * STRENGTH * REACH) - 1.0).abs() < 1e-6);
        assert!((edge.dissipated(0) / work - 1.0).abs() < 1e-6);
        assert!(!edge.is_broken(), "the other end is not");
        edge.traction(1, [0.0, REACH]);
        assert!(edge.is_broken());
    }

    #[test]
    fn sides_that_have_parted_come_back_more_softly_and_push_when_they_overlap() {
        let mut edge = Edge::inserted();
        let [far, _] = edge.traction(0, [0.5 * REACH, 0.0]);
        let [near, _] = edge.traction(0, [0.25 * REACH, 0.0]);
        assert!((near - 0.5 * far).abs() < 1e-12);
        let [pushed, _] = edge.traction(0, [-0.1 * WHOLE, 0.0]);
        assert!((pushed + 0.1 * STRENGTH).abs() < 1e-12);
    }
}
