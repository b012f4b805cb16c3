//! Programs compiled and linked with unusual options.

use vrt_tests::job::Job;

use crate::places::{BETWEEN_NODES, MOVING, STILL};
use crate::program::Program;

/// A program with globals, a library, constructors, and functions that are selected at the start.
const WITH_LIBRARY: Program =
    Program { libraries: &["own_library_library.c"], ..Program::new("own_library.c") };

#[track_caller]
fn runs(program: &Program) {
    let _ = BETWEEN_NODES.run(program, 4);
}

#[test]
fn optimised() {
    runs(&Program { options: &["-O0"], ..WITH_LIBRARY });
    runs(&Program { options: &["-O3", "-march=native"], ..WITH_LIBRARY });
    runs(&Program { options: &["-O2", "-flto"], ..WITH_LIBRARY });
    runs(&Program { options: &["-O3"], ..Program::new("cpp.cc") });
}

#[test]
fn without_symbols() {
    runs(&Program { options: &["-s"], ..WITH_LIBRARY });
}

#[test]
fn symbols_bound_in_other_ways() {
    for options in [
        &["-Wl,-z,now"],
        &["-Wl,-z,lazy"],
        &["-fno-plt"],
        &["-rdynamic"],
        &["-Wl,-z,pack-relative-relocs"],
        &["-Wl,--hash-style=sysv"],
        &["-Wl,--hash-style=gnu"],
    ] {
        runs(&Program { options, ..WITH_LIBRARY });
    }
}

#[test]
fn segments_of_other_shapes() {
    for options in [
        &["-Wl,-z,noseparate-code"],
        &["-Wl,-z,norelro"],
        &["-Wl,-z,max-page-size=0x200000"],
        &["-Wl,--gc-sections"],
    ] {
        runs(&Program { options, ..WITH_LIBRARY });
    }
}

#[test]
fn checked() {
    runs(&Program { options: &["-fstack-protector-all"], ..WITH_LIBRARY });
    runs(&Program { options: &["-O2", "-D_FORTIFY_SOURCE=2"], ..WITH_LIBRARY });
    runs(&Program { options: &["-fsanitize=undefined"], ..WITH_LIBRARY });
    runs(&Program { options: &["-fcf-protection=full"], ..WITH_LIBRARY });
}

#[test]
fn a_runtime_inside_the_program() {
    const CPP: Program = Program::new("cpp.cc");
    runs(&Program { options: &["-static-libstdc++", "-static-libgcc"], ..CPP });
}

/// In an executable the linker turns them into offsets.
#[test]
fn descriptors_of_thread_locals() {
    let with_library = Program {
        options: &["-mtls-dialect=gnu2"],
        libraries: &["thread_locals_library.c"],
        ..Program::new("thread_locals.c")
    };
    is_refused(&with_library, "-mtls-dialect=gnu2");
}

/// The program is refused with a message that says what to do.
#[track_caller]
fn is_refused(program: &Program, word: &str) {
    let job = program.run(&STILL.with(2));
    assert_eq!(job.status, Some(127), "{job}");
    assert!(job.err.starts_with("vrtrun: ") && job.err.contains(word), "{job}");
    assert_eq!(job.err.lines().count(), 1, "{job}");
}

#[test]
fn programs_that_can_be_loaded_only_once_are_refused() {
    let fixed = Program { options: &["-no-pie"], ..Program::new("globals.c") };
    is_refused(&fixed, "-fPIE -pie");
}

#[test]
fn sanitisers_that_replace_the_allocator_are_refused() {
    let checked = Program { options: &["-fsanitize=address"], ..Program::new("globals.c") };
    is_refused(&checked, "libasan");
}

#[test]
fn options_that_a_program_cannot_have_are_refused() {
    const GLOBALS: Program = Program::new("globals.c");
    let refused = |job: Job, words: &[&str]| {
        assert_eq!(job.status, Some(2), "{job}");
        assert!(words.iter().all(|word| job.err.contains(word)), "{job}");
        assert_eq!(job.err.lines().count(), 1, "{job}");
    };
    refused(GLOBALS.run(&format!("{} --gdb 2", STILL.with(2))), &["--gdb 2", "0 to 1"]);
    let on_env = |options: &str| Job::run(env!("CARGO_BIN_EXE_vrtrun"), &format!("{options} env"));
    refused(on_env("--gdb 0"), &["--gdb", "does not use MPI"]);
    refused(on_env("--share libc.so"), &["--share", "does not use MPI"]);
}

#[test]
fn messages_counted_by_a_library() {
    let profiled = Program { libraries: &["profiled_library.c"], ..Program::new("profiled.c") };
    for place in [STILL, MOVING, BETWEEN_NODES] {
        let _ = place.run(&profiled, 6);
    }
}
