//! Locks in statics: who holds one stays on its PE, whoever waits for it.

use vrt_tests::job::Job;

const STATIC_LOCKS: &str = env!("CARGO_BIN_EXE_static_locks");

/// A rank that filled a `OnceLock` for which another one waited could move, and then wrote over the other PE's
/// value; so could one that ran a `Once`, one that had a lock of `parking_lot`'s, and, with thread-locals of its own,
/// one that had a standard stream.
#[test]
fn who_holds_a_lock_for_which_others_wait_stays() {
    let mut ways = vec![""];
    if cfg!(target_arch = "x86_64") {
        ways.push("--private-thread-locals");
    }
    for way in ways {
        let job = Job::run(STATIC_LOCKS, &format!("--pes 2 --ranks 4 {way}")).is_right();
        assert!(job.number_before("locks") > 20, "{job}");
    }
}
