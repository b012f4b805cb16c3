/* Collective operations, blocking, immediate and persistent, against results that each rank computes for
 * itself, on several communicators. */
#include "check.h"

#include <complex.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define ROUNDS 3
#define MOST 16
#define COUNT 5

enum { BLOCKING, IMMEDIATE, PERSISTENT, FORMS };

/* Of the communicator under test. */
static MPI_Comm comm;
static int me, all, form, seed;

static void complete(MPI_Request *request) {
    int flag = 0;
    work();
    MPI_Test(request, &flag, MPI_STATUS_IGNORE);
    if (!flag) MPI_Wait(request, MPI_STATUS_IGNORE);
}

#ifdef NO_PERSISTENT
#define START_PERSISTENT(name, ...) MPI_##name(__VA_ARGS__, comm)
#else
#define START_PERSISTENT(name, ...) \
    do { \
        MPI_Request request; \
        MPI_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &request); \
        MPI_Start(&request); \
        complete(&request); \
        MPI_Request_free(&request); \
    } while (0)
#endif

/* An operation in the form under test. */
#define RUN(name, immediate, ...) \
    do { \
        if (form == BLOCKING) MPI_##name(__VA_ARGS__, comm); \
        if (form == IMMEDIATE) { \
            MPI_Request request; \
            MPI_##immediate(__VA_ARGS__, comm, &request); \
            complete(&request); \
        } \
        if (form == PERSISTENT) START_PERSISTENT(name, __VA_ARGS__); \
    } while (0)

/* What a rank gives, at a place. */
static int value(int from, int at) { return 1000 * (from + 1) + 10 * seed + at; }
static void fill(int *out, int count) {
    for (int i = 0; i < count; i++) out[i] = value(me, i);
}
static void clear(int *in, int count) {
    for (int i = 0; i < count; i++) in[i] = -1;
}

static void rooted(int root) {
    int out[MOST * COUNT], in[MOST * COUNT];
    fill(out, COUNT);
    if (me != root) clear(out, COUNT);
    RUN(Bcast, Ibcast, out, COUNT, MPI_INT, root);
    for (int i = 0; i < COUNT; i++) CHECK(out[i] == value(root, i));

    fill(out, COUNT);
    clear(in, MOST * COUNT);
    RUN(Gather, Igather, out, COUNT, MPI_INT, in, COUNT, MPI_INT, root);
    for (int i = 0; i < MOST * COUNT; i++) {
        CHECK(in[i] == (me == root && i < all * COUNT ? value(i / COUNT, i % COUNT) : -1));
    }
    clear(in, MOST * COUNT);
    fill(in + COUNT * me, COUNT);
    if (me == root) RUN(Gather, Igather, MPI_IN_PLACE, 0, MPI_INT, in, COUNT, MPI_INT, root);
    else RUN(Gather, Igather, out, COUNT, MPI_INT, NULL, 0, MPI_INT, root);
    for (int i = 0; me == root && i < all * COUNT; i++) CHECK(in[i] == value(i / COUNT, i % COUNT));

    fill(out, all * COUNT);
    clear(in, COUNT);
    RUN(Scatter, Iscatter, out, COUNT, MPI_INT, in, COUNT, MPI_INT, root);
    for (int i = 0; i < COUNT; i++) CHECK(in[i] == value(root, me * COUNT + i));
    clear(in, COUNT);
    if (me == root) RUN(Scatter, Iscatter, out, COUNT, MPI_INT, MPI_IN_PLACE, 0, MPI_INT, root);
    else RUN(Scatter, Iscatter, NULL, 0, MPI_INT, in, COUNT, MPI_INT, root);
    for (int i = 0; me != root && i < COUNT; i++) CHECK(in[i] == value(root, me * COUNT + i));

    /* Of each rank another length, the last first. */
    int counts[MOST], places[MOST], total = 0;
    for (int of = all - 1; of >= 0; of--) {
        counts[of] = of % 3;
        places[of] = total;
        total += counts[of] + 1;
    }
    fill(out, COUNT);
    clear(in, MOST * COUNT);
    RUN(Gatherv, Igatherv, out, counts[me], MPI_INT, in, counts, places, MPI_INT, root);
    for (int of = 0; me == root && of < all; of++) {
        for (int i = 0; i < counts[of]; i++) CHECK(in[places[of] + i] == value(of, i));
        CHECK(in[places[of] + counts[of]] == -1);
    }
    fill(out, MOST * COUNT);
    clear(in, COUNT);
    RUN(Scatterv, Iscatterv, out, counts, places, MPI_INT, in, counts[me], MPI_INT, root);
    for (int i = 0; i < COUNT; i++) {
        CHECK(in[i] == (i < counts[me] ? value(root, places[me] + i) : -1));
    }

    fill(out, COUNT);
    clear(in, COUNT);
    RUN(Reduce, Ireduce, out, in, COUNT, MPI_INT, MPI_SUM, root);
    for (int i = 0; i < COUNT; i++) {
        int expected = 0;
        for (int of = 0; of < all; of++) expected += value(of, i);
        CHECK(in[i] == (me == root ? expected : -1));
    }
    fill(in, COUNT);
    if (me == root) RUN(Reduce, Ireduce, MPI_IN_PLACE, in, COUNT, MPI_INT, MPI_MAX, root);
    else RUN(Reduce, Ireduce, in, NULL, COUNT, MPI_INT, MPI_MAX, root);
    for (int i = 0; me == root && i < COUNT; i++) CHECK(in[i] == value(all - 1, i));
}

