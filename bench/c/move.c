/* A rank that moves between two PEs with all it owns: the twin of `vrt-bench
 * run move`, for an MPI whose ranks can (Adaptive MPI, run with
 * +ampiEnableMigrateToPe and, if it is to own its memory, linked with
 * -memory isomalloc).
 *
 *   move BYTES MOVES REPETITIONS
 *
 * prints the seconds of a move, the median of the repetitions. */

#include <stdint.h>

#include "bench.h"

static void move_to(int pe) {
#ifdef AMPI
    AMPI_Migrate_to_pe(pe);
#else
    (void)pe;
    fail("the ranks of this MPI are processes");
#endif
}

static int is_right(const uint64_t *data, size_t words) {
    for (size_t i = 0; i < words; i++)
        if (data[i] != i) return 0;
    return 1;
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    size_t words = (size_t)argument(count, arguments, 1) / sizeof(uint64_t);
    int moves = argument(count, arguments, 2), repetitions = argument(count, arguments, 3), rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        double *times = allocate(repetitions * sizeof(double));
        uint64_t *data = allocate(words * sizeof *data + 1);
        for (size_t i = 0; i < words; i++) data[i] = i;
        for (int repetition = -1; repetition < repetitions; repetition++) {
            double start = seconds();
            for (int i = 1; i <= moves + moves % 2; i++) move_to(i % 2);
            if (repetition >= 0) times[repetition] = (seconds() - start) / (moves + moves % 2);
        }
        if (!is_right(data, words)) fail("the data has changed");
        print_median("move", times, repetitions);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
