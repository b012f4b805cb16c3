/* Derived datatypes: each is compared with a list of the places it means, computed by hand. */
#include "check.h"

#include <complex.h>
#include <stddef.h>

#define ROUNDS 25
#define ROOM 4096

struct record { char letter; double number; int pair[2]; short last; };

/* A type, and the bytes it means in their order. */
struct entry {
    const char *name;
    MPI_Datatype type;
    int count;
    int places[ROOM];
    MPI_Aint lower, extent;
    int elements;
};
static struct entry entries[32];
static int entry_count;

static struct entry *add(const char *name, MPI_Datatype type, MPI_Aint lower, MPI_Aint extent) {
    struct entry *entry = &entries[entry_count++];
    *entry = (struct entry){.name = name, .type = type, .lower = lower, .extent = extent};
    MPI_Type_commit(&entry->type);
    return entry;
}
static void means(struct entry *entry, int place, int bytes) {
    for (int i = 0; i < bytes; i++) entry->places[entry->count++] = place + i;
    entry->elements++;
}

static void make(void) {
    MPI_Datatype type, inner;
    struct entry *entry;

    MPI_Type_contiguous(5, MPI_DOUBLE, &type);
    entry = add("contiguous", type, 0, 40);
    for (int i = 0; i < 5; i++) means(entry, 8 * i, 8);

    MPI_Type_vector(4, 2, 5, MPI_INT, &type);
    entry = add("vector", type, 0, (3 * 5 + 2) * 4);
    for (int i = 0; i < 4; i++) for (int k = 0; k < 2; k++) means(entry, (i * 5 + k) * 4, 4);

    MPI_Type_create_hvector(3, 1, 11, MPI_SHORT, &type);
    entry = add("hvector", type, 0, 24);
    for (int i = 0; i < 3; i++) means(entry, 11 * i, 2);

    int lengths[] = {2, 0, 3, 1}, displacements[] = {8, 1, 0, 20};
    MPI_Type_indexed(4, lengths, displacements, MPI_INT, &type);
    entry = add("indexed", type, 0, 84);
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < lengths[i]; k++) means(entry, (displacements[i] + k) * 4, 4);
    }

    MPI_Aint bytes[] = {100, 3, 50, 60};
    MPI_Type_create_hindexed(4, lengths, bytes, MPI_CHAR, &type);
    entry = add("hindexed", type, 50, 52);
    for (int i = 0; i < 4; i++) for (int k = 0; k < lengths[i]; k++) means(entry, bytes[i] + k, 1);

    int places[] = {7, 0, 3};
    MPI_Type_create_indexed_block(3, 2, places, MPI_FLOAT, &type);
    entry = add("indexed block", type, 0, 36);
    for (int i = 0; i < 3; i++) for (int k = 0; k < 2; k++) means(entry, (places[i] + k) * 4, 4);

    MPI_Aint far[] = {40, 10};
    MPI_Type_create_hindexed_block(2, 3, far, MPI_BYTE, &type);
    entry = add("hindexed block", type, 10, 33);
    for (int i = 0; i < 2; i++) for (int k = 0; k < 3; k++) means(entry, far[i] + k, 1);

    int blocks[] = {1, 1, 2, 1};
    MPI_Aint offsets[] = {offsetof(struct record, letter), offsetof(struct record, number),
                          offsetof(struct record, pair), offsetof(struct record, last)};
    MPI_Datatype members[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_SHORT};
    MPI_Type_create_struct(4, blocks, offsets, members, &inner);
    MPI_Type_create_resized(inner, 0, sizeof(struct record), &type);
    MPI_Type_free(&inner);
    inner = type;
    MPI_Type_contiguous(3, inner, &type);
    MPI_Type_free(&inner);
    entry = add("records", type, 0, 3 * sizeof(struct record));
    for (int i = 0; i < 3; i++) {
        int at = i * sizeof(struct record);
        means(entry, at, 1);
        means(entry, at + offsetof(struct record, number), 8);
        means(entry, at + offsetof(struct record, pair), 4);
        means(entry, at + offsetof(struct record, pair) + 4, 4);
        means(entry, at + offsetof(struct record, last), 2);
    }

    int sizes[] = {4, 5, 6}, parts[] = {2, 3, 2}, starts[] = {1, 2, 3};
    MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
    entry = add("subarray, C", type, 0, 4 * 5 * 6 * 4);
    for (int i = 0; i < 2; i++) for (int j = 0; j < 3; j++) for (int k = 0; k < 2; k++) {
        means(entry, (((1 + i) * 5 + 2 + j) * 6 + 3 + k) * 4, 4);
    }
    MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_SHORT, &type);
    entry = add("subarray, Fortran", type, 0, 4 * 5 * 6 * 2);
    for (int k = 0; k < 2; k++) for (int j = 0; j < 3; j++) for (int i = 0; i < 2; i++) {
        means(entry, ((3 + k) * 20 + (2 + j) * 4 + 1 + i) * 2, 2);
    }

    /* The part of process 1 of 2 x 2: rows in blocks of 3, columns one by one. */
    int global[] = {6, 7}, how[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    int with[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, grid[] = {2, 2};
    MPI_Type_create_darray(4, 1, 2, global, how, with, grid, MPI_ORDER_C, MPI_INT, &type);
    entry = add("darray", type, 0, 6 * 7 * 4);
    for (int i = 0; i < 3; i++) for (int j = 1; j < 7; j += 2) means(entry, (i * 7 + j) * 4, 4);
    int wide[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE}, by[] = {2, MPI_DISTRIBUTE_DFLT_DARG};
    int rows[] = {2, 1};
    MPI_Type_create_darray(2, 1, 2, global, wide, by, rows, MPI_ORDER_C, MPI_CHAR, &type);
    entry = add("darray, cyclic by 2", type, 0, 6 * 7);
    for (int i = 2; i < 4; i++) for (int j = 0; j < 7; j++) means(entry, i * 7 + j, 1);

    /* A vector of vectors, and a type that overlaps its next. */
    MPI_Type_vector(2, 1, 2, MPI_INT, &inner);
    MPI_Type_create_resized(inner, 0, 4, &type);
    MPI_Type_free(&inner);
    inner = type;
    MPI_Type_create_hvector(3, 2, 64, inner, &type);
    MPI_Type_free(&inner);
    entry = add("nested", type, 0, 64 * 2 + 8);
    for (int i = 0; i < 3; i++) for (int k = 0; k < 2; k++) {
        means(entry, i * 64 + k * 4, 4);
        means(entry, i * 64 + k * 4 + 8, 4);
    }

    MPI_Type_vector(3, 1, 2, MPI_INT, &inner);
    MPI_Type_dup(inner, &type);
    MPI_Type_free(&inner);
    entry = add("duplicate", type, 0, 20);
    for (int i = 0; i < 3; i++) means(entry, i * 8, 4);

    MPI_Type_contiguous(0, MPI_INT, &type);
    add("nothing", type, 0, 0);
}

static void sizes_are_right(struct entry *entry) {
    int size = -1;
    MPI_Aint lower = -1, extent = -1;
    MPI_Count wide = -1;
    MPI_Type_size(entry->type, &size);
    MPI_Type_get_extent(entry->type, &lower, &extent);
    CHECK(size == entry->count && extent == entry->extent && lower == entry->lower);
    MPI_Type_size_x(entry->type, &wide);
    CHECK(wide == size);
    if (entry->count == 0) return;
    MPI_Aint first = ROOM, last = 0;
    for (int i = 0; i < entry->count; i++) {
        if (entry->places[i] < first) first = entry->places[i];
        if (entry->places[i] >= last) last = entry->places[i] + 1;
    }
    MPI_Type_get_true_extent(entry->type, &lower, &extent);
    CHECK(lower == first && extent == last - first);
}

static void fill(char *data, int seed) {
    for (int i = 0; i < ROOM; i++) data[i] = (char)(seed * 31 + i * 7 + (i >> 8));
}

/* Sent as the type and received as bytes, and the other way round. */
static void transfers(struct entry *entry, int round) {
    static char whole[ROOM], flat[ROOM], expected[ROOM];
    MPI_Request request;
    MPI_Status status;
    int elements = -1, count = -1, before = wrong;
    fill(whole, rank + round);
    MPI_Irecv(flat, ROOM, MPI_BYTE, previous_rank(), 1, MPI_COMM_WORLD, &request);
    MPI_Send(whole, 1, entry->type, next_rank(), 1, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_Get_elements(&status, MPI_BYTE, &elements);
    CHECK(elements == entry->count);
    fill(expected, previous_rank() + round);
    for (int i = 0; i < entry->count; i++) CHECK(flat[i] == expected[entry->places[i]]);

    /* What is not meant stays as it is. */
    memset(whole, 0x55, ROOM);
    memset(expected, 0x55, ROOM);
    fill(flat, rank + round);
    MPI_Irecv(whole, 1, entry->type, previous_rank(), 2, MPI_COMM_WORLD, &request);
    MPI_Send(flat, entry->count, MPI_BYTE, next_rank(), 2, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    static char sent[ROOM];
    fill(sent, previous_rank() + round);
    for (int i = 0; i < entry->count; i++) expected[entry->places[i]] = sent[i];
    CHECK(memcmp(whole, expected, ROOM) == 0);
    MPI_Get_elements(&status, entry->type, &elements);
    MPI_Get_count(&status, entry->type, &count);
    CHECK(elements == entry->elements && count == (entry->count ? 1 : 0));

    /* Packed by hand. */
    int position = 0, needed = -1;
    fill(whole, rank);
    memset(flat, 0, ROOM);
    MPI_Pack_size(1, entry->type, MPI_COMM_WORLD, &needed);
    CHECK(needed >= entry->count && needed < ROOM);
    MPI_Pack(whole, 1, entry->type, flat, ROOM, &position, MPI_COMM_WORLD);
    MPI_Pack(&round, 1, MPI_INT, flat, ROOM, &position, MPI_COMM_WORLD);
    int length = position, number = -1;
    position = 0;
    memset(expected, 0x33, ROOM);
    MPI_Unpack(flat, length, &position, expected, 1, entry->type, MPI_COMM_WORLD);
    MPI_Unpack(flat, length, &position, &number, 1, MPI_INT, MPI_COMM_WORLD);
    CHECK(number == round && position == length);
    for (int i = 0; i < entry->count; i++) CHECK(expected[entry->places[i]] == whole[entry->places[i]]);
    if (wrong > before && before < 5) fprintf(stderr, "of %s\n", entry->name);
}

/* Two of them one behind the other, as part of a message of which less comes. */
static void partly(int round) {
    static char whole[ROOM], expected[ROOM];
    MPI_Datatype pair;
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_DOUBLE, MPI_INT},
                           &pair);
    MPI_Type_commit(&pair);
    double number = rank + round;
    MPI_Request request;
    MPI_Status status;
    memset(whole, 0x44, ROOM);
    memset(expected, 0x44, ROOM);
    MPI_Irecv(whole, 10, pair, previous_rank(), 3, MPI_COMM_WORLD, &request);
    /* A pair and a half. */
    MPI_Datatype half;
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 16}, (MPI_Datatype[]){pair, MPI_DOUBLE}, &half);
    MPI_Type_commit(&half);
    char out[24];
    memcpy(out, &number, 8);
    memcpy(out + 8, &rank, 4);
    memcpy(out + 16, &number, 8);
    MPI_Send(out, 1, half, next_rank(), 3, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    int count = -1, elements = -1, previous = previous_rank();
    MPI_Get_count(&status, pair, &count);
    MPI_Get_elements(&status, pair, &elements);
    CHECK(count == MPI_UNDEFINED && elements == 3);
    MPI_Count wide = -1;
    MPI_Get_elements_x(&status, pair, &wide);
    CHECK(wide == 3);
    number = previous + round;
    memcpy(expected, &number, 8);
    memcpy(expected + 8, &previous, 4);
    memcpy(expected + 16, &number, 8);
    CHECK(memcmp(whole, expected, ROOM) == 0);
    MPI_Type_free(&pair);
    MPI_Type_free(&half);
}

