/* Many ranks begin and meet: as `vrt-bench run many --what start`, for a C program.
 *
 *   start
 *
 * prints the seconds from the start of the launcher, the parent of these
 * processes, until all ranks have been at a barrier (to 10 ms, in which Linux
 * keeps the former), and the memory of a rank: that of all processes, with
 * their page tables, divided by the ranks. */

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

/* Seconds from boot until a process was started. */
static double started(pid_t process) {
    char path[64], text[1024] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(text, sizeof text, file)) fail("cannot read when the launcher was started");
    fclose(file);
    /* The name is in parentheses and may have any characters; this is field 22, the name 2. */
    char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    if (!at) fail("cannot read when the launcher was started");
    return (double)strtoull(at, NULL, 10) / (double)sysconf(_SC_CLK_TCK);
}

/* Bytes of memory that this process has touched, and of its page tables. */
static double bytes_of_process(void) {
    static const char *const parts[] = {"RssAnon:", "RssShmem:", "VmPTE:"};
    char line[256];
    double kibibytes = 0.0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (!strncmp(line, parts[i], strlen(parts[i])))
                kibibytes += strtod(line + strlen(parts[i]), NULL);
    if (file) fclose(file);
    return 1024.0 * kibibytes;
}

/* The same of all processes: the lowest rank of each speaks for it. */
static double bytes_of_all(int rank) {
    int own = (int)getpid(), last = 0;
    double bytes = 0.0, sum = 0.0;
    for (;;) {
        int mine = own > last ? own : INT_MAX, next, first, speaker;
        MPI_Allreduce(&mine, &next, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (next == INT_MAX) break;
        first = own == next ? rank : INT_MAX;
        MPI_Allreduce(&first, &speaker, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (rank == speaker) bytes = bytes_of_process();
        last = next;
    }
    MPI_Reduce(&bytes, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return sum;
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    double bytes = bytes_of_all(rank);
    if (rank == 0) {
        double took = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - started(getppid());
        printf("{\"figure\":\"start\",\"seconds\":%.9g,\"bytes_per_rank\":%.6g}\n", took,
               bytes / ranks);
    }
    MPI_Finalize();
    return 0;
}
