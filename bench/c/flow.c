/* Compressible flow in a chamber with a burning side: the twin of rocket-mini's `flow`, with the same
 * blocks along x, the same messages and the same order of arithmetic, so that the checksum has the same
 * bits. Faces are computed two at a time, in SSE2's registers, where rocket-mini has four lanes.
 *
 *   flow SIZE END
 *
 * computes SIZE cells along the chamber to the time END / 1000, and prints one line: the seconds of all
 * steps, the cells updated in a second, the steps, and the checksum of the result. */

#include <emmintrin.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <string.h>

#include "bench.h"

enum { GHOSTS = 2, LANES = 2, QUANTITIES = 5 };
typedef __m128d lanes;
typedef double cell[QUANTITIES];
typedef double *rows[QUANTITIES];
typedef struct { lanes q[QUANTITIES]; } state;

static const double GAMMA = 1.2, LENGTH = 4.0, HEIGHT = 0.5, WIDTH = 0.5, CFL = 0.4, OUTSIDE = 1.0;
static const double RATE = 0.02, EXPONENT = 0.5, PROPELLANT = 10.0, FLAME = 1.0;

typedef struct {
    int domain[3], start, n[3];
    size_t row, plane, count; /* distances in memory, and cells with ghost cells */
    double dx, dz;
    int before, after;         /* the ranks beside, MPI_PROC_NULL at the ends */
    cell *cells, *at_first;
    double *heights, *heights_first, *heights_old, *burning;
    rows states, changes, slopes[2], fluxes;
    double *areas, *tilt_x, *tilt_z, *burned; /* of a row of faces */
    double *lent[2], *borrowed[2];
    double gained[QUANTITIES];
} block;

static lanes splat(double value) { return _mm_set1_pd(value); }
static lanes blend(lanes mask, lanes yes, lanes no) {
    return _mm_or_pd(_mm_and_pd(mask, yes), _mm_andnot_pd(mask, no));
}
static lanes absolute(lanes value) { return _mm_andnot_pd(splat(-0.0), value); }

static inline state read_state(const rows from, size_t at) {
    state s;
    for (int q = 0; q < QUANTITIES; q++) s.q[q] = _mm_loadu_pd(from[q] + at);
    return s;
}

static inline void write_state(const rows to, size_t at, state s) {
    for (int q = 0; q < QUANTITIES; q++) _mm_storeu_pd(to[q] + at, s.q[q]);
}

static size_t at(const block *b, int i, int j, int k) {
    return (size_t)(k + GHOSTS) * b->plane + (size_t)(j + GHOSTS) * b->row + (size_t)(i + GHOSTS);
}

static size_t corner(const block *b, int i, int k) { return (size_t)k * (b->n[0] + 1) + i; }

static double column_mean(const block *b, const double *corners, int i, int k) {
    double before = corners[corner(b, i, k)] + corners[corner(b, i + 1, k)];
    double after = corners[corner(b, i, k + 1)] + corners[corner(b, i + 1, k + 1)];
    return 0.25 * (before + after);
}

static double volume(const block *b, const double *heights, int i, int k) {
    return b->dx * b->dz * column_mean(b, heights, i, k) / b->n[1];
}

static double *numbers(size_t count) {
    double *all = allocate(count * sizeof(double));
    memset(all, 0, count * sizeof(double));
    return all;
}

