/* What surrounds a program, one thing by name: the processor's state, its stack, memory, pipes and
 * streams. */
#define _GNU_SOURCE
#include "check.h"

#include <aio.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <fenv.h>
#include <link.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xmmintrin.h>

#define ONE 1

static void rounding(void) {
    const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    const unsigned flush_to_zero = 0x8000;
    fesetround(modes[rank % 4]);
    if (rank == ONE) _mm_setcsr(_mm_getcsr() | flush_to_zero);
    for (int round = 0; round < 200; round++) {
        stir();
        volatile double one = 1, three = 3, third = one / three;
        volatile long double wide_one = 1, wide_three = 3, wide_third = wide_one / wide_three;
        CHECK(fegetround() == modes[rank % 4]);
        CHECK(((_mm_getcsr() & flush_to_zero) != 0) == (rank == ONE));
        CHECK(third == (rank % 4 == 1 ? 0x1.5555555555556p-2 : 0x1.5555555555555p-2));
        long double lower = 0xa.aaaaaaaaaaaaaaap-5L, upper = 0xa.aaaaaaaaaaaaaabp-5L;
        CHECK(wide_third == (rank % 4 < 2 ? upper : lower));
    }
}
static void traps(void) {
    if (rank == ONE) feenableexcept(FE_DIVBYZERO | FE_INVALID);
    for (int round = 0; round < 100; round++) {
        stir();
        volatile double zero = 0, one = 1;
        if (rank != ONE) {
            volatile double infinite = one / zero;
            CHECK(infinite > 1e300);
        }
        CHECK(fegetexcept() == (rank == ONE ? FE_DIVBYZERO | FE_INVALID : 0));
    }
}
static void trapped(void) {
    if (rank == ONE) feenableexcept(FE_DIVBYZERO);
    stir();
    volatile double zero = 0, one = 1;
    if (rank == ONE) printf("%f\n", one / zero);
}
static void flags(void) {
    for (int round = 0; round < 100; round++) {
        feclearexcept(FE_ALL_EXCEPT);
        if (rank == ONE) feraiseexcept(FE_OVERFLOW);
        stir();
        CHECK((fetestexcept(FE_OVERFLOW) != 0) == (rank == ONE));
    }
}

/* Larger than the rank's stack, and written far from where the last frame ends. */
__attribute__((noinline)) static void with_large_frame(void) {
    volatile char large[9 << 20];
    large[100] = 1;
    stir();
    CHECK(large[100] == 1);
}
static void large_frame(void) {
    if (rank == ONE) with_large_frame();
    stir();
}
static void own_stack(void) {
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t length = 0;
    char here = 0;
    for (int round = 0; round < 20; round++) {
        CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
        CHECK(pthread_attr_getstack(&attributes, &lowest, &length) == 0);
        CHECK((char *)lowest < &here && &here < (char *)lowest + length);
        pthread_attr_destroy(&attributes);
        stir();
    }
}

static void allocations(void) {
    char *blocks[200];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 200; i++) {
            blocks[i] = malloc(i * 37);
            CHECK(malloc_usable_size(blocks[i]) >= (size_t)i * 37);
            memset(blocks[i], i, i * 37);
        }
        stir();
        for (int i = 0; i < 200; i++) {
            if (i > 0) CHECK(blocks[i][0] == (char)i && blocks[i][i * 37 - 1] == (char)i);
            blocks[i] = realloc(blocks[i], i * 50 + 1);
            if (i > 0) CHECK(blocks[i][0] == (char)i && blocks[i][i * 37 - 1] == (char)i);
            free(blocks[i]);
        }
    }
    volatile size_t much = 1UL << 40;
    CHECK(calloc(much, much) == NULL);
    malloc_trim(0);
    char *text = NULL;
    CHECK(asprintf(&text, "%d", rank) > 0 && atoi(text) == rank);
    free(text);
}
static void program_break(void) {
    for (int round = 0; round < 20; round++) {
        char *more = sbrk(4096);
        CHECK(more != (void *)-1);
        if (more != (void *)-1) memset(more, rank, 4096);
        stir();
        CHECK(more == (void *)-1 || more[4095] == rank);
    }
}

