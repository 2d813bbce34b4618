/* All ranks want the same: a lock of rank 0, or a word there. Beside it what these cores do without a library: locked additions to
 * one word, and a cache line that goes there and back between two. The last decides more than anything else. */
#include "rma.h"
#include <stdatomic.h>
#include <string.h>

enum { TURNS = 16, BURST = 64, SAMPLES = 7, ROUND_TRIPS = 200 };
static const double BLOCK = 2e6;

/* Memory of all ranks, a line each. */
static struct {
    _Alignas(128) atomic_long counter;
    _Alignas(128) atomic_long there;
    _Alignas(128) atomic_long back;
} *shared;
static MPI_Win win;
static const int64_t one = 1;
static int64_t tickets[BURST];
static long counted;

static void by_lock(void) {
    int64_t value;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, ORIGIN, 0, win);
    MPI_Get(&value, 1, MPI_INT64_T, ORIGIN, 0, 1, MPI_INT64_T, win);
    MPI_Win_flush(ORIGIN, win);
    value++;
    MPI_Put(&value, 1, MPI_INT64_T, ORIGIN, 0, 1, MPI_INT64_T, win);
    MPI_Win_unlock(ORIGIN, win);
    counted++;
}

static void by_atomic(void) {
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Fetch_and_op(&one, &tickets[0], MPI_INT64_T, ORIGIN, 0, MPI_SUM, win);
        MPI_Win_flush(ORIGIN, win);
    }
    counted += TURNS;
}

static void by_burst(void) {
    for (int turn = 0; turn < BURST; turn++) MPI_Fetch_and_op(&one, &tickets[turn], MPI_INT64_T, ORIGIN, 0, MPI_SUM, win);
    MPI_Win_flush(ORIGIN, win);
    counted += BURST;
}

static void by_addition(void) {
    for (int turn = 0; turn < BURST; turn++) atomic_fetch_add(&shared->counter, 1);
    counted += BURST;
}

/* All count for a while: their rates add up, and what part the idlest has of the busiest's is how fair it was. */
static double contend(void (*count)(void)) {
    double least = 0, most = 0;
    for (int sample = 0; sample < samples_of(SAMPLES); sample++) {
        long before = preemptions(), start_count = counted;
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now(), end;
        do {
            count();
            end = now();
        } while (end - start < BLOCK);
        double rate = (double)(counted - start_count) / (end - start);
        int own = preemptions() != before, any;
        double sum, lowest, highest;
        MPI_Allreduce(&rate, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(&rate, &lowest, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&rate, &highest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(&own, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        push(1 / sum, any);
        least += lowest;
        most += highest;
    }
    return least / most;
}

/* Whether the counter says what all have counted. */
static enum data total_is(const void *counter) {
    long all;
    MPI_Allreduce(&counted, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_sync(win);
    return everywhere(rank != ORIGIN || *(const int64_t *)counter == all) ? RIGHT : WRONG;
}

static void round_trips(void *context, long repeats) {
    static long trip;
    (void)context;
    for (long last = trip + repeats; trip < last;) {
        trip++;
        if (rank == ORIGIN) atomic_store_explicit(&shared->there, trip, memory_order_release);
        while (atomic_load_explicit(rank == ORIGIN ? &shared->back : &shared->there, memory_order_acquire) < trip) {}
        if (rank == TARGET) atomic_store_explicit(&shared->back, trip, memory_order_release);
    }
}

void contention(const char *name) {
    struct row row = {name, WORD, "rate", 1, 0};
    int of_machine = !strcmp(name, "locked-add") || !strcmp(name, "line-round-trip");
    if (of_machine) {
        if (!shared) shared = shared_memory(sizeof *shared);
        if (!shared) {
            left_out(name, "the ranks map no memory together");
            return;
        }
        if (!strcmp(name, "line-round-trip")) {
            row = (struct row){name, 0, "time", 1, 0};
            measure(&row, TOGETHER, round_trips, NULL);
            report(&row, UNSEEN, -1);
        } else {
            double fairness = contend(by_addition);
            report(&row, UNSEEN, fairness);
        }
        return;
    }
    void *counter;
    int by_locks = !strcmp(name, "lock-contention");
    counted = 0;
    win = make_window(4096, &counter);
    if (!by_locks) MPI_Win_lock_all(0, win);
    double fairness = contend(by_locks ? by_lock : !strcmp(name, "atomic-contention") ? by_atomic : by_burst);
    if (!by_locks) MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (by_locks) MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    else MPI_Win_lock_all(0, win);
    enum data data = total_is(counter);
    if (by_locks) MPI_Win_unlock(rank, win);
    else MPI_Win_unlock_all(win);
    report(&row, data, fairness);
    free_window(&win);
}
