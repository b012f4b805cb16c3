/* What the generated program of the test `extremes` calls functions with: objects that are valid, memory that
 * arguments point to, and what has to be there before a call that would wait otherwise. One rank talks to itself. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>

#define MEMORY (1 << 16)

/* Buffers begin in the middle of this, so that a few elements before them are the program's, too. */
static char memory[4][2 * MEMORY];
#define BUFFER(n) ((void *)(memory[n] + MEMORY))

static int ints[16][64];
static MPI_Count counts[16][64];
static MPI_Aint addresses[16][64];
static MPI_Datatype datatypes[2][64];
static MPI_Request requests[64];
static MPI_Status statuses[64];
static int ranges[64][3];
static char text[4][8192];
static MPI_Aint place;

static MPI_Comm self, line, graph, dist;
static MPI_Group group;
static MPI_Win win, idle;
static MPI_Datatype empty, huge, vector;
static MPI_Op replace;
static MPI_Info info;
static MPI_Session session;
static int comm_key, type_key, win_key;
static MPI_Request request;
static MPI_Message message;
static MPI_Status status;
static MPI_Datatype made;
static MPI_Op made_op;
static MPI_Errhandler handler;
static MPI_Info made_info;
static MPI_Comm new_comm;
static MPI_Group new_group;
static MPI_Win new_win;
static void *base;
static int file = -1;
static long calls, refused;

static void first(void *in, void *out, int *len, MPI_Datatype *type) { (void)in, (void)out, (void)len, (void)type; }

/* Says which call comes, where the test finds it if it does not come back. */
static void now(const char *call) {
    if (pwrite(file, call, strlen(call) + 1, 0) < 0) abort();
}

static void begin(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    file = open(argv[1], O_CREAT | O_TRUNC | O_WRONLY, 0600);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int one = 1, zero = 0, closed = 1;
    MPI_Cart_create(MPI_COMM_SELF, 1, &one, &closed, 0, &line);
    MPI_Graph_create(MPI_COMM_SELF, 1, &one, &zero, 0, &graph);
    MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 1, &zero, MPI_UNWEIGHTED, 1, &zero, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                   0, &dist);
    MPI_Comm_group(MPI_COMM_SELF, &group);
    char *window;
    MPI_Win_allocate(MEMORY, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    MPI_Win_allocate(MEMORY, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window, &idle);
    MPI_Win_set_errhandler(idle, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(0, MPI_DOUBLE, &empty);
    MPI_Type_contiguous_c((MPI_Count)1 << 40, MPI_DOUBLE, &huge);
    MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
    MPI_Type_commit(&empty);
    MPI_Type_commit(&huge);
    MPI_Type_commit(&vector);
    MPI_Op_create(first, 1, &replace);
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "value");
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &comm_key, NULL);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &type_key, NULL);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &win_key, NULL);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
}

/* Before each call everything is as at the beginning. */
static void fresh(void) {
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 64; k++) ints[i][k] = 0, counts[i][k] = 0, addresses[i][k] = 0;
    for (int k = 0; k < 64; k++) {
        requests[k] = MPI_REQUEST_NULL;
        ranges[k][0] = ranges[k][1] = 0, ranges[k][2] = 1;
    }
    strcpy(text[0], "key"), strcpy(text[1], "value"), text[2][0] = text[3][0] = 0;
    place = 0;
    request = MPI_REQUEST_NULL;
    message = MPI_MESSAGE_NULL;
    memset(&status, 0, sizeof status);
    made = MPI_DATATYPE_NULL;
    new_comm = MPI_COMM_NULL;
    new_group = MPI_GROUP_NULL;
    new_win = MPI_WIN_NULL;
    base = NULL;
}

static MPI_Comm own(MPI_Comm of) {
    MPI_Comm new;
    MPI_Comm_dup(of, &new);
    MPI_Comm_set_errhandler(new, MPI_ERRORS_RETURN);
    return new;
}

/* A receive for what the call sends. */
static MPI_Request wants(void) {
    MPI_Request receive;
    MPI_Irecv(BUFFER(3), MEMORY, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, self, &receive);
    return receive;
}

/* A message for what the call receives. */
static void tell(int tag) {
    MPI_Request send;
    int *top, there;
    MPI_Comm_get_attr(self, MPI_TAG_UB, &top, &there);
    MPI_Isend(BUFFER(2), 0, MPI_BYTE, 0, tag >= 0 && tag <= *top ? tag : 0, self, &send);
    MPI_Request_free(&send);
}

static void drain(void) {
    int there = 1;
    while (there) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, self, &there, MPI_STATUS_IGNORE);
        if (there) MPI_Recv(BUFFER(3), MEMORY, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, self, MPI_STATUS_IGNORE);
    }
}

static void forget(MPI_Request *of) {
    if (*of == MPI_REQUEST_NULL) return;
    MPI_Cancel(of);
    MPI_Wait(of, MPI_STATUS_IGNORE);
}

