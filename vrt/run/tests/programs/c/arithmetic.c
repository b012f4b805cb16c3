/* Products and sums of numbers that a program gives: what cannot be counted is refused, what can is right. */
#include "check.h"

#include <limits.h>

static int class_of(int code) {
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

#define REFUSED(call, class) CHECK(class_of(call) == (class))

static const MPI_Count MANY = ((MPI_Count)1 << 61) + 1;
static double data[2] = {3, 4}, room[64];
static char packed[1024];

/* Counts whose bytes wrap to those of one element, in all that sends, receives, packs or accesses. */
static void counts(void) {
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request request;
    MPI_Status status;
    int next = next_rank(), previous = previous_rank();
    REFUSED(MPI_Send_c(data, MANY, MPI_DOUBLE, next, 0, comm), MPI_ERR_COUNT);
    REFUSED(MPI_Ssend_c(data, MANY, MPI_DOUBLE, next, 0, comm), MPI_ERR_COUNT);
    REFUSED(MPI_Bsend_c(data, MANY, MPI_DOUBLE, next, 0, comm), MPI_ERR_COUNT);
    REFUSED(MPI_Isend_c(data, MANY, MPI_DOUBLE, next, 0, comm, &request), MPI_ERR_COUNT);
    REFUSED(MPI_Send_init_c(data, MANY, MPI_DOUBLE, next, 0, comm, &request), MPI_ERR_COUNT);
    REFUSED(MPI_Recv_c(room, MANY, MPI_DOUBLE, previous, 0, comm, &status), MPI_ERR_COUNT);
    REFUSED(MPI_Irecv_c(room, MANY, MPI_DOUBLE, previous, 0, comm, &request), MPI_ERR_COUNT);
    REFUSED(MPI_Recv_init_c(room, MANY, MPI_DOUBLE, previous, 0, comm, &request), MPI_ERR_COUNT);
    REFUSED(MPI_Sendrecv_c(data, MANY, MPI_DOUBLE, next, 0, room, 1, MPI_DOUBLE, previous, 0, comm, &status),
            MPI_ERR_COUNT);
    REFUSED(MPI_Sendrecv_replace_c(room, MANY, MPI_DOUBLE, next, 0, previous, 0, comm, &status), MPI_ERR_COUNT);
    REFUSED(MPI_Bcast_c(room, MANY, MPI_DOUBLE, 0, comm), MPI_ERR_COUNT);
    REFUSED(MPI_Ibcast_c(room, MANY, MPI_DOUBLE, 0, comm, &request), MPI_ERR_COUNT);
    REFUSED(MPI_Allreduce_c(data, room, MANY, MPI_DOUBLE, MPI_SUM, comm), MPI_ERR_COUNT);
    REFUSED(MPI_Scan_c(data, room, MANY, MPI_DOUBLE, MPI_SUM, comm), MPI_ERR_COUNT);
    REFUSED(MPI_Alltoall_c(data, MANY, MPI_DOUBLE, room, MANY, MPI_DOUBLE, comm), MPI_ERR_COUNT);
    /* These are few enough for one rank, not for all. */
    MPI_Count part = (((MPI_Count)1 << 60) / size + 8) / 8;
    REFUSED(MPI_Allgather_c(MPI_IN_PLACE, 0, MPI_DOUBLE, room, part, MPI_DOUBLE, comm), MPI_ERR_COUNT);
    REFUSED(MPI_Alltoall_c(MPI_IN_PLACE, 0, MPI_DOUBLE, room, part, MPI_DOUBLE, comm), MPI_ERR_COUNT);
    REFUSED(MPI_Reduce_scatter_block_c(data, room, part, MPI_DOUBLE, MPI_SUM, comm), MPI_ERR_COUNT);
    MPI_Count parts[64], sum = 0;
    MPI_Aint places[64];
    for (int i = 0; i < size; i++) parts[i] = part, sum += part, places[i] = 0;
    REFUSED(MPI_Reduce_scatter_c(data, room, parts, MPI_DOUBLE, MPI_SUM, comm), MPI_ERR_COUNT);
    for (int i = 0; i < size; i++) parts[i] = 1, places[i] = LONG_MAX / 4;
    REFUSED(MPI_Allgatherv_c(data, 1, MPI_DOUBLE, room, parts, places, MPI_DOUBLE, comm), MPI_ERR_ARG);
    places[0] = LONG_MIN;
    REFUSED(MPI_Alltoallv_c(data, parts, places, MPI_DOUBLE, room, parts, places, MPI_DOUBLE, comm), MPI_ERR_ARG);

    MPI_Count bytes;
    int position = 0;
    MPI_Count at = 0;
    REFUSED(MPI_Pack_size_c(MANY, MPI_DOUBLE, comm, &bytes), MPI_ERR_COUNT);
    REFUSED(MPI_Pack_c(data, MANY, MPI_DOUBLE, packed, sizeof packed, &at, comm), MPI_ERR_COUNT);
    REFUSED(MPI_Unpack_c(packed, sizeof packed, &at, room, MANY, MPI_DOUBLE, comm), MPI_ERR_COUNT);
    REFUSED(MPI_Pack_external_size_c("external32", MANY, MPI_DOUBLE, &bytes), MPI_ERR_COUNT);
    REFUSED(MPI_Pack_external_c("external32", data, MANY, MPI_DOUBLE, packed, sizeof packed, &at), MPI_ERR_COUNT);
    REFUSED(MPI_Unpack_external_c("external32", packed, sizeof packed, &at, room, MANY, MPI_DOUBLE), MPI_ERR_COUNT);
    position = INT_MAX;
    REFUSED(MPI_Pack(data, 1, MPI_DOUBLE, packed, INT_MAX, &position, comm), MPI_ERR_TRUNCATE);

    /* What is counted in elements that a program has made. */
    MPI_Datatype long_type, longer;
    MPI_Type_contiguous_c((MPI_Count)1 << 50, MPI_DOUBLE, &long_type);
    MPI_Type_commit(&long_type);
    REFUSED(MPI_Send(data, INT_MAX, long_type, next, 0, comm), MPI_ERR_COUNT);
    REFUSED(MPI_Recv(room, INT_MAX, long_type, previous, 0, comm, &status), MPI_ERR_COUNT);
    REFUSED(MPI_Type_contiguous(INT_MAX, long_type, &longer), MPI_ERR_COUNT);
    REFUSED(MPI_Type_vector(2, 1, INT_MAX, long_type, &longer), MPI_ERR_COUNT);
    MPI_Type_free(&long_type);
}

static void windows(void) {
    MPI_Win win;
    double *memory;
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int i = 0; i < 8; i++) memory[i] = rank;
    /* A fence in which nothing was accessed is no epoch: any other kind may begin. */
    MPI_Win_fence(0, win);
    CHECK(MPI_Win_lock_all(0, win) == MPI_SUCCESS);
    int to = next_rank();
    double value = -1;
    REFUSED(MPI_Put_c(data, MANY, MPI_DOUBLE, to, 0, MANY, MPI_DOUBLE, win), MPI_ERR_COUNT);
    REFUSED(MPI_Get_c(room, MANY, MPI_DOUBLE, to, 0, MANY, MPI_DOUBLE, win), MPI_ERR_COUNT);
    REFUSED(MPI_Accumulate_c(data, MANY, MPI_DOUBLE, to, 0, MANY, MPI_DOUBLE, MPI_SUM, win), MPI_ERR_COUNT);
    /* 2^61 + 1 displacements of 8 bytes wrap to one. */
    REFUSED(MPI_Get(&value, 1, MPI_DOUBLE, to, (MPI_Aint)MANY, 1, MPI_DOUBLE, win), MPI_ERR_RMA_RANGE);
    REFUSED(MPI_Put(data, 1, MPI_DOUBLE, to, LONG_MAX, 1, MPI_DOUBLE, win), MPI_ERR_RMA_RANGE);
    REFUSED(MPI_Put(data, 1, MPI_DOUBLE, to, LONG_MIN, 1, MPI_DOUBLE, win), MPI_ERR_RMA_RANGE);
    double before;
    REFUSED(MPI_Fetch_and_op(data, &before, MPI_DOUBLE, to, (MPI_Aint)MANY, MPI_SUM, win), MPI_ERR_RMA_RANGE);
    CHECK(MPI_Get(&value, 1, MPI_DOUBLE, to, 1, 1, MPI_DOUBLE, win) == MPI_SUCCESS && value == to);
    CHECK(MPI_Win_flush(to, win) == MPI_SUCCESS && MPI_Win_flush_all(win) == MPI_SUCCESS);
    MPI_Win_unlock_all(win);
    REFUSED(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
    CHECK(MPI_Win_fence(0, win) == MPI_SUCCESS);
    REFUSED(MPI_Win_flush(to, win), MPI_ERR_RMA_SYNC);
    CHECK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win) == MPI_SUCCESS);
    CHECK(MPI_Win_flush(to, win) == MPI_SUCCESS);
    if (size > 1) REFUSED(MPI_Win_flush(rank, win), MPI_ERR_RMA_SYNC);
    MPI_Win_unlock(to, win);
    for (int i = 0; i < 8; i++) CHECK(memory[i] == rank);
    MPI_Win_free(&win);
}

