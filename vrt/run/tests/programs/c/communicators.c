/* Communicators, groups, topologies, attributes, names, infos and error handlers. */
#include "check.h"

#define ROUNDS 40
#define MOST 16

static int sum_on(MPI_Comm comm) {
    int sum = -1;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    return sum;
}
static int rank_on(MPI_Comm comm) {
    int own = -1;
    MPI_Comm_rank(comm, &own);
    return own;
}
static int size_of(MPI_Comm comm) {
    int own = -1;
    MPI_Comm_size(comm, &own);
    return own;
}

static void splits(int round) {
    MPI_Comm comm, other, none;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm);
    int members = (size + 1 - rank % 2) / 2, result = -1;
    CHECK(size_of(comm) == members && rank_on(comm) == members - 1 - rank / 2);
    int sum = 0;
    for (int of = rank % 2; of < size; of += 2) sum += of;
    CHECK(sum_on(comm) == sum);
    /* Messages of another communicator are others. */
    MPI_Comm_dup(comm, &other);
    MPI_Comm_compare(comm, other, &result);
    CHECK(result == MPI_CONGRUENT);
    MPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
    CHECK(result == MPI_UNEQUAL);
    MPI_Comm_compare(comm, comm, &result);
    CHECK(result == MPI_IDENT);
    int in[2] = {-1, -1}, out[2] = {round, round + 1}, own = rank_on(comm);
    MPI_Request requests[4];
    MPI_Irecv(&in[0], 1, MPI_INT, own, 1, other, &requests[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, own, 1, comm, &requests[1]);
    MPI_Isend(&out[1], 1, MPI_INT, own, 1, comm, &requests[2]);
    MPI_Isend(&out[0], 1, MPI_INT, own, 1, other, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    CHECK(in[0] == round && in[1] == round + 1);
    MPI_Comm_split(comm, rank == 0 ? MPI_UNDEFINED : 3, 0, &none);
    CHECK((none == MPI_COMM_NULL) == (rank == 0));
    if (none != MPI_COMM_NULL) MPI_Comm_free(&none);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &none);
    CHECK(none != MPI_COMM_NULL && size_of(none) >= 1 && size_of(none) <= size);
    int sharing = none == MPI_COMM_NULL ? -1 : size_of(none);
    MPI_Comm_free(&none);
    /* The same by the name of the resource; of another one nothing is known. */
    MPI_Info shared;
    MPI_Info_create(&shared);
    for (int guided = 0; guided < 2; guided++) {
        int kind = guided ? MPI_COMM_TYPE_HW_GUIDED : MPI_COMM_TYPE_RESOURCE_GUIDED;
        MPI_Info_set(shared, "mpi_hw_resource_type", "mpi_shared_memory");
        MPI_Comm_split_type(MPI_COMM_WORLD, kind, rank, shared, &none);
        CHECK(none != MPI_COMM_NULL && size_of(none) == sharing);
        if (none != MPI_COMM_NULL) MPI_Comm_free(&none);
        MPI_Info_set(shared, "mpi_hw_resource_type", "no such resource");
        MPI_Comm_split_type(MPI_COMM_WORLD, kind, rank, shared, &none);
        CHECK(none == MPI_COMM_NULL);
    }
    MPI_Info_free(&shared);
    MPI_Comm_free(&comm);
    CHECK(comm == MPI_COMM_NULL);
    /* It lives on. */
    CHECK(sum_on(other) == sum);
    MPI_Comm_free(&other);
    MPI_Request request;
    MPI_Comm_idup(MPI_COMM_WORLD, &other, &request);
    work();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum_on(other) == size * (size - 1) / 2);
    MPI_Comm_free(&other);
    MPI_Comm_test_inter(MPI_COMM_WORLD, &result);
    CHECK(!result);
}

