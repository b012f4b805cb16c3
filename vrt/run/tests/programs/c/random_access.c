/* Random one-sided access: every rank works out what all ranks do, and compares its memory, and what it has
 * fetched, with that.
 *
 *   random_access SEED ROUNDS    each round has a seed of its own, from SEED on; one that fails says its seed */
#include "random.h"

enum { BYTES = 6000, OPERATIONS = 24, MOST_RANKS = 64 };

/* The memory of all ranks as it should be, and who has touched it in this epoch: nobody, a rank (from 1 on), or
 * several. */
static unsigned char model[MOST_RANKS][BYTES];
static signed char touched[MOST_RANKS][BYTES];
enum { NOBODY = 0, SEVERAL = -1 };
/* Somebody does there what depends on the order. */
static char is_ordered[MOST_RANKS][BYTES];

enum what { PUT, GET, ACCUMULATE, GET_ACCUMULATE, FETCH_AND_OP, COMPARE_AND_SWAP, WHATS };
static const char *const names[] = {"put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap"};
static MPI_Op ops[16];
static const char *const op_names[] = {"SUM", "PROD", "MAX", "MIN", "BAND", "BOR", "BXOR", "LAND", "LOR", "LXOR",
                                       "MAXLOC", "MINLOC", "REPLACE", "NO_OP"};
enum { SUM, PROD, MAX, MIN, BAND, BOR, BXOR, LAND, LOR, LXOR, MAXLOC, MINLOC, REPLACE, NO_OP, OPS };

/* What one rank does. */
struct operation {
    enum what what;
    int origin, target, at, op, basic, count, as_type, is_request;
    struct model *of;
    unsigned salt;
    /* No other rank touches the same elements: what it fetches is known. */
    int is_alone;
    /* The origin's: what it gives, what it fetches, and what that should be, from a byte on. */
    char *given, *fetched, *expected;
    int low, length;
    unsigned char compare[32];
};
static struct operation all[MOST_RANKS * OPERATIONS];
static int operations;

