//! Locks of other crates, which wait by `parking_lot_core`, suspend ranks.

use vrt_tests::job::Job;

const OTHER_LOCKS: &str = env!("CARGO_BIN_EXE_other_locks");

/// The ranks of a PE have had one record among them by which to wait, so that a second one waited in the kernel, and
/// its PE with it: a deadlock, or with threads beside the ranks no end.
#[test]
fn ranks_of_a_pe_wait_for_locks_of_other_crates() {
    let own = if cfg!(target_arch = "x86_64") { "--private-thread-locals" } else { "" };
    for way in ["--pes 1", "--pes 2 --pool", own] {
        let job = Job::run(OTHER_LOCKS, &format!("--ranks 6 {way}")).is_right();
        assert_eq!(job.number_before("locks"), 6, "{job}");
    }
}
