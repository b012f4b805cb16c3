// Exceptions out of functions that MPI calls: they go through it, to whoever catches them.
#include "check.h"

#include <csignal>
#include <functional>
#include <pthread.h>
#include <stdexcept>
#include <string>

static int destroyed;
struct Object {
    ~Object() { destroyed++; }
};

[[noreturn]] static void fail(const char *what) {
    Object object;
    throw std::runtime_error(what);
}

static void on_comm_error(MPI_Comm *, int *code, ...) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(*code, text, &length);
    fail("communicator");
}
static void on_win_error(MPI_Win *, int *, ...) { fail("window"); }
static void operation(void *, void *, int *, MPI_Datatype *) { fail("operation"); }
static void operation_c(void *, void *, MPI_Count *, MPI_Datatype *) { fail("large operation"); }
static int copy(MPI_Comm, int, void *, void *, void *, int *) { fail("copy"); }
static bool removes;
static int remove(MPI_Comm, int, void *, void *) { return removes ? MPI_SUCCESS : (fail("delete"), 1); }
static int copy_type(MPI_Datatype, int, void *, void *, void *, int *) { fail("copy of a type"); }
static int remove_win(MPI_Win, int, void *, void *) { return removes ? MPI_SUCCESS : (fail("delete of a window"), 1); }
static int query(void *, MPI_Status *) { fail("query"); }
static int released(void *) { return MPI_SUCCESS; }
static int cancelled(void *, int) { fail("cancel"); }
static void on_signal(int) { fail("signal"); }

// Runs what throws, and checks that it has thrown just that.
static void throws(const char *what, const std::function<void()> &run) {
    std::string caught = "nothing";
    int before = destroyed;
    try {
        Object object;
        run();
    } catch (const std::runtime_error &error) {
        caught = error.what();
    }
    if (caught != what) std::fprintf(stderr, "rank %d: %s instead of %s\n", rank, caught.c_str(), what);
    CHECK(caught == what && destroyed == before + 2);
    stir();
}

static void handlers() {
    MPI_Comm comm;
    MPI_Errhandler handler, of_windows;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(on_comm_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    int value = rank, other = -1;
    throws("communicator", [&] { MPI_Send(&value, 1, MPI_INT, size + 5, 0, comm); });
    throws("communicator", [&] { MPI_Bcast(&value, -1, MPI_INT, 0, comm); });
    throws("communicator", [&] { MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER); });
    // One that is too short.
    throws("communicator", [&] {
        int two[2] = {1, 2};
        MPI_Sendrecv(two, 2, MPI_INT, rank, 1, &other, 1, MPI_INT, rank, 1, comm, MPI_STATUS_IGNORE);
    });
    // All of it can be used afterwards.
    MPI_Sendrecv(&value, 1, MPI_INT, next_rank(), 2, &other, 1, MPI_INT, previous_rank(), 2, comm,
                 MPI_STATUS_IGNORE);
    CHECK(other == previous_rank());
    MPI_Win win;
    MPI_Win_create_errhandler(on_win_error, &of_windows);
    MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, comm, &win);
    MPI_Win_set_errhandler(win, of_windows);
    MPI_Win_fence(0, win);
    throws("window", [&] { MPI_Put(&other, 1, MPI_INT, size + 9, 0, 1, MPI_INT, win); });
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    MPI_Errhandler_free(&handler);
    MPI_Errhandler_free(&of_windows);
    MPI_Comm_free(&comm);
}

static void operations() {
    MPI_Op op, large;
    MPI_Op_create(operation, 1, &op);
    MPI_Op_create_c(operation_c, 1, &large);
    int in[3] = {1, 2, 3}, out[3] = {4, 5, 6};
    throws("operation", [&] { MPI_Reduce_local(in, out, 3, MPI_INT, op); });
    throws("large operation", [&] { MPI_Reduce_local(in, out, 3, MPI_INT, large); });
    MPI_Allreduce(in, out, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(out[2] == 3 * size);
    MPI_Op_free(&op);
    MPI_Op_free(&large);
}

static void attributes() {
    int copied, deleted, of_type, of_win;
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &copied, nullptr);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, remove, &deleted, nullptr);
    MPI_Type_create_keyval(copy_type, MPI_TYPE_NULL_DELETE_FN, &of_type, nullptr);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, remove_win, &of_win, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, deleted, &rank);
    throws("delete", [&] { MPI_Comm_delete_attr(MPI_COMM_SELF, deleted); });
    throws("delete", [&] { MPI_Comm_set_attr(MPI_COMM_SELF, deleted, &size); });
    MPI_Comm_set_attr(MPI_COMM_SELF, copied, &rank);
    MPI_Comm other;
    throws("copy", [&] { MPI_Comm_dup(MPI_COMM_SELF, &other); });
    MPI_Comm_delete_attr(MPI_COMM_SELF, copied);
    MPI_Comm_dup(MPI_COMM_SELF, &other);
    MPI_Comm_free(&other);
    MPI_Datatype type, twin;
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_set_attr(type, of_type, &rank);
    throws("copy of a type", [&] { MPI_Type_dup(type, &twin); });
    MPI_Type_free(&type);
    MPI_Win win;
    MPI_Win_create(&rank, sizeof rank, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
    MPI_Win_set_attr(win, of_win, &rank);
    throws("delete of a window", [&] { MPI_Win_delete_attr(win, of_win); });
    removes = true;
    MPI_Comm_delete_attr(MPI_COMM_SELF, deleted);
    MPI_Win_free(&win);
    removes = false;
}

static void requests() {
    MPI_Request request, other;
    MPI_Grequest_start(query, released, cancelled, nullptr, &request);
    throws("cancel", [&] { MPI_Cancel(&request); });
    MPI_Grequest_complete(request);
    throws("query", [&] {
        other = request;
        MPI_Status status;
        MPI_Wait(&other, &status);
    });
}

static void signals() {
    for (int round = 0; round < 3; round++) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        std::signal(SIGUSR1, on_signal);
        throws("signal", [] { raise(SIGUSR1); });
        // As everywhere it stays blocked: nobody has returned.
        sigset_t now;
        sigprocmask(SIG_UNBLOCK, &set, &now);
        CHECK(sigismember(&now, SIGUSR1));
    }
}

static void leaves(void *) { std::printf("rank %d: cleaned up\n", rank); }
struct Leaves {
    ~Leaves() { std::printf("rank %d: destroyed\n", rank); }
};
[[gnu::noinline]] static void exits() {
    Leaves object;
    pthread_cleanup_push(leaves, nullptr);
    pthread_exit(nullptr);
    pthread_cleanup_pop(0);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    std::string what = argc == 2 ? argv[1] : "";
    if (what == "uncaught" && rank == 1) {
        MPI_Errhandler handler;
        MPI_Comm_create_errhandler(on_comm_error, &handler);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
        MPI_Send(nullptr, 0, MPI_INT, size + 5, 0, MPI_COMM_WORLD);
    }
    if (what == "exit") {
        MPI_Finalize();
        std::atexit([] { std::printf("rank %d: exits\n", rank); });
        exits();
    }
    for (int round = 0; round < 3 && what.empty(); round++) {
        handlers();
        operations();
        attributes();
        requests();
        signals();
    }
    return finish("callbacks");
}
