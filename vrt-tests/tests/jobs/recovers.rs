//! After an error that `try_` twins return, ranks and communicators can go on: inside a node, between
//! nodes, and while ranks move.

use std::process::Stdio;

use vrt_tests::job;

#[test]
fn ranks_go_on_after_errors() {
    for node in ["4", "1"] {
        for more in ["", "--lb random"] {
            let output = job::program(env!("CARGO_BIN_EXE_recovers"))
                .args(["--pes", "4", "--ranks", "10", "--node-size", node])
                .args(more.split_whitespace())
                .env("RUST_BACKTRACE", "0")
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let case = format!("nodes of {node}, {more}");
            assert_eq!(output.status.code(), Some(0), "{case}: {text}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "right\n", "{case}: {text}");
        }
    }
}
