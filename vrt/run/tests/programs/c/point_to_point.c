/* Messages between two ranks, in all modes, with all ways to wait for them. */
#include "check.h"

#define ROUNDS 30
#define LARGE (1 << 20)

static const MPI_Comm world = MPI_COMM_WORLD;
static char room[1 << 20];

static void fill(int *values, int count, int seed) {
    for (int i = 0; i < count; i++) values[i] = seed * 1000 + i;
}
static int filled(const int *values, int count, int seed) {
    for (int i = 0; i < count; i++) {
        if (values[i] != seed * 1000 + i) return 0;
    }
    return 1;
}
static int has(const MPI_Status *status, int source, int tag, int ints) {
    int count = -1;
    MPI_Get_count(status, MPI_INT, &count);
    return status->MPI_SOURCE == source && status->MPI_TAG == tag && count == ints;
}

/* Each mode, blocking: odd ranks answer. Sizes below and above what is sent at once. */
static void modes(int round) {
    static int out[5000], in[5000];
    const int sizes[] = {0, 1, 100, 5000};
    for (int at = 0; at < 4; at++) {
        int count = sizes[at];
        for (int mode = 0; mode < 4; mode++) {
            MPI_Request request;
            MPI_Status status;
            fill(out, count, rank + round);
            MPI_Irecv(in, 5000, MPI_INT, previous_rank(), mode, world, &request);
            /* So all receives are there, as MPI_Rsend demands. */
            MPI_Barrier(world);
            if (mode == 0) MPI_Send(out, count, MPI_INT, next_rank(), mode, world);
            if (mode == 1) MPI_Bsend(out, count, MPI_INT, next_rank(), mode, world);
            if (mode == 2) MPI_Ssend(out, count, MPI_INT, next_rank(), mode, world);
            if (mode == 3) MPI_Rsend(out, count, MPI_INT, next_rank(), mode, world);
            fill(out, count, -1);
            MPI_Wait(&request, &status);
            CHECK(has(&status, previous_rank(), mode, count));
            CHECK(filled(in, count, previous_rank() + round) && request == MPI_REQUEST_NULL);
            work();
        }
    }
}

static void immediate_modes(int round) {
    int out[4][50], in[4][50];
    MPI_Request requests[8];
    MPI_Status statuses[8];
    for (int mode = 0; mode < 4; mode++) {
        fill(out[mode], 50, rank + mode + round);
        MPI_Irecv(in[mode], 50, MPI_INT, previous_rank(), 10 + mode, world, &requests[mode]);
    }
    MPI_Barrier(world);
    MPI_Isend(out[0], 50, MPI_INT, next_rank(), 10, world, &requests[4]);
    MPI_Ibsend(out[1], 50, MPI_INT, next_rank(), 11, world, &requests[5]);
    MPI_Issend(out[2], 50, MPI_INT, next_rank(), 12, world, &requests[6]);
    MPI_Irsend(out[3], 50, MPI_INT, next_rank(), 13, world, &requests[7]);
    work();
    MPI_Waitall(8, requests, statuses);
    for (int mode = 0; mode < 4; mode++) {
        CHECK(filled(in[mode], 50, previous_rank() + mode + round));
        CHECK(has(&statuses[mode], previous_rank(), 10 + mode, 50));
    }
}

