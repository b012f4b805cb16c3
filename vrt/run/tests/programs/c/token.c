/* A token goes round until the file of the first argument is there; each rank sends one message a round, and to
 * nobody else. */
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv) {
    begin(&argc, &argv);
    long token[2] = {0, 0}, round = 0;
    while (!token[1]) {
        round++;
        if (rank == 0) {
            token[0] = round;
            token[1] = round % 16 == 0 && access(argv[1], F_OK) == 0;
            MPI_Send(token, 2, MPI_LONG, next_rank(), 7, MPI_COMM_WORLD);
        }
        MPI_Recv(token, 2, MPI_LONG, previous_rank(), 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(token[0] == round);
        if (rank != 0) MPI_Send(token, 2, MPI_LONG, next_rank(), 7, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("%ld rounds\n", round);
    return finish("token");
}
