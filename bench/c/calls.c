/* Calls that do nothing but answer: what it costs to come to the library.
 *
 *   calls CALLS REPETITIONS
 *
 * prints the seconds of an MPI_Comm_rank, the median of the repetitions. */

#include "bench.h"

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int calls = argument(count, arguments, 1), repetitions = argument(count, arguments, 2);
    int rank, same = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double *times = allocate(repetitions * sizeof(double));
    for (int repetition = -1; repetition < repetitions; repetition++) {
        double start = seconds();
        for (int i = 0; i < calls; i++) {
            MPI_Comm_rank(MPI_COMM_WORLD, &same);
            if (same != rank) fail("a wrong rank");
        }
        if (repetition >= 0) times[repetition] = (seconds() - start) / calls;
    }
    if (rank == 0) print_median("calls", times, repetitions);
    MPI_Finalize();
    return 0;
}
