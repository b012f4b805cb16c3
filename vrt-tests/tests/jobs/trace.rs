//! What jobs record with `--trace`, compared with what they have measured themselves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use vrt_tests::job::{self, Job};
use vrt_tests::running::Running;
use vrt_trace::advise::{Advice, advise};
use vrt_trace::convert::{csv, html, paraver};
use vrt_trace::read::{Trace, What};
use vrt_trace::statistics::Statistics;

const SOAK: &str = env!("CARGO_BIN_EXE_soak");
const STRESS: &str = env!("CARGO_BIN_EXE_migrate_stress");
const MISBEHAVE: &str = env!("CARGO_BIN_EXE_misbehave");
const FAULTS: &str = env!("CARGO_BIN_EXE_faults");

/// A job's trace, what it has said, and the folder of the trace.
#[track_caller]
fn traced(program: &str, arguments: &str) -> (Trace, Job, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    let job = Job::run(program, &format!("{arguments} --trace {}", file.display())).succeeds();
    (Trace::read(&file).unwrap(), job, folder)
}

/// Within a hundredth, and what clocks tell apart.
fn alike(a: f64, b: f64) -> bool {
    (a - b).abs() <= 0.01 * a.max(b) + 2e-5
}

/// Sends are receives, and both what each rank's PE has counted; ranks have run as long as was measured.
#[track_caller]
fn agrees_with_what_was_measured(trace: &Trace) -> Statistics {
    let all = Statistics::of(trace);
    assert!(trace.is_complete() && trace.dropped() == 0);
    assert_eq!(all.ranks.len(), trace.ranks as usize);
    assert!(all.sent > 0);
    for (rank, it) in &all.ranks {
        let measured = it.measured.unwrap();
        assert_eq!((it.sent, it.bytes), (measured.sent, measured.bytes), "rank {rank}");
        assert_eq!(it.switches, measured.switches, "rank {rank}");
        assert!(alike(it.run, measured.run), "rank {rank}: {} s, {} s", it.run, measured.run);
    }
    for (pe, it) in &all.pes {
        let parts = it.busy + it.idle + it.overhead;
        assert!(alike(parts, all.seconds), "PE {pe}: {parts} s of {} s", all.seconds);
    }
    all
}

#[test]
fn sends_receives_and_times_are_those_that_were_measured() {
    let (trace, _, _folder) =
        traced(SOAK, "--pes 3 --ranks 12 --seconds 1 --seed 7 --lb random --lb-period 5ms");
    let all = agrees_with_what_was_measured(&trace);
    // A message of which the receive was given up is matched once more, or never.
    let received = all.matched - all.put_back;
    assert!(
        received <= all.sent && all.sent - received <= all.put_back,
        "{received} of {}",
        all.sent
    );
    assert!(all.moves > 0 && all.steps > 0 && all.between_pes > 0 && all.collectives > 0);
    let count = |is: fn(&What) -> bool| trace.events().filter(|(_, event)| is(&event.what)).count();
    let came = count(|what| matches!(what, What::Comes { .. }));
    assert_eq!(came as u64, all.moves, "whoever leaves comes");
    let begun = count(|what| matches!(what, What::CollectiveBegins { .. }));
    assert_eq!(begun as u64, all.collectives);
}

/// Where all ranks wait while a step is taken, they have run until then what the load database says.
#[test]
fn ranks_have_run_what_the_load_database_says() {
    let (trace, job, _folder) =
        traced(STRESS, "--pes 2 --ranks 4 --rounds 20 --lb rotate --node-size 1");
    let all = agrees_with_what_was_measured(&trace);
    assert!(job.err.contains("20 steps, 80 ranks moved"), "{job}");
    assert_eq!((all.steps, all.moves), (20, 80));
    assert!(all.moved_bytes > 0, "to another node memory travels");
    let last = trace
        .events()
        .filter(|(_, it)| matches!(it.what, What::Step { .. }))
        .map(|(_, it)| it.at)
        .max()
        .unwrap();
    let mut loads: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (_, event) in trace.events() {
        match event.what {
            What::Placed { rank, seconds, .. } => loads.entry(rank).or_default().0 += seconds,
            What::Ran { rank, nanoseconds, .. } if event.at <= last => {
                loads.entry(rank).or_default().1 += nanoseconds / 1e9;
            }
            _ => {}
        }
    }
    assert_eq!(loads.len(), 4);
    for (rank, (database, run)) in loads {
        assert!(
            alike(database, run),
            "rank {rank}: {database} s in the database, {run} s in the trace"
        );
    }
}

