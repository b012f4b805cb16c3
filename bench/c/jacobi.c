/* Jacobi relaxation of Laplace's equation on a cube: the twin of
 * rocket-mini's `jacobi`, with the same blocks, the same messages and the same
 * order of arithmetic, so that residual and checksum have the same bits.
 *
 *   jacobi SIZE ITERATIONS CHECK_EVERY [PERCENT FACTOR]
 *
 * prints one line: the seconds of all iterations, the cells updated in a
 * second, and the residual and the checksum of the result. With PERCENT and
 * FACTOR, so much of the cube, from below, is computed FACTOR times, with the
 * same result. */

#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <string.h>

#include "bench.h"

enum { WEST, EAST, SOUTH, NORTH, BELOW, ABOVE, FACES };

typedef struct {
    int size;                     /* cells along each axis of the domain */
    int start[3], length[3];      /* this rank's cells */
    size_t along_y, along_z;      /* distance of neighbours in memory */
    int neighbour[FACES];         /* MPI_PROC_NULL at the boundary */
    size_t face_cells[BELOW];     /* of the faces along x and y, which have buffers */
    double *outgoing[BELOW], *incoming[BELOW];
    double *old, *new;
    int costly_planes, factor;    /* planes below are computed so many times */
} block;

static size_t at(const block *b, int x, int y, int z) {
    return (size_t)z * b->along_z + (size_t)y * b->along_y + (size_t)x;
}

/* The grid of blocks with the smallest cut surface, where a cut across x counts for five. */
static void choose_shape(int ranks, int size, int shape[3]) {
    int best = -1;
    for (int a = 1; a * a * a <= ranks; a++) {
        if (ranks % a) continue;
        for (int b = a; b * b <= ranks / a; b++) {
            if (ranks / a % b) continue;
            int c = ranks / a / b;
            if (c <= size && (best < 0 || 5 * a + b + c < best)) {
                best = 5 * a + b + c;
                shape[0] = a, shape[1] = b, shape[2] = c;
            }
        }
    }
    if (best < 0) fail("more ranks than blocks");
}

static double exact(int size, int x, int y, int z) {
    double h = 1.0 / (size + 1), u = x * h, v = y * h, w = z * h;
    return u * u + v * v - 2.0 * w * w;
}

static void create(block *b, int rank, int ranks, int size) {
    int shape[3];
    choose_shape(ranks, size, shape);
    int place[3] = {rank % shape[0], rank / shape[0] % shape[1], rank / shape[0] / shape[1]};
    int step[3] = {1, shape[0], shape[0] * shape[1]};
    b->size = size;
    for (int axis = 0; axis < 3; axis++) {
        int length = size / shape[axis], larger = size % shape[axis];
        int before = place[axis] < larger ? place[axis] : larger;
        b->start[axis] = place[axis] * length + before;
        b->length[axis] = length + (place[axis] < larger);
        b->neighbour[2 * axis] = place[axis] > 0 ? rank - step[axis] : MPI_PROC_NULL;
        b->neighbour[2 * axis + 1] =
            place[axis] + 1 < shape[axis] ? rank + step[axis] : MPI_PROC_NULL;
    }
    b->along_y = (size_t)b->length[0] + 2;
    b->along_z = b->along_y * ((size_t)b->length[1] + 2);
    size_t cells = b->along_z * ((size_t)b->length[2] + 2);
    for (int face = 0; face < BELOW; face++) {
        size_t n = (size_t)b->length[0] * b->length[1] * b->length[2] / b->length[face / 2];
        b->face_cells[face] = n;
        b->outgoing[face] = allocate(n * sizeof(double));
        b->incoming[face] = allocate(n * sizeof(double));
        /* The first iterate inside is zero, and so is the first message. */
        memset(b->outgoing[face], 0, n * sizeof(double));
    }
    /* One allocation, for a distance that is no whole number of pages: at equal
     * offsets in their pages, each store would hold up the loads after it. */
    size_t page = 4096 / sizeof(double), distance = (cells + page - 1) / page * page + 64;
    b->old = allocate(2 * distance * sizeof(double));
    b->new = b->old + distance;
    for (int z = 0; z < b->length[2] + 2; z++)
        for (int y = 0; y < b->length[1] + 2; y++)
            for (int x = 0; x < b->length[0] + 2; x++) {
                int i = b->start[0] + x, j = b->start[1] + y, k = b->start[2] + z;
                int inside = i > 0 && i <= size && j > 0 && j <= size && k > 0 && k <= size;
                b->old[at(b, x, y, z)] = inside ? 0.0 : exact(size, i, j, k);
            }
    memcpy(b->new, b->old, cells * sizeof(double));
}

/* Across y cells are rows: packed and unpacked around the exchange. */
static void pack(block *b, int face) {
    size_t bytes = b->length[0] * sizeof(double);
    double *from = b->old + at(b, 1, face == SOUTH ? 1 : b->length[1], 1);
    double *to = b->outgoing[face];
    for (int z = 0; z < b->length[2]; z++, from += b->along_z, to += b->length[0])
        memcpy(to, from, bytes);
}

static void unpack(block *b, int face) {
    size_t bytes = b->length[0] * sizeof(double);
    double *to = b->old + at(b, 1, face == SOUTH ? 0 : b->length[1] + 1, 1);
    double *from = b->incoming[face];
    for (int z = 0; z < b->length[2]; z++, to += b->along_z, from += b->length[0])
        memcpy(to, from, bytes);
}

/* The cells to send or to receive across a face: across z, a plane with the
 * ghost cells at its edges; otherwise the buffer of the face. */
