/* A program with a library of its own, which refers to it; constructors, functions chosen at the start. */
#include "check.h"

#define ROUNDS 2000

extern int library_counter;
extern int library_table[4];
extern const char *library_name;
int *library_pointer(void);
int library_next(void);
int library_calls_back(int x);
int library_ranks(void);
int library_made(void);
int library_chosen(void);

/* Both define it; the program's is meant everywhere. */
int defined_twice = 1;
int of_program = 5;
int called_back(int x) { return x * of_program; }

__attribute__((weak)) int nowhere(void);

static int order;
static int first, second, with_arguments;
__attribute__((constructor(101))) static void make_first(void) { first = ++order; }
__attribute__((constructor(102))) static void make_second(void) { second = ++order; }
__attribute__((constructor)) static void make_last(int argc, char **argv) {
    with_arguments = argc == 1 && argv[0] && library_made();
    order++;
}
__attribute__((destructor)) static void unmake(void) { printf("rank %d: destructor\n", rank); }

static int calls_of_one;
static int one(void) { return ++calls_of_one; }
static int two(void) { return -1; }
static int (*choose(void))(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse2") ? one : two;
}
int chosen(void) __attribute__((ifunc("choose")));
static int (*const to_chosen)(void) = chosen;

__attribute__((target_clones("avx2", "default"))) double sum(const double *values, int count) {
    double all = 0;
    for (int i = 0; i < count; i++) all += values[i];
    return all;
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    CHECK(first == 1 && second == 2 && order == 3 && with_arguments);
    CHECK(library_counter == 7 && library_table[3] == 4 && strcmp(library_name, "library") == 0);
    CHECK(library_pointer() == &library_counter && !nowhere);
    CHECK(library_ranks() == size && defined_twice == 1);
    of_program = rank;
    library_name = argv[0];
    library_table[1] = -rank;
    const double values[5] = {1, 2, 3, 4, rank};
    for (int round = 0; round < ROUNDS; round++) {
        stir();
        CHECK(library_next() == 8 + round && library_counter == 8 + round);
        CHECK(library_calls_back(3) == 3 * rank && library_table[1] == -rank);
        CHECK(library_name == argv[0] && *library_pointer() == library_counter);
        CHECK(chosen() == 2 * round + 1 && to_chosen() == 2 * round + 2);
        CHECK(library_chosen() == rank + 1000);
        CHECK(sum(values, 5) == 10 + rank);
    }
    return finish("own_library");
}