static void grids(void) {
    int dims[5] = {65536, 65536, 65536, 65536, 0};
    REFUSED(MPI_Dims_create(4, 5, dims), MPI_ERR_DIMS);
    int two[3] = {65536, 65536, 0};
    REFUSED(MPI_Dims_create(4, 3, two), MPI_ERR_DIMS);
    int three[3] = {0, 0, 0};
    CHECK(MPI_Dims_create(360, 3, three) == MPI_SUCCESS && three[0] == 10 && three[1] == 6 && three[2] == 6);
    MPI_Comm grid, none;
    int whole = size, periodic[3] = {1, 1, 1};
    REFUSED(MPI_Cart_create(MPI_COMM_WORLD, 3, (int[]){65536, 65536, 65536}, periodic, 0, &none), MPI_ERR_ARG);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &whole, periodic, 0, &grid);
    static const int steps[] = {0, 1, -1, INT_MAX, INT_MAX - 1, INT_MIN, INT_MIN + 1};
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        int source, dest;
        long by = steps[i], right = ((rank + by) % size + size) % size, left = ((rank - by) % size + size) % size;
        MPI_Cart_shift(grid, 0, steps[i], &source, &dest);
        CHECK(source == left && dest == right);
        int at = -1;
        MPI_Cart_rank(grid, &steps[i], &at);
        CHECK(at == (by % size + size) % size);
    }
    MPI_Comm_free(&grid);
}

