/* Stacks that a program makes for itself: messages on each of them. */
#include "check.h"

#include <ucontext.h>

#define ROUNDS 100
#define STACKS 3
#define STACK (256 << 10)

static ucontext_t main_context, contexts[STACKS];
static int steps[STACKS];

static void run(int which) {
    int own[100];
    for (int i = 0; i < 100; i++) own[i] = rank * 1000 + which * 100 + i;
    for (int round = 0; round < ROUNDS; round++) {
        int out = rank * 10 + which, in = -1;
        MPI_Sendrecv(&out, 1, MPI_INT, next_rank(), which, &in, 1, MPI_INT, previous_rank(), which,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(in == previous_rank() * 10 + which);
        work();
        steps[which]++;
        swapcontext(&contexts[which], &main_context);
        for (int i = 0; i < 100; i++) CHECK(own[i] == rank * 1000 + which * 100 + i);
    }
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    for (int which = 0; which < STACKS; which++) {
        getcontext(&contexts[which]);
        contexts[which].uc_stack.ss_sp = malloc(STACK);
        contexts[which].uc_stack.ss_size = STACK;
        contexts[which].uc_link = &main_context;
        makecontext(&contexts[which], (void (*)(void))run, 1, which);
    }
    for (int round = 0; round <= ROUNDS; round++) {
        for (int which = 0; which < STACKS; which++) {
            swapcontext(&main_context, &contexts[which]);
            CHECK(steps[which] == (round < ROUNDS ? round + 1 : ROUNDS));
        }
    }
    for (int which = 0; which < STACKS; which++) free(contexts[which].uc_stack.ss_sp);
    return finish("contexts");
}
