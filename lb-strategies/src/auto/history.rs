//! What objects took in the last samples.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;

use super::compare::Point;
use super::{SCALES, Sample, WINDOW};

/// Of which of the last samples loads are taken.
#[derive(Clone, Copy)]
pub(super) enum Which {
    /// The newer half of a window, or the older one.
    Newer,
    Older,
    /// A group of so many, counted from the newest.
    Group {
        number: usize,
        samples: usize,
    },
}

/// Loads of objects, in seconds a second, the newest last.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Those of an object that has come later are fewer.
    loads: HashMap<u32, VecDeque<f64>>,
    /// Seconds of the samples.
    lengths: VecDeque<f64>,
}

impl History {
    /// Samples that are kept.
    const KEPT: usize = WINDOW << (SCALES - 1);
    /// Of samples whose length is to be so much, those are not too short that have this part of it.
    const NEARLY: f64 = 0.75;

    pub fn note(&mut self, sample: &Sample) {
        let push = |kept: &mut VecDeque<f64>, value: f64| {
            if kept.len() == Self::KEPT {
                kept.pop_front();
            }
            kept.push_back(value);
        };
        push(&mut self.lengths, sample.seconds);
        for (id, object) in sample.ids.iter().zip(sample.model.objects()) {
            push(self.loads.entry(*id).or_default(), object.load / sample.seconds);
        }
        if self.loads.len() > 2 * sample.ids.len() {
            let here: HashSet<u32> = sample.ids.iter().copied().collect();
            self.loads.retain(|id, _| here.contains(id));
        }
    }

    /// In how many samples some of these objects were seen.
    pub fn samples(&self, ids: &[u32]) -> usize {
        ids.iter().filter_map(|id| Some(self.loads.get(id)?.len())).max().unwrap_or(0)
    }

    /// The mean load of an object in some of the last samples.
    pub fn load(&self, id: u32, which: Which) -> f64 {
        const HALF: usize = WINDOW / 2;
        let Some(loads) = self.loads.get(&id).filter(|loads| !loads.is_empty()) else { return 0.0 };
        let (older, newer) = match which {
            Which::Newer => (HALF, 0),
            Which::Older => (WINDOW, HALF),
            Which::Group { number, samples } => ((number + 1) * samples, number * samples),
        };
        // Of one that has not been here for so long, what there is.
        let older = older.clamp(1, loads.len());
        let newer = newer.min(older - 1);
        let range = loads.len() - older..loads.len() - newer;
        let count = range.len() as f64;
        loads.range(range).sum::<f64>() / count
    }

    /// Samples are to be so long: shorter ones become one with those beside them, or are forgotten if there are too
    /// few of them.
    pub fn join(&mut self, seconds: f64) {
        let groups = groups(self.lengths.make_contiguous(), Self::NEARLY * seconds);
        for loads in self.loads.values_mut() {
            let missing = self.lengths.len() - loads.len();
            let mean = |group: &Range<usize>| {
                let of = group.start.max(missing)..group.end;
                let part = |number: usize| self.lengths[number] * loads[number - missing];
                let length: f64 = of.clone().map(|number| self.lengths[number]).sum();
                (length > 0.0).then(|| of.map(part).sum::<f64>() / length)
            };
            *loads = groups.iter().filter_map(mean).collect();
        }
        self.lengths = groups.iter().map(|group| self.lengths.range(group.clone()).sum()).collect();
    }
}

/// The same of rates that were measured, in the same order.
pub(super) fn joined(points: &[Point], seconds: f64) -> Vec<Point> {
    let lengths: Vec<f64> = points.iter().map(|point| point.seconds).collect();
    let join = |group: Range<usize>| {
        let group = &points[group];
        let seconds: f64 = group.iter().map(|point| point.seconds).sum();
        let mean = |of: fn(&Point) -> f64| {
            group.iter().map(|point| point.seconds * of(point)).sum::<f64>() / seconds
        };
        Point { seconds, events: mean(|it| it.events), work: mean(|it| it.work) }
    };
    groups(&lengths, History::NEARLY * seconds).into_iter().map(join).collect()
}

/// Neighbours that have so much together, from the last one on; what is left at the beginning is in none of them.
fn groups(lengths: &[f64], least: f64) -> Vec<Range<usize>> {
    let (mut groups, mut end, mut sum) = (Vec::new(), lengths.len(), 0.0);
    for (number, length) in lengths.iter().enumerate().rev() {
        sum += length;
        if sum >= least {
            groups.push(number..end);
            (end, sum) = (number, 0.0);
        }
    }
    groups.reverse();
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::MessageCost;
    use crate::model::{LoadModel, Object, Pe};

    fn note(history: &mut History, seconds: f64, ids: &[u32], load: f64) {
        let objects = ids.iter().map(|_| Object::new(load * seconds, 0)).collect();
        let model = LoadModel::new(vec![Pe::default()], objects, vec![]).expect("sound");
        history.note(&Sample {
            seconds,
            model: &model,
            ids,
            pes: &[],
            events: 0,
            grain: 1.0,
            message_cost: MessageCost::default(),
        });
    }

    #[test]
    fn short_samples_become_one_and_the_oldest_are_forgotten() {
        let mut history = History::default();
        note(&mut history, 0.25, &[7], 0.5);
        note(&mut history, 0.5, &[7], 0.1);
        note(&mut history, 0.5, &[7, 8], 0.3);
        note(&mut history, 1.0, &[7, 8], 0.6);
        history.join(1.0);
        assert_eq!((history.samples(&[7]), history.samples(&[8])), (2, 2));
        let group = |number| Which::Group { number, samples: 1 };
        let load = |id, number| history.load(id, group(number));
        assert!((load(7, 0) - 0.6).abs() < 1e-9 && (load(7, 1) - 0.2).abs() < 1e-9);
        assert!((load(8, 1) - 0.3).abs() < 1e-9, "what there is of it");
        assert_eq!(history.lengths, [1.0, 1.0]);
        history.join(4.0);
        assert_eq!((history.samples(&[7]), history.lengths.len()), (0, 0));
        note(&mut history, 4.0, &[7], 0.4);
        assert!((history.load(7, Which::Newer) - 0.4).abs() < 1e-9);
    }

    #[test]
    fn rates_are_joined_likewise() {
        let point = |seconds, events, work| Point { seconds, events, work };
        let points = [point(0.5, 10.0, 1.0), point(0.25, 40.0, 2.0), point(0.75, 20.0, 2.0)];
        assert_eq!(joined(&points, 1.0), [point(0.75, 20.0, 4.0 / 3.0), point(0.75, 20.0, 2.0)]);
        assert_eq!(joined(&points, 3.0), []);
    }
}
