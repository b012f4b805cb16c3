//! What references are bound to: compared with the system's loader, which runs the same programs.

mod harness;

use harness::{LIBC, Workshop, open, run};

const AGAINST: &str = "-L. -Wl,-rpath,$ORIGIN";

const VERSIONS: &str = r#"
int old_answer(void) { return 1; }
int new_answer(void) { return 2; }
int newest_answer(void) { return 3; }
__asm__(".symver old_answer,answer@V1");
__asm__(".symver new_answer,answer@V2");
__asm__(".symver newest_answer,answer@@V3");
int inner(void) { return new_answer() * 10; }
"#;
const VERSION_SCRIPT: &str = "V1 { global: answer; inner; local: *; }; V2 { } V1; V3 { } V2;";

#[test]
fn references_get_the_version_that_they_were_linked_with() {
    let workshop = Workshop::new();
    workshop.write("versions.map", VERSION_SCRIPT);
    let script = "-Wl,--version-script=versions.map";
    // Programs linked when there was no version, one, and all of them.
    workshop.library("libversions.so", "int answer(void) { return 0; } int inner(void);", "");
    let source = r#"
        int answer(void);
        int main(void) { report("answer", answer()); return 0; }"#;
    let flags = format!("{AGAINST} -lversions");
    let unversioned = workshop.program("unversioned", source, &flags);
    workshop.write("first.map", "V1 { global: answer; };");
    let answer = "int answer(void) { return 0; }";
    workshop.library("libversions.so", answer, "-Wl,--version-script=first.map");
    let first = workshop.program("first", source, &flags);
    workshop.library("libversions.so", VERSIONS, script);
    let newest = workshop.program("newest", source, &flags);
    let source = r#"
        int answer(void); int second(void); int inner(void);
        __asm__(".symver second,answer@V2");
        int main(void) {
          report("answer", answer()); report("second", second()); report("inner", inner());
          return 0;
        }"#;
    let both = workshop.program("both", source, &flags);
    for (program, answer) in [(&unversioned, 1), (&first, 1), (&newest, 3), (&both, 3)] {
        let native = workshop.native(program);
        assert_eq!(native.value("answer"), answer);
        let plan = open(program, LIBC);
        for outcome in run(&plan, 2) {
            assert_eq!(outcome, native);
        }
        // By name: the default version.
        let base = plan.symbol_in("libversions", "answer").unwrap();
        let versions = &plan.modules()[1];
        assert!(versions.name == "libversions.so" && versions.span.contains(&base));
    }
}

#[test]
fn a_library_without_versions_serves_references_of_any() {
    let workshop = Workshop::new();
    workshop.write("some.map", "SOME { global: answer; };");
    let some = "int answer(void) { return 0; }";
    workshop.library("libnone77.so", some, "-Wl,--version-script=some.map");
    let source = r#"
        int answer(void);
        int main(void) { report("answer", answer()); return 0; }"#;
    let program = workshop.program("user", source, &format!("{AGAINST} -lnone77"));
    workshop.library("libnone77.so", "int answer(void) { return 8; }", "");
    for shared in [LIBC, &[LIBC, &["libnone77.so"]].concat()] {
        for outcome in run(&open(&program, shared), 2) {
            assert_eq!(outcome.value("answer"), 8);
        }
    }
}

const COPIED_LIBRARY: &str = r#"
int number = 5;
static int target[3] = {1, 2, 3};
int *pointers[3] = {&target[0], 0, &target[2]};
int (*function)(int);
static int add(int x) { return x + number; }
int (*function)(int) = add;
const int constant[2] = {7, 8};
char large[100000] = "large";
static int chosen_by(int x) { return x + 300; }
static int (*resolve(void))(int) { return chosen_by; }
int chosen(int x) __attribute__((ifunc("resolve")));
int (*indirect)(int) = chosen;
int get(void) { return number + *pointers[2] + target[0] + large[99999]; }
"#;

const COPYING: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>
#include <stdlib.h>
extern int number; extern int *pointers[3]; extern int (*function)(int);
extern const int constant[2]; extern char large[100000]; extern int (*indirect)(int);
int get(void);
int main(int argc, char **argv) {
  int me = atoi(argv[1]);
  report("begin", number + *pointers[0] + *pointers[2] + function(0) + constant[1] + large[1]);
  report("indirect", indirect(1));
  number = 50; *pointers[2] = 60; *pointers[0] = 70; large[99999] = 80;
  report("seen by the library", get());
  report("seen by its function", function(1));
  report("of the process", stdout != 0 && environ != 0 && environ[0] != 0 && optarg == 0);
  report("stdout", fileno(stdout));
  for (int round = 0; round < 20; round++) {
    number = me; meet();
    if (number != me || get() != me + 210) return 1;
    meet();
  }
  return 0;
}
"#;