static void groups(void) {
    MPI_Group all, some, others, result;
    int first[] = {3, 0, 1}, found[MOST], compared = -1, own = -1, count = -1;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 3, first, &some);
    MPI_Group_excl(all, 3, first, &others);
    MPI_Group_size(some, &count);
    CHECK(count == 3);
    MPI_Group_size(others, &count);
    CHECK(count == size - 3);
    MPI_Group_rank(some, &own);
    CHECK(own == (rank == 3 ? 0 : rank == 0 ? 1 : rank == 1 ? 2 : MPI_UNDEFINED));
    int asked[] = {0, 1, 2, MPI_PROC_NULL};
    MPI_Group_translate_ranks(some, 4, asked, all, found);
    CHECK(found[0] == 3 && found[1] == 0 && found[2] == 1 && found[3] == MPI_PROC_NULL);
    MPI_Group_translate_ranks(all, 3, asked, some, found);
    CHECK(found[0] == 1 && found[1] == 2 && found[2] == MPI_UNDEFINED);
    MPI_Group_union(some, others, &result);
    MPI_Group_compare(result, all, &compared);
    CHECK(compared == MPI_SIMILAR);
    MPI_Group_free(&result);
    MPI_Group_intersection(all, some, &result);
    MPI_Group_size(result, &count);
    MPI_Group_compare(result, some, &compared);
    CHECK(count == 3 && compared == MPI_SIMILAR);
    MPI_Group_free(&result);
    MPI_Group_difference(all, some, &result);
    MPI_Group_compare(result, others, &compared);
    CHECK(compared == MPI_IDENT);
    MPI_Group_free(&result);
    MPI_Group_difference(some, all, &result);
    CHECK(result == MPI_GROUP_EMPTY);
    int ranges[2][3] = {{size - 1, 0, -2}, {0, 0, 1}};
    MPI_Group_range_incl(all, size % 2 ? 1 : 2, ranges, &result);
    MPI_Group_size(result, &count);
    CHECK(count == size / 2 + 1);
    MPI_Group_free(&result);
    MPI_Group_range_excl(all, 1, ranges, &result);
    MPI_Group_size(result, &count);
    CHECK(count == size / 2);
    MPI_Group_free(&result);

    MPI_Comm comm;
    MPI_Comm_create(MPI_COMM_WORLD, some, &comm);
    CHECK((comm == MPI_COMM_NULL) == (rank == 2 || rank > 3));
    if (comm != MPI_COMM_NULL) {
        CHECK(rank_on(comm) == own && sum_on(comm) == 4);
        MPI_Comm_free(&comm);
    }
    /* Only its members call. */
    if (own != MPI_UNDEFINED) {
        MPI_Comm_create_group(MPI_COMM_WORLD, some, 7, &comm);
        CHECK(rank_on(comm) == own && sum_on(comm) == 4);
        MPI_Comm_free(&comm);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&some);
    MPI_Group_free(&others);
    CHECK(all == MPI_GROUP_NULL);
}

static void between(void) {
    MPI_Comm local, inter, merged;
    int is_low = rank < 2, other = -1, flag = -1;
    MPI_Comm_split(MPI_COMM_WORLD, is_low, rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, is_low ? 2 : 0, 9, &inter);
    MPI_Comm_test_inter(inter, &flag);
    MPI_Comm_remote_size(inter, &other);
    CHECK(flag && other == (is_low ? size - 2 : 2) && size_of(inter) == size - other);
    MPI_Group remote;
    MPI_Comm_remote_group(inter, &remote);
    MPI_Group_size(remote, &flag);
    CHECK(flag == other);
    MPI_Group_free(&remote);
    int own = rank_on(inter), got = -1;
    if (own < 2) {
        if (own < other) {
            MPI_Sendrecv(&rank, 1, MPI_INT, own, 1, &got, 1, MPI_INT, own, 1, inter, MPI_STATUS_IGNORE);
            CHECK(got == (is_low ? 2 + own : own));
        }
    }
    /* What shares memory, of both groups. */
    MPI_Comm near;
    MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
    if (near != MPI_COMM_NULL) {
        MPI_Comm_test_inter(near, &flag);
        CHECK(flag && size_of(near) >= 1 && size_of(near) <= size - other);
        MPI_Comm_free(&near);
    }
    MPI_Intercomm_merge(inter, is_low, &merged);
    /* Those who say `high` come behind the others. */
    CHECK(size_of(merged) == size && rank_on(merged) == (is_low ? size - 2 + rank : rank - 2));
    CHECK(sum_on(merged) == size * (size - 1) / 2);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
}

