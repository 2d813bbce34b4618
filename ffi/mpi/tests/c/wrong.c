/* Calls of windows in a wrong order, and windows that cannot be made (arguments.c has the wrong arguments): the standard's
 * error class, and never a crash. */
#include "check.h"

static long word, result;
static MPI_Request request;
static int flag, len;
static MPI_Aint size;
static void *base;

#define TRANSFER &word, 1, MPI_LONG, 0, 0, 1, MPI_LONG
#define FETCH &word, 1, MPI_LONG, &result, 1, MPI_LONG, 0, 0, 1, MPI_LONG

static void wrong_synchronisation(MPI_Win win) {
    FAILS(MPI_Put(TRANSFER, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Get(TRANSFER, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Accumulate(TRANSFER, MPI_SUM, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Get_accumulate(FETCH, MPI_SUM, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Rput(TRANSFER, win, &request), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Rget(TRANSFER, win, &request), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Raccumulate(TRANSFER, MPI_SUM, win, &request), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Rget_accumulate(FETCH, MPI_SUM, win, &request), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Fetch_and_op(&word, &result, MPI_LONG, 0, 0, MPI_SUM, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Compare_and_swap(&word, &word, &result, MPI_LONG, 0, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush_local(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush_local_all(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_lock(7, 0, 0, win), MPI_ERR_LOCKTYPE);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, size_, 0, win), MPI_ERR_RANK);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 1, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_lock_all(MPI_MODE_NOPUT, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_fence(-1, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_post(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    FAILS(MPI_Win_start(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    FAILS(MPI_Win_attach(win, &word, sizeof word), MPI_ERR_RMA_FLAVOR);
    FAILS(MPI_Win_shared_query(win, size_, &size, &len, &base), MPI_ERR_RANK);
    OK(MPI_Win_lock_all(0, win));
    FAILS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    CHECK(win != MPI_WIN_NULL);
    OK(MPI_Win_unlock_all(win));
}

static void wrong_creation(void) {
    MPI_Win win = MPI_WIN_NULL;
    FAILS(MPI_Win_create(&word, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_SIZE);
    FAILS(MPI_Win_create(&word, 8, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_DISP);
    FAILS(MPI_Win_create(NULL, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_BASE);
    FAILS(MPI_Win_create(&word, 8, 1, (MPI_Info)(intptr_t)77, MPI_COMM_WORLD, &win), MPI_ERR_INFO);
    FAILS(MPI_Win_create(&word, 8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win), MPI_ERR_COMM);
    FAILS(MPI_Win_allocate(-1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_SIZE);
    FAILS(MPI_Win_allocate(8, -1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_DISP);
    FAILS(MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &base, &win), MPI_ERR_COMM);
    FAILS(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_NULL, &win), MPI_ERR_COMM);
    CHECK(win == MPI_WIN_NULL);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    FAILS(MPI_Win_detach(win, &word), MPI_ERR_RMA_ATTACH);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    FAILS(MPI_Put(&word, 1, MPI_LONG, 0, (MPI_Aint)&result, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    errors_return();
    MPI_Win win;
    long memory[4] = {0};
    OK(MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    wrong_synchronisation(win);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    wrong_creation();
    return end();
}