static void sockets(void) {
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    for (int round = 0; round < 30; round++) {
        char out = rank + round, in = -1;
        CHECK(write(ends[0], &out, 1) == 1);
        stir();
        struct pollfd asked = {ends[1], POLLIN, 0};
        CHECK(poll(&asked, 1, 1000) == 1 && read(ends[1], &in, 1) == 1 && in == out);
    }
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
    // Without sockets they may move between nodes, in one of several balancing steps.
    for (int round = 0; round < 20; round++) {
        CHECK(poll(NULL, 0, 1) == 0);
        stir();
    }
}
static void handled_pipe(void) {
    int ends[2];
    CHECK(pipe(ends) == 0 && close(ends[0]) == 0);
    CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    stir();
    CHECK(write(ends[1], "x", 1) == -1 && errno == EPIPE && close(ends[1]) == 0);
}
static void broken_pipe(void) {
    int ends[2];
    CHECK(pipe(ends) == 0 && close(ends[0]) == 0);
    if (rank == ONE) CHECK(write(ends[1], "x", 1) == -1);
    stir();
}
static volatile sig_atomic_t handled;
static void on_signal(int signal) { (void)signal; }
static void blocked_signals(void) {
    sigset_t set, now;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    signal(SIGUSR1, on_signal);
    if (rank == ONE) {
        CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
        raise(SIGUSR1);
    }
    for (int round = 0; round < 50; round++) {
        stir();
        sigprocmask(SIG_BLOCK, NULL, &now);
        CHECK(sigismember(&now, SIGUSR1) == (rank == ONE));
        sigpending(&now);
        CHECK(sigismember(&now, SIGUSR1) == (rank == ONE));
    }
}
static void children(void) {
    signal(SIGCHLD, on_signal);
    for (int round = 0; round < 5; round++) {
        CHECK(system("true") == 0);
        stir();
    }
}

static void pipelines(void) {
    char line[16] = "";
    FILE *in = popen("yes | head -1", "r");
    CHECK(in && fgets(line, sizeof line, in) && strcmp(line, "y\n") == 0);
    CHECK(in && pclose(in) == 0);
    FILE *out = popen("cat > /dev/null", "w");
    for (int i = 0; out && i < 100; i++) fprintf(out, "%d\n", i);
    stir();
    CHECK(out && pclose(out) == 0);
}
static void spawned(void) {
    char shell[] = "sh", option[] = "-c", command[] = "exit 6";
    char *arguments[] = {shell, option, command, NULL};
    for (int round = 0; round < 3; round++) {
        pid_t child = -1;
        int status = -1;
        CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
        CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 6);
        stir();
    }
}

