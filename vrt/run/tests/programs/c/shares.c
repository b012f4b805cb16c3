/* Ranks that do nothing but send, or nothing but compute, for some tenths of a second. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **words) {
    MPI_Init(&count, &words);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int computes = count > 1 && strcmp(words[1], "computes") == 0;
    double sum = rank;
    for (double began = MPI_Wtime(); MPI_Wtime() - began < 0.4;) {
        if (computes) {
            for (int i = 1; i < 100000; i++) sum += 1.0 / i;
        } else {
            for (int i = 0; i < 100; i++) {
                MPI_Sendrecv_replace(&sum, 1, MPI_DOUBLE, 0, 0, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
            }
        }
    }
    MPI_Finalize();
    return sum < 0;
}
