//! When each PE would finish what it has so far, and which would finish a piece of work first.

use crate::{bounds::Bounds, model::LoadModel};

/// PEs of one speed are a group; with more speeds than this, PEs of similar speed are.
const GROUPS: usize = 64;

/// The load of each PE while objects are being placed.
pub(crate) struct PeFinish {
    speeds: Vec<f64>,
    groups: Vec<Group>,
    /// For each PE, its group and its place there.
    places: Vec<(u32, u32)>,
}

/// PEs of which only the one with the least to do is a candidate.
struct Group {
    /// By number.
    pes: Vec<u32>,
    seconds: Least,
}

impl PeFinish {
    /// Every PE with its background load and the objects that cannot move.
    pub(crate) fn new(model: &LoadModel) -> Self {
        let speeds = model.pes().iter().map(|pe| pe.speed);
        Self::of(speeds.zip(Bounds::new(model).fixed))
    }

    /// PEs of these speeds that have so many seconds of work already.
    pub(crate) fn of(pes: impl Iterator<Item = (f64, f64)>) -> Self {
        let (speeds, seconds): (Vec<f64>, Vec<f64>) = pes.unzip();
        let (group_of, count) = group_by_speed(&speeds);
        let mut members = vec![vec![]; count];
        let places = group_of.iter().zip(0_u32..).map(|(&group, pe)| {
            members[group].push(pe);
            (group as u32, members[group].len() as u32 - 1)
        });
        let places = places.collect();
        let group = |pes: Vec<u32>| {
            let seconds = Least::new(pes.iter().map(|&pe| seconds[pe as usize]));
            Group { pes, seconds }
        };
        Self { speeds, groups: members.into_iter().map(group).collect(), places }
    }

    /// The PE that would finish `work` first, and when. Of several, the one with the smallest
    /// number.
    pub(crate) fn earliest(&self, work: f64) -> (usize, f64) {
        let mut best = (usize::MAX, f64::INFINITY);
        for group in &self.groups {
            let Some((place, seconds)) = group.seconds.first() else { continue };
            let pe = group.pes[place] as usize;
            let when = seconds + work / self.speeds[pe];
            if when < best.1 || (when == best.1 && pe < best.0) {
                best = (pe, when);
            }
        }
        best
    }

    /// When `pe` would finish, were `work` added.
    pub(crate) fn with(&self, pe: usize, work: f64) -> f64 {
        let (group, place) = self.places[pe];
        self.groups[group as usize].seconds.of(place as usize) + work / self.speeds[pe]
    }

    pub(crate) fn add(&mut self, pe: usize, work: f64) {
        let seconds = self.with(pe, work);
        let (group, place) = self.places[pe];
        self.groups[group as usize].seconds.set(place as usize, seconds);
    }
}

/// The least of numbers that change: a tree, each node of which has the least of eight nodes or numbers below it,
/// side by side, as they are looked at together.
struct Least {
    /// The numbers, then level by level up to the root; each level filled up with infinities.
    nodes: Vec<[f64; FAN]>,
    /// Where in `nodes` each level begins.
    levels: Vec<usize>,
    count: usize,
}

const FAN: usize = 8;

impl Least {
    fn new(numbers: impl Iterator<Item = f64>) -> Self {
        let numbers: Vec<f64> = numbers.collect();
        let count = numbers.len();
        let mut this = Self { nodes: vec![], levels: vec![], count };
        let mut level = numbers;
        loop {
            this.levels.push(this.nodes.len());
            let nodes = level.chunks(FAN).map(|chunk| {
                let mut node = [f64::INFINITY; FAN];
                node[..chunk.len()].copy_from_slice(chunk);
                node
            });
            let nodes: Vec<[f64; FAN]> = nodes.collect();
            level = nodes.iter().map(least).collect();
            this.nodes.extend(nodes);
            if level.len() < 2 {
                return this;
            }
        }
    }

    fn of(&self, index: usize) -> f64 {
        self.nodes[index / FAN][index % FAN]
    }

    fn set(&mut self, mut index: usize, mut number: f64) {
        for &level in &self.levels {
            let node = &mut self.nodes[level + index / FAN];
            let before = least(node);
            node[index % FAN] = number;
            number = least(node);
            if number == before {
                return;
            }
            index /= FAN;
        }
    }

    /// The least number and its index; of several the first. None if there are no numbers.
    fn first(&self) -> Option<(usize, f64)> {
        if self.count == 0 {
            return None;
        }
        let number = least(self.nodes.last()?);
        let descend = |index: usize, &level: &usize| {
            // All are compared, as a branch for each would be guessed wrong.
            let node = self.nodes[level + index].iter().rev();
            let equal = node.fold(0_u32, |equal, it| equal << 1 | u32::from(*it == number));
            index * FAN + equal.trailing_zeros() as usize % FAN
        };
        Some((self.levels.iter().rev().fold(0, descend), number))
    }
}

fn least(node: &[f64; FAN]) -> f64 {
    let less = |a: f64, b: f64| if a < b { a } else { b };
    let &[a, b, c, d, e, f, g, h] = node;
    less(less(less(a, b), less(c, d)), less(less(e, f), less(g, h)))
}

/// For each PE a group of its speed, or of similar ones, and how many groups there are.
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

    #[test]
    fn the_least_is_found_as_numbers_change() {
        for count in [1, 7, 8, 9, 64, 65, 600] {
            let mut numbers: Vec<f64> = (0..count).map(|it| f64::from(it * 7919 % 101)).collect();
            let mut tree = Least::new(numbers.iter().copied());
            for step in 0..2000_u32 {
                let index = (step * 31 % count) as usize;
                numbers[index] = f64::from(step * 7919 % 103);
                tree.set(index, numbers[index]);
                let first = (0..numbers.len()).min_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
                assert_eq!(tree.first(), first.map(|it| (it, numbers[it])));
            }
        }
        assert_eq!(Least::new(std::iter::empty()).first(), None);
        assert_eq!(Least::new([f64::INFINITY; 2].into_iter()).first(), Some((0, f64::INFINITY)));
    }
}
