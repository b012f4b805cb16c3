/* What has been reported as wrong in other MPI libraries, one function a case: docs/public-issues.md tells the
 * reports. */
#include "check.h"

#include <complex.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define MOST 16
#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))

enum { BLOCKING, IMMEDIATE, PERSISTENT, FORMS };

/* All ranks. Its errors come back, as those of MPI_COMM_SELF do. */
static MPI_Comm all;

static int class_of(int code) {
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

static void finish_request(MPI_Request *request) {
    work();
    CHECK(MPI_Wait(request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(*request == MPI_REQUEST_NULL);
}

/* A collective operation in all its forms, one of them in each turn of a loop over `form`. */
#define IN_FORM(name, immediate, ...) \
    do { \
        MPI_Request running = MPI_REQUEST_NULL; \
        if (form == BLOCKING) CHECK(MPI_##name(__VA_ARGS__) == MPI_SUCCESS); \
        if (form == IMMEDIATE) { \
            CHECK(MPI_##immediate(__VA_ARGS__, &running) == MPI_SUCCESS); \
            finish_request(&running); \
        } \
        if (form == PERSISTENT) { \
            CHECK(MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &running) == MPI_SUCCESS); \
            CHECK(MPI_Start(&running) == MPI_SUCCESS); \
            CHECK(MPI_Wait(&running, MPI_STATUS_IGNORE) == MPI_SUCCESS); \
            MPI_Request_free(&running); \
        } \
    } while (0)

/* The lower half of the ranks and the upper one, as an intercommunicator; null on one rank. */
static MPI_Comm halves(void) {
    if (size < 2) return MPI_COMM_NULL;
    int upper = rank >= size / 2;
    MPI_Comm half, inter;
    MPI_Comm_split(all, upper, rank, &half);
    MPI_Intercomm_create(half, 0, all, upper ? 0 : size / 2, 42, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Comm_free(&half);
    return inter;
}

/* ---------------------------------------------------------------- Operations of all ranks */

static void ireduce_scatter_in_place(void) {
    MPI_Comm comms[] = {MPI_COMM_SELF, all};
    for (int which = 0; which < 2; which++) {
        for (int form = 0; form < FORMS; form++) {
            int many, me, counts[MOST], data[MOST + 1];
            MPI_Comm_size(comms[which], &many);
            MPI_Comm_rank(comms[which], &me);
            for (int i = 0; i < many; i++) {
                counts[i] = 1;
                data[i] = 10 * me + i;
            }
            data[many] = -7;
            IN_FORM(Reduce_scatter, Ireduce_scatter, MPI_IN_PLACE, data, counts, MPI_INT, MPI_SUM,
                    comms[which]);
            CHECK(data[0] == 5 * many * (many - 1) + many * me && data[many] == -7);
        }
    }
}

static void ireduce_in_place_large(void) {
    enum { COUNT = 20000 };
    static int in[COUNT], out[COUNT];
    for (int root = 0; root < size; root += size > 1 ? size - 1 : 1) {
        for (int form = 0; form < FORMS; form++) {
            for (int i = 0; i < COUNT; i++) in[i] = out[i] = i + rank;
            if (rank == root) IN_FORM(Reduce, Ireduce, MPI_IN_PLACE, in, COUNT, MPI_INT, MPI_SUM, root, all);
            else IN_FORM(Reduce, Ireduce, out, NULL, COUNT, MPI_INT, MPI_SUM, root, all);
            int bad = 0;
            for (int i = 0; i < COUNT; i++) {
                bad += out[i] != i + rank;
                bad += in[i] != (rank == root ? size * i + size * (size - 1) / 2 : i + rank);
            }
            CHECK(bad == 0);
        }
    }
}

static void reduce_local_in_place(void) {
    int value = 3;
    CHECK(MPI_Reduce_local(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM) != MPI_SUCCESS);
    CHECK(value == 3);
}

static void ireduce_scatter_block_bounds(void) {
    for (int form = 0; form < FORMS; form++) {
        MPI_Comm comms[] = {MPI_COMM_SELF, all};
        for (int which = 0; which < 2; which++) {
            int many, out[MOST], in[MOST];
            MPI_Comm_size(comms[which], &many);
            for (int i = 0; i < MOST; i++) {
                out[i] = 1;
                in[i] = 0;
            }
            IN_FORM(Reduce_scatter_block, Ireduce_scatter_block, out, in, 1, MPI_INT, MPI_SUM, comms[which]);
            CHECK(in[0] == many);
            for (int i = 1; i < MOST; i++) CHECK(in[i] == 0);
        }
    }
}

/* Matrices of two rows, whose product depends on the order: of four integers in a row, or of one from each of
 * four columns of so many. */
static int column;
static void multiply(void *left, void *right, int *count, MPI_Datatype *type) {
    (void)type;
    int *a = left, *b = right, next = column ? column : 1;
    for (int i = 0; i < *count; i++, a += column ? 1 : 4, b += column ? 1 : 4) {
        int c[] = {
            a[0] * b[0] + a[next] * b[2 * next], a[0] * b[next] + a[next] * b[3 * next],
            a[2 * next] * b[0] + a[3 * next] * b[2 * next], a[2 * next] * b[next] + a[3 * next] * b[3 * next],
        };
        for (int k = 0; k < 4; k++) b[k * next] = c[k] % 1009;
    }
}
static int part(int which, int index, int k) { return (which * 7 + index * 3 + k * k + 1 + (k == 1)) % 1009; }
static void product(int first, int end, int index, int *result) {
    for (int k = 0; k < 4; k++) result[k] = part(end - 1, index, k);
    int kept = column, one = 1;
    column = 0;
    for (int which = end - 2; which >= first; which--) {
        int left[4];
        for (int k = 0; k < 4; k++) left[k] = part(which, index, k);
        multiply(left, result, &one, NULL);
    }
    column = kept;
}
static int *place(int *matrices, int index, int k) {
    return column ? matrices + index + k * column : matrices + 4 * index + k;
}
static void is_product(int *matrices, int count, int first, int last, int offset) {
    int bad = 0, expected[4];
    for (int i = 0; i < count; i++) {
        product(first, last, offset + i, expected);
        for (int k = 0; k < 4; k++) bad += *place(matrices, i, k) != expected[k];
    }
    CHECK(bad == 0);
}

static void order_of_operation(void) {
    enum { EACH = 2 };
    MPI_Op op;
    MPI_Op_create(multiply, 0, &op);
    int count = EACH * size;
    for (int strided = 0; strided < 2; strided++) {
        column = strided ? count : 0;
        MPI_Datatype type, wide;
        if (strided) {
            MPI_Type_vector(4, 1, column, MPI_INT, &wide);
            MPI_Type_create_resized(wide, 0, sizeof(int), &type);
            MPI_Type_free(&wide);
        } else {
            MPI_Type_contiguous(4, MPI_INT, &type);
        }
        MPI_Type_commit(&type);
        int out[4 * EACH * MOST], in[4 * EACH * MOST];
        for (int form = 0; form < FORMS; form++) {
            for (int i = 0; i < count; i++) for (int k = 0; k < 4; k++) *place(out, i, k) = part(rank, i, k);
            for (int root = 0; root < size; root += size > 1 ? size - 1 : 1) {
                IN_FORM(Reduce, Ireduce, out, in, count, type, op, root, all);
                if (rank == root) is_product(in, count, 0, size, 0);
            }
            IN_FORM(Allreduce, Iallreduce, out, in, count, type, op, all);
            is_product(in, count, 0, size, 0);
            IN_FORM(Scan, Iscan, out, in, count, type, op, all);
            is_product(in, count, 0, rank + 1, 0);
            IN_FORM(Exscan, Iexscan, out, in, count, type, op, all);
            if (rank > 0) is_product(in, count, 0, rank, 0);
            IN_FORM(Reduce_scatter_block, Ireduce_scatter_block, out, in, EACH, type, op, all);
            is_product(in, EACH, 0, size, EACH * rank);
            IN_FORM(Allreduce, Iallreduce, MPI_IN_PLACE, out, count, type, op, all);
            is_product(out, count, 0, size, 0);
        }
        MPI_Type_free(&type);
    }
    column = 0;
    MPI_Op_free(&op);
}

static void scan_of_intercommunicator(void) {
    MPI_Comm inter = halves();
    if (inter == MPI_COMM_NULL) return;
    int one = 1, result = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(class_of(MPI_Exscan(&one, &result, 1, MPI_INT, MPI_SUM, inter)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Scan(&one, &result, 1, MPI_INT, MPI_SUM, inter)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Iexscan(&one, &result, 1, MPI_INT, MPI_SUM, inter, &request)) == MPI_ERR_COMM);
    MPI_Comm_free(&inter);
}

/* Blocks for each rank at multiples of so many integers; types that do not begin where a block does. */
static void alltoallw_in_place(void) {
    enum { BLOCK = 16 };
    for (int form = 0; form < FORMS; form++) {
        int data[MOST * BLOCK], counts[MOST], places[MOST];
        MPI_Datatype types[MOST];
        for (int i = 0; i < MOST * BLOCK; i++) data[i] = -1;
        for (int i = 0; i < size; i++) {
            int length = 1 + (i + rank) % 3, begin = (i * rank) % 5;
            MPI_Type_indexed(1, &length, &begin, MPI_INT, &types[i]);
            MPI_Type_commit(&types[i]);
            counts[i] = 1 + (i + rank) % 2;
            places[i] = i * BLOCK * (int)sizeof(int);
            for (int k = 0; k < length * counts[i]; k++) data[i * BLOCK + begin + k] = 100 * rank + i;
        }
        IN_FORM(Alltoallw, Ialltoallw, MPI_IN_PLACE, NULL, NULL, NULL, data, counts, places, types, all);
        for (int i = 0; i < size; i++) {
            int length = 1 + (i + rank) % 3, begin = (i * rank) % 5;
            for (int k = 0; k < BLOCK; k++) {
                int inside = k >= begin && k < begin + length * counts[i];
                CHECK(data[i * BLOCK + k] == (inside ? 100 * i + rank : -1));
            }
            MPI_Type_free(&types[i]);
        }
    }
}

static void alltoallw_from_bottom(void) {
    for (int form = 0; form < FORMS; form++) {
        int out[MOST], in[MOST], counts[MOST], places[MOST], one = 1;
        MPI_Datatype from[MOST], to[MOST], number = MPI_INT;
        for (int i = 0; i < size; i++) {
            MPI_Aint address;
            out[i] = 100 * rank + i;
            in[i] = -1;
            counts[i] = 1;
            places[i] = 0;
            MPI_Get_address(&out[i], &address);
            MPI_Type_create_struct(1, &one, &address, &number, &from[i]);
            MPI_Get_address(&in[i], &address);
            MPI_Type_create_struct(1, &one, &address, &number, &to[i]);
            MPI_Type_commit(&from[i]);
            MPI_Type_commit(&to[i]);
        }
        IN_FORM(Alltoallw, Ialltoallw, MPI_BOTTOM, counts, places, from, MPI_BOTTOM, counts, places, to, all);
        for (int i = 0; i < size; i++) {
            CHECK(in[i] == 100 * i + rank);
            MPI_Type_free(&from[i]);
            MPI_Type_free(&to[i]);
        }
    }
}

/* Types without elements, so many of them on one side and none on the other. */
static void alltoallw_of_nothing(void) {
    MPI_Datatype empty;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (int form = 0; form < FORMS; form++) {
        int out[MOST], in[MOST], many[MOST], none[MOST], places[MOST];
        MPI_Datatype empties[MOST], numbers[MOST];
        for (int i = 0; i < MOST; i++) {
            many[i] = 3;
            none[i] = places[i] = 0;
            empties[i] = empty;
            numbers[i] = MPI_INT;
            in[i] = -1;
            out[i] = rank;
        }
        IN_FORM(Alltoallw, Ialltoallw, out, many, places, empties, in, none, places, numbers, all);
        IN_FORM(Alltoallw, Ialltoallw, out, none, places, numbers, in, many, places, empties, all);
        IN_FORM(Alltoallv, Ialltoallv, out, many, places, empty, in, none, places, MPI_INT, all);
        IN_FORM(Alltoallv, Ialltoallv, out, none, places, MPI_INT, in, many, places, empty, all);
        IN_FORM(Gatherv, Igatherv, out, 3, empty, in, none, places, MPI_INT, 0, all);
        IN_FORM(Scatterv, Iscatterv, out, many, places, empty, in, 0, MPI_INT, 0, all);
        IN_FORM(Gatherv, Igatherv, out, 0, MPI_INT, in, many, places, empty, size - 1, all);
        for (int i = 0; i < MOST; i++) empties[i] = MPI_DATATYPE_NULL;
        IN_FORM(Alltoallw, Ialltoallw, out, none, places, empties, in, none, places, empties, all);
        for (int i = 0; i < MOST; i++) CHECK(in[i] == -1);
    }
    MPI_Type_free(&empty);
}

static void alltoallv_in_place_with_zeros(void) {
    for (int form = 0; form < FORMS; form++) {
        int data[4 * MOST], counts[MOST], places[MOST];
        for (int i = 0; i < size; i++) {
            counts[i] = i == rank ? 0 : (i + rank) % 3;
            places[i] = 4 * (size - 1 - i);
            for (int k = 0; k < 4; k++) data[places[i] + k] = k < counts[i] ? 10 * rank + k : -1;
        }
        IN_FORM(Alltoallv, Ialltoallv, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, data, counts,
                places, MPI_INT, all);
        for (int i = 0; i < size; i++) {
            for (int k = 0; k < 4; k++) CHECK(data[places[i] + k] == (k < counts[i] ? 10 * i + k : -1));
        }
    }
}

/* Arguments that are read at the root only. */
static void arguments_of_the_root(void) {
    for (int root = 0; root < size; root++) {
        for (int form = 0; form < FORMS; form++) {
            int out = rank + 1, in[MOST], ones[MOST], places[MOST], back = -1, sum = -1;
            for (int i = 0; i < MOST; i++) {
                ones[i] = 1;
                places[i] = i;
                in[i] = -1;
            }
            if (rank == root) {
                IN_FORM(Gather, Igather, &out, 1, MPI_INT, in, 1, MPI_INT, root, all);
                for (int i = 0; i < size; i++) CHECK(in[i] == i + 1);
                IN_FORM(Gatherv, Igatherv, &out, 1, MPI_INT, in, ones, places, MPI_INT, root, all);
                IN_FORM(Scatter, Iscatter, in, 1, MPI_INT, &back, 1, MPI_INT, root, all);
                CHECK(back == rank + 1);
                IN_FORM(Scatterv, Iscatterv, in, ones, places, MPI_INT, &back, 1, MPI_INT, root, all);
                IN_FORM(Reduce, Ireduce, &out, &sum, 1, MPI_INT, MPI_SUM, root, all);
                CHECK(sum == size * (size + 1) / 2);
            } else {
                IN_FORM(Gather, Igather, &out, 1, MPI_INT, NULL, -5, MPI_DATATYPE_NULL, root, all);
                IN_FORM(Gatherv, Igatherv, &out, 1, MPI_INT, NULL, NULL, NULL, MPI_DATATYPE_NULL, root, all);
                IN_FORM(Scatter, Iscatter, NULL, -5, MPI_DATATYPE_NULL, &back, 1, MPI_INT, root, all);
                CHECK(back == rank + 1);
                back = -1;
                IN_FORM(Scatterv, Iscatterv, NULL, NULL, NULL, MPI_DATATYPE_NULL, &back, 1, MPI_INT, root, all);
                IN_FORM(Reduce, Ireduce, &out, NULL, 1, MPI_INT, MPI_SUM, root, all);
            }
            CHECK(back == rank + 1);
        }
    }
}

/* One type on the root, others of the same signature elsewhere. */
static void scatter_to_other_counts(void) {
    enum { COUNT = 1000 };
    static double out[MOST * COUNT], in[COUNT];
    MPI_Datatype whole;
    MPI_Type_contiguous(COUNT, MPI_DOUBLE, &whole);
    MPI_Type_commit(&whole);
    for (int form = 0; form < FORMS; form++) {
        for (int i = 0; i < size * COUNT; i++) out[i] = i;
        for (int i = 0; i < COUNT; i++) in[i] = -1;
        if (rank == 0) IN_FORM(Scatter, Iscatter, out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, 0, all);
        else IN_FORM(Scatter, Iscatter, NULL, 0, MPI_DOUBLE, in, 1, whole, 0, all);
        int bad = 0;
        for (int i = 0; i < COUNT; i++) bad += in[i] != rank * COUNT + i;
        CHECK(bad == 0);
    }
    MPI_Type_free(&whole);
}

/* Each rank describes the same numbers in another way. */
static void allgatherv_of_other_types(void) {
    MPI_Datatype two, wide;
    MPI_Type_contiguous(2, MPI_LONG_LONG, &two);
    MPI_Type_create_resized(MPI_LONG_LONG, 0, 2 * sizeof(long long), &wide);
    MPI_Type_commit(&two);
    MPI_Type_commit(&wide);
    for (int form = 0; form < FORMS; form++) {
        long long out[8], in[8 * MOST];
        int counts[MOST], places[MOST], way = rank % 3;
        for (int i = 0; i < 8 * MOST; i++) in[i] = -1;
        for (int i = 0; i < 8; i++) out[i] = -2;
        for (int i = 0; i < 4; i++) out[way == 2 ? 2 * i : i] = 10 * rank + i;
        for (int i = 0; i < size; i++) {
            counts[i] = way == 1 ? 2 : 4;
            places[i] = (size - 1 - i) * (way == 1 ? 2 : 4);
        }
        MPI_Datatype from = way == 0 ? MPI_LONG_LONG : way == 1 ? two : wide;
        IN_FORM(Allgatherv, Iallgatherv, out, way == 1 ? 2 : 4, from, in, counts, places, from, all);
        for (int i = 0; i < size; i++) {
            for (int k = 0; k < 4; k++) {
                int at = 4 * (size - 1 - i) + k;
                CHECK(in[way == 2 ? 2 * at : at] == 10 * i + k);
                if (way == 2) CHECK(in[2 * at + 1] == -1);
            }
        }
    }
    MPI_Type_free(&two);
    MPI_Type_free(&wide);
}

/* With MPI_IN_PLACE the count and type beside it mean nothing. */
static void in_place_ignores_the_rest(void) {
    for (int form = 0; form < FORMS; form++) {
        int data[2 * MOST], counts[MOST], places[MOST];
        for (int i = 0; i < size; i++) {
            counts[i] = 1;
            places[i] = 2 * (size - 1 - i);
        }
        for (int i = 0; i < 2 * MOST; i++) data[i] = -1;
        data[rank] = rank;
        IN_FORM(Allgather, Iallgather, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, data, 1, MPI_INT, all);
        for (int i = 0; i < size; i++) CHECK(data[i] == i);
        for (int i = 0; i < 2 * MOST; i++) data[i] = -1;
        data[places[rank]] = rank;
        IN_FORM(Allgatherv, Iallgatherv, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, data, counts, places,
                MPI_INT, all);
        for (int i = 0; i < size; i++) CHECK(data[places[i]] == i && data[places[i] + 1] == -1);
        for (int i = 0; i < size; i++) data[i] = 10 * rank + i;
        IN_FORM(Alltoall, Ialltoall, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, data, 1, MPI_INT, all);
        for (int i = 0; i < size; i++) CHECK(data[i] == 10 * i + rank);
        int own = 7 + rank, back = -1;
        for (int i = 0; i < size; i++) data[i] = 7 + i;
        if (rank == 0) {
            IN_FORM(Gather, Igather, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, data, 1, MPI_INT, 0, all);
            IN_FORM(Scatter, Iscatter, data, 1, MPI_INT, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, 0, all);
            for (int i = 0; i < size; i++) CHECK(data[i] == 7 + i);
        } else {
            IN_FORM(Gather, Igather, &own, 1, MPI_INT, NULL, 0, MPI_INT, 0, all);
            IN_FORM(Scatter, Iscatter, NULL, 0, MPI_INT, &back, 1, MPI_INT, 0, all);
            CHECK(back == own);
        }
    }
}

static void all_alone(void) {
    for (int form = 0; form < FORMS; form++) {
        int out[] = {1, 2, 3}, in[] = {-1, -1, -1, -1}, two = 2, byte = sizeof(int), at = 1, zero = 0;
        MPI_Datatype number = MPI_INT;
        IN_FORM(Alltoallv, Ialltoallv, out, &two, &at, MPI_INT, in, &two, &zero, MPI_INT, MPI_COMM_SELF);
        CHECK(in[0] == 2 && in[1] == 3 && in[2] == -1);
        IN_FORM(Alltoallw, Ialltoallw, out, &two, &zero, &number, in, &two, &byte, &number, MPI_COMM_SELF);
        CHECK(in[0] == 2 && in[1] == 1 && in[2] == 2 && in[3] == -1);
        IN_FORM(Allgatherv, Iallgatherv, out, 2, MPI_INT, in, &two, &at, MPI_INT, MPI_COMM_SELF);
        CHECK(in[0] == 2 && in[1] == 1 && in[2] == 2 && in[3] == -1);
        IN_FORM(Scan, Iscan, out, in, 3, MPI_INT, MPI_MAX, MPI_COMM_SELF);
        CHECK(in[0] == 1 && in[2] == 3);
        IN_FORM(Barrier, Ibarrier, MPI_COMM_SELF);
    }
}

/* Structures with padding, which the operation copies whole. */
struct padded { long first; int second; };
static void least(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    struct padded *a = in, *b = inout;
    for (int i = 0; i < *count; i++) if (a[i].first < b[i].first) b[i] = a[i];
}
static MPI_Datatype padded_type(void) {
    int lengths[] = {1, 1};
    MPI_Aint places[] = {offsetof(struct padded, first), offsetof(struct padded, second)};
    MPI_Datatype parts[] = {MPI_LONG, MPI_INT}, raw, type;
    MPI_Type_create_struct(2, lengths, places, parts, &raw);
    MPI_Type_create_resized(raw, 0, sizeof(struct padded), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&raw);
    return type;
}
static void reduce_padded(void) {
    MPI_Datatype type = padded_type();
    MPI_Op op;
    MPI_Op_create(least, 1, &op);
    for (int form = 0; form < FORMS; form++) {
        struct padded out[5], in[6];
        memset(in, 0x55, sizeof in);
        for (int i = 0; i < 5; i++) {
            out[i].first = (rank + i) % size;
            out[i].second = rank;
        }
        IN_FORM(Allreduce, Iallreduce, out, in, 5, type, op, all);
        for (int i = 0; i < 5; i++) CHECK(in[i].first == 0 && in[i].second == (size * 5 - i) % size);
        CHECK(in[5].second == 0x55555555);
        IN_FORM(Reduce, Ireduce, out, in, 5, type, op, size - 1, all);
        IN_FORM(Scan, Iscan, out, in, 5, type, op, all);
        for (int i = 0; i < 5; i++) {
            long expected = size;
            for (int k = 0; k <= rank; k++) if ((k + i) % size < expected) expected = (k + i) % size;
            CHECK(in[i].first == expected);
        }
    }
    MPI_Op_free(&op);
    MPI_Type_free(&type);
}

static int wrong_type_seen;
static void add_ints(void *in, void *inout, int *count, MPI_Datatype *type) {
    MPI_Aint lower = -1, extent = -1;
    MPI_Type_get_extent(*type, &lower, &extent);
    if (*type != MPI_INT || lower != 0 || extent != sizeof(int)) wrong_type_seen++;
    for (int i = 0; i < *count; i++) ((int *)inout)[i] += ((int *)in)[i];
}
static void type_in_an_operation(void) {
    MPI_Op op;
    int a[] = {1, 2, 3}, b[] = {10, 20, 30}, sum = -1;
    MPI_Op_create(add_ints, 1, &op);
    CHECK(MPI_Reduce_local(a, b, 3, MPI_INT, op) == MPI_SUCCESS);
    CHECK(b[0] == 11 && b[1] == 22 && b[2] == 33);
    MPI_Allreduce(&a[1], &sum, 1, MPI_INT, op, all);
    CHECK(sum == 2 * size && wrong_type_seen == 0);
    MPI_Op_free(&op);
}

static void operations_of_fixed_widths(void) {
#define TRY(c_type, mpi_type) \
    do { \
        c_type one = (c_type)(rank + 1), result = 0; \
        CHECK(MPI_Allreduce(&one, &result, 1, mpi_type, MPI_SUM, all) == MPI_SUCCESS); \
        CHECK(result == (c_type)(size * (size + 1) / 2)); \
        CHECK(MPI_Allreduce(&one, &result, 1, mpi_type, MPI_MAX, all) == MPI_SUCCESS); \
        CHECK(result == (c_type)size); \
        CHECK(MPI_Allreduce(&one, &result, 1, mpi_type, MPI_BAND, all) == MPI_SUCCESS); \
        CHECK(result == (c_type)(size == 1 ? 1 : 0)); \
    } while (0)
    TRY(int8_t, MPI_INT8_T);
    TRY(int16_t, MPI_INT16_T);
    TRY(int32_t, MPI_INT32_T);
    TRY(int64_t, MPI_INT64_T);
    TRY(uint8_t, MPI_UINT8_T);
    TRY(uint16_t, MPI_UINT16_T);
    TRY(uint32_t, MPI_UINT32_T);
    TRY(uint64_t, MPI_UINT64_T);
    TRY(MPI_Aint, MPI_AINT);
    TRY(MPI_Offset, MPI_OFFSET);
    TRY(MPI_Count, MPI_COUNT);
#undef TRY
    _Bool truth = rank == 0, result = 1;
    CHECK(MPI_Allreduce(&truth, &result, 1, MPI_C_BOOL, MPI_LAND, all) == MPI_SUCCESS && result == (size == 1));
    CHECK(MPI_Allreduce(&truth, &result, 1, MPI_C_BOOL, MPI_LOR, all) == MPI_SUCCESS && result);
}

/* Nothing to reduce, and no buffers. */
static void reduce_of_nothing(void) {
    for (int form = 0; form < FORMS; form++) {
        IN_FORM(Reduce, Ireduce, NULL, NULL, 0, MPI_INT, MPI_SUM, 0, all);
        IN_FORM(Allreduce, Iallreduce, NULL, NULL, 0, MPI_DOUBLE, MPI_MAX, all);
        IN_FORM(Scan, Iscan, NULL, NULL, 0, MPI_INT, MPI_SUM, all);
        IN_FORM(Reduce_scatter_block, Ireduce_scatter_block, NULL, NULL, 0, MPI_INT, MPI_SUM, all);
        IN_FORM(Bcast, Ibcast, NULL, 0, MPI_INT, size - 1, all);
        IN_FORM(Allgather, Iallgather, NULL, 0, MPI_INT, NULL, 0, MPI_INT, all);
    }
}

static void both_sides_of_intercommunicator(void) {
    MPI_Comm inter = halves();
    if (inter == MPI_COMM_NULL) return;
    int me, many, others, upper = rank >= size / 2, first = upper ? 0 : size / 2;
    MPI_Comm_rank(inter, &me);
    MPI_Comm_size(inter, &many);
    MPI_Comm_remote_size(inter, &others);
    int theirs = 0;
    for (int i = first; i < first + others; i++) theirs += i;
    for (int form = 0; form < FORMS; form++) {
        int in[MOST], sum = -1;
        for (int i = 0; i < MOST; i++) in[i] = -1;
        IN_FORM(Barrier, Ibarrier, inter);
        IN_FORM(Allgather, Iallgather, &rank, 1, MPI_INT, in, 1, MPI_INT, inter);
        for (int i = 0; i < MOST; i++) CHECK(in[i] == (i < others ? first + i : -1));
        IN_FORM(Allreduce, Iallreduce, &rank, &sum, 1, MPI_INT, MPI_SUM, inter);
        CHECK(sum == theirs);
        sum = -1;
        /* From the upper half to the last rank of the lower one. */
        if (upper) IN_FORM(Reduce, Ireduce, &rank, NULL, 1, MPI_INT, MPI_SUM, others - 1, inter);
        else if (me == many - 1) IN_FORM(Reduce, Ireduce, NULL, &sum, 1, MPI_INT, MPI_SUM, MPI_ROOT, inter);
        else IN_FORM(Reduce, Ireduce, NULL, NULL, 1, MPI_INT, MPI_SUM, MPI_PROC_NULL, inter);
        CHECK(sum == (!upper && me == many - 1 ? theirs : -1));
        /* In one direction only. */
        int out[MOST];
        for (int i = 0; i < MOST; i++) {
            in[i] = -1;
            out[i] = 100 * rank + i;
        }
        IN_FORM(Alltoall, Ialltoall, out, upper, MPI_INT, in, !upper, MPI_INT, inter);
        for (int i = 0; i < MOST; i++) CHECK(in[i] == (!upper && i < others ? 100 * (first + i) + me : -1));
    }
    MPI_Comm_free(&inter);
}

/* Buffers are read when a persistent operation is started, as often as it is. */
static void persistent_reads_at_the_start(void) {
    int own = -2, in[MOST], every[MOST], sum = -1;
    MPI_Request requests[3];
    MPI_Gather_init(&own, 1, MPI_INT, in, 1, MPI_INT, size - 1, all, MPI_INFO_NULL, &requests[0]);
    MPI_Allgather_init(&own, 1, MPI_INT, every, 1, MPI_INT, all, MPI_INFO_NULL, &requests[1]);
    MPI_Allreduce_init(&own, &sum, 1, MPI_INT, MPI_SUM, all, MPI_INFO_NULL, &requests[2]);
    for (int round = 0; round < 3; round++) {
        own = 10 * rank + round;
        for (int i = 0; i < MOST; i++) in[i] = every[i] = -1;
        CHECK(MPI_Startall(3, requests) == MPI_SUCCESS);
        work();
        CHECK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        CHECK(sum == 5 * size * (size - 1) + size * round);
        for (int i = 0; i < size; i++) {
            CHECK(every[i] == 10 * i + round);
            CHECK(in[i] == (rank == size - 1 ? 10 * i + round : -1));
        }
    }
    for (int i = 0; i < 3; i++) MPI_Request_free(&requests[i]);
}

/* Operations that run side by side, with messages between, waited for in another order. */
static void many_run_at_once(void) {
    enum { COUNT = 10000 };
    static int large[COUNT];
    int one = rank + 1, sum = -1, other = -1, in = -1, token = 10 * rank, order[MOST];
    MPI_Request requests[4];
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < COUNT; i++) large[i] = rank == root ? i + root : -1;
        MPI_Ibarrier(all, &requests[0]);
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all, &requests[1]);
        MPI_Ibcast(large, COUNT, MPI_INT, root, all, &requests[2]);
        MPI_Iallgather(&one, 1, MPI_INT, order, 1, MPI_INT, all, &requests[3]);
        MPI_Allreduce(&one, &other, 1, MPI_INT, MPI_MAX, all);
        MPI_Sendrecv(&token, 1, MPI_INT, next_rank(), 4, &in, 1, MPI_INT, previous_rank(), 4, all,
                     MPI_STATUS_IGNORE);
        for (int i = 3; i >= 0; i--) finish_request(&requests[i]);
        int bad = 0;
        for (int i = 0; i < COUNT; i++) bad += large[i] != i + root;
        CHECK(bad == 0 && sum == size * (size + 1) / 2 && other == size && in == 10 * previous_rank());
        for (int i = 0; i < size; i++) CHECK(order[i] == i + 1);
    }
}

/* Two numbers in place; the least and the greatest with their places, where some are equal. */
static void sums_and_places(void) {
    for (int form = 0; form < FORMS; form++) {
        double two[] = {rank, rank ? 0.5 : 0};
        IN_FORM(Allreduce, Iallreduce, MPI_IN_PLACE, two, 2, MPI_DOUBLE, MPI_SUM, all);
        CHECK(two[0] == size * (size - 1) / 2 && two[1] == 0.5 * (size - 1));
        struct { double value; int index; } out[3], in[3];
        for (int i = 0; i < 3; i++) {
            out[i].value = i == 0 ? 7 : i == 1 ? rank % 2 : -rank;
            out[i].index = 100 + rank;
        }
        for (int root = 0; root < size; root++) {
            IN_FORM(Reduce, Ireduce, out, in, 3, MPI_DOUBLE_INT, MPI_MAXLOC, root, all);
            if (rank != root) continue;
            CHECK(in[0].value == 7 && in[0].index == 100);
            CHECK(in[1].value == (size > 1) && in[1].index == 100 + (size > 1));
            CHECK(in[2].value == 0 && in[2].index == 100);
        }
        IN_FORM(Allreduce, Iallreduce, out, in, 3, MPI_DOUBLE_INT, MPI_MINLOC, all);
        CHECK(in[0].index == 100 && in[1].value == 0 && in[1].index == 100 && in[2].index == 100 + size - 1);
    }
}

/* ---------------------------------------------------------------- Topologies */

/* In a periodic dimension of one or two ranks both neighbours are the same one. */
static void both_neighbours_the_same(void) {
    int shapes[3][2] = {{size, 1}, {1, size}, {size % 2 ? size : 2, size % 2 ? 1 : size / 2}},
        periods[] = {1, 1};
    for (int shape = 0; shape < 3; shape++) {
        MPI_Comm cart;
        MPI_Cart_create(all, 2, shapes[shape], periods, 0, &cart);
        int neighbours[4], me;
        MPI_Comm_rank(cart, &me);
        for (int d = 0; d < 2; d++) MPI_Cart_shift(cart, d, 1, &neighbours[2 * d], &neighbours[2 * d + 1]);
        for (int form = 0; form < FORMS; form++) {
            for (int way = 0; way < 3; way++) {
                int out[4], in[4], counts[] = {1, 1, 1, 1}, places[] = {0, 1, 2, 3};
                MPI_Aint bytes[] = {0, 4, 8, 12};
                MPI_Datatype types[] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
                for (int i = 0; i < 4; i++) {
                    out[i] = 10 * me + i;
                    in[i] = -1;
                }
                if (way == 0) {
                    IN_FORM(Neighbor_alltoall, Ineighbor_alltoall, out, 1, MPI_INT, in, 1, MPI_INT, cart);
                }
                if (way == 1) {
                    IN_FORM(Neighbor_alltoallv, Ineighbor_alltoallv, out, counts, places, MPI_INT, in,
                            counts, places, MPI_INT, cart);
                }
                if (way == 2) {
                    IN_FORM(Neighbor_alltoallw, Ineighbor_alltoallw, out, counts, bytes, types, in,
                            counts, bytes, types, cart);
                }
                for (int i = 0; i < 4; i++) CHECK(in[i] == 10 * neighbours[i] + (i ^ 1));
            }
        }
        MPI_Comm_free(&cart);
    }
}

static void grids_without_dimensions(void) {
    int dims[] = {size}, periods[] = {0}, none = 0, dimensions = -1, many = -1, kind = -1;
    MPI_Comm cart, sub, single;
    MPI_Cart_create(all, 1, dims, periods, 0, &cart);
    CHECK(MPI_Cart_sub(cart, &none, &sub) == MPI_SUCCESS);
    CHECK(sub != MPI_COMM_NULL);
    MPI_Comm_size(sub, &many);
    MPI_Cartdim_get(sub, &dimensions);
    MPI_Topo_test(sub, &kind);
    CHECK(many == 1 && dimensions == 0 && kind == MPI_CART);
    MPI_Comm_free(&sub);
    MPI_Comm_free(&cart);
    CHECK(MPI_Dims_create(1, 0, NULL) == MPI_SUCCESS);
    CHECK(MPI_Cart_create(all, 0, NULL, NULL, 0, &single) == MPI_SUCCESS);
    CHECK((single != MPI_COMM_NULL) == (rank == 0));
    if (single != MPI_COMM_NULL) MPI_Comm_free(&single);
}

static void grids_of_grids(void) {
    int half[] = {(size + 1) / 2, 1, 1}, ones[] = {1, 1, 1}, periods[] = {1, 1, 1};
    MPI_Comm parents[2], children[2];
    for (int i = 0; i < 2; i++) {
        MPI_Cart_create(all, 3, half, periods, 0, &parents[i]);
        CHECK((parents[i] != MPI_COMM_NULL) == (rank < half[0]));
        children[i] = MPI_COMM_NULL;
        if (parents[i] != MPI_COMM_NULL) {
            MPI_Cart_create(parents[i], 3, ones, periods, 0, &children[i]);
            CHECK((children[i] != MPI_COMM_NULL) == (rank == 0));
        }
    }
    for (int i = 0; i < 2; i++) {
        if (children[i] != MPI_COMM_NULL) MPI_Comm_free(&children[i]);
        if (parents[i] != MPI_COMM_NULL) MPI_Comm_free(&parents[i]);
    }
}

static void copies_of_graphs(void) {
    int from = previous_rank(), to = next_rank(), in = -1;
    int *volatile none = MPI_UNWEIGHTED; /* GCC takes it for an array of no numbers. */
    MPI_Comm graph, copies[2];
    MPI_Request request;
    MPI_Dist_graph_create_adjacent(all, 1, &from, none, 1, &to, none, MPI_INFO_NULL, 0, &graph);
    CHECK(MPI_Comm_dup(graph, &copies[0]) == MPI_SUCCESS);
    CHECK(MPI_Comm_idup(graph, &copies[1], &request) == MPI_SUCCESS);
    finish_request(&request);
    for (int i = 0; i < 2; i++) {
        int coming = -1, going = -1, weighted = -1, source = -1, target = -1;
        MPI_Dist_graph_neighbors_count(copies[i], &coming, &going, &weighted);
        CHECK(coming == 1 && going == 1 && weighted == 0);
        CHECK(MPI_Dist_graph_neighbors(copies[i], 1, &source, none, 1, &target, none) == MPI_SUCCESS);
        CHECK(source == from && target == to);
        MPI_Neighbor_allgather(&rank, 1, MPI_INT, &in, 1, MPI_INT, copies[i]);
        CHECK(in == from);
        MPI_Comm_free(&copies[i]);
    }
    MPI_Comm_free(&graph);
}

/* ---------------------------------------------------------------- Groups and communicators */

static void ties_of_split(void) {
    int colours[] = {2, 1, 2, 1, 0, 1}, colour = colours[rank % 6], expected = 0, me = -1;
    MPI_Comm part;
    for (int i = 0; i < rank; i++) expected += colours[i % 6] == colour;
    MPI_Comm_split(all, colour, 5, &part);
    MPI_Comm_rank(part, &me);
    CHECK(me == expected);
    MPI_Comm_free(&part);
}

static void split_without_the_first(void) {
    MPI_Comm inter = halves(), part, merged;
    if (inter == MPI_COMM_NULL) return;
    int me, lower = size / 2, upper = size - size / 2;
    MPI_Comm_rank(inter, &me);
    CHECK(MPI_Comm_split(inter, me == 0 ? MPI_UNDEFINED : 1, rank, &part) == MPI_SUCCESS);
    CHECK((part != MPI_COMM_NULL) == (me > 0 && lower > 1 && upper > 1));
    if (part != MPI_COMM_NULL) {
        int many, others;
        MPI_Comm_size(part, &many);
        MPI_Comm_remote_size(part, &others);
        CHECK(many + others == size - 2);
        MPI_Intercomm_merge(part, rank >= lower, &merged);
        int sum = 0, expected = size * (size - 1) / 2 - lower;
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, merged);
        CHECK(sum == expected);
        MPI_Comm_free(&merged);
        MPI_Comm_free(&part);
    }
    MPI_Comm_free(&inter);
}

static void keys_of_split_type(void) {
    MPI_Comm node, some;
    int many, me, ranks[MOST];
    CHECK(MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &node) == MPI_SUCCESS);
    MPI_Comm_size(node, &many);
    MPI_Comm_rank(node, &me);
    MPI_Allgather(&rank, 1, MPI_INT, ranks, 1, MPI_INT, node);
    for (int i = 1; i < many; i++) CHECK(ranks[i] < ranks[i - 1]);
    CHECK(ranks[me] == rank);
    MPI_Comm_free(&node);
    int type = rank % 2 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED;
    CHECK(MPI_Comm_split_type(all, type, 0, MPI_INFO_NULL, &some) == MPI_SUCCESS);
    CHECK((some == MPI_COMM_NULL) == (rank % 2));
    if (some != MPI_COMM_NULL) MPI_Comm_free(&some);
    CHECK(MPI_Comm_split_type(all, MPI_UNDEFINED, 0, MPI_INFO_NULL, &some) == MPI_SUCCESS);
    CHECK(some == MPI_COMM_NULL);
    CHECK(MPI_Comm_split_type(all, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, MPI_INFO_NULL, &some) == MPI_SUCCESS);
    CHECK(some == MPI_COMM_NULL);
}

