//! `vrtcc` and `vrtcxx` as users and build systems call them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use vrt_abi::{HEADER, LIBRARY, VERSION_HASH};
use vrt_tests::executable::install;

use crate::tools::{Place, VRTCC, VRTCXX, fail, is_installed, output, succeed};

const MAIN: &str = "#include <mpi.h>\n\
                    int main(int argc, char **argv) { return MPI_Init(&argc, &argv); }\n";
const FILES: [&str; 5] = [
    "include/mpi.h",
    "lib/libmpi_abi.so",
    "lib/libmpi_abi.so.1",
    "lib/pkgconfig/vrt-mpi.pc",
    "lib/vrt-mpi.stamp",
];

/// All files under a directory.
fn files(directory: &Path) -> Vec<String> {
    fn walk(directory: &Path, to: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { walk(&path, to) } else { to.push(path) }
        }
    }
    let mut found = Vec::new();
    walk(directory, &mut found);
    let below = |path: &PathBuf| path.strip_prefix(directory).unwrap().display().to_string();
    let mut names: Vec<_> = found.iter().map(below).collect();
    names.sort();
    names
}

/// The wrapper, in the directory `bin` of the test.
fn installed(place: &Place) -> PathBuf {
    let wrapper = place.join("prefix/bin/vrtcc");
    fs::create_dir_all(wrapper.parent().unwrap()).unwrap();
    install(VRTCC, &wrapper);
    wrapper
}

fn in_cache(place: &Place) -> PathBuf {
    place.join("cache/vrt").join(VERSION_HASH)
}

fn elf_type(place: &Place, file: &str) -> String {
    let header = succeed(place.command("readelf").args(["-h", file]));
    let line = header.lines().find(|line| line.contains("Type:")).unwrap();
    line.split_whitespace().nth(1).unwrap().to_owned()
}

#[test]
fn programs_are_position_independent_and_ask_for_the_library() {
    let place = Place::new();
    place.write("a.c", MAIN);
    place.write("a.cc", &format!("{MAIN}\n#include <vector>\nstd::vector<MPI_Comm> comms;\n"));
    succeed(place.command(VRTCC).args(["-O2", "a.c", "-o", "one"]));
    succeed(place.command(VRTCC).args(["-c", "a.c"]));
    succeed(place.command(VRTCC).args(["a.o", "-o", "two"]));
    succeed(place.command(VRTCXX).args(["-std=c++17", "a.cc", "-o", "three"]));
    for program in ["one", "two", "three"] {
        assert_eq!(elf_type(&place, program), "DYN", "{program}");
        let dynamic = succeed(place.command("readelf").args(["-d", program]));
        let asked = format!("Shared library: [{LIBRARY}]");
        let lib = format!("path: [{}]", in_cache(&place).join("lib").display());
        assert!(dynamic.contains(&asked) && dynamic.contains(&lib), "{dynamic}");
    }
    assert_eq!(files(&in_cache(&place)), FILES);
}

/// A compiler that makes position-dependent programs by default is told otherwise.
#[test]
fn the_compiler_is_told_to_make_them_position_independent() {
    let place = Place::new();
    let compiler = place.script("old-cc", "exec cc -fno-pie -no-pie \"$@\"\n");
    place.write("a.c", MAIN);
    succeed(place.command(VRTCC).args(["a.c", "-o", "a"]).env("VRT_CC", compiler));
    assert_eq!(elf_type(&place, "a"), "DYN");
}

#[test]
fn a_fixed_address_is_warned_of() {
    let place = Place::new();
    place.write("a.c", MAIN);
    for arguments in [["-no-pie", "a.c"], ["a.c", "-static-pie"], ["a.c", "-static"]] {
        let output = output(place.command(VRTCC).args(arguments).args(["-o", "a"]));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("vrtcc: warning: vrtrun cannot run"), "{said}");
    }
    succeed(place.command(VRTCC).args(["a.c", "-o", "a", "-no-pie"]));
    assert_eq!(elf_type(&place, "a"), "EXEC");
    // Nothing is linked here.
    assert_eq!(fail(place.command(VRTCC).args(["-c", "-static", "a.c"]), 0), "");
}

#[test]
fn libraries_can_be_made() {
    let place = Place::new();
    place.write("a.c", "#include <mpi.h>\nint f(void) { return MPI_Barrier(MPI_COMM_WORLD); }\n");
    assert_eq!(
        fail(place.command(VRTCC).args(["-shared", "-fPIC", "a.c", "-o", "liba.so"]), 0),
        ""
    );
    succeed(place.command(VRTCC).args(["-c", "a.c"]));
    succeed(place.command(VRTCC).args(["-r", "a.o", "-o", "b.o"]));
    assert_eq!(elf_type(&place, "b.o"), "REL");
}

