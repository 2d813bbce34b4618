/* One-sided operations with requests: on every kind of layout; nothing waits in the call; a flush completes them, too. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <unistd.h>

#include "check.h"

enum { LARGE = 40000, ROWS = 300, COLUMNS = 5 };

static MPI_Win win;
static long *memory;
static int next;

static long value(int rank, int i) { return 1000003L * rank + i; }

static void fill(void) {
    for (int i = 0; i < LARGE; i++) memory[i] = value(rank_, i);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* What is there when a flush returns, before the request is awaited. */
static void plain(void) {
    static long data[LARGE], room[LARGE];
    MPI_Request requests[3];
    MPI_Status status;
    int flag = 0;
    fill();
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Rget(room, LARGE, MPI_LONG, next, 0, LARGE, MPI_LONG, win, &requests[0]));
    OK(MPI_Win_flush(next, win));
    for (int i = 0; i < LARGE; i++) CHECK(room[i] == value(next, i));
    OK(MPI_Wait(&requests[0], &status));
    CHECK(requests[0] == MPI_REQUEST_NULL && status.MPI_TAG == MPI_ANY_TAG);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < LARGE; i++) data[i] = -value(rank_, i);
    OK(MPI_Rput(data, LARGE, MPI_LONG, next, 0, LARGE, MPI_LONG, win, &requests[0]));
    while (!flag) OK(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
    /* The buffer may be reused. */
    memset(data, 0, sizeof data);
    OK(MPI_Win_flush(next, win));
    for (int i = 0; i < LARGE; i++) data[i] = 1, room[i] = 0;
    OK(MPI_Raccumulate(data, LARGE, MPI_LONG, next, 0, LARGE, MPI_LONG, MPI_SUM, win, &requests[0]));
    OK(MPI_Rget_accumulate(data, LARGE, MPI_LONG, room, LARGE, MPI_LONG, next, 0, LARGE, MPI_LONG, MPI_SUM, win,
                           &requests[1]));
    OK(MPI_Rget_accumulate(NULL, 0, MPI_LONG, data, 7, MPI_LONG, next, 7, 7, MPI_LONG, MPI_NO_OP, win, &requests[2]));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < LARGE; i++) CHECK(room[i] == 1 - value(rank_, i));
    for (int i = 0; i < 7; i++) CHECK(data[i] == 2 - value(rank_, 7 + i));
    /* Given up, and complete all the same. */
    OK(MPI_Rput(room, 4, MPI_LONG, next, 0, 4, MPI_LONG, win, &requests[0]));
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Rget(data, 4, MPI_LONG, MPI_PROC_NULL, 0, 4, MPI_LONG, win, &requests[0]));
    OK(MPI_Rget_accumulate(data, 1, MPI_LONG, data, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, MPI_SUM, win,
                           &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const int before = (rank_ + size_ - 1) % size_;
    for (int i = 0; i < 4; i++) CHECK(memory[i] == 1 - value(before, i));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* A column of a matrix there, every other word here. */
static void shaped(void) {
    static long room[2 * ROWS], ones[ROWS];
    MPI_Datatype column, spread;
    MPI_Request requests[2];
    OK(MPI_Type_vector(ROWS, 1, COLUMNS, MPI_LONG, &column));
    OK(MPI_Type_vector(ROWS, 1, 2, MPI_LONG, &spread));
    OK(MPI_Type_commit(&column));
    OK(MPI_Type_commit(&spread));
    fill();
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < 2 * ROWS; i++) room[i] = -1;
    for (int i = 0; i < ROWS; i++) ones[i] = 1;
    OK(MPI_Rget(room, 1, spread, next, 3, 1, column, win, &requests[0]));
    OK(MPI_Win_flush_all(win));
    for (int i = 0; i < 2 * ROWS; i++) CHECK(room[i] == (i % 2 ? -1 : value(next, 3 + COLUMNS * (i / 2))));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * ROWS; i++) room[i] = -1;
    OK(MPI_Rget_accumulate(ones, ROWS, MPI_LONG, room, 1, spread, next, 1, 1, column, MPI_SUM, win, &requests[0]));
    OK(MPI_Win_flush(next, win));
    for (int i = 0; i < 2 * ROWS; i++) CHECK(room[i] == (i % 2 ? -1 : value(next, 1 + COLUMNS * (i / 2))));
    OK(MPI_Raccumulate(ones, ROWS, MPI_LONG, next, 1, 1, column, MPI_SUM, win, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Win_flush(next, win));
    OK(MPI_Rget(room, 1, spread, next, 1, 1, column, win, &requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    for (int i = 0; i < ROWS; i++) CHECK(room[2 * i] == value(next, 1 + COLUMNS * i) + 2);
    OK(MPI_Rput(room, 1, spread, next, 2, 1, column, win, &requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < ROWS; i++) CHECK(memory[2 + COLUMNS * i] == memory[1 + COLUMNS * i]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&spread));
}

/* The calls return while the target is stopped; at that time nothing but memory at hand can be complete. */
static void stopped(void) {
    enum { BEHIND = 2000 };
    static long room[LARGE - BEHIND], fetched[1 + ROWS], zeros[ROWS], other[ROWS], operand = 5;
    MPI_Request requests[4];
    MPI_Datatype column;
    int pids[8], pid = (int)getpid(), flag;
    if (size_ < 2 || size_ > 8) return;
    OK(MPI_Type_vector(ROWS, 1, COLUMNS, MPI_LONG, &column));
    OK(MPI_Type_commit(&column));
    fill();
    OK(MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank_ == 0) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
        OK(MPI_Get(room, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win));
        OK(MPI_Win_flush(1, win));
        CHECK(kill((pid_t)pids[1], SIGSTOP) == 0);
        OK(MPI_Rget(room, LARGE - BEHIND, MPI_LONG, 1, BEHIND, LARGE - BEHIND, MPI_LONG, win, &requests[0]));
        OK(MPI_Rget_accumulate(&operand, 1, MPI_LONG, fetched, 1, MPI_LONG, 1, 4, 1, MPI_LONG, MPI_SUM, win,
                               &requests[1]));
        OK(MPI_Rget_accumulate(zeros, ROWS, MPI_LONG, fetched + 1, ROWS, MPI_LONG, 1, 5, 1, column, MPI_SUM, win,
                               &requests[2]));
        OK(MPI_Rget(other, ROWS, MPI_LONG, 1, 3, 1, column, win, &requests[3]));
        OK(MPI_Testall(4, requests, &flag, MPI_STATUSES_IGNORE));
        const char *transport = getenv("TRANSOM_TRANSPORT");
        CHECK(!flag || !transport || strcmp(transport, "ofi") != 0);
        CHECK(kill((pid_t)pids[1], SIGCONT) == 0);
        if (!flag) OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
        for (int i = BEHIND; i < LARGE; i++) CHECK(room[i - BEHIND] == value(1, i));
        CHECK(fetched[0] == value(1, 4));
        for (int i = 0; i < ROWS; i++) CHECK(fetched[1 + i] == value(1, 5 + COLUMNS * i));
        for (int i = 0; i < ROWS; i++) CHECK(other[i] == value(1, 3 + COLUMNS * i));
        OK(MPI_Win_unlock(1, win));
    }
    OK(MPI_Type_free(&column));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    next = (rank_ + 1) % size_;
    OK(MPI_Win_allocate(LARGE * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    plain();
    shaped();
    stopped();
    OK(MPI_Win_free(&win));
    return end();
}
