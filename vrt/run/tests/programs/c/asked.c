/* Says how many ranks there are; with an argument each leaves three blocks behind. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *volatile kept;

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0)
        printf("%d %s\n", ranks, "ranks");
    for (int i = 0; i < 3 && argc > 1 && strcmp(argv[1], "leaks") == 0; i++)
        kept = malloc(100);
    return MPI_Finalize();
}