#[test]
fn questions_are_answered() {
    let place = Place::new();
    let prefix = in_cache(&place).display().to_string();
    let ask = |arguments: &[&str]| succeed(place.command(VRTCC).args(arguments));
    let include = format!("-I{prefix}/include");
    let link = format!("-L{prefix}/lib -Wl,-rpath,{prefix}/lib -lmpi_abi");
    for option in ["-show", "-showme"] {
        assert_eq!(ask(&[option]), format!("cc {include} {link}"));
        assert_eq!(ask(&[option, "-O2"]), format!("cc {include} -O2 {link}"));
        assert_eq!(
            ask(&["a.c", option]),
            format!("cc {include} -fPIE -fstack-clash-protection -pie a.c {link}")
        );
        assert_eq!(
            ask(&[option, "-c", "a.c"]),
            format!("cc {include} -fPIE -fstack-clash-protection -c a.c")
        );
    }
    for option in ["-compile_info", "-compile-info"] {
        assert_eq!(ask(&[option]), format!("cc {include}"));
    }
    for option in ["-link_info", "-link-info"] {
        assert_eq!(ask(&[option]), format!("cc {link}"));
    }
    assert_eq!(ask(&["-showme:compile"]), include);
    assert_eq!(ask(&["-showme:link"]), link);
    assert_eq!(ask(&["-showme:incdirs"]), format!("{prefix}/include"));
    assert_eq!(ask(&["-showme:libdirs"]), format!("{prefix}/lib"));
    assert_eq!(ask(&["-showme:libs"]), "mpi_abi");
    assert_eq!(ask(&["-showme:command"]), "cc");
    assert_eq!(ask(&["--vrt-prefix"]), prefix);
    let version = ask(&["-showme:version"]);
    assert!(version.starts_with("vrtcc: vrt ") && version.ends_with("MPI 5.0 (Language: C)"));
    let version = succeed(place.command(VRTCXX).arg("-showme:version"));
    assert!(version.starts_with("vrtcxx: vrt ") && version.ends_with("(Language: C++)"));
    assert!(ask(&["--vrt-help"]).contains("-showme:link"));
    assert_eq!(succeed(place.command(VRTCXX).arg("-showme:command")), "c++");
}

/// Options that only query the compiler are passed to it unchanged, and create no files.
#[test]
fn what_is_the_compilers_goes_to_it() {
    let place = Place::new();
    let of = |program: &str, argument| succeed(place.command(program).arg(argument));
    for option in ["--version", "-dumpmachine", "-print-search-dirs"] {
        assert_eq!(of(VRTCC, option), of("cc", option));
        assert_eq!(of(VRTCXX, option), of("c++", option));
    }
    assert_eq!(succeed(place.command(VRTCC).arg("-v")), "");
    assert_ne!(fail(&mut place.command(VRTCC), 1), "");
    assert!(!place.join("cache").exists());
}

#[test]
fn a_failing_compilers_status_is_the_wrappers() {
    let place = Place::new();
    let compiler =
        place.script("cc7", "case \" $* \" in *\" -shared \"*) exec cc \"$@\";; esac; exit 7");
    fail(place.command(VRTCC).arg("a.c").env("VRT_CC", compiler), 7);
}

#[test]
fn the_environment_names_the_compiler() {
    let place = Place::new();
    let shown =
        |value: &str| succeed(place.command(VRTCC).arg("-showme:command").env("VRT_CC", value));
    assert_eq!(shown("ccache  gcc"), "ccache gcc");
    assert_eq!(shown(""), "cc");
    let blank = place.script("c compiler", "exec cc \"$@\"");
    assert_eq!(shown(blank.to_str().unwrap()), format!("\"{}\"", blank.display()));
    place.write("a.c", &format!("#ifndef GIVEN\n#error\n#endif\n{MAIN}"));
    succeed(place.command(VRTCC).args(["a.c", "-o", "a"]).env("VRT_CC", "cc -DGIVEN"));
    fail(place.command(VRTCC).args(["a.c", "-o", "a"]), 1);
}

