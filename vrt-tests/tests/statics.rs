//! What the runtime consists of has statics in every program. A word of a stack that is the address of one must not be
//! taken for a guard of a lock: a rank that has it would stay.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind};

/// The crates whose statics are known to be none that a program locks.
fn libraries() -> BTreeSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vrt/slot/src/search/variables.rs");
    let source = std::fs::read_to_string(source).unwrap();
    let (_, list) = source.split_once("const LIBRARIES: ").unwrap();
    let (list, _) = list.split_once("];").unwrap();
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn statics_of_the_runtime_are_not_the_programs() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_alone")).unwrap();
    let program = object::File::parse(&*program).unwrap();
    let is_writable = |symbol: &object::Symbol<'_, '_>| {
        let section = symbol.section_index().and_then(|at| program.section_by_index(at).ok());
        let flags = section.map(|section| section.flags());
        matches!(flags, Some(SectionFlags::Elf { sh_flags }) if sh_flags & u64::from(object::elf::SHF_WRITE) != 0)
    };
    let statics = program.symbols().filter(|it| it.kind() == SymbolKind::Data && is_writable(it));
    let of_crates: BTreeSet<String> = statics
        .filter_map(|symbol| {
            let name = format!("{:#}", rustc_demangle::demangle(symbol.name().ok()?));
            let (first, _) = name.trim_start_matches('<').split_once("::")?;
            Some(first.to_owned())
        })
        .collect();
    assert!(of_crates.contains("vrt_core") && of_crates.contains("rustix"), "{of_crates:?}");
    let known = libraries();
    let unknown: Vec<_> = of_crates.difference(&known).filter(|it| *it != "alone").collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