static void cartesian(void) {
    int dims[2] = {0, 0}, periods[2] = {1, 0}, coordinates[2], own = -1, count = -1, back = -1;
    MPI_Dims_create(size, 2, dims);
    CHECK(dims[0] * dims[1] == size && dims[0] >= dims[1]);
    MPI_Comm cart, row;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
    own = rank_on(cart);
    MPI_Topo_test(cart, &count);
    CHECK(count == MPI_CART);
    MPI_Cartdim_get(cart, &count);
    CHECK(count == 2);
    int dims_of[2], periods_of[2], coordinates_of[2];
    MPI_Cart_get(cart, 2, dims_of, periods_of, coordinates_of);
    MPI_Cart_coords(cart, own, 2, coordinates);
    CHECK(coordinates[0] == own / dims[1] && coordinates[1] == own % dims[1]);
    CHECK(memcmp(coordinates, coordinates_of, sizeof coordinates) == 0 && periods_of[0] && !periods_of[1]);
    CHECK(memcmp(dims, dims_of, sizeof dims) == 0);
    MPI_Cart_rank(cart, coordinates, &back);
    CHECK(back == own);
    int beyond[2] = {coordinates[0] + dims[0], coordinates[1]};
    MPI_Cart_rank(cart, beyond, &back);
    CHECK(back == own);
    int from[2], to[2];
    for (int d = 0; d < 2; d++) MPI_Cart_shift(cart, d, 1, &from[d], &to[d]);
    CHECK(to[0] == (coordinates[0] + 1) % dims[0] * dims[1] + coordinates[1]);
    CHECK(to[1] == (coordinates[1] + 1 < dims[1] ? own + 1 : MPI_PROC_NULL));
    CHECK(from[1] == (coordinates[1] > 0 ? own - 1 : MPI_PROC_NULL));
    /* Neighbours in the order of the standard: of each dimension the lower, then the upper. */
    int out[4] = {10 * own, 10 * own + 1, 10 * own + 2, 10 * own + 3}, in[4] = {-1, -1, -1, -1};
    MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, cart);
    for (int d = 0; d < 2; d++) {
        CHECK(in[2 * d] == (from[d] == MPI_PROC_NULL ? -1 : 10 * from[d] + 2 * d + 1));
        CHECK(in[2 * d + 1] == (to[d] == MPI_PROC_NULL ? -1 : 10 * to[d] + 2 * d));
    }
    memset(in, -1, sizeof in);
    MPI_Request request;
    MPI_Ineighbor_allgather(&own, 1, MPI_INT, in, 1, MPI_INT, cart, &request);
    work();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int d = 0; d < 2; d++) {
        CHECK(in[2 * d] == (from[d] == MPI_PROC_NULL ? -1 : from[d]));
        CHECK(in[2 * d + 1] == (to[d] == MPI_PROC_NULL ? -1 : to[d]));
    }
    int remain[2] = {0, 1};
    MPI_Cart_sub(cart, remain, &row);
    CHECK(size_of(row) == dims[1] && rank_on(row) == coordinates[1]);
    MPI_Comm_free(&row);
    MPI_Comm_free(&cart);
    int too_small[1] = {2}, no[1] = {0};
    int empty[2] = {2, 0}, no_periods[2] = {0, 0}, place = -1;
    CHECK(MPI_Cart_map(MPI_COMM_WORLD, 2, empty, no_periods, &place) == MPI_SUCCESS && place == MPI_UNDEFINED);
    MPI_Cart_create(MPI_COMM_WORLD, 1, too_small, no, 0, &cart);
    CHECK((cart == MPI_COMM_NULL) == (rank >= 2));
    if (cart != MPI_COMM_NULL) MPI_Comm_free(&cart);
}

