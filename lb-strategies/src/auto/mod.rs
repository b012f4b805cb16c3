//! `--lb auto`: a balancer that measures whether its steps have helped.
//!
//! A strategy predicts that a placement is better; whether it is can only be known after ranks have run there. So
//! [`Auto`] treats each placement as a trial. It receives the progress of the job in *samples*, measures their scatter,
//! tries the most promising placement, provided nearly all samples agree on it, and compares the result. A slower
//! placement is undone; a difference within noise counts as no gain, and the placement stays if it seems no worse.
//! Either way `Auto` then waits, each time twice as long and until the cost of failed trials is a small part of the
//! time, before it tries another strategy; the predictions of a strategy count only as far as its previous ones were
//! right.
//!
//! | file | subject |
//! |---|---|
//! | `account` | the gains and costs of all trials |
//! | `compare` | whether a placement is better than the previous one, and noise |
//! | `history` | the loads of objects in the last samples |
//! | `interval` | the length of a sample |
//! | `news` | messages about a trial |
//! | `predict` | the predicted value of a placement, and the candidates |
//!
//! ```text
//!                 a placement promises enough                    all have come, or will not
//!   Watching ------------------------------------> Moving --------------------------------> Trying
//!    ^   ^      better, or no worse as it seems: it stays                                     |  |
//!    |   `-----------------------------------------------------------------------------------'  |
//!    |                              Returning <-------------------------------------------------'
//!    |  all are back, or cannot go      |         worse, or so it seems: back to where ranks were
//!    `----------------------------------'
//! ```
//!
//! The state machine is pure: it knows no clock and no runtime, so that it does the same in a job, in a replay and in a
//! test. Time passes only by the samples' lengths.

mod account;
mod compare;
mod history;
mod interval;
mod news;
mod predict;

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::{
    config::Parameter,
    model::{LoadModel, LoadModelError, Object},
    registry::{UnknownStrategy, find},
    strategy::Strategy,
};
use thiserror::Error;

pub use account::{Account, relative_error};
pub use compare::Change;
use compare::{Point, Row, Verdict, scatter_of_work};
use history::{LoadHistory, Which, joined};
use interval::Interval;
pub use news::News;
use predict::{Candidate, MessageScale, Saving, Scene, Speeds, candidates};
pub use predict::{MessageCost, PeState, USUAL};

/// The name that users select it by, as if it were a strategy.
pub const NAME: &str = "auto";
/// One line for users.
pub const HELP: &str =
    "tries the others, keeps what has helped, takes back what has not; needs no period";
/// The parameters that users can set, instead of those of strategies.
pub const PARAMETERS: &[Parameter] = &[];
/// The argument that lists the strategies to try.
pub const STRATEGIES: &str = "strategies";

/// The strategies that an argument names, such as `greedy-refine+hilbert`; without one, the default ones.
///
/// # Errors
///
/// If there is another argument, or a strategy does not exist.
pub fn parse(arguments: &[String]) -> Result<Vec<&'static dyn Strategy>, AutoError> {
    let mut names = USUAL.join("+");
    for argument in arguments.iter().flat_map(|it| it.split(',')).filter(|it| !it.is_empty()) {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        if name.trim() != STRATEGIES {
            return Err(AutoError::Argument(argument.to_owned()));
        }
        value.trim().clone_into(&mut names);
    }
    names.split('+').map(|name| Ok(find(name.trim())?)).collect()
}

/// Why an argument was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AutoError {
    /// The argument does not exist.
    #[error("`{0}`: allowed is strategies=NAME+NAME.., those that are tried")]
    Argument(String),
    /// The strategy does not exist.
    #[error(transparent)]
    Strategy(#[from] UnknownStrategy),
}

/// What a job has done in an interval.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// The length of the interval, in seconds.
    pub seconds: f64,
    /// The loads of objects in it, and where they are.
    pub model: &'a LoadModel,
    /// The objects' numbers, which do not change.
    pub ids: &'a [u32],
    /// The state of each PE.
    pub pes: &'a [PeState],
    /// How often objects sent a message or began a collective operation.
    pub events: u64,
    /// Mean time that an object ran between two waits, in seconds.
    pub grain: f64,
    /// The runtime's cost of a message to another node.
    pub message_cost: MessageCost,
}

/// An order: object `id` goes to a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The object's number.
    pub id: u32,
    /// Its new PE.
    pub pe: usize,
}

/// The result of a sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// The new PEs of objects that are elsewhere now.
    pub orders: Vec<Placed>,
    /// A message about it, if any.
    pub news: Option<News>,
}

