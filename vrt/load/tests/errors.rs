//! Programs that cannot be loaded, and the error messages.

mod harness;

use std::path::Path;

use harness::{LIBC, Workshop, try_open};
use vrt_load::LoadError;

const EMPTY: &str = "int main(void) { return 0; }";

/// Opens a program that cannot be loaded; checks that the message has these words.
fn error(program: &Path, words: &[&str]) -> LoadError {
    let Some(error) = try_open(program, LIBC).err() else {
        panic!("{} was loaded", program.display());
    };
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
    error
}

#[test]
fn files_that_are_no_programs() {
    let workshop = Workshop::new();
    let missing = error(&workshop.path("missing"), &["missing", "cannot open it", "No such file"]);
    assert!(matches!(missing, LoadError::Io { .. }));
    let script = workshop.write("script", "#!/bin/sh\n");
    assert!(matches!(error(&script, &["script", "not an ELF file"]), LoadError::NotElf { .. }));
    let empty = workshop.write("empty", "");
    assert!(matches!(error(&empty, &["not an ELF file"]), LoadError::NotElf { .. }));
    let folder = workshop.path("");
    assert!(matches!(error(&folder, &["not an ELF file"]), LoadError::NotElf { .. }));
    let object = workshop.c("object.o", EMPTY, "-c");
    let object = error(&object, &["type 1", "link it"]);
    assert!(matches!(object, LoadError::NotLinked { kind: 1, .. }));
}

