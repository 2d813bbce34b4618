/* What synchronisation costs: calls of rank 0, and calls of all ranks; and a window from its making to its end. */
#include "rma.h"
#include <string.h>

static MPI_Win win;
/* The neighbours in a ring: whom this rank is exposed to, and whom it accesses. */
static MPI_Group before, after;
static int next;

#define LOOP(name, body)                                                                                                           \
    static void name(void *context, long repeats) {                                                                                \
        (void)context;                                                                                                             \
        for (long turn = 0; turn < repeats; turn++) body                                                                           \
    }
static int64_t word = 1;
#define PUT(target) MPI_Put(&word, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win)

LOOP(put_flush, { PUT(TARGET); MPI_Win_flush(TARGET, win); })
LOOP(flush, { MPI_Win_flush(TARGET, win); })
LOOP(flush_local, { MPI_Win_flush_local(TARGET, win); })
LOOP(win_sync, { MPI_Win_sync(win); })
/* The flush takes the lock: an epoch in which nothing happens need not. */
LOOP(lock_unlock, { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, win); MPI_Win_flush(TARGET, win); MPI_Win_unlock(TARGET, win); })
LOOP(lock_shared, { MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, win); MPI_Win_flush(TARGET, win); MPI_Win_unlock(TARGET, win); })
LOOP(lock_put_unlock, { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, win); PUT(TARGET); MPI_Win_unlock(TARGET, win); })
LOOP(lock_all, { MPI_Win_lock_all(0, win); PUT(TARGET); MPI_Win_unlock_all(win); })
LOOP(fence, { MPI_Win_fence(0, win); })
LOOP(put_fence, { PUT(next); MPI_Win_fence(0, win); })
LOOP(barrier, { MPI_Barrier(MPI_COMM_WORLD); })
LOOP(pscw, {
    MPI_Win_post(before, 0, win);
    MPI_Win_start(after, 0, win);
    PUT(next);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
})

enum epoch { NONE, ALL, FENCE };

static const struct {
    const char *name;
    repeat loop;
    enum who who;
    enum epoch epoch;
} calls[] = {
    {"put-flush", put_flush, ALONE, ALL}, {"flush", flush, ALONE, ALL}, {"flush-local", flush_local, ALONE, ALL},
    {"win-sync", win_sync, ALONE, ALL}, {"lock-unlock", lock_unlock, ALONE, NONE}, {"lock-shared", lock_shared, ALONE, NONE},
    {"lock-put-unlock", lock_put_unlock, ALONE, NONE}, {"lock-all", lock_all, ALONE, NONE}, {"fence", fence, TOGETHER, FENCE},
    {"put-fence", put_fence, TOGETHER, FENCE}, {"barrier", barrier, TOGETHER, NONE}, {"pscw", pscw, TOGETHER, NONE},
};

void synchronisation(const char *name) {
    void *memory;
    MPI_Group all;
    int last = (rank + ranks - 1) % ranks;
    next = (rank + 1) % ranks;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &last, &before);
    MPI_Group_incl(all, 1, &next, &after);
    for (size_t i = 0; i < COUNT(calls); i++) {
        if (strcmp(calls[i].name, name)) continue;
        struct row row = {name, 0, "time", 1, 0};
        win = make_window(4096, &memory);
        if (calls[i].epoch == ALL) MPI_Win_lock_all(0, win);
        if (calls[i].epoch == FENCE) MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
        measure(&row, calls[i].who, calls[i].loop, NULL);
        report(&row, UNSEEN, -1);
        if (calls[i].epoch == ALL) MPI_Win_unlock_all(win);
        if (calls[i].epoch == FENCE) MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        free_window(&win);
    }
    MPI_Group_free(&before);
    MPI_Group_free(&after);
    MPI_Group_free(&all);
}

static void make_and_free(void *context, long repeats) {
    MPI_Win cycled;
    char *memory = context;
    for (long turn = 0; turn < repeats; turn++) {
        if (created) MPI_Win_create(memory, 4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &cycled);
        else MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &cycled);
        MPI_Win_free(&cycled);
    }
}

void cycle(const char *name) {
    static char memory[4096];
    struct row row = {name, 4096, "time", 1, 0};
    measure(&row, TOGETHER, make_and_free, memory);
    report(&row, UNSEEN, -1);
}
