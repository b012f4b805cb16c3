/* Memory of other ranks: windows of all kinds, all ways to synchronise, all operations. */
#include "check.h"

#include <sched.h>
#include <stddef.h>

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

/* Pairs of a value and its location, with gaps or without, by every operation that takes them, in every form,
 * where the target's elements are told by different datatypes. */
enum { OF_PAIRS = 3, PLACE = 32 };
struct pair { double value; int index; };

static void fold_pairs(MPI_Win window, char *memory, MPI_Datatype type, MPI_Datatype there, int count,
                       const struct pair *before, void (*store)(char *, struct pair),
                       struct pair (*load)(const char *), MPI_Aint extent) {
    static const struct pair given[OF_PAIRS] = {{5, 7}, {-2, 8}, {9, 2}};
    MPI_Op ops[] = {MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP};
    for (int op = 0; op < 4; op++) {
        struct pair after[OF_PAIRS];
        for (int i = 0; i < OF_PAIRS; i++) {
            int wins = op == 0 ? given[i].value > before[i].value : given[i].value < before[i].value;
            int same = given[i].value == before[i].value && given[i].index < before[i].index;
            int taken = op == 2 || (op < 2 && (wins || same));
            after[i] = taken ? given[i] : before[i];
        }
        for (int form = 0; form < 5; form++) {
            char from[OF_PAIRS * 32], to[OF_PAIRS * 32], place[PLACE + OF_PAIRS * 32];
            memset(from, 0x55, sizeof from);
            memset(to, 0x66, sizeof to);
            memset(place, 0x77, sizeof place);
            for (int i = 0; i < OF_PAIRS; i++) store(from + i * extent, given[i]);
            for (int i = 0; i < OF_PAIRS; i++) store(place + PLACE + i * extent, before[i]);
            memcpy(memory, place, sizeof place);
            MPI_Win_sync(window);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Request request = MPI_REQUEST_NULL;
            int next = next_rank(), fetches = form >= 2;
            if (op == 3 && !fetches) continue;
            if (form == 0) {
                MPI_Accumulate(from, OF_PAIRS, type, next, PLACE, count, there, ops[op], window);
            } else if (form == 1) {
                MPI_Raccumulate(from, OF_PAIRS, type, next, PLACE, count, there, ops[op], window, &request);
            } else if (form == 2) {
                MPI_Get_accumulate(from, OF_PAIRS, type, to, OF_PAIRS, type, next, PLACE, count, there, ops[op],
                                   window);
            } else if (form == 3) {
                MPI_Rget_accumulate(from, OF_PAIRS, type, to, OF_PAIRS, type, next, PLACE, count, there, ops[op],
                                    window, &request);
            } else {
                for (int i = 0; i < OF_PAIRS; i++) {
                    MPI_Fetch_and_op(from + i * extent, to + i * extent, type, next, PLACE + i * extent, ops[op],
                                     window);
                }
            }
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Win_flush(next, window);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Win_sync(window);
            for (int i = 0; i < OF_PAIRS; i++) {
                struct pair found = load(memory + PLACE + i * extent), fetched = load(to + i * extent);
                CHECK(found.value == after[i].value && found.index == after[i].index);
                if (fetches) CHECK(fetched.value == before[i].value && fetched.index == before[i].index);
                store(place + PLACE + i * extent, after[i]);
            }
            /* Nothing else was written. */
            CHECK(memcmp(memory, place, PLACE + (OF_PAIRS - 1) * extent + extent / 2) == 0);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

/* By their parts, so that nothing else is touched; of a `long double` only ten bytes are its own. */
#define PAIR(name, of, bytes) \
    struct of_##name { of value; int index; }; \
    static void store_##name(char *at, struct pair pair) { \
        of value = (of)pair.value; \
        memset(at, 0, sizeof value); \
        memcpy(at, &value, bytes); \
        memcpy(at + offsetof(struct of_##name, index), &pair.index, sizeof pair.index); \
    } \
    static struct pair load_##name(const char *at) { \
        struct pair pair; \
        of value; \
        memcpy(&value, at, sizeof value); \
        memcpy(&pair.index, at + offsetof(struct of_##name, index), sizeof pair.index); \
        pair.value = (double)value; \
        return pair; \
    }
PAIR(short, short, sizeof(short))
PAIR(int, int, sizeof(int))
PAIR(long, long, sizeof(long))
PAIR(float, float, sizeof(float))
PAIR(double, double, sizeof(double))
PAIR(long_double, long double, 10)

static void pairs(int round) {
    static const struct pair before[OF_PAIRS] = {{1, 4}, {-2, 9}, {9, 1}};
    struct {
        MPI_Datatype type;
        void (*store)(char *, struct pair);
        struct pair (*load)(const char *);
    } all[] = {{MPI_SHORT_INT, store_short, load_short},    {MPI_2INT, store_int, load_int},
               {MPI_LONG_INT, store_long, load_long},       {MPI_FLOAT_INT, store_float, load_float},
               {MPI_DOUBLE_INT, store_double, load_double},
               {MPI_LONG_DOUBLE_INT, store_long_double, load_long_double}};
    char *memory;
    MPI_Win window;
    MPI_Win_allocate(PLACE + OF_PAIRS * 32, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < 6; i++) {
        MPI_Aint lower, extent;
        MPI_Type_get_extent(all[i].type, &lower, &extent);
        MPI_Datatype there = all[i].type;
        int ones[] = {1, 1, 1}, places[] = {0, 1, 2}, three = 3, zero = 0, count = 1;
        MPI_Aint bytes[] = {0, extent, 2 * extent};
        MPI_Datatype types[] = {there, there, there};
        switch ((round + i) % 8) {
        case 0: MPI_Type_dup(all[i].type, &there); count = 3; break;
        case 1: MPI_Type_contiguous(3, all[i].type, &there); break;
        case 2: MPI_Type_vector(3, 1, 1, all[i].type, &there); break;
        case 3: MPI_Type_indexed(3, ones, places, all[i].type, &there); break;
        case 4: MPI_Type_create_hindexed(3, ones, bytes, all[i].type, &there); break;
        case 5: MPI_Type_create_struct(3, ones, bytes, types, &there); break;
        case 6: MPI_Type_create_subarray(1, &three, &three, &zero, MPI_ORDER_C, all[i].type, &there); break;
        case 7: MPI_Type_create_resized(all[i].type, 0, extent, &there); count = 3; break;
        }
        MPI_Type_commit(&there);
        fold_pairs(window, memory, all[i].type, there, count, before, all[i].store, all[i].load, extent);
        fold_pairs(window, memory, all[i].type, all[i].type, OF_PAIRS, before, all[i].store, all[i].load, extent);
        MPI_Type_free(&there);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

/* Elements of different types are not combined, as many bytes as they may have; they may replace each other. */
static void unlike_types(void) {
    double value = 1.5, before = -1;
    long *memory;
    MPI_Win window;
    MPI_Datatype pair;
    MPI_Win_allocate(sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(2, MPI_FLOAT, &pair);
    MPI_Type_commit(&pair);
    MPI_Win_lock_all(0, window);
    *memory = 7;
    MPI_Win_sync(window);
    int codes[] = {
        MPI_Accumulate(&value, 1, MPI_DOUBLE, rank, 0, 1, MPI_LONG, MPI_SUM, window),
        MPI_Accumulate(&value, 1, pair, rank, 0, 1, MPI_DOUBLE, MPI_MAX, window),
        MPI_Get_accumulate(&value, 1, MPI_DOUBLE, &before, 1, MPI_LONG, rank, 0, 1, MPI_LONG, MPI_MIN, window),
    };
    for (int i = 0; i < 3; i++) {
        int class = -1;
        MPI_Error_class(codes[i], &class);
        CHECK(class == MPI_ERR_TYPE);
    }
    /* Nothing is of every type. */
    MPI_Datatype nothing;
    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    CHECK(MPI_Accumulate(NULL, 0, MPI_INT, rank, 0, 0, MPI_DOUBLE, MPI_SUM, window) == MPI_SUCCESS);
    CHECK(MPI_Accumulate(NULL, 2, nothing, rank, 0, 0, MPI_DOUBLE, MPI_SUM, window) == MPI_SUCCESS);
    CHECK(MPI_Get_accumulate(NULL, 1, nothing, NULL, 0, MPI_LONG, rank, 0, 0, MPI_DOUBLE, MPI_SUM, window) == MPI_SUCCESS);
    CHECK(MPI_Get_accumulate(NULL, 0, MPI_INT, NULL, 0, MPI_LONG, rank, 0, 1, nothing, MPI_SUM, window) == MPI_SUCCESS);
    MPI_Type_free(&nothing);
    MPI_Win_sync(window);
    CHECK(*memory == 7 && before == -1);
    CHECK(MPI_Accumulate(&value, 1, MPI_DOUBLE, rank, 0, 1, MPI_LONG, MPI_REPLACE, window) == MPI_SUCCESS);
    MPI_Win_flush(rank, window);
    MPI_Win_sync(window);
    CHECK(memcmp(memory, &value, sizeof value) == 0);
    MPI_Win_unlock_all(window);
    MPI_Type_free(&pair);
    MPI_Win_free(&window);
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

/* Parts of shared memory lie one directly behind the other unless the program says that they need not. */
static void parts(MPI_Comm node, int own, int all, int round) {
    MPI_Info info;
    MPI_Info_create(&info);
    for (int noncontiguous = 0; noncontiguous < 2; noncontiguous++) {
        MPI_Info_set(info, "alloc_shared_noncontig", noncontiguous ? "true" : "false");
        int of_part[] = {4, 12, 64, 100}, unit = -1;
        /* Every third part is one of nothing. */
        MPI_Aint each = of_part[round % 4], own_size = own % 3 == 0 ? 0 : each * (1 + own % 2), length = -1;
        char *mine = NULL, *first = NULL, *theirs = NULL, *next = NULL, *attribute = NULL;
        MPI_Win window;
        MPI_Win_allocate_shared(own_size, 4, noncontiguous || round % 2 ? info : MPI_INFO_NULL, node, &mine,
                                &window);
        int flag = 0;
        MPI_Win_get_attr(window, MPI_WIN_BASE, &attribute, &flag);
        CHECK(flag && attribute == mine);
        MPI_Win_shared_query(window, own, &length, &unit, &theirs);
        CHECK(length == own_size && unit == 4 && theirs == mine);
        for (int of = 0; of < all; of++) {
            MPI_Aint size_of = of % 3 == 0 ? 0 : each * (1 + of % 2);
            MPI_Win_shared_query(window, of, &length, &unit, &theirs);
            CHECK(length == size_of);
            if (of == 0) first = next = theirs;
            if (!noncontiguous) CHECK(theirs && theirs == next);
            else CHECK(size_of > 0 ? theirs >= next : theirs == NULL);
            if (theirs) next = theirs + size_of;
        }
        MPI_Win_shared_query(window, MPI_PROC_NULL, &length, &unit, &theirs);
        CHECK(all == 1 ? length == 0 : length == 2 * each && theirs);
        /* By addresses alone, as the standard lets programs do. */
        MPI_Win_lock_all(0, window);
        if (own_size) memset(mine, own + 1, own_size);
        MPI_Win_sync(window);
        MPI_Barrier(node);
        MPI_Win_sync(window);
        for (int of = 0; of < all && !noncontiguous; of++) {
            for (int i = 0; of % 3 && i < each * (1 + of % 2); i++) CHECK(*first++ == of + 1);
        }
        MPI_Barrier(node);
        MPI_Win_unlock_all(window);
        MPI_Win_free(&window);
    }
    MPI_Info_free(&info);
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
    other[3] = own;
    /* The neighbour runs on the processor that is given away. */
    while (((volatile int *)mine)[3] == -1) sched_yield();
    CHECK(mine[3] == (own + all - 1) % all);
    MPI_Barrier(node);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    parts(node, own, all, round);
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
        if (round < 8) pairs(round);
        if (round == 8) unlike_types();
    }
    MPI_Win_free(&win);
    return finish("one_sided");
}
