/* What ranks do after MPI_Finalize, and how they end; the case is the first argument. */
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_there(const char *name) { return access(name, F_OK) == 0; }
static void touch(const char *name) { close(open(name, O_CREAT | O_WRONLY, 0600)); }
static void wait_for(const char *name) {
    while (!is_there(name)) usleep(1000);
}
static void touch_gone(void) { touch("gone"); }

static int nobody_sends(void) {
    int none;
    return MPI_Recv(&none, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void *calls_late(void *argument) {
    usleep(300000);
    MPI_Send(&rank, 1, MPI_INT, rank, 1, MPI_COMM_WORLD);
    return argument;
}
static void *waits_for_ever(void *argument) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    for (;;) pthread_cond_wait(&never, &mutex);
    return argument;
}

int main(int argc, char **argv) {
    const char *what = argv[1];
    begin(&argc, &argv);
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d has the sum %d\n", rank, sum);
    if (strcmp(what, "without_finalize") == 0) {
        if (rank == 1) return 6;
        for (;;) MPI_Barrier(MPI_COMM_WORLD);
    }
    if (strcmp(what, "abort") == 0 || strcmp(what, "fatal_error") == 0) {
        if (rank == 0) {
            usleep(20000);
            if (strcmp(what, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 6);
            MPI_Send(&rank, 1, MPI_INT, 99, 1, MPI_COMM_WORLD);
        }
        for (;;) MPI_Barrier(MPI_COMM_WORLD);
    }
    if (strstr(what, "thread")) {
        void *(*run)(void *) = strcmp(what, "late_thread") == 0 ? calls_late : waits_for_ever;
        pthread_t made;
        if (rank == 1) CHECK(pthread_create(&made, NULL, run, NULL) == 0);
        return nobody_sends();
    }
    if (strcmp(what, "well") == 0) return finish("endings");
    MPI_Finalize();
    if (strcmp(what, "all_fail") == 0) return 1;
    if (strcmp(what, "one_fails") == 0) {
        /* Rank 3 is gone with its status before the others write what they have. */
        if (rank == 3) {
            atexit(touch_gone);
            return 3;
        }
        wait_for("gone");
        usleep(50000);
        char name[32];
        sprintf(name, "rank%d", rank);
        FILE *file = fopen(name, "w");
        for (int line = 0; line < 1000; line++) fprintf(file, "line %d\n", line);
        fclose(file);
        printf("rank %d: last words\n", rank);
        return 0;
    }
    if (strcmp(what, "two_fail") == 0) {
        if (rank == 2) {
            atexit(touch_gone);
            exit(22);
        }
        wait_for("gone");
        exit(rank == 1 ? 11 : 0);
    }
    if (strcmp(what, "at_once") == 0) {
        fflush(stdout);
        _exit(rank == 1 ? 5 : 0);
    }
    return 99;
}
