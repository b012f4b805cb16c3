/* Two processes on two cores copy a message to and fro: what copies of long messages come to without a runtime, by
 * method, by who copies, and by the size of pages.
 *
 *   copy BYTES ROUND_TRIPS REPETITIONS METHODS WHO PAGES [touch]
 *
 * METHODS are names of methods.h, WHO is receiver, sender or both (each one half, at once), PAGES is 4K or 2M; of each one
 * or several with commas between, or all that there are here. With `touch` the sender writes to each line of its buffer
 * before it sends, and the receiver reads each line of what it got, as programs do: lines then lie in the caches of
 * another core than the one that copies or reads. Prints a line for each combination: the seconds of one way, the
 * median of the repetitions. Needs no MPI. */

#define _GNU_SOURCE

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "methods.h"
#include "times.h"

/* Linux 6.1 has it, C libraries may not know it yet. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { LINE_BYTES = 64, HUGE_PAGE = 2 << 20, UNIT = 512 };

static const char *const who_names[] = {"receiver", "sender", "both"};
enum who { RECEIVER, SENDER, BOTH, WHO };
static const char *const pages_names[] = {"4K", "2M"};
enum pages { SMALL, HUGE_PAGES, PAGE_SIZES };

static void fail(const char *what, const char *why) {
    fprintf(stderr, "copy: %s: %s\n", what, why);
    exit(2);
}

/* What the processes tell each other, each in lines of its own: adjacent lines are fetched together. */
struct word {
    _Alignas(256) _Atomic uint64_t value;
};

static struct shared {
    /* The number of the message that was sent last, and of the one that was received last. */
    struct word sent, received;
    /* That of the message whose sender has copied its part. */
    struct word copied;
    /* How often each process has come to a place where it waits for the other. */
    struct word met[2];
    struct word wrong;
} *shared;

static inline void tell(struct word *word, uint64_t value) {
    atomic_store_explicit(&word->value, value, memory_order_release);
}

static inline void await(struct word *word, uint64_t value) {
    while (atomic_load_explicit(&word->value, memory_order_acquire) < value) {
#if defined(__x86_64__)
        __asm__ volatile("pause");
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }
}

static size_t bytes;
static int trips, repetitions, touches;
/* Which of the two processes this is. */
static int me;
/* The buffers of both. */
static char *outgoing[2], *incoming[2];
/* The message, and how often the processes have met. */
static uint64_t turn, meetings;

static void meet(void) {
    tell(&shared->met[me], ++meetings);
    await(&shared->met[1 - me], meetings);
}

static void write_lines(char *buffer, char value) {
    for (size_t at = 0; at < bytes; at += LINE_BYTES) buffer[at] = value;
}

static int lines_are(const char *buffer, char value) {
    char differences = 0;
    for (size_t at = 0; at < bytes; at += LINE_BYTES) differences |= buffer[at] ^ value;
    return !differences;
}

static void send_message(copier *copy, enum who who) {
    if (touches) write_lines(outgoing[me], (char)turn);
    tell(&shared->sent, turn);
    size_t first = who == BOTH ? bytes / 2 : 0;
    if (who != RECEIVER) {
        copy(incoming[1 - me] + first, outgoing[me] + first, bytes - first);
        tell(&shared->copied, turn);
    }
    await(&shared->received, turn);
}

static void receive_message(copier *copy, enum who who) {
    await(&shared->sent, turn);
    if (who != SENDER) copy(incoming[me], outgoing[1 - me], who == BOTH ? bytes / 2 : bytes);
    if (who != RECEIVER) await(&shared->copied, turn);
    if (touches && !lines_are(incoming[me], (char)turn)) tell(&shared->wrong, 1);
    tell(&shared->received, turn);
}

/* Whether all bytes are those that the other process sends. */
static int is_right(const char *buffer) {
    for (size_t at = 0; at < bytes; at++)
        if (buffer[at] != (touches && at % LINE_BYTES == 0 ? buffer[0] : 2 - me)) return 0;
    return 1;
}