static void create(block *b, int rank, int ranks, int size) {
    int across = (size + 3) / 4 > 2 ? (size + 3) / 4 : 2;
    b->domain[0] = size, b->domain[1] = b->domain[2] = across;
    if (ranks > 1 && size < GHOSTS * ranks) fail("more ranks than blocks");
    /* As rocket-mini rounds the ends of its blocks. */
    b->start = (int)round((double)rank / ranks * size);
    b->n[0] = (int)round((double)(rank + 1) / ranks * size) - b->start;
    b->n[1] = b->n[2] = across;
    b->row = (size_t)b->n[0] + 2 * GHOSTS;
    b->plane = b->row * (size_t)(across + 2 * GHOSTS);
    b->count = b->plane * (size_t)(across + 2 * GHOSTS);
    b->dx = LENGTH / size, b->dz = WIDTH / across;
    b->before = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    b->after = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    size_t own = (size_t)b->n[0] * across * across;
    size_t corners = (size_t)(b->n[0] + 1) * (across + 1), row = b->row + 8;
    b->cells = (cell *)numbers(b->count * QUANTITIES);
    b->at_first = (cell *)numbers(own * QUANTITIES);
    b->heights = numbers(corners), b->heights_first = numbers(corners);
    b->heights_old = numbers(corners), b->burning = numbers(corners);
    for (size_t i = 0; i < corners; i++) b->heights[i] = HEIGHT;
    for (int q = 0; q < QUANTITIES; q++) {
        b->states[q] = numbers(b->count + 8), b->changes[q] = numbers(own);
        b->slopes[0][q] = numbers(row), b->slopes[1][q] = numbers(row), b->fluxes[q] = numbers(row);
        b->gained[q] = 0.0;
    }
    b->areas = numbers(row), b->tilt_x = numbers(row), b->tilt_z = numbers(row);
    b->burned = numbers(row);
    for (int side = 0; side < 2; side++) {
        b->lent[side] = numbers((size_t)GHOSTS * across * across * QUANTITIES);
        b->borrowed[side] = numbers((size_t)GHOSTS * across * across * QUANTITIES);
    }
    for (int k = 0; k < across; k++)
        for (int j = 0; j < across; j++)
            for (int i = 0; i < b->n[0]; i++) {
                double *c = b->cells[at(b, i, j, k)];
                c[0] = 1.0, c[4] = 1.0 / (GAMMA - 1.0);
            }
}

static double pressure(const double *c) {
    double u = c[1] / c[0], v = c[2] / c[0], w = c[3] / c[0];
    return (GAMMA - 1.0) * (c[4] - 0.5 * (c[1] * u + c[2] * v + c[3] * w));
}

