//! `uts experiment beside`, with programs that print what the authors' would.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

/// Another process moves the program to where it is executed: a file that this process has open for writing is briefly
/// also open in a child that another test forks, and cannot be executed then.
fn write_program(path: &Path, text: &str) {
    let written = path.with_extension("text");
    fs::write(&written, format!("#!/bin/sh\n{text}")).expect("a folder that can be written to");
    let install = Command::new("install").args(["-m", "755", "--"]).args([&written, path]).status();
    assert!(install.expect("install is one of coreutils").success(), "{}", path.display());
}

/// A directory with programs that find T1 and T3 with this many additional nodes, and a launcher.
fn reference(more: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a place for temporary files");
    let search = format!(
        r#"
case " $* " in
*" -r 19 "*) echo "Tree size = $((4130071 + {more})), tree depth = 10, num leaves = 3305118 (80.03%)" ;;
*" -r 42 "*) echo "Tree size = 4112897, tree depth = 1572, num leaves = 3599034 (87.51%)" ;;
esac
echo "Wallclock time = 1000.000 sec, performance = 4000 nodes/sec (4000 nodes/sec per PE)"
"#
    );
    write_program(&folder.path().join("uts-seq"), &search);
    write_program(&folder.path().join("uts-mpi-ws"), &search);
    let launcher = "[ \"$1 $2 $3\" = \"--quiet -n 2\" ] || exit 7\nshift 3\nexec \"$@\"\n";
    write_program(&folder.path().join("launcher"), launcher);
    folder
}

/// Exit status, standard output and standard error of `uts experiment`.
fn experiment(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "300", env!("CARGO_BIN_EXE_uts")]);
    let output = command.arg("experiment").args(arguments).stdin(Stdio::null()).output();
    let output = output.expect("the program can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
#[ignore = "takes long: scripts/test --all"]
fn both_programs_take_turns_and_claims_hold_or_not() {
    let folder = reference(0);
    let out = folder.path().join("out");
    let [place, written] = [folder.path(), &out].map(|it| it.to_str().expect("text"));
    let launcher = format!("{place}/launcher --quiet");
    let (status, stdout, stderr) = experiment(&[
        "beside",
        "--quick",
        "--repeat",
        "2",
        "--reference",
        place,
        "--out",
        written,
        "--mpirun",
        &launcher,
    ]);
    assert_eq!(status, Some(0), "{stderr}");
    let claims: Vec<&str> = stdout
        .lines()
        .filter(|line| line.ends_with("| hold |") || line.ends_with("| NOT |"))
        .collect();
    assert_eq!(claims.len(), 28, "{stdout}");
    assert!(stdout.contains("Only to see whether everything runs"), "{stdout}");
    // Theirs are as slow as nothing is.
    let beside = claims.iter().filter(|it| it.contains("/ uts-seq") || it.contains("/ uts-mpi-ws"));
    assert!(beside.clone().count() == 12 && beside.clone().all(|it| it.ends_with("| hold |")));
    let read = |name: &str| fs::read_to_string(out.join(name)).expect("it was written");
    let table = read("beside.csv");
    // Of each tree two sequential runs and 14 parallel ones.
    assert_eq!(table.lines().count(), 1 + 2 * 2 * (2 + 14), "{table}");
    assert!(table.contains("\"uts-mpi-ws on 2 processes, T1\",0,1000.000000,0.004"), "{table}");
    assert!(read("beside.svg").starts_with("<svg") && read("report.md").contains("beside.svg"));
}

#[test]
fn a_reference_that_finds_another_tree_is_an_error() {
    let folder = reference(1);
    let out = folder.path().join("out");
    let [place, written] = [folder.path(), &out].map(|it| it.to_str().expect("text"));
    let (status, _, stderr) =
        experiment(&["beside", "--quick", "--reference", place, "--out", written]);
    assert_eq!(status, Some(1), "{stderr}");
    let expected = "uts-seq -t 1 -b 4 -r 19 -a 3 -d 10 ";
    assert!(stderr.contains(expected), "{stderr}");
    let expected = "it found 4130072 nodes, depth 10, 3305118 leaves; T1: 4130071 nodes, depth 10, \
                    3305118 leaves";
    assert!(stderr.contains(expected), "{stderr}");
}

#[test]
fn a_launcher_that_fails_is_an_error_with_its_line() {
    let folder = reference(0);
    let out = folder.path().join("out");
    let [place, written] = [folder.path(), &out].map(|it| it.to_str().expect("text"));
    let launcher = format!("{place}/launcher --loud");
    let (status, _, stderr) = experiment(&[
        "beside",
        "--quick",
        "--reference",
        place,
        "--out",
        written,
        "--mpirun",
        &launcher,
    ]);
    assert_eq!(status, Some(1), "{stderr}");
    assert!(
        stderr.contains("launcher --loud -n 2 ") && stderr.contains("exit status: 7"),
        "{stderr}"
    );
}

#[test]
fn without_the_authors_programs_it_says_what_is_needed() {
    let folder = tempfile::tempdir().expect("a place for temporary files");
    let place = folder.path().to_str().expect("text");
    let cases: [(&[&str], &str); 4] = [
        (&["beside"], "experiment beside without --reference DIR: allowed is a folder with"),
        (&["beside", "--reference", place], "no program uts-seq in "),
        (&["beside", "--quick"], "--reference <DIR>"),
        (
            &["ranks", "--reference", place],
            "--reference with experiment ranks: allowed with beside and all",
        ),
    ];
    for (arguments, part) in cases {
        let (status, _, stderr) = experiment(&[arguments, &["--out", place]].concat());
        assert_eq!(status, Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
    }
}
