/* Runs calls that a file lists, one sequence on each line, and prints what each rank got: the test `faces` runs the same
 * calls by the Rust API and compares. A refused call ends its sequence: x. */
#include <limits.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char said[1 << 12];
static void say(const char *format, ...) {
    size_t length = strlen(said);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said + length, sizeof said - length, format, arguments);
    va_end(arguments);
}

/* The numbers of a line, from a place on. */
static int next(char **line) { return (int)strtol(*line, line, 10); }
static int *numbers(char **line, int n) {
    int *all = malloc((n > 0 ? n : 1) * sizeof *all);
    for (int i = 0; i < n; i++) all[i] = next(line);
    return all;
}
static void say_all(const int *all, int n) {
    say("[");
    for (int i = 0; i < n; i++) say(i ? " %d" : "%d", all[i]);
    say("]");
}

static int rank, size;

/* Calls on a window of one value of each rank; the target is `to`, or the rank itself: q, s, u. */
static void window(MPI_Comm comm, int to, const char *calls) {
    MPI_Win win;
    MPI_Group all, one;
    int *memory, here, value = 7, flag, from;
    MPI_Comm_rank(comm, &here);
    MPI_Comm_size(comm, &from);
    from = (here - (to - here) + from) % from;
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, comm, &memory, &win);
    *memory = 100 * here;
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Comm_group(comm, &all);
    MPI_Barrier(comm);
    for (; *calls; calls++) {
        int error = 0;
        switch (*calls) {
        case 'F': error = MPI_Win_fence(0, win); break;
        case 'N': error = MPI_Win_fence(MPI_MODE_NOSUCCEED, win); break;
        case 'n': error = MPI_Win_fence(MPI_MODE_NOPRECEDE, win); break;
        case 'p': error = MPI_Put(&value, 1, MPI_INT, to, 0, 1, MPI_INT, win); break;
        case 'q': error = MPI_Put(&value, 1, MPI_INT, here, 0, 1, MPI_INT, win); break;
        case 'a': error = MPI_Accumulate(&value, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_SUM, win); break;
        case 'g':
            value = -1;
            error = MPI_Get(&value, 1, MPI_INT, to, 0, 1, MPI_INT, win);
            if (!error) say("%d", value);
            value = 7;
            break;
        case 'o': error = MPI_Put(&value, 1, MPI_INT, to, 1, 1, MPI_INT, win); break;
        case 'r': error = MPI_Put(&value, 1, MPI_INT, 99, 0, 1, MPI_INT, win); break;
        case 'L': error = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win); break;
        case 'S': error = MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win); break;
        case 's': error = MPI_Win_lock(MPI_LOCK_SHARED, here, 0, win); break;
        case 'U': error = MPI_Win_unlock(to, win); break;
        case 'u': error = MPI_Win_unlock(here, win); break;
        case 'A': error = MPI_Win_lock_all(0, win); break;
        case 'Z': error = MPI_Win_unlock_all(win); break;
        case 'f': error = MPI_Win_flush(to, win); break;
        case 'h': error = MPI_Win_flush_all(win); break;
        case 'y': error = MPI_Win_sync(win); break;
        case 'P': /* A post, and the start that it allows. */
            MPI_Group_incl(all, 1, &from, &one);
            error = MPI_Win_post(one, 0, win);
            MPI_Group_free(&one);
            if (error) break;
            MPI_Group_incl(all, 1, &to, &one);
            error = MPI_Win_start(one, 0, win);
            MPI_Group_free(&one);
            break;
        case 'C': error = MPI_Win_complete(win); break;
        case 'W': error = MPI_Win_wait(win); break;
        case 'T':
            error = MPI_Win_test(win, &flag);
            if (!error) say("%d", flag);
            break;
        case 'B': error = MPI_Barrier(comm); break;
        }
        say(error ? "x" : ".");
        if (error) break;
    }
    MPI_Group_free(&all);
    MPI_Win_free(&win);
}

static void dims(char *line) {
    int ranks = next(&line), n = next(&line), *given = numbers(&line, n);
    if (MPI_Dims_create(ranks, n, given)) say("x");
    else say_all(given, n);
    free(given);
}

/* The parts that the neighbours have sent: a number for each edge. */
static void say_exchange(MPI_Comm comm, int in, int out) {
    int me, *mine = malloc((out + 1) * sizeof *mine), *theirs = malloc((in + 1) * sizeof *theirs);
    MPI_Comm_rank(comm, &me);
    for (int i = 0; i < out; i++) mine[i] = 100 * me + i;
    for (int i = 0; i < in; i++) theirs[i] = -1;
    say(MPI_Neighbor_alltoall(mine, 1, MPI_INT, theirs, 1, MPI_INT, comm) ? "x" : "");
    say_all(theirs, in);
    for (int i = 0; i < in; i++) theirs[i] = -1;
    say(MPI_Neighbor_allgather(&me, 1, MPI_INT, theirs, 1, MPI_INT, comm) ? "x" : "");
    say_all(theirs, in);
    free(mine);
    free(theirs);
}