/* Gives both neighbours two columns of cells, and takes theirs. */
static void exchange(block *b) {
    int count = GHOSTS * b->n[1] * b->n[2] * QUANTITIES, neighbours[2] = {b->before, b->after};
    size_t bytes = GHOSTS * sizeof(cell);
    MPI_Request requests[4];
    for (int side = 0; side < 2; side++) {
        if (neighbours[side] == MPI_PROC_NULL) continue;
        double *to = b->lent[side];
        for (int k = 0; k < b->n[2]; k++)
            for (int j = 0; j < b->n[1]; j++, to += GHOSTS * QUANTITIES)
                memcpy(to, b->cells[at(b, side ? b->n[0] - GHOSTS : 0, j, k)], bytes);
    }
    for (int side = 0; side < 2; side++)
        MPI_Irecv(b->borrowed[side], count, MPI_DOUBLE, neighbours[side], 1 - side, MPI_COMM_WORLD,
                  &requests[side]);
    for (int side = 0; side < 2; side++)
        MPI_Isend(b->lent[side], count, MPI_DOUBLE, neighbours[side], side, MPI_COMM_WORLD,
                  &requests[2 + side]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (int side = 0; side < 2; side++) {
        if (neighbours[side] == MPI_PROC_NULL) continue;
        double *from = b->borrowed[side];
        for (int k = 0; k < b->n[2]; k++)
            for (int j = 0; j < b->n[1]; j++, from += GHOSTS * QUANTITIES)
                memcpy(b->cells[at(b, side ? b->n[0] : -GHOSTS, j, k)], from, bytes);
    }
}

/* The ghost cells beyond the wall before the chamber and the outlet behind it. */
static void fill_x(block *b) {
    for (int k = 0; k < b->n[2]; k++)
        for (int j = 0; j < b->n[1]; j++)
            for (int depth = 0; depth < GHOSTS; depth++) {
                if (b->before == MPI_PROC_NULL) {
                    double *ghost = b->cells[at(b, -1 - depth, j, k)];
                    memcpy(ghost, b->cells[at(b, depth, j, k)], sizeof(cell));
                    ghost[1] = -ghost[1];
                }
                if (b->after == MPI_PROC_NULL) {
                    double *ghost = b->cells[at(b, b->n[0] + depth, j, k)];
                    memcpy(ghost, b->cells[at(b, b->n[0] - 1, j, k)], sizeof(cell));
                    double rho = ghost[0], u = ghost[1] / rho, v = ghost[2] / rho, w = ghost[3] / rho;
                    if (fabs(u) < sqrt(GAMMA * pressure(ghost) / rho)) {
                        double kinetic = 0.5 * rho * (u * u + v * v + w * w);
                        ghost[1] = rho * u, ghost[2] = rho * v, ghost[3] = rho * w;
                        ghost[4] = OUTSIDE / (GAMMA - 1.0) + kinetic;
                    }
                }
            }
}

/* The ghost cells beyond the walls at the sides. */
static void fill_z(block *b) {
    int n = b->n[2];
    for (int depth = 0; depth < GHOSTS; depth++)
        for (int j = 0; j < b->n[1]; j++)
            for (int i = -GHOSTS; i < b->n[0] + GHOSTS; i++) {
                double *low = b->cells[at(b, i, j, -1 - depth)], *high = b->cells[at(b, i, j, n + depth)];
                memcpy(low, b->cells[at(b, i, j, depth)], sizeof(cell));
                memcpy(high, b->cells[at(b, i, j, n - 1 - depth)], sizeof(cell));
                low[3] = -low[3], high[3] = -high[3];
            }
}

/* The ghost cells below the floor and above the burning surface. */
static void fill_y(block *b) {
    int n = b->n[1];
    for (int k = -GHOSTS; k < b->n[2] + GHOSTS; k++)
        for (int depth = 0; depth < GHOSTS; depth++)
            for (int i = -GHOSTS; i < b->n[0] + GHOSTS; i++) {
                double *low = b->cells[at(b, i, -1 - depth, k)];
                memcpy(low, b->cells[at(b, i, depth, k)], sizeof(cell));
                memcpy(b->cells[at(b, i, n + depth, k)], b->cells[at(b, i, n - 1, k)], sizeof(cell));
                low[2] = -low[2];
            }
}

static void fill(block *b) {
    exchange(b);
    fill_x(b);
    fill_z(b);
}

static double rate(const block *b, int i, int k) {
    return RATE * pow(fmax(pressure(b->cells[at(b, i - 1, b->n[1] - 1, k - 1)]), 0.0), EXPONENT);
}

static void burn(block *b) {
    for (int k = 0; k <= b->n[2]; k++)
        for (int i = 0; i <= b->n[0]; i++) {
            double before = rate(b, i, k) + rate(b, i + 1, k);
            double after = rate(b, i, k + 1) + rate(b, i + 1, k + 1);
            b->burning[corner(b, i, k)] = 0.25 * (before + after);
        }
}

/* The faces across y of a row of columns: area vectors at the surface, and what burns. */
static void find_tilt(block *b, int k) {
    const double *h = b->heights;
    for (int i = 0; i < b->n[0]; i++) {
        double h00 = h[corner(b, i, k)], h10 = h[corner(b, i + 1, k)];
        double h01 = h[corner(b, i, k + 1)], h11 = h[corner(b, i + 1, k + 1)];
        b->tilt_x[i] = 0.5 * b->dz * ((h00 + h01) - (h10 + h11));
        b->tilt_z[i] = 0.5 * b->dx * ((h00 + h10) - (h01 + h11));
        b->burned[i] = b->dx * b->dz * column_mean(b, b->burning, i, k);
    }
}

static inline lanes tilted(const block *b, double share, int i, lanes normal[3], lanes *speed) {
    lanes s = splat(share), x = s * _mm_loadu_pd(b->tilt_x + i), y = splat(b->dx * b->dz);
    lanes z = s * _mm_loadu_pd(b->tilt_z + i), area = _mm_sqrt_pd(x * x + y * y + z * z);
    lanes one = splat(1.0) / area;
    normal[0] = x * one, normal[1] = y * one, normal[2] = z * one;
    *speed = s * _mm_loadu_pd(b->burned + i) * one;
    return area;
}

static inline state to_state(state c) {
    lanes one = splat(1.0) / c.q[0], u = c.q[1] * one, v = c.q[2] * one, w = c.q[3] * one;
    lanes kinetic = splat(0.5) * (c.q[1] * u + c.q[2] * v + c.q[3] * w);
    return (state){{c.q[0], u, v, w, splat(GAMMA - 1.0) * (c.q[4] - kinetic)}};
}

static inline state gather(cell *cells, size_t i, size_t count) {
    const double *first = cells[i], *second = cells[i + 1 < count ? i + 1 : count - 1];
    state s;
    for (int q = 0; q < QUANTITIES; q++) s.q[q] = _mm_set_pd(second[q], first[q]);
    return s;
}

static inline lanes limited(lanes before, lanes after) {
    lanes product = before * after;
    lanes slope = product * (before + after) / (before * before + after * after);
    return _mm_and_pd(_mm_cmpgt_pd(product, _mm_setzero_pd()), slope);
}

/* Van Albada's slopes; none where density or pressure would not be positive. */
static void find_slopes(const rows states, size_t first, size_t stride, int count, const rows to) {
    for (int i = 0; i < count; i += LANES) {
        state before = read_state(states, first + i - stride), here = read_state(states, first + i);
        state after = read_state(states, first + i + stride), s;
        for (int q = 0; q < QUANTITIES; q++)
            s.q[q] = limited(here.q[q] - before.q[q], after.q[q] - here.q[q]);
        lanes half = splat(0.5);
        lanes is_gas = _mm_and_pd(_mm_cmplt_pd(half * absolute(s.q[0]), here.q[0]),
                                  _mm_cmplt_pd(half * absolute(s.q[4]), here.q[4]));
        for (int q = 0; q < QUANTITIES; q++) s.q[q] = _mm_and_pd(is_gas, s.q[q]);
        write_state(to, i, s);
    }
}

/* HLLC's fluxes per area. `axis` is 0 or 2 for faces across x or z at rest, 1 for tilted ones. */
static inline __attribute__((always_inline)) state hllc(state l, state r, int axis,
                                                        const lanes n[3], lanes speed) {
    lanes gamma = splat(GAMMA), zero = _mm_setzero_pd(), ul, ur;
    if (axis == 1) {
        ul = l.q[1] * n[0] + l.q[2] * n[1] + l.q[3] * n[2];
        ur = r.q[1] * n[0] + r.q[2] * n[1] + r.q[3] * n[2];
    } else {
        ul = l.q[1 + axis], ur = r.q[1 + axis];
    }
    lanes tl = l.q[4] / l.q[0], tr = r.q[4] / r.q[0];
    lanes cl = _mm_sqrt_pd(gamma * tl), cr = _mm_sqrt_pd(gamma * tr);
    lanes sl = _mm_min_pd(ul - cl, ur - cr), sr = _mm_max_pd(ul + cl, ur + cr);
    lanes ml = l.q[0] * (sl - ul), mr = r.q[0] * (sr - ur);
    lanes contact = (r.q[4] - l.q[4] + ml * ul - mr * ur) / (ml - mr);
    lanes is_between = _mm_and_pd(_mm_cmplt_pd(sl, speed), _mm_cmpgt_pd(sr, speed));
    lanes is_left = _mm_or_pd(_mm_cmpge_pd(sl, speed), _mm_and_pd(_mm_cmpgt_pd(sr, speed),
                                                                  _mm_cmpge_pd(contact, speed)));
    state s;
    for (int q = 0; q < QUANTITIES; q++) s.q[q] = blend(is_left, l.q[q], r.q[q]);
    lanes u = blend(is_left, ul, ur), wave = blend(is_left, sl, sr), mass = blend(is_left, ml, mr);
    lanes rho = s.q[0], p = s.q[4];
    lanes kinetic = splat(0.5) * (s.q[1] * s.q[1] + s.q[2] * s.q[2] + s.q[3] * s.q[3]);
    lanes specific = blend(is_left, tl, tr) * splat(1.0 / (GAMMA - 1.0)) + kinetic;
    lanes behind = mass / (wave - contact), pushed = contact - u, push[3], force[3];
    for (int i = 0; i < 3; i++) {
        push[i] = force[i] = zero;
        if (axis == 1) push[i] = pushed * n[i], force[i] = p * n[i];
        else if (axis == i) push[i] = pushed, force[i] = p;
    }
    lanes specific_behind = specific + pushed * (contact + p / mass);
    lanes carried = rho * (u - blend(is_between, wave, speed));
    lanes brought = blend(is_between, behind * (wave - speed), zero);
    state f;
    f.q[0] = carried + brought;
    for (int i = 0; i < 3; i++)
        f.q[1 + i] = carried * s.q[1 + i] + brought * (s.q[1 + i] + push[i]) + force[i];
    f.q[4] = carried * specific + brought * specific_behind + p * u;
    return f;
}

static inline __attribute__((always_inline)) void find_fluxes(block *b, size_t before, size_t after,
                                                              const rows before_slopes,
                                                              const rows after_slopes, int offset,
                                                              int count, int axis, double share) {
    for (int i = 0; i < count; i += LANES) {
        state l = read_state(b->states, before + i), ls = read_state(before_slopes, i);
        state r = read_state(b->states, after + i), rs = read_state(after_slopes, i + offset);
        for (int q = 0; q < QUANTITIES; q++) {
            l.q[q] = l.q[q] + splat(0.5) * ls.q[q];
            r.q[q] = r.q[q] - splat(0.5) * rs.q[q];
        }
        lanes normal[3], speed = _mm_setzero_pd();
        if (axis == 1) _mm_storeu_pd(b->areas + i, tilted(b, share, i, normal, &speed));
        write_state(b->fluxes, i, hllc(l, r, axis, normal, speed));
    }
}

/* Puts right the flux through a face at a wall, and counts what comes in through any boundary. */
static void pass_boundary(block *b, int axis, int side, const rows slopes, size_t first, int offset,
                          int i, double share, double dt, int is_wall) {
    double s[QUANTITIES], n[3] = {axis == 0, 0.0, axis == 2}, speed = 0.0, burned = 0.0;
    double half = side ? 0.5 : -0.5, weight = side ? -0.5 * dt : 0.5 * dt;
    for (int q = 0; q < QUANTITIES; q++)
        s[q] = b->states[q][first + i] + half * slopes[q][offset + i];
    if (axis == 1) {
        double x = share * b->tilt_x[i], y = b->dx * b->dz, z = share * b->tilt_z[i];
        double one = 1.0 / sqrt(x * x + y * y + z * z);
        n[0] = x * one, n[1] = y * one, n[2] = z * one;
        speed = burned = share * b->burned[i] * one;
    }
    double flux[QUANTITIES];
    if (is_wall) {
        double outward = side ? 1.0 : -1.0;
        double towards = outward * (s[1] * n[0] + s[2] * n[1] + s[3] * n[2] - speed);
        double p = s[4] + s[0] * towards * (fabs(towards) + sqrt(GAMMA * s[4] / s[0]) + towards);
        flux[0] = 0.0, flux[4] = p * speed;
        for (int a = 0; a < 3; a++) flux[1 + a] = p * n[a];
    } else if (axis == 1) {
        double rho = s[4] / FLAME, mass = -PROPELLANT * burned, velocity = speed + mass / rho;
        double internal = s[4] / ((GAMMA - 1.0) * rho);
        flux[0] = mass;
        for (int a = 0; a < 3; a++) flux[1 + a] = (mass * velocity + s[4]) * n[a];
        flux[4] = mass * (internal + 0.5 * velocity * velocity) + s[4] * velocity;
    }
    for (int q = 0; q < QUANTITIES; q++) {
        if (is_wall || axis == 1) b->fluxes[q][i] = flux[q];
        b->gained[q] += weight * b->fluxes[q][i] * b->areas[i];
    }
}

/* Adds what passes through a row of faces to the rows of cells before and after it. */
static void add(block *b, long before, long after) {
    int n = b->n[0];
    for (int q = 0; q < QUANTITIES; q++) {
        const double *restrict fluxes = b->fluxes[q], *restrict areas = b->areas;
        double *restrict changes = b->changes[q];
        if (before >= 0)
            for (int i = 0; i < n; i++) changes[before + i] -= fluxes[i] * areas[i];
        if (after >= 0)
            for (int i = 0; i < n; i++) changes[after + i] += fluxes[i] * areas[i];
    }
}

static void swap_slopes(block *b) {
    rows swap;
    memcpy(swap, b->slopes[0], sizeof swap);
    memcpy(b->slopes[0], b->slopes[1], sizeof swap);
    memcpy(b->slopes[1], swap, sizeof swap);
}

static void sweep_x(block *b, double dt) {
    int nx = b->n[0], ny = b->n[1];
    const double *h = b->heights;
    for (int k = 0; k < b->n[2]; k++) {
        for (int i = 0; i <= nx; i++)
            b->areas[i] = b->dz * (0.5 * (h[corner(b, i, k)] + h[corner(b, i, k + 1)]) / ny);
        for (int j = 0; j < ny; j++) {
            size_t first = at(b, -1, j, k);
            find_slopes(b->states, first, 1, nx + 2, b->slopes[0]);
            find_fluxes(b, first, first + 1, b->slopes[0], b->slopes[0], 1, nx + 1, 0, 0.0);
            if (b->before == MPI_PROC_NULL)
                pass_boundary(b, 0, 0, b->slopes[0], first + 1, 1, 0, 0.0, dt, 1);
            if (b->after == MPI_PROC_NULL)
                pass_boundary(b, 0, 1, b->slopes[0], first, 0, nx, 0.0, dt, 0);
            size_t row = ((size_t)k * ny + j) * nx;
            for (int q = 0; q < QUANTITIES; q++) {
                const double *restrict fluxes = b->fluxes[q], *restrict areas = b->areas;
                double *restrict changes = b->changes[q] + row;
                for (int i = 0; i < nx; i++)
                    changes[i] += fluxes[i] * areas[i] - fluxes[i + 1] * areas[i + 1];
            }
        }
    }
}

static void sweep_y(block *b, double dt) {
    int nx = b->n[0], ny = b->n[1];
    for (int k = 0; k < b->n[2]; k++) {
        find_tilt(b, k);
        size_t below = at(b, 0, -1, k);
        find_slopes(b->states, below, b->row, nx, b->slopes[0]);
        for (int j = 0; j <= ny; j++) {
            double share = (double)j / ny;
            size_t lower = below + j * b->row, upper = lower + b->row;
            find_slopes(b->states, upper, b->row, nx, b->slopes[1]);
            find_fluxes(b, lower, upper, b->slopes[0], b->slopes[1], 0, nx, 1, share);
            for (int i = 0; i < nx && j == 0; i++)
                pass_boundary(b, 1, 0, b->slopes[1], upper, 0, i, share, dt, 1);
            for (int i = 0; i < nx && j == ny; i++)
                pass_boundary(b, 1, 1, b->slopes[0], lower, 0, i, share, dt, 0);
            long row = ((long)k * ny + j) * nx;
            add(b, j > 0 ? row - nx : -1, j < ny ? row : -1);
            swap_slopes(b);
        }
    }
}

static void sweep_z(block *b, double dt) {
    int nx = b->n[0], ny = b->n[1], nz = b->n[2];
    const double *h = b->heights;
    for (int j = 0; j < ny; j++) {
        size_t before = at(b, 0, j, -1);
        find_slopes(b->states, before, b->plane, nx, b->slopes[0]);
        for (int k = 0; k <= nz; k++) {
            for (int i = 0; i < nx; i++)
                b->areas[i] = b->dx * (0.5 * (h[corner(b, i, k)] + h[corner(b, i + 1, k)]) / ny);
            size_t lower = before + k * b->plane, upper = lower + b->plane;
            find_slopes(b->states, upper, b->plane, nx, b->slopes[1]);
            find_fluxes(b, lower, upper, b->slopes[0], b->slopes[1], 0, nx, 2, 0.0);
            for (int i = 0; i < nx && k == 0; i++)
                pass_boundary(b, 2, 0, b->slopes[1], upper, 0, i, 0.0, dt, 1);
            for (int i = 0; i < nx && k == nz; i++)
                pass_boundary(b, 2, 1, b->slopes[0], lower, 0, i, 0.0, dt, 1);
            long row = ((long)k * ny + j) * nx, plane = (long)ny * nx;
            add(b, k > 0 ? row - plane : -1, k < nz ? row : -1);
            swap_slopes(b);
        }
    }
}

/* A stage of Heun's method. */
static void stage(block *b, double dt, int is_second) {
    int nx = b->n[0], ny = b->n[1], nz = b->n[2];
    size_t corners = (size_t)(nx + 1) * (nz + 1);
    fill_y(b);
    for (size_t i = 0; i < b->count; i += LANES)
        write_state(b->states, i, to_state(gather(b->cells, i, b->count)));
    for (int q = 0; q < QUANTITIES; q++)
        memset(b->changes[q], 0, (size_t)nx * ny * nz * sizeof(double));
    sweep_x(b, dt);
    sweep_y(b, dt);
    sweep_z(b, dt);
    memcpy(b->heights_old, b->heights, corners * sizeof(double));
    for (size_t i = 0; i < corners && !is_second; i++) b->heights[i] += dt * b->burning[i];
    double shares[nx][3];
    for (int k = 0; k < nz; k++) {
        for (int i = 0; i < nx; i++) {
            double first = volume(b, b->heights_first, i, k), old = volume(b, b->heights_old, i, k);
            double new = volume(b, b->heights, i, k), weight = is_second ? 0.5 / new : 1.0 / new;
            shares[i][0] = weight * old, shares[i][1] = weight * dt;
            shares[i][2] = is_second ? weight * first : 0.0;
        }
        for (int j = 0; j < ny; j++) {
            size_t row = ((size_t)k * ny + j) * nx, first = at(b, 0, j, k);
            for (int i = 0; i < nx; i++)
                for (int q = 0; q < QUANTITIES; q++) {
                    double *value = &b->cells[first + i][q];
                    *value = shares[i][0] * *value + shares[i][1] * b->changes[q][row + i] +
                             shares[i][2] * b->at_first[row + i][q];
                }
        }
    }
}

/* The greatest rate at which waves cross a cell; infinite if some cell holds what is no gas. */
static double fastest(block *b) {
    int nx = b->n[0], ny = b->n[1], nz = b->n[2];
    lanes most = _mm_setzero_pd(), zero = most, is_gas = _mm_cmpeq_pd(zero, zero);
    for (int k = 0; k < nz; k++) {
        find_tilt(b, k);
        for (int i = 0; i < nx; i += LANES) {
            double second = volume(b, b->heights, i + 1 < nx ? i + 1 : nx - 1, k);
            lanes inverse = splat(1.0) / _mm_set_pd(second, volume(b, b->heights, i, k));
            for (int j = 0; j < ny; j++) {
                state s = to_state(gather(b->cells + at(b, 0, j, k), i, nx));
                lanes n[3], speed, area = tilted(b, (double)(j + 1) / ny, i, n, &speed);
                lanes c = _mm_sqrt_pd(splat(GAMMA) * s.q[4] / s.q[0]);
                lanes along = absolute(s.q[1] * n[0] + s.q[2] * n[1] + s.q[3] * n[2]);
                lanes rate = zero + (absolute(s.q[1]) + c) * splat(1.0 / b->dx);
                rate = rate + (along + c + absolute(speed)) * area * inverse;
                rate = rate + (absolute(s.q[3]) + c) * splat(1.0 / b->dz);
                is_gas = _mm_and_pd(is_gas, _mm_cmpgt_pd(s.q[0], zero));
                is_gas = _mm_and_pd(is_gas, _mm_cmpgt_pd(s.q[4], zero));
                is_gas = _mm_and_pd(is_gas, _mm_cmplt_pd(rate, splat(INFINITY)));
                most = _mm_max_pd(most, rate);
            }
        }
    }
    double both[LANES];
    _mm_storeu_pd(both, most);
    return _mm_movemask_pd(is_gas) == 3 ? fmax(both[0], both[1]) : INFINITY;
}

static uint64_t scramble(uint64_t word) {
    word += 0x9e3779b97f4a7c15;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
}

static uint64_t checksum_of(uint64_t number, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return scramble(bits ^ scramble(number));
}

static uint64_t checksum(const block *b) {
    uint64_t sum = 0, dx = (uint64_t)b->domain[0], dy = (uint64_t)b->domain[1];
    for (int k = 0; k < b->n[2]; k++)
        for (int j = 0; j < b->n[1]; j++)
            for (int i = 0; i < b->n[0]; i++) {
                uint64_t number = ((uint64_t)k * dy + j) * dx + b->start + i;
                for (int q = 0; q < QUANTITIES; q++)
                    sum += checksum_of(6 * number + q, b->cells[at(b, i, j, k)][q]);
                if (j == 0) sum += checksum_of(6 * number + 5, b->heights[corner(b, i, k)]);
            }
    return sum;
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int size = argument(count, arguments, 1);
    double end = argument(count, arguments, 2) / 1000.0, time = 0.0;
    int rank, ranks, steps = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    block b;
    create(&b, rank, ranks, size);
    size_t corners = (size_t)(b.n[0] + 1) * (b.n[2] + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = seconds();
    while (time < end) {
        fill(&b);
        burn(&b);
        double own = fastest(&b), all;
        MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (!isfinite(all)) fail("the flow blew up");
        double stable = CFL / all, rest = end - time;
        int is_last = rest <= stable;
        double dt = is_last ? rest : stable;
        for (int k = 0, number = 0; k < b.n[2]; k++)
            for (int j = 0; j < b.n[1]; j++, number += b.n[0])
                memcpy(b.at_first + number, b.cells + at(&b, 0, j, k), b.n[0] * sizeof(cell));
        memcpy(b.heights_first, b.heights, corners * sizeof(double));
        stage(&b, dt, 0);
        fill(&b);
        stage(&b, dt, 1);
        steps++;
        time = is_last ? end : time + dt;
    }
    double taken = seconds() - start;
    uint64_t part = checksum(&b), sum;
    MPI_Reduce(&part, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        double updates = (double)size * b.n[1] * b.n[2] * steps;
        printf("{\"figure\":\"flow\",\"seconds\":%.9g,\"cells_per_second\":%.6g,\"steps\":%d,"
               "\"checksum\":\"%016llx\"}\n",
               taken, updates / taken, steps, (unsigned long long)sum);
    }
    MPI_Finalize();
    return 0;
}
