//! Ranks of different PEs that mean different types by one message are told so, in one node and
//! between nodes.

use std::process::Stdio;

use vrt_tests::job;

/// A job of `mismatch`, which has to end with a panic that has these words.
#[track_caller]
fn refused(what: &str, len: usize, nodes: &str, words: &[&str]) {
    refused_with("--ranks 2", what, len, nodes, words);
}

/// The same with these options.
#[track_caller]
fn refused_with(options: &str, what: &str, len: usize, nodes: &str, words: &[&str]) {
    let output = job::program(env!("CARGO_BIN_EXE_mismatch"))
        .args(["--pes", "2", "--node-size", nodes, what])
        .args(options.split(' '))
        .args(["--len", &len.to_string()])
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let case = format!("{what}, {len} elements, {nodes}, {options}");
    assert_eq!(output.status.code(), Some(101), "{case}: {text}");
    for word in words {
        assert!(text.contains(word), "{case}: no {word:?} in {text}");
    }
    // A rank that contributes something else than another hears what, not what it contributes itself.
    for line in text.lines() {
        let contributed = |phrase: &str| {
            let (_, what) = line.split_once(phrase)?;
            what.split(';').next()
        };
        let own = contributed("this rank contributes ");
        assert!(own.is_none() || own != contributed(" it contributes "), "{case}: {text}");
    }
}

#[test]
fn messages() {
    for nodes in ["2", "1"] {
        for (len, bytes) in [(1, "1 byte"), (1000, "1000 bytes"), (1_000_000, "1000000 bytes")] {
            for what in ["message", "early", "outside"] {
                let sent = format!("tag 0, {bytes}, was sent as u8");
                let words = ["rank 1 in receive_into", "mismatch.rs", &sent, "received as bool"];
                refused(what, len, nodes, &words);
            }
            let words = ["was sent as a structure unknown here", "received as bool"];
            refused("structure", len, nodes, &words);
        }
    }
}

#[test]
fn contributions() {
    let all = ["broadcast", "all-gather", "all-reduce", "gather", "scatter", "all-to-all"];
    for nodes in ["2", "1"] {
        for what in all {
            for len in [2, 100_000] {
                refused(what, len, nodes, &["mismatch.rs", "u8", "bool"]);
            }
        }
        refused("sparse", 10, nodes, &["mismatch.rs", "u8", "bool"]);
    }
}

/// Nobody waits for what others do, so the one that comes later has to be told.
#[test]
fn roots() {
    for what in ["broadcast-roots", "gather-roots"] {
        refused_with("--ranks 4", what, 2, "2", &["mismatch.rs", "root"]);
    }
}

#[test]
fn contributions_of_ranks_that_have_moved() {
    let all = ["all-gather", "all-reduce", "gather", "all-to-all"];
    for nodes in ["2", "1"] {
        for options in ["--ranks 2 --moved 1", "--ranks 2 --moved 2", "--ranks 6 --moved 2"] {
            for what in all {
                refused_with(options, what, 2, nodes, &["mismatch.rs", "u8", "bool"]);
            }
        }
    }
}

#[test]
fn windows() {
    for nodes in ["2", "1"] {
        refused(
            "window",
            8,
            nodes,
            &["in allocate_window", "mismatch.rs", "u8", "bool", "on rank"],
        );
    }
}
