//! Converts files to a load model (feature `datafile`).

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
};

use super::{
    BACKGROUND, COORDINATES, DataFile, DataFileError, Entity, LIVE_BYTES, MOVE_TIME,
    MOVE_TIME_PER_BYTE, Phase, SPEED, Task, UserDefined, Value,
};
use crate::model::{Edge, LoadModel, MoveCost, Object, Pe};

/// A limit on the number of PEs: a larger number in a file is an error in it.
const MOST_PES: u64 = 1 << 24;

/// A recorded load model.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The model. Its objects are in the order of their identities.
    pub model: LoadModel,
    /// For each object of the model, its identity in the files.
    pub ids: Vec<ObjectId>,
    /// Number of communications that are not in the model: those with an end that is not an object,
    /// or an object that did no work in the phase.
    pub left_out: usize,
}

/// The identity of an object in the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectId {
    /// By `id`; if the object cannot move, also by its node, as such ids repeat.
    Id(u64, Option<u64>),
    /// By `seq_id`, with the object's home and whether it can move.
    Number(u64, Option<u64>, bool),
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id, _) => write!(f, "object id {id}"),
            Self::Number(number, ..) => write!(f, "object seq_id {number}"),
        }
    }
}

/// The phases that are in every one of `files`.
///
/// [`recorded`] also knows phases that a file marks as identical to the previous one.
#[must_use]
pub fn phases(files: &[DataFile]) -> BTreeSet<u64> {
    let of = |file: &DataFile| -> BTreeSet<u64> {
        file.layout().phases.iter().map(|it| it.id).collect()
    };
    let Some((first, rest)) = files.split_first() else { return BTreeSet::new() };
    let all = rest.iter().map(of).collect::<Vec<_>>();
    of(first).into_iter().filter(|phase| all.iter().all(|it| it.contains(phase))).collect()
}

/// The load model of `phase`, from the files of all PEs, in any order.
///
/// A single file may be that of any PE, and contain tasks on any node. Cost: `n log n + e`.
///
/// # Errors
///
/// If a file is missing or given twice, the phase is in none or not in all, or the files are
/// inconsistent.
pub fn recorded(files: &[DataFile], phase: u64) -> Result<Recorded, DataFileError> {
    let files = by_rank(files)?;
    let mut found = vec![];
    for &file in &files {
        found.push((file, phase_of(file, phase)?));
    }
    let (mut pes, move_cost) = pes_of(&found)?;
    let mut objects = Objects::default();
    for &(file, phase) in &found {
        for (index, task) in phase.tasks.iter().enumerate() {
            if files.len() > 1 && task.node >= files.len() as u64 || task.node >= MOST_PES {
                let place = format!("phases[id {}].tasks[{index}].node", phase.id);
                let most = if files.len() > 1 { files.len() as u64 } else { MOST_PES };
                let expected = format!("a number below {most}");
                return Err(file.wrong(&place, task.node.to_string(), &expected));
            }
            objects.add(file, &format!("phases[id {}].tasks[{index}]", phase.id), task)?;
        }
    }
    if let [(file, phase)] = found.as_slice() {
        let rank = file.rank().filter(|it| *it < MOST_PES).unwrap_or(0) as usize;
        let last = phase.tasks.iter().map(|it| it.node as usize).fold(rank, usize::max);
        let own = pes[0];
        pes = vec![Pe { node: own.node, ..Pe::default() }; last + 1];
        pes[rank] = own;
    }
    let numbers: HashMap<ObjectId, usize> =
        objects.0.keys().enumerate().map(|(number, id)| (*id, number)).collect();
    let (edges, left_out) = edges_of(&found, &numbers);
    let (ids, objects): (Vec<_>, Vec<_>) = objects.0.into_iter().unzip();
    let model = LoadModel::new(pes, objects, edges)?.with_move_cost(move_cost)?;
    Ok(Recorded { model, ids, left_out })
}