#[test]
fn programs_have_copies_of_libraries_variables() {
    let workshop = Workshop::new();
    workshop.library("libcopied.so", COPIED_LIBRARY, "");
    // Compilers use them only where code is not position independent otherwise.
    let flags = format!("{AGAINST} -lcopied -mno-direct-extern-access");
    let indirect = workshop.program("indirect", COPYING, &flags);
    let flags = format!("{AGAINST} -lcopied -mdirect-extern-access");
    let copying = workshop.program("copying", COPYING, &flags);
    for program in [&indirect, &copying] {
        let native = workshop.native(program);
        for outcome in run(&open(program, LIBC), 4) {
            assert_eq!(outcome, native);
        }
    }
}

const UNIQUE_LIBRARY: &str = r#"
template <int N> struct Counter { static int count; };
template <int N> int Counter<N>::count = N;
inline int &local() { static int value = 100; return value; }
extern "C" int library_counts() { return Counter<5>::count++ * 1000 + local()++; }
extern "C" int *library_local() { return &local(); }
"#;

const UNIQUE_USER: &str = r#"
#include <cstdlib>
template <int N> struct Counter { static int count; };
template <int N> int Counter<N>::count = N;
inline int &local() { static int value = 100; return value; }
extern "C" int library_counts();
extern "C" int *library_local();
int main(int argc, char **argv) {
  int me = std::atoi(argv[1]);
  Counter<5>::count += 10 * me;
  for (int i = 0; i < 10; i++) { local()++; library_counts(); meet(); }
  report("count", Counter<5>::count - 10 * me);
  report("local", local());
  return library_local() != &local();
}
"#;

#[test]
fn there_is_one_of_a_templates_variable_in_each_image() {
    let workshop = Workshop::new();
    workshop.cpp_library("libunique.so", UNIQUE_LIBRARY, "-fno-gnu-unique");
    workshop.cpp_library("libunique2.so", UNIQUE_LIBRARY, "-fgnu-unique");
    for library in ["unique", "unique2"] {
        let flags = format!("{AGAINST} -l{library}");
        let program = workshop.cpp("user", UNIQUE_USER, &flags);
        let native = workshop.native(&program);
        assert_eq!((native.value("count"), native.value("local")), (15, 120));
        for outcome in run(&open(&program, LIBC), 4) {
            assert_eq!(outcome, native);
        }
    }
}

const PACKED: &str = r#"
static int numbers[300];
#define EIGHT(n) &numbers[n], &numbers[n + 1], &numbers[n + 2], &numbers[n + 3], \
                 &numbers[n + 4], &numbers[n + 5], &numbers[n + 6], &numbers[n + 7]
static int *tight[] = {EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), EIGHT(48),
                       EIGHT(56), EIGHT(64), EIGHT(72)};
static struct { long before; int *at; long after; } loose[] = {
  {1, &numbers[90], 2}, {3, &numbers[91], 4}};
static struct __attribute__((packed)) { char odd; int *at; } unaligned[] = {{1, &numbers[92]}};
int main(void) {
  for (int i = 0; i < 80; i++) *tight[i] = i;
  *loose[0].at = 5; *loose[1].at = 6; *unaligned[0].at = 7;
  long sum = 0;
  for (int i = 0; i < 300; i++) sum += numbers[i];
  report("sum", sum);
  return loose[0].before + loose[0].after + loose[1].before + loose[1].after - 10;
}
"#;

#[test]
fn packed_relocations_are_like_others() {
    let workshop = Workshop::new();
    // Linkers that do not know it say so, and go on without.
    for flags in ["", "-Wl,-z,pack-relative-relocs"] {
        let program = workshop.program("packed", PACKED, flags);
        let native = workshop.native(&program);
        assert_eq!((native.status, native.value("sum")), (0, 79 * 40 + 18));
        let plan = open(&program, LIBC);
        assert!(plan.address_count() >= 83);
        for outcome in run(&plan, 2) {
            assert_eq!(outcome, native);
        }
    }
}