/// Samples of a placement before it is compared or another is tried.
const FEW: usize = 4;
/// Samples of a placement after which it is decided.
const MANY: usize = 16;
/// The number of samples of a placement that are kept.
const KEPT: usize = 24;
/// The number of samples from which a prediction is made.
const WINDOW: usize = 8;
/// A prediction must hold for groups of 1, 2, .. samples; this many group sizes are tried.
const SCALES: u32 = 3;
/// The number of further steps in which objects that could not move are ordered again.
const REPEATS: u32 = 3;
/// If a placement is this much worse, one sample is enough; if half of it, two.
const DISASTER: f64 = -0.2;
/// Seconds after which a placement is known well enough, even with fewer than [`WINDOW`] samples.
const LONG_ENOUGH: f64 = 0.5;
/// The greatest part of the time that undone trials may cost.
const MOST_LOST: f64 = 0.005;
/// The least predicted gain for which a placement is tried.
const WORTH_A_TRIAL: f64 = 0.02;
/// The same if predictions are rough.
const WORTH_A_ROUGH_TRIAL: f64 = 0.2;
/// The predicted advantage for which a strategy further back in the list is preferred.
const MUCH_BETTER: f64 = 0.01;
/// The initial and the greatest number of samples between a failed trial and the next one.
const PATIENCE: u32 = 4;
const MOST_PATIENCE: u32 = 1024;
/// A prediction this much better than that of the failed trial ends the waiting.
const PROMISES_MORE: f64 = 0.1;
/// The least and the greatest number of seconds that a placement is expected to last; in between, as long as it has
/// lasted.
const HORIZON: (f64, f64) = (0.2, 60.0);

/// The balancer that measures whether its steps have helped.
pub struct Auto {
    candidates: Vec<Candidate>,
    phase: Stage,
    /// The points of the current placement, while it does not change.
    points: Vec<Point>,
    loads: LoadHistory,
    /// The PE on which each object was first seen.
    first: HashMap<u32, usize>,
    /// Samples before the next trial, and after the next one that fails.
    waits: u32,
    patience: u32,
    /// The predicted gain of the last failed trial.
    failed: f64,
    /// Seconds since the last placement that helped.
    lasted: f64,
    interval: Interval,
    steps: u64,
    /// A placement from a previous run, to begin with.
    learned: Option<Vec<Placed>>,
    /// That placement was worse than the initial one.
    has_refuted: bool,
    /// The factor between the real cost of messages between nodes and the runtime's measured part of it, as trials have
    /// shown.
    messages: MessageScale,
    account: Account,
}

enum Stage {
    Watching,
    Moving(Trial, u32),
    Trying(Trial),
    /// Objects return to these PEs; how often they have been ordered to.
    Returning(HashMap<u32, usize>, u32),
}

struct Trial {
    candidate: Option<usize>,
    name: String,
    promised: f64,
    /// Where objects go, and where they were.
    target: HashMap<u32, usize>,
    before: HashMap<u32, usize>,
    /// The points measured before.
    points: Vec<Point>,
    /// The predicted saving per second.
    saving: Saving,
}

