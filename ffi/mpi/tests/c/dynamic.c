/* Dynamic windows: accesses to several attached regions, next to each other or apart. */
#include "check.h"

enum { PART = 700, PARTS = 4, ALL = PART * PARTS, GAP = 2 };

static MPI_Win win;
/* All but part GAP is attached, each part by a call of its own. */
static long memory[ALL];
static MPI_Aint there;

static MPI_Aint at(int i) { return MPI_Aint_add(there, i * (MPI_Aint)sizeof(long)); }
static long value(int i) { return 7000L * i + rank_; }

static void fill(void) {
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank_, 0, win));
    for (int i = 0; i < ALL; i++) memory[i] = i;
    OK(MPI_Win_unlock(rank_, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void consecutive(int next) {
    static long data[2 * PART], old[2 * PART];
    MPI_Request request;
    enum { FROM = 300, N = PART };
    for (int how = 0; how < 2; how++) {
        fill();
        OK(MPI_Win_lock_all(0, win));
        for (int i = 0; i < N; i++) data[i] = value(i);
        if (how == 0) OK(MPI_Put(data, N, MPI_LONG, next, at(FROM), N, MPI_LONG, win));
        else {
            OK(MPI_Rput(data, N, MPI_LONG, next, at(FROM), N, MPI_LONG, win, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
        OK(MPI_Win_flush(next, win));
        memset(old, 0, sizeof old);
        if (how == 0) OK(MPI_Get(old, N, MPI_LONG, next, at(FROM), N, MPI_LONG, win));
        else OK(MPI_Rget(old, N, MPI_LONG, next, at(FROM), N, MPI_LONG, win, &request));
        OK(MPI_Win_flush(next, win));
        for (int i = 0; i < N; i++) CHECK(old[i] == value(i));
        if (how == 1) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < N; i++) data[i] = 1;
        OK(MPI_Accumulate(data, N, MPI_LONG, next, at(FROM), N, MPI_LONG, MPI_SUM, win));
        memset(old, 0, sizeof old);
        if (how == 0)
            OK(MPI_Get_accumulate(data, N, MPI_LONG, old, N, MPI_LONG, next, at(FROM), N, MPI_LONG, MPI_SUM, win));
        else {
            OK(MPI_Rget_accumulate(data, N, MPI_LONG, old, N, MPI_LONG, next, at(FROM), N, MPI_LONG, MPI_SUM, win,
                                   &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
        OK(MPI_Win_flush_all(win));
        for (int i = 0; i < N; i++) CHECK(old[i] == value(i) + 1);
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        const int before = (rank_ + size_ - 1) % size_;
        for (int i = 0; i < N; i++) CHECK(memory[FROM + i] == value(i) - rank_ + before + 2);
        CHECK(memory[FROM - 1] == FROM - 1 && memory[FROM + N] == FROM + N);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

/* One datatype over regions with a gap between them, by addresses. */
static void apart(int next) {
    long data[3] = {11, 22, 33}, old[3] = {0};
    const MPI_Aint places[] = {at(5), at(PART + 5), at((GAP + 1) * PART + 5)};
    MPI_Datatype spread;
    MPI_Request request;
    OK(MPI_Type_create_hindexed_block(3, 1, places, MPI_LONG, &spread));
    OK(MPI_Type_commit(&spread));
    fill();
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(data, 3, MPI_LONG, next, 0, 1, spread, win));
    OK(MPI_Win_flush(next, win));
    OK(MPI_Get(old, 3, MPI_LONG, next, 0, 1, spread, win));
    OK(MPI_Win_flush(next, win));
    CHECK(memcmp(old, data, sizeof old) == 0);
    OK(MPI_Accumulate(data, 3, MPI_LONG, next, 0, 1, spread, MPI_SUM, win));
    OK(MPI_Rget_accumulate(data, 3, MPI_LONG, old, 3, MPI_LONG, next, 0, 1, spread, MPI_SUM, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(old[0] == 22 && old[1] == 44 && old[2] == 66);
    OK(MPI_Rget(old, 3, MPI_LONG, next, 0, 1, spread, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(old[0] == 33 && old[1] == 66 && old[2] == 99);
    OK(MPI_Rput(data, 3, MPI_LONG, next, 0, 1, spread, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(memory[5] == 11 && memory[PART + 5] == 22 && memory[(GAP + 1) * PART + 5] == 33);
    CHECK(memory[6] == 6 && memory[PART + 6] == PART + 6);
    OK(MPI_Type_free(&spread));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* What no region holds is refused, and nothing is done of it. */
static void refused(int next) {
    static long data[ALL];
    MPI_Request request;
    fill();
    OK(MPI_Win_lock_all(0, win));
    const int from = GAP * PART - 10;
    FAILS(MPI_Put(data, 11, MPI_LONG, next, at(from), 11, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Get(data, 11, MPI_LONG, next, at(from), 11, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Put(data, ALL, MPI_LONG, next, at(0), ALL, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Rput(data, 11, MPI_LONG, next, at(from), 11, MPI_LONG, win, &request), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Rget(data, 11, MPI_LONG, next, at(from), 11, MPI_LONG, win, &request), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Accumulate(data, 11, MPI_LONG, next, at(from), 11, MPI_LONG, MPI_SUM, win), MPI_ERR_RMA_RANGE);
    /* An element in two regions cannot be updated by one instruction, or under one lock. */
    FAILS(MPI_Accumulate(data, 1, MPI_LONG, next, at(PART) - 4, 1, MPI_LONG, MPI_SUM, win), MPI_ERR_RMA_RANGE);
    OK(MPI_Put(data, 1, MPI_LONG, next, at(PART) - 4, 1, MPI_LONG, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = from; i < from + 10; i++) CHECK(memory[i] == i);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    for (int i = 0; i < PARTS; i++)
        if (i != GAP) OK(MPI_Win_attach(win, memory + i * PART, PART * sizeof(long)));
    const int next = (rank_ + 1) % size_;
    MPI_Aint address, all[64];
    OK(MPI_Get_address(memory, &address));
    OK(MPI_Allgather(&address, 1, MPI_AINT, all, 1, MPI_AINT, MPI_COMM_WORLD));
    there = all[next];
    consecutive(next);
    apart(next);
    refused(next);
    for (int i = 0; i < PARTS; i++)
        if (i != GAP) OK(MPI_Win_detach(win, memory + i * PART));
    OK(MPI_Win_free(&win));
    return end();
}
