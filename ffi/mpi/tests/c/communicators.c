/* Groups, communicators, attributes (MPI-4.1 chapter 7). */
#include "check.h"

static int copied, deleted;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key;
    CHECK(extra == &copied);
    copied++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)extra;
    deleted += *(int *)value;
    return MPI_SUCCESS;
}

static int refuse(MPI_Win win, int key, void *value, void *extra) {
    (void)win, (void)key, (void)value, (void)extra;
    return MPI_ERR_OTHER;
}

static void groups(void) {
    MPI_Group all, even, odd, both, again;
    int n, rank, result, ranges[1][3] = {{0, size_ - 1, 2}}, from[2] = {0, MPI_PROC_NULL}, to[2];
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_size(all, &n));
    OK(MPI_Group_rank(all, &rank));
    CHECK(n == size_ && rank == rank_);
    OK(MPI_Group_range_incl(all, 1, ranges, &even));
    OK(MPI_Group_range_excl(all, 1, ranges, &odd));
    OK(MPI_Group_size(even, &n));
    CHECK(n == (size_ + 1) / 2);
    OK(MPI_Group_rank(odd, &rank));
    CHECK(rank == (rank_ % 2 ? rank_ / 2 : MPI_UNDEFINED));
    OK(MPI_Group_union(even, odd, &both));
    OK(MPI_Group_compare(all, both, &result));
    CHECK(result == (size_ > 2 ? MPI_SIMILAR : MPI_IDENT));
    OK(MPI_Group_intersection(even, odd, &again));
    CHECK(again == MPI_GROUP_EMPTY);
    OK(MPI_Group_free(&again));
    OK(MPI_Group_difference(all, odd, &again));
    OK(MPI_Group_compare(even, again, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Group_translate_ranks(even, 2, from, odd, to));
    CHECK(to[0] == MPI_UNDEFINED && to[1] == MPI_PROC_NULL);
    OK(MPI_Group_free(&again));
    OK(MPI_Group_free(&both));
    OK(MPI_Group_free(&odd));
    OK(MPI_Group_free(&even));
    MPI_Group stale = all;
    OK(MPI_Group_free(&all));
    FAILS(MPI_Group_size(stale, &n), MPI_ERR_GROUP);
}

static void communicators(void) {
    MPI_Comm half, twin, chosen, none;
    int rank, size, result, sum, one = 1, len;
    char name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &len));
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0);
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank_ % 2, -rank_, &half));
    OK(MPI_Comm_rank(half, &rank));
    OK(MPI_Comm_size(half, &size));
    CHECK(rank == size - 1 - rank_ / 2);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, half));
    CHECK(sum == size);
    OK(MPI_Comm_dup(half, &twin));
    OK(MPI_Comm_compare(half, twin, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Comm_compare(half, half, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Comm_set_name(twin, "twin"));
    OK(MPI_Comm_get_name(twin, name, &len));
    CHECK(len == 4 && strcmp(name, "twin") == 0);
    OK(MPI_Comm_free(&twin));
    CHECK(twin == MPI_COMM_NULL);
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank_ == 0 ? 0 : MPI_UNDEFINED, 0, &none));
    CHECK((none == MPI_COMM_NULL) == (rank_ != 0));
    if (rank_ == 0) OK(MPI_Comm_free(&none));

    MPI_Group all, first;
    int zero = 0;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, &zero, &first));
    OK(MPI_Comm_create(MPI_COMM_WORLD, first, &chosen));
    CHECK((chosen == MPI_COMM_NULL) == (rank_ != 0));
    if (rank_ == 0) OK(MPI_Comm_free(&chosen));
    OK(MPI_Comm_create_group(MPI_COMM_WORLD, all, 5, &chosen));
    OK(MPI_Comm_size(chosen, &size));
    CHECK(size == size_);
    OK(MPI_Comm_free(&chosen));
    OK(MPI_Group_free(&first));
    OK(MPI_Group_free(&all));
}

