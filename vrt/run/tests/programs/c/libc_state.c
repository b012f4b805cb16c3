/* What libc keeps for a process, each rank has for itself: other ranks use the same functions between
 * any two steps. Arguments: a word, which each rank overwrites. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 60

extern char **environ;
static char buffer_of_stdout[4096];

static void options(void) {
    char name[] = "p", a[] = "-a", b[] = "-b", value[16], rest[] = "rest";
    snprintf(value, sizeof value, "%d", rank);
    char *arguments[] = {name, a, b, value, rest, NULL};
    char *without[] = {name, b, value, NULL};
    optind = 1;
    stir();
    if (rank % 2) {
        CHECK(getopt(5, arguments, "ab:") == 'a' && optind == 2);
        stir();
        CHECK(getopt(5, arguments, "ab:") == 'b' && strcmp(optarg, value) == 0);
        stir();
        CHECK(getopt(5, arguments, "ab:") == -1 && optind == 4);
    } else {
        stir();
        CHECK(getopt(3, without, "ab:") == 'b' && strcmp(optarg, value) == 0);
        stir();
        CHECK(getopt(3, without, "ab:") == -1 && optind == 3);
    }
}

static void random_numbers(void) {
    unsigned state = 1000 + rank;
    int alone[8], among[8];
    srand(42 + rank);
    for (int i = 0; i < 8; i++) alone[i] = rand();
    srand(42 + rank);
    srandom(42 + rank);
    srand48(7 * rank);
    double first = drand48();
    long one = random();
    srandom(42 + rank);
    for (int i = 0; i < 8; i++) {
        stir();
        among[i] = i == 0 ? (int)random() : rand();
        (void)rand_r(&state);
    }
    /* rand and random have one state in glibc. */
    CHECK(among[0] == one && memcmp(alone, among, sizeof alone) == 0);
    srand48(7 * rank);
    CHECK(drand48() == first);
}

static void tokens(void) {
    char text[64], expected[16];
    snprintf(text, sizeof text, "a%d b%d c%d", rank, rank, rank);
    CHECK(strtok(text, " ") != NULL);
    stir();
    snprintf(expected, sizeof expected, "b%d", rank);
    CHECK(strcmp(strtok(NULL, " "), expected) == 0);
    stir();
    expected[0] = 'c';
    CHECK(strcmp(strtok(NULL, " "), expected) == 0);
    stir();
    CHECK(strtok(NULL, " ") == NULL);
}

static void environment(int round) {
    char value[32], put[32];
    snprintf(value, sizeof value, "%d of %d", rank, round);
    snprintf(put, sizeof put, "PUT=%d", rank);
    setenv("OF_RANK", value, 1);
    putenv(put);
    if (rank == 2) unsetenv("HOME");
    stir();
    CHECK(strcmp(getenv("OF_RANK"), value) == 0);
    CHECK((getenv("HOME") == NULL) == (rank == 2));
    put[4] = 'x';
    CHECK(getenv("PUT")[0] == 'x');
    int found = 0;
    for (char **at = environ; *at; at++) found += strncmp(*at, "OF_RANK=", 8) == 0;
    CHECK(found == 1);
    unsetenv("PUT");
    CHECK(getenv("PUT") == NULL);
}

static void times(void) {
    time_t then = 86400L * (365L * (rank + 1) + 100);
    struct tm *parts = gmtime(&then);
    char *text = asctime(parts);
    char expected[32];
    strcpy(expected, text);
    stir();
    CHECK(parts->tm_year == 71 + rank && strcmp(text, expected) == 0);
    setenv("TZ", rank % 2 ? "EAST-3" : "WEST4", 1);
    tzset();
    stir();
    CHECK(timezone == (rank % 2 ? -3 : 4) * 3600);
    time_t noon = 12 * 3600;
    CHECK(localtime(&noon)->tm_hour == (rank % 2 ? 15 : 8));
    CHECK(strcmp(tzname[0], rank % 2 ? "EAST" : "WEST") == 0);
}

static void errors(int round) {
    errno = 1000 * rank + round;
    stir();
    CHECK(errno == 1000 * rank + round);
    CHECK(close(-1) == -1 && errno == EBADF);
    stir();
    CHECK(errno == EBADF);
    char *text = strerror(100000 + rank);
    char expected[64];
    strcpy(expected, text);
    stir();
    CHECK(strcmp(text, expected) == 0);
    errno = 0;
    /* In libm. */
    volatile double minus = -1.0;
    double root = sqrt(minus);
    CHECK(root != root && errno == EDOM);
    errno = 0;
}

/* Streams that lie in memory. */
static void streams(int round) {
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    fprintf(memory, "rank %d", rank);
    stir();
    fprintf(memory, ", round %d", round);
    stir();
    fclose(memory);
    char expected[64];
    snprintf(expected, sizeof expected, "rank %d, round %d", rank, round);
    CHECK(length == strlen(expected) && strcmp(text, expected) == 0);
    free(text);
    strcpy(expected, "12 34");
    FILE *in = fmemopen(expected, 5, "r");
    int one = 0, two = 0;
    CHECK(fscanf(in, "%d", &one) == 1);
    stir();
    CHECK(fscanf(in, "%d", &two) == 1 && one == 12 && two == 34 && fgetc(in) == EOF && feof(in));
    fclose(in);
}

static int at_exit_called;
static void called_last(void) {
    printf("rank %d: %d functions before the last, %s\n", rank, at_exit_called,
           at_exit_called == 2 ? "in order" : "WRONG");
}
static void called_second(void) {
    if (at_exit_called++ != 1) printf("WRONG: second on rank %d\n", rank);
}
static void called_first(void) {
    if (at_exit_called++ != 0) printf("WRONG: first on rank %d\n", rank);
}

int main(int argc, char **argv) {
    setvbuf(stdout, buffer_of_stdout, _IOFBF, sizeof buffer_of_stdout);
    if (argc == 2) CHECK(strcmp(argv[1], "argument") == 0);
    atexit(called_last);
    begin(&argc, &argv);
    CHECK(argc == 2 && argv[2] == NULL && strcmp(program_invocation_short_name, "libc_state") == 0);
    snprintf(argv[1], 9, "%08d", rank);
    atexit(called_second);
    atexit(called_first);
    printf("rank %d writes half a line, ", rank);
    for (int round = 0; round < ROUNDS; round++) {
        options();
        random_numbers();
        tokens();
        environment(round);
        times();
        errors(round);
        streams(round);
    }
    char expected[9];
    snprintf(expected, 9, "%08d", rank);
    CHECK(strcmp(argv[1], expected) == 0);
    printf("rank %d the other half\n", rank);
    CHECK(memcmp(buffer_of_stdout, "rank ", 5) == 0);
    return finish("libc_state");
}
