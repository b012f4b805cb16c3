/* A clock, and the order of what it gives, for programs with MPI and without. */

#ifndef BENCH_TIMES_H
#define BENCH_TIMES_H

#include <time.h>

/* Seconds of a clock that never goes back. */
static inline double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

#endif
