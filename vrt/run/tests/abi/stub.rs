//! The stub library, and programs started without `vrtrun`.

use std::collections::BTreeSet;

use vrt_abi::{FUNCTIONS, LIBRARY, MISSING_NAMES, STUB};

use crate::tools::{Place, VRTCC, fail, succeed};

const START: &str = "this program was started by itself; start it with `vrtrun --ranks N PROGRAM`";

#[test]
fn it_compiles_without_a_warning_and_has_every_symbol() {
    let place = Place::new();
    place.write("stub.c", STUB);
    for all in [true, false] {
        let mut compile = place.command("cc");
        compile.args(all.then_some("-DVRT_ALL"));
        compile.args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "stub.c", "-o"]);
        succeed(compile.arg(LIBRARY).arg(format!("-Wl,-soname,{LIBRARY}")));
        let symbols = succeed(place.command("nm").args(["-D", "--defined-only", LIBRARY]));
        let symbols: BTreeSet<_> = symbols.lines().map(|line| &line[17..]).collect();
        let expected: BTreeSet<_> = FUNCTIONS
            .iter()
            .filter(|function| all || !MISSING_NAMES.contains(&function.name))
            .flat_map(|function| [format!("W {}", function.name), format!("T P{}", function.name)])
            .collect();
        assert_eq!(expected.len(), if all { 1328 } else { 1328 - 2 * MISSING_NAMES.len() });
        assert!(symbols.iter().copied().eq(&expected), "{:?}", symbols.len());
    }
}

/// Functions that `configure` finds by linking exist; a program that wants the missing ones anyway
/// can get them.
#[test]
fn what_is_not_there_is_not_linked() {
    let place = Place::new();
    let Some(missing) = MISSING_NAMES.first() else { return };
    place.write(
        "probe.c",
        &format!("char {missing}();\nint main(void) {{ return {missing}(); }}\n"),
    );
    place.write("there.c", "char MPI_Send();\nint main(void) { return MPI_Send(); }\n");
    let link = |arguments: &[&str]| {
        let mut command = place.command(VRTCC);
        command.args(["-w", "-o", "probe"]).args(arguments).output().unwrap()
    };
    assert!(link(&["there.c"]).status.success());
    let refused = link(&["probe.c"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains(missing), "{said}");
    assert!(link(&["--vrt-all-functions", "probe.c"]).status.success());
    assert_eq!(fail(&mut place.command(place.join("probe")), 2), format!("{missing}: {START}\n"));
}

#[test]
fn a_call_says_how_to_start_the_program() {
    let place = Place::new();
    let program = place.program(
        "send",
        "#include <mpi.h>\n\
         int main(void) { return MPI_Send(0, 0, MPI_INT, 0, 0, MPI_COMM_WORLD); }\n",
    );
    assert_eq!(fail(&mut place.command(program), 2), format!("MPI_Send: {START}\n"));
    let program =
        place.program("wtime", "#include <mpi.h>\nint main(void) { return PMPI_Wtime() > 0; }\n");
    assert_eq!(fail(&mut place.command(program), 2), format!("MPI_Wtime: {START}\n"));
}

#[test]
fn what_may_be_asked_before_the_beginning_is_answered() {
    let place = Place::new();
    let program = place.program(
        "ask",
        "#include <mpi.h>\n\
         #include <stdio.h>\n\
         #include <string.h>\n\
         int main(void)\n\
         {\n\
             int begun = 7, ended = 7, one = 7, other = 7, major = 7, minor = 7, length = 7;\n\
             char text[MPI_MAX_LIBRARY_VERSION_STRING];\n\
             MPI_Initialized(&begun);\n\
             PMPI_Finalized(&ended);\n\
             MPI_Get_version(&one, &other);\n\
             MPI_Abi_get_version(&major, &minor);\n\
             MPI_Get_library_version(text, &length);\n\
             printf(\"%d %d %d.%d %d.%d %s\\n\", begun, ended, one, other, major, minor, text);\n\
             return length != (int)strlen(text);\n\
         }\n",
    );
    let answer = succeed(&mut place.command(program));
    assert!(answer.starts_with("0 0 5.0 1.0 vrt "), "{answer}");
}

const BEGIN: &str = "\
    #include <mpi.h>\n\
    #include <stdio.h>\n\
    int main(int argc, char **argv)\n\
    {\n\
        int level;\n\
        printf(\"once\\n\");\n\
        return argc > 9 ? MPI_Init_thread(&argc, &argv, 0, &level) : MPI_Init(&argc, &argv);\n\
    }\n";

/// The program becomes `vrtrun` with itself as the single rank's program; output that it had not
/// flushed is written by the new process, so that it appears once.
#[test]
fn the_first_call_starts_the_program_again() {
    let place = Place::new();
    let program = place.program("begin", BEGIN);
    place.script("path/vrtrun", "for x in \"$@\"; do echo \"<$x>\"; done; exit 3");
    let path = format!("{}:/usr/bin:/bin", place.join("path").display());
    let shown = |arguments: &[&str]| {
        let output = place.command(&program).args(arguments).env("PATH", &path).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        String::from_utf8(output.stdout).unwrap()
    };
    let program = program.canonicalize().unwrap();
    let begin = format!("<--ranks>\n<1>\n<-->\n<{}>\n", program.display());
    assert_eq!(shown(&[]), begin);
    assert_eq!(shown(&["-x", "a b", "", "é"]), format!("{begin}<-x>\n<a b>\n<>\n<é>\n"));
    // More than a page of arguments.
    let long = "l".repeat(3000);
    let many = [long.as_str(); 12];
    assert_eq!(shown(&many), format!("{begin}{}", format!("<{long}>\n").repeat(12)));
}

/// A program that is started alone has one rank, as with any MPI, unless more are requested.
#[test]
fn a_program_that_is_started_alone_has_the_ranks_that_were_asked_for() {
    let place = Place::new();
    let program = place.program("begin", BEGIN);
    place.script("path/vrtrun", "echo $*; exit 3");
    let path = format!("{}:/usr/bin:/bin", place.join("path").display());
    for (variable, value, options) in [
        ("NOTHING", "", "--ranks 1 -- "),
        ("VRT_RANKS", "", "--ranks 1 -- "),
        ("VRT_RANKS", "4", "-- "),
        ("VRT_PES", "2", "-- "),
        ("OMPI_COMM_WORLD_SIZE", "2", "--ranks 2 -- "),
        ("PMI_SIZE", "3", "--ranks 3 -- "),
    ] {
        let mut command = place.command(&program);
        let output = command.env("PATH", &path).env(variable, value).output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.starts_with(options), "{variable}={value}: {shown}");
    }
}