static void graphs(void) {
    /* Each rank has the next one, and rank 0 all others. */
    int index[MOST], edges[2 * MOST], at = 0, count = -1, edge_count = -1, found[MOST];
    for (int of = 0; of < size; of++) {
        if (of == 0) for (int to = 1; to < size; to++) edges[at++] = to;
        else edges[at++] = (of + 1) % size;
        index[of] = at;
    }
    MPI_Comm graph;
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph);
    MPI_Topo_test(graph, &count);
    CHECK(count == MPI_GRAPH);
    MPI_Graphdims_get(graph, &count, &edge_count);
    CHECK(count == size && edge_count == at);
    MPI_Graph_neighbors_count(graph, rank, &count);
    CHECK(count == (rank == 0 ? size - 1 : 1));
    MPI_Graph_neighbors(graph, rank, MOST, found);
    CHECK(found[0] == (rank == 0 ? 1 : (rank + 1) % size));
    MPI_Comm_free(&graph);

    /* Receives from the two before it, sends to the two behind it, with weights. */
    int sources[2] = {(rank + size - 1) % size, (rank + size - 2) % size}, weights[2] = {1, 2};
    int targets[2] = {(rank + 1) % size, (rank + 2) % size}, in_count, out_count, is_weighted;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, weights, 2, targets, weights, MPI_INFO_NULL, 0,
                                   &graph);
    MPI_Topo_test(graph, &count);
    CHECK(count == MPI_DIST_GRAPH);
    MPI_Dist_graph_neighbors_count(graph, &in_count, &out_count, &is_weighted);
    CHECK(in_count == 2 && out_count == 2 && is_weighted);
    int in_ranks[2], in_weights[2], out_ranks[2], out_weights[2];
    MPI_Dist_graph_neighbors(graph, 2, in_ranks, in_weights, 2, out_ranks, out_weights);
    CHECK(in_ranks[1] == sources[1] && out_ranks[0] == targets[0] && in_weights[1] == 2);
    int out[3] = {100 * rank, 100 * rank + 1, 100 * rank + 2}, in[3] = {-1, -1, -1};
    int send_counts[2] = {1, 2}, receive_counts[2] = {1, 2}, places[2] = {0, 1};
    MPI_Neighbor_alltoallv(out, send_counts, places, MPI_INT, in, receive_counts, places, MPI_INT, graph);
    CHECK(in[0] == 100 * sources[0] && in[1] == 100 * sources[1] + 1 && in[2] == 100 * sources[1] + 2);
    memset(in, -1, sizeof in);
    int gathered[2] = {1, 1};
    MPI_Neighbor_allgatherv(&rank, 1, MPI_INT, in, gathered, places, MPI_INT, graph);
    CHECK(in[0] == sources[0] && in[1] == sources[1]);
    MPI_Aint bytes[2] = {0, 4};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    memset(in, -1, sizeof in);
    MPI_Neighbor_alltoallw(out, send_counts, bytes, types, in, receive_counts, bytes, types, graph);
    CHECK(in[0] == 100 * sources[0] && in[1] == 100 * sources[1] + 1 && in[2] == 100 * sources[1] + 2);
    MPI_Comm_free(&graph);

    /* The edges of a rank are said by the one before it. */
    int of[1] = {next_rank()}, degrees[1] = {1}, to[1] = {(rank + 2) % size};
    int *volatile none = MPI_UNWEIGHTED; /* GCC takes it for an array of no numbers. */
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, of, degrees, to, none, MPI_INFO_NULL, 0, &graph);
    MPI_Dist_graph_neighbors_count(graph, &in_count, &out_count, &is_weighted);
    CHECK(in_count == 1 && out_count == 1 && !is_weighted);
    int got = -1;
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, &got, 1, MPI_INT, graph);
    CHECK(got == previous_rank());
    MPI_Comm_free(&graph);
}