static double *cells(const block *b, int face, int is_incoming, int *count) {
    if (face < BELOW) {
        *count = (int)b->face_cells[face];
        return is_incoming ? b->incoming[face] : b->outgoing[face];
    }
    *count = (int)b->along_z;
    int inside = face == BELOW ? 1 : b->length[2], ghosts = face == BELOW ? 0 : inside + 1;
    return b->old + at(b, 0, 0, is_incoming ? ghosts : inside);
}

static void exchange(block *b) {
    MPI_Request requests[2 * FACES];
    int messages = 0, count;
    for (int face = SOUTH; face <= NORTH; face++)
        if (b->neighbour[face] != MPI_PROC_NULL) pack(b, face);
    for (int face = 0; face < FACES; face++)
        if (b->neighbour[face] != MPI_PROC_NULL) {
            double *incoming = cells(b, face, 1, &count);
            MPI_Irecv(incoming, count, MPI_DOUBLE, b->neighbour[face], face ^ 1, MPI_COMM_WORLD,
                      &requests[messages++]);
        }
    for (int face = 0; face < FACES; face++)
        if (b->neighbour[face] != MPI_PROC_NULL) {
            double *outgoing = cells(b, face, 0, &count);
            MPI_Isend(outgoing, count, MPI_DOUBLE, b->neighbour[face], face, MPI_COMM_WORLD,
                      &requests[messages++]);
        }
    MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
    for (int face = SOUTH; face <= NORTH; face++)
        if (b->neighbour[face] != MPI_PROC_NULL) unpack(b, face);
}

static void relax(double *restrict new, const double *restrict centre,
                  const double *restrict south, const double *restrict north,
                  const double *restrict below, const double *restrict above, int n) {
    for (int i = 0; i < n; i++) {
        double in_plane = (centre[i - 1] + centre[i + 1]) + (south[i] + north[i]);
        new[i] = (in_plane + (below[i] + above[i])) * (1.0 / 6.0);
    }
}

/* The largest change of a cell in lanes, as wide as vectors may be. */
enum { LANES = 8 };

static void largest_change(double largest[LANES], const double *restrict old,
                           const double *restrict new, int n) {
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            double change = fabs(new[i + lane] - old[i + lane]);
            largest[lane] = change > largest[lane] ? change : largest[lane];
        }
    for (int lane = 0; i < n; i++, lane++) {
        double change = fabs(new[i] - old[i]);
        largest[lane] = change > largest[lane] ? change : largest[lane];
    }
}

/* Makes the next iterate the current one. Across x each cell lies in another
 * cache line, so the ghost cells are stored and the cells collected on the way. */
static void sweep(block *b, double *largest) {
    int n = b->length[0], row_number = 0;
    int has_west = b->neighbour[WEST] != MPI_PROC_NULL;
    int has_east = b->neighbour[EAST] != MPI_PROC_NULL;
    for (int z = 1; z <= b->length[2]; z++) {
        int times = b->start[2] + z <= b->costly_planes ? b->factor : 1;
        for (int y = 1; y <= b->length[1]; y++, row_number++) {
            double *old = b->old + at(b, 1, y, z), *new = b->new + at(b, 1, y, z);
            if (has_west) old[-1] = b->incoming[WEST][row_number];
            if (has_east) old[n] = b->incoming[EAST][row_number];
            for (int i = 0; i < times; i++) {
                relax(new, old, old - b->along_y, old + b->along_y, old - b->along_z,
                      old + b->along_z, n);
                /* Or the compiler would see that one time is enough. */
                __asm__ volatile("" : : "r"(new) : "memory");
            }
            if (has_west) b->outgoing[WEST][row_number] = new[0];
            if (has_east) b->outgoing[EAST][row_number] = new[n - 1];
            if (largest) largest_change(largest, old, new, n);
        }
    }
    double *swap = b->old;
    b->old = b->new;
    b->new = swap;
}

static uint64_t scramble(uint64_t word) {
    word += 0x9e3779b97f4a7c15;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
}

static uint64_t checksum(const block *b) {
    uint64_t sum = 0;
    for (int z = 0; z < b->length[2]; z++)
        for (int y = 0; y < b->length[1]; y++)
            for (int x = 0; x < b->length[0]; x++) {
                uint64_t size = (uint64_t)b->size, bits;
                uint64_t number = ((uint64_t)(b->start[2] + z) * size + (b->start[1] + y)) * size +
                                  (b->start[0] + x);
                memcpy(&bits, &b->old[at(b, x + 1, y + 1, z + 1)], sizeof bits);
                sum += scramble(bits ^ scramble(number));
            }
    return sum;
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int size = argument(count, arguments, 1), iterations = argument(count, arguments, 2);
    int check_every = argument(count, arguments, 3);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    block b;
    create(&b, rank, ranks, size);
    b.costly_planes = count > 4 ? (argument(count, arguments, 4) * size + 99) / 100 : 0;
    b.factor = count > 4 ? argument(count, arguments, 5) : 1;
    double residual = 0.0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = seconds();
    for (int i = 1; i <= iterations; i++) {
        exchange(&b);
        if (i % check_every && i != iterations) {
            sweep(&b, NULL);
            continue;
        }
        double largest[LANES] = {0}, change = 0.0;
        sweep(&b, largest);
        for (int lane = 0; lane < LANES; lane++) change = fmax(change, largest[lane]);
        MPI_Allreduce(&change, &residual, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    double taken = seconds() - start;
    uint64_t part = checksum(&b), sum;
    MPI_Reduce(&part, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        double updates = (double)size * size * size * iterations;
        printf("{\"figure\":\"jacobi\",\"seconds\":%.9g,\"cells_per_second\":%.6g,"
               "\"residual\":%.17g,\"checksum\":\"%016llx\"}\n",
               taken, updates / taken, residual, (unsigned long long)sum);
    }
    MPI_Finalize();
    return 0;
}
