/* One collective operation of each kind between two groups. */
#include "check.h"

int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Comm local, inter;
    int is_low = rank < 2, others = is_low ? size - 2 : 2, sum = -1, all[64], own[64];
    int root = is_low ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
    MPI_Comm_split(MPI_COMM_WORLD, is_low, rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, is_low ? 2 : 0, 9, &inter);
    for (int i = 0; i < 64; i++) own[i] = 1;
    MPI_Barrier(inter);
    int x = rank;
    MPI_Bcast(&x, 1, MPI_INT, root, inter);
    CHECK(x == (is_low ? rank : 0));
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, inter);
    CHECK(all[0] == (is_low ? 2 : 0));
    MPI_Reduce(own, &sum, 1, MPI_INT, MPI_SUM, root, inter);
    if (rank == 0) CHECK(sum == size - 2);
    MPI_Allreduce(own, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK(sum == others);
    MPI_Reduce_scatter_block(own, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK(sum == others);
    MPI_Request request;
    MPI_Ibarrier(inter, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
    return finish("between");
}
