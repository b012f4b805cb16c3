/* Operations among many PEs: what is right is known, or has to have the same bits on any number of PEs. */
#include "check.h"

static void on(MPI_Comm comm, int round) {
    int own, all, sum = -1, gathered[256];
    MPI_Comm_rank(comm, &own);
    MPI_Comm_size(comm, &all);
    int mine = own + round;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == all * (all - 1) / 2 + all * round);
    MPI_Allgather(&mine, 1, MPI_INT, gathered, 1, MPI_INT, comm);
    for (int i = 0; i < all; i++) CHECK(gathered[i] == i + round);
    /* In another order the last bits would be others. */
    double value = 1.0 / (3 + own + round), total = 0;
    MPI_Request requests[2];
    MPI_Iallreduce(&value, &total, 1, MPI_DOUBLE, MPI_SUM, comm, &requests[0]);
    MPI_Ibarrier(comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (own == 0) printf("%d of %d: %a\n", round, all, total);
    double many[100], totals[100];
    for (int i = 0; i < 100; i++) many[i] = value + i;
    MPI_Allreduce(many, totals, 100, MPI_DOUBLE, MPI_MAX, comm);
    for (int i = 0; i < 100; i++) CHECK(totals[i] == 1.0 / (3 + round) + i);
    MPI_Barrier(comm);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    if (argc > 1) {
        /* One rank means another operation. */
        int x = rank, y;
        if (rank == size / 2) MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        else MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        return finish("wide");
    }
    MPI_Comm thirds, reversed;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 3, rank, &thirds);
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2, -rank, &reversed);
    for (int round = 0; round < 3; round++) {
        on(MPI_COMM_WORLD, round);
        stir();
        /* The lines of one group. */
        if (rank % 3 == 0) on(thirds, round);
        if (rank >= 2) on(reversed, round);
    }
    MPI_Comm_free(&thirds);
    MPI_Comm_free(&reversed);
    return finish("wide");
}
