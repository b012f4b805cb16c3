//! Local runs that end by a panic while a rank waits that has started threads.

use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use vrt_tests::job;

fn run(how: &str) -> (Output, String, String) {
    let output = job::program(env!("CARGO_BIN_EXE_abandons")).arg(how).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output, out, err)
}

/// A scoped thread wrote to memory of the caller that had been freed.
#[test]
fn threads_that_borrow_do_not_outlive_the_run() {
    for how in ["scope", "crossbeam"] {
        let (output, out, err) = run(how);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{how}: {out}{err}");
        assert!(err.contains("while rank 0 waits and threads that it has to join"), "{err}");
        assert_eq!(out, "", "{how}");
    }
}

#[test]
fn detached_threads_may() {
    let (output, out, err) = run("detached");
    assert!(output.status.success(), "{err}");
    assert!(out.contains("caught: true") && out.ends_with("ok\n"), "{out}");
}
