/* Rank 0 reads or writes the memory of rank 1: the twin of
 * `vrt-bench run onesided`.
 *
 *   onesided WHAT BYTES STEPS REPETITIONS
 *
 * WHAT is put or get. Prints the seconds of one access with the flush behind
 * it, the median of the repetitions. */

#include <string.h>

#include "bench.h"

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    if (count != 5) fail("expected WHAT BYTES STEPS REPETITIONS");
    int is_put = strcmp(arguments[1], "put") == 0;
    if (!is_put && strcmp(arguments[1], "get")) fail("expected put or get");
    int bytes = argument(count, arguments, 2), steps = argument(count, arguments, 3);
    int repetitions = argument(count, arguments, 4);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) fail("onesided needs two ranks");
    char *memory, *own = allocate(bytes);
    MPI_Win window;
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    double *times = allocate(repetitions * sizeof(double));
    for (int repetition = -1; repetition < repetitions; repetition++) {
        memset(memory, rank == 1 && !is_put ? 78 : 0, bytes);
        memset(own, is_put ? 78 : 0, bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock_all(0, window);
        double start = seconds();
        for (int i = 0; rank == 0 && i < steps; i++) {
            if (is_put)
                MPI_Put(own, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
            else
                MPI_Get(own, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
            MPI_Win_flush(1, window);
        }
        if (repetition >= 0) times[repetition] = (seconds() - start) / steps;
        MPI_Win_unlock_all(window);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
        char *arrived = is_put ? memory : own;
        for (int i = 0; rank == is_put && i < bytes; i++)
            if (arrived[i] != 78) fail("wrong bytes arrived");
        MPI_Win_unlock(rank, window);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) print_median("onesided", times, repetitions);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
