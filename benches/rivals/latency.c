/* Latency, bandwidth and rates of operations of rank 0 on rank 1, in an epoch of lock_all, completed by flushes. */
#include "rma.h"
#include <stdlib.h>
#include <string.h>

enum { RATE = 1000 };
enum verb { PUT, GET, ACCUMULATE, GET_ACCUMULATE, FETCH_AND_OP, COMPARE_AND_SWAP, RPUT };

/* Operations that are completed together: `count` of them, each `near` bytes behind the last at the origin, `far` at the target. */
struct work {
    enum verb verb;
    size_t bytes, count, near, far;
    char *origin, *result;
    int target;
    MPI_Win win;
};

static void one(const struct work *w, size_t i) {
    int bytes = (int)w->bytes, doubles = (int)(w->bytes / sizeof(double));
    char *origin = w->origin + i * w->near, *result = w->result + i * w->near;
    MPI_Aint at = (MPI_Aint)(i * w->far);
    MPI_Request request;
    switch (w->verb) {
    case PUT: MPI_Put(origin, bytes, MPI_BYTE, w->target, at, bytes, MPI_BYTE, w->win); break;
    case GET: MPI_Get(result, bytes, MPI_BYTE, w->target, at, bytes, MPI_BYTE, w->win); break;
    case ACCUMULATE: MPI_Accumulate(origin, doubles, MPI_DOUBLE, w->target, at, doubles, MPI_DOUBLE, MPI_SUM, w->win); break;
    case GET_ACCUMULATE:
        MPI_Get_accumulate(origin, doubles, MPI_DOUBLE, result, doubles, MPI_DOUBLE, w->target, at, doubles, MPI_DOUBLE, MPI_SUM,
            w->win);
        break;
    case FETCH_AND_OP: MPI_Fetch_and_op(origin, result, MPI_INT64_T, w->target, at, MPI_SUM, w->win); break;
    case COMPARE_AND_SWAP: MPI_Compare_and_swap(origin, origin, result, MPI_INT64_T, w->target, at, w->win); break;
    case RPUT:
        MPI_Rput(origin, bytes, MPI_BYTE, w->target, at, bytes, MPI_BYTE, w->win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    }
}

static void loop(void *context, long repeats) {
    const struct work *w = context;
    for (long turn = 0; turn < repeats; turn++) {
        for (size_t i = 0; i < w->count; i++) one(w, i);
        MPI_Win_flush(w->target, w->win);
    }
}

/* Whether all bytes are this one. */
static int is_all(const char *memory, size_t bytes, int byte) {
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != (char)byte) return 0;
    return 1;
}

/* Carries it out once, with data of its own, and looks at both ends. */
static enum data check(const struct work *w, char *memory) {
    int holds = 1;
    double *doubles = (double *)memory;
    if (rank == TARGET) {
        memset(memory, 0x5a, w->bytes);
        if (w->verb >= ACCUMULATE) for (size_t i = 0; i < w->bytes / WORD; i++) doubles[i] = 40;
        if (w->verb == FETCH_AND_OP || w->verb == COMPARE_AND_SWAP) *(int64_t *)memory = 40;
        MPI_Win_sync(w->win);
    } else {
        if (w->verb == PUT || w->verb == RPUT) memset(w->origin, 0x3c, w->bytes);
        if (w->verb == GET) memset(w->result, 0, w->bytes);
        if (w->verb == FETCH_AND_OP) *(int64_t *)w->origin = 2;
        if (w->verb == COMPARE_AND_SWAP) *(int64_t *)w->origin = 40;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ORIGIN) {
        one(w, 0);
        MPI_Win_flush(w->target, w->win);
        if (w->verb == GET) holds = is_all(w->result, w->bytes, 0x5a);
        if (w->verb == GET_ACCUMULATE) holds = *(double *)w->result == 40;
        if (w->verb == FETCH_AND_OP || w->verb == COMPARE_AND_SWAP) holds = *(int64_t *)w->result == 40;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == TARGET) {
        MPI_Win_sync(w->win);
        if (w->verb == PUT || w->verb == RPUT) holds = is_all(memory, w->bytes, 0x3c);
        if (w->verb == FETCH_AND_OP) holds = *(int64_t *)memory == 42;
        if (w->verb == COMPARE_AND_SWAP) holds = *(int64_t *)memory == 40;
        if (w->verb == ACCUMULATE || w->verb == GET_ACCUMULATE)
            for (size_t i = 0; i < w->bytes / WORD; i++) holds = holds && doubles[i] == 41;
    }
    return everywhere(holds) ? RIGHT : WRONG;
}