/* In a format of all machines: the highest byte first. */
static void external(void) {
    int numbers[2] = {0x01020304, -2}, back[2];
    double one = 1.0;
    short two = 2;
    MPI_Aint position = 0, needed = -1;
    unsigned char packed[64];
    MPI_Pack_external_size("external32", 2, MPI_INT, &needed);
    CHECK(needed == 8);
    MPI_Pack_external("external32", numbers, 2, MPI_INT, packed, sizeof packed, &position);
    MPI_Pack_external("external32", &one, 1, MPI_DOUBLE, packed, sizeof packed, &position);
    MPI_Pack_external("external32", &two, 1, MPI_SHORT, packed, sizeof packed, &position);
    const unsigned char expected[] = {1, 2, 3, 4, 255, 255, 255, 254, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0, 2};
    CHECK(position == 18 && memcmp(packed, expected, 18) == 0);
    position = 0;
    one = 0;
    MPI_Unpack_external("external32", packed, sizeof packed, &position, back, 2, MPI_INT);
    MPI_Unpack_external("external32", packed, sizeof packed, &position, &one, 1, MPI_DOUBLE);
    CHECK(back[0] == numbers[0] && back[1] == -2 && one == 1.0 && position == 16);
    struct entry *records = NULL;
    for (int i = 0; i < entry_count; i++) if (strcmp(entries[i].name, "records") == 0) records = &entries[i];
    struct record out[3] = {{'a', 1.5, {1, 2}, 3}, {'b', 2.5, {4, 5}, 6}, {'c', 3.5, {7, 8}, 9}}, in[3];
    unsigned char bytes[128];
    memset(in, 0, sizeof in);
    position = 0;
    MPI_Pack_external("external32", out, 1, records->type, bytes, sizeof bytes, &position);
    CHECK(position == 3 * (1 + 8 + 8 + 2) && bytes[0] == 'a' && bytes[1] == 0x3f && bytes[2] == 0xf8);
    position = 0;
    MPI_Unpack_external("external32", bytes, sizeof bytes, &position, in, 1, records->type);
    for (int i = 0; i < 3; i++) {
        CHECK(in[i].letter == out[i].letter && in[i].number == out[i].number);
        CHECK(in[i].pair[1] == out[i].pair[1] && in[i].last == out[i].last);
    }
}

