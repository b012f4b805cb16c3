//! Globals of every kind, of which each image has its own.

mod harness;

use harness::{LIBC, Workshop, open, run};

const GLOBALS: &str = r#"
#include <stdlib.h>
static int zero[1000];
int data = 41;
static int table[4] = {1, 2, 3, 4};
static int *inside = &table[2];
static int twice(int x) { return 2 * x; }
int (*function)(int) = twice;
const char *text = "text";
static const char *const names[] = {"a", "b", "c"};
int main(int argc, char **argv) {
  int me = atoi(argv[1]);
  for (int round = 0; round < 50; round++) {
    data = 1000 * me + round;
    zero[999] = data + 1;
    *inside = data + 2;
    meet();
    if (data != 1000 * me + round || zero[999] != data + 1 || table[2] != data + 2) return 1;
    if (function(data) != 2 * data || text[0] != 't' || names[2][0] != 'c') return 2;
    meet();
  }
  report("argc", argc);
  report("data", data);
  return 40 + me;
}
"#;

#[test]
fn each_image_has_its_own_globals() {
    // However the linker lays a program out.
    let layouts = [
        "",
        "-s",
        "-Wl,-z,noseparate-code",
        "-Wl,-z,norelro -Wl,-z,lazy",
        "-Wl,-z,max-page-size=0x200000",
        "-Wl,--hash-style=sysv",
        "-O0 -fno-plt -rdynamic",
    ];
    let workshop = Workshop::new();
    for layout in layouts {
        let plan = open(&workshop.program("globals", GLOBALS, layout), LIBC);
        for (number, outcome) in run(&plan, 4).into_iter().enumerate() {
            assert_eq!(outcome.status, 40 + number as i32, "{layout}: {outcome:?}");
            assert_eq!(outcome.value("argc"), 2);
            assert_eq!(outcome.value("data"), 1000 * number as i64 + 49);
        }
    }
}

const ALIGNED: &str = r#"
#include <stdlib.h>
static char zero[10] __attribute__((aligned(65536)));
static char data[10] __attribute__((aligned(8192))) = "data";
int main(int argc, char **argv) {
  zero[0] = data[0];
  report("zero", (long)zero % 65536);
  report("data", (long)data % 8192);
  return 0;
}
"#;

#[test]
fn globals_are_aligned() {
    let workshop = Workshop::new();
    let own = workshop.program("own", ALIGNED, "");
    // Those of a library, which lies behind the program.
    let source = ALIGNED.replace("main", "of_library");
    workshop.library("libaligned.so", &source, "");
    let source = "int of_library(int, char **); \
                  int main(int argc, char **argv) { return of_library(argc, argv); }";
    let user = workshop.program("user", source, "-L. -laligned -Wl,-rpath,$ORIGIN");
    for program in [own, user] {
        let plan = open(&program, LIBC);
        assert_eq!(plan.alignment(), 65_536);
        for outcome in run(&plan, 3) {
            assert_eq!((outcome.value("zero"), outcome.value("data")), (0, 0));
        }
    }
}

/// Checks the contents of a program's stack.
const STACK: &str = r#"
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
extern const char __ehdr_start[];
void _start(void);
static unsigned long value_of(const unsigned long *auxiliary, unsigned long key) {
  for (; *auxiliary; auxiliary += 2) if (*auxiliary == key) return auxiliary[1];
  return 0;
}
int main(int argc, char **argv, char **environment) {
  char **end = environment;
  while (*end) end++;
  const unsigned long *auxiliary = (const unsigned long *)(end + 1);
  const Elf64_Phdr *headers = (const void *)value_of(auxiliary, AT_PHDR);
  const Elf64_Ehdr *header = (const void *)__ehdr_start;
  report("arguments", argc == 2 && !strcmp(argv[0], "program") && argv[1][0] && argv[2] == 0);
  report("environment", environment == argv + 3 && end > environment && getenv("PATH") != 0);
  report("headers", headers == (const void *)(__ehdr_start + header->e_phoff));
  report("count", value_of(auxiliary, AT_PHNUM) == header->e_phnum);
  report("entry", value_of(auxiliary, AT_ENTRY) == (unsigned long)_start);
  report("base", value_of(auxiliary, AT_BASE));
  report("page", value_of(auxiliary, AT_PAGESZ));
  report("random", value_of(auxiliary, AT_RANDOM) != 0);
  report("name", (char *)value_of(auxiliary, AT_EXECFN) == argv[0]);
  /* In front of the arguments is their number, at which the stack began. */
  report("stack", (unsigned long)(argv - 1) % 16 == 0 && *(long *)(argv - 1) == argc);
  return 0;
}
"#;

#[test]
fn a_program_finds_on_its_stack_what_the_kernel_puts_there() {
    let workshop = Workshop::new();
    let plan = open(&workshop.program("stack", STACK, ""), LIBC);
    for outcome in run(&plan, 2) {
        for (name, value) in &outcome.reports {
            let expected = match name.as_str() {
                "page" => 4096,
                "base" => 0,
                _ => 1,
            };
            assert_eq!(*value, expected, "{name}");
        }
        assert_eq!(outcome.reports.len(), 10);
    }
}