#[test]
fn wrong_compilers_are_named() {
    let place = Place::new();
    place.write("a.c", MAIN);
    let said = fail(place.command(VRTCC).arg("a.c").env("VRT_CC", "no-such-cc"), 2);
    assert!(said.contains("cannot run the C compiler `no-such-cc`") && said.contains("$VRT_CC"));
    let said = fail(place.command(VRTCXX).arg("a.c").env("VRT_CXX", "no-such-c++"), 2);
    assert!(said.contains("cannot run the C++ compiler `no-such-c++`"), "{said}");
    for name in [VRTCC, "vrtcc"] {
        let directory = Path::new(VRTCC).parent().unwrap();
        let mut command = place.command(VRTCC);
        command.arg("a.c").env("VRT_CC", name).env("PATH", directory);
        let said = fail(&mut command, 2);
        assert!(said.contains("is this wrapper itself"), "{said}");
    }
    let place = Place::new();
    let broken = place.script("broken-cc", "echo 'out of order' >&2; exit 1");
    let said = fail(place.command(VRTCC).arg("a.c").env("VRT_CC", broken), 2);
    assert!(said.contains("cannot compile the stub library:\nout of order"), "{said}");
    assert_eq!(files(&in_cache(&place).join("lib")), ["pkgconfig/vrt-mpi.pc"]);
}

#[test]
fn unknown_options_of_wrappers_are_refused() {
    let place = Place::new();
    for option in ["--vrt-instal", "-showme:everything"] {
        let said = fail(place.command(VRTCC).arg(option), 2);
        assert!(said.contains(option) && said.contains("--vrt-help"), "{said}");
    }
    let said = fail(place.command(VRTCC).arg("--vrt-install"), 2);
    assert!(said.contains("needs a directory"), "{said}");
}

/// Without a C compiler, the C++ compiler builds the stub library.
#[test]
fn cxx_alone_is_enough() {
    let place = Place::new();
    place.write("a.cc", MAIN);
    succeed(place.command(VRTCXX).args(["a.cc", "-o", "a"]).env("VRT_CC", "no-such-cc"));
    assert_eq!(files(&in_cache(&place)), FILES);
}

#[test]
fn files_are_made_beside_the_directory_bin() {
    let place = Place::new();
    let wrapper = installed(&place);
    place.write("a.c", MAIN);
    succeed(place.command(&wrapper).args(["a.c", "-o", "a"]));
    let expected: Vec<_> = ["bin/vrtcc"].into_iter().chain(FILES).collect();
    assert_eq!(files(&place.join("prefix")), expected);
    assert!(!place.join("cache").exists());
    let prefix = place.join("prefix").canonicalize().unwrap();
    assert_eq!(succeed(place.command(&wrapper).arg("--vrt-prefix")), prefix.display().to_string());
    // A symbolic link to the wrapper is the wrapper.
    std::os::unix::fs::symlink(&wrapper, place.join("mpicc")).unwrap();
    let of_link = succeed(place.command(place.join("mpicc")).arg("--vrt-prefix"));
    assert_eq!(of_link, prefix.display().to_string());
}

#[test]
fn files_of_another_version_are_made_anew() {
    let place = Place::new();
    let wrapper = installed(&place);
    let ask = || succeed(place.command(&wrapper).arg("--vrt-prefix"));
    ask();
    let changed =
        |name: &str| fs::metadata(place.join("prefix").join(name)).unwrap().modified().unwrap();
    let before = changed("lib/libmpi_abi.so.1");
    ask();
    assert_eq!(changed("lib/libmpi_abi.so.1"), before);
    let first = HEADER.lines().next().unwrap();
    place.write("prefix/include/mpi.h", &format!("{first}\nof an older version\n"));
    place.write("prefix/lib/vrt-mpi.stamp", "0123456789abcdef\n");
    ask();
    assert_eq!(fs::read_to_string(place.join("prefix/include/mpi.h")).unwrap(), HEADER);
    assert_ne!(changed("lib/libmpi_abi.so.1"), before);
    // What somebody took away comes back.
    fs::remove_file(place.join("prefix/lib/libmpi_abi.so")).unwrap();
    ask();
    assert!(place.join("prefix/lib/libmpi_abi.so").exists());
}

/// The user's cache is used if the files cannot be created beside the wrapper.
#[test]
fn the_cache_is_used_where_nothing_can_be_made() {
    let place = Place::new();
    let wrapper = installed(&place);
    // Not by permissions: tests may run as a user who may do everything.
    place.write("prefix/include", "a file");
    let cache = in_cache(&place).display().to_string();
    fs::create_dir(place.join("tmp")).unwrap();
    let mut command = place.command(&wrapper);
    command.arg("--vrt-prefix").env("TMPDIR", place.join("tmp"));
    assert_eq!(succeed(&mut command), cache);
    assert_eq!(fs::read_dir(place.join("tmp")).unwrap().count(), 0);
    let home = place.join("home");
    let mut command = place.command(&wrapper);
    command.arg("--vrt-prefix").env_remove("XDG_CACHE_HOME").env("HOME", &home);
    let expected = home.join(".cache/vrt").join(VERSION_HASH);
    assert_eq!(succeed(&mut command), expected.display().to_string());
}

