/* Memory of other ranks: windows of all kinds, all ways to synchronise, all operations. */
#include "check.h"

#define ROUNDS 40
#define CELLS 32

static int *cells;
static MPI_Win win;

static void fences(int round) {
    int in[2] = {-1, -1}, out[2] = {rank + round, 2 * rank};
    for (int i = 0; i < CELLS; i++) cells[i] = -1;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Put(out, 2, MPI_INT, next_rank(), 3, 2, MPI_INT, win);
    stir();
    MPI_Win_fence(0, win);
    CHECK(cells[3] == previous_rank() + round && cells[4] == 2 * previous_rank() && cells[5] == -1);
    MPI_Get(in, 2, MPI_INT, next_rank(), 3, 2, MPI_INT, win);
    MPI_Win_fence(MPI_MODE_NOSTORE, win);
    CHECK(in[0] == out[0] && in[1] == out[1]);
    int one = rank + 1;
    cells[8] = 1000;
    MPI_Win_fence(0, win);
    MPI_Accumulate(&one, 1, MPI_INT, 0, 8, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(0, win);
    CHECK(cells[8] == (rank == 0 ? 1000 + size * (size + 1) / 2 : 1000));
    MPI_Accumulate(&one, 1, MPI_INT, next_rank(), 9, 1, MPI_INT, MPI_REPLACE, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK(cells[9] == previous_rank() + 1);
    /* Every second cell of the target, from packed ones. */
    MPI_Datatype second;
    MPI_Type_vector(4, 1, 2, MPI_INT, &second);
    MPI_Type_commit(&second);
    int four[4] = {rank, rank + 1, rank + 2, rank + 3}, back[8];
    memset(back, -1, sizeof back);
    MPI_Win_fence(0, win);
    MPI_Put(four, 4, MPI_INT, next_rank(), 16, 1, second, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 8; i++) CHECK(cells[16 + i] == (i % 2 ? -1 : previous_rank() + i / 2));
    MPI_Get(back, 1, second, next_rank(), 16, 1, second, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 7; i++) CHECK(back[i] == (i % 2 ? -1 : rank + i / 2));
    MPI_Type_free(&second);
}

static void posts(int round) {
    MPI_Group all, before, after;
    int from = previous_rank(), to = next_rank(), flag = 0;
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &from, &before);
    MPI_Group_incl(all, 1, &to, &after);
    cells[0] = -1;
    int out = 10 * rank + round;
    MPI_Win_post(before, 0, win);
    MPI_Win_start(after, 0, win);
    MPI_Put(&out, 1, MPI_INT, to, 0, 1, MPI_INT, win);
    work();
    MPI_Win_complete(win);
    if (round % 2) while (!flag) MPI_Win_test(win, &flag);
    else MPI_Win_wait(win);
    CHECK(cells[0] == 10 * previous_rank() + round);
    MPI_Group_free(&all);
    MPI_Group_free(&before);
    MPI_Group_free(&after);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Everybody counts in the cells of rank 0. */
static void locks(int round) {
    int one = 1, got = -1, zero = 0;
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        for (int i = 0; i < 4; i++) cells[i] = 0;
        cells[4] = -1;
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) {
        /* Read, changed and written under an exclusive lock. */
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Get(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        got++;
        work();
        MPI_Put(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_unlock(0, win);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Accumulate(&one, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_lock_all(0, win);
    int seen[3];
    for (int i = 0; i < 3; i++) {
        MPI_Fetch_and_op(&one, &seen[i], MPI_INT, 0, 2, MPI_SUM, win);
        MPI_Win_flush(0, win);
        CHECK(seen[i] >= i && seen[i] < 3 * size && (i == 0 || seen[i] > seen[i - 1]));
    }
    int add[2] = {1, 2}, before[2] = {-1, -1};
    MPI_Get_accumulate(add, 1, MPI_INT, before, 1, MPI_INT, 0, 3, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_flush_local(0, win);
    CHECK(before[0] >= 0 && before[0] < size);
    /* Only one is first. */
    int expected = -1, found = -2;
    MPI_Compare_and_swap(&rank, &expected, &found, MPI_INT, 0, 4, win);
    MPI_Win_flush_all(win);
    int first = found == -1, firsts = -1;
    MPI_Fetch_and_op(&zero, &got, MPI_INT, 0, 4, MPI_NO_OP, win);
    MPI_Win_flush(0, win);
    CHECK(got >= 0 && got < size && (!first || got == rank) && (first || got == found));
    MPI_Win_unlock_all(win);
    MPI_Allreduce(&first, &firsts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(firsts == 1);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        CHECK(cells[0] == 3 * size && cells[1] == 3 * size && cells[2] == 3 * size && cells[3] == size);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    (void)round;
}

/* A lock that the program makes of an atomic cell: who does not get it tries again at once, while the one who
 * has it may be its neighbour. */
static void own_lock(int round) {
    int free_ = 0, taken = 1, found = -1, count = -1, all = -1;
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        cells[12] = cells[13] = 0;
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    do {
        MPI_Compare_and_swap(&taken, &free_, &found, MPI_INT, 0, 12, win);
        MPI_Win_flush(0, win);
    } while (found != free_);
    MPI_Get(&count, 1, MPI_INT, 0, 13, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
    count++;
    /* The others run, and find that it is taken. */
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &all, MPI_STATUS_IGNORE);
    MPI_Put(&count, 1, MPI_INT, 0, 13, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
    MPI_Accumulate(&free_, 1, MPI_INT, 0, 12, 1, MPI_INT, MPI_REPLACE, win);
    MPI_Win_flush(0, win);
    MPI_Win_unlock_all(win);
    MPI_Allreduce(&count, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(count > 0 && count <= size && all == size);
    (void)round;
}

static void requests(int round) {
    int out = rank * 5 + round, in = -1, one = 1, before = -1;
    MPI_Request all[2];
    cells[10] = cells[11] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Rput(&out, 1, MPI_INT, next_rank(), 10, 1, MPI_INT, win, &all[0]);
    MPI_Raccumulate(&one, 1, MPI_INT, next_rank(), 11, 1, MPI_INT, MPI_SUM, win, &all[1]);
    MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
    MPI_Win_flush_all(win);
    MPI_Rget(&in, 1, MPI_INT, next_rank(), 10, 1, MPI_INT, win, &all[0]);
    MPI_Rget_accumulate(&one, 1, MPI_INT, &before, 1, MPI_INT, next_rank(), 11, 1, MPI_INT, MPI_SUM, win,
                        &all[1]);
    work();
    MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
    CHECK(in == out && before == 1);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(cells[10] == previous_rank() * 5 + round && cells[11] == 2);
}

/* What a window is, as it says itself. */
static void about(MPI_Win window, int flavor, void *base) {
    int *asked = NULL, flag = 0;
    void *place = NULL;
    MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &asked, &flag);
    CHECK(flag && *asked == flavor);
    MPI_Win_get_attr(window, MPI_WIN_MODEL, &asked, &flag);
    CHECK(flag && (*asked == MPI_WIN_UNIFIED || *asked == MPI_WIN_SEPARATE));
    MPI_Win_get_attr(window, MPI_WIN_BASE, &place, &flag);
    CHECK(flag && (!base || place == base));
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = -1;
    MPI_Win_set_name(window, "a window");
    MPI_Win_get_name(window, name, &length);
    CHECK(strcmp(name, "a window") == 0 && length == 8);
}

static void dynamic(int round) {
    MPI_Win window;
    long *memory = malloc(100 * sizeof *memory), value = rank * 100 + round;
    memset(memory, 0, 100 * sizeof *memory);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    about(window, MPI_WIN_FLAVOR_DYNAMIC, NULL);
    MPI_Win_attach(window, memory, 100 * sizeof *memory);
    MPI_Aint place, of_next = 0;
    MPI_Get_address(&memory[50], &place);
    MPI_Sendrecv(&place, 1, MPI_AINT, previous_rank(), 1, &of_next, 1, MPI_AINT, next_rank(), 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_fence(0, window);
    MPI_Put(&value, 1, MPI_LONG, next_rank(), of_next, 1, MPI_LONG, window);
    MPI_Win_fence(0, window);
    CHECK(memory[50] == previous_rank() * 100 + round && memory[49] == 0 && memory[51] == 0);
    MPI_Win_detach(window, memory);
    MPI_Win_free(&window);
    CHECK(window == MPI_WIN_NULL);
    free(memory);
}

static void created(int round) {
    static double global[8];
    MPI_Win window;
    double value = rank + 0.25;
    MPI_Win_create(global, sizeof global, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    about(window, MPI_WIN_FLAVOR_CREATE, global);
    global[round % 8] = -1;
    MPI_Win_fence(0, window);
    MPI_Put(&value, 1, MPI_DOUBLE, next_rank(), round % 8, 1, MPI_DOUBLE, window);
    stir();
    MPI_Win_fence(0, window);
    CHECK(global[round % 8] == previous_rank() + 0.25);
    MPI_Win_free(&window);
}

/* The ranks of a node write to each other's memory. */
static void shared(int round) {
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    int own = -1, all = -1;
    MPI_Comm_rank(node, &own);
    MPI_Comm_size(node, &all);
    int *mine = NULL, *other = NULL, unit = -1;
    MPI_Aint length = -1;
    MPI_Win window;
    MPI_Win_allocate_shared(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, node, &mine, &window);
    about(window, MPI_WIN_FLAVOR_SHARED, mine);
    MPI_Win_shared_query(window, (own + 1) % all, &length, &unit, &other);
    CHECK(length == 4 * sizeof(int) && unit == sizeof(int) && other);
    for (int i = 0; i < 4; i++) mine[i] = -1;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    MPI_Barrier(node);
    other[2] = own + round;
    MPI_Win_sync(window);
    work();
    /* Until the neighbour has written. */
    while (((volatile int *)mine)[2] == -1) MPI_Win_sync(window);
    CHECK(mine[2] == (own + all - 1) % all + round && mine[3] == -1);
    MPI_Barrier(node);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    /* A part of nothing has no address. */
    MPI_Win_allocate_shared(own == 0 ? 0 : 8, 1, MPI_INFO_NULL, node, &mine, &window);
    MPI_Win_shared_query(window, 0, &length, &unit, &other);
    CHECK(length == 0 && !other);
    MPI_Win_shared_query(window, MPI_PROC_NULL, &length, &unit, &other);
    CHECK(all == 1 || (length == 8 && other));
    MPI_Win_free(&window);
    MPI_Comm_free(&node);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    if (argc == 2 && strcmp(argv[1], "shared") == 0) {
        for (int round = 0; round < 5 * ROUNDS; round++) {
            shared(round);
            stir();
        }
        return finish("one_sided shared");
    }
    MPI_Win_allocate(CELLS * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &win);
    about(win, MPI_WIN_FLAVOR_ALLOCATE, cells);
    for (int round = 0; round < ROUNDS; round++) {
        fences(round);
        posts(round);
        locks(round);
        own_lock(round);
        requests(round);
        dynamic(round);
        created(round);
    }
    MPI_Win_free(&win);
    return finish("one_sided");
}
