/* All processes run the tasks of a graph: the twin of `vrt-bench run metg`.
 *
 *   metg PATTERN WIDTH STEPS ITERATIONS[,ITERATIONS...] BYTES REPETITIONS
 *
 * PATTERN is stencil, fft, sweep or tree, as src/programs/metg/graph.rs has them,
 * and each process has a block of the WIDTH columns. Prints a line for each number
 * of iterations: the seconds of a run, the median of the repetitions, and a checksum
 * of all tasks, edges, and what the kernels computed. */

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bench.h"

enum { NUMBERS = 64, MOST_COLUMNS = 128, MOST_SOURCES = 3 };

static double start(int number) { return -0.5 - number / 256.0; }

/* Adds to each number its square, again and again; gives their sum. */
static double compute_plain(unsigned iterations) {
    double numbers[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) numbers[i] = start(i);
    for (unsigned n = 0; n < iterations; n++)
        for (int i = 0; i < NUMBERS; i++) numbers[i] += numbers[i] * numbers[i];
    for (int half = NUMBERS / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) numbers[i] += numbers[i + half];
    return numbers[0];
}

#if defined(__x86_64__)
/* The same with one rounding for both operations, in sixteen registers. */
__attribute__((target("avx2,fma"), noinline)) static double compute_fused(unsigned iterations) {
    __m256d numbers[NUMBERS / 4];
#pragma GCC unroll 16
    for (int i = 0; i < NUMBERS / 4; i++)
        numbers[i] = _mm256_set_pd(start(4 * i + 3), start(4 * i + 2), start(4 * i + 1), start(4 * i));
    for (unsigned n = 0; n < iterations; n++) {
#pragma GCC unroll 16
        for (int i = 0; i < NUMBERS / 4; i++)
            numbers[i] = _mm256_fmadd_pd(numbers[i], numbers[i], numbers[i]);
    }
#pragma GCC unroll 4
    for (int half = NUMBERS / 8; half > 0; half /= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < half; i++) numbers[i] = _mm256_add_pd(numbers[i], numbers[i + half]);
    }
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(numbers[0]), _mm256_extractf128_pd(numbers[0], 1));
    return _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two));
}
#endif

static inline double compute(unsigned iterations) {
    /* Tasks alike must not become one that is computed once. */
    __asm__ volatile("" : "+r"(iterations));
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return compute_fused(iterations);
#endif
    return compute_plain(iterations);
}

enum pattern { STENCIL, FFT, SWEEP, TREE, PATTERNS };
static const char *const names[] = {"stencil", "fft", "sweep", "tree"};

static enum pattern pattern_named(const char *name) {
    for (int i = 0; i < PATTERNS; i++)
        if (strcmp(name, names[i]) == 0) return (enum pattern)i;
    fail("expected stencil, fft, sweep or tree");
    return STENCIL;
}

static enum pattern pattern;
static int width, steps;

/* Columns from `first` to before `end`. */
struct range {
    int first, end;
};

static inline int contains(struct range range, int column) {
    return column >= range.first && column < range.end;
}

static inline int least(int a, int b) { return a < b ? a : b; }

/* The columns that have a task in a timestep; none before the first. */
static struct range active(int step) {
    struct range all = {0, width};
    if (step < 0) all.end = 0;
    else if (pattern == SWEEP) {
        if (step + width > steps) all.first = step + width - steps;
        all.end = all.first + least(width, least(step + 1, steps - step));
    } else if (pattern == TREE && step < 30) all.end = least(width, 1 << step);
    return all;
}

/* After how many timesteps the edges are the same again. */
static int edge_sets(void) {
    int sets = 0;
    while (pattern == FFT && 1 << sets < width) sets++;
    return sets > 0 ? sets : 1;
}

/* The other ends of the edges of a column: what it needs, or what needs it. */
static int others(int set, int column, int is_source, int *found) {
    int distance = pattern == FFT ? 1 << set : 1, candidates[MOST_SOURCES], all = 0, count = 0;
    if (pattern == TREE && is_source) candidates[all++] = column / 2;
    else if (pattern == TREE) {
        candidates[all++] = 2 * column;
        candidates[all++] = 2 * column + 1;
    } else {
        if (pattern != SWEEP || is_source) candidates[all++] = column - distance;
        candidates[all++] = column;
        if (pattern != SWEEP || !is_source) candidates[all++] = column + distance;
    }
    for (int i = 0; i < all; i++)
        if (candidates[i] >= 0 && candidates[i] < width) found[count++] = candidates[i];
    return count;
}

/* An edge of a column of this process to `other`, which process `rank` has. */
struct edge {
    int column, other, rank, tag;
};

struct edges {
    struct edge *incoming, *outgoing;
    int incoming_count, outgoing_count;
};

static int rank, ranks;
static struct range own;

static int first_of(int of) { return (int)((int64_t)of * width / ranks); }
static int owner(int column) { return (int)((((int64_t)column + 1) * ranks - 1) / width); }
static int place(int column) { return column - first_of(owner(column)); }

static struct edges edges_of(int set) {
    int columns = own.end - own.first, found[MOST_SOURCES];
    size_t bytes = (size_t)(columns + 1) * MOST_SOURCES * sizeof(struct edge);
    struct edges edges = {allocate(bytes), allocate(bytes), 0, 0};
    for (int column = own.first; column < own.end; column++) {
        int count = others(set, column, 1, found);
        for (int i = 0; i < count; i++)
            edges.incoming[edges.incoming_count++] = (struct edge){
                column, found[i], owner(found[i]), place(found[i]) << 7 | place(column)};
        count = others(set, column, 0, found);
        for (int i = 0; i < count; i++)
            if (!contains(own, found[i]))
                edges.outgoing[edges.outgoing_count++] = (struct edge){
                    column, found[i], owner(found[i]), place(column) << 7 | place(found[i])};
    }
    return edges;
}