impl Auto {
    /// Tries these strategies; strategies for tests are tried whatever they predict. `interval` is the length of a
    /// sample in seconds, unless it is determined automatically.
    #[must_use]
    pub fn new(strategies: &[&'static dyn Strategy], interval: Option<f64>) -> Self {
        Self {
            candidates: candidates(strategies),
            phase: Stage::Watching,
            points: Vec::new(),
            loads: LoadHistory::default(),
            first: HashMap::new(),
            waits: 0,
            patience: PATIENCE,
            failed: 0.0,
            lasted: 0.0,
            interval: Interval::new(interval),
            steps: 0,
            learned: None,
            has_refuted: false,
            messages: MessageScale::default(),
            account: Account::default(),
        }
    }

    /// Begins with the findings of a previous run: the length of a sample in seconds, and a placement if one has
    /// helped; if none has, other strategies are tried later.
    pub fn begin_with(&mut self, interval: f64, placement: Option<Vec<Placed>>) {
        self.interval.begin_with(interval);
        if placement.is_none() {
            self.wait_longer(0.0);
            self.wait_longer(0.0);
        }
        self.learned = placement;
    }

    /// Whether the placement it [began with](Self::begin_with) was worse than none, and has been undone.
    #[must_use]
    pub fn has_refuted(&self) -> bool {
        self.has_refuted
    }

    /// The intended length of the next sample, in seconds.
    #[must_use]
    pub fn interval(&self) -> f64 {
        self.interval.seconds()
    }

    /// The result of all trials.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Takes a sample and decides what to do next.
    ///
    /// # Errors
    ///
    /// If the sample's loads are not a valid model.
    pub fn step(&mut self, sample: &Sample) -> Result<Step, LoadModelError> {
        if sample.seconds <= 0.0 || sample.ids.is_empty() {
            return Ok(Step::default());
        }
        self.steps += 1;
        self.account.seconds += sample.seconds;
        if self.steps == 1 {
            // Most of it is how a job begins.
            return Ok(Step::default());
        }
        self.lasted += sample.seconds;
        self.loads.note(sample);
        self.forget_who_left(sample);
        self.note_gain(sample)?;
        let work = sample.model.objects().iter().map(|object| object.load).sum::<f64>();
        let seconds = sample.seconds;
        let point = Point { seconds, events: sample.events as f64 / seconds, work: work / seconds };
        match std::mem::replace(&mut self.phase, Stage::Watching) {
            Stage::Watching => {
                self.points.push(point);
                if self.points.len() > KEPT {
                    self.points.remove(0);
                }
                self.look_for_placement(sample)
            }
            Stage::Moving(trial, told) => Ok(self.go_on_moving(sample, trial, told)),
            Stage::Trying(trial) => {
                self.points.push(point);
                Ok(self.judge(sample, trial))
            }
            Stage::Returning(home, told) => Ok(self.go_on_returning(sample, home, told)),
        }
    }

    fn forget_who_left(&mut self, sample: &Sample) {
        if self.first.len() > 2 * sample.ids.len() {
            let here: HashSet<u32> = sample.ids.iter().copied().collect();
            self.first.retain(|id, _| here.contains(id));
        }
    }

    /// Records the gain of the objects' current placement over their first one.
    fn note_gain(&mut self, sample: &Sample) -> Result<(), LoadModelError> {
        for (id, object) in sample.ids.iter().zip(sample.model.objects()) {
            self.first.entry(*id).or_insert(object.pe);
        }
        if self.account.kept == 0 {
            return Ok(());
        }
        let scene = self.scene(sample, Which::Newer)?;
        let first: Vec<usize> = sample.ids.iter().map(|id| self.first[id]).collect();
        self.account.by_model += sample.seconds * (scene.seconds(&first) - scene.seconds_today());
        self.account.estimate();
        Ok(())
    }

    fn look_for_placement(&mut self, sample: &Sample) -> Result<Step, LoadModelError> {
        self.fit_interval(sample);
        if let Some(placement) = self.learned.take() {
            let target = placement.iter().map(|it| (it.id, it.pe)).collect();
            return Ok(self.try_out(
                sample,
                None,
                "what was learned".to_owned(),
                0.0,
                target,
                Saving::default(),
            ));
        }
        let may_try = self.waits == 0 && self.account.lost <= MOST_LOST * self.account.seconds;
        self.waits = self.waits.saturating_sub(1);
        let is_known = self.points.len() >= WINDOW || self.lasted >= LONG_ENOUGH;
        if self.points.len() < FEW || !is_known {
            return Ok(Step::default());
        }
        let horizon = self.lasted.clamp(HORIZON.0, HORIZON.1);
        // What both halves of the time say is not noise.
        let new = self.scene(sample, Which::Newer)?;
        let is_for_tests = self.candidates.iter().any(|it| it.strategy.is_chaos());
        // Less than that could not be told from noise.
        let least = scatter_of_work(&self.points);
        let least = least.map_or(WORTH_A_TRIAL, |it| WORTH_A_TRIAL.max(it / 2.0));
        let needed = if may_try { least } else { least.max(self.failed + PROMISES_MORE) };
        if new.most_gain() < needed && !is_for_tests {
            return Ok(Step::default());
        }
        let old = self.scene(sample, Which::Older)?;
        // What counts of a promise, whose it is, and what it costs.
        let mut best: Option<(f64, usize, Vec<usize>, f64)> = None;
        for (number, candidate) in self.candidates.iter().enumerate() {
            let Some(placement) = candidate.place(&new, horizon, self.steps) else { continue };
            let cost = move_seconds(&new.model, &placement) / horizon;
            let promised = match candidate.strategy.is_chaos() {
                true => 1.0,
                false => new.gain(&placement).min(old.gain(&placement)) - cost,
            };
            let counts = promised * candidate.trust;
            if best.as_ref().is_none_or(|(most, ..)| counts > *most + MUCH_BETTER) {
                best = Some((counts, number, placement, cost));
            }
        }
        let Some((counts, number, placement, cost)) = best else { return Ok(Step::default()) };
        let candidate = &self.candidates[number];
        let is_rough = new.is_rough() || candidate.speeds != Speeds::Measured;
        let least = if is_rough { least.max(WORTH_A_ROUGH_TRIAL) } else { least };
        if counts < least {
            return Ok(Step::default());
        }
        let sure = match candidate.strategy.is_chaos() {
            true => Some(1.0),
            false => {
                let least = cost + least / candidate.trust;
                self.sure_gain(sample, &new, &placement, least).map(|gain| gain - cost)
            }
        };
        let Some(promised) = sure else { return Ok(Step::default()) };
        if !may_try && promised < self.failed + PROMISES_MORE {
            return Ok(Step::default());
        }
        let saving = new.saving(&placement);
        let target = sample.ids.iter().copied().zip(placement).collect();
        let name = candidate.name();
        Ok(self.try_out(sample, Some(number), name, promised, target, saving))
    }

    /// The mean gain of a placement, if it is at least this much in almost all of the last samples, or groups of
    /// samples: load that alternates, within an iteration or with other load on a core, is even only over a group.
    fn sure_gain(
        &self,
        sample: &Sample,
        scene: &Scene,
        placement: &[usize],
        least: f64,
    ) -> Option<f64> {
        let seen = self.loads.samples(sample.ids);
        let scales = (0..SCALES).map(|scale| 1_usize << scale);
        let is_due = |samples: &usize| {
            *samples == 1 || (self.steps.is_multiple_of(*samples as u64) && FEW * samples <= seen)
        };
        scales.filter(is_due).find_map(|samples| {
            let groups = (seen / samples).min(WINDOW);
            let gains = (0..groups).map(|number| {
                let which = Which::Group { number, samples };
                scene.gain_of(placement, |object| self.loads.load(sample.ids[object], which))
            });
            let gains = Row::of(&gains.collect::<Vec<f64>>(), |gain| *gain)?;
            (gains.at_least() >= least).then_some(gains.mean)
        })
    }

    fn try_out(
        &mut self,
        sample: &Sample,
        candidate: Option<usize>,
        name: String,
        promised: f64,
        target: HashMap<u32, usize>,
        saving: Saving,
    ) -> Step {
        let objects = sample.ids.iter().zip(sample.model.objects());
        let before = objects.map(|(id, object)| (*id, object.pe)).collect();
        let orders = missing(sample, &target);
        if orders.is_empty() {
            return Step::default();
        }
        let points = std::mem::take(&mut self.points);
        self.account.tried += 1;
        let news = Some(News::Tries { name: name.clone(), promised });
        self.phase =
            Stage::Moving(Trial { candidate, name, promised, target, before, points, saving }, 1);
        Step { orders, news }
    }

    /// Orders objects that could not move again. The sample in which objects moved does not count.
    fn go_on_moving(&mut self, sample: &Sample, trial: Trial, told: u32) -> Step {
        let orders = missing(sample, &trial.target);
        if orders.is_empty() || told == REPEATS {
            self.phase = Stage::Trying(trial);
            return Step::default();
        }
        self.phase = Stage::Moving(trial, told + 1);
        Step { orders, news: None }
    }

    fn go_on_returning(&mut self, sample: &Sample, home: HashMap<u32, usize>, told: u32) -> Step {
        let orders = missing(sample, &home);
        if !orders.is_empty() && told < REPEATS {
            self.phase = Stage::Returning(home, told + 1);
        }
        Step { orders, news: None }
    }

    fn judge(&mut self, sample: &Sample, trial: Trial) -> Step {
        let Some(change) = Change::between(&trial.points, &self.points, !spans_nodes(sample.model))
        else {
            // Objects have done nothing before or since.
            self.account.unclear += 1;
            let news = Some(News::CannotTell { name: trial.name });
            return Step { orders: Vec::new(), news };
        };
        let verdict = change.verdict();
        let samples = self.points.len();
        let is_disaster = change.gain < DISASTER / samples as f64;
        let is_decided = match verdict {
            Verdict::Unclear => samples >= MANY,
            Verdict::Worse => samples >= FEW || is_disaster,
            Verdict::Better => samples >= FEW,
        };
        if !is_decided {
            self.phase = Stage::Trying(trial);
            return Step::default();
        }
        let Trial { candidate, name, promised, before, points, saving, .. } = trial;
        // What was learned, and what is for tests, promises nothing that the model knows.
        if candidate.is_some_and(|number| !self.candidates[number].strategy.is_chaos()) {
            self.account.errors.push(relative_error(promised, change.gain));
            self.messages.learn(saving, change);
        }
        let mut trust = candidate.map(|number| &mut self.candidates[number].trust);
        let mut change_trust = |factor: f64| {
            if let Some(trust) = &mut trust {
                **trust = (**trust * factor).clamp(0.01, 1.0);
            }
        };
        match verdict {
            Verdict::Better => {
                change_trust(1.5);
                (self.waits, self.patience, self.failed) = (0, PATIENCE, 0.0);
                self.lasted = 0.0;
                self.account.keeps(&name, promised, change);
                Step { orders: Vec::new(), news: Some(News::Keeps { name, change }) }
            }
            Verdict::Unclear => {
                change_trust(0.7);
                self.wait_longer(promised);
                self.account.unclear += 1;
                // Of many such ones those that seem worse are so on average.
                let stays = change.gain >= 0.0;
                let news = Some(News::NoGain { name, change, stays });
                if stays {
                    return Step { orders: Vec::new(), news };
                }
                self.goes_back(sample, before, points, news)
            }
            Verdict::Worse => {
                change_trust(0.4);
                // What has misled this one may mislead the others.
                self.candidates.iter_mut().for_each(|it| it.trust = (0.7 * it.trust).max(0.01));
                self.wait_longer(promised);
                self.account.takes_back(change, self.interval() * samples as f64);
                self.has_refuted |= candidate.is_none();
                self.goes_back(sample, before, points, Some(News::TakesBack { name, change }))
            }
        }
    }

    /// Orders all objects back to where they were; the points measured there are valid again.
    fn goes_back(
        &mut self,
        sample: &Sample,
        before: HashMap<u32, usize>,
        points: Vec<Point>,
        news: Option<News>,
    ) -> Step {
        let orders = missing(sample, &before);
        self.points = points;
        self.phase = Stage::Returning(before, 1);
        Step { orders, news }
    }

    fn wait_longer(&mut self, promised: f64) {
        self.waits = self.patience;
        self.patience = (2 * self.patience).min(MOST_PATIENCE);
        self.failed = self.failed.max(promised);
    }

    /// Lengthens samples that contain too little; existing ones are merged to the new length.
    fn fit_interval(&mut self, sample: &Sample) {
        if self.interval.fit(sample, &self.points) {
            self.points = joined(&self.points, self.interval());
            self.loads.join(self.interval());
        }
    }

    /// What the job does, by the selected loads.
    fn scene(&self, sample: &Sample, which: Which) -> Result<Scene, LoadModelError> {
        let objects = self.loads.loads(sample, which).into_iter().zip(sample.model.objects());
        let objects = objects.map(|(load, object)| Object { load, ..*object });
        let pes = sample.model.pes().to_vec();
        let edges = sample.model.edges().iter().map(|edge| {
            let a_second = |count: u64| (count as f64 / sample.seconds) as u64;
            crate::model::Edge {
                messages: a_second(edge.messages),
                bytes: a_second(edge.bytes),
                ..*edge
            }
        });
        let model = LoadModel::new(pes, objects.collect(), edges.collect())?
            .with_move_cost(sample.model.move_cost())?;
        Ok(Scene {
            model,
            pes: sample.pes.to_vec(),
            message_cost: self.messages.times(sample.message_cost),
            grain: sample.grain,
        })
    }
}

/// Whether there is more than one node.
fn spans_nodes(model: &LoadModel) -> bool {
    model.pes().iter().any(|pe| pe.node != model.pes()[0].node)
}

/// Objects that can move and are not at their target.
fn missing(sample: &Sample, target: &HashMap<u32, usize>) -> Vec<Placed> {
    let objects = sample.ids.iter().zip(sample.model.objects());
    let movable = objects.filter(|(_, object)| object.migratable);
    movable
        .filter_map(|(id, object)| {
            let pe = *target.get(id)?;
            (pe != object.pe && pe < sample.model.pes().len()).then_some(Placed { id: *id, pe })
        })
        .collect()
}

/// The most seconds that any PE spends on moves.
fn move_seconds(model: &LoadModel, placement: &[usize]) -> f64 {
    let placement = crate::assignment::Assignment::new(model, placement.to_vec());
    placement.map_or(0.0, |placement| placement.move_seconds(model))
}

impl fmt::Debug for Auto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match &self.phase {
            Stage::Watching => "watching",
            Stage::Moving(..) => "moving",
            Stage::Trying(_) => "trying",
            Stage::Returning(..) => "returning",
        };
        f.debug_struct("Auto").field("phase", &phase).field("account", &self.account).finish()
    }
}

#[cfg(test)]
mod tests;