/* Runs the repetitions; their times are the first process's. */
static void measure(copier *copy, enum who who, double *times) {
    memset(outgoing[me], me + 1, bytes);
    memset(incoming[me], 0, bytes);
    for (int repetition = -1; repetition < repetitions; repetition++) {
        meet();
        double start = seconds();
        for (int i = 0; i < 2 * trips; i++) {
            turn++;
            if (i % 2 == me)
                send_message(copy, who);
            else
                receive_message(copy, who);
        }
        if (repetition >= 0) times[repetition] = (seconds() - start) / trips / 2.0;
    }
    if (!is_right(incoming[me])) tell(&shared->wrong, 1);
    meet();
}

static void print_run(const struct method *method, enum who who, enum pages pages, double *times) {
    qsort(times, (size_t)repetitions, sizeof(double), ascending);
    printf("{\"figure\":\"copy\",\"seconds\":%.9g,\"least\":%.9g,\"most\":%.9g,\"repetitions\":%d,"
           "\"bytes\":%zu,\"method\":\"%s\",\"who\":\"%s\",\"pages\":\"%s\",\"touched\":%s}\n",
           (times[repetitions / 2] + times[(repetitions - 1) / 2]) / 2.0, times[0], times[repetitions - 1],
           repetitions, bytes, method->name, who_names[who], pages_names[pages], touches ? "true" : "false");
}

/* Shared memory at a multiple of 2 MiB; NULL, with errno, if it cannot have pages of this size. */
static char *map(size_t size, enum pages pages) {
    int file = memfd_create("copy", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)size) != 0) fail("no shared memory", strerror(errno));
    char *room = mmap(NULL, size + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) fail("no address space", strerror(errno));
    char *place = room + (HUGE_PAGE - (uintptr_t)room % HUGE_PAGE) % HUGE_PAGE;
    place = mmap(place, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    if (place == MAP_FAILED) fail("no shared memory", strerror(errno));
    close(file);
    if (pages == SMALL) madvise(place, size, MADV_NOHUGEPAGE);
    memset(place, 1, size);
    return pages == SMALL || madvise(place, size, MADV_COLLAPSE) == 0 ? place : NULL;
}

/* Binds this process to the first or second of the processors that it may use. */
static void pin(int which) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0) fail("sched_getaffinity", strerror(errno));
    CPU_ZERO(&one);
    for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && seen++ == which) CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) fail("sched_setaffinity", strerror(errno));
}

/* The other process waits for this one for ever, and this one for the other. */
static void other_is_gone(int signal) {
    static const char text[] = "copy: the other process has ended\n";
    (void)signal;
    if (write(2, text, sizeof text - 1) < 0) _exit(1);
    _exit(1);
}

/* Whether a list has a name. */
static int has(const char *list, const char *name) {
    size_t length = strlen(name);
    if (strcmp(list, "all") == 0) return 1;
    for (const char *rest = list; (rest = strstr(rest, name)); rest += length)
        if ((rest == list || rest[-1] == ',') && (rest[length] == ',' || !rest[length])) return 1;
    return 0;
}

