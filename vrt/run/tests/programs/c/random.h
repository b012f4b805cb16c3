/* Random datatypes, each beside a list of what it means, which is made by the rules of the standard alone (MPI-4.1
 * section 5.1): its basic elements and where they lie, in their order, and its bounds. */
#ifndef RANDOM_H
#define RANDOM_H

#include "check.h"

#include <complex.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* A sequence that all ranks have in common. */
static uint64_t random_state, first_seed;
static uint64_t draw(void) {
    uint64_t it = random_state += 0x9e3779b97f4a7c15u;
    it = (it ^ it >> 30) * 0xbf58476d1ce4e5b9u;
    it = (it ^ it >> 27) * 0x94d049bb133111ebu;
    return it ^ it >> 31;
}
static int below(int n) { return (int)(draw() % (unsigned)n); }
static int between(int low, int high) { return low + below(high - low + 1); }

/* ---- Basic elements ---- */

enum kind { SIGNED, UNSIGNED, REAL, X87 };
/* A number in a basic element: where, its bytes in memory, and those in `external32`. */
struct number { int at, bytes, outside; enum kind kind; };
struct basic {
    const char *name;
    MPI_Datatype type;
    int extent, align;
    int numbers;
    struct number number[2];
    /* What MPI_Get_elements counts. */
    int elements;
};
#define ONE(type, c, outside, kind) \
    {#type, type, sizeof(c), _Alignof(c), 1, {{0, sizeof(c), outside, kind}}, 1}
#define TWO(type, c, part, outside, kind) \
    {#type, type, sizeof(c), _Alignof(c), 2, \
     {{0, sizeof(part), outside, kind}, {sizeof(part), sizeof(part), outside, kind}}, 1}
#define WITH_INT(type, c, outside, kind) \
    {#type, type, sizeof(struct { c a; int b; }), _Alignof(struct { c a; int b; }), 2, \
     {{0, sizeof(c), outside, kind}, {offsetof(struct { c a; int b; }, b), 4, 4, SIGNED}}, 2}
enum {
    CHAR, SHORT, INT, LONG, LONG_LONG, U8, U16, U32, U64, FLOAT, DOUBLE, LONG_DOUBLE, BOOL, WIDE, AINT,
    COMPLEX, DOUBLE_COMPLEX, LONG_DOUBLE_COMPLEX, SHORT_INT, TWO_INT, LONG_INT, FLOAT_INT, DOUBLE_INT,
    LONG_DOUBLE_INT, BASICS
};
static struct basic basics[BASICS];
static void make_basics(void) {
    struct basic all[] = {
        ONE(MPI_CHAR, char, 1, SIGNED),
        ONE(MPI_SHORT, short, 2, SIGNED),
        ONE(MPI_INT, int, 4, SIGNED),
        ONE(MPI_LONG, long, 4, SIGNED),
        ONE(MPI_LONG_LONG, long long, 8, SIGNED),
        ONE(MPI_UINT8_T, uint8_t, 1, UNSIGNED),
        ONE(MPI_UINT16_T, uint16_t, 2, UNSIGNED),
        ONE(MPI_UINT32_T, uint32_t, 4, UNSIGNED),
        ONE(MPI_UINT64_T, uint64_t, 8, UNSIGNED),
        ONE(MPI_FLOAT, float, 4, REAL),
        ONE(MPI_DOUBLE, double, 8, REAL),
        ONE(MPI_LONG_DOUBLE, long double, 16, X87),
        ONE(MPI_C_BOOL, _Bool, 1, UNSIGNED),
        ONE(MPI_WCHAR, wchar_t, 2, UNSIGNED),
        ONE(MPI_AINT, MPI_Aint, 8, SIGNED),
        TWO(MPI_C_FLOAT_COMPLEX, float complex, float, 4, REAL),
        TWO(MPI_C_DOUBLE_COMPLEX, double complex, double, 8, REAL),
        TWO(MPI_C_LONG_DOUBLE_COMPLEX, long double complex, long double, 16, X87),
        WITH_INT(MPI_SHORT_INT, short, 2, SIGNED),
        WITH_INT(MPI_2INT, int, 4, SIGNED),
        WITH_INT(MPI_LONG_INT, long, 4, SIGNED),
        WITH_INT(MPI_FLOAT_INT, float, 4, REAL),
        WITH_INT(MPI_DOUBLE_INT, double, 8, REAL),
        WITH_INT(MPI_LONG_DOUBLE_INT, long double, 16, X87),
    };
    memcpy(basics, all, sizeof all);
}

/* Bytes of data of an element, in memory and in `external32`. */
__attribute__((unused)) static int bytes_of(const struct basic *of, int outside) {
    int all = 0;
    for (int i = 0; i < of->numbers; i++) all += outside ? of->number[i].outside : of->number[i].bytes;
    return all;
}

/* ---- Datatypes ---- */

/* These programs can be built with other libraries, to see that the list is right. What those are known to do otherwise
 * is left out then. */
#if defined OPEN_MPI || defined MPICH_VERSION
#define ELSEWHERE 1
#else
#define ELSEWHERE 0
#endif

enum { MOST = 300, FAR = 2000 };
struct place { int at, basic; };
struct model {
    MPI_Datatype type;
    /* The basic elements, in their order. */
    int count;
    struct place places[MOST];
    int lower, upper, align;
    /* It has bounds, and these were set, in all that it is made of. */
    int is_bounded, is_set;
    char text[1200];
};
static int extent_of(const struct model *of) { return of->upper - of->lower; }

__attribute__((format(printf, 2, 3))) static void say(struct model *model, const char *format, ...) {
    va_list list;
    va_start(list, format);
    size_t used = strlen(model->text);
    vsnprintf(model->text + used, sizeof model->text - used, format, list);
    va_end(list);
}

/* So many elements of a datatype, one behind the other from some byte on. */
struct part { int at, length; const struct model *of; };

/* What the parts mean together; 0 if that is too much. */
static int lay(struct model *out, const struct part *parts, int count, int is_struct) {
    int any_set = 0, set_lower = 0, set_upper = 0;
    out->count = out->is_bounded = out->lower = out->upper = 0;
    out->align = out->is_set = 1;
    for (int p = 0; p < count; p++) {
        const struct model *of = parts[p].of;
        for (int i = 0; i < parts[p].length; i++) {
            int at = parts[p].at + i * extent_of(of), lower = of->lower + at, upper = of->upper + at;
            if (at < -2 * FAR || at > 2 * FAR || out->count + of->count > MOST) return 0;
            for (int k = 0; k < of->count; k++) {
                out->places[out->count++] = (struct place){of->places[k].at + at, of->places[k].basic};
            }
            if (!of->is_bounded) continue;
            out->lower = !out->is_bounded || lower < out->lower ? lower : out->lower;
            out->upper = !out->is_bounded || upper > out->upper ? upper : out->upper;
            if (of->is_set) {
                set_lower = !any_set || lower < set_lower ? lower : set_lower;
                set_upper = !any_set || upper > set_upper ? upper : set_upper;
                any_set = 1;
            }
            out->is_bounded = 1;
            out->is_set &= of->is_set;
            if (of->align > out->align) out->align = of->align;
        }
    }
    out->is_set &= out->is_bounded;
#ifdef OPEN_MPI
    /* There bounds that were set decide, whatever else there is; and all that has none is padded. */
    is_struct = 1;
    if (any_set) {
        out->lower = set_lower;
        out->upper = set_upper;
        out->is_set = 1;
    }
#elif defined MPICH_VERSION
    /* There a structure of one type is an indexed one. */
    const struct model *only = NULL;
    int differ = 0;
    for (int p = 0; p < count; p++) {
        if (parts[p].length == 0) continue;
        if (only && parts[p].of->type != only->type) differ = 1;
        only = parts[p].of;
    }
    is_struct &= differ;
#endif
    /* As a compiler pads a structure (what the standard calls epsilon). */
    while (is_struct && !out->is_set && extent_of(out) % out->align) out->upper++;
    for (int k = 0; k < out->count; k++) {
        if (abs(out->places[k].at) > FAR) return 0;
    }
    return abs(out->lower) <= FAR && abs(out->upper) <= FAR;
}
static void set_bounds(struct model *out, int lower, int upper) {
    out->lower = lower;
    out->upper = upper;
    out->is_bounded = out->is_set = 1;
}

/* Of what the datatypes are made: one basic type or any, and of which bytes displacements are a multiple. */
struct choice { int only, grid; };

static struct model *of_basic(int basic) {
    struct model *it = calloc(1, sizeof *it);
    it->type = basics[basic].type;
    it->count = it->is_bounded = 1;
    it->places[0].basic = basic;
    it->upper = basics[basic].extent;
    it->align = basics[basic].align;
    say(it, "%s", basics[basic].name + 4);
    return it;
}

static int is_basic(const struct model *of) {
    for (int i = 0; i < BASICS; i++) if (of->type == basics[i].type) return 1;
    return 0;
}
static void drop(struct model *it) {
    if (!is_basic(it)) MPI_Type_free(&it->type);
    free(it);
}

enum { DIMENSIONS = 3, PARTS = 6 };
struct array { int n, order, size[DIMENSIONS], part[DIMENSIONS], start[DIMENSIONS]; };

/* The parts of an array of which some elements are taken: `taken[d]` says which of each dimension. */
static int of_array(struct part *parts, const struct model *of, const struct array *array,
                    int taken[DIMENSIONS][8], const int counts[DIMENSIONS]) {
    int total = 1, n = 0;
    for (int d = 0; d < array->n; d++) total *= counts[d];
    for (int i = 0; i < total; i++) {
        int rest = i, at = 0, stride = 1;
        /* From the index that runs fastest on. */
        for (int k = 0; k < array->n; k++) {
            int d = array->order == MPI_ORDER_C ? array->n - 1 - k : k;
            at += taken[d][rest % counts[d]] * stride;
            rest /= counts[d];
            stride *= array->size[d];
        }
        parts[n++] = (struct part){at * extent_of(of), 1, of};
    }
    return n;
}

static struct model *make(int depth, struct choice choice);

/* One constructor over types that are made first; NULL if it is too much. */
static struct model *construct(int depth, struct choice choice) {
    struct model *out = calloc(1, sizeof *out), *of = make(depth - 1, choice), *others[PARTS];
    struct part parts[512] = {{0}};
    int lengths[PARTS], places[PARTS], n = between(ELSEWHERE, PARTS), others_count = 0, count = 0, fits = 0;
    MPI_Aint bytes[PARTS];
    MPI_Datatype types[PARTS];
    int extent = extent_of(of), grid = choice.grid, far = 60 / grid;
    for (int i = 0; i < n; i++) {
        lengths[i] = between(ELSEWHERE, 3);
        places[i] = between(-5, 15);
        bytes[i] = between(-far, 3 * far) * grid;
    }
    switch (between(0, 12)) {
    case 0:
        parts[count++] = (struct part){0, 1, of};
        fits = lay(out, parts, count, 0);
        MPI_Type_dup(of->type, &out->type);
        say(out, "dup(%s)", of->text);
        break;
    case 1:
        n = between(ELSEWHERE, 7);
        parts[count++] = (struct part){0, n, of};
        fits = lay(out, parts, count, 0);
        MPI_Type_contiguous(n, of->type, &out->type);
        say(out, "contiguous(%d, %s)", n, of->text);
        break;
    case 2: case 3: {
        int is_bytes = below(2), length = between(ELSEWHERE, 4), stride = between(-6, 6);
        if (is_bytes) stride = between(-far, far) * grid;
        n = between(ELSEWHERE, 5);
        for (int i = 0; i < n; i++) parts[count++] = (struct part){i * stride * (is_bytes ? 1 : extent), length, of};
        fits = lay(out, parts, count, 0);
        if (is_bytes) MPI_Type_create_hvector(n, length, stride, of->type, &out->type);
        else MPI_Type_vector(n, length, stride, of->type, &out->type);
        say(out, "%svector(%d, %d, %d, %s)", is_bytes ? "h" : "", n, length, stride, of->text);
        break;
    }
    case 4: case 5: {
        int is_bytes = below(2);
        say(out, "%sindexed(", is_bytes ? "h" : "");
        for (int i = 0; i < n; i++) {
            int at = is_bytes ? (int)bytes[i] : places[i] * extent;
            parts[count++] = (struct part){at, lengths[i], of};
            say(out, "%d at %d, ", lengths[i], is_bytes ? (int)bytes[i] : places[i]);
        }
        say(out, "%s)", of->text);
        fits = lay(out, parts, count, 0);
        if (is_bytes) MPI_Type_create_hindexed(n, lengths, bytes, of->type, &out->type);
        else MPI_Type_indexed(n, lengths, places, of->type, &out->type);
        break;
    }
    case 6: {
        int is_bytes = below(2), length = between(ELSEWHERE, 3);
        say(out, "%sindexed_block(%d: ", is_bytes ? "h" : "", length);
        for (int i = 0; i < n; i++) {
            int at = is_bytes ? (int)bytes[i] : places[i] * extent;
            parts[count++] = (struct part){at, length, of};
            say(out, "%d, ", is_bytes ? (int)bytes[i] : places[i]);
        }
        say(out, "%s)", of->text);
        fits = lay(out, parts, count, 0);
        if (is_bytes) MPI_Type_create_hindexed_block(n, length, bytes, of->type, &out->type);
        else MPI_Type_create_indexed_block(n, length, places, of->type, &out->type);
        break;
    }
    case 7: case 8: case 9:
        say(out, "struct(");
        for (int i = 0; i < n; i++) {
            others[others_count++] = make(depth - 1, choice);
            types[i] = others[i]->type;
            parts[count++] = (struct part){(int)bytes[i], lengths[i], others[i]};
            say(out, "%d at %d %s, ", lengths[i], (int)bytes[i], others[i]->text);
        }
        say(out, ")");
        fits = lay(out, parts, count, 1);
        MPI_Type_create_struct(n, lengths, bytes, types, &out->type);
        break;
    case 10: {
        struct array array = {between(1, DIMENSIONS), below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, {0}, {0}, {0}};
        int taken[DIMENSIONS][8], counts[DIMENSIONS], all = 1;
        say(out, "subarray(%s", array.order == MPI_ORDER_C ? "C" : "Fortran");
        for (int d = 0; d < array.n; d++) {
            array.size[d] = between(1, 5);
            array.part[d] = between(1, array.size[d]);
            array.start[d] = between(0, array.size[d] - array.part[d]);
            counts[d] = array.part[d];
            for (int i = 0; i < counts[d]; i++) taken[d][i] = array.start[d] + i;
            all *= array.size[d];
            say(out, ", %d from %d of %d", array.part[d], array.start[d], array.size[d]);
        }
        say(out, ", %s)", of->text);
        count = of_array(parts, of, &array, taken, counts);
        fits = lay(out, parts, count, 0) && abs(all * extent) <= FAR;
        set_bounds(out, 0, all * extent);
        MPI_Type_create_subarray(array.n, array.size, array.part, array.start, array.order, of->type, &out->type);
        break;
    }
    case 11: {
        struct array array = {between(1, DIMENSIONS), below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, {0}, {0}, {0}};
        int taken[DIMENSIONS][8], counts[DIMENSIONS], dealt[DIMENSIONS], argument[DIMENSIONS], grid_of[DIMENSIONS];
        int all = 1, ranks = 1;
        say(out, "darray(%s", array.order == MPI_ORDER_C ? "C" : "Fortran");
        for (int d = 0; d < array.n; d++) {
            array.size[d] = between(1, 6);
            int how = below(3);
            dealt[d] = how == 0 ? MPI_DISTRIBUTE_NONE : how == 1 ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
            grid_of[d] = how == 0 ? 1 : between(1, 3);
            ranks *= grid_of[d];
            all *= array.size[d];
            int least = how == 1 ? (array.size[d] + grid_of[d] - 1) / grid_of[d] : 1;
            argument[d] = how == 0 || below(2) ? MPI_DISTRIBUTE_DFLT_DARG : between(least, least + 2);
            say(out, ", %d %s by %d over %d", array.size[d], how == 0 ? "whole" : how == 1 ? "blocks" : "cyclic",
                argument[d], grid_of[d]);
        }
        int one = below(ranks), rest = one;
        say(out, ", rank %d, %s)", one, of->text);
        for (int d = array.n - 1; d >= 0; d--) {
            int here = rest % grid_of[d], each = argument[d];
            rest /= grid_of[d];
            if (dealt[d] == MPI_DISTRIBUTE_NONE) each = array.size[d];
            else if (each == MPI_DISTRIBUTE_DFLT_DARG) {
                each = dealt[d] == MPI_DISTRIBUTE_BLOCK ? (array.size[d] + grid_of[d] - 1) / grid_of[d] : 1;
            }
            counts[d] = 0;
            for (int i = 0; i < array.size[d]; i++) {
                if (i / each % grid_of[d] == here) taken[d][counts[d]++] = i;
            }
        }
        count = of_array(parts, of, &array, taken, counts);
        fits = lay(out, parts, count, 0) && abs(all * extent) <= FAR && count >= ELSEWHERE;
        set_bounds(out, 0, all * extent);
        MPI_Type_create_darray(ranks, one, array.n, array.size, dealt, argument, grid_of, array.order, of->type,
                               &out->type);
        break;
    }
    default: {
        int lower = between(-20 / grid, 20 / grid) * grid, length = between(ELSEWHERE || below(8) ? 0 : -40 / grid, 80 / grid) * grid;
        parts[count++] = (struct part){0, 1, of};
        fits = lay(out, parts, count, 0);
        set_bounds(out, lower, lower + length);
        MPI_Type_create_resized(of->type, lower, length, &out->type);
        say(out, "resized(%d, %d, %s)", lower, length, of->text);
        break;
    }
    }
    /* The new type stays what it is without those of which it is made. */
    while (others_count > 0) drop(others[--others_count]);
    drop(of);
    if (fits) return out;
    drop(out);
    return NULL;
}

/* A random basic type. Other libraries do not copy all bytes of a `long double`. */
static int some_basic(void) {
    int it;
    do it = below(BASICS);
    while (ELSEWHERE && basics[it].number[0].kind == X87);
    return it;
}

/* A random datatype: some constructors over each other. */
static struct model *make(int depth, struct choice choice) {
    for (int tries = 0; depth > 0 && tries < 4; tries++) {
        if (below(4) == 0) break;
        struct model *it = construct(depth, choice);
        if (it) return it;
    }
    return of_basic(choice.only >= 0 ? choice.only : some_basic());
}

/* ---- Memory ---- */

enum { ROOM = 1 << 15, ORIGIN = ROOM / 2 };

/* The bytes that some elements have in memory: how often each has one, at most; -1 if they do not fit. */
__attribute__((unused)) static int cover(const struct model *of, int count, unsigned char *marks) {
    int most = 0;
    memset(marks, 0, ROOM);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < of->count; k++) {
            const struct basic *basic = &basics[of->places[k].basic];
            int at = ORIGIN + i * extent_of(of) + of->places[k].at;
            if (at < 0 || at + basic->extent > ROOM) return -1;
            for (int j = 0; j < basic->numbers; j++) {
                for (int b = 0; b < basic->number[j].bytes; b++) {
                    int marked = ++marks[at + basic->number[j].at + b];
                    if (marked > most) most = marked;
                }
            }
        }
    }
    return most;
}

