/* All ranks send 8 bytes to the right and receive from the left at once: the
 * twin of `vrt-bench run ring`.
 *
 *   ring STEPS REPETITIONS
 *
 * prints the seconds of a step of all ranks, the median of the repetitions. */

#include <stdint.h>

#include "bench.h"

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int steps = argument(count, arguments, 1), repetitions = argument(count, arguments, 2);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    double *times = allocate(repetitions * sizeof(double));
    for (int repetition = -1; repetition < repetitions; repetition++) {
        int64_t value = rank, next;
        MPI_Barrier(MPI_COMM_WORLD);
        double start = seconds();
        for (int i = 0; i < steps; i++) {
            MPI_Sendrecv(&value, 1, MPI_INT64_T, right, 0, &next, 1, MPI_INT64_T, left, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            value = next;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (repetition >= 0) times[repetition] = (seconds() - start) / steps;
        if (((value + steps) % ranks + ranks) % ranks != rank) fail("a wrong value arrived");
    }
    if (rank == 0) print_median("ring", times, repetitions);
    MPI_Finalize();
    return 0;
}
