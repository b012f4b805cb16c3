/* A program whose messages a library counts, by the profiling interface. */
#include "check.h"

int counted_sends(void);
int counted_barriers(void);

/* The program has one of its own, too. */
static int reductions;
int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    reductions++;
    return PMPI_Allreduce(in, out, count, type, op, comm);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    for (int round = 0; round < 300; round++) {
        int in = -1, sum = 0;
        MPI_Request request;
        MPI_Irecv(&in, 1, MPI_INT, previous_rank(), 1, MPI_COMM_WORLD, &request);
        MPI_Send(&rank, 1, MPI_INT, next_rank(), 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        work();
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Allreduce(&in, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(in == previous_rank() && sum == size * (size - 1) / 2);
        CHECK(counted_sends() == round + 1 && counted_barriers() == round + 1 && reductions == round + 1);
    }
    return finish("profiled");
}
