//! The predicted value of a placement, and the candidates to choose from.

use super::compare::Change;
use crate::{
    assignment::Assignment,
    config::Config,
    model::{LoadModel, Object, Pe},
    registry,
    strategy::Strategy,
};

/// The state of a PE; its speed in the model is that of its processor times `share`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeState {
    /// The part of its core that the PE gets.
    pub share: f64,
    /// Seconds that it waits each time that another program takes its core.
    pub slice: f64,
}

impl Default for PeState {
    /// A PE that has its core for itself.
    fn default() -> Self {
        Self { share: 1.0, slice: 0.0 }
    }
}

/// The cost of a message to an object on another node, for the PEs at both ends, in addition to the measured times of
/// the objects.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MessageCost {
    /// Seconds per message.
    pub fixed: f64,
    /// Seconds per byte.
    pub per_byte: f64,
}

/// The parts of each second that a placement saves according to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Saving {
    pub by_load: f64,
    /// Saved by messages between nodes, at their estimated cost.
    pub by_messages: f64,
}

/// The factor between the real cost of messages between nodes and the runtime's measured part of it: the sending and
/// receiving objects become slower, too, and wait for messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MessageScale {
    times: f64,
    /// Its standard error.
    error: f64,
}

impl Default for MessageScale {
    fn default() -> Self {
        Self { times: 1.0, error: 2.0 }
    }
}

impl MessageScale {
    const RANGE: (f64, f64) = (0.5, 20.0);
    /// The least relative standard error: programs change.
    const LEAST_ERROR: f64 = 0.25;

    /// The cost of messages.
    pub(super) fn times(self, cost: MessageCost) -> MessageCost {
        MessageCost { fixed: self.times * cost.fixed, per_byte: self.times * cost.per_byte }
    }

    /// Learns from the change that a placement has brought: the part that load does not explain is due to messages. The
    /// new value is the mean of the previous value and the observed one, weighted by certainty (a one-dimensional
    /// Kalman filter).
    pub(super) fn learn(&mut self, saving: Saving, change: Change) {
        // Of each second, by messages as they were measured.
        let by_messages = saving.by_messages / self.times;
        if by_messages == 0.0 {
            return;
        }
        let faster = 1.0 + change.gain;
        let saved = 1.0 - 1.0 / faster.max(0.01);
        let error = change.spread / faster.max(0.01).powi(2);
        let unexplained = saved - saving.by_load - saving.by_messages;
        let variance = self.error.powi(2);
        let certainty = variance * by_messages / (variance * by_messages.powi(2) + error.powi(2));
        self.times = (self.times + certainty * unexplained).clamp(Self::RANGE.0, Self::RANGE.1);
        let left = (1.0 - certainty * by_messages) * variance;
        self.error = left.max(0.0).sqrt().max(Self::LEAST_ERROR);
    }
}

/// A PE with a smaller share is slowed down by another program.
const SHARED: f64 = 0.9;

/// What a job does in a second, from the strategies' point of view.
pub(crate) struct Scene {
    /// Loads are in seconds per second.
    pub model: LoadModel,
    pub pes: Vec<PeState>,
    pub message_cost: MessageCost,
    /// Seconds that an object runs between two waits.
    pub grain: f64,
}

impl Scene {
    /// Seconds that the slowest PE needs for what the job does in one second now.
    ///
    /// If another program takes a PE's core for longer than PEs run between waits for each other, all run as slowly as
    /// that PE, however little work it has.
    pub(super) fn seconds(&self, placement: &[usize]) -> f64 {
        self.seconds_of(placement, |object| self.model.objects()[object].load)
    }

    /// The same with other loads.
    fn seconds_of(&self, placement: &[usize], load: impl Fn(usize) -> f64) -> f64 {
        let pes = self.model.pes();
        let mut loads: Vec<f64> = pes.iter().map(|pe| pe.background).collect();
        let mut is_used = vec![false; pes.len()];
        for (object, &pe) in placement.iter().enumerate() {
            let load = load(object);
            loads[pe] += load / self.own_speed(pe);
            is_used[pe] |= load > 0.0;
        }
        for edge in self.model.edges() {
            let (from, to) = (placement[edge.from], placement[edge.to]);
            if pes[from].node != pes[to].node {
                let MessageCost { fixed, per_byte } = self.message_cost;
                let cost = fixed * edge.messages as f64 + per_byte * edge.bytes as f64;
                loads[from] += cost;
                loads[to] += cost;
            }
        }
        let used = || (0..pes.len()).filter(|pe| is_used[*pe]);
        let round = self.round();
        let stalls = |pe: usize| self.is_shared(pe) && self.pes[pe].slice > round;
        let slowest = used().filter(|pe| stalls(*pe)).map(|pe| self.pes[pe].share);
        let slowest = slowest.fold(1.0, f64::min);
        used()
            .map(|pe| {
                let share = if stalls(pe) { 1.0 } else { self.pes[pe].share };
                loads[pe] / share.min(1.0)
            })
            .fold(0.0, f64::max)
            / slowest
    }

