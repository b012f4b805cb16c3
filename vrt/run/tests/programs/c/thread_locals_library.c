/* The library of `thread_locals.c`. */
__attribute__((tls_model("global-dynamic"))) __thread int of_library = 11;
__attribute__((tls_model("local-dynamic"))) static __thread int local_one = 21;
__attribute__((tls_model("local-dynamic"))) static __thread int local_two;
__attribute__((tls_model("initial-exec"))) __thread int by_offset_of_library = 31;

int *library_dynamic(void) { return &of_library; }
int *library_local_dynamic(int which) { return which ? &local_two : &local_one; }
int *library_initial(void) { return &by_offset_of_library; }

int library_check(int rank, int round) {
    return of_library == 2000 + rank && local_one == 3000 + rank && local_two == rank * round
        && by_offset_of_library == 4000 + rank;
}