#[test]
fn a_program_does_not_start_itself_for_ever() {
    let place = Place::new();
    let program = place.program("begin", BEGIN);
    place.script("path/vrtrun", "shift 3; exec \"$@\"");
    let path = format!("{}:/usr/bin:/bin", place.join("path").display());
    let said = fail(place.command(&program).env("PATH", path), 2);
    assert_eq!(said, format!("MPI_Init: {START}\n"));
    // Without a `vrtrun`.
    let said = fail(place.command(&program).args(["-"; 9]).env("PATH", place.path()), 2);
    assert_eq!(said, format!("MPI_Init_thread: {START}\n"));
}

/// Tools and programs replace functions by defining them, and call the originals by their second
/// names.
#[test]
fn functions_can_be_replaced() {
    let place = Place::new();
    place.write(
        "tool.c",
        "#include <mpi.h>\n\
         #include <stdio.h>\n\
         int MPI_Barrier(MPI_Comm comm)\n\
         { puts(\"tool\"); fflush(stdout); return PMPI_Barrier(comm); }\n",
    );
    place.write(
        "user.c",
        "#include <mpi.h>\nint main(void) { return MPI_Barrier(MPI_COMM_WORLD); }\n",
    );
    succeed(place.command(VRTCC).args(["-shared", "-fPIC", "tool.c", "-o", "libtool.so"]));
    let arguments = ["user.c", "-o", "user", "-L.", "-ltool", "-Wl,-rpath,$ORIGIN"];
    succeed(place.command(VRTCC).args(arguments));
    let output = place.command(place.join("user")).output().unwrap();
    assert_eq!(output.stdout, b"tool\n");
    assert_eq!(output.stderr, format!("MPI_Barrier: {START}\n").as_bytes());
}