const SCOPE_LIBRARY: &str = r#"
int taken(void) { return 1; }
__attribute__((visibility("protected"))) int kept(void) { return 2; }
__attribute__((visibility("hidden"))) int hidden(void) { return 3; }
__attribute__((weak)) int weak(void) { return 4; }
int only_weak(void) __attribute__((weak));
int malloc_like(void) { return 5; }
int of_library(void) {
  return taken() + 10 * kept() + 100 * hidden() + 1000 * weak() + 10000 * (only_weak ? 1 : 2)
    + 100000 * malloc_like();
}
int (*pointer_to_weak)(void) = only_weak;
"#;

const SCOPE_USER: &str = r#"
int taken(void) { return 6; }
int kept(void) { return 7; }
int hidden(void) { return 8; }
int weak(void) { return 9; }
int of_library(void);
int undefined(void) __attribute__((weak));
extern int undefined_variable __attribute__((weak));
extern int (*pointer_to_weak)(void);
int main(void) {
  report("library", of_library());
  report("weak", undefined == 0 && &undefined_variable == 0 && pointer_to_weak == 0);
  return 0;
}
"#;

#[test]
fn programs_definitions_come_first_where_a_symbol_leaves_its_module() {
    let workshop = Workshop::new();
    let flags = format!("{AGAINST} -lscope");
    for (library, expected) in [("", 529_326), ("-Wl,-Bsymbolic", 524_321)] {
        workshop.library("libscope.so", SCOPE_LIBRARY, library);
        let program = workshop.program("scope", SCOPE_USER, &flags);
        let native = workshop.native(&program);
        assert_eq!((native.value("library"), native.value("weak")), (expected, 1));
        for outcome in run(&open(&program, LIBC), 2) {
            assert_eq!(outcome, native);
        }
    }
}

#[test]
fn what_is_provided_comes_before_libc_and_behind_the_program() {
    let workshop = Workshop::new();
    let source = r#"
        static long called;
        void meet(void) { called += 1; }
        int main(void) { meet(); report("own", called); exit(3); }"#;
    // The harness provides all three; references go through the table, as symbols are dynamic.
    let program = workshop.library("own.so", source, "");
    for outcome in run(&open(&program, LIBC), 2) {
        assert_eq!((outcome.status, outcome.value("own")), (3, 1));
    }
}

const LARGE: &str = r#"
#include <stdlib.h>
static char large[1L << 32];
static int *end = (int *)&large[(1L << 32) - 4];
int data = 3;
int main(int argc, char **argv) {
  *end = atoi(argv[1]);
  meet();
  report("end", *end + data - atoi(argv[1]));
  return large[1L << 31];
}
"#;

#[test]
fn large_arrays_cost_nothing_until_they_are_used() {
    let workshop = Workshop::new();
    let program = workshop.program("large", LARGE, "-mcmodel=large");
    let plan = open(&program, LIBC);
    assert!(plan.size() > 1 << 32);
    let resident = || {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * vrt_load::PAGE
    };
    let before = resident();
    for outcome in run(&plan, 3) {
        assert_eq!((outcome.status, outcome.value("end")), (0, 3));
    }
    assert!(resident() < before + (64 << 20));
}

/// The process may be linked with another MPI.
#[test]
fn what_the_process_has_for_itself_is_not_seen() {
    let workshop = Workshop::new();
    let elsewhere = workshop.library(
        "libmpi.so.40",
        "int elsewhere(void) { return 5; }",
        "-Wl,-soname,libmpi.so.40",
    );
    let name = std::ffi::CString::new(elsewhere.to_string_lossy().as_bytes()).unwrap();
    // SAFETY: a string that ends with zero; the library does nothing by itself.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    assert!(!handle.is_null());
    let source = r#"
        int elsewhere(void) __attribute__((weak));
        int main(void) { report("seen", elsewhere != 0); return 0; }"#;
    let program = workshop.program("looks", source, "");
    for outcome in run(&open(&program, LIBC), 2) {
        assert_eq!(outcome.value("seen"), 0);
    }
    // What is shared would get it from the system's loader.
    workshop.library(
        "libuser77.so",
        "int elsewhere(void); int user(void) { return elsewhere(); }",
        "",
    );
    let source = "int user(void); int main(void) { report(\"answer\", user()); return 0; }";
    let unresolved = "-Wl,--unresolved-symbols=ignore-all";
    let program = workshop.program("sharer", source, &format!("{AGAINST} -luser77 {unresolved}"));
    let error = harness::try_open(&program, &[LIBC, &["libuser77.so"]].concat()).unwrap_err();
    assert!(error.to_string().contains("cannot be shared"), "{error}");
}
