//! The table and the register by themselves; whole jobs are in `vrt-tests`.

use std::collections::BTreeSet;

use super::{Kind, register};
use crate::calls::TABLE;

#[test]
fn each_call_stands_in_the_table_once() {
    let names: BTreeSet<&str> = TABLE.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), TABLE.len());
    assert!(
        TABLE.contains(&("fopen", "opens_stream")) && TABLE.contains(&("dup2", "duplicates_onto"))
    );
}

#[test]
fn an_entry_is_taken_once_and_forgotten_with_its_slot() {
    // More than one chunk, of slots that no other test has.
    for key in 0..200 {
        register::add(Kind::Catalogue, 1 << 20 | key, 0, 7_000_000 + (key as u32 & 1));
    }
    assert_eq!(
        register::take(Kind::Catalogue, 1 << 20 | 2).map(|taken| taken.slot),
        Some(7_000_000)
    );
    assert!(register::take(Kind::Catalogue, 1 << 20 | 2).is_none());
    assert!(register::take(Kind::Mapping, 1 << 20 | 4).is_none(), "another kind");
    register::forget_of(7_000_000);
    assert!(register::take(Kind::Catalogue, 1 << 20 | 4).is_none());
    let of_the_other = register::take_all(Kind::Catalogue, |_, _, slot| slot == 7_000_001);
    assert_eq!(of_the_other.len(), 100);
    // Two at once for the same key are two.
    register::add(Kind::Catalogue, 5, 0, 7_000_000);
    register::add(Kind::Catalogue, 5, 0, 7_000_001);
    assert!(register::take(Kind::Catalogue, 5).is_some());
    assert!(register::take(Kind::Catalogue, 5).is_some());
    assert!(register::take(Kind::Catalogue, 5).is_none());
}

#[test]
fn an_alignment_that_is_no_number_is_refused() {
    for align in [(1 << 63) + 1, usize::MAX] {
        // SAFETY: a plain call.
        let (block, error) = unsafe {
            let block = crate::hooks::memalign(align, 10);
            (block, std::io::Error::last_os_error().raw_os_error())
        };
        assert!(block.is_null(), "{align:#x}: a block at {block:p}");
        assert_eq!(error, Some(libc::EINVAL), "{align:#x}");
    }
}