static void attributes(void) {
    int key, other, flag, one = 1, ten = 10, *value;
    MPI_Comm twin;
    OK(MPI_Comm_create_keyval(copy, drop, &key, &copied));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &other, NULL));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
    CHECK(!flag);
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &one));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, other, &ten));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    OK(MPI_Comm_get_attr(twin, key, &value, &flag));
    CHECK(flag && value == &one && copied == 1);
    OK(MPI_Comm_get_attr(twin, other, &value, &flag));
    CHECK(!flag);
    OK(MPI_Comm_set_attr(twin, key, &ten));
    CHECK(deleted == 1);
    OK(MPI_Comm_free(&twin));
    CHECK(deleted == 11);
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    CHECK(deleted == 12);
    int stale = key;
    OK(MPI_Comm_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID);
    FAILS(MPI_Comm_get_attr(MPI_COMM_WORLD, stale, &value, &flag), MPI_ERR_KEYVAL);
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, other));
    OK(MPI_Comm_free_keyval(&other));

    /* A window whose attribute cannot be deleted stays. */
    MPI_Win win;
    OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, refuse, &key, NULL));
    OK(MPI_Win_set_attr(win, key, &one));
    FAILS(MPI_Win_free(&win), MPI_ERR_OTHER);
    CHECK(win != MPI_WIN_NULL);
    FAILS(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &one), MPI_ERR_KEYVAL);
    OK(MPI_Win_free_keyval(&key));
}

/* Two sides, and a grid. */
static void sides_and_grids(void) {
    MPI_Comm half, inter, merged, grid, row;
    int flag, n, rank, word = rank_, widths[2] = {0, 0}, rings[2] = {1, 0}, at[2], source, dest, kind;
    if (size_ > 1) {
        int side = rank_ % 2;
        OK(MPI_Comm_split(MPI_COMM_WORLD, side, rank_, &half));
        OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 4, &inter));
        OK(MPI_Comm_test_inter(inter, &flag));
        CHECK(flag);
        OK(MPI_Comm_remote_size(inter, &n));
        CHECK(n == (side ? (size_ + 1) / 2 : size_ / 2));
        MPI_Status status;
        if (rank_ / 2 < size_ / 2) {
            OK(MPI_Sendrecv(&rank_, 1, MPI_INT, rank_ / 2, 0, &word, 1, MPI_INT, rank_ / 2, 0, inter, &status));
            CHECK(word == (rank_ ^ 1) && status.MPI_SOURCE == rank_ / 2);
        }
        OK(MPI_Intercomm_merge(inter, side == 0, &merged));
        OK(MPI_Comm_rank(merged, &rank));
        OK(MPI_Comm_size(merged, &n));
        CHECK(n == size_ && rank == (side ? rank_ / 2 : size_ / 2 + rank_ / 2));
        OK(MPI_Comm_free(&merged));
        OK(MPI_Comm_free(&inter));
        OK(MPI_Comm_free(&half));
    }
    OK(MPI_Dims_create(size_, 2, widths));
    CHECK(widths[0] * widths[1] == size_ && widths[0] >= widths[1]);
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, widths, rings, 0, &grid));
    OK(MPI_Topo_test(grid, &kind));
    CHECK(kind == MPI_CART);
    OK(MPI_Topo_test(MPI_COMM_WORLD, &kind));
    CHECK(kind == MPI_UNDEFINED);
    OK(MPI_Cart_coords(grid, rank_, 2, at));
    CHECK(at[0] == rank_ / widths[1] && at[1] == rank_ % widths[1]);
    OK(MPI_Cart_rank(grid, at, &rank));
    CHECK(rank == rank_);
    OK(MPI_Cart_shift(grid, 0, 1, &source, &dest));
    CHECK(dest == (rank_ + widths[1]) % size_ && source == (rank_ + size_ - widths[1]) % size_);
    OK(MPI_Cart_shift(grid, 1, 1, &source, &dest));
    CHECK(at[1] + 1 < widths[1] ? dest == rank_ + 1 : dest == MPI_PROC_NULL);
    int remain[2] = {0, 1};
    OK(MPI_Cart_sub(grid, remain, &row));
    OK(MPI_Comm_size(row, &n));
    CHECK(n == widths[1]);
    OK(MPI_Comm_free(&row));
    OK(MPI_Comm_free(&grid));
    FAILS(MPI_Cart_coords(MPI_COMM_WORLD, 0, 2, at), MPI_ERR_TOPOLOGY);
}

