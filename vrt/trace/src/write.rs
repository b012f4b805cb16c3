//! Writing: a thread takes the events of a PE from its ring and appends them to the file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use vrt_core::pe::cycle_counter;

use crate::format::{HEADER, Header, Kind, PREEMPTED, RECORD};
use crate::record::Recorder;
use crate::ring::Ring;

/// The longest time that events stay in memory.
const PERIOD: Duration = Duration::from_millis(50);
/// Records in a block.
const BLOCK: u64 = 1 << 11;
/// Number of readings of both clocks; the fastest one counts.
const LOOKS: usize = 5;

/// Why a trace cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file cannot be created.
    #[error("--trace {}: cannot create it: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The thread that writes cannot be started.
    #[error("--trace: cannot start the thread that writes: {0}")]
    Thread(io::Error),
}

/// The description of a job that each PE writes to its trace.
#[derive(Clone, Debug)]
pub struct Job {
    /// PEs of the job.
    pub pes: u32,
    /// Ranks of the job.
    pub ranks: u32,
    /// The node of the writing PE.
    pub node: u32,
    /// The program and its arguments.
    pub command: String,
}

/// The file of a trace, shared by the PEs of a machine.
#[derive(Debug)]
pub struct TraceFile {
    file: File,
    path: PathBuf,
    limit: u64,
}

impl TraceFile {
    /// Creates the file, for at most this many bytes of events from all PEs that write to it.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, limit: u64) -> Result<TraceFile, WriteError> {
        let failed = |source| WriteError::Create { path: path.to_owned(), source };
        // Appending begins anew at the end with each write, whoever has written before.
        File::create(path).map_err(failed)?;
        let file = OpenOptions::new().append(true).open(path).map_err(failed)?;
        Ok(TraceFile { file, path: path.to_owned(), limit })
    }
}

/// The writing thread of a PE. Threads of a PE belong to its process, so the writer exists as long as the PE does.
#[derive(Debug)]
pub struct Writer {
    ring: Arc<Ring>,
    thread: JoinHandle<()>,
}

impl Writer {
    /// Begins to record the events of a PE; `say` reports errors.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        file: &TraceFile,
        pe: u32,
        job: &Job,
        say: fn(&str),
    ) -> Result<(Recorder, Writer), WriteError> {
        let ring = Arc::new(Ring::new());
        let append = file.file.try_clone().map_err(WriteError::Thread)?;
        let mut to = Output {
            file: append,
            path: file.path.clone(),
            pe,
            scheduling: scheduling_of_this_thread(),
            number: 0,
            bytes: Vec::with_capacity(HEADER + BLOCK as usize * RECORD),
        };
        let (of_thread, of_job) = (ring.clone(), job.clone());
        // Until the PE is there nobody is told anything, so the thread may begin at once.
        let thread = std::thread::Builder::new()
            .name("vrt-trace".to_owned())
            .stack_size(128 << 10)
            .spawn(move || {
                let written = to.write_job(&of_job).and_then(|()| write(&of_thread, &mut to));
                of_thread.closed.store(true, Ordering::Release);
                if let Err(error) = written {
                    say(&format!(
                        "--trace {}: {error}; PE {pe} records no more, the job goes on",
                        to.path.display()
                    ));
                }
            })
            .map_err(WriteError::Thread)?;
        let limit = file.limit / u64::from(job.pes.max(1));
        let recorder = Recorder::new(ring.clone(), thread.thread().clone(), limit);
        Ok((recorder, Writer { ring, thread }))
    }

    /// The thread that writes.
    pub fn thread(&self) -> &std::thread::Thread {
        self.thread.thread()
    }

    /// Writes the remaining events after the PE has ended; returns how many events were dropped.
    pub fn finish(self) -> u64 {
        self.ring.over.store(true, Ordering::Release);
        self.thread.thread().unpark();
        // It panics as little as any code, and there would be nothing to do about it.
        let _ = self.thread.join();
        self.ring.dropped.load(Ordering::Relaxed)
    }
}

