/* The library of `own_library.c`: with globals of its own and messages. */
#include <mpi.h>
#include <stdio.h>

int library_counter = 7;
int library_table[4] = {1, 2, 3, 4};
const char *library_name = "library";
int defined_twice = 2;

int called_back(int x);
extern int of_program;

static int *const to_counter = &library_counter;
static int made;

__attribute__((constructor)) static void make(void) { made = 1; }
__attribute__((destructor)) static void unmake(void) { printf("library: destructor\n"); }

int *library_pointer(void) { return to_counter; }
int library_next(void) { return ++*to_counter; }
int library_calls_back(int x) { return called_back(x); }
int library_made(void) { return made && defined_twice == 1; }
int library_ranks(void) {
    int size = 0, one = 1;
    MPI_Allreduce(&one, &size, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return size;
}

static int with(void) { return of_program + 1000; }
static int (*choose(void))(void) { return with; }
int library_chosen(void) __attribute__((ifunc("choose")));