static void split_type_of_intercommunicator(void) {
    MPI_Comm inter = halves(), part = MPI_COMM_NULL;
    if (inter == MPI_COMM_NULL) return;
    CHECK(MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &part) == MPI_SUCCESS);
    if (part != MPI_COMM_NULL) {
        int between = 0;
        MPI_Comm_test_inter(part, &between);
        CHECK(between);
        MPI_Comm_free(&part);
    }
    MPI_Comm_free(&inter);
}

/* Communicators of groups that do not overlap, made by one call; of groups in another order. */
static void groups_apart(void) {
    int ranks[MOST], many = 0, me = -1, first = -1;
    MPI_Group whole, group;
    MPI_Comm part;
    MPI_Comm_group(all, &whole);
    for (int i = size - 1; i >= 0; i--) if (i % 2 == rank % 2) ranks[many++] = i;
    MPI_Group_incl(whole, many, ranks, &group);
    for (int way = 0; way < 2; way++) {
        if (way == 0) MPI_Comm_create(all, group, &part);
        else MPI_Comm_create_group(all, group, 17, &part);
        MPI_Comm_rank(part, &me);
        CHECK(ranks[me] == rank);
        first = rank;
        MPI_Bcast(&first, 1, MPI_INT, 0, part);
        CHECK(first == ranks[0]);
        MPI_Comm_free(&part);
    }
    int asked[] = {0, MPI_PROC_NULL}, got[] = {-1, -1};
    CHECK(MPI_Group_translate_ranks(group, 2, asked, whole, got) == MPI_SUCCESS);
    CHECK(got[0] == ranks[0] && got[1] == MPI_PROC_NULL);
    MPI_Group_free(&group);
    MPI_Group_free(&whole);
}