static void real_time_signal(int signal, siginfo_t *info, void *context) {
    (void)info, (void)context;
    handled += signal == SIGRTMIN + 1;
}
static void timers(void) {
    timer_t timer;
    struct sigaction action = {.sa_sigaction = real_time_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
    struct itimerspec often = {{0, 2000000}, {0, 2000000}};
    if (rank == ONE) {
        CHECK(sigaction(SIGRTMIN + 1, &action, NULL) == 0);
        CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
        CHECK(timer_settime(timer, 0, &often, NULL) == 0);
    }
    /* A timer that does not go on ends the test by its time limit. */
    for (int goes_on = 1; goes_on;) {
        stir();
        int wants = rank == ONE && handled < 30;
        MPI_Allreduce(&wants, &goes_on, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    CHECK(rank == ONE ? handled >= 30 : handled == 0);
    if (rank == ONE) CHECK(timer_delete(timer) == 0);
}

static void never(union sigval value) { CHECK(value.sival_int < 0 && 0); }
static void threads_inside_libc(void) {
    char text[] = "text";
    struct aiocb write = {.aio_fildes = STDERR_FILENO, .aio_buf = text, .aio_nbytes = 4};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = never};
    timer_t timer;
    errno = 0;
    CHECK(aio_write(&write) == -1 && errno == ENOSYS);
    errno = 0;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == -1 && errno == ENOSYS);
    stir();
}

static void *exits(void *value) { pthread_exit(value); }
static void exited_threads(void) {
    pthread_t made;
    void *result = NULL;
    CHECK(pthread_create(&made, NULL, exits, &rank) == 0);
    CHECK(pthread_join(made, &result) == 0 && result == &rank);
    stir();
}
static void *sleeps(void *unused) {
    for (;;) usleep(1000);
    return unused;
}
static void cancelled_threads(void) {
    pthread_t made;
    void *result = NULL;
    CHECK(pthread_create(&made, NULL, sleeps, NULL) == 0);
    stir();
    CHECK(pthread_cancel(made) == 0);
    CHECK(pthread_join(made, &result) == 0 && result == PTHREAD_CANCELED);
    stir();
}
static void running_threads(void) {
    pthread_t made;
    CHECK(pthread_create(&made, NULL, sleeps, NULL) == 0 && pthread_detach(made) == 0);
    stir();
}
/* What the kernel has of a thread, the rank's own and one that it has started. */
static void *asks_itself(void *unused) {
    cpu_set_t of_thread, of_caller;
    memset(&of_thread, 0xff, sizeof of_thread);
    CHECK(pthread_getaffinity_np(pthread_self(), sizeof of_thread, &of_thread) == 0);
    CHECK(sched_getaffinity(0, sizeof of_caller, &of_caller) == 0);
    CHECK(CPU_EQUAL(&of_thread, &of_caller) && CPU_COUNT(&of_thread) > 0);
    CHECK(pthread_setaffinity_np(pthread_self(), sizeof of_thread, &of_thread) == 0);
    CPU_ZERO(&of_thread);
    CHECK(pthread_setaffinity_np(pthread_self(), sizeof of_thread, &of_thread) == EINVAL);
    struct sched_param parameters = {-1};
    int policy = -1;
    CHECK(pthread_getschedparam(pthread_self(), &policy, &parameters) == 0);
    CHECK(policy == sched_getscheduler(0) && parameters.sched_priority == 0);
    CHECK(pthread_setschedparam(pthread_self(), policy, &parameters) == 0);
    clockid_t clock = -1;
    struct timespec used = {-1, -1};
    CHECK(pthread_getcpuclockid(pthread_self(), &clock) == 0);
    CHECK(clock_gettime(clock, &used) == 0 && used.tv_sec >= 0);
    return unused;
}
static void threads_for_the_kernel(void) {
    for (int round = 0; round < 20; round++) {
        asks_itself(NULL);
        stir();
    }
    pthread_t made;
    CHECK(pthread_create(&made, NULL, asks_itself, NULL) == 0 && pthread_join(made, NULL) == 0);
}
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static void *signals_condition(void *flag) {
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&mutex);
    *(int *)flag = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return NULL;
}
static void conditions(void) {
    pthread_barrier_init(&barrier, NULL, 2);
    for (int round = 0; round < 10; round++) {
        int flag = 0;
        pthread_t made;
        struct timespec soon;
        CHECK(pthread_create(&made, NULL, signals_condition, &flag) == 0);
        pthread_barrier_wait(&barrier);
        pthread_mutex_lock(&mutex);
        while (!flag) pthread_cond_wait(&condition, &mutex);
        pthread_mutex_unlock(&mutex);
        CHECK(pthread_join(made, NULL) == 0);
        stir();
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec = (soon.tv_nsec + 1000000) % 1000000000;
        if (soon.tv_nsec < 1000000) soon.tv_sec++;
        pthread_mutex_lock(&mutex);
        CHECK(pthread_cond_timedwait(&condition, &mutex, &soon) == ETIMEDOUT);
        pthread_mutex_unlock(&mutex);
    }
}
static void semaphores(void) {
    sem_t one;
    CHECK(sem_init(&one, 0, 1) == 0);
    for (int round = 0; round < 100; round++) {
        CHECK(sem_wait(&one) == 0);
        stir();
        CHECK(sem_trywait(&one) == -1 && errno == EAGAIN && sem_post(&one) == 0);
    }
    CHECK(sem_destroy(&one) == 0);
}

static void shared_memory(void) {
    char name[32];
    snprintf(name, sizeof name, "/vrt-surroundings-%d-%d", (int)getpid(), rank);
    int made = shm_open(name, O_CREAT | O_RDWR, 0600);
    CHECK(made >= 0 && ftruncate(made, 8192) == 0);
    int *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0);
    CHECK(memory != MAP_FAILED);
    for (int round = 0; round < 30; round++) {
        memory[round] = rank + round;
        stir();
        CHECK(memory[round] == rank + round);
    }
    CHECK(munmap(memory, 8192) == 0 && close(made) == 0 && shm_unlink(name) == 0);
}
static int in_headers;
static int has_this(struct dl_phdr_info *info, size_t length, void *unused) {
    (void)length, (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        size_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, place = (size_t)has_this;
        int loaded = info->dlpi_phdr[i].p_type == PT_LOAD;
        in_headers += loaded && place >= start && place - start < info->dlpi_phdr[i].p_memsz;
    }
    return 0;
}
static void loaded_objects(void) {
    void *frames[20];
    dl_iterate_phdr(has_this, NULL);
    CHECK(in_headers == 1);
    int count = backtrace(frames, 20);
    CHECK(count >= 2);
    stir();
}
static void named_frames(void) {
    void *frames[20];
    char **names = backtrace_symbols(frames, backtrace(frames, 20));
    CHECK(names && strstr(names[0], "surroundings"));
    free(names);
}

