/* Files, pipes and sockets that stay open while their ranks are moved. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 300

static char *named(const char *what) {
    static char name[100];
    snprintf(name, sizeof name, "%s.%d", what, rank);
    return name;
}

/* A log of stdio's, which is written and flushed now and then, and read again through another stream. */
static void streams(void) {
    FILE *log = fopen(named("log"), "w+");
    FILE *temporary = tmpfile();
    CHECK(log && temporary && log != temporary && fileno(log) != fileno(temporary));
    int number = fileno(log);
    for (int round = 0; round < ROUNDS; round++) {
        CHECK(fprintf(log, "rank %d, round %d\n", rank, round) > 0);
        if (round % 7 == 0) CHECK(fflush(log) == 0);
        CHECK(fwrite(&round, sizeof round, 1, temporary) == 1);
        if (round % 5 == 0) CHECK(fflush(temporary) == 0);
        stir();
        CHECK(fileno(log) == number);
    }
    rewind(temporary);
    rewind(log);
    for (int round = 0; round < ROUNDS; round++) {
        int found = -1, of = -1, at = -1;
        CHECK(fread(&found, sizeof found, 1, temporary) == 1 && found == round);
        CHECK(fscanf(log, "rank %d, round %d\n", &of, &at) == 2 && of == rank && at == round);
        if (round % 10 == 0) stir();
    }
    CHECK(fgetc(log) == EOF && feof(log));
    CHECK(fclose(log) == 0 && fclose(temporary) == 0);
}