static void many_at_once(void) {
    enum { COMMS = 10 };
    MPI_Comm comms[COMMS], own[COMMS];
    MPI_Request requests[2 * COMMS];
    int out[COMMS], in[COMMS];
    for (int i = 0; i < COMMS; i++) {
        CHECK(MPI_Comm_idup(all, &comms[i], &requests[i]) == MPI_SUCCESS);
        if (i % 3) MPI_Comm_dup(MPI_COMM_SELF, &own[i]);
        else MPI_Comm_dup(all, &own[i]);
    }
    MPI_Waitall(COMMS, requests, MPI_STATUSES_IGNORE);
    for (int i = COMMS - 1; i >= 0; i--) {
        in[i] = -1;
        MPI_Irecv(&in[i], 1, MPI_INT, previous_rank(), 0, comms[i], &requests[COMMS + i]);
    }
    for (int i = 0; i < COMMS; i++) {
        out[i] = 100 * rank + i;
        MPI_Isend(&out[i], 1, MPI_INT, next_rank(), 0, comms[i], &requests[i]);
    }
    MPI_Waitall(2 * COMMS, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < COMMS; i++) {
        CHECK(in[i] == 100 * previous_rank() + i);
        MPI_Comm_free(&comms[i]);
        MPI_Comm_free(&own[i]);
    }
}

static void parts_of_self(void) {
    MPI_Comm part, inter, merged, copy;
    int me = -1, many = -1, partner = rank ^ 1, in = -1;
    MPI_Comm_split(MPI_COMM_SELF, 3, 4, &part);
    MPI_Comm_size(part, &many);
    CHECK(many == 1);
    MPI_Comm_free(&part);
    MPI_Comm_split(MPI_COMM_SELF, MPI_UNDEFINED, 4, &part);
    CHECK(part == MPI_COMM_NULL);
    if (partner >= size) return;
    MPI_Intercomm_create(MPI_COMM_SELF, 0, all, partner, 9, &inter);
    MPI_Comm_dup(inter, &copy);
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, copy, MPI_STATUS_IGNORE);
    CHECK(in == partner);
    MPI_Intercomm_merge(inter, rank % 2, &merged);
    MPI_Comm_rank(merged, &me);
    CHECK(me == rank % 2);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&inter);
}

/* Merged in the order that is asked for, of either side; from two groups. */
static void order_of_merging(void) {
    MPI_Comm inter = halves(), merged, again = MPI_COMM_NULL;
    if (inter == MPI_COMM_NULL) return;
    int lower = size / 2, upper = rank >= lower, me = -1;
    for (int turned = 0; turned < 2; turned++) {
        MPI_Intercomm_merge(inter, upper != turned, &merged);
        MPI_Comm_rank(merged, &me);
        CHECK(me == (!turned ? rank : upper ? rank - lower : rank + size - lower));
        int sent = rank, got = -1, at = turned ? size - lower : 0;
        MPI_Bcast(me == at ? &sent : &got, 1, MPI_INT, at, merged);
        CHECK(me == at || got == 0);
        MPI_Comm_free(&merged);
    }
    MPI_Group own, theirs;
    MPI_Comm_group(inter, &own);
    MPI_Comm_remote_group(inter, &theirs);
    CHECK(MPI_Intercomm_create_from_groups(own, 0, theirs, 0, "halves", MPI_INFO_NULL,
                                           MPI_ERRORS_RETURN, &again) == MPI_SUCCESS);
    int in = -1, partner = 0, there = -1;
    MPI_Comm_rank(again, &me);
    MPI_Comm_remote_size(again, &there);
    CHECK(there == (upper ? lower : size - lower));
    if (me == 0) {
        MPI_Sendrecv(&rank, 1, MPI_INT, partner, 0, &in, 1, MPI_INT, partner, 0, again, MPI_STATUS_IGNORE);
        CHECK(in == (upper ? 0 : lower));
    }
    MPI_Group_free(&own);
    MPI_Group_free(&theirs);
    MPI_Comm_free(&again);
    MPI_Comm_free(&inter);
}

