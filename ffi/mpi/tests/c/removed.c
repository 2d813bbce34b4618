/* Functions that MPI-3 removed, variables and extensions: what MPICH's ABI has besides the standard (MPI-4.1 section 17.1). */
#include "check.h"

/* Its header declares these as deprecated. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int handled;

static void handler(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    handled = class_of(*code);
}

static void error_handlers(void) {
    MPI_Errhandler mine, now;
    OK(MPI_Errhandler_create(handler, &mine));
    OK(MPI_Errhandler_set(MPI_COMM_SELF, mine));
    OK(MPI_Errhandler_get(MPI_COMM_SELF, &now));
    CHECK(now == mine);
    FAILS(MPI_Send(NULL, 0, MPI_INT, 7, 0, MPI_COMM_SELF), MPI_ERR_RANK);
    CHECK(handled == MPI_ERR_RANK);
    OK(MPI_Errhandler_set(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&now));
    OK(MPI_Errhandler_free(&mine));
}

struct pair {
    char first;
    double second;
};

static void bounds(MPI_Datatype type, MPI_Aint lower, MPI_Aint upper) {
    MPI_Aint lb, ub, extent;
    OK(MPI_Type_lb(type, &lb));
    OK(MPI_Type_ub(type, &ub));
    OK(MPI_Type_extent(type, &extent));
    CHECK(lb == lower && ub == upper && extent == upper - lower);
}

static void structures(void) {
    struct pair pairs[2] = {{1, 2}, {3, 4}}, copies[2] = {{0, 0}, {0, 0}};
    MPI_Aint base, at[4];
    MPI_Datatype type, types[] = {MPI_LB, MPI_CHAR, MPI_DOUBLE, MPI_UB};
    int lengths[] = {1, 1, 1, 1};
    OK(MPI_Address(&pairs[0], &base));
    OK(MPI_Address(&pairs[0].second, &at[2]));
    at[0] = at[1] = 0;
    at[2] -= base;
    at[3] = 2 * (MPI_Aint)sizeof(struct pair);
    OK(MPI_Type_struct(3, lengths, at, types, &type));
    bounds(type, 0, (MPI_Aint)sizeof(struct pair));
    OK(MPI_Type_free(&type));
    /* Both bounds: every second instance. */
    OK(MPI_Type_struct(4, lengths, at, types, &type));
    bounds(type, 0, at[3]);
    OK(MPI_Type_commit(&type));
    OK(MPI_Sendrecv(pairs, 1, type, 0, 5, copies, 1, type, 0, 5, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(copies[0].first == 1 && copies[0].second == 2 && copies[1].first == 0);
    OK(MPI_Type_free(&type));
}

static void strides(void) {
    MPI_Datatype type;
    MPI_Aint at[] = {0, 24};
    int lengths[] = {1, 2};
    OK(MPI_Type_hvector(3, 1, 16, MPI_DOUBLE, &type));
    bounds(type, 0, 40);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_hindexed(2, lengths, at, MPI_DOUBLE, &type));
    bounds(type, 0, 40);
    OK(MPI_Type_free(&type));
}

/* MPI_COMM_DUP_FN is a function here, and MPI_UNWEIGHTED a variable. */
static void variables(void) {
    int key, value = 5, found, *got, degree, weighted;
    MPI_Comm copy, ring;
    int next = (rank_ + 1) % size_, previous = (rank_ + size_ - 1) % size_;
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, &value));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &copy));
    OK(MPI_Comm_get_attr(copy, key, &got, &found));
    CHECK(found && got == &value);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, key));
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &previous, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED,
        MPI_INFO_NULL, 0, &ring));
    OK(MPI_Dist_graph_neighbors_count(ring, &degree, &degree, &weighted));
    CHECK(degree == 1 && !weighted);
    OK(MPI_Comm_free(&ring));
}

static void extensions(void) {
    int yes = 1, flag;
    char value[16];
    unsigned char bytes[] = {0x0f, 0xa0};
    MPI_Info info;
    MPI_Request request;
    OK(MPIX_GPU_query_support(0, &yes));
    CHECK(!yes && !MPIX_Query_cuda_support());
    OK(MPI_Info_create(&info));
    OK(MPIX_Info_set_hex(info, "key", bytes, 2));
    OK(MPI_Info_get(info, "key", 15, value, &flag));
    CHECK(flag && strcmp(value, "0fa0") == 0);
    OK(MPI_Info_free(&info));
    OK(MPI_Irecv(&yes, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &request));
    CHECK(!MPIX_Request_is_complete(request));
    OK(MPI_Send(&size_, 1, MPI_INT, 0, 9, MPI_COMM_SELF));
    while (!MPIX_Request_is_complete(request)) {}
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(yes == size_);
    FAILS(MPIX_Grequest_class_allocate(0, NULL, &request), MPI_ERR_UNSUPPORTED_OPERATION);
}

PROGRAM(error_handlers, structures, strides, variables, extensions)