static void temporary_files(void) {
    FILE *file = tmpfile();
    CHECK(file != NULL);
    fprintf(file, "%d", rank);
    rewind(file);
    stir();
    int found = -1;
    CHECK(fscanf(file, "%d", &found) == 1 && found == rank && fclose(file) == 0);
    char name[] = "madeXXXXXX";
    int made = mkstemp(name);
    struct flock lock = {.l_type = F_WRLCK};
    CHECK(made >= 0 && fcntl(made, F_SETLK, &lock) == 0);
    stir();
    CHECK(close(made) == 0 && unlink(name) == 0);
}
static void clocks(void) {
    struct rusage usage;
    struct timespec now;
    struct rlimit limit;
    cpu_set_t processors;
    clock_t before = clock();
    work();
    CHECK(clock() >= before && getrusage(RUSAGE_SELF, &usage) == 0);
    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0 && now.tv_sec > 1600000000);
    CHECK(getrlimit(RLIMIT_STACK, &limit) == 0 && sysconf(_SC_NPROCESSORS_ONLN) > 0);
    CHECK(sched_getaffinity(0, sizeof processors, &processors) == 0 && CPU_COUNT(&processors) > 0);
    CHECK(syscall(SYS_getpid) == getpid());
}

static void much_output(void) {
    for (int line = 0; line < 5000; line++) {
        printf("rank %d, line %d of an output that fills pipes and buffers\n", rank, line);
    }
}
static void input(void) {
    int number = -1;
    if (rank == 0) CHECK(scanf("%d", &number) == 1);
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(number == 42);
}
static void direct_output(void) {
    dprintf(STDOUT_FILENO, "rank %d to 1\n", rank);
    dprintf(STDERR_FILENO, "rank %d to 2\n", rank);
}

static void abort_in(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)in, (void)inout, (void)count, (void)type;
    MPI_Abort(MPI_COMM_WORLD, 11);
}
static void abort_in_operation(void) {
    MPI_Op op;
    int sum = 0;
    MPI_Op_create(abort_in, 1, &op);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
}
static void exit_with_9(void) { exit(9); }
static void exit_in_exit(void) {
    MPI_Finalize();
    atexit(exit_with_9);
    exit(0);
}
static void abort_in_exit(void) {
    MPI_Finalize();
    if (rank == ONE) atexit(abort);
    exit(0);
}
static void fails_after_finalize(void) {
    MPI_Finalize();
    exit(rank == 2 ? 3 : 0);
}

#define CASE(name) {#name, name}
static const struct { const char *name; void (*function)(void); } cases[] = {
    CASE(rounding), CASE(traps), CASE(trapped), CASE(flags), CASE(large_frame), CASE(own_stack),
    CASE(allocations), CASE(program_break), CASE(sockets), CASE(handled_pipe), CASE(broken_pipe),
    CASE(blocked_signals), CASE(children), CASE(temporary_files), CASE(clocks), CASE(much_output),
    CASE(input), CASE(direct_output), CASE(abort_in_operation), CASE(exit_in_exit), CASE(abort_in_exit),
    CASE(fails_after_finalize), CASE(pipelines), CASE(spawned), CASE(timers), CASE(threads_inside_libc),
    CASE(exited_threads),
    CASE(cancelled_threads), CASE(running_threads), CASE(threads_for_the_kernel), CASE(conditions), CASE(semaphores),
    CASE(shared_memory), CASE(loaded_objects), CASE(named_frames),
};

int main(int argc, char **argv) {
    const char *name = argc == 2 ? argv[1] : "none";
    begin(NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, name) == 0) {
            cases[i].function();
            return finish(name);
        }
    }
    fprintf(stderr, "no such case: %s\n", name);
    return 2;
}
