//! The soak, short. `VRT_SOAK_SECONDS=60 cargo test -p vrt-tests --test jobs soak` makes it longer.

use vrt_tests::job::Job;

fn seconds() -> String {
    std::env::var("VRT_SOAK_SECONDS").unwrap_or_else(|_| "2".to_owned())
}

/// Runs a soak on 64 ranks and 4 PEs; checks that messages were compared.
#[track_caller]
fn soak(more: &str) -> Job {
    // Unoptimised frames are full of dead words that look like pointers; `scripts/test` runs an
    // optimised soak with its suspended stacks searched.
    let search = if cfg!(debug_assertions) { "" } else { "--check-stacks" };
    let job = format!("--pes 4 --ranks 64 --seconds {} {search} {more}", seconds());
    let job = Job::run(env!("CARGO_BIN_EXE_soak"), &job).is_right();
    assert!(job.number_before("messages") > 0, "{job}");
    assert!(!job.err.contains("points into its PE's heap"), "{job}");
    job
}

#[test]
fn random_traffic_arrives_whole_and_in_order() {
    soak("");
}

#[test]
fn small_messages_flood_the_rings() {
    soak("--longest 64 --eager 16K");
}

#[test]
fn everything_is_a_rendezvous() {
    soak("--longest 100000 --eager 0");
}

#[test]
fn ranks_that_print_panic_log_and_start_threads() {
    let job = soak("--hostile --longest 100000");
    let printed = |rank: u32| job.out.contains(&format!("rank {rank} round 0\n"));
    assert!((0..64).all(printed), "{job}");
}
