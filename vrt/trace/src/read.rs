//! A trace, reassembled: what each PE has done, on a common time line.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use crate::clocks::{Clock, Crossing, corrections};
use crate::format::{
    HEADER, Header, Kind, MAGIC, NO_PARTNER, PREEMPTED, RECORD, Record, code, then,
};

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It contains no trace.
    #[error("{} is no trace: it has no whole block of one (--trace FILE makes traces)", .0.display())]
    NoTrace(PathBuf),
}

/// The trace of a job.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Number of PEs of the job.
    pub pes: u32,
    /// Number of ranks of the job.
    pub ranks: u32,
    /// The program and its arguments.
    pub command: String,
    /// Names of calls, regions, strategies and reasons; the first one is empty.
    pub names: Vec<String>,
    /// The records of PEs, by number.
    pub records: Vec<PeTrace>,
    /// Bytes of the files outside complete blocks: the last ones before a crash.
    pub damaged: u64,
}

/// The record of a PE.
#[derive(Clone, Debug, Default)]
pub struct PeTrace {
    /// Number of the PE.
    pub pe: u32,
    /// Its node.
    pub node: u32,
    /// Events in the order in which they were recorded.
    pub events: Vec<Timed>,
    /// Events that were dropped because of the limit.
    pub dropped: u64,
    /// Whether the end is complete.
    pub complete: bool,
    /// Number of missing blocks in between.
    pub gaps: u64,
    /// Seconds for which it waited for a core because something else ran there.
    pub preempted: f64,
    /// Nanoseconds per cycle of its counter.
    pub(crate) cycle: f64,
    pub(crate) machine: String,
}

/// An event with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// When it happened, or ended, in nanoseconds since the beginning of the trace.
    pub at: i64,
    /// The event.
    pub what: What,
}

/// The number of a name in [`Trace::names`].
pub type Name = u32;

/// An event on a PE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// A rank has run.
    Ran {
        /// The rank.
        rank: u32,
        /// For how many nanoseconds.
        nanoseconds: f64,
        /// What it does now.
        then: Then,
    },
    /// No rank could run for this many nanoseconds.
    Idle {
        /// How many.
        nanoseconds: f64,
    },
    /// A rank has sent a message.
    Sent(Message),
    /// A message was matched.
    Matched(Message),
    /// The receive that matched a message was cancelled.
    PutBack {
        /// The receiver.
        rank: u32,
    },
    /// A rank has begun a collective operation.
    CollectiveBegins {
        /// The rank.
        rank: u32,
        /// The call, if it is known already.
        call: Name,
        /// The operation's context.
        context: u32,
    },
    /// A rank has finished its part in a collective operation.
    CollectiveEnds {
        /// The rank.
        rank: u32,
        /// The call.
        call: Name,
        /// The operation's context.
        context: u32,
    },
    /// A rank has left for another PE.
    Leaves {
        /// The rank.
        rank: u32,
        /// The destination PE.
        to: u32,
        /// Bytes transferred.
        bytes: u64,
        /// How it moves.
        by: By,
    },
    /// A rank has arrived.
    Comes {
        /// The rank.
        rank: u32,
        /// The source PE.
        from: u32,
    },
    /// A rank was to move and could not.
    Stays {
        /// The rank.
        rank: u32,
        /// What pins it.
        why: Name,
    },
    /// A balancing step; its data about each rank follow.
    Step {
        /// Its number.
        number: u32,
        /// The strategy that decided.
        strategy: Name,
        /// How many [`What::Placed`] follow.
        ranks: u32,
    },
    /// A rank in a balancing step.
    Placed {
        /// The rank.
        rank: u32,
        /// Its current PE.
        at: u32,
        /// The PE that it is assigned to.
        to: u32,
        /// Seconds that it has run since the last step.
        seconds: f64,
        /// Live bytes of its memory.
        bytes: u64,
        /// Whether it is pinned.
        pinned: bool,
    },
    /// A rank has entered a region of its program.
    RegionBegins {
        /// The rank.
        rank: u32,
        /// The region.
        name: Name,
    },
    /// A rank has left the region that it entered last.
    RegionEnds {
        /// The rank.
        rank: u32,
    },
    /// A rank has ended: its PE's measurements of it.
    Over {
        /// The rank.
        rank: u32,
        /// Nanoseconds that it has run.
        run: f64,
        /// How often it has stopped running.
        switches: u64,
    },
    /// A rank has ended: its PE's counts of what it sent.
    OverSent {
        /// The rank.
        rank: u32,
        /// Messages.
        messages: u64,
        /// Bytes.
        bytes: u64,
    },
}