/* A `long double` is a number of 128 bits there, whatever it is here; and types that Fortran selects by precision are
 * numbers, too. */
static void external_reals(void) {
    unsigned char packed[64];
    MPI_Aint position = 0, needed = -1;
    const unsigned char quarter[16] = {0xbf, 0xff, 0x40}, two[20] = {0x40, [19] = 7};
    const unsigned char one_and_two[32] = {0x3f, 0xff, [16] = 0x40};
    long double number = -1.25L, third = 1 / 3.0L;
    MPI_Pack_external("external32", &number, 1, MPI_LONG_DOUBLE, packed, sizeof packed, &position);
    CHECK(position == 16 && memcmp(packed, quarter, 16) == 0);
    number = position = 0;
    MPI_Unpack_external("external32", quarter, 16, &position, &number, 1, MPI_LONG_DOUBLE);
    CHECK(position == 16 && number == -1.25L);
    union { __float128 number; unsigned char bytes[16]; } same = {third};
    position = 0;
    MPI_Pack_external("external32", &third, 1, MPI_LONG_DOUBLE, packed, sizeof packed, &position);
    for (int i = 0; i < 16; i++) CHECK(packed[i] == same.bytes[15 - i]);
    position = 0;
    MPI_Unpack_external("external32", packed, 16, &position, &number, 1, MPI_LONG_DOUBLE);
    CHECK(number == third);
    long double complex both = 1 + 2 * I;
    position = 0;
    MPI_Pack_external("external32", &both, 1, MPI_C_LONG_DOUBLE_COMPLEX, packed, sizeof packed, &position);
    CHECK(position == 32 && memcmp(packed, one_and_two, 32) == 0);
    struct { long double value; int index; } pair = {2, 7}, back = {0, 0};
    MPI_Pack_external_size("external32", 1, MPI_LONG_DOUBLE_INT, &needed);
    position = 0;
    MPI_Pack_external("external32", &pair, 1, MPI_LONG_DOUBLE_INT, packed, sizeof packed, &position);
    CHECK(position == 20 && needed == 20 && memcmp(packed, two, 20) == 0);
    position = 0;
    MPI_Unpack_external("external32", packed, 20, &position, &back, 1, MPI_LONG_DOUBLE_INT);
    CHECK(back.value == 2 && back.index == 7);
    MPI_Datatype selected;
    MPI_Type_create_f90_real(15, 307, &selected);
    double reals[2] = {1, -2}, got[2] = {0, 0};
    const unsigned char of_reals[16] = {0x3f, 0xf0, [8] = 0xc0};
    position = 0;
    MPI_Pack_external("external32", reals, 2, selected, packed, sizeof packed, &position);
    CHECK(position == 16 && memcmp(packed, of_reals, 16) == 0);
    MPI_Status status;
    int elements = -1;
    MPI_Sendrecv(reals, 2, selected, rank, 5, got, 2, selected, rank, 5, MPI_COMM_WORLD, &status);
    MPI_Get_elements(&status, selected, &elements);
    CHECK(elements == 2 && got[1] == -2);
    MPI_Type_create_f90_integer(9, &selected);
    int whole = 0x01020304;
    position = 0;
    MPI_Pack_external("external32", &whole, 1, selected, packed, sizeof packed, &position);
    CHECK(position == 4 && packed[0] == 1 && packed[3] == 4);
}

