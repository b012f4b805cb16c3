//! Replays a recorded job with other balancers.
//!
//! A recording contains, for each phase, what every object did and how long the phase took. A replay keeps that work
//! and computes other placements: the phase then takes longer or shorter by as much as its busiest PE has more or less
//! to do, and messages between nodes and moves take their measured times. All other waiting of objects for each other
//! is assumed to be unchanged.

use std::collections::HashMap;

#[cfg(feature = "datafile")]
use crate::datafile::{self, DataFile, DataFileError, Recorded};
use crate::{
    assignment::Assignment,
    auto::{self, Account, Auto, MessageCost, PeState, Sample},
    model::{LoadModel, LoadModelError, Object},
    registry::Balancer,
};

/// A phase of a recorded job.
#[derive(Clone, Debug)]
pub struct RecordedPhase {
    /// The work of the objects, and their PEs.
    pub model: LoadModel,
    /// The objects' numbers, which are the same in all phases.
    pub ids: Vec<u32>,
    /// Its length, in seconds.
    pub seconds: f64,
    /// The state of each PE, besides its speed.
    pub pes: Vec<PeState>,
    /// The cost for PEs of messages between nodes.
    pub message_cost: MessageCost,
}

impl RecordedPhase {
    /// The part of the time of all PEs in which objects worked: how close the phase was to one in which no PE ever
    /// waits.
    #[must_use]
    pub fn efficiency(&self) -> f64 {
        let worked: f64 = self.model.objects().iter().map(|object| object.load).sum();
        let all = self.seconds * self.model.pes().len() as f64;
        if all > 0.0 { worked / all } else { 0.0 }
    }

    /// Seconds of work of each PE with this placement of the phase's objects, including messages.
    fn loads(&self, model: &LoadModel) -> Vec<f64> {
        let mut loads = Assignment::today(model).pe_loads(model);
        if self.message_cost == MessageCost::default() {
            return loads;
        }
        let MessageCost { fixed, per_byte } = self.message_cost;
        let (objects, pes) = (model.objects(), model.pes());
        for edge in model.edges() {
            let ends = [objects[edge.from].pe, objects[edge.to].pe];
            if pes[ends[0]].node != pes[ends[1]].node {
                let seconds = fixed * edge.messages as f64 + per_byte * edge.bytes as f64;
                ends.iter().for_each(|pe| loads[*pe] += seconds);
            }
        }
        loads
    }
}

/// The phases that are in all of `files`, one per PE. If the files do not contain a phase's length (vrt's do), it is
/// taken to be the work of its busiest PE.
///
/// # Errors
///
/// If a file is missing or given twice, or the files are inconsistent.
#[cfg(feature = "datafile")]
pub fn phases(files: &[DataFile]) -> Result<Vec<RecordedPhase>, DataFileError> {
    /// vrt's names for the length of a phase, the part of its core that a PE got, and how long it waited for its core.
    const SECONDS: &str = "seconds";
    const SHARE: &str = "core_share";
    const SLICE: &str = "core_slice";
    let mut numbers = HashMap::new();
    let mut all = vec![];
    for phase in datafile::phases(files) {
        let Recorded { model, ids, .. } = datafile::recorded(files, phase)?;
        let of_file = |file: &DataFile, name: &str| {
            let found = file.layout().phases.iter().find(|it| it.id == phase)?;
            found.user_defined.get(name)?.as_f64()
        };
        let busiest = Assignment::today(&model).max_load(&model);
        let lengths = files.iter().filter_map(|file| of_file(file, SECONDS));
        let seconds = lengths.fold(busiest, f64::max);
        let mut pes = vec![PeState::default(); model.pes().len()];
        for (number, file) in files.iter().enumerate() {
            let pe = file.rank().map_or(number, |rank| rank as usize);
            if let Some(pe) = pes.get_mut(pe) {
                let share = of_file(file, SHARE).filter(|share| *share > 0.0);
                pe.share = share.unwrap_or(pe.share);
                pe.slice = of_file(file, SLICE).unwrap_or(pe.slice);
            }
        }
        let ids = ids.iter().map(|id| {
            let next = numbers.len() as u32;
            *numbers.entry(*id).or_insert(next)
        });
        let message_cost = MessageCost::default();
        all.push(RecordedPhase { ids: ids.collect(), model, seconds, pes, message_cost });
    }
    Ok(all)
}

/// The balancer in a replay.
#[derive(Debug)]
pub enum Decider {
    /// The recorded placements.
    Recorded,
    /// Objects stay on their PEs of the first phase.
    Nobody,
    /// A strategy, applied every so many phases.
    Strategy(Balancer, usize),
    /// [`Auto`], after each phase.
    Auto(Box<Auto>),
}

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replayed {
    /// Seconds of all phases, including moves.
    pub seconds: f64,
    /// Seconds of moves.
    pub move_seconds: f64,
    /// Objects that moved.
    pub moves: usize,
    /// Messages between PEs.
    pub off_pe_messages: u64,
    /// Bytes in them.
    pub off_pe_bytes: u64,
    /// For each phase, the seconds of work of each PE.
    pub loads: Vec<Vec<f64>>,
    /// The account of the trials, if there were any.
    pub account: Option<Account>,
}