static void among_all(void) {
    int out[MOST * COUNT], in[MOST * COUNT];
    fill(out, COUNT);
    clear(in, MOST * COUNT);
    RUN(Allgather, Iallgather, out, COUNT, MPI_INT, in, COUNT, MPI_INT);
    for (int i = 0; i < MOST * COUNT; i++) {
        CHECK(in[i] == (i < all * COUNT ? value(i / COUNT, i % COUNT) : -1));
    }
    clear(in, MOST * COUNT);
    fill(in + me * COUNT, COUNT);
    RUN(Allgather, Iallgather, MPI_IN_PLACE, 0, MPI_INT, in, COUNT, MPI_INT);
    for (int i = 0; i < all * COUNT; i++) CHECK(in[i] == value(i / COUNT, i % COUNT));

    int counts[MOST], places[MOST];
    for (int of = 0; of < all; of++) {
        counts[of] = (of + seed) % COUNT;
        places[of] = (all - 1 - of) * COUNT;
    }
    for (int in_place = 0; in_place < 2; in_place++) {
        clear(in, MOST * COUNT);
        fill(out, COUNT);
        if (in_place) fill(in + places[me], counts[me]);
        if (in_place) RUN(Allgatherv, Iallgatherv, MPI_IN_PLACE, 0, MPI_INT, in, counts, places, MPI_INT);
        else RUN(Allgatherv, Iallgatherv, out, counts[me], MPI_INT, in, counts, places, MPI_INT);
        for (int of = 0; of < all; of++) for (int i = 0; i < COUNT; i++) {
            CHECK(in[places[of] + i] == (i < counts[of] ? value(of, i) : -1));
        }
    }

    fill(out, all * COUNT);
    clear(in, MOST * COUNT);
    RUN(Alltoall, Ialltoall, out, COUNT, MPI_INT, in, COUNT, MPI_INT);
    for (int i = 0; i < all * COUNT; i++) CHECK(in[i] == value(i / COUNT, me * COUNT + i % COUNT));
    fill(in, all * COUNT);
    RUN(Alltoall, Ialltoall, MPI_IN_PLACE, 0, MPI_INT, in, COUNT, MPI_INT);
    for (int i = 0; i < all * COUNT; i++) CHECK(in[i] == value(i / COUNT, me * COUNT + i % COUNT));

    /* Rank a sends (a + b) % 4 to rank b. */
    int sends[MOST], send_places[MOST];
    MPI_Datatype types[MOST];
    for (int of = 0; of < all; of++) {
        sends[of] = counts[of] = (me + of) % 4;
        send_places[of] = places[of] = of * COUNT;
        types[of] = MPI_INT;
    }
    fill(out, all * COUNT);
    clear(in, MOST * COUNT);
    RUN(Alltoallv, Ialltoallv, out, sends, send_places, MPI_INT, in, counts, places, MPI_INT);
    for (int i = 0; i < all * COUNT; i++) {
        int of = i / COUNT, at = i % COUNT;
        CHECK(in[i] == (at < counts[of] ? value(of, me * COUNT + at) : -1));
    }
    for (int of = 0; of < all; of++) {
        send_places[of] *= sizeof(int);
        places[of] *= sizeof(int);
    }
    clear(in, MOST * COUNT);
    RUN(Alltoallw, Ialltoallw, out, sends, send_places, types, in, counts, places, types);
    for (int i = 0; i < all * COUNT; i++) {
        int of = i / COUNT, at = i % COUNT;
        CHECK(in[i] == (at < counts[of] ? value(of, me * COUNT + at) : -1));
    }
    RUN(Allreduce, Iallreduce, out, in, 1, MPI_INT, MPI_MIN);
    CHECK(in[0] == value(0, 0));
}