/* Made again from what is said about it. */
static MPI_Datatype again(MPI_Datatype type) {
    int numbers = 0, addresses = 0, types = 0, combiner = -1;
    MPI_Type_get_envelope(type, &numbers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED) return type;
    int n[64];
    MPI_Aint a[64];
    MPI_Datatype t[64], made = MPI_DATATYPE_NULL;
    CHECK(numbers <= 64 && addresses <= 64 && types <= 64);
    MPI_Type_get_contents(type, numbers, addresses, types, n, a, t);
    for (int i = 0; i < types; i++) {
        MPI_Datatype inner = again(t[i]);
        int has[4];
        MPI_Type_get_envelope(t[i], &has[0], &has[1], &has[2], &has[3]);
        if (has[3] != MPI_COMBINER_NAMED) MPI_Type_free(&t[i]);
        t[i] = inner;
    }
    int at = 0;
    switch (combiner) {
    case MPI_COMBINER_DUP: MPI_Type_dup(t[0], &made); break;
    case MPI_COMBINER_CONTIGUOUS: MPI_Type_contiguous(n[0], t[0], &made); break;
    case MPI_COMBINER_VECTOR: MPI_Type_vector(n[0], n[1], n[2], t[0], &made); break;
    case MPI_COMBINER_HVECTOR: MPI_Type_create_hvector(n[0], n[1], a[0], t[0], &made); break;
    case MPI_COMBINER_INDEXED: MPI_Type_indexed(n[0], n + 1, n + 1 + n[0], t[0], &made); break;
    case MPI_COMBINER_HINDEXED: MPI_Type_create_hindexed(n[0], n + 1, a, t[0], &made); break;
    case MPI_COMBINER_INDEXED_BLOCK: MPI_Type_create_indexed_block(n[0], n[1], n + 2, t[0], &made); break;
    case MPI_COMBINER_HINDEXED_BLOCK: MPI_Type_create_hindexed_block(n[0], n[1], a, t[0], &made); break;
    case MPI_COMBINER_STRUCT: MPI_Type_create_struct(n[0], n + 1, a, t, &made); break;
    case MPI_COMBINER_RESIZED: MPI_Type_create_resized(t[0], a[0], a[1], &made); break;
    case MPI_COMBINER_SUBARRAY:
        at = n[0];
        MPI_Type_create_subarray(at, n + 1, n + 1 + at, n + 1 + 2 * at, n[1 + 3 * at], t[0], &made);
        break;
    case MPI_COMBINER_DARRAY:
        at = n[2];
        MPI_Type_create_darray(n[0], n[1], at, n + 3, n + 3 + at, n + 3 + 2 * at, n + 3 + 3 * at,
                               n[3 + 4 * at], t[0], &made);
        break;
    default: CHECK(!"a combiner of this program");
    }
    for (int i = 0; i < types; i++) {
        int has[4];
        MPI_Type_get_envelope(t[i], &has[0], &has[1], &has[2], &has[3]);
        if (has[3] != MPI_COMBINER_NAMED) MPI_Type_free(&t[i]);
    }
    return made;
}

