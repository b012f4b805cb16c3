/* A clamped beam of hexahedra that is struck: the twin of rocket-mini's `solid --problem vibration`, with
 * parts along x, the same elements, Newmark's method and conjugate gradients, preconditioned by the
 * blocks of nodes.
 *
 *   solid SIZE STEPS
 *
 * computes SIZE elements along the beam, and prints one line: the seconds of all steps, the iterations of
 * the solver, and the root mean square of the displacements, which agrees to the solver's tolerance. */

#include <math.h>
#include <mpi.h>
#include <string.h>

#include "bench.h"

typedef double vector[3];
typedef double matrix[3][3];

static const double YOUNG = 1000.0, POISSON = 0.3, DENSITY = 1.0, STEP = 0.02, TOLERANCE = 1e-10;
static const double SIZE[3] = {8.0, 1.0, 1.0};

typedef struct {
    int elements[3], start, n[3]; /* of the body; the first element and the elements of this part */
    int before, after;            /* the ranks beside */
    size_t nodes, plane;          /* nodes of this part, and of one of its ends */
    size_t *rows;                 /* where the row of each node begins */
    unsigned *columns;
    matrix *couplings, *inverses;
    double *mass, *buffers[4];
    char *is_counted, *is_given;
} body;

static size_t node(const body *b, int i, int j, int k) {
    return ((size_t)k * (b->n[1] + 1) + j) * (b->n[0] + 1) + i;
}

static void *zeros(size_t bytes) {
    void *memory = allocate(bytes);
    memset(memory, 0, bytes);
    return memory;
}

static double sign(int corner, int axis) { return corner >> axis & 1 ? 1.0 : -1.0; }

static double determinant(matrix m) {
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
           m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

static void invert(matrix m, matrix inverse) {
    double size = determinant(m);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            int a = (j + 1) % 3, b = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
            inverse[i][j] = (m[a][c] * m[b][d] - m[a][d] * m[b][c]) / size;
        }
}

/* The stiffness between each two nodes of an element, and the mass at each, by 2 x 2 x 2 Gauss points. */
static void element(vector at[8], matrix stiffness[8][8], double mass[8]) {
    double shear = YOUNG / (2.0 * (1.0 + POISSON));
    double lambda = 2.0 * shear * POISSON / (1.0 - 2.0 * POISSON);
    memset(stiffness, 0, 64 * sizeof(matrix));
    memset(mass, 0, 8 * sizeof(double));
    for (int point = 0; point < 8; point++) {
        double g[3], reference[8][3], gradients[8][3];
        matrix jacobian = {{0}}, inverse;
        for (int axis = 0; axis < 3; axis++) g[axis] = sign(point, axis) / sqrt(3.0);
        for (int a = 0; a < 8; a++)
            for (int axis = 0; axis < 3; axis++) {
                double others = 1.0;
                for (int o = 0; o < 3; o++)
                    if (o != axis) others *= 0.5 * (1.0 + sign(a, o) * g[o]);
                reference[a][axis] = 0.5 * sign(a, axis) * others;
            }
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                for (int a = 0; a < 8; a++) jacobian[i][j] += at[a][i] * reference[a][j];
        double volume = determinant(jacobian);
        if (volume <= 0.0) fail("an element is turned inside out");
        invert(jacobian, inverse);
        for (int a = 0; a < 8; a++)
            for (int i = 0; i < 3; i++) {
                gradients[a][i] = 0.0;
                for (int j = 0; j < 3; j++) gradients[a][i] += reference[a][j] * inverse[j][i];
            }
        for (int a = 0; a < 8; a++) {
            double shape = 1.0;
            for (int axis = 0; axis < 3; axis++) shape *= 0.5 * (1.0 + sign(a, axis) * g[axis]);
            mass[a] += DENSITY * volume * shape;
            for (int c = 0; c < 8; c++) {
                double *ga = gradients[a], *gc = gradients[c];
                double both = ga[0] * gc[0] + ga[1] * gc[1] + ga[2] * gc[2];
                for (int i = 0; i < 3; i++) {
                    for (int j = 0; j < 3; j++)
                        stiffness[a][c][i][j] +=
                            volume * (lambda * ga[i] * gc[j] + shear * gc[i] * ga[j]);
                    stiffness[a][c][i][i] += volume * shear * both;
                }
            }
        }
    }
}

