//! A request that cannot be met is reported with the reason and an alternative.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tempfile::TempDir;
use vrt_tests::job::Job;

use crate::program::Program;

const ASKED: Program = Program::new("asked.c");
const VRTRUN: &str = env!("CARGO_BIN_EXE_vrtrun");

/// Checks that a job of the program ends well, has this many ranks and prints these words.
#[track_caller]
fn says(options: &str, ranks: u32, words: &[&str]) {
    has(&ASKED.run(options), ranks, words);
}

#[track_caller]
fn has(job: &Job, ranks: u32, words: &[&str]) {
    assert_eq!(job.status, Some(0), "{job}");
    assert_eq!(job.out, format!("{ranks} ranks\n"), "{job}");
    assert_eq!(job.err.lines().count(), words.len(), "{job}");
    for word in words {
        assert!(job.err.contains(word), "{word:?}: {job}");
    }
}

/// A job for something else that `vrtrun` runs.
fn vrtrun(arguments: &str) -> Job {
    Job::run(VRTRUN, arguments)
}

#[test]
fn balancing() {
    says("--pes 2 --ranks 4", 4, &[]);
    let at_migrate =
        ["greedy: no step was taken: one is taken when all ranks have called `migrate`"];
    says("--pes 2 --ranks 4 --lb greedy", 4, &at_migrate);
    let without = ["--lb-period does nothing without --lb"];
    says("--pes 2 --ranks 4 --lb-period 10ms", 4, &without);
    let alone = ["--lb auto does nothing: there is 1 PE", "load balancing: auto: "];
    let job = ASKED.run("--pes 1 --ranks 2 --lb auto");
    assert!(alone.iter().all(|word| job.err.contains(word)), "{job}");
}

#[test]
fn ranks() {
    says("--pes 2 --ranks 1", 1, &["note: 1 rank on 2 PEs: 1 PE is without one"]);
    says("--ranks 1", 1, &[]);
    for options in ["-n 3", "-np 3", "--np 3", "--pes 1 -np 3", "-n3 --pes 1", "--no-bind -np 3"] {
        says(options, 3, &[]);
    }
    // Behind the program they are its own.
    let own = Job::run(VRTRUN, &format!("-np 2 -- {} -np 7", ASKED.file().display()));
    has(&own, 2, &[]);
    // 4 per PE, as from Rust.
    says("--pes 2", 8, &[]);
}

#[test]
fn a_variable_that_there_is_not() {
    let mut command = ASKED.job("--pes 1 --ranks 2", "");
    command.env("VRT_RANK", "7");
    let told =
        ["the environment has VRT_RANK, which is no variable of vrt's; did you mean VRT_RANKS?"];
    has(&Job::of(command), 2, &told);
}

#[test]
fn sharing() {
    let told = ["--share libnot.so: the program has no such library; it has ", "libc.so.6"];
    let job = ASKED.run("--pes 1 --ranks 2 --share libnot.so,libc.so");
    assert!(
        told.iter().all(|word| job.err.contains(word)) && job.err.lines().count() == 1,
        "{job}"
    );
    says("--pes 1 --ranks 2 --share libc.so", 2, &[]);
}

#[test]
fn a_program_that_does_not_use_mpi() {
    let place = TempDir::new().unwrap();
    let source = place.path().join("plain.c");
    fs::write(&source, "#include <stdio.h>\nint main(void) { return puts(\"once\") < 0; }\n")
        .unwrap();
    let plain = |name: &str, options: &[&str]| {
        let file = place.path().join(name);
        let mut compile = Command::new("cc");
        assert!(
            compile.arg(&source).arg("-o").arg(&file).args(options).status().unwrap().success()
        );
        vrtrun(&format!("--ranks 4 {}", file.display()))
    };
    let job = plain("plain", &["-fPIE", "-pie"]);
    assert_eq!((job.status, job.out.as_str()), (Some(0), "once\n"), "{job}");
    assert!(job.err.contains("plain does not use MPI and runs once"), "{job}");
    // What cannot be loaded, but need not be.
    for options in [&["-no-pie"][..], &["-static"]] {
        let job = plain("fixed", options);
        assert_eq!((job.status, job.out.as_str()), (Some(0), "once\n"), "{options:?}: {job}");
    }
    // It may start one that does.
    let job = vrtrun(&format!("-n 3 env {}", ASKED.file().display()));
    has(&job, 3, &[]);
}