/* Sizes of C's types, and their names. */
static void predefined(void) {
    const struct { MPI_Datatype type; int size; const char *name; } all[] = {
        {MPI_CHAR, 1, "MPI_CHAR"}, {MPI_SIGNED_CHAR, 1, "MPI_SIGNED_CHAR"},
        {MPI_UNSIGNED_CHAR, 1, "MPI_UNSIGNED_CHAR"}, {MPI_BYTE, 1, "MPI_BYTE"},
        {MPI_SHORT, sizeof(short), "MPI_SHORT"}, {MPI_UNSIGNED_SHORT, sizeof(short), "MPI_UNSIGNED_SHORT"},
        {MPI_INT, sizeof(int), "MPI_INT"}, {MPI_UNSIGNED, sizeof(int), "MPI_UNSIGNED"},
        {MPI_LONG, sizeof(long), "MPI_LONG"}, {MPI_UNSIGNED_LONG, sizeof(long), "MPI_UNSIGNED_LONG"},
        {MPI_LONG_LONG, 8, NULL}, {MPI_UNSIGNED_LONG_LONG, 8, "MPI_UNSIGNED_LONG_LONG"},
        {MPI_FLOAT, 4, "MPI_FLOAT"}, {MPI_DOUBLE, 8, "MPI_DOUBLE"},
        {MPI_LONG_DOUBLE, sizeof(long double), "MPI_LONG_DOUBLE"},
        {MPI_WCHAR, sizeof(wchar_t), "MPI_WCHAR"}, {MPI_C_BOOL, 1, "MPI_C_BOOL"},
        {MPI_INT8_T, 1, "MPI_INT8_T"}, {MPI_INT16_T, 2, "MPI_INT16_T"}, {MPI_INT32_T, 4, "MPI_INT32_T"},
        {MPI_INT64_T, 8, "MPI_INT64_T"}, {MPI_UINT64_T, 8, "MPI_UINT64_T"},
        {MPI_C_FLOAT_COMPLEX, 8, NULL}, {MPI_C_DOUBLE_COMPLEX, 16, "MPI_C_DOUBLE_COMPLEX"},
        {MPI_AINT, sizeof(MPI_Aint), "MPI_AINT"}, {MPI_OFFSET, sizeof(MPI_Offset), "MPI_OFFSET"},
        {MPI_COUNT, sizeof(MPI_Count), "MPI_COUNT"}, {MPI_FLOAT_INT, 8, "MPI_FLOAT_INT"},
        {MPI_DOUBLE_INT, 12, "MPI_DOUBLE_INT"}, {MPI_LONG_INT, 12, "MPI_LONG_INT"}, {MPI_2INT, 8, "MPI_2INT"},
        {MPI_SHORT_INT, 6, "MPI_SHORT_INT"}, {MPI_LONG_DOUBLE_INT, 20, "MPI_LONG_DOUBLE_INT"},
        {MPI_PACKED, 1, "MPI_PACKED"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char name[MPI_MAX_OBJECT_NAME] = "";
        int size = -1, length = -1;
        MPI_Type_size(all[i].type, &size);
        CHECK(size == all[i].size);
        MPI_Type_get_name(all[i].type, name, &length);
        CHECK(!all[i].name || (strcmp(name, all[i].name) == 0 && length == (int)strlen(name)));
    }
    MPI_Aint lower = -1, extent = -1;
    MPI_Type_get_extent(MPI_DOUBLE_INT, &lower, &extent);
    CHECK(lower == 0 && extent == 16);
    MPI_Type_get_extent(MPI_SHORT_INT, &lower, &extent);
    CHECK(extent == 8);
    MPI_Aint place = 0, other = 0;
    char bytes[10];
    MPI_Get_address(bytes, &place);
    MPI_Get_address(bytes + 7, &other);
    CHECK(MPI_Aint_diff(other, place) == 7 && MPI_Aint_add(place, 7) == other);
    const struct { int class, size; } sizes[] = {
        {MPI_TYPECLASS_INTEGER, 1}, {MPI_TYPECLASS_INTEGER, 2}, {MPI_TYPECLASS_INTEGER, 4},
        {MPI_TYPECLASS_INTEGER, 8}, {MPI_TYPECLASS_INTEGER, 16}, {MPI_TYPECLASS_REAL, 2},
        {MPI_TYPECLASS_REAL, 4}, {MPI_TYPECLASS_REAL, 8}, {MPI_TYPECLASS_REAL, 16}, {MPI_TYPECLASS_COMPLEX, 4},
        {MPI_TYPECLASS_COMPLEX, 8}, {MPI_TYPECLASS_COMPLEX, 16}, {MPI_TYPECLASS_COMPLEX, 32},
    };
    MPI_Datatype found;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int size = -1;
        CHECK(MPI_Type_match_size(sizes[i].class, sizes[i].size, &found) == MPI_SUCCESS);
        MPI_Type_size(found, &size);
        CHECK(size == sizes[i].size);
    }
    CHECK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &found) != MPI_SUCCESS);
    CHECK(MPI_Type_get_value_index(MPI_DATATYPE_NULL, MPI_INT, &found) != MPI_SUCCESS);
    CHECK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_DATATYPE_NULL, &found) != MPI_SUCCESS);
    CHECK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &found) == MPI_SUCCESS && found == MPI_DOUBLE_INT);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* With addresses instead of offsets, from MPI_BOTTOM. */
