/* Thread-locals of a program and of its library, by all models of access. */
#include "check.h"

#include <errno.h>

#define ROUNDS 2000

/* A library cannot be compiled with this model as an option. */
#ifdef LOCAL_EXEC
#define MODEL __attribute__((tls_model("local-exec")))
#else
#define MODEL
#endif

MODEL __thread int initialised = 5;
MODEL static __thread long zero;
MODEL __thread char large[3000];
MODEL _Thread_local int *to_own;
__attribute__((tls_model("initial-exec"))) __thread int by_offset = 77;
MODEL static __thread struct { char small; _Alignas(64) int aligned; } over_aligned = {1, 2};
__attribute__((tls_model("initial-exec"))) extern __thread int of_library;

int *library_dynamic(void);
int *library_local_dynamic(int which);
int *library_initial(void);
int library_check(int rank, int round);

int main(int argc, char **argv) {
    begin(&argc, &argv);
    CHECK(initialised == 5 && zero == 0 && large[2999] == 0 && !to_own && by_offset == 77);
    CHECK(over_aligned.small == 1 && over_aligned.aligned == 2);
    CHECK((size_t)&over_aligned.aligned % 64 == 0);
    CHECK(*library_dynamic() == 11 && *library_local_dynamic(0) == 21 && *library_local_dynamic(1) == 0);
    CHECK(*library_initial() == 31 && of_library == 11 && library_dynamic() == &of_library);
    int *const own[] = {&initialised, library_dynamic(), library_local_dynamic(0), library_initial()};
    initialised = rank;
    to_own = &initialised;
    large[2999] = rank;
    by_offset = 1000 + rank;
    over_aligned.aligned = -rank;
    *library_dynamic() = 2000 + rank;
    *library_local_dynamic(0) = 3000 + rank;
    *library_initial() = 4000 + rank;
    for (int round = 0; round < ROUNDS; round++) {
        zero = round + rank;
        *library_local_dynamic(1) = rank * round;
        errno = rank + 1;
        stir();
        CHECK(errno == rank + 1);
        CHECK(initialised == rank && *to_own == rank && zero == round + rank && large[2999] == (char)rank);
        CHECK(by_offset == 1000 + rank && over_aligned.aligned == -rank);
        CHECK(of_library == 2000 + rank && library_check(rank, round));
        CHECK(own[0] == &initialised && own[1] == library_dynamic());
        CHECK(own[2] == library_local_dynamic(0) && own[3] == library_initial());
    }
    return finish("thread_locals");
}