/// Like an interpreter whose extension is linked with MPI.
#[test]
fn a_program_that_loads_its_mpi_while_it_runs() {
    let place = TempDir::new().unwrap();
    let make = |compiler: &str, name: &str, text: &str, options: &[&str]| {
        let source = place.path().join(name).with_extension("c");
        fs::write(&source, text).unwrap();
        let file = place.path().join(name);
        let mut compile = Command::new(compiler);
        compile.arg(&source).arg("-o").arg(&file).args(options);
        let folder = place.path().join("cache");
        assert!(compile.env("XDG_CACHE_HOME", folder).status().unwrap().success());
        file
    };
    let library = "#include <mpi.h>\nint begin(void) { return MPI_Init(0, 0); }\n";
    let library = make(env!("CARGO_BIN_EXE_vrtcc"), "extension", library, &["-shared", "-fPIC"]);
    let program = "#include <dlfcn.h>\n\
        int main(int argc, char **argv)\n\
        {\n\
            void *library = dlopen(argv[argc - 1], RTLD_NOW);\n\
            int (*begin)(void) = (int (*)(void))dlsym(library, \"begin\");\n\
            return begin();\n\
        }\n";
    let program = make("cc", "interpreter", program, &["-fPIE", "-pie"]);
    let job = vrtrun(&format!("--ranks 2 {} {}", program.display(), library.display()));
    assert_eq!(job.status, Some(127), "{job}");
    let told = "interpreter is not linked with MPI, but loads a library that is while it runs";
    assert!(job.err.contains(told) && job.err.lines().count() == 1, "{job}");
}

#[test]
fn lists() {
    for (option, names) in [
        ("--lb list", &["auto", "greedy-refine", "hierarchical"][..]),
        ("--lb-predict list", &["last", "median"]),
        ("--exchange list", &["auto", "nbx-node"]),
    ] {
        let job = vrtrun(option);
        assert_eq!((job.status, job.err.as_str()), (Some(0), ""), "{job}");
        for name in names {
            assert!(
                job.out.lines().any(|line| line.split(' ').next() == Some(name)),
                "{name}: {job}"
            );
        }
    }
    let job = vrtrun("--lb");
    assert!(job.status == Some(2) && job.err.contains("no program is given"), "{job}");
}

#[test]
fn what_is_nearly_right() {
    for (options, words) in [
        ("--lb greddy", &["strategies: auto, null", "; did you mean `greedy`?"][..]),
        ("--lb autos", &["; did you mean `auto`?"]),
        ("--lb greedy --lb-arg home-bais=1", &["; did you mean `home-bias`?"]),
        ("--lb auto --lb-arg strategies=refin", &["; did you mean `refine`?"]),
        ("--lb auto --lb-predict medain", &["; did you mean `median`?"]),
        ("--exchange ncx", &["; did you mean `"]),
        ("--move memmory", &["a similar value exists: 'memory'"]),
        ("--rank 3", &["a similar argument exists: '--ranks'"]),
    ] {
        let job = vrtrun(&format!("{options} -- {}", ASKED.file().display()));
        assert_eq!(job.status, Some(2), "{job}");
        for word in words {
            assert!(job.err.contains(word), "{word:?}: {job}");
        }
    }
    let mut command = ASKED.job("", "");
    command.env("VRT_MOVE", "memmory");
    let job = Job::of(command);
    assert!(job.status == Some(2) && job.err.contains("a similar value exists: 'memory'"), "{job}");
}

#[test]
fn a_file_that_is_not_executable() {
    let place = TempDir::new().unwrap();
    let file = place.path().join("asked");
    fs::copy(ASKED.file(), &file).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let job = vrtrun(&format!("--ranks 2 {}", file.display()));
    assert_eq!(job.status, Some(126), "{job}");
    assert!(job.err.contains("asked: it is not executable (chmod +x)"), "{job}");
}

/// The advice is one that a C program can follow.
#[test]
fn a_launcher_without_mpi() {
    let mut command = ASKED.job("", "");
    command.env("OMPI_COMM_WORLD_SIZE", "2");
    let job = Job::of(command);
    if cfg!(feature = "mpi") {
        return;
    }
    assert_eq!(job.status, Some(2), "{job}");
    assert!(job.err.contains("`vrtrun --ranks N PROGRAM`"), "{job}");
}

/// A job under a limit set by the shell.
fn limited(limit: &str) -> Job {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limit} && exec \"$@\""), "sh"]);
    command.args(["timeout", "60", VRTRUN, "--pes", "2", "--ranks", "2"]).arg(ASKED.file());
    Job::of(command)
}

#[test]
fn the_limit_for_files_is_none_for_memory() {
    has(&limited("-S -f 1000"), 2, &[]);
    // One that nobody may lift.
    let job = limited("-f 1000");
    assert_eq!(job.status, Some(2), "{job}");
    assert!(job.err.contains("`ulimit -f unlimited` lifts it"), "{job}");
}

#[test]
fn sizes_are_told_as_they_were_asked_for() {
    let job = ASKED.run("--pes 1 --ranks 2 --slot 10");
    assert_eq!(job.status, Some(2), "{job}");
    assert!(job.err.contains("a slot of 10 bytes is out of range: 1 MiB"), "{job}");
}

/// Memory that a rank's libc keeps is not a leak of its program.
#[test]
fn leaks() {
    says("--pes 1 --ranks 2 --check-leaks", 2, &[]);
    let job = Job::of(ASKED.job("--pes 1 --ranks 2 --check-leaks", "leaks"));
    let told = "rank 1 ended and left 3 blocks (";
    assert!(job.status == Some(0) && job.err.contains(told), "{job}");
}
