/* libmpi_abi.so.1, made by vrt-abi: what programs are linked to and never run with.
 *
 * vrtrun loads a program itself and binds its MPI functions to its own. These here are called only
 * where a program was started without vrtrun. The first call of nearly every program then starts
 * it again, as one rank; where that cannot be, and for all other functions, a line says what to do.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Set in a program that was started again, so that it does not start itself for ever. */
#define AGAIN "VRT_STARTED_AGAIN"

static __attribute__((noreturn, cold, noinline)) void alone(const char *function)
{
    dprintf(STDERR_FILENO,
            "%s: this program was started by itself; start it with `vrtrun --ranks N PROGRAM`\n",
            function);
    _exit(2);
}

/* The arguments of this process, each with a zero behind it; their length, 0 if unknown. */
static size_t command_line(char **text)
{
    size_t length = 0, room = 4096;
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    *text = malloc(room);
    while (file >= 0 && *text) {
        ssize_t got = read(file, *text + length, room - length);
        if (got <= 0) {
            close(file);
            return got == 0 && length > 0 && (*text)[length - 1] == 0 ? length : 0;
        }
        length += (size_t)got;
        if (length == room)
            *text = realloc(*text, room *= 2);
    }
    return 0;
}

/* How many processes a launcher has started; where there is none, one rank if nobody says how many. NULL: somebody has. */
static const char *ranks(void)
{
    const char *said[] = {"VRTRUN", "VRT_RANKS", "VRT_PES"};
    const char *started[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    size_t i;
    for (i = 0; i < sizeof said / sizeof *said; i++)
        if (getenv(said[i]) && *getenv(said[i]))
            return NULL;
    for (i = 0; i < sizeof started / sizeof *started; i++)
        if (getenv(started[i]))
            return getenv(started[i]);
    return "1";
}

/* Starts this program again. What it wrote so far and did not flush is forgotten, and
 * it will write that again. */
static __attribute__((noreturn, cold, noinline)) void start_again(const char *function)
{
    static char program[PATH_MAX];
    const char *vrtrun = getenv("VRTRUN"), *number;
    char *text;
    size_t length, at, count = 0;
    char **arguments;
    if (getenv(AGAIN) || readlink("/proc/self/exe", program, sizeof program - 1) <= 0)
        alone(function);
    length = command_line(&text);
    for (at = 0; at < length; at++)
        count += text[at] == 0;
    arguments = count ? calloc(count + 5, sizeof *arguments) : NULL;
    if (!arguments || setenv(AGAIN, "1", 1) != 0)
        alone(function);
    /* A script that vrtrun has started: what it was told is in the environment. */
    count = 0;
    arguments[count++] = "vrtrun";
    number = ranks();
    if (number) {
        arguments[count++] = "--ranks";
        arguments[count++] = (char *)number;
    }
    arguments[count++] = "--";
    arguments[count++] = program;
    for (at = strlen(text) + 1; at < length; at += strlen(text + at) + 1)
        arguments[count++] = text + at;
    execvp(vrtrun && strchr(vrtrun, '/') ? vrtrun : arguments[0], arguments);
    alone(function);
}

/* Every function under both names: the second is the program's or a tool's to replace. */
#define BOTH(name)                                                                                 \
    int name(void) __attribute__((weak, alias("P" #name)))
#define FUNCTION(name)                                                                             \
    int P##name(void);                                                                             \
    int P##name(void) { alone(#name); }                                                            \
    BOTH(name)
#define FIRST(name)                                                                                \
    int P##name(void);                                                                             \
    int P##name(void) { start_again(#name); }                                                      \
    BOTH(name)
#define NUMBER(name, value)                                                                        \
    int P##name(int *number);                                                                      \
    int P##name(int *number) { *number = (value); return 0; }                                      \
    int name(int *number) __attribute__((weak, alias("P" #name)))
#define NUMBERS(name, first, second)                                                               \
    int P##name(int *one, int *other);                                                             \
    int P##name(int *one, int *other) { *one = (first); *other = (second); return 0; }             \
    int name(int *one, int *other) __attribute__((weak, alias("P" #name)))
#define TEXT(name, text)                                                                           \
    int P##name(char *to, int *length);                                                            \
    int P##name(char *to, int *length)                                                             \
    {                                                                                              \
        memcpy(to, text, sizeof text);                                                             \
        *length = (int)sizeof text - 1;                                                            \
        return 0;                                                                                  \
    }                                                                                              \
    int name(char *to, int *length) __attribute__((weak, alias("P" #name)))