/* Hints of a communicator are not those of its duplicates. */
static void hints_of_a_copy(void) {
    MPI_Info info, got;
    MPI_Comm comm, copies[2];
    char value[8] = "";
    int length = sizeof value, flag = -1;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Comm_dup_with_info(all, info, &comm);
    MPI_Comm_get_info(comm, &got);
    MPI_Info_get_string(got, "mpi_assert_no_any_tag", &length, value, &flag);
    int known = flag && strcmp(value, "true") == 0;
    MPI_Info_free(&got);
    MPI_Comm_dup(comm, &copies[0]);
    MPI_Comm_split(comm, 0, rank, &copies[1]);
    for (int i = 0; i < 2; i++) {
        MPI_Comm_get_info(copies[i], &got);
        length = sizeof value;
        MPI_Info_get_string(got, "mpi_assert_no_any_tag", &length, value, &flag);
        CHECK(!flag || strcmp(value, "true") != 0 || !known);
        MPI_Info_free(&got);
        MPI_Comm_free(&copies[i]);
    }
    MPI_Comm_free(&comm);
    MPI_Info_free(&info);
}

/* Communicators that are made of groups alone are like those that have them. */
static void made_of_groups(void) {
    MPI_Comm likes[] = {MPI_COMM_SELF, all};
    for (int i = 0; i < 2; i++) {
        MPI_Group group;
        MPI_Comm comm;
        int result = -1, sum = -1, one = 1, many = -1;
        MPI_Comm_group(likes[i], &group);
        CHECK(MPI_Comm_create_from_group(group, "made of groups", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm)
              == MPI_SUCCESS);
        MPI_Comm_compare(comm, likes[i], &result);
        CHECK(result == MPI_CONGRUENT);
        MPI_Comm_size(comm, &many);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == many);
        MPI_Group_free(&group);
        MPI_Comm_free(&comm);
    }
}

static void sessions_and_groups(void) {
    MPI_Session session;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Group group;
    int sets = -1;
    CHECK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "of nobody", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                     &comm) == MPI_SUCCESS);
    CHECK(comm == MPI_COMM_NULL);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets);
    CHECK(sets >= 2);
    for (int i = 0; i < sets; i++) {
        char name[MPI_MAX_PSET_NAME_LEN];
        int length = 0, many = -1;
        CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL) == MPI_SUCCESS);
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name);
        group = MPI_GROUP_NULL;
        CHECK(MPI_Group_from_session_pset(session, name, &group) == MPI_SUCCESS);
        MPI_Group_size(group, &many);
        if (strcmp(name, "mpi://WORLD") == 0) CHECK(many == size);
        if (strcmp(name, "mpi://SELF") == 0) CHECK(many == 1);
        MPI_Group_free(&group);
    }
    CHECK(class_of(MPI_Group_from_session_pset(session, "of nobody", &group)) == MPI_ERR_ARG);
    CHECK(group == MPI_GROUP_NULL);
    MPI_Session_finalize(&session);
}

/* ---------------------------------------------------------------- Attributes, hints, errors */

static int copied, deleted;
static int copy_more(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key, (void)extra;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    copied++;
    return MPI_SUCCESS;
}
static int count_deleted(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}
static void attributes_of_a_copy(void) {
    int copying, staying, flag = -1;
    char cell[4], *got = NULL;
    MPI_Comm comm, copy;
    MPI_Request request;
    copied = deleted = 0;
    MPI_Comm_create_keyval(copy_more, count_deleted, &copying, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_deleted, &staying, NULL);
    MPI_Comm_dup(all, &comm);
    MPI_Comm_set_attr(comm, copying, cell);
    MPI_Comm_set_attr(comm, staying, cell);
    for (int way = 0; way < 2; way++) {
        if (way == 0) MPI_Comm_dup(comm, &copy);
        else {
            MPI_Comm_idup(comm, &copy, &request);
            CHECK(copied == 2);
            finish_request(&request);
        }
        MPI_Comm_get_attr(copy, copying, &got, &flag);
        CHECK(flag && got == cell + 1);
        MPI_Comm_get_attr(copy, staying, &got, &flag);
        CHECK(!flag);
        MPI_Comm_free(&copy);
        CHECK(copied == way + 1 && deleted == way + 1);
    }
    MPI_Comm_free(&comm);
    CHECK(deleted == 4);
    MPI_Comm_free_keyval(&copying);
    MPI_Comm_free_keyval(&staying);
}

static MPI_Datatype type_seen;
static void *value_seen;
static int see_type(MPI_Datatype type, int key, void *value, void *extra) {
    (void)key, (void)extra;
    type_seen = type;
    value_seen = value;
    return MPI_SUCCESS;
}
static void attributes_of_named_types(void) {
    int key, first, second, flag = -1;
    void *got = NULL;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, see_type, &key, NULL);
    MPI_Type_set_attr(MPI_INT, key, &first);
    type_seen = MPI_DATATYPE_NULL;
    MPI_Type_set_attr(MPI_INT, key, &second);
    CHECK(type_seen == MPI_INT && value_seen == &first);
    MPI_Type_get_attr(MPI_INT, key, &got, &flag);
    CHECK(flag && got == &second);
    type_seen = MPI_DATATYPE_NULL;
    MPI_Type_delete_attr(MPI_INT, key);
    CHECK(type_seen == MPI_INT && value_seen == &second);
    MPI_Type_free_keyval(&key);
}

static void lengths_of_hints(void) {
    MPI_Info info;
    char value[16];
    int flag = -1, length;
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "1234567890");
    memset(value, '#', sizeof value);
    MPI_Info_get(info, "key", 5, value, &flag);
    CHECK(flag && strncmp(value, "12345", 5) == 0 && value[5] == '\0' && value[6] == '#');
    memset(value, '#', sizeof value);
    length = 5;
    MPI_Info_get_string(info, "key", &length, value, &flag);
    CHECK(flag && strcmp(value, "1234") == 0 && length == 11 && value[5] == '#');
    length = 0;
    CHECK(MPI_Info_get_string(info, "key", &length, NULL, &flag) == MPI_SUCCESS);
    CHECK(flag && length == 11);
    length = 0;
    CHECK(MPI_Info_get_string(info, "other", &length, NULL, &flag) == MPI_SUCCESS && !flag);
    MPI_Info_free(&info);
}

static void texts_of_errors(void) {
    int classes[] = {
        MPI_ERR_CONVERSION, MPI_ERR_DUP_DATAREP, MPI_ERR_UNSUPPORTED_DATAREP, MPI_ERR_FILE, MPI_ERR_NO_SPACE,
        MPI_ERR_AMODE, MPI_ERR_WIN, MPI_ERR_RMA_SYNC, MPI_ERR_SESSION, MPI_ERR_IN_STATUS, MPI_ERR_PENDING,
    };
    char texts[LENGTH(classes)][MPI_MAX_ERROR_STRING];
    for (int i = 0; i < LENGTH(classes); i++) {
        int length = -1;
        CHECK(MPI_Error_string(classes[i], texts[i], &length) == MPI_SUCCESS);
        CHECK(length == (int)strlen(texts[i]) && length > 0);
        CHECK(class_of(classes[i]) == classes[i]);
        for (int k = 0; k < i; k++) CHECK(strcmp(texts[i], texts[k]) != 0);
    }
}

static void many_error_classes(void) {
    enum { CLASSES = 200 };
    int classes[CLASSES], codes[CLASSES], length = -1;
    char text[MPI_MAX_ERROR_STRING];
    for (int i = 0; i < CLASSES; i++) {
        CHECK(MPI_Add_error_class(&classes[i]) == MPI_SUCCESS);
        CHECK(MPI_Add_error_code(classes[i], &codes[i]) == MPI_SUCCESS);
        CHECK(MPI_Add_error_string(codes[i], i % 2 ? "odd" : "even") == MPI_SUCCESS);
    }
    for (int i = 0; i < CLASSES; i++) {
        CHECK(class_of(codes[i]) == classes[i]);
        MPI_Error_string(codes[i], text, &length);
        CHECK(strcmp(text, i % 2 ? "odd" : "even") == 0);
    }
    for (int i = CLASSES - 1; i >= 0; i--) {
        CHECK(MPI_Remove_error_string(codes[i]) == MPI_SUCCESS);
        CHECK(MPI_Remove_error_code(codes[i]) == MPI_SUCCESS);
        CHECK(MPI_Remove_error_class(classes[i]) == MPI_SUCCESS);
    }
}

static void no_error_handler(void) {
    int class = class_of(MPI_Comm_set_errhandler(all, MPI_ERRHANDLER_NULL));
    CHECK(class == MPI_ERR_ERRHANDLER || class == MPI_ERR_ARG);
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(all, &handler);
    CHECK(handler == MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}

static int calls_of_handler, code_seen;
static MPI_Comm comm_seen;
static void on_error(MPI_Comm *comm, int *code, ...) {
    calls_of_handler++;
    code_seen = *code;
    comm_seen = *comm;
}
static int session_errors;
static void on_session_error(MPI_Session *session, int *code, ...) {
    (void)session;
    session_errors += class_of(*code) == MPI_ERR_OTHER;
}
/* One handler on several communicators, freed at once; a session's. */
static void handlers_in_use(void) {
    MPI_Errhandler handler, got;
    MPI_Comm comm, copy;
    int cell = 0;
    MPI_Comm_dup(all, &comm);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Errhandler_free(&handler);
    CHECK(handler == MPI_ERRHANDLER_NULL);
    calls_of_handler = 0;
    CHECK(class_of(MPI_Send(&cell, 1, MPI_INT, size + 5, 0, comm)) == MPI_ERR_RANK);
    CHECK(calls_of_handler == 1 && class_of(code_seen) == MPI_ERR_RANK && comm_seen == comm);
    MPI_Comm_dup(comm, &copy);
    CHECK(MPI_Comm_call_errhandler(copy, MPI_ERR_OTHER) == MPI_SUCCESS);
    CHECK(calls_of_handler == 2 && comm_seen == copy);
    MPI_Comm_free(&copy);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &got);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&got);
    CHECK(class_of(MPI_Send(&cell, 1, MPI_INT, size + 5, 0, comm)) == MPI_ERR_RANK && calls_of_handler == 2);
    MPI_Comm_free(&comm);
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Session_create_errhandler(on_session_error, &handler);
    MPI_Session_set_errhandler(session, handler);
    session_errors = 0;
    MPI_Session_call_errhandler(session, MPI_ERR_OTHER);
    CHECK(session_errors == 1);
    MPI_Errhandler_free(&handler);
    MPI_Session_finalize(&session);
}

/* ---------------------------------------------------------------- Messages */

static void is_of_nobody(const MPI_Status *status) {
    int count = -1;
    MPI_Get_count(status, MPI_INT, &count);
    CHECK(status->MPI_SOURCE == MPI_PROC_NULL && status->MPI_TAG == MPI_ANY_TAG && count == 0);
}
static void messages_of_nobody(void) {
    MPI_Status status, statuses[2];
    MPI_Request request, requests[5];
    MPI_Message message = MPI_MESSAGE_NULL;
    int cell = 7, other = 8, flag = 0;
    MPI_Irecv(&cell, 1, MPI_INT, MPI_PROC_NULL, 3, all, &request);
    MPI_Waitall(1, &request, statuses);
    is_of_nobody(&statuses[0]);
    MPI_Probe(MPI_PROC_NULL, 3, all, &status);
    is_of_nobody(&status);
    MPI_Iprobe(MPI_PROC_NULL, 3, all, &flag, &status);
    CHECK(flag);
    is_of_nobody(&status);
    MPI_Mprobe(MPI_PROC_NULL, 3, all, &message, &status);
    CHECK(message == MPI_MESSAGE_NO_PROC);
    is_of_nobody(&status);
    MPI_Mrecv(&cell, 1, MPI_INT, &message, &status);
    CHECK(message == MPI_MESSAGE_NULL);
    is_of_nobody(&status);
    flag = 0;
    MPI_Improbe(MPI_PROC_NULL, 3, all, &flag, &message, &status);
    CHECK(flag && message == MPI_MESSAGE_NO_PROC);
    MPI_Imrecv(&cell, 1, MPI_INT, &message, &request);
    MPI_Wait(&request, &status);
    CHECK(message == MPI_MESSAGE_NULL);
    is_of_nobody(&status);
    CHECK(MPI_Sendrecv(&cell, 1, MPI_INT, MPI_PROC_NULL, 3, &other, 1, MPI_INT, MPI_PROC_NULL, 3, all,
                       &status) == MPI_SUCCESS);
    is_of_nobody(&status);
    CHECK(MPI_Sendrecv_replace(&cell, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_PROC_NULL, 3, all,
                               &status) == MPI_SUCCESS);
    is_of_nobody(&status);
    MPI_Send_init(&cell, 1, MPI_INT, MPI_PROC_NULL, 3, all, &requests[0]);
    MPI_Ssend_init(&cell, 1, MPI_INT, MPI_PROC_NULL, 3, all, &requests[1]);
    MPI_Rsend_init(&cell, 1, MPI_INT, MPI_PROC_NULL, 3, all, &requests[2]);
    MPI_Bsend_init(&cell, 1, MPI_INT, MPI_PROC_NULL, 3, all, &requests[3]);
    MPI_Recv_init(&other, 1, MPI_INT, MPI_PROC_NULL, 3, all, &requests[4]);
    for (int round = 0; round < 2; round++) {
        MPI_Startall(5, requests);
        MPI_Wait(&requests[4], &status);
        is_of_nobody(&status);
        CHECK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    }
    for (int i = 0; i < 5; i++) MPI_Request_free(&requests[i]);
    CHECK(cell == 7 && other == 8);
}

static void is_empty(const MPI_Status *status) {
    int count = -1, cancelled = -1;
    MPI_Get_count(status, MPI_INT, &count);
    MPI_Test_cancelled(status, &cancelled);
    CHECK(status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && count == 0 && !cancelled);
}
static void requests_that_do_not_run(void) {
    MPI_Request requests[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status, statuses[4];
    int cell = 0, index, flag, count, indices[4];
    for (int kind = 0; kind < 2; kind++) {
        if (kind == 1) {
            MPI_Recv_init(&cell, 1, MPI_INT, rank, 5, all, &requests[0]);
            MPI_Send_init(&cell, 1, MPI_INT, rank, 5, all, &requests[2]);
        }
        memset(&status, 0x33, sizeof status);
        MPI_Wait(&requests[0], &status);
        is_empty(&status);
        memset(&status, 0x33, sizeof status);
        flag = 0;
        MPI_Test(&requests[2], &flag, &status);
        CHECK(flag);
        is_empty(&status);
        index = 0;
        MPI_Waitany(4, requests, &index, &status);
        CHECK(index == MPI_UNDEFINED);
        is_empty(&status);
        flag = index = 0;
        MPI_Testany(4, requests, &index, &flag, &status);
        CHECK(flag && index == MPI_UNDEFINED);
        count = 0;
        MPI_Waitsome(4, requests, &count, indices, statuses);
        CHECK(count == MPI_UNDEFINED);
        count = 0;
        MPI_Testsome(4, requests, &count, indices, statuses);
        CHECK(count == MPI_UNDEFINED);
        flag = 0;
        MPI_Testall(4, requests, &flag, statuses);
        CHECK(flag);
        for (int i = 0; i < 4; i++) is_empty(&statuses[i]);
        MPI_Waitall(4, requests, statuses);
        flag = 0;
        MPI_Request_get_status(requests[0], &flag, &status);
        CHECK(flag);
        is_empty(&status);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[2]);
    flag = index = count = 0;
    MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE);
    CHECK(flag);
    MPI_Waitany(0, NULL, &index, &status);
    CHECK(index == MPI_UNDEFINED);
    MPI_Waitsome(0, NULL, &count, NULL, MPI_STATUSES_IGNORE);
    CHECK(count == MPI_UNDEFINED);
    CHECK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
}