static void persistent(int round) {
    int out[20], in[20];
    MPI_Request requests[5];
    MPI_Recv_init(in, 20, MPI_INT, previous_rank(), 20, world, &requests[0]);
    MPI_Send_init(out, 20, MPI_INT, next_rank(), 20, world, &requests[1]);
    MPI_Ssend_init(out, 20, MPI_INT, next_rank(), 20, world, &requests[2]);
    MPI_Bsend_init(out, 20, MPI_INT, next_rank(), 20, world, &requests[3]);
    MPI_Rsend_init(out, 20, MPI_INT, next_rank(), 20, world, &requests[4]);
    MPI_Status empty;
    CHECK(MPI_Wait(&requests[0], &empty) == MPI_SUCCESS && requests[0] != MPI_REQUEST_NULL);
    CHECK(empty.MPI_SOURCE == MPI_ANY_SOURCE && empty.MPI_TAG == MPI_ANY_TAG);
    for (int again = 0; again < 3; again++) {
        for (int mode = 1; mode < 5; mode++) {
            MPI_Status status;
            fill(out, 20, rank + round + again);
            MPI_Start(&requests[0]);
            MPI_Barrier(world);
            MPI_Startall(1, &requests[mode]);
            work();
            MPI_Wait(&requests[mode], MPI_STATUS_IGNORE);
            MPI_Wait(&requests[0], &status);
            CHECK(filled(in, 20, previous_rank() + round + again));
            CHECK(has(&status, previous_rank(), 20, 20));
        }
    }
    for (int i = 0; i < 5; i++) {
        MPI_Request_free(&requests[i]);
        CHECK(requests[i] == MPI_REQUEST_NULL);
    }
}

