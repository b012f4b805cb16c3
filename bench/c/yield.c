/* Two ranks that only let each other run: the twin of `vrt-bench run switch`, for
 * an MPI whose ranks can (Adaptive MPI).
 *
 *   yield SWITCHES REPETITIONS
 *
 * prints the seconds of a switch, the median of the repetitions. */

#include "bench.h"

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int switches = argument(count, arguments, 1), repetitions = argument(count, arguments, 2);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) fail("yield takes 2 ranks");
    double *times = allocate(repetitions * sizeof(double));
    for (int repetition = -1; repetition < repetitions; repetition++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = seconds();
        for (int i = 0; i < switches; i++) {
#ifdef AMPI
            AMPI_Yield();
#else
            fail("the ranks of this MPI are processes");
#endif
        }
        /* Both yield in turn, so each yield of one takes two switches. */
        if (repetition >= 0) times[repetition] = (seconds() - start) / switches / 2;
    }
    if (rank == 0) print_median("switch", times, repetitions);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
