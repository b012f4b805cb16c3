//! `lb-sim replay` of a trace of vrt.

use std::{fs, path::Path, process::Command, time::Duration};

use serde_json::Value;
use vrt_core::pe::{Envelope, Event, Observer, Then, cycle_counter};
use vrt_trace::{Job, TraceFile, Writer};

/// Cycles of a unit of work, and the number of rounds.
const UNIT: u64 = 1_000_000;
const ROUNDS: u64 = 40;

/// Writes the trace of two PEs: on the first, two ranks have eight units of work in each round; on the second, two
/// ranks have one, and wait; rank 0 sends a message to rank 2 in each round.
fn write_trace(path: &Path) {
    let file = TraceFile::create(path, 1 << 20).expect("a file");
    let began = cycle_counter().wrapping_sub(ROUNDS * 16 * UNIT);
    for pe in 0..2 {
        let job = Job { pes: 2, ranks: 4, node: 0, command: "made up".to_owned() };
        let (mut recorder, writer) =
            Writer::start(&file, pe, &job, |text| panic!("{text}")).expect("a thread");
        let mut at = began;
        for round in 0..ROUNDS {
            let next = began + (round + 1) * 16 * UNIT;
            let units = if pe == 0 { 8 } else { 1 };
            for rank in [2 * pe, 2 * pe + 1] {
                let (from, to) = (at, at + units * UNIT);
                at = to;
                recorder.observe(Event::Ran { rank, from, to, then: Then::Ready });
            }
            if pe == 1 {
                recorder.observe(Event::Idle { from: at, to: next });
                at = next;
            } else {
                let sequence = round as u32;
                let sent = Envelope { from: 0, to: 2, sequence, context: 0, tag: 0, bytes: 100 };
                recorder.observe(Event::Sent(sent));
            }
        }
        // The clock is seen twice, some time apart.
        std::thread::sleep(Duration::from_millis(60));
        drop(recorder);
        writer.finish();
    }
}

#[test]
fn a_trace_is_replayed_with_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (trace, page) = (path("job.trace"), path("page.html"));
    write_trace(Path::new(&trace));
    let lb_sim = |arguments: &[&str]| {
        Command::new("timeout")
            .args(["--kill-after=5", "120", env!("CARGO_BIN_EXE_lb-sim")])
            .args(arguments)
            .output()
            .expect("lb-sim runs")
    };
    let output =
        lb_sim(&["replay", &trace, "--cut", "0.01", "--lb", "greedy", "--json", "--html", &page]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let row = |name: &str| {
        let rows = value["replays"].as_array().expect("rows");
        rows.iter().find(|it| it["balancer"] == name).expect("a row").clone()
    };
    let number = |row: &Value, name: &str| row[name].as_f64().expect("a number");
    let (recorded, still, greedy) = (row("as recorded"), row("nobody moves"), row("greedy"));
    let (there, here) = (number(&recorded, "seconds"), number(&still, "seconds"));
    assert!((there - here).abs() < 1e-6 * there, "{value}");
    assert_eq!((&recorded["off_pe_messages"], &recorded["moves"]), (&ROUNDS.into(), &0.into()));
    // 16 units against the mean of 9.
    assert!((number(&recorded, "imbalance") - 7.0 / 9.0).abs() < 0.02, "{value}");
    // At best 9 units take the place of 16; a phase that holds half a round misleads.
    let part = number(&greedy, "seconds") / number(&recorded, "seconds");
    assert!((0.56..0.9).contains(&part), "{value}");
    assert!(number(&greedy, "imbalance") < number(&recorded, "imbalance"), "{value}");

    let page = fs::read_to_string(page).expect("written");
    assert!(page.contains(r#""name":"greedy""#) && !page.contains("/*DATA*/"), "{page}");

    let refused = |arguments: &[&str], status: i32, why: &str| {
        let output = lb_sim(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(status) && error.contains(why), "{error}");
    };
    refused(&[&trace], 1, "a trace is replayed alone");
    refused(&["replay", &trace, "--cut", "0"], 2, "--cut 0: allowed is a number of seconds");
    let other = path("other");
    fs::write(&other, "vrtrace1 and nothing more").expect("written");
    refused(&["replay", &other], 1, &other);
}