static void grid(char *line) {
    int n = next(&line), *shape = numbers(&line, n), *closed = numbers(&line, n), *kept = numbers(&line, n);
    int mapped, me;
    MPI_Comm comm, part;
    if (MPI_Cart_map(MPI_COMM_WORLD, n, shape, closed, &mapped)) say("x");
    else say("%d", mapped == MPI_UNDEFINED ? -1 : mapped);
    if (MPI_Cart_create(MPI_COMM_WORLD, n, shape, closed, 0, &comm)) {
        say("x");
        goto end;
    }
    if (comm == MPI_COMM_NULL) {
        say("-");
        goto end;
    }
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &me);
    int coords[8] = {0}, there[8];
    MPI_Cart_coords(comm, me, n, coords);
    say_all(coords, n);
    static const int by[] = {0, 1, -1, 2, 7, INT_MAX, INT_MIN};
    for (int d = 0; d < n; d++)
        for (int i = 0; i < 7; i++) {
            int source, destination;
            MPI_Cart_shift(comm, d, by[i], &source, &destination);
            say("%d,%d ", source == MPI_PROC_NULL ? -1 : source, destination == MPI_PROC_NULL ? -1 : destination);
            memcpy(there, coords, sizeof there);
            there[d] = by[i];
            int found = -1;
            if (MPI_Cart_rank(comm, there, &found)) say("x ");
            else say("%d ", found);
        }
    say_exchange(comm, 2 * n, 2 * n);
    if (MPI_Cart_sub(comm, kept, &part)) say("x");
    else {
        int own, all, count;
        MPI_Comm_rank(part, &own);
        MPI_Comm_size(part, &all);
        MPI_Cartdim_get(part, &count);
        say("%d/%d %d", own, all, count);
        MPI_Comm_free(&part);
    }
    MPI_Comm_free(&comm);
end:
    free(shape);
    free(closed);
    free(kept);
}

/* `symmetric`: each edge has one in the other direction, so that neighbours can exchange parts. */
static void graph(char *line, int symmetric) {
    int nodes = next(&line), *index = numbers(&line, nodes), n = next(&line), *edges = numbers(&line, n);
    MPI_Comm comm;
    if (MPI_Graph_create(MPI_COMM_WORLD, nodes, index, edges, 0, &comm)) say("x");
    else if (comm == MPI_COMM_NULL) say("-");
    else {
        int me, around, neighbors[64];
        MPI_Comm_rank(comm, &me);
        MPI_Graph_neighbors_count(comm, me, &around);
        MPI_Graph_neighbors(comm, me, 64, neighbors);
        say_all(neighbors, around);
        if (symmetric) say_exchange(comm, around, around);
        MPI_Comm_free(&comm);
    }
    free(index);
    free(edges);
}

/* Edges, each named by one rank. */
static void edges(char *line) {
    int n = next(&line), count = 0, from[64], to[64], each[64];
    MPI_Comm comm;
    for (int i = 0; i < n; i++) {
        int by = next(&line), one = next(&line), other = next(&line);
        if (by != rank) continue;
        from[count] = one, to[count] = other, each[count] = 1, count++;
    }
    if (MPI_Dist_graph_create(MPI_COMM_WORLD, count, from, each, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm)) {
        say("x");
        return;
    }
    int in, out, weighted, sources[64], destinations[64];
    MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    MPI_Dist_graph_neighbors(comm, in, sources, MPI_UNWEIGHTED, out, destinations, MPI_UNWEIGHTED);
    say_all(sources, in);
    say_all(destinations, out);
    say_exchange(comm, in, out);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    /* Each line as a whole, whatever others print. */
    setvbuf(stdout, NULL, _IOLBF, 1 << 13);
    FILE *file = fopen(argv[1], "r");
    char line[1 << 12];
    for (int number = 0; fgets(line, sizeof line, file); number++) {
        line[strcspn(line, "\n")] = 0;
        said[0] = 0;
        switch (line[0]) {
        case 'w': window(MPI_COMM_SELF, 0, line + 2); break;
        case 'W': window(MPI_COMM_WORLD, (rank + 1) % size, line + 2); break;
        case 'd': dims(line + 1); break;
        case 'c': grid(line + 1); break;
        case 'g': graph(line + 1, 0); break;
        case 'G': graph(line + 1, 1); break;
        case 'e': edges(line + 1); break;
        }
        printf("%d %d %s\n", number, rank, said);
    }
    fclose(file);
    MPI_Finalize();
}