static int sum_of(int first, int last, int at) {
    int sum = 0;
    for (int of = first; of < last; of++) sum += value(of, at);
    return sum;
}

static void reductions(void) {
    int out[MOST * COUNT], in[MOST * COUNT], counts[MOST], before = 0;
    fill(out, MOST * COUNT);
    clear(in, COUNT);
    RUN(Allreduce, Iallreduce, out, in, COUNT, MPI_INT, MPI_SUM);
    for (int i = 0; i < COUNT; i++) CHECK(in[i] == sum_of(0, all, i));
    fill(in, COUNT);
    RUN(Allreduce, Iallreduce, MPI_IN_PLACE, in, COUNT, MPI_INT, MPI_SUM);
    for (int i = 0; i < COUNT; i++) CHECK(in[i] == sum_of(0, all, i));

    clear(in, COUNT);
    RUN(Reduce_scatter_block, Ireduce_scatter_block, out, in, 2, MPI_INT, MPI_SUM);
    for (int i = 0; i < 2; i++) CHECK(in[i] == sum_of(0, all, 2 * me + i));
    fill(in, 2 * all);
    RUN(Reduce_scatter_block, Ireduce_scatter_block, MPI_IN_PLACE, in, 2, MPI_INT, MPI_SUM);
    for (int i = 0; i < 2; i++) CHECK(in[i] == sum_of(0, all, 2 * me + i));

    for (int of = 0; of < all; of++) counts[of] = of % 3;
    for (int of = 0; of < me; of++) before += counts[of];
    clear(in, COUNT);
    RUN(Reduce_scatter, Ireduce_scatter, out, in, counts, MPI_INT, MPI_SUM);
    for (int i = 0; i < COUNT; i++) {
        CHECK(in[i] == (i < counts[me] ? sum_of(0, all, before + i) : -1));
    }
    fill(in, MOST * COUNT);
    RUN(Reduce_scatter, Ireduce_scatter, MPI_IN_PLACE, in, counts, MPI_INT, MPI_SUM);
    for (int i = 0; i < counts[me]; i++) CHECK(in[i] == sum_of(0, all, before + i));

    RUN(Scan, Iscan, out, in, COUNT, MPI_INT, MPI_SUM);
    for (int i = 0; i < COUNT; i++) CHECK(in[i] == sum_of(0, me + 1, i));
    fill(in, COUNT);
    RUN(Scan, Iscan, MPI_IN_PLACE, in, COUNT, MPI_INT, MPI_SUM);
    for (int i = 0; i < COUNT; i++) CHECK(in[i] == sum_of(0, me + 1, i));
    clear(in, COUNT);
    RUN(Exscan, Iexscan, out, in, COUNT, MPI_INT, MPI_SUM);
    for (int i = 0; me > 0 && i < COUNT; i++) CHECK(in[i] == sum_of(0, me, i));
    fill(in, COUNT);
    RUN(Exscan, Iexscan, MPI_IN_PLACE, in, COUNT, MPI_INT, MPI_SUM);
    for (int i = 0; me > 0 && i < COUNT; i++) CHECK(in[i] == sum_of(0, me, i));
}