static void groups(void) {
    MPI_Group all, some;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    int ranges[][3] = {{0, INT_MAX, 1}};
    REFUSED(MPI_Group_range_incl(all, 1, ranges, &some), MPI_ERR_RANK);
    int down[][3] = {{INT_MAX, INT_MIN, -1}};
    REFUSED(MPI_Group_range_excl(all, 1, down, &some), MPI_ERR_RANK);
    int far[][3] = {{0, INT_MAX, INT_MAX}};
    REFUSED(MPI_Group_range_incl(all, 1, far, &some), MPI_ERR_RANK);
    int one[][3] = {{0, size - 1, INT_MAX}}, n = -1;
    CHECK(MPI_Group_range_incl(all, 1, one, &some) == MPI_SUCCESS);
    MPI_Group_size(some, &n);
    CHECK(n == 1);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
}

/* The part of an array that is dealt out element by element is described by its period, not by its elements. */
static void arrays(void) {
    MPI_Datatype type;
    int cyclic = MPI_DISTRIBUTE_CYCLIC, by_default = MPI_DISTRIBUTE_DFLT_DARG, processes = 2;
    MPI_Count elements = ((MPI_Count)1 << 40) + 1, bytes;
    for (int at = 0; at < 2; at++) {
        MPI_Type_create_darray_c(2, at, 1, &elements, &cyclic, &by_default, &processes, MPI_ORDER_C, MPI_BYTE, &type);
        MPI_Type_size_c(type, &bytes);
        CHECK(bytes == (elements + 1 - at) / 2);
        MPI_Type_free(&type);
    }
    int processes_of[2] = {65536, 65536};
    int sizes[2] = {4, 4}, cycles[2] = {cyclic, cyclic}, defaults[2] = {by_default, by_default};
    REFUSED(MPI_Type_create_darray(1, 0, 2, sizes, cycles, defaults, processes_of, MPI_ORDER_C, MPI_BYTE, &type),
            MPI_ERR_ARG);
    /* Blocks of 3 of 11 elements for 2: 0 1 2 6 7 8, and 3 4 5 9 10. */
    int eleven = 11, three = 3, source[11], got[6], position = 0;
    for (int i = 0; i < 11; i++) source[i] = i;
    static const int wanted[2][6] = {{0, 1, 2, 6, 7, 8}, {3, 4, 5, 9, 10}};
    for (int at = 0; at < 2; at++) {
        MPI_Type_create_darray(2, at, 1, &eleven, &cyclic, &three, &processes, MPI_ORDER_C, MPI_INT, &type);
        MPI_Type_commit(&type);
        position = 0;
        MPI_Pack(source, 1, type, got, sizeof got, &position, MPI_COMM_SELF);
        CHECK(position == (6 - at) * 4 && !memcmp(got, wanted[at], position));
        MPI_Aint lower, extent;
        MPI_Type_get_extent(type, &lower, &extent);
        CHECK(lower == 0 && extent == 44);
        MPI_Type_free(&type);
    }
}