#[test]
fn what_a_killed_pe_had_written_reads() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    let mut command = job::unlimited(MISBEHAVE);
    command.args(["run-forever", "--pes", "2", "--ranks", "8", "--trace"]).arg(&file);
    let mut job = Running::start(command);
    let has_events = |path: &Path| {
        Trace::read(path).is_ok_and(|trace| {
            trace.records.len() == 2 && trace.records.iter().all(|it| !it.events.is_empty())
        })
    };
    let began = Instant::now();
    while !has_events(&file) && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-9", &job.pes[1].to_string()]).status().unwrap().success());
    assert!(!job.parent.wait().unwrap().success());
    let trace = Trace::read(&file).unwrap();
    assert!(has_events(&file) && !trace.is_complete());
    // A block that was cut off costs no other.
    let mut bytes = std::fs::read(&file).unwrap();
    let whole = trace.events().count();
    let torn = bytes[..200].to_vec();
    bytes.extend_from_slice(&torn[..100]);
    let torn = Trace::of(&bytes).unwrap();
    assert_eq!((torn.events().count(), torn.damaged), (whole, trace.damaged + 100));
}

#[test]
fn a_full_disk_ends_the_trace_and_not_the_job() {
    let job = Job::run(STRESS, "--pes 2 --ranks 4 --rounds 5 --trace /dev/full").succeeds();
    assert!(job.err.contains("--trace /dev/full: No space left on device"), "{job}");
    assert!(job.err.contains("records no more, the job goes on"), "{job}");
}

/// In a file system of its own, if this user may make one: what was written before it was full reads.
#[test]
fn what_was_written_before_the_disk_was_full_reads() {
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=256k none \"$0\" && { \"$@\" --trace \"$0/trace\"; status=$?; \
                  cp \"$0/trace\" \"$0.copy\"; exit $status; } || exit 99";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script]).arg(folder.path()).arg(STRESS);
    command.args(["--pes", "2", "--ranks", "16", "--rounds", "400"]);
    let job = Job::of(command);
    if !job.err.contains("No space left") && job.status != Some(0) && job.out.is_empty() {
        eprintln!("not tried: {job}");
        return;
    }
    assert_eq!(job.status, Some(0), "{job}");
    assert!(job.err.contains("No space left on device"), "{job}");
    assert!(job.err.contains("records no more, the job goes on"), "{job}");
    let copy = folder.path().with_extension("copy");
    let trace = Trace::read(&copy).unwrap();
    std::fs::remove_file(copy).unwrap();
    assert!(!trace.is_complete() && trace.events().count() > 100, "{}", trace.events().count());
}

#[test]
fn a_file_that_cannot_be_is_named() {
    let job = Job::run(STRESS, "--pes 2 --ranks 4 --rounds 5 --trace /nowhere/trace");
    assert_eq!(job.status, Some(2), "{job}");
    assert!(job.err.contains("--trace /nowhere/trace: cannot create it: No such file"), "{job}");
    // Not even root may write there.
    let job = Job::run(STRESS, "--pes 2 --ranks 4 --rounds 5 --trace /proc");
    assert_eq!(job.status, Some(2), "{job}");
    assert!(job.err.contains("--trace /proc: cannot create it: Is a directory"), "{job}");
    let job = Job::run(STRESS, "--pes 2 --ranks 4 --rounds 5 --trace-limit 1M");
    assert_eq!(job.status, Some(2), "{job}");
    assert!(job.err.contains("--trace-limit: it limits what --trace FILE records"), "{job}");
}

#[test]
fn beyond_the_limit_only_what_is_rare_is_recorded() {
    let (trace, job, folder) =
        traced(STRESS, "--pes 2 --ranks 4 --rounds 20 --lb rotate --trace-limit 16K");
    let dropped = trace.dropped();
    assert!(dropped > 0);
    let said: u64 = job
        .err
        .lines()
        .filter_map(|line| line.split("--trace: ").nth(1)?.split(' ').next()?.parse::<u64>().ok())
        .sum();
    assert_eq!(said, dropped, "{job}");
    let all = Statistics::of(&trace);
    assert_eq!((all.steps, all.moves), (20, 80));
    assert!(all.ranks.values().all(|rank| rank.measured.is_some()));
    assert!(std::fs::metadata(folder.path().join("trace")).unwrap().len() < 64 << 10);
}

#[test]
fn regions_and_spans_are_recorded() {
    let (trace, _, _folder) = traced(FAULTS, "--pes 2 --ranks 4 --steps 3 regions");
    has_collectives_alone(&trace);
    let mut open: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for (_, event) in trace.events() {
        match event.what {
            What::RegionBegins { rank, name } => {
                let inside = open.entry(rank).or_default();
                assert_eq!(inside.len(), usize::from(trace.name(name) == "solve"));
                inside.push(trace.name(name));
                *seen.entry(trace.name(name)).or_default() += 1;
            }
            What::RegionEnds { rank } => assert!(open.entry(rank).or_default().pop().is_some()),
            _ => {}
        }
    }
    assert_eq!(seen, BTreeMap::from([("assemble", 12), ("solve", 12)]));
    assert!(open.values().all(Vec::is_empty));
    assert!(trace.names.iter().any(|name| name == "all_reduce_into"), "{:?}", trace.names);
}

/// Small collective operations send no messages between ranks.
fn has_collectives_alone(trace: &Trace) {
    let all = Statistics::of(trace);
    assert!(trace.is_complete());
    assert_eq!((all.sent, all.collectives), (0, 12));
}