/* Measures a row in a window of its own. */
static void measure_row(struct row row, struct work w) {
    void *memory;
    size_t near = w.bytes + w.near * (w.count - 1), far = w.bytes + w.far * (w.count - 1);
    w.win = make_window(far > 4096 ? far : 4096, &memory);
    w.origin = buffer(near);
    w.result = buffer(near);
    w.target = TARGET;
    MPI_Win_lock_all(0, w.win);
    measure(&row, ALONE, loop, &w);
    enum data data = check(&w, memory);
    report(&row, data, -1);
    MPI_Win_unlock_all(w.win);
    free_window(&w.win);
    free(w.origin);
    free(w.result);
}

static int is_whole(enum verb verb, size_t bytes) {
    return verb == PUT || verb == GET || verb == RPUT || bytes % sizeof(double) == 0;
}

void latency(const char *name) {
    static const struct {
        const char *name;
        enum verb verb;
    } known[] = {
        {"put-latency", PUT}, {"get-latency", GET}, {"accumulate-latency", ACCUMULATE},
        {"get-accumulate-latency", GET_ACCUMULATE}, {"fetch-and-op-latency", FETCH_AND_OP},
        {"compare-and-swap-latency", COMPARE_AND_SWAP}, {"rput-latency", RPUT},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        if (strcmp(known[i].name, name)) continue;
        enum verb verb = known[i].verb;
        if (verb >= FETCH_AND_OP) measure_row((struct row){name, WORD, "time", 1, 0}, (struct work){.verb = verb, .bytes = WORD, .count = 1});
        for (int s = 0; verb < FETCH_AND_OP && s < size_count; s++)
            if (is_whole(verb, sizes[s]))
                measure_row((struct row){name, sizes[s], "time", 1, 0}, (struct work){.verb = verb, .bytes = sizes[s], .count = 1});
    }
}

/* Puts of both ranks at once. */
static void bidirectional(const char *name) {
    for (int s = 0; s < size_count; s++) {
        size_t bytes = sizes[s], count = batch(bytes);
        void *memory;
        struct work w = {.verb = PUT, .bytes = bytes, .count = count, .target = 1 - rank};
        w.win = make_window(bytes, &memory);
        w.origin = w.result = buffer(bytes);
        struct row row = {name, bytes, "bandwidth", 2 * count * bytes, 0};
        MPI_Win_lock_all(0, w.win);
        measure(&row, TOGETHER, loop, &w);
        report(&row, UNSEEN, -1);
        MPI_Win_unlock_all(w.win);
        free_window(&w.win);
        free(w.origin);
    }
}

/* Up to 64 at once: puts and sums to one place, gets to different memory; "apart": at both ends one behind the other. */
void bandwidth(const char *name) {
    if (!strcmp(name, "put-bidirectional")) {
        bidirectional(name);
        return;
    }
    enum verb verb = name[0] == 'p' ? PUT : name[0] == 'g' ? GET : ACCUMULATE;
    int apart = strstr(name, "apart") != NULL;
    for (int s = 0; s < size_count; s++) {
        size_t bytes = sizes[s], count = batch(bytes);
        if (!is_whole(verb, bytes)) continue;
        struct work w = {.verb = verb, .bytes = bytes, .count = count, .near = apart || verb == GET ? bytes : 0, .far = apart ? bytes : 0};
        measure_row((struct row){name, bytes, "bandwidth", bytes * count, 0}, w);
    }
}

void rates(const char *name) {
    enum verb verb = name[0] == 'p' ? PUT : name[0] == 'g' ? GET : ACCUMULATE;
    struct work w = {.verb = verb, .bytes = WORD, .count = RATE, .near = verb == GET ? WORD : 0};
    measure_row((struct row){name, WORD, "rate", RATE, 0}, w);
}
