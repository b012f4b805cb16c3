//! Large heaps lie in pages of 2 MiB where the system allows it.

use vrt_tests::job;
use vrt_tests::pages;

const PAGES: &str = env!("CARGO_BIN_EXE_pages");

/// KiB in large pages of a PE with 4 ranks.
#[track_caller]
fn kib(arguments: &str) -> u64 {
    let mut command = job::program(PAGES);
    command.args(["--pes", "2", "--ranks", "8"]).args(arguments.split_whitespace());
    pages::kib_that_it_says(command)
}

#[test]
fn large_heaps_have_large_pages() {
    // The four blocks of 16 MiB; not all of them where memory is in pieces.
    let expected = if pages::may_be_large() { 16 << 10..80 << 10 } else { 0..1 };
    for nodes in ["", "--node-size 1"] {
        let large = kib(&format!("--bytes 16777216 {nodes}"));
        assert!(expected.contains(&large), "{large} KiB, {nodes}");
    }
}

#[test]
fn small_heaps_and_those_of_who_does_not_want_them_have_none() {
    assert_eq!(kib("--bytes 300000"), 0);
    assert_eq!(kib("--bytes 16777216 --no-huge-pages"), 0);
}