/// Replays a recorded job. Cost: that of the strategy for each phase.
///
/// # Errors
///
/// If the combined loads of some phases are not a valid model.
pub fn replay(phases: &[RecordedPhase], mut decider: Decider) -> Result<Replayed, LoadModelError> {
    let mut result = Replayed::default();
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut loads: HashMap<u32, f64> = HashMap::new();
    for (number, phase) in phases.iter().enumerate() {
        let loads_then = phase.loads(&phase.model);
        let recorded = busiest(&loads_then);
        if matches!(decider, Decider::Recorded) {
            result.count_moves(phase, &places)?;
            places =
                phase.ids.iter().copied().zip(Assignment::today(&phase.model).into_pes()).collect();
            result.seconds += phase.seconds;
            result.count_messages(&phase.model);
            result.loads.push(loads_then);
            continue;
        }
        let model = placed(phase, &mut places)?;
        let loads_now = phase.loads(&model);
        let seconds = (phase.seconds - recorded).max(0.0) + busiest(&loads_now);
        result.seconds += seconds;
        result.count_messages(&model);
        result.loads.push(loads_now);
        let assignment = match &mut decider {
            Decider::Recorded | Decider::Nobody => continue,
            Decider::Strategy(balancer, every) => {
                for (id, object) in phase.ids.iter().zip(model.objects()) {
                    *loads.entry(*id).or_default() += object.load;
                }
                if !(number + 1).is_multiple_of(*every) {
                    continue;
                }
                let loads = std::mem::take(&mut loads);
                let all = with_loads(&model, phase, |id| loads.get(&id).copied())?;
                balancer.assign(&all, number as u64).into_pes()
            }
            Decider::Auto(auto) => {
                let step = auto.step(&Sample {
                    seconds,
                    model: &model,
                    ids: &phase.ids,
                    pes: &phase.pes,
                    // All phases do the same, however long they take.
                    events: EVENTS * phase.ids.len() as u64,
                    grain: f64::INFINITY,
                    message_cost: phase.message_cost,
                })?;
                let mut pes = Assignment::today(&model).into_pes();
                let numbers: HashMap<u32, usize> = phase.ids.iter().copied().zip(0..).collect();
                for auto::Placed { id, pe } in step.orders {
                    pes[numbers[&id]] = pe;
                }
                pes
            }
        };
        places.extend(phase.ids.iter().copied().zip(assignment.iter().copied()));
        result.count(&model, assignment);
    }
    if let Decider::Auto(auto) = decider {
        result.account = Some(auto.account().clone());
    }
    Ok(result)
}

/// The assumed number of messages of an object in a phase.
const EVENTS: u64 = 100;

fn busiest(loads: &[f64]) -> f64 {
    loads.iter().copied().fold(0.0, f64::max)
}

impl Replayed {
    fn count_messages(&mut self, model: &LoadModel) {
        let objects = model.objects();
        for edge in model.edges().iter().filter(|it| objects[it.from].pe != objects[it.to].pe) {
            self.off_pe_messages += edge.messages;
            self.off_pe_bytes += edge.bytes;
        }
    }

    fn count(&mut self, model: &LoadModel, pes: Vec<usize>) {
        let Ok(assignment) = Assignment::new(model, pes) else { return };
        let seconds = assignment.move_seconds(model);
        self.moves += assignment.moves(model).count();
        self.move_seconds += seconds;
        self.seconds += seconds;
    }

    /// Counts moves between phases as recorded; their time is already part of the phase.
    fn count_moves(
        &mut self,
        phase: &RecordedPhase,
        before: &HashMap<u32, usize>,
    ) -> Result<(), LoadModelError> {
        let mut before = before.clone();
        let model = placed(phase, &mut before)?;
        let moved = |(now, before): (&Object, &Object)| now.pe != before.pe;
        self.moves +=
            phase.model.objects().iter().zip(model.objects()).filter(|it| moved(*it)).count();
        Ok(())
    }
}

/// A phase with its objects at their places in the replay; new objects are where they were recorded.
fn placed(
    phase: &RecordedPhase,
    places: &mut HashMap<u32, usize>,
) -> Result<LoadModel, LoadModelError> {
    let objects = phase.ids.iter().zip(phase.model.objects()).map(|(id, object)| {
        let pe = *places.entry(*id).or_insert(object.pe);
        Object { pe, ..*object }
    });
    let model = &phase.model;
    LoadModel::new(model.pes().to_vec(), objects.collect(), model.edges().to_vec())?
        .with_move_cost(model.move_cost())
}

