/* What all programs of these tests have: checks, work between which ranks move, and a last line. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, wrong;

/* Counts what is not so, and says the first few. */
#define CHECK(condition) \
    do { \
        if (!(condition)) complain(__FILE__, __LINE__, #condition); \
    } while (0)

static void complain(const char *file, int line, const char *text) {
    if (wrong++ < 5) fprintf(stderr, "rank %d, %s:%d: not so: %s\n", rank, file, line, text);
}

__attribute__((unused)) static int next_rank(void) { return (rank + 1) % size; }
__attribute__((unused)) static int previous_rank(void) { return (rank + size - 1) % size; }

__attribute__((unused)) static void begin(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* Uneven work of some 20 microseconds. */
__attribute__((unused)) static void work(void) {
    for (volatile int i = 0; i < 4000 * (1 + rank % 4); i++) {}
}

/* A round in which ranks may be moved: work, a message around the ring, a barrier. */
__attribute__((unused)) static void stir(void) {
    static MPI_Comm ring = MPI_COMM_NULL;
    static long round;
    if (ring == MPI_COMM_NULL) MPI_Comm_dup(MPI_COMM_WORLD, &ring);
    work();
    long out = 1000000L * rank + round, in = -1;
    MPI_Sendrecv(&out, 1, MPI_LONG, next_rank(), 1, &in, 1, MPI_LONG, previous_rank(), 1, ring,
                 MPI_STATUS_IGNORE);
    CHECK(in == 1000000L * previous_rank() + round);
    MPI_Barrier(ring);
    round++;
}

/* Says `ok` if nothing was wrong on any rank; the status of the rank. */
static int finish(const char *name) {
    int all = -1;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        if (all == 0) printf("%s: %d ranks, ok\n", name, size);
        else printf("%s: %d checks failed\n", name, all);
    }
    MPI_Finalize();
    return all != 0;
}

#endif