/* Multiplication of 2 x 2 matrices: not commutative; in unsigned numbers it is associative to the last bit. */
typedef struct { uint32_t a, b, c, d; } Matrix;
static Matrix product(Matrix x, Matrix y) {
    return (Matrix){x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c,
                    x.c * y.b + x.d * y.d};
}
static int calls;
static void multiply(void *in, void *inout, int *count, MPI_Datatype *type) {
    int size = 0;
    MPI_Type_size(*type, &size);
    CHECK(size == sizeof(Matrix));
    calls++;
    for (int i = 0; i < *count; i++) ((Matrix *)inout)[i] = product(((Matrix *)in)[i], ((Matrix *)inout)[i]);
}
static Matrix matrix(int of, int at) { return (Matrix){of + 2, at + 1, seed + 3, of * of + 5}; }
static int same(Matrix x, Matrix y) { return x.a == y.a && x.b == y.b && x.c == y.c && x.d == y.d; }

static void not_commutative(void) {
    static MPI_Datatype type = MPI_DATATYPE_NULL;
    static MPI_Op op;
    if (type == MPI_DATATYPE_NULL) {
        MPI_Type_contiguous(4, MPI_UINT32_T, &type);
        MPI_Type_commit(&type);
        MPI_Op_create(multiply, 0, &op);
    }
    int commutes = -1;
    MPI_Op_commutative(op, &commutes);
    CHECK(commutes == 0);
    Matrix out[3], in[3], expected[3], below[3];
    for (int i = 0; i < 3; i++) {
        out[i] = expected[i] = matrix(0, i);
        for (int of = 1; of < all; of++) {
            if (of == me) below[i] = expected[i];
            expected[i] = product(expected[i], matrix(of, i));
        }
        out[i] = matrix(me, i);
    }
    RUN(Allreduce, Iallreduce, out, in, 3, type, op);
    for (int i = 0; i < 3; i++) CHECK(same(in[i], expected[i]));
    RUN(Reduce, Ireduce, out, in, 3, type, op, all - 1);
    for (int i = 0; me == all - 1 && i < 3; i++) CHECK(same(in[i], expected[i]));
    RUN(Scan, Iscan, out, in, 3, type, op);
    for (int i = 0; i < 3; i++) CHECK(same(in[i], me == 0 ? out[i] : product(below[i], out[i])));
    RUN(Exscan, Iexscan, out, in, 3, type, op);
    for (int i = 0; me > 0 && i < 3; i++) CHECK(same(in[i], below[i]));
    Matrix local = out[1];
    MPI_Reduce_local(&out[0], &local, 1, type, op);
    CHECK(same(local, product(out[0], out[1])));
    CHECK(all == 1 || calls > 0);
}

