/* What the C programs of the benchmark share: arguments, time, median, and
 * the line of JSON they print. */

#ifndef BENCH_H
#define BENCH_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "times.h"

static inline void fail(const char *message) {
    fprintf(stderr, "bench: %s\n", message);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

/* Argument `number` as a positive whole number. */
static inline int argument(int count, char **arguments, int number) {
    char *end = NULL;
    long value = number < count ? strtol(arguments[number], &end, 10) : 0;
    if (value < 1 || value > 1 << 30 || *end) fail("expected whole numbers from 1 to 2^30");
    return (int)value;
}

static inline void *allocate(size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory) fail("out of memory");
    return memory;
}

/* Prints the median of `count` times of one operation; sorts them. */
static inline void print_median(const char *figure, double *times, int count) {
    qsort(times, (size_t)count, sizeof(double), ascending);
    double upper = times[count / 2], lower = times[(count - 1) / 2];
    printf("{\"figure\":\"%s\",\"seconds\":%.9g,\"least\":%.9g,\"most\":%.9g,\"repetitions\":%d}\n",
           figure, (lower + upper) / 2.0, times[0], times[count - 1], count);
}

#endif
