/* Two ranks send a message to and fro: the twin of `vrt-bench pingpong`.
 *
 *   pingpong BYTES ROUND_TRIPS REPETITIONS
 *
 * prints the seconds of one way, the median of the repetitions. */

#include <string.h>

#include "bench.h"

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int bytes = argument(count, arguments, 1), trips = argument(count, arguments, 2);
    int repetitions = argument(count, arguments, 3);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) fail("pingpong needs two ranks");
    int other = 1 - rank;
    char *outgoing = allocate(bytes), *incoming = allocate(bytes);
    double *times = allocate(repetitions * sizeof(double));
    memset(outgoing, rank + 1, bytes);
    memset(incoming, 0, bytes);
    for (int repetition = -1; repetition < repetitions; repetition++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = seconds();
        for (int i = 0; i < trips; i++) {
            if (rank == 0) MPI_Send(outgoing, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
            MPI_Recv(incoming, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank == 1) MPI_Send(outgoing, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
        }
        if (repetition >= 0) times[repetition] = (seconds() - start) / trips / 2.0;
        for (int i = 0; i < bytes; i++)
            if (incoming[i] != other + 1) fail("wrong bytes arrived");
        memset(incoming, 0, bytes);
    }
    if (rank == 0) print_median("pingpong", times, repetitions);
    MPI_Finalize();
    return 0;
}
