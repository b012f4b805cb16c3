//! Build systems that ask the wrappers for their flags.

use crate::tools::{Place, VRTCC, VRTCXX, fail, is_installed, succeed};

const MAIN: &str = "#include <mpi.h>\n\
                    int main(int argc, char **argv) { return MPI_Init(&argc, &argv); }\n";

#[test]
fn cmake_finds_mpi_by_the_wrappers() {
    if !is_installed("cmake") {
        return;
    }
    let place = Place::new();
    place.write("a.c", MAIN);
    place.write("a.cc", MAIN);
    place.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.16)\n\
         project(a C CXX)\n\
         find_package(MPI 5.0 REQUIRED)\n\
         add_executable(a_c a.c)\n\
         target_link_libraries(a_c MPI::MPI_C)\n\
         add_executable(a_cxx a.cc)\n\
         target_link_libraries(a_cxx MPI::MPI_CXX)\n",
    );
    // By flags, which `cc` is given, and by the wrapper in the compiler's place.
    let by_flags = [format!("-DMPI_C_COMPILER={VRTCC}"), format!("-DMPI_CXX_COMPILER={VRTCXX}")];
    let in_place =
        [format!("-DCMAKE_C_COMPILER={VRTCC}"), format!("-DCMAKE_CXX_COMPILER={VRTCXX}")];
    for (build, arguments) in [("flags", by_flags), ("wrapper", in_place)] {
        succeed(place.command("cmake").args(["-S", ".", "-B", build]).args(arguments));
        succeed(place.command("cmake").args(["--build", build]));
        for program in ["a_c", "a_cxx"] {
            let program = place.join(build).join(program);
            let said = fail(place.command(program).env("PATH", ""), 2);
            assert!(said.starts_with("MPI_Init: "), "{said}");
        }
    }
}

/// Does what rsmpi's build script does: uses the words of `-show` that begin with `-I`, `-L` and
/// `-l`.
#[test]
fn words_of_show_are_enough_to_link() {
    let place = Place::new();
    place.write("a.c", MAIN);
    let shown = succeed(place.command(VRTCC).arg("-show"));
    let known = |word: &&str| ["-I", "-L", "-l"].iter().any(|option| word.starts_with(option));
    let words: Vec<_> = shown.split_whitespace().filter(known).collect();
    assert_eq!(words.len(), 3, "{shown}");
    succeed(place.command("cc").arg("a.c").args(["-o", "a"]).args(words));
}