/* A number by which a salt is told from others: what it is in memory and outside. */
static void number(const struct number *of, unsigned salt, unsigned char *in, unsigned char *out) {
    int value = (int)(salt * 2654435761u >> 16) % 61;
    value = of->kind == UNSIGNED ? value : value - 30;
    memset(in, 0, (size_t)of->bytes);
    if (of->kind == REAL && of->bytes == 4) {
        float it = (float)value / 4;
        memcpy(in, &it, 4);
    } else if (of->kind == REAL) {
        double it = value / 3.0;
        memcpy(in, &it, 8);
    } else if (of->kind == X87) {
        long double it = value / 7.0L;
        memcpy(in, &it, 10);
        __float128 same = it;
        memcpy(out, &same, 16);
    } else {
        long long it = value;
        memcpy(in, &it, (size_t)of->bytes);
    }
    if (of->kind != X87) memcpy(out, in, (size_t)of->outside);
    for (int i = 0; i < of->outside / 2; i++) {
        unsigned char other = out[i];
        out[i] = out[of->outside - 1 - i];
        out[of->outside - 1 - i] = other;
    }
}

/* Puts numbers into elements, and gives the bytes of these as they are packed. A truth value is 0 or 1. */
__attribute__((unused)) static void fill(char *memory, const struct model *of, int count, unsigned salt,
                                         unsigned char *packed, int *size, unsigned char *external, int *outside) {
    unsigned char in[16], out[16];
    *size = *outside = 0;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < of->count; k++) {
            const struct basic *basic = &basics[of->places[k].basic];
            char *at = memory + ORIGIN + i * extent_of(of) + of->places[k].at;
            for (int j = 0; j < basic->numbers; j++) {
                const struct number *it = &basic->number[j];
                number(it, salt++, in, out);
                if (of->places[k].basic == BOOL) in[0] = out[0] = in[0] & 1;
                memcpy(at + it->at, in, (size_t)it->bytes);
                memcpy(packed + *size, in, (size_t)it->bytes);
                memcpy(external + *outside, out, (size_t)it->outside);
                *size += it->bytes;
                *outside += it->outside;
            }
        }
    }
}

#endif