/* All predefined operations of a type, with numbers that no order of additions changes. */
#define ARITHMETIC(type, datatype) \
    do { \
        type out = (type)(me % 5 + 1), in = 0, sum = 0, most = 1, least = 1, times = 1; \
        for (int of = 0; of < all; of++) { \
            type given = (type)(of % 5 + 1); \
            sum += given; \
            times *= (type)(of % 3 + 1); \
            if (given > most) most = given; \
        } \
        RUN(Allreduce, Iallreduce, &out, &in, 1, datatype, MPI_SUM); \
        CHECK(in == sum); \
        RUN(Allreduce, Iallreduce, &out, &in, 1, datatype, MPI_MAX); \
        CHECK(in == most); \
        RUN(Allreduce, Iallreduce, &out, &in, 1, datatype, MPI_MIN); \
        CHECK(in == least); \
        out = (type)(me % 3 + 1); \
        RUN(Allreduce, Iallreduce, &out, &in, 1, datatype, MPI_PROD); \
        CHECK(in == times); \
    } while (0)
#define LOGICAL(type, datatype) \
    do { \
        type out = (type)(me % 2), in = 5; \
        RUN(Allreduce, Iallreduce, &out, &in, 1, datatype, MPI_LAND); \
        CHECK(in == 0); \
        RUN(Allreduce, Iallreduce, &out, &in, 1, datatype, MPI_LOR); \
        CHECK(in == (all > 1)); \
        RUN(Allreduce, Iallreduce, &out, &in, 1, datatype, MPI_LXOR); \
        CHECK(in == all / 2 % 2); \
    } while (0)
#define BITS(type, datatype) \
    do { \
        type out = (type)(0x70 | me), in = 0, both = (type)0x7f, any = 0, odd = 0; \
        for (int of = 0; of < all; of++) { \
            both &= (type)(0x70 | of); \
            any |= (type)(0x70 | of); \
            odd ^= (type)(0x70 | of); \
        } \
        RUN(Allreduce, Iallreduce, &out, &in, 1, datatype, MPI_BAND); \
        CHECK(in == both); \
        RUN(Allreduce, Iallreduce, &out, &in, 1, datatype, MPI_BOR); \
        CHECK(in == any); \
        RUN(Allreduce, Iallreduce, &out, &in, 1, datatype, MPI_BXOR); \
        CHECK(in == odd); \
    } while (0)
#define PAIRS(type, datatype) \
    do { \
        struct { type value; int index; } out = {(type)((me * 7 + 3) % 4), 100 + me}, in, most, least; \
        most.value = least.value = 3; \
        most.index = least.index = 100; \
        for (int of = 1; of < all; of++) { \
            type given = (type)((of * 7 + 3) % 4); \
            if (given > most.value) most.value = given, most.index = 100 + of; \
            if (given < least.value) least.value = given, least.index = 100 + of; \
        } \
        RUN(Allreduce, Iallreduce, &out, &in, 1, datatype, MPI_MAXLOC); \
        CHECK(in.value == most.value && in.index == most.index); \
        RUN(Allreduce, Iallreduce, &out, &in, 1, datatype, MPI_MINLOC); \
        CHECK(in.value == least.value && in.index == least.index); \
        /* Several: what lies between them is not theirs. */ \
        struct { type value; int index; } two[2] = {{out.value, out.index}, {(type)me, -me}}, got[2]; \
        RUN(Allreduce, Iallreduce, two, got, 2, datatype, MPI_MAXLOC); \
        CHECK(got[0].value == most.value && got[0].index == most.index); \
        CHECK(got[1].value == (type)(all - 1) && got[1].index == 1 - all); \
        RUN(Scan, Iscan, two, got, 2, datatype, MPI_MINLOC); \
        CHECK(got[0].value <= two[0].value && got[1].value == 0 && got[1].index == 0); \
        got[1].value = -1; \
        RUN(Reduce, Ireduce, two, got, 2, datatype, MPI_MAXLOC, 0); \
        if (me == 0) CHECK(got[1].value == (type)(all - 1) && got[1].index == 1 - all); \
    } while (0)

