/* Does one thing, by name: what ends programs, or what they do beside sending messages. The others wait. */
#define _GNU_SOURCE
#include "check.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* The rank that does it. */
#define ONE 1

__attribute__((noinline)) static void write_to(volatile int *place) { *place = 1; }
static void segfault(void) {
    if (rank == ONE) write_to((volatile int *)8);
}
static void write_constant(void) {
    static const int constant = 5;
    if (rank == ONE) write_to((volatile int *)&constant);
}
static void call_null(void) {
    void (*volatile function)(void) = NULL;
    if (rank == ONE) function();
}
static void aborts(void) {
    if (rank == ONE) abort();
}
static void assertion(void) {
    assert(rank != ONE);
}
static void divides(void) {
    volatile int zero = 0, one = 1;
    if (rank == ONE) printf("%d\n", one / zero);
}
static void illegal(void) {
    if (rank == ONE) __builtin_trap();
}
__attribute__((noinline)) static int descend(int level) {
    volatile char frame[1000];
    if (level < 0) return 0;
    frame[level % 1000] = level;
    int below = descend(level + 1);
    return below + frame[level % 1000];
}
static void recursion(void) {
    if (rank == ONE) printf("%d\n", descend(0));
}
static void frees_twice(void) {
    char *volatile block = malloc(100);
    free(block);
    if (rank == ONE) {
        char *volatile again = block;
        free(again);
    }
}
static void frees_wrong(void) {
    static char block[100];
    char *volatile place = block + 16;
    if (rank == ONE) free(place);
}

static void exit3(void) {
    if (rank == ONE) exit(3);
}
static void exit300(void) {
    if (rank == ONE) exit(300);
}
static void exit0(void) {
    if (rank == ONE) exit(0);
}
static void exit_at_once(void) {
    if (rank == ONE) _exit(5);
}
static void exit_at_once_0(void) {
    /* What is buffered is lost, as are functions of atexit. */
    printf("never seen");
    MPI_Finalize();
    _exit(0);
}
static void registered(void) { printf("rank %d: at exit\n", rank); }
static void exit_in_library_order(void) {
    atexit(registered);
    MPI_Finalize();
    exit(0);
}
static void no_finalize(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d is done\n", rank);
    exit(0);
}
static void kills_itself(void) {
    if (rank == ONE) kill(getpid(), SIGTERM);
}
static void aborts_job(void) {
    printf("rank %d was here\n", rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ONE) MPI_Abort(MPI_COMM_WORLD, 7);
}
static void aborts_self(void) {
    if (rank == ONE) MPI_Abort(MPI_COMM_SELF, 9);
}
static void aborts_0(void) {
    if (rank == ONE) MPI_Abort(MPI_COMM_WORLD, 0);
}