    /// Mean seconds in which a PE runs all its objects once, each until it waits.
    fn round(&self) -> f64 {
        let working = self.model.objects().iter().filter(|object| object.load > 0.0).count();
        self.grain * working as f64 / self.pes.len() as f64
    }

    /// Whether other programs slow some PEs down for longer than the others can continue without them: predictions are
    /// rough then.
    pub(super) fn is_rough(&self) -> bool {
        let round = self.round();
        (0..self.pes.len()).any(|pe| self.is_shared(pe) && self.pes[pe].slice > round)
    }

    /// The speed of a PE that has its core for itself.
    fn own_speed(&self, pe: usize) -> f64 {
        self.model.pes()[pe].speed / self.pes[pe].share
    }

    /// The same for the current placement.
    pub(super) fn seconds_today(&self) -> f64 {
        self.seconds(&self.today())
    }

    fn today(&self) -> Vec<usize> {
        self.model.objects().iter().map(|object| object.pe).collect()
    }

    /// How much faster the job would run with a placement, as a part. Waiting of the busiest PE is assumed to be
    /// unchanged.
    pub(super) fn gain(&self, placement: &[usize]) -> f64 {
        faster(self.seconds_today() - self.seconds(placement))
    }

    /// The same with other loads.
    pub(super) fn gain_of(&self, placement: &[usize], load: impl Fn(usize) -> f64) -> f64 {
        faster(self.seconds_of(&self.today(), &load) - self.seconds_of(placement, &load))
    }

    /// What a placement saves of each second: by the distribution of load, and by messages between nodes.
    pub(super) fn saving(&self, placement: &[usize]) -> Saving {
        let without = |scene: &Scene| scene.seconds_today() - scene.seconds(placement);
        let all = without(self);
        let free = Scene {
            model: self.model.clone(),
            pes: self.pes.clone(),
            message_cost: MessageCost::default(),
            grain: self.grain,
        };
        let by_load = without(&free);
        Saving { by_load, by_messages: all - by_load }
    }

    /// An upper bound for the gain of any placement.
    pub(super) fn most_gain(&self) -> f64 {
        let all: f64 = self.model.objects().iter().map(|object| object.load).sum();
        let speed: f64 = (0..self.pes.len()).map(|pe| self.own_speed(pe)).sum();
        faster(self.seconds_today() - all / speed)
    }

    /// The same with other speeds of PEs.
    fn with_speeds(&self, speed: impl Fn(usize) -> f64) -> Option<LoadModel> {
        let pes = self.model.pes().iter().enumerate();
        let pes: Vec<Pe> = pes.map(|(pe, it)| Pe { speed: speed(pe), ..*it }).collect();
        let objects: Vec<Object> = self.model.objects().to_vec();
        let model = LoadModel::new(pes, objects, self.model.edges().to_vec()).ok()?;
        model.with_move_cost(self.model.move_cost()).ok()
    }

    fn is_shared(&self, pe: usize) -> bool {
        self.pes[pe].share < SHARED
    }
}

/// How much faster the job runs, as a part, if this much of each second is saved.
fn faster(saved: f64) -> f64 {
    1.0 / (1.0 - saved).max(0.01) - 1.0
}

/// A way to find a placement.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub strategy: &'static dyn Strategy,
    pub speeds: Speeds,
    /// The part of its predicted gain that it reached when it was tried; its predictions are scaled by it.
    pub trust: f64,
}

/// The PE speeds that a candidate assumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speeds {
    /// The measured ones.
    Measured,
    /// Those of the processors, as if no other program ran there.
    Own,
    /// Nearly zero where another program runs.
    Elsewhere,
}

impl Candidate {
    /// Its name in reports.
    pub(super) fn name(&self) -> String {
        let name = self.strategy.name();
        match self.speeds {
            Speeds::Measured => name.to_owned(),
            Speeds::Own => format!("{name} (as if no other program ran)"),
            Speeds::Elsewhere => format!("{name} (away from other programs)"),
        }
    }

    /// The placement that it proposes, if it differs from today's; `horizon` is the number of seconds that it is
    /// expected to last.
    pub(super) fn place(&self, scene: &Scene, horizon: f64, seed: u64) -> Option<Vec<usize>> {
        /// With this speed, a PE gets nothing that fits elsewhere.
        const HARDLY: f64 = 1e-6;
        let mut config = Config::new(self.strategy);
        if !self.strategy.is_chaos() {
            // Loads are those of a second, so that a period is one.
            config.set("horizon", &horizon.clamp(0.0, 1e9).to_string()).ok()?;
        }
        let shared = (0..scene.pes.len()).filter(|pe| scene.is_shared(*pe)).count();
        let other = match self.speeds {
            Speeds::Measured => None,
            _ if shared == 0 || shared == scene.pes.len() => return None,
            Speeds::Own => Some(scene.with_speeds(|pe| scene.own_speed(pe))?),
            Speeds::Elsewhere => Some(scene.with_speeds(|pe| {
                scene.own_speed(pe) * if scene.is_shared(pe) { HARDLY } else { 1.0 }
            })?),
        };
        let model = other.as_ref().unwrap_or(&scene.model);
        let placement = self.strategy.assign(model, &config, seed);
        (placement != Assignment::today(model)).then(|| placement.into_pes())
    }
}