static void operations(void) {
    ARITHMETIC(int, MPI_INT);
    ARITHMETIC(double, MPI_DOUBLE);
    ARITHMETIC(float, MPI_FLOAT);
    ARITHMETIC(long, MPI_LONG);
    ARITHMETIC(short, MPI_SHORT);
    ARITHMETIC(unsigned, MPI_UNSIGNED);
    ARITHMETIC(long double, MPI_LONG_DOUBLE);
    ARITHMETIC(int64_t, MPI_INT64_T);
    ARITHMETIC(uint16_t, MPI_UINT16_T);
    ARITHMETIC(unsigned long long, MPI_UNSIGNED_LONG_LONG);
    ARITHMETIC(MPI_Aint, MPI_AINT);
    ARITHMETIC(MPI_Count, MPI_COUNT);
    LOGICAL(int, MPI_INT);
    LOGICAL(long, MPI_LONG);
    LOGICAL(unsigned char, MPI_UNSIGNED_CHAR);
    LOGICAL(bool, MPI_C_BOOL);
    BITS(int, MPI_INT);
    BITS(unsigned char, MPI_BYTE);
    BITS(unsigned long, MPI_UNSIGNED_LONG);
    BITS(int8_t, MPI_INT8_T);
    PAIRS(int, MPI_2INT);
    PAIRS(float, MPI_FLOAT_INT);
    PAIRS(double, MPI_DOUBLE_INT);
    PAIRS(long, MPI_LONG_INT);
    PAIRS(short, MPI_SHORT_INT);
    PAIRS(long double, MPI_LONG_DOUBLE_INT);
    double complex out = me + 1 + 2 * I, in = 0, sum = 0;
    for (int of = 0; of < all; of++) sum += of + 1 + 2 * I;
    RUN(Allreduce, Iallreduce, &out, &in, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM);
    CHECK(in == sum);
}

/* Longer than what is sent at once. */
static void large(void) {
    enum { LONG = 30000 };
    double *out = malloc(LONG * sizeof *out), *in = malloc(LONG * sizeof *in);
    for (int i = 0; i < LONG; i++) out[i] = me + i, in[i] = -1;
    RUN(Allreduce, Iallreduce, out, in, LONG, MPI_DOUBLE, MPI_SUM);
    for (int i = 0; i < LONG; i += 77) CHECK(in[i] == all * (all - 1) / 2 + (double)all * i);
    for (int i = 0; i < LONG; i++) out[i] = me == all - 1 ? i : -1;
    RUN(Bcast, Ibcast, out, LONG, MPI_DOUBLE, all - 1);
    for (int i = 0; i < LONG; i += 77) CHECK(out[i] == i);
    int part = LONG / all;
    for (int i = 0; i < LONG; i++) out[i] = me * LONG + i;
    RUN(Alltoall, Ialltoall, out, part, MPI_DOUBLE, in, part, MPI_DOUBLE);
    for (int i = 0; i < part * all; i += 77) CHECK(in[i] == (double)(i / part) * LONG + me * part + i % part);
    free(out);
    free(in);
}

static void barriers(void) {
    if (form == BLOCKING) MPI_Barrier(comm);
    MPI_Request request;
    if (form == IMMEDIATE) {
        MPI_Ibarrier(comm, &request);
        complete(&request);
    }
#ifndef NO_PERSISTENT
    if (form == PERSISTENT) {
        MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
        for (int i = 0; i < 3; i++) {
            MPI_Start(&request);
            complete(&request);
        }
        MPI_Request_free(&request);
    }
#endif
}

