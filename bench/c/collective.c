/* All ranks call one collective operation again and again: the twin of
 * `vrt-bench run collective`.
 *
 *   collective WHAT BYTES STEPS REPETITIONS
 *
 * WHAT is allreduce, broadcast, alltoall, allgather, reduce, reduce-scatter or
 * barrier, BYTES what a rank contributes (of alltoall and reduce-scatter: for
 * each rank); what is summed are doubles.
 * Prints the seconds of one operation, the median of the repetitions. */

#include <string.h>

#include "bench.h"

enum operation {
    ALLREDUCE, BROADCAST, ALLTOALL, ALLGATHER, REDUCE, REDUCE_SCATTER, BARRIER, OPERATIONS
};
static const char *const names[] = {"allreduce", "broadcast",      "alltoall", "allgather",
                                    "reduce",    "reduce-scatter", "barrier"};

static enum operation operation_named(const char *name) {
    for (int i = 0; i < OPERATIONS; i++)
        if (strcmp(name, names[i]) == 0) return (enum operation)i;
    fail("expected allreduce, broadcast, alltoall, allgather, reduce, reduce-scatter or barrier");
    return BARRIER;
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    if (count != 5) fail("expected WHAT BYTES STEPS REPETITIONS");
    enum operation what = operation_named(arguments[1]);
    int bytes = argument(count, arguments, 2), steps = argument(count, arguments, 3);
    int repetitions = argument(count, arguments, 4);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int is_sum = what == ALLREDUCE || what == REDUCE || what == REDUCE_SCATTER;
    if (is_sum && bytes % sizeof(double)) fail("expected a multiple of 8 bytes");
    int numbers = bytes / (int)sizeof(double);
    int is_for_each = what == ALLTOALL || what == REDUCE_SCATTER;
    size_t out_bytes = is_for_each ? (size_t)bytes * ranks : (size_t)bytes;
    int is_from_each = what == ALLTOALL || what == ALLGATHER;
    size_t in_bytes = is_from_each ? (size_t)bytes * ranks : (size_t)bytes;
    char *outgoing = allocate(out_bytes), *incoming = allocate(in_bytes);
    double *times = allocate(repetitions * sizeof(double));
    memset(outgoing, rank + 1, out_bytes);
    for (size_t i = 0; is_sum && i < out_bytes / sizeof(double); i++)
        ((double *)outgoing)[i] = rank + (double)i;
    /* The first number of the sum that this rank gets, and whether it gets any. */
    int first = what == REDUCE_SCATTER ? rank * numbers : 0;
    int has_sum = is_sum && (what != REDUCE || rank == 0);
    for (int repetition = -1; repetition < repetitions; repetition++) {
        memset(incoming, what == BROADCAST && rank == 0 ? 77 : 0, in_bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = seconds();
        for (int i = 0; i < steps; i++) {
            switch (what) {
            case ALLREDUCE:
                MPI_Allreduce(outgoing, incoming, numbers, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
                break;
            case BROADCAST: MPI_Bcast(incoming, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); break;
            case ALLTOALL:
                MPI_Alltoall(outgoing, bytes, MPI_BYTE, incoming, bytes, MPI_BYTE, MPI_COMM_WORLD);
                break;
            case ALLGATHER:
                MPI_Allgather(outgoing, bytes, MPI_BYTE, incoming, bytes, MPI_BYTE, MPI_COMM_WORLD);
                break;
            case REDUCE:
                MPI_Reduce(outgoing, incoming, numbers, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
                break;
            case REDUCE_SCATTER:
                MPI_Reduce_scatter_block(outgoing, incoming, numbers, MPI_DOUBLE, MPI_SUM,
                                         MPI_COMM_WORLD);
                break;
            default: MPI_Barrier(MPI_COMM_WORLD);
            }
        }
        /* A root runs ahead of its broadcasts, and others of a root: all have to be there. */
        MPI_Barrier(MPI_COMM_WORLD);
        if (repetition >= 0) times[repetition] = (seconds() - start) / steps;
        for (int i = 0; has_sum && i < numbers; i++)
            if (((double *)incoming)[i] !=
                (double)ranks * (ranks - 1) / 2 + (double)ranks * (first + i))
                fail("a wrong sum");
        for (size_t i = 0; is_from_each && i < in_bytes; i++)
            if (incoming[i] != (char)(i / bytes + 1)) fail("wrong bytes arrived");
        for (size_t i = 0; what == BROADCAST && i < in_bytes; i++)
            if (incoming[i] != 77) fail("wrong bytes arrived");
    }
    if (rank == 0) print_median("collective", times, repetitions);
    MPI_Finalize();
    return 0;
}
