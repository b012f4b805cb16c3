//! A trace for Perfetto (ui.perfetto.dev): the messages of `protos/perfetto/trace` that are needed.
//!
//! PEs are processes with one track, on which ranks run; ranks are threads of a separate process, on which they run,
//! are ready and wait. Operations and regions have tracks below their rank's. Messages and moves are arrows (flows);
//! utilisation of PEs and their imbalance are counters.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

use prost::Message as _;
use rustc_hash::FxHashMap;

use crate::read::{Name, Then, Trace, What};
use crate::statistics::imbalance;

/// One field of Perfetto's `Trace`; the concatenation of many of them is a trace.
#[derive(Clone, PartialEq, prost::Message)]
struct Packets {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Packet {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, tag = "10")]
    trusted_packet_sequence_id: u32,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TrackDescriptor {
    #[prost(uint64, tag = "1")]
    uuid: u64,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(message, optional, tag = "3")]
    process: Option<Process>,
    #[prost(message, optional, tag = "4")]
    thread: Option<Thread>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<Counter>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Process {
    #[prost(int32, tag = "1")]
    pid: i32,
    #[prost(string, tag = "6")]
    process_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Thread {
    #[prost(int32, tag = "1")]
    pid: i32,
    #[prost(int32, tag = "2")]
    tid: i32,
    #[prost(string, tag = "5")]
    thread_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Counter {
    #[prost(string, tag = "6")]
    unit_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<Annotation>,
    #[prost(int32, tag = "9")]
    r#type: i32,
    #[prost(uint64, tag = "11")]
    track_uuid: u64,
    #[prost(string, repeated, tag = "22")]
    categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    #[prost(double, optional, tag = "44")]
    double_counter_value: Option<f64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    terminating_flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Annotation {
    #[prost(int64, tag = "4")]
    int_value: i64,
    #[prost(string, tag = "10")]
    name: String,
}

const BEGIN: i32 = 1;
const END: i32 = 2;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;

/// The process of all ranks.
const RANKS: u64 = 1 << 32;
/// Distance between the tracks of two ranks.
const OF_RANK: u64 = 1 << 33;
const OPERATIONS: u64 = 2 << 33;
const REGIONS: u64 = 3 << 33;
const UTILISATION: u64 = 4 << 33;
const IMBALANCE: u64 = 5 << 33;
/// Number of parts of the job's time for which counters have a value.
const BINS: usize = 500;

/// Writes it.
///
/// # Errors
/// Those of the writer.
pub fn write(trace: &Trace, out: impl Write) -> io::Result<()> {
    let mut out = PacketWriter { out, bytes: Vec::new() };
    out.describe(trace)?;
    out.runs(trace)?;
    out.spans(trace)?;
    out.messages(trace)?;
    out.moves(trace)?;
    out.counters(trace)?;
    out.out.flush()
}

struct PacketWriter<W> {
    out: W,
    bytes: Vec<u8>,
}

impl<W: Write> PacketWriter<W> {
    fn packet(&mut self, packet: Packet) -> io::Result<()> {
        self.bytes.clear();
        let packet = Packet { trusted_packet_sequence_id: 1, ..packet };
        Packets { packet: vec![packet] }.encode(&mut self.bytes).map_err(io::Error::other)?;
        self.out.write_all(&self.bytes)
    }

    fn track(&mut self, track: TrackDescriptor) -> io::Result<()> {
        self.packet(Packet { track_descriptor: Some(track), ..Packet::default() })
    }

    fn event(&mut self, at: i64, event: TrackEvent) -> io::Result<()> {
        let timestamp = Some(at.max(0) as u64);
        self.packet(Packet { timestamp, track_event: Some(event), ..Packet::default() })
    }

    fn slice(&mut self, track: u64, from: i64, to: i64, name: &str, kind: &str) -> io::Result<()> {
        let categories = vec![kind.to_owned()];
        let name = Some(name.to_owned());
        let begin = TrackEvent { categories, name, ..event(BEGIN, track) };
        self.event(from, begin)?;
        self.event(to.max(from), event(END, track))
    }

    fn describe(&mut self, trace: &Trace) -> io::Result<()> {
        let track = |uuid| TrackDescriptor { uuid, ..TrackDescriptor::default() };
        let pid = |pe: u32| pe as i32 + 1;
        for pe in trace.records.iter().map(|it| it.pe) {
            let process = Process { pid: pid(pe), process_name: format!("PE {pe}") };
            self.track(TrackDescriptor { process: Some(process), ..track(of_pe(pe) + RANKS) })?;
            let thread = Thread { pid: pid(pe), tid: pid(pe), thread_name: "ranks".to_owned() };
            self.track(TrackDescriptor { thread: Some(thread), ..track(of_pe(pe)) })?;
            self.track(TrackDescriptor {
                name: Some(format!("utilisation of PE {pe}")),
                parent_uuid: Some(of_pe(pe) + RANKS),
                counter: Some(Counter { unit_name: "%".to_owned() }),
                ..track(UTILISATION + u64::from(pe))
            })?;
        }
        let of_ranks = trace.pes as i32 + 1;
        let process = Process { pid: of_ranks, process_name: "ranks".to_owned() };
        self.track(TrackDescriptor { process: Some(process), ..track(RANKS) })?;
        self.track(TrackDescriptor {
            name: Some("imbalance of the PEs".to_owned()),
            parent_uuid: Some(RANKS),
            counter: Some(Counter { unit_name: "busiest / mean - 1".to_owned() }),
            ..track(IMBALANCE)
        })?;
        for rank in 0..trace.ranks {
            let thread = Thread {
                pid: of_ranks,
                tid: of_ranks + 1 + rank as i32,
                thread_name: format!("rank {rank}"),
            };
            self.track(TrackDescriptor { thread: Some(thread), ..track(of_rank(rank)) })?;
            for (kind, name) in [(OPERATIONS, "operations"), (REGIONS, "regions")] {
                self.track(TrackDescriptor {
                    name: Some(name.to_owned()),
                    parent_uuid: Some(of_rank(rank)),
                    ..track(kind + u64::from(rank))
                })?;
            }
        }
        Ok(())
    }

    /// Writes ranks on PEs, and what ranks do in between.
    fn runs(&mut self, trace: &Trace) -> io::Result<()> {
        for (rank, runs) in runs_by_rank(trace) {
            for (i, &(pe, from, to, then)) in runs.iter().enumerate() {
                self.slice(of_pe(pe), from, to, &format!("rank {rank}"), "run")?;
                self.slice(of_rank(rank), from, to, &format!("PE {pe}"), "run")?;
                let next = runs.get(i + 1).map_or(to, |next| next.1);
                let (name, kind) = match then {
                    Then::Ready => ("ready".to_owned(), "ready"),
                    Then::Waits(call, _) => (format!("waits in {}", trace.name(call)), "wait"),
                    Then::Looks => ("PE looks".to_owned(), "wait"),
                    Then::Over => continue,
                };
                if next > to {
                    self.slice(of_rank(rank), to, next, &name, kind)?;
                }
            }
        }
        Ok(())
    }

    /// Writes collective operations and regions.
    fn spans(&mut self, trace: &Trace) -> io::Result<()> {
        let mut begun: FxHashMap<(u32, u32), VecDeque<(i64, Name)>> = FxHashMap::default();
        let mut events: Vec<_> = trace.events().map(|(_, event)| event).collect();
        events.sort_by_key(|event| event.at);
        for it in events {
            match it.what {
                What::CollectiveBegins { rank, call, context } => {
                    begun.entry((rank, context)).or_default().push_back((it.at, call));
                }
                What::CollectiveEnds { rank, call, context } => {
                    let first = begun.get_mut(&(rank, context)).and_then(VecDeque::pop_front);
                    if let Some((from, known)) = first {
                        let call = if call == 0 { known } else { call };
                        let track = OPERATIONS + u64::from(rank);
                        self.slice(track, from, it.at, trace.name(call), "collective")?;
                    }
                }
                What::RegionBegins { rank, name } => {
                    let begin = TrackEvent {
                        name: Some(trace.name(name).to_owned()),
                        categories: vec!["region".to_owned()],
                        ..event(BEGIN, REGIONS + u64::from(rank))
                    };
                    self.event(it.at, begin)?;
                }
                What::RegionEnds { rank } => {
                    self.event(it.at, event(END, REGIONS + u64::from(rank)))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn messages(&mut self, trace: &Trace) -> io::Result<()> {
        for (_, it) in trace.events() {
            let (what, message) = match it.what {
                What::Sent(message) => ("send", message),
                What::Matched(message) => ("receive", message),
                _ => continue,
            };
            let (me, partner) = match what {
                "send" => (message.from, message.to),
                _ => (message.to, message.from),
            };
            let number =
                |name: &str, value: i64| Annotation { int_value: value, name: name.into() };
            let flow = vec![
                (u64::from(message.from) << 40 | u64::from(message.to) << 16)
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    .wrapping_add(u64::from(message.sequence)),
            ];
            let mut instant = TrackEvent {
                name: Some(what.to_owned()),
                categories: vec!["message".to_owned()],
                debug_annotations: vec![
                    number("bytes", message.bytes as i64),
                    number("tag", message.tag.into()),
                    number("partner", partner.into()),
                ],
                ..event(INSTANT, of_rank(me))
            };
            match what {
                "send" => instant.flow_ids = flow,
                _ => instant.terminating_flow_ids = flow,
            }
            self.event(it.at, instant)?;
        }
        Ok(())
    }

    fn moves(&mut self, trace: &Trace) -> io::Result<()> {
        let mut number: FxHashMap<(u32, bool), u64> = FxHashMap::default();
        for (pe, it) in trace.events() {
            let (rank, name, leaves) = match it.what {
                What::Leaves { rank, to, .. } => {
                    (rank, format!("rank {rank} leaves for PE {to}"), true)
                }
                What::Comes { rank, from } => {
                    (rank, format!("rank {rank} comes from PE {from}"), false)
                }
                What::Stays { rank, why } => {
                    let name = format!("rank {rank} stays: {}", trace.name(why));
                    let categories = vec!["move".to_owned()];
                    let instant =
                        TrackEvent { categories, name: Some(name), ..event(INSTANT, of_pe(pe)) };
                    self.event(it.at, instant)?;
                    continue;
                }
                What::Step { number, strategy, .. } => {
                    let name = format!("balancing step {number}: {}", trace.name(strategy));
                    let categories = vec!["step".to_owned()];
                    let instant =
                        TrackEvent { categories, name: Some(name), ..event(INSTANT, of_pe(pe)) };
                    self.event(it.at, instant)?;
                    continue;
                }
                _ => continue,
            };
            let count = number.entry((rank, leaves)).or_default();
            *count += 1;
            let flow = vec![u64::from(rank) << 32 | *count];
            let mut instant = TrackEvent {
                name: Some(name),
                categories: vec!["move".to_owned()],
                ..event(INSTANT, of_pe(pe))
            };
            if leaves {
                instant.flow_ids = flow
            } else {
                instant.terminating_flow_ids = flow
            }
            self.event(it.at, instant)?;
        }
        Ok(())
    }

    fn counters(&mut self, trace: &Trace) -> io::Result<()> {
        let bins = utilisation(trace, BINS);
        let width = bin_width(trace, BINS);
        for bin in 0..BINS {
            let at = (bin as f64 * width) as i64;
            for (pe, busy) in &bins {
                let track = UTILISATION + u64::from(*pe);
                let value = TrackEvent {
                    double_counter_value: Some(100.0 * busy[bin]),
                    ..event(COUNTER, track)
                };
                self.event(at, value)?;
            }
            let value = TrackEvent {
                double_counter_value: Some(imbalance(bins.values().map(|busy| busy[bin]))),
                ..event(COUNTER, IMBALANCE)
            };
            self.event(at, value)?;
        }
        Ok(())
    }
}

fn event(kind: i32, track: u64) -> TrackEvent {
    TrackEvent { r#type: kind, track_uuid: track, ..TrackEvent::default() }
}

fn of_pe(pe: u32) -> u64 {
    u64::from(pe) + 1
}

fn of_rank(rank: u32) -> u64 {
    OF_RANK + u64::from(rank)
}

/// The runs of each rank in time order: PE, from, to, what it did next.
pub(crate) fn runs_by_rank(trace: &Trace) -> BTreeMap<u32, Vec<(u32, i64, i64, Then)>> {
    let mut runs: BTreeMap<u32, Vec<(u32, i64, i64, Then)>> = BTreeMap::new();
    for (pe, event) in trace.events() {
        if let What::Ran { rank, then, .. } = event.what {
            runs.entry(rank).or_default().push((pe, event.began(), event.at, then));
        }
    }
    for runs in runs.values_mut() {
        runs.sort_by_key(|(_, from, ..)| *from);
    }
    runs
}

/// The width in nanoseconds of each of this many parts of the job's time.
pub(crate) fn bin_width(trace: &Trace, bins: usize) -> f64 {
    (trace.end() as f64 / bins as f64).max(1.0)
}

/// For each PE, the fraction of each of this many parts of the job's time in which it ran ranks.
pub(crate) fn utilisation(trace: &Trace, bins: usize) -> BTreeMap<u32, Vec<f64>> {
    let width = bin_width(trace, bins);
    let mut busy: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for records in &trace.records {
        let of_pe = busy.entry(records.pe).or_insert_with(|| vec![0.0; bins]);
        for event in &records.events {
            let What::Ran { nanoseconds, .. } = event.what else { continue };
            let (from, to) = (event.at as f64 - nanoseconds, event.at as f64);
            let first = (from.max(0.0) / width) as usize;
            for (bin, part) in of_pe.iter_mut().enumerate().skip(first) {
                let begin = bin as f64 * width;
                if begin >= to {
                    break;
                }
                *part += ((to.min(begin + width) - from.max(begin)) / width).max(0.0);
            }
        }
    }
    busy
}