static void some_of_the_requests(void) {
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[3];
    int in[] = {-1, -1}, out[] = {1, 2}, flag = -1, count = -1, indices[3];
    MPI_Irecv(&in[0], 1, MPI_INT, rank, 1, all, &requests[1]);
    MPI_Irecv(&in[1], 1, MPI_INT, rank, 2, all, &requests[2]);
    MPI_Testall(3, requests, &flag, statuses);
    CHECK(!flag && requests[1] != MPI_REQUEST_NULL && requests[2] != MPI_REQUEST_NULL);
    MPI_Testsome(3, requests, &count, indices, statuses);
    CHECK(count == 0);
    MPI_Send(&out[1], 1, MPI_INT, rank, 2, all);
    MPI_Waitsome(3, requests, &count, indices, statuses);
    CHECK(count == 1 && indices[0] == 2 && statuses[0].MPI_TAG == 2 && in[1] == 2);
    CHECK(requests[2] == MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL);
    MPI_Send(&out[0], 1, MPI_INT, rank, 1, all);
    for (flag = 0; !flag;) CHECK(MPI_Testall(3, requests, &flag, statuses) == MPI_SUCCESS);
    CHECK(requests[1] == MPI_REQUEST_NULL && in[0] == 1 && statuses[1].MPI_TAG == 1);
}

static void errors_in_statuses(void) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int in[2] = {-1, -1}, out[2] = {5, 6}, flag;
    for (int persistent = 0; persistent < 2; persistent++) {
        for (int tested = 0; tested < 2; tested++) {
            if (persistent) {
                MPI_Recv_init(&in[0], 1, MPI_INT, rank, 1, all, &requests[0]);
                MPI_Recv_init(&in[1], 1, MPI_INT, rank, 2, all, &requests[1]);
                MPI_Startall(2, requests);
            } else {
                MPI_Irecv(&in[0], 1, MPI_INT, rank, 1, all, &requests[0]);
                MPI_Irecv(&in[1], 1, MPI_INT, rank, 2, all, &requests[1]);
            }
            MPI_Send(out, 2, MPI_INT, rank, 1, all);
            MPI_Send(out, 1, MPI_INT, rank, 2, all);
            int code = MPI_SUCCESS;
            statuses[0].MPI_ERROR = statuses[1].MPI_ERROR = MPI_ERR_OTHER;
            if (tested) {
                for (flag = 0; !flag && code == MPI_SUCCESS;) code = MPI_Testall(2, requests, &flag, statuses);
            } else {
                code = MPI_Waitall(2, requests, statuses);
            }
            CHECK(class_of(code) == MPI_ERR_IN_STATUS);
            CHECK(class_of(statuses[0].MPI_ERROR) == MPI_ERR_TRUNCATE);
            CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS || class_of(statuses[1].MPI_ERROR) == MPI_ERR_PENDING);
            if (statuses[1].MPI_ERROR == MPI_SUCCESS) CHECK(in[1] == 5);
            for (int i = 0; i < 2; i++) {
                if (!persistent) {
                    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
                    CHECK(requests[i] == MPI_REQUEST_NULL);
                    continue;
                }
                CHECK(requests[i] != MPI_REQUEST_NULL);
                MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
                MPI_Start(&requests[i]);
                MPI_Send(&out[1], 1, MPI_INT, rank, i + 1, all);
                CHECK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE) == MPI_SUCCESS && in[i] == 6);
                MPI_Request_free(&requests[i]);
            }
        }
    }
}

static void error_field_stays(void) {
    MPI_Status status;
    MPI_Request request;
    int in = -1, out = 3, flag = 0;
    status.MPI_ERROR = 77;
    MPI_Sendrecv(&out, 1, MPI_INT, next_rank(), 1, &in, 1, MPI_INT, previous_rank(), 1, all, &status);
    CHECK(status.MPI_ERROR == 77);
    MPI_Isend(&out, 1, MPI_INT, next_rank(), 1, all, &request);
    MPI_Probe(previous_rank(), 1, all, &status);
    CHECK(status.MPI_ERROR == 77);
    MPI_Recv(&in, 1, MPI_INT, previous_rank(), 1, all, &status);
    CHECK(status.MPI_ERROR == 77);
    MPI_Wait(&request, &status);
    CHECK(status.MPI_ERROR == 77);
    MPI_Iprobe(MPI_PROC_NULL, 0, all, &flag, &status);
    CHECK(flag && status.MPI_ERROR == 77);
}

/* Where all goes well, the error fields of several statuses stay as well. */
static void error_fields_stay(void) {
    for (int way = 0; way < 4; way++) {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        int in = -1, out = 3, flag = 0, count = 0, indices[2];
        MPI_Irecv(&in, 1, MPI_INT, rank, 1, all, &requests[0]);
        MPI_Isend(&out, 1, MPI_INT, rank, 1, all, &requests[1]);
        statuses[0].MPI_ERROR = statuses[1].MPI_ERROR = 77;
        if (way == 0) MPI_Waitall(2, requests, statuses);
        if (way == 1) while (!flag) MPI_Testall(2, requests, &flag, statuses);
        if (way == 2) MPI_Waitsome(2, requests, &count, indices, statuses);
        if (way == 3) while (count == 0) MPI_Testsome(2, requests, &count, indices, statuses);
        CHECK(statuses[0].MPI_ERROR == 77 && statuses[1].MPI_ERROR == 77);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

static void cancelled_sends(void) {
    static int large[65536];
    MPI_Request request;
    MPI_Status status;
    int cell = 42, flag = -1;
    for (int way = 0; way < 3; way++) {
        if (way == 0) MPI_Issend(&cell, 1, MPI_INT, rank, 3, all, &request);
        if (way == 1) MPI_Issend(large, LENGTH(large), MPI_INT, rank, 3, all, &request);
        if (way == 2) MPI_Issend(&cell, 1, MPI_INT, next_rank(), 3, all, &request);
        if (way == 0) MPI_Test(&request, &flag, &status);
        CHECK(request != MPI_REQUEST_NULL);
        CHECK(MPI_Cancel(&request) == MPI_SUCCESS);
        CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag);
        MPI_Barrier(all);
        MPI_Iprobe(MPI_ANY_SOURCE, 3, all, &flag, &status);
        CHECK(!flag);
        MPI_Barrier(all);
    }
}

static void cancelled_receives(void) {
    MPI_Request request;
    MPI_Status status;
    int in = -1, out = 4, flag = -1;
    MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, all, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag && request == MPI_REQUEST_NULL);
    MPI_Recv_init(&in, 1, MPI_INT, MPI_ANY_SOURCE, 6, all, &request);
    for (int round = 0; round < 2; round++) {
        MPI_Start(&request);
        MPI_Cancel(&request);
        for (flag = 0; !flag;) MPI_Test(&request, &flag, &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag && request != MPI_REQUEST_NULL);
        in = -1;
        MPI_Start(&request);
        MPI_Send(&out, 1, MPI_INT, rank, 6, all);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(!flag && in == 4);
    }
    MPI_Request_free(&request);
    MPI_Status_set_cancelled(&status, 1);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag);
}

static int queried, freed, free_result;
static int on_query(void *extra, MPI_Status *status) {
    (void)extra;
    queried++;
    MPI_Status_set_elements(status, MPI_INT, 3);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}
static int on_free(void *extra) {
    (void)extra;
    freed++;
    return free_result;
}
static int on_cancel(void *extra, int complete) {
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}
static void errors_of_generalized_requests(void) {
    MPI_Request request;
    MPI_Status status;
    int count = -1, flag = 0;
    queried = freed = free_result = 0;
    MPI_Grequest_start(on_query, on_free, NULL, NULL, &request);
    MPI_Grequest_complete(request);
    CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(queried == 1 && freed == 1 && count == 3);
    free_result = MPI_ERR_OTHER;
    MPI_Grequest_start(on_query, on_free, on_cancel, NULL, &request);
    MPI_Grequest_complete(request);
    CHECK(class_of(MPI_Wait(&request, &status)) == MPI_ERR_OTHER && freed == 2);
    MPI_Grequest_start(on_query, on_free, on_cancel, NULL, &request);
    MPI_Test(&request, &flag, &status);
    CHECK(!flag);
    MPI_Grequest_complete(request);
    CHECK(class_of(MPI_Test(&request, &flag, &status)) == MPI_ERR_OTHER && freed == 3);
}

/* A message that ends inside of a structure; numbers too large for an int. */
static void counts_of_elements(void) {
    int lengths[] = {1, 1, 1}, count = -1, elements = -1;
    MPI_Aint places[] = {0, 8, 16};
    MPI_Datatype parts[] = {MPI_INT, MPI_DOUBLE, MPI_INT}, pair, raw, sent;
    MPI_Type_create_struct(2, lengths, places, parts, &raw);
    MPI_Type_create_resized(raw, 0, 16, &pair);
    MPI_Type_create_struct(3, lengths, places, parts, &sent);
    MPI_Type_commit(&pair);
    MPI_Type_commit(&sent);
    char out[64] = "", in[160] = "";
    MPI_Status status;
    MPI_Sendrecv(out, 1, sent, next_rank(), 1, in, 10, pair, previous_rank(), 1, all, &status);
    MPI_Get_count(&status, pair, &count);
    MPI_Get_elements(&status, pair, &elements);
    CHECK(count == MPI_UNDEFINED && elements == 3);
    MPI_Sendrecv(out, 5, MPI_BYTE, next_rank(), 1, in, 10, MPI_BYTE, previous_rank(), 1, all, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    MPI_Get_elements(&status, MPI_DOUBLE, &elements);
    CHECK(count == MPI_UNDEFINED && elements == MPI_UNDEFINED);
    MPI_Type_free(&pair);
    MPI_Type_free(&raw);
    MPI_Type_free(&sent);

    MPI_Datatype huge;
    MPI_Count wide = -1;
    MPI_Type_contiguous(INT_MAX, MPI_INT, &huge);
    MPI_Type_commit(&huge);
    MPI_Type_size(huge, &count);
    MPI_Type_size_c(huge, &wide);
    CHECK(count == MPI_UNDEFINED && wide == 4LL * INT_MAX);
    MPI_Status_set_elements_c(&status, huge, 2LL * INT_MAX);
    MPI_Get_count(&status, huge, &count);
    MPI_Get_elements(&status, huge, &elements);
    MPI_Get_elements_c(&status, huge, &wide);
    CHECK(count == 2 && elements == MPI_UNDEFINED && wide == 2LL * INT_MAX);
    MPI_Status_set_elements_c(&status, MPI_BYTE, 1LL << 33);
    MPI_Get_count(&status, MPI_BYTE, &count);
    MPI_Get_count_c(&status, MPI_BYTE, &wide);
    CHECK(count == MPI_UNDEFINED && wide == 1LL << 33);
    MPI_Type_free(&huge);
}

static void elements_of_pair_types(void) {
    struct { double value; int index; } out = {1.5, 2}, in = {0, 0};
    MPI_Status status;
    int count = -1, elements = -1;
    MPI_Sendrecv(&out, 1, MPI_DOUBLE_INT, next_rank(), 1, &in, 1, MPI_DOUBLE_INT, previous_rank(), 1,
                 all, &status);
    MPI_Get_count(&status, MPI_DOUBLE_INT, &count);
    MPI_Get_elements(&status, MPI_DOUBLE_INT, &elements);
    CHECK(count == 1 && elements == 2 && in.value == 1.5 && in.index == 2);
}

static void buffered_and_persistent(void) {
    char space[1000 + 3 * MPI_BSEND_OVERHEAD];
    int out = 0, in = -1, length = -1;
    void *back = NULL;
    MPI_Request request;
    MPI_Buffer_attach(space, sizeof space);
    MPI_Bsend_init(&out, 1, MPI_INT, next_rank(), 8, all, &request);
    for (int round = 0; round < 3; round++) {
        out = 10 * rank + round;
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        out = -5;
        MPI_Recv(&in, 1, MPI_INT, previous_rank(), 8, all, MPI_STATUS_IGNORE);
        CHECK(in == 10 * previous_rank() + round);
    }
    MPI_Request_free(&request);
    MPI_Buffer_detach(&back, &length);
    CHECK(back == space && length == sizeof space);
}

/* Longer than what a library has room for inside; of a type with gaps. */
static void large_replacements(void) {
    enum { COUNT = 20000 };
    static double data[2 * COUNT];
    MPI_Datatype second;
    MPI_Request request;
    MPI_Status status;
    MPI_Type_vector(COUNT, 1, 2, MPI_DOUBLE, &second);
    MPI_Type_commit(&second);
    for (int way = 0; way < 4; way++) {
        int gaps = way % 2, count = gaps ? 1 : COUNT, got = -1, bad = 0;
        MPI_Datatype type = gaps ? second : MPI_DOUBLE;
        for (int i = 0; i < 2 * COUNT; i++) data[i] = 1e6 * rank + i;
        if (way < 2) {
            MPI_Sendrecv_replace(data, count, type, next_rank(), way, previous_rank(), way, all, &status);
        } else {
            MPI_Isendrecv_replace(data, count, type, next_rank(), way, previous_rank(), way, all, &request);
            MPI_Wait(&request, &status);
        }
        MPI_Get_count(&status, type, &got);
        CHECK(got == count && status.MPI_SOURCE == previous_rank());
        for (int i = 0; i < 2 * COUNT; i++) {
            int moved = gaps ? i % 2 == 0 : i < COUNT;
            bad += data[i] != 1e6 * (moved ? previous_rank() : rank) + i;
        }
        CHECK(bad == 0);
    }
    MPI_Type_free(&second);
}

/* Buffers that grow by themselves, of the rank and of a communicator. */
static void automatic_buffers(void) {
    void *back = NULL;
    int length = -1, out = rank, in = -1;
    MPI_Comm comm;
    MPI_Comm_dup(all, &comm);
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    CHECK(MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0) == MPI_SUCCESS);
    for (int i = 0; i < 2; i++) {
        MPI_Comm used = i ? comm : all;
        MPI_Bsend(&out, 1, MPI_INT, next_rank(), 12, used);
        MPI_Recv(&in, 1, MPI_INT, previous_rank(), 12, used, MPI_STATUS_IGNORE);
        CHECK(in == previous_rank());
    }
    MPI_Comm_flush_buffer(comm);
    MPI_Comm_detach_buffer(comm, &back, &length);
    CHECK(back == MPI_BUFFER_AUTOMATIC);
    back = NULL;
    MPI_Buffer_detach(&back, &length);
    CHECK(back == MPI_BUFFER_AUTOMATIC);
    MPI_Comm_free(&comm);
}

static void synchronous_and_matched(void) {
    enum { PARTS = 3 };
    MPI_Request requests[PARTS];
    MPI_Message messages[PARTS];
    MPI_Status status;
    int out[PARTS], in[PARTS];
    for (int i = 0; i < PARTS; i++) {
        out[i] = 10 * rank + i;
        MPI_Issend(&out[i], 1, MPI_INT, next_rank(), 11, all, &requests[i]);
    }
    for (int i = 0; i < PARTS; i++) MPI_Mprobe(MPI_ANY_SOURCE, 11, all, &messages[i], &status);
    for (int i = PARTS - 1; i >= 0; i--) {
        MPI_Mrecv(&in[i], 1, MPI_INT, &messages[i], &status);
        CHECK(status.MPI_SOURCE == previous_rank() && in[i] == 10 * previous_rank() + i);
    }
    MPI_Waitall(PARTS, requests, MPI_STATUSES_IGNORE);
}