fn by_rank(files: &[DataFile]) -> Result<Vec<&DataFile>, DataFileError> {
    let name = |file: &DataFile| file.path().display().to_string();
    if let [only] = files {
        return Ok(vec![only]);
    }
    let mut by_rank: BTreeMap<u64, &DataFile> = BTreeMap::new();
    for file in files {
        let rank = file.rank().ok_or_else(|| DataFileError::NoRank { file: name(file) })?;
        if let Some(other) = by_rank.insert(rank, file) {
            let other = name(other);
            return Err(DataFileError::SameRank { file: name(file), other, rank });
        }
    }
    let Some((&last, _)) = by_rank.last_key_value() else { return Err(DataFileError::NoFiles) };
    if let Some(rank) = (0..).zip(by_rank.keys()).find(|(a, b)| a != *b).map(|it| it.0) {
        return Err(DataFileError::MissingRank { rank, last });
    }
    Ok(by_rank.into_values().collect())
}

/// The file's entry for `phase`: its own, or an earlier one if the phase is identical to it.
fn phase_of(file: &DataFile, phase: u64) -> Result<&Phase, DataFileError> {
    let phases = &file.layout().phases;
    let notes = file.layout().metadata.as_ref().and_then(|it| it.phases.as_ref());
    let mut earlier = phase;
    loop {
        if let Some(found) = phases.iter().find(|it| it.id == earlier) {
            return Ok(found);
        }
        let repeats = notes.is_some_and(|it| it.identical_to_previous.contains(earlier));
        match earlier.checked_sub(1) {
            Some(before) if repeats => earlier = before,
            _ => break,
        }
    }
    let known: Vec<String> = phases.iter().map(|it| it.id.to_string()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(DataFileError::NoPhase { file: file.path().display().to_string(), phase, known })
}

fn pes_of(found: &[(&DataFile, &Phase)]) -> Result<(Vec<Pe>, MoveCost), DataFileError> {
    let mut pes = vec![];
    let mut move_cost = MoveCost::default();
    for (number, (file, phase)) in found.iter().enumerate() {
        let mut pe = Pe::default();
        if let Some(metadata) = &file.layout().metadata {
            pe.node = metadata.shared_node.map_or(0, |it| it.id as usize);
            let attribute = |key| number_in(file, "metadata.attributes", &metadata.attributes, key);
            pe.speed = attribute(SPEED)?.unwrap_or(1.0);
            if number == 0 {
                move_cost.fixed = attribute(MOVE_TIME)?.unwrap_or_default();
                move_cost.per_byte = attribute(MOVE_TIME_PER_BYTE)?.unwrap_or_default();
            }
        }
        let place = format!("phases[id {}].user_defined", phase.id);
        let of_phase = |key| number_in(file, &place, &phase.user_defined, key);
        pe.background = of_phase(BACKGROUND)?.unwrap_or_default();
        pe.speed = of_phase(SPEED)?.unwrap_or(pe.speed);
        pes.push(pe);
    }
    Ok((pes, move_cost))
}

fn number_in(
    file: &DataFile,
    place: &str,
    values: &UserDefined,
    key: &str,
) -> Result<Option<f64>, DataFileError> {
    let Some(value) = values.get(key) else { return Ok(None) };
    match value.as_f64() {
        Some(number) if number >= 0.0 => Ok(Some(number)),
        _ => Err(file.wrong(&format!("{place}.{key}"), value.to_string(), "a number, 0 or more")),
    }
}

/// The objects of the tasks.
#[derive(Default)]
struct Objects(BTreeMap<ObjectId, Object>);

impl Objects {
    fn add(&mut self, file: &DataFile, place: &str, task: &Task) -> Result<(), DataFileError> {
        let place = format!("{place}.user_defined");
        let bytes = number_in(file, &place, &task.user_defined, LIVE_BYTES)?.unwrap_or_default();
        let object = Object {
            load: task.time,
            pe: task.node as usize,
            migratable: task.entity.migratable.unwrap_or(false),
            bytes: bytes.ceil() as u64,
            coordinates: coordinates_of(file, &place, task)?,
        };
        let Some(id) = identity(&task.entity, Some(task.node)) else { return Ok(()) };
        let known = self.0.entry(id).or_insert(Object { load: 0.0, ..object });
        if known.pe != object.pe {
            let file = file.path().display().to_string();
            let other = known.pe as u64;
            return Err(DataFileError::TwoPlaces { file, object: id, node: task.node, other });
        }
        // A task for each resource that the object used.
        known.load += object.load;
        Ok(())
    }
}

fn coordinates_of(
    file: &DataFile,
    place: &str,
    task: &Task,
) -> Result<Option<[f64; 3]>, DataFileError> {
    let (numbers, is_index) = match (task.user_defined.get(COORDINATES), &task.entity.index) {
        (Some(value), _) => {
            let numbers = value.as_list().map(|it| it.iter().map(Value::as_f64).collect());
            let wrong = || {
                let place = format!("{place}.{COORDINATES}");
                file.wrong(&place, value.to_string(), "a list of one to three numbers")
            };
            let numbers: Vec<f64> = numbers.flatten().ok_or_else(wrong)?;
            if !(1..=3).contains(&numbers.len()) {
                return Err(wrong());
            }
            (numbers, false)
        }
        (None, Some(index)) => (index.iter().map(|&it| it as f64).collect(), true),
        (None, None) => return Ok(None),
    };
    if is_index && !(1..=3).contains(&numbers.len()) {
        return Ok(None);
    }
    let mut point = [0.0; 3];
    point[..numbers.len()].copy_from_slice(&numbers);
    Ok(Some(point))
}

/// The identity of an entity; `None` if it is not an object. `node` is that of a task.
fn identity(entity: &Entity, node: Option<u64>) -> Option<ObjectId> {
    if entity.kind != "object" {
        return None;
    }
    let migratable = entity.migratable.unwrap_or(false);
    match (entity.id, entity.seq_id) {
        (Some(id), _) => Some(ObjectId::Id(id, node.filter(|_| !migratable))),
        (None, Some(number)) => Some(ObjectId::Number(number, entity.home, migratable)),
        (None, None) => None,
    }
}

/// The edges, and the number of communications that yield none.
///
/// Messages between PEs may be in the file of either PE or of both: the larger record counts.
fn edges_of(
    found: &[(&DataFile, &Phase)],
    numbers: &HashMap<ObjectId, usize>,
) -> (Vec<Edge>, usize) {
    let mut edges: BTreeMap<(usize, usize), (u64, f64)> = BTreeMap::new();
    let mut left_out = 0;
    for (rank, (_, phase)) in found.iter().enumerate() {
        let mut here: HashMap<(usize, usize), (u64, f64)> = HashMap::new();
        for it in &phase.communications {
            let number = |end: &Entity| {
                // An object that cannot move is on its home, or on the PE that speaks of it.
                let nodes = [None, end.home, Some(rank as u64)];
                let ids = nodes.into_iter().filter_map(|node| identity(end, node));
                ids.filter_map(|id| numbers.get(&id)).next().copied()
            };
            let (Some(from), Some(to)) = (number(&it.from), number(&it.to)) else {
                left_out += 1;
                continue;
            };
            let sum = here.entry((from, to)).or_default();
            sum.0 = sum.0.saturating_add(it.messages);
            sum.1 += it.bytes;
        }
        for (ends, (messages, bytes)) in here {
            let most = edges.entry(ends).or_default();
            *most = (most.0.max(messages), most.1.max(bytes));
        }
    }
    let edge = |((from, to), (messages, bytes)): ((usize, usize), (u64, f64))| Edge {
        from,
        to,
        messages,
        bytes: bytes.ceil() as u64,
    };
    (edges.into_iter().map(edge).collect(), left_out)
}
