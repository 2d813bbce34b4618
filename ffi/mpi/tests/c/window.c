/* Windows of every flavour, and every operation on them (MPI-4.1 chapter 12). */
#include "check.h"

static void operations(MPI_Win win, long *base) {
    int right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_;
    long one = 1, old = -1, swapped = -1, got[2] = {-1, -1}, sent[2] = {10 + rank_, 20 + rank_};

    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    OK(MPI_Put(sent, 2, MPI_LONG, right, 0, 2, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK(base == NULL || (base[0] == 10 + left && base[1] == 20 + left));
    OK(MPI_Get(got, 2, MPI_LONG, right, 0, 2, MPI_LONG, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(got[0] == 10 + rank_ && got[1] == 20 + rank_);

    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 2, MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
    CHECK(old >= 0 && old < size_);
    OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, 3, 1, MPI_LONG, MPI_SUM, win));
    /* Datatypes without elements: nothing is done, whatever the operation. */
    MPI_Datatype nothing;
    OK(MPI_Type_contiguous(0, MPI_INT, &nothing));
    OK(MPI_Type_commit(&nothing));
    OK(MPI_Accumulate(&one, 1, nothing, 0, 3, 1, nothing, MPI_SUM, win));
    OK(MPI_Accumulate(&one, 0, MPI_INT, 0, 3, 1, nothing, MPI_SUM, win));
    OK(MPI_Get_accumulate(&one, 1, nothing, &one, 1, nothing, 0, 3, 1, nothing, MPI_SUM, win));
    OK(MPI_Type_free(&nothing));
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Get_accumulate(NULL, 0, MPI_LONG, got, 1, MPI_LONG, 0, 3, 1, MPI_LONG, MPI_NO_OP, win));
    OK(MPI_Win_flush_local(0, win));
    CHECK(got[0] == size_);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    sent[0] = 7;
    OK(MPI_Compare_and_swap(sent, got, &swapped, MPI_LONG, 0, 3, win));
    OK(MPI_Win_flush_local_all(win));
    CHECK(swapped == size_ || swapped == 7);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));

    /* Requests. */
    MPI_Request requests[4];
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win));
    sent[0] = 100 + rank_;
    OK(MPI_Rput(sent, 1, MPI_LONG, right, 4, 1, MPI_LONG, win, &requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK(requests[0] == MPI_REQUEST_NULL);
    OK(MPI_Win_flush(right, win));
    OK(MPI_Rget(got, 1, MPI_LONG, right, 4, 1, MPI_LONG, win, &requests[1]));
    OK(MPI_Raccumulate(&one, 1, MPI_LONG, right, 5, 1, MPI_LONG, MPI_REPLACE, win, &requests[2]));
    OK(MPI_Rget_accumulate(&one, 1, MPI_LONG, &old, 1, MPI_LONG, right, 6, 1, MPI_LONG, MPI_SUM, win, &requests[3]));
    OK(MPI_Waitall(3, requests + 1, MPI_STATUSES_IGNORE));
    CHECK(got[0] == 100 + rank_ && old == 0);
    OK(MPI_Win_unlock(right, win));

    /* Some with some. */
    MPI_Group all, neighbours;
    OK(MPI_Win_get_group(win, &all));
    OK(MPI_Group_incl(all, 1, &left, &neighbours));
    OK(MPI_Win_post(neighbours, 0, win));
    OK(MPI_Group_free(&neighbours));
    OK(MPI_Group_incl(all, 1, &right, &neighbours));
    OK(MPI_Win_start(neighbours, 0, win));
    sent[0] = 1000 + rank_;
    OK(MPI_Put(sent, 1, MPI_LONG, right, 7, 1, MPI_LONG, win));
    OK(MPI_Win_complete(win));
    int done = 0;
    while (!done) OK(MPI_Win_test(win, &done));
    CHECK(base == NULL || base[7] == 1000 + left);
    OK(MPI_Group_free(&neighbours));
    OK(MPI_Group_free(&all));
    CHECK(all == MPI_GROUP_NULL);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void layouts(MPI_Win win, int *base, int ints) {
    /* A column there from a row here. */
    MPI_Datatype column;
    OK(MPI_Type_vector(3, 1, 4, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    int row[3] = {1 + rank_, 2 + rank_, 3 + rank_}, back[3] = {0, 0, 0}, target = (rank_ + 1) % size_;
    int from = (rank_ + size_ - 1) % size_;
    for (int i = 0; i < ints; i++) base[i] = -1;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(row, 3, MPI_INT, target, 1, 1, column, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < 12; i++) CHECK(base[i] == (i % 4 == 1 ? 1 + i / 4 + from : -1));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(back, 3, MPI_INT, target, 1, 1, column, win));
    OK(MPI_Win_fence(0, win));
    CHECK(memcmp(row, back, sizeof row) == 0);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(row, 3, MPI_INT, target, 1, 1, column, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < 3; i++) CHECK(base[1 + 4 * i] == 2 * (1 + i + from));
    OK(MPI_Type_free(&column));
    CHECK(column == MPI_DATATYPE_NULL);
}

static void attributes(MPI_Win win, void *base, MPI_Aint size, int unit, int flavour) {
    void *value;
    int there;
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &there));
    CHECK(there && value == base);
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &there));
    CHECK(there && *(MPI_Aint *)value == size);
    OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &there));
    CHECK(there && *(int *)value == unit);
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &there));
    CHECK(there && *(int *)value == flavour);
    OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &there));
    CHECK(there && *(int *)value == MPI_WIN_UNIFIED);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Win win;
    char name[MPI_MAX_OBJECT_NAME];
    int len;

    long own[16] = {0};
    OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    CHECK(win != MPI_WIN_NULL && MPI_Win_fromint(MPI_Win_toint(win)) == win && MPI_Win_f2c(MPI_Win_c2f(win)) == win);
    attributes(win, own, sizeof own, sizeof(long), MPI_WIN_FLAVOR_CREATE);
    OK(MPI_Win_set_name(win, "mine"));
    OK(MPI_Win_get_name(win, name, &len));
    CHECK(len == 4 && strcmp(name, "mine") == 0);
    operations(win, own);
    OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL);

    long *base = NULL;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "accumulate_ordering", "none"));
    OK(MPI_Win_allocate(16 * sizeof(long), sizeof(long), info, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Info_free(&info));
    attributes(win, base, 16 * sizeof(long), sizeof(long), MPI_WIN_FLAVOR_ALLOCATE);
    char value[MPI_MAX_INFO_VAL];
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get(info, "accumulate_ordering", MPI_MAX_INFO_VAL - 1, value, &len));
    CHECK(len && strcmp(value, "none") == 0);
    OK(MPI_Info_free(&info));
    operations(win, base);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "true"));
    OK(MPI_Info_set(info, "same_size", "true"));
    OK(MPI_Info_set(info, "of nobody", "true"));
    OK(MPI_Win_set_info(win, info));
    OK(MPI_Info_free(&info));
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get(info, "no_locks", MPI_MAX_INFO_VAL - 1, value, &len));
    CHECK(len && strcmp(value, "true") == 0);
    /* Fixed when the window is made, and unknown: neither is in effect. */
    OK(MPI_Info_get(info, "same_size", MPI_MAX_INFO_VAL - 1, value, &len));
    CHECK(len && strcmp(value, "false") == 0);
    OK(MPI_Info_get(info, "of nobody", MPI_MAX_INFO_VAL - 1, value, &len));
    CHECK(!len);
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, rank_, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Info_set(info, "no_locks", "false"));
    OK(MPI_Win_set_info(win, info));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank_, 0, win));
    OK(MPI_Win_unlock(rank_, win));
    OK(MPI_Info_set(info, "no_locks", "perhaps"));
    FAILS(MPI_Win_set_info(win, info), MPI_ERR_INFO_VALUE);
    OK(MPI_Info_free(&info));
    OK(MPI_Win_free(&win));

    int *ints = NULL;
    OK(MPI_Win_allocate_c(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &ints, &win));
    layouts(win, ints, 16);
    OK(MPI_Win_free(&win));

    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    attributes(win, MPI_BOTTOM, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
    memset(own, 0, sizeof own);
    OK(MPI_Win_attach(win, own, sizeof own));
    MPI_Aint address, addresses[64];
    OK(MPI_Get_address(own + 3, &address));
    OK(MPI_Allgather(&address, 1, MPI_AINT, addresses, 1, MPI_AINT, MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    long seven = 7;
    OK(MPI_Put(&seven, 1, MPI_LONG, (rank_ + 1) % size_, addresses[(rank_ + 1) % size_], 1, MPI_LONG, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(own[3] == 7 && own[2] == 0);
    OK(MPI_Win_detach(win, own));
    OK(MPI_Win_free(&win));

    /* To nobody. */
    OK(MPI_Win_create(own, sizeof own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(own, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
    return end();
}