/// The candidates for these strategies.
pub(crate) fn candidates(strategies: &[&'static dyn Strategy]) -> Vec<Candidate> {
    let candidate = |strategy, speeds| Candidate { strategy, speeds, trust: 1.0 };
    let mut all: Vec<Candidate> =
        strategies.iter().map(|strategy| candidate(*strategy, Speeds::Measured)).collect();
    if let Ok(refines) = registry::find("greedy-refine")
        && strategies.iter().any(|it| it.name() == refines.name())
    {
        all.push(candidate(refines, Speeds::Own));
        all.push(candidate(refines, Speeds::Elsewhere));
    }
    all
}

/// The default strategies.
pub const USUAL: [&str; 7] = [
    "greedy-refine",
    "refine",
    "greedy",
    "greedy-comm",
    "hierarchical",
    "hilbert",
    "graph-bisection",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Edge;

    fn scene(loads: &[(f64, usize)], pes: &[PeState], grain: f64) -> Scene {
        let objects = loads.iter().map(|&(load, pe)| Object::new(load, pe)).collect();
        let speeds = pes.iter().map(|it| Pe { speed: it.share, ..Pe::default() }).collect();
        let model = LoadModel::new(speeds, objects, vec![]).expect("sound");
        Scene { model, pes: pes.to_vec(), message_cost: MessageCost::default(), grain }
    }

    /// Two PEs with two objects each, on the second of which another program runs half of the time.
    fn shared(grain: f64) -> Scene {
        let half = PeState { share: 0.5, slice: 0.004 };
        scene(&[(0.25, 0), (0.25, 0), (0.25, 1), (0.25, 1)], &[PeState::default(), half], grain)
    }

    #[test]
    fn long_slices_stop_all_that_wait_for_each_other() {
        // Two objects on each.
        let coarse = shared(0.01);
        assert!((coarse.seconds(&[0, 0, 1, 1]) - 1.0).abs() < 1e-12);
        assert!((coarse.seconds(&[0, 0, 0, 1]) - 0.75).abs() < 1e-12);
        let fine = shared(0.00025);
        assert!((fine.seconds(&[0, 0, 1, 1]) - 1.0).abs() < 1e-12);
        assert!((fine.seconds(&[0, 0, 0, 1]) - 1.5).abs() < 1e-12, "one alone stops the others");
        assert!((fine.seconds(&[0, 0, 0, 0]) - 1.0).abs() < 1e-12, "away from there");
    }

    #[test]
    fn candidates_leave_a_pe_or_share_it() {
        let refines = registry::find("greedy-refine").expect("exists");
        let place = |speeds| {
            let candidate = Candidate { strategy: refines, speeds, trust: 1.0 };
            candidate.place(&shared(0.01), 10.0, 0)
        };
        let on_second = |placement: Option<Vec<usize>>| {
            placement.map(|it| it.iter().filter(|pe| **pe == 1).count())
        };
        assert_eq!(on_second(place(Speeds::Measured)), Some(1));
        assert_eq!(on_second(place(Speeds::Own)), None, "as it is");
        assert_eq!(on_second(place(Speeds::Elsewhere)), Some(0));
    }

    #[test]
    fn what_messages_cost_is_learned_from_trials() {
        let mut scale = MessageScale::default();
        // Messages cost three times what is measured, and the load is as the model says.
        for by_messages in [-0.05, 0.04, -0.1] {
            let saving = Saving { by_load: 0.2, by_messages: scale.times * by_messages };
            let saved: f64 = 0.2 + 3.0 * by_messages;
            scale.learn(saving, Change { gain: 1.0 / (1.0 - saved) - 1.0, spread: 0.01 });
        }
        assert!((scale.times - 3.0).abs() < 0.1, "{scale:?}");
        let known = scale;
        scale.learn(Saving { by_load: 0.2, by_messages: 0.0 }, Change { gain: 0.0, spread: 0.01 });
        assert_eq!(scale, known, "no messages, nothing learned");
        scale.learn(Saving { by_load: 0.2, by_messages: 0.01 }, Change { gain: 0.0, spread: 0.1 });
        assert!((scale.times - known.times).abs() < 0.3, "noise: {scale:?}");
    }

    #[test]
    fn messages_between_nodes_cost_their_pes() {
        let objects = vec![Object::new(0.5, 0), Object::new(0.4, 1)];
        let pes = vec![Pe::default(), Pe { node: 1, ..Pe::default() }];
        let edges = vec![Edge { from: 0, to: 1, messages: 1000, bytes: 1_000_000 }];
        let model = LoadModel::new(pes, objects, edges).expect("sound");
        let message_cost = MessageCost { fixed: 1e-5, per_byte: 1e-8 };
        let pes = vec![PeState::default(); 2];
        let scene = Scene { model, pes, message_cost, grain: 0.001 };
        assert!((scene.seconds(&[0, 1]) - 0.52).abs() < 1e-12);
        assert!((scene.seconds(&[0, 0]) - 0.9).abs() < 1e-12);
    }
}