/* All combinations with pages of one size. */
static void run(const char *method_list, const char *who_list, enum pages pages, int may_leave_out) {
    size_t room = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char *memory = map(4 * room, pages);
    if (!memory) {
        if (!may_leave_out) fail("no pages of 2 MiB", strerror(errno));
        fprintf(stderr, "copy: left out: no pages of 2 MiB: %s\n", strerror(errno));
        return;
    }
    for (int i = 0; i < 2; i++) {
        outgoing[i] = memory + (size_t)i * room;
        incoming[i] = memory + (size_t)(2 + i) * room;
    }
    double *times = malloc((size_t)repetitions * sizeof(double));
    if (!times) fail("no memory", strerror(errno));
    signal(SIGCHLD, other_is_gone);
    fflush(stdout);
    pid_t other = fork();
    if (other < 0) fail("no process", strerror(errno));
    me = other == 0;
    if (me == 1) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* The page table of a child is empty: it has to get its large pages, too. */
        if (pages == HUGE_PAGES && madvise(memory, 4 * room, MADV_COLLAPSE) != 0) _exit(1);
    }
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    pin(me);
    for (int i = 0; i < METHODS; i++)
        for (int who = 0; who < WHO; who++) {
            if (!has(method_list, methods[i].name) || !methods[i].is_there() || !has(who_list, who_names[who])) continue;
            measure(methods[i].copy, (enum who)who, times);
            if (me == 0) print_run(&methods[i], (enum who)who, pages, times);
        }
    if (me == 0) signal(SIGCHLD, SIG_DFL);
    meet();
    if (me == 1) _exit(0);
    waitpid(other, NULL, 0);
    sched_setaffinity(0, sizeof before, &before);
    free(times);
    munmap(memory, 4 * room);
    if (atomic_load(&shared->wrong.value)) {
        fprintf(stderr, "copy: wrong bytes arrived\n");
        exit(1);
    }
}

static long argument(const char *text, const char *name, long most) {
    char *end = NULL;
    long value = strtol(text, &end, 10);
    if (value < 1 || value > most || *end) {
        fprintf(stderr, "copy: expected a whole number of %s from 1 to %ld, not '%s'\n", name, most, text);
        exit(2);
    }
    return value;
}

/* Refuses a list with a name that is none of these. */
static void check(const char *list, const char *what, const char *const *names, int count) {
    if (strcmp(list, "all") == 0) return;
    for (const char *rest = list;; rest++) {
        size_t length = strcspn(rest, ",");
        int known = 0;
        for (int i = 0; i < count; i++) known |= strlen(names[i]) == length && strncmp(rest, names[i], length) == 0;
        if (!known) {
            fprintf(stderr, "copy: expected %s: all", what);
            for (int i = 0; i < count; i++) fprintf(stderr, ", %s", names[i]);
            fprintf(stderr, "; not '%.*s'\n", (int)length, rest);
            exit(2);
        }
        rest += length;
        if (!*rest) return;
    }
}

int main(int count, char **arguments) {
    if (count < 7 || count > 8) fail("expected", "BYTES ROUND_TRIPS REPETITIONS METHODS WHO PAGES [touch]");
    bytes = (size_t)argument(arguments[1], "bytes", 1 << 30);
    if (bytes % UNIT) fail(arguments[1], "expected a multiple of 512 bytes");
    trips = (int)argument(arguments[2], "round trips", 1 << 30);
    repetitions = (int)argument(arguments[3], "repetitions", 1 << 20);
    const char *names[METHODS], *method_list = arguments[4], *who_list = arguments[5], *pages_list = arguments[6];
    for (int i = 0; i < METHODS; i++) names[i] = methods[i].name;
    check(method_list, "methods", names, METHODS);
    check(who_list, "who copies", who_names, WHO);
    check(pages_list, "pages", pages_names, PAGE_SIZES);
    if (count == 8 && strcmp(arguments[7], "touch") != 0) fail(arguments[7], "expected touch");
    touches = count == 8;
    int takes_all = strcmp(method_list, "all") == 0;
    for (int i = 0; i < METHODS; i++)
        if (!takes_all && has(method_list, names[i]) && !methods[i].is_there())
            fail(names[i], "this processor cannot do that");
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0 || CPU_COUNT(&cpus) < 2)
        fail("expected", "two processors that this process may use");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) fail("no shared memory", strerror(errno));
    for (int pages = 0; pages < PAGE_SIZES; pages++)
        if (has(pages_list, pages_names[pages]))
            run(method_list, who_list, (enum pages)pages, strcmp(pages_list, "all") == 0);
    return 0;
}