static void from_anybody_with_any_tag(void) {
    int out[12], in[13], count = -1;
    MPI_Status status;
    MPI_Request request;
    for (int i = 0; i < 12; i++) out[i] = 100 * rank + i;
    for (int early = 0; early < 2; early++) {
        for (int i = 0; i < 13; i++) in[i] = -1;
        if (early) MPI_Irecv(in, 13, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, all, &request);
        MPI_Barrier(all);
        MPI_Send(out, 12, MPI_INT, next_rank(), 20, all);
        if (early) MPI_Wait(&request, &status);
        else MPI_Recv(in, 13, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, all, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK(status.MPI_SOURCE == previous_rank() && status.MPI_TAG == 20 && count == 12);
        for (int i = 0; i < 12; i++) CHECK(in[i] == 100 * previous_rank() + i);
        CHECK(in[12] == -1);
        MPI_Barrier(all);
    }
}

/* A receive that nobody waits for any more: it takes its message all the same. */
static void freed_receives(void) {
    static int in[2];
    MPI_Request request;
    in[0] = in[1] = -1;
    MPI_Irecv(&in[0], 1, MPI_INT, previous_rank(), 9, all, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
    MPI_Barrier(all);
    int out[] = {10 * rank, 10 * rank + 1};
    MPI_Send(&out[0], 1, MPI_INT, next_rank(), 9, all);
    MPI_Send(&out[1], 1, MPI_INT, next_rank(), 9, all);
    MPI_Recv(&in[1], 1, MPI_INT, previous_rank(), 9, all, MPI_STATUS_IGNORE);
    CHECK(in[0] == 10 * previous_rank() && in[1] == 10 * previous_rank() + 1);
}

/* To look at several requests without completing them. */
static void looks_at_requests(void) {
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status, statuses[3];
    int in[] = {-1, -1}, out = 3, flag = -1, index = -1, count = -1, indices[3];
    MPI_Irecv(&in[0], 1, MPI_INT, rank, 1, all, &requests[1]);
    MPI_Irecv(&in[1], 1, MPI_INT, rank, 2, all, &requests[2]);
    MPI_Request_get_status_any(3, requests, &index, &flag, &status);
    CHECK(!flag);
    MPI_Send(&out, 1, MPI_INT, rank, 2, all);
    for (flag = 0; !flag;) MPI_Request_get_status_any(3, requests, &index, &flag, &status);
    CHECK(index == 2 && status.MPI_TAG == 2);
    MPI_Request_get_status_some(3, requests, &count, indices, statuses);
    CHECK(count == 1 && indices[0] == 2 && statuses[0].MPI_TAG == 2);
    MPI_Request_get_status_all(3, requests, &flag, statuses);
    CHECK(!flag && requests[1] != MPI_REQUEST_NULL && requests[2] != MPI_REQUEST_NULL);
    MPI_Send(&out, 1, MPI_INT, rank, 1, all);
    for (flag = 0; !flag;) MPI_Request_get_status_all(3, requests, &flag, statuses);
    CHECK(statuses[1].MPI_TAG == 1 && statuses[2].MPI_TAG == 2 && requests[2] != MPI_REQUEST_NULL);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    CHECK(in[0] == 3 && in[1] == 3);
}

/* ---------------------------------------------------------------- Datatypes */

/* The integers that so many of a type mean, of an array that counts from 0, are these. */
static void packs(MPI_Datatype type, int times, const int *expected, int count) {
    int from[256], packed[256], into[256], position = 0, bytes = -1;
    for (int i = 0; i < 256; i++) {
        from[i] = i;
        packed[i] = into[i] = -1;
    }
    MPI_Type_commit(&type);
    MPI_Type_size(type, &bytes);
    CHECK(bytes * times == count * (int)sizeof(int));
    MPI_Pack(from, times, type, packed, sizeof packed, &position, MPI_COMM_SELF);
    CHECK(position == count * (int)sizeof(int));
    for (int i = 0; i < count; i++) CHECK(packed[i] == expected[i]);
    MPI_Sendrecv(from, times, type, rank, 0, into, 256, MPI_INT, rank, 0, all, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) CHECK(into[i] == expected[i]);
}

static void extents_that_overlap(void) {
    for (int step = 1; step < 4; step++) {
        int expected[20];
        MPI_Datatype ten, type;
        MPI_Type_contiguous(10, MPI_INT, &ten);
        MPI_Type_create_resized(ten, 0, step * sizeof(int), &type);
        for (int i = 0; i < 20; i++) expected[i] = i / 10 * step + i % 10;
        packs(type, 2, expected, 20);
        MPI_Type_free(&ten);
        MPI_Type_free(&type);
    }
}

static void strides_of_zero(void) {
    int one = 1, zero = 0, ones[] = {1, 1}, expected[] = {0, 0, 0, 3};
    MPI_Aint places[] = {0, 12};
    MPI_Datatype parts[2], type;
    MPI_Type_vector(3, 1, 0, MPI_INT, &parts[0]);
    MPI_Type_indexed(1, &one, &zero, MPI_INT, &parts[1]);
    MPI_Type_create_struct(2, ones, places, parts, &type);
    packs(type, 1, expected, 4);
    MPI_Type_free(&parts[0]);
    MPI_Type_free(&parts[1]);
    MPI_Type_free(&type);
}

static void indexed_types(void) {
    MPI_Datatype type, single;
    int lengths[] = {1, 2, 1, 3}, places[] = {2, 3, 3, 5}, expected[] = {2, 3, 4, 3, 5, 6, 7};
    MPI_Type_indexed(4, lengths, places, MPI_INT, &type);
    packs(type, 1, expected, 7);
    MPI_Type_free(&type);
    int many[] = {1, 1, 1, 2, 2, 4, 2, 4, 6, 6, 1, 7}, at[] = {0, 2, 4, 12, 16, 28, 33, 36, 44, 56, 69, 75};
    int list[64], count = 0;
    for (int i = 0; i < LENGTH(many); i++) for (int k = 0; k < many[i]; k++) list[count++] = at[i] + k;
    MPI_Type_contiguous(1, MPI_INT, &single);
    MPI_Type_indexed(LENGTH(many), many, at, single, &type);
    packs(type, 1, list, count);
    MPI_Type_free(&type);
    MPI_Type_free(&single);
    int empty_first[] = {0, 0, 10, 0}, begin[] = {0, 3, 15, 200}, ten[10];
    for (int i = 0; i < 10; i++) ten[i] = 15 + i;
    MPI_Type_indexed(4, empty_first, begin, MPI_INT, &type);
    packs(type, 1, ten, 10);
    MPI_Type_free(&type);
}

/* A part of an array, as structures of structures: what lies apart stays in its order. */
static void nested_structures(void) {
    int ones[] = {1, 1}, lengths[] = {2, 1}, expected[] = {1, 2, 5, 3, 4, 6};
    MPI_Aint places[] = {4, 20}, rows[] = {0, 0};
    MPI_Datatype parts[] = {MPI_INT, MPI_INT}, row, outer[2], type;
    MPI_Type_create_struct(2, lengths, places, parts, &row);
    MPI_Aint second[] = {12, 24};
    MPI_Type_create_struct(2, lengths, second, parts, &outer[1]);
    outer[0] = row;
    MPI_Type_create_struct(2, ones, rows, outer, &type);
    packs(type, 1, expected, 6);
    MPI_Type_free(&row);
    MPI_Type_free(&outer[1]);
    MPI_Type_free(&type);
}

static void parts_of_arrays(void) {
    int sizes[] = {3, 4, 5}, subsizes[] = {2, 2, 3}, starts[] = {1, 1, 2}, expected[24], count;
    for (int fortran = 0; fortran < 2; fortran++) {
        MPI_Datatype type;
        MPI_Aint lower = -1, extent = -1;
        MPI_Type_create_subarray(3, sizes, subsizes, starts, fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C,
                                 MPI_INT, &type);
        MPI_Type_get_extent(type, &lower, &extent);
        CHECK(lower == 0 && extent == 60 * (MPI_Aint)sizeof(int));
        count = 0;
        for (int copy = 0; copy < 2; copy++) {
            for (int a = 0; a < subsizes[fortran ? 2 : 0]; a++) {
                for (int b = 0; b < subsizes[1]; b++) {
                    for (int c = 0; c < subsizes[fortran ? 0 : 2]; c++) {
                        int i = fortran ? starts[0] + c : starts[0] + a, j = starts[1] + b;
                        int k = fortran ? starts[2] + a : starts[2] + c;
                        expected[count++] = 60 * copy + (fortran ? i + 3 * (j + 4 * k) : (i * 4 + j) * 5 + k);
                    }
                }
            }
        }
        packs(type, 2, expected, count);
        MPI_Type_free(&type);
    }
}

/* An array that is dealt out: each element is one rank's, and so accumulated once. */
static void arrays_dealt_out(void) {
    int sizes[] = {6, 8}, args[] = {2, MPI_DISTRIBUTE_DFLT_DARG}, grid[] = {size, 1};
    int kinds[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, bytes = -1, sum = -1;
    MPI_Datatype type;
    MPI_Aint lower = -1, extent = -1;
    MPI_Type_create_darray(size, rank, 2, sizes, kinds, args, grid, MPI_ORDER_C, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Type_size(type, &bytes);
    CHECK(lower == 0 && extent == 48 * (MPI_Aint)sizeof(int));
    MPI_Allreduce(&bytes, &sum, 1, MPI_INT, MPI_SUM, all);
    CHECK(sum == 48 * (int)sizeof(int));
    int integers = -1, addresses = -1, types = -1, combiner = -1;
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    CHECK(integers == 4 * 2 + 4 && addresses == 0 && types == 1 && combiner == MPI_COMBINER_DARRAY);
    int contents[12];
    MPI_Aint none[1];
    MPI_Datatype inner[1];
    MPI_Type_get_contents(type, 12, 0, 1, contents, none, inner);
    CHECK(contents[0] == size && contents[1] == rank && contents[2] == 2);
    CHECK(contents[3] == 6 && contents[4] == 8);
    CHECK(contents[5] == MPI_DISTRIBUTE_CYCLIC && contents[9] == size && contents[11] == MPI_ORDER_C);

    int *cells, from[48];
    MPI_Win win;
    MPI_Win_allocate(48 * sizeof(int), sizeof(int), MPI_INFO_NULL, all, &cells, &win);
    for (int i = 0; i < 48; i++) {
        cells[i] = 1000;
        from[i] = i;
    }
    MPI_Win_fence(0, win);
    MPI_Accumulate(from, 1, type, 0, 0, 1, type, MPI_SUM, win);
    MPI_Win_fence(0, win);
    int bad = 0;
    for (int i = 0; i < 48; i++) bad += cells[i] != (rank == 0 ? 1000 + i : 1000);
    CHECK(bad == 0);
    MPI_Win_free(&win);
    MPI_Type_free(&type);
}

static void envelopes(void) {
    MPI_Count sizes[] = {10, 10}, subsizes[] = {5, 5}, starts[] = {0, 2};
    int integers = -1, addresses = -1, types = -1, combiner = -1;
    MPI_Count wide[4] = {-1, -1, -1, -1};
    MPI_Datatype type;
    MPI_Type_create_subarray_c(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type);
    MPI_Type_commit(&type);
    CHECK(class_of(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner)) == MPI_ERR_TYPE);
    CHECK(MPI_Type_get_envelope_c(type, &wide[0], &wide[1], &wide[2], &wide[3], &combiner) == MPI_SUCCESS);
    CHECK(wide[0] == 2 && wide[1] == 0 && wide[2] == 6 && wide[3] == 1 && combiner == MPI_COMBINER_SUBARRAY);
    MPI_Type_free(&type);
    MPI_Count at_c[] = {8, 0, 40};
    MPI_Type_create_hindexed_block_c(3, 2, at_c, MPI_INT, &type);
    MPI_Type_get_envelope_c(type, &wide[0], &wide[1], &wide[2], &wide[3], &combiner);
    CHECK(wide[0] == 0 && wide[1] == 0 && wide[2] == 2 + 3 && wide[3] == 1);
    MPI_Type_free(&type);
    MPI_Type_create_resized_c(MPI_INT, 0, 12, &type);
    MPI_Type_get_envelope_c(type, &wide[0], &wide[1], &wide[2], &wide[3], &combiner);
    CHECK(wide[0] == 0 && wide[1] == 0 && wide[2] == 2 && wide[3] == 1 && combiner == MPI_COMBINER_RESIZED);
    CHECK(class_of(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner)) == MPI_ERR_TYPE);
    MPI_Type_free(&type);
    /* More room than there are contents, with garbage in it. */
    MPI_Aint at[] = {8, 0, 40}, places[8];
    int numbers[8];
    MPI_Datatype inner[8];
    MPI_Type_create_hindexed_block(3, 2, at, MPI_INT, &type);
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    CHECK(integers == 2 && addresses == 3 && types == 1 && combiner == MPI_COMBINER_HINDEXED_BLOCK);
    memset(inner, 0x5a, sizeof inner);
    memset(numbers, 0x5a, sizeof numbers);
    CHECK(MPI_Type_get_contents(type, 8, 8, 8, numbers, places, inner) == MPI_SUCCESS);
    CHECK(numbers[0] == 3 && numbers[1] == 2 && numbers[2] == 0x5a5a5a5a && inner[0] == MPI_INT);
    CHECK(places[0] == 8 && places[1] == 0 && places[2] == 40);
    MPI_Type_free(&type);
}

static void bounds(void) {
    MPI_Datatype pair, type, bytes, backward;
    MPI_Aint lower = -1, extent = -1;
    int ones[] = {1, 1}, lengths[] = {2, 1, 3};
    MPI_Aint inner[] = {0, 8}, outer[] = {0, 16, 26};
    MPI_Datatype parts[] = {MPI_DOUBLE, MPI_CHAR};
    MPI_Type_create_struct(2, ones, inner, parts, &pair);
    MPI_Datatype all_parts[] = {MPI_FLOAT, pair, MPI_CHAR};
    MPI_Type_create_struct(3, lengths, outer, all_parts, &type);
    MPI_Type_get_extent(type, &lower, &extent);
    CHECK(lower == 0 && extent == 32);
    MPI_Type_free(&pair);
    MPI_Type_free(&type);
    /* An extent below nothing. */
    MPI_Type_contiguous(4, MPI_BYTE, &bytes);
    MPI_Type_create_resized(bytes, 6, -9, &backward);
    MPI_Type_contiguous(3, backward, &type);
    MPI_Type_get_extent(type, &lower, &extent);
    CHECK(lower == -12 && extent == 9);
    MPI_Type_get_true_extent(type, &lower, &extent);
    CHECK(lower == -18 && extent == 22);
    MPI_Type_free(&bytes);
    MPI_Type_free(&backward);
    MPI_Type_free(&type);
    MPI_Type_contiguous(0, MPI_INT, &type);
    MPI_Type_get_extent(type, &lower, &extent);
    CHECK(lower == 0 && extent == 0);
    MPI_Type_get_true_extent(type, &lower, &extent);
    CHECK(lower == 0 && extent == 0);
    MPI_Type_free(&type);
}

static void true_extents(void) {
    int ones[] = {1, 1}, at[] = {0, 2}, one = 1, expected[] = {1, 3};
    MPI_Aint lower = -1, extent = -1, four = 4;
    MPI_Datatype raw, resized, shifted;
    MPI_Type_indexed(2, ones, at, MPI_INT, &raw);
    MPI_Type_create_resized(raw, 4, 12, &resized);
    MPI_Type_get_true_extent(resized, &lower, &extent);
    CHECK(lower == 0 && extent == 12);
    MPI_Type_get_extent(resized, &lower, &extent);
    CHECK(lower == 4 && extent == 12);
    MPI_Type_create_hindexed(1, &one, &four, resized, &shifted);
    MPI_Type_get_true_extent(shifted, &lower, &extent);
    CHECK(lower == 4 && extent == 12);
    packs(shifted, 1, expected, 2);
    MPI_Type_free(&raw);
    MPI_Type_free(&resized);
    MPI_Type_free(&shifted);
}

/* Structures of C and their types have the same extent. */
static void alignment_of_structures(void) {
#define TRY(c_type, mpi_type) \
    do { \
        struct made { char first; c_type second; char third; }; \
        int lengths[] = {1, 1, 1}; \
        MPI_Aint places[] = {offsetof(struct made, first), offsetof(struct made, second), \
                             offsetof(struct made, third)}; \
        MPI_Datatype parts[] = {MPI_CHAR, mpi_type, MPI_CHAR}, type, copy; \
        MPI_Aint lower = -1, extent = -1; \
        MPI_Type_dup(mpi_type, &copy); \
        for (int way = 0; way < 2; way++) { \
            parts[1] = way ? copy : mpi_type; \
            MPI_Type_create_struct(3, lengths, places, parts, &type); \
            MPI_Type_get_extent(type, &lower, &extent); \
            CHECK(lower == 0 && extent == sizeof(struct made)); \
            MPI_Type_free(&type); \
        } \
        MPI_Type_free(&copy); \
    } while (0)
    TRY(float _Complex, MPI_C_FLOAT_COMPLEX);
    TRY(double _Complex, MPI_C_DOUBLE_COMPLEX);
    TRY(long double, MPI_LONG_DOUBLE);
    TRY(short, MPI_SHORT);
    TRY(int64_t, MPI_INT64_T);
#undef TRY
}

static void external_representation(void) {
    struct record { char name[10]; uint64_t number; } __attribute__((packed));
    int lengths[] = {10, 1};
    MPI_Aint places[] = {0, 10}, position = 0, length = -1;
    MPI_Datatype parts[] = {MPI_CHAR, MPI_UINT64_T}, raw, type;
    MPI_Type_create_struct(2, lengths, places, parts, &raw);
    MPI_Type_create_resized(raw, 0, sizeof(struct record), &type);
    MPI_Type_commit(&type);
    struct record out[5], in[5];
    unsigned char packed[5 * 18];
    memset(in, 0, sizeof in);
    memset(out, 0, sizeof out);
    for (int i = 0; i < 5; i++) {
        snprintf(out[i].name, 10, "name %d", i);
        out[i].number = 0x0102030405060708 + i;
    }
    MPI_Pack_external_size("external32", 5, type, &length);
    CHECK(length == sizeof packed);
    MPI_Pack_external("external32", out, 5, type, packed, sizeof packed, &position);
    CHECK(position == sizeof packed && memcmp(packed + 18, "name 1", 7) == 0);
    for (int i = 0; i < 8; i++) CHECK(packed[10 + i] == i + 1);
    position = 0;
    MPI_Unpack_external("external32", packed, sizeof packed, &position, in, 5, type);
    CHECK(position == sizeof packed && memcmp(in, out, sizeof in) == 0);
    MPI_Type_free(&raw);
    MPI_Type_free(&type);

    double numbers[] = {1, -2.5}, back[2];
    unsigned char expected[] = {0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0xc0, 4, 0, 0, 0, 0, 0, 0}, bytes[16];
    position = 0;
    MPI_Pack_external("external32", numbers, 2, MPI_DOUBLE, bytes, 16, &position);
    CHECK(memcmp(bytes, expected, 16) == 0);
    position = 0;
    MPI_Unpack_external("external32", bytes, 16, &position, back, 2, MPI_DOUBLE);
    CHECK(back[0] == 1 && back[1] == -2.5);
}

/* A long has four bytes there. */
static void external_longs(void) {
    long numbers[] = {1, -2, 3}, back[] = {0, 0, 0};
    unsigned char bytes[12], expected[] = {0, 0, 0, 1, 255, 255, 255, 254, 0, 0, 0, 3};
    MPI_Aint length = -1, position = 0;
    MPI_Pack_external_size("external32", 3, MPI_LONG, &length);
    CHECK(length == 12);
    MPI_Pack_external("external32", numbers, 3, MPI_LONG, bytes, 12, &position);
    CHECK(position == 12 && memcmp(bytes, expected, 12) == 0);
    position = 0;
    MPI_Unpack_external("external32", bytes, 12, &position, back, 3, MPI_LONG);
    CHECK(back[0] == 1 && back[1] == -2 && back[2] == 3);
}

static void pairs_of_value_and_index(void) {
    MPI_Datatype type = MPI_INT;
    CHECK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &type) == MPI_SUCCESS && type == MPI_DOUBLE_INT);
    CHECK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_UINT64_T, &type) == MPI_SUCCESS);
    if (type == MPI_DATATYPE_NULL) return;
    struct { double value; uint64_t index; } out = {rank % 2, rank}, in = {-1, 99};
    int integers = -1, addresses = -1, types = -1, combiner = -1;
    CHECK(MPI_Allreduce(&out, &in, 1, type, MPI_MINLOC, all) == MPI_SUCCESS);
    CHECK(in.value == 0 && in.index == 0);
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    CHECK(combiner == MPI_COMBINER_VALUE_INDEX);
}

