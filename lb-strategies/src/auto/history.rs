//! The loads of objects in the last samples.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;

use super::compare::Point;
use super::{SCALES, Sample, WINDOW};

/// Selects some of the last samples.
#[derive(Clone, Copy)]
pub(super) enum Which {
    /// The newer half of a window, or the older one.
    Newer,
    Older,
    /// A group of this many, counted from the newest.
    Group {
        number: usize,
        samples: usize,
    },
}

/// Loads of objects, in seconds per second, the newest last.
#[derive(Debug, Default)]
pub(super) struct LoadHistory {
    /// Objects that appeared later have fewer.
    loads: HashMap<u32, VecDeque<f64>>,
    /// Lengths of the samples in seconds.
    lengths: VecDeque<f64>,
}

impl LoadHistory {
    /// The number of samples that are kept.
    const KEPT: usize = WINDOW << (SCALES - 1);
    /// Samples are long enough if they have at least this part of the intended length.
    const NEARLY: f64 = 0.75;

    pub(super) fn note(&mut self, sample: &Sample) {
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

    /// The number of samples in which any of these objects was seen.
    pub(super) fn samples(&self, ids: &[u32]) -> usize {
        ids.iter().filter_map(|id| Some(self.loads.get(id)?.len())).max().unwrap_or(0)
    }

    /// The mean load of an object in the selected samples.
    pub(super) fn load(&self, id: u32, which: Which) -> f64 {
        let Some(loads) = self.loads.get(&id).filter(|loads| !loads.is_empty()) else { return 0.0 };
        let range = Self::range(which, loads.len());
        let count = range.len() as f64;
        loads.range(range).sum::<f64>() / count
    }

    /// The range of the selected samples among this many.
    fn range(which: Which, of: usize) -> Range<usize> {
        const HALF: usize = WINDOW / 2;
        let (older, newer) = match which {
            Which::Newer => (HALF, 0),
            Which::Older => (WINDOW, HALF),
            Which::Group { number, samples } => ((number + 1) * samples, number * samples),
        };
        // Of one that has not been here for so long, what there is.
        let older = older.clamp(1, of);
        let newer = newer.min(older - 1);
        of - older..of - newer
    }

    /// The loads of a sample's objects in the selected samples, as far as they differ by more than noise.
    ///
    /// If another program takes the core now and then, some objects seem slow by chance. A strategy would move just
    /// those, and mispredict the gain. So the more of the scatter is noise, the closer each load is moved to the mean
    /// of its PE (the estimator of James and Stein, 1961, with a positive part). The sum over the objects of a PE is
    /// unchanged.
    pub(super) fn loads(&self, sample: &Sample, which: Which) -> Vec<f64> {
        let mut loads: Vec<f64> = sample.ids.iter().map(|id| self.load(*id, which)).collect();
        let mut pes: HashMap<usize, Vec<usize>> = HashMap::new();
        for (number, object) in sample.model.objects().iter().enumerate() {
            pes.entry(object.pe).or_default().push(number);
        }
        for here in pes.values() {
            let noise = here.iter().map(|number| self.noise(sample.ids[*number], which));
            let noise = noise.sum::<f64>() / here.len() as f64;
            let mean = here.iter().map(|number| loads[*number]).sum::<f64>() / here.len() as f64;
            let squares: f64 = here.iter().map(|number| (loads[*number] - mean).powi(2)).sum();
            let by_chance = (here.len() as f64 - 3.0).max(0.0) * noise;
            let real = if squares > by_chance { 1.0 - by_chance / squares } else { 0.0 };
            here.iter().for_each(|number| loads[*number] = mean + real * (loads[*number] - mean));
        }
        loads
    }

    /// The variance of [`load`](Self::load), from the differences of neighbouring samples: a load that changes slowly
    /// is not noise.
    fn noise(&self, id: u32, which: Which) -> f64 {
        let Some(loads) = self.loads.get(&id).filter(|loads| loads.len() > 1) else { return 0.0 };
        let newest = loads.range(loads.len().saturating_sub(WINDOW)..);
        let steps = newest.clone().skip(1).zip(newest).map(|(next, last)| (next - last).powi(2));
        let (count, squares) = steps.fold((0, 0.0), |(count, sum), step| (count + 1, sum + step));
        // Two neighbours differ by the noise of both.
        squares / (2 * count) as f64 / Self::range(which, loads.len()).len() as f64
    }

    /// Sets the length of samples: shorter ones are merged with their neighbours, or forgotten if there are too few of
    /// them.
    pub(super) fn join(&mut self, seconds: f64) {
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

/// The same for measured rates, in the same order.
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
    groups(&lengths, LoadHistory::NEARLY * seconds).into_iter().map(join).collect()
}

/// Groups of neighbours with at least this total, from the last one on; a remainder at the beginning is in no group.
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

    fn note(history: &mut LoadHistory, seconds: f64, ids: &[u32], load: f64) {
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
        let mut history = LoadHistory::default();
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
    fn noise_is_no_difference_and_a_difference_no_noise() {
        // Eight objects on each of two PEs, by the number of an object and of a sample.
        let last = |load: &dyn Fn(usize, usize) -> f64| {
            let mut history = LoadHistory::default();
            let ids: Vec<u32> = (0..16).collect();
            let mut loads = (Vec::new(), Vec::new());
            for number in 0..WINDOW {
                let objects =
                    (0..16).map(|object| Object::new(load(object, number), object / 8)).collect();
                let model = LoadModel::new(vec![Pe::default(); 2], objects, vec![]).expect("sound");
                let sample = Sample {
                    seconds: 1.0,
                    model: &model,
                    ids: &ids,
                    pes: &[],
                    events: 0,
                    grain: 1.0,
                    message_cost: MessageCost::default(),
                };
                history.note(&sample);
                let raw = ids.iter().map(|id| history.load(*id, Which::Newer)).collect();
                loads = (history.loads(&sample, Which::Newer), raw);
            }
            loads
        };
        let error = |loads: &[f64]| loads.iter().map(|load| (load - 1.0).powi(2)).sum::<f64>();
        let mut lots = crate::random::generator(1, 0);
        let noise: Vec<f64> =
            (0..16 * WINDOW).map(|_| rand::Rng::random_range(&mut lots, -0.5..0.5)).collect();
        let noise = |object: usize, number: usize| noise[16 * number + object];
        let (even, raw) = last(&|object, number| 1.0 + noise(object, number));
        assert!(error(&even) < error(&raw) / 2.0, "{even:?} of {raw:?}");
        let all = |loads: &[f64]| loads[..8].iter().sum::<f64>();
        assert!((all(&even) - all(&raw)).abs() < 1e-9, "together they take as long");
        let uneven = |object: usize| if object.is_multiple_of(4) { 8.0 } else { 1.0 };
        let (noisy, _) = last(&|object, number| uneven(object) + noise(object, number));
        let close = |object: usize| (noisy[object] / uneven(object) - 1.0).abs() < 0.5;
        assert!((0..16).all(close), "{noisy:?}");
        let (slow, _) = last(&|object, number| uneven(object) * (1.0 + number as f64 / 100.0));
        assert!((slow[0] / slow[1] - 8.0).abs() < 0.1, "{slow:?}");
    }

    #[test]
    fn rates_are_joined_likewise() {
        let point = |seconds, events, work| Point { seconds, events, work };
        let points = [point(0.5, 10.0, 1.0), point(0.25, 40.0, 2.0), point(0.75, 20.0, 2.0)];
        assert_eq!(joined(&points, 1.0), [point(0.75, 20.0, 4.0 / 3.0), point(0.75, 20.0, 2.0)]);
        assert_eq!(joined(&points, 3.0), []);
    }
}
