//! Images with their own libc and its state.

mod harness;

use harness::{Workshop, open, run};

const STATE: &str = r#"
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>
#include <ctype.h>

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int left;
static void at_end(void) { left++; }

int main(int argc, char **argv) {
  int me = atoi(argv[1]), wrong = 0;
  char text[100], want[100];

  char *arguments[] = {"program", "-a", "-b", "7", "rest", 0};
  int option, options = 0;
  while ((option = getopt(5, arguments, "ab:")) != -1) { options++; meet(); }
  wrong += options != 2 || optind != 4;

  srand(42);
  unsigned seen = 0, again = 0;
  for (int i = 0; i < 20; i++) { seen = seen * 31 + rand(); meet(); }
  srand(42);
  for (int i = 0; i < 20; i++) again = again * 31 + rand();
  wrong += 2 * (seen != again);
  meet();

  sprintf(text, "a%d b%d c%d", me, me, me);
  char *part = strtok(text, " ");
  meet();
  part = strtok(0, " ");
  sprintf(want, "b%d", me);
  wrong += 4 * (part == 0 || strcmp(part, want));
  meet();

  sprintf(want, "value %d", me);
  setenv("IMAGE", want, 1);
  meet();
  wrong += 8 * (strcmp(getenv("IMAGE"), want) != 0);

  errno = 1000 + me;
  meet();
  wrong += 16 * (errno != 1000 + me);
  log(-1.0);
  wrong += 16 * (errno != EDOM);

  wrong += 32 * (setlocale(LC_NUMERIC, me % 2 ? "C.UTF-8" : "C") == 0);
  meet();
  wrong += 32 * (strcmp(setlocale(LC_NUMERIC, 0), me % 2 ? "C.UTF-8" : "C") != 0);

  time_t when = 86400L * (365L * (me + 1) + 100);
  struct tm *broken = gmtime(&when);
  meet();
  wrong += 64 * (broken->tm_year != 71 + me);

  /* Buffers of streams: nothing is written until the end. */
  static char buffer[4096];
  FILE *stream = fmemopen(buffer, sizeof buffer, "w");
  for (int i = 0; i < 10; i++) { fprintf(stream, "%d:%d,", me, i); meet(); }
  fclose(stream);
  for (int i = 0, at = 0, image, number, len; i < 10; i++, at += len) {
    if (sscanf(buffer + at, "%d:%d,%n", &image, &number, &len) != 2 || image != me || number != i) {
      wrong += 128;
      break;
    }
  }

  int numbers[] = {5, 3, 9, 1};
  qsort(numbers, 4, sizeof *numbers, compare);
  wrong += 256 * (numbers[0] != 1 || numbers[3] != 9);
  wrong += 512 * (!isalpha('x') || toupper('x') != 'X' || wcslen(L"wide") != 4);
  wrong += 1024 * (fabs(pow(2, 0.5) - sqrt(2)) > 1e-15 || fma(2, 3, 4) != 10);
  char *copy = strdup("copied");
  wrong += 2048 * (strcmp(copy, "copied") != 0 || strchr(copy, 'p') != copy + 2);
  free(copy);
  atexit(at_end);
  report("wrong", wrong);
  printf("image %d", me);
  return 7;
}
"#;

#[test]
fn the_state_of_libc_is_each_images_own() {
    let workshop = Workshop::new();
    let program = workshop.program("state", STATE, "-Wl,--no-as-needed -lm");
    let native = workshop.native(&program);
    assert_eq!((native.status, native.value("wrong")), (7, 0));
    let plan = open(&program, &[]);
    assert!(plan.has_private("libc.so") && plan.has_private("libm.so"));
    for outcome in run(&plan, 4) {
        assert_eq!(outcome, native);
    }
}

const OUTPUT: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int me = atoi(argv[1]), ends[2];
  char line[100] = "";
  if (pipe(ends)) return 1;
  setvbuf(stdout, 0, _IOFBF, 4096);
  int before = dup(1);
  for (int i = 0; i < 5; i++) { printf("%d", me); meet(); }
  /* All images change the process's descriptor in turn; each has its own buffer for it. */
  for (int turn = 0; turn < 4; turn++) {
    if (turn == me) {
      dup2(ends[1], 1);
      fflush(stdout);
      dup2(before, 1);
    }
    meet();
  }
  close(ends[1]);
  report("length", read(ends[0], line, sizeof line));
  report("text", atol(line) - 11111L * me);
  return 0;
}
"#;

#[test]
fn each_image_has_its_own_buffer_of_standard_output() {
    let workshop = Workshop::new();
    let plan = open(&workshop.program("output", OUTPUT, ""), &[]);
    for outcome in run(&plan, 4) {
        assert_eq!((outcome.value("length"), outcome.value("text")), (5, 0));
    }
}

#[test]
fn functions_of_a_private_libc_are_found() {
    let workshop = Workshop::new();
    let source =
        "#include <stdio.h>\nint fflush(FILE *f) { return 5; } int main(void) { return 0; }";
    let program = workshop.program("own", source, "-rdynamic");
    let plan = open(&program, &[]);
    let modules = plan.modules();
    let libc = modules.iter().find(|module| module.name == "libc.so.6").unwrap();
    assert!(modules[0].span.contains(&plan.symbol("fflush").unwrap()));
    assert!(libc.span.contains(&plan.symbol_in("libc.so", "fflush").unwrap()));
    assert!(libc.span.contains(&plan.symbol("__libc_early_init").unwrap()));
    assert_eq!(plan.symbol("no such function"), None);
    // What is chosen when the program is loaded, and thread-locals, have no offset.
    assert_eq!((plan.symbol("memcpy"), plan.symbol("errno")), (None, None));
}