fn write(ring: &Ring, to: &mut Output) -> io::Result<()> {
    loop {
        let over = ring.over.load(Ordering::Acquire);
        loop {
            to.begin();
            ring.take(BLOCK, &mut to.bytes);
            if to.bytes.len() == HEADER {
                break;
            }
            to.end(Kind::Records, ring.dropped.load(Ordering::Relaxed))?;
        }
        if over {
            to.begin();
            return to.end(Kind::End, ring.dropped.load(Ordering::Relaxed));
        }
        std::thread::park_timeout(PERIOD);
    }
}

/// The end of a file, to which a PE appends.
struct Output {
    file: File,
    path: PathBuf,
    pe: u32,
    /// The system's scheduling statistics of the PE's thread.
    scheduling: PathBuf,
    /// Number of blocks written so far.
    number: u64,
    /// The next block.
    bytes: Vec<u8>,
}

impl Output {
    fn begin(&mut self) {
        self.bytes.clear();
        self.bytes.resize(HEADER, 0);
    }

    fn end(&mut self, kind: Kind, dropped: u64) -> io::Result<()> {
        let body = &self.bytes[HEADER..];
        let (stamp, nanoseconds) = clocks();
        let header = Header {
            pe: self.pe,
            kind,
            number: self.number,
            len: body.len() as u32,
            crc: crc32fast::hash(body),
            stamp,
            nanoseconds,
            dropped,
            preempted: preempted(&self.scheduling),
        };
        self.bytes[..HEADER].copy_from_slice(&header.write());
        self.number += 1;
        self.file.write_all(&self.bytes)
    }

    fn write_job(&mut self, job: &Job) -> io::Result<()> {
        self.begin();
        let Job { pes, ranks, node, command } = job;
        let command = command.replace('\n', " ");
        let text = format!(
            "pes={pes}\nranks={ranks}\nnode={node}\nmachine={}\ncommand={command}\n",
            machine()
        );
        self.bytes.extend_from_slice(text.as_bytes());
        self.end(Kind::Job, 0)
    }
}

/// The file that holds the system's scheduling statistics of the calling thread.
fn scheduling_of_this_thread() -> PathBuf {
    let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    Path::new("/proc").join(thread).join("schedstat")
}

/// How long a thread could have run but had no core; 0 if the system does not report it.
fn preempted(scheduling: &Path) -> u32 {
    let text = std::fs::read_to_string(scheduling).unwrap_or_default();
    let nanoseconds = text.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    u32::try_from(nanoseconds.unwrap_or_default() / PREEMPTED).unwrap_or(u32::MAX)
}

/// Identifies a machine and its boot: PEs with the same value have the same cycle counter.
fn machine() -> String {
    let word = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let [host, boot] = ["/proc/sys/kernel/hostname", "/proc/sys/kernel/random/boot_id"].map(word);
    format!("{host} {boot}")
}

/// The cycle counter and nanoseconds since 1970, at the same moment.
fn clocks() -> (u64, u64) {
    let look = |_| {
        let before = cycle_counter();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let took = cycle_counter().wrapping_sub(before);
        let nanoseconds = since.map_or(0, |since| since.as_nanos() as u64);
        (took, (before.wrapping_add(took / 2), nanoseconds))
    };
    (0..LOOKS).map(look).min().map_or((0, 0), |(_, clocks)| clocks)
}

#[cfg(all(test, feature = "tools"))]
mod tests {
    use super::*;
    use crate::read::{By, Trace, What};
    use crate::ring::ROOM;
    use vrt_core::pe::{By as How, Envelope, Event, Observer, Placed};

    const JOB: Job = Job { pes: 2, ranks: 4, node: 0, command: String::new() };

    fn nobody(_: &str) {}