/// What a rank does after it has stopped running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is ready to run.
    Ready,
    /// It continues running: its PE polled whether what it waits for would arrive soon.
    Looks,
    /// It waits in a call; if for a message, from this rank of its communicator.
    Waits(Name, Option<i32>),
    /// It has ended.
    Over,
}

/// How a rank moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Inside a node: the owner of its slot changes.
    HandOver,
    /// To another node, with its memory.
    Memory,
    /// By its encoded state.
    State,
}

impl By {
    /// The name of this way.
    pub fn name(self) -> &'static str {
        match self {
            By::HandOver => "hand-over",
            By::Memory => "memory",
            By::State => "state",
        }
    }
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sending rank of the job.
    pub from: u32,
    /// The destination rank of the job.
    pub to: u32,
    /// Its index among the messages from this rank to that one.
    pub sequence: u32,
    /// Its tag.
    pub tag: i32,
    /// Its length in bytes.
    pub bytes: u64,
    /// Whether it is part of a collective operation or an exchange.
    pub is_internal: bool,
}

/// A block of a file.
struct Block<'a> {
    header: Header,
    body: &'a [u8],
}

impl Trace {
    /// Reads a trace: a file, or the files `FILE.0`, `FILE.1`, ... if there is none of that name.
    ///
    /// # Errors
    /// It cannot be read, or is not a trace. A part that a crash has cut off is no error.
    pub fn read(path: &Path) -> Result<Trace, ReadError> {
        let read = |path: PathBuf| match std::fs::read(&path) {
            Ok(bytes) => Ok(bytes),
            Err(source) => Err(ReadError::Read { path, source }),
        };
        let numbered = |number: usize| {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        let mut bytes = Vec::new();
        if !path.exists() && numbered(0).exists() {
            for path in (0..).map(numbered).take_while(|path| path.exists()) {
                bytes.append(&mut read(path)?);
            }
        } else {
            bytes = read(path.to_owned())?;
        }
        Trace::of(&bytes).ok_or_else(|| ReadError::NoTrace(path.to_owned()))
    }

    /// The trace in these bytes, if there is one.
    pub fn of(bytes: &[u8]) -> Option<Trace> {
        let (blocks, damaged) = blocks(bytes);
        if blocks.is_empty() {
            return None;
        }
        let mut of_pe: BTreeMap<u32, Vec<Block<'_>>> = BTreeMap::new();
        for block in blocks {
            of_pe.entry(block.header.pe).or_default().push(block);
        }
        let mut trace = Trace { names: vec![String::new()], damaged, ..Trace::default() };
        let mut names = FxHashMap::default();
        let mut raw = Vec::new();
        let mut clocks: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
        for (pe, mut blocks) in of_pe {
            blocks.sort_by_key(|block| block.header.number);
            let (said, records) = trace.put_together(pe, &blocks, &mut names);
            let pairs = blocks.iter().map(|it| (it.header.stamp, it.header.nanoseconds));
            clocks.entry(said.machine.clone()).or_default().extend(pairs);
            raw.push((said, records));
        }
        let zero = clocks.values().flatten().map(|(_, time)| *time).min()?;
        let clocks: BTreeMap<String, Option<Clock>> =
            clocks.into_iter().map(|(machine, pairs)| (machine, Clock::of(pairs))).collect();
        for (mut said, records) in raw {
            if let Some(clock) = clocks[&said.machine] {
                said.cycle = clock.cycle;
                said.events = records
                    .into_iter()
                    .map(|(stamp, what)| Timed {
                        at: clock.time(stamp, zero),
                        what: what.with_cycle(clock.cycle),
                    })
                    .collect();
            }
            trace.records.push(said);
        }
        trace.bring_clocks_together(&clocks.into_keys().collect::<Vec<_>>());
        trace.begin_at_zero();
        Some(trace)
    }

    /// The description of a PE, and its records with their stamps; name numbers are converted to
    /// the trace's.
    fn put_together(
        &mut self,
        pe: u32,
        blocks: &[Block<'_>],
        names: &mut FxHashMap<String, Name>,
    ) -> (PeTrace, Vec<(u64, What)>) {
        let mut said = PeTrace {
            pe,
            node: 0,
            events: Vec::new(),
            dropped: 0,
            complete: false,
            gaps: 0,
            preempted: 0.0,
            cycle: 1.0,
            machine: String::new(),
        };
        let mut own_names: Vec<Name> = vec![0];
        let mut events = Vec::new();
        let mut expected = 0;
        // A name may go on in the next block.
        let mut unfinished: Option<(usize, Vec<u8>)> = None;
        for Block { header, body } in blocks {
            said.gaps += header.number.saturating_sub(expected);
            expected = header.number + 1;
            said.dropped = header.dropped;
            said.preempted = f64::from(header.preempted) * PREEMPTED as f64 / 1e9;
            match header.kind {
                Kind::End => said.complete = true,
                Kind::Job => self.hear_of_job(&mut said, &String::from_utf8_lossy(body)),
                Kind::Records => {}
            }
            if header.kind != Kind::Records {
                continue;
            }
            for bytes in body.chunks_exact(RECORD) {
                if let Some((len, text)) = &mut unfinished {
                    text.extend_from_slice(bytes);
                    if text.len() >= *len {
                        text.truncate(*len);
                        let text = String::from_utf8_lossy(text).into_owned();
                        let all = &mut self.names;
                        let number = *names.entry(text).or_insert_with_key(|text| {
                            all.push(text.clone());
                            (all.len() - 1) as Name
                        });
                        own_names.push(number);
                        unfinished = None;
                    }
                    continue;
                }
                let mut record: Record = [0; 4];
                for (word, bytes) in record.iter_mut().zip(bytes.chunks_exact(8)) {
                    *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
                }
                let (code, other) = (record[1] as u8, (record[1] >> 32) as u32);
                if code == code::NAME {
                    unfinished = Some(((other >> 16) as usize, Vec::new()));
                } else if let Some(what) = decode(&record, &own_names) {
                    events.push((record[0], what));
                    if code == code::SENT_AND_MATCHED
                        && let What::Sent(message) = what
                    {
                        events.push((record[0], What::Matched(message)));
                    }
                }
            }
        }
        (said, events)
    }

    fn hear_of_job(&mut self, said: &mut PeTrace, text: &str) {
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            match key {
                "pes" => self.pes = value.parse().unwrap_or_default(),
                "ranks" => self.ranks = value.parse().unwrap_or_default(),
                "node" => said.node = value.parse().unwrap_or_default(),
                "machine" => value.clone_into(&mut said.machine),
                "command" => value.clone_into(&mut self.command),
                _ => {}
            }
        }
    }

    fn bring_clocks_together(&mut self, machines: &[String]) {
        if machines.len() < 2 {
            return;
        }
        let machine_of: Vec<usize> = self
            .records
            .iter()
            .map(|it| machines.iter().position(|name| *name == it.machine).unwrap_or(0))
            .collect();
        let mut sent = FxHashMap::default();
        for (records, machine) in self.records.iter().zip(&machine_of) {
            for Timed { at, what } in &records.events {
                if let What::Sent(it) = what {
                    sent.insert((it.from, it.to, it.sequence), (*at, *machine));
                }
            }
        }
        let mut crossings = Vec::new();
        for (records, to) in self.records.iter().zip(&machine_of) {
            for Timed { at, what } in &records.events {
                if let What::Matched(it) = what
                    && let Some((began, from)) = sent.get(&(it.from, it.to, it.sequence))
                    && from != to
                {
                    crossings.push(Crossing { from: *from, to: *to, sent: *began, matched: *at });
                }
            }
        }
        let corrections = corrections(machines.len(), &crossings);
        for (records, machine) in self.records.iter_mut().zip(machine_of) {
            for event in &mut records.events {
                event.at = corrections[machine].apply(event.at);
            }
        }
    }

    /// Shifts times so that the first event begins at 0.
    fn begin_at_zero(&mut self) {
        let events = || self.records.iter().flat_map(|it| &it.events);
        let Some(first) = events().map(Timed::began).min() else { return };
        for event in self.records.iter_mut().flat_map(|it| &mut it.events) {
            event.at -= first;
        }
    }

    /// The text of a name.
    pub fn name(&self, name: Name) -> &str {
        self.names.get(name as usize).map_or("", String::as_str)
    }

    /// The time of the last event, in nanoseconds.
    pub fn end(&self) -> i64 {
        self.events().map(|(_, event)| event.at).max().unwrap_or(0)
    }

    /// All events, with their PEs.
    pub fn events(&self) -> impl Iterator<Item = (u32, &Timed)> {
        self.records.iter().flat_map(|it| it.events.iter().map(|event| (it.pe, event)))
    }

    /// Number of events that were dropped because of the limit.
    pub fn dropped(&self) -> u64 {
        self.records.iter().map(|it| it.dropped).sum()
    }

    /// Whether every PE has written everything that it recorded.
    pub fn is_complete(&self) -> bool {
        self.records.len() == self.pes as usize
            && self.damaged == 0
            && self.records.iter().all(|it| it.complete && it.gaps == 0)
    }
}

impl Timed {
    /// When it began, for an event with a duration.
    pub fn began(&self) -> i64 {
        match self.what {
            What::Ran { nanoseconds, .. } | What::Idle { nanoseconds } => {
                self.at - nanoseconds.round() as i64
            }
            _ => self.at,
        }
    }
}

impl What {
    /// Converts cycles to nanoseconds.
    fn with_cycle(mut self, cycle: f64) -> What {
        match &mut self {
            What::Ran { nanoseconds, .. } | What::Idle { nanoseconds } => *nanoseconds *= cycle,
            What::Over { run, .. } => *run *= cycle,
            _ => {}
        }
        self
    }
}

/// The complete blocks of files, and the number of bytes outside them.
fn blocks(bytes: &[u8]) -> (Vec<Block<'_>>, u64) {
    let (mut blocks, mut damaged, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let whole = Header::read(rest).and_then(|header| {
            let body = rest.get(HEADER..HEADER + header.len as usize)?;
            (crc32fast::hash(body) == header.crc).then_some(Block { header, body })
        });
        if let Some(block) = whole {
            at += HEADER + block.body.len();
            blocks.push(block);
            continue;
        }
        let next = rest[1..].windows(MAGIC.len()).position(|it| it == MAGIC);
        let skipped = next.map_or(rest.len(), |next| next + 1);
        damaged += skipped as u64;
        at += skipped;
    }
    (blocks, damaged)
}

/// Decodes a record, with times in cycles.
fn decode(record: &Record, names: &[Name]) -> Option<What> {
    let [_, what, third, fourth] = *record;
    let (rank, other) = ((what >> 8) as u32 & 0xff_ffff, (what >> 32) as u32);
    let name = || names.get(other as usize & 0xffff).copied().unwrap_or(0);
    let message = |is_sent: bool| {
        let partner = other & 0xff_ffff;
        let (from, to) = if is_sent { (rank, partner) } else { (partner, rank) };
        Message {
            from,
            to,
            sequence: fourth as u32,
            tag: (fourth >> 32) as i32,
            bytes: third,
            is_internal: (other >> 24) % 4 != 0,
        }
    };
    Some(match what as u8 {
        code::RAN => {
            let then = match other >> 16 {
                then::READY => Then::Ready,
                then::LOOKS => Then::Looks,
                then::WAITS => {
                    let partner = fourth as u32 as i32;
                    Then::Waits(name(), (partner != NO_PARTNER).then_some(partner))
                }
                then::OVER => Then::Over,
                _ => return None,
            };
            What::Ran { rank, nanoseconds: third as i64 as f64, then }
        }
        code::IDLE => What::Idle { nanoseconds: third as i64 as f64 },
        code::SENT | code::SENT_AND_MATCHED => What::Sent(message(true)),
        code::MATCHED => What::Matched(message(false)),
        code::PUT_BACK => What::PutBack { rank },
        code::COLLECTIVE_BEGINS => {
            What::CollectiveBegins { rank, call: name(), context: third as u32 }
        }
        code::COLLECTIVE_ENDS => What::CollectiveEnds { rank, call: name(), context: third as u32 },
        code::LEAVES => {
            let by = match other >> 24 {
                0 => By::HandOver,
                1 => By::Memory,
                _ => By::State,
            };
            What::Leaves { rank, to: other & 0xff_ffff, bytes: third, by }
        }
        code::COMES => What::Comes { rank, from: other },
        code::STAYS => What::Stays { rank, why: name() },
        code::STEP => What::Step { number: third as u32, strategy: name(), ranks: fourth as u32 },
        code::PLACED => What::Placed {
            rank,
            at: other & 0xfff,
            to: other >> 12 & 0xfff,
            seconds: f64::from_bits(third),
            bytes: fourth,
            pinned: other >> 31 != 0,
        },
        code::REGION_BEGINS => What::RegionBegins { rank, name: name() },
        code::REGION_ENDS => What::RegionEnds { rank },
        code::OVER => What::Over { rank, run: third as f64, switches: fourth },
        code::OVER_SENT => What::OverSent { rank, messages: third, bytes: fourth },
        _ => return None,
    })
}