static void probes(void) {
    int out[3] = {rank, 2, 3}, in[3] = {-1, -1, -1}, flag = 0, length = -1;
    MPI_Status status;
    MPI_Request request;
    MPI_Isend(out, 3, MPI_INT, next_rank(), 30, world, &request);
    MPI_Probe(previous_rank(), 30, world, &status);
    CHECK(has(&status, previous_rank(), 30, 3));
    MPI_Iprobe(MPI_ANY_SOURCE, 30, world, &flag, &status);
    CHECK(flag && has(&status, previous_rank(), 30, 3));
    MPI_Get_elements(&status, MPI_BYTE, &length);
    CHECK(length == 12);
    MPI_Iprobe(previous_rank(), 31, world, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Recv(in, 3, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, world, MPI_STATUS_IGNORE);
    CHECK(memcmp(in + 1, out + 1, 8) == 0 && in[0] == previous_rank());
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* What was matched nobody else gets. */
    MPI_Message message, none;
    MPI_Isend(out, 2, MPI_INT, next_rank(), 32, world, &request);
    MPI_Mprobe(MPI_ANY_SOURCE, 32, world, &message, &status);
    CHECK(has(&status, previous_rank(), 32, 2) && message != MPI_MESSAGE_NULL);
    MPI_Improbe(MPI_ANY_SOURCE, 32, world, &flag, &none, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Mrecv(in, 3, MPI_INT, &message, &status);
    CHECK(in[0] == previous_rank() && has(&status, previous_rank(), 32, 2));
    CHECK(message == MPI_MESSAGE_NULL);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isend(out, 1, MPI_INT, next_rank(), 33, world, &request);
    while (!flag) MPI_Improbe(previous_rank(), 33, world, &flag, &message, &status);
    MPI_Request received;
    in[0] = -1;
    MPI_Imrecv(in, 1, MPI_INT, &message, &received);
    work();
    MPI_Wait(&received, &status);
    CHECK(in[0] == previous_rank() && has(&status, previous_rank(), 33, 1));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* Of no process. */
    MPI_Mprobe(MPI_PROC_NULL, 5, world, &message, &status);
    CHECK(message == MPI_MESSAGE_NO_PROC && has(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0));
    MPI_Mrecv(in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    CHECK(message == MPI_MESSAGE_NULL);
    MPI_Recv(in, 1, MPI_INT, MPI_PROC_NULL, 5, world, &status);
    CHECK(has(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0));
    CHECK(MPI_Send(out, 1, MPI_INT, MPI_PROC_NULL, 5, world) == MPI_SUCCESS);
}

/* Rank 0 receives of everybody, whoever comes; messages of one rank come in order. */
static void any_source(int round) {
    if (rank != 0) {
        for (int i = 0; i < 3; i++) {
            int out[2] = {rank, i + round};
            MPI_Send(out, 2, MPI_INT, 0, 40 + i, world);
            work();
        }
    } else {
        int next[64] = {0};
        for (int i = 0; i < 3 * (size - 1); i++) {
            int in[2];
            MPI_Status status;
            MPI_Recv(in, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &status);
            CHECK(has(&status, in[0], 40 + in[1] - round, 2) && in[1] - round == next[in[0]]);
            next[in[0]]++;
        }
        for (int from = 1; from < size; from++) CHECK(next[from] == 3);
    }
    MPI_Barrier(world);
}

static void exchanges(int round) {
    int out[100], in[100];
    MPI_Status status;
    fill(out, 100, rank + round);
    MPI_Sendrecv(out, 100, MPI_INT, next_rank(), 50, in, 100, MPI_INT, MPI_ANY_SOURCE, 50, world, &status);
    CHECK(filled(in, 100, previous_rank() + round) && has(&status, previous_rank(), 50, 100));
    MPI_Sendrecv_replace(out, 100, MPI_INT, next_rank(), 51, previous_rank(), 51, world, &status);
    CHECK(filled(out, 100, previous_rank() + round) && has(&status, previous_rank(), 51, 100));
    MPI_Request requests[2];
    MPI_Isendrecv(in, 100, MPI_INT, previous_rank(), 52, out, 100, MPI_INT, next_rank(), 52, world,
                  &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    CHECK(filled(out, 100, rank + round));
    MPI_Isendrecv_replace(out, 100, MPI_INT, next_rank(), 53, previous_rank(), 53, world, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    CHECK(filled(out, 100, previous_rank() + round));
    /* To oneself. */
    int own = rank + round, back = -1;
    MPI_Sendrecv(&own, 1, MPI_INT, rank, 54, &back, 1, MPI_INT, rank, 54, world, MPI_STATUS_IGNORE);
    CHECK(back == own);
}

/* Some requests of which only some are done. */
static void waits(void) {
    enum { COUNT = 4 };
    int in[COUNT], out[COUNT], index = -1, flag = -1, done, indices[COUNT], seen = 0;
    MPI_Request requests[COUNT], sends[COUNT];
    MPI_Status status, statuses[COUNT];
    for (int i = 0; i < COUNT; i++) {
        out[i] = 10 * rank + i;
        MPI_Irecv(&in[i], 1, MPI_INT, previous_rank(), 60 + i, world, &requests[i]);
    }
    MPI_Testany(COUNT, requests, &index, &flag, &status);
    CHECK(!flag && index == MPI_UNDEFINED);
    MPI_Testsome(COUNT, requests, &done, indices, statuses);
    CHECK(done == 0);
    MPI_Testall(COUNT, requests, &flag, statuses);
    CHECK(!flag);
    MPI_Barrier(world);
    /* The last first. */
    for (int i = COUNT - 1; i >= 0; i--) {
        MPI_Isend(&out[i], 1, MPI_INT, next_rank(), 60 + i, world, &sends[i]);
    }
    MPI_Waitany(COUNT, requests, &index, &status);
    CHECK(index >= 0 && in[index] == 10 * previous_rank() + index);
    CHECK(has(&status, previous_rank(), 60 + index, 1) && requests[index] == MPI_REQUEST_NULL);
    seen |= 1 << index;
    while (seen != (1 << COUNT) - 1) {
        MPI_Waitsome(COUNT, requests, &done, indices, statuses);
        CHECK(done > 0);
        if (done <= 0) break;
        for (int i = 0; i < done; i++) {
            CHECK(has(&statuses[i], previous_rank(), 60 + indices[i], 1));
            CHECK(in[indices[i]] == 10 * previous_rank() + indices[i]);
            CHECK((seen & 1 << indices[i]) == 0);
            seen |= 1 << indices[i];
        }
    }
    MPI_Waitsome(COUNT, requests, &done, indices, statuses);
    CHECK(done == MPI_UNDEFINED);
    MPI_Waitany(COUNT, requests, &index, &status);
    CHECK(index == MPI_UNDEFINED && has(&status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0));
    flag = 0;
    while (!flag) MPI_Testall(COUNT, sends, &flag, MPI_STATUSES_IGNORE);
    for (int i = 0; i < COUNT; i++) CHECK(sends[i] == MPI_REQUEST_NULL);
    /* One by one. */
    MPI_Irecv(in, 1, MPI_INT, previous_rank(), 70, world, &requests[0]);
    MPI_Issend(out, 1, MPI_INT, next_rank(), 70, world, &sends[0]);
    flag = 0;
    while (!flag) MPI_Test(&requests[0], &flag, &status);
    CHECK(in[0] == 10 * previous_rank() && has(&status, previous_rank(), 70, 1));
    flag = 0;
    while (!flag) MPI_Request_get_status(sends[0], &flag, MPI_STATUS_IGNORE);
    CHECK(sends[0] != MPI_REQUEST_NULL);
    MPI_Wait(&sends[0], MPI_STATUS_IGNORE);
    MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &status);
    CHECK(flag && has(&status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0));
}

static void cancels(void) {
    int in = -1, flag = -1;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&in, 1, MPI_INT, previous_rank(), 80, world, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag && request == MPI_REQUEST_NULL);
    MPI_Barrier(world);
    /* The message is for who asks afterwards; one that has come is not cancelled. */
    MPI_Irecv(&in, 1, MPI_INT, previous_rank(), 80, world, &request);
    MPI_Send(&rank, 1, MPI_INT, next_rank(), 80, world);
    MPI_Barrier(world);
    int length = -1;
    flag = 0;
    while (!flag) MPI_Request_get_status(request, &flag, &status);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    MPI_Get_count(&status, MPI_INT, &length);
    CHECK(!flag && in == previous_rank() && length == 1);
    /* Nobody waits for a request that was freed; what it does is done. */
    static int freed;
    freed = rank;
    MPI_Isend(&freed, 1, MPI_INT, next_rank(), 81, world, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
    MPI_Recv(&in, 1, MPI_INT, previous_rank(), 81, world, MPI_STATUS_IGNORE);
    CHECK(in == previous_rank());
    static int late;
    late = -1;
    MPI_Irecv(&late, 1, MPI_INT, previous_rank(), 82, world, &request);
    MPI_Request_free(&request);
    MPI_Ssend(&rank, 1, MPI_INT, next_rank(), 82, world);
    MPI_Barrier(world);
    stir();
    CHECK(late == previous_rank());
}

/* Both ways at once, longer than what is sent at once. */
static void large(int round) {
    const int count = LARGE / sizeof(int);
    int *out = malloc(LARGE), *in = malloc(LARGE), *other = malloc(LARGE);
    MPI_Request requests[4];
    fill(out, count, rank + round);
    MPI_Isend(out, count, MPI_INT, next_rank(), 90, world, &requests[0]);
    MPI_Isend(out, count, MPI_INT, previous_rank(), 91, world, &requests[1]);
    work();
    MPI_Irecv(in, count, MPI_INT, previous_rank(), 90, world, &requests[2]);
    MPI_Irecv(other, count, MPI_INT, next_rank(), 91, world, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    CHECK(filled(in, count, previous_rank() + round) && filled(other, count, next_rank() + round));
    free(out);
    free(in);
    free(other);
}

static int was_cancelled(MPI_Request *request) {
    MPI_Status status;
    int flag = -1;
    MPI_Cancel(request);
    work();
    MPI_Wait(request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(*request == MPI_REQUEST_NULL);
    return flag;
}

/* Sends that wait for their receive are taken back, unless that was there: then the message comes. */
static void cancelled_sends(int round) {
    const int count = LARGE / sizeof(int);
    int *out = malloc(LARGE), *in = malloc(LARGE), word = rank, flag = -1, gone;
    MPI_Request requests[3], receive;
    MPI_Status status;
    fill(out, count, rank + round);
    MPI_Issend(&word, 1, MPI_INT, next_rank(), 200, world, &requests[0]);
    MPI_Issend(out, 50, MPI_INT, next_rank(), 200, world, &requests[1]);
    if (round % 8 == 0) {
        MPI_Isend(out, count, MPI_INT, next_rank(), 200, world, &requests[2]);
        CHECK(was_cancelled(&requests[2]));
    }
    CHECK(was_cancelled(&requests[0]));
    CHECK(was_cancelled(&requests[1]));
    MPI_Barrier(world);
    MPI_Iprobe(previous_rank(), 200, world, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    /* The receive may come first, or not: it has the message if and only if it is not taken back. */
    MPI_Issend(out, 50, MPI_INT, next_rank(), 201, world, &requests[0]);
    if (round % 2) work();
    MPI_Irecv(in, count, MPI_INT, previous_rank(), 201, world, &receive);
    if (round % 3 == 0) work();
    gone = was_cancelled(&requests[0]);
    MPI_Sendrecv(&gone, 1, MPI_INT, next_rank(), 202, &flag, 1, MPI_INT, previous_rank(), 202, world,
                 MPI_STATUS_IGNORE);
    if (flag) {
        CHECK(was_cancelled(&receive));
    } else {
        MPI_Wait(&receive, &status);
        CHECK(has(&status, previous_rank(), 201, 50) && filled(in, 50, previous_rank() + round));
    }
    /* Nor is a send that is done. */
    MPI_Isend(&word, 1, MPI_INT, next_rank(), 203, world, &requests[0]);
    MPI_Recv(in, 1, MPI_INT, previous_rank(), 203, world, MPI_STATUS_IGNORE);
    MPI_Barrier(world);
    CHECK(!was_cancelled(&requests[0]) && in[0] == previous_rank());
    /* What comes from nobody needs no type. */
    MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 10, world, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    free(out);
    free(in);
}

/* Many messages for which nobody asks yet, in another order than they are asked for. */
static void unexpected(int round) {
    enum { COUNT = 60 };
    int out[COUNT];
    for (int i = 0; i < COUNT; i++) {
        out[i] = rank * 100 + i + round;
        MPI_Send(&out[i], 1, MPI_INT, next_rank(), 100 + i, world);
    }
    for (int i = COUNT - 1; i >= 0; i--) {
        int in = -1;
        MPI_Recv(&in, 1, MPI_INT, previous_rank(), 100 + i, world, MPI_STATUS_IGNORE);
        CHECK(in == previous_rank() * 100 + i + round);
    }
}

static int queried, freed_extra, cancelled;
static int query(void *extra, MPI_Status *status) {
    queried++;
    status->MPI_SOURCE = *(int *)extra;
    status->MPI_TAG = 5;
    MPI_Status_set_elements(status, MPI_INT, 7);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}
static int free_extra(void *extra) {
    freed_extra += extra != NULL;
    return MPI_SUCCESS;
}
static int cancel(void *extra, int complete) {
    (void)extra;
    cancelled += 1 + complete;
    return MPI_SUCCESS;
}
static void generalized(int round) {
    MPI_Request request;
    MPI_Status status;
    int flag = -1, extra = rank;
    MPI_Grequest_start(query, free_extra, cancel, &extra, &request);
    MPI_Test(&request, &flag, &status);
    CHECK(!flag);
    MPI_Cancel(&request);
    stir();
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    CHECK(has(&status, rank, 5, 7) && queried == round + 1 && freed_extra == round + 1);
    CHECK(cancelled == round + 1);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Buffer_attach(room, sizeof room);
    for (int round = 0; round < ROUNDS; round++) {
        modes(round);
        immediate_modes(round);
        persistent(round);
        probes();
        any_source(round);
        exchanges(round);
        waits();
        cancels();
        cancelled_sends(round);
        if (round % 4 == 0) large(round);
        unexpected(round);
        generalized(round);
    }
    void *detached = NULL;
    int length = 0;
    MPI_Buffer_detach(&detached, &length);
    CHECK(detached == room && length == sizeof room);
    return finish("point_to_point");
}