static const char *round_text = "";
static void failed(const struct operation *it, int line, const char *condition) {
    if (wrong++ >= 3) return;
    fprintf(stderr, "rank %d, seed %llu (%s), line %d: not so: %s\n", rank, (unsigned long long)first_seed, round_text,
            line, condition);
    if (it) {
        fprintf(stderr, "  %d to %d: %s %s of %d x %s at %d\n", it->origin, it->target, names[it->what],
                op_names[it->op], it->count, it->of->text, it->at);
    }
}
#define EXPECT(it, condition) \
    do { \
        if (!(condition)) failed(it, __LINE__, #condition); \
    } while (0)

/* ---- What operations do ---- */

static int is_pair(int basic) { return basic >= SHORT_INT; }
static int is_complex(int basic) { return basic >= COMPLEX && basic <= LONG_DOUBLE_COMPLEX; }
static int is_real(int basic) { return basic >= FLOAT && basic <= LONG_DOUBLE; }
static int is_whole(int basic) { return basic < FLOAT || basic == AINT || basic == BOOL; }

static int is_defined(int op, int basic) {
    if (op >= REPLACE) return 1;
    if (is_pair(basic)) return op == MAXLOC || op == MINLOC;
    if (op >= MAXLOC || basic == WIDE) return 0;
    if (is_complex(basic)) return op == SUM || op == PROD;
    if (is_real(basic)) return op <= MIN;
    if (basic == BOOL) return op >= BAND && op <= LXOR;
    /* Letters are no numbers. */
    return basic != CHAR;
}

#define WHOLE(c) \
    do { \
        c a, b; \
        memcpy(&a, into, sizeof a); \
        memcpy(&b, from, sizeof b); \
        if (op == SUM) a = (c)((unsigned long long)a + (unsigned long long)b); \
        else if (op == PROD) a = (c)((unsigned long long)a * (unsigned long long)b); \
        else if (op == MAX) a = a > b ? a : b; \
        else if (op == MIN) a = a < b ? a : b; \
        else if (op == BAND) a = (c)(a & b); \
        else if (op == BOR) a = (c)(a | b); \
        else if (op == BXOR) a = (c)(a ^ b); \
        else if (op == LAND) a = a && b; \
        else if (op == LOR) a = a || b; \
        else a = !a != !b; \
        memcpy(into, &a, sizeof a); \
    } while (0)
#define FLOATING(c, bytes) \
    do { \
        c a, b; \
        memcpy(&a, into, bytes); \
        memcpy(&b, from, bytes); \
        a = op == SUM ? a + b : op == PROD ? a * b : op == MAX ? (a > b ? a : b) : a < b ? a : b; \
        memcpy(into, &a, bytes); \
    } while (0)
#define COMPLEXES(c, part, bytes) \
    do { \
        c a[2], b[2]; \
        for (int i = 0; i < 2; i++) memcpy(&a[i], into + i * (int)sizeof(c), bytes); \
        for (int i = 0; i < 2; i++) memcpy(&b[i], from + i * (int)sizeof(c), bytes); \
        c r[2] = {op == SUM ? a[0] + b[0] : a[0] * b[0] - a[1] * b[1], \
                  op == SUM ? a[1] + b[1] : a[0] * b[1] + a[1] * b[0]}; \
        for (int i = 0; i < 2; i++) memcpy(into + i * (int)sizeof(c), &r[i], bytes); \
    } while (0)
#define LOCATED(c, bytes) \
    do { \
        c a = 0, b = 0; \
        int x, y, at = (int)offsetof(struct { c a; int b; }, b); \
        memcpy(&a, into, bytes); \
        memcpy(&b, from, bytes); \
        memcpy(&x, into + at, 4); \
        memcpy(&y, from + at, 4); \
        if (a == b ? y < x : op == MAXLOC ? b > a : b < a) { \
            memcpy(into, from, bytes); \
            memcpy(into + at, from + at, 4); \
        } \
    } while (0)

/* One element of the memory, and the one that is given. */
static void apply(int op, int basic, unsigned char *into, const unsigned char *from) {
    if (op == NO_OP) return;
    if (op == REPLACE) {
        for (int j = 0; j < basics[basic].numbers; j++) {
            int at = basics[basic].number[j].at, bytes = basics[basic].number[j].bytes;
            memcpy(into + at, from + at, (size_t)bytes);
        }
        return;
    }
    switch (basic) {
    case SHORT: WHOLE(short); break;
    case INT: WHOLE(int); break;
    case LONG: WHOLE(long); break;
    case LONG_LONG: WHOLE(long long); break;
    case U8: WHOLE(uint8_t); break;
    case U16: WHOLE(uint16_t); break;
    case U32: WHOLE(uint32_t); break;
    case U64: WHOLE(uint64_t); break;
    case BOOL: WHOLE(uint8_t); break;
    case AINT: WHOLE(MPI_Aint); break;
    case FLOAT: FLOATING(float, 4); break;
    case DOUBLE: FLOATING(double, 8); break;
    case LONG_DOUBLE: FLOATING(long double, 10); break;
    case COMPLEX: COMPLEXES(float, float, 4); break;
    case DOUBLE_COMPLEX: COMPLEXES(double, double, 8); break;
    case LONG_DOUBLE_COMPLEX: COMPLEXES(long double, long double, 10); break;
    case SHORT_INT: LOCATED(short, 2); break;
    case TWO_INT: LOCATED(int, 4); break;
    case LONG_INT: LOCATED(long, 8); break;
    case FLOAT_INT: LOCATED(float, 4); break;
    case DOUBLE_INT: LOCATED(double, 8); break;
    case LONG_DOUBLE_INT: LOCATED(long double, 10); break;
    }
}

/* A small value of a basic type: sums and products of such are exact, in whatever order. */
static void value(int basic, int op, unsigned salt, unsigned char *at) {
    const struct basic *of = &basics[basic];
    memset(at, 0, (size_t)of->extent);
    for (int j = 0; j < of->numbers; j++) {
        const struct number *it = &of->number[j];
        int small = (int)((salt + (unsigned)j * 77u) * 2654435761u >> 20) % 23 - (it->kind == UNSIGNED ? 0 : 11);
        small = small < 0 && it->kind == UNSIGNED ? -small : small;
        /* Products of these stay small. */
        if (op == PROD) small = it->kind == UNSIGNED ? 1 + small % 2 : small % 2 ? -1 : j == 1 ? 0 : 1;
        if (basic == BOOL) small &= 1;
        unsigned char *to = at + it->at;
        if (it->kind == REAL && it->bytes == 4) {
            float real = (float)small;
            memcpy(to, &real, 4);
        } else if (it->kind == REAL) {
            double real = small;
            memcpy(to, &real, 8);
        } else if (it->kind == X87) {
            long double real = small;
            memcpy(to, &real, 10);
        } else {
            long long whole = small;
            memcpy(to, &whole, (size_t)it->bytes);
        }
    }
}

/* ---- An epoch ---- */

/* The elements of an operation, in their order: calls `f` with each one's place in the target's memory. */
#define EACH(it, place, basic_) \
    for (int i_ = 0; i_ < (it)->count; i_++) \
        for (int k_ = 0, place, basic_; k_ < (it)->of->count && \
             (place = (it)->at + i_ * extent_of((it)->of) + (it)->of->places[k_].at, \
              basic_ = (it)->of->places[k_].basic, 1); k_++)
#define EACH_BYTE(place, basic_, byte) \
    for (int j_ = 0; j_ < basics[basic_].numbers; j_++) \
        for (int byte = place + basics[basic_].number[j_].at, end_ = byte + basics[basic_].number[j_].bytes; \
             byte < end_; byte++)

static int writes(const struct operation *it) { return it->what != GET && !(it->what >= GET_ACCUMULATE && it->op == NO_OP); }

/* Whether an operation can be in this epoch: it lies in the memory, and does not meet another one that it must not
 * meet. Marks what it touches. */
static int enters(struct operation *it, int only_folds, int fold) {
    static unsigned char marks[ROOM];
    EACH(it, place, basic) {
        if (place < 0 || place + basics[basic].extent > BYTES) return 0;
    }
    if (cover(it->of, it->count, marks) != 1) return 0;
    /* Who folds by one operation may meet others who do (the sign of a 0 of a complex product has an order). */
    int folds = only_folds && it->what != COMPARE_AND_SWAP && it->op == fold && fold < REPLACE;
    folds &= !(fold == PROD && is_complex(it->basic));
    signed char me = (signed char)(it->origin + 1);
    EACH(it, place, basic) {
        EACH_BYTE(place, basic, byte) {
            signed char by = touched[it->target][byte];
            /* Of one rank's accumulating operations the order is kept. */
            int same = only_folds && by == me, fold_all = folds && !is_ordered[it->target][byte];
            if (by != NOBODY && !same && !fold_all) return 0;
        }
    }
    EACH(it, place, basic) {
        EACH_BYTE(place, basic, byte) {
            signed char *by = &touched[it->target][byte];
            *by = *by == NOBODY || *by == me ? me : SEVERAL;
            is_ordered[it->target][byte] |= !folds;
        }
    }
    return 1;
}

/* A datatype at the origin for as many elements: the target's, or elements one behind the other or apart. */
struct side { MPI_Datatype type; int count, stride; const struct model *of; int of_count, is_made; };
static struct side side_of(const struct operation *it) {
    struct side side = {it->of->type, it->count, 0, it->of, it->count, 0};
    int total = it->of->count * it->count;
    if (it->as_type == 0 || it->what == PUT || it->what == GET) return side;
    side.of = NULL;
    side.stride = basics[it->basic].extent * (it->as_type == 1 ? 1 : 2);
    if (it->as_type == 1) {
        side.type = basics[it->basic].type;
        side.count = total;
    } else {
        MPI_Type_vector(total, 1, 2, basics[it->basic].type, &side.type);
        MPI_Type_commit(&side.type);
        side.count = side.is_made = 1;
    }
    return side;
}
/* Where the element of a number lies in the origin's buffer. */
static int origin_at(const struct side *side, int element) {
    if (!side->of) return element * side->stride;
    int each = side->of->count;
    return element / each * extent_of(side->of) + side->of->places[element % each].at;
}

/* Does it; what it has fetched is looked at when the epoch is over. */
static void carry_out(struct operation *it, MPI_Win window, MPI_Aint base) {
    struct side side = side_of(it);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Aint at = base + it->at;
    int element = 0, high = 0;
    it->low = 0;
    EACH(it, place, basic) {
        int here = origin_at(&side, element++);
        it->low = here < it->low ? here : it->low;
        high = here + basics[basic].extent > high ? here + basics[basic].extent : high;
        (void)place;
    }
    it->length = high - it->low;
    it->given = malloc((size_t)it->length);
    it->fetched = malloc((size_t)it->length);
    it->expected = malloc((size_t)it->length);
    memset(it->given, 0x33, (size_t)it->length);
    memset(it->fetched, 0x44, (size_t)it->length);
    memset(it->expected, 0x44, (size_t)it->length);
    element = 0;
    EACH(it, place, basic) {
        unsigned char bytes[32];
        int here = origin_at(&side, element) - it->low;
        value(basic, it->op, it->salt + (unsigned)element++, bytes);
        for (int j = 0; j < basics[basic].numbers; j++) {
            const struct number *number = &basics[basic].number[j];
            memcpy(it->given + here + number->at, bytes + number->at, (size_t)number->bytes);
            memcpy(it->expected + here + number->at, model[it->target] + place + number->at, (size_t)number->bytes);
        }
    }
    void *from = it->given - it->low, *to = it->fetched - it->low;
    MPI_Op op = ops[it->op];
    MPI_Datatype there = it->of->type;
    switch (it->what) {
    case PUT:
        if (it->is_request) MPI_Rput(from, side.count, side.type, it->target, at, it->count, there, window, &request);
        else MPI_Put(from, side.count, side.type, it->target, at, it->count, there, window);
        break;
    case GET:
        if (it->is_request) MPI_Rget(to, side.count, side.type, it->target, at, it->count, there, window, &request);
        else MPI_Get(to, side.count, side.type, it->target, at, it->count, there, window);
        break;
    case ACCUMULATE:
        if (it->is_request) {
            MPI_Raccumulate(from, side.count, side.type, it->target, at, it->count, there, op, window, &request);
        } else {
            MPI_Accumulate(from, side.count, side.type, it->target, at, it->count, there, op, window);
        }
        break;
    case GET_ACCUMULATE:
        if (it->is_request) {
            MPI_Rget_accumulate(from, side.count, side.type, to, side.count, side.type, it->target, at, it->count,
                                there, op, window, &request);
        } else {
            MPI_Get_accumulate(from, side.count, side.type, to, side.count, side.type, it->target, at, it->count,
                               there, op, window);
        }
        break;
    case FETCH_AND_OP: MPI_Fetch_and_op(from, to, there, it->target, at, op, window); break;
    case COMPARE_AND_SWAP:
        /* Every second time what is expected is there. */
        memcpy(it->compare, model[it->target] + it->at, (size_t)basics[it->basic].extent);
        if (it->salt % 2) it->compare[0] ^= 1;
        MPI_Compare_and_swap(from, it->compare, to, there, it->target, at, window);
        break;
    default: break;
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (side.is_made) MPI_Type_free(&side.type);
}

static void look(struct operation *it) {
    int fetches = it->what == GET || it->what >= GET_ACCUMULATE;
    if (fetches && it->is_alone) EXPECT(it, memcmp(it->fetched, it->expected, (size_t)it->length) == 0);
    free(it->given);
    free(it->fetched);
    free(it->expected);
}

/* The same to the model. */
static void imagine(const struct operation *it) {
    int element = 0;
    if (!writes(it)) return;
    EACH(it, place, basic) {
        unsigned char bytes[32], *there = model[it->target] + place;
        value(basic, it->op, it->salt + (unsigned)element++, bytes);
        if (it->what == COMPARE_AND_SWAP && it->salt % 2) continue;
        apply(it->what == PUT || it->what == COMPARE_AND_SWAP ? REPLACE : it->op, basic, there, bytes);
    }
}

enum way { FENCE, LOCK_ALL, LOCK, POST, WAYS };

/* Puts and gets that do not meet, or operations that fold elements of one type. */
static void plan(int fences) {
    int is_fold = below(3) > 0, basic = 0, fold = 0;
    if (is_fold) {
        do {
            basic = some_basic();
            fold = below(OPS);
        } while (!is_defined(fold, basic));
    }
    /* Elements of packed records are not aligned. */
    int shift = !ELSEWHERE && below(4) == 0 ? between(1, 15) : 0;
    operations = 0;
    memset(touched, 0, sizeof touched);
    memset(is_ordered, 0, sizeof is_ordered);
    if (is_fold) {
        /* What is there is a value of the type. */
        for (int r = 0; r < size; r++) {
            for (int at = shift; at + basics[basic].extent <= BYTES; at += basics[basic].extent) {
                value(basic, fold, (unsigned)(r * BYTES + at), model[r] + at);
            }
        }
    }
    for (int i = 0; i < OPERATIONS; i++) {
        for (int origin = 0; origin < size; origin++) {
            struct operation it = {.origin = origin, .target = below(size), .basic = basic, .op = REPLACE};
            struct choice choice = {is_fold ? basic : -1, is_fold ? basics[basic].extent : 1};
            it.what = is_fold ? between(ACCUMULATE, WHATS - 1) : between(PUT, GET);
            if (it.what == COMPARE_AND_SWAP && (basic == CHAR || !is_whole(basic))) it.what = FETCH_AND_OP;
            int is_one = it.what >= FETCH_AND_OP;
            it.of = is_one ? of_basic(basic) : make(between(0, 3), choice);
            it.count = is_one ? 1 : between(1, 2);
            if (is_fold) it.op = below(4) ? fold : below(2) ? REPLACE : NO_OP;
            if ((it.what == ACCUMULATE && it.op == NO_OP) || it.what == COMPARE_AND_SWAP) it.op = REPLACE;
            int grid = choice.grid;
            it.at = shift + between(0, BYTES / grid) * grid;
            it.as_type = below(3);
            it.is_request = !fences && below(2);
            it.salt = (unsigned)draw() >> 1;
            if (!is_one) MPI_Type_commit(&it.of->type);
            if (is_one || it.of->count > 0) {
                if (enters(&it, is_fold, fold)) {
                    all[operations++] = it;
                    continue;
                }
            }
            drop(it.of);
        }
    }
    for (int i = 0; i < operations; i++) {
        struct operation *it = &all[i];
        it->is_alone = 1;
        EACH(it, place, basic_) {
            EACH_BYTE(place, basic_, byte) it->is_alone &= touched[it->target][byte] == it->origin + 1;
        }
    }
}

static void check(uint64_t seed) {
    static const char *const flavors[] = {"allocate", "create", "dynamic", "shared"};
    static const char *const ways[] = {"fence", "lock_all", "lock", "post"};
    static char text[60];
    random_state = first_seed = seed;
    int flavor = below(4);
    MPI_Win window;
    MPI_Comm comm = MPI_COMM_WORLD, node;
    unsigned char *memory = NULL;
    static MPI_Aint bases[MOST_RANKS];
    memset(bases, 0, sizeof bases);
    /* Memory is shared where all ranks are on one node. */
    int together = -1;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &together);
    MPI_Comm_free(&node);
    MPI_Allreduce(MPI_IN_PLACE, &together, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (flavor == 3 && together < size) flavor = 0;
    switch (flavor) {
    case 0: MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, comm, &memory, &window); break;
    case 1:
        memory = malloc(BYTES);
        MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, comm, &window);
        break;
    case 2: {
        memory = malloc(BYTES);
        MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &window);
        MPI_Win_attach(window, memory, BYTES);
        MPI_Aint base;
        MPI_Get_address(memory, &base);
        MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, comm);
        break;
    }
    case 3: MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, comm, &memory, &window); break;
    }
    MPI_Group group;
    MPI_Win_get_group(window, &group);
    for (int r = 0; r < size; r++) memset(model[r], r + 1, BYTES);
    for (int epoch = between(1, 4); epoch > 0; epoch--) {
        enum way way = (enum way)below(WAYS);
        round_text = text;
        snprintf(text, sizeof text, "%s, %s", flavors[flavor], ways[way]);
        plan(way == FENCE || way == POST);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
        memcpy(memory, model[rank], BYTES);
        MPI_Win_unlock(rank, window);
        MPI_Barrier(comm);
        if (way == FENCE) MPI_Win_fence(0, window);
        if (way == LOCK_ALL) MPI_Win_lock_all(0, window);
        if (way == POST) MPI_Win_post(group, 0, window);
        if (way == POST) MPI_Win_start(group, 0, window);
        for (int i = 0; i < operations; i++) {
            struct operation *it = &all[i];
            if (it->origin == rank) {
                int exclusive = it->salt % 3 == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
                if (way == LOCK) MPI_Win_lock(exclusive, it->target, 0, window);
                carry_out(it, window, bases[it->target]);
                if (way == LOCK_ALL && it->salt % 2) MPI_Win_flush(it->target, window);
                if (way == LOCK) MPI_Win_unlock(it->target, window);
            }
            imagine(it);
        }
        if (way == FENCE) MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
        if (way == LOCK_ALL) MPI_Win_unlock_all(window);
        if (way == POST) MPI_Win_complete(window);
        if (way == POST) MPI_Win_wait(window);
        MPI_Barrier(comm);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
        int first = 0;
        while (first < BYTES && memory[first] == model[rank][first]) first++;
        struct operation *by = NULL;
        for (int i = 0; i < operations && first < BYTES; i++) {
            EACH(&all[i], place, basic) {
                if (all[i].target == rank && place <= first && first < place + basics[basic].extent) by = &all[i];
            }
        }
        EXPECT(by, first == BYTES);
        MPI_Win_unlock(rank, window);
        for (int i = 0; i < operations; i++) if (all[i].origin == rank) look(&all[i]);
        while (operations > 0) drop(all[--operations].of);
    }
    MPI_Group_free(&group);
    if (flavor == 2) MPI_Win_detach(window, memory);
    MPI_Win_free(&window);
    if (flavor == 1 || flavor == 2) free(memory);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    make_basics();
    MPI_Op known[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR,
                      MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP};
    memcpy(ops, known, sizeof known);
    unsigned long long seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    unsigned long long rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 50;
    if (size > MOST_RANKS) MPI_Abort(MPI_COMM_WORLD, 2);
    for (unsigned long long i = 0; i < rounds; i++) check(seed + i);
    return finish("random_access");
}
