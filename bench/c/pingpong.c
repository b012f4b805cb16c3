/* Two ranks send a message to and fro: the twin of `vrt-bench run pingpong`.
 *
 *   pingpong BYTES ROUND_TRIPS REPETITIONS [touch]
 *
 * prints the seconds of one way, the median of the repetitions. With `touch` each
 * sender writes to each line of its buffer before it sends, and each receiver reads
 * each line of what it got, as programs do. */

#include <string.h>

#include "bench.h"

enum { LINE = 64 };

static void write_lines(char *buffer, int bytes, char value) {
    for (int at = 0; at < bytes; at += LINE) buffer[at] = value;
}

static void read_lines(const char *buffer, int bytes, char value) {
    char differences = 0;
    for (int at = 0; at < bytes; at += LINE) differences |= buffer[at] ^ value;
    if (differences) fail("wrong bytes arrived");
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int bytes = argument(count, arguments, 1), trips = argument(count, arguments, 2);
    int repetitions = argument(count, arguments, 3);
    int touches = count > 4;
    if (touches && strcmp(arguments[4], "touch") != 0) fail("expected touch, or nothing");
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
            if (touches && rank == 0) write_lines(outgoing, bytes, (char)i);
            if (rank == 0) MPI_Send(outgoing, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
            MPI_Recv(incoming, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (touches) read_lines(incoming, bytes, (char)i);
            if (touches && rank == 1) write_lines(outgoing, bytes, (char)i);
            if (rank == 1) MPI_Send(outgoing, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
        }
        if (repetition >= 0) times[repetition] = (seconds() - start) / trips / 2.0;
        for (int i = 0; i < bytes; i++)
            if (incoming[i] != (touches && i % LINE == 0 ? (char)(trips - 1) : other + 1)) fail("wrong bytes arrived");
        memset(incoming, 0, bytes);
    }
    if (rank == 0) print_median("pingpong", times, repetitions);
    MPI_Finalize();
    return 0;
}