static int sent;
static void wrong_datatype(void) {
    if (rank == ONE) MPI_Send(&sent, 1, (MPI_Datatype)0x7777, 0, 1, MPI_COMM_WORLD);
}
static void null_datatype(void) {
    if (rank == ONE) MPI_Send(&sent, 1, MPI_DATATYPE_NULL, 0, 1, MPI_COMM_WORLD);
}
static void uncommitted(void) {
    MPI_Datatype type;
    MPI_Type_contiguous(2, MPI_INT, &type);
    int two[2];
    if (rank == ONE) MPI_Send(two, 1, type, 0, 1, MPI_COMM_WORLD);
}
static void freed_comm(void) {
    MPI_Comm comm, copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    copy = comm;
    MPI_Comm_free(&comm);
    if (rank == ONE) MPI_Barrier(copy);
}
static void null_comm(void) {
    if (rank == ONE) MPI_Barrier(MPI_COMM_NULL);
}
static void freed_request(void) {
    MPI_Request request, copy;
    MPI_Irecv(&sent, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request);
    copy = request;
    MPI_Send(&rank, 1, MPI_INT, rank, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == ONE) MPI_Wait(&copy, MPI_STATUS_IGNORE);
}
static void wrong_rank(void) {
    if (rank == ONE) MPI_Send(&sent, 1, MPI_INT, 99, 1, MPI_COMM_WORLD);
}
static void wrong_tag(void) {
    if (rank == ONE) MPI_Send(&sent, 1, MPI_INT, 0, -5, MPI_COMM_WORLD);
}
static void wrong_count(void) {
    if (rank == ONE) MPI_Send(&sent, -3, MPI_INT, 0, 1, MPI_COMM_WORLD);
}
static void wrong_root(void) {
    if (rank == ONE) MPI_Bcast(&sent, 1, MPI_INT, 77, MPI_COMM_WORLD);
}
static void wrong_op(void) {
    double in = 1, out;
    if (rank == ONE) MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD);
}
static void truncation(void) {
    int two[2] = {1, 2};
    if (rank == 0) MPI_Send(two, 2, MPI_INT, ONE, 1, MPI_COMM_WORLD);
    if (rank == ONE) MPI_Recv(two, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void before_init(void) { /* See main. */ }
static void after_finalize(void) {
    MPI_Finalize();
    MPI_Barrier(MPI_COMM_WORLD);
}

static int class_of(int code) {
    int class = -1;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_class(code, &class);
    CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS && length == (int)strlen(text));
    CHECK(length > 0);
    return class;
}
static void returned(void) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int two[2] = {1, 2};
    double in = 1, out;
    MPI_Datatype type;
    MPI_Type_contiguous(2, MPI_INT, &type);
    CHECK(class_of(MPI_Send(two, 1, MPI_INT, size, 1, MPI_COMM_WORLD)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Send(two, 1, MPI_INT, -7, 1, MPI_COMM_WORLD)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Send(two, -1, MPI_INT, 0, 1, MPI_COMM_WORLD)) == MPI_ERR_COUNT);
    CHECK(class_of(MPI_Send(two, 1, MPI_INT, 0, -8, MPI_COMM_WORLD)) == MPI_ERR_TAG);
    CHECK(class_of(MPI_Send(two, 1, MPI_DATATYPE_NULL, 0, 1, MPI_COMM_WORLD)) == MPI_ERR_TYPE);
    CHECK(class_of(MPI_Send(two, 1, type, 0, 1, MPI_COMM_WORLD)) == MPI_ERR_TYPE);
    CHECK(class_of(MPI_Send(two, 1, MPI_INT, 0, 1, MPI_COMM_NULL)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Bcast(two, 1, MPI_INT, size, MPI_COMM_WORLD)) == MPI_ERR_ROOT);
    CHECK(class_of(MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD)) == MPI_ERR_OP);
    CHECK(class_of(MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_OP_NULL, MPI_COMM_WORLD)) == MPI_ERR_OP);
    MPI_Group group;
    CHECK(class_of(MPI_Comm_group(MPI_COMM_NULL, &group)) == MPI_ERR_COMM);
    int ranks[] = {0, 99};
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Group made;
    CHECK(class_of(MPI_Group_incl(group, 2, ranks, &made)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Group_size(MPI_GROUP_NULL, ranks)) == MPI_ERR_GROUP);
    MPI_Comm cart;
    int extents[] = {size + 1}, periods[] = {0};
    int class = class_of(MPI_Cart_create(MPI_COMM_WORLD, 1, extents, periods, 0, &cart));
    CHECK(class == MPI_ERR_DIMS || class == MPI_ERR_ARG || class == MPI_ERR_TOPOLOGY);
    CHECK(class_of(MPI_Cartdim_get(MPI_COMM_WORLD, ranks)) == MPI_ERR_TOPOLOGY);
    CHECK(class_of(MPI_Info_free(&(MPI_Info){MPI_INFO_NULL})) == MPI_ERR_INFO);
    if (rank == 0) MPI_Send(two, 2, MPI_INT, ONE, 1, MPI_COMM_WORLD);
    if (rank == ONE) {
        MPI_Status status;
        int code = MPI_Recv(two, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &status);
        CHECK(class_of(code) == MPI_ERR_TRUNCATE);
        CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 1);
    }
    /* All goes on. */
    stir();
    int own = rank, sum = 0;
    CHECK(MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(sum == size * (size - 1) / 2);
}