/* Types by the digits and the range that they have to have; their numbers in Fortran. */
static void types_by_precision(void) {
    struct { int digits, range, bytes; } asked[] = {
        {6, 37, 4}, {MPI_UNDEFINED, 37, 4}, {6, 38, 8}, {7, 10, 8}, {15, 307, 8},
    };
    for (int i = 0; i < LENGTH(asked); i++) {
        MPI_Datatype real, pair;
        int bytes = -1, combiner = -1, integers = -1, addresses = -1, types = -1, contents[2] = {-1, -1};
        MPI_Aint none[1];
        MPI_Datatype inner[1];
        CHECK(MPI_Type_create_f90_real(asked[i].digits, asked[i].range, &real) == MPI_SUCCESS);
        CHECK(MPI_Type_create_f90_complex(asked[i].digits, asked[i].range, &pair) == MPI_SUCCESS);
        MPI_Type_size(real, &bytes);
        CHECK(bytes == asked[i].bytes);
        MPI_Type_size(pair, &bytes);
        CHECK(bytes == 2 * asked[i].bytes);
        MPI_Type_get_envelope(real, &integers, &addresses, &types, &combiner);
        CHECK(integers == 2 && addresses == 0 && types == 0 && combiner == MPI_COMBINER_F90_REAL);
        MPI_Type_get_contents(real, 2, 0, 0, contents, none, inner);
        CHECK(contents[0] == asked[i].digits && contents[1] == asked[i].range);
        CHECK(MPI_Type_fromint(MPI_Type_toint(real)) == real && MPI_Type_fromint(MPI_Type_toint(pair)) == pair);
        double one = 1, sum = -1;
        if (asked[i].bytes == 8) {
            CHECK(MPI_Allreduce(&one, &sum, 1, real, MPI_SUM, all) == MPI_SUCCESS && sum == size);
        }
    }
}

static void addresses(void) {
    int cell;
    MPI_Aint bottom = -1, address = 0;
    CHECK(MPI_Get_address(MPI_BOTTOM, &bottom) == MPI_SUCCESS && bottom == 0);
    MPI_Get_address(&cell, &address);
    CHECK((int *)address == &cell && MPI_Aint_diff(MPI_Aint_add(address, 16), address) == 16);
}

/* ---------------------------------------------------------------- Memory of other ranks */

static void accumulate_derived(void) {
    enum { CELLS = 12 };
    double *cells, from[CELLS];
    MPI_Win win;
    MPI_Datatype second, single;
    MPI_Win_allocate(CELLS * sizeof(double), sizeof(double), MPI_INFO_NULL, all, &cells, &win);
    MPI_Type_vector(4, 1, 2, MPI_DOUBLE, &second);
    MPI_Type_contiguous(1, MPI_DOUBLE, &single);
    MPI_Type_commit(&second);
    MPI_Type_commit(&single);
    for (int i = 0; i < CELLS; i++) {
        cells[i] = 5;
        from[i] = 10;
    }
    MPI_Win_fence(0, win);
    MPI_Accumulate(from, 4, MPI_DOUBLE, next_rank(), 1, 1, second, MPI_SUM, win);
    MPI_Accumulate(from, 1, single, next_rank(), 10, 1, single, MPI_SUM, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    for (int i = 0; i < CELLS; i++) CHECK(cells[i] == ((i % 2 == 1 && i < 8) || i == 10 ? 15 : 5));
    MPI_Barrier(all);
    double got[CELLS];
    for (int i = 0; i < CELLS; i++) got[i] = -1;
    MPI_Win_lock_all(0, win);
    MPI_Get_accumulate(from, 1, second, got, 1, second, next_rank(), 1, 1, second, MPI_PROD, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(all);
    for (int i = 0; i < 7; i++) CHECK(got[i] == (i % 2 ? -1 : 15));
    MPI_Win_fence(0, win);
    for (int i = 0; i < CELLS; i++) CHECK(cells[i] == (i % 2 == 1 && i < 8 ? 150 : i == 10 ? 15 : 5));
    MPI_Type_free(&second);
    MPI_Type_free(&single);
    MPI_Win_free(&win);
}

static void epochs_with_nobody(void) {
    int cell = 0, flag = 0;
    MPI_Win win;
    MPI_Win_create(&cell, sizeof cell, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK(MPI_Win_start(MPI_GROUP_EMPTY, 0, win) == MPI_SUCCESS);
    CHECK(MPI_Win_complete(win) == MPI_SUCCESS);
    CHECK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win) == MPI_SUCCESS);
    CHECK(MPI_Win_wait(win) == MPI_SUCCESS);
    CHECK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win) == MPI_SUCCESS);
    CHECK(MPI_Win_test(win, &flag) == MPI_SUCCESS && flag);
    MPI_Win_free(&win);
}

static void attached_memory(void) {
    static int low[64], high[64];
    int got = -1;
    MPI_Win win;
    MPI_Aint places[MOST], own;
    MPI_Win_create_dynamic(MPI_INFO_NULL, all, &win);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 64; i++) low[i] = high[i] = 1000 * rank + i;
        MPI_Win_attach(win, high, sizeof high);
        MPI_Win_attach(win, low, sizeof low);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
        MPI_Get_address(&high[3], &own);
        MPI_Get(&got, 1, MPI_INT, rank, own, 1, MPI_INT, win);
        MPI_Win_unlock(rank, win);
        CHECK(got == 1000 * rank + 3);
        MPI_Get_address(&low[32], &own);
        MPI_Allgather(&own, 1, MPI_AINT, places, 1, MPI_AINT, all);
        MPI_Win_lock_all(0, win);
        MPI_Get(&got, 1, MPI_INT, next_rank(), MPI_Aint_add(places[next_rank()], 31 * sizeof(int)), 1,
                MPI_INT, win);
        MPI_Win_flush(next_rank(), win);
        CHECK(got == 1000 * next_rank() + 63);
        int put = 7 + rank;
        MPI_Put(&put, 1, MPI_INT, next_rank(), MPI_Aint_diff(places[next_rank()], 32 * sizeof(int)), 1,
                MPI_INT, win);
        MPI_Win_unlock_all(win);
        MPI_Barrier(all);
        CHECK(low[0] == 7 + previous_rank());
        CHECK(MPI_Win_detach(win, round % 2 ? low : high) == MPI_SUCCESS);
        CHECK(MPI_Win_detach(win, round % 2 ? high : low) == MPI_SUCCESS);
        MPI_Barrier(all);
    }
    MPI_Win_free(&win);
}

static void requests_of_derived_types(void) {
    enum { PART = 20 };
    double *cells, out[2 * PART + 1], in[4 * PART];
    int lengths[] = {PART, PART}, apart[] = {0, PART + 1}, beside[] = {0, PART}, to = next_rank();
    MPI_Win win;
    MPI_Datatype sparse, dense, second;
    MPI_Request request;
    MPI_Type_indexed(2, lengths, apart, MPI_DOUBLE, &sparse);
    MPI_Type_indexed(2, lengths, beside, MPI_DOUBLE, &dense);
    MPI_Type_vector(PART, 1, 2, MPI_DOUBLE, &second);
    MPI_Type_commit(&sparse);
    MPI_Type_commit(&dense);
    MPI_Type_commit(&second);
    MPI_Win_allocate(2 * PART * sizeof(double), sizeof(double), MPI_INFO_NULL, all, &cells, &win);
    for (int i = 0; i < 2 * PART + 1; i++) out[i] = 100 * rank + i;
    MPI_Win_lock_all(0, win);
    MPI_Rput(out, 1, sparse, to, 0, 1, dense, win, &request);
    finish_request(&request);
    MPI_Win_flush(to, win);
    MPI_Barrier(all);
    for (int way = 0; way < 3; way++) {
        for (int i = 0; i < 4 * PART; i++) in[i] = -1;
        MPI_Datatype origin = way == 1 ? MPI_DOUBLE : second, target = way == 2 ? MPI_DOUBLE : second;
        MPI_Rget(in, way == 1 ? PART : 1, origin, to, 0, way == 2 ? PART : 1, target, win, &request);
        finish_request(&request);
        for (int i = 0; i < PART; i++) {
            int place = way == 2 ? i : 2 * i, element = place < PART ? place : place + 1;
            CHECK(in[way == 1 ? i : 2 * i] == 100 * rank + element);
        }
    }
    MPI_Win_unlock_all(win);
    /* The epoch has ended; its requests are still there. */
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win);
    MPI_Rget(in, 1, MPI_DOUBLE, to, 1, 1, MPI_DOUBLE, win, &request);
    MPI_Win_unlock(to, win);
    CHECK(in[0] == 100 * rank + 1);
    finish_request(&request);
    MPI_Type_free(&sparse);
    MPI_Type_free(&dense);
    MPI_Type_free(&second);
    MPI_Win_free(&win);
}

/* To read without an operand while others add. */
static void atomic_reads(void) {
    long *cell, one = 1, got = -1, before = 0;
    MPI_Win win;
    MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, all, &cell, &win);
    *cell = 0;
    MPI_Barrier(all);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 20; i++) {
        MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win);
        if (i % 2) MPI_Fetch_and_op(NULL, &got, MPI_LONG, 0, 0, MPI_NO_OP, win);
        else MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, &got, 1, MPI_LONG, 0, 0, 1, MPI_LONG,
                                MPI_NO_OP, win);
        MPI_Win_flush(0, win);
        CHECK(got > before && got <= 20 * size);
        before = got;
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(all);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(&got, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
    MPI_Win_unlock(0, win);
    CHECK(got == 20 * size);
    MPI_Win_free(&win);
}

static void atomics_out_of_line(void) {
    char *bytes;
    int one = 1, got = -1, compare = 5, swap = 9;
    MPI_Win win;
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, all, &bytes, &win);
    memset(bytes, 0, 64);
    memcpy(bytes + 17, &compare, sizeof compare);
    MPI_Barrier(all);
    MPI_Win_lock_all(0, win);
    MPI_Fetch_and_op(&one, &got, MPI_INT, 0, 3, MPI_SUM, win);
    MPI_Win_flush(0, win);
    CHECK(got >= 0 && got < size);
    MPI_Compare_and_swap(&swap, &compare, &got, MPI_INT, next_rank(), 17, win);
    MPI_Win_unlock_all(win);
    CHECK(got == 5);
    MPI_Barrier(all);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    memcpy(&got, bytes + 17, sizeof got);
    CHECK(got == 9);
    memcpy(&got, bytes + 3, sizeof got);
    CHECK(got == (rank == 0 ? size : 0));
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
}

static void parts_of_shared_windows(void) {
    MPI_Comm node;
    MPI_Win win;
    int me, many, unit = -1;
    char *own = NULL, *got = NULL;
    MPI_Aint length = -1;
    MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &me);
    MPI_Comm_size(node, &many);
    int first = many > 1 ? 1 : 0;
    MPI_Win_allocate_shared(me < first ? 0 : 64, 4, MPI_INFO_NULL, node, &own, &win);
    MPI_Win_lock_all(0, win);
    if (me == first) memset(own, 0x21, 64);
    MPI_Win_sync(win);
    MPI_Barrier(node);
    MPI_Win_sync(win);
    CHECK(MPI_Win_shared_query(win, MPI_PROC_NULL, &length, &unit, &got) == MPI_SUCCESS);
    CHECK(length == 64 && unit == 4 && got != NULL && got[0] == 0x21 && got[63] == 0x21);
    if (me == first) CHECK(got == own);
    MPI_Barrier(node);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&node);
}

