/* Operations of rank 0 while rank 1 computes without a call, for 20 ms at a time: what needs its calls takes about as long. And what
 * part of a put's time rank 0 can compute in. */
#include "rma.h"
#include <stdlib.h>
#include <string.h>

enum { TRIALS = 5, BULK = 64 << 10, OVERLAPPED = 1 << 10, OVERLAPS = 20, TRIAL = 1000 };
static const double COMPUTING = 20e6, AHEAD = 1e6;

static char *origin, *result;
static MPI_Win win;

static void act(const char *name) {
    if (!strcmp(name, "passive-lock")) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, win);
        MPI_Put(origin, WORD, MPI_BYTE, TARGET, 0, WORD, MPI_BYTE, win);
        MPI_Win_unlock(TARGET, win);
        return;
    }
    if (!strcmp(name, "passive-put")) MPI_Put(origin, WORD, MPI_BYTE, TARGET, 0, WORD, MPI_BYTE, win);
    else if (!strcmp(name, "passive-get")) MPI_Get(result, WORD, MPI_BYTE, TARGET, 0, WORD, MPI_BYTE, win);
    else if (!strcmp(name, "passive-fetch-and-op")) MPI_Fetch_and_op(origin, result, MPI_INT64_T, TARGET, 0, MPI_SUM, win);
    else if (!strcmp(name, "passive-compare-and-swap")) MPI_Compare_and_swap(origin, origin, result, MPI_INT64_T, TARGET, 0, win);
    else MPI_Accumulate(origin, BULK / WORD, MPI_DOUBLE, TARGET, 0, BULK / WORD, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_flush(TARGET, win);
}

void passive(const char *name) {
    void *memory;
    struct row row = {name, strcmp(name, "passive-accumulate") ? WORD : BULK, "time", 1, 0};
    origin = buffer(BULK);
    result = buffer(BULK);
    win = make_window(BULK, &memory);
    int is_in_epoch = strcmp(name, "passive-lock");
    if (is_in_epoch) MPI_Win_lock_all(0, win);
    /* The first finds the way to the target. */
    if (rank == ORIGIN) act(name);
    for (int trial = 0; trial < samples_of(TRIALS); trial++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == TARGET) {
            spin(COMPUTING);
            continue;
        }
        /* By then the target has left the barrier. */
        spin(AHEAD);
        long before = preemptions();
        double start = now();
        act(name);
        double time = now() - start;
        push(time, preemptions() != before);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    report(&row, UNSEEN, -1);
    if (is_in_epoch) MPI_Win_unlock_all(win);
    free_window(&win);
    free(origin);
    free(result);
}

/* A computation without memory. */
static void compute(long turns) {
    volatile uint64_t state = 1;
    for (long turn = 0; turn < turns; turn++) state = state * 6364136223846793005u + 1;
}

static double put_during(size_t bytes, long turns) {
    double start = now();
    MPI_Put(origin, (int)bytes, MPI_BYTE, TARGET, 0, (int)bytes, MPI_BYTE, win);
    compute(turns);
    MPI_Win_flush(TARGET, win);
    return now() - start;
}

/* Hundredths of the put's time in which the computation got on: 1 - (both - computation) / put. */
static void overlap_one(size_t bytes) {
    put_during(bytes, 0);
    long before = preemptions();
    double alone = put_during(bytes, 0), start = now();
    compute(TRIAL);
    long turns = (long)(alone / (now() - start) * TRIAL) + 1;
    start = now();
    compute(turns);
    double computing = now() - start, both = put_during(bytes, turns), hidden = 100 * (1 - (both - computing) / alone);
    push(hidden < 0 ? 0 : hidden > 100 ? 100 : hidden, preemptions() != before);
}

void overlap(const char *name) {
    for (int s = 0; s < size_count; s++) {
        if (sizes[s] < OVERLAPPED) continue;
        void *memory;
        struct row row = {name, sizes[s], "percent", 1, 0};
        origin = buffer(sizes[s]);
        win = make_window(sizes[s], &memory);
        MPI_Win_lock_all(0, win);
        for (int i = 0; rank == ORIGIN && i < samples_of(OVERLAPS); i++) overlap_one(sizes[s]);
        MPI_Barrier(MPI_COMM_WORLD);
        report(&row, UNSEEN, -1);
        MPI_Win_unlock_all(win);
        free_window(&win);
        free(origin);
    }
}