static int handled_calls;
static MPI_Comm handled_comm;
static void handler(MPI_Comm *comm, int *code, ...) {
    handled_calls++;
    handled_comm = *comm;
    CHECK(class_of(*code) == MPI_ERR_RANK);
}
static void own_handler(void) {
    MPI_Errhandler made, found;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(handler, &made);
    MPI_Comm_set_errhandler(comm, made);
    MPI_Comm_get_errhandler(comm, &found);
    MPI_Comm_set_errhandler(comm, found);
    MPI_Errhandler_free(&found);
    MPI_Errhandler_free(&made);
    CHECK(made == MPI_ERRHANDLER_NULL);
    for (int round = 0; round < 20; round++) {
        stir();
        CHECK(class_of(MPI_Send(&sent, 1, MPI_INT, size, 1, comm)) == MPI_ERR_RANK);
        CHECK(handled_calls == round + 1 && handled_comm == comm);
    }
    MPI_Comm_free(&comm);
}

static volatile sig_atomic_t handled, handled_signal;
static void on_signal(int signal) {
    handled++;
    handled_signal = signal;
}
static void signals(void) {
    if (rank % 2) signal(SIGUSR1, on_signal);
    else signal(SIGUSR1, SIG_IGN);
    for (int round = 0; round < 50; round++) {
        stir();
        raise(SIGUSR1);
        CHECK(handled == (rank % 2 ? round + 1 : 0));
    }
    CHECK(rank % 2 == 0 || handled_signal == SIGUSR1);
    CHECK(signal(SIGUSR1, SIG_DFL) == (rank % 2 ? on_signal : SIG_IGN));
}
static int with_info;
static void on_signal_with_info(int signal, siginfo_t *info, void *context) {
    if (signal == SIGUSR2 && info && context) with_info++;
}
static void sigactions(void) {
    struct sigaction action = {.sa_sigaction = on_signal_with_info, .sa_flags = SA_SIGINFO}, old;
    if (rank == ONE) CHECK(sigaction(SIGUSR2, &action, NULL) == 0);
    else CHECK(signal(SIGUSR2, SIG_IGN) == SIG_DFL);
    for (int round = 0; round < 50; round++) {
        stir();
        CHECK(raise(SIGUSR2) == 0);
        CHECK(with_info == (rank == ONE ? round + 1 : 0));
    }
    CHECK(sigaction(SIGUSR2, NULL, &old) == 0);
    CHECK(rank == ONE ? old.sa_sigaction == on_signal_with_info : old.sa_handler == SIG_IGN);
}
static sigjmp_buf back;
static void jump_back(int signal) { siglongjmp(back, signal); }
static void own_segfault_handler(void) {
    signal(SIGSEGV, jump_back);
    for (int round = 0; round < 20; round++) {
        stir();
        volatile int reached = 0;
        if (sigsetjmp(back, 1) == 0) {
            write_to((volatile int *)8);
            reached = 1;
        }
        CHECK(!reached);
    }
}
static void alarms(void) {
    signal(SIGALRM, on_signal);
    struct itimerval often = {{.tv_usec = 2000}, {.tv_usec = 2000}}, never = {{0}, {0}};
    if (rank == ONE) CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    double begin = MPI_Wtime();
    for (int goes_on = 1; goes_on;) {
        stir();
        /* A rank that waits for its processor gets one of several that were due. */
        int wants_more = rank == ONE && handled <= 3 && MPI_Wtime() - begin < 30;
        int wants = wants_more || MPI_Wtime() - begin < 0.1;
        MPI_Allreduce(&wants, &goes_on, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    if (rank == ONE) CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    CHECK(rank == ONE ? handled > 3 && handled_signal == SIGALRM : handled == 0);
}

static jmp_buf jump;
static void jumps(void) {
    for (int round = 0; round < 50; round++) {
        volatile int seen = 0;
        if (setjmp(jump) == 0) {
            stir();
            seen = 1;
            longjmp(jump, 5);
        }
        CHECK(seen == 1);
    }
}

static void forks(void) {
    for (int round = 0; round < 4; round++) {
        stir();
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/sh", "sh", "-c", rank == ONE ? "exit 7" : "true", (char *)NULL);
            _exit(127);
        }
        CHECK(child > 0);
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == (rank == ONE ? 7 : 0));
    }
}
static void fork_only(void) {
    fflush(stdout);
    for (int round = 0; round < 16; round++) {
        pid_t child = fork();
        if (child == 0) _exit(rank + 10);
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == rank + 10);
    }
    stir();
}
static void fork_exit(void) {
    /* A child that exits as other programs do: its streams are written. */
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        printf("child of rank %d\n", rank);
        exit(rank + 20);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == rank + 20);
    stir();
}
static void pipes(void) {
    for (int round = 0; round < 4; round++) {
        char command[64], line[64] = "", expected[64];
        snprintf(command, sizeof command, "echo rank %d", rank);
        snprintf(expected, sizeof expected, "rank %d\n", rank);
        FILE *in = popen(command, "r");
        stir();
        CHECK(in && fgets(line, sizeof line, in) && strcmp(line, expected) == 0);
        stir();
        CHECK(in && pclose(in) == 0);
    }
}
static void systems(void) {
    for (int round = 0; round < 4; round++) {
        stir();
        int status = system(rank == ONE ? "exit 3" : "true");
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == (rank == ONE ? 3 : 0));
    }
}