#[test]
fn a_header_of_another_mpi_is_left_alone() {
    let place = Place::new();
    let wrapper = installed(&place);
    place.write("prefix/include/mpi.h", "/* another MPI */\n");
    let cache = in_cache(&place).display().to_string();
    assert_eq!(succeed(place.command(&wrapper).arg("--vrt-prefix")), cache);
    let said = fail(place.command(VRTCC).arg("--vrt-install").arg(place.join("prefix")), 2);
    assert!(said.contains("is of another MPI"), "{said}");
    let header = fs::read_to_string(place.join("prefix/include/mpi.h")).unwrap();
    assert_eq!(header, "/* another MPI */\n");
}

fn in_temporary(place: &Place) -> Command {
    let mut command = place.command(VRTCC);
    fs::create_dir_all(place.join("tmp")).unwrap();
    command.arg("--vrt-prefix").env_remove("XDG_CACHE_HOME").env_remove("HOME");
    command.env("TMPDIR", place.join("tmp"));
    command
}

#[test]
fn temporary_files_are_the_last_resort() {
    let place = Place::new();
    let prefix = succeed(&mut in_temporary(&place));
    assert!(prefix.starts_with(place.join("tmp/vrt-").to_str().unwrap()), "{prefix}");
    assert_eq!(files(Path::new(&prefix)), FILES);
    let ours = Path::new(&prefix).parent().unwrap();
    assert_eq!(fs::metadata(ours).unwrap().permissions().mode() & 0o777, 0o700);
    // One that others can write to is not used.
    fs::set_permissions(ours, fs::Permissions::from_mode(0o777)).unwrap();
    let said = fail(&mut in_temporary(&place), 2);
    assert!(
        said.contains("found no directory") && said.contains("not this user's alone"),
        "{said}"
    );
}

#[test]
fn nothing_can_be_written_anywhere() {
    let place = Place::new();
    place.write("file", "");
    let mut command = in_temporary(&place);
    command.env("XDG_CACHE_HOME", place.join("file")).env("TMPDIR", place.join("file/tmp"));
    let said = fail(&mut command, 2);
    assert_eq!(said.lines().count(), 3, "{said}");
    assert!(said.starts_with("vrtcc: found no directory for mpi.h and the stub library:\n"));
}

#[test]
fn files_can_be_made_where_the_user_says() {
    let place = Place::new();
    let path = place.join("a b");
    assert_eq!(
        succeed(place.command(VRTCC).args(["--vrt-install", "a b"])),
        path.display().to_string()
    );
    assert_eq!(files(&path), FILES);
    assert_eq!(fs::read_to_string(path.join("include/mpi.h")).unwrap(), HEADER);
    if is_installed("pkg-config") {
        let mut command = place.command("pkg-config");
        command.args(["--cflags", "--libs", "vrt-mpi"]);
        let flags = succeed(command.env("PKG_CONFIG_PATH", path.join("lib/pkgconfig")));
        place.write("a.c", MAIN);
        let line = format!("cc a.c -o a {flags}");
        succeed(place.command("sh").args(["-c", &line]));
    }
}

/// The output of `-show` can be given to a shell, even if it contains spaces.
#[test]
fn shown_commands_can_be_run() {
    let place = Place::new();
    let prefix = place.join("a b");
    fs::create_dir_all(prefix.join("bin")).unwrap();
    install(VRTCC, prefix.join("bin/vrtcc"));
    place.write("a b.c", MAIN);
    let mut command = place.command(prefix.join("bin/vrtcc"));
    let shown = succeed(command.args(["-show", "-DX=\"$Y`\"", "a b.c", "-o", "c d"]));
    succeed(place.command("sh").args(["-c", &shown]));
    assert!(place.join("c d").exists(), "{shown}");
}

/// All of them find nothing, create the files, and compile with them.
#[test]
fn several_wrappers_begin_at_once() {
    let place = Place::new();
    place.write("a.c", MAIN);
    let start = |at: usize| {
        let mut command = place.command(if at < 4 { VRTCC } else { VRTCXX });
        let output = format!("a{at}");
        command.args(["-x", "c", "a.c", "-o", &output]).stderr(Stdio::piped()).spawn().unwrap()
    };
    let wrappers: Vec<Child> = (0..8).map(start).collect();
    for wrapper in wrappers {
        let output = wrapper.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(files(&in_cache(&place)), FILES);
    for at in 0..8 {
        let said = fail(place.command(place.join(&format!("a{at}"))).env("PATH", ""), 2);
        assert!(said.starts_with("MPI_Init: "), "{said}");
    }
}
