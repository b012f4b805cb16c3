/* Ranks with threads of OpenMP; only the rank's own thread calls MPI. */
#include "check.h"

#include <omp.h>

#define ROUNDS 60
#define COUNT 10000

static double values[COUNT];
static int per_thread = 7;
#pragma omp threadprivate(per_thread)

int main(int argc, char **argv) {
    int provided = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(provided >= MPI_THREAD_FUNNELED);
    omp_set_num_threads(3);
    for (int round = 0; round < ROUNDS; round++) {
        double sum = 0;
        int threads = 0;
#pragma omp parallel reduction(+ : sum)
        {
#pragma omp for schedule(dynamic, 100)
            for (int i = 0; i < COUNT; i++) values[i] = rank + i;
#pragma omp for
            for (int i = 0; i < COUNT; i++) sum += values[i];
#pragma omp atomic
            threads++;
#pragma omp critical
            per_thread += 1;
#pragma omp master
            stir();
        }
        CHECK(sum == (double)COUNT * rank + (double)COUNT * (COUNT - 1) / 2 && threads == 3);
        CHECK(per_thread == 8 + round);
    }
    return finish("openmp");
}