static void absolute(int round) {
    int one = rank + round, back[2] = {-1, -1};
    static double two;
    two = rank + 0.5;
    double number = -1;
    MPI_Aint places[2], targets[2];
    MPI_Datatype from, to;
    MPI_Get_address(&one, &places[0]);
    MPI_Get_address(&two, &places[1]);
    MPI_Get_address(&back[1], &targets[0]);
    MPI_Get_address(&number, &targets[1]);
    MPI_Type_create_struct(2, (int[]){1, 1}, places, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &from);
    MPI_Type_create_struct(2, (int[]){1, 1}, targets, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &to);
    MPI_Type_commit(&from);
    MPI_Type_commit(&to);
    MPI_Sendrecv(MPI_BOTTOM, 1, from, next_rank(), 4, MPI_BOTTOM, 1, to, previous_rank(), 4, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK(back[0] == -1 && back[1] == previous_rank() + round && number == previous_rank() + 0.5);
    MPI_Type_free(&from);
    MPI_Type_free(&to);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    make();
    predefined();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < entry_count; i++) {
            struct entry *entry = &entries[i];
            sizes_are_right(entry);
            transfers(entry, round);
            work();
            if (round % 5 == 1) {
                MPI_Datatype made = again(entry->type);
                MPI_Type_free(&entry->type);
                entry->type = made;
                MPI_Type_commit(&entry->type);
            }
        }
        partly(round);
        absolute(round);
        external();
        external_reals();
        stir();
    }
    for (int i = 0; i < entry_count; i++) {
        MPI_Type_free(&entries[i].type);
        CHECK(entries[i].type == MPI_DATATYPE_NULL);
    }
    return finish("datatypes");
}
