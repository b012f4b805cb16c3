/* The ways of copying that copy.c compares: loops of their own beside the C library's. Each takes a multiple of 256
 * bytes and buffers that lie at multiples of 64. */

#ifndef BENCH_METHODS_H
#define BENCH_METHODS_H

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef void copier(char *to, const char *from, size_t bytes);

static void by_memcpy(char *to, const char *from, size_t bytes) { memcpy(to, from, bytes); }

#if defined(__x86_64__)

/* How far ahead of the copy lines are fetched. */
enum { LINE = 64, AHEAD = 1024, PAGE = 4096, PAGES_AT_ONCE = 4 };

static void by_movsb(char *to, const char *from, size_t bytes) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

__attribute__((target("avx2"))) static void by_avx2(char *to, const char *from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4 * 32) {
        const __m256i *source = (const __m256i *)(from + at);
        __m256i a = _mm256_load_si256(source), b = _mm256_load_si256(source + 1);
        __m256i c = _mm256_load_si256(source + 2), d = _mm256_load_si256(source + 3);
        __m256i *target = (__m256i *)(to + at);
        _mm256_store_si256(target, a);
        _mm256_store_si256(target + 1, b);
        _mm256_store_si256(target + 2, c);
        _mm256_store_si256(target + 3, d);
    }
}

/* Stores that go past the caches. */
__attribute__((target("avx2"))) static void by_avx2_nt(char *to, const char *from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4 * 32) {
        const __m256i *source = (const __m256i *)(from + at);
        __m256i a = _mm256_load_si256(source), b = _mm256_load_si256(source + 1);
        __m256i c = _mm256_load_si256(source + 2), d = _mm256_load_si256(source + 3);
        __m256i *target = (__m256i *)(to + at);
        _mm256_stream_si256(target, a);
        _mm256_stream_si256(target + 1, b);
        _mm256_stream_si256(target + 2, c);
        _mm256_stream_si256(target + 3, d);
    }
    _mm_sfence();
}

/* Four lines. */
__attribute__((target("avx512f"))) static inline void four_lines(char *to, const char *from) {
    __m512i a = _mm512_load_si512(from), b = _mm512_load_si512(from + LINE);
    __m512i c = _mm512_load_si512(from + 2 * LINE), d = _mm512_load_si512(from + 3 * LINE);
    _mm512_store_si512(to, a);
    _mm512_store_si512(to + LINE, b);
    _mm512_store_si512(to + 2 * LINE, c);
    _mm512_store_si512(to + 3 * LINE, d);
}

__attribute__((target("avx512f"))) static void by_avx512(char *to, const char *from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4 * LINE) four_lines(to + at, from + at);
}

/* Lines of both buffers are fetched before it is their turn. */
__attribute__((target("avx512f"))) static void by_avx512_prefetch(char *to, const char *from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4 * LINE) {
        for (size_t line = AHEAD; line < AHEAD + 4 * LINE; line += LINE) {
            __builtin_prefetch(from + at + line, 0);
            __builtin_prefetch(to + at + line, 1);
        }
        four_lines(to + at, from + at);
    }
}

/* Lines of the source are fetched so that they do not stay in the caches. */
__attribute__((target("avx512f"))) static void by_avx512_nta(char *to, const char *from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4 * LINE) {
        for (size_t line = AHEAD; line < AHEAD + 4 * LINE; line += LINE)
            _mm_prefetch(from + at + line, _MM_HINT_NTA);
        four_lines(to + at, from + at);
    }
}

__attribute__((target("avx512f"))) static void by_avx512_nt(char *to, const char *from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4 * LINE) {
        __m512i a = _mm512_load_si512(from + at), b = _mm512_load_si512(from + at + LINE);
        __m512i c = _mm512_load_si512(from + at + 2 * LINE), d = _mm512_load_si512(from + at + 3 * LINE);
        _mm512_stream_si512((void *)(to + at), a);
        _mm512_stream_si512((void *)(to + at + LINE), b);
        _mm512_stream_si512((void *)(to + at + 2 * LINE), c);
        _mm512_stream_si512((void *)(to + at + 3 * LINE), d);
    }
    _mm_sfence();
}

/* Four pages at once, past the caches: as many streams for the prefetcher, and for banks of the memory. */
__attribute__((target("avx512f"))) static void by_avx512_nt4(char *to, const char *from, size_t bytes) {
    size_t block = PAGES_AT_ONCE * PAGE, whole = bytes / block * block;
    for (size_t begin = 0; begin < whole; begin += block)
        for (size_t line = 0; line < PAGE; line += 2 * LINE)
            for (size_t page = 0; page < block; page += PAGE) {
                size_t at = begin + page + line;
                __builtin_prefetch(from + at + 4 * LINE, 0);
                __builtin_prefetch(from + at + 5 * LINE, 0);
                __m512i a = _mm512_load_si512(from + at), b = _mm512_load_si512(from + at + LINE);
                _mm512_stream_si512((void *)(to + at), a);
                _mm512_stream_si512((void *)(to + at + LINE), b);
            }
    by_avx512_nt(to + whole, from + whole, bytes - whole);
}

static int has_avx2(void) { return __builtin_cpu_supports("avx2"); }
static int has_avx512(void) { return __builtin_cpu_supports("avx512f"); }

#endif

static int is_everywhere(void) { return 1; }

static const struct method {
    const char *name;
    copier *copy;
    /* Whether this processor can do it. */
    int (*is_there)(void);
} methods[] = {
    {"memcpy", by_memcpy, is_everywhere},
#if defined(__x86_64__)
    {"movsb", by_movsb, is_everywhere},
    {"avx2", by_avx2, has_avx2},
    {"avx512", by_avx512, has_avx512},
    {"avx512-prefetch", by_avx512_prefetch, has_avx512},
    {"avx512-nta", by_avx512_nta, has_avx512},
    {"avx2-nt", by_avx2_nt, has_avx2},
    {"avx512-nt", by_avx512_nt, has_avx512},
    {"avx512-nt4", by_avx512_nt4, has_avx512},
#endif
};

enum { METHODS = sizeof methods / sizeof *methods };

#endif