/* Gives back what a call that was allowed has made. */
static void over(int code) {
    calls++;
    if (code != MPI_SUCCESS) {
        int class = -1;
        refused++;
        MPI_Error_class(code, &class);
        if (class <= MPI_SUCCESS || class > MPI_ERR_LASTCODE) {
            fprintf(stderr, "the code %d is of no class\n", code);
            abort();
        }
    }
    if (made != MPI_DATATYPE_NULL) MPI_Type_free(&made);
    if (new_comm != MPI_COMM_NULL) MPI_Comm_free(&new_comm);
    if (new_group != MPI_GROUP_NULL && new_group != MPI_GROUP_EMPTY) MPI_Group_free(&new_group);
    if (new_win != MPI_WIN_NULL) MPI_Win_free(&new_win);
}

/* What a number of a function is. */
enum role { PLAIN, COUNT, LENGTH, ROOM, DISPLACEMENT, ENTRY_COUNT };

/* A number that a function takes: by which argument, whether it has 64 bits, and a value of it that is valid. */
struct number {
    const char *name;
    int at, is_wide;
    enum role role;
    long long valid;
};

/* The numbers of the call that comes, by argument, and which entry of ranges is meant. */
static long long v[16];
static int entry;
static MPI_Datatype type;
static MPI_Op op;

static const long long SHORT[] = {INT_MIN, INT_MIN + 1, -1, 0, 1, 2, INT_MAX - 1, INT_MAX};
static const long long WIDE[] = {LLONG_MIN, LLONG_MIN + 1, -1, 0, 1, 2, INT_MAX, (1LL << 61) + 1, 1LL << 62,
                                 LLONG_MAX - 1, LLONG_MAX};

enum elements { SOME, NONE, HUGE };
static const char *NAMES[] = {"doubles", "elements without data", "elements of 8 TiB"};

/* Whether a number may have a value in a call with such elements: what is touched is the program's memory. */
static int may_be(const struct number *number, long long value, enum elements elements) {
    if (value <= 0) return 1;
    switch (number->role) {
    case LENGTH: return value <= 1;
    case ROOM: return value <= MEMORY;
    case COUNT:
    case ENTRY_COUNT:
        /* Of doubles 2^61 + 1 are more than can be counted, of the huge ones each INT_MAX are. */
        return elements == NONE || (elements == SOME && (value <= 2 || value > 1LL << 60))
            || (elements == HUGE && value >= INT_MAX - 1);
    default: return 1;
    }
}

static void set(const struct number *numbers, int n, enum elements elements, int moves) {
    for (int i = 0; i < n; i++) {
        const struct number *number = &numbers[i];
        int is_count = number->role == COUNT || number->role == ENTRY_COUNT;
        /* Places that are far away, and huge elements, are named, but nothing is there. */
        v[number->at] = is_count && (elements == HUGE || moves) ? 0 : number->valid;
    }
}

static void make(const char *name, int (*call)(void), enum elements elements, const struct number *a, long long x,
                 const struct number *b, long long y) {
    char said[256];
    int len = snprintf(said, sizeof said, "%s of %s, %s = %lld", name, NAMES[elements], a->name, x);
    if (b) snprintf(said + len, sizeof said - len, ", %s = %lld", b->name, y);
    now(said);
    v[a->at] = x;
    if (b) v[b->at] = y;
    fresh();
    over(call());
}

/* Makes all calls of a function. */
static void run(const char *name, int (*call)(void), const struct number *numbers, int n, int has_type, int one_sided) {
    self = MPI_COMM_SELF;
    for (enum elements elements = SOME; elements <= (has_type ? HUGE : SOME); elements++) {
        type = elements == SOME ? MPI_DOUBLE : elements == NONE ? empty : huge;
        op = one_sided ? MPI_REPLACE : elements == SOME ? MPI_SUM : replace;
        for (int k = 0; k < 64; k++) datatypes[0][k] = datatypes[1][k] = type;
        for (int i = 0; i < n; i++) {
            const struct number *a = &numbers[i];
            const long long *values = a->is_wide ? WIDE : SHORT;
            int many = a->is_wide ? sizeof WIDE / sizeof *WIDE : sizeof SHORT / sizeof *SHORT;
            int entries = strcmp(a->name, "ranges") ? 1 : 3;
            for (int k = 0; k < many; k++) {
                if (!may_be(a, values[k], elements)) continue;
                for (entry = 0; entry < entries; entry++) {
                    set(numbers, n, elements, a->role == DISPLACEMENT);
                    make(name, call, elements, a, values[k], NULL, 0);
                }
                entry = 0;
            }
            for (int j = i + 1; j < n; j++) {
                const struct number *b = &numbers[j];
                long long x[] = {-1, a->is_wide ? LLONG_MIN : INT_MIN, a->is_wide ? LLONG_MAX : INT_MAX};
                long long y[] = {-1, b->is_wide ? LLONG_MIN : INT_MIN, b->is_wide ? LLONG_MAX : INT_MAX};
                for (int k = 0; k < 9; k++) {
                    if (!may_be(a, x[k / 3], elements) || !may_be(b, y[k % 3], elements)) continue;
                    set(numbers, n, elements, a->role == DISPLACEMENT || b->role == DISPLACEMENT);
                    make(name, call, elements, a, x[k / 3], b, y[k % 3]);
                }
            }
        }
    }
}

static int finish(void) {
    printf("%ld calls, %ld refused: all came back\n", calls, refused);
    MPI_Finalize();
    return 0;
}
