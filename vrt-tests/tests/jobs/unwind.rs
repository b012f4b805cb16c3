//! A panic that leaves requests behind which nobody can take back ends the job, caught or not.

use std::process::Stdio;

use vrt_tests::job;

#[test]
fn requests_that_cannot_be_taken_back_end_the_job() {
    for (what, words) in [("send", "with an open send"), ("forgotten", "with a forgotten receive")]
    {
        let output = job::program(env!("CARGO_BIN_EXE_unwind"))
            .args(["--pes", "2", "--ranks", "2", what])
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(101), "{what}: {text}");
        for words in [words, "rank 0: a panic", "leaves the scope of 1 requests"] {
            assert!(text.contains(words), "{what}: no {words:?} in {text}");
        }
    }
}
