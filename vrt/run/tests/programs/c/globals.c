/* Globals of every kind: each rank writes its own, and finds in them what it wrote wherever it is.
 * Argument: the number of rounds. */
#include "check.h"

#define ROUNDS 2400
#define LARGE (64 << 20)
#define STEP (4 << 20)

int zero;
int seven = 7;
static long table[1000] = {1, 2, 3};
static char text[] = "rank      ";
static const char *const names[] = {"zero", "one", "two"};
static const char *name = "none";
static _Alignas(64) double aligned[8];
static long double wide = 1.25L;
static struct { unsigned low : 3, high : 29; } bits = {5, 1000};

/* Pointers that are relocated: into the program's own data, and to its own functions. */
struct node { int value; struct node *next; };
static struct node last = {3, NULL}, middle = {2, &last}, first = {1, &middle};
static int *const to_zero = &zero;
static long *to_table = &table[10];
static int add(int x) { return x + seven; }
static int multiply(int x) { return x * seven; }
static int (*const operations[])(int) = {add, multiply};
static int (*operation)(int) = add;

/* Zero pages, of which few are touched. */
static char large[LARGE];
static char *const in_large = &large[LARGE / 2];

static int calls(void) {
    static int count = 100;
    return ++count;
}

static void as_loaded(void) {
    CHECK(zero == 0 && seven == 7 && table[2] == 3 && table[999] == 0);
    CHECK(strcmp(text, "rank      ") == 0 && strcmp(name, "none") == 0);
    CHECK((size_t)aligned % 64 == 0 && aligned[7] == 0 && wide == 1.25L);
    CHECK(bits.low == 5 && bits.high == 1000);
    CHECK(first.next->next == &last && last.value == 3 && to_zero == &zero && to_table == table + 10);
    CHECK(operations[1](3) == 21 && operation == add);
    for (long at = 0; at < LARGE; at += STEP) CHECK(large[at] == 0);
}

static void as_written(int round) {
    char expected[16];
    snprintf(expected, sizeof expected, "rank %d", rank);
    CHECK(zero == rank * 1000 + round && *to_zero == zero);
    CHECK(seven == 7 + rank && operations[0](1) == 8 + rank && operations[1](2) == 2 * (7 + rank));
    CHECK(operation == (rank % 2 ? multiply : add));
    CHECK(table[rank % 50] == -rank && table[999] == rank + round && *to_table == 5 * rank);
    CHECK(strcmp(text, expected) == 0 && name == names[rank % 3]);
    CHECK(aligned[rank % 8] == rank + 0.5 && wide == rank + 0.125L);
    CHECK(bits.low == (unsigned)rank % 8 && bits.high == 1000u + round);
    CHECK(first.next->next == &last && last.value == 3 + rank && last.next == &first);
    CHECK(*in_large == (char)(rank + 1 + round));
    for (long at = 1; at < LARGE; at += STEP) CHECK(large[at] == (char)(rank + at / STEP));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    int rounds = argc == 2 ? atoi(argv[1]) : ROUNDS;
    as_loaded();
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(text, sizeof text, "rank %d", rank);
    name = names[rank % 3];
    seven += rank;
    to_table = &table[100 + rank % 800];
    *to_table = 5 * rank;
    table[rank % 50] = -rank;
    aligned[rank % 8] = rank + 0.5;
    wide = rank + 0.125L;
    bits.low = rank;
    last.value += rank;
    last.next = &first;
    if (rank % 2) operation = multiply;
    for (long at = 1; at < LARGE; at += STEP) large[at] = (char)(rank + at / STEP);
    for (int round = 0; round < rounds; round++) {
        zero = rank * 1000 + round;
        table[999] = rank + round;
        bits.high = 1000 + round;
        *in_large = (char)(rank + 1 + round);
        stir();
        as_written(round);
        CHECK(calls() == 101 + round);
    }
    return finish("globals");
}