static int64_t *inputs, *outputs;
static MPI_Request *requests;
static int words;

/* Brings what the tasks of a timestep need to where they are. */
static void exchange(const struct edges *edges, struct range before, struct range now) {
    int count = 0;
    for (int i = 0; i < edges->incoming_count; i++) {
        const struct edge *edge = &edges->incoming[i];
        int64_t *input = inputs + (size_t)i * words;
        if (!contains(now, edge->column) || !contains(before, edge->other)) continue;
        if (edge->rank == rank)
            memcpy(input, outputs + (size_t)(edge->other - own.first) * words, words * sizeof(int64_t));
        else
            MPI_Irecv(input, words, MPI_INT64_T, edge->rank, edge->tag, MPI_COMM_WORLD, &requests[count++]);
    }
    for (int i = 0; i < edges->outgoing_count; i++) {
        const struct edge *edge = &edges->outgoing[i];
        if (contains(before, edge->column) && contains(now, edge->other))
            MPI_Isend(outputs + (size_t)(edge->column - own.first) * words, words, MPI_INT64_T,
                      edge->rank, edge->tag, MPI_COMM_WORLD, &requests[count++]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

/* Runs the tasks of a timestep; gives what they add to the checksum. */
static uint64_t work(const struct edges *edges, int step, struct range before, struct range now,
                     unsigned iterations) {
    uint64_t checksum = 0;
    for (int i = 0; i < edges->incoming_count; i++) {
        const struct edge *edge = &edges->incoming[i];
        const int64_t *input = inputs + (size_t)i * words;
        if (!contains(now, edge->column) || !contains(before, edge->other)) continue;
        for (int word = 0; word < words; word += 2)
            if (input[word] != step - 1 || input[word + 1] != edge->other) fail("a wrong input of a task");
        uint64_t edge_word = (uint64_t)step << 32 | (uint64_t)edge->column << 16 | (uint64_t)edge->other;
        checksum += (edge_word + 1) * UINT64_C(0x9e3779b97f4a7c15);
    }
    for (int column = own.first; column < own.end; column++) {
        if (!contains(now, column)) continue;
        int64_t *output = outputs + (size_t)(column - own.first) * words;
        for (int word = 0; word < words; word += 2) {
            output[word] = step;
            output[word + 1] = column;
        }
        double sum = compute(iterations);
        uint64_t bits;
        memcpy(&bits, &sum, sizeof bits);
        checksum += bits;
    }
    return checksum;
}

static uint64_t run(const struct edges *sets, int set_count, unsigned iterations) {
    uint64_t checksum = 0;
    struct range before = active(-1);
    for (int step = 0; step < steps; step++) {
        struct range now = active(step);
        const struct edges *edges = &sets[(step + set_count - 1) % set_count];
        exchange(edges, before, now);
        checksum += work(edges, step, before, now, iterations);
        before = now;
    }
    return checksum;
}

/* Prints the median of `count` times, and the checksum; sorts the times. */
static void print_run(double *times, int count, uint64_t checksum) {
    qsort(times, (size_t)count, sizeof(double), ascending);
    printf("{\"figure\":\"metg\",\"seconds\":%.9g,\"least\":%.9g,\"most\":%.9g,\"repetitions\":%d,"
           "\"checksum\":\"%016llx\"}\n",
           (times[count / 2] + times[(count - 1) / 2]) / 2.0, times[0], times[count - 1], count,
           (unsigned long long)checksum);
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    if (count != 7) fail("expected PATTERN WIDTH STEPS ITERATIONS BYTES REPETITIONS");
    pattern = pattern_named(arguments[1]);
    width = argument(count, arguments, 2);
    steps = argument(count, arguments, 3);
    int bytes = argument(count, arguments, 5), repetitions = argument(count, arguments, 6);
    if (width > 65536) fail("expected a width of at most 65536");
    if (bytes % 16) fail("expected a multiple of 16 bytes");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if ((width + ranks - 1) / ranks > MOST_COLUMNS) fail("a process has more than 128 columns");
    own = (struct range){first_of(rank), first_of(rank + 1)};
    words = bytes / (int)sizeof(int64_t);
    int set_count = edge_sets(), columns = own.end - own.first;
    struct edges *sets = allocate(set_count * sizeof(struct edges));
    for (int set = 0; set < set_count; set++) sets[set] = edges_of(set);
    outputs = allocate((size_t)(columns + 1) * bytes);
    inputs = allocate((size_t)(columns + 1) * MOST_SOURCES * bytes);
    requests = allocate((size_t)(columns + 1) * 2 * MOST_SOURCES * sizeof(MPI_Request));
    double *times = allocate(repetitions * sizeof(double));

    for (char *rest = arguments[4]; *rest;) {
        char *end = NULL;
        long iterations = strtol(rest, &end, 10);
        if (end == rest || iterations < 0 || iterations > 1 << 30 || (*end && *end != ','))
            fail("expected iterations from 0 to 2^30 with commas between");
        uint64_t checksum = 0, total = 0;
        for (int repetition = -1; repetition < repetitions; repetition++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = seconds();
            checksum = run(sets, set_count, (unsigned)iterations);
            MPI_Barrier(MPI_COMM_WORLD);
            if (repetition >= 0) times[repetition] = seconds() - begin;
        }
        MPI_Reduce(&checksum, &total, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) print_run(times, repetitions, total);
        rest = *end ? end + 1 : end;
    }
    MPI_Finalize();
    return 0;
}
