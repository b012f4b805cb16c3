//! A trace for Paraver: `.prv` (records), `.pcf` (meanings of numbers), `.row` (names of rows), according to the
//! format's documentation (Paraver's "Tracefile description", Barcelona Supercomputing Center).
//!
//! Ranks are tasks with one thread, PEs are CPUs, nodes are nodes. States are what ranks do; events are calls that they
//! wait in (the value identifies the call), moves and regions; messages are communications.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use rustc_hash::FxHashMap;

use super::perfetto::runs_by_rank;
use super::{ConvertError, failed};
use crate::read::{Then, Trace, What};

const RUNNING: u32 = 1;
const WAITING: u32 = 3;
const READY: u32 = 7;

const CALL: u32 = 50_000_001;
const MOVE: u32 = 50_000_002;
const REGION: u32 = 50_000_003;

/// Writes `path` and the other two files beside it, with their own extensions.
///
/// # Errors
/// A file cannot be written.
pub fn write(trace: &Trace, path: &Path) -> Result<(), ConvertError> {
    let prv = path.with_extension("prv");
    let create = |path: &Path| File::create(path).map(BufWriter::new).map_err(failed(path));
    records(trace, create(&prv)?).map_err(failed(&prv))?;
    let pcf = path.with_extension("pcf");
    meanings(trace, create(&pcf)?).map_err(failed(&pcf))?;
    let row = path.with_extension("row");
    rows(trace, create(&row)?).map_err(failed(&row))
}

/// Number of PEs of each node.
fn nodes(trace: &Trace) -> BTreeMap<u32, u32> {
    let mut nodes = BTreeMap::new();
    for records in &trace.records {
        *nodes.entry(records.node).or_default() += 1;
    }
    nodes
}

fn records(trace: &Trace, mut out: impl Write) -> io::Result<()> {
    let nodes = nodes(trace);
    let cpus: Vec<String> = nodes.values().map(u32::to_string).collect();
    let runs = runs_by_rank(trace);
    let node_of: FxHashMap<u32, u32> = trace.records.iter().map(|it| (it.pe, it.node)).collect();
    let first_node = |rank: &u32| {
        let pe = runs.get(rank).and_then(|runs| runs.first()).map_or(0, |run| run.0);
        node_of.get(&pe).copied().unwrap_or(0)
    };
    let tasks: Vec<String> =
        (0..trace.ranks).map(|rank| format!("1:{}", first_node(&rank) + 1)).collect();
    // The date that the format wants is of no use here, and would make traces of one job differ.
    writeln!(
        out,
        "#Paraver (01/01/1970 at 00:00):{}_ns:{}({}):1:{}({})",
        trace.end(),
        nodes.len(),
        cpus.join(","),
        trace.ranks,
        tasks.join(",")
    )?;
    let mut lines: Vec<(i64, u8, String)> = Vec::new();
    let object = |pe: u32, rank: u32| format!("{}:1:{}:1", pe + 1, rank + 1);
    for (rank, runs) in &runs {
        for (i, (pe, from, to, then)) in runs.iter().enumerate() {
            let here = object(*pe, *rank);
            lines.push((*from, 1, format!("1:{here}:{from}:{to}:{RUNNING}")));
            let next = runs.get(i + 1).map_or(*to, |next| next.1);
            let (state, call) = match then {
                Then::Ready => (READY, 0),
                Then::Looks => (WAITING, 0),
                Then::Waits(call, _) => (WAITING, *call),
                Then::Over => continue,
            };
            if next > *to {
                lines.push((*to, 1, format!("1:{here}:{to}:{next}:{state}")));
                if call != 0 {
                    lines.push((*to, 2, format!("2:{here}:{to}:{CALL}:{call}")));
                    lines.push((next, 2, format!("2:{here}:{next}:{CALL}:0")));
                }
            }
        }
    }
    let mut sent = FxHashMap::default();
    for (pe, event) in trace.events() {
        if let What::Sent(it) = event.what {
            sent.insert((it.from, it.to, it.sequence), (pe, event.at));
        }
    }
    for (pe, event) in trace.events() {
        let at = event.at;
        let line = match event.what {
            What::Matched(it) => {
                let key = (it.from, it.to, it.sequence);
                let Some((from, began)) = sent.get(&key) else { continue };
                let (from, to) = (object(*from, it.from), object(pe, it.to));
                let (bytes, tag) = (it.bytes, it.tag);
                let line = format!("3:{from}:{began}:{began}:{to}:{at}:{at}:{bytes}:{tag}");
                lines.push((*began, 3, line));
                continue;
            }
            What::Leaves { rank, to, .. } => (rank, MOVE, to + 1),
            What::Comes { rank, .. } => (rank, MOVE, 0),
            What::RegionBegins { rank, name } => (rank, REGION, name),
            What::RegionEnds { rank } => (rank, REGION, 0),
            _ => continue,
        };
        let (rank, kind, value) = line;
        lines.push((at, 2, format!("2:{}:{at}:{kind}:{value}", object(pe, rank))));
    }
    lines.sort();
    for (_, _, line) in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

fn meanings(trace: &Trace, mut out: impl Write) -> io::Result<()> {
    write!(
        out,
        "DEFAULT_OPTIONS\n\nLEVEL               THREAD\nUNITS               NANOSEC\n\
         LOOK_BACK           100\nSPEED               1\nFLAG_ICONS          ENABLED\n\
         NUM_OF_STATE_COLORS 1000\nYMAX_SCALE          37\n\n\nDEFAULT_SEMANTIC\n\n\
         THREAD_FUNC          State As Is\n\n\nSTATES\n0    Not there\n{RUNNING}    Running\n\
         {WAITING}    Waiting\n{READY}    Ready\n\n\nSTATES_COLOR\n0    {{117,195,255}}\n\
         {RUNNING}    {{0,0,255}}\n{WAITING}    {{255,0,0}}\n{READY}    {{255,144,26}}\n\n\n"
    )?;
    let names = || (1..).zip(trace.names.iter().skip(1));
    writeln!(out, "EVENT_TYPE\n0    {CALL}    Waits in\nVALUES\n0      -")?;
    for (number, name) in names() {
        writeln!(out, "{number}      {name}")?;
    }
    writeln!(out, "\n\nEVENT_TYPE\n0    {MOVE}    Leaves for PE\nVALUES\n0      has come")?;
    for pe in 0..trace.pes {
        writeln!(out, "{}      PE {pe}", pe + 1)?;
    }
    writeln!(out, "\n\nEVENT_TYPE\n0    {REGION}    Region\nVALUES\n0      -")?;
    for (number, name) in names() {
        writeln!(out, "{number}      {name}")?;
    }
    out.flush()
}

fn rows(trace: &Trace, mut out: impl Write) -> io::Result<()> {
    let nodes = nodes(trace);
    writeln!(out, "LEVEL CPU SIZE {}", trace.pes)?;
    for pe in 0..trace.pes {
        writeln!(out, "PE {pe}")?;
    }
    writeln!(out, "\nLEVEL NODE SIZE {}", nodes.len())?;
    for node in nodes.keys() {
        writeln!(out, "node {node}")?;
    }
    writeln!(out, "\nLEVEL THREAD SIZE {}", trace.ranks)?;
    for rank in 0..trace.ranks {
        writeln!(out, "rank {rank}")?;
    }
    out.flush()
}