static __thread int of_thread = 5;
static __thread char *block_of_thread;
static int shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *thread(void *argument) {
    CHECK(of_thread == 5 && errno == 0);
    of_thread = 100 + (int)(long)argument;
    errno = of_thread;
    block_of_thread = malloc(1000);
    memset(block_of_thread, (int)(long)argument, 1000);
    char text[32];
    snprintf(text, sizeof text, "%d %.2f", of_thread, 1.5);
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&mutex);
        shared++;
        pthread_mutex_unlock(&mutex);
    }
    CHECK(of_thread == 100 + (int)(long)argument && errno == of_thread);
    CHECK(block_of_thread[999] == (int)(long)argument);
    free(block_of_thread);
    return (void *)(long)(of_thread + rank);
}
static void threads(void) {
    for (int round = 0; round < 5; round++) {
        of_thread = rank;
        shared = 0;
        pthread_t made[3];
        for (long i = 0; i < 3; i++) CHECK(pthread_create(&made[i], NULL, thread, (void *)i) == 0);
        stir();
        for (long i = 0; i < 3; i++) {
            void *result = NULL;
            CHECK(pthread_join(made[i], &result) == 0 && (long)result == 100 + i + rank);
        }
        CHECK(of_thread == rank && shared == 3000);
        stir();
    }
}
static void *sends(void *argument) {
    int provided = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &provided);
    MPI_Send(&sent, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    return argument;
}
static void message_of_thread(void) {
    if (rank != ONE) return;
    pthread_t made;
    CHECK(pthread_create(&made, NULL, sends, NULL) == 0);
    pthread_join(made, NULL);
}
static void *asks(void *argument) {
    int flag = -1, level = -1, version = 0;
    CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && flag == 1);
    CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && flag == 0);
    CHECK(MPI_Is_thread_main(&flag) == MPI_SUCCESS && flag == 0);
    CHECK(MPI_Query_thread(&level) == MPI_SUCCESS && level == MPI_THREAD_SINGLE);
    CHECK(MPI_Get_version(&version, &flag) == MPI_SUCCESS && version == MPI_VERSION);
    return argument;
}
/* What any thread may ask. */
static void questions_of_thread(void) {
    pthread_t made;
    CHECK(pthread_create(&made, NULL, asks, NULL) == 0);
    pthread_join(made, NULL);
    int flag = -1;
    CHECK(MPI_Is_thread_main(&flag) == MPI_SUCCESS && flag == 1);
}
static pthread_key_t key;
static int key_destroyed;
static void destroy_key(void *value) { key_destroyed += *(int *)value; }
static void *with_key(void *value) {
    pthread_setspecific(key, value);
    return NULL;
}
static void thread_keys(void) {
    CHECK(pthread_key_create(&key, destroy_key) == 0);
    CHECK(pthread_setspecific(key, &rank) == 0);
    for (int round = 0; round < 50; round++) {
        stir();
        CHECK(pthread_getspecific(key) == &rank);
    }
    int ten = 10;
    pthread_t made;
    CHECK(pthread_create(&made, NULL, with_key, &ten) == 0 && pthread_join(made, NULL) == 0);
    CHECK(key_destroyed == 10 && pthread_getspecific(key) == &rank);
}
static int once_called;
static void call_once_only(void) { once_called++; }
static void locks(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    for (int round = 0; round < 50; round++) {
        pthread_mutex_lock(&mutex);
        pthread_once(&once, call_once_only);
        stir();
        pthread_mutex_unlock(&mutex);
        CHECK(once_called == 1);
        CHECK(pthread_mutex_trylock(&mutex) == 0 && pthread_mutex_trylock(&mutex) == EBUSY);
        pthread_mutex_unlock(&mutex);
        CHECK(pthread_equal(pthread_self(), pthread_self()));
    }
}