/* Rank 0 comes to it when all others have told it that they have left theirs. */
static void duplicates_that_wait_for_nobody(void) {
    MPI_Comm twin;
    MPI_Request request;
    MPI_Info info;
    int key, value = 10, *got, there, n;
    copied = deleted = 0;
    OK(MPI_Comm_create_keyval(copy, drop, &key, &copied));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value));
    for (int i = 1; rank_ == 0 && i < size_; i++)
        OK(MPI_Recv(NULL, 0, MPI_INT, i, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &twin, &request));
    CHECK(copied == 1);
    if (rank_ != 0) {
        /* The first rank has not called yet. */
        FAILS(MPI_Comm_size(twin, &n), MPI_ERR_COMM);
        /* What is set before it is there stays. */
        OK(MPI_Comm_set_errhandler(twin, MPI_ERRORS_ABORT));
        OK(MPI_Ssend(NULL, 0, MPI_INT, 0, 8, MPI_COMM_WORLD));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_get_attr(twin, key, &got, &there));
    CHECK(there && got == &value);
    MPI_Errhandler handler;
    OK(MPI_Comm_get_errhandler(twin, &handler));
    CHECK(handler == (rank_ == 0 ? MPI_ERRORS_RETURN : MPI_ERRORS_ABORT));
    OK(MPI_Allreduce(&rank_, &n, 1, MPI_INT, MPI_MAX, twin));
    CHECK(n == size_ - 1);
    OK(MPI_Comm_free(&twin));
    CHECK(deleted == 10);

    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    OK(MPI_Info_set(info, "colour", "green"));
    OK(MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &twin, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_get_info(twin, &info));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK(n == 1);
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_free(&twin));
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    OK(MPI_Comm_free_keyval(&key));
}

/* Fails at the first rank. */
static int copy_fails(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key, (void)extra, (void)in, (void)out;
    *flag = 0;
    return rank_ == 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* Whoever cannot copy its attributes keeps nobody waiting. */
static void duplicates_that_fail_at_one_rank(void) {
    MPI_Comm twin;
    MPI_Request request;
    int key, n;
    OK(MPI_Comm_create_keyval(copy_fails, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &n));
    if (rank_ == 0) {
        FAILS(MPI_Comm_dup(MPI_COMM_WORLD, &twin), MPI_ERR_OTHER);
        CHECK(twin == MPI_COMM_NULL);
        FAILS(MPI_Comm_idup(MPI_COMM_WORLD, &twin, &request), MPI_ERR_OTHER);
        CHECK(twin == MPI_COMM_NULL);
    } else {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
        OK(MPI_Comm_free(&twin));
        OK(MPI_Comm_idup(MPI_COMM_WORLD, &twin, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Comm_size(twin, &n));
        CHECK(n == size_);
        OK(MPI_Comm_free(&twin));
    }
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* A message that nobody received is an error of its receiver's, as in MPICH, and the communicator is free. */
static void left_messages(void) {
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    if (rank_ == 0 && size_ > 1) OK(MPI_Send(NULL, 0, MPI_INT, 1, 5, comm));
    OK(MPI_Barrier(comm));
    if (rank_ == 1) FAILS(MPI_Comm_free(&comm), MPI_ERR_OTHER);
    else OK(MPI_Comm_free(&comm));
    CHECK(comm == MPI_COMM_NULL);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
}

static int at_end(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)extra;
    int flag;
    CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && !flag);
    if (rank_ == 0) printf("%s\n", (char *)value);
    return MPI_SUCCESS;
}

static void deleted_at_the_end(void) {
    int key;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, "deleted by MPI_Finalize"));
}

PROGRAM(groups, communicators, attributes, sides_and_grids, duplicates_that_wait_for_nobody,
        duplicates_that_fail_at_one_rank, left_messages, deleted_at_the_end)
