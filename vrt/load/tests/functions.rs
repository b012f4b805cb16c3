//! Functions chosen by resolvers, constructors and destructors, function pointers.

mod harness;

use harness::{LIBC, Workshop, open, run};

const INDIRECT: &str = r#"
__attribute__((target_clones("avx2", "default")))
double dot(const double *a, const double *b, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}
static int fast(void) { return 2; }
static int plain(void) { return 1; }
static __thread int of_thread = 17;
static int runs;
/* Relies on relocations, on the thread's block, and on the process. */
static int (*const choices[])(void) = {plain, fast};
static int (*resolve_pick(void))(void) {
  runs++;
  __builtin_cpu_init();
  if (of_thread != 17) return 0;
  return choices[__builtin_cpu_supports("sse2") ? 1 : 0];
}
int pick(void) __attribute__((ifunc("resolve_pick")));
int (*pointer)(void) = pick;
int main(void) {
  double a[8] = {1, 2, 3}, b[8] = {1, 1, 1};
  report("dot", dot(a, b, 8));
  report("pick", pick());
  report("pointer", pointer());
  report("runs", runs);
  return 0;
}
"#;

#[test]
fn resolvers_choose_once_for_all_images() {
    let workshop = Workshop::new();
    let plan = open(&workshop.program("indirect", INDIRECT, ""), LIBC);
    for outcome in run(&plan, 4) {
        assert_eq!(outcome.status, 0);
        let values = ["dot", "pick", "pointer", "runs"].map(|name| outcome.value(name));
        // What a resolver wrote is in every image.
        assert_eq!(values, [6, 2, 2, 1]);
    }
}

const INDIRECT_LIBRARY: &str = r#"
static int one(int x) { return x + 1; }
static int two(int x) { return x + 2; }
static int which = 2;
static int (*resolve(void))(int) { return which == 2 ? two : one; }
int chosen(int x) __attribute__((ifunc("resolve")));
int (*from_library)(int) = chosen;
"#;

const INDIRECT_USER: &str = r#"
int chosen(int x);
extern int (*from_library)(int);
int (*own)(int) = chosen;
/* A resolver that needs what another one chose. */
static int result(void) { return 100; }
static int wrong(void) { return 1; }
static int (*resolve(void))(void) { return own(3) == 5 ? result : wrong; }
int nested(void) __attribute__((ifunc("resolve")));
int main(void) {
  report("direct", chosen(40));
  report("own", own(40));
  report("nested", nested());
  return own == from_library ? 0 : 1;
}
"#;

#[test]
fn resolvers_of_libraries_run_before_those_of_programs() {
    let workshop = Workshop::new();
    workshop.library("libchosen.so", INDIRECT_LIBRARY, "");
    let flags = "-L. -lchosen -Wl,-rpath,$ORIGIN";
    let plan = open(&workshop.program("user", INDIRECT_USER, flags), LIBC);
    for outcome in run(&plan, 2) {
        let values = ["direct", "own", "nested"].map(|name| outcome.value(name));
        assert_eq!((outcome.status, values), (0, [42, 42, 100]));
    }
}

fn announcing(name: &str) -> String {
    format!(
        r#"
        static int made;
        __attribute__((constructor)) static void begin(int argc, char **argv, char **environment) {{
          made = argc == 2 && argv[1][0] >= '0' && environment[0] != 0;
          report("begin {name}", made);
        }}
        __attribute__((destructor)) static void end(void) {{ report("end {name}", made); }}
        int {name}(void) {{ return made; }}
        "#
    )
}

const LIFE: &str = r#"
#include <stdlib.h>
static void early(int argc, char **argv, char **environment) { report("preinit", argc); }
__attribute__((section(".preinit_array"), used)) static void *first = early;
int a(void); int b(void); int c(void);
static void late(void) { report("atexit", 0); }
void _init_by_name(void) { report("init", 0); }
void _fini_by_name(void) { report("fini", 0); }
__attribute__((constructor(101))) static void priority_101(void) { report("begin 101", 0); }
__attribute__((constructor(102))) static void priority_102(void) { report("begin 102", 0); }
__attribute__((destructor(101))) static void last(void) { report("end 101", 0); }
__attribute__((destructor(102))) static void before(void) { report("end 102", 0); }
int main(void) { atexit(late); report("main", a() + b() + c()); return 0; }
"#;

/// Libraries a, b and c, each of which needs the named ones, and a program that needs all.
fn order_of(needs: [&str; 3]) {
    let workshop = Workshop::new();
    // What is needed has to be there first; a second round is for those that need each other.
    for needs in [["", "", ""], needs] {
        for (name, needs) in ["a", "b", "c"].iter().zip(needs) {
            let needs = format!("-Wl,--no-as-needed -L. -lruntime {needs}");
            workshop.library(&format!("lib{name}1.so"), &announcing(name), &needs);
        }
    }
    let flags = "-Wl,-init,_init_by_name -Wl,-fini,_fini_by_name \
                 -Wl,--no-as-needed -L. -la1 -lb1 -lc1 -Wl,-rpath,$ORIGIN";
    let program = workshop.program("life", LIFE, flags);
    let native = workshop.native(&program);
    assert_eq!((native.status, native.value("main")), (0, 3));
    for outcome in run(&open(&program, LIBC), 2) {
        assert_eq!(outcome, native, "a, b, c need {needs:?}");
    }
}

#[test]
fn constructors_and_destructors_run_as_with_the_systems_loader() {
    order_of(["", "", ""]);
    order_of(["-lc1", "-la1 -lc1", ""]);
    order_of(["-lb1", "-lc1", ""]);
    order_of(["-lb1", "-la1", "-la1"]);
}

const CLOSING: &str = r#"
int a(void);
__attribute__((constructor)) static void begin(void) { report("begin", a()); }
__attribute__((destructor)) static void end(void) { report("end", a()); }
int main(int argc, char **argv, char **environment) {
  report("main", argc == 2 && argv[2] == 0 && environment != 0);
  return 3;
}
"#;

#[test]
fn a_shared_object_with_main_is_a_program_too() {
    let workshop = Workshop::new();
    workshop.library("liba.so", "int a(void) { return 11; }", "");
    let program = workshop.library("closing.so", CLOSING, "-L. -la -Wl,-rpath,$ORIGIN");
    for outcome in run(&open(&program, LIBC), 2) {
        let values = ["begin", "main", "end"].map(|name| outcome.value(name));
        assert_eq!((outcome.status, values), (3, [11, 1, 11]));
    }
}
