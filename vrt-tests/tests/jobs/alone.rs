//! Programs that do not become jobs: the main thread is the only rank of a world of one.

use std::process::Command;

/// Status, stdout, stderr.
fn alone(what: &str, variables: &[(&str, &str)]) -> (i32, String, String) {
    let output = Command::new("timeout")
        .args(["--kill-after=5", "60", env!("CARGO_BIN_EXE_alone"), what])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn main_is_the_only_rank_and_ends_as_any_main() {
    assert_eq!(alone("ok", &[]), (0, "rank 0 of 1: ok\n".to_owned(), String::new()));
    for (what, status) in [("fails", 7), ("exit-0", 0), ("exit-5", 5)] {
        assert_eq!(alone(what, &[]), (status, String::new(), String::new()), "{what}");
    }
    let (status, _, err) = alone("abort", &[]);
    assert_eq!(status, 9, "{err}");
    assert!(err.contains("rank 0 called abort(9)"), "{err}");
}

#[test]
fn who_waits_alone_for_ever_is_told() {
    let (status, _, err) = alone("waits-for-ever", &[]);
    assert_eq!(status, 101, "{err}");
    assert!(err.contains("rank 0 (PE 0) waits in receive") && err.contains("alone.rs:"), "{err}");
}

/// It would have done the work of all ranks alone.
#[test]
fn a_program_that_was_to_be_a_job_is_refused() {
    for (name, value) in [
        ("VRT_RANKS", "16"),
        ("VRT_PES", "2"),
        ("VRTRUN", "1"),
        ("OMPI_COMM_WORLD_SIZE", "4"),
        ("PMI_SIZE", "4"),
    ] {
        let (status, out, err) = alone("ok", &[(name, value)]);
        assert_eq!((status, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(&format!("{name}={value}")) && err.contains("#[vrt::main]"), "{err}");
    }
    for variables in [("VRT_RANKS", "1"), ("VRT_RANKS", ""), ("OMPI_COMM_WORLD_SIZE", "1")] {
        assert_eq!(alone("ok", &[variables]).0, 0, "{variables:?}");
    }
}

#[test]
fn a_world_of_one_launches_no_job() {
    let (status, _, err) = alone("launches", &[]);
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("outside of ranks"), "{err}");
}