fn with_loads(
    model: &LoadModel,
    phase: &RecordedPhase,
    load: impl Fn(u32) -> Option<f64>,
) -> Result<LoadModel, LoadModelError> {
    let objects = phase.ids.iter().zip(model.objects());
    let objects =
        objects.map(|(id, object)| Object { load: load(*id).unwrap_or(object.load), ..*object });
    LoadModel::new(model.pes().to_vec(), objects.collect(), model.edges().to_vec())?
        .with_move_cost(model.move_cost())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Edge, Pe},
        registry::{create, find},
    };

    /// A job whose costly quarter is always on PE 0, recorded without moves.
    fn phases() -> Vec<RecordedPhase> {
        let object = |id: usize| Object::new(if id < 4 { 0.008 } else { 0.001 }, id / 8);
        (0..100)
            .map(|_| RecordedPhase {
                model: LoadModel::new(
                    vec![Pe::default(); 2],
                    (0..16).map(object).collect(),
                    vec![],
                )
                .expect("sound"),
                ids: (0..16).collect(),
                // 36 ms of the busiest PE, and 4 in which both wait.
                seconds: 0.040,
                pes: vec![PeState::default(); 2],
                message_cost: MessageCost::default(),
            })
            .collect()
    }

    #[test]
    fn messages_between_nodes_take_their_time() {
        let pes = vec![Pe::default(), Pe { node: 1, ..Pe::default() }];
        let objects = vec![Object::new(0.010, 0), Object::new(0.010, 0), Object::new(0.004, 0)];
        let edges = vec![Edge { from: 0, to: 1, messages: 100, bytes: 0 }];
        let phase = RecordedPhase {
            model: LoadModel::new(pes, objects, edges).expect("sound"),
            ids: (0..3).collect(),
            seconds: 0.024,
            pes: vec![PeState::default(); 2],
            message_cost: MessageCost { fixed: 1e-5, per_byte: 0.0 },
        };
        let phases = vec![phase; 2];
        let greedy = create::<&str, &str>("greedy", &[("home-bias", "0")]).expect("exists");
        let found = replay(&phases, Decider::Strategy(greedy, 1)).expect("a replay");
        // 10 ms on one, 10 and 4 on the other, and the messages on both.
        assert_eq!((found.off_pe_messages, found.loads.len()), (100, 2));
        assert!((found.loads[0][0] - 0.024).abs() < 1e-9, "{found:?}");
        assert!((busiest(&found.loads[1]) - 0.015).abs() < 1e-9, "{found:?}");
        assert!((found.seconds - 0.039).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_phase_is_as_efficient_as_its_objects_keep_pes_at_work() {
        // 44 ms of 80.
        assert!((phases()[0].efficiency() - 0.55).abs() < 1e-9);
    }

    #[cfg(feature = "datafile")]
    #[test]
    fn a_core_that_is_shared_for_a_while_is_slow_for_as_long() {
        let phase_of = |number: u64, speed: f64| {
            let pes = vec![Pe::default(), Pe { speed, ..Pe::default() }];
            let objects = vec![Object::new(0.02, 0), Object::new(0.02, 1)];
            let model = LoadModel::new(pes, objects, vec![]).expect("sound");
            datafile::layouts(&model, number)
        };
        let mut layouts = phase_of(0, 1.0);
        for (layout, other) in layouts.iter_mut().zip(phase_of(1, 0.5)) {
            layout.phases.extend(other.phases);
        }
        layouts[1].phases[1].user_defined.insert("core_share".to_owned(), 0.5.into());
        let files = layouts.iter().enumerate().map(|(pe, layout)| {
            let text = serde_json::to_vec(layout).expect("written");
            DataFile::parse(format!("loads.{pe}.json"), &text).expect("read")
        });
        let phases = super::phases(&files.collect::<Vec<_>>()).expect("two");
        let speeds = phases.iter().map(|phase| (phase.model.pes()[1].speed, phase.pes[1].share));
        assert_eq!(speeds.collect::<Vec<_>>(), [(1.0, 1.0), (0.5, 0.5)]);
        assert!((phases[1].seconds - 0.04).abs() < 1e-9);
    }

    #[test]
    fn each_has_its_time() {
        let phases = phases();
        let seconds = |decider| replay(&phases, decider).expect("a replay");
        let still = seconds(Decider::Nobody);
        assert!((still.seconds - 4.0).abs() < 1e-9 && still.moves == 0, "{still:?}");
        assert!((seconds(Decider::Recorded).seconds - 4.0).abs() < 1e-9);
        let refine = || create::<&str, &str>("greedy-refine", &[]).expect("exists");
        // 22 ms of both PEs, and the 4.
        let each = seconds(Decider::Strategy(refine(), 1));
        assert!((each.seconds - (0.040 + 99.0 * 0.026)).abs() < 1e-9, "{each:?}");
        let tenth = seconds(Decider::Strategy(refine(), 10));
        assert!((tenth.seconds - (0.400 + 90.0 * 0.026)).abs() < 1e-9, "{tenth:?}");
        let strategy = find("greedy-refine").expect("exists");
        let auto = seconds(Decider::Auto(Box::new(Auto::new(&[strategy], Some(0.04)))));
        assert!(auto.seconds < 2.9 && auto.account.expect("trials").kept == 1);
    }
}
