//! Cuts a trace of vrt into phases: what each rank has run and sent in each.
//!
//! The costs of moves and messages are taken from the trace: a move ends when the rank arrives after it has left; the
//! time in which PEs were neither in ranks nor idle is attributed to the messages between nodes.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::Read,
    path::Path,
};

use lb_strategies::{
    Edge, LoadModel, MoveCost, Object, Pe,
    auto::{MessageCost, PeState},
    replay::RecordedPhase,
};
use vrt_trace::read::{Trace, What};

use crate::options::Failure;

/// Seconds of a move inside a node, if the trace has none.
const HAND_OVER: f64 = 5e-6;
/// Seconds per byte that is moved to another node, likewise.
const PER_BYTE: f64 = 2e-10;
/// The beginning of a trace, before the version of its format.
const OF_TRACE: &[u8] = b"vrtrace";

/// Whether a file, or the first of the files of several PEs, is a trace.
pub(crate) fn is_trace(path: &Path) -> bool {
    let mut name = path.as_os_str().to_owned();
    name.push(".0");
    let of = |path: &Path| {
        let mut begins = [0; OF_TRACE.len()];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut begins));
        read.is_ok() && begins == *OF_TRACE
    };
    if path.exists() { of(path) } else { of(Path::new(&name)) }
}

/// What ranks have done in a phase.
#[derive(Default)]
struct Done {
    /// Seconds that a rank has run, on each PE.
    run: HashMap<(u32, u32), f64>,
    /// Messages and bytes between ranks.
    sent: BTreeMap<(u32, u32), (u64, u64)>,
}

/// The phases of a trace, each of this many seconds except the last.
pub(crate) fn phases_of(path: &Path, cut: f64) -> Result<Vec<RecordedPhase>, Failure> {
    let trace = Trace::read(path)?;
    let end = trace.end() as f64 / 1e9;
    let number = |seconds: f64| (seconds.max(0.0) / cut) as usize;
    let mut phases: Vec<Done> = Vec::new();
    phases.resize_with((end / cut).ceil().max(1.0) as usize, Done::default);
    let last = phases.len() - 1;
    let mut sizes: HashMap<u32, (u64, bool)> = HashMap::new();
    let mut began: HashMap<u32, u32> = HashMap::new();
    for (pe, event) in trace.events() {
        let at = event.at as f64 / 1e9;
        match event.what {
            What::Ran { rank, nanoseconds, .. } => {
                began.entry(rank).or_insert(pe);
                let from = (at - nanoseconds / 1e9).max(0.0);
                let (first, end) = (number(from), number(at) + 1);
                for (number, done) in phases.iter_mut().enumerate().take(end).skip(first) {
                    let begin = number as f64 * cut;
                    let part = (at.min(begin + cut) - from.max(begin)).max(0.0);
                    *done.run.entry((rank, pe)).or_default() += part;
                }
            }
            What::Sent(message) => {
                let sent = &mut phases[number(at).min(last)].sent;
                let (messages, bytes) = sent.entry((message.from, message.to)).or_default();
                (*messages, *bytes) = (*messages + 1, *bytes + message.bytes);
            }
            What::Placed { rank, bytes, pinned, .. } => {
                sizes.insert(rank, (bytes, pinned));
            }
            _ => {}
        }
    }
    if began.is_empty() {
        return Err(Failure::EmptyTrace { file: path.display().to_string() });
    }
    let mut pes = vec![Pe::default(); trace.pes as usize];
    for record in &trace.records {
        pes[record.pe as usize].node = record.node as usize;
    }
    let mut places: BTreeMap<u32, u32> = began.into_iter().collect();
    let (move_cost, message_cost) =
        (moves_of(&trace, &pes), messages_of(&trace, &pes, &phases, &places));
    let of_phase = |(number, done): (usize, &Done)| {
        let mut loads: HashMap<u32, f64> = HashMap::new();
        let mut longest: HashMap<u32, f64> = HashMap::new();
        for ((rank, pe), seconds) in &done.run {
            *loads.entry(*rank).or_default() += seconds;
            let before = longest.entry(*rank).or_default();
            if *seconds > *before {
                *before = *seconds;
                places.insert(*rank, *pe);
            }
        }
        let objects = places.iter().map(|(rank, pe)| {
            let (bytes, pinned) = sizes.get(rank).copied().unwrap_or_default();
            let load = loads.get(rank).copied().unwrap_or_default();
            let object = Object::new(load, *pe as usize).with_bytes(bytes);
            if pinned { object.pinned() } else { object }
        });
        let numbers: HashMap<u32, usize> = places.keys().copied().zip(0..).collect();
        let edges = done.sent.iter().filter_map(|((from, to), (messages, bytes))| {
            let (from, to) = (*numbers.get(from)?, *numbers.get(to)?);
            Some(Edge { from, to, messages: *messages, bytes: *bytes })
        });
        let model = LoadModel::new(pes.clone(), objects.collect(), edges.collect())?;
        let ids = places.keys().copied().collect();
        let seconds = if number == last { end - cut * last as f64 } else { cut };
        let pes = vec![PeState::default(); model.pes().len()];
        Ok(RecordedPhase {
            model: model.with_move_cost(move_cost)?,
            ids,
            seconds,
            pes,
            message_cost,
        })
    };
    phases.iter().enumerate().map(of_phase).collect()
}

/// The cost of a move: the median time from leaving to arriving for moves without bytes, and the additional time per
/// byte.
fn moves_of(trace: &Trace, pes: &[Pe]) -> MoveCost {
    let mut left: HashMap<u32, (i64, u64)> = HashMap::new();
    let (mut near, mut far) = (Vec::new(), (0.0, 0));
    let mut moves: Vec<_> = trace
        .events()
        .filter(|(_, it)| matches!(it.what, What::Leaves { .. } | What::Comes { .. }))
        .collect();
    moves.sort_by_key(|(_, it)| it.at);
    for (_, event) in moves {
        match event.what {
            What::Leaves { rank, bytes, .. } => {
                left.insert(rank, (event.at, bytes));
            }
            What::Comes { rank, .. } => {
                let Some((at, bytes)) = left.remove(&rank) else { continue };
                let seconds = (event.at - at).max(0) as f64 / 1e9;
                match bytes {
                    0 => near.push(seconds),
                    _ => far = (far.0 + seconds, far.1 + bytes),
                }
            }
            _ => {}
        }
    }
    near.sort_by(f64::total_cmp);
    let fixed = near.get(near.len() / 2).copied().unwrap_or(HAND_OVER);
    let several = pes.iter().any(|pe| pe.node != pes[0].node);
    let per_byte = match far {
        _ if !several => 0.0,
        (_, 0) => PER_BYTE,
        (seconds, bytes) => seconds / bytes as f64,
    };
    MoveCost { fixed, per_byte }
}

/// The cost of a message between nodes for the PEs at both ends.
fn messages_of(
    trace: &Trace,
    pes: &[Pe],
    phases: &[Done],
    places: &BTreeMap<u32, u32>,
) -> MessageCost {
    let statistics = vrt_trace::statistics::Statistics::of(trace);
    let node = |rank: &u32| Some(pes[*places.get(rank)? as usize].node);
    let sent = phases.iter().flat_map(|done| &done.sent);
    let off_node: u64 = sent
        .filter(|((from, to), _)| node(from) != node(to))
        .map(|(_, (messages, _))| messages)
        .sum();
    if off_node == 0 {
        return MessageCost::default();
    }
    let rest: f64 = statistics.pes.values().map(|pe| pe.overhead).sum();
    MessageCost { fixed: rest / (2 * off_node) as f64, per_byte: 0.0 }
}