#ifndef NO_PERSISTENT
/* Started again and again, with what is in the buffers by then. */
static void started_again(void) {
    int out = -1, in = -1;
    MPI_Request request;
    MPI_Allreduce_init(&out, &in, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    for (int i = 0; i < 5; i++) {
        out = i + me;
        MPI_Start(&request);
        complete(&request);
        CHECK(in == all * i + all * (all - 1) / 2);
    }
    MPI_Request_free(&request);
}
#endif

/* Many under way at once, waited for in another order. */
static void together(void) {
    int out[6], in[6];
    MPI_Request requests[8];
    for (int i = 0; i < 6; i++) {
        out[i] = me + i;
        in[i] = -1;
        MPI_Iallreduce(&out[i], &in[i], 1, MPI_INT, MPI_SUM, comm, &requests[5 - i]);
    }
    int token = me == 0 ? 5 : -1;
    MPI_Ibcast(&token, 1, MPI_INT, 0, comm, &requests[6]);
    MPI_Ibarrier(comm, &requests[7]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 6; i++) CHECK(in[i] == all * i + all * (all - 1) / 2);
    CHECK(token == 5);
}

/* Between the lower and the upper half of the ranks. */
static void between(MPI_Comm inter, int is_lower, int lower, int upper) {
    int mine = is_lower ? lower : upper, other = is_lower ? upper : lower, own = -1, remote = -1;
    MPI_Comm_rank(inter, &own);
    MPI_Comm_remote_size(inter, &remote);
    CHECK(remote == other && own < mine);
    comm = inter;
    int out[MOST], in[MOST], one = own + (is_lower ? 100 : 200), got = -1;
    /* Each half has the other's. */
    RUN(Allreduce, Iallreduce, &one, &got, 1, MPI_INT, MPI_SUM);
    CHECK(got == other * (is_lower ? 200 : 100) + other * (other - 1) / 2);
    clear(in, MOST);
    RUN(Allgather, Iallgather, &one, 1, MPI_INT, in, 1, MPI_INT);
    for (int i = 0; i < other; i++) CHECK(in[i] == (is_lower ? 200 : 100) + i);
    for (int i = 0; i < other; i++) out[i] = one * 10 + i;
    RUN(Alltoall, Ialltoall, out, 1, MPI_INT, in, 1, MPI_INT);
    for (int i = 0; i < other; i++) CHECK(in[i] == ((is_lower ? 200 : 100) + i) * 10 + own);
    /* From rank 1 of the lower half, and to it. */
    int root = is_lower ? (own == 1 ? MPI_ROOT : MPI_PROC_NULL) : 1;
    got = root == MPI_ROOT ? 77 : -1;
    RUN(Bcast, Ibcast, &got, 1, MPI_INT, root);
    CHECK(got == (is_lower ? (own == 1 ? 77 : -1) : 77));
    clear(in, MOST);
    RUN(Gather, Igather, &one, 1, MPI_INT, in, 1, MPI_INT, root);
    for (int i = 0; root == MPI_ROOT && i < other; i++) CHECK(in[i] == 200 + i);
    got = -1;
    RUN(Reduce, Ireduce, &one, &got, 1, MPI_INT, MPI_MAX, root);
    CHECK(got == (root == MPI_ROOT ? 200 + other - 1 : -1));
    barriers();
}

static void on(MPI_Comm which) {
    comm = which;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    for (form = 0; form < FORMS; form++) {
        barriers();
        rooted(seed % all);
        rooted(all - 1);
        among_all();
        reductions();
        not_commutative();
        operations();
        large();
    }
    together();
#ifndef NO_PERSISTENT
    started_again();
#endif
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Comm halves, reversed, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &halves);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    int lower = size / 2, is_lower = rank < lower;
    MPI_Comm local;
    MPI_Comm_split(MPI_COMM_WORLD, is_lower, rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, is_lower ? lower : 0, 5, &inter);
    for (seed = 0; seed < ROUNDS; seed++) {
        on(MPI_COMM_WORLD);
        on(halves);
        on(reversed);
        on(MPI_COMM_SELF);
        if (lower >= 2) for (form = 0; form < PERSISTENT; form++) between(inter, is_lower, lower, size - lower);
    }
    MPI_Comm_free(&halves);
    MPI_Comm_free(&reversed);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
    return finish("collectives");
}