    /// More events than fit at once, from two PEs into one file.
    #[test]
    fn what_is_recorded_is_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let file = TraceFile::create(&path, 1 << 30).unwrap();
        let job = Job { command: "job --with\nlines".to_owned(), ..JOB };
        let pes: Vec<_> = (0..2)
            .map(|pe| Writer::start(&file, pe, &job, nobody).unwrap())
            .map(|(mut recorder, writer)| {
                let work = std::thread::spawn(move || {
                    for sequence in 0..(ROOM + ROOM / 2) as u32 {
                        let it =
                            Envelope { from: 1, to: 3, sequence, context: 5, tag: -7, bytes: 9 };
                        recorder.observe(Event::Sent(it));
                    }
                });
                (work, writer)
            })
            .collect();
        for (work, writer) in pes {
            work.join().unwrap();
            assert_eq!(writer.finish(), 0);
        }
        let trace = Trace::read(&path).unwrap();
        assert!(trace.is_complete());
        assert_eq!((trace.command.as_str(), trace.ranks), ("job --with lines", 4));
        for records in &trace.records {
            assert_eq!(records.events.len() as u64, ROOM + ROOM / 2);
            for (expected, event) in (0..).zip(&records.events) {
                let What::Sent(it) = event.what else { panic!("{event:?}") };
                assert_eq!((it.from, it.to, it.sequence), (1, 3, expected));
                assert_eq!((it.tag, it.bytes, it.is_internal), (-7, 9, true));
            }
        }
    }

    /// One record with two meanings.
    #[test]
    fn a_message_that_is_matched_at_once_is_read_as_sent_and_matched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let file = TraceFile::create(&path, 1 << 20).unwrap();
        let (mut recorder, writer) = Writer::start(&file, 0, &JOB, nobody).unwrap();
        let it = Envelope { from: 2, to: 3, sequence: 8, context: 4, tag: 5, bytes: 1 << 33 };
        recorder.observe(Event::SentAndMatched(it));
        assert_eq!(writer.finish(), 0);
        let trace = Trace::read(&path).unwrap();
        let events: Vec<What> = trace.events().map(|(_, event)| event.what).collect();
        let [What::Sent(sent), What::Matched(matched)] = events[..] else { panic!("{events:?}") };
        assert_eq!(sent, matched);
        assert_eq!((sent.from, sent.to, sent.sequence, sent.bytes), (2, 3, 8, 1 << 33));
    }

    #[test]
    fn events_are_read_as_they_were_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let file = TraceFile::create(&path, 1 << 20).unwrap();
        let (mut recorder, writer) = Writer::start(&file, 0, &JOB, nobody).unwrap();
        let long = "a region whose name is longer than a record, which has 32 bytes";
        let rank = Placed { rank: 3, at: 1023, to: 0, seconds: 0.25, bytes: 1 << 40, pinned: true };
        recorder.observe(Event::RegionBegins { rank: 2, name: long });
        recorder.observe(Event::Step { number: 7, strategy: "greedy", ranks: &[rank] });
        recorder.observe(Event::Leaves { rank: 2, to: 1023, bytes: 5, by: How::State });
        recorder.observe(Event::RegionBegins { rank: 2, name: long });
        assert_eq!(writer.finish(), 0);
        let trace = Trace::read(&path).unwrap();
        let name = |name: &str| trace.names.iter().position(|it| it == name).unwrap() as u32;
        let region = What::RegionBegins { rank: 2, name: name(long) };
        let expected = [
            region,
            What::Step { number: 7, strategy: name("greedy"), ranks: 1 },
            What::Placed { rank: 3, at: 1023, to: 0, seconds: 0.25, bytes: 1 << 40, pinned: true },
            What::Leaves { rank: 2, to: 1023, bytes: 5, by: By::State },
            region,
        ];
        let events: Vec<What> = trace.events().map(|(_, event)| event.what).collect();
        assert_eq!(events, expected);
        assert!(!trace.is_complete(), "the other PE has written nothing");
    }
}