static int copied, deleted;
static int copies(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key;
    copied += *(int *)extra;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}
static int deletes(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value;
    deleted += *(int *)extra;
    return MPI_SUCCESS;
}
static void attributes(void) {
    static char place[4];
    int key = MPI_KEYVAL_INVALID, plain = MPI_KEYVAL_INVALID, extra = 1 + rank, flag = -1;
    char *value = NULL;
    copied = deleted = 0;
    MPI_Comm_create_keyval(copies, deletes, &key, &extra);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &plain, NULL);
    MPI_Comm comm, other;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_get_attr(comm, key, &value, &flag);
    CHECK(!flag);
    MPI_Comm_set_attr(comm, key, place);
    MPI_Comm_set_attr(comm, plain, place + 3);
    stir();
    MPI_Comm_get_attr(comm, key, &value, &flag);
    CHECK(flag && value == place);
    MPI_Comm_dup(comm, &other);
    CHECK(copied == 1 + rank && deleted == 0);
    MPI_Comm_get_attr(other, key, &value, &flag);
    CHECK(flag && value == place + 1);
    MPI_Comm_get_attr(other, plain, &value, &flag);
    CHECK(!flag);
    MPI_Comm_set_attr(other, key, place);
    CHECK(deleted == 1 + rank);
    MPI_Comm_free(&other);
    CHECK(deleted == 2 * (1 + rank));
    MPI_Comm_delete_attr(comm, key);
    CHECK(deleted == 3 * (1 + rank));
    MPI_Comm_get_attr(comm, key, &value, &flag);
    CHECK(!flag);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_free_keyval(&plain);
    CHECK(key == MPI_KEYVAL_INVALID);
    MPI_Comm_free(&comm);
    int *bound = NULL;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
    CHECK(flag && *bound >= 32767);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &bound, &flag);
    CHECK(!flag || *bound == 0 || *bound == 1);
    MPI_Datatype type;
    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_set_attr(type, key, place);
    MPI_Type_get_attr(type, key, &value, &flag);
    CHECK(flag && value == place);
    MPI_Type_free_keyval(&key);
    MPI_Type_free(&type);
}

static void names(void) {
    char name[MPI_MAX_OBJECT_NAME] = "", own[32];
    int length = -1;
    MPI_Comm comm;
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0 && length == 14);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    snprintf(own, sizeof own, "of rank %d", rank);
    MPI_Comm_set_name(comm, own);
    stir();
    MPI_Comm_get_name(comm, name, &length);
    CHECK(strcmp(name, own) == 0);
    MPI_Comm_free(&comm);
}

static void infos(void) {
    MPI_Info info, copy;
    char value[100] = "", key[MPI_MAX_INFO_KEY] = "";
    int flag = -1, count = -1;
    MPI_Info_create(&info);
    MPI_Info_set(info, "first", "1");
    MPI_Info_set(info, "second", "two");
    MPI_Info_set(info, "first", "one");
    MPI_Info_dup(info, &copy);
    MPI_Info_delete(info, "second");
    MPI_Info_get_nkeys(info, &count);
    CHECK(count == 1);
    MPI_Info_get_nkeys(copy, &count);
    CHECK(count == 2);
    stir();
    MPI_Info_get(copy, "second", 99, value, &flag);
    CHECK(flag && strcmp(value, "two") == 0);
    MPI_Info_get(info, "second", 99, value, &flag);
    CHECK(!flag);
    MPI_Info_get_nthkey(info, 0, key);
    CHECK(strcmp(key, "first") == 0);
    MPI_Info_get_valuelen(info, "first", &count, &flag);
    CHECK(flag && count == 3);
    MPI_Info_free(&info);
    MPI_Info_free(&copy);
    CHECK(info == MPI_INFO_NULL);
}

