/* A heat equation in a box, in structure like LULESH: three arrays, halos by immediate messages of datatypes,
 * the time step agreed on by all. Its sum is the same to the last digit wherever the ranks are. */
#include "check.h"

#define EDGE 10
#define STEPS 120
#define AT(x, y, z) (((x) * (EDGE + 2) + (y)) * (EDGE + 2) + (z))
#define VOLUME ((EDGE + 2) * (EDGE + 2) * (EDGE + 2))

static double now[VOLUME], next[VOLUME];
static double *conductivity;

int main(int argc, char **argv) {
    begin(&argc, &argv);
    int dims[3] = {0}, periods[3] = {1, 0, 1}, place[3];
    MPI_Comm box;
    MPI_Dims_create(size, 3, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 1, &box);
    MPI_Comm_rank(box, &rank);
    MPI_Cart_coords(box, rank, 3, place);
    conductivity = malloc(VOLUME * sizeof *conductivity);
    for (int x = 1; x <= EDGE; x++) for (int y = 1; y <= EDGE; y++) for (int z = 1; z <= EDGE; z++) {
        int gx = place[0] * EDGE + x, gy = place[1] * EDGE + y, gz = place[2] * EDGE + z;
        now[AT(x, y, z)] = 1.0 + (gx * 7 + gy * 13 + gz * 31) % 101 / 10.0;
        conductivity[AT(x, y, z)] = 0.5 + (gx + gy * gz) % 17 / 34.0;
    }
    MPI_Datatype outs[6], ins[6];
    int sizes[3] = {EDGE + 2, EDGE + 2, EDGE + 2}, neighbours[6];
    for (int d = 0; d < 3; d++) {
        MPI_Cart_shift(box, d, 1, &neighbours[2 * d], &neighbours[2 * d + 1]);
        for (int side = 0; side < 2; side++) {
            int parts[3] = {EDGE, EDGE, EDGE}, from[3] = {1, 1, 1}, to[3] = {1, 1, 1};
            parts[d] = 1;
            from[d] = side ? EDGE : 1;
            to[d] = side ? EDGE + 1 : 0;
            MPI_Type_create_subarray(3, sizes, parts, from, MPI_ORDER_C, MPI_DOUBLE, &outs[2 * d + side]);
            MPI_Type_create_subarray(3, sizes, parts, to, MPI_ORDER_C, MPI_DOUBLE, &ins[2 * d + side]);
            MPI_Type_commit(&outs[2 * d + side]);
            MPI_Type_commit(&ins[2 * d + side]);
        }
    }
    double time = 0, step = 0.01, total = 0;
    for (int i = 0; i < STEPS; i++) {
        MPI_Request requests[12];
        for (int side = 0; side < 6; side++) {
            MPI_Irecv(now, 1, ins[side], neighbours[side], side ^ 1, box, &requests[side]);
        }
        for (int side = 0; side < 6; side++) {
            MPI_Isend(now, 1, outs[side], neighbours[side], side, box, &requests[6 + side]);
        }
        /* What needs no halo meanwhile; the ranks have uneven work. */
        double most = 0, wasted = 0;
        for (int again = 0; again <= rank % 3; again++) {
            for (int at = 0; at < VOLUME; at++) wasted += conductivity[at] * 1e-9;
        }
        MPI_Waitall(12, requests, MPI_STATUSES_IGNORE);
        for (int x = 1; x <= EDGE; x++) for (int y = 1; y <= EDGE; y++) for (int z = 1; z <= EDGE; z++) {
            double here = now[AT(x, y, z)];
            double around = now[AT(x - 1, y, z)] + now[AT(x + 1, y, z)] + now[AT(x, y - 1, z)]
                + now[AT(x, y + 1, z)] + now[AT(x, y, z - 1)] + now[AT(x, y, z + 1)] - 6 * here;
            double change = conductivity[AT(x, y, z)] * around;
            next[AT(x, y, z)] = here + step * change;
            if (change > most) most = change;
            if (-change > most) most = -change;
        }
        memcpy(now, next, sizeof now);
        time += step;
        double own = most > 0 ? 0.2 / (1 + most) : 0.1;
        MPI_Allreduce(&own, &step, 1, MPI_DOUBLE, MPI_MIN, box);
        CHECK(wasted >= 0);
    }
    for (int x = 1; x <= EDGE; x++) for (int y = 1; y <= EDGE; y++) for (int z = 1; z <= EDGE; z++) {
        total += now[AT(x, y, z)];
    }
    /* Added by one rank in the order of places. */
    double all[64], sum = 0;
    CHECK(size <= 64);
    MPI_Gather(&total, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, box);
    for (int of = 0; rank == 0 && of < size; of++) sum += all[of];
    if (rank == 0) printf("sum %.17g at time %.17g\n", sum, time);
    MPI_Comm_free(&box);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    free(conductivity);
    return finish("stencil");
}