/* Positions and flags are the description's, which goes along. */
static void plain(void) {
    int file = open(named("plain"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int again = dup(file), appended = open(named("plain"), O_WRONLY | O_APPEND);
    int folder = open(".", O_RDONLY | O_DIRECTORY), null = open("/dev/null", O_RDWR);
    CHECK(file > 2 && again > 2 && appended > 2 && folder > 2 && null > 2);
    CHECK((fcntl(file, F_GETFD) & FD_CLOEXEC) && !(fcntl(again, F_GETFD) & FD_CLOEXEC));
    CHECK(flock(file, LOCK_EX) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        long word = 1000000L * rank + round;
        CHECK(write(round % 2 ? file : again, &word, sizeof word) == sizeof word);
        CHECK(lseek(file, 0, SEEK_CUR) == (round + 1) * (off_t)sizeof word);
        stir();
        CHECK(write(null, &word, sizeof word) == sizeof word && read(null, &word, 1) == 0);
    }
    CHECK((fcntl(file, F_GETFD) & FD_CLOEXEC) && !(fcntl(again, F_GETFD) & FD_CLOEXEC));
    struct stat one, other;
    CHECK(fstatat(folder, named("plain"), &one, 0) == 0 && fstat(file, &other) == 0);
    CHECK(one.st_ino == other.st_ino && one.st_size == ROUNDS * (off_t)sizeof(long));
    long last = -7;
    CHECK(write(appended, &last, sizeof last) == sizeof last);
    for (int round = 0; round < ROUNDS; round++) {
        long found = -1;
        CHECK(pread(again, &found, sizeof found, round * (off_t)sizeof found) == sizeof found);
        CHECK(found == 1000000L * rank + round);
        if (round % 10 == 0) stir();
    }
    CHECK(pread(file, &last, sizeof last, ROUNDS * (off_t)sizeof last) == sizeof last && last == -7);
    CHECK(close(file) == 0 && close(appended) == 0 && close(folder) == 0 && close(null) == 0);
    CHECK(fcntl(file, F_GETFD) == -1 && errno == EBADF);
    /* The lock is the description's, which `again` still has. */
    int third = open(named("plain"), O_RDONLY);
    CHECK(flock(third, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK);
    stir();
    CHECK(close(again) == 0 && flock(third, LOCK_EX | LOCK_NB) == 0 && close(third) == 0);
}

/* What is written on one PE is read on another. */
static void pipes(void) {
    int ends[2], pair[2];
    CHECK(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK(ends[0] != ends[1] && pair[0] != pair[1] && ends[1] != pair[0]);
    for (int round = 0; round < ROUNDS; round++) {
        long word = 1000000L * rank + round, found = -1;
        CHECK(write(ends[1], &word, sizeof word) == sizeof word);
        CHECK(send(pair[round % 2], &word, sizeof word, 0) == sizeof word);
        stir();
        fd_set set;
        FD_ZERO(&set);
        FD_SET(ends[0], &set);
        struct timeval none = {0, 0};
        CHECK(select(ends[0] + 1, &set, NULL, NULL, &none) == 1 && FD_ISSET(ends[0], &set));
        CHECK(read(ends[0], &found, sizeof found) == sizeof found && found == word);
        CHECK(recv(pair[1 - round % 2], &found, sizeof found, 0) == sizeof found && found == word);
    }
    /* Nobody else has the ends open. */
    char byte;
    CHECK(close(ends[1]) == 0);
    stir();
    CHECK(read(ends[0], &byte, 1) == 0);
    CHECK(close(pair[0]) == 0);
    stir();
    CHECK(recv(pair[1], &byte, 1, 0) == 0);
    CHECK(close(ends[0]) == 0 && close(pair[1]) == 0);
}

/* Opened and closed again and again, by all ranks at once. */
static void many(void) {
    int files[20];
    for (int round = 0; round < ROUNDS / 3; round++) {
        for (int i = 0; i < 20; i++) {
            char name[100];
            snprintf(name, sizeof name, "many.%d.%d", rank, i);
            files[i] = open(name, O_RDWR | O_CREAT, 0600);
            CHECK(files[i] > 2 && dprintf(files[i], "%4d %4d %4d", rank, round, i) == 14);
            if (i % 5 == 0) stir();
        }
        stir();
        for (int i = 0; i < 20; i++) {
            char found[100] = "", expected[100];
            snprintf(expected, sizeof expected, "%4d %4d %4d", rank, round, i);
            CHECK(pread(files[i], found, sizeof found - 1, 0) > 0 && strcmp(found, expected) == 0);
            CHECK(close(files[i]) == 0);
        }
    }
}

/* A lock of fcntl's is its process's, and ends when that closes any descriptor of the file: the counter is read
   and written under it by all ranks. */
static void locks(void) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int own = open(named("own"), O_RDWR | O_CREAT, 0600);
    CHECK(fcntl(own, F_SETLK, &whole) == 0);
    /* To open it once more does not end that, as another process sees. */
    int again = open(named("own"), O_RDWR);
    pid_t child = fork();
    if (child == 0) {
        fcntl(own, F_GETLK, &whole);
        _exit(whole.l_type == F_WRLCK && whole.l_pid == getppid() ? 0 : 1);
    }
    int status = -1;
    CHECK(again > 2 && waitpid(child, &status, 0) == child && status == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    int file = open("counter", O_RDWR | O_CREAT, 0600);
    CHECK(file > 2);
    for (int round = 0; round < 50; round++) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        CHECK(fcntl(file, F_SETLKW, &lock) == 0);
        long count = 0;
        if (pread(file, &count, sizeof count, 0) != sizeof count) count = 0;
        count++;
        CHECK(pwrite(file, &count, sizeof count, 0) == sizeof count);
        lock.l_type = F_UNLCK;
        CHECK(fcntl(file, F_SETLK, &lock) == 0);
        stir();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    long count = -1;
    CHECK(pread(file, &count, sizeof count, 0) == sizeof count && count == 50 * size);
    CHECK(close(file) == 0 && close(again) == 0 && close(own) == 0);
}

/* Which descriptors are watched is known by their numbers in one process. */
static void watched(void) {
    int ends[2], set = epoll_create1(0);
    CHECK(set > 2 && pipe(ends) == 0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = rank}, found;
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) == 0);
    for (int round = 0; round < 50; round++) {
        char byte = (char)round, came = -1;
        CHECK(write(ends[1], &byte, 1) == 1);
        stir();
        CHECK(epoll_wait(set, &found, 1, 1000) == 1 && found.data.fd == rank);
        CHECK(read(ends[0], &came, 1) == 1 && came == byte);
    }
    CHECK(close(set) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
}

/* What the program numbers itself. */
static void numbered(void) {
    int file = open(named("numbered"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    int chosen = 200 + rank;
    CHECK(dup2(file, chosen) == chosen);
    int high = fcntl(file, F_DUPFD, 400);
    CHECK(high >= 400);
    for (int round = 0; round < 50; round++) {
        CHECK(write(round % 2 ? chosen : high, &round, sizeof round) == sizeof round);
        stir();
    }
    for (int round = 0; round < 50; round++) {
        int found = -1;
        CHECK(pread(file, &found, sizeof found, round * sizeof found) == sizeof found && found == round);
    }
    CHECK(close(chosen) == 0 && close(high) == 0);
    stir();
    CHECK(close(file) == 0);
}

/* Streams for which libc keeps a mapping of the file. */
static void mapped(void) {
    FILE *out = fopen(named("mapped"), "w");
    for (int i = 0; i < 1000; i++) CHECK(fprintf(out, "%d\n", rank + i) > 0);
    CHECK(fclose(out) == 0);
    FILE *in = fopen(named("mapped"), "rm");
    for (int i = 0; i < 1000; i++) {
        int found = -1;
        CHECK(fscanf(in, "%d\n", &found) == 1 && found == rank + i);
        if (i % 10 == 0) stir();
    }
    CHECK(fclose(in) == 0);
}

/* Signals of a descriptor go to one process. */
static void owned(void) {
    int ends[2];
    CHECK(pipe(ends) == 0 && fcntl(ends[0], F_SETOWN, getpid()) == 0);
    for (int round = 0; round < 50; round++) {
        stir();
        CHECK(fcntl(ends[0], F_GETOWN) == getpid());
    }
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
    stir();
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"streams", streams}, {"plain", plain},     {"pipes", pipes},      {"many", many},
                 {"locks", locks},     {"watched", watched}, {"numbered", numbered}, {"mapped", mapped}, {"owned", owned}};
    begin(&argc, &argv);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc == 2 && strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].run();
            return finish(argv[1]);
        }
    fprintf(stderr, "%s: no such case\n", argv[1]);
    return 2;
}