static void lock_owners(void) {
    static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
    pthread_mutex_t recursive, checking;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checking, &attributes);
    for (int round = 0; round < 100; round++) {
        CHECK(pthread_rwlock_wrlock(&rwlock) == 0);
        CHECK(pthread_mutex_lock(&recursive) == 0 && pthread_mutex_lock(&checking) == 0);
        flockfile(stderr);
        stir();
        funlockfile(stderr);
        CHECK(pthread_mutex_lock(&checking) == EDEADLK && pthread_mutex_unlock(&checking) == 0);
        CHECK(pthread_mutex_trylock(&recursive) == 0 && pthread_mutex_unlock(&recursive) == 0);
        CHECK(pthread_mutex_unlock(&recursive) == 0);
        CHECK(pthread_rwlock_unlock(&rwlock) == 0 && pthread_rwlock_tryrdlock(&rwlock) == 0);
        CHECK(pthread_rwlock_unlock(&rwlock) == 0);
    }
}

static void deadlock(void) {
    if (rank == ONE) MPI_Recv(&sent, 1, MPI_INT, 0, 42, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void deadlock_of_all(void) {
    MPI_Ssend(&sent, 1, MPI_INT, next_rank(), 43, MPI_COMM_WORLD);
}
static void waits_for_itself(void) {
    MPI_Request request;
    MPI_Irecv(&sent, 1, MPI_INT, next_rank(), 44, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void spins(void) {
    int value = 0;
    if (rank == ONE) for (volatile int go = 1; go;) {}
    if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 3, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank != 3) return;
    /* It spins by then, beside rank 0. */
    usleep(100000);
    MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

static void reads_exe(void) {
    char path[1000] = "", *name;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    CHECK(length > 0);
    name = strrchr(path, '/');
    CHECK(name && strcmp(name, "/misbehave") == 0);
}
static void opens_library(void) {
    void *library = dlopen("libmisbehave.so", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "dlopen: %s\n", dlerror());
        exit(4);
    }
    int (*count)(void) = (int (*)(void))dlsym(library, "count");
    for (int round = 0; round < 30; round++) {
        stir();
        CHECK(count && count() == round + 1);
    }
    CHECK(dlclose(library) == 0);
}
static void looks_up(void) {
    /* In what is loaded already. */
    void *program = dlopen(NULL, RTLD_NOW);
    CHECK(program != NULL);
    size_t (*length)(const char *) = (size_t (*)(const char *))dlsym(RTLD_DEFAULT, "strlen");
    CHECK(length && length("four") == 4);
    CHECK(dlsym(RTLD_DEFAULT, "no_such_function") == NULL);
    Dl_info info;
    CHECK(dladdr((void *)looks_up, &info) != 0 && strstr(info.dli_fname, "misbehave"));
}
static void changes_folder(void) {
    char name[32], found[1000], *last;
    snprintf(name, sizeof name, "folder%d", rank);
    mkdir(name, 0777);
    CHECK(chdir(name) == 0);
    for (int round = 0; round < 20; round++) {
        stir();
        CHECK(getcwd(found, sizeof found) != NULL);
        last = strrchr(found, '/');
        CHECK(last && strcmp(last + 1, name) == 0);
    }
}
static void masks(void) {
    mode_t own = rank % 2 ? 077 : 022;
    umask(own);
    for (int round = 0; round < 20; round++) {
        stir();
        CHECK(umask(own) == own);
    }
}
static void files(void) {
    char name[32], text[32], expected[64 * 20] = "", found[64 * 20] = "";
    snprintf(name, sizeof name, "file%d", rank);
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0666);
    CHECK(file >= 0);
    for (int round = 0; round < 60; round++) {
        int length = snprintf(text, sizeof text, "%d-%d ", rank, round);
        CHECK(write(file, text, length) == length);
        strcat(expected, text);
        stir();
    }
    CHECK(lseek(file, 0, SEEK_SET) == 0);
    CHECK(read(file, found, sizeof found) == (ssize_t)strlen(expected) && strcmp(found, expected) == 0);
    CHECK(close(file) == 0);
    FILE *stream = fopen(name, "a+");
    CHECK(stream != NULL);
    for (int round = 0; round < 20; round++) {
        fprintf(stream, "%d", rank);
        stir();
    }
    CHECK(fclose(stream) == 0);
    struct stat about;
    CHECK(stat(name, &about) == 0 && about.st_size == (off_t)strlen(expected) + 20);
    /* Closed, they do not hold the rank any more. */
    for (int round = 0; round < 100; round++) stir();
    CHECK(unlink(name) == 0);
}
static void maps(void) {
    size_t length = 1 << 20;
    int *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (int round = 0; round < 100; round++) {
        memory[round * 1000] = rank + round;
        stir();
        for (int i = 0; i <= round; i++) CHECK(memory[i * 1000] == rank + i);
    }
    CHECK(munmap(memory, length) == 0);
}
static void sleeps(void) {
    double begin = MPI_Wtime();
    usleep(20000);
    struct timespec time = {0, 10000000};
    nanosleep(&time, NULL);
    sleep(0);
    CHECK(MPI_Wtime() - begin >= 0.03);
    stir();
}
static void much_memory(void) {
    for (int round = 0; round < 20; round++) {
        size_t length = 8 << 20;
        char *memory = malloc(length);
        memset(memory, rank, length);
        stir();
        memory = realloc(memory, 2 * length);
        CHECK(memory[0] == (char)rank && memory[length - 1] == (char)rank);
        free(memory);
        void *aligned = NULL;
        CHECK(posix_memalign(&aligned, 4096, 100) == 0 && (size_t)aligned % 4096 == 0);
        free(aligned);
    }
}
static void deep_stack(void) {
    volatile char large[6 << 20];
    large[0] = rank;
    large[sizeof large - 1] = rank;
    for (int round = 0; round < 20; round++) {
        stir();
        CHECK(large[0] == (char)rank && large[sizeof large - 1] == (char)rank);
    }
}
static void reads_input(void) {
    char line[16];
    CHECK(fgets(line, sizeof line, stdin) == NULL && feof(stdin));
}
static void processes(void) {
    CHECK(getpid() > 1 && getppid() >= 1);
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = 0;
    CHECK(MPI_Get_processor_name(name, &length) == MPI_SUCCESS && length == (int)strlen(name));
}

#define CASE(name) {#name, name}
static const struct { const char *name; void (*function)(void); } cases[] = {
    CASE(segfault), CASE(write_constant), CASE(call_null), CASE(aborts), CASE(assertion), CASE(divides),
    CASE(illegal), CASE(recursion), CASE(frees_twice), CASE(frees_wrong), CASE(exit3), CASE(exit300),
    CASE(exit0), CASE(exit_at_once), CASE(exit_at_once_0), CASE(exit_in_library_order), CASE(no_finalize),
    CASE(kills_itself), CASE(aborts_job), CASE(aborts_self), CASE(aborts_0), CASE(wrong_datatype),
    CASE(null_datatype), CASE(uncommitted), CASE(freed_comm), CASE(null_comm), CASE(freed_request),
    CASE(wrong_rank), CASE(wrong_tag), CASE(wrong_count), CASE(wrong_root), CASE(wrong_op),
    CASE(truncation), CASE(before_init), CASE(after_finalize), CASE(returned), CASE(own_handler),
    CASE(signals), CASE(sigactions), CASE(own_segfault_handler), CASE(alarms), CASE(jumps), CASE(forks),
    CASE(fork_only), CASE(fork_exit), CASE(pipes), CASE(systems), CASE(threads), CASE(message_of_thread),
    CASE(questions_of_thread),
    CASE(thread_keys), CASE(locks), CASE(lock_owners), CASE(deadlock), CASE(deadlock_of_all), CASE(waits_for_itself),
    CASE(spins), CASE(reads_exe), CASE(opens_library), CASE(looks_up), CASE(changes_folder), CASE(masks),
    CASE(files), CASE(maps), CASE(sleeps), CASE(much_memory), CASE(deep_stack), CASE(reads_input),
    CASE(processes),
};

int main(int argc, char **argv) {
    const char *name = argc == 2 ? argv[1] : "none";
    if (strcmp(name, "before_init") == 0) MPI_Barrier(MPI_COMM_WORLD);
    begin(&argc, &argv);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, name) == 0) {
            cases[i].function();
            return finish(name);
        }
    }
    fprintf(stderr, "no such case: %s\n", name);
    return 2;
}
