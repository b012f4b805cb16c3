//! Tracks when each PE would finish its work so far, and finds the PE that would finish another
//! piece of work first.

use crate::{bounds::Bounds, least::Least, model::LoadModel};

/// PEs of one speed form a group; with more speeds than this, PEs of similar speed do.
const GROUPS: usize = 64;

/// The load of each PE while objects are being placed.
pub(crate) struct PeFinish {
    speeds: Vec<f64>,
    groups: Vec<Group>,
    /// For each group, the PE with the least work: the group's only candidate.
    first: Vec<First>,
    /// For each PE, its group and its position in it.
    places: Vec<(u32, u32)>,
}

/// PEs of one speed, or of similar ones.
struct Group {
    /// By number.
    pes: Vec<u32>,
    seconds: Least,
}

#[derive(Clone, Copy)]
struct First {
    pe: usize,
    seconds: f64,
    speed: f64,
}

impl PeFinish {
    /// Every PE with its background load and its objects that cannot move.
    pub(crate) fn new(model: &LoadModel) -> Self {
        let speeds = model.pes().iter().map(|pe| pe.speed);
        Self::of(speeds.zip(Bounds::new(model).fixed))
    }

    /// PEs of these speeds with this many seconds of work already.
    pub(crate) fn of(pes: impl Iterator<Item = (f64, f64)>) -> Self {
        let (speeds, seconds): (Vec<f64>, Vec<f64>) = pes.unzip();
        let (group_of, count) = group_by_speed(&speeds);
        let mut members = vec![vec![]; count];
        let places = group_of.iter().zip(0_u32..).map(|(&group, pe)| {
            members[group].push(pe);
            (group as u32, members[group].len() as u32 - 1)
        });
        let places = places.collect();
        // Of similar speeds, there may be none in a group.
        let groups = members.into_iter().map(|pes| {
            let seconds = Least::new(pes.iter().map(|&pe| seconds[pe as usize]));
            Group { pes, seconds }
        });
        let groups: Vec<Group> = groups.collect();
        let first = groups.iter().map(|group| group.first(&speeds)).collect();
        Self { speeds, groups, first, places }
    }

    /// The PE that would finish `work` first, and when. In a tie, the PE with the smallest number.
    pub(crate) fn earliest(&self, work: f64) -> (usize, f64) {
        let mut best = (usize::MAX, f64::INFINITY);
        for First { pe, seconds, speed } in &self.first {
            let when = seconds + work / speed;
            if when < best.1 || (when == best.1 && *pe < best.0) {
                best = (*pe, when);
            }
        }
        best
    }

    /// When `pe` would finish if `work` were added.
    pub(crate) fn with(&self, pe: usize, work: f64) -> f64 {
        let (group, place) = self.places[pe];
        self.groups[group as usize].seconds.of(place as usize) + work / self.speeds[pe]
    }

    pub(crate) fn add(&mut self, pe: usize, work: f64) {
        let seconds = self.with(pe, work);
        let (group, place) = self.places[pe];
        let (group, first) = (&mut self.groups[group as usize], &mut self.first[group as usize]);
        group.seconds.set(place as usize, seconds);
        // Work is only ever added, so no other PE comes before the first of its group.
        if pe == first.pe {
            *first = group.first(&self.speeds);
        }
    }
}

impl Group {
    fn first(&self, speeds: &[f64]) -> First {
        let (place, seconds) = self.seconds.first();
        let pe = self.pes.get(place).map_or(usize::MAX, |&pe| pe as usize);
        First { pe, seconds, speed: speeds.get(pe).copied().unwrap_or(1.0) }
    }
}

/// For each PE its group of equal or similar speed, and the number of groups.
fn group_by_speed(of_pes: &[f64]) -> (Vec<usize>, usize) {
    let mut speeds = of_pes.to_vec();
    speeds.sort_by(f64::total_cmp);
    speeds.dedup();
    let group = |speed: f64| {
        if speeds.len() <= GROUPS {
            return speeds.partition_point(|&it| it < speed);
        }
        let (low, high) = (speeds[0].ln(), speeds[speeds.len() - 1].ln());
        (((speed.ln() - low) / (high - low) * GROUPS as f64) as usize).min(GROUPS - 1)
    };
    let groups = of_pes.iter().map(|&speed| group(speed)).collect();
    (groups, speeds.len().min(GROUPS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Pe;

    #[test]
    fn many_speeds_share_groups_and_fast_pes_still_come_first() {
        let speed = |it: u32| 1.0 + f64::from(it) / 100.0;
        let pes = (0..500).map(|it| Pe { speed: speed(it), ..Pe::default() }).collect();
        let model = LoadModel::new(pes, vec![], vec![]).expect("sound");
        let mut finish = PeFinish::new(&model);
        assert_eq!(finish.groups.len(), GROUPS);
        let (pe, when) = finish.earliest(1.0);
        assert!(pe > 450, "{pe}");
        finish.add(pe, 1.0);
        assert_eq!(finish.with(pe, 0.0), when);
        assert_ne!(finish.earliest(1.0).0, pe);
    }
}
