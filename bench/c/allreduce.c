/* All ranks add a double: the twin of `vrt-bench run allreduce`.
 *
 *   allreduce STEPS REPETITIONS
 *
 * prints the seconds of one reduction, the median of the repetitions. */

#include "bench.h"

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int steps = argument(count, arguments, 1), repetitions = argument(count, arguments, 2);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double *times = allocate(repetitions * sizeof(double));
    for (int repetition = -1; repetition < repetitions; repetition++) {
        double sum = 0.0;
        MPI_Barrier(MPI_COMM_WORLD);
        double start = seconds();
        for (int i = 0; i < steps; i++) {
            double mine = rank + i;
            MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            if (sum != (double)ranks * (ranks - 1) / 2 + (double)ranks * i) fail("a wrong sum");
        }
        if (repetition >= 0) times[repetition] = (seconds() - start) / steps;
    }
    if (rank == 0) print_median("allreduce", times, repetitions);
    MPI_Finalize();
    return 0;
}