static void wrong_ranks_of_windows(void) {
    int cell = 0, value = 1;
    MPI_Win win;
    MPI_Win_create(&cell, sizeof cell, sizeof cell, MPI_INFO_NULL, all, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK(class_of(MPI_Win_lock(MPI_LOCK_SHARED, -2000, 0, win)) == MPI_ERR_RANK);
    MPI_Win_fence(0, win);
    CHECK(class_of(MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, win)) == MPI_ERR_RANK);
    CHECK(MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win) == MPI_SUCCESS);
    MPI_Win_fence(0, win);
    CHECK(cell == 0);
    MPI_Win_free(&win);
}

static void attributes_of_windows(void) {
    double *cells;
    MPI_Win win;
    MPI_Info info;
    int flag, *number, *flavour, *model;
    MPI_Aint *length;
    void *base;
    MPI_Info_create(&info);
    MPI_Info_set(info, "same_disp_unit", "true");
    MPI_Info_set(info, "no_locks", "true");
    MPI_Info_set(info, "accumulate_ops", "same_op");
    CHECK(MPI_Win_allocate(10 * sizeof(double), sizeof(double), info, all, &cells, &win) == MPI_SUCCESS);
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag);
    CHECK(flag && base == cells);
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &length, &flag);
    CHECK(flag && *length == 10 * sizeof(double));
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &number, &flag);
    CHECK(flag && *number == sizeof(double));
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavour, &flag);
    CHECK(flag && *flavour == MPI_WIN_FLAVOR_ALLOCATE);
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &flag);
    CHECK(flag && (*model == MPI_WIN_UNIFIED || *model == MPI_WIN_SEPARATE));
    MPI_Win_free(&win);
    MPI_Info_free(&info);
    MPI_Win_create_dynamic(MPI_INFO_NULL, all, &win);
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag);
    CHECK(flag && base == MPI_BOTTOM);
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &length, &flag);
    CHECK(flag && *length == 0);
    MPI_Win_free(&win);
    MPI_Comm_get_attr(all, MPI_TAG_UB, &number, &flag);
    CHECK(flag && *number >= 32767);
}

/* Only rank 0 has memory there. */
static void windows_without_memory(void) {
    int cell = 5, one = 1, got = -1;
    MPI_Win win;
    MPI_Win_create(rank == 0 ? &cell : NULL, rank == 0 ? sizeof cell : 0, 1, MPI_INFO_NULL, all, &win);
    MPI_Win_lock(MPI_LOCK_SHARED, size - 1, 0, win);
    MPI_Win_flush_all(win);
    MPI_Win_flush(size - 1, win);
    MPI_Win_unlock(size - 1, win);
    MPI_Win_lock_all(0, win);
    MPI_Win_flush_local_all(win);
    MPI_Put(&one, 0, MPI_INT, size - 1, 0, 0, MPI_INT, win);
    MPI_Get_accumulate(NULL, 0, MPI_INT, NULL, 0, MPI_INT, size - 1, 0, 0, MPI_INT, MPI_SUM, win);
    MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(all);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_unlock(0, win);
    CHECK(got == 5 + size);
    MPI_Win_free(&win);
}

/* Types without elements. */
static void accumulate_of_nothing(void) {
    int *cells, one = 1, got = -1;
    MPI_Win win;
    MPI_Datatype empty;
    MPI_Request request;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, all, &cells, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    cells[0] = 7;
    MPI_Barrier(all);
    MPI_Win_lock_all(0, win);
    CHECK(MPI_Put(&one, 1, empty, next_rank(), 0, 1, empty, win) == MPI_SUCCESS);
    CHECK(MPI_Get(&got, 1, empty, next_rank(), 0, 1, empty, win) == MPI_SUCCESS);
    CHECK(MPI_Accumulate(&one, 1, empty, next_rank(), 0, 1, empty, MPI_REPLACE, win) == MPI_SUCCESS);
    CHECK(MPI_Accumulate(&one, 1, empty, next_rank(), 0, 1, empty, MPI_SUM, win) == MPI_SUCCESS);
    CHECK(MPI_Accumulate(&one, 0, MPI_INT, next_rank(), 0, 1, empty, MPI_SUM, win) == MPI_SUCCESS);
    CHECK(MPI_Get_accumulate(&one, 1, empty, &got, 1, empty, next_rank(), 0, 1, empty, MPI_SUM, win) == MPI_SUCCESS);
    CHECK(MPI_Raccumulate(&one, 1, empty, next_rank(), 0, 1, empty, MPI_SUM, win, &request) == MPI_SUCCESS);
    finish_request(&request);
    MPI_Win_unlock_all(win);
    MPI_Barrier(all);
    CHECK(cells[0] == 7 && got == -1);
    MPI_Win_free(&win);
    MPI_Type_free(&empty);
}

static void post_and_test(void) {
    int cells[2] = {-1, -1}, out = 10 * rank, flag = 0, from = previous_rank(), to = next_rank();
    MPI_Win win;
    MPI_Group whole, before, after;
    MPI_Win_create(cells, sizeof cells, sizeof(int), MPI_INFO_NULL, all, &win);
    MPI_Win_get_group(win, &whole);
    MPI_Group_incl(whole, 1, &from, &before);
    MPI_Group_incl(whole, 1, &to, &after);
    for (int round = 0; round < 3; round++) {
        out = 10 * rank + round;
        MPI_Win_post(before, 0, win);
        MPI_Win_test(win, &flag);
        CHECK(!flag || size > 1);
        MPI_Win_start(after, 0, win);
        MPI_Put(&out, 1, MPI_INT, to, round % 2, 1, MPI_INT, win);
        MPI_Win_complete(win);
        while (!flag) MPI_Win_test(win, &flag);
        CHECK(cells[round % 2] == 10 * from + round);
        flag = 0;
        MPI_Barrier(all);
    }
    MPI_Group_free(&whole);
    MPI_Group_free(&before);
    MPI_Group_free(&after);
    MPI_Win_free(&win);
}

/* ---------------------------------------------------------------- Ranks that move */

static void objects_after_moves(void) {
    MPI_Info info;
    MPI_Datatype type = padded_type();
    MPI_Op op;
    MPI_Group group;
    MPI_Request request;
    char key[16], value[16], got[16];
    int cell = -1, out;
    MPI_Info_create(&info);
    MPI_Op_create(least, 1, &op);
    MPI_Comm_group(all, &group);
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof key, "key %d", i);
        snprintf(value, sizeof value, "value %d %d", i, rank);
        MPI_Info_set(info, key, value);
    }
    MPI_Recv_init(&cell, 1, MPI_INT, previous_rank(), 31, all, &request);
    for (int round = 0; round < 5; round++) {
        int length = sizeof got, flag = 0, me = -1, which = round * 4;
        stir();
        snprintf(key, sizeof key, "key %d", which);
        snprintf(value, sizeof value, "value %d %d", which, rank);
        MPI_Info_get_string(info, key, &length, got, &flag);
        CHECK(flag && strcmp(got, value) == 0);
        struct padded own = {size - rank, rank}, result;
        MPI_Allreduce(&own, &result, 1, type, op, all);
        CHECK(result.first == 1 && result.second == size - 1);
        MPI_Group_rank(group, &me);
        CHECK(me == rank);
        out = 10 * rank + round;
        MPI_Start(&request);
        stir();
        MPI_Send(&out, 1, MPI_INT, next_rank(), 31, all);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(cell == 10 * previous_rank() + round);
    }
    MPI_Request_free(&request);
    MPI_Group_free(&group);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    MPI_Info_free(&info);
}

/* Ranks wait in all kinds of calls, the later ones for the earlier ones, and may be moved meanwhile. */
static void moved_while_waiting(void) {
    for (int round = 0; round < 6; round++) {
        int in[3] = {-1, -1, -1}, *place = in + round % 3, token = -1, shares[MOST], share = -1;
        MPI_Status status;
        MPI_Message message;
        MPI_Request request;
        if (rank > 0) {
            if (round % 3 == 0) MPI_Recv(place, 1, MPI_INT, rank - 1, 1, all, &status);
            if (round % 3 == 1) {
                MPI_Mprobe(rank - 1, 1, all, &message, &status);
                MPI_Mrecv(place, 1, MPI_INT, &message, &status);
            }
            if (round % 3 == 2) {
                MPI_Irecv(place, 1, MPI_INT, rank - 1, 1, all, &request);
                MPI_Wait(&request, &status);
            }
            CHECK(*place == 10 * (rank - 1) + round && status.MPI_SOURCE == rank - 1);
        }
        work();
        token = 10 * rank + round;
        if (rank + 1 < size) MPI_Ssend(&token, 1, MPI_INT, rank + 1, 1, all);
        for (int i = 0; i < size; i++) shares[i] = 100 * round + i;
        MPI_Scatter(shares, 1, MPI_INT, &share, 1, MPI_INT, round % size, all);
        CHECK(share == 100 * round + rank);
    }
}

/* Large messages while ranks come and go. */
static void large_messages_between_moves(void) {
    enum { COUNT = 30000 };
    static double out[COUNT], in[COUNT];
    MPI_Request requests[2];
    MPI_Datatype type;
    MPI_Type_contiguous(COUNT / 10, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < COUNT; i++) {
            out[i] = 1e6 * rank + 10 * round + i;
            in[i] = -1;
        }
        if (round % 2) MPI_Irecv(in, 10, type, previous_rank(), round, all, &requests[0]);
        stir();
        if (round % 3) MPI_Issend(out, 10, type, next_rank(), round, all, &requests[1]);
        else MPI_Isend(out, COUNT, MPI_DOUBLE, next_rank(), round, all, &requests[1]);
        if (round % 2 == 0) MPI_Irecv(in, COUNT, MPI_DOUBLE, previous_rank(), round, all, &requests[0]);
        work();
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        int bad = 0;
        for (int i = 0; i < COUNT; i++) bad += in[i] != 1e6 * previous_rank() + 10 * round + i;
        CHECK(bad == 0);
    }
    MPI_Type_free(&type);
}

/* What a function keeps, of the rank and of its thread, is where it was. */
static int *kept(int kind) {
    static int here;
    static _Thread_local int there;
    return kind ? &there : &here;
}
static void variables_after_moves(void) {
    int *places[] = {kept(0), kept(1)};
    for (int round = 0; round < 5; round++) {
        for (int kind = 0; kind < 2; kind++) {
            *kept(kind) = 10 * rank + round;
        }
        stir();
        for (int kind = 0; kind < 2; kind++) {
            CHECK(*kept(kind) == 10 * rank + round && places[kind] == kept(kind));
        }
    }
}

/* ---------------------------------------------------------------- The end */

static int called_at_the_end;
static int at_the_end(MPI_Comm comm, int key, void *value, void *extra) {
    (void)value, (void)extra;
    int finalized = 1, me = -1, flag = 0;
    void *got = NULL;
    MPI_Finalized(&finalized);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    CHECK(!finalized && me == rank && comm == MPI_COMM_SELF);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &got, &flag);
    CHECK(flag && *(int *)got >= 32767);
    (void)key;
    called_at_the_end++;
    return MPI_SUCCESS;
}
static void attributes_at_the_end(void) {
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Comm_free_keyval(&key);
}

#define CASE(name) {#name, name}
static const struct { const char *name; void (*run)(void); } cases[] = {
    CASE(ireduce_scatter_in_place),
    CASE(ireduce_in_place_large),
    CASE(reduce_local_in_place),
    CASE(ireduce_scatter_block_bounds),
    CASE(order_of_operation),
    CASE(scan_of_intercommunicator),
    CASE(alltoallw_in_place),
    CASE(alltoallw_from_bottom),
    CASE(alltoallw_of_nothing),
    CASE(alltoallv_in_place_with_zeros),
    CASE(arguments_of_the_root),
    CASE(scatter_to_other_counts),
    CASE(allgatherv_of_other_types),
    CASE(in_place_ignores_the_rest),
    CASE(all_alone),
    CASE(reduce_padded),
    CASE(type_in_an_operation),
    CASE(operations_of_fixed_widths),
    CASE(reduce_of_nothing),
    CASE(both_sides_of_intercommunicator),
    CASE(persistent_reads_at_the_start),
    CASE(many_run_at_once),
    CASE(sums_and_places),
    CASE(both_neighbours_the_same),
    CASE(grids_without_dimensions),
    CASE(grids_of_grids),
    CASE(copies_of_graphs),
    CASE(ties_of_split),
    CASE(split_without_the_first),
    CASE(keys_of_split_type),
    CASE(split_type_of_intercommunicator),
    CASE(groups_apart),
    CASE(many_at_once),
    CASE(parts_of_self),
    CASE(order_of_merging),
    CASE(hints_of_a_copy),
    CASE(sessions_and_groups),
    CASE(made_of_groups),
    CASE(attributes_of_a_copy),
    CASE(attributes_of_named_types),
    CASE(lengths_of_hints),
    CASE(texts_of_errors),
    CASE(many_error_classes),
    CASE(no_error_handler),
    CASE(handlers_in_use),
    CASE(messages_of_nobody),
    CASE(requests_that_do_not_run),
    CASE(some_of_the_requests),
    CASE(errors_in_statuses),
    CASE(error_field_stays),
    CASE(error_fields_stay),
    CASE(cancelled_sends),
    CASE(cancelled_receives),
    CASE(errors_of_generalized_requests),
    CASE(counts_of_elements),
    CASE(elements_of_pair_types),
    CASE(buffered_and_persistent),
    CASE(large_replacements),
    CASE(automatic_buffers),
    CASE(synchronous_and_matched),
    CASE(from_anybody_with_any_tag),
    CASE(freed_receives),
    CASE(looks_at_requests),
    CASE(extents_that_overlap),
    CASE(strides_of_zero),
    CASE(indexed_types),
    CASE(nested_structures),
    CASE(parts_of_arrays),
    CASE(arrays_dealt_out),
    CASE(envelopes),
    CASE(bounds),
    CASE(true_extents),
    CASE(alignment_of_structures),
    CASE(external_representation),
    CASE(external_longs),
    CASE(pairs_of_value_and_index),
    CASE(types_by_precision),
    CASE(addresses),
    CASE(accumulate_derived),
    CASE(epochs_with_nobody),
    CASE(attached_memory),
    CASE(requests_of_derived_types),
    CASE(atomic_reads),
    CASE(atomics_out_of_line),
    CASE(parts_of_shared_windows),
    CASE(wrong_ranks_of_windows),
    CASE(attributes_of_windows),
    CASE(windows_without_memory),
    CASE(accumulate_of_nothing),
    CASE(post_and_test),
    CASE(objects_after_moves),
    CASE(moved_while_waiting),
    CASE(large_messages_between_moves),
    CASE(variables_after_moves),
    CASE(attributes_at_the_end),
};

/* Runs the cases that are named, or all. */
int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int asked = 0;
    for (int i = 0; i < LENGTH(cases); i++) {
        int wanted = argc < 2;
        for (int k = 1; k < argc; k++) wanted |= strcmp(argv[k], cases[i].name) == 0;
        if (!wanted) continue;
        asked++;
        stir();
        cases[i].run();
    }
    CHECK(asked > 0);
    int last = argc < 2 || strcmp(argv[argc - 1], "attributes_at_the_end") == 0;
    MPI_Comm_free(&all);
    int status = finish("public_issues");
    return status || called_at_the_end != last || wrong;
}