#[test]
fn known_faults_are_named() {
    type Expected = fn(&Advice) -> bool;
    let jobs: [(&str, Expected); 5] = [
        (
            "--pes 2 --ranks 8 giant",
            |it| matches!(it, Advice::Giant { rank: 0, part, .. } if *part > 1.0),
        ),
        ("--pes 2 --ranks 32 fine", |it| matches!(it, Advice::Fine { bytes, .. } if *bytes == 4.0)),
        (
            "--pes 2 --ranks 8 placement",
            |it| matches!(it, Advice::Apart { part, possible, .. } if *part == 1.0 && *possible == 0.0),
        ),
        (
            "--pes 2 --ranks 8 --lb greedy pinned",
            |it| matches!(it, Advice::Pinned { ranks: 4, rank: 0..=3, why } if why.contains("descriptor")),
        ),
        (
            "--pes 2 --ranks 8 late",
            |it| matches!(it, Advice::Late { rank: 0, call, .. } if call.contains("receive")),
        ),
    ];
    for (arguments, is_expected) in jobs {
        let (trace, ..) = traced(FAULTS, arguments);
        let advice = advise(&trace, &Statistics::of(&trace));
        let text: Vec<String> = advice.iter().map(Advice::to_string).collect();
        assert!(advice.iter().any(is_expected), "{arguments}: {text:#?}");
        // What does not depend on how busy the machine is.
        let is = |what: fn(&Advice) -> bool| advice.iter().any(what);
        assert_eq!(is(|it| matches!(it, Advice::Pinned { .. })), arguments.ends_with("pinned"));
        assert_eq!(
            is(|it| matches!(it, Advice::Apart { .. })),
            arguments.ends_with("placement"),
            "{text:#?}"
        );
    }
}

/// The numbers of the page and the rows of the table are those of the job; Paraver's records are as its format
/// says.
#[test]
fn other_formats_have_the_same_numbers() {
    let (trace, _, folder) = traced(STRESS, "--pes 2 --ranks 4 --rounds 10 --lb rotate");
    let all = agrees_with_what_was_measured(&trace);
    let mut table = Vec::new();
    csv::write(&trace, &mut table).unwrap();
    let table = String::from_utf8(table).unwrap();
    assert_eq!(table.lines().count(), 1 + trace.events().count());
    assert_eq!(table.lines().filter(|line| line.contains(",send,")).count() as u64, all.sent);

    let mut page = Vec::new();
    html::write(&trace, &all, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    let data = page.split("const data = ").nth(1).unwrap().split(";\n").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["statistics"]["sent"].as_u64(), Some(all.sent));
    assert_eq!(data["moves"].as_array().unwrap().len() as u64, all.moves);
    assert!(!page.contains("http"), "it needs no network");

    paraver_is_well_formed(&trace, &all, &folder.path().join("job.prv"));
}

fn paraver_is_well_formed(trace: &Trace, all: &Statistics, prv: &PathBuf) {
    paraver::write(trace, prv).unwrap();
    let text = std::fs::read_to_string(prv).unwrap();
    let mut lines = text.lines();
    let header = lines.next().unwrap();
    let end: i64 = header.split("):").nth(1).unwrap().split("_ns").next().unwrap().parse().unwrap();
    assert_eq!(end, trace.end());
    assert!(header.ends_with(":1(2):1:4(1:1,1:1,1:1,1:1)"), "{header}");
    let mut communications = 0;
    let mut states: BTreeMap<u32, i64> = BTreeMap::new();
    for line in lines {
        let fields: Vec<i64> = line.split(':').map(|field| field.parse().unwrap()).collect();
        let (cpu, task) = (fields[1], fields[3]);
        assert!(
            (1..=2).contains(&cpu) && fields[2] == 1 && (1..=4).contains(&task) && fields[4] == 1,
            "{line}"
        );
        assert!(fields[5] >= 0 && fields[5] <= end, "{line}");
        match fields[0] {
            1 => {
                assert!(fields.len() == 8 && fields[5] <= fields[6] && fields[6] <= end, "{line}");
                // States of a task follow each other without a gap.
                let before = states.insert(task as u32, fields[6]);
                assert!(
                    before.is_none_or(|before| (before - fields[5]).abs() <= 1),
                    "{line}: {before:?}"
                );
            }
            2 => assert!(fields.len().is_multiple_of(2) && fields.len() >= 8, "{line}"),
            3 => {
                assert_eq!(fields.len(), 15, "{line}");
                communications += 1;
            }
            kind => panic!("there are no records of kind {kind}: {line}"),
        }
    }
    assert_eq!(communications, all.matched);
    let rows = std::fs::read_to_string(prv.with_extension("row")).unwrap();
    assert!(rows.contains("LEVEL THREAD SIZE 4\nrank 0\nrank 1\nrank 2\nrank 3\n"), "{rows}");
    assert!(std::fs::read_to_string(prv.with_extension("pcf")).unwrap().contains("Waits in"));
}