static int handled, handled_class;
static MPI_Comm handled_on;
static void handler(MPI_Comm *comm, int *code, ...) {
    handled++;
    handled_on = *comm;
    MPI_Error_class(*code, &handled_class);
}
static void handlers(void) {
    MPI_Comm comm, other;
    MPI_Errhandler own, found;
    handled = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(comm, own);
    MPI_Errhandler_free(&own);
    MPI_Comm_dup(comm, &other);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_get_errhandler(comm, &found);
    CHECK(found == MPI_ERRORS_RETURN);
    /* A duplicate has its own. */
    int token = 0, class = -1;
    CHECK(MPI_Bcast(&token, 1, MPI_INT, size, other) != MPI_SUCCESS && handled == 1);
    CHECK(handled_on == other && handled_class == MPI_ERR_ROOT);
    MPI_Error_class(MPI_Bcast(&token, 1, MPI_INT, size, comm), &class);
    CHECK(class == MPI_ERR_ROOT && handled == 1);
    MPI_Comm_call_errhandler(other, MPI_ERR_ROOT);
    CHECK(handled == 2);
    /* The error of a request is its communicator's. */
    int pair[2] = {0, 0};
    MPI_Request request;
    MPI_Irecv(&token, 1, MPI_INT, rank, 0, other, &request);
    MPI_Send(pair, 2, MPI_INT, rank, 0, other);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS && handled == 3);
    CHECK(handled_on == other && handled_class == MPI_ERR_TRUNCATE);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&other);
    int added = -1, code = -1, length = -1, *last = NULL, flag = 0;
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Add_error_class(&added);
    MPI_Add_error_code(added, &code);
    MPI_Add_error_string(code, "an error of the program");
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    CHECK(added > MPI_ERR_LASTCODE && class == added && strcmp(text, "an error of the program") == 0);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    CHECK(flag && *last >= code);
    /* They are removed in the opposite order only. */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Remove_error_class(added) != MPI_SUCCESS);
    CHECK(MPI_Remove_error_code(code) != MPI_SUCCESS);
    CHECK(MPI_Remove_error_string(code) == MPI_SUCCESS && MPI_Remove_error_code(code) == MPI_SUCCESS);
    CHECK(MPI_Remove_error_class(added) == MPI_SUCCESS && MPI_Remove_error_class(added) != MPI_SUCCESS);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    CHECK(flag && *last < added);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    for (int of = MPI_SUCCESS; of <= MPI_ERR_REQUEST; of++) {
        MPI_Error_string(of, text, &length);
        MPI_Error_class(of, &class);
        CHECK(length > 0 && class == of);
    }
}

static void surroundings(void) {
    int version = 0, subversion = 0, length = 0, flag = 0, level = -1;
    char name[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    MPI_Get_version(&version, &subversion);
    CHECK(version >= 3);
    MPI_Get_library_version(name, &length);
    CHECK(length > 0 && length == (int)strlen(name));
    MPI_Initialized(&flag);
    CHECK(flag);
    MPI_Finalized(&flag);
    CHECK(!flag);
    MPI_Query_thread(&level);
    CHECK(level >= MPI_THREAD_SINGLE && level <= MPI_THREAD_MULTIPLE);
    MPI_Is_thread_main(&flag);
    CHECK(flag);
    double before = MPI_Wtime();
    work();
    CHECK(MPI_Wtime() > before && MPI_Wtick() > 0 && MPI_Wtick() < 0.1);
    char *memory = NULL;
    MPI_Alloc_mem(1000, MPI_INFO_NULL, &memory);
    memset(memory, rank, 1000);
    stir();
    CHECK(memory[999] == rank);
    MPI_Free_mem(memory);
}

/* Called by MPI_Finalize. */
static int at_finalize(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)extra;
    printf("rank %d: %s\n", rank, (char *)value);
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++) {
        splits(round);
        groups();
        between();
        cartesian();
        graphs();
        attributes();
        names();
        infos();
        handlers();
        surroundings();
    }
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, "deleted");
    return finish("communicators");
}