/* Elements of a type of very many are counted, not listed. */
static void elements(void) {
    MPI_Datatype pairs, parts;
    MPI_Status status;
    MPI_Count count = (MPI_Count)1 << 40, found = -1, bytes = -1;
    memset(&status, 0, sizeof status);
    MPI_Type_contiguous_c(count, MPI_DOUBLE_INT, &pairs);
    MPI_Type_create_struct_c(2, (MPI_Count[]){1, 1}, (MPI_Count[]){0, 16 * count},
                             (MPI_Datatype[]){pairs, MPI_BYTE}, &parts);
    MPI_Type_commit(&pairs);
    MPI_Type_commit(&parts);
    CHECK(MPI_Status_set_elements_c(&status, parts, 2 * count + 1) == MPI_SUCCESS);
    MPI_Get_count_c(&status, MPI_BYTE, &bytes);
    CHECK(bytes == 12 * count + 1);
    CHECK(MPI_Get_elements_c(&status, parts, &found) == MPI_SUCCESS && found == 2 * count + 1);
    MPI_Status_set_elements_c(&status, parts, 6 * count + 6);
    MPI_Get_count_c(&status, MPI_BYTE, &bytes);
    /* Three of the type, then a double, an int and a double: 6 n + 6 is 3 (2 n + 1) + 3. */
    CHECK(bytes == 3 * (12 * count + 1) + 20);
    MPI_Get_elements_c(&status, parts, &found);
    CHECK(found == 6 * count + 6);
    MPI_Pack_external_size_c("external32", 2, parts, &bytes);
    CHECK(bytes == 2 * (12 * count + 1));
    REFUSED(MPI_Status_set_elements_c(&status, parts, LLONG_MAX), MPI_ERR_COUNT);
    MPI_Type_free(&pairs);
    MPI_Type_free(&parts);
}

/* Elements without data are sent in any number. */
static void nothing(void) {
    MPI_Datatype none;
    MPI_Status status;
    MPI_Type_contiguous(0, MPI_DOUBLE, &none);
    MPI_Type_commit(&none);
    CHECK(MPI_Sendrecv_c(NULL, LLONG_MAX, none, next_rank(), 3, NULL, LLONG_MAX, none, previous_rank(), 3,
                         MPI_COMM_WORLD, &status) == MPI_SUCCESS);
    MPI_Count at = 0;
    CHECK(MPI_Pack_c(data, LLONG_MAX, none, packed, sizeof packed, &at, MPI_COMM_WORLD) == MPI_SUCCESS && at == 0);
    CHECK(MPI_Pack_external_c("external32", data, LLONG_MAX, none, packed, sizeof packed, &at) == MPI_SUCCESS);
    MPI_Type_free(&none);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    counts();
    windows();
    grids();
    groups();
    arrays();
    elements();
    nothing();
    for (int i = 0; i < 5; i++) stir();
    return finish("arithmetic");
}
