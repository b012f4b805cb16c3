/* Random datatypes: sizes and bounds, packing, messages, a collective operation and windows, all compared with the
 * list that each datatype has beside it.
 *
 *   random_types SEED COUNT    each datatype has a seed of its own, from SEED on; one that fails says its seed */
#include "random.h"

static char memory[ROOM], others[ROOM];
static unsigned char marks[ROOM];
enum { MOST_BYTES = 4 * MOST * 32 };
static unsigned char packed[MOST_BYTES], external[MOST_BYTES], came[MOST_BYTES];

static const char *text;
#define EXPECT(condition) \
    do { \
        if (!(condition)) failed(__LINE__, #condition); \
    } while (0)
static void failed(int line, const char *condition) {
    if (wrong++ < 3) {
        fprintf(stderr, "rank %d, seed %llu, line %d: not so: %s\n  %s\n", rank, (unsigned long long)first_seed,
                line, condition, text);
    }
}

static void blank(char *room) { memset(room, 0x5a, ROOM); }

/* What the datatype says of itself. */
static void ask(const struct model *of) {
    MPI_Aint lower, extent;
    int size_of = -1, bytes = 0, low = 0, high = 0;
    for (int k = 0; k < of->count; k++) {
        const struct basic *basic = &basics[of->places[k].basic];
        const struct number *last = &basic->number[basic->numbers - 1];
        int at = of->places[k].at, end = at + last->at + last->bytes;
        bytes += bytes_of(basic, 0);
        low = k == 0 || at < low ? at : low;
        high = k == 0 || end > high ? end : high;
    }
    MPI_Type_size(of->type, &size_of);
    EXPECT(size_of == bytes);
    MPI_Type_get_extent(of->type, &lower, &extent);
    EXPECT(lower == of->lower && extent == extent_of(of));
    MPI_Type_get_true_extent(of->type, &lower, &extent);
    EXPECT(lower == low && extent == high - low);
}

/* Packs, and unpacks what was packed. */
static void pack(const struct model *of, int count, int bytes, int outside, int is_apart) {
    int position = 0, needed = -1;
    MPI_Aint place = 0, room = -1;
    MPI_Pack_size(count, of->type, MPI_COMM_WORLD, &needed);
    EXPECT(needed >= bytes);
    MPI_Pack(memory + ORIGIN, count, of->type, came, MOST_BYTES, &position, MPI_COMM_WORLD);
    EXPECT(position == bytes && memcmp(came, packed, (size_t)bytes) == 0);
    if (is_apart) {
        blank(others);
        position = 0;
        MPI_Unpack(came, bytes, &position, others + ORIGIN, count, of->type, MPI_COMM_WORLD);
        EXPECT(position == bytes && memcmp(others, memory, ROOM) == 0);
    }
    if (ELSEWHERE) return;
    MPI_Pack_external_size("external32", count, of->type, &room);
    EXPECT(room == outside);
    MPI_Pack_external("external32", memory + ORIGIN, count, of->type, came, MOST_BYTES, &place);
    EXPECT(place == outside && memcmp(came, external, (size_t)outside) == 0);
    if (is_apart) {
        blank(others);
        place = 0;
        MPI_Unpack_external("external32", external, outside, &place, others + ORIGIN, count, of->type);
        EXPECT(place == outside && memcmp(others, memory, ROOM) == 0);
    }
}

/* A message around the ring, sent and received by the datatype or as bytes. */
static void message(const struct model *of, int count, int bytes, int as_type, int to_type) {
    MPI_Request request;
    MPI_Status status;
    int got = -1, elements = 0;
    if (as_type) MPI_Isend(memory + ORIGIN, count, of->type, next_rank(), 1, MPI_COMM_WORLD, &request);
    else MPI_Isend(packed, bytes, MPI_BYTE, next_rank(), 1, MPI_COMM_WORLD, &request);
    if (to_type) {
        blank(others);
        MPI_Recv(others + ORIGIN, count + 1, of->type, previous_rank(), 1, MPI_COMM_WORLD, &status);
        EXPECT(memcmp(others, memory, ROOM) == 0);
        for (int k = 0; k < of->count; k++) elements += basics[of->places[k].basic].elements;
        MPI_Get_count(&status, of->type, &got);
        EXPECT(got == (bytes ? count : 0));
        if (!ELSEWHERE) MPI_Get_elements(&status, of->type, &got);
        EXPECT(ELSEWHERE || got == elements * count);
    } else {
        MPI_Recv(came, MOST_BYTES, MPI_BYTE, previous_rank(), 1, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        EXPECT(got == bytes && memcmp(came, packed, (size_t)bytes) == 0);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void collective(const struct model *of, int count, int bytes, int which) {
    if (which == 0) {
        int root = below(size);
        if (rank != root) blank(others);
        else memcpy(others, memory, ROOM);
        MPI_Bcast(others + ORIGIN, count, of->type, root, MPI_COMM_WORLD);
        EXPECT(memcmp(others, memory, ROOM) == 0);
        return;
    }
    /* Each rank gets the elements from each as bytes, or one of them by the datatype. */
    int counts[64], places[64], ours[64], theirs[64], from = below(size);
    MPI_Datatype types[64], as_bytes[64];
    static unsigned char all[64 * MOST * 32];
    if (size > 64 || size * bytes > (int)sizeof all) return;
    for (int i = 0; i < size; i++) {
        counts[i] = count;
        places[i] = ORIGIN;
        types[i] = of->type;
        theirs[i] = bytes;
        ours[i] = i * bytes;
        as_bytes[i] = MPI_BYTE;
    }
    if (which == 1) {
        MPI_Alltoallw(memory, counts, places, types, all, theirs, ours, as_bytes, MPI_COMM_WORLD);
        for (int i = 0; i < size; i++) EXPECT(memcmp(all + i * bytes, packed, (size_t)bytes) == 0);
    } else {
        blank(others);
        for (int i = 0; i < size; i++) {
            memcpy(all + i * bytes, packed, (size_t)bytes);
            if (i != from) counts[i] = 0;
        }
        /* Only one of them sends. */
        for (int i = 0; i < size; i++) theirs[i] = rank == from ? bytes : 0;
        MPI_Alltoallw(all, theirs, ours, as_bytes, others, counts, places, types, MPI_COMM_WORLD);
        EXPECT(memcmp(others, memory, ROOM) == 0);
    }
}

static char *window_memory;
static MPI_Win window;

/* Writes to the next rank's memory, and reads it. */
static void access(const struct model *of, int count, int bytes, int as_type) {
    blank(window_memory);
    MPI_Win_sync(window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (as_type) MPI_Put(memory + ORIGIN, count, of->type, next_rank(), ORIGIN, count, of->type, window);
    else MPI_Put(packed, bytes, MPI_BYTE, next_rank(), ORIGIN, count, of->type, window);
    MPI_Win_flush(next_rank(), window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window);
    EXPECT(memcmp(window_memory, memory, ROOM) == 0);
    blank(others);
    memset(came, 0, (size_t)bytes);
    if (as_type) MPI_Get(came, bytes, MPI_BYTE, previous_rank(), ORIGIN, count, of->type, window);
    else MPI_Get(others + ORIGIN, count, of->type, previous_rank(), ORIGIN, count, of->type, window);
    MPI_Win_flush(previous_rank(), window);
    EXPECT(as_type ? memcmp(came, packed, (size_t)bytes) == 0 : memcmp(others, memory, ROOM) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void check(uint64_t seed) {
    random_state = first_seed = seed;
    struct model *of = make(between(1, 4), (struct choice){-1, 1});
    text = of->text;
    MPI_Type_commit(&of->type);
    ask(of);
    int count = between(1, 3), bytes = 0, outside = 0, covered = cover(of, count + 1, marks);
    /* Elements that lie over each other can be sent, but not received, and a number is whatever was put last. */
    int is_apart = covered == 0 || covered == 1;
    if (is_apart) {
        blank(memory);
        fill(memory, of, count, (unsigned)draw(), packed, &bytes, external, &outside);
        pack(of, count, bytes, outside, 1);
        switch (below(6)) {
        case 0: message(of, count, bytes, 1, 1); break;
        case 1: message(of, count, bytes, 1, 0); break;
        case 2: message(of, count, bytes, 0, 1); break;
        case 3: collective(of, count, bytes, 0); break;
        case 4: collective(of, count, bytes, 1 + below(2)); break;
        case 5: access(of, count, bytes, below(2)); break;
        }
    } else if (covered > 1 && !ELSEWHERE) {
        for (int i = 0; i < ROOM; i++) memory[i] = (char)(i * 7 + i / 256);
        for (int i = 0; i < count; i++) {
            for (int k = 0; k < of->count; k++) {
                const struct basic *basic = &basics[of->places[k].basic];
                for (int j = 0; j < basic->numbers; j++) {
                    const struct number *it = &basic->number[j];
                    memcpy(packed + bytes, memory + ORIGIN + i * extent_of(of) + of->places[k].at + it->at,
                           (size_t)it->bytes);
                    bytes += it->bytes;
                }
            }
        }
        int position = 0;
        MPI_Pack(memory + ORIGIN, count, of->type, came, MOST_BYTES, &position, MPI_COMM_WORLD);
        EXPECT(position == bytes && memcmp(came, packed, (size_t)bytes) == 0);
        message(of, count, bytes, 1, 0);
    }
    drop(of);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    make_basics();
    unsigned long long seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    unsigned long long count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    MPI_Win_allocate(ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window_memory, &window);
    MPI_Win_lock_all(0, window);
    for (unsigned long long i = 0; i < count; i++) check(seed + i);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    return finish("random_types");
}