#[test]
fn programs_of_another_kind() {
    let workshop = Workshop::new();
    let program = workshop.program("program", EMPTY, "");
    let changed = |name: &str, at: usize, byte: u8| {
        let mut bytes = std::fs::read(&program).unwrap();
        bytes[at] = byte;
        let path = workshop.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let narrow = error(&changed("narrow", 4, 1), &["narrow", "32-bit", "-m64"]);
    assert!(matches!(narrow, LoadError::ThirtyTwoBit { .. }));
    let other = error(&changed("other", 18, 183), &["machine 183", "x86-64"]);
    assert!(matches!(other, LoadError::OtherMachine { machine: 183, .. }));
    let fixed = workshop.c("fixed", EMPTY, "-no-pie");
    let fixed = error(&fixed, &["ET_EXEC", "-fPIE -pie"]);
    assert!(matches!(fixed, LoadError::FixedAddress { .. }));
    let linked = workshop.c("linked", EMPTY, "-static");
    assert!(matches!(error(&linked, &["without -static"]), LoadError::Static { .. }));
    let pie = workshop.c("pie", EMPTY, "-static-pie");
    let pie = error(&pie, &["static-pie", "without -static-pie"]);
    assert!(matches!(pie, LoadError::StaticPie { .. }));
    let library = workshop.library("library.so", "int no_main;", "");
    let library = error(&library, &["without a function main", "-pie"]);
    assert!(matches!(library, LoadError::NoMain { .. }));
}

#[test]
fn libraries_that_are_not_to_be_had() {
    let workshop = Workshop::new();
    let source = "int value(void); int main(void) { return value(); }";
    workshop.library("libgone.so", "int value(void) { return 1; }", "");
    let program = workshop.program("program", source, "-L. -lgone -Wl,-rpath,/opt/nowhere");
    let words =
        ["libgone.so, needed by", "/program", "/opt/nowhere", "/usr/lib", "LD_LIBRARY_PATH"];
    match error(&program, &words) {
        LoadError::LibraryNotFound { library, needed_by, searched } => {
            assert_eq!(library, "libgone.so");
            assert_eq!(needed_by, program.canonicalize().unwrap());
            assert!(searched.iter().any(|folder| folder == Path::new("/opt/nowhere")));
        }
        other => panic!("{other:?}"),
    }
    let library = workshop.library("libmpi.so.40", "int value(void) { return 1; }", "");
    let program = workshop.program("foreign", source, &library.display().to_string());
    let words = ["libmpi.so.40, needed by", "must not be loaded", "compile with vrtcc"];
    assert!(matches!(error(&program, &words), LoadError::Refused { .. }));
}

#[test]
fn symbols_that_nobody_defines_are_all_named() {
    let workshop = Workshop::new();
    let source = "int one(void); int two(void); int (*pointer)(void) = two; \
                  int main(void) { return one(); }";
    let library = "int one(void) { return 0; } int two(void) { return 0; }";
    workshop.library("libboth.so", library, "");
    let program = workshop.program("program", source, "-L. -lboth -Wl,-rpath,$ORIGIN");
    workshop.library("libboth.so", "extern int three; int *address = &three;", "");
    match error(&program, &["one (needed by", "two (needed by", "three (needed by", "libboth.so)"])
    {
        LoadError::MissingSymbols { symbols } => {
            let names: Vec<_> = symbols.iter().map(|symbol| symbol.name.as_str()).collect();
            assert_eq!(names, ["one", "three", "two"]);
        }
        other => panic!("{other:?}"),
    }
    // A version that the library does not have any more.
    workshop.write("old.map", "OLD { global: one; two; };");
    workshop.library("libboth.so", library, "-Wl,--version-script=old.map");
    let program = workshop.program("program", source, "-L. -lboth -Wl,-rpath,$ORIGIN");
    workshop.write("new.map", "NEW { global: one; two; };");
    workshop.library("libboth.so", library, "-Wl,--version-script=new.map");
    match error(&program, &["one@OLD", "two@OLD"]) {
        LoadError::MissingSymbols { symbols } => {
            assert_eq!(symbols[0].version.as_deref(), Some("OLD"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn relocations_that_cannot_be_made() {
    let workshop = Workshop::new();
    let source = "extern __thread int local; int get(void) { return local; } \
                  __thread int local; int main(void) { return get(); }";
    let library = workshop.library("dialect.so", source, "-mtls-dialect=gnu2");
    match error(&library, &["local", "-mtls-dialect=gnu2", "-mtls-dialect=gnu"]) {
        LoadError::ThreadLocalDescriptor { symbol, .. } => assert_eq!(symbol, "local"),
        other => panic!("{other:?}"),
    }
    let source = "extern int data[]; int data[2] = {1, 2}; int main(void) { return data[1]; }";
    let flags = "-fno-pic -mcmodel=large -Wl,-z,notext";
    let library = workshop.c("text.so", source, &format!("-shared {flags}"));
    let text = error(&library, &["written when it is loaded", "-fPIC"]);
    assert!(matches!(text, LoadError::WritableCode { .. }));
    let both = workshop.library("both.so", EMPTY, "-nostdlib -Wl,-N");
    assert!(matches!(error(&both, &["both.so", "-N"]), LoadError::WritableCode { .. }));
}

#[test]
fn damaged_files_are_errors_wherever_the_damage_is() {
    let workshop = Workshop::new();
    workshop.library("libversions.so", "int value(void) { return 1; }", "");
    let source = "#include <stdio.h>\n__thread int a; int value(void); int *b = &a + 1; \
                  int main(void) { puts(\"\"); return value() + a; }";
    let source = source.replace("int *b = &a + 1;", "int c, *b = &c;");
    let program = workshop.program("program", &source, "-L. -lversions -Wl,-rpath,$ORIGIN");
    let bytes = std::fs::read(&program).unwrap();
    let path = workshop.path("damaged");
    let mut refused = 0;
    // Headers, program headers, the dynamic section's tables lie in the first page or two, the
    // dynamic section itself in front of the data. Nothing of it may make the loader panic.
    let places = (0..0x700).chain(0x2d00..0x3100);
    for at in places.filter(|at| at % 3 == 0 && *at < bytes.len()) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        std::fs::write(&path, damaged).unwrap();
        refused += usize::from(try_open(&path, LIBC).is_err());
    }
    for len in (0..bytes.len()).step_by(509) {
        std::fs::write(&path, &bytes[..len]).unwrap();
        refused += usize::from(try_open(&path, LIBC).is_err());
    }
    assert!(refused > 100, "{refused}");
}