/* Makes the values of shared nodes, `count` for each, the sum of those of both parts. */
static void add_shared(body *b, double *values, int count) {
    int neighbours[2] = {b->before, b->after}, length = (int)b->plane * count;
    MPI_Request requests[4];
    for (int side = 0; side < 2; side++) {
        MPI_Irecv(b->buffers[2 + side], length, MPI_DOUBLE, neighbours[side], 0, MPI_COMM_WORLD,
                  &requests[side]);
        if (neighbours[side] != MPI_PROC_NULL)
            for (size_t at = 0; at < b->plane; at++)
                memcpy(b->buffers[side] + at * count,
                       values + (at * (b->n[0] + 1) + (side ? b->n[0] : 0)) * count,
                       count * sizeof(double));
        MPI_Isend(b->buffers[side], length, MPI_DOUBLE, neighbours[side], 0, MPI_COMM_WORLD,
                  &requests[2 + side]);
    }
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (int side = 0; side < 2; side++)
        for (size_t at = 0; at < b->plane && neighbours[side] != MPI_PROC_NULL; at++)
            for (int q = 0; q < count; q++)
                values[(at * (b->n[0] + 1) + (side ? b->n[0] : 0)) * count + q] +=
                    b->buffers[2 + side][at * count + q];
}

static void sum_all(double *values, int count) {
    double sums[4];
    MPI_Allreduce(values, sums, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    memcpy(values, sums, count * sizeof(double));
}

static void create(body *b, int rank, int ranks, int size) {
    b->elements[0] = size, b->elements[1] = b->elements[2] = (size + 7) / 8;
    if (ranks > size) fail("more ranks than elements along the beam");
    b->start = (int)((long)rank * size / ranks);
    b->n[0] = (int)((long)(rank + 1) * size / ranks) - b->start;
    b->n[1] = b->n[2] = b->elements[1];
    b->before = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    b->after = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    b->plane = (size_t)(b->n[1] + 1) * (b->n[2] + 1);
    b->nodes = b->plane * (b->n[0] + 1);
    for (int i = 0; i < 4; i++) b->buffers[i] = zeros(b->plane * 9 * sizeof(double));
    b->mass = zeros(b->nodes * sizeof(double));
    b->is_counted = zeros(b->nodes), b->is_given = zeros(b->nodes);
    b->rows = zeros((b->nodes + 1) * sizeof(size_t));
    b->columns = zeros(27 * b->nodes * sizeof(unsigned));
    b->couplings = zeros(27 * b->nodes * sizeof(matrix));
    b->inverses = zeros(b->nodes * sizeof(matrix));
    size_t count = 0;
    for (int k = 0; k <= b->n[2]; k++)
        for (int j = 0; j <= b->n[1]; j++)
            for (int i = 0; i <= b->n[0]; i++) {
                size_t at = node(b, i, j, k);
                b->is_counted[at] = i > 0 || rank == 0;
                b->is_given[at] = b->start + i == 0;
                b->rows[at] = count;
                for (int z = k - 1; z <= k + 1; z++)
                    for (int y = j - 1; y <= j + 1; y++)
                        for (int x = i - 1; x <= i + 1; x++)
                            if (x >= 0 && y >= 0 && z >= 0 && x <= b->n[0] && y <= b->n[1] &&
                                z <= b->n[2])
                                b->columns[count++] = (unsigned)node(b, x, y, z);
            }
    b->rows[b->nodes] = count;
    for (int k = 0; k < b->n[2]; k++)
        for (int j = 0; j < b->n[1]; j++)
            for (int i = 0; i < b->n[0]; i++) {
                static matrix stiffness[8][8];
                double mass[8];
                vector places[8];
                size_t nodes[8];
                for (int a = 0; a < 8; a++) {
                    int place[3] = {i + (a & 1), j + (a >> 1 & 1), k + (a >> 2)};
                    nodes[a] = node(b, place[0], place[1], place[2]);
                    place[0] += b->start;
                    for (int axis = 0; axis < 3; axis++)
                        places[a][axis] = SIZE[axis] * place[axis] / b->elements[axis];
                }
                element(places, stiffness, mass);
                for (int a = 0; a < 8; a++) {
                    b->mass[nodes[a]] += mass[a];
                    for (int c = 0; c < 8; c++) {
                        size_t at = b->rows[nodes[a]];
                        while (b->columns[at] != nodes[c]) at++;
                        for (int e = 0; e < 9; e++)
                            b->couplings[at][e / 3][e % 3] += stiffness[a][c][e / 3][e % 3];
                    }
                }
            }
    add_shared(b, b->mass, 1);
}

/* The inverses of the blocks on the diagonal, zero where displacements are given. */
static void find_inverses(body *b, double inertia) {
    for (size_t at = 0; at < b->nodes; at++)
        for (size_t c = b->rows[at]; c < b->rows[at + 1]; c++)
            if (b->columns[c] == at) memcpy(b->inverses[at], b->couplings[c], sizeof(matrix));
    add_shared(b, (double *)b->inverses, 9);
    for (size_t at = 0; at < b->nodes; at++) {
        matrix block;
        memcpy(block, b->inverses[at], sizeof block);
        for (int i = 0; i < 3; i++) block[i][i] += inertia * b->mass[at];
        if (b->is_given[at]) memset(b->inverses[at], 0, sizeof block);
        else invert(block, b->inverses[at]);
    }
}

static void apply(body *b, double inertia, vector *x, vector *product) {
    for (size_t at = 0; at < b->nodes; at++) {
        double sum[3] = {0.0, 0.0, 0.0};
        for (size_t c = b->rows[at]; c < b->rows[at + 1]; c++) {
            const double *v = x[b->columns[c]];
            for (int i = 0; i < 3; i++) {
                const double *k = b->couplings[c][i];
                sum[i] += k[0] * v[0] + k[1] * v[1] + k[2] * v[2];
            }
        }
        memcpy(product[at], sum, sizeof sum);
    }
    add_shared(b, (double *)product, 3);
    for (size_t at = 0; at < b->nodes; at++)
        for (int i = 0; i < 3; i++) {
            double force = product[at][i] + inertia * b->mass[at] * x[at][i];
            product[at][i] = b->is_given[at] ? 0.0 : force;
        }
}

static double dot(const double *a, const double *c) { return a[0] * c[0] + a[1] * c[1] + a[2] * c[2]; }

static void precondition(const body *b, size_t at, const double *r, double *z) {
    for (int i = 0; i < 3; i++) z[i] = dot(b->inverses[at][i], r);
}

/* Solves (stiffness + inertia * mass) u = load by conjugate gradients. Returns the iterations. */
static int solve(body *b, double inertia, vector *load, vector *u, vector *work[4]) {
    vector *product = work[0], *residual = work[1], *z = work[2], *p = work[3];
    double sums[3] = {0.0, 0.0, 0.0};
    find_inverses(b, inertia);
    apply(b, inertia, u, product);
    for (size_t at = 0; at < b->nodes; at++) {
        for (int i = 0; i < 3; i++)
            residual[at][i] = b->is_given[at] ? 0.0 : load[at][i] - product[at][i];
        precondition(b, at, residual[at], z[at]);
        memcpy(p[at], z[at], sizeof(vector));
        if (!b->is_counted[at]) continue;
        sums[0] += dot(residual[at], z[at]), sums[1] += dot(residual[at], residual[at]);
        sums[2] += dot(load[at], load[at]);
    }
    sum_all(sums, 3);
    double rz = sums[0], square = sums[1], enough = TOLERANCE * TOLERANCE * fmax(sums[2], square);
    int iterations = 0;
    for (; square > enough; iterations++) {
        if (iterations == 10000 || !isfinite(square)) fail("the solver did not converge");
        apply(b, inertia, p, product);
        double curvature = 0.0, own[2] = {0.0, 0.0};
        for (size_t at = 0; at < b->nodes; at++)
            if (b->is_counted[at]) curvature += dot(p[at], product[at]);
        sum_all(&curvature, 1);
        double step = rz / curvature;
        for (size_t at = 0; at < b->nodes; at++) {
            for (int i = 0; i < 3; i++) {
                u[at][i] += step * p[at][i];
                residual[at][i] -= step * product[at][i];
            }
            precondition(b, at, residual[at], z[at]);
            if (!b->is_counted[at]) continue;
            own[0] += dot(residual[at], z[at]), own[1] += dot(residual[at], residual[at]);
        }
        sum_all(own, 2);
        double ratio = own[0] / rz;
        rz = own[0], square = own[1];
        for (size_t at = 0; at < b->nodes; at++)
            for (int i = 0; i < 3; i++) p[at][i] = z[at][i] + ratio * p[at][i];
    }
    return iterations;
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int size = argument(count, arguments, 1), steps = argument(count, arguments, 2);
    int rank, ranks, iterations = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (size < 2) fail("expected two elements along the beam at least");
    body b;
    create(&b, rank, ranks, size);
    size_t bytes = b.nodes * sizeof(vector);
    vector *u = zeros(bytes), *v = zeros(bytes), *a = zeros(bytes), *next = zeros(bytes);
    vector *right = zeros(bytes), *work[4];
    for (int i = 0; i < 4; i++) work[i] = zeros(bytes);
    for (size_t at = 0; at < b.nodes; at++) {
        double share = SIZE[0] * (b.start + (int)(at % (b.n[0] + 1))) / size / 8.0;
        v[at][1] = 0.3 * share * share, v[at][2] = 0.1 * share;
    }
    /* At first the body is not bent, so there is no acceleration. */
    MPI_Barrier(MPI_COMM_WORLD);
    double start = seconds(), inertia = 4.0 / (STEP * STEP);
    for (int step = 0; step < steps; step++) {
        for (size_t at = 0; at < b.nodes; at++)
            for (int i = 0; i < 3; i++) {
                next[at][i] = u[at][i], right[at][i] = 0.0;
                if (b.is_given[at]) continue;
                right[at][i] =
                    b.mass[at] * (inertia * u[at][i] + 4.0 / STEP * v[at][i] + a[at][i]);
                next[at][i] = u[at][i] + STEP * v[at][i] + 0.5 * STEP * STEP * a[at][i];
            }
        iterations += solve(&b, inertia, right, next, work);
        for (size_t at = 0; at < b.nodes; at++)
            for (int i = 0; i < 3; i++) {
                double moved = next[at][i] - u[at][i];
                if (b.is_given[at]) continue;
                a[at][i] = inertia * moved - 4.0 / STEP * v[at][i] - a[at][i];
                v[at][i] = 2.0 / STEP * moved - v[at][i];
                u[at][i] = next[at][i];
            }
    }
    double taken = seconds() - start, sums[2] = {0.0, 0.0};
    for (size_t at = 0; at < b.nodes; at++)
        if (b.is_counted[at]) sums[0] += dot(u[at], u[at]), sums[1] += 1.0;
    sum_all(sums, 2);
    if (rank == 0)
        printf("{\"figure\":\"solid\",\"seconds\":%.9g,\"iterations\":%d,\"displacement\":%.6e}\n",
               taken, iterations, sqrt(sums[0] / sums[1]));
    MPI_Finalize();
    return 0;
}
